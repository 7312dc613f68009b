//! The quantities that all crates of Comity share.
//!
//! This crate contains no protocols. A [`Time`] is a point on one clock and a [`Span`] is a
//! distance between two points of the same clock, both in whole nanoseconds. [`DataSize`] and
//! [`Rate`] distinguish bytes from bits. [`SeqNo`] wraps and therefore has no total order;
//! [`PacketNumber`] never repeats and has one. [`Seed`] names independent random streams.
//!
//! Invalid arithmetic does not compile. Two times have no `-` (use [`Time::since`], which returns
//! `None` if the order is reversed), and a bare float does not convert to a quantity. Quantities
//! are parsed with their unit, as in `"40ms"` or `"1.5Mbps"`, exactly: decimal fractions never pass
//! through floating point.
#![no_std]
#![forbid(unsafe_code)]

mod data_size;
mod keyed_hash;
mod parse;
mod rate;
mod seed;
mod sequence;
mod time;
mod windows;

pub use data_size::DataSize;
pub use keyed_hash::KeyedHash;
pub use parse::{ParseError, ParseErrorKind};
pub use rate::Rate;
pub use seed::Seed;
pub use sequence::{PacketNumber, SeqNo};
pub use time::{Span, Time};
pub use windows::TwoWindows;

/// The whole number nearest to `value`, halves upwards; negative values and NaN give zero, overflow
/// saturates. (`(value + 0.5) as u64` is off by one just under one half and above 2^52.)
fn nearest(value: f64) -> u64 {
    let whole = value as u64;
    if value - whole as f64 >= 0.5 {
        whole.saturating_add(1)
    } else {
        whole
    }
}
