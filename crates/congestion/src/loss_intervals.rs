//! How far apart loss events are, in segments.

use alloc::collections::VecDeque;

/// The average interval between loss events.
///
/// ```text
/// weight of closed interval i of n, the newest first:  1 for i < n/2,  2(n − i)/(n + 2) behind
/// closed   = Σ weight(i) · interval(i)          / Σ weight
/// with     = the same, the open interval as the newest
/// mean     = max(closed, with)                  p = 1 / mean
/// ```
///
/// The open interval counts only where it raises the mean, so that a short one says nothing and a long one
/// lets the rate rise before the next loss.
///
/// Source: RFC 5348, section 5.4 (`n = 8` there). Differs from it in: 1. intervals are counted in full
/// segments' worth of bytes that were acknowledged, not in packets, so that small packets do not make a flow look
/// less lossy (the concern of RFC 4828); 2. the history is at the sender, which knows what it sent and what was
/// lost; 3. no history discounting (section 5.5, optional).
#[derive(Clone, Debug)]
pub struct LossIntervals {
    /// Closed intervals, the newest first.
    closed: VecDeque<f64>,
    /// Segments since the last loss event.
    open: f64,
    /// How many closed intervals are remembered.
    memory: usize,
}

impl LossIntervals {
    /// No loss event yet; the mean will be taken over the last `memory` intervals, one at least.
    pub fn new(memory: usize) -> Self {
        Self {
            closed: VecDeque::new(),
            open: 0.0,
            memory: memory.max(1),
        }
    }

    /// So many segments more were sent and acknowledged.
    pub fn on_acked(&mut self, segments: f64) {
        self.open += segments;
    }

    /// A loss event began. `first` is what the interval before the first event of all is taken to have been:
    /// the segments that came before it are a matter of when the flow began, not of the path.
    pub fn on_event(&mut self, first: impl FnOnce() -> f64) {
        let interval = if self.closed.is_empty() {
            first()
        } else {
            // The lost segment itself is part of the interval that it ends.
            self.open + 1.0
        };
        // One more than counts, so that an event can be undone.
        self.closed.truncate(self.memory);
        self.closed.push_front(interval.max(1.0));
        self.open = 0.0;
    }

    /// The last event did not happen: the interval that it closed is open again.
    pub fn undo_event(&mut self) {
        if let Some(interval) = self.closed.pop_front() {
            self.open += interval - 1.0;
        }
    }

    /// Whether as many intervals are known as the mean is taken over.
    pub fn is_full(&self) -> bool {
        self.closed.len() >= self.memory
    }

    /// The loss event rate `p`; `None` before the first event.
    pub fn rate(&self) -> Option<f64> {
        if self.closed.is_empty() {
            return None;
        }
        let (mut closed, mut with, mut total) = (0.0, 0.0, 0.0);
        let mut newer = self.open;
        for (place, &interval) in self.closed.iter().enumerate().take(self.memory) {
            let weight = self.weight(place);
            closed += weight * interval;
            with += weight * newer;
            total += weight;
            newer = interval;
        }
        Some((total / closed.max(with)).min(1.0))
    }

    fn weight(&self, place: usize) -> f64 {
        if place < self.memory / 2 || self.memory == 1 {
            return 1.0;
        }
        2.0 * (self.memory - place) as f64 / (self.memory + 2) as f64
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
        let weights: Vec<f64> = (0..8).map(|place| history.weight(place)).collect();
        assert_eq!(weights, [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2]);
    }

    #[test]
    fn the_mean_by_hand() {
        assert_eq!(LossIntervals::new(8).rate(), None);
        // Newest first: 10, 20, ... 80, with weights 1 1 1 1 .8 .6 .4 .2:
        // (10 + 20 + 30 + 40 + 40 + 36 + 28 + 16) / 6 = 220 / 6.
        let mut history = history(8, &[90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0, 10.0]);
        assert!((mean(&history) - 220.0 / 6.0).abs() < 1e-9);
        // An open interval shorter than the mean changes nothing: (10 + 10 + 20 + 30 + 32 + 30 + 24 + 14) / 6.
        history.on_acked(10.0);
        assert!((mean(&history) - 220.0 / 6.0).abs() < 1e-9);
        // One of 100 does: (100 + 10 + 20 + 30 + 32 + 30 + 24 + 14) / 6 = 260 / 6.
        history.on_acked(90.0);
        assert!((mean(&history) - 260.0 / 6.0).abs() < 1e-9);
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
