//! Writes traces during a run.
//!
//! A [`Tracer`] is an [`Observer`] that writes a capture of some links, a log of some senders, and
//! a table of events. Set [`RunOptions::collapse`](crate::RunOptions) to off, so that events come
//! in the order of their times.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::ops::RangeInclusive;

use comity_tcp::Segment;
use comity_units::{DataSize, Rate, SeqNo, Span, Time};

use super::capture::{CapturePoints, LinkCapture};
use super::error::TraceError;
use super::qlog;
use super::qlog::{CongestionState, Data, Description, LossTrigger, Metrics, QlogWriter, Side};
use crate::engine::{Body, FlowEvent, FlowEventKind, LinkEvent, Observer, Packet, SenderState};
use crate::network::Network;

/// Writes traces of the chosen links and flows. Each output is optional.
pub struct Tracer<'n, W: Write> {
    network: &'n Network,
    links: Vec<usize>,
    flows: Vec<bool>,
    capture: Option<LinkCapture<'n, W>>,
    logs: Vec<Option<SenderLog<W>>>,
    events: Option<csv::Writer<W>>,
    failure: Option<TraceError>,
}

/// The columns of the table of events.
const COLUMNS: [&str; 16] = [
    "time_ns",
    "place",
    "event",
    "flow",
    "direction",
    "wire_bytes",
    "sequence",
    "acknowledgement",
    "payload_bytes",
    "flags",
    "departure_ns",
    "arrival_ns",
    "cwnd_bytes",
    "ssthresh_bytes",
    "in_flight_bytes",
    "srtt_ns",
];

impl<'n, W: Write> Tracer<'n, W> {
    /// Creates a tracer without outputs; `links` and `flows` are indices into those of `network`.
    pub fn new(network: &'n Network, links: &[usize], flows: &[usize]) -> Self {
        let chosen = (0..network.flows.len())
            .map(|flow| flows.contains(&flow))
            .collect();
        Self {
            network,
            links: links.to_vec(),
            flows: chosen,
            capture: None,
            logs: network.flows.iter().map(|_| None).collect(),
            events: None,
            failure: None,
        }
    }

    /// Captures the packets of the chosen links.
    ///
    /// # Errors
    /// [`TraceError`] when the capture cannot be begun.
    pub fn capture(&mut self, points: CapturePoints, out: W) -> Result<(), TraceError> {
        self.capture = Some(LinkCapture::new(self.network, &self.links, points, out)?);
        Ok(())
    }

    /// Logs the state and actions of the sender of a flow.
    ///
    /// # Errors
    /// [`TraceError`] when the log cannot be begun.
    pub fn log(&mut self, flow: usize, title: &str, out: W) -> Result<(), TraceError> {
        let (Some(slot), Some(spec)) = (self.logs.get_mut(flow), self.network.flows.get(flow))
        else {
            return Ok(());
        };
        let protocol = match spec.transport {
            crate::network::TransportSpec::Tcp(_) => "TCP",
            crate::network::TransportSpec::Datagram(_)
            | crate::network::TransportSpec::Sections(_) => "UDP",
            crate::network::TransportSpec::Command(_) => "unknown",
        };
        let description = Description {
            title,
            description: "",
            endpoint: &spec.name,
            side: Side::Client,
            protocol,
        };
        *slot = Some(SenderLog::new(QlogWriter::new(out, &description)?));
        Ok(())
    }

    /// Writes a table of all events of the chosen flows and links.
    ///
    /// # Errors
    /// [`TraceError`] when the table cannot be begun.
    pub fn events(&mut self, out: W) -> Result<(), TraceError> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(COLUMNS)?;
        self.events = Some(writer);
        Ok(())
    }

    /// Flushes and returns the outputs, so that the caller can close their files and see errors.
    ///
    /// # Errors
    /// The first failed write during the run, or the failed flush.
    pub fn finish(self) -> Result<Vec<W>, TraceError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let mut outputs = Vec::new();
        if let Some(capture) = self.capture {
            outputs.push(capture.finish()?);
        }
        for log in self.logs.into_iter().flatten() {
            outputs.push(log.out.finish()?);
        }
        if let Some(events) = self.events {
            let out = events
                .into_inner()
                .map_err(|error| TraceError::Events(error.into_error().into()))?;
            outputs.push(out);
        }
        Ok(outputs)
    }

    fn keep(&mut self, result: Result<(), TraceError>) {
        if let Err(error) = result
            && self.failure.is_none()
        {
            self.failure = Some(error);
        }
    }

    fn link_row(&mut self, link: usize, event: &LinkEvent<'_>) -> Result<(), TraceError> {
        let (Some(events), Some(spec)) = (&mut self.events, self.network.links.get(link)) else {
            return Ok(());
        };
        let row = Row {
            time: event.offered_at,
            place: &spec.name,
            event: event.fate.name(),
            flow: name_of(self.network, event.packet.flow),
            packet: Some(event.packet),
            payload: None,
            departure: event.fate.departure(),
            arrival: event.fate.arrival(),
            state: None,
        };
        row.write(events)
    }

    fn flow_row(&mut self, flow: u32, event: &FlowEvent<'_>) -> Result<(), TraceError> {
        let Some(events) = &mut self.events else {
            return Ok(());
        };
        let (name, packet, payload) = match event.kind {
            FlowEventKind::Sent(packet) => ("sent", Some(packet), None),
            FlowEventKind::Received(packet) => ("received", Some(packet), None),
            FlowEventKind::Timer => ("timer", None, None),
            FlowEventKind::Delivered(bytes) => ("delivered", None, Some(bytes)),
        };
        let row = Row {
            time: event.now,
            place: if event.at_destination {
                "destination"
            } else {
                "source"
            },
            event: name,
            flow: name_of(self.network, flow),
            packet,
            payload,
            departure: None,
            arrival: None,
            state: event.state,
        };
        row.write(events)
    }
}

fn name_of(network: &Network, flow: u32) -> &str {
    network
        .flows
        .get(flow as usize)
        .map_or("", |flow| flow.name.as_str())
}

impl<W: Write> Observer for Tracer<'_, W> {
    fn on_link(&mut self, link: u32, event: &LinkEvent<'_>) {
        if self.failure.is_some() {
            return;
        }
        let index = link as usize;
        if !self.links.contains(&index) || self.flows.get(event.packet.flow as usize) != Some(&true)
        {
            return;
        }
        if let Some(capture) = &mut self.capture {
            capture.on_link(link, event);
        }
        let written = self.link_row(index, event);
        self.keep(written);
    }

    fn on_queued(&mut self, link: u32, token: u32, now: Time, packet: &Packet) {
        if self.links.contains(&(link as usize))
            && self.flows.get(packet.flow as usize) == Some(&true)
            && let Some(capture) = &mut self.capture
        {
            capture.on_queued(link, token, now, packet);
        }
    }

    fn on_flow(&mut self, flow: u32, event: &FlowEvent<'_>) {
        if self.failure.is_some() {
            return;
        }
        if let Some(capture) = &mut self.capture {
            let written = capture.advance(event.now);
            self.keep(written);
        }
        if self.flows.get(flow as usize) != Some(&true) {
            return;
        }
        if !event.at_destination
            && let Some(Some(log)) = self.logs.get_mut(flow as usize)
        {
            let logged = log.on_event(event).map_err(TraceError::from);
            self.keep(logged);
        }
        let written = self.flow_row(flow, event);
        self.keep(written);
    }
}

/// A line of the table of events.
struct Row<'a> {
    time: Time,
    place: &'a str,
    event: &'static str,
    flow: &'a str,
    packet: Option<&'a Packet>,
    payload: Option<u64>,
    departure: Option<Time>,
    arrival: Option<Time>,
    state: Option<SenderState>,
}

impl Row<'_> {
    fn write<W: Write>(&self, out: &mut csv::Writer<W>) -> Result<(), TraceError> {
        let number = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
        let segment = self.packet.and_then(|packet| match &packet.body {
            Body::Tcp(segment) => Some(segment),
            Body::Datagram(_) | Body::Sections(_) => None,
        });
        let sequence = self.packet.map(|packet| match &packet.body {
            Body::Tcp(segment) => segment.sequence.get().into(),
            Body::Datagram(number) => *number,
            Body::Sections(packet) => packet.number.get(),
        });
        let direction = match self.packet.map(|packet| packet.is_return) {
            None => "",
            Some(false) => "forward",
            Some(true) => "reverse",
        };
        let payload = match segment {
            Some(segment) => Some(segment.payload.into()),
            None => self.payload,
        };
        out.write_record([
            &self.time.as_nanos().to_string(),
            self.place,
            self.event,
            self.flow,
            direction,
            &number(self.packet.map(|packet| packet.wire.into())),
            &number(sequence),
            &number(segment.map(|segment| segment.acknowledgement.get().into())),
            &number(payload),
            &segment.map_or(String::new(), |segment| format!("{:?}", segment.flags)),
            &number(self.departure.map(Time::as_nanos)),
            &number(self.arrival.map(Time::as_nanos)),
            &number(self.state.map(|state| state.window)),
            &number(
                self.state
                    .map(|state| state.ssthresh)
                    .filter(|&ssthresh| ssthresh < u64::MAX),
            ),
            &number(self.state.map(|state| state.in_flight)),
            &number(self.state.map(|state| state.srtt_ns)),
        ])?;
        Ok(())
    }
}

/// The log of one sender.
///
/// A log needs packet numbers and offsets that do not wrap; TCP has neither. The log numbers
/// transmissions, and counts offsets from the first byte of payload.
struct SenderLog<W: Write> {
    out: QlogWriter<W>,
    next: u64,
    received: u64,
    /// The sequence number of the first byte of payload, and the highest offset seen with its
    /// number.
    start: Option<(SeqNo, u64)>,
    outstanding: VecDeque<Transmission>,
    retransmitted: u64,
    timeouts: u64,
}

#[derive(Clone, Copy)]
struct Transmission {
    number: u64,
    start: u64,
    end: u64,
    wire: u32,
}

impl<W: Write> SenderLog<W> {
    const fn new(out: QlogWriter<W>) -> Self {
        Self {
            out,
            next: 0,
            received: 0,
            start: None,
            outstanding: VecDeque::new(),
            retransmitted: 0,
            timeouts: 0,
        }
    }

    fn on_event(&mut self, event: &FlowEvent<'_>) -> io::Result<()> {
        let state = event.state.as_ref();
        match event.kind {
            FlowEventKind::Sent(packet) => self.sent(event.now, packet, state)?,
            FlowEventKind::Received(packet) => self.write_received(event.now, packet)?,
            FlowEventKind::Timer | FlowEventKind::Delivered(_) => {}
        }
        let Some(state) = state else { return Ok(()) };
        let span = |nanos: u64| (nanos > 0).then(|| Span::from_nanos(nanos));
        self.out.metrics_updated(
            event.now,
            &Metrics {
                min_rtt: span(state.min_rtt_ns).filter(|rtt| *rtt != Span::MAX),
                smoothed_rtt: span(state.srtt_ns),
                latest_rtt: span(state.latest_rtt_ns),
                rtt_variance: span(state.rtt_variation_ns),
                congestion_window: Some(DataSize::new(state.window)),
                bytes_in_flight: Some(DataSize::new(state.in_flight)),
                ssthresh: (state.ssthresh != u64::MAX).then(|| DataSize::new(state.ssthresh)),
                pacing_rate: None,
                capacity: (state.capacity_bps > 0).then(|| Rate::from_bps(state.capacity_bps)),
            },
        )?;
        let phase = if state.is_recovering {
            CongestionState::Recovery
        } else if state.window < state.ssthresh {
            CongestionState::SlowStart
        } else {
            CongestionState::CongestionAvoidance
        };
        self.out.congestion_state_updated(event.now, phase)
    }

    /// The offset of a sequence number, the one nearest to the highest so far.
    fn offset(&mut self, sequence: SeqNo) -> u64 {
        let (base, highest) = *self.start.get_or_insert((sequence, 0));
        // `base` advances, so distances stay far below half of the sequence space.
        let distance = i64::from(sequence.distance_from(base));
        let offset = highest.saturating_add_signed(distance);
        if distance > 0 {
            self.start = Some((sequence, offset));
        }
        offset
    }

    fn sent(&mut self, now: Time, packet: &Packet, state: Option<&SenderState>) -> io::Result<()> {
        let number = self.next;
        self.next += 1;
        let data = match &packet.body {
            Body::Tcp(segment) if segment.payload > 0 => Some(Data {
                offset: self.offset(segment.sequence),
                length: segment.payload,
            }),
            Body::Tcp(_) | Body::Datagram(_) | Body::Sections(_) => None,
        };
        if let (Some(state), Some(data)) = (state, data) {
            if state.retransmitted > self.retransmitted {
                let trigger = if state.timeouts > self.timeouts {
                    LossTrigger::PtoExpired
                } else {
                    LossTrigger::ReorderingThreshold
                };
                self.lose(now, data, trigger)?;
            }
            self.retransmitted = state.retransmitted;
            self.timeouts = state.timeouts;
        }
        self.out.packet_sent(
            now,
            &qlog::Packet {
                number,
                wire_bytes: packet.wire,
                data,
                ..qlog::Packet::default()
            },
        )?;
        if let Some(data) = data {
            self.outstanding.push_back(Transmission {
                number,
                start: data.offset,
                end: data.offset + u64::from(data.length),
                wire: packet.wire,
            });
        }
        Ok(())
    }

    /// Logs retransmitted data as lost.
    fn lose(&mut self, now: Time, again: Data, trigger: LossTrigger) -> io::Result<()> {
        let end = again.offset + u64::from(again.length);
        let mut kept = VecDeque::with_capacity(self.outstanding.len());
        for transmission in std::mem::take(&mut self.outstanding) {
            if transmission.end <= again.offset || transmission.start >= end {
                kept.push_back(transmission);
                continue;
            }
            let data = Data {
                offset: transmission.start,
                length: (transmission.end - transmission.start) as u32,
            };
            let packet = qlog::Packet {
                number: transmission.number,
                wire_bytes: transmission.wire,
                data: Some(data),
                ..qlog::Packet::default()
            };
            self.out.packet_lost(now, &packet, trigger)?;
        }
        self.outstanding = kept;
        Ok(())
    }

    fn write_received(&mut self, now: Time, packet: &Packet) -> io::Result<()> {
        let acknowledged = match &packet.body {
            Body::Tcp(segment) if self.start.is_some() => self.acknowledge(segment),
            _ => Vec::new(),
        };
        let number = self.received;
        self.received += 1;
        self.out.packet_received(
            now,
            &qlog::Packet {
                number,
                wire_bytes: packet.wire,
                acknowledged: &acknowledged,
                ..qlog::Packet::default()
            },
        )
    }

    /// Removes the transmissions that an ACK covers, and returns the ranges of their numbers.
    fn acknowledge(&mut self, segment: &Segment) -> Vec<RangeInclusive<u64>> {
        let una = self.offset(segment.acknowledgement);
        let mut covered = vec![(0, una)];
        for block in segment.options.sack.as_slice() {
            covered.push((self.offset(block.start), self.offset(block.end)));
        }
        let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
        self.outstanding.retain(|transmission| {
            let is_covered = covered
                .iter()
                .any(|(start, end)| *start <= transmission.start && transmission.end <= *end);
            if is_covered {
                let number = transmission.number;
                match ranges.last_mut() {
                    Some(last) if last.end() + 1 == number => *last = *last.start()..=number,
                    _ => ranges.push(number..=number),
                }
            }
            !is_covered
        });
        ranges
    }
}
