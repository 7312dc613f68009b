//! The receiver's reports besides acknowledgements, and when they are due.

use alloc::boxed::Box;

use comity_congestion::{Arrival, Meter, Report};
use comity_units::Time;

use super::intervals::{MEASURE_INTERVAL, REPORT_ALONE, REPORT_WITH_ACK};

/// The room that a packet reserves for a meter's report: its type, kind and fields.
const FEEDBACK_ROOM: usize = 18;

/// The receiver's half of the peer's controller, and the times of receiver reports and round-trip
/// measurements.
#[derive(Debug)]
pub(super) struct Reports {
    meter: Option<Box<dyn Meter>>,
    /// When the last receiver report left.
    reported_at: Time,
    /// When this end last measured a round-trip time.
    measured_at: Time,
    /// Whether sections have arrived since.
    has_sections: bool,
}

impl Reports {
    pub(super) fn new(meter: Option<Box<dyn Meter>>, now: Time) -> Self {
        Self {
            meter,
            reported_at: now,
            measured_at: now,
            has_sections: false,
        }
    }

    // ---------------------------------------------------------------- the meter

    /// An ACK-eliciting packet arrived. Returns whether the meter requests a report now.
    pub(super) fn on_arrival(&mut self, arrival: &Arrival) -> bool {
        if let Some(meter) = &mut self.meter {
            meter.on_arrival(arrival);
        }
        self.on_timer(arrival.now)
    }

    /// When [`Reports::on_timer`] is next due.
    pub(super) fn next_timer(&self) -> Time {
        let wakeup = self.meter.as_ref().and_then(|meter| meter.wakeup());
        wakeup.unwrap_or(Time::MAX)
    }

    /// Handles the expiry of the timer. Returns whether the meter requests a report now.
    pub(super) fn on_timer(&mut self, now: Time) -> bool {
        match &mut self.meter {
            Some(meter) if meter.wakeup().is_some_and(|due| due <= now) => {
                meter.on_wakeup(now);
                true
            }
            _ => false,
        }
    }

    /// The room that a packet needs for [`Reports::feedback`]. The meter returns some reports only
    /// once, so a packet without this room must not request one.
    pub(super) const fn feedback_room(&self) -> usize {
        if self.meter.is_some() {
            FEEDBACK_ROOM
        } else {
            0
        }
    }

    /// The meter's report.
    pub(super) fn feedback(&mut self, now: Time) -> Report {
        self.meter
            .as_mut()
            .map_or(Report::None, |meter| meter.report(now))
    }

    // ---------------------------------------------------------------- receiver reports

    /// When the next receiver report leaves; [`Time::MAX`] for never. `news` says whether an
    /// acknowledgement waits, which the report then accompanies. `received_at` is the arrival of
    /// the last packet. Reports end once one left [`REPORT_ALONE`] or more after that arrival.
    pub(super) fn report_at(&self, received_at: Time, news: bool) -> Time {
        let interval = match news {
            true => REPORT_WITH_ACK,
            false => REPORT_ALONE,
        };
        match received_at + REPORT_ALONE > self.reported_at {
            true => self.reported_at + interval,
            false => Time::MAX,
        }
    }

    pub(super) const fn on_report_sent(&mut self, now: Time) {
        self.reported_at = now;
    }

    // ---------------------------------------------------------------- round trips

    /// Bytes of sections arrived.
    pub(super) const fn on_sections(&mut self) {
        self.has_sections = true;
    }

    /// An acknowledgement measured a round-trip time.
    pub(super) const fn on_round_trip(&mut self, now: Time) {
        self.measured_at = now;
    }

    /// Whether the packet that leaves now must be ACK-eliciting, at most once in an interval. An
    /// end that only receives has no other way to measure the round-trip time.
    pub(super) fn takes_measurement(&mut self, now: Time) -> bool {
        if !self.has_sections || now < self.measured_at + MEASURE_INTERVAL {
            return false;
        }
        self.measured_at = now;
        self.has_sections = false;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_congestion::Tag;
    use comity_units::{DataSize, PacketNumber, Span};

    const START: Time = Time::from_secs(1);

    /// Requests a report 50 ms after each arrival.
    #[derive(Debug, Default)]
    struct Late {
        due: Option<Time>,
        reports: u16,
    }

    impl Meter for Late {
        fn on_arrival(&mut self, arrival: &Arrival) {
            self.due = self.due.or(Some(arrival.now + Span::from_millis(50)));
        }

        fn report(&mut self, _now: Time) -> Report {
            self.reports += 1;
            Report::Wave {
                level: self.reports,
            }
        }

        fn wakeup(&self) -> Option<Time> {
            self.due
        }

        fn on_wakeup(&mut self, _now: Time) {
            self.due = None;
        }
    }

    fn arrival(now: Time) -> Arrival {
        Arrival {
            now,
            number: PacketNumber::ZERO,
            payload: DataSize::new(1_000),
            wire: DataSize::new(1_050),
            marked: false,
            tag: Tag::None,
        }
    }

    #[test]
    fn the_meter_is_woken_by_the_timer_or_by_an_arrival_that_finds_it_due() {
        let mut reports = Reports::new(Some(Box::new(Late::default())), START);
        assert_eq!(reports.next_timer(), Time::MAX);
        assert!(!reports.on_arrival(&arrival(START)));
        let due = START + Span::from_millis(50);
        assert_eq!(reports.next_timer(), due);
        assert!(!reports.on_timer(START));
        assert!(reports.on_timer(due));
        assert!(!reports.on_timer(due), "once");
        reports.on_arrival(&arrival(due));
        assert!(reports.on_arrival(&arrival(due + Span::from_millis(50))));
        assert_eq!(reports.feedback(due), Report::Wave { level: 1 });
    }

    #[test]
    fn without_a_meter_there_is_no_feedback() {
        let mut reports = Reports::new(None, START);
        assert!(!reports.on_arrival(&arrival(START)));
        assert_eq!(reports.feedback(START), Report::None);
        assert_eq!(reports.feedback_room(), 0);
    }

    #[test]
    fn receiver_reports_end_after_one_without_arrivals() {
        let mut reports = Reports::new(None, START);
        let first = START + REPORT_ALONE;
        assert_eq!(reports.report_at(START, false), first);
        reports.on_report_sent(first);
        assert_eq!(reports.report_at(START, false), Time::MAX);
        let second = first + REPORT_ALONE;
        assert_eq!(
            reports.report_at(START + Span::from_nanos(1), false),
            second
        );
    }

    #[test]
    fn a_receiver_measures_once_in_an_interval_while_sections_come() {
        let mut reports = Reports::new(None, START);
        let due = START + MEASURE_INTERVAL;
        assert!(!reports.takes_measurement(due), "no section has come");
        reports.on_sections();
        assert!(!reports.takes_measurement(due.saturating_sub(Span::from_nanos(1))));
        assert!(reports.takes_measurement(due));
        reports.on_sections();
        assert!(!reports.takes_measurement(due));
        // Other round-trip measurements count as well.
        reports.on_round_trip(due + Span::from_millis(1));
        assert!(!reports.takes_measurement(due + MEASURE_INTERVAL));
    }
}
