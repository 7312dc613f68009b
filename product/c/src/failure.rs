//! Errors as C sees them: a number in `errno`, and a text that says what to do.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use comity::causes::{ArgumentError, CallError};
use comity::uri::UriError;
use comity::{BindError, CloseReason, ConfigError, ConnectError, SendError};
use comity_stream::Error;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    code: c_int,
    text: String,
}

impl Failure {
    pub(crate) fn new(code: c_int, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { code, text }
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::new(libc::EFAULT, format!("{what}: is null"))
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(libc::EINVAL, text)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let code = match error.kind() {
            io::ErrorKind::TimedOut => libc::ETIMEDOUT,
            io::ErrorKind::Interrupted => libc::EINTR,
            _ => error.raw_os_error().unwrap_or(libc::EIO),
        };
        Self::new(code, error.to_string())
    }
}

impl From<UriError> for Failure {
    fn from(error: UriError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let code = match &error {
            ConfigError::Open { reason, .. } => reason.raw_os_error().unwrap_or(libc::EIO),
            _ => libc::EINVAL,
        };
        Self::new(code, error.to_string())
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        let code = match &error {
            BindError::InUse { .. } => libc::EADDRINUSE,
            BindError::NotHere { .. } => libc::EADDRNOTAVAIL,
            BindError::NotPermitted { .. } => libc::EACCES,
            BindError::System { reason, .. } => reason.raw_os_error().unwrap_or(libc::EIO),
            _ => libc::EINVAL,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let code = match &error {
            ConnectError::Call(CallError::NoAnswer { .. }) => libc::ETIMEDOUT,
            ConnectError::Unreachable { reason, .. } => {
                reason.raw_os_error().unwrap_or(libc::EHOSTUNREACH)
            }
            ConnectError::Closed(_) | ConnectError::EndpointClosed => libc::ECONNRESET,
            ConnectError::Bind(_) | ConnectError::Config(_) => libc::EINVAL,
            _ => libc::ECONNREFUSED,
        };
        Self::new(code, error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Bind(error) => error.into(),
            Error::Call { error, .. } => (*error).into(),
            Error::NoAddress { .. } | Error::LookUp { .. } => {
                Self::new(libc::EHOSTUNREACH, error.to_string())
            }
            error => Self::new(libc::EIO, error.to_string()),
        }
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        let code = match &error {
            SendError::Argument(ArgumentError::TooLong { .. }) => libc::EMSGSIZE,
            SendError::Argument(_) => libc::EINVAL,
            SendError::Full { .. } => libc::EAGAIN,
            SendError::Finishing => libc::EPIPE,
            SendError::Closed(reason) => code_of(reason),
            _ => libc::EIO,
        };
        Self::new(code, error.to_string())
    }
}

impl From<CloseReason> for Failure {
    fn from(reason: CloseReason) -> Self {
        Self::new(code_of(&reason), reason.to_string())
    }
}

fn code_of(reason: &CloseReason) -> c_int {
    match reason {
        CloseReason::Idle { .. } => libc::ETIMEDOUT,
        CloseReason::Violation(_) => libc::EPROTO,
        CloseReason::Local { .. } => libc::EPIPE,
        _ => libc::ECONNRESET,
    }
}

/// Turns a panic into a failure.
pub(crate) fn caught<T>(act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let panicked = || Failure::new(libc::EIO, "libcomity panicked; please report this");
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| Err(panicked()))
}

/// Runs a call of C: an error or a panic sets `errno` and the text, and gives `failed`.
pub(crate) fn call<T>(failed: T, act: impl FnOnce() -> Result<T, Failure>) -> T {
    let failure = match caught(act) {
        Ok(done) => return done,
        Err(failure) => failure,
    };
    let text: Vec<u8> = failure.text.into_bytes();
    let text = text.into_iter().filter(|byte| *byte != 0).collect();
    // It has no zero byte.
    LAST.with(|last| *last.borrow_mut() = CString::new::<Vec<u8>>(text).unwrap_or_default());
    // SAFETY: the pointer is valid for this thread.
    unsafe { *libc::__errno_location() = failure.code };
    failed
}

/// Says why the latest failed call of this thread failed, and what to do about it.
///
/// Returns a text that is valid until another call fails in this thread; it is empty before the
/// first failure.
#[unsafe(no_mangle)]
pub extern "C" fn comity_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn errno() -> Option<c_int> {
        io::Error::last_os_error().raw_os_error()
    }

    fn text() -> String {
        // SAFETY: the text is terminated and lives until the next failure of this thread.
        let text = unsafe { CStr::from_ptr(comity_error()) };
        text.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_failure_sets_the_number_and_the_text() {
        assert_eq!(text(), "");
        let failed = call(-1, || Err(Failure::new(libc::EPIPE, "a\0b")));
        assert_eq!((failed, errno()), (-1, Some(libc::EPIPE)));
        assert_eq!(text(), "ab");
        assert_eq!(call(-1, || Ok(3)), 3);
        assert_eq!(text(), "ab", "it remains");
        let panicked = call(-1, || panic!("a fault"));
        assert_eq!((panicked, errno()), (-1, Some(libc::EIO)));
        assert!(text().contains("please report"), "{}", text());
    }
}
