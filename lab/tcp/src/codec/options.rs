//! The options of a header: checking, writing, reading.

use core::mem;
use core::num::NonZeroU16;

use comity_units::SeqNo;

use super::error::{DecodeError, EncodeError};
use super::format::{
    END, EXPERIMENT, MAX_WINDOW_SCALE, MIN_HEADER, MSS, NOP, Out, REAL, SACK, SACK_BLOCK,
    SACK_PERMITTED, SEQ_UPDATE, SEQ_UPDATE_LONG, SEQ_UPDATE_SHORT, SPACE, TIMESTAMPS, WINDOW_SCALE,
};
use super::length::length;
use crate::segment::{Options, SackBlock, SackBlocks, Timestamps, Wave};
use crate::timeline::SeqUpdate;

/// Checks that [`read`] would return the same options.
pub(super) fn check(options: &Options) -> Result<(), EncodeError> {
    if let Some(shift) = options.window_scale
        && shift > MAX_WINDOW_SCALE
    {
        return Err(EncodeError::WindowScale { shift });
    }
    for &SackBlock { start, end } in options.sack.as_slice() {
        if !start.precedes(end) {
            return Err(EncodeError::SackBlock { start, end });
        }
    }
    if let Some(wave) = options.wave
        && !is_in_wave(wave)
    {
        return Err(EncodeError::Wave { wave });
    }
    if let Some(update) = options.seq_update
        && update.has_void()
        && !update.void_start.precedes(update.void_end)
    {
        let SeqUpdate {
            void_start: start,
            void_end: end,
            ..
        } = update;
        return Err(EncodeError::Void { start, end });
    }
    match length(options) {
        length if length > SPACE => Err(EncodeError::OptionsTooLong { length }),
        _ => Ok(()),
    }
}

/// Writes options that passed [`check`].
pub(super) fn write(options: &Options, out: &mut Out<'_>) {
    if let Some(mss) = options.mss {
        let [m0, m1] = mss.to_be_bytes();
        out.put([MSS, 4, m0, m1]);
    }
    match options.timestamps {
        Some(Timestamps { value, echo }) => {
            let padding = if options.sack_permitted {
                [SACK_PERMITTED, 2]
            } else {
                [NOP, NOP]
            };
            out.put(padding);
            out.put([TIMESTAMPS, 10]);
            out.put(value.to_be_bytes());
            out.put(echo.to_be_bytes());
        }
        None if options.sack_permitted => out.put([NOP, NOP, SACK_PERMITTED, 2]),
        None => {}
    }
    if let Some(shift) = options.window_scale {
        out.put([NOP, WINDOW_SCALE, 3, shift]);
    }
    if let Some(level) = options.level {
        let [l0, l1] = level.get().to_be_bytes();
        out.put([REAL, 4, l0, l1]);
    }
    if let Some(wave) = options.wave {
        out.put([REAL, 8]);
        out.put(wave.wave.to_be_bytes());
        out.put(wave.segments.get().to_be_bytes());
        out.put(wave.position.to_be_bytes());
    }
    if let Some(update) = &options.seq_update {
        let length = if update.has_void() {
            SEQ_UPDATE_LONG
        } else {
            SEQ_UPDATE_SHORT
        };
        out.put([EXPERIMENT, length as u8]);
        out.put(SEQ_UPDATE.to_be_bytes());
        out.put(update.expected.get().to_be_bytes());
        if update.has_void() {
            out.put(update.void_start.get().to_be_bytes());
            out.put(update.void_end.get().to_be_bytes());
        }
    }
    let blocks = options.sack.as_slice();
    if !blocks.is_empty() {
        out.put([NOP, NOP, SACK, (2 + SACK_BLOCK * blocks.len()) as u8]);
        for block in blocks {
            out.put(block.start.get().to_be_bytes());
            out.put(block.end.get().to_be_bytes());
        }
    }
}

/// The contents of the option space of a header.
#[derive(Default)]
pub(super) struct Read {
    pub(super) known: Options,
    pub(super) skipped: u8,
    pub(super) window_scale_clamped: bool,
}

/// Reads the option space of a header.
pub(super) fn read(space: &[u8]) -> Result<Read, DecodeError> {
    let mut found = Read::default();
    let mut rest = space;
    loop {
        let offset = MIN_HEADER + space.len() - rest.len();
        let (kind, length, tail) = match rest {
            [] | [END, ..] => return Ok(found),
            [NOP, tail @ ..] => {
                rest = tail;
                continue;
            }
            [kind] => {
                return Err(DecodeError::OptionLengthMissing {
                    kind: *kind,
                    offset,
                });
            }
            [kind, length, tail @ ..] => (*kind, *length, tail),
        };
        let Some(value) = usize::from(length).checked_sub(2) else {
            return Err(DecodeError::OptionTooShort {
                kind,
                length,
                offset,
            });
        };
        let Some((value, behind)) = tail.split_at_checked(value) else {
            let available = rest.len();
            return Err(DecodeError::OptionBeyondHeader {
                kind,
                length,
                offset,
                available,
            });
        };
        rest = behind;

        let wrong_length = DecodeError::OptionWrongLength {
            kind,
            length,
            offset,
        };
        let again = match kind {
            MSS => {
                let value = value.try_into().map_err(|_| wrong_length)?;
                found.known.mss.replace(u16::from_be_bytes(value)).is_some()
            }
            WINDOW_SCALE => {
                let [shift] = value.try_into().map_err(|_| wrong_length)?;
                found.window_scale_clamped = shift > MAX_WINDOW_SCALE;
                found
                    .known
                    .window_scale
                    .replace(shift.min(MAX_WINDOW_SCALE))
                    .is_some()
            }
            SACK_PERMITTED if value.is_empty() => {
                mem::replace(&mut found.known.sack_permitted, true)
            }
            SACK_PERMITTED => return Err(wrong_length),
            SACK => {
                let blocks = sack_blocks(value, offset)?.ok_or(wrong_length)?;
                !mem::replace(&mut found.known.sack, blocks).is_empty()
            }
            TIMESTAMPS => {
                let [v0, v1, v2, v3, e0, e1, e2, e3] =
                    value.try_into().map_err(|_| wrong_length)?;
                let timestamps = Timestamps {
                    value: u32::from_be_bytes([v0, v1, v2, v3]),
                    echo: u32::from_be_bytes([e0, e1, e2, e3]),
                };
                found.known.timestamps.replace(timestamps).is_some()
            }
            REAL => match *value {
                [l0, l1] => {
                    let level = NonZeroU16::new(u16::from_be_bytes([l0, l1]));
                    let level = level.ok_or(DecodeError::Level { offset })?;
                    found.known.level.replace(level).is_some()
                }
                [w0, w1, s0, s1, p0, p1] => {
                    let number = u16::from_be_bytes;
                    let (segments, position) = (number([s0, s1]), number([p0, p1]));
                    let wave = NonZeroU16::new(segments).map(|segments| Wave {
                        wave: number([w0, w1]),
                        segments,
                        position,
                    });
                    let wave = wave
                        .filter(|&wave| is_in_wave(wave))
                        .ok_or(DecodeError::Wave {
                            segments,
                            position,
                            offset,
                        })?;
                    found.known.wave.replace(wave).is_some()
                }
                _ => return Err(wrong_length),
            },
            EXPERIMENT if value.starts_with(&SEQ_UPDATE.to_be_bytes()) => {
                let update = seq_update(value, offset)?.ok_or(wrong_length)?;
                found.known.seq_update.replace(update).is_some()
            }
            _ => {
                found.skipped += 1;
                false
            }
        };
        if again {
            return Err(DecodeError::DuplicateOption { kind, offset });
        }
    }
}

const fn is_in_wave(wave: Wave) -> bool {
    1 <= wave.position && wave.position <= wave.segments.get()
}

/// The value of `seq_update` after its identifier, or `None` if it has the length of neither form.
fn seq_update(value: &[u8], offset: usize) -> Result<Option<SeqUpdate>, DecodeError> {
    let (numbers, []) = value.get(2..).unwrap_or(&[]).as_chunks::<4>() else {
        return Ok(None);
    };
    let number = |bytes: &[u8; 4]| SeqNo::new(u32::from_be_bytes(*bytes));
    match numbers {
        [expected] => Ok(Some(SeqUpdate::to(number(expected)))),
        [expected, start, end] => {
            let (expected, start, end) = (number(expected), number(start), number(end));
            if !start.precedes(end) {
                return Err(DecodeError::Void { start, end, offset });
            }
            Ok(Some(SeqUpdate {
                expected,
                void_start: start,
                void_end: end,
            }))
        }
        _ => Ok(None),
    }
}

/// The blocks of a SACK option, or `None` if its length does not match one to four blocks.
fn sack_blocks(value: &[u8], offset: usize) -> Result<Option<SackBlocks>, DecodeError> {
    let (blocks, remainder) = value.as_chunks::<SACK_BLOCK>();
    if blocks.is_empty() || !remainder.is_empty() {
        return Ok(None);
    }
    let mut found = SackBlocks::EMPTY;
    for &[s0, s1, s2, s3, e0, e1, e2, e3] in blocks {
        let start = SeqNo::new(u32::from_be_bytes([s0, s1, s2, s3]));
        let end = SeqNo::new(u32::from_be_bytes([e0, e1, e2, e3]));
        if !start.precedes(end) {
            return Err(DecodeError::SackBlock { start, end, offset });
        }
        if !found.push(SackBlock { start, end }) {
            return Ok(None);
        }
    }
    Ok(Some(found))
}
