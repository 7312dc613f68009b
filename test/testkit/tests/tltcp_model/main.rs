//! The connection against slow, literal implementations. They follow sections 5.1 to 5.5 of the
//! TLTCP paper, over Tahoe, the fast retransmit of RFC 5681, the fast recovery of RFC 6582, or the
//! loss recovery of RFC 6675 with its names (`HighRxt`, `SetPipe()`, `NextSeg()`). Packets have one
//! byte, the send window is a list of numbers as in the paper, and the lifetime timer is the loop
//! of figure 1.
//!
//! The controller is not tested here: both sides use the same one.

mod receiver;
mod sender;

use std::collections::{BTreeSet, VecDeque};

use comity_congestion::RttConfig;
use comity_congestion::recovery::{RecoveryConfig, RecoveryKind};
use comity_tcp::timeline::TimelineConfig;
use comity_tcp::{Config, Connection, Options, Segment};
use comity_testkit::tcp::{BORN, fixed, listener, opener, reno};
use comity_units::{DataSize, Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use self::receiver::Receiver;
use self::sender::{Kind, Sender};

/// A packet's information about discarded numbers: `seq_update`, and the hole before its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Update {
    expected: u32,
    void: Option<(u32, u32)>,
}

/// A data packet.
type Packet = (u32, Update);

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The packet sent this many after the oldest one arrives, with its options or without.
    DataArrives(usize, bool),
    DataIsLost,
    AckArrives(usize, bool),
    AckIsLost,
    Wait(u64),
}

/// Which one arrives, and whether with its options.
fn arrival() -> impl Strategy<Value = (usize, bool)> {
    (
        prop_oneof![8 => Just(0), 1 => 1_usize..6],
        prop::bool::weighted(0.95),
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => arrival().prop_map(|(which, is_whole)| Step::DataArrives(which, is_whole)),
        2 => Just(Step::DataIsLost),
        6 => arrival().prop_map(|(which, is_whole)| Step::AckArrives(which, is_whole)),
        1 => Just(Step::AckIsLost),
        2 => (1_u64..15).prop_map(Step::Wait),
    ]
}

/// Removes the element this many after the first, or the last one.
fn take<T>(queue: &mut VecDeque<T>, which: usize) -> Option<T> {
    queue.remove(which.min(queue.len().saturating_sub(1)))
}

/// The connections under test, with their packets in flight.
struct Real {
    ends: [Connection; 2],
    data: VecDeque<Segment>,
    acks: VecDeque<Segment>,
}

impl Real {
    /// Collects departures, after the sender's timers.
    fn drain(&mut self, now: Time) {
        let [sender, receiver] = &mut self.ends;
        if sender.next_timer() <= now {
            sender.on_timer(now);
        }
        self.data
            .extend(core::iter::from_fn(|| sender.poll_transmit(now)).filter(|it| it.payload > 0));
        self.acks
            .extend(core::iter::from_fn(|| receiver.poll_transmit(now)));
    }
}

fn packet(segment: &Segment) -> Packet {
    let update = segment.options.seq_update;
    let update = update.expect("every segment carries it");
    let void = (update.void_start.get(), update.void_end.get());
    let update = Update {
        expected: update.expected.get(),
        void: update.has_void().then_some(void),
    };
    (segment.sequence.get(), update)
}

fn blocks(segment: &Segment) -> Vec<(u32, u32)> {
    let blocks = segment.options.sack.as_slice().iter();
    blocks
        .map(|block| (block.start.get(), block.end.get()))
        .collect()
}

fn without_options(segment: Segment) -> Segment {
    Segment {
        options: Options::default(),
        ..segment
    }
}

/// RFC 6582 has a variant of NewReno with the bugfix.
fn recovery(kind: Kind, impatient: bool) -> RecoveryConfig {
    match kind {
        Kind::Tahoe => RecoveryConfig::TAHOE,
        Kind::Reno => RecoveryConfig {
            bugfix: false,
            ..RecoveryConfig::RENO
        },
        Kind::NewReno => RecoveryConfig {
            kind: RecoveryKind::NewReno {
                impatient,
                deflate_window: false,
            },
            ..RecoveryConfig::NEW_RENO
        },
        Kind::Sack => RecoveryConfig::SACK,
    }
}

proptest! {
    /// At every step, both have the same packets and acknowledgements in flight, and the same
    /// logical window.
    #[test]
    fn the_connection_sends_what_the_paper_says(
        lengths in vec((1_u32..25, 0_u64..25), 1..8),
        is_in_order in any::<bool>(),
        last in prop_oneof![Just(1_000_u32), 1_u32..30],
        kind in prop::sample::select(vec![Kind::Tahoe, Kind::Reno, Kind::NewReno, Kind::Sack]),
        (is_impatient, is_blind) in any::<(bool, bool)>(),
        size in 4_usize..14,
        is_fixed in any::<bool>(),
        steps in vec(step(), 0..150),
        timeout in prop_oneof![Just(1_000_000_u64), 20_u64..60],
    ) {
        // The paper's deadlines ascend; the last section has none, so some data is always current.
        let mut deadline = 0;
        let mut sections: Vec<_> = lengths
            .into_iter()
            .map(|(length, life)| {
                deadline = if is_in_order { deadline + life.max(1) } else { 1 + life * 4 };
                (length, deadline)
            })
            .collect();
        sections.push((last, 1_000_000));
        let config = Config {
            mss: 1,
            receive_buffer: DataSize::new(60_000),
            recovery: recovery(kind, is_impatient),
            sack: kind == Kind::Sack,
            timeline: Some(TimelineConfig { blind_spot: is_blind, ..TimelineConfig::PAPER }),
            // All timeouts have one length, so none depends on round trips and none backs off.
            rtt: RttConfig { initial_timeout: Span::from_millis(timeout), min_timeout: Span::from_millis(timeout),
                max_timeout: Span::from_millis(timeout), ..RttConfig::RFC6298 },
            ..BORN
        };
        let controller = || if is_fixed { fixed(size as u64) } else { reno(1, size as u64, size as u64 * 2) };
        let mut model = Sender::new(&sections, controller(), kind, (is_impatient, is_blind), timeout);
        let mut receiver = Receiver { expected: 1, known: BTreeSet::new(), out: VecDeque::new(), latest: 0 };
        let mut now = 0;
        let mut real = Real {
            ends: [opener(config, controller()), listener(config, fixed(1))],
            data: VecDeque::new(),
            acks: VecDeque::new(),
        };
        for &(length, deadline) in &sections {
            real.ends[0].write_section(length.into(), Time::from_millis(deadline)).unwrap();
        }
        real.drain(Time::ZERO);
        for step in steps {
            match step {
                Step::DataArrives(which, is_whole) => {
                    if let (Some((number, update)), Some(segment)) = (take(&mut model.out, which), take(&mut real.data, which)) {
                        receiver.on_packet(number, is_whole.then_some(update));
                        let segment = if is_whole { segment } else { without_options(segment) };
                        real.ends[1].on_segment(Time::from_millis(now), &segment);
                        real.ends[1].read(u64::MAX);
                        real.drain(Time::from_millis(now));
                        if kind == Kind::Sack && let Some(answer) = real.acks.back() {
                            receiver.check_blocks(&blocks(answer));
                        }
                    }
                }
                Step::DataIsLost => {
                    model.out.pop_front();
                    real.data.pop_front();
                }
                Step::AckArrives(which, is_whole) => {
                    if let (Some(number), Some(segment)) = (take(&mut receiver.out, which), take(&mut real.acks, which)) {
                        let segment = if is_whole { segment } else { without_options(segment) };
                        model.on_ack(number, &blocks(&segment));
                        real.ends[0].on_segment(Time::from_millis(now), &segment);
                    }
                }
                Step::AckIsLost => {
                    receiver.out.pop_front();
                    real.acks.pop_front();
                }
                Step::Wait(time) => {
                    // Each deadline passes at its own moment.
                    for _ in 0..time {
                        now += 1;
                        model.timers(now);
                        real.drain(Time::from_millis(now));
                    }
                }
            }
            real.drain(Time::from_millis(now));
            let data: Vec<Packet> = real.data.iter().map(packet).collect();
            let acks: Vec<u32> = real.acks.iter().map(|segment| segment.acknowledgement.get()).collect();
            prop_assert_eq!(&data, &Vec::from(model.out.clone()), "after {:?} at {}: in flight {}, {:?}", step, now, real.ends[0].in_flight(), model);
            prop_assert_eq!(&acks, &Vec::from(receiver.out.clone()), "after {:?} at {}", step, now);
            prop_assert_eq!(real.ends[0].in_flight(), model.window.len() as u64, "after {:?} at {}: {:?}", step, now, model);
        }
        let statistics = real.ends[0].timeline_statistics().unwrap();
        prop_assert_eq!(statistics.pseudo_retransmissions, model.pseudo_retransmissions);
        prop_assert_eq!(statistics.replacements, model.replacements);
        prop_assert_eq!(u64::from(real.ends[0].statistics().timeouts), model.timeouts);
    }
}
