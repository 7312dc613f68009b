//! The facts about a host. `None` means unknown.

use comity_units::Span;

use crate::mtu::Mtu;

/// All facts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    /// `net.core.rmem_max` in bytes.
    pub(super) receive_buffer: Option<u64>,
    /// `net.core.wmem_max` in bytes.
    pub(super) send_buffer: Option<u64>,
    /// The results for UDP on the loopback interface, or why it does not work.
    pub(super) loopback: Option<Result<Loopback, String>>,
    pub(super) clock: Option<Clock>,
    /// The lateness of short waits, ascending.
    pub(super) lateness: Vec<Span>,
    /// The number of processors that this process may use.
    pub(super) processors: Option<usize>,
    /// The kernel's release, such as `6.1.0-13-amd64`.
    pub(super) kernel: Option<String>,
    /// The kernel's TCP congestion controls.
    pub(super) congestion_controls: Option<Vec<String>>,
    pub(super) queueing: Option<Queueing>,
    /// The maximum size of packets to other hosts; `None` also without a default route.
    pub(super) mtu: Option<Mtu>,
    /// The controllers that Comity can add to the kernel, and the missing requirements of each.
    pub(super) kernel_controllers: Vec<(&'static str, Vec<String>)>,
    /// The ports to check.
    pub(super) ports: Vec<Port>,
}

/// UDP on the loopback interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loopback {
    /// The number of datagrams that the system accepts in one call.
    pub(super) segments: usize,
    /// The arrived packets of a burst, and the size of the burst.
    pub(super) arrived: (usize, usize),
    /// The maximum number of datagrams received as one.
    pub(super) coalesced: usize,
    /// Which of ECT(0), ECT(1) and CE arrived unchanged.
    pub(super) marks: [bool; 3],
    /// Whether the kernel reports arrival times that are accurate to a second.
    pub(super) timestamps: bool,
}

/// The kernel's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// The current clock source, such as `tsc`.
    pub(super) current: String,
    /// The available clock sources.
    pub(super) available: Vec<String>,
    /// The time to read it.
    pub(super) reading: Span,
}

/// The queueing of this host's packets at its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Queueing {
    /// `net.core.default_qdisc`, for new interfaces.
    pub(super) default: String,
    /// The interface of the default route.
    pub(super) interface: Option<String>,
}

/// A UDP port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) number: u16,
    /// For each of the host's own addresses, whether it reaches the port; or why the program cannot
    /// listen on it.
    pub(super) reached: Result<Vec<(std::net::IpAddr, bool)>, String>,
}
