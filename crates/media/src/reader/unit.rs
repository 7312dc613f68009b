//! Access units, as they are cut out of PES packets.

use crate::header::Times;

/// Properties that a transport packet reports for the PES packet that begins in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) random_access: bool,
    pub(super) discontinuity: bool,
}

/// A complete access unit of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) stream_id: u8,
    pub(super) times: Times,
    pub(super) aligned: bool,
    pub(super) scrambled: bool,
    pub(super) marks: Marks,
    /// Whether it begins in the same PES packet as the unit before, and therefore has no time stamp
    /// of its own.
    pub(super) follows: bool,
    pub(super) bytes: Vec<u8>,
}

impl Whole {
    /// The same without its bytes.
    pub(super) fn emptied(self) -> Self {
        let bytes = Vec::new();
        Self { bytes, ..self }
    }
}

/// The fault of an access unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Damaged,
    Oversized(u64),
    /// Data outside of audio frames, after frames were found.
    NoFrame,
}

pub(super) type Units = Vec<Result<Whole, Fault>>;
