//! What a run costs as its flows become many: `cargo bench -p comity-sim --bench scale`.
//!
//! A table on standard output, one row for each number of greedy TCP flows through one 10 Gb/s
//! bottleneck. Numbers after `--` replace the numbers of flows.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "measures wall time and prints a table for people"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use comity_sim::{Packet, RunOptions, run};
use comity_tcp::Connection;
use comity_units::Seed;

/// How long each network is run, in simulated milliseconds.
const MILLIS: u64 = 1_000;

fn main() {
    let given: Vec<usize> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    let numbers = if given.is_empty() {
        vec![10, 100, 1_000, 10_000, 100_000]
    } else {
        given
    };
    println!(
        "{:>7} {:>10} {:>10} {:>8} {:>8} {:>10} {:>10} {:>9} {:>9}",
        "flows", "hops", "events", "wall s", "ns/hop", "ns/event", "sim s/s", "B/flow", "packets"
    );
    for flows in numbers {
        let network = common::crowd(flows, MILLIS);
        let begin = Instant::now();
        let report =
            run(&network, Seed::new(1), &RunOptions::default()).expect("the network is sound");
        let wall = begin.elapsed().as_secs_f64();
        let cost = report.cost;
        // Links and their histograms cost the same for any number of flows.
        println!(
            "{flows:>7} {:>10} {:>10} {wall:>8.3} {:>8.1} {:>10.1} {:>10.3} {:>9.0} {:>9}",
            cost.packet_hops,
            cost.events,
            wall * 1e9 / cost.packet_hops as f64,
            wall * 1e9 / cost.events as f64,
            MILLIS as f64 / 1e3 / wall,
            cost.memory_bytes as f64 / flows as f64,
            cost.peak_packets,
        );
    }
    println!(
        "a flow has two connections of {} B; a packet in flight takes {} B",
        size_of::<Connection>(),
        size_of::<Packet>() + 16
    );
}
