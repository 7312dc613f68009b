//! Any text as a URI: it is accepted or refused with an error; an accepted one prints a form that
//! reads back.

use comity::uri::{Credentials, PassphraseSource, Uri};

/// One input.
pub fn check(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    match text.parse::<Uri>() {
        Ok(mut uri) => {
            let literal = |found: &Credentials| {
                matches!(found, Credentials::Passphrase(PassphraseSource::Literal(_)))
            };
            if literal(&uri.credentials) {
                assert!(uri.to_string().contains("passphrase=***"));
                uri.credentials = Credentials::Missing;
            }
            assert_eq!(uri.to_string().parse(), Ok(uri));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
