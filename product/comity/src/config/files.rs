//! Files of keys.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use zeroize::Zeroizing;

use crate::error::ConfigError;
use crate::session::{AllowList, AllowListError, PublicKey, Secret, StaticKey};

/// Reads a static key from its file.
pub(crate) fn static_key(file: &Path) -> Result<StaticKey, ConfigError> {
    let text = read(file)?;
    text.parse().map_err(|error| {
        wrong(
            file,
            format!(": holds no key: {error}; comity keygen makes one"),
        )
    })
}

/// Reads a passphrase from the first line of a file.
pub(crate) fn passphrase(file: &Path) -> Result<Secret, ConfigError> {
    let text = read(file)?;
    let line = text.lines().next().unwrap_or_default();
    Secret::new(line).map_err(|error| wrong(file, format!(":1: {error}")))
}

/// Reads a list of public keys.
pub(crate) fn allowed(file: &Path) -> Result<BTreeSet<PublicKey>, ConfigError> {
    let list: Result<AllowList, _> = read(file)?.parse();
    list.map(|list| list.0).map_err(|error| match error {
        AllowListError::Line { line, error } => wrong(file, format!(":{line}: {error}")),
        AllowListError::Empty => wrong(file, format!(": {error}")),
    })
}

fn wrong(file: &Path, problem: String) -> ConfigError {
    ConfigError::KeyFile {
        path: file.into(),
        problem,
    }
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a file of secrets up to its maximum length.
fn read(file: &Path) -> Result<Zeroizing<String>, ConfigError> {
    /// Enough for ten thousand keys with comments.
    const MAX: u64 = 1 << 20;
    let expected = "expected a passphrase or keys";
    // Reserves all memory at once: a reallocation would leave a copy of the text behind.
    let mut text = Zeroizing::new(String::with_capacity(MAX as usize + 64));
    let read = File::open(file).and_then(|file| file.take(MAX + 1).read_to_string(&mut text));
    match read {
        Ok(length) if length as u64 <= MAX => {
            // Editors of some systems begin a text with a byte order mark.
            if text.starts_with(BYTE_ORDER_MARK) {
                text.drain(..BYTE_ORDER_MARK.len_utf8());
            }
            Ok(text)
        }
        Ok(_) => Err(wrong(file, format!(": is longer than 1 MiB; {expected}"))),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(wrong(file, format!(": is no text; {expected}")))
        }
        Err(reason) => Err(ConfigError::Open {
            path: file.into(),
            reason,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_leading_byte_order_mark_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let key = StaticKey::new([7; 32]).public();
        let marked = |text: &str| fs::write(&path, format!("\u{feff}{text}")).unwrap();
        marked("correct horse battery\r\n");
        let secret = passphrase(&path).unwrap();
        assert_eq!(secret.expose(), "correct horse battery");
        marked(&format!("{key}\r\n"));
        assert_eq!(allowed(&path).unwrap(), BTreeSet::from([key]));
        // A byte order mark within the text is part of it.
        fs::write(&path, "correct \u{feff}horse battery").unwrap();
        assert_ne!(passphrase(&path).unwrap(), secret);
    }

    #[test]
    fn lists_of_keys_have_comments_and_name_the_line_that_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("allow");
        let secret = StaticKey::new([7; 32]);
        let key = secret.public();
        fs::write(&path, format!("# who may come\n\n{key} # me\n")).unwrap();
        assert_eq!(
            allowed(&path).unwrap().into_iter().collect::<Vec<_>>(),
            [key]
        );
        fs::write(&path, format!("{key}\nnobody\n")).unwrap();
        let error = allowed(&path).unwrap_err().to_string();
        assert!(error.contains("allow:2: "), "{error}");
        fs::write(&path, "# nobody\n").unwrap();
        let error = allowed(&path).unwrap_err().to_string();
        assert!(error.contains("allow: lists no key"), "{error}");
        for (bytes, wrong) in [
            (vec![b' '; (1 << 20) + 1], "1 MiB"),
            (vec![0xff], "no text"),
        ] {
            fs::write(&path, bytes).unwrap();
            let error = static_key(&path).unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
        let endless = static_key(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(endless.contains("1 MiB"), "{endless}");
        let missing = static_key(&folder.path().join("none")).unwrap_err();
        assert!(matches!(missing, ConfigError::Open { .. }), "{missing}");
    }
}
