//! Numbers that others cannot predict: sequence numbers, timestamps and ports.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use comity_units::{Seed, SeqNo, Time};
use ring::hmac;

use crate::tuple::Tuple;

/// The first ephemeral port (RFC 6335, section 6).
const EPHEMERAL: u16 = 49_152;

/// The secret key of a host.
pub(crate) struct Secret(hmac::Key);

/// The purpose of a number, which makes it independent of all others.
enum Purpose {
    Sequence,
    Port,
    Timestamp,
    Skip,
}

impl Secret {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }

    /// The initial sequence number of a connection (RFC 6528, section 3):
    ///
    /// ```text
    /// ISN = M + F(local, remote, secret)
    /// ```
    ///
    /// `M` counts periods of 4 microseconds.
    pub(crate) fn initial_sequence(&self, now: Time, tuple: &Tuple) -> SeqNo {
        let clock = (now.as_nanos() / 4_000) as u32;
        let hash = self.hash(&Purpose::Sequence, &[tuple.local, tuple.remote]);
        SeqNo::new(clock.wrapping_add(hash))
    }

    /// The offset that a connection adds to its timestamps, so that they do not reveal how long the
    /// host has run (RFC 7323, section 7.1). Connections between the same ends have the same
    /// offset.
    pub(crate) fn timestamp_offset(&self, tuple: &Tuple) -> u32 {
        self.hash(&Purpose::Timestamp, &[tuple.local, tuple.remote])
    }

    /// The seed that selects the segments that a connection skips. `initial` is its initial
    /// sequence number, so that connections between the same ends skip different segments.
    pub(crate) fn skip_seed(&self, tuple: &Tuple, initial: SeqNo) -> Seed {
        let tag = self.tag(&Purpose::Skip, &[tuple.local, tuple.remote]);
        let seed = tag.as_ref().first_chunk();
        Seed::new(seed.map_or(0, |bytes| u64::from_be_bytes(*bytes))).index(initial.get().into())
    }

    /// Ephemeral ports for connections from `local` to `remote`, each once, in order from a hidden
    /// starting point (RFC 6056, section 3.3.3). `counter` is the number of ports used so far.
    pub(crate) fn ports(
        &self,
        local: IpAddr,
        remote: SocketAddr,
        counter: u32,
    ) -> impl Iterator<Item = u16> {
        let count = u32::from(u16::MAX - EPHEMERAL) + 1;
        let hash = self.hash(&Purpose::Port, &[SocketAddr::new(local, 0), remote]);
        let start = hash.wrapping_add(counter);
        // The remainder is below the number of ports, and thus below 2^16.
        (0..count).map(move |step| EPHEMERAL + (start.wrapping_add(step) % count) as u16)
    }

    fn hash(&self, purpose: &Purpose, addresses: &[SocketAddr]) -> u32 {
        let tag = self.tag(purpose, addresses);
        let hash = tag.as_ref().first_chunk();
        hash.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    fn tag(&self, purpose: &Purpose, addresses: &[SocketAddr]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(match purpose {
            Purpose::Sequence => b"sequence",
            Purpose::Port => b"port",
            Purpose::Timestamp => b"timestamp",
            Purpose::Skip => b"skip",
        });
        for address in addresses {
            match address.ip() {
                IpAddr::V4(ip) => context.update(&ip.to_ipv6_mapped().octets()),
                IpAddr::V6(ip) => context.update(&ip.octets()),
            }
            context.update(&address.port().to_be_bytes());
        }
        context.sign()
    }
}

/// Does not show the key.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn tuple(port: u16) -> Tuple {
        Tuple {
            local: SocketAddr::from(([10, 0, 0, 1], port)),
            remote: SocketAddr::from(([10, 0, 0, 2], 80)),
        }
    }

    #[test]
    fn sequence_numbers_rise_with_time_and_differ_with_secret_and_addresses() {
        let (secret, other) = (Secret::new([1; 32]), Secret::new([2; 32]));
        let at = |secret: &Secret, micros, port| {
            secret.initial_sequence(Time::from_micros(micros), &tuple(port))
        };
        let first = at(&secret, 0, 50_000);
        assert_eq!(at(&secret, 4_000, 50_000), first + 1_000);
        assert_ne!(at(&secret, 0, 50_001), first);
        assert_ne!(at(&other, 0, 50_000), first);
    }

    #[test]
    fn every_ephemeral_port_comes_once_and_successive_connections_differ() {
        let secret = Secret::new([1; 32]);
        let Tuple { local, remote } = tuple(0);
        let ports: Vec<u16> = secret.ports(local.ip(), remote, 7).collect();
        let distinct: BTreeSet<u16> = ports.iter().copied().collect();
        assert_eq!((ports.len(), distinct.len()), (16_384, 16_384));
        assert_eq!(distinct.first(), Some(&49_152));
        let next = secret.ports(local.ip(), remote, 8).next();
        assert_eq!(next, ports.get(1).copied());
    }
}
