//! The contract of every controller, checked over random events.
//!
//! A [`Model`] is the smallest flow that can drive a [`Controller`]: it tracks the packets in
//! flight, the recovery and the time. Each [`Operation`] becomes the event that an honest transport
//! would send. After each event the model checks the promises of the trait:
//!
//! * the window is at least one segment and at most the limit of the setup, and the pacing lets
//!   packets leave;
//! * the decision does not change between events, and the same events give the same decisions;
//! * a loss or a timeout leaves a threshold of at least two segments and does not raise the window
//!   (above two segments, which RFC 5681 allows a flow of one);
//! * an acknowledgement raises the window by at most the bytes that it acknowledges, and not at all
//!   while the flow is application-limited or a recovery is active. Controllers that restore their
//!   window after a recovery raise it at most to its earlier maximum, or to four segments;
//! * a wake-up lies in the future, also right after a wake-up;
//! * a tag has the announced size.
//!
//! Controllers that need the numbers of acknowledged packets receive them right before the
//! acknowledgement. Controllers that need samples of the delivery rate receive them, and each loss.
//!
//! [`Model::disturb`] sends events that no honest transport sends. Then only the first two promises
//! hold.

mod operation;
mod promise;

use std::cell::Cell;
use std::collections::VecDeque;

use comity_congestion::table::{ParameterError, Parameters, Row, Setup};
use comity_congestion::{
    Ack, Arrived, Controller, Decision, DeliveryRate, Departure, Event, Feedback, Idle, InOrderAck,
    Loss, LossCause, Pacing, RateSample, Sent, Tag, Timeout,
};
use comity_transport::wire::frame::Frame;
use comity_units::{DataSize, PacketNumber, Rate, Span, Time};

pub use operation::{Operation, operation, setup, variants};
use promise::check;
pub use promise::{Expectations, Promise, Violation};

/// A flow that drives one controller, and its twin.
#[derive(Debug)]
pub struct Model {
    controller: Box<dyn Controller>,
    /// Receives the same events, but no query before the end.
    twin: Box<dyn Controller>,
    setup: Setup,
    expectations: Expectations,
    now: Time,
    in_flight: DataSize,
    next: PacketNumber,
    recovering: bool,
    limited: bool,
    /// Whether anything was sent since the last reaction to a loss. Only that can cause another
    /// reaction.
    sent_since_reaction: bool,
    timeouts: u32,
    rate: DeliveryRate,
    /// The packets in flight, the oldest first.
    flight: VecDeque<Departure>,
    /// The largest window so far.
    largest: DataSize,
}

impl Model {
    /// Creates a flow without packets, with the controller of `build`.
    pub fn new(
        build: impl Fn() -> Box<dyn Controller>,
        setup: Setup,
        expectations: Expectations,
    ) -> Self {
        Self::with(build(), build(), setup, expectations)
    }

    fn with(
        controller: Box<dyn Controller>,
        twin: Box<dyn Controller>,
        setup: Setup,
        expectations: Expectations,
    ) -> Self {
        Self {
            controller,
            twin,
            setup,
            expectations,
            now: Time::from_secs(1),
            in_flight: DataSize::ZERO,
            next: PacketNumber::ZERO,
            recovering: false,
            limited: false,
            sent_since_reaction: false,
            timeouts: 0,
            rate: DeliveryRate::new(Time::ZERO),
            flight: VecDeque::new(),
            largest: DataSize::ZERO,
        }
    }

    /// Creates a flow with the controller of a row.
    ///
    /// # Errors
    /// As [`Row::build`].
    pub fn of(row: &Row, setup: Setup, parameters: &Parameters) -> Result<Self, ParameterError> {
        Ok(Self::with(
            row.build(&setup, parameters)?,
            row.build(&setup, parameters)?,
            setup,
            Expectations::of(row, parameters),
        ))
    }

    /// The controller's current decision.
    pub fn decision(&self) -> Decision {
        self.controller.decision()
    }

    /// The bytes in flight.
    pub const fn in_flight(&self) -> DataSize {
        self.in_flight
    }

    /// Makes one step.
    ///
    /// # Errors
    /// The [`Violation`] of the first broken promise.
    pub fn apply(&mut self, operation: &Operation) -> Result<(), Violation> {
        match *operation {
            Operation::Acknowledge {
                packets,
                rtt,
                marked,
            } => self.acknowledge(packets, rtt, marked),
            Operation::Feedback(report) => {
                let feedback = Feedback {
                    now: self.now,
                    report: &report,
                    rtt: None,
                };
                self.notify(|controller| controller.on_event(Event::Feedback(&feedback)))
                    .map(drop)
            }
            Operation::LimitByApplication(limited) => {
                self.limited = limited;
                Ok(())
            }
            Operation::Lose {
                packets,
                cause,
                restart,
            } => self.lose(packets, cause, restart),
            Operation::Recover => self.recover(),
            Operation::Send { packets } => {
                for _ in 0..packets {
                    if self.in_flight + self.setup.mss > self.controller.decision().window {
                        break;
                    }
                    self.send()?;
                }
                Ok(())
            }
            Operation::Restart { timeouts } => self.restart(timeouts),
            Operation::Spurious => {
                let now = self.now;
                self.notify(|controller| controller.on_event(Event::SpuriousLoss { now }))
                    .map(drop)
            }
            Operation::TimeOut { duplicate_seen } => self.time_out(duplicate_seen),
            Operation::Wait(span) => self.wait_until(self.now + span),
            Operation::Wake => match self.controller.decision().wakeup {
                Some(at) => self.wait_until(at),
                None => Ok(()),
            },
        }
    }

    /// Checks at the end that the twin, which received no queries, has the same state.
    ///
    /// # Errors
    /// A [`Violation`] of [`Promise::Determinism`].
    pub fn finish(self) -> Result<(), Violation> {
        let (before, after) = (self.controller.decision(), self.twin.decision());
        let same = format!("{:?}", self.controller) == format!("{:?}", self.twin);
        check(same && before == after, Promise::Determinism, before, after)
    }

    /// Sends an event that no honest transport sends: `noise` determines amounts and times.
    ///
    /// # Errors
    /// As [`Model::apply`], for the promises that hold with any transport.
    pub fn disturb(&mut self, noise: [u64; 4], kind: u8) -> Result<(), Violation> {
        let [first, second, third, fourth] = noise;
        self.wait_until(self.now + Span::from_nanos(fourth % 10_000_000_000))?;
        let (now, mss) = (self.now, self.setup.mss);
        let (in_flight, window) = (DataSize::new(second), DataSize::new(third));
        match kind % 6 {
            0 => {
                let ack = Ack {
                    now,
                    acked: DataSize::new(first),
                    // At most two years, because estimators may rely on the age of a connection.
                    rtt: Some(Span::from_nanos(third >> 8)),
                    in_flight,
                    app_limited: fourth & 1 == 0,
                    in_recovery: fourth & 2 == 0,
                    marked: fourth as u32,
                    packets: first as u32,
                    sample: self
                        .controller
                        .needs()
                        .rate_samples
                        .then(|| any_sample(noise)),
                };
                self.notify(|controller| controller.on_event(Event::Ack(&ack)))
            }
            1 => {
                let loss = Loss {
                    now,
                    sent_at: now,
                    lost: DataSize::new(first),
                    in_flight,
                    window,
                    cause: if fourth & 1 == 0 {
                        LossCause::Mark
                    } else {
                        LossCause::Delay
                    },
                    restart: fourth & 2 == 0,
                };
                self.notify(|controller| controller.on_event(Event::Loss(&loss)))
            }
            2 => {
                let timeout = Timeout {
                    now,
                    in_flight,
                    window,
                    consecutive: first as u32,
                    duplicate_seen: fourth & 1 == 0,
                };
                self.notify(|controller| controller.on_event(Event::Timeout(&timeout)))
            }
            3 => {
                let sent = Sent {
                    now,
                    payload: mss,
                    wire: DataSize::new(first),
                    number: PacketNumber::new(third),
                    in_flight,
                    app_limited: fourth & 1 == 0,
                };
                self.notify_sent(&sent)
            }
            4 => {
                let answered = InOrderAck {
                    now,
                    number: PacketNumber::new(first),
                    arrived_at: (fourth & 1 == 0).then(|| Arrived {
                        at: Time::from_nanos(second),
                        tick: Span::from_nanos(third),
                    }),
                };
                self.notify(|controller| {
                    controller.on_event(Event::PacketAcked {
                        now,
                        number: PacketNumber::new(third),
                        arrived_at: answered.arrived_at,
                    });
                    controller.on_event(Event::InOrderAck(&answered));
                })
            }
            _ => self.notify(|controller| {
                controller.on_event(Event::Recovered);
                controller.on_event(Event::SpuriousLoss { now });
                controller.on_event(Event::Wakeup(now));
            }),
        }
        .map(drop)
    }

    fn send(&mut self) -> Result<(), Violation> {
        let is_first = self.flight.is_empty();
        self.in_flight += self.setup.mss;
        let in_flight = self.in_flight.get();
        let departure = self.rate.on_sent(self.now, in_flight, is_first);
        self.flight.push_back(departure);
        self.sent_since_reaction = true;
        let sent = Sent {
            now: self.now,
            payload: self.setup.mss,
            wire: self.setup.mss + DataSize::new(40),
            number: self.next,
            in_flight: self.in_flight,
            app_limited: self.limited,
        };
        self.next = self.next.next();
        self.notify_sent(&sent).map(drop)
    }

    /// Records a departure, with room for the announced tag.
    fn notify_sent(&mut self, sent: &Sent) -> Result<(Decision, Decision), Violation> {
        let room = Frame::Tag(self.controller.upcoming_tag()).size();
        let tag = Cell::new(Tag::None);
        let (before, after) = self.notify(|controller| {
            tag.set(controller.tag(sent.now));
            controller.on_event(Event::Sent(sent));
        })?;
        let takes = Frame::Tag(tag.get()).size();
        check(takes == room, Promise::Tag, before, after)?;
        Ok((before, after))
    }

    /// The number of the oldest packet in flight, or of the next one to leave.
    fn oldest(&self) -> u64 {
        let packets = self.in_flight.get() / self.setup.mss.get().max(1);
        self.next.get().saturating_sub(packets)
    }

    fn acknowledge(
        &mut self,
        packets: u8,
        rtt: Option<Span>,
        marked: bool,
    ) -> Result<(), Violation> {
        let acked = (self.setup.mss * u64::from(packets)).min(self.in_flight);
        if acked == DataSize::ZERO {
            return Ok(());
        }
        let oldest = self.oldest();
        let prior_in_flight = self.in_flight.get();
        self.in_flight -= acked;
        let sample = self.deliver(acked, prior_in_flight);
        self.timeouts = 0;
        let numbers = oldest..self.oldest();
        let answered = InOrderAck {
            now: self.now,
            number: PacketNumber::new(numbers.end.saturating_sub(1)),
            // The receiver's clock is an hour ahead.
            arrived_at: rtt.map(|rtt| Arrived {
                at: self.now.saturating_sub(rtt / 2) + Span::from_secs(3_600),
                tick: Span::from_micros(1),
            }),
        };
        let ack = Ack {
            now: self.now,
            acked,
            rtt,
            in_flight: self.in_flight,
            app_limited: self.limited,
            in_recovery: self.recovering,
            marked: u32::from(marked),
            packets: u32::try_from(acked.get().div_ceil(self.setup.mss.get())).unwrap_or(u32::MAX),
            sample: self.controller.needs().rate_samples.then_some(sample),
        };
        let (before, after) = self.notify(|controller| {
            if controller.needs().packet_numbers {
                for number in numbers.clone() {
                    let number = PacketNumber::new(number);
                    controller.on_event(Event::PacketAcked {
                        now: ack.now,
                        number,
                        arrived_at: answered.arrived_at.filter(|_| number == answered.number),
                    });
                }
            }
            if controller.needs().in_order_acks {
                controller.on_event(Event::InOrderAck(&answered));
            }
            controller.on_event(Event::Ack(&ack));
        })?;
        let lifts = self.expectations.lifts_window;
        if lifts && after.window >= self.setup.max_window {
            return Ok(());
        }
        let restored = match self.expectations.restores_window {
            true => self.largest.max(self.setup.mss * 4),
            false => DataSize::ZERO,
        };
        let no_growth = after.window <= before.window || self.expectations.restores_window || lifts;
        let limited = self.limited && !self.expectations.grows_when_limited;
        check(
            no_growth || !limited,
            Promise::NoGrowthWhenLimited,
            before,
            after,
        )?;
        check(
            no_growth || !self.recovering,
            Promise::NoGrowthInRecovery,
            before,
            after,
        )?;
        // One byte more, because windows are real numbers reported in bytes.
        let grown = acked * self.expectations.growth;
        // The rate of the first flight allows 64 initial windows.
        let measured = self.setup.initial_window * if lifts { 64 } else { 0 };
        let most = before.window.max(restored).max(measured) + grown + DataSize::new(1);
        check(
            after.window <= most,
            Promise::GrowthByEvidence,
            before,
            after,
        )
    }

    /// Delivers the oldest packets of this size.
    fn deliver(&mut self, acked: DataSize, prior_in_flight: u64) -> RateSample {
        let mss = self.setup.mss.get();
        for _ in 0..acked.get() / mss {
            if let Some(departure) = self.flight.pop_front() {
                self.rate.on_delivered(self.now, &departure, mss, false);
            }
        }
        let in_flight = self.in_flight.get();
        self.rate.sample(self.now, prior_in_flight, in_flight)
    }

    /// Loses the oldest packets of this size.
    fn lose_packets(&mut self, lost: DataSize) -> Result<(), Violation> {
        let (now, mss) = (self.now, self.setup.mss.get());
        for _ in 0..lost.get() / mss {
            let Some(departure) = self.flight.pop_front() else {
                break;
            };
            let loss = self.rate.on_lost(&departure, mss);
            if self.controller.needs().rate_samples {
                self.notify(|controller| {
                    controller.on_event(Event::PacketLost { now, loss: &loss });
                })?;
            }
        }
        Ok(())
    }

    fn lose(&mut self, packets: u8, cause: LossCause, restart: bool) -> Result<(), Violation> {
        if self.in_flight == DataSize::ZERO || self.recovering || !self.sent_since_reaction {
            return Ok(());
        }
        let lost = (self.setup.mss * u64::from(packets)).min(self.in_flight);
        let loss = Loss {
            now: self.now,
            sent_at: self.now,
            lost,
            in_flight: self.in_flight,
            window: self.controller.decision().window,
            cause,
            restart,
        };
        if cause != LossCause::Mark {
            self.lose_packets(lost)?;
        }
        let (before, after) = self.notify(|controller| controller.on_event(Event::Loss(&loss)))?;
        if cause != LossCause::Mark && restart {
            self.flight.clear();
        }
        self.sent_since_reaction = false;
        if cause != LossCause::Mark {
            self.in_flight = if restart {
                DataSize::ZERO
            } else {
                self.in_flight - lost
            };
            self.recovering = !restart;
        }
        self.check_reduction(before, after)
    }

    fn time_out(&mut self, duplicate_seen: bool) -> Result<(), Violation> {
        if self.in_flight == DataSize::ZERO {
            return Ok(());
        }
        self.timeouts += 1;
        let timeout = Timeout {
            now: self.now,
            in_flight: self.in_flight,
            window: self.controller.decision().window,
            consecutive: self.timeouts,
            duplicate_seen,
        };
        self.lose_packets(self.in_flight)?;
        let (before, after) =
            self.notify(|controller| controller.on_event(Event::Timeout(&timeout)))?;
        self.in_flight = DataSize::ZERO;
        self.recovering = false;
        self.sent_since_reaction = false;
        self.check_reduction(before, after)
    }

    fn restart(&mut self, timeouts: u8) -> Result<(), Violation> {
        if self.in_flight > DataSize::ZERO {
            return Ok(());
        }
        let timeout = Span::from_millis(200);
        let idle = Idle {
            now: self.now,
            pause: timeout * u64::from(timeouts) + Span::from_nanos(1),
            timeout,
            initial_window: self.setup.initial_window,
        };
        let (before, after) = self.notify(|controller| controller.on_event(Event::Idle(&idle)))?;
        let kept = after.window <= before.window
            && after.window >= before.window.min(self.setup.initial_window);
        check(kept, Promise::Restart, before, after)
    }

    fn check_reduction(&self, before: Decision, after: Decision) -> Result<(), Violation> {
        let two = self.setup.mss * 2;
        check(
            after.window <= before.window.max(two),
            Promise::NoGrowthOnLoss,
            before,
            after,
        )?;
        let threshold = after.ssthresh.is_none_or(|threshold| threshold >= two);
        check(threshold, Promise::Threshold, before, after)
    }

    fn recover(&mut self) -> Result<(), Violation> {
        if !self.recovering {
            return Ok(());
        }
        self.recovering = false;
        self.notify(|controller| controller.on_event(Event::Recovered))
            .map(drop)
    }

    /// Lets time pass and wakes the controller at its requested times.
    fn wait_until(&mut self, end: Time) -> Result<(), Violation> {
        while let Some(at) = self.controller.decision().wakeup.filter(|at| *at <= end) {
            self.now = self.now.max(at);
            let now = self.now;
            let (before, after) =
                self.notify(|controller| controller.on_event(Event::Wakeup(now)))?;
            let later = self
                .controller
                .decision()
                .wakeup
                .is_none_or(|next| next > now);
            check(later, Promise::Wakeup, before, after)?;
        }
        self.now = self.now.max(end);
        Ok(())
    }

    /// Sends an event to both controllers, and checks the promises of every event.
    fn notify(
        &mut self,
        event: impl Fn(&mut dyn Controller),
    ) -> Result<(Decision, Decision), Violation> {
        let before = self.controller.decision();
        check(
            before == self.controller.decision(),
            Promise::Determinism,
            before,
            before,
        )?;
        event(self.controller.as_mut());
        event(self.twin.as_mut());
        let after = self.controller.decision();
        self.largest = self.largest.max(before.window);
        check(
            after == self.controller.decision(),
            Promise::Determinism,
            before,
            after,
        )?;
        // Limits below two segments occur only in tests. Controllers keep their own minimum.
        let most = self.setup.max_window.max(self.setup.mss * 2);
        let window = (self.setup.mss..=most).contains(&after.window);
        check(window, Promise::Window, before, after)?;
        let flows = match after.pacing {
            Pacing::Rate(rate) => rate > Rate::ZERO,
            Pacing::Bursts { rate, size } => rate > Rate::ZERO && size >= self.setup.mss,
            Pacing::Gap(gap) => gap < Span::MAX,
            Pacing::At(at) => !at.is_never(),
            _ => true,
        };
        check(flows, Promise::Pacing, before, after)?;
        let due = self
            .controller
            .decision()
            .wakeup
            .is_none_or(|at| at >= self.now);
        check(due, Promise::Wakeup, before, after)?;
        Ok((before, after))
    }
}

/// A sample that no honest transport produces.
fn any_sample([first, second, third, fourth]: [u64; 4]) -> RateSample {
    RateSample {
        delivered: DataSize::new(first ^ fourth),
        interval: Span::from_nanos(second >> 8),
        sending: None,
        prior_delivered: DataSize::new(third),
        lost: DataSize::new(second ^ third),
        sent_in_flight: DataSize::new(first.rotate_left(7)),
        app_limited: fourth & 1 == 0,
        rtt: Some(Span::from_nanos(third >> 8)),
        total_delivered: DataSize::new(third ^ fourth),
        total_lost: DataSize::new(fourth),
        newly_delivered: DataSize::new(first),
        newly_lost: DataSize::new(second.rotate_left(9)),
        prior_in_flight: DataSize::new(third.rotate_left(5)),
        in_flight: DataSize::new(second),
    }
}
