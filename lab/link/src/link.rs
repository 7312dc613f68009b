//! The link for hosts, of the kind that its queue requires.

use alloc::boxed::Box;

use comity_units::Time;

use crate::analytic::AnalyticLink;
use crate::config::LinkConfig;
use crate::error::ConfigError;
use crate::outcome::{Backlog, Outcome, Packet, Passage};
use crate::queued::QueuedLink;
use crate::random::LinkSeed;
use crate::waiting::Decision;

/// A one-way link of either kind.
///
/// The host offers packets, each with a token of its own. It receives the fate of a packet at once,
/// or the link returns the token later. The host then reads [`next_wakeup`](Self::next_wakeup) and
/// calls [`poll`](Self::poll) until it returns `None`. Times must not decrease over all calls.
#[derive(Clone, Debug)]
pub enum Link<T: Copy> {
    /// Decides the fate of a packet at the offer.
    Analytic(AnalyticLink),
    /// Keeps packets in a queue and decides when they leave it.
    Queued(Box<QueuedLink<T>>),
}

impl<T: Copy> Link<T> {
    /// Creates an unused link: an [`AnalyticLink`] if the queue allows it, because it is cheaper.
    /// Every random stream is named below `seed`.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn new(config: &LinkConfig, seed: impl Into<LinkSeed>) -> Result<Self, ConfigError> {
        if config.queue.decides_on_arrival() {
            AnalyticLink::new(config, seed).map(Self::Analytic)
        } else {
            QueuedLink::new(config, seed).map(|link| Self::Queued(Box::new(link)))
        }
    }

    /// Whether [`offer`](Self::offer) always returns the fate of the packet.
    pub const fn decides_at_once(&self) -> bool {
        matches!(self, Self::Analytic(_))
    }

    /// [`AnalyticLink::offer_another`]; `None` from a queued link.
    #[inline(always)]
    pub fn offer_another(&mut self, now: Time, bytes: u32) -> Option<Passage> {
        match self {
            Self::Analytic(link) => link.offer_another(now, bytes),
            Self::Queued(_) => None,
        }
    }

    /// Offers a packet. Returns its fate, or `None` if the packet waits; [`poll`](Self::poll) then
    /// returns its token later.
    pub fn offer(&mut self, now: Time, packet: Packet, token: T) -> Option<Outcome> {
        match self {
            Self::Analytic(link) => Some(link.offer(now, packet)),
            Self::Queued(link) => link.offer(now, packet, token).err().map(Outcome::Dropped),
        }
    }

    /// When [`poll`](Self::poll) next has a decision, unless something else happens first.
    pub fn next_wakeup(&self) -> Option<Time> {
        match self {
            Self::Analytic(_) => None,
            Self::Queued(link) => link.next_wakeup(),
        }
    }

    /// The next packet with a fate decided by `now`, in the order of the decisions.
    pub fn poll(&mut self, now: Time) -> Option<Decision<T>> {
        match self {
            Self::Analytic(_) => None,
            Self::Queued(link) => link.poll(now),
        }
    }

    /// Whether arrivals, duplicates included, are in the order of the offers. FQ-CoDel keeps the
    /// order only within a flow.
    pub fn keeps_order(&self) -> bool {
        match self {
            Self::Analytic(link) => link.keeps_order(),
            Self::Queued(link) => link.keeps_order(),
        }
    }

    /// The unsent backlog at `now`.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        match self {
            Self::Analytic(link) => link.backlog(now),
            Self::Queued(link) => link.backlog(now),
        }
    }
}
