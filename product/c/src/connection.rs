//! Calls, and the end of connections.

use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use comity::uri::{Role, Uri};

use crate::descriptor::{self, Handle, register};
use crate::failure::{Failure, call, caught};
use crate::foreign;
use crate::link::{Link, dial};
use crate::readiness::Direction;

fn connect(uri: Uri, is_nonblocking: bool) -> Result<c_int, Failure> {
    if !matches!(uri.role, Role::Caller { .. }) {
        let text = format!(
            "uri: {} waits for callers; expected a host to call, as in comity://host:9000; \
             comity_listen waits",
            uri.role
        );
        return Err(Failure::invalid(text));
    }
    let link = Link::new(uri.settings.clone(), is_nonblocking)?;
    let number = register(Handle::Connection(link.clone()));
    let calling = Arc::downgrade(&link);
    let thread = thread::Builder::new().name("comity-call".into());
    let spawned = thread.spawn(move || {
        let dialled = caught(|| dial(&uri));
        if let Some(link) = calling.upgrade() {
            link.on_opened(dialled);
        }
    });
    let opened = spawned
        .map_err(Failure::from)
        .and_then(|_| match is_nonblocking {
            true => Ok(()),
            false => link.until(Direction::Out, false, |_| Ok(Some(()))),
        });
    match opened {
        Ok(()) => Ok(number),
        Err(failure) => {
            descriptor::close(number)?;
            Err(failure)
        }
    }
}

/// Calls the listener of a `comity://` URI.
///
/// `uri`: as for the command `comity`, for example `comity://host:9000?latency=400ms`. `options`:
/// further settings, as names and values in turn and a null at the end; null for none. The names
/// are those of the URI's keys, see docs/reference/settings.md. A setting without such a key has
/// its own name, such as `max_memory`. `flags`: 0, or `SOCK_NONBLOCK` to return at once: the
/// descriptor is writable when the call is answered, and fails with the reason if it is not.
///
/// Returns a descriptor, or -1 with `errno`: `EINVAL` (URI or options), `ECONNREFUSED` (refused, as
/// with a wrong passphrase), `ETIMEDOUT` (no answer within `conntimeo`), `EHOSTUNREACH`, `EINTR`,
/// `EMFILE`, and those of files with keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn comity_connect(
    uri: *const c_char,
    options: *const *const c_char,
    flags: c_int,
) -> c_int {
    call(-1, || {
        // SAFETY: the caller vouches for the pointers.
        let (uri, options) = unsafe { (foreign::text(uri, "uri")?, foreign::options(options)?) };
        let uri = Uri::with_settings(uri, options)?;
        connect(uri, foreign::is_nonblocking(flags)?)
    })
}

/// Ends a connection after everything that was sent.
///
/// Sends what `comity_write` still holds, and waits until every section has arrived or is too late,
/// for at most `timeout_ms` milliseconds; a negative number means the setting `linger` (1 s).
/// Nothing more can be sent. What arrived can still be received. Call `comity_close` afterwards.
///
/// Returns 0, or -1 with `errno`: `ETIMEDOUT` (call it again, or close), `ENOTCONN` (the call is
/// not answered yet), `ECONNRESET` and others (the connection was lost first).
#[unsafe(no_mangle)]
pub extern "C" fn comity_shutdown(connection: c_int, timeout_ms: c_int) -> c_int {
    call(-1, || {
        let link = descriptor::connection(connection)?;
        let within = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        link.finish(within).map(|()| 0)
    })
}
