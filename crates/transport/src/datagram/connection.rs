//! One end of a connection: its state, its timers and what the application sees.

use alloc::boxed::Box;
use alloc::vec::Vec;

use comity_congestion::{Controller, Meter};
use comity_units::{Bytes, Rate, Span, Time};

use super::advertised_room::AdvertisedRoom;
use super::ceiling::Ceiling;
use super::config::{Config, ConfigError};
use super::congestion::Congestion;
use super::credit::PeerCredit;
use super::departures::Departures;
use super::ecn::EcnValidation;
use super::events::{CloseReason, Event, LostPacket, PathFrame, Violation};
use super::evidence::Evidence;
use super::feedback::FeedbackFilter;
use super::lifecycle::Lifecycle;
use super::loss::LossDetection;
use super::notifications::Notifications;
use super::parts::{Contents, Control, Path};
use super::proof::Tokens;
use super::reception::Reception;
use super::reports::Reports;
use super::sent::SentPackets;
use super::size::PathSize;
use super::statistics::{PathStatistics, Statistics};
use super::target::TargetBitrate;
use crate::timeline::{
    ClockMap, DEFAULT_BUFFER, Delivery, Inbox, Outbox, Outgoing, Payload, Reason, SectionId,
    StreamId, inbox, outbox,
};
use crate::wire::CloseCode;
use crate::wire::limits::MAX_SECTION;

/// One end of a connection, open from the beginning.
///
/// Kinds of method, and the order in which they are called:
///
/// * inputs: [`submit`](Self::submit), [`end`](Self::end), [`finish`](Self::finish),
///   [`close`](Self::close) by the application, [`on_packet`](Self::on_packet) by the network,
///   [`on_timer`](Self::on_timer) by the clock;
/// * outputs, polled after any input until they give nothing:
///   [`poll_transmit`](Self::poll_transmit), [`poll_delivery`](Self::poll_delivery),
///   [`poll_event`](Self::poll_event); then [`next_timer`](Self::next_timer).
///
/// Times are of one clock and do not decrease from call to call.
#[derive(Debug)]
pub struct Connection<P: Payload> {
    pub(super) config: Config,
    /// Zero of the clock of the deadlines and departures in packets.
    pub(super) epoch: Time,
    pub(super) lifecycle: Lifecycle,
    pub(super) outbox: Outbox<P>,
    pub(super) inbox: Inbox<P>,
    pub(super) clock: ClockMap,
    pub(super) sent: SentPackets<Contents>,
    pub(super) reception: Reception,
    pub(super) loss: LossDetection,
    pub(super) congestion: Congestion,
    pub(super) ceiling: Ceiling,
    pub(super) target: TargetBitrate,
    pub(super) credit: PeerCredit,
    pub(super) advertised: AdvertisedRoom,
    pub(super) control: Control,
    pub(super) path: Path,
    /// How large packets may be.
    pub(super) size: PathSize,
    pub(super) feedback: FeedbackFilter,
    /// The tokens of this end's packets, where acknowledgements are proved.
    pub(super) tokens: Option<Tokens>,
    /// What is proved of the packets that the peer's meter reports on, where acknowledgements are.
    pub(super) evidence: Option<Evidence>,
    pub(super) reports: Reports,
    pub(super) departures: Departures,
    pub(super) ecn: EcnValidation,
    pub(super) notifications: Notifications,
    pub(super) statistics: Statistics,
}

impl<P: Payload> Connection<P> {
    /// A connection that is open from `now` on; `now` is also the zero of the clock that this end
    /// tells its deadlines in. `peer_ack_delay` is the largest delay with which the peer said it
    /// acknowledges, and `meter` the receiver's half of the peer's controller, if that has one. The
    /// controller is to be built for segments of [`Config::payload`] bytes.
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
        let outbox = outbox::Config {
            reliability: config.reliability,
            drop: config.drop,
            max_bytes: config.send_buffer,
            max_sections: config.send_sections as usize,
            ..outbox::Config::default()
        };
        let inbox = inbox::Config {
            deliver: config.deliver,
            enforce_deadlines: config.expect_deadlines,
            max_bytes: config.receive_buffer,
            max_sections: u64::from(config.receive_sections),
            max_records: max_records(&config),
            max_latency: config.max_latency,
            ..inbox::Config::default()
        };
        let congestion = Congestion::new(controller, config.pace_windows);
        // Until the peer says otherwise it is taken to have as much room as this end.
        let peers_room = match config.takes_sections() {
            true => config.receive_buffer,
            false => DEFAULT_BUFFER,
        };
        let evidence = config
            .proofs
            .then(|| Evidence::new(congestion.needs().losses));
        let mut connection = Self {
            epoch: now,
            lifecycle: Lifecycle::new(),
            outbox: Outbox::new(outbox),
            inbox: Inbox::new(inbox),
            clock: ClockMap::default(),
            sent: SentPackets::new(now),
            reception: Reception::new(config.ack_frequency, config.ack_delay, now),
            loss: LossDetection::new(peer_ack_delay),
            congestion,
            ceiling: Ceiling::new(config.max_rate),
            target: TargetBitrate::new(config.max_rate),
            credit: PeerCredit::new(peers_room),
            advertised: AdvertisedRoom::new(config.receive_buffer),
            control: Control::default(),
            path: Path::new(),
            size: PathSize::new(config.base_payload, config.payload),
            feedback: FeedbackFilter::default(),
            tokens: config.proofs.then(|| Tokens::new(config.seed)),
            evidence,
            reports: Reports::new(meter, now),
            departures: Departures::new(config.seed, now),
            ecn: EcnValidation::new(config.ecn),
            notifications: Notifications::default(),
            statistics: Statistics::default(),
            config,
        };
        let sections = u64::from(connection.config.receive_sections);
        connection.outbox.set_max_open(sections);
        let longest = peers_room.min(MAX_SECTION.into());
        connection.outbox.set_max_length(longest);
        let keeps = connection.congestion.needs().packet_numbers;
        connection.sent.keep_numbers(keeps);
        connection.sent.set_base(connection.size.base());
        if !connection.config.takes_sections() {
            connection.reception.refuse_sections();
        }
        Ok(connection)
    }

    // ---------------------------------------------------------------- application

    /// Takes a section. Its times are on the clock that `now` is of.
    ///
    /// A section whose deadline has passed is taken, and reported as expired at once.
    ///
    /// # Errors
    /// [`outbox::SubmitError`] when it cannot be taken: there is no room, it makes no sense, or the
    /// connection is over.
    pub fn submit(
        &mut self,
        now: Time,
        section: Outgoing<P>,
    ) -> Result<SectionId, outbox::SubmitError> {
        let length = section.payload.len().into();
        if self.is_open() && self.outbox.fits_peer(section.stream, length) {
            // A section is judged by the present estimate, not by that of the last departure. One
            // that the peer cannot hold changes nothing, however often a source submits it.
            self.congestion.fill(now);
            self.congestion.on_queue_changed();
            let estimate = self.estimate(now);
            self.outbox.look_ahead(now, &estimate);
        }
        self.outbox.submit(now, section)
    }

    /// Uses up the next number of a stream without a section. The peer gets a gap with this reason,
    /// and later sections that need this number are abandoned.
    ///
    /// # Errors
    /// [`outbox::IntakeError`] when the stream accepts nothing more.
    pub fn skip(
        &mut self,
        stream: StreamId,
        reason: Reason,
    ) -> Result<SectionId, outbox::IntakeError> {
        self.outbox.skip(stream, reason)
    }

    /// Uses up the next `count` numbers of a stream; see [`outbox::Outbox::skip_run`]. Returns the
    /// first.
    ///
    /// # Errors
    /// [`outbox::IntakeError`] when the stream accepts no more, or not so many.
    pub fn skip_run(
        &mut self,
        stream: StreamId,
        count: u64,
        reason: Reason,
    ) -> Result<SectionId, outbox::IntakeError> {
        self.outbox.skip_run(stream, count, reason)
    }

    /// Whether there is room for a section of `length` bytes in every stream so far, or there never
    /// will be.
    pub fn has_room(&self, length: u64) -> bool {
        self.outbox.has_room(length)
    }

    /// Sections and their bytes in the send buffer.
    pub fn held(&self) -> (usize, u64) {
        self.outbox.held()
    }

    /// How many sections the peer keeps apart.
    pub const fn max_open(&self) -> u64 {
        self.outbox.max_open()
    }

    /// Withdraws a section. Returns whether it was not settled yet.
    pub fn cancel(&mut self, stream: StreamId, section: SectionId) -> bool {
        self.outbox.cancel(stream, section)
    }

    /// Ends a stream: no more sections will come. The peer learns of it reliably.
    ///
    /// # Errors
    /// [`outbox::IntakeError`] when the stream has ended, or is one too many: of such a stream the
    /// peer learns nothing.
    pub fn end(&mut self, stream: StreamId) -> Result<(), outbox::IntakeError> {
        let sections = self.outbox.end(stream)?;
        self.control.ends.push((stream, sections));
        Ok(())
    }

    /// Ends all streams. The connection [is settled](Self::is_settled) when every section has its
    /// outcome.
    pub fn finish(&mut self) {
        self.control.ends.extend(self.outbox.finish());
        self.loss.finish();
    }

    /// Whether every section has its outcome, and everything that the peer has to know was
    /// acknowledged.
    pub fn is_settled(&self) -> bool {
        self.outbox.is_settled()
            && self.control.ends.is_empty()
            && !self.outbox.has_news()
            && self.sent.in_flight_packets() == 0
    }

    /// Closes the connection. What is not settled becomes a gap on both sides. What the peer's
    /// close, or its silence, had left to be run out is ready at once.
    pub fn close(&mut self, now: Time, code: CloseCode, reason: &str) {
        if self.is_open() {
            self.outbox.close();
            let timeout = self.loss.base_timeout();
            self.lifecycle.close(now, timeout, code, reason);
        }
        self.inbox.close();
    }

    /// Closes the connection as [`close`](Self::close) does, and gives up all that has arrived and
    /// was not handed out: the memory is free at once.
    pub fn evict(&mut self, now: Time, code: CloseCode, reason: &str) {
        self.close(now, code, reason);
        self.inbox.discard();
    }

    /// The memory of what the peer sent, in bytes: an upper bound.
    pub fn memory(&self) -> u64 {
        self.inbox.memory()
    }

    /// Sets the most memory that what the peer sends may take from now on; see
    /// [`Inbox::set_memory_limit`].
    pub fn set_memory_limit(&mut self, limit: u64) {
        self.inbox.set_memory_limit(limit);
    }

    /// Whether something was refused because of the limit of memory since the last call.
    pub const fn take_shortage(&mut self) -> bool {
        self.inbox.take_shortage()
    }

    /// Why the connection is over; `None` while it is open.
    pub fn close_reason(&self) -> Option<&CloseReason> {
        self.lifecycle.reason()
    }

    /// The peer has ended the connection or is gone: every section gets its outcome, and what is to
    /// be handed over at its deadline still is.
    pub(super) fn play_out(&mut self, now: Time) {
        self.inbox.play_out(now + self.config.play_out);
        self.outbox.close();
    }

    /// Whether sections or gaps are still to be polled.
    pub fn has_deliveries(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// The peer broke the rules: the connection is closed, and every section of either end gets its
    /// outcome.
    pub(super) fn fail(&mut self, now: Time, violation: Violation) {
        if self.is_open() {
            self.inbox.close();
            self.outbox.close();
            let timeout = self.loss.base_timeout();
            self.lifecycle.on_violation(now, timeout, violation);
        }
    }

    /// The next section, whole or as a gap; each exactly once, in the order of its stream.
    pub fn poll_delivery(&mut self, now: Time) -> Option<Delivery<P>> {
        let delivery = self.inbox.poll(now, &self.clock)?;
        let (room, admitted) = (self.room(), self.inbox.admitted());
        self.advertised.on_freed(room, admitted);
        Some(delivery)
    }

    /// What happened since the last call. Outcomes that are not polled count as held sections.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(outcome) = self.outbox.poll_outcome() {
            return Some(Event::Outcome(outcome));
        }
        if let Some(event) = self.notifications.poll_event() {
            return Some(event);
        }
        self.lifecycle.poll_reason().map(Event::Closed)
    }

    /// Whether the connection is over and owes nothing to anybody.
    pub fn is_closed(&self) -> bool {
        self.lifecycle.is_closed()
    }

    /// Whether the connection is open.
    pub fn is_open(&self) -> bool {
        self.lifecycle.is_open()
    }

    /// Whether the peer has ended the stream and all of it was delivered.
    pub fn is_finished(&self, stream: StreamId) -> bool {
        self.inbox.is_finished(stream)
    }

    /// Says how long a round trip took before the first packet, as a handshake measures it. The
    /// clocks of the ends are related by it until a packet ends another one.
    pub fn set_round_trip(&mut self, round_trip: Span) {
        self.clock.set_base_one_way(round_trip / 2);
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
        self.notifications.poll_path_frame()
    }

    /// The peer has moved to another path: nothing measured on the old one holds, and what becomes
    /// of packets that left on it says nothing of the new one (RFC 9000, section 9.4). They went to
    /// the old address: what they carry is retransmitted, but for what they turn out to have
    /// brought.
    pub fn on_new_path(&mut self, now: Time, controller: Box<dyn Controller>) {
        self.loss.on_new_path();
        for contents in self.sent.abandon() {
            self.requeue(now, contents);
        }
        self.loss.on_progress(false);
        self.departures.on_answer();
        self.congestion
            .on_new_path(now, controller, self.feedback.last_tag());
        self.feedback.on_new_path();
        if let Some(evidence) = &mut self.evidence {
            evidence.on_new_path();
        }
        let keeps = self.congestion.needs().packet_numbers;
        self.sent.keep_numbers(keeps);
        self.path = Path::new();
        self.size.on_new_path();
        self.target = TargetBitrate::new(self.config.max_rate);
        self.ecn.on_path_changed(self.config.ecn);
    }

    /// The system refused to send a packet of this protected payload to the peer: it is larger than
    /// the first link of the path carries.
    pub fn on_too_large(&mut self, now: Time, payload: u32) {
        if self.is_open() {
            self.size.on_refused(now, payload);
            self.tell_size();
        }
    }

    pub(super) fn tell_size(&mut self) {
        if let Some(payload) = self.size.news() {
            self.notifications.on_event(Event::PathSize {
                payload,
                most: self.config.payload,
            });
        }
    }

    /// From now on remembers lost packets for [`take_losses`](Self::take_losses), which is to be
    /// called often then.
    pub fn keep_losses(&mut self) {
        self.notifications.keep_losses();
    }

    /// The packets that were declared lost since the last call.
    pub fn take_losses(&mut self) -> Vec<LostPacket> {
        self.notifications.take_losses()
    }

    /// Packets that arrived, each number once.
    pub const fn received_packets(&self) -> u64 {
        self.statistics.received.packets
    }

    /// The least round-trip time, once there is one.
    pub fn min_rtt(&self) -> Option<Span> {
        self.loss.min()
    }

    /// A snapshot of all counters.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics.clone();
        statistics.received.missing_packets = self.reception.missing();
        statistics.outbox = *self.outbox.counters();
        statistics.inbox = *self.inbox.counters();
        statistics.path = PathStatistics {
            srtt: self.loss.smoothed(),
            rtt_variation: self.loss.variation(),
            latest_rtt: self.loss.latest(),
            min_rtt: self.loss.min(),
            one_way_delay: self
                .loss
                .min()
                .map(|least| least / 2 + self.path.queueing()),
            window: self.congestion.window(),
            in_flight: Bytes::new(self.sent.in_flight()),
            ssthresh: self.congestion.ssthresh(),
            pacing_rate: self.pacing_rate(),
            peak_rate: self.congestion.bucket().map(|bucket| bucket.peak),
            tokens: self.congestion.tokens().map(|tokens| tokens.level),
            capacity: self.congestion.capacity(),
            phase: self.congestion.phase(),
            target_bitrate: self.target.current(),
            payload: self.size.current(),
        };
        statistics
    }

    /// Whether the controller sets when each packet leaves ([`Pacing::Gap`], [`Pacing::At`]). It
    /// then works by the space between two packets, and no average compensates a late one.
    ///
    /// [`Pacing::Gap`]: comity_congestion::Pacing::Gap
    /// [`Pacing::At`]: comity_congestion::Pacing::At
    pub const fn times_departures(&self) -> bool {
        self.congestion.times_departures()
    }

    /// What the application may send now: what the controller allows on the average, and at most
    /// what the path was seen to carry, less headers and losses; `None` while neither has a limit
    /// yet.
    pub fn target_bitrate(&self) -> Option<Rate> {
        self.target.current()
    }

    /// The capacity of the bottleneck, when the controller knows or estimates it.
    pub fn capacity(&self) -> Option<Rate> {
        self.congestion.capacity()
    }

    /// The local time at which the peer's clock, on which the times of its sections are, shows
    /// `time`.
    pub fn to_local(&self, time: Time) -> Time {
        self.clock.to_local(time)
    }

    /// How much faster than this end's clock the peer's runs, in parts per million.
    pub fn clock_drift_ppm(&self) -> f64 {
        self.clock.drift_ppm()
    }

    /// When the pacer lets the next piece of a section leave; `None` when something else holds it
    /// back, or there is none.
    pub fn release_at(&self) -> Option<Time> {
        let waits =
            self.is_open() && self.outbox.backlog() > 0 && self.has_window() && self.has_credit();
        waits.then(|| self.released_at())
    }

    /// What the peer said before the first packet that it has room for: the whole of its buffer.
    pub const fn set_initial_credit(&mut self, bytes: u64, sections: u32) {
        self.credit.set_initial(bytes);
        let max_section = MAX_SECTION as u64;
        let longest = if bytes < max_section {
            bytes
        } else {
            max_section
        };
        self.outbox.set_max_length(longest);
        self.outbox.set_max_open(sections as u64);
    }

    /// The settings.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Bytes of sections that wait to be sent.
    pub fn backlog(&self) -> u64 {
        self.outbox.backlog()
    }
}

/// How many sections the inbox may hold something of: as many as fill the buffer with pieces of
/// this size, so that a peer that sends them byte by byte does not take many times the memory that
/// the buffer stands for.
fn max_records(config: &Config) -> usize {
    const LEAST: u64 = 256;
    let records = (config.receive_buffer / LEAST).max(u64::from(config.receive_sections));
    usize::try_from(records).unwrap_or(usize::MAX)
}
