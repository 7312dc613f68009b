//! Other names of controllers, and names of systems that are not controllers.

/// A name that is not a controller: another name of one, or the name of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherName {
    /// The controller that is meant, if one is.
    pub controller: Option<&'static str>,
    /// What to write instead, as the end of a sentence.
    pub instead: &'static str,
}

/// Names, in lower case and with a hyphen between words, and what they stand for.
const NAMES: &[(&[&str], OtherName)] = &[
    (
        &[
            "tltcp",
            "time-lined-tcp",
            "timelined-tcp",
            "timeline",
            "time-line",
        ],
        OtherName {
            controller: None,
            instead: "Time-lined TCP is a time-line over any controller, such as reno. Over packets, set \
                      reliability=timeline and drop=expired; over TCP in a scenario, set \
                      timeline = { .. } (experiments/tltcp)",
        },
    ),
    (
        &["tcp-real", "tcpreal"],
        OtherName {
            controller: Some("real"),
            instead: "TCP-Real is the controller \"real\"",
        },
    ),
    (
        &["bbrv1", "bbr-v1", "bbr1", "tcp-bbr"],
        OtherName {
            controller: Some("bbr"),
            instead: "version 1 of BBR is the controller \"bbr\"",
        },
    ),
    (
        &["bbrv3", "bbr-v3", "bbr-3"],
        OtherName {
            controller: Some("bbr3"),
            instead: "version 3 of BBR is the controller \"bbr3\"",
        },
    ),
    (
        &["tcp-libra", "tcplibra"],
        OtherName {
            controller: Some("libra"),
            instead: "TCP Libra is the controller \"libra\"",
        },
    ),
    (
        &[
            "packet-spacing",
            "packet-spacing-protocol",
            "packetspacing",
            "damped",
            "damped-packet-spacing",
            "spacing",
        ],
        OtherName {
            controller: Some("psp"),
            instead: "the packet-spacing protocol is the controller \"psp\"",
        },
    ),
    (
        &["ad-hoc", "adhoc", "ad-hoc-packet-spacing"],
        OtherName {
            controller: Some("psp"),
            instead: "the ad-hoc packet-spacing protocol is the controller \"psp\" with damped = false \
                      (in a URI cc=psp&cc.damped=false)",
        },
    ),
    (
        &["goog-cc", "googcc", "google-congestion-control", "webrtc"],
        OtherName {
            controller: Some("gcc"),
            instead: "Google's congestion control of WebRTC is the controller \"gcc\"",
        },
    ),
    (
        &["screamv2", "scream-v2"],
        OtherName {
            controller: Some("scream"),
            instead: "SCReAMv2 is the controller \"scream\"",
        },
    ),
    (
        &[
            "tahoe",
            "newreno",
            "new-reno",
            "tcp-newreno",
            "sack",
            "tcp-sack",
        ],
        OtherName {
            controller: Some("reno"),
            instead: "this is a recovery of TCP, in a scenario recovery = \"tahoe\", \"newreno\" or \"sack\", over the \
                      controller \"reno\"",
        },
    ),
];

/// What a name stands for that is not in the table: a controller, a system of the papers, or a
/// recovery of TCP.
///
/// ```
/// use comity_congestion::table::other_name;
///
/// assert_eq!(other_name("TCP_Real").unwrap().controller, Some("real"));
/// assert_eq!(other_name("tltcp").unwrap().controller, None);
/// assert_eq!(other_name("bbr"), None);
/// ```
pub fn other_name(name: &str) -> Option<OtherName> {
    let plain = || {
        name.chars().map(|letter| match letter {
            '_' | ' ' => '-',
            other => other.to_ascii_lowercase(),
        })
    };
    NAMES
        .iter()
        .find(|(names, _)| names.iter().any(|known| plain().eq(known.chars())))
        .map(|(_, other)| *other)
}

#[cfg(test)]
mod tests {
    use super::super::{TABLE, find};
    use super::*;

    #[test]
    fn other_names_are_no_ones_and_lead_to_controllers() {
        for (names, other) in NAMES {
            for name in *names {
                assert!(TABLE.iter().all(|row| row.name != *name), "{name}");
                assert_eq!(other_name(name), Some(*other), "{name} stands twice");
            }
            assert!(other.controller.is_none_or(|row| find(row).is_ok()));
        }
    }
}
