//! The words of the command line.

use std::ffi::OsString;
use std::sync::OnceLock;

/// The words of the command.
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Keeps the words of this process for [`command()`], and returns them.
pub(crate) fn keep(words: impl IntoIterator<Item = OsString>) -> &'static [OsString] {
    WORDS.get_or_init(|| words.into_iter().collect())
}

/// The command as a shell would take it.
pub(crate) fn command() -> String {
    let words: Vec<String> = WORDS
        .get()
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(index, word)| {
            let word = word.to_string_lossy();
            if index == 0 {
                // Where the program lies on this machine is nobody's business.
                return "comity".into();
            }
            let is_plain = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
            if !word.is_empty() && word.chars().all(is_plain) {
                word.into_owned()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        })
        .collect();
    words.join(" ")
}
