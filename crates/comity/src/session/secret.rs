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
        match text.len() {
            length if length < Passphrase::LEAST => Err(CredentialError::PassphraseShort(length)),
            length if length > Passphrase::MOST => Err(CredentialError::PassphraseLong(length)),
            _ => Ok(Self(Zeroizing::new(text.to_owned()))),
        }
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
