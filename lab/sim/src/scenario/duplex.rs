//! Reads a single link, for hosts without a scenario.

use std::sync::Arc;

use comity_link::LinkConfig;

use super::build::{self, Library};
use super::document::{self, Entry, Node, Value};
use super::path;
use super::problem::Problem;
use super::problems::Problems;
use super::schema::{Context, Files, Kind, Nested, Table};
use super::source::Sources;
use super::tables::link::DuplexTable;
use super::value_of;

/// A value that replaces one in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name in messages, such as `--rate`.
    pub origin: String,
    /// The key, such as `rate` or `reverse.queue.limit`.
    pub path: String,
    /// The value. A value that is not TOML is a text.
    pub value: String,
}

/// Reads both directions of a link. The text has the keys of a link in a scenario, with the reverse
/// direction in `[reverse]`.
///
/// Differs from a link in a scenario in: 1. a link without `rate` and `trace` is unlimited, and one
/// without `delay` has none. 2. `settings` for the forward direction do not change the reverse
/// direction, except by a loss that names both. 3. a setting for `rate` replaces a `trace`, and one
/// for `trace` replaces a `rate`.
///
/// # Errors
/// All problems of the text and the settings.
///
/// ```
/// use comity_link::RateProfile;
/// use comity_sim::scenario::{NoFiles, Setting, read_duplex};
/// use comity_units::Rate;
///
/// let text = "rate = '8Mbps'\ndelay = '20ms'\nqueue = 60";
/// let faster = Setting {
///     origin: "--down-rate".into(),
///     path: "reverse.rate".into(),
///     value: "100Mbps".into(),
/// };
/// let (forward, reverse) = read_duplex("path.toml", text, &NoFiles, &[faster])?;
/// assert_eq!(forward.rate, RateProfile::Constant(Rate::from_mbps(8)));
/// assert_eq!(reverse.rate, RateProfile::Constant(Rate::from_mbps(100)));
/// assert_eq!(reverse.queue, forward.queue);
/// # Ok::<(), comity_sim::scenario::Problems>(())
/// ```
pub fn read_duplex(
    name: &str,
    text: &str,
    files: &dyn Files,
    settings: &[Setting],
) -> Result<(LinkConfig, LinkConfig), Problems> {
    let mut sources = Sources::default();
    let mut document = match document::parse(&mut sources, name, text) {
        Ok(document) => document,
        Err(problems) => return Err(Problems::new(Arc::new(sources), problems)),
    };
    spell_out(&mut document);
    let shape = Nested::<DuplexTable>::KIND.shape();
    let mut problems = Vec::new();
    for setting in settings {
        let path = setting.path.trim();
        match value_of(&mut sources, &setting.origin, setting.value.trim()) {
            Ok(value) => {
                remove_rival(&mut document, path);
                if let Err(kind) = path::assign(&mut document, &shape, path, &value) {
                    problems.push(Problem::new(Some(value.span), path, kind));
                }
            }
            Err(found) => problems.extend(found),
        }
    }
    let mut cx = Context::new(files, &[]);
    let read = DuplexTable::read_table(&document, &mut cx)
        .and_then(|table| build::duplex(&table, &Library::default(), &mut cx));
    problems.append(&mut cx.problems);
    match read {
        Some(links) if problems.is_empty() => Ok(links),
        _ => Err(Problems::new(Arc::new(sources), problems)),
    }
}

/// Adds the implied keys, so that each direction is complete.
fn spell_out(document: &mut Node) {
    let span = document.span;
    let text = |word: &str| Node {
        span,
        value: Value::Text(word.into()),
    };
    let has = |node: &Node, key| node.get(key).is_some();
    if !has(document, "rate") && !has(document, "trace") {
        insert(document, "rate", text("unlimited"));
    }
    if !has(document, "delay") {
        insert(document, "delay", text("0s"));
    }
    if !has(document, "reverse") {
        insert(
            document,
            "reverse",
            Node {
                span,
                value: Value::Table(Vec::new()),
            },
        );
    }
    let Some(written) = document.get("reverse").cloned() else {
        return;
    };
    let mut keys = vec!["delay", "queue"];
    if !has(&written, "rate") && !has(&written, "trace") {
        keys.extend(["rate", "trace"]);
    }
    let inherited: Vec<_> = keys
        .into_iter()
        .filter(|key| !has(&written, key))
        .filter_map(|key| Some((key, document.get(key)?.clone())))
        .collect();
    if let Some(reverse) = entry(document, "reverse") {
        for (key, value) in inherited {
            insert(reverse, key, value);
        }
    }
}

/// Removes the `trace` that a `rate` at `path` replaces, or the `rate` that a `trace` replaces.
fn remove_rival(document: &mut Node, path: &str) {
    let (table, key) = match path.split_once('.') {
        Some(("reverse", key)) => (entry(document, "reverse"), key),
        _ => (Some(document), path),
    };
    let rival = match key {
        "rate" => "trace",
        "trace" => "rate",
        _ => return,
    };
    if let Some(Value::Table(entries)) = table.map(|table| &mut table.value) {
        entries.retain(|entry| entry.key != rival);
    }
}

fn entry<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Node> {
    match &mut node.value {
        Value::Table(entries) => entries
            .iter_mut()
            .find(|entry| entry.key == key)
            .map(|entry| &mut entry.node),
        _ => None,
    }
}

fn insert(node: &mut Node, key: &str, value: Node) {
    if let Value::Table(entries) = &mut node.value {
        entries.push(Entry {
            key: key.into(),
            key_span: value.span,
            node: value,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::NoFiles;
    use super::*;
    use comity_link::{Limit, Loss, LossModel, LossPlace, Queue, RateProfile};
    use comity_units::{Rate, Span};

    fn setting(path: &str, value: &str) -> Setting {
        Setting {
            origin: format!("--{path}"),
            path: path.into(),
            value: value.into(),
        }
    }

    fn read(text: &str, settings: &[Setting]) -> (LinkConfig, LinkConfig) {
        read_duplex("x", text, &NoFiles, settings).unwrap_or_else(|problems| panic!("{problems}"))
    }

    #[test]
    fn nothing_written_is_an_ideal_link() {
        let ideal = LinkConfig::default();
        assert_eq!(read("", &[]), (ideal.clone(), ideal));
    }

    #[test]
    fn settings_for_one_way_leave_the_other() {
        let (forward, reverse) = read(
            "rate = '8Mbps'\ndelay = '20ms'\nqueue = 60\njitter = '1ms'",
            &[setting("rate", "1Mbps"), setting("reverse.delay", "7ms")],
        );
        assert_eq!(forward.rate, RateProfile::Constant(Rate::from_mbps(1)));
        let expected = LinkConfig {
            queue: Queue::DropTail(Limit::Packets(60)),
            ..LinkConfig::new(Rate::from_mbps(8), Span::from_millis(7))
        };
        assert_eq!(reverse, expected, "and the jitter is never taken over");
    }

    #[test]
    fn rates_replace_traces_and_lists_are_toml() {
        let (forward, _) = read(
            "trace = 'never-read.trace'",
            &[
                setting("rate", "unlimited"),
                setting("reverse.rate", "unlimited"),
                setting("losses", "[{ model = 'bernoulli', probability = 0.01 }]"),
            ],
        );
        assert_eq!(forward.rate, RateProfile::Unlimited);
        let loss = Loss {
            model: LossModel::Bernoulli(0.01),
            place: LossPlace::AfterTransmission,
        };
        assert_eq!(forward.losses, std::slice::from_ref(&loss));
        let both = "[{ model = 'bernoulli', probability = 0.01, direction = 'each' }]";
        let (_, reverse) = read("", &[setting("losses", both)]);
        assert_eq!(reverse.losses, [loss]);
    }

    #[test]
    fn errors_name_the_option_that_caused_them() {
        let mistakes = [setting("rate", "0bps"), setting("reverse.delay", "soon")];
        let problems = read_duplex("x", "queu = 3", &NoFiles, &mistakes).unwrap_err();
        let said = problems.to_string();
        assert_eq!(problems.count(), 3, "{said}");
        for part in ["--rate", "--reverse.delay", "soon", "did you mean `queue`?"] {
            assert!(said.contains(part), "{part} is not in:\n{said}");
        }
        let problems = read_duplex("x", "= 3", &NoFiles, &[]).unwrap_err();
        assert_eq!(problems.count(), 1, "{problems}");
    }

    #[test]
    fn an_unknown_key_of_a_setting_is_an_error() {
        let problems = read_duplex("x", "", &NoFiles, &[setting("reverse.rat", "1bps")]);
        let said = problems.unwrap_err().to_string();
        assert!(said.contains("rate"), "{said}");
    }
}
