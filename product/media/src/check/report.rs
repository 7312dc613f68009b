//! The results of a checker.

use comity_units::{Rate, Span, Time};

use super::indicator::Errors;
use super::interval::Intervals;
use super::kind::Kind;
use super::linear::Offsets;
use super::peaks::Peak;

/// The results for a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The distance between packets, in bytes; `None` if there were none.
    pub packet_bytes: Option<usize>,
    /// The number of packets.
    pub packets: u64,
    /// The number of bytes outside of packets.
    pub skipped_bytes: u64,
    /// The number of null packets.
    pub null_packets: u64,
    /// The number of scrambled packets.
    pub scrambled_packets: u64,
    /// The time from the first to the last packet, if times are known.
    pub duration: Option<Span>,
    /// The mean rate of the multiplex.
    pub rate: Option<Rate>,
    /// Whether the rate is constant.
    pub is_constant_rate: Option<bool>,
    /// The highest rates of arrival; none for a stored stream.
    pub peaks: Vec<Peak>,
    /// The errors.
    pub errors: Errors,
    /// The intervals between sections of the PAT.
    pub pat: Intervals,
    /// The programs, in the order of their numbers.
    pub programs: Vec<Program>,
    /// The PIDs with clock references.
    pub clocks: Vec<Clock>,
    /// The PIDs, in ascending order.
    pub pids: Vec<Pid>,
    /// The number of jumps of times.
    pub jump_count: u64,
    /// The first jumps of times.
    pub jumps: Vec<Jump>,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its number.
    pub number: u16,
    /// The PID of its map.
    pub map_pid: u16,
    /// The PID of its clock; `None` before its map, or if it has no clock.
    pub clock_pid: Option<u16>,
    /// The intervals between sections of its map.
    pub map: Intervals,
    /// The PIDs in its map.
    pub pids: Vec<u16>,
}

/// A clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    /// The PID of its references.
    pub pid: u16,
    /// The programs that use the clock.
    pub programs: Vec<u16>,
    /// The intervals between its references.
    pub intervals: Intervals,
    /// The distances of references from a line over the bytes; `None` unless the rate is constant.
    pub accuracy: Option<Offsets>,
    /// The distances of references from a line over their arrivals; `None` for a stored stream.
    pub jitter: Option<Offsets>,
}

/// A PID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pid {
    /// Its number.
    pub pid: u16,
    /// Its content.
    pub kind: Kind,
    /// The type of its stream in the map that names it.
    pub stream_type: Option<u8>,
    /// The programs that name it.
    pub programs: Vec<u16>,
    /// The number of its packets.
    pub packets: u64,
    /// Its mean rate.
    pub rate: Option<Rate>,
    /// The number of its scrambled packets.
    pub scrambled_packets: u64,
    /// The number of errors of its continuity counter.
    pub continuity_errors: u64,
    /// The minimum number of its missing packets.
    pub missing_packets: u64,
    /// The number of its packets that are marked as damaged.
    pub transport_errors: u64,
    /// The intervals between its presentation time stamps.
    pub stamps: Intervals,
}

/// The kind of time that jumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jumped {
    /// Clock references.
    Pcr,
    /// Decoding time stamps.
    Dts,
}

/// A jump of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// When it jumped, if times are known.
    pub time: Option<Time>,
    /// The PID.
    pub pid: u16,
    /// The kind of time that jumped.
    pub of: Jumped,
    /// The size of the jump in nanoseconds, beyond the time that passed.
    pub step_ns: i64,
    /// Whether the packet has a `discontinuity_indicator`.
    pub is_marked: bool,
}
