//! One connection, chosen segments dropped once: every packet event against ns-2 2.35.
//!
//! The vectors are runs of `vectors/ns2/drops.tcl`; its README has their format. A run of ours and one of
//! ns-2 have to agree in every time to the microsecond and in every sequence number.

mod common;

use std::fmt::Write as _;

use comity_congestion::recovery::RecoveryConfig;
use comity_link::{Limit, Loss, LossModel, LossPlace};
use comity_sim::network::{Start, Workload};
use comity_sim::{Body, FlowEvent, FlowEventKind, Observer, RunOptions, run_observed};
use comity_transport::tcp::Config;
use comity_units::{Rate, Seed, Span};

const VARIANTS: [&str; 4] = ["tahoe", "reno", "newreno", "sack"];
const DROPS: [&str; 5] = ["none", "14", "14+28", "14+26+28", "14+24+26+28"];

/// The payload of a 1000-byte packet.
const MSS: u32 = 960;

/// ns-2 reads its clock in ticks that begin at a random moment, drawn once for each agent: its first agent
/// draws 10 ms. With ticks of 100 ms this decides what a round-trip time rounds to.
const CLOCK_PHASE: Span = Span::from_millis(10);

/// A sequence number and when it was seen, in microseconds.
type Sighting = (i64, i64);

/// What one run shows: packets leaving the source, reaching the destination, acknowledgements coming back
/// (the number of the last segment that they cover), and the counters at the end.
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

fn vector(variant: &str) -> &'static str {
    match variant {
        "tahoe" => include_str!("../../../vectors/ns2/drops_tahoe.txt"),
        "reno" => include_str!("../../../vectors/ns2/drops_reno.txt"),
        "newreno" => include_str!("../../../vectors/ns2/drops_newreno.txt"),
        "sack" => include_str!("../../../vectors/ns2/drops_sack.txt"),
        _ => include_str!("../../../vectors/ns2/drops_vegas.txt"),
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
        let [count, step, interval] = run.split('+').map(|n| n.parse::<i64>().unwrap()).collect::<Vec<_>>()[..] else {
            panic!("{word}: expected seq@time*count+step+interval");
        };
        all.extend((0..count).map(|i| (sequence + i * step, time + i * interval)));
    }
    all
}

/// The run of ns-2 with these settings.
fn theirs(variant: &str, drops: &str, careful: bool, era: &str) -> Run {
    let prefix = format!("{variant} {drops} {careful} {era} ");
    let mut run = Run::default();
    for line in vector(variant).lines() {
        let Some((kind, words)) = line.strip_prefix(&prefix).and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        match kind {
            "send" => run.sent = expand(words),
            "recv" => run.received = expand(words),
            "ack" => run.acknowledged = expand(words),
            _ => {
                let fields: Vec<Option<i64>> = words.split(' ').map(|word| word.parse().ok()).collect();
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

#[derive(Default)]
struct Recorder(Run);

impl Observer for Recorder {
    fn on_flow(&mut self, _flow: u32, event: &FlowEvent<'_>) {
        let time = event.now.as_nanos().div_ceil(1_000) as i64;
        let (FlowEventKind::Sent(packet) | FlowEventKind::Received(packet)) = event.kind else {
            return;
        };
        let Body::Tcp(segment) = packet.body else {
            return;
        };
        // The first byte of data has number 1: 0 is the SYN's.
        let number = |sequence: u32| {
            let offset = i64::from(sequence) - 1;
            offset.div_euclid(i64::from(MSS))
        };
        match (event.kind, event.at_destination) {
            (FlowEventKind::Sent(_), false) if segment.payload > 0 => {
                self.0.sent.push((number(segment.sequence.get()), time));
            }
            (FlowEventKind::Received(_), true) if segment.payload > 0 => {
                self.0.received.push((number(segment.sequence.get()), time));
            }
            (FlowEventKind::Received(_), false) => {
                let covered = number(segment.acknowledgement.get()) - 1;
                self.0.acknowledged.push((covered, time));
                if covered >= 100 {
                    self.0.counts.hundredth.get_or_insert(time);
                }
            }
            _ => {}
        }
    }
}

/// Our run with these settings.
fn ours(recovery: RecoveryConfig, drops: &str, config: Config, controller: &str) -> Run {
    let mut tcp = common::ns2_tcp(config, recovery, MSS + 40, 50);
    if let comity_sim::network::TransportSpec::Tcp(tcp) = &mut tcp
        && controller != "reno"
    {
        tcp.controller = controller.to_owned();
        tcp.parameters = comity_congestion::table::Parameters::new();
    }
    let mut builder = common::Builder::new(6, 0);
    let (s, r, k) = (builder.node("s"), builder.node("r"), builder.node("k"));
    let limit = Limit::Packets(1_000);
    builder.duplex(s, r, &common::link_config(Rate::from_mbps(8), Span::from_micros(100), limit));
    let mut slow = common::link_config(Rate::from_kbps(800), Span::from_millis(100), limit);
    builder.link(k, r, slow.clone());
    if drops != "none" {
        slow.losses.push(Loss {
            model: LossModel::Packets(drops.split('+').map(|number| number.parse().unwrap()).collect()),
            place: LossPlace::BeforeQueue,
        });
    }
    builder.link(r, k, slow);
    builder.flow("tcp", (s, k), tcp, Workload::Greedy).start = Start::default();
    let mut recorder = Recorder::default();
    // Without `collapse` the recorder sees the events in the order of their times.
    let options = RunOptions { collapse: false };
    let report = run_observed(&builder.network, Seed::new(1), &options, &mut recorder).unwrap();
    let mut run = recorder.0;
    run.counts.sent = report.flows[0].sent_packets;
    run.counts.sent_again = report.flows[0].retransmitted_packets;
    run.counts.timeouts = report.flows[0].timeouts;
    run.counts.top = run.acknowledged.iter().map(|&(number, _)| number).max().unwrap();
    run
}

fn recovery(variant: &str, careful: bool) -> RecoveryConfig {
    let recovery = RecoveryConfig::by_name(variant).unwrap().as_in_ns2();
    RecoveryConfig { careful, ..recovery }
}

fn era_2000() -> Config {
    let mut config = Config::NS2_2000;
    config.rtt.phase = CLOCK_PHASE;
    config
}

/// Where two lists part, if they do.
fn parting(what: &str, theirs: &[Sighting], ours: &[Sighting]) -> String {
    if theirs == ours {
        return String::new();
    }
    let at = theirs.iter().zip(ours).take_while(|(a, b)| a == b).count();
    let mut text = String::new();
    let (a, b) = (theirs.get(at), ours.get(at));
    write!(text, " {what} part at event {at} of {}: ns-2 {a:?}, ours {b:?};", theirs.len()).unwrap();
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
    for variant in VARIANTS {
        for drops in DROPS {
            for careful in [false, true] {
                let theirs = theirs(variant, drops, careful, "2000");
                let ours = ours(recovery(variant, careful), drops, era_2000(), "reno");
                let difference = differences(&theirs, &ours);
                if !difference.is_empty() {
                    writeln!(failures, "{variant} {drops} careful={careful}:{difference}").unwrap();
                }
                events += theirs.sent.len() + theirs.received.len() + theirs.acknowledged.len();
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    // The vectors are there, and whole: 40 runs of some hundred packets.
    assert!((30_000..60_000).contains(&events), "{events}");
}

#[test]
fn the_modern_defaults_send_and_repeat_as_many_packets_as_ns2() {
    let mut failures = String::new();
    for variant in VARIANTS {
        for drops in DROPS {
            for careful in [false, true] {
                let mut theirs = theirs(variant, drops, careful, "modern").counts;
                let ours = ours(recovery(variant, careful), drops, Config::NS2_2_35, "reno").counts;
                // ns-2's SYN has the number 0, our first segment has it.
                theirs.top -= 1;
                if theirs != ours {
                    writeln!(failures, "{variant} {drops} careful={careful}: ns-2 {theirs:?}, ours {ours:?}").unwrap();
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn vegas_x() {
    for (era, config) in [("2000", era_2000()), ("modern", Config::NS2_2_35)] {
    for drops in DROPS {
    for careful in [false, true] {
        let theirs = theirs("vegas", drops, careful, era);
        let ours = ours(recovery("reno", careful), drops, config, "vegas");
        eprintln!("vegas {era} {drops} {careful}: {}", differences(&theirs, &ours));
    }}}
}
