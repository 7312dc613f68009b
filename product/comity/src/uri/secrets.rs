//! Secrets in the text of a URI.

use super::UriError;

/// The beginning of a passphrase, also with a wrong separator.
const BEGINNINGS: [&str; 2] = ["passphrase=", "passphrase:"];

/// A URI without its possible secrets: the settings, a user before an `@`, and a passphrase
/// anywhere.
pub fn without_secrets(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let secrets = BEGINNINGS.iter().filter_map(|secret| text.find(secret));
    let text = secrets.min().and_then(|at| text.get(..at)).unwrap_or(text);
    match text.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", without_user(rest)),
        None => without_user(text),
    }
}

/// An address with `***` for the user before its `@`, as in `user:secret@host`. A path may contain
/// an `@`, and a multicast group such as `@239.1.1.1` has no user.
pub fn without_user(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((user, host)) if !user.is_empty() && !user.contains('/') => format!("***@{host}"),
        _ => address.into(),
    }
}

/// Refuses a passphrase where no setting begins: any other message would show it.
///
/// # Errors
///
/// [`UriError::PassphraseMisplaced`].
pub fn check_secrets(uri: &str) -> Result<(), UriError> {
    let has_one = |text: &str| BEGINNINGS.iter().any(|secret| text.contains(secret));
    let (address, settings) = uri.split_once('?').unwrap_or((uri, ""));
    let mut settings = settings.split('&');
    let is_misplaced = |setting: &str| !setting.starts_with("passphrase=") && has_one(setting);
    match has_one(address) || settings.any(is_misplaced) {
        true => Err(UriError::PassphraseMisplaced),
        false => Ok(()),
    }
}
