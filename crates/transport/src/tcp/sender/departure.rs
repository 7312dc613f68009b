//! The order of precedence of departing segments, and their accounting.

use comity_congestion::recovery::{PipeRule, Recovery};
use comity_congestion::{Event, Pacing, Sent};
use comity_units::{Bytes, PacketNumber, Rate, Time};

use super::super::codec::data_header_length;
use super::super::config::Config;
use super::super::segment::IP_HEADER;
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
        self.restart_after_idle(stream, now, config);
        match self.glance(stream, now, config) {
            Glance::Nothing => None,
            Glance::Segment(outgoing) => {
                self.burst += 1;
                self.sent(stream, now, outgoing, config)
            }
            Glance::Unclear if stream.line.is_some() || self.may_have_something(stream) => {
                self.poll_with_care(stream, now, config)
            }
            Glance::Unclear => None,
        }
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
        if core::mem::take(&mut self.persistence.is_due)
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
        if let Some(mut flight) = self.flight.take() {
            let is_held = config.max_burst.is_some_and(|limit| self.burst >= limit);
            let outgoing = if is_held && !flight.is_urgent() {
                None
            } else {
                self.next_by_time(&mut flight, stream, now, config)
            };
            self.flight = Some(flight);
            let outgoing = outgoing?;
            self.burst += 1;
            return self.sent(stream, now, outgoing, config);
        }
        if self.resend_first {
            self.resend_first = false;
            let (una, max) = (stream.una, stream.max);
            let answer = self.answer_obsolete(stream, una, max, config);
            let outgoing = answer.unwrap_or_else(|| stream.segment_at(una, max, config));
            if let (Some(line), None) = (&mut stream.line, answer) {
                line.on_resent(outgoing.end());
            }
            if let Some(board) = &mut self.scoreboard {
                let end = answer.map_or(outgoing.end(), |_| board.retransmitted);
                board.on_first_resent(end);
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

    /// Updates the state for a segment that leaves. A segment without payload and FIN is a probe or
    /// a notice. It is no packet of the flow, and neither the controller nor the pacer counts it.
    #[inline]
    pub(super) fn sent(
        &mut self,
        stream: &mut Stream,
        now: Time,
        outgoing: Outgoing,
        config: &Config,
    ) -> Option<Outgoing> {
        if outgoing.is_empty() {
            self.wave = None;
            return Some(outgoing);
        }
        let end = outgoing.end();
        let max = stream.max;
        let idle = !stream.has_outstanding();
        self.statistics.segments += 1;
        if outgoing.start < stream.max {
            self.statistics.retransmitted += 1;
            if let Some(line) = &mut stream.line {
                line.on_repeated(now, outgoing.start, u64::from(outgoing.length));
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
        if idle || stream.rto_at.is_never() {
            self.restart_timer(stream, now);
        }
        if let Some(mut flight) = self.flight.take() {
            self.on_sent_by_time(&mut flight, stream, now, outgoing, config);
            self.flight = Some(flight);
        }
        self.note_group(stream, outgoing.start >= max, config);
        self.note_sent(now);
        self.mark(outgoing, max, config);
        if self.is_metered {
            self.take_tag(stream, now, outgoing, config);
        }
        let wire = self.wire_size(stream, outgoing, config);
        if let Some(pace) = &mut self.pace {
            pace.pacer
                .on_sent(now, wire, pace.pacing, Rate::MAX, Bytes::ZERO);
        }
        self.controller.on_event(Event::Sent(&Sent {
            now,
            payload: Bytes::new(u64::from(outgoing.length)),
            wire,
            number: PacketNumber::new(self.statistics.segments),
            in_flight: Bytes::new(stream.in_flight()),
            app_limited: stream.max >= stream.stream_end(),
        }));
        // A controller that paces may set its calendar or its wake-up by departures.
        if self
            .pace
            .as_ref()
            .is_some_and(|pace| pace.pacing != Pacing::Unpaced)
        {
            self.obey();
        }
        self.check_app_limited(stream, config);
        Some(outgoing)
    }

    /// The wire size of a departing segment, without options about the reverse direction: SACK
    /// blocks and the level of a wave.
    fn wire_size(&self, stream: &Stream, outgoing: Outgoing, config: &Config) -> Bytes {
        let header = data_header_length(
            config.timestamps,
            self.wave.is_some(),
            stream.line.is_some(),
        );
        Bytes::new(u64::from(IP_HEADER + outgoing.length) + header as u64)
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
