//! Sections and gaps, as messages.

use std::cell::RefCell;
use std::ffi::c_int;
use std::time::{Duration, Instant};

use bytes::Bytes;
use comity::{Gap, GapReason, Importance, Item, Reason, Received, Section, SectionId, StreamId};
use libc::{iovec, msghdr, ssize_t};

use crate::clock::{instant, nanos, now};
use crate::control::{About, HEADER, TL_DATA, TL_GAP, TL_NEVER, TL_NOTHING, put, space};
use crate::descriptor;
use crate::failure::{Failure, call};
use crate::foreign::{array, array_mut};
use crate::open::Taken;
use crate::readiness::Direction;

/// The flag of `comity_sendmsg` and `comity_recvmsg`: data has deadlines.
pub const MSG_TL: c_int = 0x0100_0000;

/// In `comity_item`: the section is whole.
pub const TL_WHOLE: u32 = 0;
/// In `comity_item`: the connection ended first.
pub const TL_CLOSED: u32 = 1;
/// In `comity_item`: the sender abandoned it without a reason.
pub const TL_OBSOLETE: u32 = 2;
/// In `comity_item`: its deadline, or that of the next section, has passed here.
pub const TL_OVERDUE: u32 = 3;
/// In `comity_item`: its deadline has passed at the sender.
pub const TL_EXPIRED: u32 = 4;
/// In `comity_item`: the sender dropped it, because it could not have arrived in time.
pub const TL_INFEASIBLE: u32 = 5;
/// In `comity_item`: a section that it needs is missing.
pub const TL_DEPENDENCY: u32 = 6;
/// In `comity_item`: the sender shed it as the least important, because the network was too
/// narrow.
pub const TL_SHED: u32 = 7;
/// In `comity_item`: the sender withdrew it.
pub const TL_CANCELLED: u32 = 8;

/// A received section, or a gap. A later release may add fields at its end: `cmsg_len` says how
/// long it is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct comity_item {
    /// The number of the section in its stream: 0, 1, 2 and so on. The first number of a gap.
    pub number: u64,
    /// The number of sections: 1, or the size of a gap.
    pub count: u64,
    /// The length of the section in bytes; 0 in a gap if nothing is known of it.
    pub length: u64,
    /// How many of these bytes are missing; 0 for a whole section.
    pub missing: u64,
    /// The number of the earlier section that it needs, or `TL_NOTHING`.
    pub needs: u64,
    /// When it was captured, in nanoseconds of this host's `CLOCK_MONOTONIC`; 0 if unknown.
    pub source_time: i64,
    /// Its deadline on the same clock; 0 if unknown, `TL_NEVER` for none.
    pub deadline: i64,
    /// When its last byte arrived, on the same clock; 0 for a gap.
    pub completed: i64,
    /// Why it is a gap, from `TL_CLOSED` to `TL_CANCELLED`; `TL_WHOLE` for a section.
    pub reason: u32,
    /// Its stream.
    pub stream: u32,
    /// Its importance.
    pub importance: u32,
    /// 1 if a whole section arrived after its deadline.
    pub is_late: u32,
}

const ITEM: usize = size_of::<comity_item>();

thread_local! {
    /// The payloads that the latest call of this thread lent.
    static LENT: RefCell<Vec<Bytes>> = const { RefCell::new(Vec::new()) };
}

fn check_flags(flags: c_int) -> Result<bool, Failure> {
    match flags & !(MSG_TL | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
        0 if flags & MSG_TL != 0 => Ok(flags & libc::MSG_DONTWAIT != 0),
        _ => Err(Failure::invalid(format!(
            "flags: are {flags:#x}; expected MSG_TL, with or without MSG_DONTWAIT"
        ))),
    }
}

/// The section with this index in a message.
fn section(about: &About<'_>, at: usize, part: &iovec, now: Instant) -> Result<Section, Failure> {
    let clock = |nanos: i64| {
        let text = || format!("section {at}: no clock shows {nanos}; expected CLOCK_MONOTONIC");
        instant(nanos).ok_or_else(|| Failure::invalid(text()))
    };
    let source_time = about.source_time(at).map_or(Ok(now), clock)?;
    // SAFETY: the user vouches for the parts of the message.
    let bytes = unsafe { array(part.iov_base.cast::<u8>(), part.iov_len, "iov_base") }?;
    let mut section = Section::new(Bytes::copy_from_slice(bytes))
        .source_time(source_time)
        .stream(StreamId(about.stream(at).unwrap_or_default()))
        .importance(Importance(about.importance(at).unwrap_or_default()));
    section.needs = about.needs(at).map(SectionId);
    section.deadline = match about.deadline(at) {
        None => None,
        Some(TL_NEVER) => Some(Duration::MAX),
        Some(deadline) => Some(clock(deadline)?.saturating_duration_since(source_time)),
    };
    Ok(section)
}

/// Sends sections with deadlines.
///
/// `message`: `msg_iov` has one element for each section, whose bytes are copied. `msg_control` has
/// ancillary data of the level `SOL_COMITY` or is null: `TL_DEADLINE` and others, each an array
/// with one element for each section. Other fields are ignored. `flags`: `MSG_TL`, and
/// `MSG_DONTWAIT` to send only what has room.
///
/// Returns the number of sections that were accepted, the first ones of the message, or -1 if none
/// was, with `errno`: `EAGAIN`, `EINTR`, `EINVAL` (flags, ancillary data, an empty section),
/// `EMSGSIZE` (a section is longer than the send buffer), `EPIPE` (after `comity_shutdown`),
/// `ECONNRESET`, `ETIMEDOUT` and others (the connection was lost).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn comity_sendmsg(
    connection: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    call(-1, || {
        let link = descriptor::connection(connection)?;
        let dont_wait = check_flags(flags)?;
        // SAFETY: the caller vouches for the message.
        let message = unsafe { message.as_ref() }.ok_or_else(|| Failure::null("message"))?;
        // SAFETY: as above.
        let parts = unsafe { array(message.msg_iov, message.msg_iovlen, "msg_iov") }?;
        let (control, length) = (message.msg_control.cast::<u8>(), message.msg_controllen);
        // SAFETY: as above.
        let control = unsafe { array(control, length, "msg_control") }?;
        let about = About::read(control, parts.len())?;
        let now = now();
        let mut sent = 0;
        for (at, part) in parts.iter().enumerate() {
            let submitted = section(&about, at, part, now).and_then(|section| {
                link.until(Direction::Out, dont_wait, |open| open.try_send(&section))
            });
            match submitted {
                Ok(()) => sent += 1,
                Err(_) if sent > 0 => break,
                Err(failure) => return Err(failure),
            }
        }
        Ok(sent)
    })
}

fn reason(reason: GapReason) -> u32 {
    match reason {
        GapReason::Closed => TL_CLOSED,
        GapReason::Obsolete => TL_OBSOLETE,
        GapReason::Overdue => TL_OVERDUE,
        GapReason::Dropped(Reason::Expired) => TL_EXPIRED,
        GapReason::Dropped(Reason::Infeasible) => TL_INFEASIBLE,
        GapReason::Dropped(Reason::Dependency) => TL_DEPENDENCY,
        GapReason::Dropped(Reason::Shed) => TL_SHED,
        GapReason::Dropped(Reason::Cancelled) => TL_CANCELLED,
    }
}

impl From<&Item> for comity_item {
    fn from(item: &Item) -> Self {
        let about = match item {
            Item::Section(section) => Some(&section.about),
            Item::Gap(gap) => gap.partial.as_ref().map(|partial| &partial.about),
        };
        let known = Self {
            number: item.id().0,
            count: 1,
            length: about.map_or(0, |about| about.length.into()),
            missing: 0,
            needs: about
                .and_then(|about| about.needs)
                .map_or(TL_NOTHING, |needs| needs.0),
            source_time: about.map_or(0, |about| nanos(about.source_time)),
            deadline: about.map_or(0, |about| about.deadline.map_or(TL_NEVER, nanos)),
            completed: 0,
            reason: TL_WHOLE,
            stream: item.stream().0.into(),
            importance: about.map_or(0, |about| about.importance.0.into()),
            is_late: 0,
        };
        match item {
            Item::Section(section) => Self {
                completed: nanos(section.completed),
                is_late: section.is_late.into(),
                ..known
            },
            Item::Gap(gap) => Self {
                count: gap.count,
                missing: missing(gap),
                reason: reason(gap.reason),
                ..known
            },
        }
    }
}

fn missing(gap: &Gap) -> u64 {
    let ranges = gap.partial.iter().flat_map(|partial| &partial.missing);
    ranges.map(|range| u64::from(range.end - range.start)).sum()
}

impl comity_item {
    fn bytes(&self) -> [u8; ITEM] {
        // SAFETY: it has only integers, and no padding between or behind them.
        unsafe { std::mem::transmute(*self) }
    }
}

/// Puts a section where the user wants it. Returns whether it was cut.
fn put_section(part: &mut iovec, received: Received) -> Result<bool, Failure> {
    let payload = received.payload;
    if part.iov_base.is_null() {
        part.iov_base = payload.as_ptr().cast_mut().cast();
        part.iov_len = payload.len();
        LENT.with_borrow_mut(|lent| lent.push(payload));
        return Ok(false);
    }
    // SAFETY: the user vouches for the parts of the message.
    let room = unsafe { array_mut(part.iov_base.cast::<u8>(), part.iov_len, "iov_base") }?;
    let length = payload.len().min(room.len());
    room[..length].copy_from_slice(&payload[..length]);
    Ok(length < payload.len())
}

/// Receives sections and gaps.
///
/// `message`: `msg_iov` has an element for each item that may be received, and `msg_control` has
/// `CMSG_SPACE(sizeof(struct comity_item))` bytes for each. Control message `i` describes element
/// `i`: its type is `TL_DATA` for a section or `TL_GAP` for missing ones, and it has a `struct
/// comity_item`. A section is copied to `iov_base`; a longer one is cut, with `MSG_TRUNC` in
/// `msg_flags`. If `iov_base` is null, the library sets `iov_base` and `iov_len` to bytes of its
/// own, without a copy. They stay valid until the next `comity_recvmsg` of this thread. `flags`:
/// `MSG_TL`, and `MSG_DONTWAIT`.
///
/// Waits for one item, and takes as many as have arrived. Each section of a stream is in exactly
/// one item, in the order of the stream.
///
/// Returns the number of items, 0 at the end of the connection, or -1 with `errno`: `EAGAIN`,
/// `EINTR`, `EINVAL` (flags, or no room for an item), `ECONNRESET`, `ETIMEDOUT` and others (the
/// connection was lost; everything that arrived was received).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn comity_recvmsg(
    connection: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    call(-1, || {
        LENT.with_borrow_mut(Vec::clear);
        let link = descriptor::connection(connection)?;
        let dont_wait = check_flags(flags)?;
        // SAFETY: the caller vouches for the message.
        let message = unsafe { message.as_mut() }.ok_or_else(|| Failure::null("message"))?;
        // SAFETY: as above.
        let parts = unsafe { array_mut(message.msg_iov, message.msg_iovlen, "msg_iov") }?;
        let (control, length) = (message.msg_control.cast::<u8>(), message.msg_controllen);
        // SAFETY: as above.
        let control = unsafe { array_mut(control, length, "msg_control") }?;
        let slots = control.chunks_mut(space(ITEM));
        let slots = slots.filter(|slot| slot.len() >= HEADER + ITEM);
        let mut slots = parts.iter_mut().zip(slots).peekable();
        if slots.peek().is_none() {
            return Err(Failure::invalid(format!(
                "message: has no room for an item; expected an element in msg_iov, and {} bytes in \
                 msg_control",
                space(ITEM)
            )));
        }
        let mut next = link.until(Direction::In, dont_wait, |open| match open.take() {
            Taken::Value(item) => Ok(Some(Some(item))),
            Taken::Nothing => Ok(None),
            Taken::End => open.ended().map(|()| Some(None)),
        })?;
        let (mut count, mut is_cut) = (0, false);
        while let Some(item) = next.take()
            && let Some((part, slot)) = slots.next()
        {
            count += 1;
            let kind = match item {
                Item::Section(_) => TL_DATA,
                Item::Gap(_) => TL_GAP,
            };
            put(slot, kind, &comity_item::from(&item).bytes());
            match item {
                Item::Section(section) => is_cut |= put_section(part, section)?,
                Item::Gap(_) if part.iov_base.is_null() => part.iov_len = 0,
                Item::Gap(_) => {}
            }
            if slots.peek().is_some()
                && let Ok(Some(open)) = link.open()
                && let Taken::Value(item) = open.take()
            {
                next = Some(item);
            }
        }
        message.msg_controllen = count * space(ITEM);
        message.msg_flags = MSG_TL | if is_cut { libc::MSG_TRUNC } else { 0 };
        Ok(count as ssize_t)
    })
}
