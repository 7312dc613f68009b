//! The row of GCC.

use alloc::boxed::Box;

use comity_units::{Rate, Span};

use super::super::parameters::{Domain, Parameter, ParameterError, Parameters, Value};
use super::super::row::{Row, Setup};
use super::declare::{MAX_RATE, every_packet, limits, number, rate, span};
use crate::Controller;
use crate::controllers::{Gcc, GccConfig};

pub(super) const ROW: Row = Row {
    name: "gcc",
    summary: "The controller of WebRTC: the growth of the one-way delay and the losses set a rate. It reads no ECN \
              marks.",
    source: "draft-ietf-rmcat-gcc-02; constants that it leaves open as in libwebrtc and pion",
    parameters: PARAMETERS,
    drives_tcp: false,
    repeats_losses: true,
    meter: Some(every_packet),
    build,
};

const INITIAL_RATE: Parameter = rate(
    "initial_rate",
    "The rate before the first acknowledgement.",
    Rate::from_kbps(300),
);
const MIN_RATE: Parameter = rate("min_rate", "The minimum rate.", Rate::from_kbps(30));
const CHI: Parameter = number(
    "chi",
    "The weight of a residual in the variance of the noise, at 30 groups in a second (chi).",
    0.01,
    (0.001, 0.1),
    "",
);
const DELTAS: Parameter = Parameter {
    name: "deltas",
    summary: "The growth of the delay is multiplied by the number of groups of packets, up to this: 60 as in \
              libwebrtc, 1 as in the draft, which does not detect a queue of paced packets.",
    default: Value::Number(60.0),
    domain: Domain::Whole {
        min: 1,
        max: 1_000,
        unit: "groups",
    },
};
const BETA: Parameter = number(
    "beta",
    "At over-use the rate becomes this share of the rate at which packets arrive.",
    0.85,
    (0.1, 0.99),
    "",
);
/// The range of both times.
const RANGE: (Span, Span) = (Span::from_millis(10), Span::from_secs(10));
const WINDOW: Parameter = span(
    "window",
    "The time over which the rate of arrivals is measured (T).",
    Span::from_millis(500),
    RANGE,
);
const LOSS_INTERVAL: Parameter = span(
    "loss_interval",
    "The time between two reports of losses.",
    Span::from_millis(200),
    RANGE,
);
const PARAMETERS: &[Parameter] = &[
    INITIAL_RATE,
    MIN_RATE,
    MAX_RATE,
    CHI,
    DELTAS,
    BETA,
    WINDOW,
    LOSS_INTERVAL,
];

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    let (min_rate, max_rate) = limits(parameters, &MIN_RATE)?;
    Ok(Box::new(Gcc::new(GccConfig {
        max_window: setup.max_window,
        initial_rate: parameters.rate(&INITIAL_RATE)?,
        min_rate,
        max_rate,
        chi: parameters.number(&CHI)?,
        // A whole number that fits, by its domain.
        deltas: parameters.number(&DELTAS)? as u32,
        beta: parameters.number(&BETA)?,
        window: parameters.span(&WINDOW)?,
        loss_interval: parameters.span(&LOSS_INTERVAL)?,
    })))
}
