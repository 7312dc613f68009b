//! IFTP over two ends of the datagram transport and a path with scripted losses and delays: its
//! sweeps, packet by packet.

use crate::pair;

use std::collections::{BTreeMap, BTreeSet};

use comity_congestion::controllers::{EveryPacket, Iftp, IftpConfig, LateAcks};
use comity_transport::datagram::Connection;
use comity_transport::timeline::Elided;
use comity_units::{DataSize, Rate, Span, Time};

use pair::{PAYLOAD, config};

/// Half of the round trip.
const WAY: Span = Span::from_millis(50);

/// The fate of data packets, by their index from 0, and of acknowledgements.
#[derive(Default)]
struct Script {
    lost: BTreeSet<usize>,
    /// The extra delay of a packet.
    late: BTreeMap<usize, Span>,
    lost_acks: BTreeSet<usize>,
    late_acks: BTreeMap<usize, Span>,
    /// How many bytes the application has.
    bytes: u32,
}

fn controller() -> Iftp {
    Iftp::new(IftpConfig {
        mss: DataSize::new(u64::from(PAYLOAD)),
        max_window: DataSize::MAX,
        link: Rate::MAX,
        ssthresh: 4,
        max_packets: 50,
        missing_threshold: 3,
        min_timeout: Span::from_millis(600),
        late_acks: LateAcks::Wait,
    })
}

/// When data packets left, in milliseconds.
fn play(script: &Script, until: Time) -> Vec<f64> {
    let sender = Connection::<Elided>::new(
        config(),
        Span::ZERO,
        Box::new(controller()),
        None,
        Time::ZERO,
    );
    let meter = Box::new(EveryPacket::default());
    let receiver = Connection::new(
        config(),
        Span::ZERO,
        Box::new(controller()),
        Some(meter),
        Time::ZERO,
    );
    let ends = [sender.unwrap(), receiver.unwrap()];
    let (mut times, mut acks) = (Vec::new(), 0);
    pair::play(ends, script.bytes, until, |now, _, sent| {
        let (index, lost, late) = if sent.payload == PAYLOAD {
            times.push(now.as_nanos() as f64 / 1e6);
            (times.len() - 1, &script.lost, &script.late)
        } else {
            acks += 1;
            (acks - 1, &script.lost_acks, &script.late_acks)
        };
        let late = late.get(&index).copied().unwrap_or(Span::ZERO);
        (!lost.contains(&index)).then_some(now + WAY + late)
    });
    times
}

fn greedy() -> Script {
    Script {
        bytes: 1_000_000,
        ..Script::default()
    }
}

fn rounded(times: &[f64]) -> Vec<f64> {
    times.iter().map(|at| at.round()).collect()
}

/// 1 at once, 2 from 100 ms on, 4 from 200 ms on, 5 from 300 ms on.
const USUAL: [f64; 12] = [
    0.0, 100.0, 150.0, 200.0, 225.0, 250.0, 275.0, 300.0, 320.0, 340.0, 360.0, 380.0,
];

#[test]
fn sweeps_leave_by_the_paper() {
    let times = play(&greedy(), Time::from_millis(399));
    assert_eq!(rounded(&times), USUAL);
}

/// The acknowledgements of the second sweep and of the beginning of the third are lost; later
/// ranges cover them.
#[test]
fn later_ranges_replace_lost_acknowledgements() {
    let script = Script {
        lost_acks: (1..6).collect(),
        ..greedy()
    };
    let times = rounded(&play(&script, Time::from_millis(440)));
    // The round of four lasts until its predecessor is known to have arrived, and the next sweep
    // has five packets. If an acknowledgement named only one packet, this would be a loss.
    let expected = [350.0, 370.0, 390.0, 410.0, 430.0];
    assert_eq!(times[..7], USUAL[..7]);
    assert_eq!(times[7..], expected, "{times:?}");
}

/// A packet overtaken by two is not lost; overtaken by three, it is: `aftermissing_thresh` is 3.
#[test]
fn a_packet_late_by_less_than_the_threshold_is_not_lost() {
    let with = |late: u64| {
        let script = Script {
            late: BTreeMap::from([(7, Span::from_millis(late))]),
            ..greedy()
        };
        rounded(&play(&script, Time::from_millis(700)))
    };
    let usual = rounded(&play(&greedy(), Time::from_millis(700)));
    // Packets of that sweep are 20 ms apart: overtaken by two.
    let two = with(50);
    assert_eq!(two[..12], usual[..12]);
    assert!(two.len() + 3 >= usual.len(), "{two:?}, {usual:?}");
    // Overtaken by three, at 300 + 60 + 100 ms: half of the current round.
    let three = with(70);
    assert!(three.len() + 5 < usual.len(), "{three:?}, {usual:?}");
}

/// The last two packets of the application's data are lost. After the last acknowledgement, no
/// packet leaves for 600 ms except those that the timeout allows. A probe of the transport would be
/// due long before, and would turn this into a loss.
#[test]
fn a_lost_tail_is_a_timeout_not_a_loss() {
    let script = Script {
        bytes: 10_500,
        lost: BTreeSet::from([10, 11]),
        ..Script::default()
    };
    let times = rounded(&play(&script, Time::from_secs(2)));
    assert_eq!(times[..10], USUAL[..10]);
    // The departures after the tenth packet: the two lost ones, then the silence.
    let tail: Vec<f64> = times[10..].to_vec();
    let after = tail.iter().find(|at| **at > 400.0);
    assert!(after.is_none_or(|at| *at >= 1_040.0), "{times:?}");
}

/// One whole sweep is lost and nothing else. The timeout begins with one packet, and a later
/// acknowledgement changes nothing.
#[test]
fn after_a_timeout_a_late_acknowledgement_changes_nothing() {
    let lost = Script {
        lost: (7..18).collect(),
        ..greedy()
    };
    let late = Script {
        late: BTreeMap::from([(17, Span::from_millis(620))]),
        lost: (7..17).collect(),
        ..greedy()
    };
    for script in [&lost, &late] {
        let times = rounded(&play(script, Time::from_millis(1_300)));
        let first = times.iter().position(|at| *at > 500.0).unwrap();
        // The last acknowledgement, of the packet at 275 ms, arrived at 375 ms.
        assert_eq!(times[first], 975.0, "{times:?}");
        assert!(times[first + 1] >= 1_070.0, "one packet: {times:?}");
    }
}
