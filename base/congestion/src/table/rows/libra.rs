//! The row of TCP Libra.

use alloc::boxed::Box;

use comity_units::{Rate, Span};

use super::super::parameters::{Domain, Parameter, ParameterError, Parameters, Value};
use super::super::row::{Row, Setup};
use super::declare::{choice, flag, span};
use crate::Controller;
use crate::controllers::{Increase, Libra, LibraConfig};

pub(super) const ROW: Row = Row {
    name: "libra",
    summary: "The window grows with the square of the round-trip time and the capacity of the bottleneck, so flows of \
              different round trips get equal rates; packets leave in pairs at random times.",
    source: "Marfia, Palazzi, Pau, Gerla, Sanadidi and Roccetti, Mobimedia 2007; \
             CapProbe (SIGCOMM 2004) for the capacity",
    parameters: PARAMETERS,
    drives_tcp: true,
    repeats_losses: true,
    meter: None,
    build,
};

const A: Parameter = Parameter {
    name: "a",
    summary: "A: flows with round trips well below it get equal rates. Longer round trips slow the growth of the window, \
              because the paper takes them as a sign of congestion.",
    default: Value::Number(1.0),
    domain: Domain::Number {
        min: 0.001,
        max: 1_000.0,
        unit: "s",
    },
};
const B: Parameter = Parameter {
    name: "b",
    summary: "B: a loss reduces the window by the part B / (2 (RTT + A)) of it.",
    default: Value::Number(1.0),
    domain: Domain::Number {
        min: 0.0,
        max: 1_000.0,
        unit: "s",
    },
};
const X: Parameter = Parameter {
    name: "x",
    summary: "X: the growth of the window.",
    default: Value::Number(2.0),
    domain: Domain::Number {
        min: 0.0,
        max: 1_000.0,
        unit: "segments/s for each Mb/s",
    },
};
const Y: Parameter = Parameter {
    name: "y",
    summary: "Y: a full queue divides the growth by e^Y.",
    default: Value::Number(2.0),
    domain: Domain::Number {
        min: 0.0,
        max: 100.0,
        unit: "",
    },
};
const CAPACITY: Parameter = Parameter {
    name: "capacity",
    summary: "C: the capacity of the bottleneck; 0bps for an estimate from the pairs.",
    default: Value::Rate(Rate::ZERO),
    domain: Domain::Rate {
        min: Rate::ZERO,
        max: Rate::from_mbps(10_000_000),
    },
};
const INCREASE: Parameter = choice(
    "increase",
    "How much an acknowledgement counts: one segment (per_ack), or the acknowledged bytes (per_byte).",
    "per_byte",
    &["per_ack", "per_byte"],
);
const PAIRS: Parameter = flag(
    "pairs",
    "Whether packets leave in pairs at random times (the burstiness control) or as the window opens.",
    true,
);
const MEMORY: Parameter = span(
    "memory",
    "The extremes of the round trip and the pairs expire after one to two of these times, so that the flow \
              adapts to a new route; unlimited in the paper.",
    Span::from_secs(60),
    (Span::from_millis(1), Span::MAX),
);
const PARAMETERS: &[Parameter] = &[A, B, X, Y, CAPACITY, INCREASE, PAIRS, MEMORY];

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    let capacity = parameters.rate(&CAPACITY)?;
    Ok(Box::new(Libra::new(LibraConfig {
        mss: setup.mss,
        initial_window: setup.initial_window,
        initial_ssthresh: setup.initial_ssthresh,
        max_window: setup.max_window,
        a: parameters.number(&A)?,
        b: parameters.number(&B)?,
        x: parameters.number(&X)?,
        y: parameters.number(&Y)?,
        capacity: (capacity > Rate::ZERO).then_some(capacity),
        increase: parameters.choice(
            &INCREASE,
            &[
                ("per_ack", Increase::PerAck),
                // RFC 3465, section 2.2.
                ("per_byte", Increase::PerByte { limit: 2 }),
            ],
        )?,
        pairs: parameters.flag(&PAIRS)?,
        memory: parameters.span(&MEMORY)?,
        seed: setup.seed,
    })))
}
