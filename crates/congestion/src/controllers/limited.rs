//! A ceiling over another controller.

use comity_units::{Bytes, PacketNumber, Rate, Time};

use crate::{
    Ack, Answered, Controller, Decision, Feedback, Loss, Restart, Sent, Tag, Timeout, TimeoutRepair,
};

/// Runs another controller and never lets its window rise above a ceiling.
///
/// ```text
/// window = min(controller's window, ceiling)
/// ```
///
/// The controller below keeps growing unseen, as ns-2's does above its `window_`. That is right for
/// controllers which take what they decrease from the event ([`crate::controllers::Reno`]) and
/// wrong for controllers which decrease the window that they remember; those take the ceiling into
/// their own configuration.
#[derive(Clone, Debug)]
pub struct Limited<C> {
    law: C,
    ceiling: Bytes,
}

impl<C: Controller> Limited<C> {
    /// `law` with windows of at most `ceiling`.
    pub const fn new(law: C, ceiling: Bytes) -> Self {
        Self { law, ceiling }
    }
}

impl<C: Controller> Controller for Limited<C> {
    fn on_ack(&mut self, ack: &Ack) {
        self.law.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.law.on_loss(loss);
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.law.on_timeout(timeout);
    }

    fn timeout_repair(&self, timeout: &Timeout) -> TimeoutRepair {
        self.law.timeout_repair(timeout)
    }

    fn on_in_order_ack(&mut self, answered: &Answered) {
        self.law.on_in_order_ack(answered);
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.law.on_sent(sent);
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.law.on_feedback(feedback);
    }

    fn on_recovered(&mut self, now: Time) {
        self.law.on_recovered(now);
    }

    fn on_deflate(&mut self, amount: Bytes) {
        self.law.on_deflate(amount);
    }

    fn on_spurious_loss(&mut self, now: Time) {
        self.law.on_spurious_loss(now);
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.law.on_restart(restart);
    }

    fn wakeup(&self) -> Option<Time> {
        self.law.wakeup()
    }

    fn on_wakeup(&mut self, now: Time) {
        self.law.on_wakeup(now);
    }

    fn on_app_limited(&mut self, now: Time) {
        self.law.on_app_limited(now);
    }

    fn on_path_change(&mut self, last: Tag) {
        self.law.on_path_change(last);
    }

    fn on_packet_acked(&mut self, now: Time, number: PacketNumber) {
        self.law.on_packet_acked(now, number);
    }

    fn needs_packet_numbers(&self) -> bool {
        self.law.needs_packet_numbers()
    }

    fn tag(&mut self, now: Time) -> Tag {
        self.law.tag(now)
    }

    fn upcoming_tag(&self, now: Time) -> Tag {
        self.law.upcoming_tag(now)
    }

    fn decision(&self) -> Decision {
        let decision = self.law.decision();
        Decision {
            window: decision.window.min(self.ceiling),
            ..decision
        }
    }

    fn capacity(&self) -> Option<Rate> {
        self.law.capacity()
    }

    fn needs_rate_samples(&self) -> bool {
        self.law.needs_rate_samples()
    }

    fn needs_in_order_acks(&self) -> bool {
        self.law.needs_in_order_acks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LossCause, Pacing, Phase, Report};
    use comity_units::Span;

    /// Answers differently after every kind of event.
    #[derive(Clone, Debug, Default)]
    struct Counter(u64);

    impl Controller for Counter {
        fn on_ack(&mut self, _: &Ack) {
            self.0 += 1;
        }
        fn on_loss(&mut self, _: &Loss) {
            self.0 += 10;
        }
        fn on_timeout(&mut self, _: &Timeout) {
            self.0 += 100;
        }
        fn timeout_repair(&self, _: &Timeout) -> TimeoutRepair {
            TimeoutRepair::FirstSegment
        }
        fn on_sent(&mut self, _: &Sent) {
            self.0 += 1_000;
        }
        fn on_feedback(&mut self, _: &Feedback<'_>) {
            self.0 += 10_000;
        }
        fn on_recovered(&mut self, _: Time) {
            self.0 += 100_000;
        }
        fn on_spurious_loss(&mut self, _: Time) {
            self.0 += 1_000_000;
        }
        fn wakeup(&self) -> Option<Time> {
            Some(Time::from_nanos(self.0))
        }
        fn on_wakeup(&mut self, _: Time) {
            self.0 += 10_000_000;
        }
        fn upcoming_tag(&self, _: Time) -> Tag {
            Tag::Round {
                round: 8,
                rtt: Span::ZERO,
            }
        }
        fn tag(&mut self, _: Time) -> Tag {
            self.0 += 100_000_000;
            Tag::Round {
                round: 7,
                rtt: Span::ZERO,
            }
        }
        fn decision(&self) -> Decision {
            Decision {
                window: Bytes::new(self.0),
                pacing: Pacing::Rate(Rate::from_bps(self.0)),
                ssthresh: Some(Bytes::new(3)),
                phase: Phase::Probing,
            }
        }
        fn needs_rate_samples(&self) -> bool {
            true
        }
        fn on_in_order_ack(&mut self, _: &Answered) {
            self.0 += 1_000_000_000;
        }
        fn needs_in_order_acks(&self) -> bool {
            true
        }
        fn on_packet_acked(&mut self, _: Time, number: PacketNumber) {
            self.0 += 10_000_000_000 * number.get();
        }
        fn needs_packet_numbers(&self) -> bool {
            true
        }
        fn on_app_limited(&mut self, _: Time) {
            self.0 += 100_000_000_000;
        }
        fn on_path_change(&mut self, last: Tag) {
            self.0 += 1_000_000_000_000 * u64::from(last == Tag::None);
        }
        fn on_deflate(&mut self, amount: Bytes) {
            self.0 += 10_000_000_000_000 * amount.get();
        }
        fn capacity(&self) -> Option<Rate> {
            Some(Rate::from_bps(self.0))
        }
    }

    #[test]
    fn every_method_reaches_the_law_and_only_the_window_is_limited() {
        let (now, bytes) = (Time::from_millis(1), Bytes::new(1));
        let mut limited = Limited::new(Counter::default(), Bytes::new(5_000));
        limited.on_ack(&Ack {
            now,
            acked: bytes,
            rtt: None,
            in_flight: bytes,
            app_limited: false,
            in_recovery: false,
            marked: 0,
            packets: 1,
            sample: None,
        });
        assert_eq!(limited.decision().window, Bytes::new(1));
        limited.on_loss(&Loss {
            now,
            sent_at: now,
            lost: bytes,
            in_flight: bytes,
            window: bytes,
            cause: LossCause::Reordering,
            restart: false,
        });
        let timeout = Timeout {
            now,
            in_flight: bytes,
            window: bytes,
            consecutive: 1,
            duplicate_seen: false,
        };
        limited.on_timeout(&timeout);
        let repair = limited.timeout_repair(&timeout);
        assert_eq!(repair, TimeoutRepair::FirstSegment);
        limited.on_sent(&Sent {
            now,
            payload: bytes,
            wire: bytes,
            number: PacketNumber::ZERO,
            in_flight: bytes,
            app_limited: false,
        });
        assert_eq!(limited.decision().window, Bytes::new(1_111));
        limited.on_feedback(&Feedback {
            now,
            report: &Report::None,
            rtt: None,
        });
        limited.on_recovered(now);
        limited.on_spurious_loss(now);
        limited.on_wakeup(now);
        assert_eq!(
            limited.upcoming_tag(now),
            Tag::Round {
                round: 8,
                rtt: Span::ZERO
            }
        );
        assert_eq!(
            limited.tag(now),
            Tag::Round {
                round: 7,
                rtt: Span::ZERO
            }
        );
        assert_eq!(limited.wakeup(), Some(Time::from_nanos(111_111_111)));
        let decision = limited.decision();
        assert_eq!(decision.window, Bytes::new(5_000));
        assert_eq!(decision.pacing, Pacing::Rate(Rate::from_bps(111_111_111)));
        assert_eq!(
            (decision.ssthresh, decision.phase),
            (Some(Bytes::new(3)), Phase::Probing)
        );
        assert!(limited.needs_rate_samples());
        limited.on_in_order_ack(&Answered {
            now,
            number: PacketNumber::ZERO,
            arrived_at: None,
        });
        assert_eq!(limited.wakeup(), Some(Time::from_nanos(1_111_111_111)));
        assert!(limited.needs_in_order_acks());
        limited.on_packet_acked(now, PacketNumber::new(2));
        assert!(limited.needs_packet_numbers());
        limited.on_app_limited(now);
        limited.on_path_change(Tag::None);
        limited.on_deflate(Bytes::new(3));
        let all = 31_121_111_111_111;
        assert_eq!(limited.capacity(), Some(Rate::from_bps(all)));
    }
}
