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
//! `Noise_IK_25519_ChaChaPoly_SHA256` for static keys; without protection they are their bare payloads. The
//! prologue binds version, pattern and the caller's connection id; the listener's id, which is not known
//! yet when message 1 is made, stands in the payload of message 2.
//!
//! Source: The Noise Protocol Framework, revision 34.
//! Differs from the source in: 1. The keys of the transport phase are not used as they come: see
//! [`super::protection`]. 2. Message 1 is sent again as it is until it is answered.

use ring::hkdf;
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::header::{Reader, VERSION};
use super::noise::{Primitives, TAG};
use super::protection::{Cipher, Secrets};
use super::{CallerCredentials, ConnectionId, ListenerCredentials, PresharedKey, PublicKey, Randomness, StaticKey};

/// How the two ends prove themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Pattern {
    /// Not at all.
    Insecure = 0,
    /// By a secret that both have: NNpsk0.
    Shared = 1,
    /// By static keys, the listener's known to the caller: IK.
    Static = 2,
}

impl Pattern {
    /// The pattern with this number on the wire.
    pub const fn from_wire(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Insecure),
            1 => Some(Self::Shared),
            2 => Some(Self::Static),
            _ => None,
        }
    }

    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Insecure => None,
            Self::Shared => Some("Noise_NNpsk0_25519_ChaChaPoly_SHA256"),
            Self::Static => Some("Noise_IK_25519_ChaChaPoly_SHA256"),
        }
    }
}

impl core::fmt::Display for Pattern {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Insecure => "no protection",
            Self::Shared => "a passphrase",
            Self::Static => "static keys",
        })
    }
}

impl CallerCredentials {
    /// The pattern that they need.
    pub const fn pattern(&self) -> Pattern {
        match self {
            Self::Insecure => Pattern::Insecure,
            Self::Shared(_) => Pattern::Shared,
            Self::Static { .. } => Pattern::Static,
        }
    }
}

impl ListenerCredentials {
    /// The pattern that they need.
    pub const fn pattern(&self) -> Pattern {
        match self {
            Self::Insecure => Pattern::Insecure,
            Self::Shared(_) => Pattern::Shared,
            Self::Static { .. } => Pattern::Static,
        }
    }
}

/// The most bytes of transport parameters: with them, both messages fit into 1,200 bytes.
pub const MOST_PARAMETERS: usize = 512;

/// The most versions that a caller may name.
const MOST_VERSIONS: usize = 16;

/// Why a message is not one of this handshake. None of it is told to the other end.
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
    prologue.extend(caller.0.to_be_bytes());
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
    randomness: &mut Randomness,
) -> Option<HandshakeState> {
    const VALID: &str = "every pattern is given the keys that it needs";
    let params = pattern.name()?.parse().expect("the pattern is one of Noise");
    let ephemeral = Zeroizing::new(randomness.bytes());
    let prologue = prologue(pattern, caller);
    let resolver = Box::new(Primitives { ephemeral });
    let mut builder = Builder::with_resolver(params, resolver).prologue(&prologue).expect(VALID);
    if let Some(key) = keys.shared {
        builder = builder.psk(0, key.bytes()).expect(VALID);
    }
    if let Some(key) = keys.own {
        builder = builder.local_private_key(key.secret()).expect(VALID);
    }
    if let Some(key) = keys.peer {
        builder = builder.remote_public_key(key.bytes()).expect(VALID);
    }
    let built = if initiator { builder.build_initiator() } else { builder.build_responder() };
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
    /// Makes message 1. `parameters` are at most [`MOST_PARAMETERS`] long.
    pub(super) fn new(
        credentials: &CallerCredentials,
        own: ConnectionId,
        first: Cipher,
        parameters: &[u8],
        randomness: &mut Randomness,
    ) -> Self {
        let pattern = credentials.pattern();
        let keys = match credentials {
            CallerCredentials::Insecure => Keys { shared: None, own: None, peer: None },
            CallerCredentials::Shared(key) => Keys { shared: Some(key), own: None, peer: None },
            CallerCredentials::Static { own, listener } => {
                Keys { shared: None, own: Some(own), peer: Some(listener) }
            }
        };
        let mut noise = state(pattern, own, &keys, true, randomness);
        let mut payload = vec![first as u8, 1];
        payload.extend(VERSION.to_be_bytes());
        payload.extend(parameters);
        let message = write(noise.as_mut(), &payload);
        Self { pattern, noise, first, message }
    }

    pub(super) fn pattern(&self) -> Pattern {
        self.pattern
    }

    /// Message 1.
    pub(super) fn message(&self) -> &[u8] {
        &self.message
    }

    /// Reads message 2, which came with the connection id `listener` in its header.
    pub(super) fn on_answer(
        &mut self,
        listener: ConnectionId,
        message: &[u8],
        listener_key: Option<PublicKey>,
    ) -> Result<Agreed, Refusal> {
        let payload = read(self.noise.as_mut(), message).ok_or(Refusal::Unproven)?;
        let mut reader = Reader(&payload);
        let cipher = reader.u8().and_then(Cipher::from_wire).ok_or(Refusal::Malformed)?;
        if reader.u64() != Some(listener.0) {
            return Err(Refusal::Malformed);
        }
        if cipher == Cipher::Aes128Gcm && self.first != cipher {
            return Err(Refusal::Malformed);
        }
        let parameters = reader.0;
        if parameters.len() > MOST_PARAMETERS {
            return Err(Refusal::Malformed);
        }
        Ok(Agreed {
            secrets: self.noise.as_mut().map(|noise| secrets(noise, cipher)),
            parameters: parameters.to_vec(),
            peer_key: listener_key,
        })
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
    /// Reads message 1 of `caller`, whose pattern is that of `credentials`.
    pub(super) fn new(
        credentials: &ListenerCredentials,
        caller: ConnectionId,
        first: Cipher,
        message: &[u8],
        randomness: &mut Randomness,
    ) -> Result<Self, Refusal> {
        let pattern = credentials.pattern();
        let keys = match credentials {
            ListenerCredentials::Insecure => Keys { shared: None, own: None, peer: None },
            ListenerCredentials::Shared(key) => Keys { shared: Some(key), own: None, peer: None },
            ListenerCredentials::Static { own, .. } => {
                Keys { shared: None, own: Some(own), peer: None }
            }
        };
        let mut noise = state(pattern, caller, &keys, false, randomness);
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
        let mut reader = Reader(&payload);
        let theirs = reader.u8().and_then(Cipher::from_wire).ok_or(Refusal::Malformed)?;
        let count: usize = reader.u8().ok_or(Refusal::Malformed)?.into();
        if !(1..=MOST_VERSIONS).contains(&count) {
            return Err(Refusal::Malformed);
        }
        // VERSION is the only one spoken here, so it is the highest common one exactly if it is named.
        let mut named = false;
        for _ in 0..count {
            named |= reader.u32().ok_or(Refusal::Malformed)? == VERSION;
        }
        if !named {
            return Err(Refusal::Downgrade);
        }
        if reader.0.len() > MOST_PARAMETERS {
            return Err(Refusal::Malformed);
        }
        let cipher = if theirs == first { first } else { Cipher::ChaCha20Poly1305 };
        Ok(Self {
            noise,
            cipher,
            parameters: reader.0.to_vec(),
            peer_key,
        })
    }

    /// Message 2, naming the listener's connection id `own`, and what was agreed on.
    pub(super) fn answer(mut self, own: ConnectionId, parameters: &[u8]) -> (Vec<u8>, Agreed) {
        let mut payload = vec![self.cipher as u8];
        payload.extend(own.0.to_be_bytes());
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
