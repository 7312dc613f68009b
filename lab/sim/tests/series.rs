//! Values over time sum to the report, and a tracer records the events.

use std::collections::BTreeMap;
use std::io::Cursor;

use comity_sim::network::Network;
use comity_sim::scenario::{NoFiles, Reading, Run, RunSettings, Scenario, simulate};
use comity_sim::trace::{CapturePoints, Tracer};
use comity_sim::{RunOptions, run, run_observed};
use comity_units::Span;

/// Flows that overflow a small buffer, beside datagrams.
fn prepared(bins: &str) -> (Network, Run, RunSettings) {
    let text = format!(
        r#"
        [scenario]
        name = "x"
        duration = "20s"
        {bins}
        [topology]
        kind = "dumbbell"
        bottleneck = {{ rate = "1Mbps", delay = "10ms", queue = 8 }}
        access = {{ rate = "10Mbps", delay = "2ms" }}
        [[flow]]
        group = "tcp"
        count = 3
        preset = "ns2-2.35"
        recovery = "sack"
        [[flow]]
        group = "udp"
        transport = "datagram"
        workload = {{ kind = "poisson", rate = "200kbps" }}
        "#
    );
    let scenario = Scenario::parse("x.toml", &text, NoFiles, &Reading::default());
    let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
    let run = scenario.runs()[0].clone();
    let (network, settings) = scenario.prepare(&run);
    (network, run, settings)
}

#[test]
fn bins_sum_to_the_report() {
    let (network, run, settings) = prepared("bins = \"300ms\"");
    let report = simulate(&network, &run, &settings).unwrap();
    let plain = comity_sim::run(&network, run.seed, &RunOptions::default()).unwrap();
    assert_eq!(
        report.fingerprint, plain.fingerprint,
        "looking on changes nothing"
    );
    let series = report.series.as_ref().unwrap();
    assert_eq!(series.bin, Span::from_millis(300));
    let bins = 67;
    for (flow, total) in series.flows.iter().zip(&report.flows) {
        for length in [
            flow.delivered_bytes.len(),
            flow.sent_packets.len(),
            flow.sent_wire_bytes.len(),
            flow.retransmitted_packets.len(),
        ] {
            assert_eq!(length, bins);
        }
        // Datagrams have no window and no round trips.
        let states = if total.kind == "datagram" { 0 } else { bins };
        for length in [
            flow.cwnd_bytes.len(),
            flow.ssthresh_bytes.len(),
            flow.srtt_ns.len(),
        ] {
            assert_eq!(length, states);
        }
        let sum = |column: &[u32]| column.iter().map(|value| u64::from(*value)).sum::<u64>();
        assert_eq!(
            flow.delivered_bytes.iter().sum::<u64>(),
            total.delivered_bytes_total
        );
        assert_eq!(sum(&flow.sent_packets), total.sent_packets);
        assert_eq!(
            flow.sent_wire_bytes.iter().sum::<u64>(),
            total.sent_wire_bytes
        );
        assert_eq!(
            sum(&flow.retransmitted_packets),
            total.retransmitted_packets
        );
        if let Some(window) = total.cwnd_bytes {
            assert_eq!(flow.cwnd_bytes.last(), Some(&window));
            assert!(
                total.retransmitted_packets > 0,
                "the buffer never overflowed"
            );
        }
    }
    for (link, total) in series.links.iter().zip(&report.links) {
        assert_eq!(link.carried_bytes.len(), bins);
        assert_eq!(link.max_queueing_delay_ns.len(), bins);
        let longest = link.max_queueing_delay_ns.iter().max().copied();
        assert_eq!(
            longest.unwrap_or(0),
            (total.queueing_delay.max * 1e9).round() as u64,
            "{}: nothing before a warm-up is left out",
            total.name
        );
        assert_eq!(link.carried_bytes.iter().sum::<u64>(), total.carried_bytes);
        let drops: u64 = link
            .dropped_packets
            .iter()
            .map(|value| u64::from(*value))
            .sum();
        assert_eq!(drops, total.dropped_full + total.dropped_early + total.lost);
        assert!(
            link.max_queue_packets
                .iter()
                .all(|queue| *queue <= 8 || total.name != "bottleneck")
        );
    }
    let (bottleneck, total) = (&series.links[0], &report.links[0]);
    assert!(total.dropped_full > 0);
    assert_eq!(
        bottleneck.max_queue_packets.iter().max(),
        Some(&8),
        "full when it dropped"
    );
    let mean = bottleneck
        .max_queue_packets
        .iter()
        .map(|queue| f64::from(*queue))
        .sum::<f64>();
    assert!(
        mean / bins as f64 >= total.mean_queue_packets,
        "no maximum lies below the mean"
    );
}

fn lines(bytes: &[u8]) -> Vec<serde_json::Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.split('\u{1e}')
        .skip(1)
        .map(|record| serde_json::from_str(record).unwrap())
        .collect()
}

#[test]
fn a_tracer_records_the_events() {
    let (network, of, _) = prepared("");
    let mut tracer = Tracer::new(&network, &[0, 1], &[0, 1, 2, 3]);
    tracer
        .capture(CapturePoints::Before, Cursor::new(Vec::new()))
        .unwrap();
    tracer.log(1, "x", Cursor::new(Vec::new())).unwrap();
    tracer.events(Cursor::new(Vec::new())).unwrap();
    let options = RunOptions { collapse: false };
    let report = run_observed(&network, of.seed, &options, &mut tracer).unwrap();
    assert_eq!(
        report.fingerprint,
        run(&network, of.seed, &RunOptions::default())
            .unwrap()
            .fingerprint
    );
    let outputs: Vec<Vec<u8>> = tracer
        .finish()
        .unwrap()
        .into_iter()
        .map(Cursor::into_inner)
        .collect();
    let [capture, log, events] = &outputs[..] else {
        panic!("{} outputs", outputs.len())
    };

    // The capture has a frame for each packet offered to the two links.
    let mut reader = pcap_file::pcapng::PcapNgReader::new(&capture[..]).unwrap();
    let mut frames = [0u64; 2];
    let mut dropped = 0;
    let mut last = std::time::Duration::ZERO;
    while let Some(block) = reader.next_block() {
        let block = block.unwrap().into_owned();
        let pcap_file::pcapng::Block::EnhancedPacket(packet) = block else {
            continue;
        };
        frames[packet.interface_id as usize] += 1;
        assert!(
            packet.timestamp >= last,
            "frames come in the order of their times"
        );
        last = packet.timestamp;
        dropped += u64::from(!packet.options.is_empty());
    }
    assert_eq!(
        frames,
        [
            report.links[0].offered_packets,
            report.links[1].offered_packets
        ]
    );
    assert_eq!(dropped, report.links[0].dropped_full);

    // The log of a sender has its packets, its losses and their acknowledgements.
    let records = lines(log);
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    let mut outstanding = std::collections::BTreeSet::new();
    for record in &records[1..] {
        let name = record["name"].as_str().unwrap();
        *names.entry(name).or_default() += 1;
        let number = record["data"]["header"]["packet_number"].as_u64();
        match name {
            "transport:packet_sent" => assert!(outstanding.insert(number.unwrap())),
            "recovery:packet_lost" => assert!(outstanding.remove(&number.unwrap())),
            _ => {}
        }
    }
    let flow = &report.flows[1];
    assert_eq!(names["transport:packet_sent"], flow.sent_packets);
    assert!(names["recovery:packet_lost"] > 0);
    assert!(names["recovery:packet_lost"] <= flow.retransmitted_packets);
    assert!(names["recovery:metrics_updated"] > 0);

    // The table has a line for each event of each flow and link.
    let mut count: BTreeMap<(String, String, String), u64> = BTreeMap::new();
    let mut reader = csv::Reader::from_reader(&events[..]);
    for row in reader.records() {
        let row = row.unwrap();
        let key = (row[1].to_owned(), row[2].to_owned(), row[3].to_owned());
        *count.entry(key).or_default() += 1;
    }
    let of = |place: &str, event: &str, flow: &str| {
        count
            .get(&(place.into(), event.into(), flow.into()))
            .copied()
            .unwrap_or(0)
    };
    for flow in &report.flows {
        assert_eq!(
            of("source", "sent", &flow.name),
            flow.sent_packets,
            "{}",
            flow.name
        );
        assert_eq!(of("destination", "sent", &flow.name), flow.acks);
        assert_eq!(
            of("destination", "received", &flow.name),
            flow.received_packets
        );
    }
    let full: u64 = report
        .flows
        .iter()
        .map(|flow| of("bottleneck", "dropped_full", &flow.name))
        .sum();
    assert_eq!(full, report.links[0].dropped_full);
}
