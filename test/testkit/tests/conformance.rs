//! Every row of the table keeps the promises of the controller trait.

use comity_congestion::table::{self, Parameters, Setup, TABLE, Value};
use comity_congestion::{
    Ack, Arrival, Controller, Decision, Event, InOrderAck, Loss, Meter, Needs, Pacing, Phase,
    Report, Tag,
};
use comity_testkit::conformance::{
    Expectations, Model, Operation, Promise, Violation, operation, setup, variants,
};
use comity_testkit::meters::{MeterModel, MeterPromise, Step, step, tag};
use comity_units::{DataSize, Rate, Span, Time};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn honest_transports(
        setup in setup(),
        operations in prop::collection::vec(operation(), 1..200),
    ) {
        for row in TABLE {
            for parameters in variants(row) {
                let mut model = Model::of(row, setup, &parameters)?;
                for operation in &operations {
                    model.apply(operation).map_err(|violation| {
                        TestCaseError::fail(format!("{} {parameters:?}: {violation}", row.name))
                    })?;
                }
                model.finish()?;
            }
        }
    }

    #[test]
    fn dishonest_transports(
        setup in setup(),
        noise in prop::collection::vec((any::<[u64; 4]>(), any::<u8>(), 0u32..64), 1..100),
    ) {
        for row in TABLE {
            for parameters in variants(row) {
                let mut model = Model::of(row, setup, &parameters)?;
                for (values, kind, shift) in &noise {
                    model.disturb(values.map(|value| value >> shift), *kind).map_err(|violation| {
                        TestCaseError::fail(format!("{} {parameters:?}: {violation}", row.name))
                    })?;
                }
                model.finish()?;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn meters_of_honest_senders(
        setup in setup(),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        for row in TABLE {
            for parameters in variants(row) {
                let Some(mut model) = MeterModel::of(row, setup, &parameters)? else {
                    continue;
                };
                for step in &steps {
                    model.apply(step).map_err(|promise| {
                        TestCaseError::fail(format!("{} {parameters:?}: {promise}", row.name))
                    })?;
                }
            }
        }
    }

    #[test]
    fn meters_of_dishonest_senders(
        setup in setup(),
        packets in prop::collection::vec((tag(), any::<[u64; 2]>(), step()), 1..100),
    ) {
        for row in TABLE {
            for parameters in variants(row) {
                let Some(mut model) = MeterModel::of(row, setup, &parameters)? else {
                    continue;
                };
                for (tag, noise, step) in &packets {
                    let outcome = model.disturb(*tag, *noise).and_then(|()| model.apply(step));
                    outcome.map_err(|promise| {
                        TestCaseError::fail(format!("{} {parameters:?}: {promise}", row.name))
                    })?;
                }
            }
        }
    }
}

/// The models prove something only if events happen: packet numbers and arrivals reach a controller
/// that needs them, and meters report.
#[test]
fn the_models_report_the_expected_events() -> Result<(), Box<dyn std::error::Error>> {
    let mss = DataSize::new(1_000);
    let received = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let asks = || -> Box<dyn Controller> { Box::new(Asks(received.clone())) };
    let mut model = Model::new(asks, Setup::new(mss), Expectations::default());
    model.apply(&Operation::Send { packets: 6 })?;
    let ack = |packets| Operation::Acknowledge {
        packets,
        rtt: None,
        marked: false,
    };
    model.apply(&ack(1))?;
    model.apply(&Operation::Lose {
        packets: 2,
        cause: comity_congestion::LossCause::Delay,
        restart: false,
    })?;
    model.apply(&ack(2))?;
    // Twice: there is a twin.
    let expected = [
        "0", "answer 0", "0", "answer 0", "3", "4", "answer 4", "3", "4", "answer 4",
    ];
    assert_eq!(*received.lock().expect("no panic"), expected);

    for name in ["real", "tfrc", "psp"] {
        let row = table::find(name)?;
        let mut model = MeterModel::of(row, Setup::new(mss), &Parameters::new())?
            .ok_or("expected a receiver's half")?;
        for _ in 0..100 {
            model.apply(&Step::Arrive)?;
            model.apply(&Step::Wait(Span::from_millis(10)))?;
            model.apply(&Step::Report)?;
        }
        assert!(model.reports() > 5, "{name}: {}", model.reports());
    }
    Ok(())
}

/// Wants to know of each packet, and writes it down.
#[derive(Clone, Debug)]
struct Asks(std::sync::Arc<std::sync::Mutex<Vec<String>>>);

impl Asks {
    fn note(&self, text: String) {
        self.0.lock().expect("no panic").push(text);
    }

    fn on_packet_acked(&mut self, _: Time, number: comity_units::PacketNumber) {
        self.note(number.get().to_string());
    }

    fn on_in_order_ack(&mut self, answered: &InOrderAck) {
        self.note(format!("answer {}", answered.number.get()));
    }
}

impl Controller for Asks {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::InOrderAck(ack) => self.on_in_order_ack(ack),
            Event::PacketAcked { now, number, .. } => self.on_packet_acked(now, number),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            window: DataSize::new(10_000),
            pacing: Pacing::Unpaced,
            phase: Phase::Steady,
            ..Decision::default()
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            packet_numbers: true,
            in_order_acks: true,
            ..Needs::default()
        }
    }
}

/// A meter with one fault, and the number of its queries.
#[derive(Debug)]
struct FaultyMeter(MeterPromise, u32);

impl Meter for FaultyMeter {
    fn on_arrival(&mut self, _: &Arrival) {}
    fn report(&mut self, _: Time) -> Report {
        self.1 += 1;
        match self.0 {
            MeterPromise::Repetition => Report::Wave {
                level: self.1 as u16,
            },
            MeterPromise::Sense => Report::Wave { level: 0 },
            _ => Report::Wave {
                level: (self.1 / 10_000) as u16 + 1,
            },
        }
    }
    fn wakeup(&self) -> Option<Time> {
        (self.0 == MeterPromise::Wakeup).then_some(Time::from_secs(1))
    }
}

#[test]
fn every_promise_of_meters_bites() {
    for promise in [
        MeterPromise::Determinism,
        MeterPromise::Wakeup,
        MeterPromise::Sense,
        MeterPromise::Repetition,
    ] {
        let sender = Box::new(Faulty {
            fault: Fault::None,
            window: 10_000,
            ssthresh: 2_000,
            now: Time::from_secs(1),
        });
        let built = std::cell::Cell::new(0);
        let build = || -> Box<dyn Meter> {
            // Unlike each other where twins are meant to be.
            let unlike = promise == MeterPromise::Determinism;
            FaultyMeter::boxed(
                promise,
                u32::from(unlike) * 10_000 * built.replace(built.get() + 1),
            )
        };
        let mut model = MeterModel::new(sender, build, DataSize::new(1_000));
        let outcome = [Step::Arrive, Step::Report, Step::Wait(Span::from_secs(1))]
            .iter()
            .try_for_each(|step| model.apply(step));
        assert_eq!(outcome, Err(promise));
    }
}

impl FaultyMeter {
    fn boxed(promise: MeterPromise, asked: u32) -> Box<dyn Meter> {
        Box::new(Self(promise, asked))
    }
}

/// The model is no use if it keeps every flow idle: a plain transfer has to grow, every loss has to
/// cut.
#[test]
fn the_model_moves_what_it_drives() -> Result<(), Box<dyn std::error::Error>> {
    let mss = DataSize::new(1_000);
    for name in ["reno", "vegas", "cubic"] {
        let mut model = Model::of(table::find(name)?, Setup::new(mss), &Parameters::new())?;
        let ack = Operation::Acknowledge {
            packets: 1,
            rtt: Some(Span::from_millis(100)),
            marked: false,
        };
        for _ in 0..200 {
            model.apply(&Operation::Send { packets: 255 })?;
            model.apply(&ack)?;
            model.apply(&Operation::Wait(Span::from_millis(1)))?;
        }
        let grown = model.decision().window;
        assert!(grown > mss * 50, "{name} grew to {grown} only");
        model.apply(&Operation::Send { packets: 255 })?;
        model.apply(&Operation::Lose {
            packets: 1,
            cause: comity_congestion::LossCause::Reordering,
            restart: false,
        })?;
        let cut = model.decision().window;
        assert!(cut < grown && cut > mss * 20, "{name} was cut to {cut}");
        model.apply(&Operation::TimeOut {
            duplicate_seen: false,
        })?;
        assert!(model.decision().window <= mss * 2, "{name}");
    }
    Ok(())
}

#[test]
fn reno_grows_when_limited_only_if_configured() -> Result<(), Box<dyn std::error::Error>> {
    let mss = DataSize::new(1_000);
    for (flag, window) in [(false, mss * 10), (true, mss * 12)] {
        let parameters = Parameters::new().with("grow_when_limited", Value::Flag(flag));
        let mut model = Model::of(table::find("reno")?, Setup::new(mss), &parameters)?;
        model.apply(&Operation::LimitByApplication(true))?;
        model.apply(&Operation::Send { packets: 4 })?;
        model.apply(&Operation::Acknowledge {
            packets: 2,
            rtt: None,
            marked: false,
        })?;
        assert_eq!(model.decision().window, window);
    }
    Ok(())
}

/// A controller with one fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    GrowsOnLoss,
    GrowsWhenLimited,
    GrowsInRecovery,
    GrowsTooMuch,
    LowThreshold,
    Shrinks,
    Stalls,
    WakesInThePast,
    WakesAtOnce,
    TagsUnannounced,
    None,
}

#[derive(Clone, Debug)]
struct Faulty {
    fault: Fault,
    window: u64,
    ssthresh: u64,
    now: Time,
}

impl Faulty {
    fn on_ack(&mut self, ack: &Ack) {
        self.now = ack.now;
        let limited = ack.app_limited && self.fault != Fault::GrowsWhenLimited;
        let recovery = ack.in_recovery && self.fault != Fault::GrowsInRecovery;
        if !limited && !recovery {
            self.window += if self.fault == Fault::GrowsTooMuch {
                10_000
            } else {
                100
            };
        }
        if self.fault == Fault::Shrinks {
            self.window = 999;
        }
    }

    fn on_loss(&mut self, _: &Loss) {
        if self.fault == Fault::GrowsOnLoss {
            self.window += 1;
        }
        if self.fault == Fault::LowThreshold {
            self.ssthresh = 1_999;
        }
    }

    fn wakeup(&self) -> Option<Time> {
        match self.fault {
            Fault::WakesInThePast => Some(self.now.saturating_sub(Span::from_nanos(1))),
            Fault::WakesAtOnce => Some(self.now.max(Time::from_secs(2))),
            _ => None,
        }
    }

    fn on_wakeup(&mut self, now: Time) {
        self.now = now;
    }
}

impl Controller for Faulty {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Ack(ack) => self.on_ack(ack),
            Event::Loss(loss) => self.on_loss(loss),
            Event::Wakeup(now) => self.on_wakeup(now),
            _ => {}
        }
    }

    fn tag(&mut self, _: Time) -> Tag {
        match self.fault {
            Fault::TagsUnannounced => Tag::Wave {
                wave: 1,
                segments: 1,
                position: 1,
            },
            _ => Tag::None,
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            window: DataSize::new(self.window),
            pacing: match self.fault {
                Fault::Stalls => Pacing::Rate(Rate::ZERO),
                _ => Pacing::Unpaced,
            },
            ssthresh: Some(DataSize::new(self.ssthresh)),
            phase: Phase::Steady,
            wakeup: self.wakeup(),
            ..Decision::default()
        }
    }
}

/// Drives a faulty controller through a little of everything.
fn drive(build: impl Fn() -> Box<dyn Controller>) -> Result<(), Violation> {
    let setup = Setup::new(DataSize::new(1_000));
    let mut model = Model::new(build, setup, Expectations::default());
    let ack = Operation::Acknowledge {
        packets: 1,
        rtt: None,
        marked: false,
    };
    let send = Operation::Send { packets: 5 };
    for operation in [
        &send,
        &ack,
        &Operation::Lose {
            packets: 1,
            cause: comity_congestion::LossCause::Delay,
            restart: false,
        },
        &ack,
        &Operation::Recover,
        &Operation::LimitByApplication(true),
        &ack,
        &Operation::Wait(Span::from_secs(5)),
        &send,
    ] {
        model.apply(operation)?;
    }
    model.finish()
}

#[test]
fn every_promise_bites() {
    for (fault, promise) in [
        (Fault::GrowsOnLoss, Some(Promise::NoGrowthOnLoss)),
        (Fault::GrowsWhenLimited, Some(Promise::NoGrowthWhenLimited)),
        (Fault::GrowsInRecovery, Some(Promise::NoGrowthInRecovery)),
        (Fault::GrowsTooMuch, Some(Promise::GrowthByEvidence)),
        (Fault::LowThreshold, Some(Promise::Threshold)),
        (Fault::Shrinks, Some(Promise::Window)),
        (Fault::Stalls, Some(Promise::Pacing)),
        (Fault::WakesInThePast, Some(Promise::Wakeup)),
        (Fault::WakesAtOnce, Some(Promise::Wakeup)),
        (Fault::TagsUnannounced, Some(Promise::Tag)),
        (Fault::None, None),
    ] {
        let outcome = drive(|| {
            Box::new(Faulty {
                fault,
                window: 10_000,
                ssthresh: 2_000,
                now: Time::from_secs(1),
            })
        });
        assert_eq!(
            outcome.err().map(|violation| violation.promise),
            promise,
            "{fault:?}"
        );
    }
}

/// Decides another window at each query.
#[derive(Debug, Default)]
struct Moody(std::sync::atomic::AtomicU64);

impl Controller for Moody {
    fn on_event(&mut self, _event: Event<'_>) {}

    fn decision(&self) -> Decision {
        let asked = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Decision {
            window: DataSize::new(10_000 + asked),
            pacing: Pacing::Unpaced,
            phase: Phase::Steady,
            ..Decision::default()
        }
    }
}

#[test]
fn moods_and_unlike_twins_are_found() {
    let moody = drive(|| Box::new(Moody::default()));
    assert_eq!(
        moody.err().map(|violation| violation.promise),
        Some(Promise::Determinism)
    );

    let built = std::cell::Cell::new(10_000);
    let unlike = drive(|| {
        built.set(built.get() + 1);
        Box::new(Faulty {
            fault: Fault::None,
            window: built.get(),
            ssthresh: 2_000,
            now: Time::from_secs(1),
        })
    });
    assert_eq!(
        unlike.err().map(|violation| violation.promise),
        Some(Promise::Determinism)
    );
}
