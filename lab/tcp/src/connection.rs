//! The connection: states, handshake, and the two halves.

mod getters;
mod meter;
mod network;
mod output;
mod timestamps;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Range;

use comity_congestion::{Controller, Meter};
use comity_units::{SeqNo, Time};
use timestamps::{RecentTimestamp, timestamp};

use super::config::Config;
use super::receiver::Receiver;
use super::segment::{Flags, SackBlocks, Segment};
use super::sender::{Acknowledgement, Sender};
use super::state::State;
use super::timeline::{Piece, SectionError, SeqUpdate};

/// One end of a TCP connection, as a pure state machine.
///
/// It counts payload but does not carry it; the host keeps the bytes by stream offset.
///
/// # Order of calls
/// There are four kinds of method:
/// 1. inputs: [`Connection::on_segment`], [`Connection::on_timer`], [`Connection::write`],
///    [`Connection::close`], [`Connection::read`];
/// 2. [`Connection::poll_transmit`], to be called after each input until it returns `None`;
/// 3. [`Connection::next_timer`], to be read afterwards: the time of the next
///    [`Connection::on_timer`] ([`Time::MAX`] for none). A timer may move later without notice; a
///    host that wakes early reads it again;
/// 4. getters.
///
/// The times of successive calls must not decrease.
///
/// Source: RFC 9293; RFC 5681 and RFC 6675 for sending, RFC 6298 for the timer, RFC 7323 for window
/// scale and timestamps, RFC 2018 and RFC 2883 for SACK, RFC 8985 and RFC 9937 for RACK-TLP and its
/// rate reduction, RFC 3168 for marks, RFC 3042 for limited transmit.
///
/// Differs from RFC 9293 in: 1. no urgent data; 2. no Nagle algorithm, because media applications
/// write data when it is due; 3. timestamps tick as [`Config::timestamp_tick`] sets, by default
/// once per microsecond; 4. a window probe carries the last acknowledged number and no payload, as
/// with current hosts; 5. a SYN carries no data; 6. a segment whose bytes are all old triggers an
/// acknowledgement, and its own acknowledgement still counts, but not as a duplicate; 7. at an
/// unchanged acknowledgement number the peer's window only grows. This is the rule of `SND.WL1` and
/// `SND.WL2` for peers that never shrink their window, and it needs no memory of segments; 8. the
/// limit to retransmissions (R2) is a number of expiries and not a time, is off unless
/// [`Config::give_up_after`] sets it, and has no earlier warning (R1); 9. a reset ends a listening
/// end, because it represents one connection and not a port; 10. with [`Config::skip_segments`],
/// some segments leave after their successors, and the connection ends if the peer acknowledges one
/// before it left.
///
/// Differs from RFC 5681 in: 1. a lost SYN does not reduce the initial window to one segment, as in
/// ns-2; 2. a flow that was idle for longer than the retransmission timeout halves its window for
/// each further timeout of the pause ([`Config::restart_after_idle`]), where section 4.1 restarts
/// from the initial window. Differs from RFC 7323 in: timestamps that claim to echo the future are
/// ignored. Differs from RFC 2018 in: with the scoreboard of RFC 6675, selectively acknowledged
/// data stays acknowledged over a timeout unless the peer reneged (erratum 1610).
#[derive(Debug)]
pub struct Connection {
    state: State,
    config: Arc<Config>,
    sender: Sender,
    receiver: Receiver,
    /// The receiver's half of the peer's controller.
    meter: Option<Box<dyn Meter>>,
    /// The shift of the peer's windows in bits.
    peer_scale: u8,
    recent_timestamp: RecentTimestamp,
    /// The last acknowledgement sent, as an offset; RFC 7323's Last.ACK.sent.
    last_ack_sent: u64,
    time_wait_until: Time,
    was_reset: bool,
    gave_up: bool,
    was_deceived: bool,
    /// Whether the last segment was acceptable.
    was_accepted: bool,
    /// The reset that answers a segment of no known connection.
    refusal: Option<Refusal>,
}

/// The fields that identify a reset to the peer (RFC 9293, section 3.5.2).
#[derive(Clone, Copy, Debug)]
struct Refusal {
    sequence: SeqNo,
    /// Set if the refused segment acknowledged nothing.
    acknowledgement: Option<SeqNo>,
}

impl Connection {
    fn new(state: State, mut config: Arc<Config>, controller: Option<Box<dyn Controller>>) -> Self {
        let mut recovery = config.recovery.with_sack(config.sack);
        // With a handshake, the peer has yet to agree.
        if config.timeline.is_some() && !config.handshake {
            recovery = recovery.for_timeline();
        }
        if recovery != config.recovery {
            config = Arc::new(Config {
                recovery,
                ..*config
            });
        }
        Self {
            state,
            sender: Sender::new(&config, controller),
            receiver: Receiver::new(&config),
            meter: None,
            config,
            peer_scale: 0,
            recent_timestamp: RecentTimestamp::default(),
            last_ack_sent: 0,
            time_wait_until: Time::MAX,
            was_reset: false,
            gave_up: false,
            was_deceived: false,
            was_accepted: false,
            refusal: None,
        }
    }

    /// Creates an end that opens the connection. The first [`Connection::poll_transmit`] returns
    /// its SYN.
    ///
    /// With [`Config::handshake`] off, the connection starts established, and both ends are assumed
    /// to have the same settings.
    pub fn connect(config: Arc<Config>, controller: Box<dyn Controller>) -> Self {
        if config.handshake {
            Self::new(State::SynSent, config, Some(controller))
        } else {
            Self::born_established(config, Some(controller))
        }
    }

    /// Creates an end that waits for a SYN. With [`Config::handshake`] off, it starts established.
    pub fn listen(config: Arc<Config>, controller: Box<dyn Controller>) -> Self {
        Self::listen_with(config, Some(controller))
    }

    /// Creates an end that waits for a SYN and only receives. It has no controller, takes no
    /// round-trip samples, keeps no counters and ignores writes. It acknowledges and closes as any
    /// other end, with the initial timeout of RFC 6298. It needs less than half of the memory.
    pub fn listen_to_receive(config: Arc<Config>) -> Self {
        Self::listen_with(config, None)
    }

    fn listen_with(config: Arc<Config>, controller: Option<Box<dyn Controller>>) -> Self {
        if config.handshake {
            Self::new(State::Listen, config, controller)
        } else {
            Self::born_established(config, controller)
        }
    }

    fn born_established(config: Arc<Config>, controller: Option<Box<dyn Controller>>) -> Self {
        let peer_window = config.receive_buffer.get();
        let mut connection = Self::new(State::Established, config, controller);
        connection.peer_scale = connection.receiver.scale;
        let initial = connection.config.initial_sequence;
        connection.receiver.begin(initial);
        connection.last_ack_sent = 1;
        let _ = connection.receiver.offer(&connection.config, true);
        connection.sender.stream.establish(1, peer_window);
        connection
    }

    // ---------------------------------------------------------------- application

    /// Submits `bytes` more bytes to send. Ignored after [`Connection::close`] and at an end that
    /// only receives.
    pub fn write(&mut self, bytes: u64) {
        // Only a closed stream refuses data without a deadline, and then it is ignored.
        let _ = self.write_section(bytes, Time::MAX);
    }

    /// Submits a section of `bytes` bytes that expires at `deadline`. Without a time-line that both
    /// ends agreed on, it is delivered as any other data.
    ///
    /// # Errors
    /// [`SectionError`]; the stream is unchanged.
    pub fn write_section(&mut self, bytes: u64, deadline: Time) -> Result<(), SectionError> {
        self.sender.begin_event();
        if self.sender.stream.fin || self.sender.only_receives() {
            return Err(SectionError::Closed);
        }
        let stream = &mut self.sender.stream;
        let bytes = bytes.min((u64::MAX / 4).saturating_sub(stream.end));
        if let Some(line) = &mut stream.line {
            line.add(bytes, deadline)?;
        }
        stream.end += bytes;
        Ok(())
    }

    /// Submits data without end.
    pub fn write_without_end(&mut self) {
        self.write(u64::MAX / 4);
    }

    /// Ends a stream that was submitted without end: no data beyond the bytes already sent will be
    /// sent.
    pub fn truncate(&mut self) {
        let stream = &mut self.sender.stream;
        stream.end = stream.end.min(stream.max.max(1));
        if let Some(line) = &mut stream.line {
            line.truncate(stream.end);
        }
    }

    /// Ends the stream; a FIN follows the submitted data.
    pub fn close(&mut self) {
        self.sender.begin_event();
        if self.sender.stream.fin {
            return;
        }
        match self.state {
            State::Listen | State::Closed => self.state = State::Closed,
            // Nothing was sent and nothing is queued: no connection exists that could end.
            State::SynSent if self.sender.stream.max == 0 && self.sender.stream.end <= 1 => {
                self.state = State::Closed;
            }
            State::Established | State::SynReceived | State::SynSent => {
                self.sender.stream.fin = true;
                if self.state == State::Established {
                    self.state = State::FinWait1;
                }
            }
            State::CloseWait => {
                self.sender.stream.fin = true;
                self.state = State::LastAck;
            }
            _ => {}
        }
    }

    /// Reads up to `limit` bytes that arrived in order; returns how many were available.
    pub fn read(&mut self, limit: u64) -> u64 {
        self.receiver.read(limit, &self.config)
    }

    /// Reads the next piece of the stream: up to `limit` bytes that arrived, or the whole of a gap.
    /// Returns `None` if no more is known. [`Connection::read`] passes over gaps.
    pub fn read_piece(&mut self, limit: u64) -> Option<Piece> {
        self.receiver.read_piece(limit, &self.config)
    }

    // ---------------------------------------------------------------- input

    /// Processes a segment of this connection.
    ///
    /// Returns the range of its payload that the connection accepted, as offsets in the peer's
    /// stream, where payload begins at 1. A host that carries bytes stores exactly this range. It
    /// is empty if the segment was not acceptable, or held only old data.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) -> Range<u64> {
        self.sender.begin_event();
        self.was_accepted = false;
        if self.state == State::Established
            && let Some(accepted) = self.on_expected(now, segment)
        {
            self.was_accepted = true;
            return accepted;
        }
        match self.state {
            State::Closed => self.refuse(segment),
            State::Listen => self.on_first_syn(now, segment),
            State::SynSent => self.on_segment_in_syn_sent(now, segment),
            _ => return self.on_synchronized(now, segment),
        }
        NOTHING
    }

    /// Header prediction (Jacobson 1990): the short path for the two segments of an undisturbed
    /// transfer, in-order data that acknowledges nothing new, and an acknowledgement of new data.
    /// Returns `None` for every other segment, without an effect. The full path gives the same
    /// result.
    #[inline]
    fn on_expected(&mut self, now: Time, segment: &Segment) -> Option<Range<u64>> {
        let only_ack = segment.flags.bits() & !Flags::PSH.bits() == Flags::ACK.bits();
        if !only_ack
            || self.config.metered
            || self.config.timestamps
            || self.config.ecn
            || self.config.skip_segments.is_some()
            || self.may_carry_update(segment)
            || segment.sequence != self.receiver.expected()
            || !segment.options.sack.is_empty()
        {
            return None;
        }
        let acked = segment
            .acknowledgement
            .distance_from(self.sender.stream.una_number(&self.config));
        let window = u64::from(segment.window) << self.peer_scale;
        if segment.payload > 0 {
            if acked != 0 || window != self.sender.stream.peer_window || self.receiver.has_gap() {
                return None;
            }
            let start = self.receiver.next;
            let accepted = self.take_payload(now, start, segment);
            self.consume_fin(now);
            return Some(accepted);
        }
        if acked <= 0 || self.sender.stream.fin {
            return None;
        }
        let stream = &self.sender.stream;
        let wire = stream.wire(stream.una) + u64::from(acked.unsigned_abs());
        if wire > stream.wire(stream.max) {
            return None;
        }
        let ack = Acknowledgement {
            offset: stream.offset(wire),
            wire,
            window,
            sacked: &[],
            duplicate: None,
            has_echo: false,
            echoed: None,
            peer_clock: None,
            is_pure: true,
        };
        self.sender.on_acknowledgement(now, &ack, &self.config);
        Some(NOTHING)
    }

    /// The timestamp of a segment, if both ends agreed on timestamps.
    fn peer_timestamp(&self, segment: &Segment) -> Option<u32> {
        let timestamps = segment.options.timestamps;
        timestamps
            .filter(|_| self.config.timestamps)
            .map(|timestamps| timestamps.value)
    }

    /// Whether a segment of a time-lined connection may carry an update of its stream.
    #[inline]
    fn may_carry_update(&self, segment: &Segment) -> bool {
        self.config.timeline.is_some()
            && segment.options.seq_update.as_ref().is_some_and(|update| {
                update.has_void() || update.expected.follows(self.receiver.expected())
            })
    }

    /// Answers a segment of no known connection with a reset, unless it is a reset itself.
    fn refuse(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        self.refusal = Some(if segment.flags.contains(Flags::ACK) {
            Refusal {
                sequence: segment.acknowledgement,
                acknowledgement: None,
            }
        } else {
            Refusal {
                sequence: SeqNo::ZERO,
                acknowledgement: Some(segment.sequence_end()),
            }
        });
    }

    fn on_first_syn(&mut self, now: Time, segment: &Segment) {
        if segment.flags.contains(Flags::ACK) {
            self.refuse(segment);
            return;
        }
        if segment.flags.contains(Flags::RST) || !segment.flags.contains(Flags::SYN) {
            return;
        }
        self.take_syn(now, segment);
        self.sender
            .stream
            .set_peer_window(u64::from(segment.window));
        self.state = State::SynReceived;
    }

    /// Processes the peer's SYN: its first number and its options.
    fn take_syn(&mut self, now: Time, segment: &Segment) {
        let options = &segment.options;
        let sack = self.config.sack && options.sack_permitted;
        let timeline = self
            .config
            .timeline
            .filter(|_| options.seq_update.is_some());
        let mut recovery = self.config.recovery.with_sack(sack);
        if timeline.is_some() {
            recovery = recovery.for_timeline();
        }
        self.receiver.begin(segment.sequence);
        let agreed = Config {
            mss: options
                .mss
                .map_or(536, u32::from)
                .min(self.config.mss)
                .max(1),
            sack,
            recovery,
            ecn: self.config.ecn && agrees_on_marks(segment.flags),
            timestamps: self.config.timestamps && options.timestamps.is_some(),
            window_scaling: self.config.window_scaling && options.window_scale.is_some(),
            timeline,
            ..*self.config
        };
        if agreed.timeline.is_none() {
            self.sender.stream.line = None;
        }
        if recovery != self.config.recovery {
            self.sender.set_recovery(recovery);
        }
        if agreed != *self.config {
            self.config = Arc::new(agreed);
        }
        if agreed.window_scaling {
            self.peer_scale = options.window_scale.unwrap_or(0).min(14);
        } else {
            self.receiver.scale = 0;
        }
        if let Some(timestamps) = options.timestamps {
            self.recent_timestamp = RecentTimestamp::new(now, timestamps.value);
        }
    }

    fn on_segment_in_syn_sent(&mut self, now: Time, segment: &Segment) {
        let flags = segment.flags;
        let acknowledges = flags.contains(Flags::ACK)
            && self.sender.stream.max == 1
            && segment.acknowledgement == self.config.initial_sequence + 1;
        if flags.contains(Flags::ACK) && !acknowledges {
            self.refuse(segment);
            return;
        }
        if flags.contains(Flags::RST) {
            if acknowledges {
                self.reset();
            }
            return;
        }
        if !flags.contains(Flags::SYN) {
            return;
        }
        self.take_syn(now, segment);
        if acknowledges {
            self.acknowledge_syn(now, segment);
            self.receiver.ack_now = true;
        } else {
            // Simultaneous open: send a SYN that acknowledges the peer's.
            self.sender
                .stream
                .set_peer_window(u64::from(segment.window));
            self.sender.stream.next = 0;
            self.state = State::SynReceived;
        }
    }

    /// Establishes the connection, because the peer has acknowledged this end's SYN.
    fn acknowledge_syn(&mut self, now: Time, segment: &Segment) {
        // The window of a SYN is never scaled.
        let scale = if segment.flags.contains(Flags::SYN) {
            0
        } else {
            self.peer_scale
        };
        let ack = Acknowledgement {
            offset: 1,
            wire: 1,
            window: u64::from(segment.window) << scale,
            sacked: &[],
            duplicate: None,
            has_echo: false,
            echoed: None,
            peer_clock: self.peer_timestamp(segment),
            is_pure: false,
        };
        self.sender.on_acknowledgement(now, &ack, &self.config);
        self.sender.stream.establish(1, ack.window);
        self.state = if self.sender.stream.fin {
            State::FinWait1
        } else {
            State::Established
        };
    }

    fn on_synchronized(&mut self, now: Time, segment: &Segment) -> Range<u64> {
        let flags = segment.flags;
        let Some(start) = self.receiver.offset(segment.sequence) else {
            // Before the peer's first number: not acceptable, as below.
            self.receiver.ack_now |= !flags.contains(Flags::RST);
            return NOTHING;
        };
        if flags.intersects(Flags::RST | Flags::SYN) {
            self.on_reset_or_syn(now, start, segment);
            return NOTHING;
        }
        if let Some(update) = &segment.options.seq_update
            && self.config.timeline.is_some()
        {
            self.take_update(now, start, segment, update);
        }
        let is_fin = flags.contains(Flags::FIN);
        let end = start + u64::from(segment.payload) + u64::from(is_fin);
        // RFC 9293, 3.10.7.4: a segment is acceptable inside the window and, if it is empty, at the
        // edges.
        let is_beyond = start > self.receiver.edge.max(self.receiver.next);
        let is_old = start < self.receiver.next && end <= self.receiver.next;
        if is_beyond || is_old {
            self.receiver.ack_now = true;
        }
        // RFC 7323, 3.2: once agreed on, only resets may omit timestamps.
        let timestamp = self.peer_timestamp(segment);
        let is_stale = timestamp.is_some_and(|value| self.recent_timestamp.is_stale(now, value));
        self.receiver.ack_now |= is_stale;
        if is_beyond || is_stale || self.config.timestamps && timestamp.is_none() {
            return NOTHING;
        }
        if is_fin && self.state == State::TimeWait {
            // The acknowledgement of the FIN was lost: TIME-WAIT restarts.
            self.state = self.enter_time_wait(now);
        }
        if !flags.contains(Flags::ACK) {
            return NOTHING;
        }
        if self.state == State::SynReceived {
            if segment.acknowledgement != self.config.initial_sequence + 1 {
                self.refuse(segment);
                return NOTHING;
            }
            self.acknowledge_syn(now, segment);
        }
        let is_pure = segment.payload == 0 && !is_fin && !is_old;
        if !self.take_acknowledgement(now, segment, is_pure) {
            // RFC 5961, section 5.2: an acknowledgement of unsent or ancient data is not the
            // peer's.
            self.receiver.ack_now = true;
            return NOTHING;
        }
        self.was_accepted = true;
        // Only after the acknowledgement was accepted: a stranger who hits the window could
        // otherwise make all of the peer's segments stale (CVE-2005-0356).
        if let Some(value) = timestamp
            && start <= self.last_ack_sent
            && !is_old
        {
            self.recent_timestamp = RecentTimestamp::new(now, value);
        }
        if self.config.metered {
            self.exchange_measurements(now, start, segment);
        }
        if self.config.ecn {
            self.receiver
                .on_marks(segment.flags, segment.ecn, &self.config);
        }
        let accepted = match segment.payload {
            0 => NOTHING,
            _ => self.take_payload(now, start, segment),
        };
        if is_fin {
            self.receiver.on_fin(start + u64::from(segment.payload));
        }
        self.consume_fin(now);
        accepted
    }

    /// Processes the payload of a segment that begins at the offset `start`. Returns the accepted
    /// part.
    fn take_payload(&mut self, now: Time, start: u64, segment: &Segment) -> Range<u64> {
        let length = segment.payload;
        let accepted = self
            .receiver
            .on_data(now, start, u64::from(length), &self.config);
        if segment.flags.contains(Flags::PSH) {
            self.receiver.on_pushed(length, &self.config);
        }
        accepted
    }

    /// Follows a jump of the peer (TLTCP, section 5.3) if the segment can come from the peer and is
    /// not outdated.
    fn take_update(&mut self, now: Time, start: u64, segment: &Segment, update: &SeqUpdate) {
        let is_stale = self.config.timestamps
            && self
                .peer_timestamp(segment)
                .is_none_or(|value| self.recent_timestamp.is_stale(now, value));
        let is_answer =
            segment.flags.contains(Flags::ACK) && self.acknowledged_wire(segment).is_some();
        if is_stale || !is_answer {
            return;
        }
        let receiver = &mut self.receiver;
        let offsets = [update.expected, update.void_start, update.void_end]
            .map(|number| receiver.offset(number).unwrap_or(0));
        let [expected, void_start, void_end] = offsets;
        // The peer does not abandon data in the segment, and a void precedes the segment that
        // names it.
        if segment.payload > 0 && start < expected || update.has_void() && start < void_end {
            return;
        }
        if receiver.on_update(start, expected, (void_start, void_end)) {
            // The echo refers to the segment that moved the acknowledgement.
            self.last_ack_sent = self.last_ack_sent.max(receiver.next);
        }
    }

    /// RFC 5961: a reset counts only at the exact number expected. A reset elsewhere in the window,
    /// or any SYN, triggers an acknowledgement, to which a genuine peer can respond.
    fn on_reset_or_syn(&mut self, now: Time, start: u64, segment: &Segment) {
        let next = self.receiver.next;
        if segment.flags.contains(Flags::RST) {
            if start == next && self.state != State::TimeWait {
                // RFC 1337: a reset does not shorten TIME-WAIT.
                self.reset();
            } else if next < start && start <= self.receiver.edge {
                self.receiver.ack_now = true;
            }
        } else if self.state != State::SynReceived || start != 0 {
            self.receiver.ack_now = true;
        } else if !segment.flags.contains(Flags::ACK) {
            // The peer retransmits its SYN: the SYN-ACK was lost.
            self.sender.stream.next = 0;
        } else if segment.acknowledgement == self.config.initial_sequence + 1 {
            // Simultaneous open: the peer acknowledges the SYN.
            self.acknowledge_syn(now, segment);
            self.receiver.ack_now = true;
        } else {
            self.refuse(segment);
        }
    }

    fn reset(&mut self) {
        self.was_reset = true;
        self.state = State::Closed;
    }

    /// Processes the acknowledgement of a segment; `false` if it cannot refer to data that was
    /// sent.
    #[must_use]
    fn take_acknowledgement(&mut self, now: Time, segment: &Segment, is_pure: bool) -> bool {
        let Some(wire) = self.acknowledged_wire(segment) else {
            return false;
        };
        let reference = self.sender.stream.una_number(&self.config);
        let una_wire = self.sender.stream.wire(self.sender.stream.una);
        let offset = self.sender.stream.offset(wire);
        let mut ranges = [(0, 0); SackBlocks::CAPACITY];
        let mut count = 0;
        if self.config.sack {
            for (block, range) in segment.options.sack.as_slice().iter().zip(&mut ranges) {
                let offset_of = |number: SeqNo| {
                    let distance = i64::from(number.distance_from(reference));
                    let wire = una_wire.checked_add_signed(distance);
                    wire.map_or(0, |wire| self.sender.stream.offset(wire))
                };
                *range = (offset_of(block.start), offset_of(block.end));
                count += 1;
            }
        }
        let echoed = match segment.options.timestamps {
            Some(timestamps) if self.config.timestamps && timestamps.echo != 0 => {
                let tick = self.config.timestamp_tick;
                let age = timestamp(now, tick).wrapping_sub(timestamps.echo);
                let is_past = (age as i32) >= 0;
                is_past.then(|| now.saturating_sub(tick * u64::from(age)))
            }
            _ => None,
        };
        let sacked = ranges.get(..count).unwrap_or(&[]);
        let ack = Acknowledgement {
            offset,
            wire,
            window: u64::from(segment.window) << self.peer_scale,
            sacked,
            duplicate: reported_twice(offset, sacked),
            has_echo: segment.flags.contains(Flags::ECE),
            echoed,
            peer_clock: self.peer_timestamp(segment),
            is_pure,
        };
        self.sender.on_acknowledgement(now, &ack, &self.config);
        if self.config.skip_segments.is_some() && self.sender.is_contradicted() {
            self.was_deceived = true;
            self.state = State::Closed;
            return false;
        }
        if self.sender.stream.fin && self.sender.stream.una > self.sender.stream.end {
            self.state = match self.state {
                State::FinWait1 => State::FinWait2,
                State::Closing => self.enter_time_wait(now),
                State::LastAck => State::Closed,
                state => state,
            };
        }
        true
    }

    /// The distance from the first number to the acknowledgement of a segment; `None` if it cannot
    /// refer to data that was sent.
    fn acknowledged_wire(&self, segment: &Segment) -> Option<u64> {
        let stream = &self.sender.stream;
        let distance = segment
            .acknowledgement
            .distance_from(stream.una_number(&self.config));
        let wire = stream
            .wire(stream.una)
            .checked_add_signed(i64::from(distance))?;
        let is_sent = wire <= stream.wire(stream.max);
        (is_sent && stream.offset(wire) >= stream.oldest_acceptable()).then_some(wire)
    }

    #[inline]
    fn consume_fin(&mut self, now: Time) {
        if !self.receiver.consume_fin() {
            return;
        }
        self.state = match self.state {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            state => state,
        };
    }

    fn enter_time_wait(&mut self, now: Time) -> State {
        self.time_wait_until = now + self.config.time_wait;
        State::TimeWait
    }

    /// Handles the expiry of [`Connection::next_timer`].
    pub fn on_timer(&mut self, now: Time) {
        self.sender.begin_timer(now);
        if self.receiver.ack_at <= now {
            self.receiver.ack_at = Time::MAX;
            self.receiver.ack_now = true;
        }
        self.wake_meter(now);
        if self.time_wait_until <= now {
            self.time_wait_until = Time::MAX;
            self.state = State::Closed;
        }
        if self.sender.next_timer() <= now {
            self.sender.on_timer(now, &self.config);
            let limit = self.config.give_up_after;
            if limit.is_some_and(|limit| self.sender.stream.expiries >= limit.get()) {
                self.gave_up = true;
                self.receiver.ack_now = false;
                self.state = State::Closed;
            }
        }
    }

    /// When [`Connection::on_timer`] is next due; [`Time::MAX`] for never.
    pub fn next_timer(&self) -> Time {
        if self.state == State::Closed {
            return Time::MAX;
        }
        self.sender
            .next_timer()
            .min(self.receiver.ack_at)
            .min(self.time_wait_until)
            .min(self.meter_wakeup())
    }
}

/// The accepted range of a segment without acceptable payload.
const NOTHING: Range<u64> = 0..0;

/// Whether a SYN requests ECN, or a SYN-ACK agrees to it (RFC 3168, section 6.1.1).
fn agrees_on_marks(flags: Flags) -> bool {
    flags.contains(Flags::ECE) && flags.contains(Flags::CWR) != flags.contains(Flags::ACK)
}

/// The range that an acknowledgement of `offset` reports as a duplicate: the first block, if it
/// lies below the acknowledgement or within the second (RFC 2883, section 4).
fn reported_twice(offset: u64, sacked: &[(u64, u64)]) -> Option<(u64, u64)> {
    let (first, rest) = sacked.split_first()?;
    let is_within = |outer: &(u64, u64)| outer.0 <= first.0 && first.1 <= outer.1;
    (first.1 <= offset || rest.first().is_some_and(is_within)).then_some(*first)
}
