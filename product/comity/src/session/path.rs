//! The peer's address and its validation.
//!
//! ```text
//! path               event                                            new path
//! A                  highest packet so far, n, comes from B           A, validating B
//! A, validating B    packet n or later comes from A                   A, ignoring B for 1 s
//! A, validating B    B has responded, and A is silent for a PTO       B, watching A
//! A, validating B    highest packet so far comes from C               A, validating C
//! A, validating B    three challenges to B without a response         A
//! B, watching A      packet n or later comes from A                   A, ignoring B for 1 s
//! B, watching A      three challenges to A without a packet from it   B
//! ```
//!
//! A peer that has moved sends packet n and all later ones from B. If one of them or a copy of one
//! comes from A, the peer is still there: somebody on the path sends copies of its packets from B,
//! and they arrive first. A challenge to A makes a silent peer send.
//!
//! All packets except challenges and responses go to the validated address. An unvalidated address
//! receives at most three times the bytes of the authentic packets that came from there.
//!
//! Source: RFC 9000, sections 8.1, 8.2, 9.3 and 9.3.3. Differs from the source in:
//! 1. Data moves to the new address after it has answered, not at once. A media sender could send
//!    almost nothing within three times the acknowledgements that it receives, so the saved time is
//!    worth little.
//! 2. The old address gets challenges before the move and not only after it, and copies that come
//!    from there count. So an attacker who copies packets but cannot stop the originals diverts
//!    nothing.

use std::net::{IpAddr, SocketAddr};

use comity_units::{PacketNumber, Span, Time};

use super::{Addresses, Randomness};

/// The number of challenges to an address.
const TRIES: usize = 3;
/// The bytes that may go to an address for each byte of authentic packets from there.
const AMPLIFICATION: u64 = 3;
/// The minimum wait for a response, since the new path may be longer than the old one.
const MIN_WAIT: Span = Span::from_millis(100);

/// How long to ignore an address after a packet from the old address has refuted it.
const HOLD: Span = Span::from_secs(1);

/// The address of the peer, and the one that may replace it.
#[derive(Debug)]
pub(super) struct Path {
    present: Remote,
    asked: Option<Candidate>,
    /// The previous address, while the peer may still be there.
    left: Option<Left>,
    /// A refuted address, and until when to ignore it.
    refuted: Option<(SocketAddr, Time)>,
}

#[derive(Clone, Copy, Debug)]
struct Remote {
    address: SocketAddr,
    /// The source address of packets to it: the address that the peer sends to.
    source: Option<IpAddr>,
    /// The generation of connection identifiers in packets to it: that of the packet with the
    /// highest number from there.
    generation: u64,
}

#[derive(Debug)]
struct Candidate {
    remote: Remote,
    challenges: Vec<[u8; 8]>,
    /// When the next challenge is due, or the validation fails.
    due: Time,
    wait: Span,
    /// Whether a challenge to the present address is due.
    asks_present: bool,
    /// The first packet from there.
    first: PacketNumber,
    has_answered: bool,
    /// When the silence of the present address is long enough for a move.
    leave_at: Time,
    received: u64,
    sent: u64,
}

#[derive(Debug)]
struct Left {
    remote: Remote,
    /// The first packet from the present address.
    first: PacketNumber,
    /// When the next challenge, or the end, is due.
    due: Time,
    wait: Span,
    challenges: usize,
}

/// The result of a packet or a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The peer has moved, or is still at the previous address.
    Moved { from: SocketAddr },
    /// This address did not respond, or the peer is still at its present one.
    Stays(SocketAddr),
}

impl Path {
    pub(super) const fn new(addresses: Addresses) -> Self {
        Self {
            present: Remote {
                address: addresses.peer,
                source: addresses.local,
                generation: 0,
            },
            asked: None,
            left: None,
            refuted: None,
        }
    }

    /// The validated address.
    pub(super) const fn address(&self) -> SocketAddr {
        self.present.address
    }

    /// The state of `address` if it is under validation or the previous one; else that of the
    /// present one.
    fn remote(&self, address: SocketAddr) -> &Remote {
        let asked = self.asked.as_ref().map(|asked| &asked.remote);
        let left = self.left.as_ref().map(|left| &left.remote);
        let mut others = asked.into_iter().chain(left);
        let other = others.find(|remote| remote.address == address);
        other.unwrap_or(&self.present)
    }

    /// The source address of packets to `address`.
    pub(super) fn source(&self, address: SocketAddr) -> Option<IpAddr> {
        self.remote(address).source
    }

    /// The generation of connection identifiers in packets to `address`.
    pub(super) fn generation(&self, address: SocketAddr) -> u64 {
        self.remote(address).generation
    }

    /// The packet with the highest number so far came from `address` with an identifier of this
    /// generation. Packets to that address use the same generation.
    pub(super) fn on_generation(&mut self, address: SocketAddr, generation: u64) {
        if address == self.present.address {
            self.present.generation = generation;
        } else if let Some(asked) = self.asked.as_mut()
            && asked.remote.address == address
        {
            asked.remote.generation = generation;
        }
    }

    /// Whether a copy of a received packet counts as a sign of the peer if it comes from `address`.
    pub(super) fn counts_copies(&self, address: SocketAddr) -> bool {
        match (&self.asked, &self.left) {
            (Some(_), _) if address == self.present.address => true,
            (_, Some(left)) => address == left.remote.address,
            _ => false,
        }
    }

    /// Handles an authentic packet, or a copy of one. `highest`: its number is the highest so far.
    pub(super) fn on_genuine(
        &mut self,
        now: Time,
        addresses: Addresses,
        length: usize,
        (number, highest): (PacketNumber, bool),
        probe_timeout: Span,
    ) -> Option<News> {
        let Addresses { peer: from, local } = addresses;
        if from == self.present.address {
            // Only a packet that left after the first packet from the new address proves that the
            // peer stays.
            let refuted = self.asked.take_if(|asked| asked.first <= number)?;
            self.refuted = Some((refuted.remote.address, now + HOLD));
            return Some(News::Stays(refuted.remote.address));
        }
        if let Some(left) = self.left.as_ref()
            && left.remote.address == from
            && left.first <= number
        {
            let diverted = core::mem::replace(&mut self.present, left.remote).address;
            (self.left, self.asked) = (None, None);
            self.refuted = Some((diverted, now + HOLD));
            return Some(News::Moved { from: diverted });
        }
        let is_held =
            { self.refuted }.is_some_and(|(address, until)| address == from && now < until);
        match &mut self.asked {
            Some(asked) if asked.remote.address == from => asked.received += length as u64,
            _ if highest && !is_held => {
                self.asked = Some(Candidate {
                    remote: Remote {
                        address: from,
                        source: local,
                        generation: self.present.generation,
                    },
                    challenges: Vec::new(),
                    due: now,
                    wait: probe_timeout.max(MIN_WAIT),
                    asks_present: false,
                    first: number,
                    has_answered: false,
                    leave_at: now + probe_timeout,
                    received: length as u64,
                    sent: 0,
                });
            }
            _ => {}
        }
        None
    }

    /// The bytes that may go to `address` now; `None` for an unrelated address.
    pub(super) fn allowance(&self, address: SocketAddr) -> Option<u64> {
        let is_left = { self.left.as_ref() }.is_some_and(|left| left.remote.address == address);
        if address == self.present.address || is_left {
            return Some(u64::MAX);
        }
        let asked = self
            .asked
            .as_ref()
            .filter(|asked| asked.remote.address == address)?;
        Some((asked.received * AMPLIFICATION).saturating_sub(asked.sent))
    }

    /// Bytes were sent to `address`.
    pub(super) fn on_sent(&mut self, address: SocketAddr, length: usize) {
        if let Some(asked) = self
            .asked
            .as_mut()
            .filter(|asked| asked.remote.address == address)
        {
            asked.sent += length as u64;
        }
    }

    /// The due challenge and its destination. Doubles the wait for the next one.
    pub(super) fn poll_challenge(
        &mut self,
        now: Time,
        randomness: &mut Randomness,
    ) -> Option<(SocketAddr, [u8; 8])> {
        if let Some(asked) = &mut self.asked {
            if core::mem::take(&mut asked.asks_present) {
                // Any packet of the peer answers it, so it need not be remembered.
                return Some((self.present.address, randomness.bytes()));
            }
            if now < asked.due || asked.has_answered || asked.challenges.len() >= TRIES {
                return None;
            }
            let challenge = randomness.bytes();
            asked.challenges.push(challenge);
            asked.asks_present = true;
            asked.due = now + asked.wait;
            asked.wait = asked.wait * 2;
            return Some((asked.remote.address, challenge));
        }
        let left = self.left.as_mut()?;
        if now < left.due || left.challenges >= TRIES {
            return None;
        }
        left.challenges += 1;
        left.due = now + left.wait;
        left.wait = left.wait * 2;
        Some((left.remote.address, randomness.bytes()))
    }

    /// A response arrived, from any address.
    pub(super) fn on_response(&mut self, now: Time, response: [u8; 8]) -> Option<News> {
        let asked = self.asked.as_mut()?;
        asked.has_answered |= asked.challenges.contains(&response);
        self.leave(now)
    }

    /// Moves to the address that has responded, if the present one has been silent for long enough.
    fn leave(&mut self, now: Time) -> Option<News> {
        let asked = self
            .asked
            .take_if(|asked| asked.has_answered && asked.leave_at <= now)?;
        let from = self.present.address;
        self.left = Some(Left {
            remote: self.present,
            first: asked.first,
            due: now + asked.wait,
            wait: asked.wait * 2,
            challenges: asked.challenges.len(),
        });
        self.present = asked.remote;
        Some(News::Moved { from })
    }

    pub(super) fn next_timer(&self) -> Time {
        let asked = self.asked.as_ref().map(|asked| match asked.has_answered {
            true => asked.leave_at,
            false => asked.due,
        });
        let left = self.left.as_ref().map(|left| left.due);
        asked.or(left).unwrap_or(Time::MAX)
    }

    /// Handles the timer: moves to the new address, gives it up after the last challenge, or
    /// forgets the old one.
    pub(super) fn on_timer(&mut self, now: Time) -> Option<News> {
        let is_over = |challenges, due| challenges >= TRIES && due <= now;
        if let Some(news) = self.leave(now) {
            return Some(news);
        }
        if self.asked.is_none() {
            let _ = self.left.take_if(|left| is_over(left.challenges, left.due));
        }
        self.asked
            .take_if(|asked| !asked.has_answered && is_over(asked.challenges.len(), asked.due))
            .map(|asked| News::Stays(asked.remote.address))
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

    /// A packet with the highest number so far comes from `addresses`.
    fn take(
        path: &mut Path,
        now: Time,
        addresses: impl Into<Addresses>,
        number: u64,
    ) -> Option<News> {
        let number = (PacketNumber::new(number), true);
        path.on_genuine(now, addresses.into(), 500, number, PROBE)
    }

    fn asks(path: &mut Path, now: u64) -> Option<SocketAddr> {
        let mut randomness = Randomness::seeded(Seed::new(now));
        path.poll_challenge(at(now), &mut randomness)
            .map(|(to, _)| to)
    }

    #[test]
    fn a_validated_address_becomes_the_path_when_the_old_one_is_silent() {
        let mut randomness = Randomness::seeded(Seed::new(1));
        let mut path = Path::new(address(1).into());
        assert_eq!(take(&mut path, at(0), address(2), 7), None);
        let (to, challenge) = path.poll_challenge(at(0), &mut randomness).unwrap();
        assert_eq!(to, address(2));
        assert_eq!(
            asks(&mut path, 0),
            Some(address(1)),
            "the old one is asked too"
        );
        assert_eq!(asks(&mut path, 199), None);
        assert_eq!(path.on_response(at(50), [0; 8]), None);
        assert_eq!(path.on_response(at(50), challenge), None);
        assert_eq!(path.address(), address(1), "it has some time to answer");
        assert_eq!(path.next_timer(), at(200));
        assert_eq!(path.on_timer(at(199)), None);
        // Packets from before the move come late.
        let late = (PacketNumber::new(6), false);
        assert_eq!(
            path.on_genuine(at(199), address(1).into(), 500, late, PROBE),
            None
        );
        let moved = News::Moved { from: address(1) };
        assert_eq!(path.on_timer(at(200)), Some(moved));
        assert_eq!(path.address(), address(2));
        // The old address gets two more challenges, and is then forgotten.
        assert!(path.counts_copies(address(1)));
        for due in [600, 1_400] {
            assert_eq!(path.next_timer(), at(due));
            assert_eq!(path.on_timer(at(due)), None);
            assert_eq!(asks(&mut path, due), Some(address(1)));
        }
        assert_eq!(path.on_timer(path.next_timer()), None);
        assert_eq!(path.next_timer(), Time::MAX);
        assert!(!path.counts_copies(address(1)));
    }

    /// The peer has not moved: a packet that left after the first copy comes from the old address.
    #[test]
    fn a_packet_from_the_old_address_refutes_the_new_one() {
        let mut randomness = Randomness::seeded(Seed::new(1));
        for is_copy in [true, false] {
            let mut path = Path::new(address(1).into());
            take(&mut path, at(0), address(2), 7);
            let (_, challenge) = path.poll_challenge(at(0), &mut randomness).unwrap();
            path.on_response(at(10), challenge);
            assert!(path.counts_copies(address(1)));
            let number = (PacketNumber::new(if is_copy { 7 } else { 8 }), !is_copy);
            let stays = News::Stays(address(2));
            let news = path.on_genuine(at(20), address(1).into(), 500, number, PROBE);
            assert_eq!(news, Some(stays));
            assert!(!path.counts_copies(address(1)));
            // For a second, packets from there cause no challenge.
            assert_eq!(take(&mut path, at(1_019), address(2), 9), None);
            assert_eq!(
                (asks(&mut path, 1_019), path.next_timer()),
                (None, Time::MAX)
            );
            // A third address does.
            take(&mut path, at(1_019), address(3), 10);
            assert_eq!(asks(&mut path, 1_019), Some(address(3)));
            take(&mut path, at(1_020), address(2), 11);
            assert_eq!(asks(&mut path, 1_020), Some(address(2)));
        }
    }

    /// The packet that proves that the peer stays was lost, and the path moved. The next packet
    /// moves it back.
    #[test]
    fn the_path_returns_to_a_peer_that_did_not_move() {
        let mut randomness = Randomness::seeded(Seed::new(1));
        let mut path = Path::new(address(1).into());
        take(&mut path, at(0), address(2), 7);
        let (_, challenge) = path.poll_challenge(at(0), &mut randomness).unwrap();
        let moved = News::Moved { from: address(1) };
        assert_eq!(path.on_response(at(250), challenge), Some(moved));
        take(&mut path, at(251), address(2), 9);
        let early = (PacketNumber::new(6), false);
        assert_eq!(
            path.on_genuine(at(252), address(1).into(), 500, early, PROBE),
            None
        );
        let copy = (PacketNumber::new(8), false);
        let back = News::Moved { from: address(2) };
        assert_eq!(
            path.on_genuine(at(253), address(1).into(), 500, copy, PROBE),
            Some(back)
        );
        assert_eq!((path.address(), path.next_timer()), (address(1), Time::MAX));
        // A packet from the other address does not move the path again.
        assert_eq!(take(&mut path, at(254), address(2), 10), None);
        assert_eq!((path.address(), asks(&mut path, 254)), (address(1), None));
    }

    #[test]
    fn a_silent_address_is_given_up_after_three_challenges() {
        let mut path = Path::new(address(1).into());
        take(&mut path, at(0), address(2), 7);
        // Waits of 200, 400 and 800 ms.
        for due in [0, 200, 600] {
            assert_eq!(path.next_timer(), at(due));
            assert_eq!(path.on_timer(at(due)), None);
            assert_eq!(asks(&mut path, due), Some(address(2)));
            assert_eq!(asks(&mut path, due), Some(address(1)));
        }
        assert_eq!(path.on_timer(at(1399)), None);
        assert_eq!(asks(&mut path, 1400), None);
        assert_eq!(path.on_timer(at(1400)), Some(News::Stays(address(2))));
        assert_eq!(path.address(), address(1));
        assert_eq!(path.next_timer(), Time::MAX);
    }

    #[test]
    fn only_the_highest_packet_starts_validation_and_bytes_are_limited_to_three_times() {
        let mut path = Path::new(address(1).into());
        let mut came = |now, length, highest| {
            let number = (PacketNumber::new(7), highest);
            path.on_genuine(at(now), address(2).into(), length, number, PROBE);
            path.allowance(address(2))
        };
        assert_eq!(came(0, 500, false), None);
        assert_eq!(came(0, 100, true), Some(300));
        assert_eq!(came(1, 20, false), Some(360));
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
        take(&mut path, at(0), address(2), 7);
        let generations = |path: &Path| [1, 2].map(|port| path.generation(address(port)));
        assert_eq!(generations(&path), [3, 3]);
        path.on_generation(address(2), 4);
        assert_eq!(generations(&path), [3, 4]);
        path.on_generation(address(1), 5);
        assert_eq!(generations(&path), [5, 4]);
    }

    #[test]
    fn packets_leave_from_the_address_that_their_destination_sends_to() {
        let local = |host: u8| Some(IpAddr::from([198, 51, 100, host]));
        let addresses = |port, host| Addresses {
            peer: address(port),
            local: local(host),
        };
        let mut randomness = Randomness::seeded(Seed::new(1));
        let mut path = Path::new(addresses(1, 10));
        // An attacker who copies a packet to another address of this host moves nothing.
        take(&mut path, at(0), addresses(1, 11), 7);
        assert_eq!(path.source(address(1)), local(10));
        take(&mut path, at(0), addresses(2, 12), 8);
        assert_eq!(path.source(address(1)), local(10));
        assert_eq!(path.source(address(2)), local(12));
        let (_, challenge) = path.poll_challenge(at(0), &mut randomness).unwrap();
        path.on_response(at(200), challenge);
        assert_eq!(path.address(), address(2));
        assert_eq!(path.source(path.address()), local(12));
    }
}
