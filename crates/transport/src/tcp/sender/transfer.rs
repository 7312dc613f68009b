//! Sending data: the parts of a sender with data, and the decisions of its controller.
//!
//! Each sibling module handles one occasion.

use alloc::boxed::Box;
use core::num::NonZeroU16;

use comity_congestion::recovery::{AnyRecovery, Recovery, RecoveryConfig};
use comity_congestion::{Controller, Event, Feedback, Idle, Pacing, Phase, Report, Tag};
use comity_units::{Bytes, Span, Time};

use super::super::config::Config;
use super::super::scoreboard::Scoreboard;
use super::super::segment::Wave;
use super::answers::Answers;
use super::clock::Clock;
use super::delivery::Delivery;
use super::ecn::Marks;
use super::flight::Flight;
use super::group::Group;
use super::persist::Persistence;
use super::stream::{Outgoing, Stream};
use crate::Pacer;

/// Counters of the sending half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStatistics {
    /// Segments sent with payload, SYN or FIN, retransmissions included; no probes and no notices
    /// of a jump.
    pub segments: u64,
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Entries into fast retransmit.
    pub fast_retransmits: u32,
    /// Window reductions caused by congestion marks.
    pub marks: u32,
    /// Round-trip samples taken.
    pub rtt_samples: u64,
    /// The sum of the round-trip samples.
    pub rtt_sum: Span,
}

/// The state of an end with data to send, beside its [`Stream`].
#[derive(Debug)]
pub(super) struct Transfer {
    /// The controller's decision, read after every event.
    pub(super) window: u64,
    /// Present once the controller requests pacing or a wake-up.
    pub(super) pace: Option<Box<Pace>>,
    pub(super) clock: Clock,
    pub(super) persistence: Persistence,
    /// Whether limited transmit releases one segment, and how many it sent beyond the window since
    /// the last advance.
    pub(super) may_release: bool,
    pub(super) released: u32,
    /// Segments sent since the last event, for the burst limits.
    pub(super) burst: u32,
    pub(super) group: Group,
    pub(super) resend_first: bool,
    /// Since the last event, the pacer alone held a segment back.
    pub(super) held_by_pacer: bool,
    /// Since the last advance, and the last expiry of the retransmission timer.
    pub(super) duplicate_seen: bool,
    /// The controller has a half at the receiver and provides a tag for each segment.
    pub(super) is_metered: bool,
    /// The level of the last report, if the controller has kept it since; zero for none.
    pub(super) told_level: u16,
    /// The tag of the last segment.
    pub(super) wave: Option<Wave>,
    /// The recovery is idle: no duplicates arrived and no repair is in progress. The windows alone
    /// decide what to send.
    pub(super) is_quiet: bool,
    pub(super) recovery: AnyRecovery,
    pub(super) controller: Box<dyn Controller>,
    pub(super) scoreboard: Option<Box<Scoreboard>>,
    /// Replaces the scoreboard in a time-based recovery.
    pub(super) flight: Option<Box<Flight>>,
    /// Whether the controller is in slow start.
    pub(super) in_slow_start: bool,
    /// The end of the data sent at the last reduction: another mark on it causes no further
    /// reduction.
    pub(super) reduced_until: u64,
    pub(super) marks: Marks,
    /// The last departure of data and the initial window, for a restart after idle time.
    sent_at: Time,
    initial_window: u64,
    /// Present if the controller needs to know the packet that triggered an acknowledgement.
    pub(super) answers: Option<Box<Answers>>,
    /// Present if the controller needs samples of the delivery rate.
    pub(super) delivery: Option<Box<Delivery>>,
    pub(super) statistics: SenderStatistics,
}

/// The controller's decision beside its window.
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
            may_release: false,
            released: 0,
            burst: 0,
            group: Group::default(),
            resend_first: false,
            held_by_pacer: false,
            duplicate_seen: false,
            is_metered: config.metered,
            told_level: 0,
            wave: None,
            is_quiet: true,
            recovery: AnyRecovery::new(config.recovery),
            answers: controller.needs().in_order_acks.then(Box::default),
            delivery: controller
                .needs()
                .rate_samples
                .then(|| Box::new(Delivery::new())),
            controller,
            scoreboard: None,
            flight: None,
            in_slow_start: false,
            reduced_until: 0,
            marks: Marks::default(),
            sent_at: Time::MAX,
            initial_window: 0,
            statistics: SenderStatistics::default(),
        };
        transfer.set_recovery(config.recovery);
        transfer.obey();
        transfer.initial_window = transfer.window;
        transfer
    }

    /// Reads the controller's decision.
    pub(super) fn obey(&mut self) {
        let decision = self.controller.decision();
        self.window = decision.window.get();
        self.in_slow_start = decision.phase == Phase::SlowStart;
        if self.pace.is_some() || decision.wakeup.is_some() || decision.pacing != Pacing::Unpaced {
            let pace = self.pace.get_or_insert_default();
            pace.pacing = decision.pacing;
            pace.wakeup = decision.wakeup.unwrap_or(Time::MAX);
        }
    }

    pub(super) fn set_recovery(&mut self, recovery: RecoveryConfig) {
        self.recovery = AnyRecovery::new(recovery);
        self.is_quiet = self.recovery.is_quiet();
        self.flight = match &self.recovery {
            AnyRecovery::Rack(_) => Some(Box::new(Flight::new())),
            _ => None,
        };
    }

    /// Prepares for data after a pause: the window may be outdated.
    #[inline]
    pub(super) fn restart_after_idle(&mut self, stream: &Stream, now: Time, config: &Config) {
        if !config.restart_after_idle || stream.has_outstanding() || self.sent_at.is_never() {
            return;
        }
        let pause = now.saturating_since(self.sent_at);
        if pause > self.clock.timeout && stream.next < stream.stream_end() {
            self.controller.on_event(Event::Idle(&Idle {
                now,
                pause,
                timeout: self.clock.timeout,
                initial_window: Bytes::new(self.initial_window),
            }));
            self.obey();
            self.sent_at = now;
        }
    }

    /// Data left.
    #[inline]
    pub(super) const fn note_sent(&mut self, now: Time) {
        self.sent_at = now;
    }

    pub(super) fn is_recovering(&self) -> bool {
        self.recovery.is_recovering()
    }

    /// The heap memory in bytes, without the controller's own.
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
        let flight = self
            .flight
            .as_ref()
            .map_or(0, |flight| size_of::<Flight>() + flight.heap_memory());
        let delivery = self
            .delivery
            .as_ref()
            .map_or(0, |delivery| size_of::<Delivery>() + delivery.heap_memory());
        board + pace + answers + flight + delivery + size_of_val(self.controller.as_ref())
    }

    pub(super) fn begin_event(&mut self) {
        self.group.end();
        self.burst = 0;
        self.held_by_pacer = false;
    }

    /// Like [`Transfer::begin_event`], but for a timer. Most timers reveal nothing about the path:
    /// neither a deadline nor a delayed acknowledgement makes room for segments that a burst limit
    /// held back.
    pub(super) fn begin_timer(&mut self, now: Time) {
        self.group.end();
        if let Some(pace) = &self.pace
            && (self.held_by_pacer || pace.wakeup <= now)
        {
            self.burst = 0;
        }
        self.held_by_pacer = false;
    }

    /// Processes the report of the receiver's half on the current acknowledgement.
    pub(super) fn on_report(&mut self, now: Time, report: &Report) {
        // Every acknowledgement carries a level, which rarely changes.
        if let Report::Wave { level } = *report
            && core::mem::replace(&mut self.told_level, level) == level
        {
            return;
        }
        self.controller.on_event(Event::Feedback(&Feedback {
            now,
            report,
            rtt: self.clock.last_sample(),
        }));
        self.obey();
    }

    /// Requests the controller's tag for a departing segment. This transport carries waves only.
    pub(super) fn take_tag(
        &mut self,
        stream: &Stream,
        now: Time,
        outgoing: Outgoing,
        config: &Config,
    ) {
        if outgoing.length == 0 {
            self.wave = None;
            return;
        }
        if self.runs_dry(stream, config) {
            self.controller.on_event(Event::AppLimited);
        }
        self.wave = match self.controller.tag(now) {
            Tag::Wave {
                wave,
                segments,
                position,
            } => NonZeroU16::new(segments).map(|segments| Wave {
                wave,
                segments,
                position,
            }),
            _ => None,
        };
    }

    /// Whether no segment follows a departing one, for want of data or because the peer's window is
    /// closing. A peer window that is only smaller than the controller's moves on with every
    /// acknowledgement.
    fn runs_dry(&self, stream: &Stream, config: &Config) -> bool {
        let left = stream.stream_end().saturating_sub(stream.next);
        let is_closing = stream.peer_window < self.window.min(stream.peer_window_max) / 2;
        left == 0
            || is_closing && self.room_at(stream, stream.next) < left.min(u64::from(config.mss))
    }
}
