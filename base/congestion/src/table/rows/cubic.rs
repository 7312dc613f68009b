//! The row of CUBIC.

use alloc::boxed::Box;

use super::super::parameters::{Domain, Parameter, ParameterError, Parameters, Value};
use super::super::row::{Row, Setup};
use super::declare::{DECREASE_BASES, DECREASE_BASIS, choice, flag};
use crate::Controller;
use crate::controllers::{Cubic, CubicConfig, LinuxCubic};

pub(super) const ROW: Row = Row {
    name: "cubic",
    summary: "The window is a cubic function of the time since the last loss, and at least Reno's; \
              the default of today's systems.",
    source: "RFC 9438; RFC 9406 for its first slow start; Linux 6 for variant \"linux\"",
    parameters: PARAMETERS,
    drives_tcp: true,
    repeats_losses: true,
    meter: None,
    build,
};

const AGGRESSIVENESS: Parameter = Parameter {
    name: "c",
    summary: "C: the steepness of the curve.",
    default: Value::Number(0.4),
    domain: Domain::Number {
        min: 0.001,
        max: 100.0,
        unit: "segments/s³",
    },
};
const BETA: Parameter = Parameter {
    name: "beta",
    summary: "beta: the factor on the window after a loss.",
    default: Value::Number(0.7),
    domain: Domain::Number {
        min: 0.1,
        max: 0.99,
        unit: "",
    },
};
const FAST_CONVERGENCE: Parameter = flag(
    "fast_convergence",
    "Whether a flow that loses below its last plateau lowers the next plateau further.",
    true,
);
const HYSTART: Parameter = flag(
    "hystart",
    "Whether the first slow start may end when round-trip times rise (HyStart++; Linux's HyStart, which \
     also looks at trains of acknowledgements).",
    true,
);
const VARIANT: Parameter = choice(
    "variant",
    "Whether the window is computed as RFC 9438 says or in whole segments as in Linux, where a loss always reduces \
     the window and the estimate of Reno's window always grows by 0.53 segments per round trip.",
    "rfc9438",
    &["rfc9438", "linux"],
);
const PARAMETERS: &[Parameter] = &[
    AGGRESSIVENESS,
    BETA,
    FAST_CONVERGENCE,
    DECREASE_BASIS,
    HYSTART,
    VARIANT,
];

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    let config = CubicConfig {
        mss: setup.mss,
        initial_window: setup.initial_window,
        initial_ssthresh: setup.initial_ssthresh,
        max_window: setup.max_window,
        aggressiveness: parameters.number(&AGGRESSIVENESS)?,
        beta: parameters.number(&BETA)?,
        fast_convergence: parameters.flag(&FAST_CONVERGENCE)?,
        decrease_basis: parameters.choice(&DECREASE_BASIS, DECREASE_BASES)?,
        hystart: parameters.flag(&HYSTART)?,
    };
    Ok(
        if parameters.choice(&VARIANT, &[("rfc9438", false), ("linux", true)])? {
            Box::new(LinuxCubic::new(config))
        } else {
            Box::new(Cubic::new(config))
        },
    )
}
