//! `comity kernel`

use comity_kernel::{Error, Flow, Loaded, Parameters, Settings};
use comity_units::Span;
use serde_json::{Value, json};

use super::sim::tables::{Table, digits};
use super::{Failure, complain, print};
use crate::args;

pub(crate) fn kernel(args: args::Kernel) -> Result<(), Failure> {
    match args {
        args::Kernel::Load(args) => load(args),
        args::Kernel::List(args) => list(&args),
        args::Kernel::Unload { .. } => comity_kernel::unload()
            .map_err(|error| complain(&error))
            .and_then(|()| print("libra is unloaded\n")),
        args::Kernel::Status(args) => status(&args),
    }
}

fn load(args: args::KernelLoad) -> Result<(), Failure> {
    let settings = Settings {
        parameters: Parameters {
            a: args.a,
            b: args.b,
            x: args.x,
            y: args.y,
            capacity: args.capacity,
            memory: (!args.memory.is_zero()).then_some(args.memory),
            pairs: !args.no_pairs,
        },
        cgroups: args.cgroups,
    };
    match comity_kernel::load(&settings) {
        Ok(()) => print("libra is loaded; `comity kernel unload libra` removes it\n"),
        Err(error @ Error::Parameters(_)) => {
            complain(&error);
            Err(Failure::Usage)
        }
        Err(error) => Err(complain(&error)),
    }
}

fn list(args: &args::KernelList) -> Result<(), Failure> {
    let loaded = comity_kernel::loaded().map_err(|error| complain(&error))?;
    if args.json {
        let controllers: Vec<Value> = loaded.iter().map(loaded_document).collect();
        return print(format!(
            "{:#}\n",
            json!({ "format": "comity-kernel-list/1", "controllers": controllers })
        ));
    }
    match loaded {
        Some(loaded) => print(loaded_text(&loaded)),
        None => print("no controller is loaded; `comity kernel load libra` loads one\n"),
    }
}

fn loaded_text(
    Loaded {
        parameters,
        cgroups,
    }: &Loaded,
) -> String {
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
    let mut text = format!(
        "libra\n  a {a}, b {b}, x {x}, y {y}\n  capacity {capacity}, memory {memory}, pairs {pairs}\n"
    );
    for cgroup in cgroups {
        text.push_str(&format!("  cgroup {}\n", cgroup.display()));
    }
    text
}

fn loaded_document(
    Loaded {
        parameters,
        cgroups,
    }: &Loaded,
) -> Value {
    json!({
        "controller": "libra",
        "a_s": parameters.a.as_secs_f64(),
        "b_s": parameters.b.as_secs_f64(),
        "x": parameters.x,
        "y": parameters.y,
        "capacity_bps": parameters.capacity.map(|rate| rate.as_bps()),
        "memory_s": parameters.memory.map(Span::as_secs_f64),
        "pairs": parameters.pairs,
        "cgroups": cgroups.iter().map(|cgroup| cgroup.display().to_string()).collect::<Vec<_>>(),
    })
}

fn status(args: &args::KernelStatus) -> Result<(), Failure> {
    let flows = comity_kernel::flows().map_err(|error| complain(&error))?;
    if args.json {
        let flows: Vec<Value> = flows.iter().map(flow_document).collect();
        return print(format!(
            "{:#}\n",
            json!({ "format": "comity-kernel-status/1", "flows": flows })
        ));
    }
    if flows.is_empty() {
        return print("libra has no flows\n");
    }
    print(flow_table(&flows))
}

fn flow_table(flows: &[Flow]) -> String {
    let mut table = Table::new([
        "local", "remote", "cwnd", "ssthresh", "rtt", "min", "max", "beta", "alpha", "capacity",
        "pacing",
    ]);
    for column in 2..=10 {
        table.right(column);
    }
    let milliseconds =
        |span: Option<Span>| span.map_or("-".into(), |span| digits(span.as_secs_f64() * 1e3));
    for flow in flows {
        let bound = if flow.capacity_is_exact { "" } else { ">" };
        table.row([
            flow.local.to_string(),
            flow.remote.to_string(),
            flow.window.to_string(),
            flow.ssthresh
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
    format!("{table}\n")
}

fn flow_document(flow: &Flow) -> Value {
    json!({
        "controller": "libra",
        "local": flow.local.to_string(),
        "remote": flow.remote.to_string(),
        "namespace": flow.namespace,
        "cwnd_packets": flow.window,
        "ssthresh_packets": flow.ssthresh,
        "mss_bytes": flow.mss.get(),
        "srtt_s": flow.srtt.as_secs_f64(),
        "rtt_s": flow.rtt.map(Span::as_secs_f64),
        "rtt_min_s": flow.rtt_range.map(|[least, _]| least.as_secs_f64()),
        "rtt_max_s": flow.rtt_range.map(|[_, most]| most.as_secs_f64()),
        "beta": flow.beta,
        "alpha_packets_per_s": flow.alpha,
        "capacity_bps": flow.capacity.map(|rate| rate.as_bps()),
        "capacity_is_exact": flow.capacity_is_exact,
        "pacing_bps": flow.pacing.as_bps(),
    })
}

#[cfg(test)]
mod tests {
    use comity_units::{Bytes, Rate};

    use super::*;

    fn flow() -> Flow {
        Flow {
            local: "198.18.0.1:40000".parse().unwrap(),
            remote: "198.18.0.2:5000".parse().unwrap(),
            namespace: 4_026_532,
            window: 84,
            ssthresh: None,
            mss: Bytes::new(1_448),
            srtt: Span::from_millis(31),
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
    fn a_flow_is_a_row_and_a_bound_is_marked() {
        let table = flow_table(&[flow()]);
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[0].len(), 11, "{table}");
        assert_eq!(
            rows[1],
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
        assert_eq!(document["ssthresh_packets"], Value::Null);
    }

    #[test]
    fn the_list_says_what_is_not_limited() {
        let loaded = Loaded {
            parameters: Parameters {
                memory: None,
                ..Parameters::default()
            },
            cgroups: vec!["/sys/fs/cgroup/video".into()],
        };
        assert_eq!(
            loaded_text(&loaded),
            "libra\n  a 1s, b 1s, x 2, y 2\n  capacity estimated, memory unlimited, pairs paced\n  cgroup /sys/fs/cgroup/video\n"
        );
    }
}
