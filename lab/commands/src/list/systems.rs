//! The named items other than controllers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use comity_sim::scenario::reference::{self, Key};
use serde_json::{Value, json};

use crate::tables::Table;
use comity_commands::list::{Entry, Listed};

/// The table of a flow in the scenario reference.
pub(super) const FLOW: &str = "[[flow]]";

/// An item that can be chosen by name.
#[derive(Clone, Debug)]
pub(super) struct System {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Its description, in one line.
    pub(super) summary: Cow<'static, str>,
    /// Its source.
    pub(super) source: &'static str,
}

impl System {
    /// Its keys in a scenario; `None` if it has no keys of its own.
    pub(super) fn keys(&self) -> Option<Vec<Key>> {
        match self.kind {
            Kind::System => reference::keys("a time-line", None),
            Kind::Transport => reference::keys(FLOW, Some(self.name)),
            Kind::Reader | Kind::Workload => reference::keys(self.kind.table()?, Some(self.name)),
            Kind::Deliver | Kind::Drop | Kind::Preset | Kind::Recovery | Kind::Reliability => None,
        }
    }

    /// Its settings: keys of a flow with their values.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        match self.kind {
            Kind::Preset => reference::preset(self.name).unwrap_or_default(),
            _ => Vec::new(),
        }
    }
}

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Deliver,
    Drop,
    Preset,
    Reader,
    Recovery,
    Reliability,
    System,
    Transport,
    Workload,
}

impl Kind {
    pub(super) const ALL: [Self; 9] = [
        Self::System,
        Self::Transport,
        Self::Recovery,
        Self::Preset,
        Self::Reliability,
        Self::Drop,
        Self::Deliver,
        Self::Workload,
        Self::Reader,
    ];

    /// The scenario key that accepts it.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Deliver => "deliver",
            Self::Drop => "drop",
            Self::Preset => "preset",
            Self::Reader => "reader",
            Self::Recovery => "recovery",
            Self::Reliability => "reliability",
            Self::System => "system",
            Self::Transport => "transport",
            Self::Workload => "workload",
        }
    }

    /// The table of a scenario that declares all items of this kind, if there is one.
    const fn table(self) -> Option<&'static str> {
        match self {
            Self::Reader => Some("a reader"),
            Self::Workload => Some("a workload"),
            _ => None,
        }
    }

    /// Its heading in the list.
    pub(super) const fn heading(self) -> &'static str {
        match self {
            Self::Deliver => "When the receiver delivers sections (deliver)",
            Self::Drop => "When the sender drops sections (drop)",
            Self::Preset => "Presets of TCP (preset)",
            Self::Reader => "How the receiving application reads data (reader.kind)",
            Self::Recovery => {
                "How TCP detects and repairs losses (recovery); each works with every controller for TCP"
            }
            Self::Reliability => "How long lost bytes of sections are retransmitted (reliability)",
            Self::System => "Systems that are more than a controller",
            Self::Transport => "Transports (transport)",
            Self::Workload => "What the source sends (workload.kind)",
        }
    }
}

const fn system(
    kind: Kind,
    name: &'static str,
    source: &'static str,
    summary: &'static str,
) -> System {
    System {
        name,
        kind,
        summary: Cow::Borrowed(summary),
        source,
    }
}

/// All items, in the order of [`Kind::ALL`].
pub(super) fn systems() -> Vec<System> {
    let declared = Kind::ALL.into_iter().flat_map(|kind| {
        let choices = kind.table().and_then(reference::choices);
        let choices = choices.into_iter().flatten();
        choices.map(move |choice| System {
            name: choice.name,
            kind,
            summary: Cow::Owned(choice.summary),
            source: choice.source.unwrap_or("common"),
        })
    });
    SYSTEMS.iter().cloned().chain(declared).collect()
}

/// Its entry in the list.
pub(super) fn listed(system: &System) -> Listed {
    Listed {
        name: system.name,
        key: "systems",
        heading: system.kind.heading(),
        entry: entry(system),
        text: text(system),
        document: document(system),
    }
}

/// The items that the tables of scenarios do not describe completely.
const SYSTEMS: &[System] = &[
    system(
        Kind::System,
        "tltcp",
        "Mukherjee and Brecht, \"Time-lined TCP for the TCP-friendly Delivery of Streaming Media\", ICNP 2000, \
         sections 3 to 5.5",
        "Time-lined TCP: the sender drops data at its deadline, with any controller and any recovery but rack. \
         The key of a flow is \
         timeline = { .. }. Over packets: transport = \"sections\", reliability = \"timeline\", drop = \"expired\".",
    ),
    system(
        Kind::Transport,
        "tcp",
        "RFC 9293 and those it names",
        "A byte sequence: any controller that drives TCP, any recovery.",
    ),
    system(
        Kind::Transport,
        "sections",
        "this project; RFC 9000 and 9002 for packets and losses",
        "Sections with deadlines over numbered packets: any controller.",
    ),
    system(
        Kind::Transport,
        "datagram",
        "RFC 768",
        "Datagrams without feedback: no controller, the workload alone decides.",
    ),
    system(
        Kind::Transport,
        "command",
        "this project",
        "Any two programs, in the lab only (`comity lab run`).",
    ),
    system(
        Kind::Recovery,
        "tahoe",
        "Jacobson, SIGCOMM 1988",
        "Fast retransmit, then slow start.",
    ),
    system(
        Kind::Recovery,
        "reno",
        "RFC 5681",
        "Fast recovery until new data is acknowledged.",
    ),
    system(
        Kind::Recovery,
        "newreno",
        "RFC 6582",
        "Fast recovery until all data is acknowledged.",
    ),
    system(
        Kind::Recovery,
        "sack",
        "RFC 2018 and 6675",
        "Selective acknowledgements.",
    ),
    system(
        Kind::Recovery,
        "rack",
        "RFC 8985 and 9937",
        "Time-based loss detection with tail loss probes and proportional rate reduction, as in Linux.",
    ),
    system(
        Kind::Preset,
        "modern",
        "current hosts",
        "As Linux: RACK-TLP, timestamps, window scaling, delayed acknowledgements, an initial window of ten packets, real headers.",
    ),
    system(
        Kind::Preset,
        "ns2-2.35",
        "ns-2 2.35",
        "Ticks of 10 ms, a minimum RTO of 200 ms, limited transmit, an initial window of 2, a window of 20 packets.",
    ),
    system(
        Kind::Preset,
        "ns2-2000",
        "ns-2 of 1999 to 2001",
        "Without handshake and limited transmit, ticks of 100 ms, no minimum RTO, an initial window of 1.",
    ),
    system(
        Kind::Reliability,
        "timeline",
        "Mukherjee and Brecht, ICNP 2000, section 3",
        "Until the deadline of their section: the time-line.",
    ),
    system(
        Kind::Reliability,
        "none",
        "this project",
        "Never: every loss is a gap.",
    ),
    system(
        Kind::Reliability,
        "full",
        "this project",
        "Until they have arrived; deadlines are not enforced.",
    ),
    system(
        Kind::Drop,
        "infeasible",
        "this project",
        "When they cannot arrive in time any more.",
    ),
    system(
        Kind::Drop,
        "expired",
        "Mukherjee and Brecht, ICNP 2000, section 3",
        "When their deadline has passed.",
    ),
    system(
        Kind::Drop,
        "never",
        "this project",
        "Never: they are sent however late.",
    ),
    system(Kind::Deliver, "paced", "this project", "At their deadline."),
    system(
        Kind::Deliver,
        "early",
        "this project",
        "In order, as soon as they are whole.",
    ),
];

fn text(system: &System) -> String {
    let System {
        name,
        kind,
        summary,
        source,
    } = system;
    let what = match kind {
        Kind::System => "a system".to_owned(),
        Kind::Workload => "a value of workload.kind".to_owned(),
        kind => format!("a value of {}", kind.key()),
    };
    let mut text = format!("{name}: {what}\n\n{summary}\n\nsource: {source}\n");
    let settings = system.settings();
    if !settings.is_empty() {
        let mut table = Table::new(["key", "value", "what it is"]);
        for (key, value) in settings {
            let key_of_flow = key.replace("rto.", "");
            let title = if key == key_of_flow {
                FLOW
            } else {
                "a retransmission timer"
            };
            let summary = reference::keys(title, (title == FLOW).then_some("tcp"))
                .into_iter()
                .flatten()
                .find(|known| known.name == key_of_flow)
                .map_or(String::new(), |known| known.summary);
            table.row([key.into(), value, summary]);
        }
        let _ = writeln!(text, "\n{table}");
    }
    if let Some(keys) = system.keys() {
        if keys.is_empty() {
            text.push_str("\nNo parameters.\n");
            return text;
        }
        let mut table = Table::new(["parameter", "default", "values", "what it is"]);
        for Key {
            name,
            default,
            values,
            summary,
        } in keys
        {
            let default = default.unwrap_or_else(|| "required".into());
            table.row([name, default, values, summary]);
        }
        let _ = writeln!(text, "\n{table}");
    }
    text
}

fn entry(system: &System) -> Entry {
    let mut entry = Entry::new(system.name, &system.summary, system.source);
    let settings = system.settings();
    if !settings.is_empty() {
        let settings = settings.into_iter();
        let settings = settings.map(|(key, value)| format!("{key} = {value}"));
        entry.list("settings", settings);
    }
    if let Some(keys) = system.keys() {
        entry.list("parameters", keys.iter().map(|key| default("", key)));
    }
    entry
}

/// Its keys as JSON.
fn document(system: &System) -> Value {
    let keys = system.keys().into_iter().flatten();
    json!({
        "name": system.name,
        "key": system.kind.key(),
        "summary": system.summary,
        "source": system.source,
        "parameters": keys.map(|key| of_key(&key)).collect::<Vec<_>>(),
        "settings": system.settings().into_iter().collect::<BTreeMap<_, _>>(),
    })
}

pub(super) fn of_key(key: &Key) -> Value {
    json!({
        "name": key.name,
        "summary": key.summary,
        "values": key.values,
        "required": key.default.is_none(),
        "default": key.default,
    })
}

pub(super) fn default(of: &str, key: &Key) -> String {
    match &key.default {
        Some(default) => format!("{of}{} = {default}", key.name),
        None => format!("{of}{} (required)", key.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Collects every word that a schema allows for `key`, at any depth.
    fn words(schema: &Value, key: &str, found: &mut Vec<String>) {
        let Value::Object(fields) = schema else {
            if let Value::Array(items) = schema {
                items.iter().for_each(|item| words(item, key, found));
            }
            return;
        };
        for (name, value) in fields {
            if name == key {
                let one = value["const"].as_str().into_iter();
                let several = value["enum"].as_array().into_iter().flatten();
                for word in one.chain(several.filter_map(Value::as_str)) {
                    if !found.iter().any(|known| known == word) {
                        found.push(word.to_owned());
                    }
                }
            }
            words(value, key, found);
        }
    }

    #[test]
    fn every_listed_key_is_in_the_reference() {
        for system in systems() {
            let has_keys = matches!(
                system.kind,
                Kind::Reader | Kind::System | Kind::Transport | Kind::Workload
            );
            assert_eq!(system.keys().is_some(), has_keys, "{}", system.name);
            assert_eq!(
                system.settings().is_empty(),
                system.kind != Kind::Preset,
                "{}",
                system.name
            );
        }
    }

    /// Every preset sets the keys that the table describes as set by it.
    #[test]
    fn presets_list_everything_they_set() {
        let keys_of = |title: &str, choice, before: &str| -> Vec<String> {
            let keys = reference::keys(title, choice).unwrap().into_iter();
            let left = keys.filter(|key| {
                key.default
                    .as_deref()
                    .is_some_and(|default| default.contains("preset"))
            });
            left.map(|key| format!("{before}{}", key.name)).collect()
        };
        let mut expected = keys_of(FLOW, Some("tcp"), "");
        expected.extend(keys_of("a retransmission timer", None, "rto."));
        for preset in SYSTEMS.iter().filter(|system| system.kind == Kind::Preset) {
            let settings = preset.settings();
            for key in &expected {
                // The keys of the table `rto` are checked one by one. `pipe` and `deflate_window`
                // belong to the variant of a recovery.
                if ["rto", "pipe", "deflate_window"].contains(&key.as_str()) {
                    continue;
                }
                assert!(
                    settings.iter().any(|(known, _)| known == key),
                    "{}: {key}",
                    preset.name
                );
            }
        }
    }

    #[test]
    fn the_list_has_every_value_that_scenarios_accept() {
        let schema = reference::json_schema();
        for kind in Kind::ALL {
            if kind == Kind::System {
                continue;
            }
            let mut expected = Vec::new();
            if let Some(table) = kind.table() {
                let table = table.replace(' ', "_");
                words(&schema["$defs"][&table], "kind", &mut expected);
            } else {
                words(&schema["$defs"]["flow"], kind.key(), &mut expected);
            }
            let of_kind = systems().into_iter().filter(|system| system.kind == kind);
            let mut listed: Vec<String> = of_kind.map(|system| system.name.to_owned()).collect();
            expected.sort();
            listed.sort();
            assert_eq!(listed, expected, "{kind:?}");
        }
    }
}
