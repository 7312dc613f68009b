//! The loss recovery of RFC 6675, with its names.

use super::Sender;

/// The state of an RFC 6675 recovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// The number after the highest one sent at its beginning.
    pub(super) point: u32,
    pub(super) high_rxt: u32,
    /// `None` once the rescue is done.
    rescue_rxt: Option<u32>,
}

impl Sender {
    /// `Update()`; returns whether any of it was new.
    pub(super) fn update_scoreboard(&mut self, number: u32, blocks: &[(u32, u32)]) -> bool {
        let mut has_news = false;
        for &(start, end) in blocks {
            for number in start.max(self.last_ack).max(number)..end {
                has_news |= self.sent.contains(&number) && self.sacked.insert(number);
            }
        }
        has_news
    }

    /// `IsLost()` with packets of one byte: more than two above it arrived.
    fn is_lost(&self, number: u32) -> bool {
        self.sacked.range(number + 1..).count() > 2
    }

    /// Section 5 for an acknowledgement that does not advance but reports new data.
    pub(super) fn on_duplicate(&mut self) {
        if self.is_after_timeout || self.recovery.is_some() {
            return;
        }
        self.duplicates += 1;
        let lost = self.lowest_outstanding().expect("something is missing");
        // The lowest packet may have arrived, if the receiver does not know of the hole before it.
        let mut missing = self.sent.range(lost..);
        let missing = missing.find(|it| !self.sacked.contains(it));
        let is_detected = self.duplicates >= 3 || missing.is_some_and(|&it| self.is_lost(it));
        if !is_detected || lost < self.recovery_point {
            return;
        }
        self.recovery_point = self.next;
        self.recovery = Some(Recovery {
            point: self.next,
            high_rxt: lost,
            rescue_rxt: Some(lost),
        });
        self.chosen = 0;
        self.report_loss();
        self.restart_timer();
        self.lifetime_timer();
        self.discard_unsent();
        self.answer(lost);
    }

    /// `SetPipe()`. A replaced packet was retransmitted as its replacement, which counts for
    /// itself.
    fn pipe(&self, high_rxt: u32) -> usize {
        let outstanding = self.sent.range(self.last_ack..);
        let missing = outstanding.filter(|it| !self.sacked.contains(it));
        missing
            .map(|it| {
                let is_sent_again = *it <= high_rxt && self.window.contains(it);
                usize::from(!self.is_lost(*it)) + usize::from(is_sent_again)
            })
            .sum()
    }

    /// Step C of section 5, with the rules of `NextSeg()`.
    pub(super) fn send_by_pipe(&mut self) {
        while let Some(recovery) = self.recovery
            && self.pipe(recovery.high_rxt) < self.congestion_window()
        {
            let mut behind = self.sent.range(self.last_ack.max(recovery.high_rxt + 1)..);
            let highest = self.sacked.last().copied().unwrap_or(0);
            let hole = behind
                .find(|it| !self.sacked.contains(it))
                .copied()
                .filter(|&it| it < highest);
            if let Some(lost) = hole.filter(|&it| self.is_lost(it)) {
                self.answer(lost);
            } else if self.next < self.given() {
                self.transmit_new();
            } else if let Some(missing) = hole {
                self.answer(missing);
            } else if !self.rescue(recovery) {
                return;
            }
        }
    }

    /// Rule 4, if the last packet did not arrive and is current.
    fn rescue(&mut self, recovery: Recovery) -> bool {
        let last = *self.sent.last().expect("a recovery is of something");
        let high_ack = self.sent.range(..self.last_ack).next_back().copied();
        let is_due = recovery
            .rescue_rxt
            .is_some_and(|rescue_rxt| high_ack > Some(rescue_rxt));
        if !is_due || self.sacked.contains(&last) || last < self.lowest_current {
            return false;
        }
        self.recovery = Some(Recovery {
            rescue_rxt: None,
            ..recovery
        });
        self.transmit(last);
        true
    }
}
