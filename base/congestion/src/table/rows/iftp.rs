//! The row of IFTP.

use alloc::boxed::Box;

use comity_units::{Rate, Span};

use super::super::parameters::{Domain, Parameter, ParameterError, Parameters, Value};
use super::super::row::{Row, Setup};
use super::declare::{choice, every_packet, rate, span};
use crate::Controller;
use crate::controllers::{Iftp, IftpConfig, LateAcks};

pub(super) const ROW: Row = Row {
    name: "iftp",
    summary: "A gap between packets that emulates TCP's window round by round.",
    source: "ElAarag and Bassiouni, \"A TCP-friendly Protocol for Media Streams over Best Effort Networks\"",
    parameters: PARAMETERS,
    drives_tcp: false,
    repeats_losses: false,
    meter: Some(every_packet),
    build,
};

const LINK: Parameter = rate(
    "link",
    "The rate of the sender's own link, which gives the time to send a packet (tau); unlimited for a tau of zero.",
    Rate::MAX,
);
const SSTHRESH: Parameter = packets(
    "ssthresh",
    "The number of packets in a round at which slow start ends.",
    2,
    32.0,
);
const MAX_PACKETS: Parameter = packets(
    "max_packets",
    "Wmax: the most packets in a round.",
    1,
    1_000_000.0,
);
const MISSING_THRESHOLD: Parameter = Parameter {
    name: "aftermissing_thresh",
    summary: "The number of acknowledgements after a missing one that prove a loss.",
    default: Value::Number(3.0),
    domain: Domain::Whole {
        min: 1,
        max: 255,
        unit: "acknowledgements",
    },
};
const MIN_TIMEOUT: Parameter = span(
    "min_timeout",
    "The minimum timeout.",
    Span::from_millis(200),
    (Span::from_millis(1), Span::from_secs(60)),
);
const LATE_ACKS: Parameter = choice(
    "late_acks",
    "At the end of a round, if acknowledgements of the round before are missing: wait for them, or begin the next \
     round with the same number of packets (hold).",
    "wait",
    &["hold", "wait"],
);
const PARAMETERS: &[Parameter] = &[
    LINK,
    SSTHRESH,
    MAX_PACKETS,
    MISSING_THRESHOLD,
    MIN_TIMEOUT,
    LATE_ACKS,
];

const fn packets(name: &'static str, summary: &'static str, min: u32, default: f64) -> Parameter {
    Parameter {
        name,
        summary,
        default: Value::Number(default),
        domain: Domain::Whole {
            min,
            // The most packets that the controller records.
            max: 1 << 20,
            unit: "packets",
        },
    }
}

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    // Whole numbers that fit, by their domains.
    let ssthresh = parameters.number(&SSTHRESH)? as u32;
    let given = setup.initial_ssthresh.get() / setup.mss.get().max(1);
    Ok(Box::new(Iftp::new(IftpConfig {
        mss: setup.mss,
        max_window: setup.max_window,
        link: parameters.rate(&LINK)?,
        ssthresh: u32::try_from(given).map_or(ssthresh, |given| ssthresh.min(given)),
        max_packets: parameters.number(&MAX_PACKETS)? as u32,
        missing_threshold: parameters.number(&MISSING_THRESHOLD)? as u32,
        min_timeout: parameters.span(&MIN_TIMEOUT)?,
        late_acks: parameters.choice(
            &LATE_ACKS,
            &[("hold", LateAcks::Hold), ("wait", LateAcks::Wait)],
        )?,
    })))
}
