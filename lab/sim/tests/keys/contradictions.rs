//! Settings that contradict each other.

use super::rows::{DATAGRAM, ENCODER, LOT, LOT_ENDS, POISSON, SECTIONS, TMIX, VIDEO};

/// Overrides that contradict each other, and the key that the message names.
pub(super) const CONTRADICTIONS: &[(&[&str], &str)] = &[
    (&["flow.a.recovery=sack", "flow.a.prr=true"], "flow.a.prr"),
    (
        &["flow.a.recovery=sack", "flow.a.impatient=true"],
        "flow.a.impatient",
    ),
    (&["flow.a.pipe=counter"], "flow.a.pipe"),
    (
        &["flow.a.timestamps=false", "flow.a.timestamp_tick=9ms"],
        "flow.a.timestamp_tick",
    ),
    (
        &[
            "flow.a.recovery=newreno",
            "flow.a.sack=false",
            "flow.a.duplicate_sack=true",
        ],
        "flow.a.duplicate_sack",
    ),
    (
        &[
            VIDEO,
            "flow.a.timeline={ deadline = '1s', section = '9kB' }",
        ],
        "flow.a.timeline.section",
    ),
    (
        &["flow.a.timeline={ deadline = '1s', feedback = '1s' }"],
        "flow.a.timeline.feedback",
    ),
    (
        &["flow.a.timeline={ deadline = '1s', drop_expired = false, blind_spot = true }"],
        "flow.a.timeline.blind_spot",
    ),
    (
        &["flow.a.timeline={ deadline = '1s', drop_expired = false, samples_obsolete = false }"],
        "flow.a.timeline.samples_obsolete",
    ),
    (
        &["flow.a.timeline={ deadline = '1s', lifetime_on_tick = true }"],
        "flow.a.timeline.lifetime_on_tick",
    ),
    (
        &["flow.a.timeline={ deadline = '1s', drop_expired = false, relative_to = 'receiver' }"],
        "flow.a.timeline.relative_to",
    ),
    (&[SECTIONS, VIDEO, "flow.a.section='9kB'"], "flow.a.section"),
    (
        &[SECTIONS, ENCODER, "flow.a.section='9kB'"],
        "flow.a.section",
    ),
    (
        &[
            SECTIONS,
            ENCODER,
            "flow.a.workload.key_size=1",
            "flow.a.workload.burst=4",
        ],
        "flow.a.workload.burst",
    ),
    (
        &[
            SECTIONS,
            ENCODER,
            "flow.a.workload.min_rate=3Mbps",
            "flow.a.workload.reaction=1s",
        ],
        "flow.a.workload.reaction",
    ),
    (&["flow.a.start.arrivals=1s"], "flow.a.start.arrivals"),
    (
        &[TMIX, "flow.a.start={ arrivals = '1s' }"],
        "flow.a.start.arrivals",
    ),
    (&[TMIX, "flow.a.count=3"], "flow.a.count"),
    (&[TMIX, SECTIONS], "flow.a.workload"),
    (&[TMIX, DATAGRAM], "flow.a.workload"),
    (
        &[
            "flow.a.workload={ kind = 'file', size = { kind = 'pareto', mean = '9kB', max = '9kB' } }",
        ],
        "flow.a.workload.size.mean",
    ),
    (&[DATAGRAM, ENCODER], "flow.a.workload"),
    (&[ENCODER], "flow.a.workload"),
    (
        &[ENCODER, "flow.a.timeline={ deadline = '1s' }"],
        "flow.a.workload",
    ),
    (
        &[
            SECTIONS,
            VIDEO,
            "flow.a.reliability=full",
            "flow.a.shed=true",
        ],
        "flow.a.shed",
    ),
    (&[SECTIONS, "flow.a.shed=true"], "flow.a.shed"),
    (
        &[
            SECTIONS,
            VIDEO,
            "flow.a.reliability=full",
            "flow.a.drop=expired",
        ],
        "flow.a.drop",
    ),
    (&[SECTIONS, "flow.a.drop=expired"], "flow.a.drop"),
    (&[SECTIONS, "flow.a.deliver=paced"], "flow.a.deliver"),
    (
        &[
            LOT,
            LOT_ENDS[0],
            LOT_ENDS[1],
            "topology.different=[{ number = 2, rate = '2Mbps', delay = '9ms' }, \
             { number = 2, rate = '3Mbps', delay = '9ms' }]",
        ],
        "topology.different.1.number",
    ),
    (
        &["flow.a.rtt=100ms", "flow.a.access_delays=['1ms']"],
        "flow.a.access_delays",
    ),
    (&["flow.a.access_delays=['1ms']"], "flow.a.access_delays"),
    (
        &["scenario.convergence={ tolerance = 0.1, hold = '1s' }"],
        "scenario.convergence",
    ),
    (
        &[
            "topology.bottleneck.losses=[{ model = 'gilbert_elliott', good_to_bad = 0.1, \
             bad_to_good = 0.5, direction = 'both' }]",
        ],
        "topology.bottleneck.losses.0.direction",
    ),
    (
        &[
            "topology.bottleneck.reverse={ losses = [{ model = 'bernoulli', probability = 0.1, \
           direction = 'both' }] }",
        ],
        "topology.bottleneck.reverse.losses.0.direction",
    ),
    (
        &["topology.bottleneck.trace=a.up"],
        "topology.bottleneck.trace",
    ),
    (&[DATAGRAM, POISSON, "flow.a.rwnd=9"], "rwnd"),
];
