//! The last snapshot as Prometheus reads it, at `/metrics`.
//!
//! Names end with the base unit (`_bytes`, `_seconds`), counters with `_total`; `side` says of
//! which end of the way a number is: `input` or `output`.

mod request;

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Registry, Unit};

use super::snapshot::{Side, Snapshot};
use super::trouble::Trouble;
use request::{Incoming, Request};

/// How long a scraper may take to ask, or to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is told next time somebody asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics(Arc<Mutex<Snapshot>>);

impl Metrics {
    pub(crate) fn update(&self, snapshot: &Snapshot) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone_from(snapshot);
    }

    /// Answers at `address` until the program ends; gives the address, with its port.
    pub(crate) fn serve(&self, address: SocketAddr) -> Result<SocketAddr, Trouble> {
        let refused = |error: io::Error| {
            let message = format!("--metrics-bind {address}: {error}");
            match error.kind() {
                io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable => Trouble::taken(
                    format!("{message}; choose another, or see who has it with: ss -ltnp"),
                ),
                _ => Trouble::failed(message),
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

/// A family of numbers that is being told.
struct Family<'a> {
    name: &'a str,
    help: &'a str,
    unit: Option<Unit>,
}

impl Family<'_> {
    fn write<M: EncodeMetric>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        kind: MetricType,
        values: impl IntoIterator<Item = (Labels, M)>,
    ) -> fmt::Result {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return Ok(());
        }
        let mut family =
            encoder.encode_descriptor(self.name, self.help, self.unit.as_ref(), kind)?;
        for (labels, value) in values {
            value.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn counters(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        values: impl IntoIterator<Item = (Labels, u64)>,
    ) -> fmt::Result {
        let values = values
            .into_iter()
            .map(|(labels, value)| (labels, ConstCounter::new(value)));
        self.write(encoder, ConstCounter::<u64>::TYPE, values)
    }

    fn gauges(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        values: impl IntoIterator<Item = (Labels, f64)>,
    ) -> fmt::Result {
        let values = values
            .into_iter()
            .map(|(labels, value)| (labels, ConstGauge::new(value)));
        self.write(encoder, ConstGauge::<f64>::TYPE, values)
    }
}

fn plain<'a>(name: &'a str, help: &'a str) -> Family<'a> {
    Family {
        name,
        help,
        unit: None,
    }
}

fn measured<'a>(name: &'a str, help: &'a str, unit: Unit) -> Family<'a> {
    Family {
        unit: Some(unit),
        ..plain(name, help)
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let snapshot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sides = [("input", &snapshot.input), ("output", &snapshot.output)];
        let of = |side: &str| vec![("side", side.to_owned())];
        let each = |value: &dyn Fn(&Side) -> Option<u64>| -> Vec<(Labels, u64)> {
            let told = sides.iter();
            told.filter_map(|(name, side)| Some((of(name), value(side)?)))
                .collect()
        };
        let total = |value: fn(&super::totals::Totals) -> u64| {
            each(&move |side: &Side| side.totals.as_ref().map(value))
        };
        plain("connections", "Connections that are open.").gauges(
            encoder,
            sides.iter().filter_map(|(name, side)| {
                side.totals?;
                Some((of(name), side.connections.len() as f64))
            }),
        )?;
        plain("connections_made", "Connections that were made.")
            .counters(encoder, total(|totals| totals.connections))?;
        measured("media", "Media read or written.", Unit::Bytes)
            .counters(encoder, each(&|side| side.bytes))?;
        measured("sent", "Sent on the wire, headers included.", Unit::Bytes)
            .counters(encoder, total(|totals| totals.sent_bytes))?;
        measured(
            "received",
            "Received on the wire, headers included.",
            Unit::Bytes,
        )
        .counters(encoder, total(|totals| totals.received_bytes))?;
        measured(
            "sent_again",
            "Bytes of sections that were sent again.",
            Unit::Bytes,
        )
        .counters(encoder, total(|totals| totals.retransmitted_bytes))?;
        measured(
            "sent_late",
            "Bytes of sections sent after their deadline.",
            Unit::Bytes,
        )
        .counters(encoder, total(|totals| totals.late_bytes))?;
        plain("packets_sent", "Packets sent.")
            .counters(encoder, total(|totals| totals.sent_packets))?;
        plain("packets_lost", "Packets sent and lost.")
            .counters(encoder, total(|totals| totals.lost_packets))?;
        plain("packets_received", "Packets received, each once.")
            .counters(encoder, total(|totals| totals.received_packets))?;
        plain(
            "packets_missing",
            "Packets to this end that have not come: what comes late is taken back.",
        )
        .gauges(
            encoder,
            total(|totals| totals.missing_packets)
                .into_iter()
                .map(|(labels, missing)| (labels, missing as f64)),
        )?;
        plain("calls_refused", "Calls turned away, by the reason.").counters(
            encoder,
            sides.iter().flat_map(|(name, side)| {
                side.refused.iter().map(|(word, count)| {
                    let mut labels = of(name);
                    labels.push(("reason", (*word).to_owned()));
                    (labels, *count)
                })
            }),
        )?;
        plain(
            "sections_reported",
            "Sections sent, by what the receivers said of them last.",
        )
        .counters(
            encoder,
            snapshot.output.totals.iter().flat_map(|totals| {
                [
                    ("on_time", totals.peer_on_time),
                    ("late", totals.peer_late),
                    ("missing", totals.peer_gaps),
                ]
                .map(|(fate, count)| (vec![("fate", fate.to_owned())], count))
            }),
        )?;
        plain(
            "sections_sent",
            "Sections given to connections, by what became of them.",
        )
        .counters(
            encoder,
            snapshot.output.totals.iter().flat_map(|totals| {
                [
                    ("arrived", totals.acknowledged),
                    ("expired", totals.expired),
                    ("given_up", totals.given_up),
                    ("shed", totals.shed),
                ]
                .map(|(fate, count)| (vec![("fate", fate.to_owned())], count))
            }),
        )?;
        plain("sections_received", "Whole sections received.").counters(
            encoder,
            snapshot.input.totals.iter().flat_map(|totals| {
                [("true", totals.on_time), ("false", totals.late)]
                    .map(|(on_time, count)| (vec![("on_time", on_time.to_owned())], count))
            }),
        )?;
        plain(
            "sections_passed",
            "Whole sections passed on, by what they hold.",
        )
        .counters(
            encoder,
            snapshot
                .passed
                .whole
                .iter()
                .map(|(kind, count)| (vec![("type", (*kind).to_owned())], count.sections)),
        )?;
        plain("gaps", "Sections that did not arrive whole, by the reason.").counters(
            encoder,
            snapshot
                .passed
                .gaps
                .iter()
                .map(|(reason, count)| (vec![("reason", (*reason).to_owned())], *count)),
        )?;
        plain(
            "source_notices",
            "What was said of the source, by the kind: damage, rtp loss, discontinuity, ..",
        )
        .counters(
            encoder,
            snapshot
                .passed
                .notices
                .iter()
                .map(|(kind, count)| (vec![("kind", (*kind).to_owned())], *count)),
        )?;
        let peers = |value: &dyn Fn(&comity::Statistics) -> Option<f64>| -> Vec<(Labels, f64)> {
            let all = sides.iter();
            all.flat_map(|(name, side)| side.connections.iter().map(move |peer| (*name, peer)))
                .filter_map(|(name, peer)| {
                    let mut labels = of(name);
                    labels.push(("peer", peer.peer.clone()));
                    Some((labels, value(&peer.statistics)?))
                })
                .collect()
        };
        measured("round_trip", "The smoothed round-trip time.", Unit::Seconds)
            .gauges(encoder, peers(&|all| Some(all.path.rtt_ms? / 1e3)))?;
        measured(
            "one_way_delay",
            "The delay to the peer, as the peer sees it: half the least round trip, and queues.",
            Unit::Seconds,
        )
        .gauges(
            encoder,
            peers(&|all| Some(all.peer.as_ref()?.one_way_ms / 1e3)),
        )?;
        measured(
            "one_way_delay_least",
            "The least of these delays in the recent past.",
            Unit::Seconds,
        )
        .gauges(
            encoder,
            peers(&|all| Some(all.peer.as_ref()?.min_one_way_ms / 1e3)),
        )?;
        measured(
            "jitter",
            "How much the delay to the peer differs between packets, as the peer sees it.",
            Unit::Seconds,
        )
        .gauges(
            encoder,
            peers(&|all| Some(all.peer.as_ref()?.jitter_ms / 1e3)),
        )?;
        measured(
            "target_rate",
            "What may be sent per second: what an encoder is to be set to.",
            Unit::Bytes,
        )
        .gauges(
            encoder,
            peers(&|all| Some(all.path.target_mbps? * 1e6 / 8.0)),
        )
    }
}

#[cfg(test)]
mod tests {
    use comity::Statistics;

    use super::super::snapshot::Peer;
    use super::*;
    use crate::commands::stream::totals::Totals;

    fn ask(request: &str) -> (&'static str, String) {
        let metrics = Metrics::default();
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
        snapshot.output.connections.push(Peer {
            peer: "192.0.2.1:9".to_owned(),
            statistics: Statistics {
                peer: Some(peer),
                ..Statistics::default()
            },
        });
        snapshot.input.refused.insert("busy", 6);
        snapshot.passed.gaps.insert("overdue", 2);
        metrics.update(&snapshot);
        let mut registry = Registry::with_prefix("comity");
        registry.register_collector(Box::new(metrics));
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
            "comity_one_way_delay_least_seconds{side=\"output\",peer=\"192.0.2.1:9\"} 0.02",
            "comity_jitter_seconds{side=\"output\",peer=\"192.0.2.1:9\"} 0.0015",
            "# EOF",
        ] {
            assert!(
                body.lines().any(|found| found == line),
                "{line}\nis not in\n{body}"
            );
        }
        assert!(
            !body.contains("comity_sections_received"),
            "nothing is received"
        );
    }

    #[test]
    fn other_requests_are_turned_away() {
        assert_eq!(ask("GET / HTTP/1.1\r\n\r\n").0, "404 Not Found");
        assert_eq!(
            ask("POST /metrics HTTP/1.1\r\n\r\n").0,
            "405 Method Not Allowed"
        );
        assert_eq!(ask("").0, "405 Method Not Allowed");
        assert_eq!(ask(&"x".repeat(9_000)).0, "405 Method Not Allowed");
    }
}
