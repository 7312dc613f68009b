//! The list of the rows. Each row has a file of its own.

mod bbr;
mod cubic;
mod declare;
mod fixed;
mod gcc;
mod iftp;
mod libra;
mod psp;
mod rap;
mod reno;
mod scream;
mod steady;
mod tcp_real;
mod tfrc;
mod vegas;

use super::row::Row;

/// The default controller for sections with deadlines.
pub const DEFAULT_FOR_SECTIONS: &str = "steady";

/// Every controller.
pub const TABLE: &[Row] = &[
    reno::ROW,
    vegas::ROW,
    cubic::ROW,
    bbr::ROW,
    bbr::ROW3,
    libra::ROW,
    tcp_real::ROW,
    iftp::ROW,
    psp::ROW,
    rap::ROW,
    tfrc::ROW,
    gcc::ROW,
    scream::ROW,
    steady::ROW,
    fixed::ROW,
];
