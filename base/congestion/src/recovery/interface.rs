//! The interface of a recovery: the trait, its events and its reactions.

use core::fmt::Debug;

use crate::TimeoutRepair;

/// How a byte-sequence transport finds and repairs losses.
pub trait Recovery: Debug {
    /// An acknowledgement repeated the last one while data was outstanding.
    fn on_duplicate(&mut self, event: &Duplicate) -> Reaction;

    /// The cumulative acknowledgement advanced.
    fn on_advance(&mut self, event: &Advance) -> Reaction;

    /// The retransmission timer expired with data up to `max` outstanding, and the controller chose
    /// `repair` ([`crate::Decision::timeout_repair`]). Returns the retransmission. With
    /// [bugfix](super::RecoveryConfig::bugfix), duplicates for data below `max` begin no recovery,
    /// so a hole that remains waits for the timer.
    fn on_timeout(&mut self, max: u64, repair: TimeoutRepair) -> Resend;

    /// The losses or the timeout of the last reaction were spurious.
    fn on_spurious(&mut self) {}

    /// Whether a fast recovery is under way.
    fn is_recovering(&self) -> bool;

    /// Whether no recovery is under way and no duplicates are counted.
    fn is_quiet(&self) -> bool;

    /// The usable window minus the congestion window, in bytes: duplicate acknowledgements show
    /// that this much has left the network. Negative while a partial acknowledgement deflates the
    /// window.
    fn inflation(&self) -> i64;

    /// The most new segments that one event may release while recovering.
    fn burst_limit(&self) -> Option<u32> {
        None
    }

    /// How a transport with selective acknowledgements estimates the pipe while recovering; `None`
    /// if the window alone limits what is sent.
    fn pipe_rule(&self) -> Option<PipeRule> {
        None
    }
}

/// A duplicate acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The acknowledged offset: the first byte that the receiver misses.
    pub una: u64,
    /// The offset after the highest byte ever sent.
    pub max: u64,
    /// The payload of a full segment.
    pub mss: u32,
    /// Whether selective acknowledgements already prove that the first outstanding segment is lost
    /// (`IsLost` of RFC 6675, section 4). For RACK: whether the clock shows that some segment is
    /// lost (RFC 8985).
    pub first_is_lost: bool,
}

/// An advance of the cumulative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    /// The new acknowledged offset.
    pub to: u64,
    /// How many bytes left the window with it. In TCP these are all bytes that it covers. If
    /// another packet replaced a lost one, the lost one does not count.
    pub acked: u64,
    /// The payload of a full segment.
    pub mss: u32,
    /// Whether a retransmission of this recovery may have caused it, that is, whether the first
    /// byte that it covers was retransmitted. TCP always retransmits that byte when a recovery
    /// begins. But a receiver of a time-lined stream may skip abandoned bytes. It then acknowledges
    /// the packets after them one by one.
    pub is_repair: bool,
}

/// What the transport has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reaction {
    /// Report a loss to the controller.
    pub reduce: Reduce,
    /// Retransmit.
    pub resend: Resend,
    /// Release one new segment although the window is full (limited transmit, RFC 3042).
    pub release: bool,
    /// Report the acknowledged data to the controller as data on which the window may grow.
    pub grow: bool,
    /// Restart the retransmission timer.
    pub restart_timer: bool,
    /// The acknowledgement is partial. It gives no round-trip sample.
    pub partial: bool,
    /// The recovery is over with this event.
    pub recovered: bool,
    /// How many bytes the congestion window loses for good ([`crate::Event::Deflated`]).
    pub deflate: u64,
}

/// Which loss to report to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reduce {
    /// Nothing.
    #[default]
    No,
    /// A loss that reduces the window.
    Halve,
    /// A loss after which the flow restarts with one segment.
    Restart,
}

/// What is retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Resend {
    /// Nothing.
    #[default]
    Nothing,
    /// The first outstanding segment, at once and whatever the window.
    First,
    /// Everything outstanding, as the window allows (go-back-N).
    Everything,
}

impl From<TimeoutRepair> for Resend {
    fn from(repair: TimeoutRepair) -> Self {
        match repair {
            TimeoutRepair::GoBackN => Self::Everything,
            TimeoutRepair::FirstSegment => Self::First,
        }
    }
}

/// How many bytes count as being in the pipe while a SACK recovery runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PipeRule {
    /// `SetPipe()` of RFC 6675, section 4, from the scoreboard.
    #[default]
    Scoreboard,
    /// Fall and Floyd 1996 and ns-2: a counter of segments. On entry it is set to the outstanding
    /// segments less
    /// [`RecoveryConfig::duplicate_threshold`](super::RecoveryConfig::duplicate_threshold). It
    /// falls by one for each acknowledgement that does not advance, and by two for each partial
    /// one, or by one if that one is [no repair](Advance::is_repair). It rises by one for each
    /// segment sent, except for the retransmission on entry, because the lost segment is still
    /// counted. Any hole below the highest selectively acknowledged byte is retransmitted.
    Counter,
}

/// The reaction to an acknowledgement of new data: the window may grow, and the timer restarts.
pub(super) const CLOCKED: Reaction = Reaction {
    reduce: Reduce::No,
    resend: Resend::Nothing,
    release: false,
    grow: true,
    restart_timer: true,
    partial: false,
    recovered: false,
    deflate: 0,
};
