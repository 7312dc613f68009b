//! Listeners.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use comity::uri::{Role, Uri, UriError};
use comity_stream::listen;

use crate::descriptor::{self, Handle, register};
use crate::door::Door;
use crate::failure::{Failure, call};
use crate::foreign;
use crate::link::{Link, config};
use crate::readiness::{Direction, Readiness};

/// Opens a socket that waits for callers.
///
/// `uri`: as for the command `comity`, for example `comity://:9000?passphrase=@secret`. A host is
/// the address to listen at. `options` and `flags`: as for `comity_connect`. The descriptor is
/// readable if `comity_accept` has a connection.
///
/// Returns a descriptor, or -1 with `errno`: `EINVAL` (URI or options), `EADDRINUSE`,
/// `EADDRNOTAVAIL`, `EACCES`, `EMFILE`, and those of files with keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn comity_listen(
    uri: *const c_char,
    options: *const *const c_char,
    flags: c_int,
) -> c_int {
    call(-1, || {
        // SAFETY: the caller vouches for the pointers.
        let (uri, options) = unsafe { (foreign::text(uri, "uri")?, foreign::options(options)?) };
        let mode = [("mode", "listener")];
        let uri = match Uri::with_settings(uri, options.iter().copied().chain(mode)) {
            Err(UriError::Repeated(key)) if key == "mode" => Uri::with_settings(uri, options),
            uri => uri,
        }?;
        let readiness = Readiness::new(foreign::is_nonblocking(flags)?)?;
        let Role::Listener { host, port } = &uri.role else {
            let text = "uri: has mode=caller; expected none, or listener; comity_connect calls";
            return Err(Failure::invalid(text));
        };
        let endpoint = listen(host.as_ref(), *port, config(&uri)?)?;
        let door = Arc::new(Door::new(endpoint, uri.settings, readiness));
        Ok(register(Handle::Listener(door)))
    })
}

/// Accepts a caller that has proved itself.
///
/// `flags`: 0, or `SOCK_NONBLOCK` for the new descriptor.
///
/// Returns the descriptor of the connection, or -1 with `errno`: `EAGAIN`, `EINTR`, `EINVAL`
/// (flags), `EMFILE`.
#[unsafe(no_mangle)]
pub extern "C" fn comity_accept(listener: c_int, flags: c_int) -> c_int {
    call(-1, || {
        let door = descriptor::listener(listener)?;
        let is_nonblocking = foreign::is_nonblocking(flags)?;
        let accept = || door.accept();
        let made = door.readiness.until(Direction::In, false, accept)?;
        let link = Link::accepted(made, door.settings.clone(), is_nonblocking)?;
        Ok(register(Handle::Connection(link)))
    })
}
