//! The parts of a sender with data.
//!
//! Each part keeps its own rules. The sibling modules that import [`Transfer`] compose the parts,
//! each for one occasion: an acknowledgement, a departure, a timer.

use alloc::boxed::Box;

use comity_congestion::Controller;
use comity_congestion::recovery::RecoveryConfig;
use comity_units::Time;

use super::super::config::Config;
use super::super::scoreboard::Scoreboard;
use super::answers::Answers;
use super::burst::Burst;
use super::clock::Clock;
use super::control::Control;
use super::delivery::Delivery;
use super::ecn::Marks;
use super::flight::Flight;
use super::group::Group;
use super::idle::IdleRestart;
use super::limited_transmit::LimitedTransmit;
use super::persist::Persistence;
use super::repair::Repair;
use super::skips::Skips;
use super::statistics::SenderStatistics;
use super::stream::Stream;
use super::waves::Waves;

/// The state of an end with data to send, beside its [`Stream`].
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) control: Control,
    pub(super) clock: Clock,
    pub(super) repair: Repair,
    pub(super) scoreboard: Option<Box<Scoreboard>>,
    /// Replaces the scoreboard in a time-based recovery.
    pub(super) flight: Option<Box<Flight>>,
    pub(super) limited_transmit: LimitedTransmit,
    pub(super) burst: Burst,
    pub(super) group: Group,
    pub(super) idle: IdleRestart,
    pub(super) persistence: Persistence,
    pub(super) waves: Waves,
    pub(super) marks: Marks,
    /// Present if the controller needs to know the packet that triggered an acknowledgement.
    pub(super) answers: Option<Box<Answers>>,
    /// Present if the controller needs samples of the delivery rate.
    pub(super) delivery: Option<Box<Delivery>>,
    /// Present if the sender tests the peer.
    pub(super) skips: Option<Box<Skips>>,
    pub(super) statistics: SenderStatistics,
}

impl Transfer {
    pub(super) fn new(config: &Config, controller: Box<dyn Controller>) -> Self {
        let needs = controller.needs();
        let control = Control::new(controller);
        let mut transfer = Self {
            clock: Clock::new(config),
            repair: Repair::new(config.recovery),
            scoreboard: None,
            flight: None,
            limited_transmit: LimitedTransmit::default(),
            burst: Burst::default(),
            group: Group::default(),
            idle: IdleRestart::new(control.window()),
            persistence: Persistence::OFF,
            waves: Waves::new(config.metered),
            marks: Marks::default(),
            answers: needs.in_order_acks.then(Box::default),
            delivery: needs.rate_samples.then(|| Box::new(Delivery::new())),
            skips: config.skip_segments.map(|seed| Box::new(Skips::new(seed))),
            statistics: SenderStatistics::default(),
            control,
        };
        transfer.set_recovery(config.recovery);
        transfer
    }

    /// Replaces the recovery, at the end of the handshake.
    pub(super) fn set_recovery(&mut self, recovery: RecoveryConfig) {
        self.repair.set(recovery);
        self.flight = self.repair.is_by_time().then(|| Box::new(Flight::new()));
    }

    /// Begins an event that reveals something about the path.
    pub(super) fn begin_event(&mut self) {
        self.group.end();
        self.burst.begin();
    }

    pub(super) fn begin_timer(&mut self, now: Time) {
        self.group.end();
        self.burst.on_timer(self.control.is_wakeup_due(now));
    }

    /// Starts the persist timer if only a probe can make progress.
    pub(super) fn persist(&mut self, stream: &Stream, now: Time, config: &Config) {
        let window = self.control.window();
        self.persistence
            .start(stream, now, window, &self.clock, config);
    }

    /// Makes a notice due if only a notice can report a jump to the peer.
    #[inline]
    pub(super) fn notify(&mut self, stream: &Stream, now: Time, config: &Config) {
        let window = self.control.window();
        self.persistence
            .notify(stream, now, window, &self.clock, config);
    }

    /// The heap memory in bytes, without allocations inside the controller.
    pub(super) fn heap_memory(&self) -> usize {
        let board = self
            .scoreboard
            .as_ref()
            .map_or(0, |board| size_of::<Scoreboard>() + board.heap_memory());
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
        board + answers + flight + delivery + self.control.heap_memory()
    }
}
