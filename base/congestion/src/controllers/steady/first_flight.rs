//! The rate at which the first flight of a flow arrived.

use comity_units::{DataSize, Rate, Time};

use crate::InOrderAck;

/// Measures by the receiver's clock how fast the packets arrived that left before the first
/// acknowledgement.
///
/// ```text
/// rate = (n − m) · segment / (arrival of n − arrival of m)      m, n: the first and the latest, 4 or more apart
/// ```
///
/// The first flight leaves in a burst. A path that is slower than the burst spreads it. So the rate
/// is at most that of the slowest link, and at most the rate at which the flight left.
///
/// Source: C. Dovrolis, P. Ramanathan and D. Moore, "What do packet dispersion techniques
/// measure?", INFOCOM 2001, section V: trains of packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstFlight {
    /// How many packets left before the first acknowledgement.
    packets: u64,
    /// The first packet: its number and its arrival.
    first: Option<(u64, Time)>,
    rate: Option<Rate>,
}

impl FirstFlight {
    /// A packet left before the first acknowledgement.
    pub(super) const fn on_sent(&mut self) {
        self.packets += 1;
    }

    /// Takes an acknowledgement of segments of `mss` bytes.
    pub(super) fn on_in_order_ack(&mut self, ack: &InOrderAck, mss: DataSize) {
        let Some(arrived) = ack.arrived_at else {
            return;
        };
        let number = ack.number.get();
        let (first, began_at) = *self.first.get_or_insert((number, arrived.at));
        let apart = number.saturating_sub(first);
        if !(MIN_APART..self.packets).contains(&apart) {
            return;
        }
        let elapsed = arrived.at.saturating_since(began_at);
        self.rate = Some(Rate::of(mss * apart, elapsed.max(arrived.tick)));
    }

    /// The rate; `None` while it is unknown.
    pub(super) const fn rate(&self) -> Option<Rate> {
        self.rate
    }
}

/// The minimum distance of two packets. A shorter train shows single queues rather than the path.
const MIN_APART: u64 = 4;

#[cfg(test)]
mod tests {
    use comity_units::{PacketNumber, Span};

    use super::*;
    use crate::Arrived;

    /// The rate in kb/s of packets of 1,000 bytes with these numbers and arrivals in µs. Ten left
    /// before the first acknowledgement.
    fn kbps(arrivals: &[(u64, u64)]) -> Option<u64> {
        let mut flight = FirstFlight::default();
        for _ in 0..10 {
            flight.on_sent();
        }
        for &(number, at) in arrivals {
            let ack = InOrderAck {
                now: Time::from_secs(1),
                number: PacketNumber::new(number),
                arrived_at: Some(Arrived {
                    at: Time::from_micros(at),
                    tick: Span::from_micros(1),
                }),
            };
            flight.on_in_order_ack(&ack, DataSize::new(1_000));
        }
        flight.rate().map(|rate| rate.as_bps() / 1_000)
    }

    #[test]
    fn a_flight_arrives_at_the_rate_of_the_slowest_link() {
        // One packet in 800 µs: 10 Mb/s.
        let at_10_mbps = [(100, 5_000), (102, 6_600), (104, 8_200), (109, 12_200)];
        assert_eq!(kbps(&at_10_mbps), Some(10_000));
        assert_eq!(kbps(&at_10_mbps[..2]), None, "too few");
        assert_eq!(
            kbps(&[(100, 5_000), (109, 5_000)]),
            Some(72_000_000),
            "within a tick"
        );
    }

    #[test]
    fn later_packets_do_not_count() {
        assert_eq!(kbps(&[(100, 0), (109, 9_000), (110, 999_000)]), Some(8_000));
    }
}
