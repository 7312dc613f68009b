//! TFRC's receiver: loss events, loss intervals, and when to report.

use alloc::collections::VecDeque;

use comity_units::{DataSize, Rate, Span, Time};

use super::{SIZE_SHARE, TfrcConfig};
use crate::equation::loss_event_rate_with_timeout;
use crate::{Arrival, LossIntervals, Meter, Report, Tag};

/// Measures and reports the loss event rate and the receive rate.
///
/// ```text
/// lost         three packets with higher numbers arrived (duplicate_threshold)
/// time lost    interpolated by number between the arrivals before and after it
/// loss event   losses within a round trip of the first; a marked packet counts as lost
/// interval     from the first lost packet of an event to that of the next, in packets
/// first        1 / p with X(p) = the maximum receive rate so far, at least s / 2R; s / 2R if the first
///              packet of the flow was lost
/// report       at each packet until the sender knows its round trip, then one round trip after the last
///              report if data has arrived, otherwise with the next packet; at once for a loss event
///              that raises p
/// X_recv       bytes of the last round trip over its length, at least one packet in a round trip; 0
///              while the round trip is unknown
/// ```
///
/// The packets of the first flight carry no round trip and arrive together. Their spacing shows
/// nothing about the path, so measurements begin with the first packet that carries a round trip.
///
/// For small packets, an interval of up to two round trips is divided by its losses, and does not
/// count while it is open.
///
/// Source: RFC 5348, sections 5 and 6; RFC 4828, section 4.4. Differs from them in: 1. a packet
/// that arrives after it was declared lost does not undo the loss, as section 5.1 allows; 2. if a
/// report is early, `X_recv` takes the rest of its round trip from the rate before the last report,
/// not from single arrivals; 3. one hole has at most as many loss events as the mean has intervals;
/// 4. a marked packet that begins an event remains its first packet, even if an earlier one is
/// declared lost later; 5. `X_recv` and the next report use the newest round trip, not that of the
/// last report.
#[derive(Clone, Debug)]
pub struct TfrcMeter {
    config: TfrcConfig,
    /// The sender's round-trip time; zero while unknown.
    rtt: Span,
    /// The last `duplicate_threshold` packets, in the order of their numbers.
    recent: VecDeque<(u64, Time)>,
    /// Consecutive packets older than all of `recent`.
    outdated: u32,
    event: Option<Event>,
    intervals: LossIntervals,
    /// Bytes since the last report.
    arrived: DataSize,
    /// When the first of these bytes arrived.
    arrived_from: Time,
    /// When the last report was made.
    since: Option<Time>,
    /// The receive rate of the last report.
    before: Rate,
    /// The maximum receive rate.
    max: Rate,
    /// The mean payload of recent packets; zero before the first.
    payload: f64,
    /// `p` of the last report.
    reported: f64,
    is_urgent: bool,
    pending: Option<Report>,
}

/// The open loss event.
#[derive(Clone, Copy, Debug)]
struct Event {
    number: u64,
    began_at: Time,
    losses: u64,
}

impl TfrcMeter {
    /// Creates the meter of a flow from which nothing has arrived.
    pub fn new(config: TfrcConfig) -> Self {
        let intervals = LossIntervals::new(config.memory);
        Self {
            config,
            rtt: Span::ZERO,
            recent: VecDeque::new(),
            outdated: 0,
            event: None,
            intervals: if config.discounting {
                intervals.discounted(config.min_discount)
            } else {
                intervals
            },
            arrived: DataSize::ZERO,
            arrived_from: Time::ZERO,
            since: None,
            before: Rate::ZERO,
            max: Rate::ZERO,
            payload: 0.0,
            reported: 0.0,
            is_urgent: false,
            pending: None,
        }
    }

    /// Unwraps a number: the candidate nearest to the last one.
    fn unwrap(&self, number: u32) -> u64 {
        match self.recent.back() {
            None => FIRST + u64::from(number),
            Some(&(last, _)) => {
                let ahead = number
                    .wrapping_sub(last.wrapping_sub(FIRST) as u32)
                    .cast_signed();
                last.saturating_add_signed(i64::from(ahead))
            }
        }
    }

    /// Sections 5.1 and 5.2: inserts a packet, and declares lost those with enough later packets.
    fn take(&mut self, number: u64, now: Time) {
        if self.recent.is_empty() && number - FIRST <= u64::from(self.config.duplicate_threshold) {
            // Packets before the first arrival were lost at the beginning of the flow.
            self.recent.push_back((FIRST - 1, now));
        }
        if self
            .recent
            .front()
            .is_some_and(|(oldest, _)| number <= *oldest)
        {
            self.outdated += 1;
            if self.outdated > MAX_OUTDATED {
                // The sender restarted its numbers on a new path, so all measurements are void.
                *self = Self {
                    rtt: self.rtt,
                    ..Self::new(self.config)
                };
                self.recent.push_back((number, now));
            }
            return;
        }
        self.outdated = 0;
        let position = self.recent.partition_point(|(known, _)| *known < number);
        if self
            .recent
            .get(position)
            .is_some_and(|(known, _)| *known == number)
        {
            return;
        }
        self.recent.insert(position, (number, now));
        while self.recent.len() > self.config.duplicate_threshold as usize {
            let (Some(before), Some(&after)) = (self.recent.pop_front(), self.recent.front())
            else {
                return;
            };
            self.lose(before, after);
        }
    }

    /// Declares all numbers between two arrivals lost.
    fn lose(&mut self, before: (u64, Time), after: (u64, Time)) {
        let missing = (after.0 - before.0).saturating_sub(1);
        if missing == 0 {
            return;
        }
        let elapsed = after.1.saturating_since(before.1);
        let step = elapsed.as_secs_f64() / (after.0 - before.0) as f64;
        // After reordering, the later number may have arrived first.
        let back = before.1.saturating_since(after.1).as_secs_f64() / (after.0 - before.0) as f64;
        let at = |number: u64| {
            let position = (number - before.0) as f64;
            let later = before.1 + Span::from_secs_f64(step * position);
            later.saturating_sub(Span::from_secs_f64(back * position))
        };
        let mut number = before.0 + 1;
        for _ in 0..=self.config.memory {
            self.on_lost(number, at(number));
            // The first number of the next event: lost one round trip after this event began.
            let Some(event) = self.event else { return };
            let rest = (event.began_at + self.rtt).saturating_since(before.1);
            let next = if step > 0.0 {
                libm::floor(rest.as_secs_f64() / step) + 1.0
            } else {
                f64::INFINITY
            };
            let last = (after.0 - before.0) as f64;
            let next = next.min(last) as u64 + before.0;
            let next = next.max(number + 1);
            if let Some(event) = &mut self.event {
                event.losses += next.min(after.0) - number - 1;
            }
            if next >= after.0 {
                return;
            }
            number = next;
        }
    }

    fn on_lost(&mut self, number: u64, at: Time) {
        let Some(event) = &mut self.event else {
            let first = self.first_interval(number);
            self.begin_event(number, at, first);
            return;
        };
        if at <= event.began_at + self.rtt || number <= event.number {
            event.losses += 1;
            return;
        }
        let length = (number - event.number) as f64;
        let is_short = at <= event.began_at + self.rtt * 2;
        let length = if self.config.small_packets && is_short {
            length / event.losses.max(1) as f64
        } else {
            length
        };
        self.begin_event(number, at, length);
    }

    fn begin_event(&mut self, number: u64, began_at: Time, length: f64) {
        self.update_open(began_at);
        self.intervals.close(length);
        self.event = Some(Event {
            number,
            began_at,
            losses: 1,
        });
    }

    /// Section 6.3.1: the first interval, for the loss of `number`.
    fn first_interval(&self, number: u64) -> f64 {
        // Half a packet in a round trip has the same loss event rate for every round trip.
        let rtt = if self.rtt.is_zero() {
            Span::from_secs(1)
        } else {
            self.rtt
        };
        let least = Rate::of(self.config.mss, rtt).mul_f64(0.5);
        let target = if number == FIRST || self.rtt.is_zero() {
            least
        } else {
            self.measured().max(self.max).max(least)
        };
        // The sender subtracts the headers.
        let target = target.mul_f64(1.0 / self.config.payload_share(self.payload));
        let size = self.config.equation_size();
        1.0 / loss_event_rate_with_timeout(size, rtt, target, self.config.timeout)
    }

    /// The receive rate of the last report; before a report, all bytes so far over a round trip.
    fn measured(&self) -> Rate {
        if self.before == Rate::ZERO {
            Rate::of(self.arrived, self.rtt)
        } else {
            self.before
        }
    }

    fn update_open(&mut self, now: Time) {
        let (Some(event), Some(&(highest, _))) = (self.event, self.recent.back()) else {
            return;
        };
        let is_short = now <= event.began_at + self.rtt * 2;
        let open = if self.config.small_packets && is_short {
            0.0
        } else {
            (highest + 1).saturating_sub(event.number) as f64
        };
        self.intervals.set_open(open);
    }

    /// `X_recv`: the receive rate over the last round trip; zero while that is unknown (section
    /// 6.3). Round trips without an arrival do not count (note in section 6.2): below one packet
    /// per round trip, the loss event rate limits the sender, not its earlier rate.
    fn receive_rate(&self, now: Time) -> Rate {
        let Some(since) = self.since.filter(|_| !self.rtt.is_zero()) else {
            return Rate::ZERO;
        };
        let silent_until = self.arrived_from.saturating_sub(self.rtt);
        let elapsed = now.saturating_since(since.max(silent_until));
        if elapsed >= self.rtt {
            return Rate::of(self.arrived, elapsed);
        }
        let rest = self.before.amount_in(self.rtt.saturating_sub(elapsed));
        Rate::of(self.arrived + rest, self.rtt)
    }
}

impl Meter for TfrcMeter {
    fn on_arrival(&mut self, arrival: &Arrival) {
        let Tag::Numbered { number, rtt } = arrival.tag else {
            return;
        };
        let now = arrival.now;
        self.rtt = rtt;
        let payload = arrival.payload.get() as f64;
        self.payload = if self.payload == 0.0 {
            payload
        } else {
            self.payload + (payload - self.payload) * SIZE_SHARE
        };
        let is_first = self.since.is_none();
        let was_known = self.event;
        let number = self.unwrap(number);
        self.take(number, now);
        if self.arrived == DataSize::ZERO {
            self.arrived_from = now;
        }
        self.arrived += arrival.payload;
        if arrival.marked {
            self.on_lost(number, now);
        }
        let has_event = match (was_known, self.event) {
            (None, Some(_)) => true,
            (Some(was), Some(is)) => is.number != was.number,
            _ => false,
        };
        if has_event {
            self.update_open(now);
            self.is_urgent |= self.intervals.rate().unwrap_or(0.0) > self.reported;
        }
        // Until the sender knows its round trip, each packet gets a report.
        self.is_urgent |= is_first || rtt.is_zero();
        self.since.get_or_insert(now);
    }

    fn report(&mut self, _now: Time) -> Report {
        self.pending.take().unwrap_or(Report::None)
    }

    fn wakeup(&self) -> Option<Time> {
        if self.arrived == DataSize::ZERO {
            return None;
        }
        let since = self.since?;
        Some(if self.is_urgent {
            since
        } else {
            since + self.rtt
        })
    }

    fn on_wakeup(&mut self, now: Time) {
        if self.wakeup().is_none_or(|due| now < due) {
            return;
        }
        let received = self.receive_rate(now);
        self.update_open(now);
        self.reported = self.intervals.rate().unwrap_or(0.0);
        self.pending = Some(Report::LossEvents {
            rate: self.reported,
            received,
        });
        self.before = received;
        self.max = self.max.max(received);
        self.arrived = DataSize::ZERO;
        self.since = Some(now);
        self.is_urgent = false;
    }
}

/// The unwrapped number of packet 0, with room for reordering before it.
const FIRST: u64 = 1 << 33;

/// More consecutive packets with old numbers than this are not reordering.
const MAX_OUTDATED: u32 = 64;
