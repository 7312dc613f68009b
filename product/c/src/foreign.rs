//! What C passes by pointer.

use std::ffi::{CStr, c_char, c_int};

use crate::failure::Failure;

/// A text.
///
/// # Safety
///
/// A pointer that is not null points to a terminated text that outlives the result.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: the pointer is not null, and the caller vouches for the rest.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|error| Failure::invalid(format!("{what}: {error}; expected UTF-8")))
}

/// An array; the empty one for no elements, whatever the pointer.
///
/// # Safety
///
/// A pointer that is not null points to so many elements that outlive the result.
pub(crate) unsafe fn array<'a, T>(
    pointer: *const T,
    count: usize,
    what: &str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    check_size::<T>(count, what)?;
    // SAFETY: the pointer is not null, the size is possible, and the caller vouches for the rest.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// As [`array`], for writing.
///
/// # Safety
///
/// As that of [`array`], and nobody else uses the elements.
pub(crate) unsafe fn array_mut<'a, T>(
    pointer: *mut T,
    count: usize,
    what: &str,
) -> Result<&'a mut [T], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    check_size::<T>(count, what)?;
    // SAFETY: the pointer is not null, the size is possible, and the caller vouches for the rest.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

/// No object is longer than the half of all addresses.
fn check_size<T>(count: usize, what: &str) -> Result<(), Failure> {
    match count.checked_mul(size_of::<T>()) {
        Some(size) if isize::try_from(size).is_ok() => Ok(()),
        _ => {
            let text = format!("{what}: is {count} elements long; expected a length that fits");
            Err(Failure::invalid(text))
        }
    }
}

/// Copies a text with a zero behind it, as much as there is room for, as `snprintf` does. Returns
/// its length without the zero.
///
/// # Safety
///
/// A buffer that is not null has so many bytes.
pub(crate) unsafe fn put_text(
    text: &str,
    buffer: *mut c_char,
    size: usize,
) -> Result<libc::ssize_t, Failure> {
    // SAFETY: the caller vouches for the buffer.
    let buffer = unsafe { array_mut(buffer.cast::<u8>(), size, "buffer") }?;
    if let Some(room) = buffer.len().checked_sub(1) {
        let length = text.len().min(room);
        buffer[..length].copy_from_slice(&text.as_bytes()[..length]);
        buffer[length] = 0;
    }
    Ok(text.len() as libc::ssize_t)
}

/// Names and values in turn.
///
/// # Safety
///
/// `options` is null or an array of terminated texts that ends with null.
pub(crate) unsafe fn options<'a>(
    mut options: *const *const c_char,
) -> Result<Vec<(&'a str, &'a str)>, Failure> {
    let mut pairs = Vec::new();
    // SAFETY: the array has a null at its end, behind which this does not read.
    while !options.is_null() && !unsafe { *options }.is_null() {
        // SAFETY: as above; behind a name is a value, or the end.
        let (name, value) = unsafe { (text(*options, "options")?, *options.add(1)) };
        if value.is_null() {
            let text = format!("options: {name:?} has no value; expected names and values in turn");
            return Err(Failure::invalid(text));
        }
        // SAFETY: as above.
        pairs.push((name, unsafe { text(value, "options") }?));
        // SAFETY: as above.
        options = unsafe { options.add(2) };
    }
    Ok(pairs)
}

/// Whether the flags of a new descriptor ask for `O_NONBLOCK`.
pub(crate) fn is_nonblocking(flags: c_int) -> Result<bool, Failure> {
    match flags {
        0 => Ok(false),
        libc::SOCK_NONBLOCK => Ok(true),
        flags => Err(Failure::invalid(format!(
            "flags: are {flags:#x}; expected 0 or SOCK_NONBLOCK"
        ))),
    }
}
