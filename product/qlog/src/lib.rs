//! The events and decisions of one end of a connection, as a qlog file for qvis.
//!
//! The simulator writes these files for its flows, and the library for real connections. Both write
//! the same records, so that two files can be compared.
//!
//! The file is a JSON text sequence (RFC 7464). Its records begin with the byte 1e and end with a
//! newline. The first record is a header, and each further record is an event. Save it as `.sqlog`,
//! the extension that qvis recognises. Times and round-trip times are in milliseconds. Times count
//! from the start of the run and are exact to the nanosecond for the first eleven days (10¹⁵ ns,
//! the decimals that a 64-bit float keeps).
//!
//! The format is version 0.3, the newest that qvis reads. qvis requires `qlog_version`, and event
//! names such as `transport:packet_sent`; later drafts renamed both. The format requires packet
//! numbers, which TCP does not have. Here they count transmissions, so a retransmission is a
//! separate packet, and acknowledgements name the transmissions that they cover. The packet type is
//! always `1RTT`, as in qvis' own conversion of TCP captures.
//!
//! The datagram transport has its own packet numbers, and *sections* instead of a byte stream.
//! Pieces of sections are frames of the type `section`. QUIC has no events for sections. Their
//! event names begin with `comity:`, and qvis ignores them ([`QlogWriter::event`]).
//!
//! Records are plain structs of this module, not those of the `qlog` crate. Version 0.18 of that
//! crate writes the later header and names, which qvis refuses; stores round-trip times as 32-bit
//! floats, which are exact to seven digits; and does not support TCP.
//!
//! Source: draft-ietf-quic-qlog-main-schema-04 and draft-ietf-quic-qlog-quic-events-03.

use std::io::{self, Write};
use std::ops::RangeInclusive;

use comity_congestion::Phase;
use comity_units::{DataSize, Rate, Span, Time};
use serde::{Serialize, Serializer};

/// The description of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description<'a> {
    /// The title, as in `fairness, seed 7`.
    pub title: &'a str,
    /// A longer description.
    pub description: &'a str,
    /// The name of the endpoint, as in `flow 3`.
    pub endpoint: &'a str,
    /// Its side of the connection.
    pub side: Side,
    /// The name of the protocol, as in `TCP`.
    pub protocol: &'a str,
}

/// A side of a flow or connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side that opened the connection; in a simulated flow, the source of the data.
    Client,
    /// The other side.
    Server,
}

/// A packet that was sent, received or lost.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Packet<'a> {
    /// Its number, counted per direction. A retransmission has a new number.
    pub number: u64,
    /// Its size in bytes, including headers.
    pub wire_bytes: u32,
    /// Its data of the byte stream.
    pub data: Option<Data>,
    /// The numbers of the packets that it acknowledges, in ranges.
    pub acknowledged: &'a [RangeInclusive<u64>],
    /// Its pieces of sections.
    pub pieces: &'a [Piece],
    /// The types of its other frames, in snake case, as in `ping`.
    pub others: &'a [&'static str],
    /// Its planned departure, if pacing delayed it.
    pub planned: Option<Time>,
}

/// A part of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// The stream of the section.
    #[serde(rename = "stream_id")]
    pub stream: u16,
    /// The section's number.
    pub section: u64,
    /// The offset of the first byte in the section.
    pub offset: u32,
    /// The length in bytes.
    pub length: u32,
    /// The length of the whole section.
    pub total: u32,
    /// Whether it was sent before.
    pub retransmission: bool,
}

/// A part of the byte stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The offset of its first byte, counted from 0 and without wrapping.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u32,
}

/// Why a packet is declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossTrigger {
    /// Packets sent after it were acknowledged, as duplicate acknowledgements or SACK show.
    ReorderingThreshold,
    /// It was sent long before an acknowledged one.
    TimeThreshold,
    /// The retransmission timer expired.
    PtoExpired,
}

/// The sender's congestion state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CongestionState {
    /// The application submits less than can be sent.
    ApplicationLimited,
    /// The window or rate increases slowly.
    CongestionAvoidance,
    /// The controller deliberately drains or probes.
    Probing,
    /// Losses of one episode are repaired.
    Recovery,
    /// The window doubles every round trip.
    SlowStart,
    /// The controller holds its rate.
    Steady,
}

/// The sender's state; `None` values are not written.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize)]
pub struct Metrics {
    /// The minimum round-trip time so far.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "millis")]
    pub min_rtt: Option<Span>,
    /// The smoothed round-trip time.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "millis")]
    pub smoothed_rtt: Option<Span>,
    /// The last round-trip time.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "millis")]
    pub latest_rtt: Option<Span>,
    /// The mean deviation of round-trip times.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "millis")]
    pub rtt_variance: Option<Span>,
    /// The congestion window.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "count")]
    pub congestion_window: Option<DataSize>,
    /// Bytes sent and neither acknowledged nor lost.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "count")]
    pub bytes_in_flight: Option<DataSize>,
    /// The slow-start threshold.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "count")]
    pub ssthresh: Option<DataSize>,
    /// The pacing rate.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "bits_per_second"
    )]
    pub pacing_rate: Option<Rate>,
    /// The capacity of the bottleneck, if the controller knows it. This is not a metric of qlog
    /// itself.
    ///
    /// Readers assume that a missing metric is unchanged. So `None` after a value is written once
    /// as 0: the controller no longer knows the capacity.
    #[serde(
        rename = "bottleneck_capacity",
        skip_serializing_if = "Option::is_none",
        serialize_with = "bits_per_second"
    )]
    pub capacity: Option<Rate>,
}

impl From<Phase> for CongestionState {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::SlowStart => Self::SlowStart,
            Phase::Steady => Self::Steady,
            Phase::Probing => Self::Probing,
            // This includes states that later versions may add.
            _ => Self::CongestionAvoidance,
        }
    }
}

impl Metrics {
    /// The values that differ from `before`.
    fn changed_since(self, before: &Self) -> Self {
        fn changed<T: PartialEq>(now: Option<T>, before: &Option<T>) -> Option<T> {
            if now == *before { None } else { now }
        }
        Self {
            min_rtt: changed(self.min_rtt, &before.min_rtt),
            smoothed_rtt: changed(self.smoothed_rtt, &before.smoothed_rtt),
            latest_rtt: changed(self.latest_rtt, &before.latest_rtt),
            rtt_variance: changed(self.rtt_variance, &before.rtt_variance),
            congestion_window: changed(self.congestion_window, &before.congestion_window),
            bytes_in_flight: changed(self.bytes_in_flight, &before.bytes_in_flight),
            ssthresh: changed(self.ssthresh, &before.ssthresh),
            pacing_rate: changed(self.pacing_rate, &before.pacing_rate),
            capacity: changed(self.capacity, &before.capacity),
        }
    }

    /// These values, with missing ones from `before`.
    fn or(self, before: Self) -> Self {
        Self {
            min_rtt: self.min_rtt.or(before.min_rtt),
            smoothed_rtt: self.smoothed_rtt.or(before.smoothed_rtt),
            latest_rtt: self.latest_rtt.or(before.latest_rtt),
            rtt_variance: self.rtt_variance.or(before.rtt_variance),
            congestion_window: self.congestion_window.or(before.congestion_window),
            bytes_in_flight: self.bytes_in_flight.or(before.bytes_in_flight),
            ssthresh: self.ssthresh.or(before.ssthresh),
            pacing_rate: self.pacing_rate.or(before.pacing_rate),
            capacity: self.capacity.or(before.capacity),
        }
    }
}

/// Writes a qlog file. Events must be in the order of time.
///
/// Each record is one small write: pass a [`BufWriter`](io::BufWriter).
#[derive(Debug)]
pub struct QlogWriter<W: Write> {
    out: W,
    metrics: Metrics,
    state: Option<CongestionState>,
    line: Vec<u8>,
}

/// Begins every record (RFC 7464, section 2.2).
const RECORD_SEPARATOR: u8 = 0x1e;

impl<W: Write> QlogWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// Like all methods here: if the file cannot be written.
    pub fn new(out: W, description: &Description<'_>) -> io::Result<Self> {
        let mut writer = Self {
            out,
            metrics: Metrics::default(),
            state: None,
            line: Vec::with_capacity(256),
        };
        writer.record(&Header {
            qlog_version: "0.3",
            qlog_format: "JSON-SEQ",
            title: description.title,
            description: description.description,
            trace: Trace {
                title: description.endpoint,
                vantage_point: VantagePoint {
                    name: description.endpoint,
                    side: match description.side {
                        Side::Client => "client",
                        Side::Server => "server",
                    },
                },
                common_fields: CommonFields {
                    time_format: "relative",
                    reference_time: 0,
                    protocol_type: [description.protocol],
                },
            },
        })?;
        Ok(writer)
    }

    /// Records that a packet was sent (`transport:packet_sent`).
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn packet_sent(&mut self, now: Time, packet: &Packet<'_>) -> io::Result<()> {
        self.event(now, "transport:packet_sent", &PacketEvent::new(packet))
    }

    /// Records that a packet was received (`transport:packet_received`).
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn packet_received(&mut self, now: Time, packet: &Packet<'_>) -> io::Result<()> {
        self.event(now, "transport:packet_received", &PacketEvent::new(packet))
    }

    /// Records that a sent packet is declared lost (`recovery:packet_lost`).
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn packet_lost(
        &mut self,
        now: Time,
        packet: &Packet<'_>,
        trigger: LossTrigger,
    ) -> io::Result<()> {
        let event = PacketEvent {
            trigger: Some(trigger),
            ..PacketEvent::new(packet)
        };
        self.event(now, "recovery:packet_lost", &event)
    }

    /// Records the sender's metrics (`recovery:metrics_updated`): writes the changed values, if
    /// there are any.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn metrics_updated(&mut self, now: Time, metrics: &Metrics) -> io::Result<()> {
        let forgotten = self.metrics.capacity.map(|_| Rate::ZERO);
        let metrics = Metrics {
            capacity: metrics.capacity.or(forgotten),
            ..*metrics
        };
        let changed = metrics.changed_since(&self.metrics);
        if changed == Metrics::default() {
            return Ok(());
        }
        self.metrics = changed.or(self.metrics);
        self.event(now, "recovery:metrics_updated", &changed)
    }

    /// Records the sender's congestion state (`recovery:congestion_state_updated`), if it has
    /// changed.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn congestion_state_updated(
        &mut self,
        now: Time,
        state: CongestionState,
    ) -> io::Result<()> {
        let old = self.state.replace(state);
        if old == Some(state) {
            return Ok(());
        }
        self.event(
            now,
            "recovery:congestion_state_updated",
            &StateEvent { old, new: state },
        )
    }

    /// Flushes the file and returns it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Records an event of another vocabulary, such as `comity:section_delivered`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn event(&mut self, now: Time, name: &str, data: &impl Serialize) -> io::Result<()> {
        self.record(&Event {
            time: as_millis(now.as_nanos()),
            name,
            data,
        })
    }

    fn record(&mut self, record: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        self.line.push(RECORD_SEPARATOR);
        serde_json::to_writer(&mut self.line, record)?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }
}

#[derive(Serialize)]
struct Header<'a> {
    qlog_version: &'a str,
    qlog_format: &'a str,
    title: &'a str,
    description: &'a str,
    trace: Trace<'a>,
}

#[derive(Serialize)]
struct Trace<'a> {
    title: &'a str,
    vantage_point: VantagePoint<'a>,
    common_fields: CommonFields<'a>,
}

#[derive(Serialize)]
struct VantagePoint<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    side: &'a str,
}

#[derive(Serialize)]
struct CommonFields<'a> {
    time_format: &'a str,
    reference_time: u64,
    protocol_type: [&'a str; 1],
}

#[derive(Serialize)]
struct Event<'a, D> {
    time: f64,
    name: &'a str,
    data: &'a D,
}

#[derive(Serialize)]
struct PacketEvent<'a> {
    header: PacketHeader,
    raw: Raw,
    #[serde(skip_serializing_if = "Frames::is_empty")]
    frames: Frames<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<LossTrigger>,
    #[serde(skip_serializing_if = "Option::is_none")]
    planned: Option<f64>,
}

impl<'a> PacketEvent<'a> {
    fn new(packet: &Packet<'a>) -> Self {
        Self {
            header: PacketHeader {
                packet_type: "1RTT",
                packet_number: packet.number,
            },
            raw: Raw {
                length: packet.wire_bytes,
                payload_length: packet.data.map_or(0, |data| data.length)
                    + packet.pieces.iter().map(|piece| piece.length).sum::<u32>(),
            },
            frames: Frames {
                acknowledged: packet.acknowledged,
                data: packet.data,
                pieces: packet.pieces,
                others: packet.others,
            },
            trigger: None,
            planned: packet.planned.map(|time| time.as_nanos() as f64 / 1e6),
        }
    }
}

#[derive(Serialize)]
struct PacketHeader {
    packet_type: &'static str,
    packet_number: u64,
}

#[derive(Serialize)]
struct Raw {
    length: u32,
    payload_length: u32,
}

/// The frames of a packet: its acknowledgements, then its contents.
struct Frames<'a> {
    acknowledged: &'a [RangeInclusive<u64>],
    data: Option<Data>,
    pieces: &'a [Piece],
    others: &'a [&'static str],
}

impl Frames<'_> {
    fn is_empty(&self) -> bool {
        self.acknowledged.is_empty()
            && self.data.is_none()
            && self.pieces.is_empty()
            && self.others.is_empty()
    }
}

#[derive(Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
enum Frame<'a> {
    Ack {
        acked_ranges: Ranges<'a>,
    },
    Stream {
        stream_id: u64,
        offset: u64,
        length: u32,
    },
    Section(Piece),
    #[serde(untagged)]
    Other {
        frame_type: &'static str,
    },
}

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ack = (!self.acknowledged.is_empty()).then_some(Frame::Ack {
            acked_ranges: Ranges(self.acknowledged),
        });
        let stream = self.data.map(|Data { offset, length }| Frame::Stream {
            stream_id: 0,
            offset,
            length,
        });
        let pieces = self.pieces.iter().copied().map(Frame::Section);
        let others = self.others.iter();
        let others = others.map(|frame_type| Frame::Other { frame_type });
        serializer.collect_seq(ack.into_iter().chain(stream).chain(pieces).chain(others))
    }
}

/// Ranges, written as pairs of their first and last number.
struct Ranges<'a>(&'a [RangeInclusive<u64>]);

impl Serialize for Ranges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|range| [*range.start(), *range.end()]))
    }
}

#[derive(Serialize)]
struct StateEvent {
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<CongestionState>,
    new: CongestionState,
}

/// The quotient is the float nearest to the decimal fraction, so it is printed as that fraction.
fn as_millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn millis<S: Serializer>(span: &Option<Span>, serializer: S) -> Result<S::Ok, S::Error> {
    span.map(|span| as_millis(span.as_nanos()))
        .serialize(serializer)
}

fn count<S: Serializer>(bytes: &Option<DataSize>, serializer: S) -> Result<S::Ok, S::Error> {
    bytes.map(DataSize::get).serialize(serializer)
}

fn bits_per_second<S: Serializer>(rate: &Option<Rate>, serializer: S) -> Result<S::Ok, S::Error> {
    rate.map(Rate::as_bps).serialize(serializer)
}
