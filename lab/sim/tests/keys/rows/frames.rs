//! The keys of sources of frames.

use super::{Group, SECTIONS};

pub(in crate::keys) const VIDEO: &str = "flow.a.workload={ kind = 'video', rate = '3Mbps' }";
pub(in crate::keys) const ENCODER: &str =
    "flow.a.workload={ kind = 'encoder', max_rate = '3Mbps' }";

pub(super) const GROUPS: &[Group] = &[
    Group(
        "a_workload(video)",
        "flow.a.workload.",
        &[VIDEO, SECTIONS],
        &[
            ("rate", "1Mbps", "2Mbps"),
            ("fps", "30", "25"),
            ("group", "30", "12"),
            ("b_frames", "2", "0"),
            ("ratio", "[5, 2, 1]", "[9, 2, 1]"),
            ("variation", "0", "0.5"),
        ],
    ),
    Group(
        "a_workload(encoder)",
        "flow.a.workload.",
        &[ENCODER, SECTIONS],
        &[
            ("min_rate", "150kbps", "2Mbps"),
            ("max_rate", "1Mbps", "2Mbps"),
            ("initial_rate", "150kbps", "1Mbps"),
            ("reaction", "200ms", "2s"),
            ("fps", "30", "25"),
            ("group", "30", "12"),
            ("key_size", "3.24", "5"),
            ("burst", "8", "20"),
            ("abrupt", "0.5", "0.1"),
            ("size_scale", "0.15", "0"),
            ("interval_scale", "0.15", "0"),
            ("pauses", "[]", "[{ at = '2s', lasts = '3s' }]"),
        ],
    ),
    Group(
        "a_pause",
        "flow.a.workload.pauses.0.",
        &[
            "flow.a.workload={ kind = 'encoder', pauses = [{ at = '2s', lasts = '3s' }] }",
            SECTIONS,
        ],
        &[("at", "2s", "4s"), ("lasts", "3s", "1s")],
    ),
    Group(
        "a_workload(frames)",
        "flow.a.workload.",
        &[
            "flow.a.workload={ kind = 'frames', file = 'a.csv' }",
            SECTIONS,
        ],
        &[("file", "a.csv", "b.csv")],
    ),
];
