//! Delivery-rate samples: how fast the network delivers, packet by packet.

use comity_units::{DataSize, Span, Time};

/// Measures one delivery-rate sample for each acknowledgement.
///
/// ```text
/// sample   = delivered / interval
/// interval = max( sending, answering )
/// sending  = time from the departure of the first packet of the flight to that of the sampled packet
/// answering = time to this acknowledgement from the last delivery before the sampled packet left
/// ```
///
/// A transport keeps a [`Departure`] for each packet, and reports its delivery or loss. The sampled
/// packet is the last sent one of the packets that the acknowledgement delivers.
///
/// # Application-limited samples
/// A transport calls [`DeliveryRate::on_app_limited`] when the application has less than a packet
/// to send, the window has room, and every lost packet has been retransmitted. Packets that leave
/// from then on are marked until everything that was in flight at that moment is delivered.
///
/// Source: draft-cheng-iccrg-delivery-rate-estimation-02, sections 3 and 4, now section 4.1 of
/// draft-ietf-ccwg-bbr.
///
/// Differs from the source in: 1. the order of departures, not their times, decides which packet is
/// the newest; 2. samples over less than the minimum round trip are kept;
/// [`RateSample::without_rate_below`] removes their rate.
#[derive(Clone, Debug)]
pub struct DeliveryRate {
    departures: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// Whether something was delivered since the flight began.
    is_answered: bool,
    lost: u64,
    /// Packets are marked as application-limited until this much is delivered.
    app_limited_until: Option<u64>,
    news: News,
}

/// What happened since the last sample.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    delivered: u64,
    lost: u64,
    /// The last sent one of the delivered packets, and its round trip, if known.
    newest: Option<(Departure, Option<Span>)>,
}

/// The state of the flow when a packet left.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    order: u64,
    sent_at: Time,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    is_answered: bool,
    app_limited: bool,
    lost: u64,
    in_flight: u64,
}

impl Departure {
    /// When the packet left.
    pub const fn sent_at(&self) -> Time {
        self.sent_at
    }
}

/// The delivery rate while one packet was in flight, and the other results of one acknowledgement.
///
/// Source: draft-cheng-iccrg-delivery-rate-estimation-02, section 3.3; draft-ietf-ccwg-bbr for the
/// flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Payload delivered between the sending and the acknowledgement of the sampled packet.
    pub delivered: DataSize,
    /// The longer of the send and the acknowledgement interval of that data; zero if there is no
    /// rate.
    pub interval: Span,
    /// The time in which that data left; `None` if nothing was delivered between the start of the
    /// flight and the departure of the sampled packet.
    pub sending: Option<Span>,
    /// All payload that had been delivered when the sampled packet left. It distinguishes rounds.
    pub prior_delivered: DataSize,
    /// Payload declared lost between the sending and the acknowledgement of the sampled packet.
    pub lost: DataSize,
    /// The flight when the sampled packet left, that packet included.
    pub sent_in_flight: DataSize,
    /// Whether the flow was limited by its application when the sampled packet left.
    pub app_limited: bool,
    /// The round trip of the sampled packet, unless it left more than once.
    pub rtt: Option<Span>,
    /// Payload delivered in all.
    pub total_delivered: DataSize,
    /// Payload declared lost in all.
    pub total_lost: DataSize,
    /// Payload that this acknowledgement delivered.
    pub newly_delivered: DataSize,
    /// Payload declared lost since the last sample.
    pub newly_lost: DataSize,
    /// The flight before this acknowledgement.
    pub prior_in_flight: DataSize,
    /// The flight after it: neither delivered nor lost.
    pub in_flight: DataSize,
}

/// One packet was declared lost, with the flight that led to the loss.
///
/// Source: draft-ietf-ccwg-bbr-06, section 5.5.10.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLoss {
    /// The packet.
    pub size: DataSize,
    /// The flight when it left, the packet included.
    pub sent_in_flight: DataSize,
    /// The payload declared lost since it left, the packet included.
    pub lost: DataSize,
    /// Whether the flow was limited by its application when it left.
    pub app_limited: bool,
    /// Payload delivered in all.
    pub total_delivered: DataSize,
}

impl RateSample {
    /// Whether it measures a rate.
    pub const fn has_rate(&self) -> bool {
        !self.interval.is_zero()
    }

    /// Removes a rate that was measured over less than the minimum round trip. Spurious
    /// retransmissions and compressed acknowledgements cause such rates.
    #[must_use]
    pub fn without_rate_below(self, min_rtt: Span) -> Self {
        let is_valid = self.interval >= min_rtt;
        Self {
            interval: if is_valid { self.interval } else { Span::ZERO },
            ..self
        }
    }
}

impl DeliveryRate {
    /// Creates the state of a flow that begins at `now`.
    pub const fn new(now: Time) -> Self {
        Self {
            departures: 0,
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            is_answered: false,
            lost: 0,
            app_limited_until: None,
            news: News {
                delivered: 0,
                lost: 0,
                newest: None,
            },
        }
    }

    /// A packet leaves; `in_flight` includes it. `is_first` says that nothing was in flight before,
    /// so that idle time is not part of any interval.
    pub fn on_sent(&mut self, now: Time, in_flight: u64, is_first: bool) -> Departure {
        if is_first {
            self.first_sent_at = now;
            self.delivered_at = now;
            self.is_answered = false;
        }
        self.departures += 1;
        Departure {
            order: self.departures,
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            is_answered: self.is_answered,
            app_limited: self.app_limited_until.is_some(),
            lost: self.lost,
            in_flight,
        }
    }

    /// A packet of `size` bytes is known to have arrived. `is_repeated` when it left more than
    /// once.
    pub fn on_delivered(&mut self, now: Time, departure: &Departure, size: u64, is_repeated: bool) {
        self.on_late(now, size);
        self.is_answered = true;
        let newest = &mut self.news.newest;
        if newest.is_none_or(|(newest, _)| newest.order < departure.order) {
            let rtt = (!is_repeated).then(|| now.saturating_since(departure.sent_at));
            *newest = Some((*departure, rtt));
        }
    }

    /// A packet of `size` bytes that had been declared lost arrived. It gives no sample.
    pub fn on_late(&mut self, now: Time, size: u64) {
        self.delivered += size;
        self.delivered_at = now;
        self.news.delivered += size;
    }

    /// A packet of `size` bytes was declared lost.
    pub const fn on_lost(&mut self, departure: &Departure, size: u64) -> PacketLoss {
        self.lost += size;
        self.news.lost += size;
        PacketLoss {
            size: DataSize::new(size),
            sent_in_flight: DataSize::new(departure.in_flight),
            lost: DataSize::new(self.lost - departure.lost),
            app_limited: departure.app_limited,
            total_delivered: DataSize::new(self.delivered),
        }
    }

    /// The application has less than a packet to send although the window has room.
    pub fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = Some(self.delivered + in_flight);
    }

    /// The sample of an acknowledgement, since the last call.
    pub fn sample(&mut self, now: Time, prior_in_flight: u64, in_flight: u64) -> RateSample {
        if self
            .app_limited_until
            .is_some_and(|until| self.delivered > until)
        {
            self.app_limited_until = None;
        }
        let news = core::mem::take(&mut self.news);
        let mut sample = RateSample {
            delivered: DataSize::ZERO,
            interval: Span::ZERO,
            sending: None,
            prior_delivered: DataSize::ZERO,
            lost: DataSize::ZERO,
            sent_in_flight: DataSize::ZERO,
            app_limited: false,
            rtt: None,
            total_delivered: DataSize::new(self.delivered),
            total_lost: DataSize::new(self.lost),
            newly_delivered: DataSize::new(news.delivered),
            newly_lost: DataSize::new(news.lost),
            prior_in_flight: DataSize::new(prior_in_flight),
            in_flight: DataSize::new(in_flight),
        };
        if let Some((departure, rtt)) = news.newest {
            let sending = departure.sent_at.saturating_since(departure.first_sent_at);
            let answering = now.saturating_since(departure.delivered_at);
            self.first_sent_at = departure.sent_at;
            sample.delivered = DataSize::new(self.delivered - departure.delivered);
            sample.interval = sending.max(answering);
            sample.sending = departure.is_answered.then_some(sending);
            sample.prior_delivered = DataSize::new(departure.delivered);
            sample.lost = DataSize::new(self.lost - departure.lost);
            sample.sent_in_flight = DataSize::new(departure.in_flight);
            sample.app_limited = departure.app_limited;
            sample.rtt = rtt;
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    const PACKET: u64 = 1_000;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// Four packets leave 1 ms apart. The bottleneck delivers one every 10 ms, so their
    /// acknowledgements arrive at 50, 60, 70 and 80 ms. By hand: the first packet begins the
    /// flight, and its interval is its round trip. The others left before anything was delivered,
    /// so their acknowledgement intervals begin with the flight.
    #[test]
    fn a_flight_by_hand() {
        let mut rate = DeliveryRate::new(at(0));
        let sent: Vec<Departure> = (0..4)
            .map(|packet| rate.on_sent(at(packet), (packet + 1) * PACKET, packet == 0))
            .collect();
        for (packet, (answered, interval)) in [(50, 50), (60, 60), (70, 70), (80, 80)]
            .into_iter()
            .enumerate()
        {
            let left = (3 - packet as u64) * PACKET;
            rate.on_delivered(at(answered), &sent[packet], PACKET, false);
            let sample = rate.sample(at(answered), left + PACKET, left);
            assert_eq!(
                sample.delivered,
                DataSize::new((packet as u64 + 1) * PACKET)
            );
            assert_eq!(sample.interval, Span::from_millis(interval));
            assert_eq!(sample.prior_delivered, DataSize::ZERO);
            assert_eq!(sample.newly_delivered, DataSize::new(PACKET));
            let in_flight = DataSize::new((packet as u64 + 1) * PACKET);
            assert_eq!(sample.sent_in_flight, in_flight);
            let rtt = Span::from_millis(answered - packet as u64);
            assert_eq!(sample.rtt, Some(rtt));
            assert_eq!(sample.sending, None, "the flight began with it");
        }
    }

    /// The steady state: acknowledgements arrive 10 ms apart. A packet leaves with each, and is
    /// acknowledged 50 ms later. In these 50 ms five packets are delivered: 1,000 bytes every 10
    /// ms.
    #[test]
    fn acknowledgements_clock_the_rate_of_the_bottleneck() {
        let mut rate = DeliveryRate::new(at(0));
        let mut sent: Vec<Departure> = (0..5)
            .map(|packet| rate.on_sent(at(packet * 10), (packet + 1) * PACKET, packet == 0))
            .collect();
        for packet in 0..20_u64 {
            let now = at(50 + packet * 10);
            let departure = sent[packet as usize];
            rate.on_delivered(now, &departure, PACKET, false);
            let sample = rate.sample(now, 5 * PACKET, 4 * PACKET);
            if packet >= 5 {
                assert_eq!(sample.delivered, DataSize::new(5 * PACKET));
                assert_eq!(sample.interval, Span::from_millis(50));
                assert_eq!(sample.sending, Some(Span::from_millis(50)));
            }
            sent.push(rate.on_sent(now, 5 * PACKET, false));
        }
    }

    /// Compressed acknowledgements: those of packets that left over 40 ms arrive within 1 ms, and
    /// the send interval bounds the rate (section 2.2.3 of the draft).
    #[test]
    fn compressed_acknowledgements_count_over_the_time_of_sending() {
        let mut rate = DeliveryRate::new(at(0));
        let first = rate.on_sent(at(0), PACKET, true);
        rate.on_delivered(at(20), &first, PACKET, false);
        rate.sample(at(20), PACKET, 0);
        let sent: Vec<Departure> = (0..5)
            .map(|packet| rate.on_sent(at(100 + packet * 10), (packet + 1) * PACKET, packet == 0))
            .collect();
        rate.on_delivered(at(180), &sent[0], PACKET, false);
        rate.sample(at(180), 5 * PACKET, 4 * PACKET);
        let tail = rate.on_sent(at(180), 5 * PACKET, false);
        for departure in &sent[1..] {
            rate.on_delivered(at(181), departure, PACKET, false);
        }
        rate.sample(at(181), 5 * PACKET, PACKET);
        rate.on_delivered(at(200), &tail, PACKET, false);
        let sample = rate.sample(at(200), PACKET, 0);
        // Four packets of the flight and the last one. They left in the 80 ms after its first
        // packet, and were acknowledged within 20 ms.
        assert_eq!(sample.delivered, DataSize::new(5 * PACKET));
        assert_eq!(sample.interval, Span::from_millis(80));
    }

    #[test]
    fn an_acknowledgement_of_several_samples_the_newest_and_a_short_interval_has_no_rate() {
        let mut rate = DeliveryRate::new(at(0));
        let first = rate.on_sent(at(0), PACKET, true);
        let second = rate.on_sent(at(5), 2 * PACKET, false);
        rate.on_delivered(at(40), &second, PACKET, true);
        rate.on_delivered(at(40), &first, PACKET, false);
        let sample = rate.sample(at(40), 2 * PACKET, 0);
        assert_eq!(sample.newly_delivered, DataSize::new(2 * PACKET));
        assert_eq!(sample.sent_in_flight, DataSize::new(2 * PACKET));
        assert_eq!(sample.rtt, None, "the newest left twice");
        assert!(sample.without_rate_below(Span::from_millis(40)).has_rate());
        assert!(!sample.without_rate_below(Span::from_millis(41)).has_rate());
        // Without a delivery there is no rate.
        rate.on_lost(&second, PACKET);
        let sample = rate.sample(at(50), PACKET, 0);
        assert!(!sample.has_rate());
        assert_eq!(sample.newly_lost, DataSize::new(PACKET));
        assert_eq!(sample.newly_delivered, DataSize::ZERO);
    }

    #[test]
    fn what_leaves_after_the_application_ran_dry_is_marked_until_the_flight_of_then_is_delivered() {
        let mut rate = DeliveryRate::new(at(0));
        let first = rate.on_sent(at(0), PACKET, true);
        let second = rate.on_sent(at(0), 2 * PACKET, false);
        rate.on_app_limited(2 * PACKET);
        let third = rate.on_sent(at(10), 3 * PACKET, false);
        let answer = |rate: &mut DeliveryRate, millis, departure: &Departure| {
            rate.on_delivered(at(millis), departure, PACKET, false);
            rate.sample(at(millis), PACKET, PACKET).app_limited
        };
        assert!(!answer(&mut rate, 40, &first));
        assert!(!answer(&mut rate, 41, &second));
        let fourth = rate.on_sent(at(45), 2 * PACKET, false);
        assert!(answer(&mut rate, 50, &third));
        let fifth = rate.on_sent(at(55), 2 * PACKET, false);
        assert!(
            answer(&mut rate, 85, &fourth),
            "left before the bubble was gone"
        );
        assert!(!answer(&mut rate, 95, &fifth));
    }

    #[test]
    fn losses_are_counted_from_the_departure_of_the_sampled_packet() {
        let mut rate = DeliveryRate::new(at(0));
        let first = rate.on_sent(at(0), PACKET, true);
        rate.on_lost(&first, PACKET);
        let second = rate.on_sent(at(10), PACKET, false);
        let third = rate.on_sent(at(11), 4 * PACKET, false);
        let loss = rate.on_lost(&third, 3 * PACKET);
        assert_eq!(loss.sent_in_flight, DataSize::new(4 * PACKET));
        assert_eq!(
            loss.lost,
            DataSize::new(3 * PACKET),
            "the first was lost before"
        );
        rate.on_late(at(30), PACKET);
        rate.on_delivered(at(50), &second, PACKET, false);
        let sample = rate.sample(at(50), PACKET, 0);
        assert_eq!(sample.lost, DataSize::new(3 * PACKET));
        assert_eq!(sample.total_lost, DataSize::new(4 * PACKET));
        assert_eq!(sample.newly_lost, DataSize::new(4 * PACKET));
        assert_eq!(sample.total_delivered, DataSize::new(2 * PACKET));
    }
}
