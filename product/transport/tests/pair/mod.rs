//! A greedy sender, its receiver, and a path with a scripted fate for each packet.

use comity_congestion::Ecn;
use comity_transport::datagram::{Config, Connection, Transmit};
use comity_transport::timeline::{DropPolicy, Elided, Importance, Outgoing, Reliability, StreamId};
use comity_units::{PacketNumber, Span, Time};

/// The payload of data packets; all other packets are shorter.
pub(crate) const PAYLOAD: u32 = 1_000;

pub(crate) fn config() -> Config {
    Config {
        payload: PAYLOAD,
        pad: true,
        reliability: Reliability::None,
        drop: DropPolicy::Never,
        // The receiver sends ACKs when its meter has a report or its credit changes; the latter
        // repeat the last report.
        ack_frequency: 1_000,
        ack_delay: Span::from_millis(500),
        keep_alive: Span::from_secs(600),
        idle_timeout: Span::from_secs(600),
        ecn: false,
        ..Config::default()
    }
}

/// Submits `bytes` at end 0. `arrival` maps each packet's departure and sending end to its arrival;
/// `None` loses it.
pub(crate) fn play(
    mut ends: [Connection<Elided>; 2],
    bytes: u32,
    until: Time,
    mut arrival: impl FnMut(Time, usize, &Transmit) -> Option<Time>,
) {
    ends[0]
        .submit(
            Time::ZERO,
            Outgoing {
                stream: StreamId(0),
                importance: Importance(9),
                source_time: Time::ZERO,
                deadline: Time::MAX,
                needs: None,
                payload: Elided(bytes),
            },
        )
        .unwrap();
    let mut way: Vec<(Time, usize, PacketNumber, Vec<u8>)> = Vec::new();
    let mut now = Time::ZERO;
    while now <= until {
        way.sort_by_key(|packet| packet.0);
        while way.first().is_some_and(|packet| packet.0 <= now) {
            let (_, to, number, bytes) = way.remove(0);
            ends[to]
                .on_packet(now, number, Ecn::NotCapable, &bytes)
                .unwrap();
        }
        for (from, end) in ends.iter_mut().enumerate() {
            if end.next_timer() <= now {
                end.on_timer(now);
            }
            let mut bytes = Vec::new();
            while let Some(sent) = end.poll_transmit(now, &mut bytes) {
                let bytes = std::mem::take(&mut bytes);
                if let Some(at) = arrival(now, from, &sent) {
                    way.push((at, 1 - from, sent.number, bytes));
                }
            }
            while end.poll_delivery(now).is_some() {}
            while end.poll_event().is_some() {}
        }
        let arrival = way.iter().map(|packet| packet.0).min().unwrap_or(Time::MAX);
        let timers = ends.iter().map(Connection::next_timer).min();
        let next = timers.unwrap_or(Time::MAX).min(arrival);
        now = next.max(now + Span::from_nanos(1));
    }
}
