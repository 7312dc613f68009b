//! The whole emulator between sockets of the loopback interface.
//!
//! No test asserts a duration. The tests compare the emulator's report with the received datagrams,
//! and with a fresh link that gets the same arrivals.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use comity_emulator::{Config, Direction, Emulator, Error, Limits, Overload, Record, resolve};
use comity_link::{
    AnalyticLink, DropCause, Jitter, Limit, LinkConfig, Loss, LossModel, LossPlace, Outcome, Queue,
    RedConfig,
};
use comity_units::{DataSize, Rate, Seed, Span};

fn local() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// A socket that gives up after a while, so that a failure does not hang.
fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(local()).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    socket
}

fn link(queue: Queue) -> LinkConfig {
    LinkConfig {
        queue,
        ..LinkConfig::new(Rate::from_mbps(8), Span::from_millis(5))
    }
}

fn seed() -> Seed {
    Seed::new(20)
}

fn config(target: &UdpSocket, forward: LinkConfig) -> Config {
    Config {
        forward,
        seed: seed(),
        record: 10_000,
        ..Config::new(local(), target.local_addr().unwrap())
    }
}

/// Offers the recorded arrivals to a fresh link, which must decide as the emulator did.
fn replay(config: &LinkConfig, record: &[Record]) {
    let mut fresh = AnalyticLink::new(config, seed().derive("forward")).unwrap();
    for (number, record) in record.iter().enumerate() {
        let outcome = fresh.offer(record.at, record.packet);
        assert_eq!(record.outcome, Some(outcome), "packet {number}");
    }
}

/// Sends a burst through a link and checks the whole report.
fn burst(forward: &LinkConfig, packets: u64) -> Vec<Record> {
    let (caller, target) = (socket(), socket());
    let emulator = Emulator::bind(config(&target, forward.clone())).unwrap();
    let emulator = emulator.spawn().unwrap();
    for number in 0..packets {
        let mut payload = [0; 472];
        payload[..8].copy_from_slice(&number.to_be_bytes());
        caller.send_to(&payload, emulator.local_address()).unwrap();
    }
    // Held packets reach the target as time passes.
    let mut received = 0;
    let report = loop {
        let way = emulator.statistics().forward;
        let (counts, timing) = (way.counts, way.timing);
        if counts.arrived.packets == packets && counts.held().packets == 0 {
            while received < timing.count {
                let mut buffer = [0; 1_500];
                assert_eq!(target.recv(&mut buffer).unwrap(), 472);
                received += 1;
            }
            let report = emulator.stop().unwrap();
            // Duplicates may still have been in flight.
            let rest = report.statistics.forward.timing.count - received;
            for _ in 0..rest {
                target.recv(&mut [0; 1_500]).unwrap();
            }
            break report;
        }
        std::thread::yield_now();
    };
    target.set_nonblocking(true).unwrap();
    assert!(
        target.recv(&mut [0; 1_500]).is_err(),
        "more than was released"
    );
    let way = &report.statistics.forward;
    let counts = &way.counts;
    assert_eq!(counts.arrived.packets, packets);
    assert_eq!(
        counts.arrived.bytes,
        DataSize::new(500 * packets),
        "28 bytes of headers"
    );
    assert_eq!(counts.unsent.packets, 0);
    assert_eq!(
        way.timing.count,
        counts.released.packets + counts.copies.packets
    );
    assert_eq!(report.statistics.turned_away, 0);
    assert_eq!(report.statistics.socket_drops, Some(0));
    assert_eq!(report.statistics.backward.counts.arrived.packets, 0);
    assert_eq!(report.forward_record.len(), packets as usize);
    replay(forward, &report.forward_record);
    let count = |cause: fn(&Outcome) -> bool| {
        let outcomes = report.forward_record.iter().filter_map(|r| r.outcome);
        outcomes.filter(cause).count() as u64
    };
    assert_eq!(
        counts.dropped_full.packets,
        count(|outcome| matches!(outcome, Outcome::Dropped(DropCause::QueueFull)))
    );
    assert_eq!(
        counts.lost.packets,
        count(|outcome| matches!(outcome, Outcome::Lost { .. }))
    );
    assert_eq!(
        counts.released.packets,
        count(|outcome| matches!(outcome, Outcome::Carried(_)))
    );
    report.forward_record
}

#[test]
fn a_full_queue_drops_exactly_what_the_model_drops() {
    // 100 packets of 500 bytes take 50 ms at 8 Mb/s, and are sent in much less.
    let config = link(Queue::DropTail(Limit::Packets(20)));
    let record = burst(&config, 100);
    let dropped = record
        .iter()
        .filter(|record| matches!(record.outcome, Some(Outcome::Dropped(_))));
    assert!(dropped.count() > 0, "the burst did not fill the queue");
}

#[test]
fn losses_jitter_and_copies_are_those_of_the_model() {
    let config = LinkConfig {
        losses: vec![Loss {
            model: LossModel::Bernoulli(0.2),
            place: LossPlace::AfterTransmission,
        }],
        jitter: Jitter::Uniform {
            max: Span::from_millis(3),
            reorder: true,
        },
        duplication: 0.2,
        ..link(Queue::DropTail(Limit::Unlimited))
    };
    let record = burst(&config, 100);
    let copied = record.iter().filter(|record| {
        matches!(record.outcome, Some(Outcome::Carried(passage)) if passage.duplicate.is_some())
    });
    let copied = copied.count();
    assert!((5..30).contains(&copied), "{copied} of 100");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the emulator runs on this clock")]
fn a_stream_at_half_of_the_rate_has_the_delay_of_the_link() {
    // 1000 bytes on the wire take 1 ms, and arrive every 2 ms.
    const PACKETS: u32 = 60;
    // A sender that the system held up sends what is due at once: the queue has room for all.
    let forward = link(Queue::DropTail(Limit::Packets(60)));
    let (caller, target) = (socket(), socket());
    let emulator = Emulator::bind(config(&target, forward.clone())).unwrap();
    let emulator = emulator.spawn().unwrap();
    let began = Instant::now();
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 1_500];
        for _ in 0..PACKETS {
            target.recv(&mut buffer).unwrap();
            let sent_at = u64::from_be_bytes(buffer[..8].try_into().unwrap());
            let delay = began
                .elapsed()
                .saturating_sub(Duration::from_nanos(sent_at));
            // However busy the machine is, nothing arrives before its time.
            assert!(delay >= Duration::from_millis(6), "{delay:?}");
        }
    });
    for number in 0..PACKETS {
        while began.elapsed() < Duration::from_millis(2) * number {
            std::thread::yield_now();
        }
        let mut payload = [0; 972];
        let now = u64::try_from(began.elapsed().as_nanos()).unwrap();
        payload[..8].copy_from_slice(&now.to_be_bytes());
        caller.send_to(&payload, emulator.local_address()).unwrap();
    }
    reader.join().unwrap();
    let report = emulator.stop().unwrap();
    replay(&forward, &report.forward_record);
    let way = &report.statistics.forward;
    assert_eq!(way.counts.released.packets, u64::from(PACKETS));
    assert_eq!(way.timing.count, u64::from(PACKETS));
    assert!(way.timing.p50 <= way.timing.p99 && way.timing.p99 <= way.timing.max);
    let bars = report.forward_timing.histogram();
    assert_eq!(bars.iter().map(|(_, count)| count).sum::<u64>(), 60);
    let record = &report.forward_record;
    let mut apart = 0;
    for pair in record.windows(2) {
        let gap = pair[1].at.since(pair[0].at).unwrap();
        let Some(Outcome::Carried(passage)) = pair[1].outcome else {
            panic!("the queue never fills at half of the rate: {pair:?}")
        };
        let planned = passage.arrival.since(pair[1].at).unwrap();
        assert!(planned >= Span::from_millis(6), "{planned:?}");
        if passage.start == pair[1].at {
            assert_eq!(planned, Span::from_millis(6));
            apart += usize::from(gap >= Span::from_millis(1));
        }
    }
    assert!(apart > 0, "no packet found the link free");
}

#[test]
fn callers_get_their_own_answers_and_no_others() {
    const EACH: usize = 40;
    let target = socket();
    let both = link(Queue::DropTail(Limit::Unlimited));
    let emulator = Emulator::bind(Config {
        backward: both.clone(),
        ..config(&target, both)
    })
    .unwrap();
    let emulator = emulator.spawn().unwrap();
    let echo = std::thread::spawn(move || {
        let mut buffer = [0; 1_500];
        for _ in 0..3 * EACH {
            let (length, from) = target.recv_from(&mut buffer).unwrap();
            target.send_to(&buffer[..length], from).unwrap();
        }
    });
    let callers = [socket(), socket(), socket()];
    for number in 0..EACH {
        for (name, caller) in callers.iter().enumerate() {
            let payload = [name as u8, number as u8];
            caller.send_to(&payload, emulator.local_address()).unwrap();
        }
    }
    for (name, caller) in callers.iter().enumerate() {
        for number in 0..EACH {
            let mut buffer = [0; 10];
            let (length, from) = caller.recv_from(&mut buffer).unwrap();
            assert_eq!(from, emulator.local_address());
            assert_eq!(buffer[..length], [name as u8, number as u8]);
        }
        caller.set_nonblocking(true).unwrap();
        assert!(caller.recv(&mut [0; 10]).is_err(), "an answer too many");
    }
    echo.join().unwrap();
    let report = emulator.stop().unwrap().statistics;
    assert_eq!((report.callers, report.callers_seen), (3, 3));
    for way in [report.forward, report.backward] {
        assert_eq!(way.counts.arrived.packets, 3 * EACH as u64);
        assert_eq!(way.counts.released.packets, 3 * EACH as u64);
        assert_eq!(
            way.counts.arrived.bytes,
            DataSize::new(30 * 3 * EACH as u64)
        );
    }
}

#[test]
fn a_caller_with_a_route_reaches_its_own_target_through_the_same_link() {
    let (routed, other) = (socket(), socket());
    let (target, own_target) = (socket(), socket());
    let mut config = config(&target, link(Queue::DropTail(Limit::Packets(10))));
    let address = |socket: &UdpSocket| socket.local_addr().unwrap();
    config.routes = vec![(address(&routed), address(&own_target))];
    let emulator = Emulator::bind(config).unwrap().spawn().unwrap();
    for (caller, target, said) in [(&routed, &own_target, b"own"), (&other, &target, b"all")] {
        caller.send_to(said, emulator.local_address()).unwrap();
        let mut buffer = [0; 16];
        let (length, from) = target.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], said);
        target.send_to(b"yes", from).unwrap();
        let (length, from) = caller.recv_from(&mut buffer).unwrap();
        assert_eq!(
            (&buffer[..length], from),
            (&b"yes"[..], emulator.local_address())
        );
    }
    let report = emulator.stop().unwrap();
    assert_eq!(report.statistics.forward.counts.arrived.packets, 2);
}

#[test]
fn an_empty_datagram_is_carried_and_so_is_the_largest() {
    let (caller, target) = (socket(), socket());
    let emulator = Emulator::bind(config(&target, LinkConfig::default())).unwrap();
    let emulator = emulator.spawn().unwrap();
    let mut buffer = vec![0; 70_000];
    for length in [0, 65_507, 1] {
        caller
            .send_to(&vec![7; length], emulator.local_address())
            .unwrap();
        assert_eq!(target.recv(&mut buffer).unwrap(), length);
    }
    let way = emulator.stop().unwrap().statistics.forward;
    assert_eq!(way.counts.released.bytes, DataSize::new(65_508 + 3 * 28));
    assert_eq!(way.counts.unsent.packets, 0);
}

#[test]
fn marks_of_the_queue_reach_the_target() {
    use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
    let forward = link(Queue::Red(RedConfig {
        limit: Limit::Packets(1_000),
        min_threshold: 1.0,
        max_threshold: 1_000.0,
        max_probability: 1.0,
        weight: 1.0,
        ecn: true,
        ..RedConfig::default()
    }));
    let (caller, target) = (socket(), socket());
    let emulator = Emulator::bind(config(&target, forward.clone())).unwrap();
    let emulator = emulator.spawn().unwrap();
    let state = UdpSocketState::new(UdpSockRef::from(&caller)).unwrap();
    for _ in 0..100 {
        let transmit = Transmit {
            destination: emulator.local_address(),
            ecn: Some(EcnCodepoint::Ect0),
            contents: &[0; 472],
            segment_size: None,
            src_ip: None,
        };
        state
            .try_send(UdpSockRef::from(&caller), &transmit)
            .unwrap();
    }
    let state = UdpSocketState::new(UdpSockRef::from(&target)).unwrap();
    target.set_nonblocking(false).unwrap();
    let (mut marked, mut plain) = (0, 0);
    for _ in 0..100 {
        let mut bytes = [0; 1_500];
        let mut meta = [RecvMeta::default()];
        let mut buffers = [std::io::IoSliceMut::new(&mut bytes)];
        let received = state.recv(UdpSockRef::from(&target), &mut buffers, &mut meta);
        assert_eq!(received.unwrap(), 1);
        match meta[0].ecn {
            Some(EcnCodepoint::Ce) => marked += 1,
            Some(EcnCodepoint::Ect0) => plain += 1,
            other => panic!("{other:?}"),
        }
    }
    let report = emulator.stop().unwrap();
    replay(&forward, &report.forward_record);
    let by_model = report
        .forward_record
        .iter()
        .filter(|r| matches!(r.outcome, Some(Outcome::Carried(passage)) if passage.marked))
        .count();
    assert_eq!(marked, by_model);
    assert!(marked > 0 && plain > 0, "{marked} marked, {plain} not");
}

#[test]
fn more_callers_than_there_is_room_for_are_turned_away_and_it_is_said() {
    let target = socket();
    let emulator = Emulator::bind(Config {
        limits: Limits {
            callers: 1,
            ..Limits::default()
        },
        ..config(&target, LinkConfig::default())
    })
    .unwrap();
    let emulator = emulator.spawn().unwrap();
    let (first, second) = (socket(), socket());
    let mut buffer = [0; 10];
    first.send_to(b"first", emulator.local_address()).unwrap();
    target.recv(&mut buffer).unwrap();
    second.send_to(b"second", emulator.local_address()).unwrap();
    first.send_to(b"third", emulator.local_address()).unwrap();
    let length = target.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"third");
    let statistics = emulator.stop().unwrap().statistics;
    assert_eq!(statistics.forward.counts.arrived.packets, 2);
    let sign = Overload::TurnedAway { packets: 1 };
    assert!(statistics.overload().contains(&sign));
}

#[test]
fn a_target_where_nobody_listens_is_noticed_and_can_come_later() {
    let address = socket().local_addr().unwrap();
    let emulator = Emulator::bind(Config {
        seed: seed(),
        ..Config::new(local(), address)
    })
    .unwrap();
    let emulator = emulator.spawn().unwrap();
    let caller = socket();
    while emulator.statistics().refused == 0 {
        caller
            .send_to(b"anybody?", emulator.local_address())
            .unwrap();
        std::thread::yield_now();
    }
    let target = UdpSocket::bind(address).unwrap();
    target
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    // The refusal of an earlier datagram may still arrive, and costs the next one.
    let mut buffer = [0; 10];
    let came = (0..50).any(|_| {
        caller.send_to(b"hello", emulator.local_address()).unwrap();
        while let Ok(length) = target.recv(&mut buffer) {
            if length == 5 {
                return true;
            }
        }
        false
    });
    assert!(came, "nothing came in 5 s");
    assert_eq!(&buffer[..5], b"hello");
}

#[test]
fn what_cannot_work_is_refused_with_the_reason() {
    let target = socket();
    let fine = config(&target, LinkConfig::default());
    let said = |config: Config| Emulator::bind(config).unwrap_err();

    let taken = said(Config {
        listen: target.local_addr().unwrap(),
        target: ([127, 0, 0, 1], 9).into(),
        ..fine.clone()
    });
    assert!(matches!(taken, Error::Listen { .. }));
    assert!(
        taken.to_string().starts_with("cannot listen on 127.0.0.1:"),
        "{taken}"
    );

    let still = said(Config {
        backward: LinkConfig::new(Rate::ZERO, Span::ZERO),
        ..fine.clone()
    });
    assert!(
        matches!(
            still,
            Error::NoRate {
                direction: Direction::Backward
            }
        ),
        "{still}"
    );

    let wrong = said(Config {
        forward: LinkConfig {
            duplication: 2.0,
            ..LinkConfig::default()
        },
        ..fine.clone()
    });
    assert!(
        matches!(
            wrong,
            Error::Link {
                direction: Direction::Forward,
                ..
            }
        ),
        "{wrong}"
    );

    let nowhere = said(Config {
        target: ([127, 0, 0, 1], 0).into(),
        ..fine.clone()
    });
    assert!(matches!(nowhere, Error::Unreachable { .. }), "{nowhere}");

    let nobody = said(Config {
        limits: Limits {
            callers: 0,
            ..Limits::default()
        },
        ..fine.clone()
    });
    assert_eq!(
        nobody.to_string(),
        "the limit of callers is 0; expected more"
    );

    let free = socket().local_addr().unwrap();
    let itself = said(Config {
        listen: free,
        target: free,
        ..fine
    });
    assert!(matches!(itself, Error::TargetIsSelf { .. }), "{itself}");

    for name in ["127.0.0.1", "127.0.0.1:99999", ":", ""] {
        let error = resolve(name, None).unwrap_err();
        assert!(
            matches!(error, Error::Unresolvable { .. }),
            "{name:?}: {error}"
        );
    }
    assert_eq!(
        resolve("127.0.0.1:9", Some(local())).unwrap(),
        ([127, 0, 0, 1], 9).into()
    );
}
