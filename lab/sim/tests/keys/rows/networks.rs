//! The keys of networks: topologies, links, queues, losses, jitter.

use super::{Group, HOST, Keys};

pub(in crate::keys) const LOT: &str = "topology={ kind = 'parking_lot', links = 3, link = { rate = '4Mbps', delay = '5ms', queue = 12 } }";
pub(in crate::keys) const LOT_ENDS: [&str; 2] = ["flow.a.from=n0", "flow.a.to=n2"];
const DIFFERENT: &str = "topology.different=[{ number = 2, rate = '2Mbps', delay = '9ms' }]";
const GRAPH: &str = "topology={ kind = 'graph', nodes = ['p', 'q', 'r'], link = [\
    { name = 'l', from = 'p', to = 'q', rate = '4Mbps', delay = '15ms', queue = 12 }, \
    { name = 'm', from = 'q', to = 'r', rate = '4Mbps', delay = '15ms', queue = 12 }, \
    { name = 'n', from = 'r', to = 'q', rate = '3Mbps', delay = '10ms', queue = 9, duplex = false }] }";
const GRAPH_ENDS: [&str; 2] = ["flow.a.from=p", "flow.a.to=r"];

const LINK: Keys = &[
    ("rate", "2Mbps", "3Mbps"),
    ("delay", "10ms", "11ms"),
    ("mtu", "'1400B'", "'9000B'"),
    ("queue", "8", "9"),
    (
        "losses",
        "[]",
        "[{ model = 'bernoulli', probability = 0.1 }]",
    ),
    ("jitter", "0s", "5ms"),
    ("duplication", "0", "0.1"),
];
/// Links of acknowledgements, which are small.
const ACK_LINK: Keys = &[
    ("rate", "50kbps", "40kbps"),
    ("delay", "10ms", "11ms"),
    ("mtu", "'60B'", "'9000B'"),
    ("queue", "2", "8"),
    (
        "losses",
        "[]",
        "[{ model = 'bernoulli', probability = 0.1 }]",
    ),
    ("jitter", "0s", "5ms"),
    ("duplication", "0", "0.1"),
];
const REVERSE: Keys = &[("reverse", "{ rate = '1Mbps' }", "{ rate = '50kbps' }")];
const TRACE: Keys = &[("trace", "a.up", "b.up")];

pub(super) const GROUPS: &[Group] = &[
    Group(
        "topology(dumbbell)",
        "topology.",
        &[],
        &[
            (
                "bottleneck",
                "{ rate = '4Mbps', delay = '15ms' }",
                "{ rate = '3Mbps', delay = '15ms' }",
            ),
            ("access", "none", HOST),
            ("access_to", "none", HOST),
        ],
    ),
    Group(
        "topology(dumbbell)",
        "topology.",
        &["topology.access={ rate = '3Mbps', delay = '4ms', queue = 5 }"],
        &[("pairs", "1", "2")],
    ),
    Group(
        "topology(parking_lot)",
        "topology.",
        &[LOT, LOT_ENDS[0], LOT_ENDS[1]],
        &[
            (
                "link",
                "{ rate = '4Mbps', delay = '15ms' }",
                "{ rate = '3Mbps', delay = '15ms' }",
            ),
            (
                "different",
                "[]",
                "[{ number = 2, rate = '2Mbps', delay = '9ms' }]",
            ),
            ("access", "none", HOST),
            ("access_to", "none", HOST),
        ],
    ),
    Group(
        "topology(parking_lot)",
        "topology.",
        &[LOT, "flow.a.from=n0", "flow.a.to=n{i+1}"],
        &[("links", "2", "3")],
    ),
    Group(
        "topology(graph)",
        "topology.",
        &[GRAPH, GRAPH_ENDS[0], GRAPH_ENDS[1]],
        &[("access", "none", HOST), ("access_to", "none", HOST)],
    ),
    Group(
        "topology(graph)",
        "topology.",
        &[GRAPH, GRAPH_ENDS[0], GRAPH_ENDS[1]],
        &[(
            "link",
            "[{ from = 'p', to = 'r', rate = '4Mbps', delay = '15ms' }]",
            "[{ from = 'p', to = 'r', rate = '3Mbps', delay = '15ms' }]",
        )],
    ),
    Group("a_link", "topology.bottleneck.", &[], LINK),
    Group("a_link", "topology.bottleneck.", &[], REVERSE),
    Group(
        "a_link",
        "topology.bottleneck.",
        &["topology.bottleneck={ trace = 'a.up', delay = '15ms' }"],
        TRACE,
    ),
    Group(
        "a_one_way_link",
        "topology.bottleneck.reverse.",
        &["topology.bottleneck.reverse={ rate = '50kbps' }"],
        ACK_LINK,
    ),
    Group("a_one_way_link", "topology.bottleneck.reverse.", &[], TRACE),
    Group(
        "a_different_link",
        "topology.different.0.",
        &[LOT, DIFFERENT, LOT_ENDS[0], LOT_ENDS[1]],
        LINK,
    ),
    Group(
        "a_different_link",
        "topology.different.0.",
        &[LOT, DIFFERENT, LOT_ENDS[0], LOT_ENDS[1]],
        REVERSE,
    ),
    Group(
        "a_different_link",
        "topology.different.0.",
        &[LOT, DIFFERENT, LOT_ENDS[0], LOT_ENDS[1]],
        &[("number", "2", "3")],
    ),
    Group(
        "a_different_link",
        "topology.different.0.",
        &[
            LOT,
            "topology.different=[{ number = 2, trace = 'a.up', delay = '9ms' }]",
            LOT_ENDS[0],
            LOT_ENDS[1],
        ],
        TRACE,
    ),
    Group(
        "topology_link",
        "topology.link.l.",
        &[GRAPH, GRAPH_ENDS[0], GRAPH_ENDS[1]],
        LINK,
    ),
    Group(
        "topology_link",
        "topology.link.l.",
        &[GRAPH, GRAPH_ENDS[0], GRAPH_ENDS[1]],
        REVERSE,
    ),
    Group(
        "topology_link",
        "topology.link.l.",
        &[GRAPH, GRAPH_ENDS[0], GRAPH_ENDS[1]],
        &[("to", "q", "r")],
    ),
    Group(
        "topology_link",
        "topology.link.n.",
        &[GRAPH, GRAPH_ENDS[0], GRAPH_ENDS[1]],
        &[("from", "r", "p"), ("duplex", "false", "true")],
    ),
    Group(
        "topology_link",
        "topology.link.0.",
        &[
            GRAPH,
            "topology.link.l.losses=[{ model = 'bernoulli', probability = 0.1 }]",
            GRAPH_ENDS[0],
            GRAPH_ENDS[1],
        ],
        &[("name", "l", "k")],
    ),
    Group(
        "topology_link",
        "topology.link.0.",
        &[
            "topology={ kind = 'graph', nodes = ['p', 'r'], link = [\
             { from = 'p', to = 'r', trace = 'a.up', delay = '15ms' }] }",
            GRAPH_ENDS[0],
            GRAPH_ENDS[1],
        ],
        TRACE,
    ),
    Group(
        "a_step_of_the_rate",
        "topology.bottleneck.rate.1.",
        &[
            "topology.bottleneck.rate=[{ at = '0s', rate = '4Mbps' }, { at = '2s', rate = '2Mbps' }]",
        ],
        &[("at", "2s", "3s"), ("rate", "2Mbps", "1Mbps")],
    ),
    Group(
        "a_step_of_the_delay",
        "topology.bottleneck.delay.1.",
        &["topology.bottleneck.delay=[{ at = '0s', delay = '9ms' }, { at = '2s', delay = '5ms' }]"],
        &[("at", "2s", "3s"), ("delay", "5ms", "7ms")],
    ),
    Group(
        "a_trace",
        "topology.bottleneck.trace.",
        &["topology.bottleneck={ trace = { file = 'a.up' }, delay = '15ms' }"],
        &[("file", "a.up", "b.up")],
    ),
    Group(
        "a_queue(drop_tail)",
        "topology.bottleneck.queue.",
        &["topology.bottleneck.queue={ kind = 'drop_tail', limit = 9 }"],
        &[("limit", "9", "10")],
    ),
    Group(
        "a_queue(red)",
        "topology.bottleneck.queue.",
        &[
            "topology.bottleneck.queue={ kind = 'red', weight = 0.02 }",
            "flow.a.ecn=true",
        ],
        &[
            ("limit", "8", "51"),
            ("min_threshold", "3", "8"),
            ("max_threshold", "10", "30"),
            ("max_probability", "0.1", "0.5"),
            ("weight", "0.02", "0.5"),
            ("gentle", "true", "false"),
            ("ecn", "true", "false"),
            ("wait", "true", "false"),
            ("unit", "packets", "bytes"),
        ],
    ),
    Group(
        "a_queue(red)",
        "topology.bottleneck.queue.",
        &["topology.bottleneck.queue={ kind = 'red', weight = 0.02, unit = 'bytes' }"],
        &[("mean_packet", "'500B'", "'1500B'")],
    ),
    Group(
        "a_queue(codel)",
        "topology.bottleneck.queue.",
        &[
            "topology.bottleneck.queue={ kind = 'codel' }",
            "flow.a.ecn=true",
        ],
        &[
            ("target", "5ms", "20ms"),
            ("interval", "100ms", "50ms"),
            ("limit", "9", "1000"),
            ("ecn", "true", "false"),
            ("mtu", "'1500B'", "'9000B'"),
        ],
    ),
    Group(
        "a_queue(fq_codel)",
        "topology.bottleneck.queue.",
        &[
            "topology.bottleneck.queue={ kind = 'fq_codel' }",
            "flow.a.ecn=true",
        ],
        &[
            ("target", "5ms", "20ms"),
            ("interval", "100ms", "50ms"),
            ("limit", "9", "1000"),
            ("ecn", "true", "false"),
            ("mtu", "'1500B'", "'9000B'"),
            ("queues", "1", "1024"),
            ("quantum", "'300B'", "'9000B'"),
        ],
    ),
    Group(
        "a_queue(fq_codel)",
        "topology.bottleneck.queue.",
        &[
            "topology.bottleneck.queue={ kind = 'fq_codel', limit = 8 }",
            "flow.a.count=8",
        ],
        &[("drop_batch", "1", "64")],
    ),
    Group(
        "a_queue(pie)",
        "topology.bottleneck.queue.",
        &[
            "topology.bottleneck.queue={ kind = 'pie' }",
            "flow.a.ecn=true",
            "flow.a.count=8",
        ],
        &[
            ("target", "15ms", "30ms"),
            ("update_interval", "15ms", "30ms"),
            ("limit", "9", "1000"),
            ("alpha", "0.125", "1"),
            ("beta", "1.25", "3"),
            ("max_burst", "150ms", "0s"),
            ("ecn", "true", "false"),
            ("mean_packet", "'1500B'", "'9000B'"),
        ],
    ),
    Group(
        "a_loss",
        "topology.bottleneck.losses.0.",
        &["topology.bottleneck.losses=[{ model = 'bernoulli', probability = 0.02 }]"],
        &[
            ("place", "after_transmission", "before_queue"),
            ("direction", "forward", "both"),
        ],
    ),
    Group(
        "a_loss(packets)",
        "topology.bottleneck.losses.0.",
        &["topology.bottleneck.losses=[{ model = 'packets', packets = [9] }]"],
        &[("packets", "[9]", "[30]")],
    ),
    Group(
        "a_loss(bernoulli)",
        "topology.bottleneck.losses.0.",
        &["topology.bottleneck.losses=[{ model = 'bernoulli', probability = 0.02 }]"],
        &[("probability", "0.02", "0.1")],
    ),
    Group(
        "a_loss(gilbert_elliott)",
        "topology.bottleneck.losses.0.",
        &[
            "topology.bottleneck.losses=[{ model = 'gilbert_elliott', good_to_bad = 0.02, bad_to_good = 0.3 }]",
        ],
        &[
            ("good_to_bad", "0.02", "0.1"),
            ("bad_to_good", "0.3", "0.9"),
            ("loss_good", "0", "0.1"),
            ("loss_bad", "1", "0.1"),
        ],
    ),
    Group(
        "a_loss(on_off)",
        "topology.bottleneck.losses.0.",
        &[
            "topology.bottleneck.losses=[{ model = 'on_off', mean_on = '1s', mean_off = '1s', drop_on = 0.1 }]",
        ],
        &[
            ("mean_on", "1s", "2s"),
            ("mean_off", "1s", "2s"),
            ("drop_on", "0.1", "0.3"),
            ("drop_off", "0", "0.1"),
            ("start_on", "true", "false"),
        ],
    ),
    Group(
        "a_loss(outage)",
        "topology.bottleneck.losses.0.",
        &["topology.bottleneck.losses=[{ model = 'outage', at = '2s', lasts = '1s' }]"],
        &[("at", "2s", "3s"), ("lasts", "1s", "2s")],
    ),
    Group(
        "jitter(uniform)",
        "topology.bottleneck.jitter.",
        &["topology.bottleneck.jitter={ kind = 'uniform', max = '20ms' }"],
        &[("max", "20ms", "10ms"), ("reorder", "false", "true")],
    ),
    Group(
        "jitter(normal)",
        "topology.bottleneck.jitter.",
        &["topology.bottleneck.jitter={ kind = 'normal', mean = '20ms', stddev = '9ms' }"],
        &[
            ("mean", "20ms", "10ms"),
            ("stddev", "9ms", "4ms"),
            ("reorder", "false", "true"),
        ],
    ),
    Group(
        "jitter(half_normal)",
        "topology.bottleneck.jitter.",
        &["topology.bottleneck.jitter={ kind = 'half_normal', stddev = '9ms', max = '20ms' }"],
        &[
            ("stddev", "9ms", "4ms"),
            ("max", "20ms", "10ms"),
            ("reorder", "false", "true"),
        ],
    ),
    Group(
        "jitter(exponential)",
        "topology.bottleneck.jitter.",
        &["topology.bottleneck.jitter={ kind = 'exponential', mean = '20ms' }"],
        &[("mean", "20ms", "10ms"), ("reorder", "false", "true")],
    ),
];
