//! One end of a connection: its state, its timers and what the application sees.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use comity_congestion::{Controller, Decision, Meter, Pacing, Phase, Timeout};
use comity_units::{Bytes, PacketNumber, Rate, Seed, Span, Time};

use super::config::{Config, ConfigError};
use super::loss::LossDetection;
use super::received::ReceivedPackets;
use super::sent::SentPackets;
use super::statistics::{PathStatistics, Statistics};
use super::target::TargetBitrate;
use crate::Pacer;
use crate::timeline::outbox::Notice;
use crate::timeline::{
    Chunk, ClockMap, Delivery, DropPolicy, Inbox, Outbox, Outcome, Outgoing, Outlook, Payload,
    Reliability, SectionId, StreamId, inbox, outbox,
};
use crate::wire::frame::EcnCounts;
use crate::wire::{CloseCode, DecodeError};

/// One end of a connection, open from the beginning.
///
/// Kinds of method, and the order in which they are called:
///
/// * told: [`submit`](Self::submit), [`end`](Self::end), [`close`](Self::close) by the application,
///   [`on_packet`](Self::on_packet) by the network, [`on_timer`](Self::on_timer) by the clock;
/// * asked after any of these until they give nothing: [`poll_transmit`](Self::poll_transmit),
///   [`poll_delivery`](Self::poll_delivery), [`poll_event`](Self::poll_event); then
///   [`next_timer`](Self::next_timer).
///
/// Times are of one clock and do not decrease from call to call.
#[derive(Debug)]
pub struct Connection<P: Payload> {
    pub(super) config: Config,
    /// Zero of the clock that deadlines and departures are told in.
    pub(super) epoch: Time,
    pub(super) state: State,
    pub(super) outbox: Outbox<P>,
    pub(super) inbox: Inbox<P>,
    pub(super) clock: ClockMap,
    pub(super) sent: SentPackets<Contents>,
    pub(super) received: ReceivedPackets,
    pub(super) loss: LossDetection,
    pub(super) controller: Box<dyn Controller>,
    pub(super) meter: Option<Box<dyn Meter>>,
    pub(super) decision: Decision,
    pub(super) pacer: Pacer,
    pub(super) target: TargetBitrate,
    pub(super) episode: Episode,
    pub(super) credit: Credit,
    pub(super) control: Control,
    pub(super) path: Path,
    /// The number of the packet before which the window, or the pacer of a law without one, held data back.
    pub(super) limited_before: Option<PacketNumber>,
    /// The number to be left out next.
    pub(super) skip_at: PacketNumber,
    /// Probes that are owed because the probe timer expired.
    pub(super) probes: u32,
    pub(super) last_sent_at: Time,
    pub(super) last_received_at: Time,
    pub(super) ecn_sent: u64,
    pub(super) ecn_told: EcnCounts,
    pub(super) ecn_works: bool,
    pub(super) path_frames: VecDeque<PathFrame>,
    pub(super) events: VecDeque<Event>,
    pub(super) statistics: Statistics,
}

/// Where a connection is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// We closed: whatever still comes is answered with the reason.
    Closing {
        until: Time,
        code: CloseCode,
        reason: String,
        /// The next answer is due, and no more than one for each doubling of what came.
        answer: bool,
        heard: u32,
    },
    /// The peer closed: we are silent.
    Draining {
        until: Time,
    },
    Closed,
}

/// What a packet carried that matters when it is acknowledged or lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    pub(super) chunk: Option<Chunk>,
    /// Further chunks, of small sections that share a packet.
    pub(super) more: Vec<Chunk>,
    /// The largest number that the acknowledgement in it spoke of.
    pub(super) acknowledged: Option<PacketNumber>,
    pub(super) control: Option<Box<SentControl>>,
}

impl Contents {
    pub(super) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.chunk.iter().chain(&self.more)
    }
}

/// Control frames of a packet that have to be repeated when it is lost.
#[derive(Clone, Debug, Default)]
pub(super) struct SentControl {
    pub(super) notices: Vec<Notice>,
    pub(super) ends: Vec<(StreamId, u64)>,
    pub(super) floors: Vec<StreamId>,
    pub(super) credit: bool,
}

/// Control frames that wait for a packet.
#[derive(Debug, Default)]
pub(super) struct Control {
    pub(super) notices: Vec<Notice>,
    pub(super) ends: Vec<(StreamId, u64)>,
    /// Streams whose floor is to be told although no section of theirs leaves.
    pub(super) floors: Vec<StreamId>,
    pub(super) ping: bool,
    /// The peer waits for room that there is now.
    pub(super) credit: bool,
    pub(super) report_at: Time,
}

impl Control {
    pub(super) fn is_pending(&self) -> bool {
        self.ping
            || self.credit
            || !self.notices.is_empty()
            || !self.ends.is_empty()
            || !self.floors.is_empty()
    }
}

/// The loss episode that the controller was told of last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Episode {
    /// When it began: losses of packets that left before belong to it.
    pub(super) began_at: Option<Time>,
    /// Packets that left before it are still being acknowledged.
    pub(super) is_open: bool,
    /// When the newest packet acknowledged so far had left.
    pub(super) acknowledged_sent_at: Time,
}

/// What the peer has room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    pub(super) bytes: u64,
    pub(super) sections: u64,
    /// The packet that said so.
    pub(super) told_by: Option<PacketNumber>,
    /// What this end told the peer last.
    pub(super) offered: u64,
}

/// One-way delays to the peer, by what its acknowledgements say of arrivals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// The least difference of arrival and departure, of two clocks; of the current and the last window.
    least: [i64; 2],
    window_began_at: Time,
    latest: Option<i64>,
}

impl Path {
    const fn new() -> Self {
        Self {
            least: [i64::MAX; 2],
            window_began_at: Time::ZERO,
            latest: None,
        }
    }

    /// The peer got at `arrival` on its clock what left at `departure` on ours, both in microseconds mod 2³².
    pub(super) fn on_arrival(&mut self, now: Time, difference: i64) {
        if now.saturating_since(self.window_began_at) > PATH_MEMORY {
            self.least = [difference, self.least[0]];
            self.window_began_at = now;
        }
        self.least[0] = self.least[0].min(difference);
        self.latest = Some(difference);
    }

    /// How much longer than the least the last packet took.
    pub(super) fn queueing(&self) -> Span {
        let least = self.least[0].min(self.least[1]);
        self.latest.map_or(Span::ZERO, |latest| {
            Span::from_micros(u64::try_from(latest - least).unwrap_or(0))
        })
    }
}

/// The least one-way delay is that of one to two such windows.
const PATH_MEMORY: Span = Span::from_secs(10);

/// What happened, for the owner of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection is over. Always the last event.
    Closed(CloseReason),
    /// What became of a section of this end.
    Outcome(Outcome),
    /// What the application may send has changed.
    TargetBitrate(Rate),
}

/// The two frames with which an end proves that it receives at an address. Who owns the connection, and knows
/// addresses, asks and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFrame {
    /// Asks for the same 8 bytes.
    Challenge([u8; 8]),
    /// Gives them.
    Response([u8; 8]),
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Nothing came from the peer for the idle timeout.
    Idle,
    /// This end closed it.
    Local {
        /// The code that the peer is told.
        code: CloseCode,
        /// What the peer is told in words.
        reason: String,
    },
    /// The peer closed it.
    Peer {
        /// The code that it gave.
        code: CloseCode,
        /// Its words.
        reason: String,
    },
    /// The peer broke the rules.
    Violation(Violation),
}

/// What a peer must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// It acknowledged a packet that never left.
    AcknowledgedUnsent {
        /// The packet's number.
        number: PacketNumber,
    },
    /// A payload cannot be read.
    Malformed(DecodeError),
    /// Sections contradict each other or exceed the limits.
    Sections(inbox::Violation),
}

impl Violation {
    /// What the peer is told.
    pub const fn code(&self) -> CloseCode {
        match self {
            Self::AcknowledgedUnsent { .. } => CloseCode::OPTIMISTIC_ACK,
            Self::Malformed(error) => error.code(),
            Self::Sections(
                inbox::Violation::TooManyBytes { .. } | inbox::Violation::TooManyFragments { .. },
            ) => CloseCode::FLOW_CONTROL,
            Self::Sections(
                inbox::Violation::TooManySections { .. } | inbox::Violation::TooManyStreams { .. },
            ) => CloseCode::SECTION_LIMIT,
            Self::Sections(_) => CloseCode::SECTION_STATE,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AcknowledgedUnsent { number } => write!(
                f,
                "the peer acknowledged packet {number}, which was never sent"
            ),
            Self::Malformed(error) => write!(f, "the peer sent what cannot be read: {error}"),
            Self::Sections(violation) => violation.fmt(f),
        }
    }
}

impl core::error::Error for Violation {}

impl<P: Payload> Connection<P> {
    /// A connection that is open from `now` on; `now` is also the zero of the clock that this end tells its
    /// deadlines in. `peer_ack_delay` is the largest delay with which the peer said it acknowledges, and
    /// `meter` the receiver's half of the peer's controller, if that has one. The controller is to be built
    /// for segments of [`Config::payload`] bytes.
    ///
    /// # Errors
    /// [`ConfigError`] when a setting is out of range.
    pub fn new(
        config: Config,
        peer_ack_delay: Span,
        controller: Box<dyn Controller>,
        meter: Option<Box<dyn Meter>>,
        now: Time,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        let enforce_deadlines = config.expect_deadlines
            && config.reliability != Reliability::Full
            && config.drop != DropPolicy::Never;
        let outbox = outbox::Config {
            reliability: config.reliability,
            drop: config.drop,
            max_bytes: config.send_buffer,
            max_sections: config.send_sections as usize,
            ..outbox::Config::default()
        };
        let inbox = inbox::Config {
            deliver: config.deliver,
            enforce_deadlines,
            max_bytes: config.receive_buffer,
            max_sections: u64::from(config.receive_sections),
            ..inbox::Config::default()
        };
        let decision = controller.decision();
        let mut connection = Self {
            epoch: now,
            state: State::Open,
            outbox: Outbox::new(outbox),
            inbox: Inbox::new(inbox),
            clock: ClockMap::default(),
            sent: SentPackets::new(now),
            received: ReceivedPackets::new(config.ack_frequency, config.ack_delay),
            loss: LossDetection::new(peer_ack_delay),
            controller,
            meter,
            decision,
            pacer: Pacer::default(),
            target: TargetBitrate::new(),
            episode: Episode::default(),
            credit: Credit {
                bytes: u64::MAX,
                sections: u64::MAX,
                told_by: None,
                offered: u64::MAX,
            },
            control: Control::default(),
            path: Path::new(),
            limited_before: None,
            skip_at: PacketNumber::ZERO,
            probes: 0,
            last_sent_at: now,
            last_received_at: now,
            ecn_sent: 0,
            ecn_told: EcnCounts::default(),
            ecn_works: config.ecn,
            path_frames: VecDeque::new(),
            events: VecDeque::new(),
            statistics: Statistics::default(),
            config,
        };
        connection.control.report_at = now + REPORT_INTERVAL;
        connection.choose_skip();
        Ok(connection)
    }

    /// Leaves a number out somewhere in the next few hundred packets: who acknowledges it is guessing.
    pub(super) fn choose_skip(&mut self) {
        let next = self.sent.next_number().get();
        let draw = skip_distance(self.config.seed, next);
        self.skip_at = PacketNumber::new(next.saturating_add(draw));
    }

    // ---------------------------------------------------------------- application

    /// Takes a section. Its times are on the clock that `now` is of.
    ///
    /// A section whose deadline has passed is taken, and reported as expired at once.
    ///
    /// # Errors
    /// [`outbox::SubmitError`] when it cannot be taken: there is no room, or it makes no sense.
    pub fn submit(
        &mut self,
        now: Time,
        section: Outgoing<P>,
    ) -> Result<SectionId, outbox::SubmitError> {
        // The peer keeps only so many sections of a stream apart.
        let limit = self
            .credit
            .sections
            .min(u64::from(self.config.send_sections));
        if self.outbox.span(section.stream) >= limit {
            return Err(outbox::SubmitError::TooManySections {
                limit: usize::try_from(limit).unwrap_or(usize::MAX),
            });
        }
        let id = self.outbox.submit(now, section)?;
        self.collect_outcomes();
        Ok(id)
    }

    /// Withdraws a section. Returns whether it was not settled yet.
    pub fn cancel(&mut self, stream: StreamId, section: SectionId) -> bool {
        let was_open = self.outbox.cancel(stream, section);
        self.collect_outcomes();
        was_open
    }

    /// Leaves a section out to fit the rate. Returns whether it was not settled yet.
    pub fn shed(&mut self, stream: StreamId, section: SectionId) -> bool {
        let was_open = self.outbox.shed(stream, section);
        self.collect_outcomes();
        was_open
    }

    /// Ends a stream: no more sections will come. The peer learns of it reliably.
    pub fn end(&mut self, stream: StreamId) {
        let sections = self.outbox.end(stream);
        self.control.ends.push((stream, sections));
    }

    /// Whether every section has its outcome, and everything that the peer has to know was acknowledged.
    pub fn is_settled(&self) -> bool {
        self.outbox.is_settled()
            && self.control.ends.is_empty()
            && self.control.notices.is_empty()
            && self.sent.in_flight_packets() == 0
    }

    /// Closes the connection. What is not settled becomes a gap on both sides.
    pub fn close(&mut self, now: Time, code: CloseCode, reason: &str) {
        if self.state != State::Open {
            return;
        }
        let mut reason = String::from(reason);
        while reason.len() > crate::wire::limits::MAX_REASON {
            reason.pop();
        }
        self.settle();
        self.events.push_back(Event::Closed(CloseReason::Local {
            code,
            reason: reason.clone(),
        }));
        self.begin_closing(now, code, reason);
    }

    /// The connection is over: every section of either end gets its outcome.
    pub(super) fn settle(&mut self) {
        self.inbox.close();
        self.outbox.close();
        self.collect_outcomes();
    }

    fn begin_closing(&mut self, now: Time, code: CloseCode, reason: String) {
        self.state = State::Closing {
            until: now + self.loss.base_timeout() * 3,
            code,
            reason,
            answer: true,
            heard: 0,
        };
    }

    /// The peer broke the rules: the connection is closed.
    pub(super) fn fail(&mut self, now: Time, violation: Violation) {
        if self.state != State::Open {
            return;
        }
        let code = violation.code();
        self.settle();
        self.events
            .push_back(Event::Closed(CloseReason::Violation(violation)));
        self.begin_closing(now, code, String::new());
    }

    /// The next section, whole or as a gap; each exactly once, in the order of its stream.
    pub fn poll_delivery(&mut self, now: Time) -> Option<Delivery<P>> {
        let delivery = self.inbox.poll(now, &self.clock)?;
        // A peer that was told of little room is told when there is room again.
        let half = self.config.receive_buffer / 2;
        if self.credit.offered < half {
            self.control.credit |= self.room() >= half;
        }
        Some(delivery)
    }

    /// What happened since the last call.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether the connection is over and owes nothing to anybody.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether the connection is open.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether the peer has ended the stream and all of it was delivered.
    pub fn is_finished(&self, stream: StreamId) -> bool {
        self.inbox.is_finished(stream)
    }

    /// Asks the peer for an answer: the next packet says something that has to be acknowledged.
    pub const fn ping(&mut self) {
        self.control.ping = true;
    }

    /// After how long without an answer it is worth asking again.
    pub fn probe_timeout(&self) -> Span {
        self.loss.base_timeout()
    }

    /// The next path frame of the packet that came last.
    pub fn poll_path_frame(&mut self) -> Option<PathFrame> {
        self.path_frames.pop_front()
    }

    /// The peer has moved to another path: nothing measured on the old one holds. Packets in flight keep
    /// counting until they are acknowledged or lost.
    pub fn on_new_path(&mut self, controller: Box<dyn Controller>) {
        self.loss.on_new_path();
        self.controller = controller;
        self.path = Path::new();
        self.target = TargetBitrate::new();
        self.ecn_works = self.config.ecn;
        self.obey();
    }

    /// A snapshot of all counters.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics.clone();
        statistics.outbox = *self.outbox.accounts();
        statistics.inbox = *self.inbox.accounts();
        statistics.path = PathStatistics {
            srtt: self.loss.smoothed(),
            rtt_variation: self.loss.variation(),
            latest_rtt: self.loss.latest(),
            min_rtt: self.loss.min(),
            one_way_delay: self.loss.min().map(|_| self.one_way()),
            window: self.decision.window,
            in_flight: Bytes::new(self.sent.in_flight()),
            ssthresh: self.decision.ssthresh,
            pacing_rate: self.pacing_rate(),
            phase: self.decision.phase,
            target_bitrate: self.target.current(),
        };
        statistics
    }

    /// What the application may send now; `None` before anything is known of the path.
    pub fn target_bitrate(&self) -> Option<Rate> {
        self.target.current()
    }

    /// The local time at which the peer's clock, on which the times of its sections are, shows `time`.
    pub fn to_local(&self, time: Time) -> Time {
        self.clock.to_local(time)
    }

    /// How much faster than this end's clock the peer's runs, in parts per million.
    pub fn clock_drift_ppm(&self) -> f64 {
        self.clock.drift_ppm()
    }

    /// When the pacer lets the next piece of a section leave; `None` when something else holds it back, or there
    /// is none.
    pub fn release_at(&self) -> Option<Time> {
        let waits = self.state == State::Open
            && self.outbox.backlog() > 0
            && self.has_window()
            && self.has_credit();
        waits.then(|| self.pacer.release_at(self.pacing()))
    }

    /// What the peer said before the first packet that it has room for.
    pub const fn set_initial_credit(&mut self, bytes: u64, sections: u32) {
        self.credit.bytes = bytes;
        self.credit.sections = sections as u64;
    }

    /// The settings.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Bytes of sections that wait to be sent.
    pub fn backlog(&self) -> u64 {
        self.outbox.backlog()
    }

    // ---------------------------------------------------------------- timers

    /// When [`Connection::on_timer`] is next due; [`Time::MAX`] for never.
    ///
    /// A time that has come already means: poll again.
    pub fn next_timer(&self) -> Time {
        let next = self.next_protocol_timer();
        if self.state == State::Open {
            next.min(self.inbox.next_wakeup(&self.clock))
        } else {
            next
        }
    }

    /// As [`Connection::next_timer`], for a host whose application takes no sections at present: without the
    /// times at which sections become ready.
    pub fn next_protocol_timer(&self) -> Time {
        match &self.state {
            State::Closed => return Time::MAX,
            State::Closing { until, .. } | State::Draining { until } => return *until,
            State::Open => {}
        }
        let mut next = self
            .received
            .due_at()
            .min(self.loss.due_at)
            .min(self.outbox.earliest_deadline())
            .min(self.last_received_at + self.config.idle_timeout)
            .min(self.last_sent_at + self.config.keep_alive)
            .min(self.controller.wakeup().unwrap_or(Time::MAX))
            .min(
                self.meter
                    .as_ref()
                    .and_then(|meter| meter.wakeup())
                    .unwrap_or(Time::MAX),
            );
        if self.sent.in_flight_packets() > 0 {
            next = next.min(self.loss.probe_at());
        }
        if self.has_report() {
            next = next.min(self.control.report_at);
        }
        if self.waits_for_credit() {
            next = next.min(self.last_sent_at + self.loss.base_timeout());
        }
        if self.outbox.backlog() > 0 && self.has_window() && self.has_credit() {
            next = next.min(self.pacer.release_at(self.pacing()));
        }
        next
    }

    /// The time given by [`Connection::next_timer`] has come. Calling it early does no harm.
    pub fn on_timer(&mut self, now: Time) {
        match &self.state {
            State::Closed => return,
            State::Closing { until, .. } | State::Draining { until } => {
                if *until <= now {
                    self.state = State::Closed;
                }
                return;
            }
            State::Open => {}
        }
        if now >= self.last_received_at + self.config.idle_timeout {
            self.settle();
            self.events.push_back(Event::Closed(CloseReason::Idle));
            self.state = State::Closed;
            return;
        }
        if self.outbox.earliest_deadline() <= now {
            self.outbox.expire(now);
        }
        if self.loss.due_at <= now {
            self.detect_losses(now);
        }
        if self.sent.in_flight_packets() > 0 && self.loss.probe_at() <= now {
            self.on_probe_timeout(now);
        }
        if self.controller.wakeup().is_some_and(|due| due <= now) {
            self.controller.on_wakeup(now);
            self.obey();
        }
        if let Some(meter) = &mut self.meter
            && meter.wakeup().is_some_and(|due| due <= now)
        {
            meter.on_wakeup(now);
            self.received.demand(now);
        }
        if now >= self.last_sent_at + self.config.keep_alive {
            self.control.ping = true;
        }
        if self.waits_for_credit() && now >= self.last_sent_at + self.loss.base_timeout() {
            // The peer may have room only for what fills its holes, and its last word may be lost.
            self.probes = 1;
        }
        self.update_target(now);
        self.collect_outcomes();
    }

    fn on_probe_timeout(&mut self, now: Time) {
        self.loss.on_probe(now);
        self.statistics.sent.probes += 1;
        self.probes = 1;
        // What the oldest packet carried is sent again with the probe: when the tail of a flight was lost,
        // that saves the round trip until loss detection finds it. The packet itself stays in flight.
        if let Some(contents) = self.sent.take_oldest_contents() {
            self.requeue(now, contents);
        }
    }

    /// What a lost packet carried has to be sent again, if it still matters.
    pub(super) fn requeue(&mut self, now: Time, contents: Contents) {
        for chunk in contents.chunks() {
            self.outbox.on_lost(now, chunk);
        }
        if let Some(control) = contents.control {
            for notice in control.notices {
                self.outbox.on_notice_lost(notice);
            }
            self.control.ends.extend(control.ends);
            for stream in control.floors {
                if !self.control.floors.contains(&stream) {
                    self.control.floors.push(stream);
                }
            }
            self.control.credit |= control.credit;
        }
    }

    // ---------------------------------------------------------------- what is allowed

    /// Reads the controller's decision.
    pub(super) fn obey(&mut self) {
        self.decision = self.controller.decision();
    }

    /// How packets are spread: as the controller says, or its window over the round trip.
    pub(super) fn pacing(&self) -> Pacing {
        match (self.decision.pacing, self.loss.smoothed()) {
            (Pacing::Unpaced, Some(rtt))
                if self.config.pace_windows && self.decision.window != Bytes::MAX =>
            {
                let gain = match self.decision.phase {
                    Phase::SlowStart => 2.0,
                    _ => 1.25,
                };
                Pacing::Rate(Rate::of(self.decision.window, rtt).mul_f64(gain))
            }
            (pacing, _) => pacing,
        }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        match self.pacing() {
            Pacing::Rate(rate) => Some(rate),
            Pacing::Gap(gap) => {
                let wire = u64::from(self.config.payload + self.config.overhead);
                Some(Rate::of(Bytes::new(wire), gap))
            }
            _ => None,
        }
    }

    /// Whether the window lets one more full packet leave.
    pub(super) fn has_window(&self) -> bool {
        let in_flight = self.sent.in_flight();
        in_flight == 0
            || in_flight.saturating_add(u64::from(self.config.payload))
                <= self.decision.window.get()
    }

    /// Whether the peer has room for more.
    pub(super) fn has_credit(&self) -> bool {
        self.outbox.accounts().bytes.in_flight < self.credit.bytes
    }

    /// Whether nothing but the peer's lack of room holds sections back, and nothing is on its way whose
    /// answer could tell of more.
    fn waits_for_credit(&self) -> bool {
        self.outbox.backlog() > 0 && !self.has_credit() && self.sent.in_flight_packets() == 0
    }

    /// The delay of packets to the peer, with what they wait for on the way now.
    pub(super) fn one_way(&self) -> Span {
        let least = self.loss.min().unwrap_or(Span::ZERO) / 2;
        least + self.path.queueing()
    }

    pub(super) fn outlook(&self) -> Outlook {
        let in_flight = self.outbox.accounts().bytes.in_flight;
        Outlook {
            rate: self.target.current(),
            one_way: self.one_way(),
            fresh_bytes: if self.probes > 0 {
                u64::from(self.config.payload)
            } else {
                self.credit.bytes.saturating_sub(in_flight)
            },
            fresh_sections: self.credit.sections,
        }
    }

    /// How many bytes this end has room for, beside those that it holds. A quarter is kept back for what is under
    /// way when the peer learns of it. The rest of sections that are not whole counts as room: the peer may
    /// always go on with what it has begun.
    pub(super) fn room(&self) -> u64 {
        (self.config.receive_buffer / 4 * 3).saturating_sub(self.inbox.accounts().held)
    }

    /// Whether the peer should hear how its sections fared.
    pub(super) fn has_report(&self) -> bool {
        self.statistics.received.packets > 0
            && self.last_received_at + REPORT_INTERVAL * 2 > self.control.report_at
    }

    pub(super) fn update_target(&mut self, now: Time) {
        let pacing = match self.decision.pacing {
            Pacing::Unpaced => None,
            _ => self.pacing_rate(),
        };
        let allowed = TargetBitrate::allowed(self.decision.window, self.loss.smoothed(), pacing);
        if let Some(allowed) = allowed {
            self.target.on_allowed(now, allowed);
        }
        if let Some(rate) = self.target.poll(now) {
            self.events.push_back(Event::TargetBitrate(rate));
        }
    }

    /// Moves what the outbox has to tell to where it is told.
    pub(super) fn collect_outcomes(&mut self) {
        while let Some(outcome) = self.outbox.poll_outcome() {
            self.events.push_back(Event::Outcome(outcome));
        }
        while let Some(notice) = self.outbox.poll_notice() {
            self.control.notices.push(notice);
        }
        while let Some((stream, _)) = self.outbox.poll_floor() {
            if !self.control.floors.contains(&stream) {
                self.control.floors.push(stream);
            }
        }
    }

    /// The path stopped carrying anything for so long that what is known of it is stale (RFC 9002, section
    /// 7.6).
    pub(super) fn on_persistent_congestion(&mut self, now: Time, in_flight: u64) {
        self.statistics.sent.persistent_congestions += 1;
        self.controller.on_timeout(&Timeout {
            now,
            in_flight: Bytes::new(in_flight),
            window: self.decision.window,
            consecutive: 1,
            duplicate_seen: false,
        });
        self.obey();
    }
}

/// How often the peer hears how its sections fared while they come.
pub(super) const REPORT_INTERVAL: Span = Span::from_millis(100);

/// How many numbers are used between two that are left out: 128 to 383, by the seed.
fn skip_distance(seed: Seed, next: u64) -> u64 {
    128 + (seed.derive("skip").index(next).get() & 0xff)
}
