//! The row of RAP.

use alloc::boxed::Box;

use super::super::parameters::{Parameter, ParameterError, Parameters};
use super::super::row::{Row, Setup};
use super::declare::{every_packet, flag, number};
use crate::Controller;
use crate::controllers::{Rap, RapConfig};

pub(super) const ROW: Row = Row {
    name: "rap",
    summary: "Additive increase and multiplicative decrease of a rate: one more packet per round trip in each round \
              trip, half the rate after a loss event.",
    source: "Rejaie, Handley and Estrin, INFOCOM 1999; constants as in ns-2",
    parameters: PARAMETERS,
    drives_tcp: false,
    repeats_losses: true,
    meter: Some(every_packet),
    build,
};

const INCREASE: Parameter = number(
    "increase",
    "The increase of the rate in each round trip (alpha).",
    1.0,
    (0.0, 1_000.0),
    "packets per round trip",
);
const DECREASE: Parameter = number(
    "decrease",
    "The factor on the rate at a loss event (beta).",
    0.5,
    (0.01, 0.99),
    "",
);
const RTT_GAIN: Parameter = number(
    "rtt_gain",
    "The weight of a measurement in the smoothed round trip and its variation (delta).",
    0.5,
    (0.001, 1.0),
    "",
);
const TIMEOUT_RTTS: Parameter = number(
    "timeout_rtts",
    "Smoothed round trips in the timeout (mu).",
    1.2,
    (1.0, 100.0),
    "round trips",
);
const TIMEOUT_VARIATIONS: Parameter = number(
    "timeout_variations",
    "Variations of the round trip in the timeout (phi).",
    4.0,
    (0.0, 100.0),
    "variations",
);
const FINE_GRAIN: Parameter = flag(
    "fine_grain",
    "Whether the gap is scaled by the short-term over the long-term round trip.",
    false,
);
const SHORT_GAIN: Parameter = number(
    "short_gain",
    "The weight of a measurement in the short-term round trip.",
    0.9,
    (0.001, 1.0),
    "",
);
const LONG_GAIN: Parameter = number(
    "long_gain",
    "The weight of a measurement in the long-term round trip.",
    0.01,
    (0.000_1, 1.0),
    "",
);
const USED_SHARE: Parameter = number(
    "used_share",
    "The rate grows only if this share of it was sent in the last round trip.",
    0.5,
    (0.0, 1.0),
    "",
);
const PARAMETERS: &[Parameter] = &[
    INCREASE,
    DECREASE,
    RTT_GAIN,
    TIMEOUT_RTTS,
    TIMEOUT_VARIATIONS,
    FINE_GRAIN,
    SHORT_GAIN,
    LONG_GAIN,
    USED_SHARE,
];

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    Ok(Box::new(Rap::new(RapConfig {
        mss: setup.mss,
        max_window: setup.max_window,
        increase: parameters.number(&INCREASE)?,
        decrease: parameters.number(&DECREASE)?,
        rtt_gain: parameters.number(&RTT_GAIN)?,
        timeout_rtts: parameters.number(&TIMEOUT_RTTS)?,
        timeout_variations: parameters.number(&TIMEOUT_VARIATIONS)?,
        fine_grain: parameters.flag(&FINE_GRAIN)?,
        short_gain: parameters.number(&SHORT_GAIN)?,
        long_gain: parameters.number(&LONG_GAIN)?,
        used_share: parameters.number(&USED_SHARE)?,
    })))
}
