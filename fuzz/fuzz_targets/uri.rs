//! Whatever a person writes for a URI, it is read or answered; what is read prints so that it reads back.
#![no_main]

use comity::uri::{Credentials, Uri};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match text.parse::<Uri>() {
        Ok(Uri::Comity(mut uri)) => {
            if matches!(uri.credentials, Credentials::Passphrase(_)) {
                assert!(uri.to_string().contains("passphrase=***"));
                uri.credentials = Credentials::Missing;
            }
            let uri = Uri::Comity(uri);
            assert_eq!(uri.to_string().parse(), Ok(uri));
        }
        Ok(uri) => assert_eq!(uri.to_string().parse(), Ok(uri)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
