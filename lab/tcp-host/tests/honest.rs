//! Peers that lie about what arrived lose the connection; others never do.

mod peer;

use comity_congestion::table::{Parameters, TABLE, Value, find};
use comity_tcp_host::{Config, End};
use comity_units::{DataSize, Span, Time};
use proptest::prelude::*;

use self::peer::{Link, Manner, Offer, Random, Run};
use crate::world::{App, Fate, World, bytes, config, read};

/// The controllers of a host. The receiver of the others has a half of its own.
fn controllers() -> Vec<&'static str> {
    let rows = TABLE.iter();
    let rows = rows.filter(|row| row.drives_tcp && !row.has_meter());
    rows.map(|row| row.name).collect()
}

fn with(controller: &str) -> Config {
    Config {
        controller: controller.into(),
        ..config(0)
    }
}

/// A path of 50 Mb/s with a round trip of 40 ms that loses this many of 1,000 packets.
fn path(lost: u64) -> Link {
    Link {
        bits_per_second: 50_000_000,
        queue: Span::from_millis(100),
        delay: Span::from_millis(20),
        lost,
        in_pairs: false,
    }
}

/// The same path without losses: its queue holds what a sender puts there.
fn lossless() -> Link {
    Link {
        queue: Span::from_secs(10),
        ..path(0)
    }
}

/// Room for any window.
fn roomy(controller: &str) -> Config {
    Config {
        send_buffer: 8 << 20,
        max_send_memory: 64 << 20,
        ..with(controller)
    }
}

const LIES: [Manner; 4] = [
    Manner::HidesLosses { one_in: 1 },
    Manner::HidesLosses { one_in: 3 },
    Manner::HidesByBlocks,
    Manner::Ahead { bytes: 1_460 },
];

/// 20 kB each 20 ms: the lies in a round trip are few.
#[test]
fn a_peer_that_hides_losses_is_found_within_a_hundred_lies() {
    const SEEDS: u64 = 4;
    let (mut runs, mut late) = (0, Vec::new());
    for controller in controllers() {
        for (kind, manner) in LIES.into_iter().enumerate() {
            for seed in 0..SEEDS {
                // A peer without SACK that shows most losses leaves little to test.
                let needs_sack = matches!(
                    manner,
                    Manner::HidesLosses { one_in: 3 } | Manner::HidesByBlocks
                );
                let offer = Offer {
                    sack: seed % 2 == 0 || needs_sack,
                    ..Offer::default()
                };
                let mut run = Run::new(with(controller), path(30), manner, offer, seed);
                run.drip(20_000, Span::from_millis(20), Span::from_secs(120));
                let what = format!("{controller}, {kind}, {seed}: {} lies", run.peer.lies);
                assert_eq!(run.end(), Some(End::FalseFeedback), "{what}");
                assert_eq!(run.host.statistics().false_feedback, 1, "{what}");
                runs += 1;
                // Who acknowledges ahead lies all the time. Holes interrupt the measurements of
                // libra, so that it is tested less often.
                let is_ahead = matches!(manner, Manner::Ahead { .. });
                let limit = if is_ahead { 2_000 } else { 100 };
                let times = if controller == "libra" { 3 } else { 1 };
                if run.peer.lies > limit * times {
                    late.push(what);
                }
            }
        }
    }
    assert!(late.len() * 100 <= runs, "{late:?} of {runs}");
}

/// It hides only holes of more than one segment, which are not likely to be tests.
#[test]
fn a_peer_that_hides_large_holes_is_found_too() {
    for seed in 0..8 {
        let link = Link {
            in_pairs: true,
            ..path(15)
        };
        let manner = Manner::HidesRuns;
        let mut run = Run::new(with("cubic"), link, manner, Offer::default(), seed);
        run.drip(20_000, Span::from_millis(20), Span::from_secs(600));
        assert_eq!(run.end(), Some(End::FalseFeedback), "{seed}");
        assert!(run.peer.lies < 1_000, "{seed}: {}", run.peer.lies);
    }
}

/// A peer that congests its path: all of its window is in flight, and most of it is lost.
#[test]
fn a_greedy_peer_is_found_within_many_round_trips() {
    for seed in 0..4 {
        let manner = Manner::HidesLosses { one_in: 1 };
        let mut run = Run::new(roomy("cubic"), path(0), manner, Offer::default(), seed);
        run.fill(Span::from_secs(60));
        assert_eq!(run.end(), Some(End::FalseFeedback), "{seed}");
        assert!(run.peer.was_reset, "{seed}");
        // 200 round trips of the path with its queue full.
        assert!(run.took() < Span::from_secs(28), "{seed}: {}", run.took());
    }
}

/// The same without room behind the window: tests are rarer, because each holds the flow up.
#[test]
fn a_peer_whose_window_is_the_limit_is_found_in_the_end() {
    for seed in 0..4 {
        let offer = Offer {
            window: 60_000,
            ..Offer::default()
        };
        let manner = Manner::HidesLosses { one_in: 1 };
        let mut run = Run::new(with("cubic"), path(20), manner, offer, seed);
        run.fill(Span::from_secs(60));
        assert_eq!(run.end(), Some(End::FalseFeedback), "{seed}");
    }
}

#[test]
fn without_tests_no_peer_is_found() {
    let mut config = with("cubic");
    config.tcp.skip_segments = None;
    let manner = Manner::HidesLosses { one_in: 1 };
    let mut run = Run::new(config, path(30), manner, Offer::default(), 1);
    run.drip(20_000, Span::from_millis(20), Span::from_secs(60));
    assert_eq!(run.end(), None);
    assert!(run.peer.lies > 1_000);
}

/// A peer that acknowledges each segment in 50 parts (Savage and others, section 4.1).
#[test]
fn parts_of_acknowledgements_make_no_window_grow() {
    let arrived = |config: &Config, sack, manner, skips: bool| {
        let mut config = config.clone();
        if !skips {
            config.tcp.skip_segments = None;
        }
        let offer = Offer {
            sack,
            ..Offer::default()
        };
        let mut run = Run::new(config, path(10), manner, offer, 1);
        run.fill(Span::from_secs(10));
        run.acknowledged()
    };
    let splits = Manner::Splits { parts: 50 };
    // One that counts acknowledgements, and all as they are by default.
    let per_ack = find("reno").unwrap().parse("increase", "per_ack");
    let counting = Config {
        parameters: Parameters::new().with("increase", per_ack.unwrap()),
        ..with("reno")
    };
    for config in controllers()
        .into_iter()
        .map(with)
        .chain([counting.clone()])
    {
        for sack in [true, false] {
            let split = arrived(&config, sack, splits, true);
            let whole = arrived(&config, sack, Manner::Honest, true);
            let what = format!("{}, {sack}: {split} {whole}", config.controller);
            assert!(split <= whole + whole / 2, "{what}");
        }
    }
    let free = [splits, Manner::Honest].map(|manner| arrived(&counting, true, manner, false));
    assert!(free[0] > 2 * free[1], "{free:?}");
}

/// A peer without SACK that repeats acknowledgements behind a hole (section 4.2).
#[test]
fn duplicates_inflate_the_window_to_a_bound() {
    let windows = |skips: bool| {
        let mut config = roomy("cubic");
        if !skips {
            config.tcp.skip_segments = None;
        }
        let offer = Offer {
            sack: false,
            ..Offer::default()
        };
        let mut run = Run::new(config, path(5), Manner::Repeats { times: 30 }, offer, 1);
        run.fill(Span::from_secs(5));
        assert_eq!(run.end(), None);
        run.windows
    };
    let (limited, free) = (windows(true), windows(false));
    assert!(limited <= 5 && free > 8, "{limited} {free}");
}

/// Peers with and without SACK, delayed acknowledgements, and any window.
#[test]
fn an_honest_peer_is_never_accused() {
    let mut skipped = 0;
    for controller in controllers() {
        for seed in 0..12 {
            let offer = Offer {
                sack: seed % 3 != 0,
                delays: seed % 2 == 0,
                window: [20_000, 60_000, 1 << 22][seed as usize % 3],
            };
            let lost = [0, 1, 10, 50][seed as usize % 4];
            let mut run = Run::new(with(controller), path(lost), Manner::Honest, offer, seed);
            run.fill(Span::from_secs(10));
            assert_eq!(run.end(), None, "{controller}, {seed}");
            assert!(run.acknowledged() > 500_000, "{controller}, {seed}");
            skipped += run.sender().skipped;
        }
    }
    assert!(skipped > 500, "{skipped}");
}

/// A path that loses nothing: no controller hears of a loss, and none grows more slowly.
#[test]
fn a_test_is_no_loss_to_any_controller() {
    let mut skipped = 0;
    for controller in controllers() {
        for sack in [true, false] {
            let measure = |skips: bool| {
                let mut config = roomy(controller);
                if !skips {
                    config.tcp.skip_segments = None;
                }
                let offer = Offer {
                    sack,
                    ..Offer::default()
                };
                let mut run = Run::new(config, lossless(), Manner::Honest, offer, 3);
                run.send(5_000_000);
                run
            };
            let (tested, usual) = (measure(true), measure(false));
            let counted = tested.sender();
            let what = format!("{controller}, {sack}: {counted:?}");
            let losses = (
                counted.retransmitted,
                counted.timeouts,
                counted.fast_retransmits,
            );
            assert_eq!(losses, (0, 0, 0), "{what}");
            let took = tested.took().as_nanos() * 100 / usual.took().as_nanos();
            assert!(took <= if sack { 105 } else { 130 }, "{what}: {took}");
            skipped += counted.skipped;
        }
    }
    assert!(skipped > 30, "{skipped}");
}

/// The bytes in both directions, and the time: where there is room behind what is in flight, and
/// where the peer's window is the limit.
#[test]
fn tests_cost_few_bytes_and_little_time() {
    let constant = Value::Bytes(DataSize::new(300_000));
    let constant = Parameters::new().with("window", constant);
    let cases = [
        ("fixed", constant, 1 << 22, 5),
        ("cubic", Parameters::new(), 60_000, 25),
    ];
    for (controller, parameters, window, slower) in cases {
        let measure = |skips: bool| {
            let mut config = Config {
                parameters: parameters.clone(),
                ..roomy(controller)
            };
            if !skips {
                config.tcp.skip_segments = None;
            }
            let offer = Offer {
                window,
                delays: true,
                ..Offer::default()
            };
            let mut run = Run::new(config, lossless(), Manner::Honest, offer, 3);
            run.send(60_000_000);
            run
        };
        let (tested, usual) = (measure(true), measure(false));
        let counted = tested.sender();
        assert!(counted.skipped >= 10, "{controller}: {counted:?}");
        // Parts in 1,000.
        let took = tested.took().as_nanos() * 1_000 / usual.took().as_nanos();
        assert!(took <= 1_000 + slower, "{controller}: {took}");
        let bytes = |run: &Run| run.bytes[0] + run.bytes[1];
        let more = bytes(&tested) * 1_000 / bytes(&usual);
        assert!(more <= 1_005, "{controller}: {more}");
    }
}

/// A hole that a test leaves in the numbers of IPv4 is as large as that of lost packets.
#[test]
fn identifications_do_not_distinguish_tests_from_losses() {
    let config = Config {
        parameters: Parameters::new().with("window", Value::Bytes(DataSize::new(30_000))),
        ..with("fixed")
    };
    let mut run = Run::new(config, path(0), Manner::Honest, Offer::default(), 5);
    run.send(3_000_000);
    let mut last: Option<(u32, u16)> = None;
    let mut holes = 0;
    for packet in &run.sent {
        let (tcp, payload) = read(packet);
        let number = u16::from_be_bytes([packet[4], packet[5]]);
        if payload.is_empty() {
            continue;
        }
        if let Some((end, before)) = last {
            let missing = tcp.sequence_number.wrapping_sub(end);
            if missing > 1 << 31 {
                // It leaves late, as a retransmission would.
                assert_eq!(number.wrapping_sub(before), 1);
                last = Some((end, number));
                continue;
            }
            let segments = missing.div_ceil(1_460);
            assert_eq!(u32::from(number.wrapping_sub(before)), segments + 1);
            holes += u32::from(missing > 0);
        }
        last = Some((
            tcp.sequence_number.wrapping_add(payload.len() as u32),
            number,
        ));
    }
    assert!(holes > 5, "{holes}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Two hosts and megabytes through loss, reordering, duplicates and damage: neither accuses
    /// the other.
    #[test]
    fn hosts_never_accuse_each_other(
        seed: u64,
        lost in 0_u64..60,
        late in 0_u64..60,
        sack: bool,
        timestamps: bool,
    ) {
        let with = |host: usize| {
            let mut config = config(host);
            config.tcp.sack = sack;
            config.tcp.timestamps = timestamps;
            config.tcp.receive_buffer = DataSize::new(4 << 20);
            config
        };
        let mut world = World::with([with(0), with(1)]);
        let mut random = Random::new(seed);
        let mut fate = move || {
            let more = Span::from_millis(random.below(60));
            match random.below(1_000) {
                drawn if drawn < lost => Fate::Lost,
                drawn if drawn < lost + late => Fate::Late(more),
                drawn if drawn < lost + late + 5 => Fate::Twice(more),
                drawn if drawn < lost + late + 7 => Fate::Damaged(drawn as usize),
                _ => Fate::Arrives,
            }
        };
        world.fates = [0, 1].map(|_| (0..4_000).map(|_| fate()).collect());
        let data = bytes(1, 2_000_000);
        let id = world.open(0, true, App::sending(&data), App::sending(&data[..1_000_000]));
        world.run(Time::from_secs(1_000));
        let statistics = world.hosts.each_ref().map(|host| *host.statistics());
        prop_assert_eq!(statistics.map(|it| it.false_feedback), [0, 0]);
        prop_assert!(world.apps[1].values().all(|app| app.received == data));
        prop_assert_eq!(world.hosts[0].acknowledged(id), Ok(()));
        let sent = world.hosts[0].connection(id).unwrap().statistics();
        prop_assert!(sent.skipped > 0 || lost > 30);
    }
}
