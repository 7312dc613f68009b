//! The keys of short flows: arrivals, random sizes, traces of connections.

use super::Group;

pub(in crate::keys) const TMIX: &str = "flow.a.workload={ kind = 'tmix', file = 'a.tmix' }";

pub(super) const GROUPS: &[Group] = &[
    Group(
        "a_start",
        "flow.a.start.",
        &["flow.a.start={}"],
        &[("arrivals", "100ms", "1s")],
    ),
    Group(
        "a_distribution_of_sizes(pareto)",
        "flow.a.workload.size.",
        &["flow.a.workload={ kind = 'file', size = { kind = 'pareto', mean = '30kB' } }"],
        &[
            ("mean", "30kB", "60kB"),
            ("shape", "1.2", "2"),
            ("max", "100kB", "1MB"),
        ],
    ),
    Group(
        "a_distribution_of_sizes(empirical)",
        "flow.a.workload.size.",
        &["flow.a.workload={ kind = 'file', size = { kind = 'empirical', file = 'a.sizes' } }"],
        &[("file", "a.sizes", "b.sizes")],
    ),
    Group(
        "a_workload(tmix)",
        "flow.a.workload.",
        &[TMIX],
        &[
            ("file", "a.tmix", "b.tmix"),
            ("sender", "acceptor", "initiator"),
            ("scale", "1", "3"),
        ],
    ),
];
