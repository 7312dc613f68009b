//! One connection, chosen segments dropped once: every packet event against ns-2 2.35.
//!
//! The vectors are runs of `vectors/ns2/drops.tcl`; its README has their format. A run here and one
//! of ns-2 must agree in every time to the microsecond and in every sequence number.

use crate::common;

use std::fmt::Write as _;

use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::table::Parameters;
use comity_link::{Limit, Loss, LossModel, LossPlace};
use comity_sim::network::{Start, TransportSpec, Workload};
use comity_sim::{Body, FlowEvent, FlowEventKind, Observer, RunOptions, run_observed};
use comity_tcp::{Config, Flags};
use comity_units::{Rate, Seed, SeqNo, Span};

const VARIANTS: [&str; 4] = ["tahoe", "reno", "newreno", "sack"];
const DROPS: [&str; 5] = ["none", "14", "14+28", "14+26+28", "14+24+26+28"];

/// The payload of a 1000-byte packet.
const MSS: u32 = 960;

/// ns-2 reads its clock in ticks that begin at a random moment of the first tick, drawn when the
/// agent is created. That moment determines the rounding of round-trip times, and with it each
/// timeout. The vectors determine it for the first agent of a run with the default seed: 0.4425 of
/// a tick, for every tick. With an error of a tenth of a tick, half the runs with random drops have
/// a timeout one tick off.
fn in_phase(config: Config) -> Config {
    let mut config = config;
    config.rtt.phase = Span::from_nanos(config.rtt.tick.as_nanos() / 10_000 * 4_425);
    config
}

/// A sequence number and its time in microseconds.
type Sighting = (i64, i64);

/// The events of a run: packets leaving the source, reaching the destination, acknowledgements at
/// the source (the number of the last segment that they cover), and the counters at the end.
#[derive(Clone, Debug, Default, PartialEq)]
struct Run {
    sent: Vec<Sighting>,
    received: Vec<Sighting>,
    acknowledged: Vec<Sighting>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    sent: u64,
    sent_again: u64,
    timeouts: u64,
    /// The highest segment that was acknowledged.
    top: i64,
    /// When segment 100 was acknowledged, in microseconds.
    hundredth: Option<i64>,
}

/// Whose defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Era {
    /// ns-2 at the time of the papers: the first segment is sent at once and has the number 0.
    Year2000,
    /// ns-2.35: a SYN comes first and has the number 0, so segment n here is its n + 1.
    Modern,
}

impl Era {
    fn config(self) -> Config {
        in_phase(match self {
            Self::Year2000 => Config::NS2_2000,
            Self::Modern => Config::NS2_2_35,
        })
    }

    /// The number of the first segment in ns-2.
    fn first_number(self) -> i64 {
        i64::from(self == Self::Modern)
    }
}

fn vector(variant: &str, era: Era) -> &'static str {
    match (variant, era) {
        ("tahoe", Era::Year2000) => include_str!("../../../vectors/ns2/drops_tahoe_2000.txt"),
        ("tahoe", Era::Modern) => include_str!("../../../vectors/ns2/drops_tahoe_modern.txt"),
        ("reno", Era::Year2000) => include_str!("../../../vectors/ns2/drops_reno_2000.txt"),
        ("reno", Era::Modern) => include_str!("../../../vectors/ns2/drops_reno_modern.txt"),
        ("newreno", Era::Year2000) => include_str!("../../../vectors/ns2/drops_newreno_2000.txt"),
        ("newreno", Era::Modern) => include_str!("../../../vectors/ns2/drops_newreno_modern.txt"),
        ("sack", Era::Year2000) => include_str!("../../../vectors/ns2/drops_sack_2000.txt"),
        ("sack", Era::Modern) => include_str!("../../../vectors/ns2/drops_sack_modern.txt"),
        ("vegas", Era::Year2000) => include_str!("../../../vectors/ns2/drops_vegas_2000.txt"),
        ("vegas", Era::Modern) => include_str!("../../../vectors/ns2/drops_vegas_modern.txt"),
        _ => panic!("no vectors of {variant}"),
    }
}

/// Reads `seq@time` and `seq@time*count+step+interval` words.
fn expand(words: &str) -> Vec<Sighting> {
    let mut all = Vec::new();
    for word in words.split_whitespace() {
        let (sequence, rest) = word.split_once('@').unwrap();
        let sequence: i64 = sequence.parse().unwrap();
        let Some((time, run)) = rest.split_once('*') else {
            all.push((sequence, rest.parse().unwrap()));
            continue;
        };
        let time: i64 = time.parse().unwrap();
        let [count, step, interval] = run
            .split('+')
            .map(|n| n.parse::<i64>().unwrap())
            .collect::<Vec<_>>()[..]
        else {
            panic!("{word}: expected seq@time*count+step+interval");
        };
        all.extend((0..count).map(|i| (sequence + i * step, time + i * interval)));
    }
    all
}

/// The run of ns-2 with these settings.
fn theirs(variant: &str, drops: &str, bugfix: bool, era: Era) -> Run {
    read_run(vector(variant, era), drops, bugfix)
}

fn read_run(text: &str, drops: &str, bugfix: bool) -> Run {
    let prefix = format!("{drops} {bugfix} ");
    let mut run = Run::default();
    for line in text.lines() {
        let Some((kind, words)) = line
            .strip_prefix(&prefix)
            .and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        match kind {
            "send" => run.sent = expand(words),
            "recv" => run.received = expand(words),
            "ack" => run.acknowledged = expand(words),
            _ => {
                let fields: Vec<Option<i64>> =
                    words.split(' ').map(|word| word.parse().ok()).collect();
                run.counts = Counts {
                    sent: fields[0].unwrap() as u64,
                    sent_again: fields[1].unwrap() as u64,
                    timeouts: fields[2].unwrap() as u64,
                    top: fields[3].unwrap(),
                    hundredth: fields[4],
                };
            }
        }
    }
    assert!(run.counts.sent > 0, "no run of {prefix}in the vectors");
    run
}

/// Records the events of ns-2's traces, in its numbers.
struct Recorder {
    run: Run,
    /// The number of the first segment.
    first: i64,
}

impl Observer for Recorder {
    fn on_flow(&mut self, _flow: u32, event: &FlowEvent<'_>) {
        let (FlowEventKind::Sent(packet) | FlowEventKind::Received(packet)) = event.kind else {
            return;
        };
        let Body::Tcp(segment) = packet.body else {
            return;
        };
        let time = event.now.as_nanos();
        assert_eq!(
            time % 1_000,
            0,
            "every time in this network is a whole number of microseconds"
        );
        let time = (time / 1_000) as i64;
        // The first byte of data has the number 1, because 0 is the SYN's.
        let first = self.first;
        let number =
            |sequence: SeqNo| (i64::from(sequence.get()) - 1).div_euclid(i64::from(MSS)) + first;
        let is_sent = matches!(event.kind, FlowEventKind::Sent(_));
        let what = if segment.flags.contains(Flags::SYN) {
            0
        } else {
            number(segment.sequence)
        };
        match (is_sent, event.at_destination) {
            (true, false) => self.run.sent.push((what, time)),
            (false, true) => self.run.received.push((what, time)),
            (false, false) => {
                let covered = number(segment.acknowledgement) - 1;
                self.run.acknowledged.push((covered, time));
                if covered >= 100 {
                    self.run.counts.hundredth.get_or_insert(time);
                }
            }
            (true, true) => {}
        }
    }
}

/// Our run with these settings.
fn ours(recovery: RecoveryConfig, drops: &str, era: Era, controller: &str) -> Run {
    let mut tcp = common::ns2_tcp(era.config(), recovery, MSS + 40, 50);
    if let TransportSpec::Tcp(tcp) = &mut tcp
        && controller != "reno"
    {
        tcp.controller = controller.to_owned();
        tcp.parameters = Parameters::new();
        // ns-2's Vegas times every segment, not one per round trip; the size of headers is fixed
        // here.
        tcp.config.timestamps = true;
    }
    let mut builder = common::Builder::new(6, 0);
    let (s, r, k) = (builder.node("s"), builder.node("r"), builder.node("k"));
    let limit = Limit::Packets(1_000);
    builder.duplex(
        s,
        r,
        &common::link_config(Rate::from_mbps(8), Span::from_micros(100), limit),
    );
    let mut slow = common::link_config(Rate::from_kbps(800), Span::from_millis(100), limit);
    builder.link(k, r, slow.clone());
    if drops != "none" {
        slow.losses.push(Loss {
            model: LossModel::Packets(
                drops
                    .split('+')
                    .map(|number| number.parse().unwrap())
                    .collect(),
            ),
            place: LossPlace::BeforeQueue,
        });
    }
    builder.link(r, k, slow);
    builder.flow("tcp", (s, k), tcp, Workload::Greedy).start = Start::default();
    let mut recorder = Recorder {
        run: Run::default(),
        first: era.first_number(),
    };
    // Without `collapse` the recorder receives the events in the order of their times.
    let options = RunOptions { collapse: false };
    let report = run_observed(&builder.network, Seed::new(1), &options, &mut recorder).unwrap();
    let mut run = recorder.run;
    run.counts.sent = report.flows[0].sent_packets;
    run.counts.sent_again = report.flows[0].retransmitted_packets;
    run.counts.timeouts = report.flows[0].timeouts;
    run.counts.top = run
        .acknowledged
        .iter()
        .map(|&(number, _)| number)
        .max()
        .unwrap();
    run
}

fn recovery(variant: &str, bugfix: bool) -> RecoveryConfig {
    let recovery = RecoveryConfig::by_name(variant).unwrap().as_in_ns2();
    RecoveryConfig { bugfix, ..recovery }
}

/// The first difference of two lists, if any.
fn parting(what: &str, theirs: &[Sighting], ours: &[Sighting]) -> String {
    if theirs == ours {
        return String::new();
    }
    let at = theirs.iter().zip(ours).take_while(|(a, b)| a == b).count();
    let mut text = String::new();
    let (a, b) = (theirs.get(at), ours.get(at));
    write!(
        text,
        " {what} part at event {at} of {}: ns-2 {a:?}, ours {b:?};",
        theirs.len()
    )
    .unwrap();
    text
}

fn differences(theirs: &Run, ours: &Run) -> String {
    let mut text = parting("sent packets", &theirs.sent, &ours.sent);
    text += &parting("received packets", &theirs.received, &ours.received);
    text += &parting("acknowledgements", &theirs.acknowledged, &ours.acknowledged);
    if theirs.counts != ours.counts {
        write!(text, " ns-2 {:?}, ours {:?}", theirs.counts, ours.counts).unwrap();
    }
    text
}

#[test]
fn every_event_of_every_recovery_is_that_of_ns2() {
    let mut failures = String::new();
    let mut events = 0;
    for era in [Era::Year2000, Era::Modern] {
        for variant in VARIANTS {
            for drops in DROPS {
                for bugfix in [false, true] {
                    let theirs = theirs(variant, drops, bugfix, era);
                    let ours = ours(recovery(variant, bugfix), drops, era, "reno");
                    let difference = differences(&theirs, &ours);
                    if !difference.is_empty() {
                        writeln!(
                            failures,
                            "{variant} {drops} bugfix={bugfix} {era:?}:{difference}"
                        )
                        .unwrap();
                    }
                    events += theirs.sent.len() + theirs.received.len() + theirs.acknowledged.len();
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    // The vectors are present and complete: 80 runs of some hundred packets, each recorded three
    // times.
    assert!((60_000..120_000).contains(&events), "{events}");
}

/// Nine lists of dropped packets, three, ten and twenty-five of a hundred at random: losses of
/// retransmissions, several timeouts in a row, and recoveries within recoveries.
#[test]
fn random_drops_are_repaired_as_in_ns2() {
    let vectors = [
        (
            "tahoe",
            include_str!("../../../vectors/ns2/drops_tahoe_random.txt"),
        ),
        (
            "reno",
            include_str!("../../../vectors/ns2/drops_reno_random.txt"),
        ),
        (
            "newreno",
            include_str!("../../../vectors/ns2/drops_newreno_random.txt"),
        ),
        (
            "sack",
            include_str!("../../../vectors/ns2/drops_sack_random.txt"),
        ),
    ];
    let mut failures = String::new();
    for (variant, text) in vectors {
        let lists = text.lines().filter(|line| line.contains(" counts "));
        let lists: Vec<&str> = lists.map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(lists.len(), 9, "{variant}");
        for drops in lists {
            let theirs = read_run(text, drops, true);
            let ours = ours(recovery(variant, true), drops, Era::Year2000, "reno");
            let difference = differences(&theirs, &ours);
            if !difference.is_empty() {
                writeln!(failures, "{variant} {drops}:{difference}").unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// Fall and Floyd 1996: one to four losses in a window distinguish the recoveries.
#[test]
fn the_recoveries_can_be_distinguished() {
    let run =
        |variant: &str, drops: &str| ours(recovery(variant, false), drops, Era::Year2000, "reno");
    for (index, first) in VARIANTS.iter().enumerate() {
        for second in &VARIANTS[index + 1..] {
            assert_eq!(
                run(first, "none"),
                run(second, "none"),
                "without losses nothing recovers"
            );
            for drops in &DROPS[1..] {
                // Reno and NewReno are one algorithm until a partial acknowledgement arrives.
                let are_alike = (*first, *second, *drops) == ("reno", "newreno", "14");
                let is_same = run(first, drops).sent == run(second, drops).sent;
                assert_eq!(
                    is_same, are_alike,
                    "{first} and {second} with {drops} dropped"
                );
            }
        }
    }
    // The ranking of the paper, by segments delivered in 6 s: two losses suffice to put Reno
    // behind.
    let delivered = |variant, drops| run(variant, drops).counts.top;
    for drops in &DROPS[2..] {
        assert!(delivered("sack", drops) > delivered("reno", drops) + 50);
        assert!(delivered("sack", drops) > delivered("tahoe", drops) + 20);
    }
    // Reno repairs two losses by two fast retransmits and needs its timer at three.
    assert_eq!(
        [2, 3].map(|n| run("reno", DROPS[n]).counts.timeouts),
        [0, 1]
    );
    assert_eq!(
        [2, 3, 4].map(|n| run("sack", DROPS[n]).counts.timeouts),
        [0, 0, 0]
    );
}

/// The length of the common beginning of two lists.
fn common_prefix(theirs: &[Sighting], ours: &[Sighting]) -> usize {
    theirs.iter().zip(ours).take_while(|(a, b)| a == b).count()
}

/// ns-2's Vegas detects losses by times that it takes for each segment, and looks for more of them
/// with the first acknowledgements after a retransmission. That belongs to its agent, not to its
/// controller. Here Vegas is only the controller, with any recovery: the two agree in growth, and
/// differ after the first repair.
#[test]
fn vegas_grows_as_in_ns2() {
    let run = |drops| {
        let recovery = recovery("reno", true);
        (
            theirs("vegas", drops, true, Era::Year2000),
            ours(recovery, drops, Era::Year2000, "vegas"),
        )
    };
    let (theirs, ours) = run("none");
    assert_eq!(theirs.counts, ours.counts);
    assert!(common_prefix(&theirs.sent, &ours.sent) >= 156);
    // Later, a rounding of the window moves single segments to the previous or next
    // acknowledgement.
    let packet_time = 10_000;
    let mut moved = 0;
    for (a, b) in theirs.sent.iter().zip(&ours.sent) {
        assert_eq!(a.0, b.0);
        assert!((a.1 - b.1).abs() <= packet_time, "ns-2 {a:?}, ours {b:?}");
        moved += u32::from(a != b);
    }
    assert!(moved <= 20, "{moved} of {} segments moved", ours.sent.len());
    for drops in &DROPS[1..] {
        let (theirs, ours) = run(drops);
        let common = common_prefix(&theirs.sent, &ours.sent);
        // Segments 0 to 27 and the first retransmission of segment 14, to the microsecond.
        assert_eq!(common, 29, "{drops} dropped");
        assert_eq!(
            ours.sent[..common]
                .iter()
                .filter(|sent| sent.0 == 14)
                .count(),
            2,
            "{drops} dropped"
        );
    }
}
