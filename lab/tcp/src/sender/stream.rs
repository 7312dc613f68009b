//! The state that every end of a connection keeps of its own stream.

use alloc::boxed::Box;

use comity_congestion::{RttConfig, RttEstimator};
use comity_units::{SeqNo, Span, Time};

use super::super::config::Config;
use super::super::timeline::{Line, Standing};

/// The next data to send, in stream offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// The offset of the first byte.
    pub(crate) start: u64,
    /// The length of the payload.
    pub(crate) length: u32,
    /// Whether the stream ends behind it.
    pub(crate) fin: bool,
}

/// An acknowledgement, in stream offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement<'a> {
    pub(crate) offset: u64,
    /// The acknowledgement as a distance from the first number on the wire.
    pub(crate) wire: u64,
    /// The peer's window in bytes.
    pub(crate) window: u64,
    /// The selectively acknowledged ranges.
    pub(crate) sacked: &'a [(u64, u64)],
    /// When the segment that triggered it was sent, from the echoed timestamp.
    pub(crate) echoed: Option<Time>,
    /// The range that the peer reports as a duplicate (RFC 2883).
    pub(crate) duplicate: Option<(u64, u64)>,
    /// Whether the peer echoes a congestion mark (ECE).
    pub(crate) has_echo: bool,
    /// The peer's clock when the segment left it: its timestamp.
    pub(crate) peer_clock: Option<u32>,
    /// Whether the segment carries nothing else; only then can it be a duplicate acknowledgement.
    pub(crate) is_pure: bool,
}

/// The progress of this end's stream, and when to retransmit outstanding data.
///
/// Offsets are positions in the stream, unwrapped to 64 bits: 0 is the SYN, data begins at 1, and
/// the FIN follows the last byte.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The first offset not acknowledged.
    pub(crate) una: u64,
    /// The next offset to send; below `max` while data is retransmitted after a timeout.
    pub(crate) next: u64,
    /// The offset after the highest ever sent.
    pub(crate) max: u64,
    /// The offset after the last byte that the application submitted.
    pub(crate) end: u64,
    /// The peer's window in bytes, and its maximum so far.
    pub(crate) peer_window: u64,
    pub(super) peer_window_max: u64,
    pub(super) rto_at: Time,
    /// Consecutive expiries of the retransmission or the persist timer without a sign of life.
    pub(crate) expiries: u32,
    /// How often the timeout was doubled, at an end that only receives; others use their estimator.
    doublings: u8,
    /// Whether the application has closed the stream: a FIN is at `end`.
    pub(crate) fin: bool,
    /// The deadlines of a time-lined stream. Offsets then do not count discarded bytes.
    pub(crate) line: Option<Box<Line>>,
}

impl Stream {
    pub(super) const fn new() -> Self {
        Self {
            una: 0,
            next: 0,
            max: 0,
            end: 1,
            peer_window: 0,
            peer_window_max: 0,
            rto_at: Time::MAX,
            expiries: 0,
            doublings: 0,
            fin: false,
            line: None,
        }
    }

    /// Starts with the peer's first window, after the handshake or without one.
    pub(crate) fn establish(&mut self, una: u64, peer_window: u64) {
        self.una = una;
        self.next = self.next.max(una);
        self.max = self.max.max(una);
        self.end = self.end.max(1);
        self.set_peer_window(peer_window);
    }

    pub(crate) fn set_peer_window(&mut self, window: u64) {
        self.peer_window = window;
        self.peer_window_max = self.peer_window_max.max(window);
    }

    /// The lowest acknowledgement that a segment still in flight can carry (RFC 5961, section 5.2).
    pub(crate) fn oldest_acceptable(&self) -> u64 {
        self.una.saturating_sub(self.peer_window_max)
    }

    /// The sequence number of the first byte not acknowledged.
    #[inline]
    pub(crate) fn una_number(&self, config: &Config) -> SeqNo {
        config.initial_sequence + self.wire(self.una) as u32
    }

    /// The distance of `offset` from the first number of the stream.
    #[inline]
    pub(crate) fn wire(&self, offset: u64) -> u64 {
        match &self.line {
            None => offset,
            Some(line) => line.wire(offset),
        }
    }

    /// The offset at this distance from the first number of the stream.
    #[inline]
    pub(crate) fn offset(&self, wire: u64) -> u64 {
        match &self.line {
            None => wire,
            Some(line) => line.offset(wire),
        }
    }

    /// The offset at which the congestion window begins.
    #[inline]
    pub(crate) fn base(&self) -> u64 {
        match &self.line {
            None => self.una,
            Some(line) => line.base(self.una),
        }
    }

    /// The offset after the last byte in the peer's window, if no abandoned byte arrived.
    #[inline]
    pub(crate) fn peer_edge(&self) -> u64 {
        let base = match &self.line {
            None => self.una,
            Some(line) => line.peer_base(self.una),
        };
        base.saturating_add(self.peer_window)
    }

    /// The offset at which sending restarts when everything outstanding is marked lost.
    #[inline]
    pub(crate) fn lowest_current(&self) -> u64 {
        match &self.line {
            None => self.una,
            Some(line) => line.lowest_current(self.una),
        }
    }

    pub(super) fn standing(&self) -> Standing {
        Standing {
            una: self.una,
            next: self.next,
            max: self.max,
            end: self.end,
        }
    }

    /// Whether a jump is the only information that the peer still lacks.
    #[inline]
    pub(super) fn needs_notice(&self) -> bool {
        self.una == self.max
            && self.una > 0
            && self.next >= self.stream_end()
            && self
                .line
                .as_ref()
                .is_some_and(|line| line.is_unconfirmed(self.una))
    }

    /// The number of outstanding bytes, and of those that the window holds.
    pub(crate) fn in_flight(&self) -> u64 {
        self.max - self.base()
    }

    /// The offset after the end of the stream, the FIN included.
    pub(crate) fn stream_end(&self) -> u64 {
        self.end.saturating_add(u64::from(self.fin))
    }

    /// Whether the SYN, the FIN or any data is outstanding.
    pub(super) fn has_outstanding(&self) -> bool {
        self.una < self.max
    }

    /// Whether data that is not outstanding takes up the window until a timeout.
    pub(super) fn holds_any(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.holds_any())
    }

    /// The segment at `start`, at most up to `limit`: a full one, or the rest of the data.
    #[inline]
    pub(super) fn segment_at(&self, start: u64, limit: u64, config: &Config) -> Outgoing {
        if self.line.is_some() {
            return self.segment_of_section(start, limit, config);
        }
        let data_end = self.end.min(limit);
        let length = data_end.saturating_sub(start).min(u64::from(config.mss)) as u32;
        let fin = self.fin && start + u64::from(length) == self.end && limit > self.end;
        Outgoing { start, length, fin }
    }

    /// As `segment_at`, for a stream of sections: the segment ends with its section, and has a FIN
    /// only directly after its data, not after a jump.
    #[inline(never)]
    fn segment_of_section(&self, start: u64, limit: u64, config: &Config) -> Outgoing {
        let section_end = match &self.line {
            Some(line) => line.section_end(start),
            None => u64::MAX,
        };
        let data_end = self.end.min(limit).min(section_end);
        let length = data_end.saturating_sub(start).min(u64::from(config.mss)) as u32;
        let is_last = start + u64::from(length) == self.end
            && (length == 0 || self.wire(start) + u64::from(length) == self.wire(self.end));
        let fin = self.fin && is_last && limit > self.end;
        Outgoing { start, length, fin }
    }

    /// The segment for a retransmission of `[start, end)`. It stays whole even if segments are
    /// smaller now, because the record of a segment in flight has no parts.
    #[inline]
    pub(super) fn recorded_segment(&self, start: u64, end: u64, config: &Config) -> Outgoing {
        if self.line.is_some() {
            return self.segment_of_section(start, end, config);
        }
        let length = self.end.min(end).saturating_sub(start) as u32;
        let fin = self.fin && start + u64::from(length) == self.end && end > self.end;
        Outgoing { start, length, fin }
    }

    /// Handles a duplicate acknowledgement as a sign of life. The peer answers probes (RFC 9293,
    /// section 3.8.6.1) or has nothing to acknowledge, so the connection stays alive.
    pub(super) fn take_sign_of_life(&mut self, ack: &Acknowledgement<'_>) {
        if ack.window == 0 || !self.has_outstanding() {
            self.expiries = 0;
        }
    }

    /// Starts the retransmission timer for the outstanding data, and for data that the window
    /// holds.
    pub(super) fn restart_timer(&mut self, now: Time, timeout: Span) {
        self.rto_at = if self.has_outstanding() || self.holds_any() {
            now + timeout
        } else {
            Time::MAX
        };
    }
}

/// The sending half of an end without data: its SYN and its FIN.
///
/// It takes no round-trip samples. Its timeout is the initial one of RFC 6298 (section 2.1),
/// doubled with every expiry (5.5) until an acknowledgement arrives.
impl Stream {
    pub(super) fn on_acknowledgement(
        &mut self,
        now: Time,
        ack: &Acknowledgement<'_>,
        config: &Config,
    ) {
        if ack.offset > self.una {
            self.set_peer_window(ack.window);
            self.una = ack.offset;
            self.next = self.next.max(self.una);
            self.expiries = 0;
            self.doublings = 0;
            self.restart_timer(now, self.first_timeout(&config.rtt));
        } else if ack.offset == self.una {
            self.set_peer_window(self.peer_window.max(ack.window));
            self.take_sign_of_life(ack);
        }
    }

    pub(super) fn on_timer(&mut self, now: Time, config: &Config) {
        if self.rto_at <= now {
            self.expiries = self.expiries.saturating_add(1);
            self.doublings = self.doublings.saturating_add(1);
            self.next = self.una;
            self.restart_timer(now, self.first_timeout(&config.rtt));
        }
    }

    /// The FIN, once it is due. It needs no room in the peer's window.
    pub(super) fn poll_fin(&mut self, now: Time, config: &Config) -> Option<Outgoing> {
        if self.next >= self.stream_end() {
            return None;
        }
        let outgoing = self.segment_at(self.next, self.stream_end(), config);
        self.next = outgoing.end();
        self.max = self.max.max(self.next);
        if self.rto_at.is_never() {
            self.restart_timer(now, self.first_timeout(&config.rtt));
        }
        Some(outgoing)
    }

    pub(super) fn on_syn_sent(&mut self, now: Time, config: &Config) {
        self.next = 1;
        self.max = 1;
        if self.rto_at.is_never() {
            self.restart_timer(now, self.first_timeout(&config.rtt));
        }
    }

    fn first_timeout(&self, config: &RttConfig) -> Span {
        let mut rtt = RttEstimator::new(config);
        for _ in 0..self.doublings {
            rtt.back_off(config);
        }
        rtt.timeout(config)
    }
}

impl Outgoing {
    /// A segment that only reports the position.
    pub(super) const fn nothing_at(start: u64) -> Self {
        Self {
            start,
            length: 0,
            fin: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0 && !self.fin
    }

    /// The offset after the payload, without a FIN: a FIN needs no room in a window.
    ///
    /// A closed window refuses a FIN, and the retransmissions of the FIN probe the window. An end
    /// that only receives therefore needs no persist timer. A FIN may be late by one doubled
    /// timeout once the window opens.
    pub(super) fn end_of_data(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    /// The offset after the segment.
    pub(crate) fn end(&self) -> u64 {
        self.end_of_data() + u64::from(self.fin)
    }
}
