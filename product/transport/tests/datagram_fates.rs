//! The sender's treatment of late packets, spurious losses, and packets of an old path.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use comity_congestion::table::{self, Parameters, Setup, Value};
use comity_congestion::{Controller, Decision, Ecn, Event as ControllerEvent, Pacing, Phase};
use comity_transport::datagram::{Config, Connection, Event, Transmit};
use comity_transport::timeline::inbox::GapReason;
use comity_transport::timeline::outbox::Fate;
use comity_transport::timeline::{
    Delivery, DropPolicy, Elided, Importance, Outgoing, Reliability, SectionId, StreamId,
};
use comity_transport::wire::frame::{self, AckRange, AckRanges, Content, Frame, encode_departure};
use comity_transport::wire::{CloseCode, Stamp};
use comity_units::{DataSize, PacketNumber, Span, Time};

const MS: fn(u64) -> Time = Time::from_millis;
const HALF: Span = Span::from_millis(20);

fn config() -> Config {
    Config {
        payload: 1_000,
        drop: DropPolicy::Expired,
        ack_frequency: 2,
        keep_alive: Span::from_secs(600),
        idle_timeout: Span::from_secs(600),
        ..Config::default()
    }
}

fn make_controller(name: &str, parameters: &Parameters) -> Box<dyn Controller> {
    table::find(name)
        .unwrap()
        .build(&Setup::new(DataSize::new(1_000)), parameters)
        .unwrap()
}

fn end(config: Config, controller: Box<dyn Controller>) -> Connection<Elided> {
    Connection::new(config, config.ack_delay, controller, None, Time::ZERO).unwrap()
}

struct Net {
    ends: [Connection<Elided>; 2],
    way: Vec<(Time, usize, PacketNumber, Vec<u8>)>,
    now: Time,
    outcomes: Vec<Fate>,
    whole: usize,
    gaps: Vec<(StreamId, SectionId, GapReason)>,
    last_ecn: Ecn,
}

impl Net {
    fn new(config: Config, controller: Box<dyn Controller>) -> Self {
        let receiver = Config {
            deliver: comity_transport::timeline::Deliver::Early,
            ..config
        };
        Self {
            ends: [
                end(config, controller),
                end(receiver, make_controller("reno", &Parameters::new())),
            ],
            way: Vec::new(),
            now: Time::ZERO,
            outcomes: Vec::new(),
            whole: 0,
            gaps: Vec::new(),
            last_ecn: Ecn::NotCapable,
        }
    }

    fn submit(&mut self, bytes: u32, deadline: Time) {
        self.ends[0]
            .submit(
                self.now,
                Outgoing {
                    stream: StreamId(0),
                    importance: Importance(9),
                    source_time: self.now,
                    deadline,
                    needs: None,
                    payload: Elided(bytes),
                },
            )
            .unwrap();
    }

    fn run(
        &mut self,
        until: Time,
        mut arrival: impl FnMut(Time, usize, &Transmit) -> Option<Time>,
    ) {
        while self.now <= until {
            let now = self.now;
            self.way.sort_by_key(|packet| packet.0);
            while self.way.first().is_some_and(|packet| packet.0 <= now) {
                let (_, to, number, bytes) = self.way.remove(0);
                self.ends[to]
                    .on_packet(now, number, Ecn::NotCapable, &bytes)
                    .unwrap();
            }
            for (from, end) in self.ends.iter_mut().enumerate() {
                if end.next_timer() <= now {
                    end.on_timer(now);
                }
                let mut bytes = Vec::new();
                while let Some(sent) = end.poll_transmit(now, &mut bytes) {
                    let bytes = std::mem::take(&mut bytes);
                    if from == 0 && sent.payload > 500 {
                        self.last_ecn = sent.ecn;
                    }
                    if let Some(at) = arrival(now, from, &sent) {
                        self.way.push((at, 1 - from, sent.number, bytes));
                    }
                }
                while let Some(delivery) = end.poll_delivery(now) {
                    match delivery {
                        Delivery::Section(_) => self.whole += 1,
                        Delivery::Gap(gap) => {
                            let sections = gap.sections();
                            self.gaps
                                .extend(sections.map(|id| (gap.stream, id, gap.reason)));
                        }
                    }
                }
                while let Some(event) = end.poll_event() {
                    if let Event::Outcome(outcome) = event {
                        self.outcomes.push(outcome.fate);
                    }
                }
            }
            let arrival = self.way.iter().map(|p| p.0).min().unwrap_or(Time::MAX);
            let timers = self.ends.iter().map(Connection::next_timer).min();
            let next = timers.unwrap_or(Time::MAX).min(arrival);
            self.now = next.max(now + Span::from_nanos(1));
        }
        self.now = until;
    }
}

/// Five packets of one flight are lost, and a sixth is 25 ms late.
fn lossy(name: &str, parameters: &Parameters) -> Seen {
    let mut net = Net::new(config(), make_controller(name, parameters));
    net.submit(400_000, Time::MAX);
    net.run(MS(150), |now, _, _| Some(now + HALF));
    assert_eq!(seen(&net).phase, Phase::SlowStart);
    let mut count = 0;
    net.run(MS(330), |now, from, sent| {
        count += u32::from(from == 0 && sent.payload > 500);
        match count {
            3..=7 if from == 0 => None,
            9 if from == 0 => Some(now + HALF + Span::from_millis(25)),
            _ => Some(now + HALF),
        }
    });
    seen(&net)
}

#[derive(Debug)]
struct Seen {
    phase: Phase,
    events: u64,
    lost: u64,
    late: u64,
}

fn seen(net: &Net) -> Seen {
    let statistics = net.ends[0].statistics();
    Seen {
        phase: statistics.path.phase,
        events: statistics.sent.loss_events,
        lost: statistics.sent.lost_packets,
        late: statistics.sent.spurious_losses,
    }
}

#[test]
fn cubic_keeps_a_reduction_for_real_losses() {
    let after = lossy("cubic", &Parameters::new());
    assert_eq!((after.events, after.lost, after.late), (1, 6, 1));
    assert_ne!(after.phase, Phase::SlowStart);
}

#[test]
fn steady_keeps_an_event_of_real_losses() {
    let parameters = Parameters::new().with("random_loss", Value::Number(0.0));
    let after = lossy("steady", &parameters);
    assert_eq!((after.events, after.lost, after.late), (1, 6, 1));
    assert_ne!(after.phase, Phase::SlowStart);
}

#[test]
fn each_late_packet_is_counted() {
    let mut net = Net::new(config(), make_controller("reno", &Parameters::new()));
    net.submit(200_000, Time::MAX);
    net.run(MS(100), |now, _, _| Some(now + HALF));
    let mut count = 0;
    net.run(MS(400), |now, from, sent| {
        if from == 0 && sent.payload > 500 {
            count += 1;
            if (3..=6).contains(&count) {
                return Some(MS(190));
            }
        }
        Some(now + HALF)
    });
    let sent = net.ends[0].statistics().sent;
    assert_eq!((sent.lost_packets, sent.spurious_losses), (4, 4));
}

#[test]
fn ecn_is_disabled_on_a_path_that_clears_marks() {
    let mut net = Net::new(
        Config {
            ecn: true,
            ..config()
        },
        make_controller("reno", &Parameters::new()),
    );
    net.submit(400_000, Time::MAX);
    // The network clears the bits: `run` delivers every packet as not ECN-capable.
    net.run(MS(1_000), |now, _, _| Some(now + HALF));
    net.submit(10_000, Time::MAX);
    net.run(MS(1_500), |now, _, _| Some(now + HALF));
    assert_eq!(net.last_ecn, Ecn::NotCapable);
}

/// One small section arrives at once, and only its acknowledgements are lost for a while.
#[test]
fn packets_never_declared_lost_are_not_reported_lost() {
    let mut found = Vec::new();
    for (reliability, deadline) in [
        (Reliability::None, Time::MAX),
        (Reliability::Timeline, MS(2_060)),
    ] {
        let mut net = Net::new(
            Config {
                reliability,
                ..config()
            },
            make_controller("reno", &Parameters::new()),
        );
        // The round trip is known.
        net.submit(2_000, Time::MAX);
        net.run(MS(2_000), |now, _, _| Some(now + HALF));
        assert_eq!(net.outcomes, [Fate::Acknowledged], "{reliability:?}");
        net.submit(800, deadline);
        net.run(MS(2_200), |now, from, _| (from == 0).then_some(now + HALF));
        net.run(MS(6_000), |now, _, _| Some(now + HALF));
        let statistics = net.ends[0].statistics();
        assert_eq!(net.whole, 2);
        assert_eq!(statistics.sent.lost_packets, 0);
        found.push(net.outcomes[1]);
    }
    assert_eq!(found, [Fate::Acknowledged; 2]);
}

static TIMEOUTS: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct Counting;

impl Controller for Counting {
    fn on_event(&mut self, event: ControllerEvent<'_>) {
        if let ControllerEvent::Timeout(_) = event {
            TIMEOUTS.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            window: DataSize::new(1_000_000),
            pacing: Pacing::At(Time::ZERO),
            phase: Phase::Steady,
            ..Decision::default()
        }
    }
}

/// Acknowledgements are lost for two seconds, as are two packets: one at the beginning and one at
/// the end.
#[test]
fn two_losses_with_acknowledged_packets_between_are_no_persistent_congestion() {
    let mut net = Net::new(config(), Box::new(Counting));
    for at in 0..50 {
        net.submit(900, Time::MAX);
        net.run(MS(20 * (at + 1)), |now, _, _| Some(now + HALF));
    }
    let start = net.now;
    let mut data = 0;
    for at in 0..130_u64 {
        net.submit(900, Time::MAX);
        net.run(
            start + Span::from_millis(20 * (at + 1)),
            |now, from, sent| {
                if from == 1 {
                    return (now > start + Span::from_millis(2_000)).then_some(now + HALF);
                }
                if sent.payload > 500 {
                    data += 1;
                }
                let is_lost = data == 3 || data == 96;
                (!is_lost).then_some(now + HALF)
            },
        );
    }
    let sent = net.ends[0].statistics().sent;
    assert_eq!(sent.persistent_congestions, 0);
}

/// All packets in flight go to the old address and are lost; none is lost on the new path.
#[test]
fn losses_on_the_old_path_do_not_count_on_the_new_one() {
    let mut net = Net::new(config(), make_controller("reno", &Parameters::new()));
    net.submit(2_000_000, Time::MAX);
    net.run(MS(130), |now, _, _| Some(now + HALF));
    net.run(MS(150), |_, _, _| None);
    let moved = net.now;
    net.ends[0].on_new_path(moved, make_controller("reno", &Parameters::new()));
    net.run(MS(450), |now, _, _| Some(now + HALF));
    let after = seen(&net);
    assert_eq!(after.events, 0, "no packet of the new path was lost");
    // The content of the lost packets has been retransmitted.
    net.run(MS(5_000), |now, _, _| Some(now + HALF));
    assert_eq!(net.outcomes, [Fate::Acknowledged]);
}

/// Ends one stream more than the maximum number.
#[test]
fn ending_a_stream_beyond_the_limit_does_not_end_the_connection() {
    let mut net = Net::new(config(), make_controller("reno", &Parameters::new()));
    for stream in 0..65 {
        assert_eq!(net.ends[0].end(StreamId(stream)).is_ok(), stream < 64);
    }
    net.run(MS(300), |now, _, _| Some(now + HALF));
    assert!(net.ends[0].is_open() && net.ends[1].is_open());
}

/// The only packet of a section is lost, and so is its retransmission in the first probe.
#[test]
fn the_second_probe_retransmits_missing_data_like_the_first() {
    let mut net = Net::new(config(), make_controller("reno", &Parameters::new()));
    net.submit(2_000, Time::MAX);
    net.run(MS(2_000), |now, _, _| Some(now + HALF));
    net.submit(800, Time::MAX);
    let mut sizes = Vec::new();
    net.run(MS(4_000), |now, from, sent| {
        if from == 0 {
            sizes.push((now.as_nanos() / 1_000_000, sent.payload));
        }
        (from == 1 || sizes.len() > 2).then_some(now + HALF)
    });
    assert!(sizes[2].1 > 800, "{sizes:?}");
}

/// The first of four sections arrives; the others and the end of their stream never do. The peer
/// closes, and its first Close packet is lost too.
#[test]
fn a_close_reports_sections_unknown_to_the_peer() {
    let mut net = Net::new(config(), make_controller("reno", &Parameters::new()));
    net.submit(800, Time::MAX);
    net.run(MS(200), |now, _, _| Some(now + HALF));
    for _ in 0..3 {
        net.submit(800, Time::MAX);
    }
    net.run(MS(210), |_, _, _| None);
    net.ends[0].close(net.now, CloseCode::SHUTDOWN, "");
    let mut closes = 0;
    net.run(MS(2_000), |now, from, _| {
        closes += u32::from(from == 0);
        (closes > 1).then_some(now + HALF)
    });
    assert!(net.ends.iter().all(Connection::is_closed));
    assert_eq!(net.whole, 1);
    let missing = [1, 2, 3].map(|number| (StreamId(0), SectionId(number), GapReason::Closed));
    assert_eq!(net.gaps, missing);
}

/// A peer that accepts three open sections over all streams: a fourth begins when one of them is
/// done.
#[test]
fn open_sections_stay_within_the_limit_of_the_peer() {
    let mut sender = end(config(), make_controller("reno", &Parameters::new()));
    sender.set_initial_credit(1 << 20, 3);
    for stream in 0..3 {
        for _ in 0..2 {
            let section = Outgoing {
                stream: StreamId(stream),
                importance: Importance(9),
                source_time: Time::ZERO,
                deadline: Time::MAX,
                needs: None,
                payload: Elided(100),
            };
            sender.submit(Time::ZERO, section).unwrap();
        }
    }
    let begun = |sender: &mut Connection<Elided>, now| {
        let (mut payload, mut begun, mut largest) = (Vec::new(), BTreeSet::new(), None);
        while let Some(sent) = sender.poll_transmit(now, &mut payload) {
            let packet = frame::decode(&payload, Content::Elided).unwrap();
            for frame in packet.frames {
                if let Frame::Section(section) = frame.unwrap() {
                    begun.insert((section.header.stream, section.header.section));
                }
            }
            (largest, payload) = (Some(sent.number), Vec::new());
        }
        (begun, largest)
    };
    let (first, largest) = begun(&mut sender, MS(1));
    assert_eq!(first.len(), 3, "{first:?}");
    let ranges = [AckRange {
        first: PacketNumber::ZERO,
        last: largest.unwrap(),
    }];
    let ack = frame::Ack {
        ranges: AckRanges::new(&ranges).unwrap(),
        delay: Span::ZERO,
        arrival: Stamp::from_micros(0),
        ecn: None,
        proof: None,
    };
    let mut answer = Vec::new();
    encode_departure(Stamp::from_micros(0), &mut answer);
    Frame::Ack(ack).encode(&mut answer).unwrap();
    sender
        .on_packet(MS(41), PacketNumber::ZERO, Ecn::NotCapable, &answer)
        .unwrap();
    let (second, _) = begun(&mut sender, MS(42));
    assert_eq!(second.len(), 3, "{second:?}");
    assert!(first.is_disjoint(&second));
}
