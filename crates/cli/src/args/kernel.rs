//! The command line of `comity kernel`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use comity_kernel::Parameters;
use comity_units::{Rate, Span};

use super::values::quantity;

#[derive(Debug, Subcommand)]
pub(crate) enum Kernel {
    /// Register a congestion controller with the kernel; it stays until it is unloaded
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

/// A controller that Comity has for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelController {
    /// TCP Libra: equal rates at any round trip
    Libra,
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
  sudo comity kernel load libra
  sudo comity kernel load libra --capacity 100Mbps --cgroup /sys/fs/cgroup/video.slice"
)]
pub(crate) struct KernelLoad {
    /// The controller
    pub(crate) controller: KernelController,

    /// A: round trips well below it get equal rates
    #[arg(long, value_name = "TIME", default_value_t = Parameters::default().a, value_parser = quantity::<Span>)]
    pub(crate) a: Span,

    /// B: a loss reduces the window by B / (2 (RTT + A)) of it
    #[arg(long, value_name = "TIME", default_value_t = Parameters::default().b, value_parser = quantity::<Span>)]
    pub(crate) b: Span,

    /// X: the growth of the window, in segments per second for each Mb/s of capacity
    #[arg(long, value_name = "NUMBER", default_value_t = Parameters::default().x)]
    pub(crate) x: f64,

    /// Y: a full queue divides the growth by e^Y
    #[arg(long, value_name = "NUMBER", default_value_t = Parameters::default().y)]
    pub(crate) y: f64,

    /// C: the capacity of the bottleneck, such as 100Mbps [default: estimated from packet pairs]
    #[arg(long, value_name = "RATE", value_parser = quantity::<Rate>)]
    pub(crate) capacity: Option<Rate>,

    /// The extremes of the round trip and the pairs expire after one to two of these times; 0s for
    /// never
    #[arg(long, value_name = "TIME", default_value_t = Parameters::default().memory.unwrap_or(Span::ZERO), value_parser = quantity::<Span>)]
    pub(crate) memory: Span,

    /// Do not pace: packets leave as the window opens
    #[arg(long)]
    pub(crate) no_pairs: bool,

    /// Use the controller for new connections of this cgroup (version 2); may be repeated
    #[arg(long = "cgroup", value_name = "DIR")]
    pub(crate) cgroups: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0    done
  1    the kernel's answer could not be read
  2    the command line is wrong")]
pub(crate) struct KernelList {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Columns:
  cwnd       the congestion window, in segments
  rtt        the last round trip, with its extremes within the memory, in ms
  beta       the used share of the buffer, from 0 to 1 (equation 2)
  alpha      the growth of the window, in segments per second (equation 1)
  capacity   C in Mb/s; with > it is a lower bound: delivery rates without a packet pair

Exit codes:
  0    done
  1    nothing is loaded, or the kernel's answer could not be read
  2    the command line is wrong")]
pub(crate) struct KernelStatus {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
