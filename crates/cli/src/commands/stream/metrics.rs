//! A snapshot as Prometheus reads it, at `/metrics`: taken for each request.
//!
//! Names end with the base unit (`_bytes`, `_seconds`), counters with `_total`. The label `side`
//! says which end a number belongs to: `input` or `output`.

mod request;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Registry, Unit};

use comity::Statistics;
use comity_stream::{
    KINDS, MissingReason, Monitor, PeerStatistics, REFUSALS, Side, Snapshot, Totals,
};

use super::error::Error;
use request::{Incoming, Request};

/// How long a scraper may take to ask, or to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The numbers of a relay, once it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics(Arc<OnceLock<Monitor>>);

impl Metrics {
    /// Tells the numbers of this relay from now on.
    pub(crate) fn watch(&self, monitor: Monitor) {
        // There is one relay in a process.
        let _ = self.0.set(monitor);
    }

    /// Answers at `address` until the program ends; gives the address, with its port.
    pub(crate) fn serve(&self, address: SocketAddr) -> Result<SocketAddr, Error> {
        let refused = |error: io::Error| {
            let message = format!("--metrics-bind {address}: {error}");
            match error.kind() {
                io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable => Error::taken(
                    format!("{message}; choose another, or find its owner with: ss -ltnp"),
                ),
                _ => Error::failed(message),
            }
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        let bound = listener.local_addr().map_err(refused)?;
        let mut registry = Registry::with_prefix("comity");
        registry.register_collector(Box::new(self.clone()));
        std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    // A scraper that goes away asks again.
                    let _ = answer(stream, &registry);
                }
            })
            .map_err(refused)?;
        Ok(bound)
    }
}

/// Answers one request of HTTP/1.1 and closes.
fn answer(mut stream: TcpStream, registry: &Registry) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut incoming = Incoming::default();
    let mut piece = [0; 256];
    loop {
        let length = stream.read(&mut piece)?;
        if length == 0 || incoming.push(piece.get(..length).unwrap_or_default()) {
            break;
        }
    }
    let (status, kind, body) = respond(incoming.request(), registry);
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}

fn respond(request: Request, registry: &Registry) -> (&'static str, &'static str, String) {
    const PLAIN: &str = "text/plain; charset=utf-8";
    match request {
        Request::Metrics => {
            let mut body = String::new();
            match text::encode(&mut body, registry) {
                Ok(()) => (
                    "200 OK",
                    "application/openmetrics-text; version=1.0.0; charset=utf-8",
                    body,
                ),
                Err(fmt::Error) => (
                    "500 Internal Server Error",
                    PLAIN,
                    "the metrics could not be written\n".into(),
                ),
            }
        }
        Request::Root => ("200 OK", PLAIN, "metrics are at /metrics\n".into()),
        Request::Elsewhere => ("404 Not Found", PLAIN, "see /metrics\n".into()),
        Request::Method => (
            "405 Method Not Allowed",
            PLAIN,
            "only GET is answered\n".into(),
        ),
    }
}

/// The labels of a number.
type Labels = Vec<(&'static str, String)>;

/// A family of numbers with one name.
struct Family {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
}

const fn plain(name: &'static str, help: &'static str) -> Family {
    let unit = None;
    Family { name, help, unit }
}

const fn measured(name: &'static str, help: &'static str, unit: Unit) -> Family {
    let unit = Some(unit);
    Family { name, help, unit }
}

impl Family {
    fn write<M: EncodeMetric>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        kind: MetricType,
        values: Vec<(Labels, M)>,
    ) -> fmt::Result {
        if values.is_empty() {
            return Ok(());
        }
        let mut family =
            encoder.encode_descriptor(self.name, self.help, self.unit.as_ref(), kind)?;
        for (labels, value) in values {
            value.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

type OfTotals = fn(&Totals) -> u64;
type OfPeer = fn(&PeerStatistics) -> Option<f64>;

/// Counters that are sums over connections.
const TOTALS: [(Family, OfTotals); 9] = [
    (
        plain("connections_made", "Connections that were made."),
        |totals| totals.connections,
    ),
    (
        measured("sent", "Sent on the wire, headers included.", Unit::Bytes),
        |totals| totals.sent_bytes,
    ),
    (
        measured(
            "received",
            "Received on the wire, headers included.",
            Unit::Bytes,
        ),
        |totals| totals.received_bytes,
    ),
    (
        measured(
            "retransmitted",
            "Bytes of sections that were retransmitted.",
            Unit::Bytes,
        ),
        |totals| totals.retransmitted_bytes,
    ),
    (
        measured(
            "sent_late",
            "Bytes of sections sent after their deadline.",
            Unit::Bytes,
        ),
        |totals| totals.late_bytes,
    ),
    (plain("packets_sent", "Packets sent."), |totals| {
        totals.sent_packets
    }),
    (plain("packets_lost", "Packets sent and lost."), |totals| {
        totals.lost_packets
    }),
    (
        plain("packets_received", "Packets received, each once."),
        |totals| totals.received_packets,
    ),
    (
        plain("sections_submitted", "Sections submitted to connections."),
        |totals| totals.submitted,
    ),
];

/// Gauges of each open connection.
const PEERS: [(Family, OfPeer); 8] = [
    (
        measured("round_trip", "The smoothed round-trip time.", Unit::Seconds),
        |peer| Some(peer.statistics.path.rtt_ms? / 1e3),
    ),
    (
        measured(
            "one_way_delay",
            "The delay to the peer, as the peer sees it: half the least round trip, and queues.",
            Unit::Seconds,
        ),
        |peer| Some(peer.statistics.peer.as_ref()?.one_way_ms / 1e3),
    ),
    (
        measured(
            "one_way_delay_min",
            "The least of these delays in the recent past.",
            Unit::Seconds,
        ),
        |peer| Some(peer.statistics.peer.as_ref()?.min_one_way_ms / 1e3),
    ),
    (
        measured(
            "jitter",
            "How much the delay to the peer differs between packets, as the peer sees it.",
            Unit::Seconds,
        ),
        |peer| Some(peer.statistics.peer.as_ref()?.jitter_ms / 1e3),
    ),
    (
        measured(
            "latency",
            "The time from a section's source time to its deadline, unless it names another.",
            Unit::Seconds,
        ),
        |peer| Some(peer.latency_ms / 1e3),
    ),
    (
        measured(
            "target_rate",
            "What may be sent per second: what an encoder is to be set to.",
            Unit::Bytes,
        ),
        |peer| Some(peer.statistics.path.target_mbps? * 1e6 / 8.0),
    ),
    (
        measured(
            "send_buffer",
            "Bytes of sections that were not acknowledged yet.",
            Unit::Bytes,
        ),
        |peer| {
            let held: &Statistics = &peer.statistics;
            Some((held.sent.bytes.queued + held.sent.bytes.in_flight) as f64)
        },
    ),
    (
        measured(
            "receive_buffer",
            "Bytes of sections that wait for the rest, or for their turn.",
            Unit::Bytes,
        ),
        |peer| Some(peer.statistics.received.buffered_bytes as f64),
    ),
];

/// A number for each of the words that a label can have: 0 for one that has not come up.
fn by_word(
    label: &'static str,
    words: impl IntoIterator<Item = &'static str>,
    counts: impl IntoIterator<Item = (&'static str, u64)>,
) -> Vec<(Labels, u64)> {
    let zeros = words.into_iter().map(|word| (word, 0));
    let all: BTreeMap<&str, u64> = zeros.chain(counts).collect();
    all.into_iter()
        .map(|(word, count)| (vec![(label, word.to_owned())], count))
        .collect()
}

/// Writes the numbers of a snapshot.
struct Writer<'a, 'e> {
    encoder: DescriptorEncoder<'e>,
    sides: [(&'static str, &'a Side); 2],
}

impl Writer<'_, '_> {
    fn counters(&mut self, family: &Family, values: Vec<(Labels, u64)>) -> fmt::Result {
        let values = values
            .into_iter()
            .map(|(labels, value)| (labels, ConstCounter::new(value)));
        family.write(
            &mut self.encoder,
            ConstCounter::<u64>::TYPE,
            values.collect(),
        )
    }

    fn gauges(&mut self, family: &Family, values: Vec<(Labels, f64)>) -> fmt::Result {
        let values = values
            .into_iter()
            .map(|(labels, value)| (labels, ConstGauge::new(value)));
        family.write(&mut self.encoder, ConstGauge::<f64>::TYPE, values.collect())
    }

    /// A number of each side that has it.
    fn each<T>(&self, value: impl Fn(&Side) -> Option<T>) -> Vec<(Labels, T)> {
        let sides = self.sides.iter();
        sides
            .filter_map(|(name, side)| Some((vec![("side", (*name).to_owned())], value(side)?)))
            .collect()
    }

    /// What the sections of one side became.
    fn fates<const N: usize>(
        &mut self,
        family: &Family,
        label: &'static str,
        side: &Side,
        fates: fn(&Totals) -> [(&'static str, u64); N],
    ) -> fmt::Result {
        let fates = side.totals.iter().flat_map(fates);
        let values = fates.map(|(fate, count)| (vec![(label, fate.to_owned())], count));
        self.counters(family, values.collect())
    }

    fn of_sides(&mut self) -> fmt::Result {
        let connections = self.each(|side| {
            side.totals?;
            Some(side.connections.len() as f64)
        });
        self.gauges(
            &plain("connections", "Connections that are open."),
            connections,
        )?;
        let media = self.each(|side| side.bytes);
        self.counters(
            &measured("media", "Media read or written.", Unit::Bytes),
            media,
        )?;
        for (family, value) in &TOTALS {
            let values = self.each(|side| side.totals.as_ref().map(value));
            self.counters(family, values)?;
        }
        let missing = self.each(|side| Some(side.totals?.missing_packets as f64));
        self.gauges(
            &plain(
                "packets_missing",
                "Packets to this end that have not come: what comes late is taken back.",
            ),
            missing,
        )?;
        let refused = self.each(|side| {
            side.totals?;
            let counts = side.refused.iter().map(|(word, count)| (*word, *count));
            Some(by_word("reason", REFUSALS, counts))
        });
        let refused = refused.into_iter().flat_map(|(side, by_reason)| {
            by_reason
                .into_iter()
                .map(move |(reason, count)| ([side.clone(), reason].concat(), count))
        });
        self.counters(
            &plain("calls_refused", "Calls refused, by the reason."),
            refused.collect(),
        )
    }

    fn of_sections(&mut self, snapshot: &Snapshot) -> fmt::Result {
        self.fates(
            &plain(
                "sections_reported",
                "Sections sent, by the last reports of the receivers.",
            ),
            "fate",
            &snapshot.output,
            |totals| {
                [
                    ("on_time", totals.peer_on_time),
                    ("late", totals.peer_late),
                    ("missing", totals.peer_gaps),
                ]
            },
        )?;
        self.fates(
            &plain(
                "sections_sent",
                "Sections submitted to connections, by what became of them.",
            ),
            "fate",
            &snapshot.output,
            |totals| {
                [
                    ("arrived", totals.acknowledged),
                    ("expired", totals.expired),
                    ("given_up", totals.given_up),
                    ("shed", totals.shed),
                ]
            },
        )?;
        self.fates(
            &plain("sections_received", "Whole sections received."),
            "on_time",
            &snapshot.input,
            |totals| [("true", totals.on_time), ("false", totals.late)],
        )?;
        let passed = &snapshot.passed;
        let whole = passed.whole.iter();
        self.counters(
            &plain(
                "sections_passed",
                "Whole sections passed on, by what they hold.",
            ),
            by_word(
                "type",
                KINDS,
                whole.map(|(kind, count)| (*kind, count.sections)),
            ),
        )?;
        let gaps = passed.gaps.iter();
        self.counters(
            &plain("gaps", "Sections that did not arrive whole, by the reason."),
            by_word(
                "reason",
                MissingReason::ALL.map(MissingReason::word),
                gaps.map(|(reason, count)| (reason.word(), *count)),
            ),
        )?;
        let notices = passed.notices.iter();
        self.counters(
            &plain(
                "source_notices",
                "What was said of the source, by the kind: damage, rtp loss, discontinuity, ..",
            ),
            by_word("kind", [], notices.map(|(kind, count)| (*kind, *count))),
        )
    }

    fn of_peers(&mut self) -> fmt::Result {
        for (family, value) in &PEERS {
            let peers = self.sides.iter().flat_map(|(name, side)| {
                let connections = side.connections.iter();
                connections.filter_map(move |peer| {
                    let labels = vec![("side", (*name).to_owned()), ("peer", peer.peer.clone())];
                    Some((labels, value(peer)?))
                })
            });
            let values = peers.collect();
            self.gauges(family, values)?;
        }
        Ok(())
    }
}

fn encode(snapshot: &Snapshot, encoder: DescriptorEncoder<'_>) -> fmt::Result {
    let sides = [("input", &snapshot.input), ("output", &snapshot.output)];
    let mut writer = Writer { encoder, sides };
    writer.of_sides()?;
    writer.of_sections(snapshot)?;
    writer.of_peers()
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let snapshot = self.0.get().map(Monitor::snapshot).unwrap_or_default();
        encode(&snapshot, encoder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(Snapshot);

    impl Collector for Fixed {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            encode(&self.0, encoder)
        }
    }

    fn ask(request: &str) -> (&'static str, String) {
        let mut snapshot = Snapshot::default();
        snapshot.input.bytes = Some(188);
        snapshot.output.totals = Some(Totals {
            sent_bytes: 1_500,
            shed: 3,
            missing_packets: 4,
            peer_late: 5,
            ..Totals::default()
        });
        let peer = comity::Peer {
            one_way_ms: 31.5,
            min_one_way_ms: 20.0,
            jitter_ms: 1.5,
            ..Default::default()
        };
        snapshot.output.connections.push(PeerStatistics {
            peer: "192.0.2.1:9".to_owned(),
            latency_ms: 400.0,
            statistics: Statistics {
                peer: Some(peer),
                ..Statistics::default()
            },
        });
        snapshot.input.totals = Some(Totals::default());
        snapshot.input.refused.insert("busy", 6);
        snapshot.passed.gaps.insert(MissingReason::Overdue, 2);
        let mut registry = Registry::with_prefix("comity");
        registry.register_collector(Box::new(Fixed(snapshot)));
        let mut incoming = Incoming::default();
        incoming.push(request.as_bytes());
        let (status, _, body) = respond(incoming.request(), &registry);
        (status, body)
    }

    #[test]
    fn names_have_base_units_and_labels() {
        let (status, body) = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(status, "200 OK");
        for line in [
            "# UNIT comity_sent_bytes bytes",
            "# TYPE comity_sent_bytes counter",
            "comity_sent_bytes_total{side=\"output\"} 1500",
            "comity_media_bytes_total{side=\"input\"} 188",
            "comity_sections_sent_total{fate=\"shed\"} 3",
            "comity_packets_missing{side=\"output\"} 4.0",
            "comity_sections_reported_total{fate=\"late\"} 5",
            "comity_calls_refused_total{side=\"input\",reason=\"busy\"} 6",
            "comity_gaps_total{reason=\"overdue\"} 2",
            "comity_connections{side=\"output\"} 1.0",
            "comity_one_way_delay_seconds{side=\"output\",peer=\"192.0.2.1:9\"} 0.0315",
            "comity_latency_seconds{side=\"output\",peer=\"192.0.2.1:9\"} 0.4",
            "comity_retransmitted_bytes_total{side=\"output\"} 0",
            "comity_gaps_total{reason=\"expired\"} 0",
            "comity_sections_passed_total{type=\"key\"} 0",
            "comity_calls_refused_total{side=\"output\",reason=\"busy\"} 0",
            "comity_one_way_delay_min_seconds{side=\"output\",peer=\"192.0.2.1:9\"} 0.02",
            "comity_jitter_seconds{side=\"output\",peer=\"192.0.2.1:9\"} 0.0015",
            "# EOF",
        ] {
            assert!(
                body.lines().any(|found| found == line),
                "{line}\nis not in\n{body}"
            );
        }
    }

    #[test]
    fn other_requests_are_turned_away() {
        assert_eq!(ask("GET /other HTTP/1.1\r\n\r\n").0, "404 Not Found");
        let (status, body) = ask("GET / HTTP/1.1\r\n\r\n");
        assert_eq!((status, body.contains("/metrics")), ("200 OK", true));
        assert_eq!(
            ask("POST /metrics HTTP/1.1\r\n\r\n").0,
            "405 Method Not Allowed"
        );
        assert_eq!(ask("").0, "405 Method Not Allowed");
        assert_eq!(ask(&"x".repeat(9_000)).0, "405 Method Not Allowed");
    }
}
