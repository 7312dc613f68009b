//! The precedence of departing segments, and the updates for each.

use comity_congestion::recovery::PipeRule;
use comity_congestion::{Event, Idle, Sent, Tag};
use comity_units::{DataSize, PacketNumber, Time};

use super::super::codec::data_header_length;
use super::super::config::Config;
use super::super::segment::IP_HEADER;
use super::group;
use super::stream::{Outgoing, Stream};
use super::transfer::Transfer;
use super::window::Glance;

impl Transfer {
    /// The next segment to send now, if any. One without length and FIN is a window probe.
    #[inline]
    pub(super) fn poll(
        &mut self,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) -> Option<Outgoing> {
        loop {
            let before = stream.max;
            let outgoing = self.next_segment(stream, now, config)?;
            if self.skips.is_none() || !self.skip_segment(stream, before, outgoing, now, config) {
                return Some(outgoing);
            }
        }
    }

    /// The next segment that counts as sent.
    #[inline]
    fn next_segment(
        &mut self,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) -> Option<Outgoing> {
        self.restart_after_idle(stream, now, config);
        match self.glance(stream, now, config) {
            Glance::Nothing => None,
            Glance::Segment(outgoing) => {
                self.burst.on_sent();
                self.sent(stream, now, outgoing, config)
            }
            Glance::Unclear if stream.line.is_some() || self.may_have_something(stream) => {
                self.poll_with_care(stream, now, config)
            }
            Glance::Unclear => None,
        }
    }

    /// Prepares for data after a pause: the window may be outdated.
    #[inline]
    fn restart_after_idle(&mut self, stream: &Stream, now: Time, config: &Config) {
        if !config.restart_after_idle
            || stream.has_outstanding()
            || stream.next >= stream.stream_end()
        {
            return;
        }
        let timeout = self.clock.timeout;
        if let Some(pause) = self.idle.pause(now, timeout) {
            self.control.report(Event::Idle(&Idle {
                now,
                pause,
                timeout,
                initial_window: DataSize::new(self.idle.initial_window()),
            }));
            self.idle.on_sent(now);
        }
    }

    /// The segment to send when the persist timer expires: any data that fits into the window,
    /// however little (the override timeout of RFC 9293, section 3.8.6.2.1), or a probe without
    /// data into a closed one.
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
        let length = u64::from(whole.length).min(self.room_at(stream, stream.next)) as u32;
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
        // A peer acknowledges a segment with an old number.
        let question = Outgoing::nothing_at(stream.una.saturating_sub(1));
        if stream.needs_notice()
            && let Some(line) = &mut stream.line
        {
            line.statistics.notices += 1;
        }
        self.sent(stream, now, question, config)
    }

    /// The next segment to send now, in any state.
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
        if self.persistence.take_due()
            && let Some(outgoing) = self.probe_segment(stream, now, config)
        {
            return Some(outgoing);
        }
        if self.control.is_pacer_closed(now) {
            let is_held = self.is_held_by_pacer(stream, now);
            self.burst.set_held_by_pacer(is_held);
            if !is_held {
                self.persist(stream, now, config);
            }
            return None;
        }
        if let Some(mut flight) = self.flight.take() {
            let is_held = self.burst.is_full(config.max_burst);
            let outgoing = if is_held && !flight.is_urgent() {
                None
            } else {
                self.next_by_time(&mut flight, stream, now, config)
            };
            self.flight = Some(flight);
            let outgoing = outgoing?;
            self.burst.on_sent();
            return self.sent(stream, now, outgoing, config);
        }
        if self.repair.take_first() {
            let (una, max) = (stream.una, stream.max);
            let answer = self.answer_obsolete(stream, una, max, config);
            let outgoing = answer.unwrap_or_else(|| stream.segment_at(una, max, config));
            if let (Some(line), None) = (&mut stream.line, answer) {
                line.on_retransmitted(outgoing.end());
            }
            if let Some(board) = &mut self.scoreboard {
                let end = answer.map_or(outgoing.end(), |_| board.retransmitted);
                board.on_first_retransmitted(end);
            }
            return self.sent(stream, now, outgoing, config);
        }
        let limit = match (config.max_burst, self.repair.burst_limit()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if self.burst.is_full(limit) {
            return None;
        }
        let outgoing = match self.repair.pipe_rule() {
            None => self.next_in_window(stream, now, config),
            Some(PipeRule::Scoreboard) => self.next_by_scoreboard(stream, now, config),
            Some(PipeRule::Counter) => self.next_by_counter(stream, now, config),
        }?;
        self.burst.on_sent();
        self.sent(stream, now, outgoing, config)
    }

    /// Updates the state for a segment that leaves. A segment without payload and FIN is a probe or
    /// a notice. It is not a packet of the flow, and neither the controller nor the pacer counts
    /// it.
    #[inline]
    pub(super) fn sent(
        &mut self,
        stream: &mut Stream,
        now: Time,
        outgoing: Outgoing,
        config: &Config,
    ) -> Option<Outgoing> {
        if outgoing.is_empty() {
            self.waves.on_sent(Tag::None);
            return Some(outgoing);
        }
        let end = outgoing.end();
        let max = stream.max;
        let idle = !stream.has_outstanding();
        self.statistics.segments += 1;
        let was_skipped =
            { self.skips.as_mut() }.is_some_and(|skips| skips.on_left(outgoing.start, end));
        if was_skipped {
            // The hole has delayed the acknowledgement of later segments.
            self.clock.forget();
        } else if outgoing.start < stream.max {
            self.statistics.retransmitted += 1;
            if let Some(line) = &mut stream.line {
                line.count_retransmission(now, outgoing.start, u64::from(outgoing.length));
            }
        }
        if let Some(answers) = &mut self.answers {
            let number = PacketNumber::new(self.statistics.segments);
            answers.on_sent(outgoing.start, end, stream.max, number);
        }
        if let Some(delivery) = &mut self.delivery {
            delivery.on_sent(now, outgoing.start, end, stream.max);
        }
        if end > stream.max {
            stream.max = end;
            self.clock.on_sent(now, end);
        }
        if outgoing.start <= stream.next {
            stream.next = stream.next.max(end);
        }
        if idle || was_skipped || stream.rto_at.is_never() {
            self.restart_timer(stream, now);
        }
        if let Some(mut flight) = self.flight.take() {
            self.on_sent_by_time(&mut flight, stream, now, outgoing, config);
            self.flight = Some(flight);
        }
        self.note_group(stream, outgoing.start >= max, config);
        self.idle.on_sent(now);
        if config.ecn {
            self.marks
                .on_sent(outgoing.length > 0 && outgoing.start >= max);
        }
        if self.waves.is_metered() {
            self.take_tag(stream, now, outgoing, config);
        }
        let wire = self.wire_size(stream, outgoing, config);
        self.control.on_sent(&Sent {
            now,
            payload: DataSize::new(u64::from(outgoing.length)),
            wire,
            number: PacketNumber::new(self.statistics.segments),
            in_flight: DataSize::new(stream.in_flight()),
            app_limited: stream.max >= stream.stream_end(),
        });
        self.check_app_limited(stream, config);
        Some(outgoing)
    }

    /// Records a departing segment, new or retransmitted, in its group.
    fn note_group(&mut self, stream: &Stream, is_new: bool, config: &Config) {
        let Some(flight) = self.flight.as_ref().filter(|_| config.segmentation_offload) else {
            return;
        };
        if !is_new {
            self.group.on_retransmitted();
            return;
        }
        let mss = u64::from(config.mss);
        let window = flight.window(self.control.window());
        let follows =
            flight.pipe(stream.in_flight()) + mss <= window && stream.max < stream.stream_end();
        let size = || {
            let (decision, window) = (self.control.decision(), self.control.window());
            let smoothed = self.clock.rtt.smoothed(&config.rtt);
            group::size(&decision, window, smoothed, config)
        };
        self.group.on_sent(size, follows);
    }

    /// Requests the controller's tag for a departing segment.
    fn take_tag(&mut self, stream: &Stream, now: Time, outgoing: Outgoing, config: &Config) {
        if outgoing.length == 0 {
            self.waves.on_sent(Tag::None);
            return;
        }
        if self.runs_dry(stream, config) {
            self.control.on_event(Event::AppLimited);
        }
        self.waves.on_sent(self.control.tag(now));
    }

    /// Whether no segment follows a departing one, because no data is left or the peer's window is
    /// closing. A peer's window that is merely smaller than the controller's advances with every
    /// acknowledgement.
    fn runs_dry(&self, stream: &Stream, config: &Config) -> bool {
        let left = stream.stream_end().saturating_sub(stream.next);
        let window = self.control.window().min(stream.peer_window_max);
        let is_closing = stream.peer_window < window / 2;
        left == 0
            || is_closing && self.room_at(stream, stream.next) < left.min(u64::from(config.mss))
    }

    /// The wire size of a departing segment, without options about the reverse direction: SACK
    /// blocks and the level of a wave.
    fn wire_size(&self, stream: &Stream, outgoing: Outgoing, config: &Config) -> DataSize {
        let header = data_header_length(
            config.timestamps,
            self.waves.last().is_some(),
            stream.line.is_some(),
        );
        DataSize::new(u64::from(IP_HEADER + outgoing.length) + header as u64)
    }

    /// Updates the state for a SYN that leaves.
    pub(super) fn on_syn_sent(&mut self, stream: &mut Stream, now: Time) {
        self.statistics.segments += 1;
        if stream.max > 0 {
            self.statistics.retransmitted += 1;
            // Karn: the acknowledgement of a SYN may refer to any of its transmissions.
            self.clock.forget();
        } else {
            self.clock.on_sent(now, 1);
        }
        stream.next = 1;
        stream.max = 1;
        if stream.rto_at.is_never() {
            self.restart_timer(stream, now);
        }
    }
}
