//! Transport streams, and other media, as bytes.

use std::ffi::{c_int, c_void};

use crate::descriptor;
use crate::failure::call;
use crate::foreign;
use crate::readiness::Direction;

/// The bytes of media that are made into sections at once: what waits for room is bounded by them,
/// and by the longest access unit.
const PIECE: usize = 64 << 10;

/// Sends a live transport stream, or other media, as it comes.
///
/// `bytes`, `length`: the next bytes, in pieces of any size. The library finds pictures, sound and
/// tables, gives each the deadline that the setting `latency` (120 ms) allows after its arrival,
/// and drops the least important ones if the network is too narrow, as `comity send` does. The last
/// picture of a source that pauses is sent with the next bytes, or by `comity_shutdown`.
///
/// Returns the number of bytes taken, which is smaller than `length` only without waiting, or -1
/// with `errno`: `EAGAIN`, `EINTR`, `EILSEQ` (the media cannot be read further), `ECONNRESET`,
/// `ETIMEDOUT`, `EPIPE` and others (the connection has ended).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn comity_write(
    connection: c_int,
    bytes: *const c_void,
    length: usize,
) -> libc::ssize_t {
    call(-1, || {
        let link = descriptor::connection(connection)?;
        // SAFETY: the caller vouches for the bytes.
        let bytes = unsafe { foreign::array(bytes.cast::<u8>(), length, "bytes") }?;
        let mut written = 0;
        for piece in bytes.chunks(PIECE) {
            match link.until(Direction::Out, false, |open| open.write(piece)) {
                Ok(()) => written += piece.len(),
                Err(_) if written > 0 => break,
                Err(failure) => return Err(failure),
            }
        }
        Ok(written as libc::ssize_t)
    })
}

/// Receives a transport stream, or other media, as bytes.
///
/// `bytes`, `length`: where to put the next bytes. A transport stream is restored byte for byte,
/// except what is missing in it, as `comity recv` does. Do not mix it with `comity_recvmsg`.
///
/// Returns the number of bytes, 0 at the end, or -1 with `errno`: `EAGAIN`, `EINTR`, `ECONNRESET`,
/// `ETIMEDOUT` and others (the connection was lost; everything that arrived was read).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn comity_read(
    connection: c_int,
    bytes: *mut c_void,
    length: usize,
) -> libc::ssize_t {
    call(-1, || {
        let link = descriptor::connection(connection)?;
        // SAFETY: the caller vouches for the bytes.
        let room = unsafe { foreign::array_mut(bytes.cast::<u8>(), length, "bytes") }?;
        if room.is_empty() {
            return Ok(0);
        }
        let read = link.until(Direction::In, false, |open| open.read(room))?;
        Ok(read as libc::ssize_t)
    })
}
