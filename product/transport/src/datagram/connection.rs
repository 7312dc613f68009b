//! One end of a connection: its state, its timers and its interface to the application.

use alloc::boxed::Box;
use alloc::vec::Vec;

use comity_congestion::{Controller, Meter};
use comity_units::{DataSize, Rate, Span, Time};

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
/// The methods are of these kinds, to be called in this order:
///
/// * inputs: [`submit`](Self::submit), [`end`](Self::end), [`finish`](Self::finish),
///   [`close`](Self::close) by the application, [`on_packet`](Self::on_packet) by the network,
///   [`on_timer`](Self::on_timer) by the clock;
/// * outputs, polled after any input until they return nothing:
///   [`poll_transmit`](Self::poll_transmit), [`poll_delivery`](Self::poll_delivery),
///   [`poll_event`](Self::poll_event); then [`next_timer`](Self::next_timer).
///
/// All times are readings of one clock, and do not decrease from call to call.
#[derive(Debug)]
pub struct Connection<P: Payload> {
    pub(super) config: Config,
    /// The epoch of the deadlines and departures in packets.
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
    /// The size of packets, and the search for larger ones.
    pub(super) size: PathSize,
    pub(super) feedback: FeedbackFilter,
    /// The tokens of this end's packets, if acknowledgements are proved.
    pub(super) tokens: Option<Tokens>,
    /// The evidence about the peer's meter reports, if acknowledgements are proved.
    pub(super) evidence: Option<Evidence>,
    pub(super) reports: Reports,
    pub(super) departures: Departures,
    pub(super) ecn: EcnValidation,
    pub(super) notifications: Notifications,
    pub(super) statistics: Statistics,
}

impl<P: Payload> Connection<P> {
    /// Makes a connection that is open from `now` on. `now` is also the epoch of the times in this
    /// end's packets. `peer_ack_delay` is the peer's maximum acknowledgement delay. `meter` is the
    /// receiver's half of the peer's controller, if the controller has one. `controller` must be
    /// built for segments of [`Config::payload`] bytes.
    ///
    /// # Errors
    /// [`ConfigError`] if a setting is out of range.
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
        // Until the first report, the peer is assumed to have as much room as this end.
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

    /// Submits a section. Its times are on the same clock as `now`.
    ///
    /// A section whose deadline has passed is accepted, and reported as expired at once.
    ///
    /// # Errors
    /// [`outbox::SubmitError`] if it cannot be accepted: there is no room, it is invalid, or the
    /// connection is over.
    pub fn submit(
        &mut self,
        now: Time,
        section: Outgoing<P>,
    ) -> Result<SectionId, outbox::SubmitError> {
        let length = section.payload.len().into();
        if self.is_open() && self.outbox.fits_peer(section.stream, length) {
            // Judges the section by the present estimate, not by that of the last departure. A
            // section that the peer cannot hold changes nothing, however often it is submitted.
            self.congestion.fill(now);
            self.congestion.on_queue_changed();
            let estimate = self.estimate(now);
            self.outbox.look_ahead(now, &estimate);
        }
        self.outbox.submit(now, section)
    }

    /// Uses the next number of a stream without a section. The peer gets a gap with this reason.
    /// Later sections that need this number are abandoned.
    ///
    /// # Errors
    /// [`outbox::SubmitError`] if the stream accepts nothing more.
    pub fn skip(
        &mut self,
        stream: StreamId,
        reason: Reason,
    ) -> Result<SectionId, outbox::SubmitError> {
        self.outbox.skip(stream, reason)
    }

    /// Uses the next `count` numbers of a stream without sections; see
    /// [`outbox::Outbox::skip_run`]. Returns the first number.
    ///
    /// # Errors
    /// [`outbox::SubmitError`] if the stream accepts no more, or not this many.
    pub fn skip_run(
        &mut self,
        stream: StreamId,
        count: u64,
        reason: Reason,
    ) -> Result<SectionId, outbox::SubmitError> {
        self.outbox.skip_run(stream, count, reason)
    }

    /// Whether every stream so far has room for a section of `length` bytes. Also true if no
    /// section of this length can ever be accepted.
    pub fn has_room(&self, length: u64) -> bool {
        self.outbox.has_room(length)
    }

    /// Whether there can never be room for a section of `length` bytes.
    pub fn never_fits(&self, length: u64) -> bool {
        self.outbox.never_fits(length)
    }

    /// Checks whether a section would be accepted now.
    ///
    /// # Errors
    /// [`outbox::SubmitError`] if it would not.
    pub fn check(&self, section: &Outgoing<P>) -> Result<(), outbox::SubmitError> {
        self.outbox.check(section)
    }

    /// The sections and bytes in the send buffer.
    pub fn held(&self) -> (usize, u64) {
        self.outbox.held()
    }

    /// The maximum number of open sections at the peer.
    pub const fn max_open(&self) -> u64 {
        self.outbox.max_open()
    }

    /// Withdraws a section. Returns whether it was not settled yet.
    pub fn cancel(&mut self, stream: StreamId, section: SectionId) -> bool {
        self.outbox.cancel(stream, section)
    }

    /// Ends a stream: no more sections follow. The end is retransmitted until the peer acknowledges
    /// it.
    ///
    /// # Errors
    /// [`outbox::SubmitError`] if the stream has ended, or exceeds the number of streams. Nothing
    /// about such a stream is sent to the peer.
    pub fn end(&mut self, stream: StreamId) -> Result<(), outbox::SubmitError> {
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

    /// Whether every section has its outcome, and the peer has acknowledged all frames that must
    /// reach it.
    pub fn is_settled(&self) -> bool {
        self.outbox.is_settled()
            && self.control.ends.is_empty()
            && !self.outbox.has_news()
            && self.sent.in_flight_packets() == 0
    }

    /// Closes the connection. Unsettled sections become gaps at both ends. If the peer had already
    /// ended the connection, sections that still wait for their deadlines are ready at once.
    pub fn close(&mut self, now: Time, code: CloseCode, reason: &str) {
        if self.is_open() {
            self.outbox.close();
            let timeout = self.loss.base_timeout();
            self.lifecycle.close(now, timeout, code, reason);
        }
        self.inbox.close();
    }

    /// Closes the connection as [`close`](Self::close) does, and discards all undelivered data.
    /// Their memory is free at once.
    pub fn evict(&mut self, now: Time, code: CloseCode, reason: &str) {
        self.close(now, code, reason);
        self.inbox.discard();
    }

    /// The memory of the peer's sections, and of the records of this end's, in bytes: an upper
    /// bound. The payloads in the send buffer do not count.
    pub fn memory(&self) -> u64 {
        self.inbox.memory() + self.outbox.memory()
    }

    /// Sets the maximum of [`memory`](Self::memory) from now on; see [`Inbox::set_memory_limit`].
    pub fn set_memory_limit(&mut self, limit: u64) {
        let limit = limit.saturating_sub(self.outbox.memory());
        self.inbox.set_memory_limit(limit);
    }

    /// Whether data was refused for lack of memory since the last call.
    pub const fn take_shortage(&mut self) -> bool {
        self.inbox.take_shortage()
    }

    /// Why the connection is over; `None` while it is open.
    pub fn close_reason(&self) -> Option<&CloseReason> {
        self.lifecycle.reason()
    }

    /// The peer has ended the connection or has timed out. Every section of this end gets its
    /// outcome. Received sections that wait for their deadlines are still delivered, within
    /// [`Config::play_out`].
    pub(super) fn play_out(&mut self, now: Time) {
        self.inbox.play_out(now + self.config.play_out);
        self.outbox.close();
    }

    /// Whether sections or gaps remain to be polled.
    pub fn has_deliveries(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// The peer violated the protocol: closes the connection, and every section of either end gets
    /// its outcome.
    pub(super) fn fail(&mut self, now: Time, violation: Violation) {
        if self.is_open() {
            self.inbox.close();
            self.outbox.close();
            let timeout = self.loss.base_timeout();
            self.lifecycle.on_violation(now, timeout, violation);
        }
    }

    /// The next section, whole or as a gap. Each section is returned exactly once, in the order of
    /// its stream.
    pub fn poll_delivery(&mut self, now: Time) -> Option<Delivery<P>> {
        let delivery = self.inbox.poll(now, &self.clock)?;
        let (room, admitted) = (self.room(), self.inbox.admitted());
        self.advertised.on_freed(room, admitted);
        Some(delivery)
    }

    /// The next event. Outcomes that are not polled count as held sections.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(outcome) = self.outbox.poll_outcome() {
            return Some(Event::Outcome(outcome));
        }
        if let Some(event) = self.notifications.poll_event() {
            return Some(event);
        }
        self.lifecycle.poll_reason().map(Event::Closed)
    }

    /// Whether the connection is over and has nothing more to send.
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

    /// Sets a round-trip time that the handshake measured before the first packet. It is the base
    /// of the map between the clocks of both ends until a packet measures another one.
    pub fn set_round_trip(&mut self, round_trip: Span) {
        self.clock.set_base_one_way(round_trip / 2);
    }

    /// Requests an answer from the peer: the next packet is ACK-eliciting.
    pub const fn ping(&mut self) {
        self.control.ping = true;
    }

    /// The time to wait for an answer before repeating a request.
    pub fn probe_timeout(&self) -> Span {
        self.loss.base_timeout()
    }

    /// The next path frame of the last received packet.
    pub fn poll_path_frame(&mut self) -> Option<PathFrame> {
        self.notifications.poll_path_frame()
    }

    /// The peer has moved to another path. Measurements of the old path are invalid, and the
    /// packets that left on it are not measurements of the new path (RFC 9000, section 9.4). Their
    /// contents are retransmitted, unless an acknowledgement shows that they arrived.
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

    /// The peer has another address, and congestion control continues: packets in flight still
    /// count, and so do their losses. The next packet is ACK-eliciting. Its acknowledgement shows
    /// within a round trip which packets went to the old address in vain.
    ///
    /// At `another_host`, the path may carry only smaller packets, and may treat marks differently.
    pub fn on_kept_path(&mut self, another_host: bool) {
        self.ping();
        if another_host {
            self.size.on_new_path();
            self.ecn.on_path_changed(self.config.ecn);
        }
    }

    /// The system refused to send a packet with this protected payload to the peer: it exceeds the
    /// MTU of the first link.
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

    /// Records lost packets from now on for [`take_losses`](Self::take_losses), which must then be
    /// called often.
    pub fn keep_losses(&mut self) {
        self.notifications.keep_losses();
    }

    /// The packets declared lost since the last call.
    pub fn take_losses(&mut self) -> Vec<LostPacket> {
        self.notifications.take_losses()
    }

    /// Received packets, without duplicates.
    pub const fn received_packets(&self) -> u64 {
        self.statistics.received.packets
    }

    /// The minimum round-trip time, once there is one.
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
            in_flight: DataSize::new(self.sent.in_flight()),
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

    /// Whether the controller sets when each packet leaves ([`Pacing::Gap`], [`Pacing::At`]). Such
    /// a controller depends on the gap between two packets, so a higher rate afterwards does not
    /// compensate for a late packet.
    ///
    /// [`Pacing::Gap`]: comity_congestion::Pacing::Gap
    /// [`Pacing::At`]: comity_congestion::Pacing::At
    pub const fn times_departures(&self) -> bool {
        self.congestion.times_departures()
    }

    /// The bitrate at which the application should submit now, without headers and losses. It is
    /// the average rate that the controller allows, and at most the measured capacity of the path.
    /// In slow start, before one of these limits the connection, it is twice the rate that the
    /// connection has used; `None` before that rate is measured.
    pub fn target_bitrate(&self) -> Option<Rate> {
        self.target.current()
    }

    /// The capacity of the bottleneck, if the controller knows or estimates it.
    pub fn capacity(&self) -> Option<Rate> {
        self.congestion.capacity()
    }

    /// The local time at which the peer's clock shows `time`. The times of the peer's sections are
    /// on that clock.
    pub fn to_local(&self, time: Time) -> Time {
        self.clock.to_local(time)
    }

    /// How much faster the peer's clock runs than this end's, in parts per million.
    pub fn clock_drift_ppm(&self) -> f64 {
        self.clock.drift_ppm()
    }

    /// When the pacer releases the next piece of a section; `None` if something else holds it back,
    /// or there is none.
    pub fn release_at(&self) -> Option<Time> {
        let waits =
            self.is_open() && self.outbox.backlog() > 0 && self.has_window() && self.has_credit();
        waits.then(|| self.released_at())
    }

    /// The room that the peer announced before the first packet: its whole buffer.
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

    /// The configuration.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Bytes of sections that wait to be sent.
    pub fn backlog(&self) -> u64 {
        self.outbox.backlog()
    }
}

/// The maximum number of sections with data in the inbox: as many pieces of a fixed size as fill
/// the buffer. Without this limit, a peer that sends sections of one byte would take many times the
/// memory of the buffer.
fn max_records(config: &Config) -> usize {
    const LEAST: u64 = 256;
    let records = (config.receive_buffer / LEAST).max(u64::from(config.receive_sections));
    usize::try_from(records).unwrap_or(usize::MAX)
}
