//! A network as plain data: nodes, one-way links, flows and their workloads.

mod error;

use std::sync::Arc;

use comity_congestion::table::{Parameters, find};
use comity_frames::{Shedder, ShedderConfig};
use comity_link::LinkConfig;
use comity_tcp as tcp;
use comity_tcp::codec;
use comity_transport::datagram;
use comity_transport::timeline::Reliability;
use comity_units::{DataSize, Rate, Span, Time};

pub use error::{FlowError, NetworkError};

use crate::frames::{AdaptiveVideo, Frame, Video};
use crate::transfers::Sizes;

/// A network, its flows, and the times of the run.
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
    /// The time from the start to the beginning of measurement. Counters marked "measured" start
    /// here.
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
    /// Where packets leave.
    pub to: NodeId,
    /// Its configuration.
    pub config: LinkConfig,
}

/// A flow from one node to another, with ACKs in the reverse direction.
///
/// Packets take the path of minimum propagation delay (of equal paths the one with fewer links,
/// then by the order of the links). Each direction has its own path, fixed for the run.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Its name, unique; it keys the flow's random streams.
    pub name: String,
    /// Its group in results, such as `tcp` or `long`.
    pub group: String,
    /// Where the data comes from.
    pub source: NodeId,
    /// Where it goes.
    pub destination: NodeId,
    /// Its transport.
    pub transport: TransportSpec,
    /// Its workload.
    pub workload: Workload,
    /// How the receiving application reads.
    pub reader: Reader,
    /// When it starts.
    pub start: Start,
    /// When its source stops; `None` for the end of the run.
    pub stop: Option<Time>,
}

/// When a flow starts: at `at`, plus a uniformly random part of `spread` drawn from the flow's own
/// stream.
///
/// With `arrivals`, the flows of a group arrive as a Poisson process. Each starts an exponentially
/// distributed time of that mean after the flow before it in the list, or after `at` if that flow
/// has another group or another start. A flow whose start is after its stop, or after the end of
/// the run, sends nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Start {
    /// The earliest start.
    pub at: Time,
    /// The width of the interval that the start is drawn from.
    pub spread: Span,
    /// The mean time from the start of one flow to that of the next.
    pub arrivals: Option<Span>,
}

/// The transport of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum TransportSpec {
    /// TCP.
    Tcp(TcpSpec),
    /// Datagrams without feedback, as the workload produces them.
    Datagram(DatagramSpec),
    /// The deadline transport: sections, each with its deadline.
    Sections(SectionsSpec),
    /// Two programs, which only the lab runs.
    Command(CommandSpec),
}

/// TCP, as configured for one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpSpec {
    /// The settings of both endpoints. The tick of timestamps applies to the receiver; the sender's
    /// tick is a microsecond.
    pub config: tcp::Config,
    /// The name of the controller in [`comity_congestion::table`], or of a
    /// [custom](crate::CustomControllers) one.
    pub controller: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// The first congestion window.
    pub initial_window: DataSize,
    /// The first slow-start threshold; `None` for the receive buffer, as in ns-2.
    pub initial_ssthresh: Option<DataSize>,
    /// The size of headers on the wire.
    pub headers: Headers,
    /// The sections of the workload, if it has any. Expired ones are sent unless
    /// [`tcp::Config::timeline`] is set.
    pub timeline: Option<TimelineSpec>,
    /// Whose TCP runs in the lab.
    pub stack: Stack,
}

/// Whose TCP runs a flow in the lab. In the simulator it is always Comity's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stack {
    /// The kernel's.
    #[default]
    Kernel,
    /// Comity's, the state machine of the simulator, behind a TUN device.
    Comity,
}

impl TcpSpec {
    /// The headers of its segments with data, if the peer accepts all options.
    pub fn data_headers(&self) -> u32 {
        let metered = find(&self.controller).is_ok_and(|row| row.has_meter());
        let timelined = self.config.timeline.is_some();
        self.headers
            .of_data(self.config.timestamps, metered, timelined)
    }
}

/// The sections of a time-lined flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineSpec {
    /// The size of sections of workloads other than frames.
    pub section: DataSize,
    /// The lifetime of a section.
    pub deadline: Span,
    /// How often the reader reports the share of frames that it had in time; `None` for never. The
    /// source then leaves out bidirectional frames, and predicted ones if necessary. A report has
    /// the initial delay of the reverse links, and uses no capacity.
    pub feedback: Option<Span>,
}

/// The size of a segment's headers on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// Real IPv4 and TCP headers: 40 bytes and the options with their padding.
    Real,
    /// A fixed size for every segment, and an extra size for each SACK block (ns-2: 40 and 8).
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
    pub wire: DataSize,
}

/// The deadline transport, as configured for one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct SectionsSpec {
    /// Both ends' settings. The seed is set for each end.
    pub config: datagram::Config,
    /// The name of the controller in [`comity_congestion::table`], or of a
    /// [custom](crate::CustomControllers) one.
    pub controller: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// The first congestion window.
    pub initial_window: DataSize,
    /// The time from a section's source time to its deadline; `None` for no deadlines.
    pub latency: Option<Span>,
    /// The size of sections of workloads without sizes.
    pub section: DataSize,
    /// The size on the wire of the destination's packets; `None` for their real size.
    pub acknowledgement: Option<DataSize>,
    /// Whether the source sheds frames while the path carries less than it produces.
    pub shed: bool,
}

impl SectionsSpec {
    /// The shedder of the source. With full reliability there is none.
    pub fn shedder(&self) -> Option<Shedder> {
        (self.shed && self.config.reliability != Reliability::Full)
            .then(|| Shedder::new(ShedderConfig::default()))
    }
}

/// The workload of a flow. Amounts are payload for TCP and sections, bytes on the wire for
/// datagrams.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Unlimited data; as sections, as many as the send buffer takes.
    Greedy,
    /// This amount, then the end of the stream.
    File(DataSize),
    /// An amount drawn from this distribution, then the end of the stream.
    RandomFile(Sizes),
    /// Packets at a constant rate: one every `wire / rate`, or each at `gap` after the end of the
    /// previous one on the first link.
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
    /// A bucket gains tokens at a rate and limits the data (TCP-Real, section 3).
    TokenBucket {
        /// The maximum number of tokens, in bytes.
        depth: DataSize,
        /// The tokens of each interval, in bytes.
        refill: DataSize,
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
    /// The frames of an encoder that follows the target bitrate, each a section.
    Encoder(AdaptiveVideo),
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

/// How the receiving application reads.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Reader {
    /// At once.
    #[default]
    Immediate,
    /// Some bytes every interval, from `delay` after the first byte. A read that does not find all
    /// its bytes fails and takes nothing (TCP-Real's VREAL).
    Playback {
        /// The bytes of the reads.
        sizes: ReadSizes,
        /// The time between reads.
        interval: Span,
        /// The time from the first byte to the first read.
        delay: Span,
        /// The bytes that the first read, and a read after a failed one, wait for.
        buffer: DataSize,
    },
}

/// How many bytes the reads of a playback take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadSizes {
    /// The same each time.
    Equal(DataSize),
    /// Those of one frame after another, until the last.
    Frames(Arc<[Frame]>),
}

impl ReadSizes {
    /// The bytes of the largest read.
    pub fn largest(&self) -> DataSize {
        match self {
            Self::Equal(bytes) => *bytes,
            Self::Frames(frames) => {
                let sizes = frames.iter().map(|frame| frame.bytes);
                DataSize::new(sizes.max().unwrap_or(0).into())
            }
        }
    }
}
