//! Flows of sections: two ends of the deadline transport, and the source of the sections.

mod events;

use comity_frames::{Frame, FrameType, Offered, Step, Submitter};
use comity_transport::datagram::{Connection, SentStatistics, Statistics, Target};
use comity_transport::timeline::{Elided, Outgoing, Reason, SectionId, StreamId};
use comity_units::{DataSize, Rate, Span, Time};

use super::alarm::Alarm;
use super::arrivals::Arrivals;
use super::observe::SenderState;
use super::producer::{FrameSource, Producer};
use super::shares::payload_of;
use crate::ledger::Ledger;
use crate::network::SectionsSpec;
use crate::report::FlowReport;

/// The only stream of a flow.
const STREAM: StreamId = StreamId(0);

/// A connection of the deadline transport, its application, and the fates of its sections.
#[derive(Debug)]
pub(super) struct SectionFlow {
    source: End,
    sink: End,
    frames: FrameSource,
    submitter: Submitter,
    /// The connection's target bitrate.
    target: Option<Target>,
    /// Numbers still to be skipped, because the connection had no room to skip them.
    owed: Vec<Reason>,
    ledger: Ledger,
    latency: Option<Span>,
    has_stopped: bool,
    closed_at: Option<Time>,
    at_warmup: AtWarmup,
    /// The size on the wire of the destination's packets, if it is fixed.
    acknowledgement: Option<u32>,
    pub(super) arrivals: Arrivals,
}

/// One end of a connection.
#[derive(Debug)]
struct End {
    connection: Connection<Elided>,
    alarm: Alarm,
}

/// The counters at the end of the warm-up.
#[derive(Debug, Default)]
struct AtWarmup {
    sent: SentStatistics,
    received_wire_bytes: u64,
    received_marked: u64,
}

impl SectionFlow {
    pub(super) fn new(
        [source, sink]: [Connection<Elided>; 2],
        producer: Producer,
        spec: &SectionsSpec,
        warmup: Time,
    ) -> Self {
        let latency = spec.latency;
        let end = |connection| End {
            connection,
            alarm: Alarm::new(),
        };
        Self {
            source: end(source),
            sink: end(sink),
            frames: FrameSource::new(producer),
            submitter: Submitter::new(spec.shedder()),
            target: None,
            owed: Vec::new(),
            ledger: Ledger::new(warmup, latency),
            latency,
            has_stopped: false,
            closed_at: None,
            at_warmup: AtWarmup::default(),
            acknowledgement: spec
                .acknowledgement
                .and_then(|bytes| u32::try_from(bytes.get()).ok()),
            arrivals: Arrivals::default(),
        }
    }

    fn end(&mut self, at_destination: bool) -> &mut End {
        if at_destination {
            &mut self.sink
        } else {
            &mut self.source
        }
    }

    /// When the source's application acts next; [`Time::MAX`] for never.
    pub(super) fn next_emission(&self) -> Time {
        self.frames.producer.peek()
    }

    /// Submits all sections with a source time up to `now`. Returns the next source time.
    pub(super) fn produce(&mut self, now: Time) -> Time {
        while self.next_emission() <= now
            && let Some(frame) = self.frames.next(now, self.target.map(|target| target.rate))
        {
            self.submit(now, &frame);
        }
        self.next_emission()
    }

    /// Lets a greedy source fill the send buffer.
    fn fill(&mut self, now: Time) {
        let Producer::Greedy(bytes) = self.frames.producer else {
            return;
        };
        if self.has_stopped || !self.source.connection.is_open() {
            return;
        }
        let frame = Frame {
            stream: STREAM.0,
            number: 0,
            frame_type: FrameType::Slice,
            position: 0,
            needs: None,
            is_bound: false,
            source_time: now,
            size: DataSize::new(u64::from(bytes)),
        };
        loop {
            let section = self.section(&frame);
            let before = self.source.connection.backlog();
            if self.source.connection.submit(now, section).is_err() {
                return;
            }
            self.ledger.on_submitted(&frame);
            // If a section is dropped at once, its room is free again, and the loop would never
            // end.
            if self.source.connection.backlog() <= before {
                return;
            }
        }
    }

    /// Submits a frame, sheds it, or skips it if there is no room. Each frame takes one number, so
    /// the numbers of frames and of sections agree.
    fn submit(&mut self, now: Time, frame: &Frame) {
        let offer = self.target.and_then(|target| target.offer);
        let step = self.submitter.step(&Offered::from(frame), offer);
        // Numbers that are skipped later are known today: those of the source.
        self.submitter
            .on_numbered(frame.stream, frame.number, frame.number);
        let section = self.section(frame);
        let connection = &mut self.source.connection;
        self.owed
            .retain(|&reason| connection.skip(STREAM, reason).is_err());
        let reason = match step {
            Step::Skip(reason) => {
                self.ledger.on_shed(frame);
                reason
            }
            Step::Submit { .. }
                if self.owed.is_empty() && connection.submit(now, section).is_ok() =>
            {
                return self.ledger.on_submitted(frame);
            }
            Step::Submit { .. } => {
                self.ledger.on_refused(frame);
                Reason::Cancelled
            }
        };
        if !self.owed.is_empty() || connection.skip(STREAM, reason).is_err() {
            self.owed.push(reason);
        }
    }

    fn section(&self, frame: &Frame) -> Outgoing<Elided> {
        let source_time = frame.source_time;
        Outgoing {
            stream: STREAM,
            importance: frame.importance(),
            source_time,
            deadline: self
                .latency
                .map_or(Time::MAX, |latency| source_time + latency),
            needs: frame.bound_to().map(SectionId),
            payload: Elided(u32::try_from(frame.size.get()).unwrap_or(u32::MAX)),
        }
    }

    /// Ends the source's stream.
    pub(super) fn stop(&mut self) {
        if !self.has_stopped {
            self.has_stopped = true;
            // A second call has no effect.
            let _ = self.source.connection.end(STREAM);
        }
    }

    pub(super) fn begin_measuring(&mut self) {
        let received = self.sink.connection.statistics().received;
        self.at_warmup = AtWarmup {
            sent: self.source.connection.statistics().sent,
            received_wire_bytes: received.wire_bytes,
            received_marked: received.marked_packets,
        };
    }

    /// The source's state, for observers.
    pub(super) fn sender_state(&self) -> SenderState {
        let Statistics { sent, path, .. } = self.source.connection.statistics();
        let nanos = |span: Option<Span>| span.map_or(0, Span::as_nanos);
        SenderState {
            window: path.window.get(),
            ssthresh: path.ssthresh.map_or(0, DataSize::get),
            in_flight: path.in_flight.get(),
            srtt_ns: nanos(path.srtt),
            rtt_variation_ns: path.rtt_variation.as_nanos(),
            min_rtt_ns: nanos(path.min_rtt),
            latest_rtt_ns: nanos(path.latest_rtt),
            retransmitted: 0,
            timeouts: sent.persistent_congestions,
            fast_retransmits: sent.loss_events,
            is_recovering: false,
            capacity_bps: self.source.connection.capacity().map_or(0, Rate::as_bps),
        }
    }

    /// Adds the fields of these ends to a report.
    pub(super) fn complete(
        &self,
        report: &mut FlowReport,
        settings: &SectionsSpec,
        share: Option<DataSize>,
    ) {
        let Statistics { sent, path, .. } = self.source.connection.statistics();
        let received = self.sink.connection.statistics().received;
        let before = &self.at_warmup;
        report.kind = format!("{}/sections", settings.controller);
        report.delivered_wire_bytes = received.wire_bytes - before.received_wire_bytes;
        report.timeouts = sent.persistent_congestions;
        report.fast_retransmits = sent.loss_events;
        report.srtt_s = path.srtt.map(Span::as_secs_f64);
        report.min_rtt_s = path.min_rtt.map(Span::as_secs_f64);
        report.cwnd_bytes = (path.window != DataSize::MAX).then(|| path.window.get());
        report.ssthresh_bytes = path.ssthresh.map(DataSize::get);
        report.capacity_bps = self.source.connection.capacity().map(Rate::as_bps);
        let mut sections = self.ledger.report();
        let config = &settings.config;
        sections.equal_share_bytes =
            share.map(|share| payload_of(share, config.payload, config.overhead));
        sections.late_bytes = sent.late_bytes;
        sections.retransmitted_bytes = sent.retransmitted_bytes - before.sent.retransmitted_bytes;
        sections.lost_packets = sent.lost_packets - before.sent.lost_packets;
        sections.spurious_losses = sent.spurious_losses - before.sent.spurious_losses;
        sections.marked_packets = received.marked_packets - before.received_marked;
        sections.target_bitrate_bps = path.target_bitrate.map(|rate: Rate| rate.as_bps() as f64);
        sections.closed = self.closed_at;
        report.sections = Some(sections);
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.ledger.memory() + self.arrivals.memory()
    }
}
