//! The length of a header and of its options.

use super::format::{
    MIN_HEADER, SACK_BLOCK, SACK_PREFIX, SEQ_UPDATE_LONG, SEQ_UPDATE_SHORT, SPACE,
    TIMESTAMPS_SPACE, WAVE_SPACE,
};
use crate::segment::{Options, SackBlocks, Segment};

impl Segment {
    /// The length of the TCP header with its options, padded to a multiple of four bytes.
    pub fn header_length(&self) -> u32 {
        encoded_length(self) as u32
    }
}

impl Options {
    /// The length of the options in a header as the [codec](super) writes them, padded to a
    /// multiple of four bytes.
    pub fn length(&self) -> u32 {
        length(self) as u32
    }
}

/// The length in bytes of the header that [`encode`](super::encode) writes: a multiple of four.
///
/// Above [`MAX_HEADER`](super::MAX_HEADER) if the options do not fit; `encode` then refuses the
/// segment.
pub fn encoded_length(segment: &Segment) -> usize {
    MIN_HEADER + length(&segment.options)
}

/// The header length in bytes of a data segment after the handshake, without SACK blocks and voids.
///
/// The arguments select its options: [`Options::timestamps`], [`Options::wave`],
/// [`Options::seq_update`].
pub const fn data_header_length(timestamps: bool, wave: bool, seq_update: bool) -> usize {
    let timestamps = if timestamps { TIMESTAMPS_SPACE } else { 0 };
    let wave = if wave { WAVE_SPACE } else { 0 };
    let seq_update = if seq_update { SEQ_UPDATE_SHORT } else { 0 };
    MIN_HEADER + timestamps + wave + seq_update
}

/// How many SACK blocks fit beside the other options, ignoring the blocks already present.
pub fn sack_room(options: &Options) -> usize {
    let free = SPACE.saturating_sub(length_without_sack(options));
    (free.saturating_sub(SACK_PREFIX) / SACK_BLOCK).min(SackBlocks::CAPACITY)
}

/// The length of the options in a header, padded to a multiple of four bytes.
pub(super) fn length(options: &Options) -> usize {
    let sack = match options.sack.len() {
        0 => 0,
        count => SACK_PREFIX + SACK_BLOCK * count,
    };
    length_without_sack(options) + sack
}

/// At most 48: the sum of all groups but SACK. The writer compares it with the available space.
fn length_without_sack(options: &Options) -> usize {
    let mss = if options.mss.is_some() { 4 } else { 0 };
    let timestamps = match (options.timestamps.is_some(), options.sack_permitted) {
        (true, _) => TIMESTAMPS_SPACE,
        (false, true) => 4,
        (false, false) => 0,
    };
    let window_scale = if options.window_scale.is_some() { 4 } else { 0 };
    let level = if options.level.is_some() { 4 } else { 0 };
    let wave = if options.wave.is_some() {
        WAVE_SPACE
    } else {
        0
    };
    let seq_update = match &options.seq_update {
        Some(update) if update.has_void() => SEQ_UPDATE_LONG,
        Some(_) => SEQ_UPDATE_SHORT,
        None => 0,
    };
    mss + timestamps + window_scale + level + wave + seq_update
}
