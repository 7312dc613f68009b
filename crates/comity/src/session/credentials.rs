//! What an endpoint proves itself with, and whom it accepts.

use core::fmt;
use core::str::FromStr;

use argon2::{Algorithm, Argon2, Params, Version};
use ring::digest;
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use thiserror::Error;
use zeroize::Zeroizing;

use super::Randomness;

/// Why a credential is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// A passphrase of fewer than 10 bytes.
    #[error("a passphrase of {0} bytes, expected at least {least}", least = Passphrase::LEAST)]
    PassphraseShort(usize),
    /// A passphrase of more than 256 bytes.
    #[error("a passphrase of {0} bytes, expected at most {most}", most = Passphrase::MOST)]
    PassphraseLong(usize),
    /// A key in text that does not have 64 digits.
    #[error("a key of {0} characters, expected 64 hexadecimal digits")]
    KeyLength(usize),
    /// A key in text with a character that is no hexadecimal digit.
    #[error("a key with {found:?} as character {at}, expected a hexadecimal digit")]
    KeyDigit {
        /// Which character, counted from 1.
        at: usize,
        /// What stands there.
        found: char,
    },
    /// A public key that every secret gives the same result with.
    #[error("a key that is a point of low order, expected the public key of a secret")]
    KeyLowOrder,
}

/// What is made of a passphrase: stretching, on purpose, takes long.
///
/// ```text
/// key = Argon2id(passphrase, salt, m = 65536 KiB, t = 3, p = 4, version 0x13), 32 bytes
/// salt = first 16 bytes of SHA-256("comity 1 passphrase")
/// ```
///
/// The salt is fixed because both ends have to come to the same key before they have met: equal
/// passphrases of different users give equal keys, and a table of stretched guesses serves against all of
/// them. Choose passphrases by a machine, or use static keys.
///
/// Source: RFC 9106, parameters of its section 4 for machines with less memory.
pub struct Passphrase;

impl Passphrase {
    /// The fewest bytes of a passphrase.
    pub const LEAST: usize = 10;
    /// The most bytes of a passphrase.
    pub const MOST: usize = 256;
    const MEMORY_KIB: u32 = 64 * 1024;
    const PASSES: u32 = 3;
    const LANES: u32 = 4;

    /// The key of `passphrase`, as UTF-8, taken as it is. Takes some 0.2 s and 64 MiB: once per endpoint.
    ///
    /// # Errors
    ///
    /// [`CredentialError::PassphraseShort`] and [`CredentialError::PassphraseLong`].
    pub fn stretch(passphrase: &str) -> Result<PresharedKey, CredentialError> {
        match passphrase.len() {
            length if length < Self::LEAST => return Err(CredentialError::PassphraseShort(length)),
            length if length > Self::MOST => return Err(CredentialError::PassphraseLong(length)),
            _ => {}
        }
        let salt = digest::digest(&digest::SHA256, b"comity 1 passphrase");
        let params = Params::new(Self::MEMORY_KIB, Self::PASSES, Self::LANES, Some(32))
            .expect("the parameters are within Argon2's bounds");
        let mut key = Zeroizing::new([0; 32]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase.as_bytes(), &salt.as_ref()[..16], &mut *key)
            .expect("lengths of passphrase, salt and key are within Argon2's bounds");
        Ok(PresharedKey(key))
    }
}

/// A secret that both ends share.
#[derive(Clone)]
pub struct PresharedKey(Zeroizing<[u8; 32]>);

impl PresharedKey {
    /// The key with these bytes, which have to be random: what people choose goes through [`Passphrase`].
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The public half of a static X25519 key, by which others know an endpoint. Text: 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The key with these bytes.
    ///
    /// # Errors
    ///
    /// [`CredentialError::KeyLowOrder`]: with such a key everybody knows the outcome of the exchange.
    pub fn new(bytes: [u8; 32]) -> Result<Self, CredentialError> {
        // X25519 clears the cofactor, so every secret shows it.
        if exchange(&[1; 32], &bytes) == [0; 32] {
            return Err(CredentialError::KeyLowOrder);
        }
        Ok(Self(bytes))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for PublicKey {
    type Err = CredentialError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(*from_hex(text)?)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A static X25519 key. Text: the secret's 64 hexadecimal digits.
#[derive(Clone)]
pub struct StaticKey {
    secret: Zeroizing<[u8; 32]>,
    public: PublicKey,
}

impl StaticKey {
    /// A new key.
    pub fn generate(randomness: &mut Randomness) -> Self {
        Self::new(randomness.bytes())
    }

    /// The key with this secret.
    pub fn new(secret: [u8; 32]) -> Self {
        let mut exchange = x25519();
        exchange.set(&secret);
        let mut public = [0; 32];
        public.copy_from_slice(exchange.pubkey());
        Self {
            secret: Zeroizing::new(secret),
            public: PublicKey(public),
        }
    }

    /// The half that others may know.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// The secret bytes, for writing them to the file of the owner.
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }
}

impl FromStr for StaticKey {
    type Err = CredentialError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(*from_hex(text)?))
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey(..)")
    }
}

impl fmt::Debug for StaticKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StaticKey(public {})", self.public)
    }
}

fn x25519() -> Box<dyn snow::types::Dh> {
    DefaultResolver
        .resolve_dh(&DHChoice::Curve25519)
        .expect("the framework is built with this curve")
}

/// The shared secret of X25519; zeros for a point of low order.
fn exchange(secret: &[u8; 32], public: &[u8; 32]) -> [u8; 32] {
    let mut ours = x25519();
    ours.set(secret);
    let mut shared = [0; 32];
    match ours.dh(public, &mut shared) {
        Ok(()) => shared,
        Err(_) => [0; 32],
    }
}

fn from_hex(text: &str) -> Result<Zeroizing<[u8; 32]>, CredentialError> {
    let text = text.trim();
    let length = text.chars().count();
    if length != 64 {
        return Err(CredentialError::KeyLength(length));
    }
    let mut bytes = Zeroizing::new([0_u8; 32]);
    for (at, found) in text.chars().enumerate() {
        let digit = found
            .to_digit(16)
            .ok_or(CredentialError::KeyDigit { at: at + 1, found })?;
        bytes[at / 2] = bytes[at / 2] << 4 | digit as u8;
    }
    Ok(bytes)
}

/// Whose static keys a listener accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allow {
    /// Anybody who knows the listener's public key: say so loudly, since that key is no secret.
    Anyone,
    /// These.
    Only(std::collections::BTreeSet<PublicKey>),
}

impl Allow {
    /// Whether the owner of `key` is accepted.
    pub fn accepts(&self, key: &PublicKey) -> bool {
        match self {
            Self::Anyone => true,
            Self::Only(keys) => keys.contains(key),
        }
    }
}

/// How a caller proves itself and knows the listener.
#[derive(Clone, Debug)]
pub enum CallerCredentials {
    /// No protection whatsoever: everybody on the way can read, change and forge. Only when asked for.
    Insecure,
    /// Both ends share a secret.
    Shared(PresharedKey),
    /// Each end has a key of its own, and the caller knows the listener's.
    Static {
        /// The caller's key.
        own: StaticKey,
        /// By which the listener is known.
        listener: PublicKey,
    },
}

/// How a listener proves itself, and whom it accepts.
#[derive(Clone, Debug)]
pub enum ListenerCredentials {
    /// No protection whatsoever: everybody on the way can read, change and forge. Only when asked for.
    Insecure,
    /// Both ends share a secret.
    Shared(PresharedKey),
    /// Each end has a key of its own.
    Static {
        /// The listener's key.
        own: StaticKey,
        /// Whom it accepts.
        allow: Allow,
    },
}

impl ListenerCredentials {
    /// What the user has to be warned of, before anything is sent.
    pub fn warning(&self) -> Option<&'static str> {
        match self {
            Self::Insecure => Some(
                "insecure: nothing is encrypted, and everybody on the way can read, change and forge packets",
            ),
            Self::Static {
                allow: Allow::Anyone,
                ..
            } => Some(
                "no allow list: everybody who knows the public key of this listener is accepted",
            ),
            Self::Shared(_) | Self::Static { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE_PUBLIC: &str = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
    const BOB: &str = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb";
    const BOB_PUBLIC: &str = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";

    #[test]
    fn static_keys_agree_with_rfc_7748_section_6_1() {
        let bob: StaticKey = BOB.parse().unwrap();
        assert_eq!(bob.public().to_string(), BOB_PUBLIC);
        let alice: PublicKey = ALICE_PUBLIC.parse().unwrap();
        let shared = PresharedKey::new(exchange(bob.secret(), alice.bytes()));
        let expected = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742";
        assert_eq!(PublicKey(*shared.bytes()).to_string(), expected);
    }

    #[test]
    fn text_that_is_no_key_is_refused_with_its_place() {
        let key = |text: &str| text.parse::<PublicKey>().unwrap_err();
        assert_eq!(key("abc"), CredentialError::KeyLength(3));
        let spoiled = ALICE_PUBLIC.replacen('f', "g", 1);
        assert_eq!(
            key(&spoiled).to_string(),
            "a key with 'g' as character 5, expected a hexadecimal digit"
        );
        assert_eq!(key(&"0".repeat(64)), CredentialError::KeyLowOrder);
        assert_eq!(
            key(&format!("01{}", "0".repeat(62))),
            CredentialError::KeyLowOrder
        );
    }

    #[test]
    fn passphrases_are_stretched_within_their_bounds() {
        assert_eq!(
            Passphrase::stretch("too short").unwrap_err().to_string(),
            "a passphrase of 9 bytes, expected at least 10"
        );
        let long = "x".repeat(257);
        assert_eq!(
            Passphrase::stretch(&long).unwrap_err(),
            CredentialError::PassphraseLong(257)
        );
        let key = Passphrase::stretch("correct horse battery").unwrap();
        // By OpenSSL's Argon2id.
        let expected = "e9431560db222fb95a9f3aa3f1d4525d8ece835a79cc0897b64fe17e5927dbc2";
        assert_eq!(PublicKey(*key.bytes()).to_string(), expected);
        assert_ne!(
            key.bytes(),
            Passphrase::stretch("correct horse batterz")
                .unwrap()
                .bytes()
        );
    }

    #[test]
    fn nothing_secret_is_printed() {
        let key: StaticKey = BOB.parse().unwrap();
        assert_eq!(
            format!("{key:?}"),
            format!("StaticKey(public {BOB_PUBLIC})")
        );
        assert_eq!(
            format!("{:?}", PresharedKey::new([7; 32])),
            "PresharedKey(..)"
        );
    }
}
