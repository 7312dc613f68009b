//! The state of a PID.

use std::collections::BTreeSet;

use comity_units::{Span, Time};

use super::continuity::Counter;
use super::interval::Repetition;
use super::kind::Kind;
use super::linear::Linear;
use crate::psi::Gatherer;

/// The PID of null packets.
pub(super) const NULL: u16 = 0x1fff;
/// The PID of ATSC's tables.
pub(super) const ATSC: u16 = 0x1ffb;

/// How long a PID may occur before a table names it (TR 101 290, 3.4).
const NAMED_WITHIN: Span = Span::from_millis(500);

/// The state of a PID.
#[derive(Debug)]
pub(super) struct Pid {
    pub(super) packets: u64,
    pub(super) scrambled: u64,
    pub(super) continuity_errors: u64,
    pub(super) missing_packets: u64,
    pub(super) transport_errors: u64,
    pub(super) kind: Kind,
    pub(super) stream_type: Option<u8>,
    /// The programs whose maps name it, and the programs whose clock it carries.
    pub(super) programs: BTreeSet<u16>,
    pub(super) clock_of: BTreeSet<u16>,
    /// Whether the PAT names it as the PID of a map.
    pub(super) is_map: bool,
    /// Whether it has a fixed meaning or is named by another table.
    pub(super) is_named: bool,
    /// Whether it has the meaning that DVB gives it. A program may use it instead.
    is_of_dvb: bool,
    /// Since when it has occurred without a name, and whether this was counted.
    unnamed_since: Option<Time>,
    is_reported: bool,
    pub(super) counter: Counter,
    pub(super) gatherer: Option<Gatherer>,
    pub(super) seen: Repetition,
    pub(super) stamps: Repetition,
    /// The latest decoding time, in ticks of 90 kHz, and when it arrived.
    pub(super) decoding: Option<(u64, Option<Time>)>,
    pub(super) clock: Option<Box<Clock>>,
}

/// The clock references of a PID.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The latest clock reference, in ticks of 27 MHz, and when it arrived.
    pub(super) latest: Option<(u64, Option<Time>)>,
    pub(super) seen: Repetition,
    /// The ticks so far, with jumps removed.
    pub(super) ticks: i64,
    /// The run of bytes without a gap that contains it.
    pub(super) run: u64,
    pub(super) by_bytes: Linear,
    pub(super) by_arrival: Linear,
}

impl Pid {
    pub(super) fn new(pid: u16) -> Self {
        let fixed = Kind::fixed(pid);
        let has_tables = matches!(pid, 0x00 | 0x01 | 0x10 | 0x11 | 0x12 | 0x14 | ATSC);
        Self {
            packets: 0,
            scrambled: 0,
            continuity_errors: 0,
            missing_packets: 0,
            transport_errors: 0,
            kind: fixed.unwrap_or(Kind::UNREFERENCED),
            stream_type: None,
            programs: BTreeSet::new(),
            clock_of: BTreeSet::new(),
            is_map: false,
            is_named: fixed.is_some(),
            is_of_dvb: matches!(pid, 0x10..=0x1f),
            unnamed_since: None,
            is_reported: false,
            counter: Counter::default(),
            gatherer: has_tables.then(Gatherer::default),
            seen: Repetition::default(),
            stamps: Repetition::default(),
            decoding: None,
            clock: None,
        }
    }

    /// Records that a table names it as a PID of this kind. A stream remains a stream if it also
    /// carries its program's clock or keys.
    pub(super) fn name(&mut self, kind: Kind) {
        let is_more = kind != Kind::CLOCK && kind != Kind::KEYS && kind != Kind::RIGHTS;
        if self.kind == Kind::UNREFERENCED || is_more && !self.is_named {
            self.kind = kind;
        }
    }

    /// Records that a program uses it, whatever it means in DVB (ISO/IEC 13818-1 table 2-3).
    pub(super) fn give_to_program(&mut self) {
        if core::mem::take(&mut self.is_of_dvb) {
            (self.kind, self.is_named) = (Kind::UNREFERENCED, false);
            self.gatherer = None;
        }
    }

    /// Whether its tables are those that DVB defines for it.
    pub(super) const fn is_of_dvb(&self) -> bool {
        self.is_of_dvb
    }

    /// Records that the map of this program no longer names it.
    pub(super) fn unname(&mut self, program: u16, now: Option<Time>) {
        self.programs.remove(&program);
        self.clock_of.remove(&program);
        if self.is_unreferenced() {
            self.kind = Kind::UNREFERENCED;
            self.stream_type = None;
            self.unnamed_since = now;
            self.seen.pause();
        }
    }

    /// Whether it is expected to recur.
    pub(super) fn is_awaited(&self) -> bool {
        !self.clock_of.is_empty() || self.kind.is_timed && !self.programs.is_empty()
    }

    fn is_unreferenced(&self) -> bool {
        !self.is_named && !self.is_map && self.programs.is_empty()
    }

    /// Records a packet. Returns whether the PID is found to be unreferenced.
    pub(super) fn on_packet(&mut self, now: Option<Time>) -> bool {
        if !self.is_unreferenced() || self.is_reported {
            return false;
        }
        self.unnamed_since = self.unnamed_since.or(now);
        self.is_reported = self.is_overdue(now);
        self.is_reported
    }

    /// Whether it has been unreferenced for too long, and this was not counted.
    pub(super) fn is_overdue(&self, now: Option<Time>) -> bool {
        let passed = now.zip(self.unnamed_since);
        self.packets > 0
            && !self.is_reported
            && self.is_unreferenced()
            && passed.is_some_and(|(now, since)| now.saturating_since(since) > NAMED_WITHIN)
    }
}
