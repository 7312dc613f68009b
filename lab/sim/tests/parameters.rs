//! Every parameter of every controller changes a run: the packets of a small network differ when
//! the parameter differs, and are the same when it is set to its default.

use crate::common;

use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::table::{Domain, Parameter, Parameters, Row, TABLE, Value};
use comity_link::{
    CodelConfig, Jitter, Limit, LinkConfig, Loss, LossModel, LossPlace, Queue, RateProfile,
};
use comity_sim::network::{Headers, SectionsSpec, TcpSpec, TransportSpec, Workload};
use comity_sim::{RunOptions, run};
use comity_tcp::Config;
use comity_transport::timeline::Reliability;
use comity_units::{DataSize, Rate, Seed, Span, Time};

use common::Builder;

/// What a network does to its flows.
#[derive(Clone, Copy, Debug)]
enum Path {
    /// A short drop-tail queue, two greedy flows.
    Shared,
    /// One packet in fifty is lost, none for want of room.
    Lossy,
    /// The source pauses, and packets overtake each other.
    Bursty,
    /// The link carries next to nothing for seconds.
    Outage,
    /// A queue that marks packets, two greedy flows.
    Marking,
}

/// From the one that shows most to the one that shows least.
const PATHS: [Path; 5] = [
    Path::Shared,
    Path::Lossy,
    Path::Bursty,
    Path::Outage,
    Path::Marking,
];

fn link(path: Path) -> LinkConfig {
    let (fast, slow) = (Rate::from_mbps(8), Rate::from_kbps(8));
    let limit = match path {
        Path::Shared => Limit::Packets(15),
        _ => Limit::Packets(60),
    };
    let plain = common::link_config(fast, Span::from_millis(15), limit);
    match path {
        Path::Shared => plain,
        Path::Lossy => LinkConfig {
            losses: vec![Loss {
                model: LossModel::Bernoulli(0.02),
                place: LossPlace::AfterTransmission,
            }],
            ..plain
        },
        Path::Bursty => LinkConfig {
            jitter: Jitter::Uniform {
                max: Span::from_millis(8),
                reorder: true,
            },
            ..plain
        },
        Path::Outage => LinkConfig {
            rate: RateProfile::Steps(vec![
                (Time::ZERO, fast),
                (Time::from_secs(3), slow),
                (Time::from_secs(6), fast),
            ]),
            ..plain
        },
        Path::Marking => LinkConfig {
            queue: Queue::CoDel(CodelConfig {
                ecn: true,
                ..CodelConfig::default()
            }),
            ..plain
        },
    }
}

fn tcp(row: &Row, parameters: Parameters) -> TransportSpec {
    TransportSpec::Tcp(TcpSpec {
        config: Config::MODERN,
        controller: row.name.into(),
        parameters,
        initial_window: DataSize::new(10 * 1_448),
        initial_ssthresh: None,
        headers: Headers::Real,
        timeline: None,
        stack: comity_sim::network::Stack::Kernel,
    })
}

/// Reno's recovery without selective acknowledgements, which often needs its timer.
fn old_tcp(row: &Row, parameters: Parameters) -> TransportSpec {
    match tcp(row, parameters) {
        TransportSpec::Tcp(spec) => TransportSpec::Tcp(TcpSpec {
            config: Config {
                recovery: RecoveryConfig::RENO,
                ..Config::NS2_2_35
            },
            ..spec
        }),
        other => other,
    }
}

fn sections(row: &Row, parameters: Parameters) -> TransportSpec {
    match common::sections(row.name) {
        TransportSpec::Sections(spec) => {
            TransportSpec::Sections(SectionsSpec { parameters, ..spec })
        }
        other => other,
    }
}

/// Sections of 20 kB that have to arrive within 200 ms.
fn urgent(row: &Row, parameters: Parameters) -> TransportSpec {
    match sections(row, parameters) {
        TransportSpec::Sections(mut spec) => {
            spec.config.reliability = Reliability::Timeline;
            spec.latency = Some(Span::from_millis(200));
            spec.section = DataSize::new(20_000);
            TransportSpec::Sections(spec)
        }
        other => other,
    }
}

/// The fingerprint of a run with these parameters.
fn fingerprint(path: Path, transport: &TransportSpec) -> u64 {
    let mut builder = Builder::new(10, 0);
    let (a, b) = (builder.node("a"), builder.node("b"));
    builder.link(a, b, link(path));
    builder.link(
        b,
        a,
        common::link_config(Rate::from_mbps(8), Span::from_millis(15), Limit::Unlimited),
    );
    let workload = match path {
        Path::Bursty => Workload::OnOff {
            rate: Rate::from_mbps(12),
            mean_on: Span::from_millis(400),
            mean_off: Span::from_millis(400),
        },
        _ => Workload::Greedy,
    };
    let mut transport = transport.clone();
    if let (Path::Marking, TransportSpec::Sections(spec)) = (path, &mut transport) {
        spec.config.ecn = true;
    }
    for _ in 0..2 {
        builder.flow("flow", (a, b), transport.clone(), workload.clone());
    }
    run(&builder.network, Seed::new(1), &RunOptions::default())
        .expect("the network is valid")
        .fingerprint
}

/// A value that is not the default: half of it, or another one of a list.
fn other(parameter: &Parameter) -> Value {
    match (&parameter.domain, &parameter.default) {
        (Domain::Flag, Value::Flag(flag)) => Value::Flag(!flag),
        (Domain::Number { .. }, Value::Number(default)) => Value::Number(default / 2.0),
        (Domain::Whole { .. }, Value::Number(default)) => Value::Number((default / 2.0).floor()),
        (Domain::Choice(choices), Value::Text(default)) => {
            let other = choices.iter().find(|choice| *choice != default);
            Value::Text((*other.expect("two choices")).into())
        }
        (Domain::Span { .. }, Value::Span(default)) => Value::Span(*default / 2),
        (Domain::Rate { .. }, _) => Value::Rate(Rate::from_mbps(3)),
        (Domain::Bytes { .. }, _) => Value::Bytes(DataSize::new(12_000)),
        pair => panic!("{}: default and domain disagree: {pair:?}", parameter.name),
    }
}

/// Where another parameter has to be set too, or the value has to be a certain one: the row, the
/// parameter, the others, the value.
const CASES: &[(&str, &str, &str, &str)] = &[
    ("reno", "weight", "", "2"),
    ("vegas", "alpha", "", "2.5"),
    ("vegas", "gamma", "", "20"),
    ("bbr", "probe_rtt_time", "min_rtt_window=2s", "20ms"),
    ("libra", "memory", "", "500ms"),
    ("iftp", "max_packets", "", "10"),
    ("psp", "jitter", "", "0.3"),
    ("rap", "timeout_rtts", "", "2"),
    ("rap", "short_gain", "fine_grain=true", "0.5"),
    ("rap", "long_gain", "fine_grain=true", "0.1"),
    ("gcc", "max_rate", "", "200kbps"),
    ("gcc", "deltas", "", "1"),
    ("scream", "max_rate", "", "500kbps"),
    ("tfrc", "header", "small_packets=true", "200B"),
    ("tfrc", "min_limit", "", "2"),
    ("steady", "random_loss", "", "0"),
    ("fixed", "rate", "window=20kB", "1Mbps"),
    ("fixed", "gap", "window=20kB", "5ms"),
];

type Build = fn(&Row, Parameters) -> TransportSpec;

/// What a row's runs looked like: by its parameters, the path and the transport.
struct Runs {
    row: &'static Row,
    builds: &'static [Build],
    base: Vec<(Parameters, Vec<u64>)>,
}

impl Runs {
    fn new(row: &'static Row) -> Self {
        Self {
            row,
            builds: if row.drives_tcp {
                &[sections, tcp, old_tcp, urgent]
            } else {
                &[sections, urgent]
            },
            base: Vec::new(),
        }
    }

    fn run(&self, at: usize, parameters: &Parameters) -> u64 {
        let build = self.builds[at % self.builds.len()];
        fingerprint(
            PATHS[at / self.builds.len()],
            &build(self.row, parameters.clone()),
        )
    }

    /// The first path and transport whose packets differ between the two.
    fn difference(&mut self, base: &Parameters, changed: &Parameters) -> Option<usize> {
        let known = self
            .base
            .iter()
            .position(|(parameters, _)| parameters == base);
        let known = known.unwrap_or_else(|| {
            self.base.push((base.clone(), Vec::new()));
            self.base.len() - 1
        });
        (0..PATHS.len() * self.builds.len()).find(|&at| {
            if self.base[known].1.len() <= at {
                let found = self.run(at, base);
                self.base[known].1.push(found);
            }
            self.run(at, changed) != self.base[known].1[at]
        })
    }
}

/// Checks each parameter of a row: its default changes nothing, another value changes something.
fn check(row: &'static Row) {
    let mut runs = Runs::new(row);
    for parameter in row.parameters {
        let case = CASES
            .iter()
            .find(|case| case.0 == row.name && case.1 == parameter.name);
        let (base, value) = match case {
            Some((.., others, value)) => (
                row.parse_list(others).expect("known parameters"),
                row.parse(parameter.name, value).expect("in range"),
            ),
            None => (Parameters::new(), other(parameter)),
        };
        let changed = base.clone().with(parameter.name, value);
        assert!(
            runs.difference(&base, &changed).is_some(),
            "{}.{} changes no run",
            row.name,
            parameter.name
        );
        let explicit = base.clone().with(parameter.name, parameter.default.clone());
        assert_eq!(
            runs.run(0, &explicit),
            runs.run(0, &base),
            "{}.{} set to its default changes a run",
            row.name,
            parameter.name
        );
    }
}

/// Each case names a parameter that exists.
#[test]
fn cases_are_of_the_table() {
    for (row, parameter, ..) in CASES {
        let row = TABLE.iter().find(|known| known.name == *row);
        let parameters = row.map_or(&[][..], |row| row.parameters);
        assert!(
            parameters.iter().any(|known| known.name == *parameter),
            "{parameter}"
        );
    }
}

#[test]
fn every_parameter_changes_a_run() {
    std::thread::scope(|scope| {
        for row in TABLE {
            scope.spawn(|| check(row));
        }
    });
}
