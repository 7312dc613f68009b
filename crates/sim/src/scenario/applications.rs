//! The applications of the five papers, as keys of a flow.

use std::fmt::Write as _;

use comity_congestion::table::other_name;

use super::document::{Node, default_value};
use super::reference::{Key, cell, keys_with};
use super::source::Place;

/// An application that a paper tells of: what a flow has in a scenario to be it.
#[derive(Clone, Copy, Debug)]
pub struct Application {
    /// What it is called here.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub summary: &'static str,
    /// Where it is defined.
    pub source: &'static str,
    /// Keys of a flow and their values, as TOML; a scenario is free to give others.
    pub keys: &'static [(&'static str, &'static str)],
}

/// A parameter of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The key of a flow that it belongs to.
    pub of: &'static str,
    /// The key, as the reference tells of it.
    pub key: Key,
    /// What the application has for it, as TOML; `None` where it leaves it out.
    pub value: Option<String>,
}

impl Application {
    /// Every parameter of its tables, those that it leaves out included.
    pub fn parameters(&self) -> Vec<Parameter> {
        let tables = self.keys.iter().filter_map(|&(of, text)| {
            let node = default_value(text, Place::new(0, 0..0))?;
            Some((of, node))
        });
        tables
            .flat_map(|(of, node)| {
                keys_with(of, &node).into_iter().map(move |key| {
                    let value = node.get(&key.name).map(Node::show);
                    Parameter { of, key, value }
                })
            })
            .collect()
    }

    /// Its keys in a scenario, a line each.
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
        summary: "Data without end in sections that are worth sending for so long.",
        source: "Mukherjee and Brecht, Time-lined TCP, ICNP 2000, sections 6.1 and 6.2",
        keys: &[
            ("workload", "{ kind = \"greedy\" }"),
            ("timeline", "{ section = \"700000B\", deadline = \"5s\" }"),
        ],
    },
    Application {
        name: "mpeg1",
        summary: "MPEG-1 video, a section for each frame, with the deadlines of I, P and B frames; by what the \
                  reader tells, all of them are sent, or I and P, or I alone.",
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
        summary: "VREAL: 1 Mb/s is played, in reads of 5 KB every 40 ms, or of 12.5 KB every 100 ms; what counts is the \
                  share of reads that find their data.",
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
        summary: "A sender that may send as tokens of 1 KB allow, 20 every 30 ms into a bucket of 20; what counts is how \
                  many it uses in a round trip.",
        source: "Zhang and Tsaoussidis, TCP-Real, NOSSDAV 2001, sections 3 and 4.4",
        keys: &[(
            "workload",
            "{ kind = \"token_bucket\", depth = \"20kB\", refill = \"20kB\", interval = \"30ms\" }",
        )],
    },
    Application {
        name: "udp-cbr",
        summary: "Datagrams at a constant rate, beside which the delay of IFTP is judged.",
        source: "ElAarag and Bassiouni, IFTP, section 5.2; the rate is chosen here",
        keys: &[
            ("transport", "\"datagram\""),
            ("workload", "{ kind = \"cbr\", rate = \"500kbps\" }"),
        ],
    },
    Application {
        name: "udp-jitter",
        summary: "Datagrams at a constant rate whose intervals vary by up to half either way.",
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
        summary: "Datagrams as fast as the sender's own link takes them.",
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

/// What a word that is no choice where it stands is known for: a system of the papers by another name, or an
/// application. Case does not count, nor whether words are joined by a hyphen.
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
        "\"{name}\" is an application, which a flow is by {keys}; `comity list {name}` tells of it"
    ))
}

/// What the reference says of them.
pub(super) fn markdown() -> String {
    let mut text = String::from(
        "\n## Applications of the papers\n\nWhat a `[[flow]]` has to be an application that one of the papers tells of; \
         `comity list NAME` tells of each with all of its parameters.\n\n\
         | name | what it is | source | keys |\n| --- | --- | --- | --- |\n",
    );
    for application in APPLICATIONS {
        let keys: Vec<String> = application
            .keys
            .iter()
            .map(|(key, value)| format!("`{key} = {value}`"))
            .collect();
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            application.name,
            cell(application.summary),
            cell(application.source),
            cell(&keys.join("<br>"))
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Folder, Reading, Scenario};

    /// The parser of scenarios takes each as it stands, and gives a flow that sends.
    #[test]
    fn each_is_a_flow_of_a_scenario() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/tltcp");
        for application in APPLICATIONS {
            let text = format!(
                "scenario = {{ name = \"one\", duration = \"2s\" }}\n\
                 topology = {{ kind = \"dumbbell\", bottleneck = {{ rate = \"10Mbps\", delay = \"10ms\" }} }}\n\
                 [[flow]]\ngroup = \"one\"\n{}",
                application.toml()
            );
            let read = Scenario::parse(
                "one.toml",
                &text,
                Folder(folder.into()),
                &Reading::default(),
            );
            let scenario =
                read.unwrap_or_else(|problems| panic!("{}: {problems}", application.name));
            assert_eq!(scenario.runs().len(), 1, "{}", application.name);
        }
    }

    #[test]
    fn parameters_are_those_of_the_tables_with_the_values_of_the_paper() {
        let of = |name: &str| {
            let application = APPLICATIONS
                .iter()
                .find(|known| known.name == name)
                .unwrap();
            application.parameters()
        };
        let value = |name: &str, key: &str| {
            let parameters = of(name);
            let found = parameters.into_iter().find(|known| known.key.name == key);
            found.unwrap().value
        };
        assert_eq!(value("vreal", "bytes").as_deref(), Some("\"5kB\""));
        assert_eq!(value("vreal", "interval").as_deref(), Some("\"40ms\""));
        assert_eq!(value("vreal", "delay"), None);
        assert_eq!(value("token-bucket", "depth").as_deref(), Some("\"20kB\""));
        assert_eq!(value("mpeg1", "feedback").as_deref(), Some("\"2s\""));
        assert_eq!(value("mpeg1", "section"), None);
        // Nothing of a choice that was not made.
        let names: Vec<String> = of("udp-jitter")
            .into_iter()
            .map(|known| known.key.name)
            .collect();
        assert_eq!(names, ["rate", "interval", "gap", "jitter"]);
        // Every key that is written is one of a table, or a plain one.
        for application in APPLICATIONS {
            let parameters = application.parameters();
            for (of, text) in application.keys {
                let node = default_value(text, Place::new(0, 0..0)).unwrap();
                for entry in node.entries().unwrap_or_default() {
                    let is_known = parameters
                        .iter()
                        .any(|known| known.of == *of && known.key.name == entry.key);
                    assert!(
                        is_known || entry.key == "kind",
                        "{}: {}",
                        application.name,
                        entry.key
                    );
                }
            }
        }
    }
}
