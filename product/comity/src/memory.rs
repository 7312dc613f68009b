//! One budget of memory for all connections of an endpoint.
//!
//! It counts the memory that peers can make an end hold: partly received sections, sections that
//! wait for the application, sections in send buffers, and the records of all of them. A receiver
//! chooses by its latency how long a send buffer holds a section.
//!
//! Each peer has the same share, and its connections divide it equally. A peer is a static key, or
//! else a host. Each connection may hold more than its share while an eighth of the limit stays
//! free:
//!
//! ```text
//! share = limit / peers / connections of this peer
//! left  = limit - memory that the other connections hold
//! a connection may hold  max(min(share, left), left - limit / 8)
//! ```
//!
//! A relay sends the same bytes to all its peers, so a payload in send buffers counts once. It is
//! charged to one of its senders at a time:
//!
//! ```text
//! memory of a connection = received sections + records of sections + charge
//! charge                 = bytes of the payloads that are charged to it
//! sum over all           = received sections + records of sections + bytes of different payloads
//! ```
//!
//! A new sender takes a payload over if its charge then still is the smaller one. If the charged
//! sender drops the payload, the sender with the smallest charge takes it over. So connections that
//! send the same payloads divide these equally, and a slow one is soon charged with all that only
//! it still holds. A section that finds no memory is refused, like one that finds no room in the
//! send buffer. The application may shed it.
//!
//! A connection within its share may find too little memory, or leave less than a sixteenth of the
//! limit free. Then the connection that exceeds its share by the largest factor is closed, and its
//! memory is freed. A connection within its share is never closed for this reason.
//!
//! The endpoint's thread handles packets one at a time, and tasks submit sections meanwhile. Such a
//! section and such a packet may both take the last free memory. The sum may then exceed the limit,
//! by at most a receive buffer.

mod budget;
mod payloads;

use std::sync::Arc;

use bytes::Bytes;
use comity_transport::timeline::outbox::RECORD;

pub(crate) use budget::{MemoryBudget, MemoryShare};
pub(crate) use payloads::{Charge, PayloadKey, Payloads};

/// A payload in a send buffer, which counts until it is dropped.
struct Counted {
    payload: Bytes,
    sender: Arc<MemoryShare>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.payload
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.sender.remove_payload(key(&self.payload));
    }
}

fn key(payload: &Bytes) -> PayloadKey {
    (payload.as_ptr().addr(), payload.len())
}

/// The same payload, which counts while the send buffer of this connection holds it.
///
/// # Errors
///
/// The payload, and the bytes that its section would add, if there is no memory for them.
pub(crate) fn counted(sender: &Arc<MemoryShare>, payload: Bytes) -> Result<Bytes, (Bytes, u64)> {
    match sender.add_payload(key(&payload), RECORD) {
        Ok(()) => Ok(Bytes::from_owner(Counted {
            payload,
            sender: sender.clone(),
        })),
        Err(bytes) => Err((payload, bytes)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet, VecDeque};

    use comity_transport::timeline::{
        Delivery, Importance, Meta, Outgoing, Reason, SectionId, StreamId,
    };
    use comity_transport::wire::Stamp;
    use comity_transport::wire::frame::{
        self, Content, Dropped, Floor, Frame, Framing, SectionHeader,
    };
    use comity_transport::wire::parameters::Parameters;
    use comity_units::{PacketNumber, Seed, Span, Time};
    use proptest::prelude::*;

    use super::*;
    use crate::config::Config;
    use crate::error::SendError;
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
        /// A connection of this host.
        fn new(opener: &mut Opener<Transport>, host: u8) -> Self {
            let mut parameters = Vec::new();
            Parameters::default().encode(&mut parameters).unwrap();
            let mut transport = opener(now(), Role::Listener, 57, &parameters).unwrap();
            transport.on_peer(None, ([192, 0, 2, host], 4_000).into());
            Self {
                transport,
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

        /// Submits a section without a deadline. Returns its number, or `None` if it is refused for
        /// lack of memory.
        fn submit(&mut self, payload: &Bytes) -> Option<SectionId> {
            let section = outgoing(payload.clone());
            let has_room = self.transport.has_room(payload.len());
            match self.transport.submit(now(), section) {
                Ok(id) => Some(id),
                Err(SendError::Full { .. }) => {
                    assert!(!has_room, "has_room and submit agree");
                    None
                }
                Err(error) => panic!("{error}"),
            }
        }

        /// Drops a submitted section.
        fn cancel(&mut self, section: SectionId) {
            assert!(self.transport.cancel(StreamId(0), section));
            self.settle();
        }

        /// Polls all outcomes.
        fn settle(&mut self) {
            while self.transport.poll_event(now()).is_some() {}
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

    fn outgoing(payload: Bytes) -> Outgoing<Bytes> {
        Outgoing {
            stream: StreamId(0),
            importance: Importance(1),
            source_time: now(),
            deadline: Time::MAX,
            needs: None,
            payload,
        }
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

    /// A budget, and a connection for each of these hosts.
    fn budget(hosts: impl IntoIterator<Item = u8>) -> (Arc<MemoryBudget>, Vec<Peer>) {
        let config = Config::builder().insecure().max_memory(LIMIT);
        let config = config.receive_buffer(LIMIT / 2).send_buffer(LIMIT / 2);
        let config = config.build().unwrap();
        let budget = MemoryBudget::new(config.settings().memory_budget());
        let mut opener = Transport::opener_within(config, Seed::new(1), budget.clone());
        let hosts = hosts.into_iter();
        let peers = hosts.map(|host| Peer::new(&mut opener, host)).collect();
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
        /// Hostile peers hold as much as they can, over one connection each or several. An honest
        /// one stays within its share.
        #[test]
        fn memory_stays_below_the_limit_and_fair_shares_are_kept(
            hostile in 1..12_usize,
            hosts in 1..12_u8,
            steps in prop::collection::vec((any::<u16>(), 1..400_000_u32, 0..4_u8), 1..200),
        ) {
            let hosts = hosts.min(hostile as u8);
            let of_hostile = (0..hostile as u8).map(|number| 1 + number % hosts);
            let (budget, mut peers) = budget([0].into_iter().chain(of_hostile));
            let share = LIMIT / (u64::from(hosts) + 1);
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

        /// Connections send payloads, some of them the same, and hold them as long as they like. An
        /// honest one sends payloads of its own, and stays within its share.
        #[test]
        fn unique_bytes_in_send_buffers_stay_below_the_limit(
            others in 1..10_u8,
            steps in prop::collection::vec((any::<u8>(), 0..40_usize, 0..4_u8), 1..300),
        ) {
            let (budget, mut peers) = budget(0..=others);
            let share = LIMIT / (u64::from(others) + 1);
            let payloads: Vec<Bytes> = (0..40)
                .map(|number| Bytes::from(vec![number; 50_000 * (1 + usize::from(number) % 8)]))
                .collect();
            // The sections in each send buffer, and the numbers of their payloads.
            let mut sending: Vec<VecDeque<(SectionId, usize)>> = vec![VecDeque::new(); peers.len()];
            let (mut own, mut admitted) = (VecDeque::new(), 0);
            for (who, which, what) in steps {
                let who = usize::from(who % others) + 1;
                if what > 0 && !peers[who].transport.has_ended() {
                    // A section may also be refused because the send buffer is full.
                    let section = peers[who].submit(&payloads[which]);
                    sending[who].extend(section.map(|section| (section, which)));
                } else if let Some((section, _)) = sending[who].pop_front() {
                    peers[who].cancel(section);
                }
                // A quarter of its share, in one of three sections.
                if own.len() == 3 && let Some(oldest) = own.pop_front() {
                    peers[0].cancel(oldest);
                }
                let payload = Bytes::from(vec![0; (share / 4) as usize]);
                let section = loop {
                    let section = peers[0].submit(&payload);
                    let gone = evict(&budget, &mut peers);
                    for &other in &gone {
                        prop_assert_ne!(other, 0, "it is within its share");
                        sending[other].clear();
                        peers[other].settle();
                    }
                    if let Some(section) = section {
                        break section;
                    }
                    prop_assert!(!gone.is_empty(), "its share is always available");
                };
                own.push_back(section);
                admitted += 1;
                let unique: BTreeSet<usize> = { sending.iter().flatten() }
                    .map(|(_, which)| *which)
                    .collect();
                let bytes: usize = unique.iter().map(|which| payloads[*which].len()).sum();
                let sections = own.len() + sending.iter().map(VecDeque::len).sum::<usize>();
                let expected = bytes as u64
                    + own.len() as u64 * (share / 4)
                    + sections as u64 * RECORD;
                prop_assert_eq!(budget.held(), expected);
                prop_assert!(expected <= LIMIT);
                let sum: u64 = { peers.iter() }
                    .map(|peer| peer.transport.memory().held())
                    .sum();
                prop_assert_eq!(sum, expected);
            }
            prop_assert_eq!(own.back().map(|section| section.0 + 1), Some(admitted));
        }
    }

    #[test]
    fn bytes_that_many_connections_send_count_once() {
        let (budget, mut peers) = budget(0..100);
        let payload = Bytes::from(vec![7; 100_000]);
        // Counted for each connection, they would be 10 MB.
        let sections: Vec<SectionId> = { peers.iter_mut() }
            .map(|peer| peer.submit(&payload).expect("it adds no bytes"))
            .collect();
        assert_eq!(budget.held(), 100_000 + 100 * RECORD);
        // A second section with the same bytes adds none, and the first one leaves them.
        let twice = peers[99].submit(&payload).unwrap();
        assert_eq!(budget.held(), 100_000 + 101 * RECORD);
        peers[99].cancel(twice);
        for (peer, section) in peers.iter_mut().zip(sections) {
            let before = budget.held();
            assert!(before >= 100_000 + RECORD, "{before}");
            peer.cancel(section);
            let last = if before == 100_000 + RECORD {
                100_000
            } else {
                0
            };
            assert_eq!(before - budget.held(), RECORD + last);
        }
        assert_eq!(budget.held(), 0);
    }

    /// Twelve viewers join one after the other and keep all sections. Twenty others keep the latest
    /// three. All get the same sections.
    #[test]
    fn viewers_with_a_long_latency_do_not_take_the_memory_of_others() {
        const SLOW: usize = 12;
        let (budget, mut peers) = budget(0..32);
        let mut latest = vec![VecDeque::new(); peers.len()];
        let (mut admitted, mut refused) = (0, 0);
        for number in 0..600_usize {
            let payload = Bytes::from(vec![number as u8; 50_000]);
            for (who, peer) in peers.iter_mut().enumerate() {
                if who < SLOW {
                    if number >= 10 * who {
                        match peer.submit(&payload) {
                            Some(_) => admitted += 1,
                            None => refused += 1,
                        }
                    }
                    continue;
                }
                if latest[who].len() == 3
                    && let Some(oldest) = latest[who].pop_front()
                {
                    peer.cancel(oldest);
                }
                let section = peer.submit(&payload);
                latest[who].push_back(section.expect("room"));
            }
            // Sixty sections in twenty send buffers are three payloads.
            for peer in &peers[SLOW..] {
                let held = peer.transport.memory().held();
                assert!(held <= 50_000 + 3 * RECORD, "{held}");
            }
            assert!(budget.held() <= LIMIT);
            assert!(evict(&budget, &mut peers).is_empty());
        }
        assert!(admitted > 200 && refused > 200, "{admitted} {refused}");
        // The slow ones leave an eighth of the memory to others.
        let slow: u64 = { peers[..SLOW].iter() }
            .map(|peer| peer.transport.memory().held())
            .sum();
        assert!((LIMIT / 2..=LIMIT / 8 * 7).contains(&slow), "{slow}");
    }

    #[test]
    fn the_connection_with_most_memory_is_closed_when_a_share_is_needed() {
        let (budget, mut peers) = budget(0..4);
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
    fn many_connections_of_one_peer_have_one_share() {
        // Connection 0 has a host of its own; the eight others have the same host.
        let (budget, mut peers) = budget([0, 1, 1, 1, 1, 1, 1, 1, 1]);
        let far = Time::from_secs(3_000);
        for section in 0..20 {
            for peer in &mut peers[1..] {
                peer.give(&packet(section, 0, 100_000, 1, far));
            }
        }
        let of_many = budget.held();
        assert!(
            (LIMIT / 8 * 7 - 101_000..=LIMIT / 8 * 7).contains(&of_many),
            "{of_many}"
        );
        // Half of the memory is the share of connection 0: it gets five twelfths.
        let mut gone = Vec::new();
        for section in 0..35 {
            let taken = peers[0].give(&packet(section, 0, 100_000, 1, far));
            assert!(taken, "{section}");
            assert!(budget.held() <= LIMIT);
            gone.extend(evict(&budget, &mut peers));
        }
        // 3.5 MB and four times 0.9 MB leave a sixteenth free.
        assert_eq!(gone.len(), 4, "{gone:?}");
        assert!(!gone.contains(&0), "{gone:?}");
    }

    #[test]
    fn a_section_that_is_never_accepted_does_not_wait_for_memory() {
        let (budget, mut peers) = budget(0..3);
        let payload = || Bytes::from(vec![0; 100_000]);
        for peer in &mut peers[..2] {
            while peer.submit(&payload()).is_some() {}
        }
        let transport = &mut peers[1].transport;
        let statistics = transport.stats(now(), &SessionStatistics::default());
        let in_buffer = statistics.sent.bytes.queued + statistics.sent.bytes.in_flight;
        assert!(in_buffer < LIMIT / 2 - 100_000, "{in_buffer}");
        assert!(!transport.has_room(100_000));
        assert!(transport.has_room(LIMIT as usize / 2 + 1));
        transport.finish();
        assert!(transport.has_room(100_000));
        let refused = transport.submit(now(), outgoing(payload()));
        assert_eq!(refused, Err(SendError::Finishing));
        assert!(!budget.take_evictions());
    }

    #[test]
    fn the_largest_buffer_fits_into_the_memory_twice() {
        let limit = |config: crate::config::ConfigBuilder| {
            let config = config.insecure().build().unwrap();
            config.settings().memory_budget()
        };
        let config = || Config::builder().max_memory(1 << 20);
        assert_eq!(limit(Config::builder()), 512 << 20);
        assert_eq!(
            limit(config().send_buffer(9 << 20).receive_buffer(1 << 20)),
            18 << 20
        );
        assert_eq!(
            limit(config().send_buffer(1 << 20).receive_buffer(9 << 20)),
            18 << 20
        );
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
