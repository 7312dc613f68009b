//! Why a configuration is invalid.

use core::fmt;

use comity_units::{Span, Time};

/// Why a configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A queue that examines packets as they leave, which an [`AnalyticLink`](crate::AnalyticLink)
    /// cannot have.
    NeedsQueuedLink,
    /// A limit that admits nothing.
    NoRoom {
        /// The field.
        field: &'static str,
    },
    /// A probability outside of [0, 1].
    Probability {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// An update interval of PIE below 100 µs.
    PieInterval {
        /// The interval.
        value: Span,
    },
    /// A weight of PIE that is negative or not finite.
    PieWeight {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// Random early detection on a link of unlimited rate, whose queue stays empty.
    RedWithoutRate,
    /// Thresholds of random early detection other than 0 < minimum < maximum.
    RedThresholds {
        /// The lower threshold.
        minimum: f64,
        /// The upper threshold.
        maximum: f64,
    },
    /// A weight of random early detection outside of (0, 1].
    RedWeight {
        /// The weight.
        value: f64,
    },
    /// A profile without a single step.
    NoSteps {
        /// The field.
        field: &'static str,
    },
    /// A step that is not after the one before it.
    StepsOutOfOrder {
        /// The field.
        field: &'static str,
        /// The index of the step, from 0.
        index: usize,
        /// Its time.
        time: Time,
        /// The time of the step before it.
        previous: Time,
    },
    /// A span or an amount that must be more than zero.
    Zero {
        /// The field.
        field: &'static str,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NeedsQueuedLink => f.write_str(
                "queue: CoDel, FQ-CoDel and PIE look at packets as they leave, expected a drop-tail or \
                 RED queue here, or a queued link instead of an analytic one",
            ),
            Self::NoRoom { field } => {
                write!(f, "{field}: the limit is zero, expected room for at least one packet or byte")
            }
            Self::Probability { field, value } => {
                write!(f, "{field}: {value} is no probability, expected a number from 0 to 1")
            }
            Self::PieInterval { value } => {
                write!(f, "queue update_interval: {value}, expected at least 100us")
            }
            Self::PieWeight { field, value } => {
                write!(f, "{field}: {value}, expected a number from 0 on")
            }
            Self::RedWithoutRate => f.write_str(
                "queue: random early detection on a link of unlimited rate, expected a rate: without \
                 one no queue forms",
            ),
            Self::RedThresholds { minimum, maximum } => write!(
                f,
                "queue thresholds: {minimum} and {maximum}, expected 0 < min_threshold < max_threshold"
            ),
            Self::RedWeight { value } => {
                write!(f, "queue weight: {value}, expected a number above 0 and at most 1")
            }
            Self::NoSteps { field } => write!(f, "{field}: no steps, expected at least one"),
            Self::StepsOutOfOrder { field, index, time, previous } => write!(
                f,
                "{field}: step {index} is at {time}, expected a time after {previous}, that of the \
                 step before it"
            ),
            Self::Zero { field } => write!(f, "{field}: zero, expected more than that"),
        }
    }
}

impl core::error::Error for ConfigError {}

pub(crate) fn probability(field: &'static str, value: f64) -> Result<(), ConfigError> {
    // The comparison rejects NaN.
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError::Probability { field, value })
    }
}

pub(crate) fn more_than_zero(field: &'static str, span: Span) -> Result<(), ConfigError> {
    if span.is_zero() {
        Err(ConfigError::Zero { field })
    } else {
        Ok(())
    }
}
