//! A connection under a controller with its own calendar: each packet leaves at its time.

use std::sync::{Arc, Mutex};

use comity_congestion::{Ack, Controller, Decision, Ecn, Event, Pacing, Phase, Sent};
use comity_transport::datagram::{Config, Connection};
use comity_transport::timeline::{DropPolicy, Elided, Importance, Outgoing, StreamId};
use comity_units::{DataSize, Span, Time};

/// Pairs, 7 ms apart.
#[derive(Debug)]
struct Pairs {
    window: u64,
    sent: u64,
    limited: Arc<Mutex<Vec<bool>>>,
}

impl Pairs {
    fn on_ack(&mut self, ack: &Ack) {
        self.limited.lock().unwrap().push(ack.app_limited);
    }

    fn on_sent(&mut self, _: &Sent) {
        self.sent += 1;
    }
}

impl Controller for Pairs {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::Ack(ack) => self.on_ack(ack),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            window: DataSize::new(self.window),
            pacing: Pacing::At(Time::from_millis(7 * (self.sent / 2))),
            phase: Phase::CongestionAvoidance,
            ..Decision::default()
        }
    }
}

fn connection(window: u64) -> (Connection<Elided>, Arc<Mutex<Vec<bool>>>) {
    let limited = Arc::new(Mutex::new(Vec::new()));
    let controller = Box::new(Pairs {
        window,
        sent: 0,
        limited: limited.clone(),
    });
    let config = Config {
        drop: DropPolicy::Expired,
        ..Config::default()
    };
    let connection = Connection::new(config, Span::ZERO, controller, None, Time::ZERO).unwrap();
    (connection, limited)
}

fn submit(connection: &mut Connection<Elided>, length: u32) {
    let section = Outgoing {
        stream: StreamId(0),
        importance: Importance(9),
        source_time: Time::ZERO,
        deadline: Time::from_secs(5),
        needs: None,
        payload: Elided(length),
    };
    connection.submit(Time::ZERO, section).unwrap();
}

/// The departures until `end` without any ACK.
fn departures(connection: &mut Connection<Elided>, end: Time) -> Vec<Time> {
    let (mut now, mut times, mut turns) = (Time::ZERO, Vec::new(), 0);
    while now <= end {
        connection.on_timer(now);
        while connection.poll_transmit(now, &mut Vec::new()).is_some() {
            times.push(now);
        }
        turns += 1;
        assert!(turns < 1_000, "its timer stays at {now} for ever");
        now = connection.next_timer().max(now + Span::from_nanos(1));
    }
    times
}

#[test]
fn each_packet_leaves_at_its_time_without_another_wakeup() {
    let (mut connection, _) = connection(1 << 30);
    submit(&mut connection, 100_000);
    let times = departures(&mut connection, Time::from_millis(28));
    let expected: Vec<Time> = [0, 0, 7, 7, 14, 14, 21, 21, 28, 28]
        .map(Time::from_millis)
        .to_vec();
    assert_eq!(times, expected);
}

/// While the calendar holds back packets that window and application would release, the flow is not
/// application-limited; once everything has left, it is.
#[test]
fn waiting_for_the_calendar_is_not_application_limited() {
    let (mut sender, limited) = connection(1 << 30);
    let (mut receiver, _) = connection(1 << 30);
    submit(&mut sender, 4_000);
    for at in [0, 7, 60] {
        let now = Time::from_millis(at);
        sender.on_timer(now);
        loop {
            let mut packet = Vec::new();
            let Some(sent) = sender.poll_transmit(now, &mut packet) else {
                break;
            };
            receiver
                .on_packet(now, sent.number, Ecn::NotCapable, &packet)
                .unwrap();
        }
        let later = now + Span::from_millis(50);
        receiver.on_timer(later);
        let mut answer = Vec::new();
        if let Some(sent) = receiver.poll_transmit(later, &mut answer) {
            sender
                .on_packet(later, sent.number, Ecn::NotCapable, &answer)
                .unwrap();
        }
    }
    let limited = limited.lock().unwrap();
    assert!(!*limited.first().unwrap(), "{limited:?}");
    assert!(*limited.last().unwrap(), "{limited:?}");
}
