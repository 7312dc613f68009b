//! The stateless proof that a caller receives packets at its address.
//!
//! A listener answers an Initial without a valid cookie by a Retry with one, and keeps no state.
//! The cookie is
//!
//! ```text
//! slot (u32) | HMAC-SHA256(secret, slot | connection id | port | address)
//! ```
//!
//! It is valid in its own time slot of [`SLOT`] and in the next one. The secret is random. A timer
//! replaces it [`ROTATION`] after its first use, and erases the previous secret when its last
//! cookie expires. Only the listener reads cookies, so other implementations may make them in
//! another way.

use core::fmt;
use std::net::{IpAddr, SocketAddr};

use comity_units::{Span, Time};
use ring::hmac;

use super::{ConnectionId, Randomness};

/// The length of a time slot. A cookie is valid for one to two slots.
pub const SLOT: Span = Span::from_secs(8);

/// The lifetime of a secret from its first use.
pub const ROTATION: Span = Span::from_secs(3600);

const SLOTS_PER_ROTATION: u64 = ROTATION.as_nanos() / SLOT.as_nanos();

/// Makes and checks the cookies of a listener, in constant memory.
pub struct Cookies {
    current: hmac::Key,
    /// The previous secret; `None` before the first rotation.
    previous: Option<hmac::Key>,
    /// The first slot of the current secret.
    since: u64,
    /// Whether a cookie was made with the current secret.
    is_used: bool,
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookies")
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}

fn secret(randomness: &mut Randomness) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &randomness.bytes::<32>())
}

/// The time slot of cookies and tickets.
pub(super) fn slot(now: Time) -> u64 {
    now.as_nanos() / SLOT.as_nanos()
}

/// The bytes that a cookie authenticates: slot, connection id, port and address. The length
/// distinguishes IPv4 from IPv6.
fn vouched(slot: u64, caller: SocketAddr, connection: ConnectionId) -> Vec<u8> {
    let mut bytes = slot.to_be_bytes().to_vec();
    bytes.extend(connection.get().to_be_bytes());
    bytes.extend(endpoint_bytes(caller));
    bytes
}

/// Port and address.
pub(super) fn endpoint_bytes(endpoint: SocketAddr) -> Vec<u8> {
    let mut bytes = endpoint.port().to_be_bytes().to_vec();
    match endpoint.ip() {
        IpAddr::V4(address) => bytes.extend(address.octets()),
        IpAddr::V6(address) => bytes.extend(address.octets()),
    }
    bytes
}

impl Cookies {
    /// Draws the first secret.
    pub fn new(now: Time, randomness: &mut Randomness) -> Self {
        Self {
            current: secret(randomness),
            previous: None,
            since: slot(now),
            is_used: false,
        }
    }

    /// When [`Self::on_timer`] has a secret to replace or to erase; `Time::MAX` for never.
    pub fn next_timer(&self) -> Time {
        let begins = |slot: u64| Time::ZERO + SLOT * slot;
        match (&self.previous, self.is_used) {
            (Some(_), _) => begins(self.since + 1),
            (None, true) => begins(self.since + SLOTS_PER_ROTATION),
            (None, false) => Time::MAX,
        }
    }

    /// Replaces a secret that has reached its lifetime, and erases the previous one when its last
    /// cookie expires.
    pub fn on_timer(&mut self, now: Time, randomness: &mut Randomness) {
        let slot = slot(now);
        if slot.saturating_sub(self.since) >= SLOTS_PER_ROTATION {
            let next = secret(randomness);
            let last = core::mem::replace(&mut self.current, next);
            // An unused secret has no cookies.
            self.previous = self.is_used.then_some(last);
            self.is_used = false;
            self.since = slot;
        } else if slot > self.since {
            self.previous = None;
        }
    }

    /// The cookie of this caller now. May replace the secret.
    pub fn make(
        &mut self,
        now: Time,
        caller: SocketAddr,
        connection: ConnectionId,
        randomness: &mut Randomness,
    ) -> Vec<u8> {
        self.on_timer(now, randomness);
        self.is_used = true;
        let slot = slot(now);
        let mut cookie = (slot as u32).to_be_bytes().to_vec();
        cookie.extend(hmac::sign(&self.current, &vouched(slot, caller, connection)).as_ref());
        cookie
    }

    /// Whether `cookie` was made for this caller in this time slot or the one before.
    pub fn accepts(
        &self,
        now: Time,
        caller: SocketAddr,
        connection: ConnectionId,
        cookie: &[u8],
    ) -> bool {
        let Some((low, tag)) = cookie.split_first_chunk() else {
            return false;
        };
        let low = u32::from_be_bytes(*low);
        let current = slot(now);
        let Some(made) = [Some(current), current.checked_sub(1)]
            .into_iter()
            .flatten()
            .find(|&slot| slot as u32 == low)
        else {
            return false;
        };
        let key = if made >= self.since {
            Some(&self.current)
        } else {
            self.previous.as_ref()
        };
        key.is_some_and(|key| hmac::verify(key, &vouched(made, caller, connection), tag).is_ok())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use comity_units::Seed;

    use super::*;

    const ID: ConnectionId = ConnectionId::new(77);

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn start() -> (Cookies, Randomness) {
        let mut randomness = Randomness::seeded(Seed::new(1));
        (Cookies::new(Time::ZERO, &mut randomness), randomness)
    }

    #[test]
    fn a_cookie_is_bound_to_address_connection_and_time() {
        let (mut cookies, mut randomness) = start();
        let caller = address("192.0.2.1:4000");
        let made = Time::from_secs(15);
        let cookie = cookies.make(made, caller, ID, &mut randomness);
        assert!(cookies.accepts(made, caller, ID, &cookie));
        for other in ["192.0.2.1:4001", "192.0.2.2:4000", "[2001:db8::1]:4000"] {
            assert!(
                !cookies.accepts(made, address(other), ID, &cookie),
                "{other}"
            );
        }
        assert!(!cookies.accepts(made, caller, ConnectionId::new(78), &cookie));
        // Made in the slot from 8 to 16 s, valid until 24 s.
        let last = Time::from_nanos(Time::from_secs(24).as_nanos() - 1);
        assert!(cookies.accepts(last, caller, ID, &cookie));
        assert!(!cookies.accepts(Time::from_secs(24), caller, ID, &cookie));
        for at in 0..cookie.len() {
            assert!(
                !cookies.accepts(made, caller, ID, &cookie[..at]),
                "cut at {at}"
            );
        }
        let longer = [&cookie[..], &[0]].concat();
        assert!(!cookies.accepts(made, caller, ID, &longer));
    }

    /// Bits of the cookie and of everything that it authenticates.
    #[test]
    fn every_changed_bit_is_refused() {
        let (mut cookies, mut randomness) = start();
        let made = Time::from_secs(15);
        for caller in ["192.0.2.1:4000", "[2001:db8::1]:4000"].map(address) {
            let cookie = cookies.make(made, caller, ID, &mut randomness);
            assert!(cookies.accepts(made, caller, ID, &cookie));
            for bit in 0..8 * cookie.len() {
                let mut forged = cookie.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                assert!(!cookies.accepts(made, caller, ID, &forged), "bit {bit}");
            }
            for bit in 0..64 {
                let other = ConnectionId::new(ID.get() ^ 1 << bit);
                assert!(!cookies.accepts(made, caller, other, &cookie), "bit {bit}");
            }
            for other in neighbours(caller) {
                assert!(!cookies.accepts(made, other, ID, &cookie), "{other}");
            }
        }
    }

    /// Makes cookies in the first slots and in those around the change of the secret. Tests them at
    /// the first and the last nanosecond of later slots, while others call in between.
    #[test]
    fn every_time_outside_of_its_lifetime_is_refused() {
        let caller = address("192.0.2.1:4000");
        for made in (0..4).chain(SLOTS_PER_ROTATION - 3..SLOTS_PER_ROTATION + 3) {
            for at in edges(made) {
                let (mut cookies, mut randomness) = start();
                // The secret is in use from the beginning.
                cookies.make(Time::ZERO, caller, ID, &mut randomness);
                let cookie = cookies.make(at, caller, ID, &mut randomness);
                for slot in made..made + 6 {
                    for now in edges(slot).into_iter().filter(|now| *now >= at) {
                        let other = ConnectionId::new(now.as_nanos());
                        cookies.make(now, caller, other, &mut randomness);
                        let is_alive = slot <= made + 1;
                        let accepts = cookies.accepts(now, caller, ID, &cookie);
                        assert_eq!(accepts, is_alive, "of slot {made}, at {now}");
                    }
                }
            }
        }
    }

    /// The first and the last nanosecond of a slot.
    pub(crate) fn edges(slot: u64) -> [Time; 2] {
        let [begin, end] = [slot, slot + 1].map(|slot| SLOT.as_nanos() * slot);
        [begin, end - 1].map(Time::from_nanos)
    }

    /// The addresses with one bit changed, of the port or of the address.
    pub(crate) fn neighbours(of: SocketAddr) -> Vec<SocketAddr> {
        let ports = (0..16).map(|bit| SocketAddr::new(of.ip(), of.port() ^ 1 << bit));
        let hosts: Vec<IpAddr> = match of.ip() {
            IpAddr::V4(host) => (0..32)
                .map(|bit| Ipv4Addr::from_bits(host.to_bits() ^ 1 << bit).into())
                .collect(),
            IpAddr::V6(host) => (0..128)
                .map(|bit| Ipv6Addr::from_bits(host.to_bits() ^ 1 << bit).into())
                .collect(),
        };
        let hosts = hosts
            .into_iter()
            .map(|host| SocketAddr::new(host, of.port()));
        ports.chain(hosts).collect()
    }

    #[test]
    fn secrets_rotate_and_outstanding_cookies_stay_valid() {
        let (mut cookies, mut randomness) = start();
        let caller = address("[2001:db8::1]:4000");
        let before = Time::from_secs(3599);
        let old = cookies.make(before, caller, ID, &mut randomness);
        let after = Time::from_secs(3601);
        let new = cookies.make(after, caller, ID, &mut randomness);
        assert!(cookies.accepts(after, caller, ID, &old));
        assert!(cookies.accepts(after, caller, ID, &new));
        // The first secret would have made another cookie in this slot: the secret was replaced.
        let never_rotated = hmac::sign(&start().0.current, &vouched(450, caller, ID));
        assert_ne!(never_rotated.as_ref(), &new[4..]);
        assert_eq!(new[..4], 450_u32.to_be_bytes());
        let stranger = Cookies::new(Time::ZERO, &mut Randomness::seeded(Seed::new(2)));
        assert!(!stranger.accepts(after, caller, ID, &new));
    }

    /// Without further calls, no secret outlasts its time.
    #[test]
    fn a_timer_replaces_and_erases_secrets() {
        let (mut cookies, mut randomness) = start();
        assert_eq!(cookies.next_timer(), Time::MAX, "nobody has a cookie of it");
        let caller = address("[2001:db8::1]:4000");
        let made = Time::from_secs(3599);
        let cookie = cookies.make(made, caller, ID, &mut randomness);
        let first = vouch(&cookies.current);
        let due = Time::from_secs(3600);
        assert_eq!(cookies.next_timer(), due);
        cookies.on_timer(due, &mut randomness);
        assert!(cookies.accepts(due, caller, ID, &cookie));
        assert_ne!(first, vouch(&cookies.current));
        assert_eq!(cookies.previous.as_ref().map(vouch), Some(first));
        let due = Time::from_secs(3608);
        assert_eq!(cookies.next_timer(), due);
        cookies.on_timer(due, &mut randomness);
        assert!(cookies.previous.is_none());
        assert_eq!(cookies.next_timer(), Time::MAX);
    }

    /// The HMAC of no bytes, which distinguishes secrets.
    fn vouch(key: &hmac::Key) -> Vec<u8> {
        hmac::sign(key, b"").as_ref().to_vec()
    }
}
