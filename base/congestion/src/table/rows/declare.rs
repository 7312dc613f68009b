//! Declarations of parameters, for several rows.

use alloc::borrow::Cow;
use alloc::boxed::Box;

use comity_units::{Rate, Span};

use super::super::parameters::{Domain, Parameter, ParameterError, Parameters, Value};
use super::super::row::Setup;
use crate::Meter;
use crate::controllers::{DecreaseBasis, EveryPacket};

pub(super) const fn flag(name: &'static str, summary: &'static str, default: bool) -> Parameter {
    Parameter {
        name,
        summary,
        default: Value::Flag(default),
        domain: Domain::Flag,
    }
}

pub(super) const fn number(
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

pub(super) const fn segments(name: &'static str, summary: &'static str, default: f64) -> Parameter {
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

pub(super) const fn choice(
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

pub(super) const fn span(
    name: &'static str,
    summary: &'static str,
    default: Span,
    (min, max): (Span, Span),
) -> Parameter {
    Parameter {
        name,
        summary,
        default: Value::Span(default),
        domain: Domain::Span { min, max },
    }
}

pub(super) const fn rate(name: &'static str, summary: &'static str, default: Rate) -> Parameter {
    Parameter {
        name,
        summary,
        default: Value::Rate(default),
        domain: Domain::Rate {
            min: Rate::from_bps(1),
            max: Rate::MAX,
        },
    }
}

pub(super) const MAX_RATE: Parameter = rate("max_rate", "The maximum rate.", Rate::MAX);

/// The rates `min_rate` and [`MAX_RATE`], if the maximum is not below the minimum.
pub(super) fn limits(
    parameters: &Parameters,
    min_rate: &Parameter,
) -> Result<(Rate, Rate), ParameterError> {
    let (min, max) = (parameters.rate(min_rate)?, parameters.rate(&MAX_RATE)?);
    if max < min {
        return Err(ParameterError::OutOfRange {
            name: MAX_RATE.name,
            value: Value::Rate(max),
            expected: Domain::Rate {
                min,
                max: Rate::MAX,
            },
        });
    }
    Ok((min, max))
}

pub(super) const DECREASE_BASIS: Parameter = choice(
    "decrease_basis",
    "What a loss reduces: the data in flight (RFC 5681), or the current window (ns-2, BSD).",
    "flight",
    &["flight", "window"],
);
pub(super) const DECREASE_BASES: &[(&str, DecreaseBasis)] = &[
    ("flight", DecreaseBasis::Flight),
    ("window", DecreaseBasis::Window),
];

/// Builds the meter of controllers that need an acknowledgement of each packet.
pub(super) fn every_packet(_: &Setup, _: &Parameters) -> Result<Box<dyn Meter>, ParameterError> {
    Ok(Box::new(EveryPacket::default()))
}
