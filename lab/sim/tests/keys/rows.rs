//! The keys, each with two values and what else the scenario needs.

mod frames;
mod networks;
mod transfers;

pub(super) use frames::{ENCODER, VIDEO};
pub(super) use networks::{LOT, LOT_ENDS};
pub(super) use transfers::TMIX;

/// A key, and two values that make a difference.
pub(super) struct Row {
    /// The table, as in the schema, with the tag of an alternative.
    table: &'static str,
    /// The path to the table, with its last dot.
    pub(super) at: &'static str,
    pub(super) key: &'static str,
    pub(super) values: [&'static str; 2],
    /// What else is set.
    pub(super) with: &'static [&'static str],
}

impl Row {
    pub(super) fn id(&self) -> String {
        format!("{}.{}", self.table, self.key)
    }
}

type Keys = &'static [(&'static str, &'static str, &'static str)];

/// Rows of one table that need the same settings.
struct Group(&'static str, &'static str, &'static [&'static str], Keys);

pub(super) const SECTIONS: &str = "flow.a.transport=sections";
pub(super) const DATAGRAM: &str = "flow.a.transport=datagram";
pub(super) const POISSON: &str = "flow.a.workload={ kind = 'poisson', rate = '1Mbps' }";
const PAUSES: &str =
    "flow.a.workload={ kind = 'on_off', rate = '3Mbps', mean_on = '300ms', mean_off = '900ms' }";
const FILE: &str = "flow.a.workload={ kind = 'file', size = '200kB' }";
const NS2: &str = "flow.a.preset=ns2-2.35";
const HOST: &str = "{ rate = '3Mbps', delay = '4ms' }";

/// The groups of rows of scenarios and flows.
const GROUPS: &[Group] = &[
    Group(
        "scenario",
        "scenario.",
        &[],
        &[("duration", "8s", "9s"), ("warmup", "0s", "2s")],
    ),
    Group(
        "scenario",
        "scenario.",
        &[],
        &[("bins", "1s", "2s"), ("seeds", "[1]", "[2]")],
    ),
    Group(
        "scenario",
        "scenario.",
        &["scenario.bins=500ms"],
        &[(
            "convergence",
            "{ tolerance = 0.9, hold = '1s' }",
            "{ tolerance = 0.01, hold = '1s' }",
        )],
    ),
    Group(
        "convergence",
        "scenario.convergence.",
        &[
            "scenario.bins=500ms",
            "scenario.convergence={ tolerance = 0.9, hold = '500ms' }",
        ],
        &[("tolerance", "0.9", "0.01"), ("hold", "500ms", "20s")],
    ),
    Group(
        "flow",
        "flow.a.",
        &[],
        &[
            ("count", "2", "3"),
            ("name", "x{i}", "y{i}"),
            ("rtt", "100ms", "['50ms', '100ms']"),
            ("access", "none", HOST),
            ("access_to", "none", HOST),
            ("start", "0s", "1s"),
            ("stop", "4s", "5s"),
            (
                "workload",
                "{ kind = 'greedy' }",
                "{ kind = 'file', size = '100kB' }",
            ),
        ],
    ),
    Group(
        "flow",
        "flow.a.",
        &["flow.a.access={ rate = '9Mbps', delay = '1ms' }"],
        &[("access_delays", "['1ms']", "['1ms', '30ms']")],
    ),
    Group(
        "flow",
        "flow.a.",
        &[LOT, "flow.a.to=n3"],
        &[("from", "n0", "n1")],
    ),
    Group(
        "flow",
        "flow.a.",
        &[LOT, "flow.a.from=n0"],
        &[("to", "n2", "n3")],
    ),
    Group(
        "a_start",
        "flow.a.start.",
        &[],
        &[("at", "0s", "1s"), ("spread", "50ms", "90ms")],
    ),
    Group(
        "flow(tcp)",
        "flow.a.",
        &[],
        &[
            ("preset", "modern", "ns2-2.35"),
            ("packet", "'1500B'", "'1000B'"),
            ("mss", "'1000B'", "'500B'"),
            ("headers", "real", "'60B'"),
            ("rwnd", "4", "5"),
            ("initial_window", "2", "4"),
            ("ssthresh", "12", "40"),
            ("controller", "cubic", "reno"),
            ("recovery", "sack", "newreno"),
            ("tail_loss_probe", "true", "false"),
            ("prr", "true", "false"),
            ("undo", "true", "false"),
            ("delayed_ack", "true", "false"),
            ("timestamps", "true", "false"),
            ("duplicate_sack", "true", "false"),
            ("handshake", "true", "false"),
            ("max_burst", "1", "9"),
            ("rto", "{ min_timeout = '200ms' }", "{ min_timeout = '1s' }"),
            ("timeline", "{ deadline = '1s' }", "{ deadline = '500ms' }"),
            (
                "reader",
                "{ kind = 'playback', bytes = '9kB', interval = '100ms' }",
                "{ kind = 'playback', bytes = '5kB', interval = '100ms' }",
            ),
            ("give_up_after", "1", "9"),
        ],
    ),
    Group(
        "flow(tcp)",
        "flow.a.",
        &["flow.a.rwnd='60kB'"],
        &[("window_scaling", "true", "false")],
    ),
    Group(
        "flow(tcp)",
        "flow.a.",
        &["flow.a.controller=libra"],
        &[("timestamp_tick", "1ms", "100ms")],
    ),
    Group(
        "flow(tcp)",
        "flow.a.",
        &["flow.a.recovery=newreno"],
        &[
            ("impatient", "true", "false"),
            ("deflate_window", "true", "false"),
            ("sack", "true", "false"),
        ],
    ),
    Group(
        "flow(tcp)",
        "flow.a.",
        &["flow.a.recovery=sack"],
        &[
            ("pipe", "scoreboard", "counter"),
            ("duplicate_threshold", "3", "6"),
        ],
    ),
    Group(
        "flow(tcp)",
        "flow.a.",
        &[NS2, "flow.a.recovery=reno", "flow.a.rwnd=30"],
        &[
            ("bugfix", "true", "false"),
            ("limited_transmit", "true", "false"),
            ("restart_timer_before_sample", "true", "false"),
        ],
    ),
    Group(
        "flow(tcp)",
        "flow.a.",
        &["topology.bottleneck.queue={ kind = 'codel', ecn = true }"],
        &[("ecn", "true", "false")],
    ),
    Group(
        "flow(tcp)",
        "flow.a.",
        &[PAUSES],
        &[("restart_after_idle", "true", "false")],
    ),
    Group(
        "flow(datagram)",
        "flow.a.",
        &[DATAGRAM, POISSON],
        &[("packet", "'1500B'", "'700B'")],
    ),
    Group(
        "fixed_headers",
        "flow.a.headers.",
        &["flow.a.headers={ bytes = '40B' }"],
        &[
            ("bytes", "'40B'", "'60B'"),
            ("per_sack_block", "'0B'", "'8B'"),
        ],
    ),
    Group(
        "delayed_acknowledgements",
        "flow.a.delayed_ack.",
        &["flow.a.delayed_ack={ segments = 2 }"],
        &[
            ("segments", "2", "4"),
            ("timeout", "40ms", "5ms"),
            ("quick", "0", "200"),
        ],
    ),
    Group(
        "a_retransmission_timer",
        "flow.a.rto.",
        &[NS2, "flow.a.recovery=reno", "flow.a.rwnd=30"],
        &[
            ("tick", "10ms", "100ms"),
            ("phase", "0s", "3ms"),
            ("granularity", "10ms", "500ms"),
            ("min_timeout", "200ms", "1s"),
            ("max_timeout", "64s", "300ms"),
            ("max_doublings", "6", "0"),
            ("floor_before_backoff", "true", "false"),
        ],
    ),
    Group(
        "a_retransmission_timer",
        "flow.a.rto.",
        &[
            NS2,
            "topology.bottleneck.losses=[{ model = 'packets', packets = [0, 1] }]",
        ],
        &[("initial_timeout", "6s", "1s")],
    ),
    Group(
        "a_retransmission_timer",
        "flow.a.rto.",
        &["flow.a.rto={ min_timeout = '20ms', granularity = '1ms' }"],
        &[("forget_after_backoff", "true", "false")],
    ),
    Group(
        "a_time_line",
        "flow.a.timeline.",
        &[
            "flow.a.timeline={ deadline = '400ms' }",
            "flow.a.preset=ns2-2000",
            "flow.a.rwnd=10",
            "flow.a.count=6",
        ],
        &[
            ("section", "'30kB'", "'700kB'"),
            ("deadline", "400ms", "500ms"),
            ("drop_expired", "true", "false"),
            ("blind_spot", "true", "false"),
            ("holds_passed", "true", "false"),
            ("samples_obsolete", "false", "true"),
            ("lifetime_on_tick", "true", "false"),
            ("relative_to", "sender", "receiver"),
        ],
    ),
    Group(
        "a_time_line",
        "flow.a.timeline.",
        &["flow.a.timeline={ deadline = '400ms' }", VIDEO],
        &[("feedback", "500ms", "2s")],
    ),
    Group(
        "a_workload(file)",
        "flow.a.workload.",
        &[FILE],
        &[("size", "'200kB'", "'300kB'")],
    ),
    Group(
        "a_workload(cbr)",
        "flow.a.workload.",
        &["flow.a.workload={ kind = 'cbr', rate = '1Mbps' }", DATAGRAM],
        &[("rate", "1Mbps", "2Mbps"), ("jitter", "0", "1")],
    ),
    Group(
        "a_workload(cbr)",
        "flow.a.workload.",
        &["flow.a.workload={ kind = 'cbr' }", DATAGRAM],
        &[("interval", "10ms", "20ms"), ("gap", "10ms", "20ms")],
    ),
    Group(
        "a_workload(on_off)",
        "flow.a.workload.",
        &[PAUSES],
        &[
            ("rate", "3Mbps", "2Mbps"),
            ("mean_on", "300ms", "1s"),
            ("mean_off", "900ms", "300ms"),
        ],
    ),
    Group(
        "a_workload(token_bucket)",
        "flow.a.workload.",
        &[
            "flow.a.workload={ kind = 'token_bucket', depth = '20kB', refill = '5kB', interval = '30ms' }",
        ],
        &[
            ("depth", "'20kB'", "'40kB'"),
            ("refill", "'5kB'", "'2kB'"),
            ("interval", "30ms", "60ms"),
        ],
    ),
    Group(
        "a_workload(poisson)",
        "flow.a.workload.",
        &[POISSON, DATAGRAM],
        &[("rate", "1Mbps", "2Mbps")],
    ),
    Group(
        "a_reader(playback)",
        "flow.a.reader.",
        &[
            "flow.a.reader={ kind = 'playback', bytes = '9kB', interval = '20ms' }",
            "flow.a.rwnd='30kB'",
        ],
        &[
            ("bytes", "'9kB'", "'20kB'"),
            ("interval", "100ms", "50ms"),
            ("delay", "0s", "1s"),
            ("buffer", "'9kB'", "'25kB'"),
        ],
    ),
    Group(
        "a_reader(playback)",
        "flow.a.reader.",
        &["flow.a.reader={ kind = 'playback', interval = '100ms' }"],
        &[("frames", "a.csv", "b.csv")],
    ),
    Group(
        "flow(sections)",
        "flow.a.",
        &[SECTIONS, VIDEO],
        &[
            ("controller", "steady", "rap"),
            ("initial_window", "10", "2"),
            ("latency", "120ms", "90ms"),
            ("drop", "infeasible", "never"),
            ("reliability", "timeline", "none"),
            ("payload", "'1423B'", "'900B'"),
            ("overhead", "'57B'", "'77B'"),
            ("pad", "false", "true"),
            ("acknowledgement", "'100B'", "'900B'"),
            ("ack_frequency", "4", "1"),
            ("ack_delay", "10ms", "1ms"),
            ("shed", "true", "false"),
            ("buffer", "'60kB'", "'16MiB'"),
            ("idle_timeout", "5s", "1s"),
            ("deliver", "paced", "early"),
        ],
    ),
    Group(
        "flow(sections)",
        "flow.a.",
        &[
            SECTIONS,
            VIDEO,
            "topology.bottleneck.queue={ kind = 'codel', ecn = true }",
        ],
        &[("ecn", "true", "false")],
    ),
    Group(
        "flow(sections)",
        "flow.a.",
        &[SECTIONS, VIDEO, "flow.a.controller=reno"],
        &[("pace_windows", "true", "false")],
    ),
    Group(
        "flow(sections)",
        "flow.a.",
        &[
            SECTIONS,
            "flow.a.workload={ kind = 'cbr', interval = '2s' }",
        ],
        &[
            ("keep_alive", "1s", "300ms"),
            ("section", "'1200B'", "'9000B'"),
        ],
    ),
];

pub(super) fn rows() -> Vec<Row> {
    let of_group = |Group(table, at, with, keys): &Group| {
        let (table, at, with) = (*table, *at, *with);
        keys.iter().map(move |&(key, first, second)| Row {
            table,
            at,
            key,
            values: [first, second],
            with,
        })
    };
    GROUPS
        .iter()
        .chain(networks::GROUPS)
        .chain(frames::GROUPS)
        .chain(transfers::GROUPS)
        .flat_map(of_group)
        .collect()
}
