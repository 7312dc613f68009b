//! The listener's state of a caller between message 2 and message 3, sealed and carried by the
//! caller.
//!
//! ```text
//! ticket = slot (u32) | count (u64) | ChaCha20-Poly1305(key of the slot, nonce = slot | count,
//!          associated data = port | address of the caller, contents)
//! ```
//!
//! A ticket is valid in its own time slot of [`SLOT`](super::SLOT) and in the next one, from the
//! address that it was made for. Each slot has a random key, which a timer erases when its last
//! ticket expires. Until then, an attacker who obtains the keys of a listener can open connections
//! that were recorded in these seconds. Only the listener reads tickets, so other implementations
//! may make them in another way.

use core::fmt;
use std::net::SocketAddr;

use comity_transport::wire::limits::{MAX_TICKET, TAG};
use comity_units::Time;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

use super::cookie::{SLOT, endpoint_bytes, slot};
use super::exchange::Shared;
use super::handshake::Agreed;
use super::protection::Cipher;
use super::{ConnectionId, PublicKey, Randomness};

/// The state of a caller that has an Answer.
#[derive(Clone)]
pub(super) struct Ticket {
    /// The caller's connection id.
    pub(super) caller: ConnectionId,
    /// The listener's connection id.
    pub(super) own: ConnectionId,
    pub(super) agreed: Agreed,
    /// The key that the caller has proved to own, if static keys are used.
    pub(super) peer_key: Option<PublicKey>,
    /// When the Answer left. The Confirm packet ends a round trip.
    pub(super) made_at: Time,
}

const IS_PROTECTED: u8 = 1;
const HAS_KEY: u8 = 2;
/// Flags, cipher, two ids, a time, a hash, two keys and a public key.
const MAX_CONTENTS: usize = 1 + 1 + 8 + 8 + 8 + 3 * 32 + 32;
const _: () = assert!(NONCE_LEN + MAX_CONTENTS + TAG <= MAX_TICKET);

/// Seals and opens the tickets of one listener, in constant memory.
pub(super) struct Tickets {
    /// Indexed by the lowest bit of the slot number. Moving a slot would leave a copy of its key
    /// behind.
    slots: [Option<Slot>; 2],
}

struct Slot {
    number: u64,
    /// The key as it was drawn. The cipher's own form of it is on the stack while a ticket is
    /// sealed or opened, and is not erased.
    key: Zeroizing<[u8; 32]>,
    sealed: u64,
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.slots.iter().flatten().map(|slot| slot.number);
        f.debug_struct("Tickets")
            .field("slots", &numbers.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Slot {
    fn new(number: u64, randomness: &mut Randomness) -> Self {
        Self {
            number,
            key: Zeroizing::new(randomness.bytes()),
            sealed: 0,
        }
    }

    fn cipher(&self) -> LessSafeKey {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &*self.key);
        LessSafeKey::new(key.expect("the key has its length"))
    }

    /// When the last ticket of this slot expires.
    fn ends_at(&self) -> Time {
        Time::ZERO + SLOT * (self.number + 2)
    }
}

impl Tickets {
    pub(super) const fn new() -> Self {
        Self {
            slots: [None, None],
        }
    }

    /// When [`Self::on_timer`] has a key to erase; `Time::MAX` for never.
    pub(super) fn next_timer(&self) -> Time {
        let ends = self.slots.iter().flatten().map(Slot::ends_at);
        ends.min().unwrap_or(Time::MAX)
    }

    /// Erases the keys of expired tickets.
    pub(super) fn on_timer(&mut self, now: Time) {
        for slot in &mut self.slots {
            drop(slot.take_if(|slot| slot.ends_at() <= now));
        }
    }

    /// A ticket for the caller at this address, valid for at least [`SLOT`](super::SLOT).
    pub(super) fn seal(
        &mut self,
        now: Time,
        from: SocketAddr,
        ticket: &Ticket,
        randomness: &mut Randomness,
    ) -> Vec<u8> {
        self.on_timer(now);
        let number = slot(now);
        let slot = self.slots[usize::from(number % 2 == 1)]
            .get_or_insert_with(|| Slot::new(number, randomness));
        let mut nonce = [0; NONCE_LEN];
        nonce[..4].copy_from_slice(&(slot.number as u32).to_be_bytes());
        nonce[4..].copy_from_slice(&slot.sealed.to_be_bytes());
        slot.sealed += 1;
        let mut contents = ticket.write();
        slot.cipher()
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(endpoint_bytes(from)),
                &mut *contents,
            )
            .expect("a ticket is within the cipher's bounds");
        [&nonce[..], &contents].concat()
    }

    /// The contents of a ticket; `None` if it was not made here for this address, or has expired.
    pub(super) fn open(&self, now: Time, from: SocketAddr, ticket: &[u8]) -> Option<Ticket> {
        let (nonce, sealed) = ticket.split_first_chunk::<NONCE_LEN>()?;
        let (&low, _) = nonce.split_first_chunk()?;
        let low = u32::from_be_bytes(low);
        let made = { self.slots.iter().flatten() }
            .find(|slot| slot.number as u32 == low && now < slot.ends_at())?;
        let mut contents = Zeroizing::new(sealed.to_vec());
        let contents = made
            .cipher()
            .open_in_place(
                Nonce::assume_unique_for_key(*nonce),
                Aad::from(endpoint_bytes(from)),
                &mut contents,
            )
            .ok()?;
        Ticket::read(contents)
    }
}

impl Ticket {
    fn write(&self) -> Zeroizing<Vec<u8>> {
        // Reserves all memory at once: a reallocation would leave copies of keys behind.
        let mut out = Zeroizing::new(Vec::with_capacity(MAX_CONTENTS + TAG));
        let protected = self.agreed.shared.as_ref().map_or(0, |_| IS_PROTECTED);
        let key = self.peer_key.map_or(0, |_| HAS_KEY);
        out.extend([protected | key, self.agreed.cipher as u8]);
        out.extend(self.caller.get().to_be_bytes());
        out.extend(self.own.get().to_be_bytes());
        out.extend(self.made_at.as_nanos().to_be_bytes());
        if let Some(shared) = &self.agreed.shared {
            out.extend(shared.hash);
            out.extend(&*shared.to_listener);
            out.extend(&*shared.to_caller);
        }
        if let Some(key) = &self.peer_key {
            out.extend(key.bytes());
        }
        out
    }

    fn read(contents: &[u8]) -> Option<Self> {
        let (&[flags, cipher], rest) = contents.split_first_chunk()?;
        let (&caller, rest) = rest.split_first_chunk()?;
        let (&own, rest) = rest.split_first_chunk()?;
        let (&made_at, rest) = rest.split_first_chunk()?;
        let (shared, rest) = match flags & IS_PROTECTED {
            0 => (None, rest),
            _ => {
                let (&hash, rest) = rest.split_first_chunk()?;
                let (&to_listener, rest) = rest.split_first_chunk()?;
                let (&to_caller, rest) = rest.split_first_chunk()?;
                let shared = Shared {
                    hash,
                    to_listener: Zeroizing::new(to_listener),
                    to_caller: Zeroizing::new(to_caller),
                };
                (Some(shared), rest)
            }
        };
        let peer_key = match flags & HAS_KEY {
            0 => None,
            _ => Some(PublicKey::checked(rest.try_into().ok()?)),
        };
        Some(Self {
            caller: ConnectionId::new(u64::from_be_bytes(caller)),
            own: ConnectionId::new(u64::from_be_bytes(own)),
            agreed: Agreed {
                cipher: Cipher::from_wire(cipher)?,
                shared,
            },
            peer_key,
            made_at: Time::from_nanos(u64::from_be_bytes(made_at)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use comity_units::{Seed, Span};

    use super::super::StaticKey;
    use super::super::cookie::tests::{edges, neighbours};
    use super::*;

    fn address(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    fn ticket(is_protected: bool, has_key: bool) -> Ticket {
        Ticket {
            caller: ConnectionId::new(1),
            own: ConnectionId::new(2),
            agreed: Agreed {
                cipher: Cipher::ChaCha20Poly1305,
                shared: is_protected.then(|| Shared {
                    hash: [3; 32],
                    to_listener: Zeroizing::new([4; 32]),
                    to_caller: Zeroizing::new([5; 32]),
                }),
            },
            peer_key: has_key.then(|| StaticKey::new([6; 32]).public()),
            made_at: Time::from_millis(7_123),
        }
    }

    #[test]
    fn a_ticket_returns_its_sealed_contents() {
        let mut randomness = Randomness::seeded(Seed::new(1));
        let now = Time::from_secs(15);
        let mut tickets = Tickets::new();
        for (is_protected, has_key) in [(false, false), (true, false), (true, true)] {
            let before = ticket(is_protected, has_key);
            let sealed = tickets.seal(now, address(1), &before, &mut randomness);
            let after = tickets.open(now, address(1), &sealed).expect("genuine");
            assert_eq!((after.caller, after.own), (before.caller, before.own));
            assert_eq!(after.agreed.cipher, before.agreed.cipher);
            let keys = |ticket: &Ticket| {
                let shared = ticket.agreed.shared.as_ref()?;
                Some((shared.hash, *shared.to_listener, *shared.to_caller))
            };
            assert_eq!(keys(&after), keys(&before));
            assert_eq!(keys(&after).is_some(), is_protected);
            assert_eq!(after.peer_key, before.peer_key);
            assert_eq!(after.made_at, before.made_at);
        }
    }

    #[test]
    fn a_ticket_is_bound_to_its_address_and_valid_in_two_slots() {
        let mut randomness = Randomness::seeded(Seed::new(1));
        let now = Time::from_secs(15);
        let mut tickets = Tickets::new();
        let sealed = tickets.seal(now, address(1), &ticket(true, false), &mut randomness);
        assert!(tickets.open(now, address(2), &sealed).is_none());
        // Made in the slot from 8 to 16 s, valid until 24 s, also after the next key was drawn.
        let last = Time::from_nanos(Time::from_secs(24).as_nanos() - 1);
        for _ in 0..2 {
            assert!(tickets.open(last, address(1), &sealed).is_some());
            assert!(tickets.open(last + SLOT, address(1), &sealed).is_none());
            tickets.seal(last, address(1), &ticket(true, false), &mut randomness);
        }
    }

    /// Bits of the ticket, and of the address that it is bound to. A truncated ticket is refused
    /// too.
    #[test]
    fn every_changed_bit_is_refused() {
        let mut randomness = Randomness::seeded(Seed::new(1));
        let now = Time::from_secs(15);
        let mut tickets = Tickets::new();
        let here: [SocketAddr; 2] = [
            address(1),
            ([0x2001_u16, 0xdb8, 0, 0, 0, 0, 0, 1], 1).into(),
        ];
        for from in here {
            let sealed = tickets.seal(now, from, &ticket(true, true), &mut randomness);
            assert!(tickets.open(now, from, &sealed).is_some());
            for bit in 0..8 * sealed.len() {
                let mut forged = sealed.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                assert!(tickets.open(now, from, &forged).is_none(), "bit {bit}");
                assert!(tickets.open(now, from, &sealed[..bit / 8]).is_none());
            }
            for other in neighbours(from) {
                assert!(tickets.open(now, other, &sealed).is_none(), "{other}");
            }
        }
    }

    /// Seals tickets at the first and the last nanosecond of some slots. Tests them at the same
    /// times of later slots, with and without other calls in between.
    #[test]
    fn every_time_outside_of_its_lifetime_is_refused() {
        for (made, calls) in (0..5).flat_map(|made| [(made, false), (made, true)]) {
            for at in edges(made) {
                let mut randomness = Randomness::seeded(Seed::new(1));
                let mut tickets = Tickets::new();
                let sealed = tickets.seal(at, address(1), &ticket(true, false), &mut randomness);
                for slot in made..made + 6 {
                    for now in edges(slot).into_iter().filter(|now| *now >= at) {
                        if calls {
                            tickets.seal(now, address(2), &ticket(false, false), &mut randomness);
                        }
                        let is_open = tickets.open(now, address(1), &sealed).is_some();
                        assert_eq!(is_open, slot <= made + 1, "of slot {made}, at {now}");
                    }
                }
            }
        }
    }

    /// Without further calls, the key is still erased with its last ticket, 16 s after the
    /// beginning of its slot. At most two keys exist.
    #[test]
    fn a_key_is_erased_by_the_timer() {
        let mut randomness = Randomness::seeded(Seed::new(1));
        let mut tickets = Tickets::new();
        assert_eq!(tickets.next_timer(), Time::MAX);
        let keys = |tickets: &Tickets| tickets.slots.iter().flatten().count();
        let now = Time::from_secs(15);
        let sealed = tickets.seal(now, address(1), &ticket(true, false), &mut randomness);
        let end = Time::from_secs(24);
        assert_eq!((keys(&tickets), tickets.next_timer()), (1, end));
        let just_before = Time::from_nanos(end.as_nanos() - 1);
        tickets.on_timer(just_before);
        assert!(tickets.open(just_before, address(1), &sealed).is_some());
        tickets.seal(
            just_before,
            address(1),
            &ticket(true, false),
            &mut randomness,
        );
        assert_eq!(keys(&tickets), 2);
        tickets.on_timer(end);
        // It is refused because no key exists, not because of the time.
        assert!(tickets.open(now, address(1), &sealed).is_none());
        assert_eq!(
            (keys(&tickets), tickets.next_timer()),
            (1, Time::from_secs(32))
        );
        tickets.on_timer(tickets.next_timer());
        assert_eq!((keys(&tickets), tickets.next_timer()), (0, Time::MAX));
    }

    /// Two contents under one key and nonce would reveal their difference, and contents include the
    /// keys of connections.
    #[test]
    fn no_two_tickets_share_a_nonce() {
        let mut randomness = Randomness::seeded(Seed::new(1));
        let mut now = Time::from_secs(1);
        let mut tickets = Tickets::new();
        let mut nonces = BTreeSet::new();
        for _ in 0..300 {
            let sealed = tickets.seal(now, address(1), &ticket(true, true), &mut randomness);
            assert!(nonces.insert(sealed[..NONCE_LEN].to_vec()));
            now += Span::from_millis(100);
        }
    }
}
