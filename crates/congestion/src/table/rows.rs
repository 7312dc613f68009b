//! The rows.

use alloc::borrow::Cow;
use alloc::boxed::Box;

use comity_units::{Bytes, Rate, Span};

use super::{Domain, Parameter, ParameterError, Parameters, Row, Setup, Value};
use crate::growth::{
    Cubic, CubicConfig, DecreaseBasis, Fixed, Increase, Limited, Reno, RenoConfig, Rounding,
    Steady, SteadyConfig, Vegas, VegasConfig,
};
use crate::{Controller, Pacing};

/// What sections with deadlines are sent with unless somebody says otherwise.
pub const DEFAULT_FOR_SECTIONS: &str = "steady";

/// Every controller.
pub const TABLE: &[Row] = &[
    Row {
        name: "reno",
        summary: "Additive increase by one segment per round trip, halving on loss; \
                  Tahoe, NewReno and SACK share it and differ in their recovery.",
        source: "RFC 5681; RFC 3465 for byte counting",
        parameters: RENO,
        meter: None,
        build: build_reno,
    },
    Row {
        name: "vegas",
        summary: "Keeps one to three segments waiting at the bottleneck, by round-trip times. \
                  Its own bursts look like queueing to it: with the modern preset of TCP (an initial \
                  window of ten segments, delayed acknowledgements) one flow stops at 86 %, 58 % and \
                  38 % of an idle 10 Mb/s link for round trips of 18, 48 and 108 ms; with \
                  `delayed_ack = false` it fills the link.",
        source: "Brakmo and Peterson, IEEE JSAC 13(8), 1995; details as in ns-2",
        parameters: VEGAS,
        meter: None,
        build: build_vegas,
    },
    Row {
        name: "cubic",
        summary: "A cubic function of the time since the last loss, at least as much as Reno; \
                  the default of today's systems.",
        source: "RFC 9438; RFC 9406 for its first slow start",
        parameters: CUBIC,
        meter: None,
        build: build_cubic,
    },
    Row {
        name: "steady",
        summary: "TCP's rate on the average, by its throughput equation, with bursts for what is due: the \
                  default for media. Losses that no queue explains are repaired without slowing down.",
        source: "this project; RFC 5348 for the equation and the history of losses",
        parameters: STEADY,
        meter: None,
        build: build_steady,
    },
    Row {
        name: "fixed",
        summary: "One window and one pacing, whatever happens: for tests and for flows that do not react.",
        source: "none",
        parameters: FIXED,
        meter: None,
        build: build_fixed,
    },
];

const fn flag(name: &'static str, summary: &'static str, default: bool) -> Parameter {
    Parameter {
        name,
        summary,
        default: Value::Flag(default),
        domain: Domain::Flag,
    }
}

const fn segments(name: &'static str, summary: &'static str, default: f64) -> Parameter {
    Parameter {
        name,
        summary,
        default: Value::Number(default),
        domain: Domain::Number {
            min: 0.0,
            max: 1_000.0,
            unit: "segments",
        },
    }
}

const fn choice(
    name: &'static str,
    summary: &'static str,
    default: &'static str,
    choices: &'static [&'static str],
) -> Parameter {
    Parameter {
        name,
        summary,
        default: Value::Text(Cow::Borrowed(default)),
        domain: Domain::Choice(choices),
    }
}

const DECREASE_BASIS: Parameter = choice(
    "decrease_basis",
    "What a loss reduces: what is in flight (RFC 5681), or the window in force (ns-2, BSD).",
    "flight",
    &["flight", "window"],
);
const DECREASE_BASES: &[(&str, DecreaseBasis)] = &[
    ("flight", DecreaseBasis::Flight),
    ("window", DecreaseBasis::Window),
];

const INCREASE: Parameter = choice(
    "increase",
    "Whether an acknowledgement counts as one segment or as what it covers.",
    "per_byte",
    &["per_ack", "per_byte"],
);
const LIMIT: Parameter = Parameter {
    name: "limit",
    summary: "The most that one acknowledgement counts in slow start, with increase = per_byte (L of RFC 3465).",
    default: Value::Number(2.0),
    domain: Domain::Whole {
        min: 1,
        max: 255,
        unit: "segments",
    },
};
const ROUNDING: Parameter = choice(
    "rounding",
    "Where half a window is rounded down to whole segments: nowhere, for the threshold (ns-2.35), \
     or for both (ns-2 before).",
    "exact",
    &["exact", "threshold", "both"],
);
const GROW_WHEN_LIMITED: Parameter = flag(
    "grow_when_limited",
    "Whether the window also grows while the application or the receiver limits the flow (ns-2 did).",
    false,
);
const RENO: &[Parameter] = &[INCREASE, LIMIT, DECREASE_BASIS, ROUNDING, GROW_WHEN_LIMITED];

fn build_reno(
    setup: &Setup,
    parameters: &Parameters,
) -> Result<Box<dyn Controller>, ParameterError> {
    // The domain of the limit ends at 255.
    let per_byte = Increase::PerByte {
        limit: parameters.number(&LIMIT)? as u8,
    };
    let law = Reno::new(RenoConfig {
        mss: setup.mss,
        initial_window: setup.initial_window,
        initial_ssthresh: setup.initial_ssthresh,
        increase: parameters.choice(
            &INCREASE,
            &[("per_ack", Increase::PerAck), ("per_byte", per_byte)],
        )?,
        decrease_basis: parameters.choice(&DECREASE_BASIS, DECREASE_BASES)?,
        rounding: parameters.choice(
            &ROUNDING,
            &[
                ("exact", Rounding::Exact),
                ("threshold", Rounding::Threshold),
                ("both", Rounding::Both),
            ],
        )?,
        grow_when_limited: parameters.flag(&GROW_WHEN_LIMITED)?,
    });
    Ok(if setup.max_window == Bytes::MAX {
        Box::new(law)
    } else {
        Box::new(Limited::new(law, setup.max_window))
    })
}

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
const VEGAS: &[Parameter] = &[ALPHA, BETA, GAMMA, WHOLE_SEGMENTS];

fn build_vegas(
    setup: &Setup,
    parameters: &Parameters,
) -> Result<Box<dyn Controller>, ParameterError> {
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

const CUBIC_C: Parameter = Parameter {
    name: "c",
    summary: "How steep the curve is.",
    default: Value::Number(0.4),
    domain: Domain::Number {
        min: 0.001,
        max: 100.0,
        unit: "segments/s³",
    },
};
const CUBIC_BETA: Parameter = Parameter {
    name: "beta",
    summary: "What is left of the window after a loss.",
    default: Value::Number(0.7),
    domain: Domain::Number {
        min: 0.1,
        max: 0.99,
        unit: "",
    },
};
const FAST_CONVERGENCE: Parameter = flag(
    "fast_convergence",
    "Whether a flow that loses below its last plateau gives up more than it lost.",
    true,
);
const HYSTART: Parameter = flag(
    "hystart",
    "Whether the first slow start may end when round-trip times rise (HyStart++).",
    true,
);
const CUBIC: &[Parameter] = &[
    CUBIC_C,
    CUBIC_BETA,
    FAST_CONVERGENCE,
    DECREASE_BASIS,
    HYSTART,
];

fn build_cubic(
    setup: &Setup,
    parameters: &Parameters,
) -> Result<Box<dyn Controller>, ParameterError> {
    Ok(Box::new(Cubic::new(CubicConfig {
        mss: setup.mss,
        initial_window: setup.initial_window,
        initial_ssthresh: setup.initial_ssthresh,
        max_window: setup.max_window,
        aggressiveness: parameters.number(&CUBIC_C)?,
        beta: parameters.number(&CUBIC_BETA)?,
        fast_convergence: parameters.flag(&FAST_CONVERGENCE)?,
        decrease_basis: parameters.choice(&DECREASE_BASIS, DECREASE_BASES)?,
        hystart: parameters.flag(&HYSTART)?,
    })))
}

const MEMORY: Parameter = Parameter {
    name: "memory",
    summary: "Over how many loss intervals the mean is taken.",
    default: Value::Number(8.0),
    domain: Domain::Whole {
        min: 1,
        max: 64,
        unit: "intervals",
    },
};
const PEAK: Parameter = Parameter {
    name: "peak",
    summary: "How many times the average rate a burst may go.",
    default: Value::Number(3.0),
    domain: Domain::Number {
        min: 1.0,
        max: 100.0,
        unit: "",
    },
};
const DEPTH: Parameter = Parameter {
    name: "depth",
    summary: "How much may be saved up, and overdrawn, as time at the average rate.",
    default: Value::Span(Span::from_secs(2)),
    domain: Domain::Span {
        min: Span::ZERO,
        max: Span::from_secs(10),
    },
};
const SPARE_RANDOM: Parameter = flag(
    "spare_random",
    "Whether losses that no queue explains are left out of the rate of losses.",
    true,
);
const GROUPING: Parameter = Parameter {
    name: "grouping",
    summary: "Losses within so many round trips of the last that counted belong to the same event.",
    default: Value::Number(2.0),
    domain: Domain::Number {
        min: 0.0,
        max: 10.0,
        unit: "round trips",
    },
};
const STEADY: &[Parameter] = &[MEMORY, GROUPING, PEAK, DEPTH, SPARE_RANDOM];

fn build_steady(
    setup: &Setup,
    parameters: &Parameters,
) -> Result<Box<dyn Controller>, ParameterError> {
    Ok(Box::new(Steady::new(SteadyConfig {
        mss: setup.mss,
        initial_window: setup.initial_window,
        max_window: setup.max_window,
        // The domain of the memory ends at 64.
        memory: parameters.number(&MEMORY)? as usize,
        grouping: parameters.number(&GROUPING)?,
        peak: parameters.number(&PEAK)?,
        depth: parameters.span(&DEPTH)?,
        spare_random: parameters.flag(&SPARE_RANDOM)?,
    })))
}

const WINDOW: Parameter = Parameter {
    name: "window",
    summary: "How much may be in flight, at least one segment.",
    default: Value::Bytes(Bytes::MAX),
    domain: Domain::Bytes {
        min: Bytes::new(1),
        max: Bytes::MAX,
    },
};
const RATE: Parameter = Parameter {
    name: "rate",
    summary: "How fast packets leave, counted from start to start.",
    default: Value::Rate(Rate::MAX),
    domain: Domain::Rate {
        min: Rate::from_bps(1),
        max: Rate::MAX,
    },
};
const GAP: Parameter = Parameter {
    name: "gap",
    summary: "The gap from the end of one packet to the start of the next.",
    default: Value::Span(Span::ZERO),
    domain: Domain::Span {
        min: Span::ZERO,
        max: Span::from_secs(3_600),
    },
};
const FIXED: &[Parameter] = &[WINDOW, RATE, GAP];

fn build_fixed(
    setup: &Setup,
    parameters: &Parameters,
) -> Result<Box<dyn Controller>, ParameterError> {
    let window = parameters.bytes(&WINDOW)?;
    if window < setup.mss {
        return Err(ParameterError::OutOfRange {
            name: WINDOW.name,
            value: Value::Bytes(window),
            expected: Domain::Bytes {
                min: setup.mss,
                max: Bytes::MAX,
            },
        });
    }
    let pacing = match (parameters.rate(&RATE)?, parameters.span(&GAP)?) {
        (Rate::MAX, Span::ZERO) => Pacing::Unpaced,
        (rate, Span::ZERO) => Pacing::Rate(rate),
        (Rate::MAX, gap) => Pacing::Gap(gap),
        _ => {
            return Err(ParameterError::Conflict {
                first: RATE.name,
                second: GAP.name,
            });
        }
    };
    Ok(Box::new(Fixed::new(
        setup.mss,
        window.min(setup.max_window),
        pacing,
    )))
}
