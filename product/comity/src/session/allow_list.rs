//! Lists of the keys that may call.

use core::str::FromStr;
use std::collections::BTreeSet;

use thiserror::Error;

use super::{CredentialError, PublicKey};

/// The public keys of accepted callers, for [`Allow::Only`](super::Allow::Only). Text: one key per
/// line, with comments after `#`.
///
/// ```
/// use comity::credentials::{AllowList, StaticKey};
///
/// let key = StaticKey::new([7; 32]).public();
/// let list: AllowList = format!("# cameras\n{key} # roof\n").parse()?;
/// assert!(list.0.contains(&key));
/// # Ok::<(), comity::credentials::AllowListError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowList(pub BTreeSet<PublicKey>);

/// Why a text is not a list of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AllowListError {
    /// A line is not a key.
    #[error("line {line}: {error}")]
    Line {
        /// The number of the line, counted from 1.
        line: usize,
        /// What is wrong with it.
        error: CredentialError,
    },
    /// The list is empty: nobody could call.
    #[error("lists no key; expected public keys, one a line, as comity keygen prints them")]
    Empty,
}

impl FromStr for AllowList {
    type Err = AllowListError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut keys = BTreeSet::new();
        for (line, text) in (1..).zip(text.lines()) {
            let key = text.split('#').next().unwrap_or_default().trim();
            if key.is_empty() {
                continue;
            }
            let key = key.parse();
            keys.insert(key.map_err(|error| AllowListError::Line { line, error })?);
        }
        match keys.is_empty() {
            true => Err(AllowListError::Empty),
            false => Ok(Self(keys)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::StaticKey;
    use super::*;

    #[test]
    fn lists_have_comments_and_name_the_line_that_is_wrong() {
        let key = StaticKey::new([7; 32]).public();
        let list = |text: &str| text.parse::<AllowList>().map(|list| list.0);
        let text = format!("# who may come\n\n{key} # me\r\n{key}");
        assert_eq!(list(&text), Ok(BTreeSet::from([key])));
        assert_eq!(
            list(&format!("{key}\nnobody\n")),
            Err(AllowListError::Line {
                line: 2,
                error: CredentialError::KeyLength(6)
            })
        );
        assert_eq!(list("# nobody\n"), Err(AllowListError::Empty));
    }
}
