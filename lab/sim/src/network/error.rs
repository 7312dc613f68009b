//! Why a network cannot be run.

use std::fmt;

use comity_congestion::table::{ParameterError, UnknownController};
use comity_link::ConfigError;
use comity_transport::datagram;
use comity_units::DataSize;

use crate::frames::{AdaptiveVideoError, VideoError};

/// Why a network cannot be run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NetworkError {
    /// A link or flow names a node that does not exist.
    UnknownNode {
        /// The link or flow.
        user: String,
        /// The number of the node.
        node: u32,
    },
    /// Two links or two flows have one name.
    DuplicateName {
        /// The name.
        name: String,
    },
    /// The settings of a link are invalid.
    Link {
        /// The link.
        name: String,
        /// What is wrong.
        error: ConfigError,
    },
    /// A flow is invalid.
    Flow {
        /// The flow.
        flow: String,
        /// What is wrong.
        error: FlowError,
    },
    /// A queue is smaller than the packets of a flow over it, so it drops all of them.
    NoPacketFits {
        /// The link.
        link: String,
        /// The limit of its queue.
        limit: DataSize,
        /// The flow.
        flow: String,
        /// The size of its packets on the wire.
        packet: DataSize,
    },
    /// The warm-up is not shorter than the run.
    Warmup,
}

/// Why a flow is invalid.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FlowError {
    /// No links lead from one end of the flow to the other.
    Unreachable {
        /// The name of the source node.
        from: String,
        /// The name of the destination node.
        to: String,
    },
    /// The source is the destination.
    ToItself {
        /// The name of the node.
        node: String,
    },
    /// The flow runs programs, which only the lab can do.
    Command,
    /// The source is greedy, and no link in either direction has a delay or a rate: no time would
    /// pass between a packet, its ACK and the next packet.
    Standstill,
    /// The controller does not exist.
    Controller(UnknownController),
    /// A custom controller could not be built, with the reason.
    CustomController(String),
    /// The controller cannot drive TCP.
    NotForTcp,
    /// The controller refuses its parameters.
    Parameter(ParameterError),
    /// A setting of the deadline transport is out of range.
    Sections(datagram::ConfigError),
    /// The headers of a segment fill the whole packet.
    NoPayload,
    /// The receive buffer holds less than one segment.
    WindowBelowSegment,
    /// The send buffer holds less than one section.
    BufferBelowSection,
    /// Sections are empty or too large.
    SectionSize,
    /// Datagrams are empty or too large.
    DatagramSize,
    /// A workload that waits for feedback, with datagrams, which have none.
    UnclockedDatagrams,
    /// Frames without a transport for sections.
    FramesWithoutSections,
    /// An encoder without a target bitrate to follow.
    EncoderWithoutTarget,
    /// A workload that sections do not support.
    WorkloadOfSections,
    /// A playback reader with sections.
    PlaybackOfSections,
    /// A reader with an interval of zero.
    ReadInterval,
    /// A reader with a report interval of zero.
    ReportInterval,
    /// A token bucket with an interval of zero.
    RefillInterval,
    /// A workload of rate zero.
    NoRate,
    /// Packets with no time between them.
    NoSpacing,
    /// A source that is never on.
    NeverOn,
    /// An invalid video.
    Video(VideoError),
    /// An invalid encoder.
    Encoder(AdaptiveVideoError),
}

impl FlowError {
    pub(crate) fn of(self, flow: &super::FlowSpec) -> NetworkError {
        NetworkError::Flow {
            flow: flow.name.clone(),
            error: self,
        }
    }
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownNode { user, node } => {
                write!(f, "{user} names node {node}, which does not exist")
            }
            Self::DuplicateName { name } => {
                write!(f, "the name {name:?} is used twice; names are unique")
            }
            Self::Link { name, error } => write!(f, "link {name:?}: {error}"),
            Self::Flow { flow, error } => write!(f, "flow {flow:?}: {error}"),
            Self::NoPacketFits {
                link,
                limit,
                flow,
                packet,
            } => write!(
                f,
                "the queue of the link {link:?} holds {limit}, but the flow {flow:?} has packets of \
                 {packet}; choose a larger queue or smaller packets"
            ),
            Self::Warmup => f.write_str("the warm-up must be shorter than the run"),
        }
    }
}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable { from, to } => {
                return write!(f, "no links lead from {from:?} to {to:?}");
            }
            Self::ToItself { node } => {
                return write!(f, "source and destination are both {node:?}");
            }
            Self::Controller(error) => return error.fmt(f),
            Self::CustomController(reason) => return f.write_str(reason),
            Self::Parameter(error) => return error.fmt(f),
            Self::Sections(error) => return error.fmt(f),
            Self::Video(error) => return error.fmt(f),
            Self::Encoder(error) => return error.fmt(f),
            Self::Command => {
                "transport = \"command\" runs only in the lab: `comity lab run`"
            }
            Self::Standstill => {
                "the source is greedy, and no link in either direction has a rate or a delay, so that \
                 time would stand still; give a link a rate or a delay"
            }
            Self::NotForTcp => {
                "the controller works only with sections; expected another one, or \
                 transport = \"sections\""
            }
            Self::NoPayload => "the headers leave no room for payload; choose larger packets",
            Self::WindowBelowSegment => "the window must hold at least one segment",
            Self::BufferBelowSection => "the buffer must hold at least one section",
            Self::SectionSize => "sections have 1 byte to 16 MiB",
            Self::DatagramSize => "datagrams have 1 byte to 4 GB",
            Self::UnclockedDatagrams => {
                "datagrams have no feedback, which a greedy source or a file needs; expected a \
                 workload such as { kind = \"cbr\", rate = \"1Mbps\" }"
            }
            Self::FramesWithoutSections => {
                "frames need transport = \"sections\", or TCP with a `timeline`"
            }
            Self::EncoderWithoutTarget => {
                "an encoder follows the target bitrate, which only transport = \"sections\" has; \
                 expected that transport, or the workload video"
            }
            Self::WorkloadOfSections => {
                "sections support the workloads greedy, cbr with a rate or an interval, on_off, poisson, \
                 video, encoder and frames"
            }
            Self::PlaybackOfSections => {
                "a time-lined stream is read as it arrives, not by playback; leave `reader` out"
            }
            Self::ReadInterval => "the reader's interval is zero; expected a longer one",
            Self::ReportInterval => "the reader's report interval is zero; expected a longer one",
            Self::RefillInterval => "the token bucket's interval is zero; expected a longer one",
            Self::NoRate => "the rate of the workload is zero; expected a higher one",
            Self::NoSpacing => "the time between packets is zero; expected a longer one",
            Self::NeverOn => "the source is never on",
        })
    }
}

impl std::error::Error for NetworkError {}

impl std::error::Error for FlowError {}
