//! The interface of a recovery: its trait, the events that it takes and the reactions to them.

use core::fmt::Debug;

use crate::TimeoutRepair;

/// How a byte-sequence transport finds and repairs losses.
pub trait Recovery: Debug {
    /// An acknowledgement repeated the last one while data was outstanding.
    fn on_duplicate(&mut self, event: &Duplicate) -> Reaction;

    /// The cumulative acknowledgement moved.
    fn on_advance(&mut self, event: &Advance) -> Reaction;

    /// The retransmission timer expired, with data up to `max` outstanding, and the controller
    /// wants this repair ([`crate::Decision::timeout_repair`]). Returns the retransmission.
    /// Duplicates for data below `max` begin no recovery, if the recovery is
    /// [bugfix](super::RecoveryConfig::bugfix): a hole that the repair leaves waits for the timer.
    fn on_timeout(&mut self, max: u64, repair: TimeoutRepair) -> Resend;

    /// The losses or the timeout of the last reaction were spurious.
    fn on_spurious(&mut self) {}

    /// Whether a fast recovery is under way.
    fn is_recovering(&self) -> bool;

    /// Whether nothing counts as lost: no duplicates counted, no recovery.
    fn is_quiet(&self) -> bool;

    /// The usable window minus the congestion window, in bytes: duplicate acknowledgements show
    /// that this much has left the network. Negative while a partial acknowledgement deflates the
    /// window.
    fn inflation(&self) -> i64;

    /// The most new segments that one event may release while recovering.
    fn burst_limit(&self) -> Option<u32> {
        None
    }

    /// How a transport with selective acknowledgements decides what may be sent while recovering;
    /// `None` when the window alone decides.
    fn pipe_rule(&self) -> Option<PipeRule> {
        None
    }
}

/// A duplicate acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The requested offset.
    pub una: u64,
    /// The offset after the highest byte ever sent.
    pub max: u64,
    /// The payload of a full segment.
    pub mss: u32,
    /// Whether selective acknowledgements alone already prove the first outstanding segment lost
    /// (`IsLost` of RFC 6675, section 4), or the clock some segment (RFC 8985).
    pub first_is_lost: bool,
}

/// An advance of the cumulative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    /// Where it stands.
    pub to: u64,
    /// How many bytes left the window with it. In TCP these are all bytes that it passed. If
    /// another packet replaced a lost one, the lost one does not count.
    pub acked: u64,
    /// The payload of a full segment.
    pub mss: u32,
    /// Whether it may answer a retransmission of this recovery: whether the first byte that it
    /// passed was retransmitted. TCP always retransmits that byte when a recovery begins. But a
    /// receiver may skip abandoned bytes, and then acknowledges the packets behind them one by one.
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
    /// Tell the controller of the acknowledged data as clocking new data out.
    pub grow: bool,
    /// Restart the retransmission timer.
    pub restart_timer: bool,
    /// A partial acknowledgement: no round-trip sample is taken from it.
    pub partial: bool,
    /// The recovery is over with this event.
    pub recovered: bool,
    /// Bytes that the congestion window loses for good ([`crate::Event::Deflated`]).
    pub deflate: u64,
}

/// The events for the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reduce {
    /// Nothing.
    #[default]
    No,
    /// A loss: half a window.
    Halve,
    /// A loss after which the flow begins again from one segment.
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
    /// Fall and Floyd 1996 and ns-2: a counter that is set on entry to the segments outstanding
    /// less [`RecoveryConfig::duplicate_threshold`](super::RecoveryConfig::duplicate_threshold),
    /// goes down by one for each acknowledgement that does not advance (for a partial one by two,
    /// or by one if it answers [no repair](Advance::is_repair)) and up by one for each segment sent
    /// after the first. The first, which the entry itself sends again, is not added: the lost
    /// segment, whose place it takes, is still counted. Any hole below the highest selectively
    /// acknowledged byte is retransmitted.
    Counter,
}

/// The reaction to an acknowledgement that clocks new data: grow and restart the timer.
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
