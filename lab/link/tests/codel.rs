//! Controlled delay against the pseudo-code of RFC 8289.

use std::collections::VecDeque;

use comity_link::{
    AnalyticLink, CodelConfig, ConfigError, DropCause, Limit, LinkConfig, Outcome, Packet, Queue,
    QueuedLink,
};
use comity_units::{DataSize, Rate, Seed, Span, Time};
use proptest::prelude::*;

fn config(codel: CodelConfig) -> LinkConfig {
    LinkConfig {
        queue: Queue::CoDel(codel),
        ..LinkConfig::new(Rate::from_mbps(4), Span::ZERO)
    }
}

/// The decisions for a host, by packet number.
fn run(link: &mut QueuedLink<usize>, offers: &[(Time, Packet)]) -> Vec<Outcome> {
    let mut outcomes = vec![None; offers.len()];
    let mut set = |token: usize, outcome: Outcome| {
        assert_eq!(
            outcomes[token].replace(outcome),
            None,
            "packet {token} came back twice"
        );
    };
    for (token, &(now, packet)) in offers.iter().enumerate() {
        if let Err(cause) = link.offer(now, packet, token) {
            set(token, Outcome::Dropped(cause));
        }
    }
    while let Some(wakeup) = link.next_wakeup() {
        while let Some(decision) = link.poll(wakeup) {
            set(decision.token, decision.outcome);
        }
    }
    outcomes
        .into_iter()
        .map(|outcome| outcome.expect("a packet did not come back"))
        .collect()
}

/// A 1,000 B packet each millisecond at 4 Mb/s (2 ms each): packet k leaves the queue at 2k ms
/// after a delay of k ms.
///
/// By hand: the delay reaches 5 ms with packet 5 at 10 ms. The first drop is therefore due at 110
/// ms, and hits packet 55, which is then first in line. The next drops are due at
///
/// ```text
/// 210                              → at 210 ms packet 106
/// 210 + 100/√2 = 280.711           → at 282 ms packet 143
/// 280.711 + 100/√3 = 338.446       → at 340 ms packet 173
/// 338.446 + 100/√4 = 388.446       → at 390 ms packet 199
/// 388.446 + 100/√5 = 433.167       → at 434 ms packet 222
/// ```
#[test]
fn the_drop_schedule_worked_by_hand() {
    let mut link = QueuedLink::new(&config(CodelConfig::default()), Seed::new(0)).unwrap();
    let packet = Packet {
        bytes: 1_000,
        ecn_capable: false,
        flow: 0,
    };
    let offers: Vec<(Time, Packet)> = (0..230).map(|k| (Time::from_millis(k), packet)).collect();
    let outcomes = run(&mut link, &offers);
    let dropped: Vec<usize> = (0..230)
        .filter(|&k| outcomes[k] == Outcome::Dropped(DropCause::EarlyDrop))
        .take_while(|&k| k < 225)
        .collect();
    assert_eq!(dropped, [55, 106, 143, 173, 199, 222]);
    // The link never idles: a drop costs no time.
    let departures: Vec<u64> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Carried(passage) => Some(passage.departure.as_nanos()),
            _ => None,
        })
        .collect();
    assert!(
        departures
            .iter()
            .zip(1..)
            .all(|(&at, k)| at == k * 2_000_000)
    );
}

/// The same with marks: no packet is dropped, and each mark replaces a drop. A marked packet is
/// sent instead of its successor, so packet k still leaves the queue at 2k ms.
#[test]
fn marks_replace_due_drops() {
    let codel = CodelConfig {
        ecn: true,
        ..CodelConfig::default()
    };
    let mut link = QueuedLink::new(&config(codel), Seed::new(0)).unwrap();
    let packet = Packet {
        bytes: 1_000,
        ecn_capable: true,
        flow: 0,
    };
    let offers: Vec<(Time, Packet)> = (0..230).map(|k| (Time::from_millis(k), packet)).collect();
    let marked: Vec<u64> = run(&mut link, &offers)
        .iter()
        .map(|outcome| match outcome {
            Outcome::Carried(passage) => *passage,
            other => panic!("{other:?}"),
        })
        .filter(|passage| passage.marked)
        .map(|passage| passage.start.as_nanos() / 1_000_000)
        .collect();
    assert_eq!(marked[..6], [110, 210, 282, 340, 390, 434]);
}

/// 1,500 B each 100 ms at 120 kb/s, with two packets ahead from the start. Each waits 200 ms, far
/// above the target, and leaves exactly one behind. One full packet is no queue to control; it
/// would be one if the largest packet were a byte smaller.
#[test]
fn one_full_packet_behind_is_no_queue() {
    let packet = Packet {
        bytes: 1_500,
        ecn_capable: false,
        flow: 0,
    };
    let offers: Vec<(Time, Packet)> = [0, 0]
        .into_iter()
        .chain((0..50).map(|k| 50 + 100 * k))
        .map(|millis| (Time::from_millis(millis), packet))
        .collect();
    for (mtu, is_controlled) in [(1_500, false), (1_499, true)] {
        let codel = CodelConfig {
            mtu: DataSize::new(mtu),
            ..CodelConfig::default()
        };
        let config = LinkConfig {
            queue: Queue::CoDel(codel),
            ..LinkConfig::new(Rate::from_kbps(120), Span::ZERO)
        };
        let outcomes = run(
            &mut QueuedLink::new(&config, Seed::new(0)).unwrap(),
            &offers,
        );
        let drops = outcomes
            .iter()
            .any(|outcome| matches!(outcome, Outcome::Dropped(_)));
        assert_eq!(drops, is_controlled, "largest packet {mtu} B");
    }
}

#[test]
fn an_analytic_link_refuses_and_names_the_alternative() {
    let error = AnalyticLink::new(&config(CodelConfig::default()), Seed::new(0)).unwrap_err();
    assert_eq!(error, ConfigError::NeedsQueuedLink);
    assert!(error.to_string().contains("queued link"), "{error}");
}

/// The RFC's pseudo-code literally: signed times, floating-point drop intervals, no options.
struct Literal {
    target: i64,
    interval: i64,
    mtu: u64,
    first_above_time: i64,
    drop_next: i64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    queue: VecDeque<(usize, i64, u32)>,
    dropped: Vec<usize>,
}

impl Literal {
    fn bytes(&self) -> u64 {
        self.queue.iter().map(|entry| u64::from(entry.2)).sum()
    }

    fn dodequeue(&mut self, now: i64) -> (Option<(usize, i64, u32)>, bool) {
        let Some(packet) = self.queue.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        let mut ok_to_drop = false;
        if now - packet.1 < self.target || self.bytes() <= self.mtu {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.interval;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(packet), ok_to_drop)
    }

    fn control_law(&self, t: i64) -> i64 {
        t + (self.interval as f64 / f64::from(self.count).sqrt()) as i64
    }

    fn dequeue(&mut self, now: i64) -> Option<(usize, i64, u32)> {
        let (mut packet, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.dropped.extend(packet.map(|entry| entry.0));
                self.count += 1;
                (packet, ok_to_drop) = self.dodequeue(now);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            self.dropped.extend(packet.map(|entry| entry.0));
            (packet, _) = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16 * self.interval {
                self.count = delta;
            }
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
        }
        packet
    }

    /// Start of service of each packet that is sent, 4 Mb/s being 2,000 ns a byte.
    fn run(mut self, offers: &[(Time, Packet)]) -> (Vec<(usize, u64)>, Vec<usize>) {
        let mut sent = Vec::new();
        let mut free_at: i64 = 0;
        let mut next = 0;
        while next < offers.len() || !self.queue.is_empty() {
            if self.queue.is_empty() && next < offers.len() {
                free_at = free_at.max(offers[next].0.as_nanos() as i64);
            }
            // Everything offered before the link reads the queue; an idle link removes the first
            // packet by itself.
            let is_idle = self.queue.is_empty();
            while next < offers.len() {
                let (at, packet) = offers[next];
                let at = at.as_nanos() as i64;
                if at < free_at || (is_idle && self.queue.is_empty() && at == free_at) {
                    self.queue.push_back((next, at, packet.bytes));
                    next += 1;
                } else {
                    break;
                }
            }
            if let Some((number, _, bytes)) = self.dequeue(free_at) {
                sent.push((number, free_at as u64));
                free_at += i64::from(bytes) * 2_000;
            }
        }
        (sent, self.dropped)
    }
}

/// Loads that rise and fall around the rate of the link, so that dropping starts, ends and starts
/// again.
fn offers() -> impl Strategy<Value = Vec<(Time, Packet)>> {
    let phase = (300_000..4_000_000_u64, 1..400_usize, 200..1_500_u32);
    prop::collection::vec(phase, 1..8).prop_map(|phases| {
        let mut now = 1;
        let mut offers = Vec::new();
        for (gap, count, bytes) in phases {
            for _ in 0..count {
                offers.push((
                    Time::from_nanos(now),
                    Packet {
                        bytes,
                        ecn_capable: false,
                        flow: 0,
                    },
                ));
                now += gap;
            }
        }
        offers
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn agrees_with_the_pseudo_code(
        offers in offers(), target in 1..20_u64, interval in 20..200_u64
    ) {
        let codel = CodelConfig {
            target: Span::from_millis(target),
            interval: Span::from_millis(interval),
            limit: Limit::Unlimited,
            ecn: false,
            mtu: DataSize::new(1_500),
        };
        let literal = Literal {
            target: target as i64 * 1_000_000,
            interval: interval as i64 * 1_000_000,
            mtu: 1_500,
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
            queue: VecDeque::new(),
            dropped: Vec::new(),
        };
        let (sent, dropped) = literal.run(&offers);
        let mut link = QueuedLink::new(&config(codel), Seed::new(0)).unwrap();
        let outcomes = run(&mut link, &offers);
        for (number, start) in &sent {
            let Outcome::Carried(passage) = outcomes[*number] else {
                panic!("packet {number} was {:?}", outcomes[*number]);
            };
            prop_assert_eq!(passage.start.as_nanos(), *start);
        }
        for number in &dropped {
            prop_assert_eq!(outcomes[*number], Outcome::Dropped(DropCause::EarlyDrop));
        }
        prop_assert_eq!(sent.len() + dropped.len(), offers.len());
    }
}
