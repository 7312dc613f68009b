//! Controllers with two halves: tags on data segments, reports on acknowledgements.

use alloc::boxed::Box;
use core::num::NonZeroU16;

use comity_congestion::{Arrival, Meter, Report, Tag};
use comity_units::{DataSize, PacketNumber, Time};

use super::super::segment::{IP_HEADER, Options, Segment};
use super::Connection;

impl Connection {
    /// Adds the receiver's half of the peer's controller, which needs
    /// [`Config::metered`](super::Config::metered).
    #[must_use]
    pub fn with_meter(self, meter: Box<dyn Meter>) -> Self {
        Self {
            meter: Some(meter),
            ..self
        }
    }

    /// The receiver's half of the peer's controller, if this end runs one.
    pub fn meter(&self) -> Option<&dyn Meter> {
        self.meter.as_deref()
    }

    /// Processes the options of an accepted segment whose payload begins at `start`.
    #[inline(never)]
    pub(super) fn exchange_measurements(&mut self, now: Time, start: u64, segment: &Segment) {
        // A reordered acknowledgement has an old report. Both ends of a jump map to the same stream
        // offset.
        let stream = &self.sender.stream;
        let acknowledged = self.acknowledged_wire(segment);
        let is_current = acknowledged.is_some_and(|wire| stream.offset(wire) == stream.una);
        if let Some(level) = segment.options.level
            && is_current
        {
            let level = level.get();
            self.sender.on_report(now, &Report::Wave { level });
        }
        if segment.payload == 0 {
            return;
        }
        if let Some(meter) = &mut self.meter {
            let tag = segment.options.wave.map_or(Tag::None, |wave| Tag::Wave {
                wave: wave.wave,
                segments: wave.segments.get(),
                position: wave.position,
            });
            let wire = IP_HEADER + segment.header_length() + segment.payload;
            meter.on_arrival(&Arrival {
                now,
                number: PacketNumber::new(start),
                payload: DataSize::new(u64::from(segment.payload)),
                wire: DataSize::new(u64::from(wire)),
                marked: false,
                tag,
            });
        }
    }

    /// Adds the options that carry this end's tags and reports.
    #[inline(never)]
    pub(super) fn add_measurements(&mut self, now: Time, has_payload: bool, options: &mut Options) {
        options.wave = self.sender.wave().filter(|_| has_payload);
        if let Some(meter) = &mut self.meter
            && let Report::Wave { level } = meter.report(now)
        {
            options.level = NonZeroU16::new(level);
        }
    }

    /// When the meter has a report to send by itself; [`Time::MAX`] for never.
    #[inline]
    pub(super) fn meter_wakeup(&self) -> Time {
        match &self.meter {
            None => Time::MAX,
            Some(meter) => meter.wakeup().unwrap_or(Time::MAX),
        }
    }

    pub(super) fn wake_meter(&mut self, now: Time) {
        if let Some(meter) = &mut self.meter
            && meter.wakeup().is_some_and(|due| due <= now)
        {
            meter.on_wakeup(now);
            self.receiver.ack_now = true;
        }
    }
}
