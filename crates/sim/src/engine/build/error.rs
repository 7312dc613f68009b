//! Why a network cannot be played.

use std::fmt;

use comity_congestion::table::{ParameterError, UnknownController};
use comity_link::ConfigError;
use comity_transport::datagram;
use comity_units::Span;

/// Why a network cannot be played.
#[derive(Clone, Debug, PartialEq)]
pub enum BuildError {
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
    /// A link's settings are impossible.
    Link {
        /// The link.
        name: String,
        /// What is wrong.
        error: ConfigError,
    },
    /// There is no way from a flow's source to its destination, or back.
    Unreachable {
        /// The flow.
        flow: String,
        /// The name of the node it begins at.
        from: String,
        /// The name of the node that cannot be reached.
        to: String,
    },
    /// A flow's source is its destination.
    FlowToItself {
        /// The flow.
        flow: String,
        /// The name of the node.
        node: String,
    },
    /// A flow's controller does not exist.
    Controller {
        /// The flow.
        flow: String,
        /// What is wrong.
        error: UnknownController,
    },
    /// A flow's controller does not take its parameters.
    Parameter {
        /// The flow.
        flow: String,
        /// What is wrong.
        error: ParameterError,
    },
    /// A setting of the deadline transport is out of range.
    Sections {
        /// The flow.
        flow: String,
        /// What is wrong.
        error: datagram::ConfigError,
    },
    /// A setting of a flow is impossible.
    Flow {
        /// The flow.
        flow: String,
        /// What is wrong: what was given and what is expected.
        reason: &'static str,
    },
    /// A flow of programs, which need a host that runs them.
    Command {
        /// The flow.
        flow: String,
    },
    /// A flow that always has more to send, over links there and back that have neither a delay nor a rate: no time
    /// would pass between a packet, its acknowledgement and the next packet.
    Standstill {
        /// The flow.
        flow: String,
    },
    /// The warm-up is not shorter than the run.
    Warmup {
        /// The warm-up.
        warmup: Span,
        /// The length of the run.
        duration: Span,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownNode { user, node } => {
                write!(f, "{user} names node {node}, which does not exist")
            }
            Self::DuplicateName { name } => {
                write!(f, "the name {name:?} is used twice; names are unique")
            }
            Self::Link { name, error } => write!(f, "link {name:?}: {error}"),
            Self::Unreachable { flow, from, to } => {
                write!(f, "flow {flow:?}: no links lead from {from:?} to {to:?}")
            }
            Self::FlowToItself { flow, node } => {
                write!(f, "flow {flow:?}: source and destination are both {node:?}")
            }
            Self::Controller { flow, error } => write!(f, "flow {flow:?}: {error}"),
            Self::Parameter { flow, error } => write!(f, "flow {flow:?}: {error}"),
            Self::Sections { flow, error } => write!(f, "flow {flow:?}: {error}"),
            Self::Flow { flow, reason } => write!(f, "flow {flow:?}: {reason}"),
            Self::Command { flow } => write!(
                f,
                "flow {flow:?} has transport = \"command\", which only the lab runs: `comity lab run`"
            ),
            Self::Standstill { flow } => write!(
                f,
                "flow {flow:?} always has more to send, and no link there or back has a rate or a delay, so that \
                 time would stand still; expected one of them on one of the links"
            ),
            Self::Warmup { warmup, duration } => {
                write!(
                    f,
                    "the warm-up of {warmup} is not shorter than the run of {duration}"
                )
            }
        }
    }
}

impl std::error::Error for BuildError {}
