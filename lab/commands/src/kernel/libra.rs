//! TCP Libra's parameters and flows.

use comity_kernel::libra::{Flow, Parameters, flows};
use comity_kernel::{Error, Settings};
use comity_units::Span;
use serde_json::{Map, Value, json};

use super::super::figures::digits;
use super::super::tables::Table;
use super::socket::socket_document;
use crate::args;

pub(super) fn settings(args: args::LoadLibra) -> Settings {
    let parameters = Parameters {
        a: args.a,
        b: args.b,
        x: args.x,
        y: args.y,
        capacity: args.capacity,
        memory: (!args.memory.is_zero()).then_some(args.memory),
        pairs: !args.no_pairs,
    };
    Settings {
        parameters: comity_kernel::Parameters::Libra(parameters),
        cgroups: args.cgroups,
        destinations: args.destinations,
    }
}

pub(super) fn parameters_text(parameters: &Parameters) -> String {
    let Parameters {
        a,
        b,
        x,
        y,
        capacity,
        memory,
        pairs,
    } = parameters;
    let capacity = capacity.map_or("estimated".into(), |rate| rate.to_string());
    let memory = memory.map_or("unlimited".into(), |memory| memory.to_string());
    let pairs = if *pairs { "paced" } else { "not paced" };
    format!(
        "libra\n  a {a}, b {b}, x {x}, y {y}\n  capacity {capacity}, memory {memory}, pairs {pairs}\n"
    )
}

pub(super) fn parameters_document(parameters: &Parameters) -> Map<String, Value> {
    [
        ("a_s", json!(parameters.a.as_secs_f64())),
        ("b_s", json!(parameters.b.as_secs_f64())),
        ("x", json!(parameters.x)),
        ("y", json!(parameters.y)),
        (
            "capacity_bps",
            json!(parameters.capacity.map(|rate| rate.as_bps())),
        ),
        ("memory_s", json!(parameters.memory.map(Span::as_secs_f64))),
        ("pairs", json!(parameters.pairs)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into_iter()
    .collect()
}

/// The table of the flows, and their documents.
pub(super) fn status() -> Result<(String, Vec<Map<String, Value>>), Error> {
    let flows = flows()?;
    Ok((
        flow_table(&flows),
        flows.iter().map(flow_document).collect(),
    ))
}

fn flow_table(flows: &[Flow]) -> String {
    let mut table = Table::new([
        "local",
        "remote",
        "cwnd\nsegments",
        "ssthresh\nsegments",
        "RTT\nms",
        "min RTT\nms",
        "max RTT\nms",
        "beta\n0 to 1",
        "alpha\nsegments/s",
        "capacity\nMb/s",
        "pacing\nMb/s",
    ]);
    for column in 2..=10 {
        table.right(column);
    }
    let milliseconds =
        |span: Option<Span>| span.map_or("-".into(), |span| digits(span.as_secs_f64() * 1e3));
    for flow in flows {
        let bound = if flow.capacity_is_exact { "" } else { ">" };
        table.row([
            flow.socket.local.to_string(),
            flow.socket.remote.to_string(),
            flow.socket.window.to_string(),
            flow.socket
                .ssthresh
                .map_or("-".into(), |segments| segments.to_string()),
            milliseconds(flow.rtt),
            milliseconds(flow.rtt_range.map(|[least, _]| least)),
            milliseconds(flow.rtt_range.map(|[_, most]| most)),
            format!("{:.2}", flow.beta),
            digits(flow.alpha),
            flow.capacity.map_or("-".into(), |rate| {
                format!("{bound}{}", digits(rate.as_mbps_f64()))
            }),
            digits(flow.pacing.as_mbps_f64()),
        ]);
    }
    table.to_string()
}

fn flow_document(flow: &Flow) -> Map<String, Value> {
    let mut document = socket_document(&flow.socket);
    let range = |at: usize| flow.rtt_range.map(|range| range[at].as_secs_f64());
    for (key, value) in [
        ("rtt_s", json!(flow.rtt.map(Span::as_secs_f64))),
        ("rtt_min_s", json!(range(0))),
        ("rtt_max_s", json!(range(1))),
        ("beta", json!(flow.beta)),
        ("alpha_packets_per_s", json!(flow.alpha)),
        (
            "capacity_bps",
            json!(flow.capacity.map(|rate| rate.as_bps())),
        ),
        ("capacity_is_exact", json!(flow.capacity_is_exact)),
        ("pacing_bps", json!(flow.pacing.as_bps())),
    ] {
        document.insert(key.into(), value);
    }
    document
}

#[cfg(test)]
mod tests {
    use comity_units::Rate;

    use super::super::socket::tests::socket;
    use super::*;

    fn flow() -> Flow {
        Flow {
            socket: socket(),
            rtt: Some(Span::from_micros(30_500)),
            rtt_range: Some([30, 32].map(Span::from_millis)),
            beta: 0.25,
            alpha: 121.3,
            capacity: Some(Rate::from_mbps(100)),
            capacity_is_exact: false,
            pacing: Rate::from_mbps(10),
        }
    }

    #[test]
    fn each_flow_is_a_row_and_values_at_a_bound_are_marked() {
        let table = flow_table(&[flow()]);
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let headings = "local remote cwnd ssthresh RTT min RTT max RTT beta alpha capacity pacing";
        assert_eq!(rows[0].join(" "), headings);
        let units = "segments segments ms ms ms 0 to 1 segments/s Mb/s Mb/s";
        assert_eq!(rows[1].join(" "), units);
        assert_eq!(
            rows[2],
            [
                "198.18.0.1:40000",
                "198.18.0.2:5000",
                "84",
                "-",
                "30.50",
                "30.00",
                "32.00",
                "0.25",
                "121.3",
                ">100.0",
                "10.00"
            ]
        );
    }

    #[test]
    fn a_document_has_units_in_its_keys() {
        let document = flow_document(&flow());
        assert_eq!(document["rtt_max_s"], 0.032);
        assert_eq!(document["capacity_bps"], 100_000_000);
    }

    #[test]
    fn the_list_shows_missing_limits() {
        let parameters = Parameters {
            memory: None,
            ..Parameters::default()
        };
        assert_eq!(
            parameters_text(&parameters),
            "libra\n  a 1s, b 1s, x 2, y 2\n  capacity estimated, memory unlimited, pairs paced\n"
        );
    }
}
