//! The row of the controller that does not react.

use alloc::boxed::Box;

use comity_units::{DataSize, Rate, Span};

use super::super::parameters::{Domain, Parameter, ParameterError, Parameters, Value};
use super::super::row::{Row, Setup};
use super::declare::{rate, span};
use crate::controllers::Fixed;
use crate::{Controller, Pacing};

pub(super) const ROW: Row = Row {
    name: "fixed",
    summary: "A constant window and pacing, for tests and flows without congestion control. With a gap and reliability = \
              none it is the packet-spacing agent without feedback; by default losses are retransmitted.",
    source: "none",
    parameters: PARAMETERS,
    drives_tcp: true,
    repeats_losses: true,
    meter: None,
    build,
};

const WINDOW: Parameter = Parameter {
    name: "window",
    summary: "The most that may be in flight, at least one segment.",
    default: Value::Bytes(DataSize::MAX),
    domain: Domain::Bytes {
        min: DataSize::new(1),
        max: DataSize::MAX,
    },
};
const RATE: Parameter = rate(
    "rate",
    "The rate of packets, from start to start.",
    Rate::MAX,
);
const GAP: Parameter = span(
    "gap",
    "The gap from the end of one packet to the start of the next.",
    Span::ZERO,
    (Span::ZERO, Span::from_secs(3_600)),
);
const PARAMETERS: &[Parameter] = &[WINDOW, RATE, GAP];

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    let window = parameters.bytes(&WINDOW)?;
    if window < setup.mss {
        return Err(ParameterError::OutOfRange {
            name: WINDOW.name,
            value: Value::Bytes(window),
            expected: Domain::Bytes {
                min: setup.mss,
                max: DataSize::MAX,
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
