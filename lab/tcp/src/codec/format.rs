//! The numbers of the format, and the writer of a header's bytes.

/// The header without options, in bytes.
pub const MIN_HEADER: usize = 20;
/// The longest header, in bytes.
pub const MAX_HEADER: usize = 60;
/// The largest shift of the window scale option (RFC 7323, section 2.3).
pub const MAX_WINDOW_SCALE: u8 = 14;
/// The longest segment, header included, in bytes.
pub const MAX_SEGMENT: usize = 65_535;

/// Ends the list; padding follows.
pub(super) const END: u8 = 0;
/// One byte of padding.
pub(super) const NOP: u8 = 1;
pub(super) const MSS: u8 = 2;
pub(super) const WINDOW_SCALE: u8 = 3;
pub(super) const SACK_PERMITTED: u8 = 4;
pub(super) const SACK: u8 = 5;
pub(super) const TIMESTAMPS: u8 = 8;
/// Both options of TCP-Real, which differ in their length.
pub(super) const REAL: u8 = 254;
/// Shared by experiments, which an identifier after the length distinguishes (RFC 6994).
pub(super) const EXPERIMENT: u8 = 253;
/// The experiment identifier of TLTCP's `seq_update`: "TL".
pub(super) const SEQ_UPDATE: u16 = 0x544C;
pub(super) const SEQ_UPDATE_SHORT: usize = 8;
pub(super) const SEQ_UPDATE_LONG: usize = 16;
/// With two bytes of padding.
pub(super) const TIMESTAMPS_SPACE: usize = 12;
pub(super) const WAVE_SPACE: usize = 8;

/// The bytes between the fixed header and the longest header.
pub(super) const SPACE: usize = MAX_HEADER - MIN_HEADER;
/// Two NOPs, kind and length.
pub(super) const SACK_PREFIX: usize = 4;
pub(super) const SACK_BLOCK: usize = 8;

/// The part of a header that is not written yet.
pub(super) struct Out<'a>(pub(super) &'a mut [u8]);

impl Out<'_> {
    /// Writes `bytes` at the front. The writer sizes the header first, so they fit.
    pub(super) fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        match core::mem::take(&mut self.0).split_first_chunk_mut::<N>() {
            Some((front, rest)) => {
                *front = bytes;
                self.0 = rest;
            }
            None => debug_assert!(false, "a header is longer than its computed length"),
        }
    }
}
