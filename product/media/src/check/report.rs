//! What a checker found.

use comity_units::{Rate, Span, Time};

use super::indicator::Errors;
use super::interval::Intervals;
use super::kind::Kind;
use super::linear::Offsets;
use super::peaks::Peak;

/// What is known of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The distance between packets, in bytes; `None` if there was none.
    pub packet_bytes: Option<usize>,
    /// Packets.
    pub packets: u64,
    /// Bytes outside of packets.
    pub skipped_bytes: u64,
    /// Null packets.
    pub null_packets: u64,
    /// Scrambled packets.
    pub scrambled_packets: u64,
    /// From the first to the last packet, if times are known.
    pub duration: Option<Span>,
    /// The mean rate of the multiplex.
    pub rate: Option<Rate>,
    /// Whether the rate is constant.
    pub is_constant_rate: Option<bool>,
    /// The highest rates of arrival; none for a stored stream.
    pub peaks: Vec<Peak>,
    /// The errors.
    pub errors: Errors,
    /// Between sections of the PAT.
    pub pat: Intervals,
    /// The programs, by their numbers.
    pub programs: Vec<Program>,
    /// The PIDs with clock references.
    pub clocks: Vec<Clock>,
    /// The PIDs, in their order.
    pub pids: Vec<Pid>,
    /// How often times jumped.
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
    /// The PID of its clock; `None` before its map, and without a clock.
    pub clock_pid: Option<u16>,
    /// Between sections of its map.
    pub map: Intervals,
    /// The PIDs that its map names.
    pub pids: Vec<u16>,
}

/// A clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    /// The PID of its references.
    pub pid: u16,
    /// The programs whose clock it is.
    pub programs: Vec<u16>,
    /// Between its references.
    pub intervals: Intervals,
    /// How far references lie from the line over the bytes; `None` unless the rate is constant.
    pub accuracy: Option<Offsets>,
    /// How far they lie from the line over their arrivals; `None` for a stored stream.
    pub jitter: Option<Offsets>,
}

/// A PID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pid {
    /// Its number.
    pub pid: u16,
    /// What it carries.
    pub kind: Kind,
    /// The type of its stream in the map that names it.
    pub stream_type: Option<u8>,
    /// The programs that name it.
    pub programs: Vec<u16>,
    /// Its packets.
    pub packets: u64,
    /// Its mean rate.
    pub rate: Option<Rate>,
    /// Of its packets, the scrambled ones.
    pub scrambled_packets: u64,
    /// Errors of its continuity counter.
    pub continuity_errors: u64,
    /// At least so many of its packets are missing.
    pub missing_packets: u64,
    /// Its packets that are marked as damaged.
    pub transport_errors: u64,
    /// Between its presentation time stamps.
    pub stamps: Intervals,
}

/// The clock of a jump.
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
    /// When, if times are known.
    pub time: Option<Time>,
    /// The PID.
    pub pid: u16,
    /// What jumped.
    pub of: Jumped,
    /// How far, in nanoseconds, beyond the time that passed.
    pub step_ns: i64,
    /// Whether the packet has a `discontinuity_indicator`.
    pub is_marked: bool,
}
