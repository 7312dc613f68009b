//! Captures before and after a link show its packets where and when they were; utilisation never
//! exceeds 1.

use std::io::Cursor;
use std::time::Duration;

use comity_link::{CodelConfig, DeliveryTrace, Queue, RateProfile};
use comity_sim::network::Network;
use comity_sim::report::RunReport;
use comity_sim::scenario::{NoFiles, Reading, Scenario};
use comity_sim::trace::{CapturePoints, Tracer};
use comity_sim::{RunOptions, run, run_observed};
use comity_units::{Rate, Seed, Span, Time};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};

/// Three flows that fill a link of 8 Mb/s with a queue of 12 packets.
fn network(warmup: &str) -> Network {
    let text = format!(
        r#"
        scenario = {{ name = "x", duration = "6s", warmup = "{warmup}" }}
        [topology]
        kind = "dumbbell"
        bottleneck = {{ rate = "8Mbps", delay = "10ms", queue = 12 }}
        access = {{ rate = "100Mbps", delay = "1ms" }}
        [[flow]]
        group = "tcp"
        count = 3
        "#
    );
    let scenario = Scenario::parse("x.toml", &text, NoFiles, &Reading::default());
    let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
    scenario.prepare(&scenario.runs()[0]).0
}

struct Frame {
    time: Duration,
    bytes: u32,
    comment: Option<String>,
    dropped_before: u64,
}

/// The frames before and after the first link, read by another implementation of the format.
fn capture(network: &Network) -> ([Vec<Frame>; 2], RunReport) {
    let mut tracer = Tracer::new(network, &[0], &[0, 1, 2]);
    tracer
        .capture(CapturePoints::Both, Cursor::new(Vec::new()))
        .unwrap();
    let options = RunOptions { collapse: false };
    let report = run_observed(network, Seed::new(3), &options, &mut tracer).unwrap();
    let file = tracer.finish().unwrap().remove(0).into_inner();
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    let mut frames = [Vec::new(), Vec::new()];
    let mut last = Duration::ZERO;
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap().into_owned() else {
            continue;
        };
        assert!(packet.timestamp >= last, "frames are in order");
        last = packet.timestamp;
        let mut frame = Frame {
            time: packet.timestamp,
            bytes: packet.original_len,
            comment: None,
            dropped_before: 0,
        };
        for option in packet.options {
            match option {
                EnhancedPacketOption::Comment(text) => frame.comment = Some(text.into_owned()),
                EnhancedPacketOption::DropCount(count) => frame.dropped_before = count,
                other => panic!("{other:?}"),
            }
        }
        frames[packet.interface_id as usize].push(frame);
    }
    (frames, report)
}

fn is_dropped(frame: &Frame) -> bool {
    let comment = frame.comment.as_ref();
    comment.is_some_and(|text| text.starts_with("dropped: "))
}

#[test]
fn a_capture_shows_every_offer_before_the_link_and_every_arrival_after_it() {
    let plain = network("0s");
    let mut codel = plain.clone();
    codel.links[0].config.queue = Queue::CoDel(CodelConfig::default());
    let mut trace = plain.clone();
    trace.links[0].config.rate = RateProfile::Deliveries(DeliveryTrace::new(2..=3).unwrap());
    for (network, rate) in [
        (plain, 8e6),
        (codel, 8e6),
        (trace, 1504.0 * 8.0 * 2.0 / 3e-3),
    ] {
        let ([before, after], report) = capture(&network);
        let link = &report.links[0];
        let dropped = link.dropped_full + link.dropped_early;
        assert!(dropped > 20, "{dropped} packets were dropped");
        assert_eq!(before.len() as u64, link.offered_packets);
        let marked = before.iter().filter(|frame| is_dropped(frame)).count() as u64;
        assert_eq!(marked, dropped);
        assert_eq!(after.len() as u64, link.delivered_packets);
        assert!(!after.iter().any(is_dropped));
        let counted: u64 = after.iter().map(|frame| frame.dropped_before).sum();
        assert!(
            counted <= dropped && counted + 12 > dropped,
            "{counted} of {dropped}"
        );
        // Each packet is delayed by at least the propagation delay, in order.
        let through = before.iter().filter(|frame| !is_dropped(frame));
        for (offer, arrival) in through.zip(&after) {
            assert!(arrival.time >= offer.time + Duration::from_millis(10));
            assert_eq!(arrival.bytes, offer.bytes);
        }
        // No second carries more than the rate allows, but for the packets of its edges.
        for second in 0..6 {
            let within = after.iter().filter(|frame| frame.time.as_secs() == second);
            let bits: f64 = within.map(|frame| f64::from(frame.bytes) * 8.0).sum();
            assert!(
                bits <= rate + 3.0 * 12_000.0,
                "second {second}: {bits} bits"
            );
        }
    }
}

#[test]
fn one_point_has_one_interface() {
    let network = network("0s");
    for (points, name) in [
        (CapturePoints::Before, "bottleneck:before"),
        (CapturePoints::After, "bottleneck:after"),
    ] {
        let mut tracer = Tracer::new(&network, &[0], &[0]);
        tracer.capture(points, Cursor::new(Vec::new())).unwrap();
        let file = tracer.finish().unwrap().remove(0).into_inner();
        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        while let Some(block) = reader.next_block() {
            assert!(matches!(block.unwrap(), Block::InterfaceDescription(_)));
        }
        assert_eq!(reader.interfaces().len(), 1);
        let options = format!("{:?}", reader.interfaces()[0].options);
        assert!(options.contains(name), "{options}");
    }
}

/// A saturated link is used almost wholly and never more, wherever the measured interval begins.
#[test]
fn utilisation_never_exceeds_one() {
    let step = |at, mbps| (Time::from_millis(at), Rate::from_mbps(mbps));
    let rates = [
        RateProfile::Constant(Rate::from_kbps(7_777)),
        RateProfile::Steps(vec![step(0, 9), step(1_500, 2), step(2_900, 6)]),
        RateProfile::Deliveries(DeliveryTrace::new([0, 1, 1, 1, 4, 7]).unwrap()),
    ];
    for rate in rates {
        let mut network = network("1s");
        network.links[0].config.rate = rate;
        // A deep queue is never empty.
        network.links[0].config.queue = Queue::DropTail(comity_link::Limit::Unlimited);
        let mut largest = 0.0_f64;
        for tenths in 0..40_u64 {
            network.warmup = Span::from_nanos(1_500_000_000 + tenths * 10_123_457);
            let report = run(&network, Seed::new(1), &RunOptions::default()).unwrap();
            let used = report.links[0].utilisation.unwrap();
            assert!(used <= 1.0, "{used}");
            assert!(used > 0.99, "{used}");
            largest = largest.max(used);
        }
        assert!(largest > 0.999, "{largest}");
    }
}
