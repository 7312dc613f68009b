//! The effect of an acknowledgement on the stream, the recovery, the controller and the timers.

use comity_congestion::recovery::{Advance, Duplicate, PipeRule, RecoveryKind, Reduce, Resend};
use comity_congestion::{Ack, Event, InOrderAck, Loss, LossCause};
use comity_units::{DataSize, Span, Time};

use super::super::config::Config;
use super::answers::Reading;
use super::clock::Clock;
use super::flight::Flight;
use super::stream::{Acknowledgement, Stream};
use super::transfer::Transfer;

impl Transfer {
    pub(super) fn on_acknowledgement(
        &mut self,
        stream: &mut Stream,
        now: Time,
        ack: &Acknowledgement<'_>,
        config: &Config,
    ) {
        if self.skips.is_some() && self.is_false(stream, ack) {
            return;
        }
        if let Some(mut flight) = self.flight.take() {
            self.on_acknowledgement_by_time(&mut flight, stream, now, ack, config);
            self.flight = Some(flight);
            return;
        }
        let order = match &mut stream.line {
            None => ack.offset.cmp(&stream.una),
            Some(line) => line.on_confirmed(ack.wire),
        };
        let news = self.take_in_sacks(stream, ack);
        self.clock.begin_acknowledgement();
        if ack.offset > stream.una {
            stream.set_peer_window(ack.window);
            self.on_advance(stream, now, ack, config);
            if stream.peer_window > 0 {
                self.persistence.end();
            }
        } else if ack.offset == stream.una && order.is_ge() {
            // An acknowledgement from before an acknowledged jump has the same stream offset, but
            // is old.
            let window_changed = ack.window != stream.peer_window;
            if ack.window > stream.peer_window {
                stream.set_peer_window(ack.window);
                self.persistence.end();
            }
            stream.take_sign_of_life(ack);
            if stream.has_outstanding() && self.is_duplicate(ack, window_changed, news, config) {
                self.on_duplicate(stream, now, config);
            } else if ack.is_pure {
                self.count_down_pipe(1);
            }
        }
        self.on_echo(None, stream, now, ack, config);
        if self.delivery.is_some() {
            self.report_delivery(None, stream, now, ack, config);
        }
        if stream.line.is_some() {
            let window = self.control.window();
            self.persistence.review(stream, window, order.is_gt());
            self.notify(stream, now, config);
        }
    }

    /// Reacts to the echo of a mark as to a loss.
    pub(super) fn on_echo(
        &mut self,
        flight: Option<&mut Flight>,
        stream: &Stream,
        now: Time,
        ack: &Acknowledgement<'_>,
        config: &Config,
    ) {
        if !config.ecn
            || !ack.has_echo
            || !self.marks.is_new(stream.una)
            || self.repair.is_recovering()
        {
            return;
        }
        let loss = Loss {
            now,
            sent_at: now,
            lost: DataSize::ZERO,
            in_flight: DataSize::new(stream.in_flight()),
            window: DataSize::new(self.control.window().min(stream.peer_window)),
            cause: LossCause::Mark,
            restart: false,
        };
        self.marks.on_mark();
        self.statistics.marks += 1;
        if let Some(flight) = flight {
            self.reduce(flight, stream, &loss, config);
        } else {
            self.control.report(Event::Loss(&loss));
            self.marks.on_reduction(stream.max);
        }
    }

    /// Whether an acknowledgement that does not advance counts as a duplicate. By RFC 6675, section
    /// 2, it does if it reports new data as arrived, even if it carries more. By RFC 5681, section
    /// 2, it does if it carries nothing else.
    pub(super) fn is_duplicate(
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

    /// Updates the scoreboard; returns whether anything was new.
    pub(super) fn take_in_sacks(&mut self, stream: &Stream, ack: &Acknowledgement<'_>) -> bool {
        if ack.sacked.is_empty() {
            return false;
        }
        let (una, max) = (stream.una.max(ack.offset), stream.max);
        let board = self.scoreboard.get_or_insert_default();
        let mut news = false;
        for &(start, end) in ack.sacked {
            // Blocks outside the outstanding data are old, duplicates (RFC 2883), or false.
            if una <= start && start < end && end <= max {
                news |= board.insert(start, end);
            }
        }
        news
    }

    pub(super) fn on_advance(
        &mut self,
        stream: &mut Stream,
        now: Time,
        ack: &Acknowledgement<'_>,
        config: &Config,
    ) {
        let advance = ack.offset - stream.una;
        // The flow used its allowance if another segment would not have fitted, or had to wait for
        // the pacer.
        let app_limited = stream.in_flight() + u64::from(config.mss) <= self.control.window()
            && !self.is_held_by_pacer(stream, now);
        let reading = match (&mut self.answers, ack.peer_clock) {
            (Some(answers), Some(value)) => answers.peer_clock.read(now, value),
            _ => Reading::Nothing,
        };
        let answered = match &mut self.answers {
            None => None,
            // An acknowledgement caused by a repair or a duplicate does not measure the newest
            // packet. Neither does one whose time on the receiver's clock is unknown.
            Some(answers) => answers
                .on_advance(ack.offset)
                .filter(|_| self.repair.windows_decide() && reading != Reading::Unknown),
        };
        let jump = Clock::may_be_jump(stream, ack);
        let mut is_repair = true;
        let mut acked = advance;
        if let Some(line) = &mut stream.line {
            if !self.repair.windows_decide() {
                is_repair = line.is_repair(stream.una);
            }
            acked = advance.saturating_sub(line.on_advance(stream.una, ack.offset));
        }
        let reaction = self.repair.on_advance(&Advance {
            to: ack.offset,
            acked,
            mss: config.mss,
            is_repair,
        });
        // The SYN consumes a number but is not data: it does not open the window.
        let was_syn = stream.una == 0;
        stream.una = ack.offset;
        stream.next = stream.next.max(stream.una);
        stream.expiries = 0;
        if let Some(skips) = &mut self.skips {
            let abandoned = skips.on_advance(stream.una);
            if let Some(line) = &mut stream.line {
                line.statistics.discarded_bytes += abandoned;
            }
        }
        self.limited_transmit.on_advance();
        self.repair.set_duplicate_seen(false);
        if let Some(board) = &mut self.scoreboard {
            board.advance(stream.una);
            // ns-2 discards SACK reports when the acknowledgement moves outside of a recovery.
            if !reaction.partial && !self.repair.is_recovering() && !goes_by_scoreboard(config) {
                board.clear();
            }
        }

        if reaction.restart_timer && config.restart_timer_before_sample {
            self.restart_timer(stream, now);
        }
        let from = stream.line.as_ref().map_or(0, |line| line.sampled_from());
        let rtt = self
            .clock
            .sample(now, ack, reaction.partial, jump, from, config);
        if let Some(elapsed) = rtt {
            self.statistics.rtt_samples += 1;
            self.statistics.rtt_sum += elapsed;
        }
        if reaction.restart_timer && !config.restart_timer_before_sample {
            self.restart_timer(stream, now);
        }
        if reaction.partial {
            // The retransmission has left the pipe, and so has the packet that it replaced.
            self.count_down_pipe(1 + i64::from(is_repair));
        }
        self.resend(stream, reaction.resend);
        if let Some(line) = &mut stream.line {
            line.on_round_trip(|| self.clock.rtt.smoothed(&config.rtt));
        }

        if !was_syn {
            // A jump is no evidence about the packet that it passes over.
            if let Some(number) = answered.filter(|_| jump.is_none()) {
                self.control.on_event(Event::InOrderAck(&InOrderAck {
                    now,
                    number,
                    arrived_at: match reading {
                        Reading::At(stamp) => Some(stamp),
                        _ => None,
                    },
                }));
            }
            if self.delivery.is_none() {
                acked = self.take_unreported(acked);
                acked = self.count_whole(acked, u64::from(config.mss));
            }
            if acked > 0 && self.delivery.is_none() {
                self.control.on_event(Event::Ack(&Ack {
                    now,
                    acked: DataSize::new(acked),
                    rtt,
                    in_flight: DataSize::new(stream.in_flight()),
                    app_limited,
                    in_recovery: !reaction.grow,
                    marked: 0,
                    packets: (acked / u64::from(config.mss)).max(1) as u32,
                    sample: None,
                }));
            }
            if reaction.deflate > 0 {
                self.control
                    .on_event(Event::Deflated(DataSize::new(reaction.deflate)));
            }
            if reaction.recovered {
                self.control.on_event(Event::Recovered);
            }
            self.control.apply();
        } else {
            self.report_handshake(now, rtt);
        }
    }

    pub(super) fn on_duplicate(&mut self, stream: &mut Stream, now: Time, config: &Config) {
        self.repair.set_duplicate_seen(true);
        if self.skips.is_some() && self.on_duplicate_of_test(stream, now, config) {
            return;
        }
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
        let reaction = self.repair.on_duplicate(&duplicate);
        if reaction.release && config.limited_transmit {
            self.limited_transmit.release();
        }
        if reaction.reduce == Reduce::No {
            if reaction.resend != Resend::Nothing {
                self.clock.forget();
            }
            if reaction.restart_timer {
                self.restart_timer(stream, now);
            }
            self.resend(stream, reaction.resend);
            return;
        }
        self.statistics.fast_retransmits += 1;
        if let (Some(board), true) = (&mut self.scoreboard, self.repair.is_recovering()) {
            board.begin_recovery(stream.una);
            let outstanding = stream.in_flight() / u64::from(config.mss);
            board.counter = outstanding as i64 - i64::from(config.recovery.duplicate_threshold);
        }
        self.clock.forget();
        if let Some(line) = &mut stream.line {
            line.begin_recovery();
        }
        self.marks.on_reduction(stream.max);
        self.control.report(Event::Loss(&Loss {
            now,
            sent_at: now.saturating_sub(self.clock.rtt.smoothed(&config.rtt).unwrap_or(Span::ZERO)),
            lost: DataSize::new(u64::from(config.mss).min(stream.in_flight())),
            in_flight: DataSize::new(stream.in_flight()),
            window: DataSize::new(window),
            cause: LossCause::Reordering,
            restart: reaction.reduce == Reduce::Restart,
        }));
        self.limited_transmit.end();
        if reaction.restart_timer {
            self.restart_timer(stream, now);
        }
        self.resend(stream, reaction.resend);
    }

    pub(super) fn resend(&mut self, stream: &mut Stream, resend: Resend) {
        match resend {
            Resend::Nothing => {}
            Resend::First => self.repair.resend_first(),
            Resend::Everything => self.go_back(stream),
        }
    }

    /// Removes `segments` segments from the counted pipe, because of one acknowledgement.
    pub(super) fn count_down_pipe(&mut self, segments: i64) {
        if self.repair.is_recovering()
            && let Some(board) = &mut self.scoreboard
        {
            board.counter -= segments;
            board.begins = false;
        }
    }
}

/// Whether the scoreboard detects losses (RFC 6675).
pub(super) fn goes_by_scoreboard(config: &Config) -> bool {
    config.recovery.kind
        == RecoveryKind::Sack {
            pipe: PipeRule::Scoreboard,
        }
}
