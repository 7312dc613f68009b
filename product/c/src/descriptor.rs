//! What a descriptor stands for.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::sync::{Arc, PoisonError, RwLock};

use crate::door::Door;
use crate::failure::{Failure, call};
use crate::link::Link;
use crate::readiness::Readiness;

/// An open connection or listener.
#[derive(Clone)]
pub(crate) enum Handle {
    Connection(Arc<Link>),
    Listener(Arc<Door>),
}

impl Handle {
    pub(crate) fn readiness(&self) -> &Arc<Readiness> {
        match self {
            Self::Connection(link) => &link.readiness,
            Self::Listener(door) => &door.readiness,
        }
    }
}

static HANDLES: RwLock<BTreeMap<c_int, Handle>> = RwLock::new(BTreeMap::new());

/// Registers a handle under its descriptor.
pub(crate) fn register(handle: Handle) -> c_int {
    let number = handle.readiness().number();
    let mut handles = HANDLES.write().unwrap_or_else(PoisonError::into_inner);
    // A user who closed the number with `close` has given up what it stood for.
    let replaced = handles.insert(number, handle);
    drop(handles);
    drop(replaced);
    number
}

/// # Errors
///
/// `EBADF`
pub(crate) fn find(number: c_int) -> Result<Handle, Failure> {
    let handles = HANDLES.read().unwrap_or_else(PoisonError::into_inner);
    let handle = handles.get(&number).cloned();
    handle.ok_or_else(|| wrong(number, "is closed, or not of this library"))
}

/// # Errors
///
/// `EBADF`
pub(crate) fn connection(number: c_int) -> Result<Arc<Link>, Failure> {
    match find(number)? {
        Handle::Connection(link) => Ok(link),
        Handle::Listener(_) => Err(wrong(number, "is a listener; expected a connection")),
    }
}

/// # Errors
///
/// `EBADF`
pub(crate) fn listener(number: c_int) -> Result<Arc<Door>, Failure> {
    match find(number)? {
        Handle::Listener(door) => Ok(door),
        Handle::Connection(_) => Err(wrong(number, "is a connection; expected a listener")),
    }
}

pub(crate) fn wrong(number: c_int, what: &str) -> Failure {
    Failure::new(libc::EBADF, format!("descriptor {number} {what}"))
}

/// Takes a descriptor out of use, and closes what it stands for.
pub(crate) fn close(number: c_int) -> Result<(), Failure> {
    let mut handles = HANDLES.write().unwrap_or_else(PoisonError::into_inner);
    let handle = handles.remove(&number);
    drop(handles);
    let handle = handle.ok_or_else(|| wrong(number, "is closed, or not of this library"))?;
    // Calls in other threads end.
    handle.readiness().close();
    match &handle {
        Handle::Connection(link) => link.close(),
        Handle::Listener(door) => door.close(),
    }
    if !handle.readiness().owns_number() {
        return Err(wrong(
            number,
            "was closed with close; expected comity_close",
        ));
    }
    // SAFETY: the library opened this descriptor for the user, who now gives it back.
    drop(unsafe { OwnedFd::from_raw_fd(number) });
    Ok(())
}

/// Closes a connection or a listener.
///
/// Sections that have not arrived become gaps at the peer: call `comity_shutdown` first to deliver
/// them. Connections that a listener has accepted stay open. Calls that wait in other threads fail
/// with `EBADF`. Takes up to a second, until the peer knows it.
///
/// Returns 0, or -1 with `errno`: `EBADF`.
#[unsafe(no_mangle)]
pub extern "C" fn comity_close(descriptor: c_int) -> c_int {
    call(-1, || close(descriptor).map(|()| 0))
}
