//! The row of SCReAMv2.

use alloc::boxed::Box;

use comity_units::{Rate, Span};

use super::super::parameters::{Parameter, ParameterError, Parameters};
use super::super::row::{Row, Setup};
use super::declare::{MAX_RATE, every_packet, flag, limits, rate, span};
use crate::Controller;
use crate::controllers::{Scream, ScreamConfig};

pub(super) const ROW: Row = Row {
    name: "scream",
    summary: "SCReAMv2: a window that follows losses, marks and the queueing delay, and a target for the encoder \
              below it. Made for media: a source that is not limited fills one and a half times the target.",
    source: "draft-ietf-ccwg-rfc8298bis-screamv2-01; constants that it leaves open as in Ericsson's implementation",
    parameters: PARAMETERS,
    drives_tcp: false,
    repeats_losses: true,
    meter: Some(every_packet),
    build,
};

const MIN_RATE: Parameter = rate("min_rate", "The minimum target.", Rate::from_kbps(30));
const L4S: Parameter = flag(
    "l4s",
    "Whether ECN marks reduce the window by the share of marked packets (L4S). Otherwise a mark reduces it by a fifth (classic ECN).",
    false,
);
const DELAY_TARGET: Parameter = span(
    "delay_target",
    "The minimum target of the queueing delay.",
    Span::from_millis(60),
    (Span::from_millis(1), Span::from_millis(400)),
);
const COMPETING: Parameter = flag(
    "competing",
    "Whether the target of the queueing delay rises, up to 400 ms, beside flows that fill the queue.",
    true,
);
const PARAMETERS: &[Parameter] = &[MIN_RATE, MAX_RATE, L4S, DELAY_TARGET, COMPETING];

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    let (min_rate, max_rate) = limits(parameters, &MIN_RATE)?;
    Ok(Box::new(Scream::new(ScreamConfig {
        mss: setup.mss,
        max_window: setup.max_window,
        min_rate,
        max_rate,
        is_l4s: parameters.flag(&L4S)?,
        delay_target: parameters.span(&DELAY_TARGET)?,
        adapts_target: parameters.flag(&COMPETING)?,
    })))
}
