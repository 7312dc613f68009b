//! Whole numbers in 1, 2, 4 or 8 bytes.
//!
//! The two high bits of the first byte determine the number of bytes; the rest is the number,
//! big-endian:
//!
//! ```text
//! 00 +  6 bits   0 to 63
//! 01 + 14 bits   0 to 16,383
//! 10 + 30 bits   0 to 1,073,741,823
//! 11 + 62 bits   0 to 4,611,686,018,427,387,903
//! ```
//!
//! A writer uses the shortest form; a reader accepts any. Source: RFC 9000, section 16.

use alloc::vec::Vec;
use core::fmt;

/// The largest value: 2^62 - 1.
pub const MAX: u64 = (1 << 62) - 1;

/// A number above [`MAX`], which has no encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The number.
    pub value: u64,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "varint: found {}, expected at most {MAX}", self.value)
    }
}

impl core::error::Error for TooLarge {}

/// The size of the shortest form of `value`; 8 also above [`MAX`].
#[must_use]
pub const fn size(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Appends the shortest form of `value`.
///
/// # Errors
/// [`TooLarge`] for a value above [`MAX`]; nothing is appended then.
pub fn encode(value: u64, out: &mut Vec<u8>) -> Result<(), TooLarge> {
    if value > MAX {
        return Err(TooLarge { value });
    }
    let (bytes, size) = aligned(value);
    out.extend_from_slice(bytes.get(..size).unwrap_or_default());
    Ok(())
}

/// The shortest form of `value` at the front of eight bytes, and its size. The caller has already
/// refused values above [`MAX`].
pub(super) const fn aligned(value: u64) -> ([u8; 8], usize) {
    let size = size(value);
    let marked = value | (size.trailing_zeros() as u64) << (8 * size - 2);
    ((marked << (64 - 8 * size)).to_be_bytes(), size)
}

/// The size of a number that starts with the byte `first`.
#[must_use]
pub const fn size_from_first(first: u8) -> usize {
    1 << (first >> 6)
}

/// Reads the number at the start of `bytes`, and its size; `None` if it is truncated.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    Some(match size_from_first(first) {
        1 => (u64::from(first), 1),
        2 => (
            u64::from(u16::from_be_bytes(*bytes.first_chunk()?) & 0x3fff),
            2,
        ),
        4 => (
            u64::from(u32::from_be_bytes(*bytes.first_chunk()?) & 0x3fff_ffff),
            4,
        ),
        _ => (u64::from_be_bytes(*bytes.first_chunk()?) & MAX, 8),
    })
}

/// A signed number as an unsigned one: 0, -1, 1, -2, 2 become 0, 1, 2, 3, 4, so that numbers near
/// zero stay short.
#[must_use]
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[must_use]
pub const fn from_zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn the_numbers_of_rfc_9000_appendix_a_1() {
        for (bytes, value) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(decode(bytes), Some((value, bytes.len())));
            let mut out = vec![0xaa];
            encode(value, &mut out).unwrap();
            assert_eq!(out[1..], *bytes);
            assert_eq!(size(value), bytes.len());
            for end in 0..bytes.len() {
                assert_eq!(decode(&bytes[..end]), None, "{end} bytes of {value}");
            }
        }
        // A longer form than needed is read as well.
        assert_eq!(decode(&[0x40, 0x25, 0xff]), Some((37, 2)));
    }

    #[test]
    fn sizes_change_where_the_bits_end() {
        for (value, expected) in [
            (0, 1),
            (63, 1),
            (64, 2),
            (16_383, 2),
            (16_384, 4),
            (1_073_741_823, 4),
            (1_073_741_824, 8),
            (MAX, 8),
        ] {
            let mut out = vec![];
            encode(value, &mut out).unwrap();
            assert_eq!((out.len(), size(value)), (expected, expected), "{value}");
            assert_eq!(decode(&out), Some((value, expected)));
        }
        let mut out = vec![];
        let refused = encode(MAX + 1, &mut out).unwrap_err();
        assert_eq!(
            alloc::format!("{refused}"),
            "varint: found 4611686018427387904, expected at most 4611686018427387903"
        );
        assert!(out.is_empty());
    }

    /// Reads bit by bit, as RFC 9000, section 16, has it.
    fn by_the_bits(bytes: &[u8]) -> Option<(u64, usize)> {
        let first = *bytes.first()?;
        let size = [1, 2, 4, 8][usize::from(first >> 6)];
        if bytes.len() < size {
            return None;
        }
        let bits = bytes[..size]
            .iter()
            .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
        let value = bits
            .skip(2)
            .fold(0, |value, bit| value * 2 + u64::from(bit));
        Some((value, size))
    }

    /// All inputs of up to three bytes: every form of one and of two bytes, and every truncation.
    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn every_short_input_is_read_as_the_bits_say() {
        assert_eq!(decode(&[]), None);
        for input in 0..1_u32 << 24 {
            let bytes = input.to_be_bytes();
            let bytes = match input {
                // The first byte of one and of two.
                0..0x100 => &bytes[3..],
                0x100..0x1_0000 => &bytes[2..],
                _ => &bytes[1..],
            };
            // The third byte is not read, so one value of it is enough.
            if bytes.len() == 3 && bytes[2] != 0xa5 {
                continue;
            }
            assert_eq!(decode(bytes), by_the_bits(bytes), "{bytes:?}");
        }
    }

    /// All values of the three shorter forms' borders, and every value with up to three bits set
    /// or cleared.
    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn values_with_few_bits_survive_and_take_the_shortest_form() {
        let limits = [(1, 1 << 6), (2, 1 << 14), (4, 1 << 30), (8, 1_u64 << 62)];
        let check = |value: u64| {
            let mut out = vec![];
            let encoded = encode(value, &mut out);
            let Some(&(shortest, _)) = limits.iter().find(|(_, limit)| value < *limit) else {
                assert_eq!((encoded, out.len()), (Err(TooLarge { value }), 0));
                return;
            };
            assert_eq!(
                (encoded, out.len(), size(value)),
                (Ok(()), shortest, shortest)
            );
            assert_eq!(size_from_first(out[0]), shortest);
            assert_eq!(by_the_bits(&out), Some((value, shortest)));
            out.extend([0xff; 8]);
            assert_eq!(decode(&out), Some((value, shortest)));
        };
        for value in 0..1 << 17 {
            check(value);
        }
        for a in 0..64 {
            for b in 0..64 {
                for c in 0..64 {
                    let value = 1_u64 << a | 1 << b | 1 << c;
                    for value in [value, !value, value - 1] {
                        check(value);
                        assert_eq!(zigzag(from_zigzag(value)), value);
                        let distance = from_zigzag(value).unsigned_abs();
                        assert_eq!(value, distance * 2 - u64::from(from_zigzag(value) < 0));
                    }
                }
            }
        }
    }

    #[test]
    fn zigzag_keeps_small_numbers_small() {
        for (signed, unsigned) in [
            (0, 0),
            (-1, 1),
            (1, 2),
            (-2, 3),
            (i64::MAX, u64::MAX - 1),
            (i64::MIN, u64::MAX),
        ] {
            assert_eq!(zigzag(signed), unsigned);
            assert_eq!(from_zigzag(unsigned), signed);
        }
    }
}
