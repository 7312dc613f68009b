//! The row of the controller for media.

use alloc::boxed::Box;

use comity_units::Span;

use super::super::parameters::{Domain, Parameter, ParameterError, Parameters, Value};
use super::super::row::{Row, Setup};
use super::declare::span;
use crate::Controller;
use crate::controllers::{Steady, SteadyConfig};

pub(super) const ROW: Row = Row {
    name: "steady",
    summary: "TCP's average rate, by its throughput equation, with a token bucket for bursts: the default for \
              media. Losses that neither a queue nor the flow's own rate causes do not reduce the rate of a \
              source that varies, such as a video. They do reduce that of a greedy flow. Experimental: on paths \
              of 100 ms and more it takes 2.3 to 3.9 times what a Reno flow takes, and 16 greedy flows of it \
              share a short queue unevenly. The list of such networks: docs/results/punctual.md",
    source: "this project; RFC 5348 for the equation and the history of losses",
    parameters: PARAMETERS,
    drives_tcp: true,
    repeats_losses: true,
    meter: None,
    build,
};

const MEMORY: Parameter = Parameter {
    name: "memory",
    summary: "The number of loss intervals in the mean.",
    default: Value::Number(16.0),
    domain: Domain::Whole {
        min: 1,
        max: 64,
        unit: "intervals",
    },
};
const PEAK: Parameter = Parameter {
    name: "peak",
    summary: "The peak rate of a burst, as a multiple of the average rate.",
    default: Value::Number(3.5),
    domain: Domain::Number {
        min: 1.0,
        max: 100.0,
        unit: "",
    },
};
const DEPTH: Parameter = span(
    "depth",
    "The depth of the token bucket and its largest debt, as time at the average rate.",
    Span::from_secs(2),
    (Span::ZERO, Span::from_secs(10)),
);
const RANDOM_LOSS: Parameter = Parameter {
    name: "random_loss",
    summary: "Below this loss ratio, losses that neither a queue nor the flow's own rate causes do not \
              count in the loss event rate. 0 counts every loss.",
    default: Value::Number(0.3),
    domain: Domain::Number {
        min: 0.0,
        max: 1.0,
        unit: "",
    },
};
const GROUPING: Parameter = Parameter {
    name: "grouping",
    summary: "A loss within this many round trips of the last counted loss event belongs to that event.",
    default: Value::Number(2.0),
    domain: Domain::Number {
        min: 0.0,
        max: 10.0,
        unit: "round trips",
    },
};
const PARAMETERS: &[Parameter] = &[MEMORY, GROUPING, PEAK, DEPTH, RANDOM_LOSS];

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    Ok(Box::new(Steady::new(SteadyConfig {
        mss: setup.mss,
        initial_window: setup.initial_window,
        max_window: setup.max_window,
        // The domain of the memory ends at 64.
        memory: parameters.number(&MEMORY)? as usize,
        grouping: parameters.number(&GROUPING)?,
        peak: parameters.number(&PEAK)?,
        depth: parameters.span(&DEPTH)?,
        random_loss: parameters.number(&RANDOM_LOSS)?,
    })))
}
