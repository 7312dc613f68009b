//! Access units, as they are cut from PES packets.

use core::ops::Range;

use crate::header::Times;

/// Properties that a transport packet reports for the PES packet that begins in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) random_access: bool,
    pub(super) discontinuity: bool,
}

/// An access unit of the source, or the payload of a PES packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) stream_id: u8,
    pub(super) times: Times,
    pub(super) aligned: bool,
    pub(super) scrambled: bool,
    pub(super) marks: Marks,
    /// Whether it begins in the same PES packet as the previous unit, and therefore has no time
    /// stamp of its own.
    pub(super) follows: bool,
    /// Whether some of it is missing or may be wrong.
    pub(super) damaged: bool,
    pub(super) bytes: Vec<u8>,
}

impl Whole {
    /// A unit of more bytes of the same PES packet. The bytes need not begin a unit.
    pub(super) fn continued(&self, bytes: Vec<u8>, damaged: bool) -> Self {
        Self {
            times: Times::None,
            aligned: false,
            marks: Marks::default(),
            follows: false,
            damaged,
            bytes,
            ..*self
        }
    }
}

/// One range that covers all bytes that are missing or may be wrong. Missing bytes are an empty
/// range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Damage(Option<Range<usize>>);

impl Damage {
    pub(super) fn add(&mut self, more: Range<usize>) {
        self.0 = Some(match self.0.take() {
            Some(range) => range.start.min(more.start)..range.end.max(more.end),
            None => more,
        });
    }

    /// Adds the damage of bytes that are appended at this position.
    pub(super) fn append(&mut self, at: usize, more: &Self) {
        if let Some(range) = &more.0 {
            self.add(at + range.start..at + range.end);
        }
    }

    /// Removes the bytes before this position.
    pub(super) fn pass(&mut self, at: usize) {
        let rest = self.0.take().filter(|range| range.end > at);
        self.0 = rest.map(|range| range.start.saturating_sub(at)..range.end - at);
    }

    pub(super) const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the damage extends to this position.
    pub(super) fn reaches(&self, at: usize) -> bool {
        self.0.as_ref().is_some_and(|range| range.end >= at)
    }

    pub(super) fn start(&self) -> Option<usize> {
        self.0.as_ref().map(|range| range.start)
    }

    /// Whether a unit in this range is damaged, if its own bytes determine its end.
    pub(super) fn is_inside(&self, unit: Range<usize>) -> bool {
        let is_inside = |range: &Range<usize>| unit.start < range.end && range.start < unit.end;
        self.0.as_ref().is_some_and(is_inside)
    }

    /// Whether a unit in this range is damaged, if more of it could follow.
    pub(super) fn is_in(&self, unit: Range<usize>) -> bool {
        self.is_inside(unit.start..unit.end + 1)
    }
}

/// A fault of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The beginning of a PES packet is missing. Players drop the rest.
    Headless,
    /// The length of a PES packet differs from its header.
    Length,
    Oversized(u64),
    /// Data outside of audio frames, after frames were found.
    NoFrame,
}

pub(super) type Units = Vec<Result<Whole, Fault>>;
