//! A record of each segment in flight, for time-based recoveries, and which of them are lost,
//! retransmissions included.

use alloc::collections::VecDeque;

use comity_congestion::recovery::{Delivered, Prr, RackClock, Verdict};
use comity_units::{Span, Time};

/// The segments above the cumulative acknowledgement: when each left, and its state.
///
/// ```text
/// pipe = outstanding − delivered out of order − lost + retransmitted and not acknowledged
/// ```
///
/// Source: RFC 8985, section 5.2 for the record of a segment.
#[derive(Debug)]
pub(super) struct Flight {
    /// In the order of the stream, without gaps.
    segments: VecDeque<Flown>,
    /// `(start, number)` of each transmission, oldest first. An entry is outdated if its segment
    /// was delivered, removed or retransmitted since; it is dropped when it reaches the front.
    order: VecDeque<(u64, u64)>,
    /// The number of transmissions.
    sent: u64,
    /// Bytes delivered out of order, and the number of their segments.
    delivered: u64,
    delivered_segments: u32,
    /// Bytes marked lost, and the part that is not yet retransmitted.
    lost: u64,
    pending: u64,
    /// Retransmitted bytes that are not acknowledged.
    retransmitted: u64,
    /// Bytes of skipped segments that are marked lost.
    skipped: u64,
    /// Outstanding segments that are tests.
    tests: u32,
    pub(super) clock: RackClock,
    /// When a segment that may have been reordered counts as lost; [`Time::MAX`] for never.
    pub(super) reorder_at: Time,
    /// Whether the first lost segment must be retransmitted regardless of the window.
    pub(super) is_forced: bool,
    pub(super) probe: Probe,
    pub(super) usage: Usage,
    pub(super) reduction: Option<Reduction>,
    pub(super) episode: Option<Episode>,
}

#[derive(Clone, Copy, Debug)]
struct Flown {
    start: u64,
    end: u64,
    /// Its last transmission.
    number: u64,
    sent_at: Time,
    is_delivered: bool,
    is_lost: bool,
    /// Whether it was retransmitted since it was marked lost, or as a probe.
    is_retransmitted: bool,
    /// Whether it was ever retransmitted, or is a test that left.
    was_resent: bool,
    test: Test,
}

/// Whether a segment tests the peer's acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    /// It is a normal segment.
    No,
    /// It was skipped, and has not left.
    Skipped,
    /// It left once, after the peer had shown that it was missing.
    Left,
}

/// The reordering windows: of segments that left, and of those that were skipped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    pub(super) sent: Span,
    pub(super) skipped: Span,
}

/// The tail loss probe (RFC 8985, section 7).
#[derive(Debug)]
pub(super) struct Probe {
    /// When it is due; [`Time::MAX`] for never.
    pub(super) at: Time,
    pub(super) is_due: bool,
    /// The outstanding probe: the offset whose acknowledgement answers it, and whether it
    /// retransmits old data.
    pub(super) end: Option<(u64, bool)>,
}

/// How much of the window the flow used (Linux's `tcp_cwnd_validate`).
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// The offset up to which the numbers below hold.
    end: u64,
    /// Whether the window was full.
    is_full: bool,
    /// The maximum outstanding data while the window did not limit the flow.
    most: u64,
}

/// A reduction of the window that is under way.
#[derive(Debug)]
pub(super) struct Reduction {
    prr: Prr,
    /// The maximum number of bytes in flight.
    window: u64,
}

/// The last reduction, while it may prove unnecessary.
#[derive(Debug)]
pub(super) struct Episode {
    /// The acknowledgement when it began.
    pub(super) began_at: u64,
    /// When it first retransmitted a segment.
    pub(super) retransmitted_at: Option<Time>,
    /// Retransmitted segments without a reported duplicate.
    pub(super) unexplained: u32,
}

/// The deliveries of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acked {
    pub(super) bytes: u64,
    pub(super) segments: u32,
    /// The shortest and the longest round trip of the segments sent once.
    pub(super) rtt: Option<Span>,
    pub(super) longest_rtt: Option<Span>,
    /// Whether the cumulative acknowledgement passed a retransmitted segment.
    pub(super) passes_retransmission: bool,
}

impl Flight {
    pub(super) fn new() -> Self {
        Self {
            segments: VecDeque::new(),
            order: VecDeque::new(),
            sent: 0,
            delivered: 0,
            delivered_segments: 0,
            lost: 0,
            pending: 0,
            retransmitted: 0,
            skipped: 0,
            tests: 0,
            clock: RackClock::new(),
            reorder_at: Time::MAX,
            is_forced: false,
            probe: Probe {
                at: Time::MAX,
                is_due: false,
                end: None,
            },
            usage: Usage::default(),
            reduction: None,
            episode: None,
        }
    }

    pub(super) fn heap_memory(&self) -> usize {
        self.segments.capacity() * size_of::<Flown>()
            + self.order.capacity() * size_of::<(u64, u64)>()
    }

    /// Whether every segment in flight was sent once and none is known to be missing: all
    /// outstanding bytes are in flight.
    pub(super) fn is_quiet(&self) -> bool {
        self.delivered | self.lost | self.retransmitted == 0
            && !(self.is_forced | self.probe.is_due)
            && self.reduction.is_none()
    }

    /// Whether something must leave regardless of the limits.
    pub(super) const fn is_urgent(&self) -> bool {
        self.is_forced || self.probe.is_due
    }

    /// Whether anything was delivered out of order or is marked lost.
    pub(super) const fn has_disorder(&self) -> bool {
        self.delivered | self.lost != 0
    }

    /// Whether anything that left is marked lost, retransmitted or not.
    pub(super) const fn has_lost(&self) -> bool {
        self.lost > self.skipped
    }

    /// Whether the first outstanding segment is a test. If it is, only a test keeps the cumulative
    /// acknowledgement from advancing.
    pub(super) fn is_at_test(&self) -> bool {
        self.tests > 0
            && self
                .segments
                .front()
                .is_some_and(|first| first.test != Test::No)
    }

    /// Whether at least `threshold` segments were delivered behind a missing one that is not a
    /// test.
    pub(super) fn has_overtaken(&self, threshold: u32) -> bool {
        if self.delivered_segments < threshold || self.tests == 0 {
            return self.delivered_segments >= threshold;
        }
        let explained = |segment: &&Flown| segment.is_delivered || segment.test != Test::No;
        let behind = self.segments.iter().skip_while(explained);
        let delivered = behind.filter(|segment| segment.is_delivered);
        delivered.take(threshold as usize).count() == threshold as usize
    }

    /// The number of segments delivered out of order.
    pub(super) const fn delivered_segments(&self) -> u32 {
        self.delivered_segments
    }

    /// Whether a retransmission is unacknowledged.
    pub(super) const fn has_retransmission(&self) -> bool {
        self.retransmitted > 0
    }

    pub(super) const fn transmissions(&self) -> u64 {
        self.sent
    }

    /// The estimated number of bytes in the network, out of `outstanding`.
    pub(super) const fn pipe(&self, outstanding: u64) -> u64 {
        (outstanding + self.retransmitted).saturating_sub(self.delivered + self.lost)
    }

    /// When the first outstanding segment last left.
    pub(super) fn first_sent_at(&self) -> Option<Time> {
        self.segments.front().map(|segment| segment.sent_at)
    }

    /// The first segment outstanding.
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.segments
            .front()
            .map(|segment| (segment.start, segment.end))
    }

    /// The starts of the lost segments that are not yet retransmitted, without skipped ones.
    pub(super) fn lost(&self) -> impl Iterator<Item = u64> + '_ {
        let segments = if self.pending > 0 {
            self.segments.len()
        } else {
            0
        };
        self.segments
            .iter()
            .take(segments)
            .filter(|segment| segment.is_lost && !segment.is_retransmitted)
            .filter(|segment| segment.test != Test::Skipped)
            .map(|segment| segment.start)
    }

    /// The last segment outstanding.
    pub(super) fn last(&self) -> Option<(u64, u64)> {
        self.segments
            .back()
            .map(|segment| (segment.start, segment.end))
    }

    /// The first lost segment that is not yet retransmitted.
    pub(super) fn next_lost(&self) -> Option<(u64, u64)> {
        if self.pending == 0 {
            return None;
        }
        self.segments
            .iter()
            .find(|segment| segment.is_lost && !segment.is_retransmitted)
            .map(|segment| (segment.start, segment.end))
    }

    /// Records that `[start, end)` leaves: new data at the end, or a recorded segment.
    pub(super) fn on_sent(&mut self, now: Time, start: u64, end: u64) {
        self.sent += 1;
        let number = self.sent;
        let length = end - start;
        let last_end = self.segments.back().map_or(start, |segment| segment.end);
        if start >= last_end {
            self.segments.push_back(Flown {
                start,
                end,
                number,
                sent_at: now,
                is_delivered: false,
                is_lost: false,
                is_retransmitted: false,
                was_resent: false,
                test: Test::No,
            });
        } else {
            let at = self.index_of(start);
            let Some(segment) = self.segments.get_mut(at) else {
                return;
            };
            let size = segment.end - segment.start;
            segment.number = number;
            segment.sent_at = now;
            // Its delivery is neither a sign of reordering nor a sample of the round trip.
            segment.was_resent = true;
            if segment.test == Test::Skipped {
                // It leaves for the first time, and nothing was lost.
                segment.test = Test::Left;
                if core::mem::take(&mut segment.is_lost) {
                    self.lost -= size;
                    self.pending -= size;
                    self.skipped -= size;
                }
            } else {
                if !segment.is_retransmitted {
                    self.retransmitted += size;
                    if segment.is_lost {
                        self.pending -= size;
                    }
                }
                segment.is_retransmitted = true;
                if core::mem::replace(&mut segment.test, Test::No) != Test::No {
                    self.tests -= 1;
                }
                if let Some(episode) = &mut self.episode {
                    episode.retransmitted_at.get_or_insert(now);
                    episode.unexplained += 1;
                }
            }
        }
        self.order.push_back((start, number));
        if let Some(reduction) = &mut self.reduction {
            reduction.prr.on_sent(length);
        }
    }

    /// Skips the last recorded segment, which becomes a test. Until it leaves, it counts as lost in
    /// the network, but not as a sign of congestion.
    pub(super) fn skip_last(&mut self) {
        if let Some(last) = self.segments.back_mut() {
            last.test = Test::Skipped;
            self.tests += 1;
        }
    }

    /// The index of the first segment that ends after `offset`.
    fn index_of(&self, offset: u64) -> usize {
        self.segments
            .partition_point(|segment| segment.end <= offset)
    }

    /// Records the arrival of everything below `una` and in `blocks`.
    pub(super) fn on_delivered(
        &mut self,
        now: Time,
        una: u64,
        blocks: &[(u64, u64)],
        min_rtt: Option<Span>,
    ) -> Acked {
        let mut delivery = Acked::default();
        while let Some(first) = self.segments.front_mut() {
            if first.end > una {
                // The acknowledgement covers part of a segment if the peer's window cut it.
                let passed = una.saturating_sub(first.start);
                if passed > 0 {
                    first.start = una;
                    let (is_lost, is_retransmitted, is_delivered) =
                        (first.is_lost, first.is_retransmitted, first.is_delivered);
                    self.delivered -= if is_delivered { passed } else { 0 };
                    self.lost -= if is_lost { passed } else { 0 };
                    self.pending -= if is_lost && !is_retransmitted {
                        passed
                    } else {
                        0
                    };
                    self.retransmitted -= if is_retransmitted { passed } else { 0 };
                    delivery.bytes += if is_delivered { 0 } else { passed };
                }
                break;
            }
            let segment = *first;
            delivery.passes_retransmission |= segment.was_resent && segment.test == Test::No;
            self.forget(&segment);
            if segment.is_delivered {
                self.delivered -= segment.end - segment.start;
                self.delivered_segments -= 1;
            } else {
                self.note(&segment, now, min_rtt, &mut delivery);
            }
            self.segments.pop_front();
        }
        let mut below = una;
        for _ in blocks {
            // The clock needs ascending order; an acknowledgement has at most four blocks.
            let next = blocks.iter().filter(|block| block.0 >= below).min();
            let Some(&(start, end)) = next else { break };
            below = end.max(start + 1);
            self.on_block(now, start, end, min_rtt, &mut delivery);
        }
        delivery
    }

    fn on_block(
        &mut self,
        now: Time,
        start: u64,
        end: u64,
        min_rtt: Option<Span>,
        delivery: &mut Acked,
    ) {
        let mut at = self
            .segments
            .partition_point(|segment| segment.start < start);
        while let Some(&segment) = self.segments.get(at) {
            if segment.end > end {
                break;
            }
            if !segment.is_delivered {
                self.forget(&segment);
                self.delivered += segment.end - segment.start;
                self.delivered_segments += 1;
                if let Some(segment) = self.segments.get_mut(at) {
                    segment.is_delivered = true;
                    segment.is_lost = false;
                    segment.is_retransmitted = false;
                    segment.test = Test::No;
                }
                self.note(&segment, now, min_rtt, delivery);
            }
            at += 1;
        }
    }

    /// Removes a segment from the sums of lost and retransmitted bytes, because it was delivered.
    fn forget(&mut self, segment: &Flown) {
        let length = segment.end - segment.start;
        if segment.is_lost {
            self.lost -= length;
            self.pending -= if segment.is_retransmitted { 0 } else { length };
            self.skipped -= if segment.test == Test::Skipped {
                length
            } else {
                0
            };
        }
        self.retransmitted -= if segment.is_retransmitted { length } else { 0 };
        self.tests -= u32::from(segment.test != Test::No);
    }

    fn note(&mut self, segment: &Flown, now: Time, min_rtt: Option<Span>, delivery: &mut Acked) {
        delivery.bytes += segment.end - segment.start;
        delivery.segments += 1;
        if !segment.was_resent {
            let rtt = now.saturating_since(segment.sent_at);
            delivery.rtt = Some(delivery.rtt.map_or(rtt, |least| least.min(rtt)));
            delivery.longest_rtt = delivery.longest_rtt.max(Some(rtt));
        }
        let delivered = Delivered {
            number: segment.number,
            sent_at: segment.sent_at,
            end: segment.end,
            was_resent: segment.was_resent,
        };
        self.clock.on_delivered(&delivered, now, min_rtt);
    }

    /// Marks as lost the segments that are overdue by the reordering window. Returns the bytes of
    /// those that left, and when the newest of them had left. Sets the time of the next check.
    pub(super) fn find_lost(&mut self, now: Time, windows: Windows) -> Option<(u64, Time)> {
        let mut found: Option<(u64, Time)> = None;
        let mut longest = Span::ZERO;
        let mut at = 0;
        while let Some(&(start, number)) = self.order.get(at) {
            let index = self.index_of(start);
            let is_current = |segment: &Flown| {
                segment.number == number
                    && !segment.is_delivered
                    && (segment.is_retransmitted || !segment.is_lost)
            };
            let Some(segment) = self.segments.get_mut(index).filter(|it| is_current(it)) else {
                let _ = self.order.remove(at);
                continue;
            };
            let is_skipped = segment.test == Test::Skipped;
            let window = match is_skipped {
                true => windows.skipped,
                false => windows.sent,
            };
            match self.clock.judge(number, segment.sent_at, now, window) {
                Verdict::Unknown => break,
                Verdict::Waits(span) => {
                    longest = longest.max(span);
                    at += 1;
                }
                Verdict::Lost => {
                    let length = segment.end - segment.start;
                    if segment.is_retransmitted {
                        self.retransmitted -= length;
                    }
                    if !segment.is_lost {
                        self.lost += length;
                    }
                    segment.is_lost = true;
                    segment.is_retransmitted = false;
                    let sent_at = segment.sent_at;
                    self.pending += length;
                    if is_skipped {
                        self.skipped += length;
                    } else {
                        let (bytes, newest) = found.unwrap_or((0, Time::ZERO));
                        found = Some((bytes + length, newest.max(sent_at)));
                    }
                    let _ = self.order.remove(at);
                }
            }
        }
        self.reorder_at = if longest.is_zero() {
            Time::MAX
        } else {
            now + longest
        };
        found
    }

    /// Handles an expiry of the retransmission timer: segments that are not overdue stay in flight,
    /// all others are lost. A peer has reneged if its acknowledgement stops at selectively
    /// acknowledged data (RFC 2018, section 8).
    pub(super) fn on_timeout(&mut self, now: Time) {
        let reneged = self
            .segments
            .front()
            .is_some_and(|first| first.is_delivered);
        let clock = self.clock;
        let (mut lost, mut retransmitted, mut skipped) = (0, 0, 0);
        for (index, segment) in self.segments.iter_mut().enumerate() {
            let is_taken_back = reneged && segment.is_delivered;
            if is_taken_back {
                segment.is_delivered = false;
                self.delivered -= segment.end - segment.start;
                self.delivered_segments -= 1;
            }
            if segment.is_delivered {
                continue;
            }
            let verdict = clock.judge(0, segment.sent_at, now, Span::ZERO);
            let may_arrive = index > 0 && !is_taken_back && matches!(verdict, Verdict::Waits(_));
            let length = segment.end - segment.start;
            if !may_arrive {
                segment.is_lost = true;
                segment.is_retransmitted = false;
            }
            lost += if segment.is_lost { length } else { 0 };
            retransmitted += if segment.is_retransmitted { length } else { 0 };
            let is_skipped = segment.is_lost && segment.test == Test::Skipped;
            skipped += if is_skipped { length } else { 0 };
        }
        (self.lost, self.retransmitted, self.skipped) = (lost, retransmitted, skipped);
        self.pending = self
            .segments
            .iter()
            .filter(|segment| segment.is_lost && !segment.is_retransmitted)
            .map(|segment| segment.end - segment.start)
            .sum();
        self.reorder_at = Time::MAX;
        self.probe.at = Time::MAX;
        self.probe.is_due = false;
        self.probe.end = None;
        self.reduction = None;
        self.is_forced = true;
    }

    /// Clears all loss marks, because nothing was lost after all.
    pub(super) fn absolve(&mut self) {
        self.order.clear();
        for segment in &mut self.segments {
            segment.is_lost = false;
            self.order.push_back((segment.start, segment.number));
        }
        self.order
            .make_contiguous()
            .sort_unstable_by_key(|&(_, number)| number);
        self.lost = 0;
        self.pending = 0;
        self.skipped = 0;
        self.is_forced = false;
        self.reduction = None;
        self.episode = None;
    }

    /// The maximum in flight: the controller's `window`, or another value during a reduction.
    pub(super) fn window(&self, window: u64) -> u64 {
        self.reduction
            .as_ref()
            .map_or(window, |reduction| reduction.window)
    }

    /// Begins a reduction from a window of `before` to `target`.
    pub(super) fn begin_reduction(&mut self, before: u64, target: u64) {
        self.reduction = Some(Reduction {
            prr: Prr::new(before, target),
            window: before,
        });
    }

    /// Advances the reduction, if one is active.
    pub(super) fn reduce(&mut self, delivered: u64, pipe: u64, is_safe: bool, mss: u32) {
        if let Some(reduction) = &mut self.reduction
            && delivered > 0
        {
            reduction.window = reduction.prr.on_ack(delivered, pipe, is_safe, mss);
        }
    }
}

impl Usage {
    /// Records a departure; `outstanding` bytes are now in flight, from `una` up to `end`.
    pub(super) fn on_sent(&mut self, una: u64, end: u64, outstanding: u64, is_full: bool) {
        if una >= self.end || is_full || !self.is_full && outstanding > self.most {
            *self = Self {
                end,
                is_full,
                most: outstanding,
            };
        }
    }

    /// Whether only the window limits the flow. In slow start, using more than half of it is
    /// enough.
    pub(super) const fn is_limited(&self, window: u64, in_slow_start: bool) -> bool {
        self.is_full || in_slow_start && window < 2 * self.most
    }
}

#[cfg(test)]
mod tests;
