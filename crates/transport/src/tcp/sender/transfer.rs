//! Sending data: window, loss recovery, round-trip times, retransmission timer.

use alloc::boxed::Box;
use core::num::{NonZeroU16, NonZeroU64};

use comity_congestion::recovery::{
    Advance, AnyRecovery, Duplicate, PipeRule, Reaction, Recovery, RecoveryConfig, RecoveryKind,
    Reduce, Resend,
};
use comity_congestion::{
    Ack, Answered, Controller, Feedback, Loss, LossCause, Pacing, Report, RttEstimator, Sent, Tag,
    Timeout,
};
use comity_units::{Bytes, PacketNumber, Rate, Span, Time};

use super::super::codec::data_header_length;
use super::super::config::Config;
use super::super::scoreboard::Scoreboard;
use super::super::segment::{IP_HEADER, Wave};
use super::answers::{Answers, Reading};
use super::stream::{Acknowledgement, Outgoing, Stream};
use crate::Pacer;

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

/// What an end that has data to send keeps beside its [`Stream`].
#[derive(Debug)]
pub(super) struct Transfer {
    /// The controller's decision, read after every event.
    pub(super) window: u64,
    /// Present once the controller has asked to pace or to be woken.
    pub(super) pace: Option<Box<Pace>>,
    /// The segment whose round trip is being timed: the offset after it, and when it left.
    pub(super) timed: Option<(NonZeroU64, Time)>,
    persist_at: Time,
    rto: Span,
    /// The window edge up to which limited transmit releases one segment, and how often it did so since the
    /// last advance.
    pub(super) release_edge: u64,
    released: u32,
    /// Segments sent since the last event, for the burst limits.
    pub(super) burst: u32,
    persist_exponent: u8,
    pub(super) resend_first: bool,
    pub(super) probe: bool,
    /// Since the last event the pacer alone held a segment back.
    held_by_pacer: bool,
    /// Since the last advance, and the last expiry of the retransmission timer.
    duplicate_seen: bool,
    /// The controller has a half at the receiver and is asked for a tag for each segment.
    is_metered: bool,
    /// The level of the last report, if the controller has not left it since; zero for none.
    told_level: u16,
    /// The tag of the segment that left last.
    pub(super) wave: Option<Wave>,
    /// The last acknowledgement gave a round-trip sample.
    was_sampled: bool,
    /// The recovery has nothing to say: no duplicates were seen and nothing is being mended, so that the
    /// windows alone decide what may be sent.
    pub(super) is_quiet: bool,
    recovery: AnyRecovery,
    pub(super) rtt: RttEstimator,
    pub(super) controller: Box<dyn Controller>,
    pub(super) scoreboard: Option<Box<Scoreboard>>,
    /// Present when the controller asks for answers.
    answers: Option<Box<Answers>>,
    pub(super) statistics: SenderStatistics,
}

/// What a controller decides beside its window.
#[derive(Debug, Default)]
pub(super) struct Pace {
    pacing: Pacing,
    /// [`Time::MAX`] for never.
    wakeup: Time,
    pacer: Pacer,
}

impl Pace {
    fn release_at(&self) -> Time {
        self.pacer.release_at(self.pacing)
    }
}

impl Transfer {
    pub(super) fn new(config: &Config, controller: Box<dyn Controller>) -> Self {
        let rtt = RttEstimator::new(&config.rtt);
        let mut transfer = Self {
            window: 0,
            pace: None,
            timed: None,
            persist_at: Time::MAX,
            rto: rtt.timeout(&config.rtt),
            release_edge: 0,
            released: 0,
            burst: 0,
            persist_exponent: 0,
            resend_first: false,
            probe: false,
            held_by_pacer: false,
            duplicate_seen: false,
            is_metered: config.metered,
            told_level: 0,
            wave: None,
            was_sampled: false,
            is_quiet: true,
            recovery: AnyRecovery::new(config.recovery),
            rtt,
            answers: controller.needs_answers().then(Box::default),
            controller,
            scoreboard: None,
            statistics: SenderStatistics::default(),
        };
        transfer.obey();
        transfer
    }

    /// Reads the controller's decision.
    fn obey(&mut self) {
        let decision = self.controller.decision();
        self.window = decision.window.get();
        let wakeup = self.controller.wakeup();
        if self.pace.is_some() || wakeup.is_some() || decision.pacing != Pacing::Unpaced {
            let pace = self.pace.get_or_insert_default();
            pace.pacing = decision.pacing;
            pace.wakeup = wakeup.unwrap_or(Time::MAX);
        }
    }

    pub(super) fn set_recovery(&mut self, recovery: RecoveryConfig) {
        self.recovery = AnyRecovery::new(recovery);
        self.is_quiet = self.recovery.is_quiet();
    }

    /// The window in force: congestion window with inflation, cut by the peer's.
    fn usable_window(&self, stream: &Stream) -> u64 {
        let inflated = if self.is_quiet {
            self.window
        } else {
            self.window.saturating_add_signed(self.recovery.inflation())
        };
        inflated.min(stream.peer_window)
    }

    pub(super) fn is_recovering(&self) -> bool {
        self.recovery.is_recovering()
    }

    /// The memory held on the heap, without the controller's own.
    pub(super) fn heap_memory(&self) -> usize {
        let board = self
            .scoreboard
            .as_ref()
            .map_or(0, |board| size_of::<Scoreboard>() + board.heap_memory());
        let pace = self.pace.as_ref().map_or(0, |_| size_of::<Pace>());
        let answers = self
            .answers
            .as_ref()
            .map_or(0, |answers| size_of::<Answers>() + answers.heap_memory());
        board + pace + answers + size_of_val(self.controller.as_ref())
    }

    pub(super) fn begin_event(&mut self) {
        self.burst = 0;
        self.held_by_pacer = false;
    }

    // ---------------------------------------------------------------- acknowledgements

    pub(super) fn on_acknowledgement(
        &mut self,
        stream: &mut Stream,
        now: Time,
        ack: &Acknowledgement<'_>,
        config: &Config,
    ) {
        let news = self.take_in_sacks(stream, ack);
        self.was_sampled = false;
        if ack.offset > stream.una {
            stream.set_peer_window(ack.window);
            self.on_advance(stream, now, ack, config);
            if stream.peer_window > 0 {
                self.end_persistence();
            }
        } else if ack.offset == stream.una {
            let window_changed = ack.window != stream.peer_window;
            if ack.window > stream.peer_window {
                stream.set_peer_window(ack.window);
                self.end_persistence();
            }
            stream.take_sign_of_life(ack);
            if stream.has_outstanding() && self.is_repetition(ack, window_changed, news, config) {
                self.on_duplicate(stream, now, config);
            } else if ack.is_pure {
                self.count_down_pipe(1);
            }
        }
        if stream.line.is_some() && !self.persist_is_off() && !self.waits(stream) {
            self.end_persistence();
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
    fn take_in_sacks(&mut self, stream: &Stream, ack: &Acknowledgement<'_>) -> bool {
        if ack.sacked.is_empty() {
            return false;
        }
        let (una, max) = (stream.una.max(ack.offset), stream.max);
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

    fn on_advance(
        &mut self,
        stream: &mut Stream,
        now: Time,
        ack: &Acknowledgement<'_>,
        config: &Config,
    ) {
        let acked = ack.offset - stream.una;
        // The flow used what it was allowed if another segment would not have fitted, or had to wait its turn.
        let app_limited = stream.in_flight() + u64::from(config.mss) <= self.window
            && !self.is_held_by_pacer(stream, now);
        let reading = match (&mut self.answers, ack.peer_clock) {
            (Some(answers), Some(value)) => answers.peer_clock.read(now, value),
            _ => Reading::Coarse,
        };
        let answered = match &mut self.answers {
            None => None,
            // What repairs or duplicates brought about was not brought about by the newest.
            // As long as it is not known whether the receiver tells when it came, neither is how to measure it.
            Some(answers) => answers
                .on_advance(ack.offset)
                .filter(|_| self.is_quiet && reading != Reading::Unknown),
        };
        let reaction = if self.is_quiet {
            Reaction {
                grow: true,
                restart_timer: true,
                ..Reaction::default()
            }
        } else {
            let advance = Advance {
                from: stream.una,
                to: ack.offset,
                mss: config.mss,
            };
            let reaction = self.recovery.on_advance(&advance);
            self.is_quiet = self.recovery.is_quiet();
            reaction
        };
        // The SYN takes a number but is no data: it opens no window.
        let was_syn = stream.una == 0;
        let jump = Self::may_be_jump(stream, ack);
        stream.una = ack.offset;
        if let Some(line) = &mut stream.line {
            line.on_advance(stream.una);
        }
        stream.next = stream.next.max(stream.una);
        stream.expiries = 0;
        self.release_edge = 0;
        self.released = 0;
        self.duplicate_seen = false;
        if let Some(board) = &mut self.scoreboard {
            board.advance(stream.una);
            // ns-2 forgets what was reported when the acknowledgement moves outside of a recovery.
            if !reaction.partial && !self.recovery.is_recovering() && !goes_by_scoreboard(config) {
                board.clear();
            }
        }

        if reaction.restart_timer && config.restart_timer_before_sample {
            self.restart_timer(stream, now);
        }
        let rtt = self.sample(now, ack, reaction.partial, jump, config);
        if reaction.restart_timer && !config.restart_timer_before_sample {
            self.restart_timer(stream, now);
        }
        if reaction.partial {
            self.count_down_pipe(2);
        }
        self.resend(stream, reaction.resend);
        if let Some(line) = &mut stream.line {
            line.on_round_trip(|| self.rtt.smoothed(&config.rtt));
            self.notify(stream, now, config);
        }

        if !was_syn {
            if let Some(number) = answered {
                self.controller.on_answered(&Answered {
                    now,
                    number,
                    arrived_at: match reading {
                        Reading::At(arrived_at) => Some(arrived_at),
                        _ => None,
                    },
                });
            }
            self.controller.on_ack(&Ack {
                now,
                acked: Bytes::new(acked),
                rtt,
                in_flight: Bytes::new(stream.in_flight()),
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
        jump: Option<Time>,
        config: &Config,
    ) -> Option<Span> {
        if let (Some(jumped_at), Some((_, sent_at))) = (jump, self.timed)
            && sent_at <= jumped_at
        {
            self.timed = None;
        }
        let timed = match self.timed {
            Some((end, sent_at)) if ack.offset >= end.get() => {
                self.timed = None;
                self.rtt.end_backoff();
                Some(sent_at)
            }
            _ => None,
        };
        let sent_at = match ack.echoed {
            Some(echoed) if jump.is_none_or(|jumped_at| jumped_at <= echoed) => {
                self.rtt.end_backoff();
                Some(echoed)
            }
            Some(_) => None,
            None if partial => None,
            None => timed,
        }?;
        self.rtt.on_sample(&config.rtt, sent_at, now);
        self.rto = self.rtt.timeout(&config.rtt);
        let elapsed = now.saturating_since(sent_at);
        self.statistics.rtt_samples += 1;
        self.statistics.rtt_sum += elapsed;
        self.was_sampled = true;
        Some(elapsed)
    }

    /// The receiver's half reported with the acknowledgement that was taken in last.
    pub(super) fn on_report(&mut self, now: Time, report: &Report) {
        // A level stands on every acknowledgement, and hardly ever changes.
        if let Report::Wave { level } = *report
            && core::mem::replace(&mut self.told_level, level) == level
        {
            return;
        }
        self.controller.on_feedback(&Feedback {
            now,
            report,
            rtt: self.rtt.latest().filter(|_| self.was_sampled),
        });
        self.obey();
    }

    /// Asks the controller what the receiver should know of the segment that leaves. This transport has room
    /// for waves only.
    fn take_tag(&mut self, stream: &Stream, now: Time, outgoing: Outgoing, config: &Config) {
        if outgoing.length == 0 {
            self.wave = None;
            return;
        }
        if self.runs_dry(stream, config) {
            self.controller.on_running_dry(now);
        }
        self.wave = match self.controller.tag(now) {
            Tag::Wave {
                wave,
                segments,
                position,
            } => NonZeroU16::new(segments).map(|segments| Wave {
                wave,
                segments,
                position,
            }),
            _ => None,
        };
    }

    /// Whether nothing follows a segment that leaves for want of data, or because the peer's window is closing: a
    /// window that is only smaller than the law's moves on with every acknowledgement.
    fn runs_dry(&self, stream: &Stream, config: &Config) -> bool {
        let left = stream.stream_end().saturating_sub(stream.next);
        let is_closing = stream.peer_window < self.window.min(stream.peer_window_max) / 2;
        left == 0 || is_closing && stream.room_at(stream.next) < left.min(u64::from(config.mss))
    }

    fn on_duplicate(&mut self, stream: &mut Stream, now: Time, config: &Config) {
        self.duplicate_seen = true;
        self.count_down_pipe(1);
        let first_is_lost = self.scoreboard.as_ref().is_some_and(|board| {
            board.lost_below(config.mss, config.recovery.duplicate_threshold) > stream.una
        });
        let duplicate = Duplicate {
            una: stream.una,
            max: stream.max,
            mss: config.mss,
            first_is_lost,
        };
        let window = self.usable_window(stream);
        let reaction = self.recovery.on_duplicate(&duplicate);
        self.is_quiet = self.recovery.is_quiet();
        if reaction.release && config.limited_transmit {
            self.released += 1;
            let allowance = u64::from(self.released) * u64::from(config.mss);
            self.release_edge = stream
                .base()
                .saturating_add(self.window)
                .saturating_add(allowance);
        }
        if reaction.reduce == Reduce::No {
            return;
        }
        self.statistics.fast_retransmits += 1;
        if let (Some(board), true) = (&mut self.scoreboard, self.recovery.is_recovering()) {
            board.begin_recovery(stream.una);
            let outstanding = stream.in_flight() / u64::from(config.mss);
            board.counter = outstanding as i64 - i64::from(config.recovery.duplicate_threshold);
        }
        self.timed = None;
        if let Some(line) = &mut stream.line {
            line.begin_recovery();
        }
        self.controller.on_loss(&Loss {
            now,
            sent_at: now.saturating_sub(self.rtt.smoothed(&config.rtt).unwrap_or(Span::ZERO)),
            lost: Bytes::new(u64::from(config.mss).min(stream.in_flight())),
            in_flight: Bytes::new(stream.in_flight()),
            window: Bytes::new(window),
            cause: LossCause::Reordering,
            restart: reaction.reduce == Reduce::Restart,
        });
        self.obey();
        self.release_edge = 0;
        if reaction.restart_timer {
            self.restart_timer(stream, now);
        }
        self.resend(stream, reaction.resend);
    }

    /// Whether the persist timer does not run.
    pub(super) const fn persist_is_off(&self) -> bool {
        self.persist_at.is_never()
    }

    fn resend(&mut self, stream: &mut Stream, resend: Resend) {
        match resend {
            Resend::Nothing => {}
            Resend::First => self.resend_first = true,
            Resend::Everything => self.go_back(stream),
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

    fn restart_timer(&mut self, stream: &mut Stream, now: Time) {
        stream.restart_timer(now, self.rto);
    }

    /// The earliest time at which [`Sender::on_timer`] has something to do.
    pub(super) fn next_timer(&self, stream: &Stream) -> Time {
        let mut next = stream.rto_at.min(self.persist_at);
        if let Some(line) = &stream.line
            && stream.una > 0
        {
            next = next.min(line.lifetime());
        }
        match &self.pace {
            None => next,
            // A packet that only the pacing holds back leaves when that lets it.
            Some(pace) if self.held_by_pacer => next.min(pace.wakeup).min(pace.release_at()),
            Some(pace) => next.min(pace.wakeup),
        }
    }

    /// Whether the window might let something pass: on the way back from a timeout, that takes a look at
    /// what arrived.
    fn window_is_open(&self, stream: &Stream) -> bool {
        (stream.next < stream.stream_end()
            && stream.next < stream.base() + self.usable_window(stream))
            || self.resend_first
            || stream.next < stream.max
    }

    /// Whether something could leave if the pacer let it. A recovery that counts a pipe may send whatever the
    /// window says.
    fn is_held_by_pacer(&self, stream: &Stream, now: Time) -> bool {
        self.pace
            .as_ref()
            .is_some_and(|pace| pace.release_at() > now)
            && (self.window_is_open(stream) || self.is_recovering())
    }

    pub(super) fn on_timer(&mut self, stream: &mut Stream, now: Time, config: &Config) {
        if self.pace.as_ref().is_some_and(|pace| pace.wakeup <= now) {
            self.controller.on_wakeup(now);
            self.obey();
        }
        if let Some(line) = &stream.line
            && stream.una > 0
            && line.lifetime() <= now
        {
            self.on_lifetime(stream, now, config);
        }
        if stream.rto_at <= now {
            self.on_timeout(stream, now, config);
        }
        if self.persist_at <= now {
            // RFC 9293, 3.8.6.1: probe a closed window, ever more rarely.
            stream.expiries += 1;
            self.probe = true;
            self.persist_exponent = (self.persist_exponent + 1).min(6);
            self.persist_at = Time::MAX;
            self.persist(stream, now, config);
        }
    }

    fn on_timeout(&mut self, stream: &mut Stream, now: Time, config: &Config) {
        self.statistics.timeouts += 1;
        stream.expiries += 1;
        self.recovery.on_timeout(stream.max);
        self.is_quiet = self.recovery.is_quiet();
        let (in_flight, window) = (stream.in_flight(), self.usable_window(stream));
        if let Some(board) = &mut self.scoreboard {
            if goes_by_scoreboard(config) {
                board.on_timeout(stream.una);
            } else {
                board.clear();
            }
        }
        // A lost SYN says nothing about a window that has not been used yet.
        if stream.una > 0 {
            self.controller.on_timeout(&Timeout {
                now,
                in_flight: Bytes::new(in_flight),
                window: Bytes::new(window),
                consecutive: stream.expiries,
                duplicate_seen: self.duplicate_seen,
            });
            self.obey();
        }
        self.duplicate_seen = false;
        self.told_level = 0;
        self.timed = None;
        self.resend_first = false;
        self.go_back(stream);
        self.release_edge = 0;
        self.rtt.back_off(&config.rtt);
        self.rto = self.rtt.timeout(&config.rtt);
        self.restart_timer(stream, now);
    }

    /// Sees to it that something happens when only the peer's window holds data back and nothing is on its
    /// way whose answer could open it.
    pub(super) fn persist(&mut self, stream: &Stream, now: Time, config: &Config) {
        if self.waits(stream) && self.persist_at.is_never() {
            self.arm_persist(now, config);
        }
    }

    /// Whether only a probe will make something happen.
    fn waits(&self, stream: &Stream) -> bool {
        let waits_for_window =
            stream.next < stream.stream_end() && self.window >= stream.peer_window;
        let nothing_under_way = !stream.has_outstanding() || stream.next == stream.lowest_current();
        waits_for_window && nothing_under_way || stream.needs_notice()
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

    /// Whether [`Transfer::poll_with_care`] might have something: a quick look that is right whenever it says no.
    #[inline]
    pub(super) fn may_have_something(&self, stream: &Stream) -> bool {
        self.window_is_open(stream)
            || !self.is_quiet
            || self.probe
            || stream.next < stream.stream_end() && stream.peer_window < self.window
    }

    /// What to send now, whatever the state.
    #[inline(never)]
    pub(super) fn poll_with_care(
        &mut self,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) -> Option<Outgoing> {
        if stream.line.is_some() {
            self.discard_stale(stream, now, config);
        }
        if core::mem::take(&mut self.probe)
            && let Some(outgoing) = self.probe_segment(stream, now, config)
        {
            return Some(outgoing);
        }
        if self
            .pace
            .as_ref()
            .is_some_and(|pace| pace.release_at() > now)
        {
            self.held_by_pacer = self.is_held_by_pacer(stream, now);
            if !self.held_by_pacer {
                self.persist(stream, now, config);
            }
            return None;
        }
        if self.resend_first {
            self.resend_first = false;
            let (una, max) = (stream.una, stream.max);
            if let Some(answer) = self.answer_obsolete(stream, una, max, config) {
                return self.sent(stream, now, answer, config);
            }
            let outgoing = stream.segment_at(una, max, config);
            if let Some(board) = &mut self.scoreboard {
                board.retransmitted = board.retransmitted.max(outgoing.end());
            }
            return self.sent(stream, now, outgoing, config);
        }
        let limit = match (config.max_burst, self.recovery.burst_limit()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if limit.is_some_and(|limit| self.burst >= limit) {
            return None;
        }
        let outgoing = match self.recovery.pipe_rule() {
            None => self.next_in_window(stream, now, config),
            Some(PipeRule::Scoreboard) => self.next_by_scoreboard(stream, now, config),
            Some(PipeRule::Counter) => self.next_by_counter(stream, now, config),
        }?;
        self.burst += 1;
        self.sent(stream, now, outgoing, config)
    }

    /// The next segment that the window lets pass, new or on the way back from a timeout.
    pub(super) fn next_in_window(
        &mut self,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) -> Option<Outgoing> {
        let (arrived, missing_end) = self.pass_over_arrived(stream, config);
        let edge = stream
            .base()
            .saturating_add((self.usable_window(stream) + arrived).min(stream.peer_window));
        let limit = stream.stream_end().min(missing_end);
        let outgoing = stream.segment_at(stream.next, limit, config);
        if outgoing.is_empty() {
            return None;
        }
        if outgoing.end_of_data() <= edge {
            return Some(outgoing);
        }
        let released = self
            .release_edge
            .min(stream.base().saturating_add(stream.peer_window));
        if outgoing.end_of_data() <= released {
            self.release_edge = 0;
            return Some(outgoing);
        }
        self.partial_into_peer_window(stream, now, outgoing, config)
    }

    /// A segment cut down to the peer's window, where that is worth it or nothing else would move.
    ///
    /// RFC 9293, 3.8.6.2.1: to avoid the silly window syndrome, less than a full segment leaves only when
    /// it is at least half of the largest window that the peer ever offered.
    fn partial_into_peer_window(
        &mut self,
        stream: &Stream,
        now: Time,
        outgoing: Outgoing,
        config: &Config,
    ) -> Option<Outgoing> {
        if self.window < stream.peer_window {
            return None;
        }
        let room = stream.room_at(outgoing.start);
        if room > 0 && room >= stream.peer_window_max / 2 && room < u64::from(outgoing.length) {
            return Some(Outgoing {
                length: room as u32,
                fin: false,
                ..outgoing
            });
        }
        self.persist(stream, now, config);
        None
    }

    /// What leaves when the persist timer expires: what fits into the window, however little (the override
    /// timeout of RFC 9293, section 3.8.6.2.1), and into a closed one nothing but a question.
    fn probe_segment(
        &mut self,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) -> Option<Outgoing> {
        if stream.lowest_current() < stream.next && stream.has_outstanding() {
            return None;
        }
        let whole = stream.segment_at(stream.next, stream.stream_end(), config);
        let length = u64::from(whole.length).min(stream.room_at(stream.next)) as u32;
        if length > 0 {
            return self.sent(
                stream,
                now,
                Outgoing {
                    length,
                    fin: whole.fin && length == whole.length,
                    ..whole
                },
                config,
            );
        }
        if stream.needs_notice()
            && let Some(line) = &mut stream.line
        {
            line.statistics.notices += 1;
        }
        Some(Outgoing {
            start: stream.una.saturating_sub(1),
            length: 0,
            fin: false,
        })
    }

    /// Accounts for a segment that leaves.
    #[inline]
    pub(super) fn sent(
        &mut self,
        stream: &mut Stream,
        now: Time,
        outgoing: Outgoing,
        config: &Config,
    ) -> Option<Outgoing> {
        let end = outgoing.end();
        let idle = !stream.has_outstanding();
        self.statistics.segments += 1;
        if outgoing.start < stream.max {
            self.statistics.retransmitted += 1;
        }
        if let Some(answers) = &mut self.answers {
            let number = PacketNumber::new(self.statistics.segments);
            answers.on_sent(outgoing.start, end, stream.max, number);
        }
        if end > stream.max {
            stream.max = end;
            if self.timed.is_none() {
                self.timed = NonZeroU64::new(end).map(|end| (end, now));
            }
        }
        if outgoing.start <= stream.next {
            stream.next = stream.next.max(end);
        }
        if idle || stream.rto_at.is_never() {
            self.restart_timer(stream, now);
        }
        if self.is_metered {
            self.take_tag(stream, now, outgoing, config);
        }
        let wire = self.wire_size(stream, outgoing, config);
        if let Some(pace) = &mut self.pace {
            pace.pacer
                .on_sent(now, wire, pace.pacing, Rate::MAX, Bytes::ZERO);
        }
        self.controller.on_sent(&Sent {
            now,
            payload: Bytes::new(u64::from(outgoing.length)),
            wire,
            number: PacketNumber::new(self.statistics.segments),
            in_flight: Bytes::new(stream.in_flight()),
            app_limited: stream.max >= stream.stream_end(),
        });
        // A law that paces may set its calendar or its wake-up by what leaves.
        if self
            .pace
            .as_ref()
            .is_some_and(|pace| pace.pacing != Pacing::Unpaced)
        {
            self.obey();
        }
        Some(outgoing)
    }

    /// The size on the wire of a segment that leaves, without what it may say of the way back: SACK blocks and the
    /// level of a wave.
    fn wire_size(&self, stream: &Stream, outgoing: Outgoing, config: &Config) -> Bytes {
        let header = data_header_length(
            config.timestamps,
            self.wave.is_some(),
            stream.line.is_some(),
        );
        Bytes::new(u64::from(IP_HEADER + outgoing.length) + header as u64)
    }

    /// Accounts for a SYN that leaves.
    pub(super) fn on_syn_sent(&mut self, stream: &mut Stream, now: Time) {
        self.statistics.segments += 1;
        if stream.max > 0 {
            self.statistics.retransmitted += 1;
            // Karn: whichever SYN is acknowledged, it is not known which.
            self.timed = None;
        } else {
            self.timed = Some((NonZeroU64::MIN, now));
        }
        stream.next = 1;
        stream.max = 1;
        if stream.rto_at.is_never() {
            self.restart_timer(stream, now);
        }
    }
}

/// Whether losses are found as RFC 6675 says: by the scoreboard.
pub(super) fn goes_by_scoreboard(config: &Config) -> bool {
    config.recovery.kind
        == RecoveryKind::Sack {
            pipe: PipeRule::Scoreboard,
        }
}
