//! What was found out about a host. `None` stands for what could not be found out.

use comity_units::Span;

use crate::commands::mtu::Mtu;

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    /// `net.core.rmem_max` in bytes.
    pub(super) receive_buffer: Option<u64>,
    /// `net.core.wmem_max` in bytes.
    pub(super) send_buffer: Option<u64>,
    /// What UDP on the loopback interface did, or why it did nothing.
    pub(super) loopback: Option<Result<Loopback, String>>,
    pub(super) clock: Option<Clock>,
    /// The lateness of short waits, ascending.
    pub(super) lateness: Vec<Span>,
    /// How many processors this process may use.
    pub(super) processors: Option<usize>,
    /// The kernel's release, such as `6.1.0-13-amd64`.
    pub(super) kernel: Option<String>,
    /// The kernel's TCP congestion controls.
    pub(super) congestion_controls: Option<Vec<String>>,
    pub(super) queueing: Option<Queueing>,
    /// How large packets to elsewhere may be; `None` also without a default route.
    pub(super) mtu: Option<Mtu>,
    /// The controllers that Comity has for the kernel, and what each of them lacks here.
    pub(super) kernel_controllers: Vec<(&'static str, Vec<String>)>,
    /// The ports to check.
    pub(super) ports: Vec<Port>,
}

/// UDP on the loopback interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loopback {
    /// How many datagrams the system takes at once.
    pub(super) segments: usize,
    /// The packets that arrived of a burst, and the size of the burst.
    pub(super) arrived: (usize, usize),
    /// The most datagrams that were received as one.
    pub(super) coalesced: usize,
    /// Which of ECT(0), ECT(1) and CE arrived as they were sent.
    pub(super) marks: [bool; 3],
    /// Whether the kernel says when a datagram arrived, and that is not wrong by a second.
    pub(super) timestamps: bool,
}

/// The kernel's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// The one in use, such as `tsc`.
    pub(super) current: String,
    /// Those that there are.
    pub(super) available: Vec<String>,
    /// How long reading it takes.
    pub(super) reading: Span,
}

/// How packets of this host wait for its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Queueing {
    /// `net.core.default_qdisc`, which new interfaces get.
    pub(super) default: String,
    /// The interface of the default route.
    pub(super) interface: Option<String>,
}

/// A UDP port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) number: u16,
    /// From which of the host's own addresses a datagram arrived, or why the port cannot be
    /// listened on.
    pub(super) reached: Result<Vec<(std::net::IpAddr, bool)>, String>,
}
