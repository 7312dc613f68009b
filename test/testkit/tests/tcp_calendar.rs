//! A controller with its own calendar on the byte-sequence transport: each segment leaves at its
//! time.

use std::sync::{Arc, Mutex};

use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::{Ack, Controller, Decision, Event, InOrderAck, Needs, Pacing, Phase, Sent};
use comity_tcp::Config;
use comity_testkit::tcp::{BORN, Script, opener};
use comity_units::{DataSize, PacketNumber, Time};

/// The events that the controller received.
#[derive(Debug, Default)]
struct Diary {
    limited: Vec<bool>,
    answered: Vec<PacketNumber>,
}

/// Releases packets at these milliseconds, and afterwards at once.
#[derive(Debug)]
struct Calendar {
    times: &'static [u64],
    window: u64,
    sent: usize,
    diary: Arc<Mutex<Diary>>,
}

impl Calendar {
    fn new(times: &'static [u64], window: u64) -> (Box<Self>, Arc<Mutex<Diary>>) {
        let diary = Arc::new(Mutex::new(Diary::default()));
        let controller = Self {
            times,
            window,
            sent: 0,
            diary: diary.clone(),
        };
        (Box::new(controller), diary)
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.diary.lock().unwrap().limited.push(ack.app_limited);
    }

    fn on_sent(&mut self, _: &Sent) {
        self.sent += 1;
    }

    fn on_in_order_ack(&mut self, answered: &InOrderAck) {
        self.diary.lock().unwrap().answered.push(answered.number);
    }
}

impl Controller for Calendar {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::InOrderAck(ack) => self.on_in_order_ack(ack),
            Event::Ack(ack) => self.on_ack(ack),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        let next = self.times.get(self.sent).copied().unwrap_or(0);
        Decision {
            window: DataSize::new(self.window),
            pacing: Pacing::At(Time::from_millis(next)),
            phase: Phase::CongestionAvoidance,
            ..Decision::default()
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            in_order_acks: true,
            ..Needs::default()
        }
    }
}

#[test]
fn each_segment_leaves_at_its_time_without_another_wakeup() {
    let (controller, _) = Calendar::new(&[0, 30, 30, 95, 400], 10_000);
    let mut script = Script::new(opener(BORN, controller));
    script.call(0, |connection| connection.write(500));
    script.expect(0, ". 1+100 ack 1");
    script.expect(30, ". 101+100 ack 1");
    script.expect(30, ". 201+100 ack 1");
    script.expect(95, ". 301+100 ack 1");
    script.expect(400, "P. 401+100 ack 1");
}

#[test]
fn a_time_that_passed_while_the_window_was_full_delays_nothing() {
    let (controller, _) = Calendar::new(&[0, 10, 20, 300], 200);
    let mut script = Script::new(opener(BORN, controller));
    script.call(0, |connection| connection.write(400));
    script.expect(0, ". 1+100 ack 1");
    script.expect(10, ". 101+100 ack 1");
    script.expect_nothing(90);
    script.send(100, ". 1+0 ack 101 win 10000");
    script.expect(100, ". 201+100 ack 1");
    script.send(110, ". 1+0 ack 201 win 10000");
    script.expect(300, "P. 301+100 ack 1");
}

/// While the calendar holds back segments that window and application would release, the flow is
/// not application-limited.
#[test]
fn waiting_for_the_calendar_is_not_application_limited() {
    let (controller, diary) = Calendar::new(&[0, 50, 200, 210], 10_000);
    let mut script = Script::new(opener(BORN, controller));
    script.call(0, |connection| connection.write(400));
    script.expect(0, ". 1+100 ack 1");
    script.expect(50, ". 101+100 ack 1");
    script.send(100, ". 1+0 ack 101 win 10000");
    script.expect(200, ". 201+100 ack 1");
    script.expect(210, "P. 301+100 ack 1");
    // Everything has left, and the window has room.
    script.send(300, ". 1+0 ack 401 win 10000");
    script.expect_nothing(400);
    assert_eq!(diary.lock().unwrap().limited, [false, true]);
}

#[test]
fn acknowledgements_of_repairs_report_no_packet() {
    let (controller, diary) = Calendar::new(&[], 10_000);
    let mut script = Script::new(opener(BORN, controller));
    script.call(0, |connection| connection.write(600));
    for start in [1, 101, 201, 301, 401] {
        script.expect(0, &format!(". {start}+100 ack 1"));
    }
    script.expect(0, "P. 501+100 ack 1");
    script.send(100, ". 1+0 ack 101 win 10000");
    // The second is lost.
    for at in [110, 120, 130] {
        script.send(at, ". 1+0 ack 101 win 10000");
    }
    script.expect(130, ". 101+100 ack 1");
    script.send(230, ". 1+0 ack 601 win 10000");
    script.call(240, |connection| connection.write(200));
    script.expect(240, ". 601+100 ack 1");
    script.expect(240, "P. 701+100 ack 1");
    // A delayed acknowledgement answers the newest.
    script.send(340, ". 1+0 ack 801 win 10000");
    script.expect_nothing(350);
    let answered = &diary.lock().unwrap().answered;
    assert_eq!(*answered, [1, 9].map(PacketNumber::new));
}

/// A recovery that counts a pipe may send beyond the window. If only the calendar holds its repair
/// back, the calendar wakes it.
#[test]
fn a_repair_under_a_scoreboard_leaves_at_its_time_too() {
    let config = Config {
        sack: true,
        recovery: RecoveryConfig::SACK,
        ..BORN
    };
    let (controller, _) = Calendar::new(&[0, 0, 0, 0, 170], 400);
    let mut script = Script::new(opener(config, controller));
    script.call(0, |connection| connection.write(400));
    for start in [1, 101, 201] {
        script.expect(0, &format!(". {start}+100 ack 1"));
    }
    script.expect(0, "P. 301+100 ack 1");
    script.send(100, ". 1+0 ack 1 win 10000 <sack 101-201>");
    script.send(101, ". 1+0 ack 1 win 10000 <sack 101-301>");
    script.send(102, ". 1+0 ack 1 win 10000 <sack 101-401>");
    script.expect(170, ". 1+100 ack 1");
}
