//! Measures of runs: fairness, friendliness, smoothness, convergence and confidence intervals.
//!
//! Pure functions over slices, each with its equation and its source. Throughputs are non-negative
//! numbers in one unit; most measures are ratios, in which the unit cancels. A quotient whose
//! divisor alone is zero is [`f64::INFINITY`]. If both are zero, the result is [`Error::AllZero`].

mod convergence;
mod estimate;
mod fairness;
mod path;
mod rank;
mod timescale;

pub use convergence::{Convergence, convergence_time};
pub use estimate::{Estimate, mean_with_interval, student_t_975};
pub use fairness::{Baseline, baseline, friendliness, jain, max_min_ratio};
pub use path::{interarrival_jitter, loss_ratio, summary};
pub use rank::{ranks, spearman};
pub use timescale::{
    coefficient_of_variation, equivalence, equivalence_over_scales, rates, rebin,
    variation_over_scales,
};

use core::fmt;

use comity_units::Span;

/// Why a measure is undefined for these values.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// There are too few values.
    TooFew {
        /// How many there are.
        count: usize,
        /// How many are needed.
        needed: usize,
    },
    /// The number of flows is odd, but they have to be divided into halves.
    Odd {
        /// How many there are.
        count: usize,
    },
    /// A value is negative, infinite or not a number.
    Invalid {
        /// Its index in the slice.
        index: usize,
        /// The value.
        value: f64,
    },
    /// Dividend and divisor of a ratio are zero.
    AllZero,
    /// Two series have different lengths.
    Unequal {
        /// The length of the first.
        left: usize,
        /// The length of the second.
        right: usize,
    },
    /// All values of a series are equal, so they have no order to compare.
    Constant,
    /// A time scale is not a whole number of bins.
    NotWholeBins {
        /// The time scale.
        scale: Span,
        /// The length of a bin.
        bin: Span,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooFew { count, needed } => {
                write!(
                    f,
                    "{count} values are given, and it takes at least {needed}"
                )
            }
            Self::Odd { count } => {
                write!(f, "{count} flows are given, and halves need an even number")
            }
            Self::Invalid { index, value } => {
                write!(
                    f,
                    "value {index} is {value}, expected a finite number that is not negative"
                )
            }
            Self::AllZero => f.write_str("all values are zero, and 0/0 is no ratio"),
            Self::Unequal { left, right } => {
                write!(
                    f,
                    "one series has {left} values and the other {right}, expected as many"
                )
            }
            Self::Constant => f.write_str("all values are equal, and equal values have no order"),
            Self::NotWholeBins { scale, bin } => {
                write!(
                    f,
                    "the time scale {scale} is not a whole number of bins of {bin}"
                )
            }
        }
    }
}

impl core::error::Error for Error {}

/// Checks that there are values and that all are throughputs.
fn check(values: &[f64], needed: usize) -> Result<(), Error> {
    if values.len() < needed {
        return Err(Error::TooFew {
            count: values.len(),
            needed,
        });
    }
    match values
        .iter()
        .position(|value| !value.is_finite() || *value < 0.0)
    {
        Some(index) => Err(Error::Invalid {
            index,
            value: values[index],
        }),
        None => Ok(()),
    }
}

/// The mean of at least one value.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The quotient of two non-negative numbers.
fn ratio(dividend: f64, divisor: f64) -> Result<f64, Error> {
    if dividend == 0.0 && divisor == 0.0 {
        Err(Error::AllZero)
    } else {
        Ok(dividend / divisor)
    }
}
