//! The congestion controllers, one a file or directory.

mod arrivals;
mod bbr;
mod cubic;
mod departures;
mod fixed;
pub mod gcc;
mod hystart;
pub mod iftp;
pub mod libra;
pub mod psp;
mod rap;
mod reno;
pub mod scream;
mod steady;
pub mod tcp_real;
mod tfrc;
mod vegas;

use comity_units::DataSize;

pub use bbr::{Bbr, Bbr3, Bbr3Config, BbrConfig};
pub use cubic::{Cubic, CubicConfig, LinuxCubic};
pub use fixed::Fixed;
pub use gcc::{Gcc, GccConfig};
pub use hystart::{HyStart, Ramp};
pub use iftp::{EveryPacket, Iftp, IftpConfig, LateAcks};
pub use libra::{Libra, LibraConfig};
pub use psp::{Psp, PspConfig, RoundMeter, Step};
pub use rap::{Rap, RapConfig};
pub use reno::{DecreaseBasis, Increase, Reno, RenoConfig, Rounding};
pub use scream::{Scream, ScreamConfig};
pub use steady::{Steady, SteadyConfig};
pub use tfrc::{Tfrc, TfrcConfig, TfrcMeter};
pub use vegas::{Vegas, VegasConfig};

/// An amount in segments of `mss`; infinite for [`DataSize::MAX`], which means no limit.
fn segments(amount: DataSize, mss: DataSize) -> f64 {
    if amount == DataSize::MAX {
        f64::INFINITY
    } else {
        amount.get() as f64 / mss.get().max(1) as f64
    }
}
