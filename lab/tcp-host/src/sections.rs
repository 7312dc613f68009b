//! The sections of one connection, for both kinds of peers.

use comity_tcp::timeline::TimelineConfig;
use comity_units::Time;

use crate::config::Config;
use crate::ledger::Ledger;
use crate::queue::Queue;
use crate::section::Framing;

/// The sections of a connection.
#[derive(Debug)]
pub(crate) struct Sections {
    pub(crate) framing: Framing,
    epoch_us: u64,
    /// The timeline that the host offered.
    pub(crate) timeline: Option<TimelineConfig>,
    pub(crate) content: Content,
    /// Whether the application has shut down, and a FIN must follow the waiting sections.
    pub(crate) is_closing: bool,
}

/// The submitted sections, for the kind of the connection's peer.
#[derive(Debug)]
pub(crate) enum Content {
    /// No section was submitted.
    Bytes,
    Timelined(Box<Ledger>),
    Plain(Box<Queue>),
}

impl Sections {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            framing: config.framing,
            epoch_us: config.epoch_us,
            timeline: config.tcp.timeline,
            content: Content::Bytes,
            is_closing: false,
        }
    }

    /// Whether the application submitted sections.
    pub(crate) const fn is_in_use(&self) -> bool {
        !matches!(self.content, Content::Bytes)
    }

    /// Whether some sections have no sequence number yet.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(&self.content, Content::Plain(queue) if !queue.is_empty())
    }

    /// When the next section that waits without a number expires.
    pub(crate) fn next_timer(&self) -> Time {
        match &self.content {
            Content::Plain(queue) => queue.expires_at(),
            _ => Time::MAX,
        }
    }

    /// Whether the host offered time-lined TCP.
    pub(crate) const fn is_offered(&self) -> bool {
        self.timeline.is_some()
    }

    /// The due time of a section, for its header.
    pub(crate) fn due_us(&self, deadline: Time) -> u64 {
        match deadline.is_never() {
            true => u64::MAX,
            false => self.epoch_us.saturating_add(deadline.as_nanos() / 1_000),
        }
    }
}
