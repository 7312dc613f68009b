//! The rates of key exchanges and of passphrase guesses that a listener grants.
//!
//! A key exchange is the only costly operation that a caller can cause before it has proved itself.
//! The budget bounds the processor time of strangers. Many callers from one network cannot exclude
//! those from others:
//!
//! ```text
//! caller                                    key exchange
//! its network and the reserve have tokens   takes one token of each
//! else, its address is not in debt          takes a common token, if there is one
//! else                                      deferred: the caller has to retransmit
//! ```
//!
//! A network is a /24 of IPv4 or a /64 of IPv6. With a passphrase, each key exchange allows one
//! guess, and message 3 makes it. A wrong guess costs a token of the network and several of its own
//! address. An address that fails often thus does not exclude its neighbours:
//!
//! ```text
//! address                            message 3 is checked
//! without failures, young ticket     while its network has fresh tokens
//! without failures, old ticket       while its network has tokens for addresses with failures
//! with failures                      the same
//! with many failures, so in debt     not before its own tokens have come back
//! ```
//!
//! A ticket is young for [`YOUNG`]. So nobody can collect tickets of many addresses, and use up the
//! fresh tokens with all of them at once.
//!
//! An attacker with many addresses always has some without failures: the fresh tokens of a network
//! bound its guesses.

use std::net::{IpAddr, SocketAddr};

use comity_units::{Span, Time};
use ring::hmac;

use super::Randomness;

/// Key exchanges per second for all callers, and the maximum burst.
const COMMON: Rate = Rate {
    per_second: 1_000,
    burst: 1_000,
};
/// Key exchanges reserved for networks with tokens of their own.
const RESERVE: Rate = Rate {
    per_second: 1_000,
    burst: 1_000,
};
/// The key exchanges of one network from the reserve.
const NETWORK: Rate = Rate {
    per_second: 8,
    burst: 16,
};
/// Wrong guesses of one network from addresses that have not failed before. An attacker with many
/// addresses makes 48 per second with one Mb/s.
const FRESH: Rate = Rate {
    per_second: 64,
    burst: 64,
};
/// Wrong guesses of one network from addresses that have failed before.
const FAILED: Rate = Rate {
    per_second: 4,
    burst: 8,
};
/// The tokens of one address. An address with all of them counts as one that has not failed.
const ADDRESS: Rate = Rate {
    per_second: 1,
    burst: 16,
};
/// The cost of a wrong guess for its address.
const FAILURE: i64 = 4;

/// How long fresh tokens are for the proof of a ticket. A path with longer round trips is rare, and
/// its callers still have the other tokens.
const YOUNG: Span = Span::from_secs(2);

/// Records that all networks share, in each of two tables: memory does not grow with the number of
/// networks. A network that shares both of its records with busy ones has only the common tokens.
const NETWORKS: usize = 4_096;
/// The same for addresses. If every key exchange is a wrong guess, each record is charged every 16
/// s.
const ADDRESSES: usize = 32_768;

/// Tokens per second, and the maximum number of tokens.
#[derive(Clone, Copy, Debug)]
struct Rate {
    per_second: i64,
    burst: i64,
}

/// A number of tokens in units of 10^-9, so that rounding loses no time.
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
        // One token per second is 10^-9 tokens per nanosecond.
        let elapsed = i64::try_from(elapsed).unwrap_or(i64::MAX);
        let gained = elapsed.saturating_mul(rate.per_second);
        self.level = self.level.saturating_add(gained).min(rate.burst * TOKEN);
        self.filled_at = self.filled_at.max(now);
    }

    const fn has_one(&self) -> bool {
        self.level >= TOKEN
    }
}

/// The tokens of a network.
#[derive(Clone, Copy, Debug)]
struct Network {
    own: Tokens,
    fresh: Tokens,
    failed: Tokens,
}

/// The budget of one listener.
pub(super) struct Budget {
    secret: hmac::Key,
    common: Tokens,
    reserve: Tokens,
    networks: [Vec<Network>; 2],
    addresses: [Vec<Tokens>; 2],
}

/// The indices of a caller's records, which nobody can predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Records {
    network: [usize; 2],
    address: [usize; 2],
}

impl Budget {
    pub(super) fn new(now: Time, randomness: &mut Randomness) -> Self {
        let network = Network {
            own: Tokens::full(NETWORK, now),
            fresh: Tokens::full(FRESH, now),
            failed: Tokens::full(FAILED, now),
        };
        let address = Tokens::full(ADDRESS, now);
        Self {
            secret: hmac::Key::new(hmac::HMAC_SHA256, &randomness.bytes::<32>()),
            common: Tokens::full(COMMON, now),
            reserve: Tokens::full(RESERVE, now),
            networks: [vec![network; NETWORKS], vec![network; NETWORKS]],
            addresses: [vec![address; ADDRESSES], vec![address; ADDRESSES]],
        }
    }

    /// Takes the tokens for a key exchange with this caller. Returns `false` if there are none.
    pub(super) fn take(&mut self, now: Time, from: SocketAddr) -> bool {
        let records = self.records(from);
        self.common.fill(now, COMMON);
        self.reserve.fill(now, RESERVE);
        let own = self.network(now, records, NETWORK, |network| &mut network.own);
        if own >= TOKEN && self.reserve.has_one() {
            self.charge(records, 1, |network| &mut network.own);
            self.reserve.level -= TOKEN;
            return true;
        }
        let granted = self.address(now, records) >= 0 && self.common.has_one();
        if granted {
            self.common.level -= TOKEN;
        }
        granted
    }

    /// Whether to check a proof of this caller with a ticket of `made_at`. Each granted key
    /// exchange allows one guess, and the common tokens grant a thousand at once.
    pub(super) fn allows_proof(&mut self, now: Time, from: SocketAddr, made_at: Time) -> bool {
        let records = self.records(from);
        let level = self.address(now, records);
        if level < 0 {
            return false;
        }
        let tokens = match is_fresh(now, level, made_at) {
            true => self.network(now, records, FRESH, |network| &mut network.fresh),
            false => self.network(now, records, FAILED, |network| &mut network.failed),
        };
        tokens >= TOKEN
    }

    /// Charges a caller at this address that has failed to prove itself with a ticket.
    pub(super) fn on_failure(&mut self, now: Time, from: SocketAddr, made_at: Time) {
        let records = self.records(from);
        let level = self.address(now, records);
        match is_fresh(now, level, made_at) {
            true => self.charge(records, 1, |network| &mut network.fresh),
            false => self.charge(records, 1, |network| &mut network.failed),
        }
        for (tokens, at) in self.addresses.iter_mut().zip(records.address) {
            tokens[at].level = (tokens[at].level - FAILURE * TOKEN).max(-FAILURE * TOKEN);
        }
    }

    /// Refunds a failure to the caller's address: the caller has proved itself after all, and a
    /// third party made its earlier proof fail.
    pub(super) fn on_redeemed(&mut self, now: Time, from: SocketAddr) {
        let records = self.records(from);
        for (tokens, at) in self.addresses.iter_mut().zip(records.address) {
            tokens[at].level += FAILURE * TOKEN;
            tokens[at].fill(now, ADDRESS);
        }
    }

    /// The tokens of an address: the larger number of its two records.
    fn address(&mut self, now: Time, records: Records) -> i64 {
        let levels = self
            .addresses
            .iter_mut()
            .zip(records.address)
            .map(|(all, at)| {
                all[at].fill(now, ADDRESS);
                all[at].level
            });
        levels.max().unwrap_or(0)
    }

    /// The tokens of a network: the larger number of its two records.
    fn network(
        &mut self,
        now: Time,
        records: Records,
        rate: Rate,
        of: impl Fn(&mut Network) -> &mut Tokens,
    ) -> i64 {
        let levels = self
            .networks
            .iter_mut()
            .zip(records.network)
            .map(|(all, at)| {
                let tokens = of(&mut all[at]);
                tokens.fill(now, rate);
                tokens.level
            });
        levels.max().unwrap_or(0)
    }

    fn charge(&mut self, records: Records, tokens: i64, of: impl Fn(&mut Network) -> &mut Tokens) {
        for (all, at) in self.networks.iter_mut().zip(records.network) {
            let level = &mut of(&mut all[at]).level;
            *level = (*level - tokens * TOKEN).max(0);
        }
    }

    fn records(&self, from: SocketAddr) -> Records {
        let tag = |bytes: &[u8]| hmac::sign(&self.secret, bytes);
        let (network, address) = match from.ip().to_canonical() {
            IpAddr::V4(address) => {
                let octets = address.octets();
                (tag(&octets[..3]), tag(&octets))
            }
            IpAddr::V6(address) => {
                let octets = address.octets();
                (tag(&octets[..8]), tag(&octets))
            }
        };
        let index = |tag: &hmac::Tag, at: usize, count: usize| {
            let bytes = tag.as_ref();
            usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]])) % count
        };
        Records {
            network: [index(&network, 0, NETWORKS), index(&network, 2, NETWORKS)],
            address: [index(&address, 0, ADDRESSES), index(&address, 2, ADDRESSES)],
        }
    }
}

/// Whether a proof with a ticket of this time takes a fresh token of its network.
fn is_fresh(now: Time, level: i64, made_at: Time) -> bool {
    is_full(level) && now.saturating_since(made_at) < YOUNG
}

const fn is_full(level: i64) -> bool {
    level >= ADDRESS.burst * TOKEN
}

#[cfg(test)]
mod tests {
    use comity_units::Seed;

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
    fn one_network_does_not_exclude_another() {
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
    fn many_networks_share_the_budget() {
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
        // Honest callers get one in ten, as everybody does.
        assert!((160..=320).contains(&honest), "{honest} of some 2,300");
    }

    /// The guesses that are checked in ten seconds, if `from` returns the source of each of 100 per
    /// second.
    fn guesses(budget: &mut Budget, start: Time, from: impl Fn(u64) -> SocketAddr) -> u64 {
        let mut guesses = 0;
        for at in 0..1_000_u64 {
            let now = start + Span::from_millis(at * 10);
            if budget.allows_proof(now, from(at), now) {
                budget.on_failure(now, from(at), now);
                guesses += 1;
            }
        }
        guesses
    }

    #[test]
    fn guesses_are_limited_and_charged_to_their_address() {
        let one = |_| at(3, 1);
        let (mut budget, start) = budget();
        // Five from the 16 tokens, then one every four seconds.
        assert_eq!(guesses(&mut budget, start, one), 7);
        let now = start + Span::from_secs(10);
        assert!(!budget.allows_proof(now, at(3, 1), now));
        assert!(budget.allows_proof(now, at(3, 2), now), "a neighbour");
        let later = now + Span::from_secs(4);
        assert!(budget.allows_proof(later, at(3, 1), later));
        // All 250 addresses of a /24, and all of a /64, where none fails twice.
        let all = |number: u64| at(4, (number % 250) as u8);
        let fresh = |number: u64| {
            let [.., high, low] = (number as u16).to_be_bytes();
            let [high, low] = [high, low].map(u16::from);
            ([0x2001, 0xdb8, 0, 7, high, low, 0, 1], 1).into()
        };
        let (of_all, of_fresh) = (
            guesses(&mut budget, start + Span::from_secs(20), all),
            guesses(&mut budget, start + Span::from_secs(20), fresh),
        );
        // 64 at once and 64 per second, from addresses that have not failed in the last 4 s.
        assert!((400..=700).contains(&of_all), "{of_all}");
        assert!((650..=704).contains(&of_fresh), "{of_fresh}");
    }

    /// Tickets that were collected for 8 s take no tokens of those that are young.
    #[test]
    fn collected_tickets_take_no_fresh_tokens() {
        let (mut budget, start) = budget();
        let made_at = start;
        let mut old = 0;
        for at in 0..4_000_u64 {
            let now = start + Span::from_secs(8) + Span::from_micros(at * 1_667);
            let [.., high, low] = (at as u16).to_be_bytes();
            let [high, low] = [high, low].map(u16::from);
            let from = ([0x2001, 0xdb8, 0, 7, high, low, 0, 1], 1).into();
            if budget.allows_proof(now, from, made_at) {
                budget.on_failure(now, from, made_at);
                old += 1;
            }
            let honest = ([0x2001, 0xdb8, 0, 7, 9, 9, 9, 9], 1).into();
            let young = start + Span::from_millis(6_001) + Span::from_micros(at * 1_667);
            assert!(budget.allows_proof(now, honest, young), "{at}");
        }
        // 8 at once and 4 per second for 6.7 s, as from addresses that have failed.
        assert!((33..=35).contains(&old), "{old}");
    }

    /// An address that fails is not granted common tokens; its neighbours are.
    #[test]
    fn an_address_in_debt_gets_no_common_tokens() {
        let (mut budget, start) = budget();
        for _ in 0..10 {
            budget.on_failure(start, at(3, 1), start);
        }
        // The 16 tokens of the network.
        let granted = (0..100).filter(|_| budget.take(start, at(3, 1))).count();
        assert_eq!(granted, 16);
        let granted = (0..100).filter(|_| budget.take(start, at(3, 2))).count();
        assert_eq!(granted, 100);
        assert!(budget.take(start + Span::from_secs(4), at(3, 1)));
    }

    /// An attacker on the path made the proof of an honest caller fail.
    #[test]
    fn a_caller_that_proves_itself_later_is_not_charged() {
        let (mut budget, start) = budget();
        for round in 0..100_u64 {
            let now = start + Span::from_millis(round);
            assert!(budget.allows_proof(now, at(3, 1), now), "{round}");
            budget.on_failure(now, at(3, 1), now);
            budget.on_redeemed(now, at(3, 1));
            let records = budget.records(at(3, 1));
            assert!(is_full(budget.address(now, records)));
            // Not more than full, either.
            assert_eq!(budget.address(now, records), ADDRESS.burst * TOKEN);
            // The network pays one of its fresh tokens, and gets 64 in a second.
            if round == 60 {
                break;
            }
        }
    }

    #[test]
    fn an_ipv4_mapped_address_counts_as_ipv4() {
        let (budget, _) = budget();
        let mapped: SocketAddr = "[::ffff:10.0.3.9]:1".parse().unwrap();
        assert_eq!(budget.records(at(3, 9)), budget.records(mapped));
        assert_eq!(
            budget.records(at(3, 1)).network,
            budget.records(mapped).network
        );
        assert_ne!(budget.records(at(3, 1)), budget.records(mapped));
        let one: SocketAddr = "[2001:db8::1]:1".parse().unwrap();
        let same: SocketAddr = "[2001:db8::2:0:0:7]:2".parse().unwrap();
        let other: SocketAddr = "[2001:db8:0:1::1]:1".parse().unwrap();
        assert_eq!(budget.records(one).network, budget.records(same).network);
        assert_ne!(budget.records(one).address, budget.records(same).address);
        assert_ne!(budget.records(one).network, budget.records(other).network);
    }
}
