//! The parameters that two peers exchange during the handshake.
//!
//! ```text
//! parameters = (id : varint, length : varint, value : length bytes), ...   in ascending order of id
//! ```
//!
//! A number is one varint that fills its value. An absent parameter has its default. Unknown
//! identifiers are skipped for compatibility with later versions, but count towards the limits.
//!
//! | id | parameter | value | default |
//! |---|---|---|---|
//! | 0x01 | latency | microseconds | 120,000 |
//! | 0x02 | reliability | 0 = timeline, 1 = none, 2 = full | 0 |
//! | 0x03 | deliver | 0 = early, 1 = paced | 0 |
//! | 0x04 | largest datagram | bytes, 1,200 to 65,507 | 1,452 |
//! | 0x05 | idle timeout | milliseconds, 0 = never | 5,000 |
//! | 0x06 | initial credit | bytes | 8,388,608 |
//! | 0x07 | open sections | 1 to 65,536 | 1,024 |
//! | 0x08 | largest ACK delay | microseconds, at most 2^24 | 10,000 |
//! | 0x09 | stream name | UTF-8, at most 512 bytes | none |
//! | 0x0a | meter | UTF-8, at most 64 bytes | none |
//! | 0x0b | ECN | 0 = not seen, 1 = seen and counted | 0 |
//! | 0x0c | controller | UTF-8, at most 64 bytes | none |
//! | 0x0d | meter parameters | UTF-8, at most 256 bytes | none |
//! | 0x0e | features | bits of the application | 0 |
//! | 0x0f | proofs | 0 = none, 1 = packets have tokens, and ACKs prove them | 0 |

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use comity_units::Span;

use super::cursor::{Count, Reader, Sink, Writer, within};
use super::limits::{
    DEFAULT_DATAGRAM, MAX_DATAGRAM, MAX_METER_PARAMETERS, MAX_NAME, MAX_OPEN_SECTIONS,
    MAX_PARAMETER_COUNT, MAX_PARAMETERS, MAX_STREAM_NAME, MAX_TIME_US, MIN_INITIAL,
};
use super::{DecodeError, EncodeError, Part, Problem, varint};

/// How long lost bytes are retransmitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reliability {
    /// Until they arrive: deadlines only affect statistics.
    Full,
    /// Never.
    None,
    /// Until the deadline of their section.
    #[default]
    Timeline,
}

/// When a receiver delivers sections to its application.
///
/// The default applies to an application that does not choose. A peer without the parameter
/// delivers early ([`Parameters::default`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deliver {
    /// In order, as soon as they are complete and all earlier ones are settled.
    Early,
    /// At their deadline on the receiver's clock.
    #[default]
    Paced,
}

/// The parameters that an endpoint sends to its peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The span between the source time and the deadline of a section, as requested by the
    /// endpoint. The larger value of both peers applies, as in SRT.
    pub latency: Span,
    /// The reliability of the sections that it sends.
    pub reliability: Reliability,
    /// How it delivers the sections that it receives.
    pub deliver: Deliver,
    /// The largest datagram that it accepts, header and tag included. In bytes.
    pub max_datagram: u16,
    /// How long it keeps the connection without receiving a packet; [`Span::ZERO`] for no limit.
    /// Whole milliseconds.
    pub idle_timeout: Span,
    /// How many section bytes may be in flight to it before its first Credit frame.
    pub initial_credit: u64,
    /// How many open sections it accepts before its first Credit frame.
    pub max_open_sections: u32,
    /// How long it delays an acknowledgement at most.
    pub max_ack_delay: Span,
    /// The application's name for the stream; SRT's `streamid`.
    pub stream_name: Option<String>,
    /// The receiver's half of the endpoint's controller, by its name in the table. The peer runs
    /// it.
    pub meter: Option<String>,
    /// Whether it can read the ECN marks of received packets, and counts them in its ACKs.
    pub ecn: bool,
    /// The name of its controller, for the peer's statistics only.
    pub controller: Option<String>,
    /// The parameters of its controller for the meter: `name=value` with `&` between them.
    pub meter_parameters: Option<String>,
    /// The abilities of its application as a receiver, in bits that the application defines.
    pub features: u64,
    /// Whether it puts tokens into its packets and proves its ACKs. Proofs are used if both ends
    /// set this.
    pub proofs: bool,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            latency: Span::from_millis(120),
            reliability: Reliability::Timeline,
            deliver: Deliver::Early,
            max_datagram: DEFAULT_DATAGRAM,
            idle_timeout: Span::from_secs(5),
            initial_credit: 8 << 20,
            max_open_sections: 1_024,
            max_ack_delay: ACK_DELAY_DEFAULT,
            stream_name: None,
            meter: None,
            ecn: false,
            controller: None,
            meter_parameters: None,
            features: 0,
            proofs: false,
        }
    }
}

/// The default maximum delay of an acknowledgement: 10 ms.
///
/// At video rates an acknowledgement usually leaves earlier, with every few packets. The delay
/// postpones two events by a tenth of the shortest useful latency: the sender's notice of a
/// section's arrival, and the probe for the last packet of a burst. RFC 9000 has 25 ms, for bulk
/// data.
pub const ACK_DELAY_DEFAULT: Span = Span::from_millis(10);

const LATENCY: u64 = 0x01;
const RELIABILITY: u64 = 0x02;
const DELIVER: u64 = 0x03;
const LARGEST_DATAGRAM: u64 = 0x04;
const IDLE_TIMEOUT: u64 = 0x05;
const INITIAL_CREDIT: u64 = 0x06;
const OPEN_SECTIONS: u64 = 0x07;
const ACK_DELAY: u64 = 0x08;
const STREAM_NAME: u64 = 0x09;
const METER: u64 = 0x0a;
const ECN: u64 = 0x0b;
const CONTROLLER: u64 = 0x0c;
const METER_PARAMETERS: u64 = 0x0d;
const FEATURES: u64 = 0x0e;
const PROOFS: u64 = 0x0f;

const TIMES: RangeInclusive<u64> = 0..=MAX_TIME_US;
const DATAGRAMS: RangeInclusive<u64> = MIN_INITIAL as u64..=MAX_DATAGRAM as u64;
const IDLE_TIMEOUTS: RangeInclusive<u64> = 0..=MAX_TIME_US / 1_000;
const CREDITS: RangeInclusive<u64> = 0..=varint::MAX;
const SECTIONS: RangeInclusive<u64> = 1..=MAX_OPEN_SECTIONS;
/// 16.8 seconds. Loss detection waits for the delay; a longer one is useless.
const ACK_DELAYS: RangeInclusive<u64> = 0..=1 << 24;
const NAMES: RangeInclusive<u64> = 1..=MAX_NAME as u64;
const METER_LISTS: RangeInclusive<u64> = 1..=MAX_METER_PARAMETERS as u64;
const ALL_FEATURES: RangeInclusive<u64> = 0..=varint::MAX;
const STREAM_NAMES: RangeInclusive<u64> = 1..=MAX_STREAM_NAME as u64;

impl Parameters {
    /// Appends the list: all numbers (features and proofs only if they are not zero), and the texts
    /// that are present.
    ///
    /// # Errors
    /// [`EncodeError`] if a value is out of range or the texts are too long together; nothing is
    /// appended then.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut count = Count::default();
        self.write(&mut count)?;
        within(count.0 as u64, 0..=MAX_PARAMETERS as u64).map_err(|problem| EncodeError {
            part: Part::Parameters,
            field: "size",
            problem,
        })?;
        self.write(out)
    }

    fn write<S: Sink>(&self, sink: &mut S) -> Result<(), EncodeError> {
        let mut out = Writer::new(sink, Part::Parameters);
        let reliability = match self.reliability {
            Reliability::Timeline => 0,
            Reliability::None => 1,
            Reliability::Full => 2,
        };
        let deliver = match self.deliver {
            Deliver::Early => 0,
            Deliver::Paced => 1,
        };
        let ack_delay = self.max_ack_delay.as_micros();
        let datagram = u64::from(self.max_datagram);
        let sections = u64::from(self.max_open_sections);
        out.number(LATENCY, "latency", self.latency.as_micros(), TIMES)?;
        out.number(RELIABILITY, "reliability", reliability, 0..=2)?;
        out.number(DELIVER, "deliver", deliver, 0..=1)?;
        out.number(LARGEST_DATAGRAM, "largest datagram", datagram, DATAGRAMS)?;
        let idle_timeout = self.idle_timeout.as_millis();
        out.number(IDLE_TIMEOUT, "idle timeout", idle_timeout, IDLE_TIMEOUTS)?;
        out.number(
            INITIAL_CREDIT,
            "initial credit",
            self.initial_credit,
            CREDITS,
        )?;
        out.number(OPEN_SECTIONS, "open sections", sections, SECTIONS)?;
        out.number(ACK_DELAY, "largest ACK delay", ack_delay, ACK_DELAYS)?;
        out.text(
            STREAM_NAME,
            "stream name",
            self.stream_name.as_deref(),
            STREAM_NAMES,
        )?;
        out.text(METER, "meter", self.meter.as_deref(), NAMES)?;
        out.number(ECN, "ECN", u64::from(self.ecn), 0..=1)?;
        out.text(CONTROLLER, "controller", self.controller.as_deref(), NAMES)?;
        out.text(
            METER_PARAMETERS,
            "meter parameters",
            self.meter_parameters.as_deref(),
            METER_LISTS,
        )?;
        if self.features != 0 {
            out.number(FEATURES, "features", self.features, ALL_FEATURES)?;
        }
        if self.proofs {
            out.number(PROOFS, "proofs", 1, 0..=1)?;
        }
        Ok(())
    }

    /// Reads a list.
    ///
    /// # Errors
    /// [`DecodeError`] if the list breaks a limit, is truncated, is not in ascending order (which
    /// includes duplicates), or a value is out of range. Never panics.
    pub fn decode(list: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::new(list, Part::Parameters);
        within(list.len() as u64, 0..=MAX_PARAMETERS as u64)
            .map_err(|problem| input.error("size", problem))?;
        let mut parameters = Self::default();
        let mut previous = None;
        let mut count = 0;
        while !input.is_empty() {
            let position = input.offset();
            let id = input.varint("id")?;
            if let Some(previous) = previous
                && id <= previous
            {
                let problem = Problem::NotAscending {
                    value: id,
                    previous,
                };
                return Err(input.error_at(position, "id", problem));
            }
            previous = Some(id);
            count += 1;
            within(count, 0..=MAX_PARAMETER_COUNT as u64)
                .map_err(|problem| input.error_at(position, "count", problem))?;
            parameters.read(id, &mut input)?;
        }
        Ok(parameters)
    }

    fn read(&mut self, id: u64, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        match id {
            LATENCY => self.latency = Span::from_micros(number(input, "latency", TIMES)?),
            RELIABILITY => {
                self.reliability = match number(input, "reliability", 0..=2)? {
                    0 => Reliability::Timeline,
                    1 => Reliability::None,
                    _ => Reliability::Full,
                }
            }
            DELIVER => {
                self.deliver = match number(input, "deliver", 0..=1)? {
                    0 => Deliver::Early,
                    _ => Deliver::Paced,
                }
            }
            LARGEST_DATAGRAM => {
                self.max_datagram = number(input, "largest datagram", DATAGRAMS)? as u16;
            }
            IDLE_TIMEOUT => {
                self.idle_timeout =
                    Span::from_millis(number(input, "idle timeout", IDLE_TIMEOUTS)?);
            }
            INITIAL_CREDIT => self.initial_credit = number(input, "initial credit", CREDITS)?,
            OPEN_SECTIONS => {
                self.max_open_sections = number(input, "open sections", SECTIONS)? as u32;
            }
            ACK_DELAY => {
                self.max_ack_delay =
                    Span::from_micros(number(input, "largest ACK delay", ACK_DELAYS)?);
            }
            STREAM_NAME => self.stream_name = Some(text(input, "stream name", STREAM_NAMES)?),
            METER => self.meter = Some(text(input, "meter", NAMES)?),
            ECN => self.ecn = number(input, "ECN", 0..=1)? == 1,
            CONTROLLER => self.controller = Some(text(input, "controller", NAMES)?),
            METER_PARAMETERS => {
                self.meter_parameters = Some(text(input, "meter parameters", METER_LISTS)?);
            }
            FEATURES => self.features = number(input, "features", ALL_FEATURES)?,
            PROOFS => self.proofs = number(input, "proofs", 0..=1)? == 1,
            _ => {
                let length = input.varint("length")?;
                input.bytes(
                    "unknown parameter",
                    usize::try_from(length).unwrap_or(usize::MAX),
                )?;
            }
        }
        Ok(())
    }
}

impl<S: Sink> Writer<'_, S> {
    fn number(
        &mut self,
        id: u64,
        field: &'static str,
        value: u64,
        range: RangeInclusive<u64>,
    ) -> Result<(), EncodeError> {
        self.varint(field, id)?;
        self.varint(field, varint::size(value) as u64)?;
        self.varint_in(field, value, range)
    }

    fn text(
        &mut self,
        id: u64,
        field: &'static str,
        value: Option<&str>,
        lengths: RangeInclusive<u64>,
    ) -> Result<(), EncodeError> {
        let Some(value) = value else { return Ok(()) };
        self.varint(field, id)?;
        self.varint_in(field, value.len() as u64, lengths)?;
        self.bytes(value.as_bytes());
        Ok(())
    }
}

/// Reads a length and a number of that length.
fn number(
    input: &mut Reader<'_>,
    field: &'static str,
    range: RangeInclusive<u64>,
) -> Result<u64, DecodeError> {
    let position = input.offset();
    let length = input.varint(field)?;
    let before = input.offset();
    let value = input.varint_in(field, range)?;
    let read = (input.offset() - before) as u64;
    within(length, read..=read).map_err(|problem| input.error_at(position, field, problem))?;
    Ok(value)
}

/// Reads a length and a text of that length.
fn text(
    input: &mut Reader<'_>,
    field: &'static str,
    lengths: RangeInclusive<u64>,
) -> Result<String, DecodeError> {
    let length = input.varint_in(field, lengths)?;
    input.text(field, length as usize).map(str::to_owned)
}
