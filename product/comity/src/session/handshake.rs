//! The four messages of a handshake. After them, both ends have the same keys, and each has proved
//! this.
//!
//! ```text
//!  caller                                         listener
//!    | Initial { } ----------------------------------> |  no state, no public-key work
//!    | <----------------------------- Retry { cookie } |
//!    | Initial { cookie, message 1 } ----------------> |  checks the cookie, then message 1
//!    | <------------------ Answer { ticket, message 2 } |  no state: all that it needs is in the ticket
//!    | Confirm { ticket, message 3 } ----------------> |  the caller has the keys: makes the connection
//!    | <---------------------------- Accept { message 4 } |  the listener has the keys
//!    | Data -----------------------------------------> |  open
//! ```
//!
//! Messages 1 and 2 are a key exchange ([`super::exchange`]). Messages 3 and 4 are sealed with its
//! keys, and carry the transport parameters: nobody else can read these, even with a secret that
//! leaks later.
//!
//! Source: the ticket is the authenticator of JFKr (Aiello et al., Just Fast Keying, 2004, section
//! 2.3), by which a responder keeps no state before message 3.

use comity_transport::wire::limits::{MAX_VERSIONS, RESET_TOKEN, TAG, VERSION};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf;
use zeroize::Zeroizing;

use super::exchange::{Channel, Exchange, Shared, expand};
use super::protection::{Cipher, Secrets};
use super::refusal::Refused;
use super::reset::ResetToken;
use super::{CallerCredentials, ConnectionId, ListenerCredentials, Pattern, PublicKey};

/// The name of a pattern for users.
pub(super) const fn described(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Insecure => "no protection",
        Pattern::NNpsk0 => "a shared key",
        Pattern::IK => "static keys",
        Pattern::CPace => "a passphrase",
    }
}

impl CallerCredentials {
    /// The pattern that they need.
    pub const fn pattern(&self) -> Pattern {
        match self {
            Self::Insecure => Pattern::Insecure,
            Self::Passphrase(_) => Pattern::CPace,
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
            Self::Passphrase(_) => Pattern::CPace,
            Self::Shared(_) => Pattern::NNpsk0,
            Self::Static { .. } => Pattern::IK,
        }
    }
}

/// Why a message is invalid. The peer does not learn the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The message is malformed, or does not prove the secret.
    Unproven,
    /// The caller's key is authentic but not on the list.
    UnknownKey(PublicKey),
    /// The authenticated contents are malformed.
    Malformed,
    /// The caller did not name the highest version that both ends support: somebody has interfered.
    Downgrade,
}

/// The result of messages 1 and 2.
#[derive(Clone)]
pub(super) struct Agreed {
    pub(super) cipher: Cipher,
    /// `None` without protection.
    pub(super) shared: Option<Shared>,
}

/// The contents of message 4 for an accepted caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    /// The listener's connection id.
    pub(super) connection: ConnectionId,
    /// The token of this connection's Reset packets.
    pub(super) reset_token: ResetToken,
    /// Its transport parameters.
    pub(super) parameters: Vec<u8>,
}

/// The contents of message 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The connection exists.
    Accepted(Accepted),
    Refused(Refused),
}

impl Verdict {
    fn write(&self) -> Zeroizing<Vec<u8>> {
        match self {
            Self::Accepted(accepted) => {
                // Reserves all memory at once: a reallocation would leave a copy of the token
                // behind.
                let length = 1 + 8 + RESET_TOKEN + accepted.parameters.len();
                let mut out = Zeroizing::new(Vec::with_capacity(length));
                out.push(0);
                out.extend(accepted.connection.get().to_be_bytes());
                out.extend(accepted.reset_token.bytes());
                out.extend(&accepted.parameters);
                out
            }
            Self::Refused(why) => {
                let (status, rest) = why.to_wire();
                Zeroizing::new([&[status], rest].concat())
            }
        }
    }

    fn read(message: &[u8]) -> Option<Self> {
        match message.split_first()? {
            (0, rest) => {
                let (&connection, rest) = rest.split_first_chunk()?;
                let (&reset_token, parameters) = rest.split_first_chunk()?;
                Some(Self::Accepted(Accepted {
                    connection: ConnectionId::new(u64::from_be_bytes(connection)),
                    reset_token: ResetToken::new(reset_token),
                    parameters: parameters.to_vec(),
                }))
            }
            (&status, rest) => Refused::from_wire(status, rest).map(Self::Refused),
        }
    }
}

impl Agreed {
    /// The hash of messages 1 and 2; `None` without protection.
    pub(super) fn hash(&self) -> Option<[u8; 32]> {
        self.shared.as_ref().map(|shared| shared.hash)
    }

    /// Message 3, with the caller's transport parameters.
    pub(super) fn confirm(&self, parameters: &[u8]) -> Vec<u8> {
        match &self.shared {
            None => parameters.to_vec(),
            // One message is sealed with this key, so the nonce can be fixed.
            Some(shared) => shared.seal(Direction::ToListener, [0; NONCE_LEN], parameters),
        }
    }

    /// The caller's transport parameters; `None` if the message does not prove the keys.
    pub(super) fn read_confirm(&self, message: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        match &self.shared {
            None => Some(Zeroizing::new(message.to_vec())),
            Some(shared) => shared.open(Direction::ToListener, [0; NONCE_LEN], message),
        }
    }

    /// Message 4. Each has its own nonce, since a listener may refuse a caller and accept it later.
    pub(super) fn accept(&self, verdict: &Verdict, nonce: [u8; NONCE_LEN]) -> Vec<u8> {
        let payload = verdict.write();
        match &self.shared {
            None => payload.to_vec(),
            Some(shared) => {
                let sealed = shared.seal(Direction::ToCaller, nonce, &payload);
                [&nonce[..], &sealed].concat()
            }
        }
    }

    /// The contents of message 4; `None` if it does not prove the keys.
    pub(super) fn read_accept(&self, message: &[u8]) -> Option<Verdict> {
        match &self.shared {
            None => Verdict::read(message),
            Some(shared) => {
                let (nonce, sealed) = message.split_first_chunk()?;
                Verdict::read(&shared.open(Direction::ToCaller, *nonce, sealed)?)
            }
        }
    }

    /// The keys of the Data packets.
    pub(super) fn secrets(&self) -> Option<Secrets> {
        let shared = self.shared.as_ref()?;
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, &shared.hash);
        Some(Secrets::derive(
            self.cipher,
            &salt,
            &shared.to_listener,
            &shared.to_caller,
        ))
    }
}

#[derive(Clone, Copy)]
enum Direction {
    ToListener,
    ToCaller,
}

/// Messages 3 and 4 are sealed with ChaCha20-Poly1305. The associated data are the hash of the
/// exchange.
impl Shared {
    fn key(&self, direction: Direction) -> LessSafeKey {
        let (key, label) = match direction {
            Direction::ToListener => (&self.to_listener, "comity 2 confirm"),
            Direction::ToCaller => (&self.to_caller, "comity 2 accept"),
        };
        let key = hkdf::Salt::new(hkdf::HKDF_SHA256, &self.hash).extract(&**key);
        LessSafeKey::new(
            UnboundKey::new(&CHACHA20_POLY1305, &*expand(&key, label))
                .expect("the key has the cipher's length"),
        )
    }

    fn seal(&self, direction: Direction, nonce: [u8; NONCE_LEN], payload: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(payload.len() + TAG);
        sealed.extend(payload);
        self.key(direction)
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(&self.hash),
                &mut sealed,
            )
            .expect("a handshake message is within the cipher's bounds");
        sealed
    }

    fn open(
        &self,
        direction: Direction,
        nonce: [u8; NONCE_LEN],
        sealed: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let mut opened = Zeroizing::new(sealed.to_vec());
        let length = self
            .key(direction)
            .open_in_place(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(&self.hash),
                &mut opened,
            )
            .ok()?
            .len();
        opened.truncate(length);
        Some(opened)
    }
}

/// The caller's state between message 1 and message 2.
pub(super) struct Calling {
    exchange: Exchange,
    first: Cipher,
    message: Vec<u8>,
}

impl Calling {
    /// Makes message 1 for this cookie, with a secret that is used once. `first` is the caller's
    /// preferred cipher.
    pub(super) fn new(
        credentials: &CallerCredentials,
        channel: Channel<'_>,
        first: Cipher,
        random: Zeroizing<[u8; 32]>,
    ) -> Self {
        let mut exchange = Exchange::of_caller(credentials, channel, random);
        let mut payload = vec![first as u8, 1];
        payload.extend(VERSION.to_be_bytes());
        let message = exchange.write_call(&payload);
        Self {
            exchange,
            first,
            message,
        }
    }

    /// Message 1.
    pub(super) fn message(&self) -> &[u8] {
        &self.message
    }

    /// Reads message 2, and returns its outcome.
    pub(super) fn on_answer(&mut self, message: &[u8]) -> Result<Agreed, Refusal> {
        let (payload, shared) = self
            .exchange
            .read_answer(&self.message, message)
            .ok_or(Refusal::Unproven)?;
        let &[cipher] = payload.as_slice() else {
            return Err(Refusal::Malformed);
        };
        let cipher = Cipher::from_wire(cipher).ok_or(Refusal::Malformed)?;
        if cipher != self.first && cipher != Cipher::ChaCha20Poly1305 {
            return Err(Refusal::Malformed);
        }
        Ok(Agreed { cipher, shared })
    }
}

/// The listener's answer to message 1.
pub(super) struct Answered {
    pub(super) agreed: Agreed,
    /// The key that the caller has proved to own, if static keys are used.
    pub(super) peer_key: Option<PublicKey>,
    /// Message 2.
    pub(super) message: Vec<u8>,
}

/// Reads message 1, whose pattern is that of `credentials`, and answers it with a secret that is
/// used once. `first` is the listener's preferred cipher.
pub(super) fn answer(
    credentials: &ListenerCredentials,
    channel: Channel<'_>,
    first: Cipher,
    message: &[u8],
    random: Zeroizing<[u8; 32]>,
) -> Result<Answered, Refusal> {
    let mut exchange = Exchange::of_listener(credentials, channel, random);
    let payload = exchange.read_call(message).ok_or(Refusal::Unproven)?;
    let mut peer_key = None;
    if let ListenerCredentials::Static { allow, .. } = credentials {
        let key = exchange.key_of_caller().ok_or(Refusal::Unproven)?;
        if !allow.accepts(&key) {
            return Err(Refusal::UnknownKey(key));
        }
        peer_key = Some(key);
    }
    let (&[theirs, count], versions) = payload.split_first_chunk().ok_or(Refusal::Malformed)?;
    let theirs = Cipher::from_wire(theirs).ok_or(Refusal::Malformed)?;
    let count = usize::from(count);
    if !(1..=MAX_VERSIONS).contains(&count) || versions.len() != 4 * count {
        return Err(Refusal::Malformed);
    }
    // VERSION is the only supported version, so it is the highest common one if the caller names
    // it.
    if !versions.as_chunks::<4>().0.contains(&VERSION.to_be_bytes()) {
        return Err(Refusal::Downgrade);
    }
    let cipher = match theirs == first {
        true => first,
        false => Cipher::ChaCha20Poly1305,
    };
    let answer = exchange.write_answer(&[cipher as u8]);
    let (message, shared) = answer.ok_or(Refusal::Unproven)?;
    Ok(Answered {
        agreed: Agreed { cipher, shared },
        peer_key,
        message,
    })
}
