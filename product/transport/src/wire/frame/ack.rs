//! Which packets arrived.

use core::fmt;
use core::iter::FusedIterator;
use core::slice;

use comity_units::{PacketNumber, Span};

use super::super::cursor::{Reader, Sink, Writer, measured};
use super::super::kinds::FrameKind;
use super::super::limits::{MAX_ACK_RANGES, MAX_TIME_US};
use super::super::{DecodeError, EncodeError, Part, Problem, Stamp, varint};
use super::types::{ACK, ACK_ECN, PROVED_ACK, PROVED_ACK_LAST};

/// Consecutive packets that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRange {
    /// The lowest number.
    pub first: PacketNumber,
    /// The highest number, not below `first`.
    pub last: PacketNumber,
}

/// Why ranges cannot be acknowledged in one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRangesError {
    /// The list is empty.
    Empty,
    /// The range at this index is not below the one before it with a gap between them, or its ends
    /// are swapped.
    NotDescending {
        /// Its index in the list.
        index: usize,
        /// The range.
        range: AckRange,
    },
    /// There are more than [`MAX_ACK_RANGES`].
    TooMany {
        /// How many.
        count: usize,
    },
}

impl fmt::Display for AckRangesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("ranges to acknowledge: found none, expected at least one"),
            Self::NotDescending { index, range } => write!(
                f,
                "ranges to acknowledge, number {index}: found {} to {}, expected a range below the one \
                 before it and a gap between them",
                range.first, range.last
            ),
            Self::TooMany { count } => write!(
                f,
                "ranges to acknowledge: found {count}, expected at most {MAX_ACK_RANGES}"
            ),
        }
    }
}

impl core::error::Error for AckRangesError {}

/// Ranges of packet numbers from the newest to the oldest, with gaps between them; at least one,
/// and at most [`MAX_ACK_RANGES`].
#[derive(Clone, Copy)]
pub struct AckRanges<'a>(Ranges<'a>);

#[derive(Clone, Copy)]
enum Ranges<'a> {
    List(&'a [AckRange]),
    Wire {
        largest: u64,
        count: usize,
        /// The first range and the pairs after it, already validated.
        bytes: &'a [u8],
    },
}

impl<'a> AckRanges<'a> {
    /// Ranges to be written.
    ///
    /// # Errors
    /// [`AckRangesError`] for ranges that no ACK frame can express.
    pub fn new(ranges: &'a [AckRange]) -> Result<Self, AckRangesError> {
        if ranges.is_empty() {
            return Err(AckRangesError::Empty);
        }
        if ranges.len() > MAX_ACK_RANGES {
            let count = ranges.len();
            return Err(AckRangesError::TooMany { count });
        }
        let mut below = u64::MAX;
        for (index, &range) in ranges.iter().enumerate() {
            if range.first > range.last || range.last.get() >= below {
                return Err(AckRangesError::NotDescending { index, range });
            }
            below = range.first.get().saturating_sub(1);
        }
        Ok(Self(Ranges::List(ranges)))
    }

    /// The number of ranges.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "they are never empty")]
    pub const fn len(&self) -> usize {
        match self.0 {
            Ranges::List(ranges) => ranges.len(),
            Ranges::Wire { count, .. } => count,
        }
    }

    /// The largest number.
    #[must_use]
    pub fn largest(&self) -> PacketNumber {
        match self.0 {
            Ranges::List(ranges) => ranges
                .first()
                .map_or(PacketNumber::ZERO, |range| range.last),
            Ranges::Wire { largest, .. } => PacketNumber::new(largest),
        }
    }

    /// Only the newest ranges, at most `count` and at least one.
    #[must_use]
    pub fn newest(self, count: usize) -> Self {
        let keep = count.clamp(1, self.len());
        Self(match self.0 {
            Ranges::List(ranges) => Ranges::List(ranges.get(..keep).unwrap_or(ranges)),
            Ranges::Wire { largest, bytes, .. } => Ranges::Wire {
                largest,
                count: keep,
                bytes,
            },
        })
    }

    /// The ranges, from the newest to the oldest.
    #[must_use]
    pub fn iter(&self) -> AckRangesIter<'a> {
        AckRangesIter(match self.0 {
            Ranges::List(ranges) => Remaining::List(ranges.iter()),
            Ranges::Wire {
                largest,
                count,
                bytes,
            } => Remaining::Wire {
                above: None,
                largest,
                count,
                bytes,
            },
        })
    }
}

impl fmt::Debug for AckRanges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for AckRanges<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for AckRanges<'_> {}

impl<'a> IntoIterator for AckRanges<'a> {
    type Item = AckRange;
    type IntoIter = AckRangesIter<'a>;

    fn into_iter(self) -> AckRangesIter<'a> {
        self.iter()
    }
}

/// Iterates over [`AckRanges`].
#[derive(Clone, Debug)]
pub struct AckRangesIter<'a>(Remaining<'a>);

#[derive(Clone, Debug)]
enum Remaining<'a> {
    List(slice::Iter<'a, AckRange>),
    Wire {
        /// The lowest number of the previous range, if one exists.
        above: Option<u64>,
        largest: u64,
        count: usize,
        bytes: &'a [u8],
    },
}

impl Iterator for AckRangesIter<'_> {
    type Item = AckRange;

    fn next(&mut self) -> Option<AckRange> {
        match &mut self.0 {
            Remaining::List(ranges) => ranges.next().copied(),
            Remaining::Wire {
                above,
                largest,
                count,
                bytes,
            } => {
                *count = count.checked_sub(1)?;
                let last = match *above {
                    None => *largest,
                    Some(above) => above.checked_sub(take(bytes)?)?.checked_sub(2)?,
                };
                let first = last.checked_sub(take(bytes)?)?;
                *above = Some(first);
                Some(AckRange {
                    first: PacketNumber::new(first),
                    last: PacketNumber::new(last),
                })
            }
        }
    }
}

impl FusedIterator for AckRangesIter<'_> {}

/// Reads a varint from the front.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (value, size) = varint::decode(bytes)?;
    *bytes = bytes.get(size..)?;
    Some(value)
}

/// How many packets arrived with each ECN mark since the connection began (RFC 3168, RFC 9000,
/// section 19.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EcnCounts {
    /// With ECT(0).
    pub ect0: u64,
    /// With ECT(1).
    pub ect1: u64,
    /// With CE: congestion experienced.
    pub ce: u64,
}

/// Which packets arrived.
///
/// ```text
/// 0x02  largest : varint, delay : varint [us], arrival : u32 [us], count : varint,
///       range : varint, count times (gap : varint, range : varint)
/// 0x03  the same, then ect0 : varint, ect1 : varint, ce : varint
/// 0x30 + 2 · proof        as 0x02
/// 0x30 + 2 · proof + 1    as 0x03
/// ```
///
/// The first range is `largest - range` to `largest`. Each further range is `s - gap - 2 - range`
/// to `s - gap - 2`, where `s` is the lowest number of the range before.
///
/// Source: RFC 9000, section 19.3. Differs from the source in: 1. the delay is in microseconds,
/// without an exponent; 2. the frame has an arrival; 3. at most [`MAX_ACK_RANGES`] ranges; 4. the
/// type may hold a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// The packets.
    pub ranges: AckRanges<'a>,
    /// The delay of the acknowledgement since the largest packet arrived.
    pub delay: Span,
    /// When the largest arrived, on the clock of the acknowledging end: for one-way delays.
    pub arrival: Stamp,
    /// The ECN counts, if the endpoint can read the marks.
    pub ecn: Option<EcnCounts>,
    /// The exclusive or of the tokens of the packets, at most [`PROOF_MASK`]; `None` where the ends
    /// have not agreed on proofs.
    pub proof: Option<u8>,
}

/// The bits of a token and of a proof.
pub const PROOF_MASK: u8 = 0b111;

const _: () = assert!(PROVED_ACK + (PROOF_MASK << 1 | 1) == PROVED_ACK_LAST);
const _: () = assert!(ACK | 1 == ACK_ECN && ACK & 1 == 0);

impl<'a> Ack<'a> {
    /// This ACK without its oldest ranges, so that it fits into `room` bytes; `None` if not even
    /// the newest range fits.
    #[must_use]
    pub fn fitting(self, room: usize) -> Option<Self> {
        let size = |count: usize| {
            let ranges = self.ranges.newest(count);
            Self { ranges, ..self }.size()
        };
        let mut fits = self.ranges.len();
        if size(fits) > room {
            // `fits` ranges are too many; `low` ranges fit, or `low` is zero.
            let mut low = 0;
            while fits - low > 1 {
                let middle = low + (fits - low) / 2;
                if size(middle) > room {
                    fits = middle;
                } else {
                    low = middle;
                }
            }
            fits = low;
        }
        (fits > 0).then(|| Self {
            ranges: self.ranges.newest(fits),
            ..self
        })
    }

    fn size(&self) -> usize {
        measured(|count| self.write(&mut Writer::new(count, Part::Frame(FrameKind::Ack))))
    }

    pub(super) fn write<S: Sink>(&self, out: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        let has_ecn = u8::from(self.ecn.is_some());
        out.u8(match self.proof {
            None => ACK | has_ecn,
            Some(proof) => {
                out.check("proof", proof.into(), 0..=PROOF_MASK.into())?;
                PROVED_ACK | proof << 1 | has_ecn
            }
        });
        let largest = self.ranges.largest().get();
        out.varint("largest", largest)?;
        out.varint_in("delay", self.delay.as_micros(), 0..=MAX_TIME_US)?;
        out.u32(self.arrival.as_micros());
        out.varint("range count", self.ranges.len() as u64 - 1)?;
        let mut above: Option<u64> = None;
        for range in self.ranges {
            let (first, last) = (range.first.get(), range.last.get());
            if let Some(above) = above {
                out.varint("gap", above.saturating_sub(last).saturating_sub(2))?;
            }
            out.varint("range", last.saturating_sub(first))?;
            above = Some(first);
        }
        if let Some(ecn) = self.ecn {
            out.varint("ect0", ecn.ect0)?;
            out.varint("ect1", ecn.ect1)?;
            out.varint("ce", ecn.ce)?;
        }
        Ok(())
    }

    /// Reads the fields after the type `kind`.
    pub(super) fn read(input: &mut Reader<'a>, kind: u8) -> Result<Self, DecodeError> {
        let proof = (kind >= PROVED_ACK).then_some(kind >> 1 & PROOF_MASK);
        let with_ecn = kind & 1 != 0;
        let largest = input.varint("largest")?;
        let delay = Span::from_micros(input.varint_in("delay", 0..=MAX_TIME_US)?);
        let arrival = Stamp::from_micros(input.u32("arrival")?);
        let count_offset = input.offset();
        let pairs = input.varint_in("range count", 0..=MAX_ACK_RANGES as u64 - 1)?;
        let bytes = input.rest();
        let mut lowest = largest - input.varint_in("range", 0..=largest)?;
        for pair in 0..pairs {
            // Below 2, no further range fits.
            let Some(most) = lowest.checked_sub(2) else {
                let problem = Problem::OutOfRange {
                    value: pairs,
                    least: 0,
                    most: pair,
                };
                return Err(input.error_at(count_offset, "range count", problem));
            };
            let last = most - input.varint_in("gap", 0..=most)?;
            lowest = last - input.varint_in("range", 0..=last)?;
        }
        let ecn = if with_ecn {
            Some(EcnCounts {
                ect0: input.varint("ect0")?,
                ect1: input.varint("ect1")?,
                ce: input.varint("ce")?,
            })
        } else {
            None
        };
        Ok(Self {
            ranges: AckRanges(Ranges::Wire {
                largest,
                count: pairs as usize + 1,
                bytes,
            }),
            delay,
            arrival,
            ecn,
            proof,
        })
    }
}
