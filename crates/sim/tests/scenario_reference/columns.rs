//! `docs/reference/columns.md` lists every column of stored results with its unit and meaning.
//!
//! To write it anew after a change of the columns:
//!
//! ```text
//! COMITY_UPDATE=1 cargo test -p comity-sim --test scenario_reference columns
//! ```

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use comity_sim::report::{Cost, RunReport, Series, World};
use comity_sim::results::{AxisValue, CompletedRun, Format, ResultSet, ScenarioInfo, write};
use comity_units::{Seed, Span};
use serde_json::Value;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/columns.md"
);

/// The tables and what they have a row for.
const TABLES: [(&str, &str); 7] = [
    ("runs", "One row for each run."),
    ("groups", "One row for each group of flows in a run."),
    ("flows", "One row for each flow of a run."),
    ("links", "One row for each link of a run."),
    (
        "flow_series",
        "One row for each flow and bin, if the scenario sets `bins`.",
    ),
    (
        "link_series",
        "One row for each link and bin, if the scenario sets `bins`.",
    ),
    (
        "flow_variation",
        "One row for each flow and time scale of 1, 2, 5, 10, ... bins, if the scenario sets `bins`.",
    ),
];

/// The numbers of a distribution, by the end of the column's name.
const SUMMARY: [(&str, &str); 8] = [
    ("_count", "number of values of"),
    ("_mean_s", "mean of"),
    ("_stddev_s", "standard deviation of"),
    ("_min_s", "least value of"),
    ("_max_s", "largest value of"),
    ("_median_s", "median, to about 1 %, of"),
    ("_p95_s", "95th percentile, to about 1 %, of"),
    ("_p99_s", "99th percentile, to about 1 %, of"),
];

/// Distributions by the beginning of their columns' names.
const DISTRIBUTIONS: [(&str, &str); 3] = [
    ("delay", "the one-way delay of data packets, measured"),
    (
        "arrival_spacing",
        "the time between two arrivals at the destination, measured; datagrams and sections only",
    ),
    (
        "wait",
        "the queueing delay: from the arrival of a packet to the start of its service, measured",
    ),
];

/// What a column means, by its name and by the tables that have it; `*` is every table.
const MEANINGS: &[(&str, &str, &str)] = &[
    ("*", "run", "number of the run, from 0"),
    (
        "*",
        "axis.AXIS",
        "value of the sweep's axis AXIS, one column for each axis",
    ),
    ("*", "seed", "seed of the run"),
    (
        "*",
        "index",
        "number of the group, flow or link in the run, from 0",
    ),
    ("*", "group", "name of the group"),
    ("*", "flow", "name of the flow"),
    ("*", "link", "name of the link"),
    ("*", "bin_start_ns", "start of the bin"),
    // runs and groups
    ("runs", "scenario", "name of the scenario"),
    (
        "runs",
        "scenario_hash",
        "XXH64 of the scenario's text, in hexadecimal",
    ),
    ("runs", "world", "`sim` or `lab`"),
    ("runs", "version", "version of the program"),
    (
        "runs",
        "engine_version",
        "rises when the same scenario and seed give other results",
    ),
    (
        "runs",
        "fingerprint",
        "hash over the fate of every packet; empty in the lab",
    ),
    ("runs", "duration_ns", "length of the run"),
    (
        "runs",
        "warmup_ns",
        "end of the warm-up, where measuring begins",
    ),
    ("runs", "flows", "number of flows"),
    ("groups", "flows", "number of flows"),
    ("runs", "links", "number of links"),
    (
        "runs",
        "sent_packets",
        "packets that the sources sent, retransmissions included",
    ),
    (
        "runs",
        "retransmitted_packets",
        "packets that carried payload for the second time or more",
    ),
    (
        "runs",
        "received_packets",
        "data packets that reached their destination",
    ),
    (
        "runs",
        "dropped_packets",
        "packets dropped or lost, either way",
    ),
    ("runs", "timeouts", "expiries of retransmission timers"),
    (
        "runs",
        "loss_ratio",
        "packets dropped or lost over packets sent, ACKs and copies included",
    ),
    (
        "runs",
        "mean_delay_s",
        "mean one-way delay of the data packets of all flows, measured",
    ),
    (
        "runs",
        "max_delay_s",
        "largest one-way delay of a data packet, measured",
    ),
    (
        "runs",
        "max_utilisation",
        "utilisation of the busiest link, measured",
    ),
    (
        "runs",
        "events",
        "events that the engine took from its queue; 0 in the lab",
    ),
    (
        "runs",
        "packet_hops",
        "packets carried, once for each link that they crossed",
    ),
    (
        "runs",
        "peak_packets",
        "most packets in flight at one time; 0 in the lab",
    ),
    (
        "runs",
        "late_packets",
        "lab: packets that the router released more than 1 ms late",
    ),
    (
        "runs",
        "lateness_p99_s",
        "lab: 99th percentile of the router's lateness",
    ),
    (
        "runs",
        "lateness_max_s",
        "lab: largest lateness of the router",
    ),
    ("runs", "trusted", "lab: whether the results can be trusted"),
    (
        "runs",
        "memory_bytes",
        "memory of flows, links and packets at the end; 0 in the lab",
    ),
    (
        "runs",
        "goodput_bps",
        "sum of the flows' goodputs, measured",
    ),
    (
        "runs",
        "throughput_bps",
        "sum of the flows' throughputs, measured",
    ),
    (
        "groups",
        "goodput_bps",
        "sum of the flows' goodputs, measured",
    ),
    (
        "groups",
        "throughput_bps",
        "sum of the flows' throughputs, measured",
    ),
    ("*", "mean_goodput_bps", "mean of the flows' goodputs"),
    ("*", "mean_throughput_bps", "mean of the flows' throughputs"),
    (
        "*",
        "jain",
        "Jain's fairness index of the flows' throughputs",
    ),
    (
        "*",
        "f_best",
        "flows ranked by throughput, odd ranks against even ranks: the larger mean over the smaller; TLTCP, section 6.2",
    ),
    (
        "*",
        "f_worst",
        "mean throughput of the upper half of the flows over that of the lower half; TLTCP, section 6.2",
    ),
    (
        "*",
        "max_min_ratio",
        "largest throughput of a flow over the least: the separation index S of TLTCP",
    ),
    (
        "groups",
        "friendliness",
        "mean throughput of the group over that of all other flows; 1 is friendly",
    ),
    (
        "groups",
        "convergence_s",
        "time from the start of the last flow until the flows shared equally, by `scenario.convergence`",
    ),
    // flows
    (
        "flows",
        "kind",
        "controller and recovery, `datagram`, or controller and `sections`",
    ),
    ("flows", "started_ns", "start of the flow"),
    (
        "flows",
        "finished_ns",
        "acknowledgement of the last byte, if the flow has an end",
    ),
    (
        "flows",
        "delivered_bytes",
        "payload handed to the receiving application in order, measured",
    ),
    ("flows", "delivered_total_bytes", "the same since the start"),
    (
        "flows",
        "delivered_wire_bytes",
        "in-order segments or datagrams that arrived, on the wire, measured",
    ),
    (
        "flows",
        "goodput_bps",
        "payload delivered per second, measured",
    ),
    (
        "flows",
        "throughput_bps",
        "in-order segments delivered per second, on the wire, measured; as ns-2 counts",
    ),
    (
        "flows",
        "sent_packets",
        "packets that the source sent, retransmissions included",
    ),
    (
        "flows",
        "sent_wire_bytes",
        "bytes of these packets on the wire",
    ),
    (
        "flows",
        "retransmitted_packets",
        "packets that carried payload for the second time or more; 0 for sections",
    ),
    (
        "flows",
        "timeouts",
        "expiries of the retransmission timer; sections: restarts of the window after silence",
    ),
    ("flows", "fast_retransmits", "entries into fast retransmit"),
    (
        "flows",
        "received_packets",
        "data packets that reached the destination",
    ),
    (
        "flows",
        "dropped_packets",
        "packets of the flow, either way, that a link dropped or lost",
    ),
    ("flows", "dropped_data_packets", "data packets among them"),
    ("flows", "dropped_acks", "ACKs among them"),
    (
        "flows",
        "in_flight_at_end_packets",
        "packets, either way, in the network at the end",
    ),
    (
        "flows",
        "duplicated_packets",
        "copies of packets that links made",
    ),
    ("flows", "acks", "packets that the destination sent"),
    ("flows", "srtt_s", "smoothed round-trip time at the end"),
    (
        "flows",
        "mean_rtt_s",
        "mean of the round-trip samples, measured",
    ),
    ("flows", "min_rtt_s", "least round-trip time"),
    ("flows", "window_bytes", "congestion window at the end"),
    (
        "flows",
        "mean_window_bytes",
        "mean congestion window, measured",
    ),
    (
        "flows",
        "ssthresh_bytes",
        "slow-start threshold at the end; empty without a limit",
    ),
    (
        "flows",
        "capacity_bps",
        "capacity of the bottleneck that the controller uses at the end",
    ),
    (
        "flows",
        "reads",
        "reads that a playback reader tried, measured",
    ),
    (
        "flows",
        "reads_satisfied",
        "reads that found all their bytes, measured",
    ),
    (
        "flows",
        "tokens_used_bytes",
        "bytes that the source's token bucket let through, measured",
    ),
    (
        "flows",
        "tokens_per_rtt_bytes",
        "mean of these bytes in a round trip",
    ),
    (
        "flows",
        "tokens_per_rtt_stddev_bytes",
        "standard deviation of these bytes from round trip to round trip",
    ),
    (
        "flows",
        "sections_submitted",
        "sections that the transport accepted",
    ),
    (
        "flows",
        "sections_refused",
        "sections that the transport refused for lack of room",
    ),
    (
        "flows",
        "sections_shed",
        "frames that the source shed before submission",
    ),
    (
        "flows",
        "sections_on_time",
        "sections complete by their deadline",
    ),
    (
        "flows",
        "sections_late",
        "sections complete after their deadline",
    ),
    ("flows", "sections_open", "sections not settled at the end"),
    (
        "flows",
        "sections_decodable",
        "sections on time with everything that they need",
    ),
    (
        "flows",
        "sections_submitted_bytes",
        "bytes of the accepted sections",
    ),
    (
        "flows",
        "sections_refused_bytes",
        "bytes of the refused sections",
    ),
    ("flows", "sections_shed_bytes", "bytes of the shed frames"),
    (
        "flows",
        "sections_on_time_bytes",
        "bytes of the sections on time",
    ),
    (
        "flows",
        "sections_decodable_bytes",
        "bytes of the decodable sections",
    ),
    (
        "flows",
        "sections_open_bytes",
        "bytes of the sections not settled at the end",
    ),
    (
        "flows",
        "gaps_closed",
        "missing sections: the connection ended",
    ),
    (
        "flows",
        "gaps_obsolete",
        "missing sections: the sender went on without a reason",
    ),
    (
        "flows",
        "gaps_overdue",
        "missing sections: the deadline passed at the receiver",
    ),
    (
        "flows",
        "gaps_dependency",
        "missing sections: a section that they need is missing",
    ),
    (
        "flows",
        "gaps_expired",
        "missing sections: the deadline passed at the sender",
    ),
    (
        "flows",
        "gaps_infeasible",
        "missing sections: they could not have arrived in time",
    ),
    (
        "flows",
        "gaps_withdrawn",
        "missing sections: the application shed or withdrew them",
    ),
    (
        "flows",
        "intra_submitted",
        "intra frames of the source, refused and shed ones included",
    ),
    ("flows", "intra_on_time", "intra frames on time"),
    (
        "flows",
        "intra_decodable",
        "intra frames on time with everything that they need",
    ),
    ("flows", "intra_open", "intra frames not settled at the end"),
    (
        "flows",
        "predicted_submitted",
        "predicted frames of the source, refused and shed ones included",
    ),
    ("flows", "predicted_on_time", "predicted frames on time"),
    (
        "flows",
        "predicted_decodable",
        "predicted frames on time with everything that they need",
    ),
    (
        "flows",
        "predicted_open",
        "predicted frames not settled at the end",
    ),
    (
        "flows",
        "bidirectional_submitted",
        "bidirectional frames of the source, refused and shed ones included",
    ),
    (
        "flows",
        "bidirectional_on_time",
        "bidirectional frames on time",
    ),
    (
        "flows",
        "bidirectional_decodable",
        "bidirectional frames on time with everything that they need",
    ),
    (
        "flows",
        "bidirectional_open",
        "bidirectional frames not settled at the end",
    ),
    (
        "flows",
        "sent_late_bytes",
        "bytes of sections sent at or after their deadline, whole run",
    ),
    (
        "flows",
        "retransmitted_bytes",
        "bytes of sections retransmitted, measured",
    ),
    (
        "flows",
        "lost_packets",
        "packets that the source declared lost, measured",
    ),
    (
        "flows",
        "spurious_loss_packets",
        "packets declared lost that arrived later, measured",
    ),
    (
        "flows",
        "marked_packets",
        "packets that arrived with an ECN mark, measured",
    ),
    (
        "flows",
        "equal_share_bytes",
        "sections that an equal share of the narrowest link carries, measured",
    ),
    (
        "flows",
        "target_bitrate_bps",
        "bit rate that the transport offered its application at the end",
    ),
    (
        "flows",
        "section_age_mean_s",
        "mean time from a section's source time until it was complete",
    ),
    (
        "flows",
        "slack_p1_s",
        "time left until the deadline that 99 % of the complete sections had; negative after it",
    ),
    (
        "flows",
        "slack_p50_s",
        "time left until the deadline that half of the complete sections had",
    ),
    ("flows", "closed_ns", "end of the connection, if it ended"),
    (
        "flows",
        "timeline_sections",
        "TLTCP: sections that the transport accepted",
    ),
    (
        "flows",
        "timeline_refused",
        "TLTCP: sections refused because the stream was too far ahead of the ACKs",
    ),
    (
        "flows",
        "timeline_left_out",
        "TLTCP: frames and sections that the source dropped before submission",
    ),
    (
        "flows",
        "timeline_in_time",
        "TLTCP: sections complete at the reader by their deadline",
    ),
    (
        "flows",
        "timeline_intra_in_time",
        "TLTCP: intra frames among them",
    ),
    (
        "flows",
        "timeline_predicted_in_time",
        "TLTCP: predicted frames among them",
    ),
    (
        "flows",
        "timeline_bidirectional_in_time",
        "TLTCP: bidirectional frames among them",
    ),
    (
        "flows",
        "timeline_other_in_time",
        "TLTCP: sections among them that are no frames",
    ),
    (
        "flows",
        "timeline_late",
        "TLTCP: sections complete after their deadline",
    ),
    (
        "flows",
        "timeline_broken",
        "TLTCP: sections of which bytes are missing for good",
    ),
    (
        "flows",
        "timeline_expired",
        "TLTCP: sections not fully acknowledged at their deadline",
    ),
    (
        "flows",
        "timeline_jumps",
        "TLTCP: jumps of the sender over bytes never sent",
    ),
    ("flows", "timeline_gaps", "TLTCP: gaps in the reader's data"),
    ("flows", "timeline_gap_bytes", "TLTCP: bytes in these gaps"),
    (
        "flows",
        "timeline_discarded_bytes",
        "TLTCP: bytes discarded before they were sent",
    ),
    (
        "flows",
        "timeline_obsolete_bytes",
        "TLTCP: bytes sent and not acknowledged when they became obsolete",
    ),
    (
        "flows",
        "timeline_pseudo_retransmissions",
        "TLTCP: losses of obsolete data answered with current data sent before",
    ),
    (
        "flows",
        "timeline_replacements",
        "TLTCP: losses of obsolete data answered with a new packet",
    ),
    (
        "flows",
        "timeline_notices",
        "TLTCP: segments that carried only `seq_update`",
    ),
    // links
    ("links", "offered_packets", "packets offered to the link"),
    (
        "links",
        "delivered_packets",
        "packets that arrived at the far end",
    ),
    (
        "links",
        "dropped_full_packets",
        "packets dropped by a full queue",
    ),
    (
        "links",
        "dropped_early_packets",
        "packets dropped early by RED, CoDel, FQ-CoDel or PIE",
    ),
    (
        "links",
        "lost_packets",
        "packets lost by a loss model, or larger than the link's MTU",
    ),
    (
        "links",
        "dropped_measured_packets",
        "all drops and losses, measured",
    ),
    (
        "links",
        "dropped_data_packets",
        "drops and losses of data packets",
    ),
    ("links", "dropped_acks", "drops and losses of ACKs"),
    ("links", "marked_packets", "packets that got an ECN mark"),
    ("links", "duplicated_packets", "copies that the link made"),
    (
        "links",
        "queued_at_end_packets",
        "packets in the queue or in service at the end",
    ),
    (
        "links",
        "in_flight_at_end_packets",
        "packets on the wire at the end",
    ),
    (
        "links",
        "carried_bytes",
        "bytes that left the queue, measured",
    ),
    (
        "links",
        "utilisation",
        "these bytes over what the rate allowed, measured; empty without a rate",
    ),
    (
        "links",
        "mean_queue_packets",
        "mean number of packets in the queue or in service, measured",
    ),
    // bins
    (
        "flow_series",
        "delivered_bytes",
        "payload delivered in order in the bin",
    ),
    ("flow_series", "sent_packets", "packets sent in the bin"),
    (
        "flow_series",
        "retransmitted_packets",
        "retransmissions sent in the bin",
    ),
    (
        "flow_series",
        "window_bytes",
        "congestion window at the end of the bin",
    ),
    (
        "flow_series",
        "ssthresh_bytes",
        "slow-start threshold at the end of the bin; empty without a limit",
    ),
    (
        "flow_series",
        "srtt_ns",
        "smoothed round-trip time at the end of the bin",
    ),
    (
        "link_series",
        "carried_bytes",
        "bytes that left the queue in the bin",
    ),
    (
        "link_series",
        "dropped_packets",
        "packets dropped or lost in the bin",
    ),
    (
        "link_series",
        "max_queue_packets",
        "most packets in the queue or in service in the bin",
    ),
    (
        "flow_variation",
        "scale_ns",
        "time scale: the length of an interval",
    ),
    ("flow_variation", "intervals", "number of intervals"),
    (
        "flow_variation",
        "goodput_variation",
        "standard deviation over mean of the goodput of the intervals",
    ),
];

/// The units of all columns, by table, as the results' own metadata has them.
fn units() -> Value {
    let run = CompletedRun {
        axes: vec![("AXIS".into(), AxisValue::Integer(1))],
        seed: Seed::new(1),
        report: RunReport {
            world: World::Simulator,
            seed: Seed::new(1),
            fingerprint: 0,
            duration: Span::from_secs(1),
            warmup: Span::ZERO,
            flows: Vec::new(),
            links: Vec::new(),
            cost: Cost::default(),
            series: Some(Series::default()),
        },
    };
    let set = ResultSet {
        scenario: ScenarioInfo {
            name: "columns".into(),
            text: String::new(),
        },
        command: String::new(),
        runs: vec![run],
    };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("columns.json");
    write(&set, Format::Json, &file).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    document["metadata"]["units"].clone()
}

/// What a column means; the row of [`MEANINGS`] that says so is added to `used`.
fn meaning(table: &str, column: &str, used: &mut BTreeSet<usize>) -> String {
    let row = MEANINGS
        .iter()
        .position(|(of, name, _)| *name == column && (*of == table || *of == "*"));
    if let Some(row) = row {
        used.insert(row);
        return MEANINGS[row].2.into();
    }
    for (end, number) in SUMMARY {
        let distribution = DISTRIBUTIONS
            .iter()
            .find(|(start, _)| column.strip_suffix(end) == Some(*start));
        if let Some((_, what)) = distribution {
            return format!("{number} {what}");
        }
    }
    panic!("say in MEANINGS what the column {column} of {table} means");
}

fn page() -> String {
    let mut page = String::from(
        "# Result columns\n\n\
         Generated from the tables in `crates/sim/src/results`;\n\
         `COMITY_UPDATE=1 cargo test -p comity-sim --test scenario_reference columns` writes it anew.\n\n\
         `comity sim run FILE --out PATH` and `comity lab run FILE --out PATH` store these tables as Parquet,\n\
         CSV or JSON. Every table but those of bins repeats the axes and the seed of the run.\n\n\
         \"Measured\" numbers count from the end of the warm-up to the end of the run. All other numbers count\n\
         the whole run. A value that does not exist, such as the mean of no delays, is null in JSON and\n\
         Parquet and empty in CSV. The unit 1 stands for counts, ratios, names and numbers of things.\n",
    );
    let units = units();
    let mut used = BTreeSet::new();
    for (table, rows) in TABLES {
        let columns = units[table].as_object().expect("the table is there");
        write!(
            page,
            "\n## {table}\n\n{rows}\n\n| column | unit | meaning |\n| --- | --- | --- |\n"
        )
        .unwrap();
        for (column, unit) in columns {
            let (unit, meaning) = (unit.as_str().unwrap(), meaning(table, column, &mut used));
            writeln!(page, "| `{column}` | {unit} | {meaning} |").unwrap();
        }
    }
    for (row, (table, column, _)) in MEANINGS.iter().enumerate() {
        assert!(used.contains(&row), "{table} has no column {column}");
    }
    page
}

#[test]
fn the_columns_on_the_page_are_those_of_the_results() {
    let page = page();
    if std::env::var_os("COMITY_UPDATE").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/columns.md is not what the tables say; write it anew with COMITY_UPDATE=1"
    );
}
