//! Sending data: the parts of a sender that has some, and what its growth law decides.
//!
//! The other modules beside this one say what a sender does, each for one occasion.

use alloc::boxed::Box;
use core::num::NonZeroU16;

use comity_congestion::recovery::{AnyRecovery, Recovery, RecoveryConfig};
use comity_congestion::{Controller, Feedback, Pacing, Report, Tag};
use comity_units::{Span, Time};

use super::super::config::Config;
use super::super::scoreboard::Scoreboard;
use super::super::segment::Wave;
use super::answers::Answers;
use super::clock::Clock;
use super::persist::Persistence;
use super::stream::Outgoing;
use crate::Pacer;

/// Counters of the sending half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStatistics {
    /// Segments with payload, SYN or FIN sent, repeated ones included; no probes and no notices of a jump.
    pub segments: u64,
    /// Segments that were sent for the second time or more.
    pub retransmitted: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Entries into fast retransmit.
    pub fast_retransmits: u32,
    /// Round-trip samples taken.
    pub rtt_samples: u64,
    /// The sum of the round-trip samples.
    pub rtt_sum: Span,
}

/// What an end that has data to send keeps beside its [`Stream`].
#[derive(Debug)]
pub(super) struct Transfer {
    /// The controller's decision, read after every event.
    pub(super) window: u64,
    /// Present once the controller has asked to pace or to be woken.
    pub(super) pace: Option<Box<Pace>>,
    pub(super) clock: Clock,
    pub(super) persistence: Persistence,
    /// The window edge up to which limited transmit releases one segment, and how often it did so since the
    /// last advance.
    pub(super) release_edge: u64,
    pub(super) released: u32,
    /// Segments sent since the last event, for the burst limits.
    pub(super) burst: u32,
    pub(super) resend_first: bool,
    /// Since the last event the pacer alone held a segment back.
    pub(super) held_by_pacer: bool,
    pub(super) duplicate_since_arming: bool,
    /// The controller has a half at the receiver and is asked for a tag for each segment.
    pub(super) is_metered: bool,
    /// The tag of the segment that left last.
    pub(super) wave: Option<Wave>,
    /// The recovery has nothing to say: no duplicates were seen and nothing is being mended, so that the
    /// windows alone decide what may be sent.
    pub(super) is_quiet: bool,
    pub(super) recovery: AnyRecovery,
    pub(super) controller: Box<dyn Controller>,
    pub(super) scoreboard: Option<Box<Scoreboard>>,
    /// Present when the controller asks for answers.
    pub(super) answers: Option<Box<Answers>>,
    pub(super) statistics: SenderStatistics,
}

/// What a controller decides beside its window.
#[derive(Debug, Default)]
pub(super) struct Pace {
    pub(super) pacing: Pacing,
    /// [`Time::MAX`] for never.
    pub(super) wakeup: Time,
    pub(super) pacer: Pacer,
}

impl Pace {
    pub(super) fn release_at(&self) -> Time {
        self.pacer.release_at(self.pacing)
    }
}

impl Transfer {
    pub(super) fn new(config: &Config, controller: Box<dyn Controller>) -> Self {
        let mut transfer = Self {
            window: 0,
            pace: None,
            clock: Clock::new(config),
            persistence: Persistence::OFF,
            release_edge: 0,
            released: 0,
            burst: 0,
            resend_first: false,
            held_by_pacer: false,
            duplicate_since_arming: false,
            is_metered: config.metered,
            wave: None,
            is_quiet: true,
            recovery: AnyRecovery::new(config.recovery),
            answers: controller.needs_answers().then(Box::default),
            controller,
            scoreboard: None,
            statistics: SenderStatistics::default(),
        };
        transfer.obey();
        transfer
    }

    /// Reads the controller's decision.
    pub(super) fn obey(&mut self) {
        let decision = self.controller.decision();
        self.window = decision.window.get();
        let wakeup = self.controller.wakeup();
        if self.pace.is_some() || wakeup.is_some() || decision.pacing != Pacing::Unpaced {
            let pace = self.pace.get_or_insert_default();
            pace.pacing = decision.pacing;
            pace.wakeup = wakeup.unwrap_or(Time::MAX);
        }
    }

    pub(super) fn set_recovery(&mut self, recovery: RecoveryConfig) {
        self.recovery = AnyRecovery::new(recovery);
        self.is_quiet = self.recovery.is_quiet();
    }

    pub(super) fn is_recovering(&self) -> bool {
        self.recovery.is_recovering()
    }

    /// The memory held on the heap, without the controller's own.
    pub(super) fn heap_memory(&self) -> usize {
        let board = self
            .scoreboard
            .as_ref()
            .map_or(0, |board| size_of::<Scoreboard>() + board.heap_memory());
        let pace = self.pace.as_ref().map_or(0, |_| size_of::<Pace>());
        let answers = self
            .answers
            .as_ref()
            .map_or(0, |answers| size_of::<Answers>() + answers.heap_memory());
        board + pace + answers + size_of_val(self.controller.as_ref())
    }

    pub(super) fn begin_event(&mut self) {
        self.burst = 0;
        self.held_by_pacer = false;
    }

    /// The receiver's half reported with the acknowledgement that was taken in last.
    pub(super) fn on_report(&mut self, now: Time, report: &Report) {
        self.controller.on_feedback(&Feedback {
            now,
            report,
            rtt: self.clock.last_sample(),
        });
        self.obey();
    }

    /// Asks the controller what the receiver should know of the segment that leaves. This transport has room
    /// for waves only.
    pub(super) fn take_tag(&mut self, now: Time, outgoing: Outgoing) {
        self.wave = match self.controller.tag(now) {
            Tag::Wave {
                wave,
                segments,
                position,
            } if outgoing.length > 0 => NonZeroU16::new(segments).map(|segments| Wave {
                wave,
                segments,
                position,
            }),
            _ => None,
        };
    }
}
