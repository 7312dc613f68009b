//! Feedback to the sender from the receiver's half of a controller and from the receiver itself.

use comity_congestion::{Report, Tag};
use comity_units::{Rate, Span};

use super::super::cursor::{Reader, Sink, Writer};
use super::super::limits::{MAX_DRIFT_PPB, MAX_TIME_US};
use super::super::varint::{self, from_zigzag, zigzag};
use super::super::{DecodeError, EncodeError, Problem};
use super::types::{FEEDBACK, RECEIVER_REPORT, TAG};

const WAVE: u8 = 1;
const ROUND: u8 = 2;
const NUMBERED: u8 = 3;
const LOSS_EVENTS: u8 = 2;
const COUNT: u8 = 3;

/// The bits of 1.0. The bits of floating-point numbers from 0 on are in the order of the numbers,
/// so the numbers from 0 to 1 are exactly those whose bits are at most this value.
const ONE: u64 = 1.0_f64.to_bits();

/// ```text
/// 0x0b  1, wave : u16, segments : u16, position : u16 (1 to segments)
/// 0x0b  2, round : u32, round-trip time : varint [us]
/// 0x0b  3, number : u32, round-trip time : varint [us] (0 while unknown)
/// ```
pub(super) fn write_tag<S: Sink>(tag: &Tag, out: &mut Writer<'_, S>) -> Result<(), EncodeError> {
    out.u8(TAG);
    match *tag {
        // A packet without a tag has no Tag frame.
        Tag::None => return Err(out.error("kind", Problem::Unknown { value: 0 })),
        Tag::Wave {
            wave,
            segments,
            position,
        } => {
            out.u8(WAVE);
            out.u16(wave);
            out.check("segments", u64::from(segments), SEGMENTS)?;
            out.u16(segments);
            out.check("position", u64::from(position), 1..=u64::from(segments))?;
            out.u16(position);
        }
        Tag::Numbered { number, rtt } => {
            out.u8(NUMBERED);
            out.u32(number);
            out.varint_in("round-trip time", rtt.as_micros(), 0..=MAX_TIME_US)?;
        }
        Tag::Round { round, rtt } => {
            out.u8(ROUND);
            out.u32(round);
            out.varint_in("round-trip time", rtt.as_micros(), 0..=MAX_TIME_US)?;
        }
    }
    Ok(())
}

const SEGMENTS: core::ops::RangeInclusive<u64> = 1..=u16::MAX as u64;

pub(super) fn read_tag(input: &mut Reader<'_>) -> Result<Tag, DecodeError> {
    let start = input.offset();
    Ok(match input.u8("kind")? {
        WAVE => {
            let wave = input.u16("wave")?;
            let segments = input.u16_in("segments", SEGMENTS)?;
            let position = input.u16_in("position", 1..=u64::from(segments))?;
            Tag::Wave {
                wave,
                segments,
                position,
            }
        }
        ROUND => Tag::Round {
            round: input.u32("round")?,
            rtt: Span::from_micros(input.varint_in("round-trip time", 0..=MAX_TIME_US)?),
        },
        NUMBERED => Tag::Numbered {
            number: input.u32("number")?,
            rtt: Span::from_micros(input.varint_in("round-trip time", 0..=MAX_TIME_US)?),
        },
        kind => {
            let value = u64::from(kind);
            return Err(input.error_at(start, "kind", Problem::Unknown { value }));
        }
    })
}

/// ```text
/// 0x0c  1, level : u16 (at least 1)
/// 0x0c  2, loss event rate : binary64 of IEEE 754 (0 to 1), receive rate : varint [bit/s]
/// 0x0c  3, round : u32, packets : u32
/// ```
pub(super) fn write_report<S: Sink>(
    report: &Report,
    out: &mut Writer<'_, S>,
) -> Result<(), EncodeError> {
    out.u8(FEEDBACK);
    match *report {
        // A meter without a report has no Feedback frame.
        Report::None => return Err(out.error("kind", Problem::Unknown { value: 0 })),
        Report::Wave { level } => {
            out.u8(WAVE);
            out.check("level", u64::from(level), LEVELS)?;
            out.u16(level);
        }
        Report::LossEvents { rate, received } => {
            out.u8(LOSS_EVENTS);
            // Turns -0 into 0.
            let bits = (rate + 0.0).to_bits();
            out.check("loss event rate (its bits)", bits, 0..=ONE)?;
            out.u64(bits);
            out.varint("receive rate", received.as_bps())?;
        }
        Report::Count { round, packets } => {
            out.u8(COUNT);
            out.u32(round);
            out.u32(packets);
        }
    }
    Ok(())
}

const LEVELS: core::ops::RangeInclusive<u64> = 1..=u16::MAX as u64;

pub(super) fn read_report(input: &mut Reader<'_>) -> Result<Report, DecodeError> {
    let start = input.offset();
    Ok(match input.u8("kind")? {
        WAVE => Report::Wave {
            level: input.u16_in("level", LEVELS)?,
        },
        LOSS_EVENTS => Report::LossEvents {
            rate: f64::from_bits(input.u64_in("loss event rate (its bits)", 0..=ONE)?),
            received: Rate::from_bps(input.varint("receive rate")?),
        },
        COUNT => Report::Count {
            round: input.u32("round")?,
            packets: input.u32("packets")?,
        },
        kind => {
            let value = u64::from(kind);
            return Err(input.error_at(start, "kind", Problem::Unknown { value }));
        }
    })
}

/// The receiver's statistics. All counters start at the beginning of the connection, so a lost
/// report does no harm.
///
/// ```text
/// 0x0d  complete, on time, late, with gaps, bytes, packets, duplicates : varint each,
///       one-way delay latest, least : zig-zag varint [us], jitter : varint [us],
///       buffered : varint [bytes], clock drift : zig-zag varint [parts per billion]
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ReceiverReport {
    /// Sections that arrived completely.
    pub complete: u64,
    /// Sections that arrived completely by their deadline.
    pub on_time: u64,
    /// Sections that arrived completely after their deadline.
    pub late: u64,
    /// Sections that will not arrive completely, delivered as gaps or not.
    pub with_gaps: u64,
    /// Section bytes received, without duplicates.
    pub bytes: u64,
    /// Packets received, without duplicates.
    pub packets: u64,
    /// Duplicate packets, and packets without new data.
    pub duplicates: u64,
    /// The one-way delay of the latest packet in microseconds, up to a constant of the receiver's
    /// choice. The clocks have different epochs, so only differences are measured. This
    /// implementation adds half of the minimum round trip to the packet's delay beyond the fastest
    /// recent one.
    pub one_way_latest_us: i64,
    /// The minimum one-way delay in the recent past, with the same constant.
    pub one_way_least_us: i64,
    /// The variation of the one-way delay between consecutive packets (RFC 3550, section 6.4.1).
    pub jitter: Span,
    /// Section bytes in the receiver's buffer, which wait for the rest of their section or for
    /// their playout.
    pub buffered: u64,
    /// How much faster the sender's clock runs than the receiver's, in parts per billion.
    pub drift_ppb: i64,
}

const MAX_DELAY: i64 = MAX_TIME_US as i64;

impl ReceiverReport {
    pub(super) fn write<S: Sink>(&self, out: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        out.u8(RECEIVER_REPORT);
        out.varint("complete", self.complete)?;
        out.varint("on time", self.on_time)?;
        out.varint("late", self.late)?;
        out.varint("with gaps", self.with_gaps)?;
        out.varint("bytes", self.bytes)?;
        out.varint("packets", self.packets)?;
        out.varint("duplicates", self.duplicates)?;
        let delays = 0..=zigzag(MAX_DELAY);
        let latest = zigzag(self.one_way_latest_us);
        out.varint_in("one-way delay latest", latest, delays.clone())?;
        out.varint_in("one-way delay least", zigzag(self.one_way_least_us), delays)?;
        out.varint_in("jitter", self.jitter.as_micros(), 0..=MAX_TIME_US)?;
        out.varint("buffered", self.buffered)?;
        let drift = zigzag(self.drift_ppb);
        out.varint_in("clock drift", drift, 0..=zigzag(MAX_DRIFT_PPB))
    }

    pub(super) fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let delays = 0..=zigzag(MAX_DELAY);
        Ok(Self {
            complete: input.varint("complete")?,
            on_time: input.varint("on time")?,
            late: input.varint("late")?,
            with_gaps: input.varint("with gaps")?,
            bytes: input.varint("bytes")?,
            packets: input.varint("packets")?,
            duplicates: input.varint("duplicates")?,
            one_way_latest_us: from_zigzag(
                input.varint_in("one-way delay latest", delays.clone())?,
            ),
            one_way_least_us: from_zigzag(input.varint_in("one-way delay least", delays)?),
            jitter: Span::from_micros(input.varint_in("jitter", 0..=MAX_TIME_US)?),
            buffered: input.varint("buffered")?,
            drift_ppb: from_zigzag(input.varint_in("clock drift", 0..=zigzag(MAX_DRIFT_PPB))?),
        })
    }
}

// The values from 0 to zigzag(n) = 2n encode exactly the numbers from -n to n.
const _: () = assert!(zigzag(MAX_DELAY) <= varint::MAX);
