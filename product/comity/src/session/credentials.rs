//! Credentials: how an endpoint proves itself, and which peers it accepts.

use core::fmt;
use core::str::FromStr;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use curve25519_dalek::MontgomeryPoint;
use ring::digest;
use thiserror::Error;
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

use super::Randomness;

/// Why a credential is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// A passphrase of fewer than 10 bytes.
    #[error("a passphrase of {0} bytes; expected at least {least}", least = Passphrase::LEAST)]
    PassphraseShort(usize),
    /// A passphrase of more than 256 bytes.
    #[error("a passphrase of {0} bytes; expected at most {most}", most = Passphrase::MOST)]
    PassphraseLong(usize),
    /// An `@` without the name of a file or a variable.
    #[error("a name is missing; expected @FILE or @env:NAME")]
    PassphraseNowhere,
    /// The memory for stretching a passphrase is not available.
    #[error(
        "cannot allocate the 64 MiB that a passphrase takes; allow the program more memory, or use keys"
    )]
    NoMemory,
    /// A key in text without 64 digits after its prefix.
    #[error(
        "a key of {0} characters after its prefix; expected comity-public- or comity-secret- and 64 hexadecimal digits"
    )]
    KeyLength(usize),
    /// A key in text with a character that is not a hexadecimal digit.
    #[error("a key with {found:?} as character {at}; expected a hexadecimal digit")]
    KeyDigit {
        /// The position of the character, counted from 1.
        at: usize,
        /// The character.
        found: char,
    },
    /// A key in text without a prefix that marks it as secret or public.
    #[error(
        "a key without the prefix that marks it as secret or public; expected {mark} and 64 hexadecimal digits; \
         `comity keygen FILE --force` makes a new one"
    )]
    KeyUnmarked {
        /// The expected prefix.
        mark: &'static str,
    },
    /// A secret key in place of a public one.
    #[error(
        "a secret key; expected a public one, as `comity keygen --public FILE` prints it. Anybody who has seen this \
         secret key can impersonate its owner"
    )]
    KeySecret,
    /// A secret key in place of the file that should contain it.
    #[error(
        "a secret key itself; expected the file that has it. Anybody who has seen this secret key can impersonate \
         its owner: make a new one"
    )]
    KeyNotInFile,
    /// A public key in place of a secret one.
    #[error("a public key; expected a secret one, as `comity keygen FILE` writes it")]
    KeyPublic,
    /// A public key of low order: the exchange has the same result with every secret.
    #[error("a key that is a point of low order; expected the public key of a secret key")]
    KeyLowOrder,
}

/// Derives keys from passphrases. Stretching is slow on purpose.
///
/// ```text
/// key = Argon2id(passphrase, salt, m = 65536 KiB, t = 3, p = 4, version 0x13), 32 bytes
/// salt = first 16 bytes of SHA-256("comity 1 passphrase")
/// ```
///
/// The salt is fixed because both ends must derive the same key before they have met. Equal
/// passphrases of different users therefore give equal keys, and one table of stretched guesses
/// works against all of them. Generate passphrases by machine, or use static keys.
///
/// Source: RFC 9106, parameters of its section 4 for machines with less memory.
pub struct Passphrase;

impl Passphrase {
    /// The minimum length of a passphrase, in bytes.
    pub const LEAST: usize = 10;
    /// The maximum length of a passphrase, in bytes.
    pub const MOST: usize = 256;
    const MEMORY_KIB: u32 = 64 * 1024;
    const PASSES: u32 = 3;
    const LANES: u32 = 4;

    /// The key of `passphrase`, as UTF-8 in normalisation form C and with ASCII's spaces (RFC 8265,
    /// section 4.2). Takes some 0.2 s and 64 MiB: call it once per endpoint.
    ///
    /// # Errors
    ///
    /// [`CredentialError::PassphraseShort`], [`CredentialError::PassphraseLong`] and
    /// [`CredentialError::NoMemory`].
    pub fn stretch(passphrase: &str) -> Result<PassphraseKey, CredentialError> {
        let passphrase = Self::prepare(passphrase)?;
        let salt = digest::digest(&digest::SHA256, b"comity 1 passphrase");
        let params = Params::new(Self::MEMORY_KIB, Self::PASSES, Self::LANES, Some(32))
            .expect("the parameters are within Argon2's bounds");
        let mut key = Zeroizing::new([0; 32]);
        let blocks = params.block_count();
        let mut memory = Zeroizing::new(Vec::new());
        { memory.try_reserve_exact(blocks) }.map_err(|_| CredentialError::NoMemory)?;
        memory.resize(blocks, Block::default());
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into_with_memory(
                passphrase.as_bytes(),
                &salt.as_ref()[..16],
                &mut *key,
                &mut *memory,
            )
            .expect("lengths of passphrase, salt and key are within Argon2's bounds");
        Ok(PassphraseKey(key))
    }

    /// Normalises a passphrase, so that passphrases that look the same are equal: NFC, with ASCII's
    /// space for every space (RFC 8265, section 4.2). Fails unless its length is valid.
    pub(super) fn prepare(text: &str) -> Result<Zeroizing<String>, CredentialError> {
        let is_space = |letter: char| {
            matches!(
                letter,
                '\u{a0}' | '\u{1680}' | '\u{2000}'
                    ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
            )
        };
        let spaced = text
            .chars()
            .map(|letter| if is_space(letter) { ' ' } else { letter });
        // Reserves all memory at once: a reallocation would leave a copy of the passphrase behind.
        // NFC has at most three times as many bytes.
        let mut prepared = Zeroizing::new(String::with_capacity(3 * text.len()));
        prepared.extend(spaced.nfc());
        match prepared.len() {
            length if length < Self::LEAST => Err(CredentialError::PassphraseShort(length)),
            length if length > Self::MOST => Err(CredentialError::PassphraseLong(length)),
            _ => Ok(prepared),
        }
    }
}

/// The stretched passphrase. Nobody can test guesses of the passphrase against a recorded
/// handshake: each guess requires a new handshake.
#[derive(Clone)]
pub struct PassphraseKey(Zeroizing<[u8; 32]>);

impl PassphraseKey {
    /// The key with these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for PassphraseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PassphraseKey(..)")
    }
}

/// A random key that both ends share.
#[derive(Clone)]
pub struct PresharedKey(Zeroizing<[u8; 32]>);

impl PresharedKey {
    /// The key with these bytes, which must be random. Use [`Passphrase`] for secrets that people
    /// choose.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The public half of a static X25519 key, which identifies an endpoint. Text: [its
/// prefix](Self::MARK) and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The prefix of its text, which distinguishes it from a secret key of the same form.
    pub const MARK: &'static str = "comity-public-";

    /// The key with these bytes.
    ///
    /// # Errors
    ///
    /// [`CredentialError::KeyLowOrder`]: anybody can compute the shared secret of such a key.
    pub fn new(bytes: [u8; 32]) -> Result<Self, CredentialError> {
        // X25519 clears the cofactor, so any secret detects a point of low order.
        if exchange(&[1; 32], &bytes) == [0; 32] {
            return Err(CredentialError::KeyLowOrder);
        }
        Ok(Self(bytes))
    }

    /// The key with bytes that were already checked.
    pub(super) const fn checked(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for PublicKey {
    type Err = CredentialError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim_start().starts_with(StaticKey::MARK) {
            return Err(CredentialError::KeySecret);
        }
        Self::new(*from_text(text, Self::MARK)?)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::MARK)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A static X25519 key. Text: [its prefix](Self::MARK) and the secret's 64 hexadecimal digits.
#[derive(Clone)]
pub struct StaticKey {
    secret: Zeroizing<[u8; 32]>,
    public: PublicKey,
}

impl StaticKey {
    /// The prefix of its text, which distinguishes it from a public key of the same form.
    pub const MARK: &'static str = "comity-secret-";

    /// A new key.
    pub fn generate(randomness: &mut Randomness) -> Self {
        Self::new(randomness.bytes())
    }

    /// The key with this secret.
    pub fn new(secret: [u8; 32]) -> Self {
        let secret = Zeroizing::new(secret);
        Self {
            public: PublicKey(MontgomeryPoint::mul_base_clamped(*secret).to_bytes()),
            secret,
        }
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// The secret bytes.
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// The secret as text, for the file of its owner.
    pub fn secret_text(&self) -> Zeroizing<String> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        // Reserves all memory at once: a reallocation would leave a copy of a part behind.
        let mut text = Zeroizing::new(String::with_capacity(Self::MARK.len() + 64));
        text.push_str(Self::MARK);
        for byte in self.secret.iter() {
            for digit in [byte >> 4, byte & 0xf] {
                text.push(char::from(DIGITS[usize::from(digit)]));
            }
        }
        text
    }
}

impl FromStr for StaticKey {
    type Err = CredentialError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim_start().starts_with(PublicKey::MARK) {
            return Err(CredentialError::KeyPublic);
        }
        Ok(Self::new(*from_text(text, Self::MARK)?))
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

/// The shared secret of X25519; zeros for a point of low order.
fn exchange(secret: &[u8; 32], public: &[u8; 32]) -> [u8; 32] {
    MontgomeryPoint(*public).mul_clamped(*secret).to_bytes()
}

/// The bytes of a key with this prefix, with surrounding white space removed.
fn from_text(text: &str, mark: &'static str) -> Result<Zeroizing<[u8; 32]>, CredentialError> {
    let text = text.trim();
    match text.strip_prefix(mark) {
        Some(digits) => from_hex(digits, mark.len()),
        // A text that is not a key at all has its own error.
        None => from_hex(text, 0).and(Err(CredentialError::KeyUnmarked { mark })),
    }
}

/// The bytes of 64 digits that follow `before` characters.
fn from_hex(text: &str, before: usize) -> Result<Zeroizing<[u8; 32]>, CredentialError> {
    let length = text.chars().count();
    if length != 64 {
        return Err(CredentialError::KeyLength(length));
    }
    let mut bytes = Zeroizing::new([0_u8; 32]);
    for (index, found) in text.chars().enumerate() {
        let digit = found.to_digit(16).ok_or(CredentialError::KeyDigit {
            at: before + index + 1,
            found,
        })?;
        bytes[index / 2] = bytes[index / 2] << 4 | digit as u8;
    }
    Ok(bytes)
}

/// The callers that a listener accepts, by their static keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allow {
    /// Every caller that knows the listener's public key. Warn the user: that key is not a secret.
    Anyone,
    /// The owners of these keys.
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

/// A caller's credentials, and how it recognises the listener.
#[derive(Clone, Debug)]
pub enum CallerCredentials {
    /// No protection: anybody on the path can read, change and forge packets. Only for users who
    /// request it explicitly.
    Insecure,
    /// Both ends share a passphrase.
    Passphrase(PassphraseKey),
    /// Both ends share a random key.
    Shared(PresharedKey),
    /// Each end has its own key, and the caller knows the listener's public key.
    Static {
        /// The caller's key.
        own: StaticKey,
        /// The listener's public key.
        listener: PublicKey,
    },
}

/// A listener's credentials, and the callers that it accepts.
#[derive(Clone, Debug)]
pub enum ListenerCredentials {
    /// No protection: anybody on the path can read, change and forge packets. Only for users who
    /// request it explicitly.
    Insecure,
    /// Both ends share a passphrase.
    Passphrase(PassphraseKey),
    /// Both ends share a random key.
    Shared(PresharedKey),
    /// Each end has its own key.
    Static {
        /// The listener's key.
        own: StaticKey,
        /// The accepted callers.
        allow: Allow,
    },
}

impl ListenerCredentials {
    /// A warning for the user, to be shown before anything is sent.
    pub fn warning(&self) -> Option<&'static str> {
        match self {
            Self::Insecure => Some(
                "insecure: nothing is encrypted, and anybody on the path can read, change and forge packets",
            ),
            Self::Static {
                allow: Allow::Anyone,
                ..
            } => Some(
                "no allow list: every caller that knows the public key of this listener is accepted",
            ),
            Self::Passphrase(_) | Self::Shared(_) | Self::Static { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE_PUBLIC: &str =
        "comity-public-8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
    const BOB: &str =
        "comity-secret-5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb";
    const BOB_PUBLIC: &str =
        "comity-public-de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";

    #[test]
    fn static_keys_agree_with_rfc_7748_section_6_1() {
        let bob: StaticKey = BOB.parse().unwrap();
        assert_eq!(bob.public().to_string(), BOB_PUBLIC);
        let alice: PublicKey = ALICE_PUBLIC.parse().unwrap();
        let shared = PresharedKey::new(exchange(bob.secret(), alice.bytes()));
        let expected =
            "comity-public-4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742";
        assert_eq!(PublicKey(*shared.bytes()).to_string(), expected);
    }

    #[test]
    fn invalid_key_text_is_refused_with_its_position() {
        let key = |text: &str| text.parse::<PublicKey>().unwrap_err();
        assert_eq!(key("abc"), CredentialError::KeyLength(3));
        let spoiled = ALICE_PUBLIC.replacen('f', "g", 1);
        assert_eq!(key(&ALICE_PUBLIC[..77]), CredentialError::KeyLength(63));
        assert_eq!(
            key(&spoiled).to_string(),
            "a key with 'g' as character 19; expected a hexadecimal digit"
        );
        let marked = |digits: &str| key(&format!("comity-public-{digits}"));
        assert_eq!(marked(&"0".repeat(64)), CredentialError::KeyLowOrder);
        assert_eq!(
            marked(&format!("01{}", "0".repeat(62))),
            CredentialError::KeyLowOrder
        );
    }

    #[test]
    fn secret_and_public_keys_are_not_confused() {
        let (public, secret) = (ALICE_PUBLIC, BOB);
        assert_eq!(secret.parse::<PublicKey>(), Err(CredentialError::KeySecret));
        let refused = |text: &str| text.parse::<StaticKey>().unwrap_err();
        assert_eq!(refused(public), CredentialError::KeyPublic);
        assert_eq!(
            refused(&format!("\n {public}\n")),
            CredentialError::KeyPublic
        );
        for digits in [&public[14..], &secret[14..]] {
            let error = refused(digits);
            assert_eq!(
                error,
                CredentialError::KeyUnmarked {
                    mark: "comity-secret-"
                }
            );
            assert!(error.to_string().contains("keygen"), "{error}");
            let mark = "comity-public-";
            assert_eq!(
                digits.parse::<PublicKey>(),
                Err(CredentialError::KeyUnmarked { mark })
            );
        }
    }

    proptest::proptest! {
        /// A text is a key of at most one kind, and equals the text of that key except for white
        /// space and the case of digits.
        #[test]
        fn what_is_read_is_what_is_written(
            before in "[ \t\r\n]{0,2}",
            mark in "(comity-secret-|comity-public-|Comity-secret-|comity-secret|)",
            digits in "([0-9a-fA-F]{64}|[0-9a-f]{60,68}|[0-9a-fg\u{e9}]{64}|\\PC{0,80})",
            after in "[ \r\n]{0,2}",
        ) {
            let text = format!("{before}{mark}{digits}{after}");
            let secret = text.parse::<StaticKey>();
            let public = text.parse::<PublicKey>();
            proptest::prop_assert!(secret.is_err() || public.is_err());
            let is_whole = |own: &str| {
                let digits = text.trim().strip_prefix(own);
                digits.is_some_and(|digits| {
                    digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
                })
            };
            let again = |mark: &str, written: &str| {
                written.strip_prefix(mark).map(str::to_owned)
                    == text.trim().strip_prefix(mark).map(str::to_ascii_lowercase)
            };
            proptest::prop_assert_eq!(secret.is_ok(), is_whole("comity-secret-"));
            if let Ok(secret) = secret {
                proptest::prop_assert!(again("comity-secret-", &secret.secret_text()));
                let shown = format!("{secret:?}");
                proptest::prop_assert!(!shown.contains(&secret.secret_text()[14..]));
            }
            match public {
                Ok(public) => proptest::prop_assert!(again("comity-public-", &public.to_string())),
                Err(error) => proptest::prop_assert!(
                    !is_whole("comity-public-") || error == CredentialError::KeyLowOrder
                ),
            }
        }
    }

    #[test]
    fn passphrases_are_stretched_within_their_bounds() {
        assert_eq!(
            Passphrase::stretch("too short").unwrap_err().to_string(),
            "a passphrase of 9 bytes; expected at least 10"
        );
        let long = "x".repeat(257);
        assert_eq!(
            Passphrase::stretch(&long).unwrap_err(),
            CredentialError::PassphraseLong(257)
        );
        for length in [10, 256] {
            assert!(Passphrase::stretch(&"x".repeat(length)).is_ok(), "{length}");
        }
        let key = Passphrase::stretch("correct horse battery").unwrap();
        // From OpenSSL's Argon2id.
        let expected = "e9431560db222fb95a9f3aa3f1d4525d8ece835a79cc0897b64fe17e5927dbc2";
        assert_eq!(*from_hex(expected, 0).unwrap(), *key.bytes());
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
        assert_eq!(format!("{:?}", key.public()), BOB_PUBLIC);
        assert_eq!(
            format!("{:?}", PresharedKey::new([7; 32])),
            "PresharedKey(..)"
        );
    }
}
