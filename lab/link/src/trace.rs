//! Recorded rates and their parsers.
//!
//! This module reads two text forms. A **mahimahi** trace has one whole number a line, the
//! millisecond of an opportunity to deliver 1,504 bytes; the whole trace repeats for ever. A
//! **step** trace has a time and a value a line, `0s, 1.5Mbps`, with units, and `#` starts a
//! comment.
//!
//! Differs from mahimahi's own reader in: 1. white space around a number is allowed. 2. traces
//! beyond [`DeliveryTrace::MAX_OPPORTUNITIES`], [`DeliveryTrace::MAX_PER_MILLISECOND`] or 2³² ms
//! are refused.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use comity_units::{DataSize, ParseError, Rate, Span, Time};

/// The delivery opportunities of a link, as recorded by mahimahi (Netravali et al. 2015) and
/// similar tools.
///
/// Each opportunity delivers up to [`DeliveryTrace::OPPORTUNITY`] bytes at one instant. Waiting
/// packets share it: bytes that one packet leaves carry the beginning of the next. A packet departs
/// with the opportunity that covers its last byte. An unused opportunity is lost, even for a packet
/// offered at that very instant. After the last line the trace repeats, shifted by its period,
/// which is the time of the last line.
///
/// Cheap to clone: clones share the record.
#[derive(Clone, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Milliseconds, in order, the last one above zero.
    milliseconds: Arc<[u32]>,
}

impl DeliveryTrace {
    /// The bytes of one opportunity: an Ethernet payload and the 4 bytes of a TUN header.
    pub const OPPORTUNITY: u32 = 1_504;
    /// The maximum number of opportunities in a trace.
    pub const MAX_OPPORTUNITIES: usize = 1 << 24;
    /// The maximum number of opportunities in one millisecond, 120 Gb/s.
    pub const MAX_PER_MILLISECOND: usize = 10_000;

    /// Creates a trace of opportunities at these milliseconds.
    ///
    /// # Errors
    /// If there are none, if they decrease, if the last is at zero, or if they exceed the bounds
    /// above. The error counts opportunities as lines, from 1.
    pub fn new(milliseconds: impl IntoIterator<Item = u32>) -> Result<Self, TraceError> {
        let mut trace = Builder::default();
        for millisecond in milliseconds {
            trace.push(millisecond).map_err(|kind| TraceError {
                line: trace.milliseconds.len() + 1,
                text: millisecond.to_string(),
                kind,
            })?;
        }
        trace.build()
    }

    /// The number of opportunities before the trace repeats.
    pub fn opportunities(&self) -> usize {
        self.milliseconds.len()
    }

    /// After how long the trace repeats.
    pub fn period(&self) -> Span {
        Span::from_millis(self.milliseconds.last().map_or(1, |&last| u64::from(last)))
    }

    /// The average rate over one period.
    pub fn mean_rate(&self) -> Rate {
        let bytes = self.opportunities() as u64 * u64::from(Self::OPPORTUNITY);
        Rate::of(DataSize::new(bytes), self.period())
    }

    /// The number of opportunities up to `time`, that instant included.
    pub(crate) fn passed_by(&self, time: Time) -> u64 {
        let (nanos, period) = (time.as_nanos(), self.period().as_nanos());
        let (repetition, offset) = (nanos / period, nanos % period);
        let within = self
            .milliseconds
            .partition_point(|&ms| u64::from(ms) * NANOS_PER_MILLISECOND <= offset);
        // At most 10⁴ opportunities per millisecond of a clock of 1.9·10¹³ ms: no overflow.
        repetition * self.milliseconds.len() as u64 + within as u64
    }

    /// The time of the opportunity with this number, counted over all repetitions.
    pub(crate) fn time_of(&self, number: u64) -> Time {
        let count = self.milliseconds.len() as u64;
        let (repetition, index) = (number / count, number % count);
        let within = self
            .milliseconds
            .get(index as usize)
            .map_or(0, |&ms| u64::from(ms));
        let before = repetition.saturating_mul(self.period().as_nanos());
        Time::from_nanos(before.saturating_add(within * NANOS_PER_MILLISECOND))
    }
}

impl fmt::Debug for DeliveryTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} opportunities in {}",
            self.opportunities(),
            self.period()
        )
    }
}

const NANOS_PER_MILLISECOND: u64 = 1_000_000;

/// The maximum number of steps in a step trace.
pub const MAX_STEPS: usize = 1 << 20;

/// Why a trace is invalid: the line, its text, and the expected form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    line: usize,
    text: String,
    kind: TraceErrorKind,
}

/// The fault of a line in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceErrorKind {
    /// A mahimahi line is not a whole number below 2³².
    NoMillisecond,
    /// The millisecond is before the one of the line above.
    Decreasing {
        /// The millisecond of the line above.
        previous: u32,
    },
    /// More opportunities in a millisecond than [`DeliveryTrace::MAX_PER_MILLISECOND`].
    TooDense,
    /// More lines than [`DeliveryTrace::MAX_OPPORTUNITIES`] or [`MAX_STEPS`].
    TooLong {
        /// The bound.
        most: usize,
    },
    /// The trace ends without any opportunity or step.
    Empty,
    /// The last opportunity is at zero, so the period would be zero.
    NoPeriod,
    /// A step is not a time, a comma and a value.
    NoStep,
    /// The time of a step cannot be read.
    BadTime(ParseError),
    /// The value of a step cannot be read.
    BadValue(ParseError),
    /// The time of a step is not after the one of the step above.
    NotAfter {
        /// The time of the step above.
        previous: Time,
    },
}

impl TraceError {
    /// The line, from 1; for a trace that ends too early, the line after the last.
    pub const fn line(&self) -> usize {
        self.line
    }

    /// The text of the line, shortened.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The fault.
    pub const fn kind(&self) -> TraceErrorKind {
        self.kind
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {:?}: ", self.line, self.text)?;
        match self.kind {
            TraceErrorKind::NoMillisecond => f.write_str(
                "expected the millisecond of a delivery, a whole number below 4294967296",
            ),
            TraceErrorKind::Decreasing { previous } => {
                write!(
                    f,
                    "expected a millisecond not before {previous}, that of the line above"
                )
            }
            TraceErrorKind::TooDense => write!(
                f,
                "expected at most {} deliveries in one millisecond",
                DeliveryTrace::MAX_PER_MILLISECOND
            ),
            TraceErrorKind::TooLong { most } => write!(f, "expected at most {most} lines"),
            TraceErrorKind::Empty => f.write_str("expected at least one line, the trace is empty"),
            TraceErrorKind::NoPeriod => f.write_str(
                "expected the last delivery after millisecond 0, since the trace repeats",
            ),
            TraceErrorKind::NoStep => {
                f.write_str("expected a time, a comma and a value, such as \"1.5s, 800kbps\"")
            }
            TraceErrorKind::BadTime(error) | TraceErrorKind::BadValue(error) => {
                fmt::Display::fmt(&error, f)
            }
            TraceErrorKind::NotAfter { previous } => {
                write!(
                    f,
                    "expected a time after {previous}, that of the step above"
                )
            }
        }
    }
}

impl core::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.kind {
            TraceErrorKind::BadTime(error) | TraceErrorKind::BadValue(error) => Some(error),
            _ => None,
        }
    }
}

/// Reads a mahimahi trace.
///
/// # Errors
/// The first line that is not a whole number, that decreases or that exceeds a bound of
/// [`DeliveryTrace`]; a trace that is empty or ends at millisecond zero. Blank lines are refused,
/// as in mahimahi.
///
/// ```
/// use comity_link::parse_mahimahi;
/// let trace = parse_mahimahi("0\n5\n5\n10\n")?;
/// assert_eq!(trace.opportunities(), 4);
/// assert_eq!(parse_mahimahi("5\n3\n").unwrap_err().line(), 2);
/// # Ok::<(), comity_link::TraceError>(())
/// ```
pub fn parse_mahimahi(text: &str) -> Result<DeliveryTrace, TraceError> {
    let mut trace = Builder::default();
    for (index, line) in text.lines().enumerate() {
        let digits = line.trim();
        let number = if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            digits.parse().map_err(|_| TraceErrorKind::NoMillisecond)
        } else {
            Err(TraceErrorKind::NoMillisecond)
        };
        number
            .and_then(|millisecond| trace.push(millisecond))
            .map_err(|kind| TraceError {
                line: index + 1,
                text: excerpt(line),
                kind,
            })?;
    }
    trace.build()
}

/// Parses a trace of rates, `time, rate` a line, for
/// [`RateProfile::Steps`](crate::RateProfile::Steps).
///
/// Times count from the start of the run and strictly increase. Text after `#` is a comment; blank
/// lines are skipped.
///
/// # Errors
/// The first line that is not a step, and a trace without steps or with more than [`MAX_STEPS`].
///
/// ```
/// use comity_link::parse_steps;
/// use comity_units::{Rate, Time};
/// let steps = parse_steps("# LTE, morning\n0s, 4Mbps\n20s, 0bps  # tunnel\n22.5s, 1.5Mbps\n")?;
/// assert_eq!(steps[2], (Time::from_millis(22_500), Rate::from_kbps(1_500)));
/// # Ok::<(), comity_link::TraceError>(())
/// ```
pub fn parse_steps(text: &str) -> Result<Vec<(Time, Rate)>, TraceError> {
    parse_timed(text)
}

/// Parses a trace of delays, `time, delay` a line, for
/// [`DelayProfile::Steps`](crate::DelayProfile::Steps), in the form of [`parse_steps`].
///
/// # Errors
/// As [`parse_steps`].
pub fn parse_delay_steps(text: &str) -> Result<Vec<(Time, Span)>, TraceError> {
    parse_timed(text)
}

fn parse_timed<V: FromStr<Err = ParseError>>(text: &str) -> Result<Vec<(Time, V)>, TraceError> {
    let mut steps: Vec<(Time, V)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let step = line.split_once('#').map_or(line, |(step, _)| step).trim();
        if step.is_empty() {
            continue;
        }
        let read = || {
            let (time, value) = step.split_once(',').ok_or(TraceErrorKind::NoStep)?;
            let time: Span = time.parse().map_err(TraceErrorKind::BadTime)?;
            let value = value.parse().map_err(TraceErrorKind::BadValue)?;
            let time = Time::ZERO + time;
            match steps.last() {
                Some(&(previous, _)) if time <= previous => {
                    Err(TraceErrorKind::NotAfter { previous })
                }
                _ if steps.len() >= MAX_STEPS => Err(TraceErrorKind::TooLong { most: MAX_STEPS }),
                _ => Ok((time, value)),
            }
        };
        let step = read().map_err(|kind| TraceError {
            line: index + 1,
            text: excerpt(line),
            kind,
        })?;
        steps.push(step);
    }
    if steps.is_empty() {
        return Err(at_end(text.lines().count(), TraceErrorKind::Empty));
    }
    Ok(steps)
}

/// The opportunities read so far, all of them in order and within the bounds.
#[derive(Default)]
struct Builder {
    milliseconds: Vec<u32>,
}

impl Builder {
    fn push(&mut self, millisecond: u32) -> Result<(), TraceErrorKind> {
        let count = self.milliseconds.len();
        if let Some(&previous) = self.milliseconds.last()
            && millisecond < previous
        {
            return Err(TraceErrorKind::Decreasing { previous });
        }
        if count >= DeliveryTrace::MAX_OPPORTUNITIES {
            return Err(TraceErrorKind::TooLong {
                most: DeliveryTrace::MAX_OPPORTUNITIES,
            });
        }
        let first_of_this = count
            .checked_sub(DeliveryTrace::MAX_PER_MILLISECOND)
            .and_then(|index| self.milliseconds.get(index));
        if first_of_this == Some(&millisecond) {
            return Err(TraceErrorKind::TooDense);
        }
        self.milliseconds.push(millisecond);
        Ok(())
    }

    fn build(self) -> Result<DeliveryTrace, TraceError> {
        let lines = self.milliseconds.len();
        match self.milliseconds.last() {
            None => Err(at_end(lines, TraceErrorKind::Empty)),
            Some(0) => Err(at_end(lines, TraceErrorKind::NoPeriod)),
            Some(_) => Ok(DeliveryTrace {
                milliseconds: self.milliseconds.into(),
            }),
        }
    }
}

const fn at_end(lines: usize, kind: TraceErrorKind) -> TraceError {
    TraceError {
        line: lines + 1,
        text: String::new(),
        kind,
    }
}

/// The beginning of a line, enough to identify it.
fn excerpt(line: &str) -> String {
    const MOST: usize = 60;
    let mut text: String = line.chars().take(MOST).collect();
    if text.len() < line.len() {
        text.push_str("...");
    }
    text
}
