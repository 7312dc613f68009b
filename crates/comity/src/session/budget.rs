//! How many key exchanges a listener does for whom.
//!
//! A key exchange is the one costly thing that a caller can cause before it has proved itself. The
//! budget bounds how much of the processor strangers get, and sees to it that many from one network
//! do not keep out those from others:
//!
//! ```text
//! a prefix with a token of its own       takes it, and one of the reserve
//! a prefix that is not in debt           takes one of the common ones
//! anybody else                           has to ask again
//! ```
//!
//! A prefix is a /24 of IPv4 or a /64 of IPv6. Whoever fails to prove itself costs its prefix
//! [`FAILURE`] tokens more. A prefix in debt has no share of the common tokens, and none of its
//! proofs is looked at. So guesses of a passphrase come at the rate of the prefix at most, however
//! many key exchanges went before.

use std::net::{IpAddr, SocketAddr};

use comity_units::Time;
use ring::hmac;

use super::Randomness;

/// Key exchanges per second that any caller may take, and how many at once.
const COMMON: Rate = Rate {
    per_second: 1_000,
    burst: 1_000,
};
/// Those that are left for prefixes with tokens of their own.
const RESERVE: Rate = Rate {
    per_second: 1_000,
    burst: 1_000,
};
/// The tokens of one prefix.
const PREFIX: Rate = Rate {
    per_second: 8,
    burst: 16,
};
/// What a caller costs its prefix that does not prove itself.
const FAILURE: i64 = 2;
/// The deepest debt of a prefix: it has a token again after two seconds.
const DEBT: i64 = 16;

/// The prefixes share this many buckets, twice: memory does not grow with their number. A prefix
/// that shares both with busy ones has only the common tokens.
const CELLS: usize = 4_096;

/// So many per second, and at most so many at once.
#[derive(Clone, Copy, Debug)]
struct Rate {
    per_second: i64,
    burst: i64,
}

/// Tokens in thousand-millionths, so that no time is lost in rounding.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    level: i64,
    filled_at: Time,
}

const TOKEN: i64 = 1_000_000_000;

impl Tokens {
    const fn full(rate: Rate, now: Time) -> Self {
        Self {
            level: rate.burst * TOKEN,
            filled_at: now,
        }
    }

    fn fill(&mut self, now: Time, rate: Rate) {
        let elapsed = now.saturating_since(self.filled_at).as_nanos();
        // A token per second is a thousand-millionth per nanosecond.
        let elapsed = i64::try_from(elapsed).unwrap_or(i64::MAX);
        let gained = elapsed.saturating_mul(rate.per_second);
        self.level = self.level.saturating_add(gained).min(rate.burst * TOKEN);
        self.filled_at = self.filled_at.max(now);
    }

    const fn has_one(&self) -> bool {
        self.level >= TOKEN
    }
}

/// The budget of one listener.
pub(super) struct Budget {
    secret: hmac::Key,
    common: Tokens,
    reserve: Tokens,
    cells: [Vec<Tokens>; 2],
}

impl Budget {
    pub(super) fn new(now: Time, randomness: &mut Randomness) -> Self {
        let cells = vec![Tokens::full(PREFIX, now); CELLS];
        Self {
            secret: hmac::Key::new(hmac::HMAC_SHA256, &randomness.bytes::<32>()),
            common: Tokens::full(COMMON, now),
            reserve: Tokens::full(RESERVE, now),
            cells: [cells.clone(), cells],
        }
    }

    /// Takes what a key exchange with this caller costs; `false` if there is nothing left for it.
    pub(super) fn take(&mut self, now: Time, from: SocketAddr) -> bool {
        let prefix = self.prefix(from);
        self.common.fill(now, COMMON);
        self.reserve.fill(now, RESERVE);
        let own = self.fill(now, prefix);
        if own >= TOKEN && self.reserve.has_one() {
            self.charge(prefix, 1);
            self.reserve.level -= TOKEN;
            return true;
        }
        let granted = own >= 0 && self.common.has_one();
        if granted {
            self.common.level -= TOKEN;
        }
        granted
    }

    /// Whether to look at a proof of this caller: its prefix is not in debt. Each key exchange that
    /// was granted is worth a guess, and the common tokens grant a thousand at once.
    pub(super) fn allows_proof(&mut self, now: Time, from: SocketAddr) -> bool {
        let prefix = self.prefix(from);
        self.fill(now, prefix) >= 0
    }

    /// Somebody from there has not proved what it should.
    pub(super) fn on_failure(&mut self, now: Time, from: SocketAddr) {
        let prefix = self.prefix(from);
        self.fill(now, prefix);
        self.charge(prefix, FAILURE);
    }

    /// The tokens of a prefix: those of the fuller one of its two buckets.
    fn fill(&mut self, now: Time, prefix: [usize; 2]) -> i64 {
        let levels = self.cells.iter_mut().zip(prefix).map(|(cells, at)| {
            let tokens = &mut cells[at];
            tokens.fill(now, PREFIX);
            tokens.level
        });
        levels.max().unwrap_or(0)
    }

    fn charge(&mut self, prefix: [usize; 2], tokens: i64) {
        for (cells, at) in self.cells.iter_mut().zip(prefix) {
            let level = &mut cells[at].level;
            *level = (*level - tokens * TOKEN).max(-DEBT * TOKEN);
        }
    }

    /// The buckets of a caller's prefix, which nobody can foresee.
    fn prefix(&self, from: SocketAddr) -> [usize; 2] {
        let tag = match from.ip() {
            IpAddr::V4(address) => hmac::sign(&self.secret, &address.octets()[..3]),
            IpAddr::V6(address) => match address.to_ipv4_mapped() {
                Some(address) => hmac::sign(&self.secret, &address.octets()[..3]),
                None => hmac::sign(&self.secret, &address.octets()[..8]),
            },
        };
        let place = |at: usize| {
            let bytes = tag.as_ref();
            usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]])) % CELLS
        };
        [place(0), place(2)]
    }
}

#[cfg(test)]
mod tests {
    use comity_units::{Seed, Span};

    use super::*;

    fn at(prefix: u16, host: u8) -> SocketAddr {
        let [high, low] = prefix.to_be_bytes();
        ([10, high, low, host], 4_000).into()
    }

    fn budget() -> (Budget, Time) {
        let now = Time::from_secs(1);
        (Budget::new(now, &mut Randomness::seeded(Seed::new(1))), now)
    }

    #[test]
    fn one_network_does_not_keep_out_another() {
        let (mut budget, start) = budget();
        // Ten seconds at 20,000 in a second from one /24, and one caller a second from elsewhere.
        let mut granted = 0;
        for at_ms in 0..10_000_u64 {
            let now = start + Span::from_millis(at_ms);
            for host in 0..20 {
                granted += u32::from(budget.take(now, at(7, host)));
            }
            if at_ms % 1_000 == 999 {
                let prefix = (at_ms / 1_000) as u16 + 100;
                assert!(budget.take(now, at(prefix, 1)), "{at_ms} ms");
            }
        }
        // The common tokens and those of the prefix: 1,000 and 16 at once, 1,008 a second.
        assert!((11_000..=11_100).contains(&granted), "{granted}");
    }

    #[test]
    fn many_networks_share_what_there_is() {
        let (mut budget, mut now) = budget();
        let (mut granted, mut honest) = (0, 0);
        // 20,000 a second for ten seconds, at random times; one of 100 is honest.
        let mut random = Randomness::seeded(Seed::new(2));
        for ask in 0..200_000_u64 {
            let [step, who] = random.bytes();
            now += Span::from_nanos(u64::from(step) * 392);
            if who < 3 {
                let from = ([192, 0, (ask / 100) as u8, 1], 1).into();
                honest += u32::from(budget.take(now, from));
            } else {
                let prefix = ask * 40_503 % 65_536;
                granted += u32::from(budget.take(now, at(prefix as u16, 1)));
            }
        }
        // 2,000 at once and 2,000 a second.
        assert!(
            (21_500..=22_100).contains(&(granted + honest)),
            "{granted} {honest}"
        );
        // Each gets one of ten, as everybody does.
        assert!((160..=320).contains(&honest), "{honest} of some 2,300");
    }

    #[test]
    fn who_fails_to_prove_itself_is_in_debt_and_has_no_common_tokens() {
        let (mut budget, start) = budget();
        let mut guesses = 0;
        for at_ms in 0..10_000_u64 {
            let now = start + Span::from_millis(at_ms);
            for host in 0..10 {
                if budget.take(now, at(3, host)) {
                    budget.on_failure(now, at(3, host));
                    guesses += 1;
                }
            }
        }
        // 16 tokens at first and 8 in a second. A failure takes two or three of them.
        assert!((20..=60).contains(&guesses), "{guesses}");
        assert!(budget.take(start + Span::from_secs(12), at(3, 1)));
    }

    #[test]
    fn proofs_of_a_prefix_in_debt_are_not_looked_at() {
        let (mut budget, start) = budget();
        let mut guesses = 0;
        for at_ms in 0..10_000_u64 {
            let now = start + Span::from_millis(at_ms);
            for host in 0..10 {
                if budget.allows_proof(now, at(3, host)) {
                    budget.on_failure(now, at(3, host));
                    guesses += 1;
                }
            }
        }
        // 16 tokens at first and 8 in a second, and two for each.
        assert!((48..=50).contains(&guesses), "{guesses}");
        let now = start + Span::from_secs(10);
        assert!(budget.allows_proof(now, at(4, 1)), "another prefix");
    }

    #[test]
    fn the_same_address_in_both_families_is_one_prefix() {
        let (budget, _) = budget();
        let mapped: SocketAddr = "[::ffff:10.0.3.9]:1".parse().unwrap();
        assert_eq!(budget.prefix(at(3, 1)), budget.prefix(mapped));
        let one: SocketAddr = "[2001:db8::1]:1".parse().unwrap();
        let same: SocketAddr = "[2001:db8::2:0:0:7]:2".parse().unwrap();
        let other: SocketAddr = "[2001:db8:0:1::1]:1".parse().unwrap();
        assert_eq!(budget.prefix(one), budget.prefix(same));
        assert_ne!(budget.prefix(one), budget.prefix(other));
    }
}
