//! The settings of the presets of TCP.

use comity_congestion::recovery::RecoveryKind;
use comity_congestion::table::{Parameters, Row, Value, find};
use comity_tcp as tcp;
use comity_units::DataSize;

use super::super::tables::flow::Preset;
use crate::network::Headers;

/// The settings of a preset besides those of the endpoints.
pub(super) struct PresetRest {
    pub(super) config: tcp::Config,
    pub(super) headers: Headers,
    pub(super) is_ns2: bool,
    pub(super) rwnd: Option<u32>,
    pub(super) initial_window: u32,
    pub(super) ssthresh: Option<DataSize>,
    pub(super) controller: &'static str,
    pub(super) parameters: &'static [(&'static str, Setting)],
    /// The controllers that get the parameters; `None` for all that have them.
    pub(super) parameters_of: Option<&'static [&'static str]>,
}

impl PresetRest {
    /// The parameters that the preset sets for a controller.
    pub(super) fn parameters_for(&self, row: &Row) -> Parameters {
        let mut parameters = Parameters::new();
        let is_for = self
            .parameters_of
            .is_none_or(|names| names.contains(&row.name));
        for (name, setting) in self.parameters.iter().filter(|_| is_for) {
            if row.parameters.iter().any(|known| known.name == *name) {
                parameters.insert(
                    name,
                    match setting {
                        Setting::Flag(flag) => Value::Flag(*flag),
                        Setting::Word(word) => Value::Text((*word).into()),
                    },
                );
            }
        }
        parameters
    }
}

/// The parameters of preset "modern" that make a controller behave as in Linux. Other controllers
/// have none.
pub fn linux_parameters(controller: &str) -> Parameters {
    find(controller)
        .map(|row| Preset::Modern.rest().parameters_for(row))
        .unwrap_or_default()
}

/// A parameter that a preset sets.
#[derive(Clone, Copy)]
pub(super) enum Setting {
    Flag(bool),
    Word(&'static str),
}

/// The headers of ns-2: 40 bytes, and 8 for each SACK block.
const NS2_HEADERS: Headers = Headers::Fixed {
    bytes: 40,
    per_sack_block: 8,
};

impl Preset {
    pub(super) fn rest(self) -> PresetRest {
        match self {
            Self::Modern => PresetRest {
                config: tcp::Config::MODERN,
                headers: Headers::Real,
                is_ns2: false,
                rwnd: None,
                initial_window: 10,
                ssthresh: Some(DataSize::MAX),
                controller: "cubic",
                parameters: &[
                    ("variant", Setting::Word("linux")),
                    ("increase", Setting::Word("per_segment")),
                    ("decrease_basis", Setting::Word("window")),
                    ("rounding", Setting::Word("both")),
                    ("undo", Setting::Flag(true)),
                ],
                parameters_of: Some(&["cubic", "reno"]),
            },
            Self::Ns2Release => PresetRest {
                config: tcp::Config::NS2_2_35,
                headers: NS2_HEADERS,
                is_ns2: true,
                rwnd: Some(20),
                initial_window: 2,
                ssthresh: None,
                controller: "reno",
                parameters: &[
                    ("increase", Setting::Word("per_ack")),
                    ("decrease_basis", Setting::Word("window")),
                    ("rounding", Setting::Word("threshold")),
                    ("grow_when_limited", Setting::Flag(true)),
                ],
                parameters_of: None,
            },
            Self::Ns2Era2000 => PresetRest {
                config: tcp::Config::NS2_2000,
                initial_window: 1,
                parameters: &[
                    ("increase", Setting::Word("per_ack")),
                    ("decrease_basis", Setting::Word("window")),
                    ("rounding", Setting::Word("both")),
                    ("grow_when_limited", Setting::Flag(true)),
                ],
                ..Self::Ns2Release.rest()
            },
        }
    }

    /// The keys of a flow that it sets. Keys of `rto` begin with `rto.`.
    pub(in crate::scenario) fn settings(self) -> Vec<(&'static str, String)> {
        let rest = self.rest();
        let config = rest.config;
        let rtt = config.rtt;
        let recovery = config.recovery;
        let parameters = rest.parameters.iter().map(|(name, setting)| match setting {
            Setting::Flag(flag) => format!("{name} = {flag}"),
            Setting::Word(word) => format!("{name} = \"{word}\""),
        });
        let parameters: Vec<String> = parameters.collect();
        let packets = |count: u32| match count {
            1 => "1 packet".into(),
            count => format!("{count} packets"),
        };
        let mut settings = vec![
            (
                "headers",
                match rest.headers {
                    Headers::Real => "\"real\"".into(),
                    Headers::Fixed {
                        bytes,
                        per_sack_block,
                    } => format!("{bytes} B, and {per_sack_block} B for each SACK block"),
                },
            ),
            (
                "rwnd",
                rest.rwnd.map_or(config.receive_buffer.to_string(), packets),
            ),
            ("initial_window", packets(rest.initial_window)),
            (
                "ssthresh",
                match rest.ssthresh {
                    Some(DataSize::MAX) => "unlimited".into(),
                    Some(bytes) => bytes.to_string(),
                    None => "the receive buffer".into(),
                },
            ),
            ("controller", format!("\"{}\"", rest.controller)),
            (
                "parameters",
                format!(
                    "where {} has them: {}",
                    rest.parameters_of
                        .map_or("the controller".into(), |names| names.join(" or ")),
                    parameters.join(", ")
                ),
            ),
            (
                "recovery",
                match recovery.kind {
                    RecoveryKind::Tahoe => "\"tahoe\"",
                    RecoveryKind::Reno => "\"reno\"",
                    RecoveryKind::NewReno { .. } => "\"newreno\"",
                    RecoveryKind::Sack { .. } => "\"sack\"",
                    RecoveryKind::Rack { .. } => "\"rack\"",
                }
                .into(),
            ),
            (
                "duplicate_threshold",
                recovery.duplicate_threshold.to_string(),
            ),
            ("bugfix", recovery.bugfix.to_string()),
            (
                "delayed_ack",
                match config.delayed_ack {
                    None => "false".into(),
                    Some(delayed) => format!(
                        "every {} segments, or after {}, after {} quick ones",
                        delayed.segments, delayed.timeout, delayed.quick
                    ),
                },
            ),
            ("timestamps", config.timestamps.to_string()),
            ("timestamp_tick", config.timestamp_tick.to_string()),
            ("sack", config.sack.to_string()),
            ("duplicate_sack", config.duplicate_sack.to_string()),
            ("ecn", config.ecn.to_string()),
            ("restart_after_idle", config.restart_after_idle.to_string()),
            ("window_scaling", config.window_scaling.to_string()),
            ("limited_transmit", config.limited_transmit.to_string()),
            ("handshake", config.handshake.to_string()),
            (
                "initial_sequence",
                config.initial_sequence.get().to_string(),
            ),
            (
                "restart_timer_before_sample",
                config.restart_timer_before_sample.to_string(),
            ),
            ("time_wait", config.time_wait.to_string()),
        ];
        settings.extend([
            ("rto.tick", rtt.tick.to_string()),
            ("rto.phase", rtt.phase.to_string()),
            ("rto.granularity", rtt.granularity.to_string()),
            ("rto.initial_timeout", rtt.initial_timeout.to_string()),
            ("rto.min_timeout", rtt.min_timeout.to_string()),
            ("rto.max_timeout", rtt.max_timeout.to_string()),
            ("rto.max_doublings", rtt.max_doublings.to_string()),
            (
                "rto.floor_before_backoff",
                rtt.floor_before_backoff.to_string(),
            ),
            (
                "rto.forget_after_backoff",
                rtt.forget_after_backoff.to_string(),
            ),
        ]);
        settings
    }
}
