//! The controller and its last decision.

use alloc::boxed::Box;

use comity_congestion::{Controller, Decision, Event, Pacer, Pacing, Phase, Sent, Tag};
use comity_units::{DataSize, Rate, Time};

/// The controller, and the parts of its decision that every departure reads.
///
/// The copy of the decision is from the last [`Control::apply`]. The sender may report several
/// events before it applies the decision.
#[derive(Debug)]
pub(super) struct Control {
    controller: Box<dyn Controller>,
    window: u64,
    /// Present once the controller requests pacing or a wake-up.
    pace: Option<Box<Pace>>,
    in_slow_start: bool,
}

/// The controller's decision beside its window.
#[derive(Debug, Default)]
struct Pace {
    pacing: Pacing,
    /// [`Time::MAX`] for never.
    wakeup: Time,
    pacer: Pacer,
}

impl Pace {
    fn release_at(&self) -> Time {
        self.pacer.release_at(self.pacing)
    }
}

impl Control {
    pub(super) fn new(controller: Box<dyn Controller>) -> Self {
        let mut control = Self {
            controller,
            window: 0,
            pace: None,
            in_slow_start: false,
        };
        control.apply();
        control
    }

    /// Applies the controller's decision.
    pub(super) fn apply(&mut self) {
        let decision = self.controller.decision();
        self.window = decision.window.get();
        self.in_slow_start = decision.phase == Phase::SlowStart;
        if self.pace.is_some() || decision.wakeup.is_some() || decision.pacing != Pacing::Unpaced {
            let pace = self.pace.get_or_insert_default();
            pace.pacing = decision.pacing;
            pace.wakeup = decision.wakeup.unwrap_or(Time::MAX);
        }
    }

    /// Reports an event. The decision does not change before [`Control::apply`].
    #[inline]
    pub(super) fn on_event(&mut self, event: Event<'_>) {
        self.controller.on_event(event);
    }

    /// Reports an event and applies the decision.
    #[inline]
    pub(super) fn report(&mut self, event: Event<'_>) {
        self.controller.on_event(event);
        self.apply();
    }

    /// Reports a departing packet to the pacer and to the controller.
    #[inline]
    pub(super) fn on_sent(&mut self, sent: &Sent) {
        if let Some(pace) = &mut self.pace {
            pace.pacer
                .on_sent(sent.now, sent.wire, pace.pacing, Rate::MAX, DataSize::ZERO);
        }
        self.controller.on_event(Event::Sent(sent));
        // A controller that paces may set its calendar or its wake-up by departures.
        if self
            .pace
            .as_ref()
            .is_some_and(|pace| pace.pacing != Pacing::Unpaced)
        {
            self.apply();
        }
    }

    /// Reports [`Event::Wakeup`] if the controller's wake-up is due.
    #[inline]
    pub(super) fn wake_up(&mut self, now: Time) {
        if self.is_wakeup_due(now) {
            self.report(Event::Wakeup(now));
        }
    }

    /// The tag of a departing segment.
    pub(super) fn tag(&mut self, now: Time) -> Tag {
        self.controller.tag(now)
    }

    pub(super) fn controller(&self) -> &dyn Controller {
        self.controller.as_ref()
    }

    /// All of the current decision.
    pub(super) fn decision(&self) -> Decision {
        self.controller.decision()
    }

    /// The congestion window in bytes.
    #[inline]
    pub(super) const fn window(&self) -> u64 {
        self.window
    }

    pub(super) const fn is_in_slow_start(&self) -> bool {
        self.in_slow_start
    }

    /// Whether the controller ever requested pacing or a wake-up.
    #[inline]
    pub(super) const fn has_pace(&self) -> bool {
        self.pace.is_some()
    }

    /// Whether the pacer holds every packet back.
    #[inline]
    pub(super) fn is_pacer_closed(&self, now: Time) -> bool {
        self.pace
            .as_ref()
            .is_some_and(|pace| pace.release_at() > now)
    }

    #[inline]
    pub(super) fn is_wakeup_due(&self, now: Time) -> bool {
        self.pace.as_ref().is_some_and(|pace| pace.wakeup <= now)
    }

    /// When the controller needs the next call: its wake-up, and the end of the pacer's pause if
    /// the pacer holds a packet back.
    #[inline]
    pub(super) fn next_timer(&self, held_by_pacer: bool) -> Time {
        match &self.pace {
            None => Time::MAX,
            Some(pace) if held_by_pacer => pace.wakeup.min(pace.release_at()),
            Some(pace) => pace.wakeup,
        }
    }

    /// The heap memory in bytes, without allocations inside the controller.
    pub(super) fn heap_memory(&self) -> usize {
        let pace = self.pace.as_ref().map_or(0, |_| size_of::<Pace>());
        pace + size_of_val(self.controller.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::PacketNumber;

    /// Its window is the number of events; it paces once it has seen a departure.
    #[derive(Debug, Default)]
    struct Counting {
        events: u64,
        pacing: Pacing,
        wakeup: Option<Time>,
    }

    impl Controller for Counting {
        fn on_event(&mut self, event: Event<'_>) {
            self.events += 1;
            match event {
                Event::Sent(sent) => {
                    self.pacing = Pacing::At(sent.now + sent.now.saturating_since(Time::ZERO));
                }
                Event::Recovered => self.wakeup = Some(Time::from_millis(50)),
                _ => {}
            }
        }

        fn decision(&self) -> Decision {
            Decision {
                window: DataSize::new(self.events),
                pacing: self.pacing,
                wakeup: self.wakeup,
                ..Decision::default()
            }
        }
    }

    fn departure(millis: u64) -> Sent {
        Sent {
            now: Time::from_millis(millis),
            payload: DataSize::new(1_000),
            wire: DataSize::new(1_040),
            number: PacketNumber::new(1),
            in_flight: DataSize::ZERO,
            app_limited: false,
        }
    }

    #[test]
    fn the_window_changes_when_the_decision_is_applied() {
        let mut control = Control::new(Box::new(Counting::default()));
        control.on_event(Event::AppLimited);
        assert_eq!(control.window(), 0);
        control.report(Event::AppLimited);
        assert_eq!(control.window(), 2);
        // Without pacing, a departure changes nothing until the next report.
        control.on_sent(&departure(10));
        assert_eq!((control.window(), control.has_pace()), (2, false));
        assert_eq!(control.next_timer(true), Time::MAX);
    }

    #[test]
    fn a_pacing_controller_may_decide_at_each_departure() {
        let mut control = Control::new(Box::new(Counting::default()));
        control.on_sent(&departure(10));
        control.apply();
        assert!(control.is_pacer_closed(Time::from_millis(19)));
        assert!(!control.is_pacer_closed(Time::from_millis(20)));
        assert_eq!(control.next_timer(false), Time::MAX);
        assert_eq!(control.next_timer(true), Time::from_millis(20));
        control.on_sent(&departure(20));
        assert_eq!(control.next_timer(true), Time::from_millis(40));
    }

    #[test]
    fn a_wake_up_is_reported_when_it_is_due() {
        let mut control = Control::new(Box::new(Counting::default()));
        control.report(Event::Recovered);
        assert_eq!(control.next_timer(true), Time::ZERO, "nothing is paced");
        assert_eq!(control.next_timer(false), Time::from_millis(50));
        control.wake_up(Time::from_millis(49));
        assert_eq!(control.window(), 1);
        control.wake_up(Time::from_millis(50));
        assert_eq!(control.window(), 2);
    }
}
