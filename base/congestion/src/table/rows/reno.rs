//! The row of Reno.

use alloc::boxed::Box;

use super::super::parameters::{Domain, Parameter, ParameterError, Parameters, Value};
use super::super::row::{Row, Setup};
use super::declare::{DECREASE_BASES, DECREASE_BASIS, choice, flag};
use crate::Controller;
use crate::controllers::{Increase, Reno, RenoConfig, Rounding};

pub(super) const ROW: Row = Row {
    name: "reno",
    summary: "Additive increase by one segment per round trip, halving on loss; \
              Tahoe, NewReno and SACK share it and differ in their recovery.",
    source: "RFC 5681; RFC 3465 for byte counting",
    parameters: PARAMETERS,
    drives_tcp: true,
    repeats_losses: true,
    meter: None,
    build,
};

const INCREASE: Parameter = choice(
    "increase",
    "How much an acknowledgement counts: one segment (per_ack), the acknowledged bytes (per_byte), or the \
     acknowledged segments without a limit (per_segment, as in Linux).",
    "per_byte",
    &["per_ack", "per_byte", "per_segment"],
);
const LIMIT: Parameter = Parameter {
    name: "limit",
    summary: "The most segments that one acknowledgement counts in slow start, with increase = per_byte (L of RFC 3465).",
    default: Value::Number(2.0),
    domain: Domain::Whole {
        min: 1,
        max: 255,
        unit: "segments",
    },
};
const ROUNDING: Parameter = choice(
    "rounding",
    "Where half a window is rounded down to whole segments: nowhere (exact), in the threshold (ns-2.35), \
     or in threshold and window (both, older ns-2).",
    "exact",
    &["exact", "threshold", "both"],
);
const GROW_WHEN_LIMITED: Parameter = flag(
    "grow_when_limited",
    "Whether the window also grows while the application or the receiver limits the flow (ns-2 did).",
    false,
);
const UNDO: Parameter = flag(
    "undo",
    "Whether the reduction after a spurious loss or timeout is undone (Linux).",
    false,
);
const WEIGHT: Parameter = Parameter {
    name: "weight",
    summary: "The number of Reno flows that it emulates (N of MulTCP): the window grows by N segments in a round trip, \
              and a loss reduces it by 1 / 2N. More than 1 is not friendly to TCP.",
    default: Value::Number(1.0),
    domain: Domain::Number {
        min: 1.0,
        max: 100.0,
        unit: "",
    },
};
const PARAMETERS: &[Parameter] = &[
    INCREASE,
    LIMIT,
    DECREASE_BASIS,
    ROUNDING,
    GROW_WHEN_LIMITED,
    UNDO,
    WEIGHT,
];

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    // The domain of the limit ends at 255.
    let per_byte = Increase::PerByte {
        limit: parameters.number(&LIMIT)? as u8,
    };
    let controller = Reno::new(RenoConfig {
        mss: setup.mss,
        initial_window: setup.initial_window,
        initial_ssthresh: setup.initial_ssthresh,
        max_window: setup.max_window,
        increase: parameters.choice(
            &INCREASE,
            &[
                ("per_ack", Increase::PerAck),
                ("per_byte", per_byte),
                ("per_segment", Increase::PerSegment),
            ],
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
        undo: parameters.flag(&UNDO)?,
        weight: parameters.number(&WEIGHT)?,
    });
    Ok(Box::new(controller))
}
