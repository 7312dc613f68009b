//! Reports of the receiver's half that are reordered in the reverse direction.

use std::sync::{Arc, Mutex};

use comity_congestion::{Arrival, Controller, Decision, Ecn, Event, Meter, Pacing, Phase, Report};
use comity_transport::datagram::{Config, Connection};
use comity_transport::timeline::{Elided, Importance, Outgoing, StreamId};
use comity_units::{DataSize, PacketNumber, Span, Time};

/// Sends all available data and records the reports.
#[derive(Clone, Debug, Default)]
struct Listener(Arc<Mutex<Vec<Report>>>);

impl Controller for Listener {
    fn on_event(&mut self, event: Event<'_>) {
        if let Event::Feedback(feedback) = event {
            self.0.lock().unwrap().push(*feedback.report);
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            window: DataSize::MAX,
            pacing: Pacing::Unpaced,
            phase: Phase::Steady,
            ..Decision::default()
        }
    }
}

/// Reports how many packets have arrived; the function turns the number into a report.
#[derive(Debug)]
struct Counter(fn(u16) -> Report, u16);

impl Meter for Counter {
    fn on_arrival(&mut self, _arrival: &Arrival) {
        self.1 += 1;
    }
    fn report(&mut self, _now: Time) -> Report {
        (self.0)(self.1)
    }
}

fn transmit(end: &mut Connection<Elided>, now: Time) -> Vec<(PacketNumber, Vec<u8>)> {
    let (mut packets, mut bytes) = (Vec::new(), Vec::new());
    while let Some(sent) = end.poll_transmit(now, &mut bytes) {
        packets.push((sent.number, std::mem::take(&mut bytes)));
    }
    packets
}

/// Three packets, each acknowledged with a report. The second acknowledgement arrives last. Returns
/// the accepted reports.
fn received_reports(make: fn(u16) -> Report) -> Vec<Report> {
    let config = Config {
        ack_frequency: 1,
        ..Config::default()
    };
    let listener = Listener::default();
    let end = |meter: Option<Box<dyn Meter>>| {
        let controller = Box::new(listener.clone());
        Connection::<Elided>::new(config, Span::ZERO, controller, meter, Time::ZERO).unwrap()
    };
    let mut sender = end(None);
    let mut receiver = end(Some(Box::new(Counter(make, 0))));
    let mut answers = Vec::new();
    for at in 0..3 {
        let now = Time::from_millis(10 * at);
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(9),
            source_time: now,
            deadline: Time::MAX,
            needs: None,
            payload: Elided(1_000),
        };
        sender.submit(now, section).unwrap();
        for (number, bytes) in transmit(&mut sender, now) {
            receiver
                .on_packet(now, number, Ecn::NotCapable, &bytes)
                .unwrap();
        }
        answers.push(transmit(&mut receiver, now));
    }
    let back = Time::from_millis(50);
    for at in [0, 2, 1] {
        assert!(!answers[at].is_empty());
        for (number, bytes) in &answers[at] {
            sender
                .on_packet(back, *number, Ecn::NotCapable, bytes)
                .unwrap();
        }
    }
    let received_reports = listener.0.lock().unwrap();
    received_reports.clone()
}

/// A level describes the present state, so a reordered one is outdated. A count belongs to a named
/// round.
#[test]
fn an_overtaken_report_counts_only_if_it_names_its_round() {
    let level = |level| Report::Wave { level };
    assert_eq!(received_reports(level), [level(1), level(3)]);
    let count = |packets: u16| Report::Count {
        round: packets.into(),
        packets: packets.into(),
    };
    assert_eq!(received_reports(count), [count(1), count(3), count(2)]);
}
