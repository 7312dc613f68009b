//! The row of TCP-Real.

use alloc::boxed::Box;

use super::super::parameters::{Domain, Parameter, ParameterError, Parameters, Value};
use super::super::row::{Row, Setup};
use super::declare::{choice, flag};
use crate::controllers::tcp_real::{
    LevelRounding, Opening, TcpReal, TcpRealConfig, TimeoutReduction, WaveMeter, Weights,
};
use crate::{Controller, Meter, TimeoutRepair};

pub(super) const ROW: Row = Row {
    name: "real",
    summary: "TCP-Real: the receiver sets the window by the rate at which whole windows arrive, so random losses \
              do not reduce it. A wave is one window of segments, and a level is two segments of window. \
              The receiver compares the rate of each wave with that of the wave before it, and changes the \
              level by their ratio (the rules of figure 1). Flows keep the shares with which they began.",
    source: "Zhang and Tsaoussidis, NOSSDAV 2001, section 2.2 and figure 1",
    parameters: PARAMETERS,
    drives_tcp: true,
    repeats_losses: true,
    meter: Some(build_meter),
    build,
};

const MAX_LEVEL: Parameter = Parameter {
    name: "max_level",
    summary: "The highest level.",
    default: Value::Number(24.0),
    domain: Domain::Whole {
        min: 1,
        max: 10_000,
        unit: "levels",
    },
};
const OPENING: Parameter = choice(
    "opening",
    "How a connection finds its first level. The receiver doubles it with every wave up to the first threshold \
     (slow_start). It follows the sender's slow start up to this threshold or the first loss (sender). Only the rules of \
     figure 1 apply (figure). Or they apply after a rate of zero, which gives the highest level (jump).",
    "slow_start",
    &["slow_start", "sender", "figure", "jump"],
);
const WEIGHTS: Parameter = choice(
    "weights",
    "Which weights apply above the threshold: those of figure 1, with which a level falls less and rises more there \
     (figure), or those of the text of section 2.2, with which it falls more and rises less (text).",
    "figure",
    &["figure", "text"],
);
const THRESHOLD_SHARE: Parameter = Parameter {
    name: "threshold_share",
    summary: "The first threshold as a share of the highest level, or of the initial slow-start threshold if \
              that is less.",
    default: Value::Number(0.5),
    domain: Domain::Number {
        min: 0.0,
        max: 1.0,
        unit: "",
    },
};
const FRACTIONS: Parameter = choice(
    "fractions",
    "What the receiver keeps of a level with a fraction: the fraction, and it reports the nearest level (kept); \
     or only the nearest, the next higher (up) or the next lower (down) level.",
    "kept",
    &["kept", "nearest", "up", "down"],
);
const COMPARE_WITH_TIMEOUTS: Parameter = flag(
    "compare_with_timeouts",
    "Whether the next wave is compared also with a wave that the wave-decision timer ended, because it took \
     twice the expected time.",
    true,
);
const LEVEL_OF_WAVE: Parameter = flag(
    "level_of_wave",
    "Whether a new level is computed from the level of the measured wave, instead of the last decided one.",
    false,
);
const FIXED_WAVES: Parameter = flag(
    "fixed_waves",
    "Whether a wave keeps the length that the window had when it began, instead of growing with the window.",
    false,
);
const TIMEOUT_REDUCTION: Parameter = choice(
    "timeout_reduction",
    "Which timeouts reduce the window to two segments: those without a duplicate acknowledgement since the last advance or \
     timeout (without_duplicates, section 2.2), or all (always, section 2.1 and footnote 3).",
    "without_duplicates",
    &["without_duplicates", "always"],
);
const TIMEOUT_REPAIR: Parameter = choice(
    "timeout_repair",
    "What TCP retransmits after a timeout that keeps the window: everything from the first loss on, as the window \
     allows (go_back_n), or the first segment alone, while the rest counts as outstanding (first_segment). Datagrams have no \
     such timeout.",
    "go_back_n",
    &["go_back_n", "first_segment"],
);
const PARAMETERS: &[Parameter] = &[
    MAX_LEVEL,
    OPENING,
    WEIGHTS,
    THRESHOLD_SHARE,
    FRACTIONS,
    COMPARE_WITH_TIMEOUTS,
    LEVEL_OF_WAVE,
    FIXED_WAVES,
    TIMEOUT_REDUCTION,
    TIMEOUT_REPAIR,
];

fn config(setup: &Setup, parameters: &Parameters) -> Result<TcpRealConfig, ParameterError> {
    Ok(TcpRealConfig {
        mss: setup.mss,
        initial_window: setup.initial_window,
        initial_ssthresh: setup.initial_ssthresh,
        max_window: setup.max_window,
        // The domain of the level ends at 10,000.
        max_level: parameters.number(&MAX_LEVEL)? as u16,
        opening: parameters.choice(
            &OPENING,
            &[
                ("slow_start", Opening::SlowStart),
                ("sender", Opening::Sender),
                ("figure", Opening::Figure),
                ("jump", Opening::Jump),
            ],
        )?,
        weights: parameters.choice(
            &WEIGHTS,
            &[("figure", Weights::Figure), ("text", Weights::Text)],
        )?,
        threshold_share: parameters.number(&THRESHOLD_SHARE)?,
        rounding: parameters.choice(
            &FRACTIONS,
            &[
                ("kept", LevelRounding::Kept),
                ("nearest", LevelRounding::Nearest),
                ("up", LevelRounding::Up),
                ("down", LevelRounding::Down),
            ],
        )?,
        compares_with_timeouts: parameters.flag(&COMPARE_WITH_TIMEOUTS)?,
        has_level_of_wave: parameters.flag(&LEVEL_OF_WAVE)?,
        has_fixed_waves: parameters.flag(&FIXED_WAVES)?,
        timeout_reduction: parameters.choice(
            &TIMEOUT_REDUCTION,
            &[
                ("without_duplicates", TimeoutReduction::WithoutDuplicates),
                ("always", TimeoutReduction::Always),
            ],
        )?,
        timeout_repair: parameters.choice(
            &TIMEOUT_REPAIR,
            &[
                ("go_back_n", TimeoutRepair::GoBackN),
                ("first_segment", TimeoutRepair::FirstSegment),
            ],
        )?,
    })
}

fn build(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Controller>, ParameterError> {
    Ok(Box::new(TcpReal::new(config(setup, parameters)?)))
}

fn build_meter(setup: &Setup, parameters: &Parameters) -> Result<Box<dyn Meter>, ParameterError> {
    Ok(Box::new(WaveMeter::new(config(setup, parameters)?)))
}
