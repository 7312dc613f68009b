//! Key files: a secret key, or a list of authorised public keys.

use std::collections::BTreeSet;

use comity::session::{AllowList, AllowListError, PublicKey, StaticKey};

/// The first byte selects one of the two for the rest. An accepted file reads back as it is
/// written. In an accepted list, every line that is not empty before its comment is a key; a
/// refusal names a line that is none.
pub fn check(bytes: &[u8]) {
    let Some((&control, bytes)) = bytes.split_first() else {
        return;
    };
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    match control & 1 {
        0 => check_key(text),
        _ => check_list(text),
    }
}

fn check_key(text: &str) {
    match text.parse::<StaticKey>() {
        Ok(key) => {
            let written = key.secret_text();
            assert_eq!(
                text.trim().to_ascii_lowercase(),
                written.to_ascii_lowercase()
            );
            assert_eq!(
                written.parse::<StaticKey>().map(|key| *key.secret()),
                Ok(*key.secret())
            );
            let public = key.public().to_string();
            assert_eq!(public.parse(), Ok(key.public()));
            assert!(
                public.parse::<StaticKey>().is_err(),
                "a public key is accepted as a secret"
            );
            let shown = format!("{key:?}");
            let digits = written.rsplit('-').next().unwrap_or_default();
            assert!(!shown.contains(digits), "a secret is shown");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check_list(text: &str) {
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .collect();
    let keys = || lines.iter().filter(|line| !line.is_empty());
    match text.parse::<AllowList>() {
        Ok(AllowList(list)) => {
            let expected: BTreeSet<PublicKey> = keys()
                .map(|line| line.parse().expect("each of them is a key"))
                .collect();
            assert_eq!(list, expected);
            assert!(!list.is_empty());
        }
        Err(AllowListError::Line { line, error }) => {
            let wrong = lines.get(line - 1).expect("a line that is there");
            assert_eq!(wrong.parse::<PublicKey>(), Err(error));
        }
        Err(error) => {
            assert_eq!(error, AllowListError::Empty);
            assert_eq!(keys().count(), 0);
        }
    }
}
