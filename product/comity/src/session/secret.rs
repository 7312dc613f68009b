//! A passphrase that is not printed.

use core::fmt;

use zeroize::Zeroizing;

use super::{CredentialError, Passphrase};

/// A passphrase of valid length. Neither `Debug` nor `Display` shows it, and its memory is cleared.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The passphrase `text`.
    ///
    /// # Errors
    ///
    /// [`CredentialError::PassphraseShort`] and [`CredentialError::PassphraseLong`].
    pub fn new(text: &str) -> Result<Self, CredentialError> {
        Passphrase::prepare(text).map(Self)
    }

    /// The passphrase itself, for [`Passphrase::stretch`].
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_a_valid_length_and_is_shown_only_by_expose() {
        for length in [10, 256] {
            let text = "p".repeat(length);
            let secret = Secret::new(&text).unwrap();
            assert_eq!(secret.expose(), text);
            assert_eq!(format!("{secret} {secret:?}"), "*** Secret(..)");
        }
        // Composed and decomposed characters, and the space of another keyboard.
        let composed = Secret::new("Gr\u{fc}\u{df}e aus K\u{f6}ln").unwrap();
        for text in [
            "Gru\u{308}\u{df}e aus Ko\u{308}ln",
            "Gru\u{308}\u{df}e\u{a0}aus K\u{f6}ln",
        ] {
            assert_eq!(Secret::new(text).as_ref(), Ok(&composed));
        }
        assert_ne!(Secret::new("Grusse aus Koln"), Ok(composed));
        let short = Secret::new(&"p".repeat(9));
        assert_eq!(short, Err(CredentialError::PassphraseShort(9)));
        let long = Secret::new(&"p".repeat(257));
        assert_eq!(long, Err(CredentialError::PassphraseLong(257)));
    }
}
