//! The rows, each in a file of its own, and what several of them share.

mod bbr;
mod cubic;
mod fixed;
mod iftp;
mod libra;
mod psp;
mod rap;
mod reno;
mod steady;
mod tcp_real;
mod tfrc;
mod vegas;

use alloc::borrow::Cow;

use super::{Domain, Parameter, Row, Value};
use crate::controllers::DecreaseBasis;

/// What sections with deadlines are sent with unless somebody says otherwise.
pub const DEFAULT_FOR_SECTIONS: &str = "steady";

/// Every controller.
pub const TABLE: &[Row] = &[
    reno::ROW,
    vegas::ROW,
    cubic::ROW,
    bbr::ROW,
    bbr::ROW3,
    libra::ROW,
    tcp_real::ROW,
    iftp::ROW,
    psp::ROW,
    rap::ROW,
    tfrc::ROW,
    steady::ROW,
    fixed::ROW,
];

const fn flag(name: &'static str, summary: &'static str, default: bool) -> Parameter {
    Parameter {
        name,
        summary,
        default: Value::Flag(default),
        domain: Domain::Flag,
    }
}

const fn number(
    name: &'static str,
    summary: &'static str,
    default: f64,
    (min, max): (f64, f64),
    unit: &'static str,
) -> Parameter {
    Parameter {
        name,
        summary,
        default: Value::Number(default),
        domain: Domain::Number { min, max, unit },
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
