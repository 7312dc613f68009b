//! The systems and applications of the papers, with their names in Comity.

use std::fmt::Write as _;

use comity_congestion::table::other_name;

/// An application of a paper, as keys of a flow in a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Application {
    /// Its name in Comity.
    pub name: &'static str,
    /// A description in one sentence.
    pub summary: &'static str,
    /// The source that defines it.
    pub source: &'static str,
    /// Keys of a flow and their values, as TOML. A scenario may set others.
    pub keys: &'static [(&'static str, &'static str)],
}

impl Application {
    /// Its keys in a scenario, one in each line.
    pub fn toml(&self) -> String {
        self.keys
            .iter()
            .fold(String::new(), |mut text, (key, value)| {
                let _ = writeln!(text, "{key} = {value}");
                text
            })
    }
}

/// All of them, in the order of the papers.
pub const APPLICATIONS: &[Application] = &[
    Application {
        name: "time-lined-data",
        summary: "Unlimited data in sections with a deadline.",
        source: "Mukherjee and Brecht, Time-lined TCP, ICNP 2000, sections 6.1 and 6.2",
        keys: &[
            ("workload", "{ kind = \"greedy\" }"),
            ("timeline", "{ section = \"700000B\", deadline = \"5s\" }"),
        ],
    },
    Application {
        name: "mpeg1",
        summary: "MPEG-1 video, a section for each frame, with the deadlines of I, P and B frames; the \
                  receiver's reports select all frames, I and P frames, or only I frames.",
        source: "Mukherjee and Brecht, Time-lined TCP, ICNP 2000, section 4; the stream and its deadline of two seconds \
                 are chosen here",
        keys: &[
            (
                "workload",
                "{ kind = \"frames\", file = \"mpeg1_frames.csv\" }",
            ),
            ("timeline", "{ deadline = \"2s\", feedback = \"2s\" }"),
        ],
    },
    Application {
        name: "vreal",
        summary: "VREAL: a reader of 1 Mb/s, in pieces of 5 KB every 40 ms, or of 12.5 KB every 100 ms. The result is \
                  the share of reads that find their data.",
        source: "Zhang and Tsaoussidis, TCP-Real, NOSSDAV 2001, sections 3 and 4.2",
        keys: &[
            ("workload", "{ kind = \"greedy\" }"),
            (
                "reader",
                "{ kind = \"playback\", bytes = \"5kB\", interval = \"40ms\" }",
            ),
        ],
    },
    Application {
        name: "token-bucket",
        summary: "A sender with a token bucket: 20 tokens of 1 KB arrive every 30 ms, in a bucket for 20. The result is \
                  the number of tokens that it uses in a round trip.",
        source: "Zhang and Tsaoussidis, TCP-Real, NOSSDAV 2001, sections 3 and 4.4",
        keys: &[(
            "workload",
            "{ kind = \"token_bucket\", depth = \"20kB\", refill = \"20kB\", interval = \"30ms\" }",
        )],
    },
    Application {
        name: "udp-cbr",
        summary: "Datagrams at a constant rate, with which the delay of IFTP is compared.",
        source: "ElAarag and Bassiouni, IFTP, section 5.2; the rate is chosen here",
        keys: &[
            ("transport", "\"datagram\""),
            ("workload", "{ kind = \"cbr\", rate = \"500kbps\" }"),
        ],
    },
    Application {
        name: "udp-jitter",
        summary: "Datagrams at a constant rate, with intervals that are shorter or longer by up to half.",
        source: "random_ of ns-2's CBR",
        keys: &[
            ("transport", "\"datagram\""),
            (
                "workload",
                "{ kind = \"cbr\", rate = \"500kbps\", jitter = 1 }",
            ),
        ],
    },
    Application {
        name: "udp-unspaced",
        summary: "Datagrams at the rate of the sender's own link.",
        source: "Feng, Feng and Belford, Packet Spacing, sections 1.1 and 3.2",
        keys: &[
            ("transport", "\"datagram\""),
            ("workload", "{ kind = \"cbr\", gap = \"0us\" }"),
        ],
    },
    Application {
        name: "psa",
        summary: "The packet-spacing agent without feedback: datagrams with a spacing from the end of one to the start of \
                  the next. The agents with feedback are the controller psp.",
        source: "Feng, Feng and Belford, Packet Spacing, section 3.2",
        keys: &[
            ("transport", "\"datagram\""),
            ("packet", "\"1428B\""),
            ("workload", "{ kind = \"cbr\", gap = \"1000us\" }"),
        ],
    },
];

/// The meaning of a word that is not among the choices: another name of a system of the papers, or
/// an application. Case and hyphens have no effect.
pub(super) fn known_as(word: &str) -> Option<String> {
    if let Some(other) = other_name(word) {
        return Some(other.instead.into());
    }
    let plain = word.to_ascii_lowercase().replace(['_', ' '], "-");
    let application = APPLICATIONS.iter().find(|known| known.name == plain)?;
    let keys: Vec<String> = application
        .keys
        .iter()
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    let name = application.name;
    let keys = keys.join(", ");
    Some(format!(
        "\"{name}\" is an application; give the flow {keys}; `comity list {name}` describes it"
    ))
}
