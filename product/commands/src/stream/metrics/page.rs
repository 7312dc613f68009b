//! The page `docs/reference/statistics.md`, from the tables of counters and the metrics. To update
//! it:
//!
//! ```text
//! COMITY_UPDATE=1 cargo test -p comity-commands metrics::page
//! ```

use std::fmt::Write as _;

use comity::encoder::Update;
use comity::{EndpointStatistics, Statistics};
use comity_stream::{PeerStatistics, Unsent};

use super::tests::encoded;
use super::*;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/statistics.md"
);

const INTRODUCTION: &str = "\
# Statistics

Generated from the structs of `counters!` in `product`;
`COMITY_UPDATE=1 cargo test -p comity-commands metrics::page` writes it anew.

The events `statistics` and `end` of `--json` have the keys of this page in `input` and `output`
([streaming](streaming.md#statistics)). `--metrics-bind` serves the metrics. In the library,
`Connection::stats` and `Endpoint::stats` return the same values as typed fields, and their method
`counters` returns them with keys, units and descriptions. Unknown values are null. A counter counts
events. A gauge can fall.

Bytes on the wire are those of IP packets: a packet of `send`, `recv` and `relay` has 28 bytes of
UDP and IP headers over IPv4, and 48 over IPv6, as in [`comity emulate`](emulator.md). Only the
controller and `maxbw` always count 48.
";

/// A relay with every metric.
fn snapshot() -> Snapshot {
    let mut statistics = Statistics::default();
    statistics.peer = Some(Default::default());
    let path = &mut statistics.path;
    path.rtt_ms = Some(0.0);
    path.pacing_mbps = Some(0.0);
    path.target_mbps = Some(0.0);
    let peer = PeerStatistics {
        peer: String::new(),
        latency_ms: 0.0,
        statistics,
    };
    let transport = TransportStatistics {
        errors: BTreeMap::from([("PTS_error", 0)]),
        ..TransportStatistics::default()
    };
    let side = Side {
        bytes: Some(0),
        transport: Some(transport),
        connections: vec![peer],
        totals: Some(Totals::default()),
        unsent: Some(Unsent::default()),
        ..Side::default()
    };
    Snapshot {
        input: side.clone(),
        output: side,
        ..Snapshot::default()
    }
}

/// The name of a counter's metric with its unit; empty if it has none.
fn metric(counter: &Counter<'_>) -> String {
    let Some(name) = counter.metric else {
        return String::new();
    };
    let unit = in_base_unit(counter.unit, 0.0).0;
    let unit = unit.map_or_else(String::new, |unit| format!("_{}", unit.as_str()));
    let total = match counter.kind {
        Kind::Counter => "_total",
        Kind::Gauge => "",
    };
    format!("`comity_{name}{unit}{total}`")
}

/// The text in lines of at most 100 columns.
fn wrapped(text: &str) -> String {
    let options = textwrap::Options::new(100);
    textwrap::fill(
        text,
        options.word_splitter(textwrap::WordSplitter::NoHyphenation),
    )
}

/// Adds the counters of an object, and a section for each object in it.
fn table(page: &mut String, title: &str, about: &str, counters: &[Counter<'_>]) -> fmt::Result {
    writeln!(page, "\n## {title}\n\n{}\n", wrapped(about))?;
    writeln!(page, "| key | kind | unit | Prometheus | meaning |")?;
    writeln!(page, "| --- | --- | --- | --- | --- |")?;
    for counter in counters {
        let kind = match (counter.kind, &counter.value) {
            (_, Value::Counters(_)) => continue,
            (_, Value::Text(_)) => "text",
            (Kind::Counter, _) => "counter",
            (Kind::Gauge, _) => "gauge",
        };
        let (key, unit, metric) = (counter.key, counter.unit.symbol(), metric(counter));
        let help = counter.help;
        writeln!(page, "| `{key}` | {kind} | {unit} | {metric} | {help} |")?;
    }
    for counter in counters {
        if let Value::Counters(inner) = &counter.value {
            let title = format!("{title}.{}", counter.key);
            let title = title.trim_start_matches("connections.");
            table(page, title, counter.help, inner)?;
        }
    }
    Ok(())
}

/// Adds the metrics that no counter of the page has.
fn others(page: &mut String, metrics: &str) -> fmt::Result {
    writeln!(page, "\n## Other metrics\n")?;
    writeln!(page, "| Prometheus | labels | meaning |")?;
    writeln!(page, "| --- | --- | --- |")?;
    let mut help = "";
    for line in metrics.lines() {
        if let Some(text) = line.strip_prefix("# HELP ") {
            help = text.split_once(' ').map_or("", |(_, help)| help);
        }
        let Some((name, rest)) = line.split_once(['{', ' ']) else {
            continue;
        };
        if name == "#" || page.contains(&format!("`{name}`")) {
            continue;
        }
        let labels = rest.split_once('}').map_or("", |(labels, _)| labels);
        let labels = labels.split(',').filter_map(|label| label.split_once('='));
        let labels: Vec<_> = labels.map(|(label, _)| format!("`{label}`")).collect();
        writeln!(page, "| `{name}` | {} | {help} |", labels.join(", "))?;
    }
    Ok(())
}

fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    let snapshot = snapshot();
    let side = &snapshot.output;
    let endpoint = EndpointStatistics::default();
    let update = Update {
        encoder_bps: 0,
        target_bps: 0,
        other_bps: 0,
    };
    let tables = [
        (
            "connections",
            "The open connections of an end, as a list. Their metrics have the labels `side`, \
             which is `input` or `output`, and `peer`.",
            side.connections[0].counters(),
        ),
        (
            "totals",
            "Sums over all connections of an end, open and closed. Their metrics have the label \
             `side`.",
            side.totals.as_ref().unwrap().counters(),
        ),
        (
            "transport",
            "The transport stream that an end reads or writes, by the stream's own clock, as \
             [`comity check`](check.md) counts. `errors` has the number of errors by their names \
             in TR 101 290, such as `Continuity_count_error`. The metrics have the label `side`.",
            side.transport.as_ref().unwrap().counters(),
        ),
        (
            "unsent",
            "Sections that an end submitted to no connection, by reason.",
            side.unsent.as_ref().unwrap().counters(),
        ),
        (
            "endpoint",
            "The counters of an endpoint. Only the library has them.",
            endpoint.counters(),
        ),
        (
            "encoder",
            "An update for an encoder: the event `encoder` of `--json`, and the lines of \
             `--target-bitrate-socket`. [Let the encoder follow](../guide/encoder.md) shows how to \
             use it.",
            update.counters(),
        ),
    ];
    for (title, about, counters) in &tables {
        table(&mut page, title, about, counters).unwrap();
    }
    others(&mut page, &encoded(snapshot.clone())).unwrap();
    page
}

#[test]
fn the_page_is_up_to_date() {
    comity_testkit::page::assert_up_to_date(PAGE, &page());
}

/// The name of each counter's metric on the page is that of a metric.
#[test]
fn the_page_names_metrics_as_they_are() {
    let metrics = encoded(snapshot());
    let page = page();
    let names = page.split('`').filter(|name| name.starts_with("comity_"));
    let names: Vec<_> = names.collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        let is_sample = |line: &str| line.split(['{', ' ']).next() == Some(name);
        assert!(metrics.lines().any(is_sample), "{name}");
    }
}
