//! The row of the packet-spacing protocol.

use alloc::boxed::Box;

use comity_units::{Rate, Span};

use super::super::parameters::{Domain, Parameter, ParameterError, Parameters, Value};
use super::super::row::{Row, Setup};
use super::declare::{choice, flag, rate, span};
use crate::controllers::{Psp, PspConfig, RoundMeter, Step};
use crate::{Controller, Meter};

pub(super) const ROW: Row = Row {
    name: "psp",
    summary: "Adjusts the spacing of packets once per round trip, by how many arrived: the damped packet-spacing \
              protocol, or the ad-hoc one.",
    source: "Feng, Feng and Belford, \"Packet Spacing: An Enabling Mechanism for Delivering Multimedia Content in \
             Computational Grids\"",
    parameters: PARAMETERS,
    drives_tcp: false,
    repeats_losses: false,
    meter: Some(build_meter),
    build,
};

const DAMPED: Parameter = flag(
    "damped",
    "Whether a loss after a deliberate decrease of the spacing restores the spacing before it.",
    true,
);
const LINK: Parameter = rate(
    "link",
    "The rate of the sender's own link, at which packets leave without a spacing.",
    Rate::from_mbps(100),
);
const SCALE: Parameter = choice(
    "scale",
    "How the spacing changes: by fixed amounts as in the paper, with which two flows do not converge, or in proportion \
     to the rate, with which they do.",
    "fixed",
    &["fixed", "rate"],
);
/// The range of fixed amounts.
const AMOUNTS: (Span, Span) = (Span::from_nanos(1), Span::from_secs(1));
const FIRST: Parameter = span(
    "first",
    "With fixed amounts, the spacing after a loss if it was zero.",
    Span::from_micros(50),
    AMOUNTS,
);
const STEP: Parameter = span(
    "step",
    "With fixed amounts, the decrease of the spacing after a round without losses.",
    Span::from_micros(2),
    AMOUNTS,
);
const SETTLE: Parameter = flag(
    "settle",
    "Whether rounds that began before the last reaction to a loss are ignored.",
    true,
);
const DYNAMIC_RTT: Parameter = flag(
    "dynamic_rtt",
    "Whether rounds last the smoothed round trip instead of the first measured one, or of the minimum so far with \
     scale=rate.",
    false,
);
const JITTER: Parameter = Parameter {
    name: "jitter",
    summary: "The random variation of intervals: up to half of this share, either way. Without it, a late flow may \
              get nothing at a drop-tail queue that an older flow fills at exactly the rate of the link.",
    default: Value::Number(0.0),
    domain: Domain::Number {
        min: 0.0,
        max: 1.0,
        unit: "",
    },
};
const PARAMETERS: &[Parameter] = &[
    DAMPED,
    LINK,
    SCALE,
    FIRST,
    STEP,
    SETTLE,
    DYNAMIC_RTT,
    JITTER,
];

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    let fixed = Step::Fixed {
        first: parameters.span(&FIRST)?,
        step: parameters.span(&STEP)?,
    };
    Ok(Box::new(Psp::new(PspConfig {
        mss: setup.mss,
        max_window: setup.max_window,
        link: parameters.rate(&LINK)?,
        is_damped: parameters.flag(&DAMPED)?,
        step: parameters.choice(&SCALE, &[("fixed", fixed), ("rate", Step::Rate)])?,
        settles: parameters.flag(&SETTLE)?,
        is_dynamic: parameters.flag(&DYNAMIC_RTT)?,
        jitter: parameters.number(&JITTER)?,
        seed: setup.seed,
    })))
}

fn build_meter(_: &Setup, _: &Parameters) -> Result<Box<dyn Meter>, ParameterError> {
    Ok(Box::new(RoundMeter::default()))
}
