//! One budget of memory for all connections of an endpoint.
//!
//! It counts the memory that peers can make an end hold: partly received sections, sections that
//! wait for the application, and the records of both. With `n` connections, each has a fair share,
//! and more while an eighth of the limit stays free:
//!
//! ```text
//! share = limit / n
//! left  = limit - memory that the other connections hold
//! a connection may hold  max(min(share, left), left - limit / 8)
//! ```
//!
//! A connection within its share may find too little memory, or leave less than a sixteenth of the
//! limit free. Then the connection that holds the most is closed, and its memory is freed. A
//! connection within its share is never closed for this reason.

mod budget;

pub(crate) use budget::{MemoryBudget, MemoryShare};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use bytes::Bytes;
    use comity_transport::timeline::{Delivery, Meta, Reason};
    use comity_transport::wire::Stamp;
    use comity_transport::wire::frame::{
        self, Content, Dropped, Floor, Frame, Framing, SectionHeader,
    };
    use comity_transport::wire::parameters::Parameters;
    use comity_units::{PacketNumber, Seed, Span, Time};
    use proptest::prelude::*;

    use super::*;
    use crate::config::Config;
    use crate::session::{Ecn, Opener, Protocol as _, Role, SessionStatistics};
    use crate::transport::Transport;

    const LIMIT: u64 = 8 << 20;

    /// One half of a connection, whose peer the test controls.
    struct Peer {
        transport: Transport,
        next: u64,
        sections: u64,
        delivered: BTreeMap<u64, Bytes>,
    }

    impl Peer {
        fn new(opener: &mut Opener<Transport>) -> Self {
            let mut parameters = Vec::new();
            Parameters::default().encode(&mut parameters).unwrap();
            Self {
                transport: opener(now(), Role::Listener, 57, &parameters).unwrap(),
                next: 0,
                sections: 0,
                delivered: BTreeMap::new(),
            }
        }

        /// Passes a packet to the transport. Returns whether it was accepted and will be
        /// acknowledged.
        fn give(&mut self, payload: &[u8]) -> bool {
            let before = self.received();
            let number = PacketNumber::new(self.next);
            self.next += 1;
            self.transport
                .on_packet(now(), number, Ecn::NotCapable, payload);
            self.received() > before
        }

        fn received(&self) -> u64 {
            let session = SessionStatistics::default();
            self.transport
                .stats(now(), &session)
                .received
                .counters
                .packets
        }

        /// Sends one whole section in pieces, and delivers it at once.
        fn honest(&mut self, length: u32) -> bool {
            let section = self.sections;
            self.sections += 1;
            let mut all = true;
            for offset in (0..length).step_by(1_000) {
                let piece = 1_000.min(length - offset);
                all &= self.give(&packet(section, offset, length, piece, Time::MAX));
            }
            while let Some(delivery) = self.transport.poll_delivery(now()) {
                if let Delivery::Section(received) = delivery {
                    let Meta { section, .. } = received.meta;
                    self.delivered.insert(section.0, received.payload);
                }
            }
            all
        }
    }

    fn now() -> Time {
        Time::from_secs(1)
    }

    fn packet(section: u64, offset: u32, total: u32, length: u32, deadline: Time) -> Vec<u8> {
        let header = SectionHeader {
            stream: 0,
            section,
            floor: 0,
            offset,
            total,
            source_time: now(),
            deadline,
            importance: 1,
            needs: None,
            is_retransmission: false,
        };
        let mut payload = Vec::new();
        frame::encode_departure(Stamp::from_micros(1_000_000), &mut payload);
        header
            .encode(length, Framing::Length, Content::Present, &mut payload)
            .unwrap();
        payload.resize(payload.len() + length as usize, 0);
        payload
    }

    fn control(frames: &[Frame<'_>]) -> Vec<u8> {
        let mut payload = Vec::new();
        frame::encode_departure(Stamp::from_micros(1_000_000), &mut payload);
        for frame in frames {
            frame.encode(&mut payload).unwrap();
        }
        payload
    }

    fn budget(connections: usize) -> (Arc<MemoryBudget>, Vec<Peer>) {
        let config = Config::builder().insecure().receive_buffer(LIMIT / 2);
        let config = config.max_memory(LIMIT).build().unwrap();
        let budget = MemoryBudget::new(config.settings().memory_budget());
        let mut opener = Transport::opener_within(config, Seed::new(1), budget.clone());
        let peers = (0..connections).map(|_| Peer::new(&mut opener)).collect();
        (budget, peers)
    }

    /// The work of the driver. Returns the evicted connections.
    fn evict(budget: &MemoryBudget, peers: &mut [Peer]) -> Vec<usize> {
        let mut gone = Vec::new();
        if budget.take_evictions() {
            for (index, peer) in peers.iter_mut().enumerate() {
                if peer.transport.memory().is_evicted() && !peer.transport.has_ended() {
                    peer.transport.evict(now() + Span::ZERO);
                    gone.push(index);
                }
            }
        }
        gone
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Hostile peers hold as much as they can; an honest one stays within its share.
        #[test]
        fn memory_stays_below_the_limit_and_fair_shares_are_kept(
            hostile in 1..12_usize,
            steps in prop::collection::vec((any::<u16>(), 1..400_000_u32, 0..4_u8), 1..200),
        ) {
            let (budget, mut peers) = budget(hostile + 1);
            let share = LIMIT / (hostile as u64 + 1);
            for (who, length, what) in steps {
                let who = usize::from(who) % hostile + 1;
                let peer = &mut peers[who];
                peer.sections += 1;
                let section = peer.sections;
                let payload = match what {
                    // Reserves its whole length.
                    0 | 1 => packet(section, 0, length, 1, Time::from_secs(3_000)),
                    // Disjoint pieces.
                    2 => packet(1, length / 2 * 2, 400_000, 1, Time::from_secs(3_000)),
                    _ => control(&[
                        Frame::Floor(Floor { stream: 0, floor: 1 }),
                        Frame::Dropped(Dropped { stream: 0, section, reason: Reason::Shed }),
                    ]),
                };
                peer.give(&payload);
                prop_assert!(budget.held() <= LIMIT, "{}", budget.held());
                let honest = u32::try_from(share / 2).unwrap().min(length);
                prop_assert!(peers[0].honest(honest), "its share is always available");
                prop_assert!(!evict(&budget, &mut peers).contains(&0));
                let sum: u64 = { peers.iter() }
                    .map(|peer| peer.transport.memory().held())
                    .sum();
                prop_assert_eq!(sum, budget.held());
            }
            let whole = peers[0].delivered.len() as u64;
            prop_assert_eq!(whole, peers[0].sections);
        }
    }

    #[test]
    fn the_connection_with_most_memory_is_closed_when_a_share_is_needed() {
        let (budget, mut peers) = budget(4);
        // Connections 1 and 2 fill all but the reserve; the smaller one exceeds its share, too.
        let far = Time::from_secs(3_000);
        let mut held = [0, 0, 0, 0];
        for (who, sections) in [(1, 30), (2, 70)] {
            for section in 0..sections {
                let taken = peers[who].give(&packet(section, 0, 100_000, 1, far));
                held[who] += u64::from(taken);
            }
        }
        assert_eq!(held[1], 30);
        assert!((38..=42).contains(&held[2]), "{held:?}");
        assert!(budget.held() <= LIMIT - LIMIT / 8);
        // Connection 3 uses its share: connection 2 is evicted, and its memory is freed.
        let mut gone = Vec::new();
        for section in 0..15 {
            assert!(
                peers[3].give(&packet(section, 0, 100_000, 1, far)),
                "{section}"
            );
            gone.extend(evict(&budget, &mut peers));
        }
        assert_eq!(gone, [2]);
        assert!(peers[2].transport.has_ended());
        let most = 45 * 101_000 + 1_000_000;
        assert!(budget.held() < most, "{}", budget.held());
        // Each section becomes one gap for the application.
        let mut gaps = 0;
        while let Some(delivery) = peers[2].transport.poll_delivery(now()) {
            let Delivery::Gap(gap) = delivery else {
                panic!("{delivery:?}")
            };
            assert_eq!(gap.partial, None);
            gaps += gap.count;
        }
        assert_eq!(gaps, held[2]);
        drop(peers);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn an_end_that_only_sends_grants_no_room() {
        let credit = |only_sends| {
            let config = Config::builder().insecure().only_sends(only_sends);
            config.build().unwrap().parameters().initial_credit
        };
        assert_eq!((credit(true), credit(false)), (0, 16 << 20));
    }
}
