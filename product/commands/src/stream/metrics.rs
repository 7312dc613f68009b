//! Prometheus metrics at `/metrics`: a snapshot for each request.
//!
//! Names end with the base unit (`_bytes`, `_seconds`), counters with `_total`. The label `side`
//! is `input` or `output`.

#[cfg(test)]
mod page;
mod server;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Registry, Unit};
use zeroize::Zeroizing;

use comity::counter::{self, Counter, Counters, Kind, Value};
use comity_stream::{
    KINDS, MissingReason, Monitor, REFUSALS, Side, Snapshot, Totals, TransportStatistics,
};

use super::error::Error;
use super::input::NOTICES;
use server::{Limits, Page};

/// A bound address for metrics.
#[derive(Debug)]
pub(crate) struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    token: Option<Zeroizing<String>>,
}

/// Reads the token that scrapers send: the first line of a file.
pub(crate) fn token(path: &Path) -> Result<Zeroizing<String>, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::open(path, &error))?;
    let text = Zeroizing::new(text);
    let token = text.lines().next().unwrap_or_default().trim();
    let is_token = |byte: u8| byte.is_ascii_graphic();
    match (16..=256).contains(&token.len()) && token.bytes().all(is_token) {
        true => Ok(Zeroizing::new(token.into())),
        false => Err(Error::usage(format!(
            "--metrics-token: the first line of {} is no token; expected 16 to 256 letters, digits and signs",
            path.display()
        ))),
    }
}

impl Bound {
    /// Binds `address`. Clients must send `token`, and wait until [`Bound::serve`].
    pub(crate) fn new(
        address: SocketAddr,
        token: Option<Zeroizing<String>>,
    ) -> Result<Self, Error> {
        let refused = |error| refused(address, &error);
        let listener = TcpListener::bind(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self {
            listener,
            address,
            token,
        })
    }

    /// The address, with its port.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// A warning if other hosts can reach the address.
    pub(crate) fn warning(&self) -> Option<String> {
        let address = self.address;
        (!address.ip().to_canonical().is_loopback() && self.token.is_none()).then(|| {
            format!(
                "--metrics-bind {address}: anybody who can reach this address can read the metrics, \
                 with the addresses of peers; --metrics-token lets in who has it, and 127.0.0.1:{} is for this machine alone",
                address.port()
            )
        })
    }

    /// Serves the metrics of this relay until the program ends.
    pub(crate) fn serve(self, monitor: Monitor) -> Result<(), Error> {
        let mut registry = Registry::with_prefix("comity");
        registry.register_collector(Box::new(Metrics(monitor)));
        std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || {
                let page = Page::new(registry, self.token);
                server::run(self.listener, page, Limits::default())
            })
            .map_err(|error| refused(self.address, &error))?;
        Ok(())
    }
}

fn refused(address: SocketAddr, error: &io::Error) -> Error {
    let message = format!("--metrics-bind {address}: {error}");
    match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable => Error::taken(format!(
            "{message}; choose another, or find its owner with: ss -ltnp"
        )),
        _ => Error::failed(message),
    }
}

/// The metrics of a relay.
#[derive(Debug)]
struct Metrics(Monitor);

/// The labels of a metric.
type Labels = Vec<(&'static str, String)>;

/// A family of metrics with one name.
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

/// The unit in Prometheus, and the value in this unit. Rates are in bytes per second.
fn in_base_unit(unit: counter::Unit, value: f64) -> (Option<Unit>, f64) {
    match unit {
        counter::Unit::Bytes => (Some(Unit::Bytes), value),
        counter::Unit::Bps => (Some(Unit::Bytes), value / 8.0),
        counter::Unit::Mbps => (Some(Unit::Bytes), value * 1e6 / 8.0),
        counter::Unit::Seconds => (Some(Unit::Seconds), value),
        counter::Unit::Milliseconds => (Some(Unit::Seconds), value / 1e3),
        counter::Unit::Microseconds => (Some(Unit::Seconds), value / 1e6),
        counter::Unit::Count | counter::Unit::Ppm | counter::Unit::Ppb => (None, value),
    }
}

/// Counters by the name of their metric, with the labels of their end or connection.
type Named<'a> = BTreeMap<&'static str, Vec<(Labels, Counter<'a>)>>;

/// Adds each counter that is a metric.
fn collect<'a>(labels: &Labels, counters: Counters<'a>, named: &mut Named<'a>) {
    for counter in counters {
        match counter.value {
            Value::Counters(inner) => collect(labels, inner, named),
            _ => {
                if let Some(name) = counter.metric {
                    let counters = named.entry(name).or_default();
                    counters.push((labels.clone(), counter));
                }
            }
        }
    }
}

/// A metric for each value of a label; 0 for values that have not occurred.
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

/// Writes the metrics of a snapshot.
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

    /// Adds a metric for each side that has it.
    fn each<T>(&self, value: impl Fn(&Side) -> Option<T>) -> Vec<(Labels, T)> {
        let sides = self.sides.iter();
        sides
            .filter_map(|(name, side)| Some((vec![("side", (*name).to_owned())], value(side)?)))
            .collect()
    }

    /// Adds the outcomes of the sections of one side.
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
        let errors = self.each(|side| Some(side.transport.as_ref()?.errors.clone()));
        let errors = errors.into_iter().flat_map(|(side, errors)| {
            errors.into_iter().map(move |(indicator, count)| {
                let indicator = vec![("indicator", indicator.to_owned())];
                ([side.clone(), indicator].concat(), count)
            })
        });
        self.counters(
            &plain(
                "transport_errors",
                "Errors of the transport stream, by the indicator of TR 101 290.",
            ),
            errors.collect(),
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
        let unsent = snapshot.output.unsent.iter().flat_map(|unsent| {
            [
                ("dependency", unsent.dependent),
                ("no_room", unsent.no_room),
                ("unconnected", unsent.unconnected),
                ("unfit", unsent.unfit),
            ]
        });
        let unsent = unsent.map(|(reason, count)| (vec![("reason", reason.to_owned())], count));
        self.counters(
            &plain(
                "sections_unsent",
                "Sections that were submitted to no connection, by the reason.",
            ),
            unsent.collect(),
        )?;
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
            by_word(
                "kind",
                NOTICES,
                notices.map(|(kind, count)| (*kind, *count)),
            ),
        )
    }

    /// Adds the counters of transport streams, sums and connections that are metrics.
    fn of_counters(&mut self) -> fmt::Result {
        let (mut named, mut held) = (Named::new(), Vec::new());
        for (name, side) in self.sides {
            let labels = vec![("side", name.to_owned())];
            for counters in [
                side.transport.as_ref().map(TransportStatistics::counters),
                side.totals.as_ref().map(Totals::counters),
            ] {
                collect(&labels, counters.unwrap_or_default(), &mut named);
            }
            for peer in &side.connections {
                let labels = vec![("side", name.to_owned()), ("peer", peer.peer.clone())];
                collect(&labels, peer.counters(), &mut named);
                let bytes = &peer.statistics.sent.bytes;
                held.push((labels, (bytes.queued + bytes.in_flight) as f64));
            }
        }
        for (name, counters) in named {
            self.metric(name, counters)?;
        }
        let help = "Bytes of sections that were not acknowledged yet.";
        self.gauges(&measured("send_buffer", help, Unit::Bytes), held)
    }

    /// Adds the metric of these counters, which differ only in labels and values.
    fn metric(&mut self, name: &'static str, counters: Vec<(Labels, Counter<'_>)>) -> fmt::Result {
        let Some((_, first)) = counters.first() else {
            return Ok(());
        };
        let (help, (unit, _)) = (first.help, in_base_unit(first.unit, 0.0));
        let family = Family { name, help, unit };
        match first.kind {
            Kind::Counter => {
                let whole = |(labels, counter): (Labels, Counter<'_>)| match counter.value {
                    Value::Whole(value) => Some((labels, value)),
                    _ => None,
                };
                self.counters(&family, counters.into_iter().filter_map(whole).collect())
            }
            Kind::Gauge => {
                let real = counters.into_iter().filter_map(|(labels, counter)| {
                    let value = match counter.value {
                        Value::Whole(value) => value as f64,
                        Value::Signed(value) => value as f64,
                        Value::Real(value) => value,
                        _ => return None,
                    };
                    Some((labels, in_base_unit(counter.unit, value).1))
                });
                self.gauges(&family, real.collect())
            }
        }
    }
}

fn encode(snapshot: &Snapshot, encoder: DescriptorEncoder<'_>) -> fmt::Result {
    let sides = [("input", &snapshot.input), ("output", &snapshot.output)];
    let mut writer = Writer { encoder, sides };
    writer.of_sides()?;
    writer.of_sections(snapshot)?;
    writer.of_counters()
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        encode(&self.0.snapshot(), encoder)
    }
}

#[cfg(test)]
mod tests {
    use comity::Statistics;
    use comity_stream::PeerStatistics;
    use prometheus_client::encoding::text;

    use super::*;

    #[derive(Debug)]
    struct Fixed(Snapshot);

    impl Collector for Fixed {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            encode(&self.0, encoder)
        }
    }

    pub(super) fn encoded(snapshot: Snapshot) -> String {
        let mut registry = Registry::with_prefix("comity");
        registry.register_collector(Box::new(Fixed(snapshot)));
        let mut body = String::new();
        text::encode(&mut body, &registry).unwrap();
        body
    }

    fn snapshot() -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.input.bytes = Some(188);
        snapshot.output.totals = Some(Totals {
            sent_bytes: 1_500,
            shed: 3,
            internal_errors: 1,
            false_feedback: 2,
            missing_packets: 4,
            peer_late: 5,
            ..Totals::default()
        });
        let mut statistics = Statistics::default();
        let peer = statistics.peer.insert(Default::default());
        (peer.one_way_ms, peer.min_one_way_ms, peer.jitter_ms) = (31.5, 20.0, 1.5);
        snapshot.output.connections.push(PeerStatistics {
            peer: "192.0.2.1:9".to_owned(),
            latency_ms: 400.0,
            statistics,
        });
        snapshot.output.unsent = Some(comity_stream::Unsent {
            no_room: 7,
            ..Default::default()
        });
        snapshot.output.connections[0].statistics.path.pacing_mbps = Some(8.0);
        snapshot.output.connections[0].statistics.path.target_mbps = Some(4.0);
        snapshot.input.totals = Some(Totals::default());
        snapshot.input.refused.insert("busy", 6);
        snapshot.passed.gaps.insert(MissingReason::Overdue, 2);
        snapshot
    }

    #[test]
    fn names_have_base_units_and_labels() {
        let body = encoded(snapshot());
        for line in [
            "# UNIT comity_sent_bytes bytes",
            "# TYPE comity_sent_bytes counter",
            "comity_sent_bytes_total{side=\"output\"} 1500",
            "comity_internal_errors_total{side=\"output\"} 1",
            "comity_false_feedback_total{side=\"output\"} 2",
            "comity_internal_errors_total{side=\"input\"} 0",
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
            "comity_pacing_rate_bytes{side=\"output\",peer=\"192.0.2.1:9\"} 1000000.0",
            "comity_target_rate_bytes{side=\"output\",peer=\"192.0.2.1:9\"} 500000.0",
            "comity_send_buffer_bytes{side=\"output\",peer=\"192.0.2.1:9\"} 0.0",
            "comity_receive_buffer_bytes{side=\"output\",peer=\"192.0.2.1:9\"} 0.0",
            "comity_sections_unsent_total{reason=\"no_room\"} 7",
            "comity_sections_unsent_total{reason=\"unconnected\"} 0",
            "comity_source_notices_total{kind=\"rtp loss\"} 0",
            "# EOF",
        ] {
            assert!(
                body.lines().any(|found| found == line),
                "{line}\nis not in\n{body}"
            );
        }
    }

    #[test]
    fn a_metrics_address_reachable_by_others_causes_a_warning() {
        let warning = |address: &str| {
            Bound::new(address.parse().unwrap(), None)
                .unwrap()
                .warning()
        };
        for loopback in ["127.0.0.1:0", "127.0.0.2:0"] {
            assert_eq!(warning(loopback), None);
        }
        let text = warning("0.0.0.0:0").unwrap();
        assert!(text.contains("anybody who can reach"), "{text}");
    }
}
