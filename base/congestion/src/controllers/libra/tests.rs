//! Steps by hand.

extern crate std;
use super::*;
use crate::{Arrived, LossCause};
use comity_units::PacketNumber;

const MSS: DataSize = DataSize::new(1_000);

fn config() -> LibraConfig {
    LibraConfig {
        mss: MSS,
        initial_window: MSS * 10,
        initial_ssthresh: MSS * 10,
        max_window: DataSize::MAX,
        a: 1.0,
        b: 1.0,
        x: 2.0,
        y: 2.0,
        capacity: Some(Rate::from_mbps(100)),
        increase: Increase::PerAck,
        pairs: true,
        memory: Span::MAX,
        seed: Seed::new(1),
    }
}

fn ack(at: u64, rtt: Option<u64>) -> Ack {
    Ack {
        now: Time::from_millis(at),
        acked: MSS,
        rtt: rtt.map(Span::from_millis),
        in_flight: MSS * 9,
        app_limited: false,
        in_recovery: false,
        marked: 0,
        packets: 1,
        sample: None,
    }
}

fn loss(at: u64) -> Loss {
    Loss {
        now: Time::from_millis(at),
        sent_at: Time::from_millis(at),
        lost: MSS,
        in_flight: MSS * 10,
        window: MSS * 10,
        cause: LossCause::Reordering,
        restart: false,
    }
}

fn timeout(at: u64, consecutive: u32) -> Timeout {
    Timeout {
        now: Time::from_millis(at),
        in_flight: MSS * 5,
        window: MSS * 10,
        consecutive,
        duplicate_seen: false,
    }
}

fn sent(at: Time, number: u64, in_flight: u64) -> Sent {
    Sent {
        now: at,
        payload: MSS,
        wire: MSS + DataSize::new(40),
        number: PacketNumber::new(number),
        in_flight: MSS * in_flight,
        app_limited: false,
    }
}

fn close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-6 * expected.max(5.0),
        "{found} is not {expected}"
    );
}

/// C = 100 Mb/s, A = B = 1 s, X = 2, Y = 2, from a window of 10 segments. α is 200 where β = 0.
#[test]
fn one_acknowledgement_at_the_round_trips_of_the_paper() {
    for (rtt, grown) in [
        // 200 · 0.03² / 1.03 / 10
        (30, 10.017_476),
        // 200 · 0.09² / 1.09 / 10
        (90, 10.148_624),
        // 200 · 0.18² / 1.18 / 10
        (180, 10.549_153),
    ] {
        let mut controller = Libra::new(config());
        controller.on_ack(&ack(rtt, Some(rtt)));
        close(controller.window(), grown);
    }
}

#[test]
fn a_full_queue_slows_the_growth_down_by_e_to_the_y() {
    let mut controller = Libra::new(config());
    controller.on_ack(&ack(50, Some(50)));
    // 200 · 0.05² / 1.05 / 10
    close(controller.window(), 10.047_619);
    // β = 1: 200 · 0.135335 · 0.15² / 1.15 / 10.047619
    controller.on_ack(&ack(200, Some(150)));
    close(controller.window(), 10.047_619 + 0.052_706);
    // β = (100 − 50) / (150 − 50) = 1/2: 200 · 0.367879 · 0.1² / 1.1 / 10.100325
    controller.on_ack(&ack(300, Some(100)));
    close(controller.window(), 10.100_325 + 0.066_223);
    // Without a new sample the growth does not change.
    let before = controller.window();
    controller.on_ack(&ack(310, None));
    close(controller.window(), before + 0.668_872 / before);
}

#[test]
fn a_loss_takes_less_from_longer_round_trips() {
    for (rtt, left) in [
        (None, 0.5),
        // 1 − 1 / (2 · 1.03)
        (Some(30), 0.514_563),
        (Some(90), 0.541_284),
        (Some(180), 0.576_271),
    ] {
        let mut controller = Libra::new(LibraConfig {
            initial_window: MSS * 100,
            x: 0.0,
            ..config()
        });
        controller.on_ack(&ack(rtt.unwrap_or(1), rtt));
        controller.on_loss(&loss(500));
        close(controller.window(), 100.0 * left);
        close(controller.ssthresh(), 100.0 * left);
    }
}

#[test]
fn a_timeout_goes_back_to_one_segment_and_half_the_window() {
    let mut controller = Libra::new(config());
    controller.on_ack(&ack(100, Some(100)));
    let before = controller.window();
    controller.on_timeout(&timeout(400, 1));
    assert_eq!(controller.window(), 1.0);
    close(controller.ssthresh(), before / 2.0);
    // A second timeout in a row concerns the same data.
    controller.on_timeout(&timeout(1_000, 2));
    close(controller.ssthresh(), before / 2.0);
    // Slow start as in TCP: one segment for each acknowledgement, up to the threshold.
    for (at, window) in [(1_100, 2.0), (1_200, 3.0), (1_300, 4.0), (1_400, 5.0)] {
        controller.on_ack(&ack(at, None));
        assert_eq!(controller.window(), window);
        assert_eq!(controller.decision().phase, Phase::SlowStart);
    }
    controller.on_ack(&ack(1_500, None));
    assert_eq!(controller.window(), 6.0);
    assert_eq!(controller.decision().phase, Phase::CongestionAvoidance);
    controller.on_ack(&ack(1_600, None));
    assert!(
        (6.0..7.0).contains(&controller.window()),
        "{}",
        controller.window()
    );
}

#[test]
fn floors_hold_where_figure_2_has_none() {
    let mut controller = Libra::new(LibraConfig { b: 5.0, ..config() });
    controller.on_loss(&loss(1));
    assert_eq!((controller.window(), controller.ssthresh()), (1.0, 2.0));
    controller.on_timeout(&timeout(2, 1));
    assert_eq!((controller.window(), controller.ssthresh()), (1.0, 2.0));
    assert!(controller.decision().window >= MSS);
    // 10 Gb/s and 200 ms would open a small window by 667 segments for each acknowledgement.
    let mut controller = Libra::new(LibraConfig {
        capacity: Some(Rate::from_mbps(10_000)),
        ..config()
    });
    controller.on_ack(&ack(200, Some(200)));
    assert_eq!(controller.window(), 11.0);
}

/// An acknowledgement that covers three segments, from a receiver that delays acknowledgements,
/// counts as three.
#[test]
fn by_bytes_an_acknowledgement_is_worth_what_it_covers() {
    let of_three = Ack {
        acked: MSS * 3,
        packets: 3,
        ..ack(90, Some(90))
    };
    // 3 · 200 · 0.09² / 1.09 / 10
    for (increase, grown) in [
        (Increase::PerByte { limit: 2 }, 10.445_872),
        (Increase::PerAck, 10.148_624),
    ] {
        let mut controller = Libra::new(LibraConfig {
            increase,
            ..config()
        });
        controller.on_ack(&of_three);
        close(controller.window(), grown);
    }
    // In slow start it counts as the limit of RFC 3465 at most.
    let mut controller = Libra::new(LibraConfig {
        increase: Increase::PerByte { limit: 2 },
        initial_ssthresh: DataSize::MAX,
        ..config()
    });
    controller.on_ack(&of_three);
    close(controller.window(), 12.0);
}

#[test]
fn without_a_capacity_it_grows_as_tcp() {
    let mut controller = Libra::new(LibraConfig {
        capacity: None,
        ..config()
    });
    controller.on_ack(&ack(200, Some(200)));
    close(controller.window(), 10.1);
    assert_eq!(controller.capacity(), None);
}

#[test]
fn recovery_and_want_of_data_do_not_grow_the_window() {
    let mut controller = Libra::new(config());
    for held in [
        Ack {
            app_limited: true,
            ..ack(100, Some(100))
        },
        Ack {
            in_recovery: true,
            ..ack(200, Some(100))
        },
    ] {
        controller.on_ack(&held);
        assert_eq!(controller.window(), 10.0);
    }
}

// ------------------------------------------------------------------------ pairs

#[test]
fn pairs_leave_together_inside_intervals_of_two_packets_each() {
    let mut controller = Libra::new(LibraConfig { x: 0.0, ..config() });
    assert_eq!(
        controller.decision().pacing,
        Pacing::Unpaced,
        "no round trip known"
    );
    let start = Time::from_millis(100);
    controller.on_ack(&Ack {
        in_flight: MSS,
        ..ack(100, Some(100))
    });
    // Five intervals of 20 ms.
    let mut number = 0;
    for interval in 0..5 {
        let Pacing::At(first) = controller.decision().pacing else {
            panic!("not paced");
        };
        let begin = start + Span::from_millis(20) * interval;
        assert!((begin..begin + Span::from_millis(20)).contains(&first));
        controller.on_sent(&sent(first, number, 2));
        assert_eq!(
            controller.decision().pacing,
            Pacing::At(first),
            "right behind"
        );
        controller.on_sent(&sent(first, number + 1, 3));
        number += 2;
    }
}

#[test]
fn slow_start_has_twice_as_many_intervals() {
    let mut controller = Libra::new(LibraConfig {
        initial_ssthresh: DataSize::MAX,
        ..config()
    });
    controller.on_ack(&ack(100, Some(100)));
    assert_eq!(controller.window(), 11.0);
    for number in 0..40 {
        let Pacing::At(at) = controller.decision().pacing else {
            panic!("not paced");
        };
        // The end of the packet's interval, with 22 packets in a round trip.
        let end =
            Time::from_millis(100) + Span::from_millis(100).mul_f64(1.0 / 11.0) * (number / 2 + 1);
        assert!(at <= end, "{number}: {at} after {end}");
        controller.on_sent(&sent(at, number, 1));
    }
}

#[test]
fn a_pair_waits_for_room_for_both_but_not_for_ever_and_not_in_trouble() {
    let paced = || {
        let mut controller = Libra::new(LibraConfig { x: 0.0, ..config() });
        controller.on_ack(&ack(100, Some(100)));
        controller
    };
    let at = |controller: &Libra| match controller.decision().pacing {
        Pacing::At(at) => at,
        other => panic!("{other:?}"),
    };
    // Nine of ten packets are in flight: the pair is held, for a round trip at most.
    let mut controller = paced();
    controller.on_ack(&ack(150, None));
    assert_eq!(at(&controller), Time::from_millis(250));
    // Room for two: the pair leaves at its own time.
    controller.on_ack(&Ack {
        in_flight: MSS * 8,
        ..ack(160, None)
    });
    assert!(
        at(&controller) < Time::from_millis(120),
        "{:?}",
        at(&controller)
    );
    // After a loss, in a recovery and after a timeout, the next group leaves at once.
    controller.on_ack(&ack(170, None));
    controller.on_loss(&loss(171));
    assert!(at(&controller) <= Time::from_millis(171));
    let mut controller = paced();
    controller.on_ack(&ack(150, None));
    controller.on_timeout(&timeout(180, 1));
    assert!(at(&controller) <= Time::from_millis(180));
    // What the transport then counts as in flight need not be in the network.
    controller.on_ack(&ack(190, None));
    assert!(at(&controller) <= Time::from_millis(190));
}

// ------------------------------------------------------------------------ capacity

/// A controller that sends packets at once, and receives their ACKs 10 ms after their arrivals.
struct Probe {
    controller: Libra,
}

impl Probe {
    fn new(packets: u64) -> Self {
        let mut controller = Libra::new(LibraConfig {
            capacity: None,
            ..config()
        });
        for number in 0..packets {
            controller.on_sent(&sent(Time::ZERO, number, number + 1));
        }
        Self { controller }
    }

    /// The ACK of a packet after this many microseconds.
    fn answer(&mut self, number: u64, micros: u64) {
        self.controller.on_in_order_ack(&InOrderAck {
            now: Time::from_micros(micros),
            number: PacketNumber::new(number),
            arrived_at: Some(Arrived {
                at: Time::from_micros(micros - 10_000),
                tick: Span::from_micros(1),
            }),
        });
    }

    fn mbps(&self) -> f64 {
        self.controller.capacity().map_or(0.0, Rate::as_mbps_f64)
    }
}

/// 1040 bytes in 832 µs are 10 Mb/s.
#[test]
fn four_pairs_measure_the_capacity() {
    let mut probe = Probe::new(5);
    for number in 0..5 {
        assert_eq!(probe.controller.capacity(), None);
        probe.answer(number, 50_832 + 832 * number);
    }
    close(probe.mbps(), 10.0);
}

/// The first pair met no other traffic, but the mean dispersion of the four pairs is more than
/// twice as long.
#[test]
fn an_estimate_that_is_not_believed_is_no_capacity_and_grows_no_faster_than_tcp() {
    let mut probe = Probe::new(8);
    for (number, micros) in [
        (0, 50_832),
        (1, 51_664),
        (3, 55_500),
        (5, 59_200),
        (7, 63_000),
    ] {
        probe.answer(number, micros);
    }
    assert_eq!(probe.controller.capacity(), None);
    // 7 packets in 12,168 µs: 4.786 Mb/s, which would open the window by 2 · 4.786 · 0.05² / 1.05.
    let grows = |probe: &Probe, rtt| {
        let mut controller = probe.controller.clone();
        let before = controller.window();
        controller.on_ack(&ack(100, Some(rtt)));
        (controller.window() - before) * before
    };
    close(grows(&probe, 50), 2.0 * 4.786_324_8 * 0.0025 / 1.05);
    close(grows(&probe, 1_000), 1.0);
}

/// Delayed acknowledgements: one for every second packet, or for every fourth.
#[test]
fn packets_that_are_not_adjacent_measure_the_capacity_too() {
    for step in [2, 4] {
        let mut probe = Probe::new(40);
        for number in (step - 1..40).step_by(step as usize) {
            probe.answer(number, 50_000 + 832 * (number + 1));
        }
        close(probe.mbps(), 10.0);
    }
}

#[test]
fn of_pairs_that_cross_traffic_disturbed_the_least_delayed_counts() {
    let mut controller = Libra::new(LibraConfig {
        capacity: None,
        x: 0.0,
        ..config()
    });
    let mut mbps = std::vec::Vec::new();
    controller.on_ack(&ack(1, Some(50)));
    // Delay of the first packet and dispersion: expanded, compressed, clean, expanded again.
    for (pair, first, dispersion) in [
        (0, 50_832, 2_000),
        (1, 55_000, 300),
        (2, 50_832, 832),
        (3, 52_000, 1_500),
        (4, 52_000, 400),
    ] {
        let left = Time::from_millis(1_000 * (pair + 1));
        // The ACK of the first covers the packets between the pairs, 1000 in a second: 8.32 Mb/s.
        let number = |of_pair| 1_000 * pair + of_pair;
        for of_pair in 0..2 {
            controller.on_sent(&sent(left, number(of_pair), 1));
        }
        for of_pair in 0..2 {
            controller.on_in_order_ack(&InOrderAck {
                now: left + Span::from_micros(first + of_pair * dispersion),
                number: PacketNumber::new(number(of_pair)),
                arrived_at: None,
            });
        }
        mbps.push(controller.capacity().map(Rate::as_mbps_f64));
    }
    assert_eq!(mbps[..3], [None; 3]);
    close(mbps[3].unwrap(), 10.0);
    close(mbps[4].unwrap(), 10.0);
}

/// The ACKs, which may be compressed, show 10 Mb/s. Without time stamps the flow itself must
/// deliver 1/24 of that.
#[test]
fn compressed_acknowledgements_are_not_believed() {
    let is_known = |between: u64, tick: Option<u64>| {
        let mut controller = Probe::new(0).controller;
        for pair in 0..10 {
            let left = Time::from_secs(pair + 1);
            for of_pair in 0..2 {
                controller.on_sent(&sent(left, between * pair + of_pair, 1));
            }
            for of_pair in 0..2 {
                let now = left + Span::from_micros(50_832 + 832 * of_pair);
                controller.on_in_order_ack(&InOrderAck {
                    now,
                    number: PacketNumber::new(between * pair + of_pair),
                    arrived_at: tick.map(|tick| Arrived {
                        at: now,
                        tick: Span::from_micros(tick),
                    }),
                });
            }
        }
        controller.capacity().is_some()
    };
    // 10 Mb/s / 24 are 50.08 packets in a second.
    assert!(!is_known(50, None));
    assert!(is_known(51, None));
    assert!(is_known(3, Some(1)));
}

#[test]
fn the_clock_of_the_receiver_is_believed_before_compressed_acknowledgements() {
    let mut controller = Probe::new(5).controller;
    for number in 0..5 {
        let (now, arrived) = (60_000 + 10 * number, 7_000 + 832 * number);
        controller.on_in_order_ack(&InOrderAck {
            now: Time::from_micros(now),
            number: PacketNumber::new(number),
            arrived_at: Some(Arrived {
                at: Time::from_micros(arrived),
                tick: Span::from_micros(1),
            }),
        });
    }
    close(controller.capacity().unwrap().as_mbps_f64(), 10.0);
}

/// A queue on the reverse path shrinks from 400 ms to 100 ms and then to 50 ms. Four clean pairs
/// arrive while it is longest. The second packet of the fifth pair is acknowledged 3 ms late, and
/// the first packet of the sixth queues behind other traffic. Neither pair sets the estimate,
/// although their round trips are shorter. The last pair is as clean as the first four. The
/// receiver's clock is an hour ahead.
#[test]
fn queues_on_the_way_back_hide_no_good_pair() {
    let mut controller = Libra::new(LibraConfig {
        capacity: None,
        x: 0.0,
        ..config()
    });
    controller.on_ack(&ack(1, Some(50)));
    let mut mbps = std::vec::Vec::new();
    for (pair, forth, dispersion, back) in [
        (0, 10_000, 832, 400_000),
        (1, 10_000, 832, 400_000),
        (2, 10_000, 832, 400_000),
        (3, 10_000, 832, 400_000),
        (4, 10_000, 832 + 3_000, 100_000),
        (5, 13_000, 200, 50_000),
        (6, 10_000, 832, 300_000),
    ] {
        let left = Time::from_secs(pair + 1);
        for of_pair in 0..2 {
            controller.on_sent(&sent(left, 2 * pair + of_pair, 1));
        }
        for of_pair in 0..2 {
            let arrived_at = left + Span::from_micros(forth + of_pair * dispersion);
            controller.on_in_order_ack(&InOrderAck {
                now: arrived_at + Span::from_micros(back),
                number: PacketNumber::new(2 * pair + of_pair),
                arrived_at: Some(Arrived {
                    at: arrived_at + Span::from_secs(3_600),
                    tick: Span::from_micros(1),
                }),
            });
        }
        mbps.push(controller.capacity().map(Rate::as_mbps_f64));
    }
    for found in &mbps[3..] {
        close(found.unwrap(), 10.0);
    }
}

/// Groups that leave at whole seconds, each with the arrivals of two of its packets: position, and
/// microseconds since departure. Four pairs that queued come before them.
fn after_groups(groups: &[(u64, [(u64, u64); 2])]) -> Libra {
    let mut controller = Libra::new(LibraConfig {
        capacity: None,
        x: 0.0,
        ..config()
    });
    let mut first = 0;
    let queued = [(2, [(0, 50_000), (1, 50_832)]); 4];
    let groups = queued.iter().chain(groups);
    for (left, (packets, arrivals)) in (1..).map(Time::from_secs).zip(groups) {
        for index in 0..*packets {
            controller.on_sent(&sent(left, first + index, index + 1));
        }
        for (index, micros) in arrivals {
            let arrived_at = left + Span::from_micros(*micros);
            controller.on_in_order_ack(&InOrderAck {
                now: arrived_at + Span::from_millis(10),
                number: PacketNumber::new(first + index),
                arrived_at: Some(Arrived {
                    at: arrived_at,
                    tick: Span::from_micros(1),
                }),
            });
        }
        // A gap in the numbers: not one group.
        first += packets + 1;
    }
    controller
}

/// 832 µs for a packet. The third and the fifth packet of a first flight arrive after 3 and 5 such
/// times, 6,656 µs in sum. A pair whose second packet is acknowledged 3 ms late arrives after 1 and
/// 2 such times and 3 ms, 5,496 µs in sum. The order of the two does not matter.
#[test]
fn what_packets_wait_behind_their_own_group_does_not_count() {
    let flight = (10, [(2, 3 * 832), (4, 5 * 832)]);
    let late = (2, [(0, 832), (1, 2 * 832 + 3_000)]);
    for groups in [[flight, late], [late, flight]] {
        let found = after_groups(&groups).capacity();
        close(found.unwrap().as_mbps_f64(), 10.0);
    }
}

/// The last two packets of a long group are 832 µs and 3 ms apart, and 14 + 15 of these long
/// dispersions exceed their delays.
#[test]
fn a_late_packet_is_not_excused_by_its_position() {
    let clean = (2, [(0, 832), (1, 2 * 832)]);
    let late = (16, [(14, 15 * 832), (15, 16 * 832 + 3_000)]);
    for groups in [[clean, late], [late, clean]] {
        let found = after_groups(&groups).capacity();
        close(found.unwrap().as_mbps_f64(), 10.0);
    }
}

#[test]
fn packets_that_left_apart_measure_nothing() {
    let mut controller = Libra::new(LibraConfig {
        capacity: None,
        ..config()
    });
    for (number, left) in [(0, 0), (1, 500)] {
        controller.on_sent(&sent(Time::from_micros(left), number, number + 1));
    }
    for (number, now) in [(0, 50_000), (1, 50_832)] {
        controller.on_in_order_ack(&InOrderAck {
            now: Time::from_micros(now),
            number: PacketNumber::new(number),
            arrived_at: None,
        });
    }
    assert_eq!(controller.capacity(), None);
}

/// The path changes from 10 Mb/s to 2 Mb/s with a longer round trip: the old pairs keep the minimum
/// sum until they expire. Meanwhile the mean is too long for the old capacity.
#[test]
fn a_new_route_is_learnt_after_the_memory() {
    let mut controller = Libra::new(LibraConfig {
        capacity: None,
        memory: Span::from_secs(10),
        ..config()
    });
    for second in 0..40 {
        let left = Time::from_secs(second);
        let (delay, dispersion) = if second < 10 {
            (50_832, 832)
        } else {
            (90_000, 4_160)
        };
        for of_pair in 0..2 {
            // Numbers with gaps between the pairs: not one group.
            controller.on_sent(&sent(left, 1_000 * second + of_pair, of_pair + 1));
        }
        for of_pair in 0..2 {
            controller.on_in_order_ack(&InOrderAck {
                now: left + Span::from_micros(delay + of_pair * dispersion),
                number: PacketNumber::new(1_000 * second + of_pair),
                arrived_at: None,
            });
        }
        let expected = match second {
            3..=12 => Some(10.0),
            33.. => Some(2.0),
            0..=2 | 14..=19 => None,
            _ => continue,
        };
        let found = controller.capacity().map(Rate::as_mbps_f64);
        match (found, expected) {
            (Some(found), Some(expected)) => close(found, expected),
            _ => assert_eq!(found, expected, "{second}"),
        }
    }
}

#[test]
fn a_group_is_what_one_acknowledgement_covers_and_at_most_half_the_window() {
    let mut controller = Libra::new(LibraConfig {
        capacity: None,
        initial_window: MSS * 40,
        ..config()
    });
    assert_eq!(controller.group(), 2, "1 + the one packet that ACKs cover");
    controller.covered = 4.4;
    assert_eq!(controller.group(), 5);
    controller.window = 7.0;
    assert_eq!(controller.group(), 3);
    controller.window = 1.0;
    assert_eq!(controller.group(), 2);
}

#[test]
fn what_an_acknowledgement_covers_is_averaged_over_eight() {
    let mut controller = Libra::new(config());
    for (packets, expected) in [(5, 1.5), (1, 1.437_5), (3, 1.632_812_5)] {
        controller.on_ack(&Ack {
            packets,
            ..ack(100, Some(100))
        });
        close(controller.covered, expected);
    }
}

#[test]
fn a_recovery_deflates_the_window_and_ends() {
    let mut controller = Libra::new(config());
    controller.on_event(Event::Deflated(MSS * 3));
    close(controller.window(), 7.0);
    controller.on_event(Event::Loss(&loss(100)));
    assert!(controller.in_recovery);
    controller.on_event(Event::Recovered);
    assert!(!controller.in_recovery);
}

#[test]
fn a_group_waits_for_room_only_behind_two_others() {
    let mut controller = Libra::new(config());
    controller.on_ack(&ack(100, Some(100)));
    controller.window = 4.0;
    let now = Time::from_millis(100);
    for (in_flight, is_held) in [(2, false), (3, false), (4, true)] {
        controller.hold(now, MSS * in_flight);
        let expected = if is_held {
            now + Span::from_millis(100)
        } else {
            Time::ZERO
        };
        assert_eq!(controller.held_until, expected, "{in_flight} in flight");
    }
    let mut controller = Libra::new(LibraConfig {
        capacity: None,
        ..config()
    });
    controller.on_ack(&ack(100, Some(100)));
    (controller.window, controller.covered) = (7.0, 4.4);
    assert_eq!(controller.group(), 3);
    controller.hold(now, MSS * 5);
    assert_eq!(controller.held_until, Time::ZERO);
    controller.hold(now, MSS * 6);
    assert_eq!(controller.held_until, now + Span::from_millis(100));
}

#[test]
fn it_says_its_threshold_and_what_it_needs() {
    let known = Libra::new(config());
    assert_eq!(known.decision().ssthresh, Some(MSS * 10));
    assert!(!known.needs().in_order_acks);
    let estimating = Libra::new(LibraConfig {
        capacity: None,
        ..config()
    });
    assert!(estimating.needs().in_order_acks);
}
