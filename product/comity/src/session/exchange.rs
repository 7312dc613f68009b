//! The first two messages of each pattern: a key exchange, with a payload in each message.
//!
//! ```text
//! pattern    message 1             message 2             what each message proves of its sender
//! insecure   payload               payload               nothing
//! NNpsk0     Noise: psk, e         Noise: e, ee          it has the pre-shared key
//! IK         Noise: e, es, s, ss   Noise: e, ee, se      it has its static key
//! CPace      Ya | payload          Yb | payload          nothing yet; messages 3 and 4 do
//! ```
//!
//! Both ends know the *channel* before message 1:
//!
//! ```text
//! channel = "comity" | version (u32) | pattern (u8) | caller's connection id (u64)
//! ```
//!
//! The channel and the cookie are the prologue of Noise. CPace uses the channel as CI and the
//! cookie as sid. Message 1 is therefore invalid with another cookie. So a listener detects a
//! replayed message 1; with NNpsk0, it does so before any public-key operation.
//!
//! Source: The Noise Protocol Framework, revision 34; draft-irtf-cfrg-cpace.
//! Differs from the source in: the keys of Noise's transport phase are not used directly, see
//! [`super::protection`].

use comity_transport::wire::limits::VERSION;
use ring::{digest, hkdf};
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::cpace::{self, SHARE, Transcript};
use super::noise::{Primitives, TAG};
use super::protection::fill;
use super::{
    CallerCredentials, ConnectionId, ListenerCredentials, PassphraseKey, Pattern, PresharedKey,
    PublicKey, StaticKey,
};

/// The secrets that both ends share after message 2.
#[derive(Clone)]
pub(super) struct Shared {
    /// A hash of both messages and of the prologue.
    pub(super) hash: [u8; 32],
    pub(super) to_listener: Zeroizing<[u8; 32]>,
    pub(super) to_caller: Zeroizing<[u8; 32]>,
}

/// The data that both ends know before message 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel<'a> {
    pub(super) caller: ConnectionId,
    pub(super) cookie: &'a [u8],
}

impl Channel<'_> {
    fn bytes(&self, pattern: Pattern) -> Vec<u8> {
        let mut bytes = b"comity".to_vec();
        bytes.extend(VERSION.to_be_bytes());
        bytes.push(pattern as u8);
        bytes.extend(self.caller.get().to_be_bytes());
        bytes
    }

    fn prologue(&self, pattern: Pattern) -> Vec<u8> {
        let mut bytes = self.bytes(pattern);
        bytes.extend(self.cookie);
        bytes
    }
}

/// One end of an exchange.
pub(super) enum Exchange {
    Insecure,
    Noise(Box<HandshakeState>),
    CPace(CPace),
}

/// An exchange by passphrase.
pub(super) struct CPace {
    prologue: Vec<u8>,
    exchange: cpace::Exchange,
    /// Share and payload of message 1, at the listener.
    of_caller: ([u8; SHARE], Vec<u8>),
}

impl Exchange {
    /// The caller's end, with a secret that is used once.
    pub(super) fn of_caller(
        credentials: &CallerCredentials,
        channel: Channel<'_>,
        random: Zeroizing<[u8; 32]>,
    ) -> Self {
        let pattern = credentials.pattern();
        match credentials {
            CallerCredentials::Insecure => Self::Insecure,
            CallerCredentials::Passphrase(key) => Self::cpace(key, channel, &random),
            CallerCredentials::Shared(key) => {
                let keys = Keys::Shared(key);
                noise(NNPSK0, &channel.prologue(pattern), keys, true, random)
            }
            CallerCredentials::Static { own, listener } => {
                let keys = Keys::Static(own, Some(listener));
                noise(IK, &channel.prologue(pattern), keys, true, random)
            }
        }
    }

    /// The listener's end, with a secret that is used once.
    pub(super) fn of_listener(
        credentials: &ListenerCredentials,
        channel: Channel<'_>,
        random: Zeroizing<[u8; 32]>,
    ) -> Self {
        let pattern = credentials.pattern();
        match credentials {
            ListenerCredentials::Insecure => Self::Insecure,
            ListenerCredentials::Passphrase(key) => Self::cpace(key, channel, &random),
            ListenerCredentials::Shared(key) => {
                let keys = Keys::Shared(key);
                noise(NNPSK0, &channel.prologue(pattern), keys, false, random)
            }
            ListenerCredentials::Static { own, .. } => {
                let keys = Keys::Static(own, None);
                noise(IK, &channel.prologue(pattern), keys, false, random)
            }
        }
    }

    fn cpace(key: &PassphraseKey, channel: Channel<'_>, random: &[u8; 32]) -> Self {
        let pattern = Pattern::CPace;
        let bytes = channel.bytes(pattern);
        Self::CPace(CPace {
            prologue: channel.prologue(pattern),
            exchange: cpace::Exchange::new(key.bytes(), &bytes, channel.cookie, random),
            of_caller: ([0; SHARE], Vec::new()),
        })
    }

    /// Message 1. The caller keeps it for [`Self::read_answer`].
    pub(super) fn write_call(&mut self, payload: &[u8]) -> Vec<u8> {
        match self {
            Self::Insecure => payload.to_vec(),
            Self::Noise(state) => write(state, payload),
            Self::CPace(cpace) => [cpace.exchange.share(), payload].concat(),
        }
    }

    /// The payload of message 1; `None` if it is not authentic.
    pub(super) fn read_call(&mut self, message: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        match self {
            Self::Insecure => Some(Zeroizing::new(message.to_vec())),
            Self::Noise(state) => read(state, message),
            Self::CPace(cpace) => {
                let (share, payload) = message.split_first_chunk()?;
                cpace.of_caller = (*share, payload.to_vec());
                Some(Zeroizing::new(payload.to_vec()))
            }
        }
    }

    /// The static key of the caller, which message 1 has proved.
    pub(super) fn key_of_caller(&self) -> Option<PublicKey> {
        let Self::Noise(state) = self else {
            return None;
        };
        PublicKey::new(state.get_remote_static()?.try_into().ok()?).ok()
    }

    /// Message 2 and the shared secrets; there are none without protection. `None` if the caller's
    /// share is not an element of the group.
    pub(super) fn write_answer(mut self, payload: &[u8]) -> Option<(Vec<u8>, Option<Shared>)> {
        match &mut self {
            Self::Insecure => Some((payload.to_vec(), None)),
            Self::Noise(state) => {
                let message = write(state, payload);
                Some((message, Some(split(state))))
            }
            Self::CPace(cpace) => {
                let share = cpace.exchange.share();
                let shared = cpace.shared(
                    &cpace.of_caller.0,
                    &Transcript {
                        share_of_caller: &cpace.of_caller.0,
                        data_of_caller: &cpace.of_caller.1,
                        share_of_listener: share,
                        data_of_listener: payload,
                    },
                )?;
                Some(([share, payload].concat(), Some(shared)))
            }
        }
    }

    /// The payload of message 2 in reply to this message 1, and the shared secrets; `None` if it is
    /// not authentic. A message of Noise can be read only once.
    pub(super) fn read_answer(
        &mut self,
        call: &[u8],
        message: &[u8],
    ) -> Option<(Zeroizing<Vec<u8>>, Option<Shared>)> {
        match self {
            Self::Insecure => Some((Zeroizing::new(message.to_vec()), None)),
            Self::Noise(state) => {
                let payload = read(state, message)?;
                Some((payload, Some(split(state))))
            }
            Self::CPace(cpace) => {
                let (share_of_caller, data_of_caller) = call.split_at_checked(SHARE)?;
                let (share_of_listener, payload) = message.split_at_checked(SHARE)?;
                let transcript = Transcript {
                    share_of_caller,
                    data_of_caller,
                    share_of_listener,
                    data_of_listener: payload,
                };
                let shared = cpace.shared(share_of_listener, &transcript)?;
                Some((Zeroizing::new(payload.to_vec()), Some(shared)))
            }
        }
    }
}

impl CPace {
    /// ```text
    /// hash = SHA-256(prologue | transcript)
    /// keys = HKDF(salt = hash, ISK, label)
    /// ```
    fn shared(&self, share_of_peer: &[u8], transcript: &Transcript<'_>) -> Option<Shared> {
        let key = self.exchange.key(share_of_peer, transcript)?;
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(&self.prologue);
        context.update(&transcript.bytes());
        let mut hash = [0; 32];
        hash.copy_from_slice(context.finish().as_ref());
        let key = hkdf::Salt::new(hkdf::HKDF_SHA256, &hash).extract(&*key);
        Some(Shared {
            hash,
            to_listener: expand(&key, "comity 2 to listener"),
            to_caller: expand(&key, "comity 2 to caller"),
        })
    }
}

/// HKDF-Expand with a bare label, 32 bytes.
pub(super) fn expand(key: &hkdf::Prk, label: &str) -> Zeroizing<[u8; 32]> {
    let mut out = Zeroizing::new([0; 32]);
    fill(key, label, &mut *out);
    out
}

const NNPSK0: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
const IK: &str = "Noise_IK_25519_ChaChaPoly_SHA256";

/// The secrets of one end in a Noise pattern.
#[derive(Clone, Copy)]
enum Keys<'a> {
    Shared(&'a PresharedKey),
    Static(&'a StaticKey, Option<&'a PublicKey>),
}

fn noise(
    pattern: &str,
    prologue: &[u8],
    keys: Keys<'_>,
    is_caller: bool,
    ephemeral: Zeroizing<[u8; 32]>,
) -> Exchange {
    const VALID: &str = "every pattern has the keys that it needs";
    let params = pattern.parse().expect("the pattern is one of Noise");
    let mut builder = Builder::with_resolver(params, Box::new(Primitives { ephemeral }))
        .prologue(prologue)
        .expect(VALID);
    match keys {
        Keys::Shared(key) => builder = builder.psk(0, key.bytes()).expect(VALID),
        Keys::Static(own, peer) => {
            builder = builder.local_private_key(own.secret()).expect(VALID);
            if let Some(peer) = peer {
                builder = builder.remote_public_key(peer.bytes()).expect(VALID);
            }
        }
    }
    let built = match is_caller {
        true => builder.build_initiator(),
        false => builder.build_responder(),
    };
    Exchange::Noise(Box::new(built.expect(VALID)))
}

fn split(state: &mut HandshakeState) -> Shared {
    let (to_listener, to_caller) = state.dangerously_get_raw_split();
    let mut hash = [0; 32];
    hash.copy_from_slice(state.get_handshake_hash());
    Shared {
        hash,
        to_listener: Zeroizing::new(to_listener),
        to_caller: Zeroizing::new(to_caller),
    }
}

fn write(state: &mut HandshakeState, payload: &[u8]) -> Vec<u8> {
    // A message of these patterns adds at most two public keys and two tags.
    let mut message = vec![0; payload.len() + 2 * (32 + TAG)];
    let length = state
        .write_message(payload, &mut message)
        .expect("it is this end's turn, and the message has room");
    message.truncate(length);
    message
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let mut payload = Zeroizing::new(vec![0; message.len()]);
    let length = state.read_message(message, &mut payload).ok()?;
    payload.truncate(length);
    Some(payload)
}
