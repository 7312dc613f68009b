//! The contract of every receiver's half, checked over random arrivals.
//!
//! In a [`MeterModel`] the sender's half of a row tags packets, which arrive, are lost or
//! reordered. The sender receives the meter's reports. After each step the model checks the
//! promises of [`Meter`]:
//!
//! * the same arrivals give the same reports;
//! * after a wake-up and a report, the meter does not request the same wake-up repeatedly;
//! * a report is plausible: a level of at least 1, a loss event rate between 0 and 1, at most as
//!   many packets as arrived;
//! * a second report at one moment repeats the first, is empty, or counts another round.
//!
//! [`MeterModel::disturb`] delivers packets with tags that no honest sender sends.

use std::fmt;

use comity_congestion::table::{ParameterError, Parameters, Row, Setup};
use comity_congestion::{Ack, Arrival, Controller, Event, Feedback, Meter, Report, Sent, Tag};
use comity_units::{DataSize, PacketNumber, Span, Time};
use proptest::prelude::*;

/// One step of a receiver.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The next packet arrives.
    Arrive,
    /// The next packet is lost.
    Lose,
    /// The next packet arrives after its successor.
    Overtake,
    /// The meter reports, and the sender receives the report.
    Report,
    /// The source pauses after the next packet.
    RunDry,
    /// Time passes.
    Wait(Span),
}

/// Steps of a busy flow.
pub fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => Just(Step::Arrive),
        8 => (0u64..20_000_000).prop_map(|nanos| Step::Wait(Span::from_nanos(nanos))),
        1 => (0u64..100).prop_map(|seconds| Step::Wait(Span::from_secs(seconds))),
        4 => Just(Step::Report),
        2 => Just(Step::Lose),
        1 => Just(Step::Overtake),
        1 => Just(Step::RunDry),
    ]
}

/// Any possible tag of a packet.
pub fn tag() -> impl Strategy<Value = Tag> {
    let span = any::<u64>().prop_map(Span::from_nanos);
    let shifted = || (any::<u32>(), 0u32..32).prop_map(|(value, shift)| value >> shift);
    prop_oneof![
        Just(Tag::None),
        any::<(u16, u16, u16)>().prop_map(|(wave, segments, position)| Tag::Wave {
            wave,
            segments,
            position,
        }),
        (shifted(), span.clone()).prop_map(|(number, rtt)| Tag::Numbered { number, rtt }),
        (shifted(), span).prop_map(|(round, rtt)| Tag::Round { round, rtt }),
    ]
}

/// A broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterPromise {
    /// Twins with the same input report the same.
    Determinism,
    /// After a wake-up and a report, the same wake-up does not recur repeatedly.
    Wakeup,
    /// Reports are plausible.
    Sense,
    /// A second report at one moment repeats the first, is empty, or counts another round.
    Repetition,
}

impl fmt::Display for MeterPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the meter's promise of {self:?} was broken")
    }
}

impl std::error::Error for MeterPromise {}

/// The round trip that the sender measures with each report.
const ROUND_TRIP: Span = Span::from_millis(50);

/// How many wake-ups a meter may request at one moment: one for each unreported count.
const MAX_AT_ONCE: u32 = 80;

/// A flow whose receiver runs one meter, and its twin.
#[derive(Debug)]
pub struct MeterModel {
    sender: Box<dyn Controller>,
    meter: Box<dyn Meter>,
    twin: Box<dyn Meter>,
    mss: DataSize,
    now: Time,
    next: PacketNumber,
    arrived: u32,
    reports: u32,
}

impl MeterModel {
    /// Creates a flow with this sender's half, and the receiver's half of `build`.
    pub fn new(
        sender: Box<dyn Controller>,
        build: impl Fn() -> Box<dyn Meter>,
        mss: DataSize,
    ) -> Self {
        Self {
            sender,
            meter: build(),
            twin: build(),
            mss,
            now: Time::from_secs(1),
            next: PacketNumber::ZERO,
            arrived: 0,
            reports: 0,
        }
    }

    /// Creates a flow of a row; `None` if the row has no receiver's half.
    ///
    /// # Errors
    /// As [`Row::build`].
    pub fn of(
        row: &Row,
        setup: Setup,
        parameters: &Parameters,
    ) -> Result<Option<Self>, ParameterError> {
        let build = || row.build_meter(&setup, parameters).transpose();
        let (Some(meter), Some(twin)) = (build()?, build()?) else {
            return Ok(None);
        };
        Ok(Some(Self {
            sender: row.build(&setup, parameters)?,
            meter,
            twin,
            mss: setup.mss,
            now: Time::from_secs(1),
            next: PacketNumber::ZERO,
            arrived: 0,
            reports: 0,
        }))
    }

    /// Makes one step.
    ///
    /// # Errors
    /// The broken promise.
    pub fn apply(&mut self, step: &Step) -> Result<(), MeterPromise> {
        match *step {
            Step::Arrive => {
                let packet = self.send();
                self.arrive(packet);
            }
            Step::Lose => drop(self.send()),
            Step::Overtake => {
                let (overtaken, packet) = (self.send(), self.send());
                self.arrive(packet);
                self.arrive(overtaken);
            }
            Step::Report => self.report()?,
            Step::RunDry => self.sender.on_event(Event::AppLimited),
            Step::Wait(span) => self.wait(span)?,
        }
        Ok(())
    }

    /// Delivers a packet with an arbitrary tag, number and size.
    ///
    /// # Errors
    /// As [`MeterModel::apply`].
    pub fn disturb(&mut self, tag: Tag, noise: [u64; 2]) -> Result<(), MeterPromise> {
        let [number, wire] = noise;
        self.arrive((PacketNumber::new(number), tag, DataSize::new(wire)));
        self.report()
    }

    /// The number of reports with content.
    pub const fn reports(&self) -> u32 {
        self.reports
    }

    fn send(&mut self) -> (PacketNumber, Tag, DataSize) {
        let (now, number, wire) = (self.now, self.next, self.mss + DataSize::new(40));
        self.next = number.next();
        let tag = self.sender.tag(now);
        self.sender.on_event(Event::Sent(&Sent {
            now,
            payload: self.mss,
            wire,
            number,
            in_flight: self.mss,
            app_limited: false,
        }));
        (number, tag, wire)
    }

    fn arrive(&mut self, (number, tag, wire): (PacketNumber, Tag, DataSize)) {
        let arrival = Arrival {
            now: self.now,
            number,
            payload: self.mss.min(wire),
            wire,
            marked: false,
            tag,
        };
        self.arrived = self.arrived.saturating_add(1);
        self.meter.on_arrival(&arrival);
        self.twin.on_arrival(&arrival);
    }

    fn report(&mut self) -> Result<(), MeterPromise> {
        let report = self.meter.report(self.now);
        if report != self.twin.report(self.now) || self.meter.wakeup() != self.twin.wakeup() {
            return Err(MeterPromise::Determinism);
        }
        let again = self.meter.report(self.now);
        self.twin.report(self.now);
        // Unreported counts are consecutive.
        let is_next = matches!(
            (report, again),
            (Report::Count { round, .. }, Report::Count { round: next, .. }) if round != next
        );
        if again != report && again != Report::None && !is_next {
            return Err(MeterPromise::Repetition);
        }
        let makes_sense = match report {
            Report::None => true,
            Report::Wave { level } => level >= 1,
            Report::LossEvents { rate, .. } => (0.0..=1.0).contains(&rate),
            Report::Count { packets, .. } => packets <= self.arrived,
        };
        if !makes_sense {
            return Err(MeterPromise::Sense);
        }
        self.reports += u32::from(report != Report::None);
        let rtt = Some(ROUND_TRIP);
        self.sender.on_event(Event::Ack(&Ack {
            now: self.now,
            acked: self.mss,
            rtt,
            in_flight: self.mss,
            app_limited: false,
            in_recovery: false,
            marked: 0,
            packets: 1,
            sample: None,
        }));
        self.sender.on_event(Event::Feedback(&Feedback {
            now: self.now,
            report: &report,
            rtt,
        }));
        Ok(())
    }

    /// Lets time pass, wakes the meter at its requested times, and then collects a report.
    fn wait(&mut self, span: Span) -> Result<(), MeterPromise> {
        let end = self.now + span;
        let mut at_once = 0;
        for _ in 0..1_000 {
            let Some(at) = self.meter.wakeup().filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(at);
            self.meter.on_wakeup(self.now);
            self.twin.on_wakeup(self.now);
            self.report()?;
            at_once = match self.meter.wakeup() {
                Some(next) if next <= self.now => at_once + 1,
                _ => 0,
            };
            if at_once > MAX_AT_ONCE {
                return Err(MeterPromise::Wakeup);
            }
        }
        self.now = end;
        Ok(())
    }
}
