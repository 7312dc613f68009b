//! The evidence of acknowledgements about the packets on which the peer's meter reports.
//!
//! A controller with a meter relies on its reports. If acknowledgements are proved, they bound the
//! reports of an honest meter. A report outside these bounds is false:
//! ```text
//! count         packets of the round ≤ those that may have arrived;
//!               those that are declared lost and that no acknowledgement named do not count
//! receive rate  X ≤ 8 · (bytes that may have arrived in the last four reports' time + one packet) / least R
//! loss events   p = 0 only before the first certain loss; then 1 / p ≤ the longest interval that there can be
//! ```
//!
//! A packet may have arrived if an acknowledgement names it, or if it is below the range of the
//! acknowledgement: a receiver cannot name all packets that it remembers. A loss is certain when
//! enough later packets were acknowledged for the meter to have declared it. Two certain losses are
//! two events if the packet before the second loss left more than a round trip after the first loss
//! was known at this end. No delay or reordering makes an honest meter count fewer events. The
//! interval that it counts may begin earlier or later, but not beyond the next certain event.

use alloc::collections::VecDeque;

use comity_congestion::{LossHistory, Report, Tag};
use comity_units::{PacketNumber, Rate, Span, Time};

use crate::wire::frame::AckRange;

/// The maximum number of remembered packets with a tag: those of a round trip of 40 ms at 200,000
/// packets per second. Reports on older ones are not checked.
const MAX_PACKETS: usize = 8_192;

/// The number of intervals between reports that may determine a receive rate: an early report takes
/// the rest from the previous interval.
const INTERVALS: usize = 4;

/// After this many packets of unknown order, a meter may have detected a new path. The protocol has
/// this rule, after 64 packets; RFC 5348 has none.
const MAX_UNORDERED: u64 = 24;

/// On a new path, the meter begins again after 64 packets, whatever packets of the old path arrive
/// in between.
const NEW_PATH: u64 = 256;

/// The distance below the latest arrival within which packets are remembered.
const REMEMBERED: u64 = 4_096;

/// A packet with a tag.
#[derive(Clone, Copy, Debug)]
struct Tagged {
    number: PacketNumber,
    tag: Tag,
    payload: u32,
    sent_at: Time,
    /// Whether an acknowledgement named it.
    has_arrived: bool,
    /// Whether it was declared lost, and no acknowledgement has named it since.
    is_lost: bool,
    /// Whether it may have arrived, and its bytes were counted.
    is_counted: bool,
}

/// A packet that an acknowledgement skipped.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// Its index among the packets with a tag.
    index: u64,
    /// The index of the latest packet that had arrived before, and its departure time.
    behind: u64,
    left_at: Time,
}

/// A loss that begins an event at every honest receiver.
#[derive(Clone, Copy, Debug)]
struct CertainEvent {
    /// Its index among the packets with a tag.
    index: u64,
    known_at: Time,
    /// The packet of the peer that proved it.
    shown_by: PacketNumber,
}

/// Counts a packet that may have arrived in this interval between reports.
fn count((bytes, least): &mut (u64, Span), packet: &Tagged) {
    *bytes += u64::from(packet.payload);
    if let Tag::Numbered { rtt, .. } = packet.tag
        && !rtt.is_zero()
    {
        *least = (*least).min(rtt);
    }
}

/// The packets with tags, and the evidence about them.
#[derive(Debug)]
pub(super) struct Evidence {
    history: LossHistory,
    packets: VecDeque<Tagged>,
    /// The index of the first of `packets`.
    first_index: u64,
    /// The tag of the packet under construction.
    upcoming: Tag,
    /// The smallest number that the newest acknowledgement named.
    least: PacketNumber,
    /// The newest round with a forgotten packet.
    forgotten: Option<u32>,
    /// The bytes that may have arrived between consecutive reports, and the minimum round-trip time
    /// in their tags; the newest first.
    intervals: VecDeque<(u64, Span)>,
    /// The index up to which acknowledgements have reached.
    reached: Option<u64>,
    /// Losses that may become certain.
    candidates: VecDeque<Candidate>,
    events: VecDeque<CertainEvent>,
    /// The number of further packets to arrive before losses count.
    quiet: u64,
    /// Consecutive packets whose order of arrival is unknown.
    unordered: u64,
}

impl Evidence {
    /// An empty record for a meter that counts loss events by this history.
    pub(super) fn new(history: LossHistory) -> Self {
        Self {
            history,
            packets: VecDeque::new(),
            first_index: 0,
            upcoming: Tag::None,
            least: PacketNumber::ZERO,
            forgotten: None,
            intervals: VecDeque::from([(0, Span::MAX)]),
            reached: None,
            candidates: VecDeque::new(),
            events: VecDeque::new(),
            quiet: 0,
            unordered: 0,
        }
    }

    /// The packet under construction has this tag.
    pub(super) const fn on_tag(&mut self, tag: Tag) {
        self.upcoming = tag;
    }

    /// A packet leaves.
    pub(super) fn on_sent(&mut self, now: Time, number: PacketNumber, payload: u32) {
        let tag = core::mem::take(&mut self.upcoming);
        if tag == Tag::None {
            return;
        }
        if self.packets.len() == MAX_PACKETS {
            self.forget_oldest();
        }
        self.packets.push_back(Tagged {
            number,
            tag,
            payload,
            sent_at: now,
            has_arrived: false,
            is_lost: false,
            is_counted: false,
        });
    }

    /// These packets were declared lost.
    pub(super) fn on_lost(&mut self, numbers: impl Iterator<Item = PacketNumber>) {
        for number in numbers {
            let at = self
                .packets
                .partition_point(|packet| packet.number < number);
            let packet = self.packets.get_mut(at);
            if let Some(packet) = packet.filter(|packet| packet.number == number) {
                packet.is_lost = !packet.has_arrived;
            }
        }
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.packets.pop_front() else {
            return;
        };
        self.first_index += 1;
        if let Tag::Round { round, .. } = oldest.tag {
            self.forgotten = Some(round);
        }
        if let Some(interval) = self.intervals.front_mut().filter(|_| !oldest.is_counted) {
            count(interval, &oldest);
        }
    }

    /// The path has changed. Until the meter detects this, its losses are those of the old path.
    pub(super) fn on_new_path(&mut self) {
        self.forget_losses();
        self.quiet = NEW_PATH;
    }

    fn forget_losses(&mut self) {
        self.candidates.clear();
        self.events.clear();
    }

    /// The packet `by` acknowledged these ranges, in descending order.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        by: PacketNumber,
        ranges: impl Iterator<Item = AckRange> + Clone,
    ) {
        let Some(largest) = ranges.clone().next().map(|range| range.last) else {
            return;
        };
        self.least = ranges.clone().last().map_or(largest, |range| range.first);
        let before = self.reached;
        let (mut new, mut late) = (0, 0);
        let mut ranges = ranges.peekable();
        for (at, packet) in self.packets.iter_mut().enumerate().rev() {
            while ranges
                .peek()
                .is_some_and(|range| packet.number < range.first)
            {
                ranges.next();
            }
            let is_named = ranges
                .peek()
                .is_some_and(|range| packet.number <= range.last);
            let index = self.first_index + at as u64;
            if is_named {
                self.reached = self.reached.max(Some(index));
                new += u64::from(!packet.has_arrived);
                late += u64::from(!packet.has_arrived && before >= Some(index));
                (packet.has_arrived, packet.is_lost) = (true, false);
            }
            if (is_named || packet.number < self.least) && !packet.is_counted {
                packet.is_counted = true;
                if let Some(interval) = self.intervals.front_mut() {
                    count(interval, packet);
                }
            }
        }
        if self.history.memory > 0 {
            self.take_in_losses(now, by, before, (new, late));
        }
        while self.reached > Some(self.first_index + REMEMBERED) {
            self.forget_oldest();
        }
    }

    /// The packet `by` named `new` packets for the first time. Of these, `late` are not above the
    /// index `before` that acknowledgements had reached.
    fn take_in_losses(
        &mut self,
        now: Time,
        by: PacketNumber,
        before: Option<u64>,
        (new, late): (u64, u64),
    ) {
        self.quiet = self.quiet.saturating_sub(new);
        // Packets of one acknowledgement may have arrived in any order.
        let unordered = if late > 0 { late } else { new };
        self.unordered = if late > 0 { self.unordered } else { 0 } + unordered;
        if self.unordered > MAX_UNORDERED {
            self.unordered = 0;
            return self.forget_losses();
        }
        if let (Some(before), Some(reached)) = (before, self.reached)
            && before < reached
            && self.quiet == 0
            && let Some(left_at) = self.at(before).map(|packet| packet.sent_at)
        {
            let skipped = (before + 1..reached).map(|index| Candidate {
                index,
                behind: before,
                left_at,
            });
            self.candidates.extend(skipped);
        }
        self.find_events(now, by);
    }

    fn at(&self, index: u64) -> Option<&Tagged> {
        let at = index.checked_sub(self.first_index)?;
        self.packets.get(usize::try_from(at).ok()?)
    }

    /// The packets from this index on.
    fn from(&self, index: u64) -> impl Iterator<Item = &Tagged> {
        let before = index.saturating_sub(self.first_index);
        self.packets
            .iter()
            .skip(usize::try_from(before).unwrap_or(usize::MAX))
    }

    /// Settles the candidates with enough later arrivals.
    fn find_events(&mut self, now: Time, by: PacketNumber) {
        while let Some(&candidate) = self.candidates.front() {
            let later = self.from(candidate.index + 1);
            let arrived = later.filter(|packet| packet.has_arrived);
            if arrived.take(self.history.threshold).count() < self.history.threshold {
                return;
            }
            self.candidates.pop_front();
            let packet = self.at(candidate.index);
            let is_lost = packet.is_some_and(|packet| !packet.has_arrived);
            if is_lost && self.begins_event(&candidate) {
                self.events.push_back(CertainEvent {
                    index: candidate.index,
                    known_at: now,
                    shown_by: by,
                });
                if self.events.len() > self.history.memory + 8 {
                    self.events.pop_front();
                }
            }
        }
    }

    /// Whether a loss certainly occurred more than a round trip after the last event. The meter
    /// uses the round-trip time of a packet above the one that arrived before.
    fn begins_event(&self, loss: &Candidate) -> bool {
        let Some(last) = self.events.back() else {
            return true;
        };
        let rtts = self.from(loss.behind).map(|packet| match packet.tag {
            Tag::Numbered { rtt, .. } => rtt,
            _ => Span::ZERO,
        });
        loss.left_at > last.known_at + rtts.max().unwrap_or(Span::ZERO)
    }

    /// The report as it counts; `None` if no honest meter can have sent it in the packet `by`,
    /// after the acknowledgement in that packet.
    pub(super) fn admit(&mut self, by: PacketNumber, report: &Report) -> Option<Report> {
        match *report {
            Report::Count { round, packets } => self.admit_count(round, packets),
            Report::LossEvents { rate, received } => {
                let admitted = self.admits_rate(received) && self.admits_losses(by, rate);
                // A report without arrivals since the last one would only displace an interval.
                if self.intervals.front().is_some_and(|newest| newest.0 > 0) {
                    self.intervals.push_front((0, Span::MAX));
                    self.intervals.truncate(INTERVALS);
                }
                admitted.then_some(*report)
            }
            // A level depends on times that only the receiver knows. It is at most the maximum of
            // the controller.
            Report::Wave { .. } | Report::None => Some(*report),
        }
    }

    /// A packet below the acknowledged ranges may have arrived. But if it is declared lost and no
    /// acknowledgement has named it, it does not count: a receiver chooses how much it names.
    fn admit_count(&self, round: u32, packets: u32) -> Option<Report> {
        let is_forgotten = self
            .forgotten
            .is_some_and(|last| last.wrapping_sub(round) < 1 << 31);
        if is_forgotten {
            return Some(Report::Count { round, packets });
        }
        let (mut may_have_arrived, mut counting) = (0, 0);
        for packet in &self.packets {
            // The meter counts no packet that requests the round-trip time.
            let is_of_it = matches!(packet.tag, Tag::Round { round: its, rtt } if its == round && !rtt.is_zero());
            if is_of_it && (packet.has_arrived || packet.number < self.least) {
                may_have_arrived += 1;
                counting += u32::from(!packet.is_lost);
            }
        }
        (packets <= may_have_arrived).then_some(Report::Count {
            round,
            packets: packets.min(counting),
        })
    }

    fn admits_rate(&self, received: Rate) -> bool {
        let bytes: u64 = self.intervals.iter().map(|interval| interval.0).sum();
        let packet = self.packets.iter().map(|packet| packet.payload).max();
        let bytes = bytes + u64::from(packet.unwrap_or(0));
        match self.intervals.iter().map(|interval| interval.1).min() {
            Some(rtt) if rtt < Span::MAX => {
                let most = bytes as f64 * 8.0 / rtt.as_secs_f64();
                // Rates are rounded, and so are round-trip times in tags.
                received.as_bps() as f64 <= most * 1.01 + 1_000.0
            }
            // No packet with a round-trip time may have arrived recently.
            _ => true,
        }
    }

    fn admits_losses(&self, by: PacketNumber, rate: f64) -> bool {
        // The meter may have made its report before the packets that this one acknowledges arrived.
        let known = self.events.iter().rev().filter(|event| event.shown_by < by);
        let mut indices = known.map(|event| event.index);
        let Some(last) = indices.next() else {
            return true;
        };
        if rate <= 0.0 {
            return false;
        }
        // The open interval, and then the closed ones, each at its maximum length.
        let mut newer = self.first_index + self.packets.len() as u64;
        let (mut here, mut longest) = (last, 0);
        for _ in 0..=self.history.memory + 1 {
            let Some(older) = indices.next() else {
                return true;
            };
            longest = longest.max(newer.saturating_sub(older));
            (newer, here) = (here, older);
        }
        rate * longest as f64 >= 0.99
    }
}
