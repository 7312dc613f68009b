//! Round-trip times, and the retransmission timeout.

use core::num::NonZeroU64;

use comity_congestion::RttEstimator;
use comity_units::{Span, Time};

use super::super::config::Config;
use super::stream::{Acknowledgement, Stream};

/// Takes round-trip samples and keeps the retransmission timeout.
#[derive(Debug)]
pub(super) struct Clock {
    pub(super) rtt: RttEstimator,
    /// The retransmission timeout in force.
    pub(super) timeout: Span,
    /// The timed segment: the offset after it, and its departure time.
    timed: Option<(NonZeroU64, Time)>,
    /// Whether the last acknowledgement provided a sample.
    was_sampled: bool,
}

impl Clock {
    pub(super) fn new(config: &Config) -> Self {
        let rtt = RttEstimator::new(&config.rtt);
        Self {
            timeout: rtt.timeout(&config.rtt),
            rtt,
            timed: None,
            was_sampled: false,
        }
    }

    /// Records a segment up to `end` that leaves for the first time. It is timed if no other
    /// segment is.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, end: u64) {
        if self.timed.is_none() {
            self.timed = NonZeroU64::new(end).map(|end| (end, now));
        }
    }

    /// Stops timing: an acknowledgement of retransmitted data is ambiguous (Karn).
    pub(super) const fn forget(&mut self) {
        self.timed = None;
    }

    /// Records that `[start, end)` is retransmitted.
    pub(super) fn on_retransmitted(&mut self, start: u64, end: u64) {
        let is_again = |timed: NonZeroU64| start < timed.get() && timed.get() <= end;
        if self.timed.is_some_and(|(timed, _)| is_again(timed)) {
            self.timed = None;
        }
    }

    /// Stops timing a segment that lies below an offset.
    pub(super) fn forget_below(&mut self, offset: u64) {
        if self.timed.is_some_and(|(end, _)| end.get() <= offset) {
            self.timed = None;
        }
    }

    /// Resets the state for a new acknowledgement.
    pub(super) const fn begin_acknowledgement(&mut self) {
        self.was_sampled = false;
    }

    /// The sample of the last acknowledgement.
    pub(super) fn last_sample(&self) -> Option<Span> {
        self.rtt.latest().filter(|_| self.was_sampled)
    }

    /// Whether an acknowledgement passes from obsolete to current data. A jump may then have caused
    /// it, so it is no evidence about data sent before that jump. Returns the time of the jump.
    pub(super) fn may_be_jump(stream: &Stream, ack: &Acknowledgement<'_>) -> Option<Time> {
        let line = stream.line.as_ref()?;
        (line.is_obsolete(stream.una) && !line.is_obsolete(ack.offset)).then_some(line.moved_at)
    }

    /// Takes a round-trip sample if an acknowledgement that advances provides one: of data from the
    /// offset `from` on.
    pub(super) fn sample(
        &mut self,
        now: Time,
        ack: &Acknowledgement<'_>,
        partial: bool,
        jump: Option<Time>,
        from: u64,
        config: &Config,
    ) -> Option<Span> {
        self.forget_below(from);
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
        let sent_at = match ack.echoed.filter(|_| ack.offset > from) {
            Some(echoed) if jump.is_none_or(|jumped_at| jumped_at <= echoed) => {
                self.rtt.end_backoff();
                Some(echoed)
            }
            Some(_) => None,
            None if partial => None,
            None => timed,
        }?;
        self.rtt.on_sample(&config.rtt, sent_at, now);
        self.timeout = self.rtt.timeout(&config.rtt);
        self.was_sampled = true;
        Some(now.saturating_since(sent_at))
    }

    /// Adds a round trip measured by the record of the segment; returns it.
    pub(super) fn take(&mut self, now: Time, rtt: Span, config: &Config) -> Span {
        self.rtt.end_backoff();
        self.rtt
            .on_sample(&config.rtt, now.saturating_sub(rtt), now);
        self.timeout = self.rtt.timeout(&config.rtt);
        self.was_sampled = true;
        rtt
    }

    /// Doubles the timeout, because the retransmission timer expired.
    pub(super) fn back_off(&mut self, config: &Config) {
        self.timed = None;
        self.rtt.back_off(&config.rtt);
        self.timeout = self.rtt.timeout(&config.rtt);
    }
}
