//! The sections of one connection, to either kind of peer.

use comity_tcp::timeline::TimelineConfig;
use comity_units::Time;

use crate::config::Config;
use crate::ledger::Ledger;
use crate::queue::Queue;
use crate::section::Framing;

/// What a connection does with sections.
#[derive(Debug)]
pub(crate) struct Sections {
    pub(crate) framing: Framing,
    epoch_us: u64,
    /// What the host offered.
    pub(crate) timeline: Option<TimelineConfig>,
    pub(crate) content: Content,
    /// The application shut down, and a FIN has to follow the sections that wait.
    pub(crate) is_closing: bool,
}

/// The submitted sections, for the kind of peer that the connection has.
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

    /// Whether the application submitted any.
    pub(crate) const fn is_in_use(&self) -> bool {
        !matches!(self.content, Content::Bytes)
    }

    /// Whether some have no sequence number yet.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(&self.content, Content::Plain(queue) if !queue.is_empty())
    }

    /// When a section expires that waits without a number.
    pub(crate) fn next_timer(&self) -> Time {
        match &self.content {
            Content::Plain(queue) => queue.expires_at(),
            _ => Time::MAX,
        }
    }

    /// Whether the host offered a time-line.
    pub(crate) const fn is_offered(&self) -> bool {
        self.timeline.is_some()
    }

    /// When a section is due, as its header says.
    pub(crate) fn due_us(&self, deadline: Time) -> u64 {
        match deadline.is_never() {
            true => u64::MAX,
            false => self.epoch_us.saturating_add(deadline.as_nanos() / 1_000),
        }
    }
}
