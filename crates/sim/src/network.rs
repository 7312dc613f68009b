//! What is simulated, as plain data: nodes, one-way links, flows and their workloads.

mod error;

use std::sync::Arc;

use comity_congestion::table::{Parameters, find};
use comity_frames::{Shedder, ShedderConfig, Verdict};
use comity_link::LinkConfig;
use comity_transport::timeline::{Reason, Reliability};
use comity_transport::{datagram, tcp, tcp::codec};
use comity_units::{Bytes, Rate, Span, Time};

pub use error::{FlowError, NetworkError};

use crate::frames::{Frame, Video};

/// A network, the flows in it, and for how long it is watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// The names of the nodes; a [`NodeId`] is an index into them.
    pub nodes: Vec<String>,
    /// The one-way links.
    pub links: Vec<LinkSpec>,
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// When the run ends.
    pub duration: Span,
    /// How long after the start measuring begins; counters that say "measured" start here.
    pub warmup: Span,
}

/// A node, as an index into [`Network::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A one-way link between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Its name, unique; it keys the link's random streams.
    pub name: String,
    /// Where packets enter.
    pub from: NodeId,
    /// Where packets come out.
    pub to: NodeId,
    /// How it treats them.
    pub config: LinkConfig,
}

/// A flow from one node to another, with acknowledgements coming back.
///
/// Packets take the path of least propagation delay (ties: fewest links, then the order of the
/// links), each way for itself, fixed for the run.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Its name, unique; it keys the flow's random streams.
    pub name: String,
    /// The group that it is counted in, such as `tcp` or `long`.
    pub group: String,
    /// Where the data comes from.
    pub source: NodeId,
    /// Where it goes.
    pub destination: NodeId,
    /// How it is carried.
    pub transport: TransportSpec,
    /// What there is to send.
    pub workload: Workload,
    /// How the receiving application takes it.
    pub reader: Reader,
    /// When it starts.
    pub start: Start,
    /// When its source stops giving data; `None` for the end of the run.
    pub stop: Option<Time>,
}

/// When a flow starts: at `at`, plus a uniformly random part of `spread` drawn from the flow's own
/// stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Start {
    /// The earliest start.
    pub at: Time,
    /// The width of the interval that the start is drawn from.
    pub spread: Span,
}

/// How a flow is carried.
#[derive(Clone, Debug, PartialEq)]
pub enum TransportSpec {
    /// TCP.
    Tcp(TcpSpec),
    /// Datagrams without feedback, as the workload gives them.
    Datagram(DatagramSpec),
    /// The deadline transport: sections, each with its deadline.
    Sections(SectionsSpec),
    /// Two programs, which only the lab runs.
    Command(CommandSpec),
}

/// TCP, as configured for one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpSpec {
    /// Both endpoints' settings. The tick of the timestamps is that of the receiver; the sender's
    /// is a microsecond.
    pub config: tcp::Config,
    /// The name of the controller in [`comity_congestion::table`].
    pub controller: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// The first congestion window.
    pub initial_window: Bytes,
    /// The first slow-start threshold; `None` for the receive buffer, as in ns-2.
    pub initial_ssthresh: Option<Bytes>,
    /// What the headers weigh on the wire.
    pub headers: Headers,
    /// How sections are made of the workload, where [`tcp::Config::timeline`] is set.
    pub timeline: Option<TimelineSpec>,
}

impl TcpSpec {
    /// The headers of its segments with data, if the peer agrees to all that it offers.
    pub(crate) fn data_headers(&self) -> u32 {
        let metered = find(&self.controller).is_ok_and(|row| row.has_meter());
        let timelined = self.config.timeline.is_some();
        self.headers
            .of_data(self.config.timestamps, metered, timelined)
    }
}

/// The sections of a time-lined flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineSpec {
    /// The size of the sections of workloads that are no frames.
    pub section: Bytes,
    /// How long a section is worth sending.
    pub deadline: Span,
    /// How often the reader tells the source which share of the frames it had in time; the source
    /// then leaves out bidirectional, and then predicted frames as needed. `None` for never. A
    /// report takes as long as the links back do at the start, and no room on them.
    pub feedback: Option<Span>,
}

/// What the headers of a segment weigh on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// IPv4 and TCP as they are: 40 bytes and the options with their padding.
    Real,
    /// A fixed size for every segment, and so much more for each SACK block (ns-2: 40 and 8).
    Fixed {
        /// The bytes of every header.
        bytes: u32,
        /// The bytes of each SACK block.
        per_sack_block: u32,
    },
}

impl Headers {
    /// The headers of a segment with data, without SACK blocks and voids, once the handshake is
    /// over: with timestamps, the wave of a controller with a meter, and the time-line's
    /// `seq_update`.
    pub(crate) const fn of_data(self, timestamps: bool, metered: bool, timelined: bool) -> u32 {
        match self {
            Self::Fixed { bytes, .. } => bytes,
            Self::Real => {
                IPV4_HEADER + codec::data_header_length(timestamps, metered, timelined) as u32
            }
        }
    }
}

/// The size of an IPv4 header without options.
pub(crate) const IPV4_HEADER: u32 = 20;

/// The programs of a flow. `{address}`, `{source}`, `{address6}`, `{source6}`, `{port}`,
/// `{seconds}` and `{seed}` stand for values of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// What the shell runs at the source.
    pub sender: String,
    /// What it runs at the destination.
    pub receiver: Option<String>,
}

/// Datagrams, as configured for one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramSpec {
    /// The size of a full packet on the wire, headers included.
    pub wire: Bytes,
}

/// The deadline transport, as configured for one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct SectionsSpec {
    /// Both ends' settings. The seed is set for each end.
    pub config: datagram::Config,
    /// The name of the controller in [`comity_congestion::table`].
    pub controller: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// The first congestion window.
    pub initial_window: Bytes,
    /// How long after it came into being a section has to have arrived; `None` for no deadlines.
    pub latency: Option<Span>,
    /// The size of the sections of workloads that say nothing of sizes.
    pub section: Bytes,
    /// The size on the wire of what the destination sends; `None` for what it has in it.
    pub acknowledgement: Option<Bytes>,
    /// Whether the source sheds frames while the path carries less than it gives.
    pub shed: bool,
}

impl SectionsSpec {
    /// The shedder of the source, if it has one: where everything has to arrive, nothing is shed.
    pub fn shedder(&self) -> Option<Shedder> {
        (self.shed && self.config.reliability != Reliability::Full)
            .then(|| Shedder::new(ShedderConfig::default()))
    }
}

/// Why a frame is skipped with this verdict of the shedder; `None` for one to send.
pub const fn skip_reason(verdict: Verdict) -> Option<Reason> {
    match verdict {
        Verdict::Keep => None,
        Verdict::Shed => Some(Reason::Shed),
        Verdict::Dependent => Some(Reason::Dependency),
    }
}

/// What a flow has to send. Amounts are payload for TCP and sections, bytes on the wire for
/// datagrams.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Always more; as sections, as many as the send buffer takes.
    Greedy,
    /// So much, then the end of the stream.
    File(Bytes),
    /// Packets at a constant rate: one every `wire / rate`, or every `gap` after the end of the one
    /// before on a link of the first hop's rate.
    Cbr {
        /// The spacing of packets.
        spacing: CbrSpacing,
        /// How far each packet is moved at random, as a share of the interval (0: not at all).
        jitter: f64,
    },
    /// Constant rate while on, nothing while off; both states last exponentially distributed
    /// times.
    OnOff {
        /// The rate while on.
        rate: Rate,
        /// The mean time on.
        mean_on: Span,
        /// The mean time off.
        mean_off: Span,
    },
    /// Tokens fall into a bucket at a rate; data is sent as tokens allow (TCP-Real, section 3).
    TokenBucket {
        /// The most tokens, in bytes.
        depth: Bytes,
        /// The bytes that fall at every interval.
        refill: Bytes,
        /// The interval.
        interval: Span,
    },
    /// Packets with exponentially distributed times between them.
    Poisson {
        /// The mean rate.
        rate: Rate,
    },
    /// The frames of a synthetic encoder, each a section.
    Video(Video),
    /// These frames, in decoding order and once, each a section.
    Frames(Arc<[Frame]>),
}

/// The spacing of constant-rate packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CbrSpacing {
    /// A rate: packets start `wire / rate` apart.
    Rate(Rate),
    /// From the start of one packet to the start of the next.
    Interval(Span),
    /// From the end of one packet on the first link to the start of the next (packet spacing,
    /// figure 3).
    Gap(Span),
}

/// How the receiving application takes data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reader {
    /// At once.
    #[default]
    Immediate,
    /// So many bytes at every interval, from `delay` after the first byte arrived; a read that does
    /// not find all its bytes fails and takes nothing (TCP-Real's VREAL).
    Playback {
        /// The bytes of one read.
        bytes: Bytes,
        /// The time between reads.
        interval: Span,
        /// How long after the first byte the first read comes.
        delay: Span,
    },
}
