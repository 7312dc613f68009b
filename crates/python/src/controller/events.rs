//! The events of a controller, as objects.

use comity_congestion as congestion;
use comity_congestion::LossCause;
use comity_units::{Span, Time};
use pyo3::prelude::*;

/// A packet left.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct Sent {
    now_s: f64,
    payload_bytes: u64,
    wire_bytes: u64,
    number: u64,
    in_flight_bytes: u64,
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
    now_s: f64,
    acked_bytes: u64,
    rtt_s: Option<f64>,
    in_flight_bytes: u64,
    app_limited: bool,
    in_recovery: bool,
    marked: u32,
    packets: u32,
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

/// The delivery rate over the flight of a packet.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct RateSample {
    delivered_bytes: u64,
    interval_s: f64,
    sending_s: Option<f64>,
    prior_delivered_bytes: u64,
    lost_bytes: u64,
    sent_in_flight_bytes: u64,
    app_limited: bool,
    rtt_s: Option<f64>,
    total_delivered_bytes: u64,
    total_lost_bytes: u64,
    newly_delivered_bytes: u64,
    newly_lost_bytes: u64,
    prior_in_flight_bytes: u64,
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

/// The arrival of one packet caused an acknowledgement.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct InOrderAck {
    now_s: f64,
    number: u64,
    arrived_s: Option<f64>,
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
    pub(super) now_s: f64,
    pub(super) number: u64,
}

/// One packet was declared lost.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct PacketLost {
    now_s: f64,
    size_bytes: u64,
    sent_in_flight_bytes: u64,
    lost_bytes: u64,
    app_limited: bool,
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

/// Losses were declared together.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct Loss {
    now_s: f64,
    sent_at_s: f64,
    lost_bytes: u64,
    in_flight_bytes: u64,
    window_bytes: u64,
    cause: &'static str,
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
    now_s: f64,
    in_flight_bytes: u64,
    window_bytes: u64,
    consecutive: u32,
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

/// The flow sends again after a pause.
#[pyclass(frozen, get_all, module = "comity.events")]
pub(crate) struct Idle {
    now_s: f64,
    pause_s: f64,
    timeout_s: f64,
    initial_window_bytes: u64,
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
