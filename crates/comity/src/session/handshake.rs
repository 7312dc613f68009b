//! The exchange of two messages after which both ends have the same keys.
//!
//! ```text
//!  caller                                    listener
//!    | Initial { message 1 } ------------------> |  no state, no public-key work
//!    | <------------------------ Retry { cookie }|
//!    | Initial { cookie, message 1 } ----------> |  checks the cookie, then message 1
//!    | <--------------------- Answer { message 2 }|  has the keys, waits for proof that the caller has them
//!    | Data -----------------------------------> |  open
//! ```
//!
//! Message 1 and 2 are those of `Noise_NNpsk0_25519_ChaChaPoly_SHA256` for a shared secret and of
//! `Noise_IK_25519_ChaChaPoly_SHA256` for static keys; without protection they are their bare
//! payloads. The prologue binds version, pattern and the caller's connection id; the listener's id,
//! which is not known yet when message 1 is made, stands in the payload of message 2.
//!
//! Source: The Noise Protocol Framework, revision 34.
//! Differs from the source in: 1. The keys of the transport phase are not used as they come: see
//! [`super::protection`]. 2. Message 1 is retransmitted as it is until it is answered.

use comity_transport::wire::limits::VERSION;
use ring::hkdf;
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::noise::{Primitives, TAG};
use super::protection::{Cipher, Secrets};
use super::refusal::NOBODY;
use super::{
    CallerCredentials, ConnectionId, ListenerCredentials, Pattern, PresharedKey, PublicKey,
    StaticKey,
};

/// The name of a pattern in the framework; without protection, the framework is not used.
const fn name(pattern: Pattern) -> Option<&'static str> {
    match pattern {
        Pattern::Insecure => None,
        Pattern::NNpsk0 => Some("Noise_NNpsk0_25519_ChaChaPoly_SHA256"),
        Pattern::IK => Some("Noise_IK_25519_ChaChaPoly_SHA256"),
    }
}

/// A pattern in the words of its users.
pub(super) const fn described(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Insecure => "no protection",
        Pattern::NNpsk0 => "a passphrase",
        Pattern::IK => "static keys",
    }
}

impl CallerCredentials {
    /// The pattern that they need.
    pub const fn pattern(&self) -> Pattern {
        match self {
            Self::Insecure => Pattern::Insecure,
            Self::Shared(_) => Pattern::NNpsk0,
            Self::Static { .. } => Pattern::IK,
        }
    }
}

impl ListenerCredentials {
    /// The pattern that they need.
    pub const fn pattern(&self) -> Pattern {
        match self {
            Self::Insecure => Pattern::Insecure,
            Self::Shared(_) => Pattern::NNpsk0,
            Self::Static { .. } => Pattern::IK,
        }
    }
}

/// The most versions that a caller may name.
const MAX_VERSIONS: usize = 16;

/// Why a message is not one of this handshake. The other end learns none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The message does not prove the secret, or is none.
    Unproven,
    /// The caller's key is genuine and not on the list.
    UnknownKey(PublicKey),
    /// What is inside is genuine and not of this protocol.
    Malformed,
    /// A higher version that both ends speak was left out: somebody interfered.
    Downgrade,
}

/// What a handshake has agreed on.
#[derive(Debug)]
pub(super) struct Agreed {
    pub(super) secrets: Option<Secrets>,
    pub(super) parameters: Vec<u8>,
    pub(super) peer_key: Option<PublicKey>,
}

fn prologue(pattern: Pattern, caller: ConnectionId) -> Vec<u8> {
    let mut prologue = b"comity".to_vec();
    prologue.extend(VERSION.to_be_bytes());
    prologue.push(pattern as u8);
    prologue.extend(caller.get().to_be_bytes());
    prologue
}

/// What each end has for its pattern.
struct Keys<'a> {
    shared: Option<&'a PresharedKey>,
    own: Option<&'a StaticKey>,
    peer: Option<&'a PublicKey>,
}

fn state(
    pattern: Pattern,
    caller: ConnectionId,
    keys: &Keys<'_>,
    initiator: bool,
    ephemeral: Zeroizing<[u8; 32]>,
) -> Option<HandshakeState> {
    const VALID: &str = "every pattern is given the keys that it needs";
    let params = name(pattern)?.parse().expect("the pattern is one of Noise");
    let prologue = prologue(pattern, caller);
    let resolver = Box::new(Primitives { ephemeral });
    let mut builder = Builder::with_resolver(params, resolver)
        .prologue(&prologue)
        .expect(VALID);
    if let Some(key) = keys.shared {
        builder = builder.psk(0, key.bytes()).expect(VALID);
    }
    if let Some(key) = keys.own {
        builder = builder.local_private_key(key.secret()).expect(VALID);
    }
    if let Some(key) = keys.peer {
        builder = builder.remote_public_key(key.bytes()).expect(VALID);
    }
    let built = if initiator {
        builder.build_initiator()
    } else {
        builder.build_responder()
    };
    Some(built.expect(VALID))
}

/// The keys of the Data packets, from what the framework derived.
fn secrets(noise: &mut HandshakeState, cipher: Cipher) -> Secrets {
    let (to_listener, to_caller) = noise.dangerously_get_raw_split();
    let (to_listener, to_caller) = (Zeroizing::new(to_listener), Zeroizing::new(to_caller));
    let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, noise.get_handshake_hash());
    Secrets::derive(cipher, &salt, &to_listener, &to_caller)
}

fn write(noise: Option<&mut HandshakeState>, payload: &[u8]) -> Vec<u8> {
    let Some(noise) = noise else {
        return payload.to_vec();
    };
    // Two public keys and two tags are the most that a message of these patterns adds.
    let mut message = vec![0; payload.len() + 2 * (32 + TAG)];
    let length = noise
        .write_message(payload, &mut message)
        .expect("it is this end's turn, and the message has room");
    message.truncate(length);
    message
}

fn read(noise: Option<&mut HandshakeState>, message: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let Some(noise) = noise else {
        return Some(Zeroizing::new(message.to_vec()));
    };
    let mut payload = Zeroizing::new(vec![0; message.len()]);
    let length = noise.read_message(message, &mut payload).ok()?;
    payload.truncate(length);
    Some(payload)
}

/// The caller's half, between its message and the answer.
pub(super) struct Calling {
    pattern: Pattern,
    noise: Option<HandshakeState>,
    first: Cipher,
    message: Vec<u8>,
}

impl Calling {
    /// Makes message 1 with a secret that is used once. `parameters` are at most [`MAX_PARAMETERS`]
    /// long.
    pub(super) fn new(
        credentials: &CallerCredentials,
        own: ConnectionId,
        first: Cipher,
        parameters: &[u8],
        ephemeral: Zeroizing<[u8; 32]>,
    ) -> Self {
        let pattern = credentials.pattern();
        let keys = match credentials {
            CallerCredentials::Insecure => Keys {
                shared: None,
                own: None,
                peer: None,
            },
            CallerCredentials::Shared(key) => Keys {
                shared: Some(key),
                own: None,
                peer: None,
            },
            CallerCredentials::Static { own, listener } => Keys {
                shared: None,
                own: Some(own),
                peer: Some(listener),
            },
        };
        let mut noise = state(pattern, own, &keys, true, ephemeral);
        let mut payload = vec![first as u8, 1];
        payload.extend(VERSION.to_be_bytes());
        payload.extend(parameters);
        let message = write(noise.as_mut(), &payload);
        Self {
            pattern,
            noise,
            first,
            message,
        }
    }

    pub(super) fn pattern(&self) -> Pattern {
        self.pattern
    }

    /// Message 1.
    pub(super) fn message(&self) -> &[u8] {
        &self.message
    }

    /// Reads message 2: the listener's connection id, and what was agreed on.
    ///
    /// The id in the packet's header is not looked at: a changed one must not spoil a genuine
    /// answer.
    pub(super) fn on_answer(
        &mut self,
        message: &[u8],
        listener_key: Option<PublicKey>,
    ) -> Result<(ConnectionId, Agreed), Refusal> {
        let payload = read(self.noise.as_mut(), message).ok_or(Refusal::Unproven)?;
        let (&[cipher, ref id @ ..], parameters) =
            payload.split_first_chunk::<9>().ok_or(Refusal::Malformed)?;
        let cipher = Cipher::from_wire(cipher).ok_or(Refusal::Malformed)?;
        let chosen_by_rule = cipher == self.first || cipher == Cipher::ChaCha20Poly1305;
        let listener = ConnectionId::new(u64::from_be_bytes(*id));
        if listener == NOBODY || !chosen_by_rule {
            return Err(Refusal::Malformed);
        }
        let agreed = Agreed {
            secrets: self.noise.as_mut().map(|noise| secrets(noise, cipher)),
            parameters: parameters.to_vec(),
            peer_key: listener_key,
        };
        Ok((listener, agreed))
    }
}

/// The listener's half: message 1 has been read, message 2 is still to be written.
pub(super) struct Answering {
    noise: Option<HandshakeState>,
    cipher: Cipher,
    pub(super) parameters: Vec<u8>,
    pub(super) peer_key: Option<PublicKey>,
}

impl Answering {
    /// Reads message 1 of `caller`, to be answered with a secret that is used once. Its pattern is
    /// that of `credentials`.
    pub(super) fn new(
        credentials: &ListenerCredentials,
        caller: ConnectionId,
        first: Cipher,
        message: &[u8],
        ephemeral: Zeroizing<[u8; 32]>,
    ) -> Result<Self, Refusal> {
        let pattern = credentials.pattern();
        let keys = match credentials {
            ListenerCredentials::Insecure => Keys {
                shared: None,
                own: None,
                peer: None,
            },
            ListenerCredentials::Shared(key) => Keys {
                shared: Some(key),
                own: None,
                peer: None,
            },
            ListenerCredentials::Static { own, .. } => Keys {
                shared: None,
                own: Some(own),
                peer: None,
            },
        };
        let mut noise = state(pattern, caller, &keys, false, ephemeral);
        let payload = read(noise.as_mut(), message).ok_or(Refusal::Unproven)?;
        let mut peer_key = None;
        if let ListenerCredentials::Static { allow, .. } = credentials {
            let bytes = noise.as_ref().and_then(HandshakeState::get_remote_static);
            let key = bytes
                .and_then(|bytes| PublicKey::new(bytes.try_into().ok()?).ok())
                .ok_or(Refusal::Unproven)?;
            if !allow.accepts(&key) {
                return Err(Refusal::UnknownKey(key));
            }
            peer_key = Some(key);
        }
        let (&[theirs, count], rest) = payload.split_first_chunk().ok_or(Refusal::Malformed)?;
        let theirs = Cipher::from_wire(theirs).ok_or(Refusal::Malformed)?;
        let count = usize::from(count);
        if !(1..=MAX_VERSIONS).contains(&count) {
            return Err(Refusal::Malformed);
        }
        let (versions, parameters) = rest.split_at_checked(4 * count).ok_or(Refusal::Malformed)?;
        // VERSION is the only one spoken here, so it is the highest common one exactly if it is
        // named.
        if !versions.as_chunks::<4>().0.contains(&VERSION.to_be_bytes()) {
            return Err(Refusal::Downgrade);
        }
        let cipher = if theirs == first {
            first
        } else {
            Cipher::ChaCha20Poly1305
        };
        Ok(Self {
            noise,
            cipher,
            parameters: parameters.to_vec(),
            peer_key,
        })
    }

    /// Message 2, naming the listener's connection id `own`, and what was agreed on.
    pub(super) fn answer(mut self, own: ConnectionId, parameters: &[u8]) -> (Vec<u8>, Agreed) {
        let mut payload = vec![self.cipher as u8];
        payload.extend(own.get().to_be_bytes());
        payload.extend(parameters);
        let message = write(self.noise.as_mut(), &payload);
        let cipher = self.cipher;
        let agreed = Agreed {
            secrets: self.noise.as_mut().map(|noise| secrets(noise, cipher)),
            parameters: self.parameters,
            peer_key: self.peer_key,
        };
        (message, agreed)
    }
}
