//! The row of TFRC.

use alloc::boxed::Box;

use comity_units::DataSize;

use super::super::parameters::{Domain, Parameter, ParameterError, Parameters, Value};
use super::super::row::{Row, Setup};
use super::declare::{flag, number};
use crate::controllers::{Tfrc, TfrcConfig, TfrcMeter};
use crate::{Controller, Meter};

pub(super) const ROW: Row = Row {
    name: "tfrc",
    summary: "TCP-friendly rate control: the rate of TCP's throughput equation, from loss events that the receiver \
              counts. With `small_packets` the variant for small packets.",
    source: "RFC 5348; RFC 4828 for small packets",
    parameters: PARAMETERS,
    drives_tcp: false,
    repeats_losses: true,
    meter: Some(build_meter),
    build,
};

const RTT_MEMORY: Parameter = number(
    "rtt_memory",
    "The weight of the smoothed round trip against a new measurement (q).",
    0.9,
    (0.0, 0.999),
    "",
);
const DAMPING: Parameter = flag(
    "damping",
    "Whether packets leave more slowly while the round-trip time is above its mean, and faster while it is below, by \
     the square root of the ratio; against oscillation.",
    true,
);
const TIMEOUT: Parameter = number(
    "timeout",
    "The retransmission timeout in the equation.",
    4.0,
    (0.5, 100.0),
    "round trips",
);
const GRADUAL: Parameter = flag(
    "gradual",
    "Whether, after the first loss, the rate grows by at most one packet per round trip in each round trip \
     (as in ns-2). Otherwise it takes the rate of the equation at once.",
    false,
);
const PATIENCE: Parameter = number(
    "patience",
    "The minimum time without a report after which the rate is halved.",
    4.0,
    (1.0, 100.0),
    "round trips",
);
const MIN_LIMIT: Parameter = number(
    "min_limit",
    "The sending rate is limited to a multiple of the receive rate. This is the minimum of that limit (1 in ns-2).",
    0.0,
    (0.0, 100.0),
    "packets per round trip",
);
const SMALL_PACKETS: Parameter = flag(
    "small_packets",
    "Whether to use the variant for small packets (RFC 4828): they get the rate of packets of 1460 bytes, less the \
     rate of their headers, and leave at least 10 ms apart.",
    false,
);
const HEADER: Parameter = Parameter {
    name: "header",
    summary: "The size of the headers of small packets.",
    default: Value::Bytes(DataSize::new(40)),
    domain: Domain::Bytes {
        min: DataSize::ZERO,
        max: DataSize::new(10_000),
    },
};
const DUPLICATE_THRESHOLD: Parameter = Parameter {
    name: "duplicate_threshold",
    summary: "A packet is lost after this many later packets.",
    default: Value::Number(3.0),
    domain: Domain::Whole {
        min: 1,
        max: 64,
        unit: "packets",
    },
};
const MEMORY: Parameter = Parameter {
    name: "memory",
    summary: "The number of loss intervals in the mean (n).",
    default: Value::Number(8.0),
    domain: Domain::Whole {
        min: 1,
        max: 64,
        unit: "intervals",
    },
};
const DISCOUNTING: Parameter = flag(
    "discounting",
    "Whether a long interval without losses discounts the older ones.",
    true,
);
const MIN_DISCOUNT: Parameter = number(
    "min_discount",
    "The minimum of the discount factor (0.5 in ns-2 and RFC 3448).",
    0.25,
    (0.0, 1.0),
    "",
);
const PARAMETERS: &[Parameter] = &[
    SMALL_PACKETS,
    HEADER,
    RTT_MEMORY,
    DAMPING,
    TIMEOUT,
    PATIENCE,
    GRADUAL,
    MIN_LIMIT,
    DUPLICATE_THRESHOLD,
    MEMORY,
    DISCOUNTING,
    MIN_DISCOUNT,
];

fn config(setup: &Setup, parameters: &Parameters) -> Result<TfrcConfig, ParameterError> {
    Ok(TfrcConfig {
        mss: setup.mss,
        initial_window: setup.initial_window,
        max_window: setup.max_window,
        rtt_memory: parameters.number(&RTT_MEMORY)?,
        damping: parameters.flag(&DAMPING)?,
        timeout: parameters.number(&TIMEOUT)?,
        gradual: parameters.flag(&GRADUAL)?,
        patience: parameters.number(&PATIENCE)?,
        min_limit: parameters.number(&MIN_LIMIT)?,
        small_packets: parameters.flag(&SMALL_PACKETS)?,
        header: parameters.bytes(&HEADER)?,
        // The domains of both end at 64.
        duplicate_threshold: parameters.number(&DUPLICATE_THRESHOLD)? as u32,
        memory: parameters.number(&MEMORY)? as usize,
        discounting: parameters.flag(&DISCOUNTING)?,
        min_discount: parameters.number(&MIN_DISCOUNT)?,
    })
}

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    Ok(Box::new(Tfrc::new(config(setup, parameters)?)))
}

fn build_meter(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Meter>, ParameterError> {
    Ok(Box::new(TfrcMeter::new(config(setup, parameters)?)))
}
