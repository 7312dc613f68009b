//! The rows of BBR.

use alloc::boxed::Box;

use comity_units::Span;

use super::super::parameters::{Parameter, ParameterError, Parameters};
use super::super::row::{Row, Setup};
use super::declare::{flag, number, span};
use crate::Controller;
use crate::controllers::{Bbr, Bbr3, Bbr3Config, BbrConfig};

pub(super) const ROW: Row = Row {
    name: "bbr",
    summary: "Paces at the measured bandwidth, whatever the losses: version 1, the `bbr` of Linux.",
    source: "Linux, net/ipv4/tcp_bbr.c; N. Cardwell and others, ACM Queue 14 (2016)",
    parameters: PARAMETERS,
    drives_tcp: true,
    repeats_losses: true,
    meter: None,
    build,
};

pub(super) const ROW3: Row = Row {
    name: "bbr3",
    summary: "Version 3 of BBR: losses bound the data in flight, and probes are rarer and shorter.",
    source: "draft-ietf-ccwg-bbr-06",
    parameters: PARAMETERS3,
    drives_tcp: true,
    repeats_losses: true,
    meter: None,
    build: build3,
};

const CWND_GAIN: Parameter = number(
    "cwnd_gain",
    "The window while the flow probes for bandwidth, in bandwidth-delay products.",
    2.0,
    (1.0, 10.0),
    "",
);
const MIN_RTT_WINDOW: Parameter = span(
    "min_rtt_window",
    "The age at which the minimum round trip expires and ProbeRTT begins, which drains the queue.",
    Span::from_secs(10),
    (Span::from_millis(1), Span::from_secs(3_600)),
);
const PROBE_RTT_TIME: Parameter = span(
    "probe_rtt_time",
    "The minimum duration of ProbeRTT.",
    Span::from_millis(200),
    (Span::ZERO, Span::from_secs(10)),
);
const AGGREGATION: Parameter = flag(
    "aggregation",
    "Whether the window makes room for aggregated acknowledgements.",
    true,
);
const POLICER: Parameter = flag(
    "policer",
    "Whether the flow detects a policer and keeps to its rate.",
    true,
);
const PARAMETERS: &[Parameter] = &[
    CWND_GAIN,
    MIN_RTT_WINDOW,
    PROBE_RTT_TIME,
    AGGREGATION,
    POLICER,
];

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    Ok(Box::new(Bbr::new(BbrConfig {
        mss: setup.mss,
        initial_window: setup.initial_window,
        max_window: setup.max_window,
        seed: setup.seed,
        cwnd_gain: parameters.number(&CWND_GAIN)?,
        min_rtt_window: parameters.span(&MIN_RTT_WINDOW)?,
        probe_rtt_time: parameters.span(&PROBE_RTT_TIME)?,
        aggregation: parameters.flag(&AGGREGATION)?,
        policer: parameters.flag(&POLICER)?,
    })))
}

const LOSS_THRESHOLD: Parameter = number(
    "loss_threshold",
    "The loss ratio in a round trip above which too much is in flight.",
    0.02,
    (0.0, 1.0),
    "",
);
const BETA: Parameter = number(
    "beta",
    "The minimum factor on bandwidth and flight after a round trip with losses.",
    0.7,
    (0.1, 0.99),
    "",
);
const HEADROOM: Parameter = number(
    "headroom",
    "Where losses bound the flight, the part of that bound that is left to other flows.",
    0.15,
    (0.0, 0.9),
    "",
);
const PROBE_RTT_INTERVAL: Parameter = span(
    "probe_rtt_interval",
    "The age of the minimum round trip at which ProbeRTT begins, which drains the queue.",
    Span::from_secs(5),
    (Span::from_millis(1), Span::from_secs(3_600)),
);
const PARAMETERS3: &[Parameter] = &[LOSS_THRESHOLD, BETA, HEADROOM, PROBE_RTT_INTERVAL];

fn build3(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    Ok(Box::new(Bbr3::new(Bbr3Config {
        mss: setup.mss,
        initial_window: setup.initial_window,
        max_window: setup.max_window,
        seed: setup.seed,
        loss_threshold: parameters.number(&LOSS_THRESHOLD)?,
        beta: parameters.number(&BETA)?,
        headroom: parameters.number(&HEADROOM)?,
        probe_rtt_interval: parameters.span(&PROBE_RTT_INTERVAL)?,
    })))
}
