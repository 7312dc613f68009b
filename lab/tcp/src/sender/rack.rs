//! Sending under a time-based recovery: RACK, tail loss probes, proportional rate reduction, undo.

use comity_congestion::recovery::{Advance, Duplicate, RecoveryKind, Reduce};
use comity_congestion::{Ack, Event, InOrderAck, Loss, LossCause};
use comity_units::{DataSize, Span, Time};

use super::super::config::Config;
use super::answers::Reading;
use super::flight::{Acked, Episode, Flight, Windows};
use super::stream::{Acknowledgement, Outgoing, Stream};
use super::transfer::Transfer;

/// The slack of a probe beyond two round trips, for inexact timers.
const PROBE_SLACK: Span = Span::from_millis(2);

/// An acknowledgement and its effects.
struct News<'a> {
    now: Time,
    ack: &'a Acknowledgement<'a>,
    delivery: &'a Acked,
    /// Whether it moved the cumulative acknowledgement.
    advanced: bool,
}

/// The settings of the recovery: whether it probes, reduces in proportion, and undoes.
fn settings(config: &Config) -> (bool, bool, bool) {
    match config.recovery.kind {
        RecoveryKind::Rack {
            probe,
            proportional,
            undo,
        } => (probe, proportional, undo),
        _ => (false, false, false),
    }
}

impl Transfer {
    /// The counterpart of [`Transfer::on_acknowledgement`] for the other recoveries.
    pub(super) fn on_acknowledgement_by_time(
        &mut self,
        flight: &mut Flight,
        stream: &mut Stream,
        now: Time,
        ack: &Acknowledgement<'_>,
        config: &Config,
    ) {
        if ack.offset < stream.una {
            return;
        }
        let advanced = ack.offset > stream.una;
        if advanced || ack.window > stream.peer_window {
            stream.set_peer_window(ack.window);
            if stream.peer_window > 0 {
                self.persistence.end();
            }
        }
        if !advanced {
            stream.take_sign_of_life(ack);
        }
        let is_limited = flight
            .usage
            .is_limited(self.control.window(), self.control.is_in_slow_start())
            || self.is_held_by_pacer(stream, now);
        let answered = self.answered(now, ack, advanced);
        let was_syn = stream.una == 0;
        let min_rtt = self.clock.rtt.min();
        // A hole that the sender caused itself must not delay the growth of the window.
        let is_at_test = flight.is_at_test();
        let delivery = flight.on_delivered(now, ack.offset, ack.sacked, min_rtt);
        let before = stream.una;
        if advanced {
            stream.una = ack.offset;
            stream.next = stream.next.max(stream.una);
            stream.expiries = 0;
        }
        let duplicate_seen = self.repair.duplicate_seen() || delivery.bytes > 0;
        self.repair.set_duplicate_seen(!advanced && duplicate_seen);
        let news = News {
            now,
            ack,
            delivery: &delivery,
            advanced,
        };
        let rtt = self.sample(&news, config);
        self.on_probe_answered(flight, stream, &news, config);
        self.undo(flight, stream, &news, config);

        let mut grows = advanced || is_at_test && self.repair.is_quiet();
        if advanced {
            let reaction = self.repair.on_advance(&Advance {
                to: ack.offset,
                acked: ack.offset - before,
                mss: config.mss,
                is_repair: true,
            });
            grows &= reaction.grow;
            if reaction.recovered {
                flight.reduction = None;
                flight.clock.on_recovered();
                self.control.on_event(Event::Recovered);
            } else if self.marks.is_behind_reduction(stream.una) && !self.repair.is_recovering() {
                flight.reduction = None;
            }
        }
        self.on_echo(Some(flight), stream, now, ack, config);
        let lost = delivery.bytes > 0 && self.find_lost(flight, stream, now, config);
        self.control.apply();
        let pipe = flight.pipe(stream.in_flight());
        flight.reduce(delivery.bytes, pipe, advanced && !lost, config.mss);
        if was_syn {
            self.report_handshake(now, rtt);
        } else if self.delivery.is_some() {
            self.report_delivery(Some(flight), stream, now, ack, config);
        } else if delivery.bytes > 0 {
            if let Some((number, arrived_at)) = answered {
                self.control.on_event(Event::InOrderAck(&InOrderAck {
                    now,
                    number,
                    arrived_at,
                }));
            }
            let least = if delivery.segments > 0 { 0 } else { u64::MAX };
            let acked = self.count_whole(delivery.bytes, least);
            if acked > 0 {
                self.control.report(Event::Ack(&Ack {
                    now,
                    acked: DataSize::new(acked),
                    rtt: delivery.rtt,
                    in_flight: DataSize::new(stream.in_flight()),
                    app_limited: !is_limited,
                    in_recovery: !grows || flight.reduction.is_some(),
                    marked: 0,
                    packets: delivery.segments.max(1),
                    sample: None,
                }));
            }
        }
        let is_measured_later = |at: Time| {
            let since = now.saturating_since(at);
            delivery.rtt.is_some_and(|rtt| rtt > since)
        };
        if advanced || flight.first_sent_at().is_some_and(is_measured_later) {
            self.restart_timer(stream, now);
            self.schedule_probe(flight, stream, now, config);
        }
        self.repair.settle(flight.is_quiet());
    }

    /// The packet that triggered an acknowledgement, for controllers that need it.
    fn answered(
        &mut self,
        now: Time,
        ack: &Acknowledgement<'_>,
        advanced: bool,
    ) -> Option<(
        comity_units::PacketNumber,
        Option<comity_congestion::Arrived>,
    )> {
        let is_quiet = self.repair.windows_decide();
        let answers = self.answers.as_mut().filter(|_| advanced)?;
        let reading = ack.peer_clock.map_or(Reading::Nothing, |value| {
            answers.peer_clock.read(now, value)
        });
        let number = answers.on_advance(ack.offset)?;
        let arrived_at = match reading {
            Reading::Unknown => return None,
            Reading::At(stamp) => Some(stamp),
            Reading::Nothing => None,
        };
        is_quiet.then_some((number, arrived_at))
    }

    /// Measures the round trip of the delivered segments, or uses the timestamp if that is
    /// ambiguous.
    fn sample(&mut self, news: &News<'_>, config: &Config) -> Option<Span> {
        self.clock.begin_acknowledgement();
        let rtt = match news.delivery.longest_rtt {
            Some(rtt) => Some(self.clock.take(news.now, rtt, config)),
            None if news.advanced => self
                .clock
                .sample(news.now, news.ack, false, None, 0, config),
            None => None,
        };
        if let Some(rtt) = rtt {
            self.statistics.rtt_samples += 1;
            self.statistics.rtt_sum += rtt;
        }
        rtt
    }

    /// Looks for segments that are overdue, and reacts to the first loss of a window. Returns
    /// whether it found any.
    fn find_lost(
        &mut self,
        flight: &mut Flight,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) -> bool {
        let threshold = u32::from(config.recovery.duplicate_threshold);
        let (min, smoothed) = (self.clock.rtt.min(), self.clock.rtt.smoothed(&config.rtt));
        let window = |enough| {
            let at_once = !self.repair.is_quiet() || enough;
            flight.clock.window(at_once, min, smoothed)
        };
        // Arrivals after a skipped segment are no evidence about the segments that left.
        let windows = Windows {
            sent: window(flight.has_overtaken(threshold)),
            skipped: window(flight.delivered_segments() >= threshold),
        };
        let found = flight.find_lost(now, windows);
        // Losses beyond the end of a finished recovery begin the next one.
        let is_left = !self.repair.is_recovering() && flight.has_lost();
        let Some((lost, sent_at)) = found.or(is_left.then_some((0, now))) else {
            return false;
        };
        let reaction = self.repair.on_duplicate(&Duplicate {
            una: stream.una,
            max: stream.max,
            mss: config.mss,
            first_is_lost: true,
        });
        if reaction.reduce == Reduce::No {
            return found.is_some();
        }
        self.statistics.fast_retransmits += 1;
        flight.probe.at = Time::MAX;
        flight.probe.end = None;
        // A mark has already reduced this window (RFC 3168, section 6.1.2).
        if flight.reduction.is_none() {
            self.reduce(
                flight,
                stream,
                &Loss {
                    now,
                    sent_at,
                    lost: DataSize::new(lost),
                    in_flight: DataSize::new(stream.in_flight()),
                    window: DataSize::new(self.usable_window(stream)),
                    cause: LossCause::Reordering,
                    restart: false,
                },
                config,
            );
        }
        // Without a proportional reduction, the pipe may exceed the window for long (RFC 6675,
        // section 5, step 4.3). A controller that measures the delivery rate has already made room.
        // If all losses are retransmitted, nothing is due.
        let is_due = flight.reduction.is_none() && self.delivery.is_none();
        flight.is_forced |= is_due && flight.next_lost().is_some();
        flight.episode = Some(Episode {
            began_at: stream.una,
            retransmitted_at: None,
            unexplained: 0,
        });
        self.restart_timer(stream, now);
        found.is_some()
    }

    /// Reports a loss or a mark to the controller, and reduces to its new window.
    pub(super) fn reduce(
        &mut self,
        flight: &mut Flight,
        stream: &Stream,
        loss: &Loss,
        config: &Config,
    ) {
        let before = self.control.window();
        self.control.report(Event::Loss(loss));
        self.marks.on_reduction(stream.max);
        let (_, proportional, _) = settings(config);
        // A controller that measures the delivery rate sets the limit in flight itself.
        if proportional && self.control.window() < before && self.delivery.is_none() {
            flight.begin_reduction(before, self.control.window());
        }
    }

    /// Undoes a reduction if the peer's acknowledgements show that the retransmitted data had not
    /// been lost.
    ///
    /// With timestamps (RFC 3522), three conditions hold: an acknowledgement passes a retransmitted
    /// segment, it echoes a time before the retransmission, and no retransmission is outstanding
    /// unless the timer expired. With duplicate SACKs (RFC 3708), every retransmission arrived
    /// twice.
    fn undo(&mut self, flight: &mut Flight, stream: &Stream, news: &News<'_>, config: &Config) {
        let &News {
            now,
            ack,
            delivery,
            advanced,
        } = news;
        let (_, _, undo) = settings(config);
        if let Some((start, _)) = ack.duplicate {
            flight.clock.on_duplicate_reported(flight.transmissions());
            if let Some(episode) = &mut flight.episode
                && start >= episode.began_at
            {
                episode.unexplained = episode.unexplained.saturating_sub(1);
            }
        }
        let Some(episode) = flight.episode.as_ref().filter(|_| undo) else {
            return;
        };
        let Some(retransmitted_at) = episode.retransmitted_at else {
            return;
        };
        // Echoed times are exact to one tick either way.
        let margin = config.timestamp_tick * 2;
        let echoes_earlier = ack
            .echoed
            .is_some_and(|echoed| echoed + margin <= retransmitted_at);
        let by_time = advanced
            && delivery.passes_retransmission
            && echoes_earlier
            && (!flight.has_retransmission() || !self.repair.is_recovering());
        let by_duplicates = ack.duplicate.is_some() && episode.unexplained == 0;
        if !(by_time || by_duplicates) {
            return;
        }
        if self.believes_in_undo() {
            self.repair.on_spurious();
            flight.absolve();
            self.control.on_event(Event::SpuriousLoss { now });
            self.marks.on_reduction(stream.una);
            self.control.apply();
        } else {
            flight.episode = None;
        }
    }

    /// Handles the acknowledgement of a probe, which may show that the probe repaired a loss (RFC
    /// 8985, section 7.4).
    fn on_probe_answered(
        &mut self,
        flight: &mut Flight,
        stream: &Stream,
        news: &News<'_>,
        config: &Config,
    ) {
        let &News {
            now,
            ack,
            delivery,
            advanced,
        } = news;
        let Some((end, is_old)) = flight.probe.end else {
            return;
        };
        if ack.offset < end {
            return;
        }
        let is_duplicate = ack.is_pure && !advanced && delivery.bytes == 0;
        if is_old && ack.duplicate.is_none() && ack.offset > end {
            // The probe arrived and its original did not.
            flight.probe.end = None;
            let loss = Loss {
                now,
                sent_at: now,
                lost: DataSize::new(u64::from(config.mss)),
                in_flight: DataSize::new(stream.in_flight()),
                window: DataSize::new(self.control.window().min(stream.peer_window)),
                cause: LossCause::Reordering,
                restart: false,
            };
            self.statistics.fast_retransmits += 1;
            self.marks.on_reduction(stream.max);
            self.control.report(Event::Loss(&loss));
        } else if !is_old || ack.duplicate.is_some() || is_duplicate {
            flight.probe.end = None;
        }
    }

    /// Starts the probe timer in place of the retransmission timer, if a probe is allowed.
    ///
    /// ```text
    /// PTO = min(2 · SRTT + slack, time to the retransmission timeout)
    /// slack = 2 ms; 200 ms for a single segment, whose receiver may delay its acknowledgement
    /// ```
    pub(super) fn schedule_probe(
        &mut self,
        flight: &mut Flight,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) {
        flight.probe.at = Time::MAX;
        let (probe, _, _) = settings(config);
        let may_probe = probe
            && stream.una > 0
            && self.repair.is_quiet()
            && !flight.has_disorder()
            && flight.probe.end.is_none()
            && !stream.rto_at.is_never();
        let (Some((first_start, first_end)), true) = (flight.first(), may_probe) else {
            return;
        };
        let is_alone = stream.max <= first_end && first_start == stream.una;
        let slack = if is_alone {
            config.rtt.min_timeout
        } else {
            PROBE_SLACK
        };
        let wait = match self.clock.rtt.smoothed(&config.rtt) {
            Some(smoothed) => smoothed * 2 + slack,
            None => config.rtt.initial_timeout,
        };
        flight.probe.at = stream.rto_at.min(now + wait);
        stream.rto_at = Time::MAX;
    }

    /// Handles the timers of the recovery that are due.
    pub(super) fn on_recovery_timer(
        &mut self,
        flight: &mut Flight,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) {
        if flight.reorder_at <= now {
            self.burst.on_expiry();
            if self.find_lost(flight, stream, now, config) {
                let pipe = flight.pipe(stream.in_flight());
                flight.reduce(u64::from(config.mss), pipe, false, config.mss);
            }
        }
        if flight.probe.at <= now {
            self.burst.on_expiry();
            flight.probe.at = Time::MAX;
            // An out-of-order delivery since then reports more than a probe would.
            flight.probe.is_due = !flight.has_disorder();
            self.restart_timer(stream, now);
        }
        self.repair.settle(flight.is_quiet());
    }

    /// The next segment to send: a probe, the first lost segment, then other losses and new data as
    /// the window allows.
    pub(super) fn next_by_time(
        &mut self,
        flight: &mut Flight,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) -> Option<Outgoing> {
        if core::mem::take(&mut flight.probe.is_due)
            && let Some(outgoing) = self.probe_tail(flight, stream, config)
        {
            return Some(outgoing);
        }
        if core::mem::take(&mut flight.is_forced)
            && let Some((start, end)) = flight.next_lost().or_else(|| flight.first())
        {
            return Some(stream.recorded_segment(start, end, config));
        }
        let pipe = flight.pipe(stream.in_flight());
        if let Some((start, end)) = flight.next_lost() {
            let window = flight.window(self.control.window());
            let fits = pipe + (end - start) <= window;
            return fits.then(|| stream.recorded_segment(start, end, config));
        }
        let spare = stream.in_flight().saturating_sub(pipe);
        let window = flight.window(self.control.window()).saturating_add(spare);
        self.next_within(stream, now, window, config)
    }

    /// New data if there is any, or the last segment again (RFC 8985, section 7.3).
    fn probe_tail(
        &self,
        flight: &mut Flight,
        stream: &Stream,
        config: &Config,
    ) -> Option<Outgoing> {
        let fresh = stream.segment_at(stream.max, stream.stream_end(), config);
        let has_room = fresh.end_of_data() <= self.peer_edge(stream);
        if !fresh.is_empty() && has_room {
            flight.probe.end = Some((fresh.end(), false));
            return Some(fresh);
        }
        let (start, end) = flight.last()?;
        let is_old = { self.skips.as_ref() }.is_none_or(|skips| !skips.holds(start, end));
        flight.probe.end = Some((end, is_old));
        Some(stream.recorded_segment(start, end, config))
    }

    /// Updates the state for a segment that leaves.
    pub(super) fn on_sent_by_time(
        &mut self,
        flight: &mut Flight,
        stream: &mut Stream,
        now: Time,
        outgoing: Outgoing,
        config: &Config,
    ) {
        flight.on_sent(now, outgoing.start, outgoing.end());
        let outstanding = stream.in_flight();
        let full =
            flight.pipe(outstanding) + u64::from(config.mss) > flight.window(self.control.window());
        flight
            .usage
            .on_sent(stream.una, stream.max, outstanding, full);
        let Some(first) = flight.first_sent_at() else {
            return;
        };
        if !flight.probe.at.is_never() {
            // The probe replaced the timeout of the first segment.
            stream.rto_at = (first + self.clock.timeout).max(now);
            self.schedule_probe(flight, stream, now, config);
        } else if outstanding == outgoing.end() - outgoing.start {
            self.schedule_probe(flight, stream, now, config);
        }
    }
}
