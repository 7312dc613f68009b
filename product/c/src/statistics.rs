//! Facts about connections and listeners.

use std::ffi::{c_char, c_int, c_void};

use comity::{Rate, Statistics};
use comity_stream::plain;
use libc::ssize_t;

use crate::descriptor::{self, Handle};
use crate::failure::{Failure, call};
use crate::foreign::{array_mut, put_text};

/// The counters of a connection. A later release may add fields at its end, and changes no others.
/// Numbers that are not known yet are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct comity_statistics {
    /// The age of the connection, in milliseconds.
    pub age_ms: f64,
    /// The smoothed round-trip time, in milliseconds.
    pub rtt_ms: f64,
    /// The least round-trip time, in milliseconds.
    pub min_rtt_ms: f64,
    /// The delay to the peer, in milliseconds: half of the least round trip, plus queueing.
    pub one_way_ms: f64,
    /// The bitrate at which to submit all sections, in Mb/s.
    pub target_mbps: f64,
    /// The measured capacity of the path, in Mb/s.
    pub capacity_mbps: f64,
    /// Bytes sent, with all headers.
    pub sent_bytes: u64,
    /// Bytes of sections retransmitted.
    pub retransmitted_bytes: u64,
    /// Bytes of sections in the send buffer.
    pub send_buffer_bytes: u64,
    /// Sections submitted.
    pub submitted_sections: u64,
    /// Sections whose arrival the peer has confirmed.
    pub arrived_sections: u64,
    /// Sections that were dropped at their deadline, or because they could not meet it.
    pub expired_sections: u64,
    /// Sections shed as the least important.
    pub shed_sections: u64,
    /// Sections dropped because they need one that is missing.
    pub dependent_sections: u64,
    /// Sections that were lost and not retransmitted.
    pub lost_sections: u64,
    /// Bytes received, with all headers.
    pub received_bytes: u64,
    /// Bytes of whole sections that were delivered.
    pub delivered_bytes: u64,
    /// Sections that were whole by their deadline.
    pub on_time_sections: u64,
    /// Sections that were whole only after their deadline.
    pub late_sections: u64,
    /// Sections that became gaps.
    pub gap_sections: u64,
    /// Sections that the peer had whole by their deadline, by its latest report.
    pub peer_on_time_sections: u64,
    /// Sections that the peer had whole only after their deadline.
    pub peer_late_sections: u64,
    /// Sections that became gaps at the peer.
    pub peer_gap_sections: u64,
}

impl From<&Statistics> for comity_statistics {
    fn from(from: &Statistics) -> Self {
        let (sections, bytes) = (&from.sent.sections, &from.sent.bytes);
        let (received, path) = (&from.received, &from.path);
        let peer = from.peer.unwrap_or_default();
        Self {
            age_ms: from.age_ms,
            rtt_ms: path.rtt_ms.unwrap_or_default(),
            min_rtt_ms: path.min_rtt_ms.unwrap_or_default(),
            one_way_ms: path.one_way_ms.unwrap_or_default(),
            target_mbps: path.target_mbps.unwrap_or_default(),
            capacity_mbps: path.capacity_mbps.unwrap_or_default(),
            sent_bytes: from.sent.counters.wire_bytes,
            retransmitted_bytes: from.sent.counters.retransmitted_bytes,
            send_buffer_bytes: bytes.queued + bytes.in_flight,
            submitted_sections: sections.submitted,
            arrived_sections: sections.acknowledged,
            expired_sections: sections.expired_unsent
                + sections.expired_in_network
                + sections.infeasible,
            shed_sections: sections.shed,
            dependent_sections: sections.dependency,
            lost_sections: sections.lost,
            received_bytes: received.counters.wire_bytes,
            delivered_bytes: received.delivered_bytes,
            on_time_sections: received.on_time_sections,
            late_sections: received.late_sections,
            gap_sections: received.gaps.sum(),
            peer_on_time_sections: peer.on_time_sections,
            peer_late_sections: peer.late_sections,
            peer_gap_sections: peer.gap_sections,
        }
    }
}

impl comity_statistics {
    fn bytes(&self) -> [u8; size_of::<Self>()] {
        // SAFETY: it has only numbers of 8 bytes, and no padding between or behind them.
        unsafe { std::mem::transmute(*self) }
    }
}

/// Returns the version of the library, for example "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn comity_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the bitrate at which to submit all sections, in bit/s.
///
/// It is smoothed, and at most the measured capacity of the path. Returns 0 before the path is
/// known, or -1 with `errno`: `ENOTCONN`.
#[unsafe(no_mangle)]
pub extern "C" fn comity_target_bitrate(connection: c_int) -> i64 {
    call(-1, || {
        let link = descriptor::connection(connection)?;
        let target = link.connected()?.target.current();
        Ok(target.map_or(0, |rate| i64::try_from(rate.as_bps()).unwrap_or(i64::MAX)))
    })
}

/// Returns the bitrate that an encoder should have now, in bit/s.
///
/// `other_bps`: the bit/s that are sent beside its output, such as sound. Call it before each
/// picture, and set the encoder if the value differs from the latest. It leaves head room below the
/// target, falls at once, rises in steps, and stays within the settings `encmin`, `encmax`,
/// `enchead` and `encupdates`, as docs/guide/encoder.md describes.
///
/// Returns 0 before it is known, for the first second, or -1 with `errno`: `ENOTCONN`, `EINVAL`
/// (`other_bps` is negative).
#[unsafe(no_mangle)]
pub extern "C" fn comity_encoder_bitrate(connection: c_int, other_bps: i64) -> i64 {
    call(-1, || {
        let link = descriptor::connection(connection)?;
        let other = u64::try_from(other_bps).map_err(|_| {
            Failure::invalid(format!("other_bps: is {other_bps}; expected 0 or more"))
        })?;
        let bps = link.connected()?.encoder_bitrate(Rate::from_bps(other));
        Ok(i64::try_from(bps).unwrap_or(i64::MAX))
    })
}

/// Fills in the counters of a connection, without waiting.
///
/// `size`: `sizeof *statistics`. A program that was built with another release gets the fields that
/// both know, and zeros in others.
///
/// Returns 0, or -1 with `errno`: `ENOTCONN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn comity_stats(
    connection: c_int,
    statistics: *mut comity_statistics,
    size: usize,
) -> c_int {
    call(-1, || {
        let link = descriptor::connection(connection)?;
        let slot = statistics.cast::<c_void>().cast::<u8>();
        // SAFETY: the caller vouches for the bytes.
        let slot = unsafe { array_mut(slot, size, "statistics") }?;
        let counted = comity_statistics::from(&link.connected()?.connection.stats()).bytes();
        let known = counted.len().min(slot.len());
        slot[..known].copy_from_slice(&counted[..known]);
        slot[known..].fill(0);
        Ok(0)
    })
}

/// Puts all counters of a connection into a buffer, as JSON with the keys of
/// docs/reference/statistics.md, without waiting.
///
/// `buffer`, `size`: as for `snprintf`: a text that is too long is cut.
///
/// Returns the length of the whole text without its zero, or -1 with `errno`: `ENOTCONN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn comity_stats_json(
    connection: c_int,
    buffer: *mut c_char,
    size: usize,
) -> ssize_t {
    call(-1, || {
        let link = descriptor::connection(connection)?;
        let json = serde_json::to_string(&link.connected()?.connection.stats());
        let json = json.map_err(|error| Failure::new(libc::EIO, error.to_string()))?;
        // SAFETY: the caller vouches for the buffer.
        unsafe { put_text(&json, buffer, size) }
    })
}

/// Puts the address of this end of a connection or of a listener into a buffer, for example
/// `127.0.0.1:9000` or `[::]:9000`.
///
/// `buffer`, `size`, and what it returns: as for `comity_stats_json`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn comity_local_address(
    descriptor: c_int,
    buffer: *mut c_char,
    size: usize,
) -> ssize_t {
    call(-1, || {
        let address = match descriptor::find(descriptor)? {
            Handle::Connection(link) => link.connected()?.connection.local_address(),
            Handle::Listener(door) => door.endpoint.local_address(),
        };
        // SAFETY: the caller vouches for the buffer.
        unsafe { put_text(&plain(address).to_string(), buffer, size) }
    })
}

/// Puts the address of the peer into a buffer.
///
/// `buffer`, `size`, and what it returns: as for `comity_stats_json`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn comity_peer_address(
    connection: c_int,
    buffer: *mut c_char,
    size: usize,
) -> ssize_t {
    call(-1, || {
        let link = descriptor::connection(connection)?;
        let address = plain(link.connected()?.connection.peer_address());
        // SAFETY: the caller vouches for the buffer.
        unsafe { put_text(&address.to_string(), buffer, size) }
    })
}

/// Puts the name of the stream that the caller requests or sends (`streamid`) into a buffer; empty
/// without one. A server routes by it.
///
/// `buffer`, `size`, and what it returns: as for `comity_stats_json`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn comity_stream_name(
    connection: c_int,
    buffer: *mut c_char,
    size: usize,
) -> ssize_t {
    call(-1, || {
        let link = descriptor::connection(connection)?;
        let name = link
            .connected()?
            .connection
            .stream_name()
            .unwrap_or_default();
        // SAFETY: the caller vouches for the buffer.
        unsafe { put_text(name, buffer, size) }
    })
}
