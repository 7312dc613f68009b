//! The sender's reports to its controller, beside those of acknowledgements and departures.

use comity_congestion::{Ack, Event, Feedback, Report};
use comity_units::{DataSize, Span, Time};

use super::super::config::Config;
use super::flight::Flight;
use super::stream::{Acknowledgement, Stream};
use super::transfer::Transfer;

impl Transfer {
    /// Processes the report of the receiver's half on the current acknowledgement.
    pub(super) fn on_report(&mut self, now: Time, report: &Report) {
        if !self.waves.on_report(report) {
            return;
        }
        self.control.report(Event::Feedback(&Feedback {
            now,
            report,
            rtt: self.clock.last_sample(),
        }));
    }

    /// Reports the deliveries of an acknowledgement to a controller that measures the delivery
    /// rate, after all other processing.
    pub(super) fn report_delivery(
        &mut self,
        flight: Option<&Flight>,
        stream: &Stream,
        now: Time,
        ack: &Acknowledgement<'_>,
        config: &Config,
    ) {
        let Some(delivery) = &mut self.delivery else {
            return;
        };
        let prior_in_flight = delivery.in_flight();
        delivery.on_arrival(now, stream.una, ack.sacked);
        let is_skipped =
            |start, end| { self.skips.as_ref() }.is_some_and(|skips| skips.holds(start, end));
        if let Some(board) = &self.scoreboard {
            let end = board.lost_below(config.mss, config.recovery.duplicate_threshold);
            delivery.on_lost_below(end, is_skipped);
        }
        for start in flight.into_iter().flat_map(Flight::lost) {
            delivery.on_lost_at(start);
        }
        if self.repair.resends_first() && !is_skipped(stream.una, stream.una + 1) {
            delivery.on_lost_at(stream.una);
        }
        let sample = delivery.sample(now, prior_in_flight);
        for loss in delivery.take_losses() {
            self.control
                .on_event(Event::PacketLost { now, loss: &loss });
        }
        if sample.newly_delivered > DataSize::ZERO || sample.newly_lost > DataSize::ZERO {
            let mss = u64::from(config.mss);
            let is_repairing = delivery.is_repairing(stream.una);
            self.control.report(Event::Ack(&Ack {
                now,
                acked: sample.newly_delivered,
                rtt: sample.rtt,
                in_flight: sample.in_flight,
                app_limited: sample.app_limited,
                in_recovery: self.repair.is_recovering() || is_repairing,
                marked: 0,
                packets: sample.newly_delivered.get().div_ceil(mss) as u32,
                sample: Some(sample),
            }));
        }
        self.check_app_limited(stream, config);
    }

    /// Reports everything undelivered as lost, after an expiry of the retransmission timer.
    pub(super) fn lose_everything(&mut self, stream: &Stream, now: Time) {
        if let Some(delivery) = &mut self.delivery {
            delivery.on_timeout(stream.max);
            for loss in delivery.take_losses() {
                self.control
                    .on_event(Event::PacketLost { now, loss: &loss });
            }
        }
    }

    /// Marks samples of the delivery rate as limited by the application, if they are.
    pub(super) fn check_app_limited(&mut self, stream: &Stream, config: &Config) {
        if let Some(delivery) = &mut self.delivery {
            let unsent = stream.stream_end().saturating_sub(stream.max);
            delivery.check_app_limited(unsent, self.control.window(), config.mss);
        }
    }

    /// Reports the duration of the handshake to a controller that measures the delivery rate.
    pub(super) fn report_handshake(&mut self, now: Time, rtt: Option<Span>) {
        if self.delivery.is_some() {
            self.control.report(Event::Ack(&Ack {
                now,
                acked: DataSize::ZERO,
                rtt,
                in_flight: DataSize::ZERO,
                app_limited: false,
                in_recovery: false,
                marked: 0,
                packets: 0,
                sample: None,
            }));
        }
    }
}
