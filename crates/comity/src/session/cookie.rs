//! The stateless proof that a caller receives what is sent to its address.
//!
//! A listener answers an Initial that has no valid cookie with a Retry that has one, and forgets
//! both. The cookie is
//!
//! ```text
//! slot (u32) | HMAC-SHA256(secret, slot | connection id | port | address)
//! ```
//!
//! and is good in its own time slot of [`SLOT`] and in the next one. The secret is random and
//! replaced every [`ROTATION`]; the one before is kept for the cookies that it made. Only the
//! listener reads cookies, so other implementations may make them otherwise.

use core::fmt;
use std::net::{IpAddr, SocketAddr};

use comity_units::{Span, Time};
use ring::hmac;

use super::{ConnectionId, Randomness};

/// How long a time slot is: a cookie is good for at least so long, and less than twice as long.
pub const SLOT: Span = Span::from_secs(8);

/// How long a secret makes cookies.
pub const ROTATION: Span = Span::from_secs(3600);

const SLOTS_PER_ROTATION: u64 = ROTATION.as_nanos() / SLOT.as_nanos();

/// Makes and checks the cookies of one listener. Its memory does not grow.
pub struct Cookies {
    current: hmac::Key,
    /// The secret before, and nothing before the first rotation.
    previous: Option<hmac::Key>,
    /// The first slot of the current secret.
    since: u64,
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

fn slot(now: Time) -> u64 {
    now.as_nanos() / SLOT.as_nanos()
}

/// What a cookie vouches for: slot, connection id, port and address; the length tells IPv4 from
/// IPv6.
fn vouched(slot: u64, caller: SocketAddr, connection: ConnectionId) -> Vec<u8> {
    let mut bytes = slot.to_be_bytes().to_vec();
    bytes.extend(connection.get().to_be_bytes());
    bytes.extend(caller.port().to_be_bytes());
    match caller.ip() {
        IpAddr::V4(address) => bytes.extend(address.octets()),
        IpAddr::V6(address) => bytes.extend(address.octets()),
    }
    bytes
}

impl Cookies {
    /// A new secret.
    pub fn new(now: Time, randomness: &mut Randomness) -> Self {
        Self {
            current: secret(randomness),
            previous: None,
            since: slot(now),
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
        let slot = slot(now);
        if slot.saturating_sub(self.since) >= SLOTS_PER_ROTATION {
            let next = secret(randomness);
            // A secret that lay unused for a rotation has no cookie left that is good.
            self.previous = Some(core::mem::replace(&mut self.current, next));
            self.since = slot;
        }
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
mod tests {
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
        // Made in the slot from 8 to 16 s, good until 24 s.
        let last = Time::from_nanos(Time::from_secs(24).as_nanos() - 1);
        assert!(cookies.accepts(last, caller, ID, &cookie));
        assert!(!cookies.accepts(Time::from_secs(24), caller, ID, &cookie));
        for at in 0..cookie.len() {
            let mut forged = cookie.clone();
            forged[at] ^= 1;
            assert!(!cookies.accepts(made, caller, ID, &forged), "byte {at}");
            assert!(
                !cookies.accepts(made, caller, ID, &cookie[..at]),
                "cut at {at}"
            );
        }
        let longer = [&cookie[..], &[0]].concat();
        assert!(!cookies.accepts(made, caller, ID, &longer));
    }

    #[test]
    fn secrets_rotate_and_the_cookies_under_way_stay_good() {
        let (mut cookies, mut randomness) = start();
        let caller = address("[2001:db8::1]:4000");
        let before = Time::from_secs(3599);
        let old = cookies.make(before, caller, ID, &mut randomness);
        let after = Time::from_secs(3601);
        let new = cookies.make(after, caller, ID, &mut randomness);
        assert!(cookies.accepts(after, caller, ID, &old));
        assert!(cookies.accepts(after, caller, ID, &new));
        // The same slot under the first secret alone gives another cookie: the secret is a new one.
        let never_rotated = hmac::sign(&start().0.current, &vouched(450, caller, ID));
        assert_ne!(never_rotated.as_ref(), &new[4..]);
        assert_eq!(new[..4], 450_u32.to_be_bytes());
        let stranger = Cookies::new(Time::ZERO, &mut Randomness::seeded(Seed::new(2)));
        assert!(!stranger.accepts(after, caller, ID, &new));
    }
}
