//! Controllers and estimators against slow, literal readings of their sources.

mod cubic;
mod gcc;
mod iftp;
mod libra;
mod libra_capacity;
mod psp;
mod psp_history;
mod rap;
mod reno;
mod rtt;
mod tcp_real;
mod tfrc_receiver;
mod tfrc_sender;
mod vegas;

use comity_congestion::{Ack, Loss, LossCause, Sent, Timeout};
use comity_units::{DataSize, PacketNumber, Span, Time};

/// An acknowledgement of new data outside of any recovery.
fn ack(now: Time, acked: DataSize, rtt: Span, in_flight: DataSize) -> Ack {
    Ack {
        now,
        acked,
        rtt: Some(rtt),
        in_flight,
        app_limited: false,
        in_recovery: false,
        marked: 0,
        packets: 1,
        sample: None,
    }
}

/// A packet of `size` that leaves while the application has more to send.
fn sent(now: Time, size: DataSize, number: u64, in_flight: DataSize) -> Sent {
    Sent {
        now,
        payload: size,
        wire: size,
        number: PacketNumber::new(number),
        in_flight,
        app_limited: false,
    }
}

/// A loss found by duplicate acknowledgements.
fn loss(now: Time, in_flight: DataSize, window: DataSize) -> Loss {
    Loss {
        now,
        sent_at: now,
        lost: DataSize::ZERO,
        in_flight,
        window,
        cause: LossCause::Reordering,
        restart: false,
    }
}

fn timeout(now: Time, in_flight: DataSize, window: DataSize, consecutive: u32) -> Timeout {
    Timeout {
        now,
        in_flight,
        window,
        consecutive,
        duplicate_seen: false,
    }
}

/// An acknowledgement of what the controller or the application held back.
fn ack_limited(now: Time, rtt: Span, app_limited: bool) -> Ack {
    Ack {
        app_limited,
        ..ack(now, DataSize::new(1_000), rtt, DataSize::new(1_000))
    }
}
