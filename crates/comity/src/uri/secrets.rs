//! Secrets in the text of a URI, where they belong and where they do not.

use super::UriError;

/// How a passphrase begins, also where somebody took another character for the right one.
const BEGINNINGS: [&str; 2] = ["passphrase=", "passphrase:"];

/// A URI without what may be a secret: its settings, a user before an `@`, and a passphrase
/// wherever it stands.
pub fn without_secrets(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let secrets = BEGINNINGS.iter().filter_map(|secret| text.find(secret));
    let text = secrets.min().and_then(|at| text.get(..at)).unwrap_or(text);
    match text.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", without_user(rest)),
        None => without_user(text),
    }
}

/// An address with `***` for what stands before its `@`, as in `user:secret@host`. A path may have
/// an `@`, and nothing stands before that of a group as in `@239.1.1.1`.
pub fn without_user(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((user, host)) if !user.is_empty() && !user.contains('/') => format!("***@{host}"),
        _ => address.into(),
    }
}

/// Refuses a passphrase where no setting begins: any other message about that place would show it.
///
/// # Errors
///
/// [`UriError::PassphraseMisplaced`].
pub fn check_places(uri: &str) -> Result<(), UriError> {
    let has_one = |text: &str| BEGINNINGS.iter().any(|secret| text.contains(secret));
    let (address, settings) = uri.split_once('?').unwrap_or((uri, ""));
    let mut settings = settings.split('&');
    let is_misplaced = |setting: &str| !setting.starts_with("passphrase=") && has_one(setting);
    match has_one(address) || settings.any(is_misplaced) {
        true => Err(UriError::PassphraseMisplaced),
        false => Ok(()),
    }
}
