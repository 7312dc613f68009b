//! The row of Vegas.

use alloc::boxed::Box;

use super::super::parameters::{Parameter, ParameterError, Parameters};
use super::super::row::{Row, Setup};
use super::declare::{flag, segments};
use crate::Controller;
use crate::controllers::{Vegas, VegasConfig};

pub(super) const ROW: Row = Row {
    name: "vegas",
    summary: "Keeps one to three segments waiting at the bottleneck, by round-trip times. \
              Its own bursts look like queueing to it: with the modern preset of TCP (an initial \
              window of ten segments, delayed acknowledgements) one flow stops at 86 %, 58 % and \
              38 % of an idle 10 Mb/s link for round trips of 18, 48 and 108 ms; with \
              `delayed_ack = false` it fills the link.",
    source: "Brakmo and Peterson, IEEE JSAC 13(8), 1995; details as in ns-2",
    parameters: PARAMETERS,
    drives_tcp: true,
    repeats_losses: true,
    meter: None,
    build,
};

const ALPHA: Parameter = segments(
    "alpha",
    "With fewer extra segments than this at the bottleneck the window grows.",
    1.0,
);
const BETA: Parameter = segments(
    "beta",
    "With more extra segments than this the window shrinks.",
    3.0,
);
const GAMMA: Parameter = segments(
    "gamma",
    "With more extra segments than this slow start ends.",
    1.0,
);
const WHOLE_SEGMENTS: Parameter = flag(
    "whole_segments",
    "Whether the extra segments are rounded before they are compared (ns-2), or not (the paper).",
    true,
);
const PARAMETERS: &[Parameter] = &[ALPHA, BETA, GAMMA, WHOLE_SEGMENTS];

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    Ok(Box::new(Vegas::new(VegasConfig {
        mss: setup.mss,
        initial_window: setup.initial_window,
        initial_ssthresh: setup.initial_ssthresh,
        max_window: setup.max_window,
        alpha: parameters.number(&ALPHA)?,
        beta: parameters.number(&BETA)?,
        gamma: parameters.number(&GAMMA)?,
        whole_segments: parameters.flag(&WHOLE_SEGMENTS)?,
    })))
}
