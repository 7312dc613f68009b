//! TCP-Real's parameters and sockets.

use comity_kernel::real::{Flow, Fractions, Opening, Parameters, flows};
use comity_kernel::{Error, Settings};
use serde_json::{Map, Value, json};

use super::super::figures::digits;
use super::super::tables::Table;
use super::socket::socket_document;
use crate::args::{KernelFractions, KernelOpening, LoadReal};

pub(super) fn settings(args: LoadReal) -> Settings {
    let parameters = Parameters {
        max_level: args.max_level,
        threshold_share: args.threshold_share,
        opening: match args.opening {
            KernelOpening::SlowStart => Opening::SlowStart,
            KernelOpening::Sender => Opening::Sender,
            KernelOpening::Figure => Opening::Figure,
            KernelOpening::Jump => Opening::Jump,
        },
        fractions: match args.fractions {
            KernelFractions::Kept => Fractions::Kept,
            KernelFractions::Nearest => Fractions::Nearest,
            KernelFractions::Up => Fractions::Up,
            KernelFractions::Down => Fractions::Down,
        },
        compare_with_timeouts: !args.no_compare_with_timeouts,
        level_of_wave: args.level_of_wave,
        fixed_waves: args.fixed_waves,
        always_reduce: args.always_reduce,
        text_weights: args.text_weights,
    };
    Settings {
        parameters: comity_kernel::Parameters::Real(parameters),
        cgroups: args.cgroups,
        destinations: Vec::new(),
    }
}

/// The words of the scenario language.
fn opening(opening: Opening) -> &'static str {
    match opening {
        Opening::SlowStart => "slow_start",
        Opening::Sender => "sender",
        Opening::Figure => "figure",
        Opening::Jump => "jump",
    }
}

fn fractions(fractions: Fractions) -> &'static str {
    match fractions {
        Fractions::Kept => "kept",
        Fractions::Nearest => "nearest",
        Fractions::Up => "up",
        Fractions::Down => "down",
    }
}

fn timeout_reduction(parameters: &Parameters) -> &'static str {
    if parameters.always_reduce {
        "always"
    } else {
        "without_duplicates"
    }
}

fn weights(parameters: &Parameters) -> &'static str {
    if parameters.text_weights {
        "text"
    } else {
        "figure"
    }
}

pub(super) fn parameters_text(parameters: &Parameters) -> String {
    format!(
        "real\n  max_level {}, threshold_share {}, opening {}, weights {}, fractions {}\n  \
         compare_with_timeouts {}, level_of_wave {}, fixed_waves {}, timeout_reduction {}\n",
        parameters.max_level,
        parameters.threshold_share,
        opening(parameters.opening),
        weights(parameters),
        fractions(parameters.fractions),
        parameters.compare_with_timeouts,
        parameters.level_of_wave,
        parameters.fixed_waves,
        timeout_reduction(parameters),
    )
}

pub(super) fn parameters_document(parameters: &Parameters) -> Map<String, Value> {
    [
        ("max_level", json!(parameters.max_level)),
        ("threshold_share", json!(parameters.threshold_share)),
        ("opening", json!(opening(parameters.opening))),
        ("weights", json!(weights(parameters))),
        ("fractions", json!(fractions(parameters.fractions))),
        (
            "compare_with_timeouts",
            json!(parameters.compare_with_timeouts),
        ),
        ("level_of_wave", json!(parameters.level_of_wave)),
        ("fixed_waves", json!(parameters.fixed_waves)),
        ("timeout_reduction", json!(timeout_reduction(parameters))),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into_iter()
    .collect()
}

/// The table of the sockets, and their documents.
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
        "sends\nlevel",
        "wave\nnumber",
        "measures\nlevel",
        "threshold\nlevel",
        "rate\nsegments/s",
        "malformed\nsegments",
    ]);
    for column in 2..=8 {
        table.right(column);
    }
    for flow in flows {
        let none = || String::from("-");
        let sender = flow.sender;
        let sends = match sender.map(|sender| sender.level) {
            _ if flow.is_fallback => "reno".into(),
            Some(Some(level)) => level.to_string(),
            _ => none(),
        };
        let rate = flow.meter.and_then(|meter| meter.rate);
        table.row([
            flow.socket.local.to_string(),
            flow.socket.remote.to_string(),
            flow.socket.window.to_string(),
            sends,
            sender.map_or_else(none, |sender| sender.wave.to_string()),
            flow.meter.map_or_else(none, |meter| digits(meter.level)),
            flow.meter
                .map_or_else(none, |meter| digits(meter.threshold)),
            rate.map_or_else(none, digits),
            flow.malformed.to_string(),
        ]);
    }
    table.to_string()
}

fn flow_document(flow: &Flow) -> Map<String, Value> {
    let mut document = socket_document(&flow.socket);
    let (sender, meter) = (flow.sender, flow.meter);
    for (key, value) in [
        ("is_sender", json!(sender.is_some())),
        ("is_fallback", json!(flow.is_fallback)),
        ("level", json!(sender.and_then(|sender| sender.level))),
        (
            "is_reported",
            json!(sender.map(|sender| sender.is_reported)),
        ),
        ("wave", json!(sender.map(|sender| sender.wave))),
        ("meter_level", json!(meter.map(|meter| meter.level))),
        ("meter_threshold", json!(meter.map(|meter| meter.threshold))),
        ("meter_wave", json!(meter.map(|meter| meter.wave))),
        (
            "wave_rate_packets_per_s",
            json!(meter.and_then(|meter| meter.rate)),
        ),
        ("malformed_packets", json!(flow.malformed)),
    ] {
        document.insert(key.into(), value);
    }
    document
}

#[cfg(test)]
mod tests {
    use comity_kernel::real::{Meter, Sender};

    use super::super::socket::tests::socket;
    use super::*;

    fn flow() -> Flow {
        Flow {
            socket: socket(),
            sender: Some(Sender {
                level: Some(12),
                is_reported: true,
                wave: 700,
            }),
            is_fallback: false,
            meter: None,
            malformed: 0,
        }
    }

    fn rows(flow: Flow) -> Vec<String> {
        let table = flow_table(&[flow]);
        let row = table.lines().nth(2).unwrap();
        row.split_whitespace().skip(2).map(Into::into).collect()
    }

    #[test]
    fn each_half_has_its_columns() {
        assert_eq!(rows(flow()), ["84", "12", "700", "-", "-", "-", "0"]);
        let receiver = Flow {
            sender: None,
            meter: Some(Meter {
                level: 11.5,
                threshold: 12.0,
                wave: 699,
                rate: Some(2_000.0),
            }),
            malformed: 3,
            ..flow()
        };
        assert_eq!(
            rows(receiver),
            ["84", "-", "-", "11.50", "12.00", "2000", "3"]
        );
        let fallback = Flow {
            sender: None,
            is_fallback: true,
            ..flow()
        };
        assert_eq!(
            rows(fallback.clone()),
            ["84", "reno", "-", "-", "-", "-", "0"]
        );
        let document = flow_document(&fallback);
        assert_eq!(
            (&document["level"], &document["is_fallback"]),
            (&Value::Null, &json!(true))
        );
    }

    #[test]
    fn the_list_uses_the_words_of_scenarios() {
        let text = parameters_text(&Parameters {
            always_reduce: true,
            text_weights: true,
            ..Parameters::default()
        });
        assert_eq!(
            text,
            "real\n  max_level 24, threshold_share 0.5, opening slow_start, weights text, fractions kept\n  \
             compare_with_timeouts true, level_of_wave false, fixed_waves false, timeout_reduction always\n"
        );
    }
}
