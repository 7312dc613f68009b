//! The sending half of a connection: window, loss recovery, retransmission timer.

mod pipe;

use alloc::boxed::Box;

use comity_congestion::recovery::{
    Advance, AnyRecovery, Duplicate, PipeRule, Reaction, Recovery, RecoveryConfig, RecoveryKind,
    Reduce, Resend,
};
use comity_congestion::{Ack, Controller, Loss, LossCause, Pacing, RttEstimator, Sent, Timeout};
use comity_units::{Bytes, PacketNumber, Rate, SeqNo, Span, Time};

use super::config::Config;
use super::scoreboard::Scoreboard;
use crate::Pacer;

/// What is to be sent next, in stream offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    /// The offset of the first byte.
    pub(super) start: u64,
    /// The payload.
    pub(super) length: u32,
    /// Whether the stream ends behind it.
    pub(super) fin: bool,
}

/// What a glance at the windows shows.
enum Glance {
    /// There is nothing to send, or no room for it.
    Nothing,
    /// This leaves.
    Segment(Outgoing),
    /// More than the windows has to be asked.
    Unclear,
}

/// An acknowledgement, in stream offsets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledgement<'a> {
    pub(super) offset: u64,
    /// The peer's window in bytes.
    pub(super) window: u64,
    /// The selectively acknowledged ranges.
    pub(super) sacked: &'a [(u64, u64)],
    /// When the segment that it answers was sent, by the timestamp it echoes.
    pub(super) echoed: Option<Time>,
    /// Whether the segment carries nothing else: only such repeat an acknowledgement.
    pub(super) is_pure: bool,
}

/// Counters of the sending half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStatistics {
    /// Segments with payload, SYN or FIN sent, repeated ones included.
    pub segments: u64,
    /// Segments that were sent for the second time or more.
    pub retransmitted: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Entries into fast retransmit.
    pub fast_retransmits: u32,
    /// Round-trip samples taken.
    pub rtt_samples: u64,
    /// The sum of the round-trip samples.
    pub rtt_sum: Span,
}

/// Decides what to send, and when to send it again.
///
/// Offsets are positions in our stream, unwrapped to 64 bits: 0 is the SYN, data begins at 1, and the FIN
/// stands behind the last byte.
#[derive(Debug)]
pub(super) struct Sender {
    /// The first offset not acknowledged.
    pub(super) una: u64,
    /// The next offset to send; below `max` while data is sent again after a timeout.
    pub(super) next: u64,
    /// The offset after the highest ever sent.
    pub(super) max: u64,
    /// The offset after the last byte that the application gave.
    pub(super) end: u64,
    /// The peer's window in bytes, and the largest it ever was.
    peer_window: u64,
    peer_window_max: u64,
    /// The controller's decision, read after every event.
    window: u64,
    pacing: Pacing,
    wakeup: Time,
    pacer: Pacer,
    /// The segment whose round trip is being timed: the offset after it, and when it left.
    timed: Option<(u64, Time)>,
    pub(super) rto_at: Time,
    persist_at: Time,
    rto: Span,
    /// The window edge up to which limited transmit releases one segment, and how often it did so since the
    /// last advance.
    release_edge: u64,
    released: u32,
    /// Segments sent since the last event, for the burst limits.
    burst: u32,
    /// Consecutive expiries of the retransmission or the persist timer.
    expiries: u32,
    persist_exponent: u8,
    /// The application has closed: a FIN stands at `end`.
    pub(super) fin: bool,
    resend_first: bool,
    probe: bool,
    /// Since the last event the pacer alone held a segment back.
    held_by_pacer: bool,
    duplicate_since_arming: bool,
    /// The recovery has nothing to say: no duplicates were seen and nothing is being mended, so that the
    /// windows alone decide what may be sent.
    is_quiet: bool,
    recovery: AnyRecovery,
    rtt: RttEstimator,
    pub(super) controller: Box<dyn Controller>,
    scoreboard: Option<Box<Scoreboard>>,
    pub(super) statistics: SenderStatistics,
}

impl Sender {
    pub(super) fn new(config: &Config, controller: Box<dyn Controller>) -> Self {
        let rtt = RttEstimator::new(&config.rtt);
        let mut sender = Self {
            una: 0,
            next: 0,
            max: 0,
            end: 1,
            peer_window: 0,
            peer_window_max: 0,
            window: 0,
            pacing: Pacing::Unpaced,
            wakeup: Time::MAX,
            pacer: Pacer::default(),
            timed: None,
            rto_at: Time::MAX,
            persist_at: Time::MAX,
            rto: rtt.timeout(&config.rtt),
            release_edge: 0,
            released: 0,
            burst: 0,
            expiries: 0,
            persist_exponent: 0,
            fin: false,
            resend_first: false,
            probe: false,
            held_by_pacer: false,
            duplicate_since_arming: false,
            is_quiet: true,
            recovery: AnyRecovery::new(config.recovery),
            rtt,
            controller,
            scoreboard: None,
            statistics: SenderStatistics::default(),
        };
        sender.obey();
        sender
    }

    /// Reads the controller's decision.
    fn obey(&mut self) {
        let decision = self.controller.decision();
        self.window = decision.window.get();
        self.pacing = decision.pacing;
        self.wakeup = self.controller.wakeup().unwrap_or(Time::MAX);
    }

    /// Begins with the peer's first window, the handshake being over or not wanted.
    pub(super) fn establish(&mut self, una: u64, peer_window: u64) {
        self.una = una;
        self.next = self.next.max(una);
        self.max = self.max.max(una);
        self.end = self.end.max(1);
        self.set_peer_window(peer_window);
    }

    pub(super) fn set_peer_window(&mut self, window: u64) {
        self.peer_window = window;
        self.peer_window_max = self.peer_window_max.max(window);
    }

    pub(super) fn set_recovery(&mut self, recovery: RecoveryConfig) {
        self.recovery = AnyRecovery::new(recovery);
        self.is_quiet = self.recovery.is_quiet();
    }

    /// The lowest acknowledgement that a segment still on its way can carry (RFC 5961, section 5.2).
    pub(super) fn oldest_acceptable(&self) -> u64 {
        self.una.saturating_sub(self.peer_window_max)
    }

    /// The sequence number of the first byte not acknowledged.
    #[inline]
    pub(super) fn una_number(&self, config: &Config) -> SeqNo {
        config.initial_sequence + self.una as u32
    }

    /// What is outstanding.
    pub(super) fn in_flight(&self) -> u64 {
        self.max - self.una
    }

    /// The offset after everything that there is to send, the FIN included.
    pub(super) fn stream_end(&self) -> u64 {
        self.end.saturating_add(u64::from(self.fin))
    }

    /// The window in force: congestion window with inflation, cut by the peer's.
    fn usable_window(&self) -> u64 {
        let inflated = if self.is_quiet {
            self.window
        } else {
            self.window.saturating_add_signed(self.recovery.inflation())
        };
        inflated.min(self.peer_window)
    }

    pub(super) fn is_recovering(&self) -> bool {
        self.recovery.is_recovering()
    }

    pub(super) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    pub(super) fn congestion_window(&self) -> u64 {
        self.window
    }

    pub(super) fn peer_window(&self) -> u64 {
        self.peer_window
    }

    /// The SYN or a FIN is on its way or something else is outstanding.
    fn has_outstanding(&self) -> bool {
        self.una < self.max
    }

    /// The memory held on the heap, without the controller's own.
    pub(super) fn heap_memory(&self) -> usize {
        let board = self
            .scoreboard
            .as_ref()
            .map_or(0, |board| size_of::<Scoreboard>() + board.heap_memory());
        board + size_of_val(self.controller.as_ref())
    }

    pub(super) fn begin_event(&mut self) {
        self.burst = 0;
        self.held_by_pacer = false;
    }

    // ---------------------------------------------------------------- acknowledgements

    pub(super) fn on_acknowledgement(
        &mut self,
        now: Time,
        ack: &Acknowledgement<'_>,
        config: &Config,
    ) {
        let news = self.take_in_sacks(ack);
        if ack.offset > self.una {
            self.set_peer_window(ack.window);
            self.on_advance(now, ack, config);
            if self.peer_window > 0 {
                self.end_persistence();
            }
        } else if ack.offset == self.una {
            let window_changed = ack.window != self.peer_window;
            if ack.window > self.peer_window {
                self.set_peer_window(ack.window);
                self.end_persistence();
            }
            if self.has_outstanding() && self.is_repetition(ack, window_changed, news, config) {
                self.on_duplicate(now, config);
            } else if ack.is_pure {
                self.count_down_pipe(1);
            }
        }
    }

    /// Whether an acknowledgement that does not advance counts as a duplicate: for RFC 6675, section 2, when
    /// it says something new about what arrived, whatever else it carries, and for RFC 5681, section 2, when
    /// it says nothing else.
    fn is_repetition(
        &self,
        ack: &Acknowledgement<'_>,
        window_changed: bool,
        news: bool,
        config: &Config,
    ) -> bool {
        if goes_by_scoreboard(config) {
            return news;
        }
        ack.is_pure
            && (!window_changed || news)
            && (!config.sack || news || self.scoreboard.is_none())
    }

    /// Updates the scoreboard; whether anything was new.
    fn take_in_sacks(&mut self, ack: &Acknowledgement<'_>) -> bool {
        if ack.sacked.is_empty() {
            return false;
        }
        let (una, max) = (self.una.max(ack.offset), self.max);
        let board = self.scoreboard.get_or_insert_default();
        let mut news = false;
        for &(start, end) in ack.sacked {
            // Blocks outside of what is outstanding are old, duplicates (RFC 2883), or lies.
            if una <= start && start < end && end <= max {
                news |= board.insert(start, end);
            }
        }
        news
    }

    fn on_advance(&mut self, now: Time, ack: &Acknowledgement<'_>, config: &Config) {
        let acked = ack.offset - self.una;
        // The flow used what it was allowed if another segment would not have fitted.
        let app_limited = self.in_flight() + u64::from(config.mss) <= self.window;
        let reaction = if self.is_quiet {
            Reaction {
                grow: true,
                restart_timer: true,
                ..Reaction::default()
            }
        } else {
            let advance = Advance {
                from: self.una,
                to: ack.offset,
                mss: config.mss,
            };
            let reaction = self.recovery.on_advance(&advance);
            self.is_quiet = self.recovery.is_quiet();
            reaction
        };
        // The SYN takes a number but is no data: it opens no window.
        let was_syn = self.una == 0;
        self.una = ack.offset;
        self.next = self.next.max(self.una);
        self.expiries = 0;
        self.release_edge = 0;
        self.released = 0;
        self.duplicate_since_arming = false;
        if let Some(board) = &mut self.scoreboard {
            board.advance(self.una);
            // ns-2 forgets what was reported when the acknowledgement moves outside of a recovery.
            if !reaction.partial && !self.recovery.is_recovering() && !goes_by_scoreboard(config) {
                board.clear();
            }
        }

        if reaction.restart_timer && config.restart_timer_before_sample {
            self.restart_timer(now);
        }
        let rtt = self.sample(now, ack, reaction.partial, config);
        if reaction.restart_timer && !config.restart_timer_before_sample {
            self.restart_timer(now);
        }
        if reaction.partial {
            self.count_down_pipe(2);
        }
        self.resend(reaction.resend);

        if !was_syn {
            self.controller.on_ack(&Ack {
                now,
                acked: Bytes::new(acked),
                rtt,
                in_flight: Bytes::new(self.in_flight()),
                app_limited,
                in_recovery: !reaction.grow,
                marked: 0,
                packets: (acked / u64::from(config.mss)).max(1) as u32,
                sample: None,
            });
            if reaction.deflate > 0 {
                self.controller.on_deflate(Bytes::new(reaction.deflate));
            }
            if reaction.recovered {
                self.controller.on_recovered(now);
            }
            self.obey();
        }
    }

    /// Takes a round-trip sample if this acknowledgement gives one.
    fn sample(
        &mut self,
        now: Time,
        ack: &Acknowledgement<'_>,
        partial: bool,
        config: &Config,
    ) -> Option<Span> {
        let timed = match self.timed {
            Some((end, sent_at)) if ack.offset >= end => {
                self.timed = None;
                self.rtt.end_backoff();
                Some(sent_at)
            }
            _ => None,
        };
        let sent_at = match ack.echoed {
            Some(echoed) => {
                self.rtt.end_backoff();
                Some(echoed)
            }
            None if partial => None,
            None => timed,
        }?;
        self.rtt.on_sample(&config.rtt, sent_at, now);
        self.rto = self.rtt.timeout(&config.rtt);
        let elapsed = now.saturating_since(sent_at);
        self.statistics.rtt_samples += 1;
        self.statistics.rtt_sum += elapsed;
        Some(elapsed)
    }

    fn on_duplicate(&mut self, now: Time, config: &Config) {
        self.duplicate_since_arming = true;
        self.count_down_pipe(1);
        let first_is_lost = self.scoreboard.as_ref().is_some_and(|board| {
            board.lost_below(config.mss, config.recovery.duplicate_threshold) > self.una
        });
        let duplicate = Duplicate {
            una: self.una,
            max: self.max,
            mss: config.mss,
            first_is_lost,
        };
        let window = self.usable_window();
        let reaction = self.recovery.on_duplicate(&duplicate);
        self.is_quiet = self.recovery.is_quiet();
        if reaction.release && config.limited_transmit {
            self.released += 1;
            let allowance = u64::from(self.released) * u64::from(config.mss);
            self.release_edge = self
                .una
                .saturating_add(self.window)
                .saturating_add(allowance);
        }
        if reaction.reduce == Reduce::No {
            return;
        }
        self.statistics.fast_retransmits += 1;
        if let (Some(board), true) = (&mut self.scoreboard, self.recovery.is_recovering()) {
            board.begin_recovery(self.una);
            let outstanding = (self.max - self.una) / u64::from(config.mss);
            board.counter = outstanding as i64 - i64::from(config.recovery.duplicate_threshold);
        }
        self.timed = None;
        self.controller.on_loss(&Loss {
            now,
            sent_at: now.saturating_sub(self.rtt.smoothed(&config.rtt).unwrap_or(Span::ZERO)),
            lost: Bytes::new(u64::from(config.mss).min(self.in_flight())),
            in_flight: Bytes::new(self.in_flight()),
            window: Bytes::new(window),
            cause: LossCause::Reordering,
            restart: reaction.reduce == Reduce::Restart,
        });
        self.obey();
        self.release_edge = 0;
        if reaction.restart_timer {
            self.restart_timer(now);
        }
        self.resend(reaction.resend);
    }

    fn resend(&mut self, resend: Resend) {
        match resend {
            Resend::Nothing => {}
            Resend::First => self.resend_first = true,
            Resend::Everything => self.next = self.una,
        }
    }

    /// One acknowledgement means that `segments` segments have left the counted pipe.
    fn count_down_pipe(&mut self, segments: i64) {
        if self.recovery.is_recovering()
            && let Some(board) = &mut self.scoreboard
        {
            board.counter -= segments;
            board.begins = false;
        }
    }

    // ---------------------------------------------------------------- timers

    fn restart_timer(&mut self, now: Time) {
        self.rto_at = if self.has_outstanding() {
            now + self.rto
        } else {
            Time::MAX
        };
        self.duplicate_since_arming = false;
    }

    /// The earliest time at which [`Sender::on_timer`] has something to do.
    pub(super) fn next_timer(&self) -> Time {
        self.rto_at
            .min(self.persist_at)
            .min(self.wakeup)
            .min(self.paced_until())
    }

    /// When a packet that only the pacing holds back may leave.
    fn paced_until(&self) -> Time {
        if self.held_by_pacer {
            self.pacer.release_at(self.pacing)
        } else {
            Time::MAX
        }
    }

    fn window_is_open(&self) -> bool {
        self.resend_first
            || (self.next < self.stream_end() && self.next < self.una + self.usable_window())
    }

    pub(super) fn on_timer(&mut self, now: Time, config: &Config) {
        if self.wakeup <= now {
            self.controller.on_wakeup(now);
            self.obey();
        }
        if self.rto_at <= now {
            self.on_timeout(now, config);
        }
        if self.persist_at <= now {
            // RFC 9293, 3.8.6.1: probe a closed window, ever more rarely.
            self.probe = true;
            self.persist_exponent = (self.persist_exponent + 1).min(6);
            self.persist_at = Time::MAX;
            self.persist(now, config);
        }
    }

    fn on_timeout(&mut self, now: Time, config: &Config) {
        self.statistics.timeouts += 1;
        self.expiries += 1;
        self.recovery.on_timeout(self.max);
        self.is_quiet = self.recovery.is_quiet();
        let (in_flight, window) = (self.in_flight(), self.usable_window());
        if let Some(board) = &mut self.scoreboard {
            board.clear();
        }
        // A lost SYN says nothing about a window that has not been used yet.
        if self.una > 0 {
            self.controller.on_timeout(&Timeout {
                now,
                in_flight: Bytes::new(in_flight),
                window: Bytes::new(window),
                consecutive: self.expiries,
                duplicate_seen: self.duplicate_since_arming,
            });
            self.obey();
        }
        self.next = self.una;
        self.timed = None;
        self.resend_first = false;
        self.release_edge = 0;
        self.rtt.back_off(&config.rtt);
        self.rto = self.rtt.timeout(&config.rtt);
        self.restart_timer(now);
    }

    /// Sees to it that something happens when only the peer's window holds data back and nothing is on its
    /// way whose answer could open it.
    fn persist(&mut self, now: Time, config: &Config) {
        let waits_for_window = self.next < self.stream_end() && self.window >= self.peer_window;
        let nothing_under_way = !self.has_outstanding() || self.next == self.una;
        if waits_for_window && nothing_under_way && self.persist_at.is_never() {
            self.arm_persist(now, config);
        }
    }

    fn end_persistence(&mut self) {
        self.persist_at = Time::MAX;
        self.persist_exponent = 0;
    }

    fn arm_persist(&mut self, now: Time, config: &Config) {
        let wait = self.rtt.timeout(&config.rtt) * (1 << self.persist_exponent);
        self.persist_at = now + wait.min(config.rtt.max_timeout);
    }

    // ---------------------------------------------------------------- sending

    /// What to send now, if anything. A zero-length answer without a FIN is a window probe.
    #[inline]
    pub(super) fn poll(&mut self, now: Time, config: &Config) -> Option<Outgoing> {
        match self.glance(config) {
            Glance::Nothing => None,
            Glance::Segment(outgoing) => {
                self.burst += 1;
                self.sent(now, outgoing)
            }
            Glance::Unclear => {
                if self.may_have_something() {
                    self.poll_with_care(now, config)
                } else {
                    None
                }
            }
        }
    }

    /// Whether everything was sent and nothing is to be sent again.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.next >= self.stream_end() && self.is_quiet && !(self.resend_first | self.probe)
    }

    /// What the windows alone say is to be sent, where nothing else has a say. It does not change anything,
    /// and [`Sender::poll_with_care`] would not either where it says "nothing".
    #[inline]
    fn glance(&self, config: &Config) -> Glance {
        let windows_decide = self.is_quiet
            && !(self.resend_first | self.probe)
            && self.release_edge == 0
            && self.pacing == Pacing::Unpaced
            && config.max_burst.is_none();
        if !windows_decide {
            return Glance::Unclear;
        }
        let outgoing = self.segment_at(self.next, self.stream_end(), config);
        if outgoing.is_empty() {
            return Glance::Nothing;
        }
        let window = self.window.min(self.peer_window);
        if outgoing.end_of_data() <= self.una.saturating_add(window) {
            return Glance::Segment(outgoing);
        }
        // A part of a segment may fit into the peer's window, and a window that stays closed is to be probed.
        let room = self.room_at(self.next);
        let is_partial = room > 0 && room >= self.peer_window_max / 2;
        if self.window < self.peer_window || self.una < self.next && !is_partial {
            return Glance::Nothing;
        }
        Glance::Unclear
    }

    /// Whether [`Sender::poll_with_care`] might have something: a quick look that is right whenever it says no.
    fn may_have_something(&self) -> bool {
        self.next < self.stream_end() && self.next < self.una + self.usable_window()
            || !self.is_quiet
            || self.resend_first
            || self.probe
            || self.next < self.stream_end() && self.peer_window < self.window
    }

    /// What to send now, whatever the state.
    #[inline(never)]
    fn poll_with_care(&mut self, now: Time, config: &Config) -> Option<Outgoing> {
        if core::mem::take(&mut self.probe)
            && let Some(outgoing) = self.probe_segment(now, config)
        {
            return Some(outgoing);
        }
        if self.pacer.release_at(self.pacing) > now {
            self.held_by_pacer = self.window_is_open();
            if !self.held_by_pacer {
                self.persist(now, config);
            }
            return None;
        }
        if self.resend_first {
            self.resend_first = false;
            let outgoing = self.segment_at(self.una, self.max, config);
            if let Some(board) = &mut self.scoreboard {
                board.retransmitted = board.retransmitted.max(outgoing.end());
            }
            return self.sent(now, outgoing);
        }
        let limit = match (config.max_burst, self.recovery.burst_limit()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if limit.is_some_and(|limit| self.burst >= limit) {
            return None;
        }
        let outgoing = match self.recovery.pipe_rule() {
            None => self.next_in_window(now, config),
            Some(PipeRule::Scoreboard) => self.next_by_scoreboard(now, config),
            Some(PipeRule::Counter) => self.next_by_counter(now, config),
        }?;
        self.burst += 1;
        self.sent(now, outgoing)
    }

    /// The next segment that the window lets pass, new or on the way back from a timeout.
    fn next_in_window(&mut self, now: Time, config: &Config) -> Option<Outgoing> {
        let edge = self.una.saturating_add(self.usable_window());
        let outgoing = self.segment_at(self.next, self.stream_end(), config);
        if outgoing.is_empty() {
            return None;
        }
        if outgoing.end_of_data() <= edge {
            return Some(outgoing);
        }
        let released = self
            .release_edge
            .min(self.una.saturating_add(self.peer_window));
        if outgoing.end_of_data() <= released {
            self.release_edge = 0;
            return Some(outgoing);
        }
        self.partial_into_peer_window(now, outgoing, config)
    }

    /// A segment cut down to the peer's window, where that is worth it or nothing else would move.
    ///
    /// RFC 9293, 3.8.6.2.1: to avoid the silly window syndrome, less than a full segment leaves only when
    /// it is at least half of the largest window that the peer ever offered.
    fn partial_into_peer_window(
        &mut self,
        now: Time,
        outgoing: Outgoing,
        config: &Config,
    ) -> Option<Outgoing> {
        if self.window < self.peer_window {
            return None;
        }
        let room = self.room_at(outgoing.start);
        if room > 0 && room >= self.peer_window_max / 2 && room < u64::from(outgoing.length) {
            return Some(Outgoing {
                length: room as u32,
                fin: false,
                ..outgoing
            });
        }
        self.persist(now, config);
        None
    }

    /// How much the peer's window takes from `start` on.
    fn room_at(&self, start: u64) -> u64 {
        (self.una + self.peer_window).saturating_sub(start)
    }

    /// What leaves when the persist timer expires: what fits into the window, however little (the override
    /// timeout of RFC 9293, section 3.8.6.2.1), and into a closed one nothing but a question.
    fn probe_segment(&mut self, now: Time, config: &Config) -> Option<Outgoing> {
        if self.una < self.next && self.has_outstanding() {
            return None;
        }
        let whole = self.segment_at(self.next, self.stream_end(), config);
        let length = u64::from(whole.length).min(self.room_at(self.next)) as u32;
        if length > 0 {
            return self.sent(
                now,
                Outgoing {
                    length,
                    fin: whole.fin && length == whole.length,
                    ..whole
                },
            );
        }
        Some(Outgoing {
            start: self.una.saturating_sub(1),
            length: 0,
            fin: false,
        })
    }

    /// The segment that begins at `start`, up to `limit`: a full one, or what there is.
    fn segment_at(&self, start: u64, limit: u64, config: &Config) -> Outgoing {
        let data_end = self.end.min(limit);
        let length = data_end.saturating_sub(start).min(u64::from(config.mss)) as u32;
        let fin = self.fin && start + u64::from(length) == self.end && limit > self.end;
        Outgoing { start, length, fin }
    }

    /// Accounts for a segment that leaves.
    #[inline]
    fn sent(&mut self, now: Time, outgoing: Outgoing) -> Option<Outgoing> {
        let end = outgoing.end();
        let idle = !self.has_outstanding();
        self.statistics.segments += 1;
        if outgoing.start < self.max {
            self.statistics.retransmitted += 1;
        }
        if end > self.max {
            self.max = end;
            if self.timed.is_none() {
                self.timed = Some((end, now));
            }
        }
        if outgoing.start <= self.next {
            self.next = self.next.max(end);
        }
        if idle || self.rto_at.is_never() {
            self.restart_timer(now);
        }
        let wire = Bytes::new(u64::from(outgoing.length) + 40);
        if self.pacing != Pacing::Unpaced {
            self.pacer
                .on_sent(now, wire, self.pacing, Rate::MAX, Bytes::ZERO);
        }
        self.controller.on_sent(&Sent {
            now,
            payload: Bytes::new(u64::from(outgoing.length)),
            wire,
            number: PacketNumber::new(self.statistics.segments),
            in_flight: Bytes::new(self.in_flight()),
            app_limited: self.max >= self.stream_end(),
        });
        // A law that paces may set its calendar or its wake-up by what leaves.
        if self.pacing != Pacing::Unpaced {
            self.obey();
        }
        Some(outgoing)
    }

    /// Accounts for a SYN that leaves.
    pub(super) fn on_syn_sent(&mut self, now: Time) {
        self.statistics.segments += 1;
        if self.max > 0 {
            self.statistics.retransmitted += 1;
            // Karn: whichever SYN is acknowledged, it is not known which.
            self.timed = None;
        } else {
            self.timed = Some((1, now));
        }
        self.next = 1;
        self.max = 1;
        if self.rto_at.is_never() {
            self.restart_timer(now);
        }
    }
}

/// Whether losses are found as RFC 6675 says: by the scoreboard.
fn goes_by_scoreboard(config: &Config) -> bool {
    config.recovery.kind
        == RecoveryKind::Sack {
            pipe: PipeRule::Scoreboard,
        }
}

impl Outgoing {
    fn is_empty(&self) -> bool {
        self.length == 0 && !self.fin
    }

    /// The offset after the payload, without a FIN: a FIN needs no room in a window.
    fn end_of_data(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    /// The offset after the segment.
    pub(super) fn end(&self) -> u64 {
        self.end_of_data() + u64::from(self.fin)
    }
}
