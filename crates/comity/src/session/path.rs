//! The peer's address and its validation.
//!
//! ```text
//!  validated at A --- highest packet so far comes from B ---> validated at A, asking B
//!  asking B ------ B gives the challenge back -------------> validated at B
//!  asking B ------ highest packet so far comes from C -----> asking C
//!  asking B ------ three challenges, no answer ------------> validated at A
//! ```
//!
//! All packets except challenges and responses go to the validated address until the new one has
//! answered, so a copied packet from elsewhere moves nothing. An address that has not answered
//! receives at most three times the bytes that genuine packets brought from there.
//!
//! Source: RFC 9000, sections 8.1, 8.2 and 9.3. Differs from the source in: 1. Data moves to the
//! new address after it has answered, not at once. A media sender could send almost nothing within
//! three times the acknowledgements that it receives, so the saved round trip is worth little. In
//! exchange, nobody can divert packets.

use std::net::{IpAddr, SocketAddr};

use comity_units::{Span, Time};

use super::{Addresses, Randomness};

/// The number of challenges to an address.
const TRIES: usize = 3;
/// The bytes that may go to an address for each byte that genuine packets brought from there.
const AMPLIFICATION: u64 = 3;
/// The shortest wait for a response, since the new path may be longer than the old one.
const MIN_WAIT: Span = Span::from_millis(100);

/// The address of the peer, and the one that may replace it.
#[derive(Debug)]
pub(super) struct Path {
    address: SocketAddr,
    /// The source address of packets to it: the address that the peer sends to.
    source: Option<IpAddr>,
    /// The generation of connection identifiers in packets to it: that of the highest packet from
    /// there.
    generation: u64,
    asked: Option<Candidate>,
}

#[derive(Debug)]
struct Candidate {
    address: SocketAddr,
    source: Option<IpAddr>,
    generation: u64,
    challenges: Vec<[u8; 8]>,
    /// The time of the next challenge, or of giving up.
    due: Time,
    wait: Span,
    received: u64,
    sent: u64,
}

/// The address that did not respond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unanswered(pub(super) SocketAddr);

impl Path {
    pub(super) const fn new(addresses: Addresses) -> Self {
        Self {
            address: addresses.peer,
            source: addresses.local,
            generation: 0,
            asked: None,
        }
    }

    /// The validated address.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The source address of packets to `address`.
    pub(super) fn source(&self, address: SocketAddr) -> Option<IpAddr> {
        match &self.asked {
            Some(asked) if asked.address == address => asked.source,
            _ => self.source,
        }
    }

    /// The generation of connection identifiers in packets to `address`.
    pub(super) fn generation(&self, address: SocketAddr) -> u64 {
        match &self.asked {
            Some(asked) if asked.address == address => asked.generation,
            _ => self.generation,
        }
    }

    /// The packet with the highest number so far came from `address` with an identifier of this
    /// generation: those to there have it too. After [`Self::on_genuine`], `address` is the
    /// validated one or the candidate.
    pub(super) fn on_generation(&mut self, address: SocketAddr, generation: u64) {
        match &mut self.asked {
            Some(asked) if asked.address == address => asked.generation = generation,
            _ => self.generation = generation,
        }
    }

    /// A genuine packet arrived. `highest`: its number is the highest so far.
    pub(super) fn on_genuine(
        &mut self,
        now: Time,
        addresses: Addresses,
        length: usize,
        highest: bool,
        probe_timeout: Span,
    ) {
        let Addresses { peer: from, local } = addresses;
        if from == self.address {
            return;
        }
        match &mut self.asked {
            Some(asked) if asked.address == from => asked.received += length as u64,
            _ if highest => {
                self.asked = Some(Candidate {
                    address: from,
                    source: local,
                    generation: self.generation,
                    challenges: Vec::new(),
                    due: now,
                    wait: probe_timeout.max(MIN_WAIT),
                    received: length as u64,
                    sent: 0,
                });
            }
            _ => {}
        }
    }

    /// The bytes that may go to `address` now; `None` for an address without a relation to the
    /// peer.
    pub(super) fn allowance(&self, address: SocketAddr) -> Option<u64> {
        if address == self.address {
            return Some(u64::MAX);
        }
        let asked = self
            .asked
            .as_ref()
            .filter(|asked| asked.address == address)?;
        Some((asked.received * AMPLIFICATION).saturating_sub(asked.sent))
    }

    /// Bytes were sent to `address`.
    pub(super) fn on_sent(&mut self, address: SocketAddr, length: usize) {
        if let Some(asked) = self.asked.as_mut().filter(|asked| asked.address == address) {
            asked.sent += length as u64;
        }
    }

    /// The challenge that is due, and its destination. The wait doubles for the next one.
    pub(super) fn poll_challenge(
        &mut self,
        now: Time,
        randomness: &mut Randomness,
    ) -> Option<(SocketAddr, [u8; 8])> {
        let asked = self.asked.as_mut()?;
        if now < asked.due || asked.challenges.len() >= TRIES {
            return None;
        }
        let challenge = randomness.bytes();
        asked.challenges.push(challenge);
        asked.due = now + asked.wait;
        asked.wait = asked.wait * 2;
        Some((asked.address, challenge))
    }

    /// A response arrived, from any address. Returns the old address if the path has moved.
    pub(super) fn on_response(&mut self, response: [u8; 8]) -> Option<SocketAddr> {
        let asked = self
            .asked
            .take_if(|asked| asked.challenges.contains(&response))?;
        self.source = asked.source;
        self.generation = asked.generation;
        Some(core::mem::replace(&mut self.address, asked.address))
    }

    pub(super) fn next_timer(&self) -> Time {
        self.asked.as_ref().map_or(Time::MAX, |asked| asked.due)
    }

    /// Gives up the new address after the last challenge.
    pub(super) fn on_timer(&mut self, now: Time) -> Option<Unanswered> {
        self.asked
            .take_if(|asked| asked.challenges.len() >= TRIES && asked.due <= now)
            .map(|asked| Unanswered(asked.address))
    }
}

#[cfg(test)]
mod tests {
    use comity_units::Seed;

    use super::*;

    const PROBE: Span = Span::from_millis(200);

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn an_address_that_answers_becomes_the_path() {
        let mut randomness = Randomness::seeded(Seed::new(1));
        let mut path = Path::new(address(1).into());
        path.on_genuine(at(0), address(2).into(), 500, true, PROBE);
        assert_eq!(
            path.address(),
            address(1),
            "nothing moves before the answer"
        );
        let (to, challenge) = path.poll_challenge(at(0), &mut randomness).unwrap();
        assert_eq!(to, address(2));
        assert_eq!(path.poll_challenge(at(199), &mut randomness), None);
        let (_, second) = path.poll_challenge(at(200), &mut randomness).unwrap();
        assert_ne!(challenge, second);
        assert_eq!(path.on_response([0; 8]), None);
        assert_eq!(
            path.on_response(challenge),
            Some(address(1)),
            "a late answer counts too"
        );
        assert_eq!(path.address(), address(2));
        assert_eq!(path.next_timer(), Time::MAX);
        assert_eq!(path.on_response(second), None);
    }

    #[test]
    fn an_address_that_is_silent_is_given_up_after_three_challenges() {
        let mut randomness = Randomness::seeded(Seed::new(1));
        let mut path = Path::new(address(1).into());
        path.on_genuine(at(0), address(2).into(), 500, true, PROBE);
        // Waits of 200, 400 and 800 ms.
        for due in [0, 200, 600] {
            assert_eq!(path.next_timer(), at(due));
            assert_eq!(path.on_timer(at(due)), None);
            assert!(path.poll_challenge(at(due), &mut randomness).is_some());
        }
        assert_eq!(path.on_timer(at(1399)), None);
        assert_eq!(path.poll_challenge(at(1400), &mut randomness), None);
        assert_eq!(path.on_timer(at(1400)), Some(Unanswered(address(2))));
        assert_eq!(path.address(), address(1));
        assert_eq!(path.next_timer(), Time::MAX);
    }

    #[test]
    fn only_the_highest_packet_starts_asking_and_bytes_are_limited_to_three_times() {
        let mut path = Path::new(address(1).into());
        path.on_genuine(at(0), address(2).into(), 500, false, PROBE);
        assert_eq!(path.allowance(address(2)), None);
        path.on_genuine(at(0), address(2).into(), 100, true, PROBE);
        path.on_genuine(at(1), address(2).into(), 20, false, PROBE);
        assert_eq!(path.allowance(address(2)), Some(360));
        path.on_sent(address(2), 300);
        assert_eq!(path.allowance(address(2)), Some(60));
        path.on_sent(address(2), 100);
        assert_eq!(path.allowance(address(2)), Some(0));
        assert_eq!(path.allowance(address(1)), Some(u64::MAX));
        assert_eq!(path.allowance(address(3)), None);
    }

    #[test]
    fn each_address_has_the_generation_of_the_packets_from_there() {
        let mut path = Path::new(address(1).into());
        path.on_generation(address(1), 3);
        path.on_genuine(at(0), address(2).into(), 500, true, PROBE);
        let generations = |path: &Path| [1, 2].map(|port| path.generation(address(port)));
        assert_eq!(generations(&path), [3, 3]);
        path.on_generation(address(2), 4);
        assert_eq!(generations(&path), [3, 4]);
        path.on_generation(address(1), 5);
        assert_eq!(generations(&path), [5, 4]);
    }

    #[test]
    fn packets_leave_from_where_those_of_their_destination_came_to() {
        let local = |host: u8| Some(IpAddr::from([198, 51, 100, host]));
        let addresses = |port, host| Addresses {
            peer: address(port),
            local: local(host),
        };
        let mut randomness = Randomness::seeded(Seed::new(1));
        let mut path = Path::new(addresses(1, 10));
        // An attacker who copies a packet to another address of this host moves nothing.
        path.on_genuine(at(0), addresses(1, 11), 500, true, PROBE);
        assert_eq!(path.source(address(1)), local(10));
        path.on_genuine(at(0), addresses(2, 12), 500, true, PROBE);
        assert_eq!(path.source(address(1)), local(10));
        assert_eq!(path.source(address(2)), local(12));
        let (_, challenge) = path.poll_challenge(at(0), &mut randomness).unwrap();
        path.on_response(challenge);
        assert_eq!(path.source(path.address()), local(12));
    }
}
