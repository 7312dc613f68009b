//! The MTUs that the host has found on paths to its peers.

use std::collections::BTreeMap;
use std::net::IpAddr;

use comity_congestion::SEARCH_INTERVAL as LIFE;
use comity_units::Time;

/// The maximum number of remembered paths. Beyond it, new connections search again.
const MAX_PATHS: usize = 1_024;

/// The MTUs of paths that are smaller than that of the interface.
#[derive(Debug, Default)]
pub(super) struct Paths {
    by_peer: BTreeMap<IpAddr, (u32, Time)>,
}

impl Paths {
    /// Records that the path to `peer` carries at most `mtu` bytes.
    pub(super) fn learn(&mut self, now: Time, peer: IpAddr, mtu: u32) {
        if self.by_peer.len() >= MAX_PATHS {
            self.by_peer
                .retain(|_, (_, since)| now.saturating_since(*since) < LIFE);
        }
        if self.by_peer.len() < MAX_PATHS || self.by_peer.contains_key(&peer) {
            self.by_peer.insert(peer, (mtu, now));
        }
    }

    /// The MTU for a new connection over an interface with the MTU `interface`.
    pub(super) fn mtu(&self, now: Time, peer: IpAddr, interface: u32) -> u32 {
        match self.by_peer.get(&peer) {
            Some(&(mtu, since)) if now.saturating_since(since) < LIFE => mtu.min(interface),
            _ => interface,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_path_is_remembered_for_ten_minutes_and_memory_is_bounded() {
        let mut paths = Paths::default();
        let peer = |number: u32| IpAddr::V4(Ipv4Addr::from(number));
        let start = Time::from_secs(5);
        for number in 0..2_000 {
            paths.learn(start, peer(number), 1_400);
        }
        assert_eq!(paths.mtu(start, peer(0), 1_500), 1_400);
        assert_eq!(paths.mtu(start, peer(0), 1_300), 1_300, "the interface");
        assert_eq!(paths.mtu(start, peer(1_999), 1_500), 1_500, "no room");
        let later = start + LIFE;
        assert_eq!(paths.mtu(later, peer(0), 1_500), 1_500, "too old");
        paths.learn(later, peer(1_999), 1_280);
        assert_eq!(paths.mtu(later, peer(1_999), 1_500), 1_280);
    }
}
