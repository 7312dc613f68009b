//! The sending half of a connection.

mod acknowledgement;
mod answers;
mod burst;
mod clock;
mod control;
mod delivery;
mod departure;
mod ecn;
mod flight;
mod group;
mod idle;
mod limited_transmit;
mod obsolete;
mod persist;
mod pipe;
mod rack;
mod repair;
mod reports;
mod skipping;
mod skips;
mod statistics;
mod stream;
mod timers;
mod transfer;
mod waves;
mod window;

use alloc::boxed::Box;

use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::{Controller, Ecn, Report, RttEstimator};
use comity_units::Time;

pub use self::skips::Upcoming;
pub use self::statistics::SenderStatistics;
pub(super) use self::stream::{Acknowledgement, Outgoing, Stream};
use self::transfer::Transfer;
use super::config::Config;
use super::segment::{Flags, Wave};
use super::timeline::Line;

/// Decides what to send, and when to retransmit.
///
/// An end that only receives has a [`Stream`] of a SYN and a FIN and no [`Transfer`]. It needs a
/// third of the memory. In a large simulation half of the ends only receive.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) stream: Stream,
    transfer: Option<Box<Transfer>>,
}

impl Sender {
    /// Creates the half of an end that sends under `controller`, or of one that only receives.
    pub(super) fn new(config: &Config, controller: Option<Box<dyn Controller>>) -> Self {
        let mut stream = Stream::new();
        if controller.is_some() {
            stream.line = config
                .timeline
                .map(|timeline| Box::new(Line::new(timeline, &config.rtt)));
        }
        Self {
            stream,
            transfer: controller.map(|controller| Box::new(Transfer::new(config, controller))),
        }
    }

    /// Whether the end never has data to send.
    pub(super) const fn only_receives(&self) -> bool {
        self.transfer.is_none()
    }

    pub(super) fn set_recovery(&mut self, recovery: RecoveryConfig) {
        if let Some(transfer) = &mut self.transfer {
            transfer.set_recovery(recovery);
        }
    }

    pub(super) fn begin_timer(&mut self, now: Time) {
        if let Some(transfer) = &mut self.transfer {
            transfer.begin_timer(now);
        }
    }

    pub(super) fn begin_event(&mut self) {
        if let Some(transfer) = &mut self.transfer {
            transfer.begin_event();
        }
    }

    pub(super) fn on_acknowledgement(
        &mut self,
        now: Time,
        ack: &Acknowledgement<'_>,
        config: &Config,
    ) {
        match &mut self.transfer {
            Some(transfer) => transfer.on_acknowledgement(&mut self.stream, now, ack, config),
            None => self.stream.on_acknowledgement(now, ack, config),
        }
    }

    /// Processes the report of the receiver's half on the current acknowledgement.
    pub(super) fn on_report(&mut self, now: Time, report: &Report) {
        if let Some(transfer) = &mut self.transfer {
            transfer.on_report(now, report);
        }
    }

    /// The controller's tag on the last segment of [`Sender::poll`].
    pub(super) fn wave(&self) -> Option<Wave> {
        self.transfer.as_ref()?.waves.last()
    }

    /// The ECN codepoint and flags of the last segment of [`Sender::poll`].
    pub(super) fn codepoint(&self) -> (Ecn, Flags) {
        self.transfer
            .as_ref()
            .map_or((Ecn::NotCapable, Flags::NONE), |transfer| {
                transfer.marks.of_last()
            })
    }

    /// When [`Sender::on_timer`] is next due.
    pub(super) fn next_timer(&self) -> Time {
        match &self.transfer {
            Some(transfer) => transfer.next_timer(&self.stream),
            None => self.stream.rto_at,
        }
    }

    pub(super) fn on_timer(&mut self, now: Time, config: &Config) {
        match &mut self.transfer {
            Some(transfer) => transfer.on_timer(&mut self.stream, now, config),
            None => self.stream.on_timer(now, config),
        }
    }

    /// The next segment to send now, if any. One without length and FIN is a window probe.
    #[inline]
    pub(super) fn poll(&mut self, now: Time, config: &Config) -> Option<Outgoing> {
        match &mut self.transfer {
            Some(transfer) => transfer.poll(&mut self.stream, now, config),
            None => self.stream.poll_fin(now, config),
        }
    }

    /// Whether the last segment of [`Sender::poll`] ends a group that leaves as one.
    pub(super) fn ends_group(&self) -> bool {
        self.transfer
            .as_ref()
            .is_some_and(|transfer| transfer.group.is_over())
    }

    /// Whether all data was sent and nothing awaits retransmission.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        match &self.transfer {
            Some(transfer) => transfer.is_idle(&self.stream),
            None => self.stream.next >= self.stream.stream_end(),
        }
    }

    /// Updates the state for a SYN that leaves.
    pub(super) fn on_syn_sent(&mut self, now: Time, config: &Config) {
        match &mut self.transfer {
            Some(transfer) => transfer.on_syn_sent(&mut self.stream, now),
            None => self.stream.on_syn_sent(now, config),
        }
    }

    /// Whether the peer acknowledged a segment before it left.
    pub(super) fn is_contradicted(&self) -> bool {
        let skips = self.transfer.as_ref().and_then(|it| it.skips.as_ref());
        skips.is_some_and(|skips| skips.is_contradicted())
    }

    pub(super) fn set_upcoming(&mut self, upcoming: Upcoming) {
        let transfer = self.transfer.as_mut();
        if let Some(skips) = transfer.and_then(|it| it.skips.as_mut()) {
            skips.upcoming = upcoming;
        }
    }

    /// Whether any byte of a range was skipped and has not left.
    pub(super) fn holds(&self, start: u64, end: u64) -> bool {
        let skips = self.transfer.as_ref().and_then(|it| it.skips.as_ref());
        skips.is_some_and(|skips| skips.holds(start, end))
    }

    pub(super) fn is_recovering(&self) -> bool {
        self.transfer
            .as_ref()
            .is_some_and(|transfer| transfer.repair.is_recovering())
    }

    pub(super) fn congestion_window(&self) -> u64 {
        self.transfer
            .as_ref()
            .map_or(0, |transfer| transfer.control.window())
    }

    pub(super) fn controller(&self) -> Option<&dyn Controller> {
        let transfer = self.transfer.as_ref()?;
        Some(transfer.control.controller())
    }

    pub(super) fn rtt(&self) -> Option<&RttEstimator> {
        self.transfer.as_ref().map(|transfer| &transfer.clock.rtt)
    }

    pub(super) fn statistics(&self) -> SenderStatistics {
        self.transfer
            .as_ref()
            .map_or(SenderStatistics::default(), |transfer| transfer.statistics)
    }

    pub(super) fn heap_memory(&self) -> usize {
        let line = self
            .stream
            .line
            .as_ref()
            .map_or(0, |line| line.heap_memory());
        let transfer = self
            .transfer
            .as_ref()
            .map_or(0, |transfer| size_of::<Transfer>() + transfer.heap_memory());
        line + transfer
    }
}
