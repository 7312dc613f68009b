//! Thousands of flows at once.

use crate::common;

use comity_sim::{RunOptions, run};
use comity_units::Seed;

#[test]
fn two_thousand_flows_share_a_link_and_every_packet_is_accounted_for() {
    let network = common::crowd(2_000, 1_000);
    let report = run(&network, Seed::new(1), &RunOptions::default()).unwrap();
    let sum = |value: fn(&comity_sim::report::FlowReport) -> u64| {
        report.flows.iter().map(value).sum::<u64>()
    };

    let bottleneck = &report.links[0];
    // 2,000 flows suffice to fill it, and to make it drop.
    assert!(bottleneck.utilisation.unwrap() > 0.8, "{bottleneck:?}");
    assert!(bottleneck.dropped_full > 1_000, "{bottleneck:?}");
    for link in &report.links {
        let went =
            link.delivered_packets + link.dropped_full + link.queued_at_end + link.in_flight_at_end;
        assert_eq!(link.offered_packets, went, "{link:?}");
    }
    // A few lose their SYN and wait a second for the next.
    let served = report
        .flows
        .iter()
        .filter(|flow| flow.delivered_bytes > 0)
        .count();
    assert!(served > 1_900, "{served} of 2,000");
    // All packets sent on the left were offered to the bottleneck, or are still before it.
    let sent = sum(|flow| flow.sent_packets);
    assert!(sent >= bottleneck.offered_packets);
    assert!(sent - bottleneck.offered_packets < sum(|flow| flow.in_flight_at_end));
    assert_eq!(sum(|flow| flow.dropped_packets), bottleneck.dropped_full);
    // The memory of the flows and of the packets in flight: the arena and the senders' records, in
    // vectors that double. The links' histograms come on top.
    let (flows, packets) = (2_000, report.cost.peak_packets);
    let most = flows * 2_048 + packets * 2 * (128 + 56) + report.links.len() as u64 * 8_192;
    let memory = report.cost.memory_bytes;
    assert!(
        (flows * 1_024 + packets * 64..most).contains(&memory),
        "{:?}",
        report.cost
    );

    let again = run(&network, Seed::new(1), &RunOptions { collapse: false }).unwrap();
    assert_eq!(again.fingerprint, report.fingerprint);
    assert_eq!((again.flows, again.links), (report.flows, report.links));
}
