//! The command line of `comity kernel`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use comity_kernel::{Controller, libra, real};
use comity_units::{Rate, Span};

use super::values::quantity;

#[derive(Debug, Subcommand)]
pub enum Kernel {
    /// Register a congestion controller with the kernel; it stays until it is unloaded
    #[command(subcommand)]
    Load(KernelLoad),
    /// List the loaded controllers with their parameters
    List(KernelList),
    /// Remove a congestion controller; its flows keep it until they end
    #[command(after_help = "Exit codes:
  0    done
  1    it is not loaded, or could not be removed
  2    the command line is wrong")]
    Unload {
        /// The controller
        controller: KernelController,
    },
    /// Show the state of every flow of a loaded controller, in all network namespaces
    Status(KernelStatus),
}

/// A controller that Comity provides for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KernelController {
    /// TCP Libra: equal rates at any round trip
    Libra,
    /// TCP-Real: the receiver sets the window, and random losses do not reduce it
    Real,
}

impl From<KernelController> for Controller {
    fn from(controller: KernelController) -> Self {
        match controller {
            KernelController::Libra => Self::Libra,
            KernelController::Real => Self::Real,
        }
    }
}

#[derive(Debug, Subcommand)]
#[command(
    subcommand_value_name = "CONTROLLER",
    subcommand_help_heading = "Controllers"
)]
pub enum KernelLoad {
    /// TCP Libra: equal rates at any round trip
    Libra(LoadLibra),
    /// TCP-Real: the receiver sets the window, and random losses do not reduce it
    Real(LoadReal),
}

#[derive(Debug, Args)]
#[command(
    after_help = "The kernel needs BTF, and the command needs root. A loaded controller is chosen as any other:
  one socket      setsockopt(TCP_CONGESTION, \"libra\")
  a cgroup        comity kernel load libra --cgroup /sys/fs/cgroup/video.slice
  a destination   ip route change 192.0.2.0/24 via 198.51.100.1 congctl libra
  every socket    sysctl net.ipv4.tcp_congestion_control=libra
Programs without root may choose it if net.ipv4.tcp_allowed_congestion_control names it.

Exit codes:
  0    done
  1    parts are missing, it is loaded already, or the kernel refused it
  2    the command line is wrong

Examples:
  sudo ~/.cargo/bin/comity kernel load libra
  sudo ~/.cargo/bin/comity kernel load libra --capacity 100Mbps --cgroup /sys/fs/cgroup/video.slice
  sudo ~/.cargo/bin/comity kernel load libra --capacity-to 10.0.0.0/8=50Mbps --capacity-to 2001:db8::/32=1Gbps"
)]
pub struct LoadLibra {
    /// A: round trips well below it get equal rates
    #[arg(long, value_name = "TIME", default_value_t = libra::Parameters::default().a, value_parser = quantity::<Span>)]
    pub(crate) a: Span,

    /// B: a loss reduces the window by B / (2 (RTT + A)) of it
    #[arg(long, value_name = "TIME", default_value_t = libra::Parameters::default().b, value_parser = quantity::<Span>)]
    pub(crate) b: Span,

    /// X: the growth of the window, in segments per second for each Mb/s of capacity
    #[arg(long, value_name = "NUMBER", default_value_t = libra::Parameters::default().x)]
    pub(crate) x: f64,

    /// Y: a full queue divides the growth by e^Y
    #[arg(long, value_name = "NUMBER", default_value_t = libra::Parameters::default().y)]
    pub(crate) y: f64,

    /// C: the capacity of the bottleneck, such as 100Mbps [default: estimated from packet pairs]
    #[arg(long, value_name = "RATE", value_parser = quantity::<Rate>)]
    pub(crate) capacity: Option<Rate>,

    /// C for the destinations of a prefix, such as 10.0.0.0/8=50Mbps; the longest prefix of a
    /// destination counts, and --capacity holds for the others. May be repeated
    #[arg(long = "capacity-to", value_name = "PREFIX=RATE")]
    pub(crate) destinations: Vec<libra::Destination>,

    /// The minimum and maximum RTT and the packet pairs expire after one to two times this long; 0s
    /// for never
    #[arg(long, value_name = "TIME", default_value_t = libra::Parameters::default().memory.unwrap_or(Span::ZERO), value_parser = quantity::<Span>)]
    pub(crate) memory: Span,

    /// Send packets as the window opens, instead of in pairs at random times
    #[arg(long)]
    pub(crate) no_pairs: bool,

    /// Use the controller for new connections of this cgroup, a folder below the mount point of
    /// cgroups of version 2, such as /sys/fs/cgroup/video.slice; may be repeated
    #[arg(long = "cgroup", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cgroups: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Load it at both ends. The receiver measures waves for every connection of the host. The sender
uses them where TCP-Real is chosen (setsockopt, --cgroup, a route's congctl, sysctl). A flow
continues with Reno if its peer reports no level. The kernel must be Linux 6.12 or later with BTF,
and the command needs root.

Exit codes:
  0    done
  1    parts are missing, it is loaded already, or the kernel refused it
  2    the command line is wrong

Examples:
  sudo ~/.cargo/bin/comity kernel load real
  sudo ~/.cargo/bin/comity kernel load real --max-level 48 --cgroup /sys/fs/cgroup/video.slice"
)]
pub struct LoadReal {
    /// The highest level; a level is two segments of window
    #[arg(long, value_name = "LEVELS", default_value_t = real::Parameters::default().max_level)]
    pub(crate) max_level: u32,

    /// The first threshold as a share of the highest level
    #[arg(long, value_name = "SHARE", default_value_t = real::Parameters::default().threshold_share)]
    pub(crate) threshold_share: f64,

    /// How a connection finds its first level
    #[arg(long, value_enum, default_value_t = KernelOpening::SlowStart)]
    pub(crate) opening: KernelOpening,

    /// How the receiver rounds fractions of a level
    #[arg(long, value_enum, default_value_t = KernelFractions::Kept)]
    pub(crate) fractions: KernelFractions,

    /// Do not compare a wave with one that the wave-decision timer ended
    #[arg(long)]
    pub(crate) no_compare_with_timeouts: bool,

    /// Start the decision table from the level of the measured wave, not from the last decision
    #[arg(long)]
    pub(crate) level_of_wave: bool,

    /// Fix the length of each wave to the window at its beginning
    #[arg(long)]
    pub(crate) fixed_waves: bool,

    /// Reduce the window at every timeout, not only at one without a duplicate acknowledgement
    #[arg(long)]
    pub(crate) always_reduce: bool,

    /// Use the weights in the text of section 2.2 of the paper: above the threshold, a level falls
    /// more and rises less
    #[arg(long)]
    pub(crate) text_weights: bool,

    /// Use the controller for new connections of this cgroup, a folder below the mount point of
    /// cgroups of version 2, such as /sys/fs/cgroup/video.slice; may be repeated
    #[arg(long = "cgroup", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cgroups: Vec<PathBuf>,
}

/// How a connection finds its first level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KernelOpening {
    /// The level doubles with every wave up to the first threshold
    SlowStart,
    /// The sender's own Slow Start, up to the window of the first threshold or to the first loss
    Sender,
    /// Only the decision table; the first wave keeps its level
    Figure,
    /// Only the decision table; the first wave gives the highest level
    Jump,
}

/// How fractions of a level are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KernelFractions {
    /// Only the report is rounded
    Kept,
    /// The nearest level
    Nearest,
    /// The next higher level
    Up,
    /// The next lower level
    Down,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0    done
  1    the kernel's answer could not be read
  2    the command line is wrong")]
pub struct KernelList {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Columns for libra:
  cwnd       the congestion window, in segments
  ssthresh   the slow-start threshold, in segments; - before the first loss
  RTT        the last RTT, and the minimum and maximum within --memory, in ms
  beta       the utilisation of the queue, from 0 to 1 (equation 2)
  alpha      the increase of the window, in segments per second (equation 1)
  capacity   C in Mb/s; with > it is a lower bound: delivery rates without a packet pair
  pacing     the rate at which packets leave, in Mb/s

Columns for real:
  cwnd       the congestion window, in segments
  sends      the level of the window, or reno after a fallback; - if another controller sends. A
             level is two segments
  wave       the number of the wave that is being sent
  measures   the level for the peer; - before its first wave
  threshold  the level above which the decision table (figure 1 of
             the paper) has other weights
  rate       segments per second in the last wave
  malformed  segments whose options were ignored

Exit codes:
  0    done
  1    nothing is loaded, or the kernel's answer could not be read
  2    the command line is wrong")]
pub struct KernelStatus {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
