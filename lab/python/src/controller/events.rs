//! The events of a controller, as objects.

use comity_congestion as congestion;
use comity_congestion::{Arrived, LossCause};
use comity_units::{PacketNumber, Span, Time};
use pyo3::prelude::*;

/// A packet left.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct Sent {
    /// The time of the event, in seconds since the start of the run.
    now_s: f64,
    /// Its payload.
    payload_bytes: u64,
    /// Its size on the wire.
    wire_bytes: u64,
    /// Counts packets of this flow, retransmissions included.
    number: u64,
    /// In flight, this packet included.
    in_flight_bytes: u64,
    /// Whether the flow has nothing more to send now.
    app_limited: bool,
}

impl From<&congestion::Sent> for Sent {
    fn from(sent: &congestion::Sent) -> Self {
        Self {
            now_s: sent.now.as_secs_f64(),
            payload_bytes: sent.payload.get(),
            wire_bytes: sent.wire.get(),
            number: sent.number.get(),
            in_flight_bytes: sent.in_flight.get(),
            app_limited: sent.app_limited,
        }
    }
}

/// New data was acknowledged.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct Ack {
    /// The time of the event, in seconds since the start of the run.
    now_s: f64,
    /// Newly acknowledged, cumulatively or selectively.
    acked_bytes: u64,
    /// The round-trip time, when Karn's rule allows one.
    rtt_s: Option<f64>,
    /// Still in flight.
    in_flight_bytes: u64,
    /// Whether the flow had less to send than it was allowed, so its window is untested.
    app_limited: bool,
    /// Whether the flow is in a fast recovery.
    in_recovery: bool,
    /// How many of the packets arrived with a congestion-experienced mark.
    marked: u32,
    /// How many packets are newly covered.
    packets: u32,
    /// With `needs_rate_samples`.
    sample: Option<Py<RateSample>>,
}

impl Ack {
    pub(super) fn new(py: Python<'_>, ack: &congestion::Ack) -> PyResult<Self> {
        let sample = ack.sample.as_ref().map(RateSample::from);
        Ok(Self {
            now_s: ack.now.as_secs_f64(),
            acked_bytes: ack.acked.get(),
            rtt_s: ack.rtt.map(Span::as_secs_f64),
            in_flight_bytes: ack.in_flight.get(),
            app_limited: ack.app_limited,
            in_recovery: ack.in_recovery,
            marked: ack.marked,
            packets: ack.packets,
            sample: sample.map(|sample| Py::new(py, sample)).transpose()?,
        })
    }
}

/// The delivery rate over the flight of the newest acknowledged packet (BBR).
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct RateSample {
    /// Delivered between the sending and the acknowledgement of the sampled packet.
    delivered_bytes: u64,
    /// The longer of the send and the acknowledgement interval of that data; zero without a rate.
    interval_s: f64,
    /// The time in which that data left; `None` before the first delivery of a flight.
    sending_s: Option<f64>,
    /// Delivered when the sampled packet left.
    prior_delivered_bytes: u64,
    /// Declared lost between the sending and the acknowledgement of the sampled packet.
    lost_bytes: u64,
    /// The flight when the sampled packet left, that packet included.
    sent_in_flight_bytes: u64,
    /// Whether the application limited the flow when the sampled packet left.
    app_limited: bool,
    /// The round trip of the sampled packet, unless it left more than once.
    rtt_s: Option<f64>,
    /// Delivered in all.
    total_delivered_bytes: u64,
    /// Declared lost in all.
    total_lost_bytes: u64,
    /// Delivered by this acknowledgement.
    newly_delivered_bytes: u64,
    /// Declared lost since the last sample.
    newly_lost_bytes: u64,
    /// The flight before this acknowledgement.
    prior_in_flight_bytes: u64,
    /// The flight after it.
    in_flight_bytes: u64,
}

impl From<&congestion::RateSample> for RateSample {
    fn from(sample: &congestion::RateSample) -> Self {
        Self {
            delivered_bytes: sample.delivered.get(),
            interval_s: sample.interval.as_secs_f64(),
            sending_s: sample.sending.map(Span::as_secs_f64),
            prior_delivered_bytes: sample.prior_delivered.get(),
            lost_bytes: sample.lost.get(),
            sent_in_flight_bytes: sample.sent_in_flight.get(),
            app_limited: sample.app_limited,
            rtt_s: sample.rtt.map(Span::as_secs_f64),
            total_delivered_bytes: sample.total_delivered.get(),
            total_lost_bytes: sample.total_lost.get(),
            newly_delivered_bytes: sample.newly_delivered.get(),
            newly_lost_bytes: sample.newly_lost.get(),
            prior_in_flight_bytes: sample.prior_in_flight.get(),
            in_flight_bytes: sample.in_flight.get(),
        }
    }
}

/// An acknowledgement covered the next packets in order.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct InOrderAck {
    /// The time of the event, in seconds since the start of the run.
    now_s: f64,
    /// The packet, as `Sent.number` named it.
    number: u64,
    /// When it arrived, on the clock of the receiver, if that says so.
    arrived_s: Option<f64>,
    /// The tick of that clock.
    tick_s: Option<f64>,
}

impl From<&congestion::InOrderAck> for InOrderAck {
    fn from(ack: &congestion::InOrderAck) -> Self {
        Self {
            now_s: ack.now.as_secs_f64(),
            number: ack.number.get(),
            arrived_s: ack.arrived_at.map(|arrived| arrived.at.as_secs_f64()),
            tick_s: ack.arrived_at.map(|arrived| arrived.tick.as_secs_f64()),
        }
    }
}

/// An acknowledgement lists one packet.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct PacketAcked {
    /// The time of the event, in seconds since the start of the run.
    now_s: f64,
    /// The packet, as `Sent.number` named it.
    number: u64,
    /// When it arrived, on the clock of the receiver, if the acknowledgement says so.
    arrived_s: Option<f64>,
    /// The tick of that clock.
    tick_s: Option<f64>,
}

impl PacketAcked {
    pub(super) fn new(now: Time, number: PacketNumber, arrived_at: Option<Arrived>) -> Self {
        Self {
            now_s: now.as_secs_f64(),
            number: number.get(),
            arrived_s: arrived_at.map(|arrived| arrived.at.as_secs_f64()),
            tick_s: arrived_at.map(|arrived| arrived.tick.as_secs_f64()),
        }
    }
}

/// One packet was declared lost.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct PacketLost {
    /// The time of the event, in seconds since the start of the run.
    now_s: f64,
    /// Its payload.
    size_bytes: u64,
    /// The flight when it left, the packet included.
    sent_in_flight_bytes: u64,
    /// Declared lost since it left, the packet included.
    lost_bytes: u64,
    /// Whether the application limited the flow when it left.
    app_limited: bool,
    /// Delivered in all.
    total_delivered_bytes: u64,
}

impl PacketLost {
    pub(super) fn new(now: Time, loss: &congestion::PacketLoss) -> Self {
        Self {
            now_s: now.as_secs_f64(),
            size_bytes: loss.size.get(),
            sent_in_flight_bytes: loss.sent_in_flight.get(),
            lost_bytes: loss.lost.get(),
            app_limited: loss.app_limited,
            total_delivered_bytes: loss.total_delivered.get(),
        }
    }
}

/// Losses were declared together, once for each episode.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct Loss {
    /// The time of the event, in seconds since the start of the run.
    now_s: f64,
    /// When the newest lost packet was sent.
    sent_at_s: f64,
    /// Declared lost together.
    lost_bytes: u64,
    /// In flight when the loss was found, the lost part included (RFC 5681's FlightSize).
    in_flight_bytes: u64,
    /// The window in force: the minimum of congestion window, with inflation, and receive window.
    window_bytes: u64,
    /// Why: "reordering", "delay" or "mark". A mark is not a loss: the network marked a packet
    /// instead of dropping it.
    cause: &'static str,
    /// Whether the flow restarts with one segment (Tahoe).
    restart: bool,
}

impl From<&congestion::Loss> for Loss {
    fn from(loss: &congestion::Loss) -> Self {
        Self {
            now_s: loss.now.as_secs_f64(),
            sent_at_s: loss.sent_at.as_secs_f64(),
            lost_bytes: loss.lost.get(),
            in_flight_bytes: loss.in_flight.get(),
            window_bytes: loss.window.get(),
            cause: match loss.cause {
                LossCause::Delay => "delay",
                LossCause::Mark => "mark",
                _ => "reordering",
            },
            restart: loss.restart,
        }
    }
}

/// The retransmission timer expired.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct Timeout {
    /// The time of the event, in seconds since the start of the run.
    now_s: f64,
    /// In flight when it expired.
    in_flight_bytes: u64,
    /// The window that was in force.
    window_bytes: u64,
    /// How many times in a row the timer has expired, this time included.
    consecutive: u32,
    /// Whether a duplicate acknowledgement arrived since the last advance or expiry.
    duplicate_seen: bool,
}

impl From<&congestion::Timeout> for Timeout {
    fn from(timeout: &congestion::Timeout) -> Self {
        Self {
            now_s: timeout.now.as_secs_f64(),
            in_flight_bytes: timeout.in_flight.get(),
            window_bytes: timeout.window.get(),
            consecutive: timeout.consecutive,
            duplicate_seen: timeout.duplicate_seen,
        }
    }
}

/// The flow sends again after a pause in which everything was acknowledged.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct Idle {
    /// The time of the event, in seconds since the start of the run.
    now_s: f64,
    /// How long nothing was sent.
    pause_s: f64,
    /// The retransmission timeout; shorter than the pause.
    timeout_s: f64,
    /// The minimum window of a restart.
    initial_window_bytes: u64,
    /// How often the window halves: once for every timeout of the pause after the first.
    halvings: u32,
}

impl From<&congestion::Idle> for Idle {
    fn from(idle: &congestion::Idle) -> Self {
        Self {
            now_s: idle.now.as_secs_f64(),
            pause_s: idle.pause.as_secs_f64(),
            timeout_s: idle.timeout.as_secs_f64(),
            initial_window_bytes: idle.initial_window.get(),
            halvings: idle.halvings(),
        }
    }
}
