//! Loss intervals: the segments between loss events.

use alloc::collections::VecDeque;

/// The weighted mean of the last loss intervals, and the loss event rate `p`.
///
/// ```text
/// weight of closed interval i of n, from 0 for the newest:  1 for i < n/2,  2(n − i)/(n + 2) after
/// closed   = Σ weight(i) · d(i) · interval(i)          / Σ weight(i) · d(i)
/// D        = 1, or where the open interval is longer than 2 · closed:  max(floor, 2 · closed / open)
/// with     = as closed, with the open interval as the newest, and D · d(i) for d(i) of the others
/// mean     = max(closed, with)                         p = 1 / mean
/// ```
///
/// The open interval counts only if it raises the mean. A short one thus has no effect, and a long
/// one lets the rate rise before the next loss.
///
/// `d` and `D` are the discount factors: if the open interval is longer than twice the mean, older
/// intervals count less. When an event closes the interval, each `d` is multiplied by the current
/// `D`. Without a floor they are all 1.
///
/// Source: RFC 5348, sections 5.4 (`n = 8` there) and 5.5. Differs from it in: 1. the sender may
/// keep the history. It then counts acknowledged bytes in full segments instead of packets
/// ([`LossIntervals::on_acked`] and [`LossIntervals::on_event`]), so small packets do not lower the
/// loss event rate (the problem of RFC 4828).
#[derive(Clone, Debug)]
pub struct LossIntervals {
    /// Closed intervals, the newest first.
    closed: VecDeque<Interval>,
    /// Segments since the last loss event.
    open: f64,
    /// How many closed intervals are remembered.
    memory: usize,
    /// The minimum of the discount factor; `None` for no discounting.
    floor: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    length: f64,
    /// `d` of the equation.
    discount: f64,
}

impl LossIntervals {
    /// Creates a history without loss events. The mean is over the last `memory` intervals, at
    /// least one.
    pub fn new(memory: usize) -> Self {
        Self {
            closed: VecDeque::new(),
            open: 0.0,
            memory: memory.max(1),
            floor: None,
        }
    }

    /// Enables history discounting, with this minimum of the discount factor (0 to 1).
    #[must_use]
    pub const fn discounted(mut self, floor: f64) -> Self {
        self.floor = Some(floor.clamp(0.0, 1.0));
        self
    }

    /// This many more segments were sent and acknowledged.
    pub fn on_acked(&mut self, segments: f64) {
        self.open += segments;
    }

    /// Sets the length of the open interval. A receiver computes it from packet numbers.
    pub const fn set_open(&mut self, segments: f64) {
        self.open = segments;
    }

    /// A loss event began. `first` computes the length of the interval before the first event of
    /// the flow: the number of segments before that event depends on the start of the flow, not on
    /// the path.
    pub fn on_event(&mut self, first: impl FnOnce() -> f64) {
        let interval = if self.closed.is_empty() {
            first()
        } else {
            // The lost segment itself is part of the interval that it ends.
            self.open + 1.0
        };
        self.close(interval);
    }

    /// A loss event began and ended an interval of this length.
    pub fn close(&mut self, length: f64) {
        let discount = self.general_discount();
        for interval in &mut self.closed {
            interval.discount *= discount;
        }
        // Keeps one interval more than the mean uses, so that an event can be undone.
        self.closed.truncate(self.memory);
        self.closed.push_front(Interval {
            length: length.max(1.0),
            discount: 1.0,
        });
        self.open = 0.0;
    }

    /// Whether there has been a loss event.
    pub fn has_events(&self) -> bool {
        !self.closed.is_empty()
    }

    /// The last event was spurious: the interval that it closed is open again. The discounts stay.
    pub fn undo_event(&mut self) {
        if let Some(interval) = self.closed.pop_front() {
            self.open += interval.length - 1.0;
        }
    }

    /// Whether the history has all the intervals of the mean.
    pub fn is_full(&self) -> bool {
        self.closed.len() >= self.memory
    }

    /// The loss event rate `p`; `None` before the first event.
    pub fn rate(&self) -> Option<f64> {
        if self.closed.is_empty() {
            return None;
        }
        let discount = self.general_discount();
        let (mut closed, mut closed_total) = (0.0, 0.0);
        let (mut with, mut with_total) = (0.0, 0.0);
        let (mut newer, mut newer_share) = (self.open, 1.0);
        for (index, interval) in self.closed.iter().enumerate().take(self.memory) {
            let weight = self.weight(index);
            closed += weight * interval.discount * interval.length;
            closed_total += weight * interval.discount;
            with += weight * newer_share * newer;
            with_total += weight * newer_share;
            newer = interval.length;
            newer_share = discount * interval.discount;
        }
        Some((closed_total / closed).min(with_total / with).min(1.0))
    }

    /// `D` of the equation.
    fn general_discount(&self) -> f64 {
        let Some(floor) = self.floor else {
            return 1.0;
        };
        let (mut closed, mut total) = (0.0, 0.0);
        for (index, interval) in self.closed.iter().enumerate().take(self.memory) {
            let share = self.weight(index) * interval.discount;
            closed += share * interval.length;
            total += share;
        }
        let mean = closed / total;
        if total > 0.0 && self.open > 2.0 * mean {
            (2.0 * mean / self.open).max(floor)
        } else {
            1.0
        }
    }

    fn weight(&self, index: usize) -> f64 {
        if index < self.memory / 2 || self.memory == 1 {
            return 1.0;
        }
        2.0 * (self.memory - index) as f64 / (self.memory + 2) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn history(memory: usize, intervals: &[f64]) -> LossIntervals {
        let mut history = LossIntervals::new(memory);
        for &interval in intervals {
            history.on_acked(interval - 1.0);
            history.on_event(|| interval);
        }
        history
    }

    fn mean(history: &LossIntervals) -> f64 {
        1.0 / history.rate().unwrap()
    }

    #[test]
    fn the_weights_of_the_rfc() {
        let history = LossIntervals::new(8);
        let weights: Vec<f64> = (0..8).map(|index| history.weight(index)).collect();
        assert_eq!(weights, [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2]);
    }

    #[test]
    fn the_mean_by_hand() {
        assert_eq!(LossIntervals::new(8).rate(), None);
        // Newest first: 10, 20, ... 80, with weights 1 1 1 1 .8 .6 .4 .2:
        // (10 + 20 + 30 + 40 + 40 + 36 + 28 + 16) / 6 = 220 / 6.
        let mut history = history(8, &[90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0, 10.0]);
        assert!((mean(&history) - 220.0 / 6.0).abs() < 1e-9);
        // An open interval shorter than the mean changes nothing: (10 + 10 + 20 + 30 + 32 + 30 +
        // 24 + 14) / 6.
        history.on_acked(10.0);
        assert!((mean(&history) - 220.0 / 6.0).abs() < 1e-9);
        // One of 100 does: (100 + 10 + 20 + 30 + 32 + 30 + 24 + 14) / 6 = 260 / 6.
        history.on_acked(90.0);
        assert!((mean(&history) - 260.0 / 6.0).abs() < 1e-9);
    }

    /// Eight intervals of 10, then an open one that grows. With a floor of 1/2: up to 20 nothing is
    /// discounted: (20 + 10 · 5) / 6 with the open one of 20. At 40, D = 2 · 10 / 40 = 1/2: (40 +
    /// 10 · 5/2) / (1 + 5/2) = 65 / 3.5; without discounting 90 / 6. At 80, D stops at 1/2:
    /// (80 + 25) / 3.5 = 30.
    #[test]
    fn a_long_open_interval_discounts_the_past() {
        let mut history = history(8, &[10.0; 9]).discounted(0.5);
        for (open, expected) in [(20.0, 70.0 / 6.0), (40.0, 65.0 / 3.5), (80.0, 30.0)] {
            history.set_open(open);
            assert!(
                (mean(&history) - expected).abs() < 1e-9,
                "{open}: {}",
                mean(&history)
            );
        }
        // The event closes the interval of 80, and older ones keep half their weight: (80 + (10 ·
        // (1 + 1 + 1 + 0.8 + 0.6 + 0.4 + 0.2)) / 2) / (1 + 5/2) = 105 / 3.5.
        history.close(80.0);
        assert!((mean(&history) - 30.0).abs() < 1e-9, "{}", mean(&history));
        // Discounts multiply. The open interval of 120 is four times the mean of 30: D = 60 / 120.
        // (120 + 1/2 · (80 + 1/2 · 10 · (1 + 1 + 0.8 + 0.6 + 0.4 + 0.2))) / (1 + 1/2 · (1 + 1/2 ·
        // 4)) = (120 + 40 + 10) / (1 + 1/2 + 1) = 68.
        history.set_open(120.0);
        assert!((mean(&history) - 68.0).abs() < 1e-9, "{}", mean(&history));
    }

    #[test]
    fn an_undone_event_leaves_no_trace() {
        let mut history = history(4, &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        history.on_acked(30.0);
        let before = mean(&history);
        history.on_event(|| 0.0);
        history.on_acked(3.0);
        assert!(mean(&history) < before);
        history.undo_event();
        assert!((mean(&history) - before).abs() < 1e-9);
    }
}
