//! What an equal share of the links on a flow's way would carry.

use comity_units::{Bytes, Rate};

use super::links::Watch;
use crate::network::Network;

/// For each link an equal part of what its rate allows in the watched interval: one for each flow
/// whose data crosses it, however much that wants and whenever it starts. Acknowledgements that
/// cross it take no part.
pub(super) struct Shares(Vec<Option<Bytes>>);

impl Shares {
    /// The shares of links that are crossed by these data paths, one after the other.
    pub(super) fn new(
        network: &Network,
        crossed: impl Iterator<Item = usize>,
        watch: Watch,
    ) -> Self {
        let mut crossing = vec![0_u64; network.links.len()];
        for link in crossed {
            crossing[link] += 1;
        }
        let watched = watch.end.saturating_since(watch.warmup);
        let of = |rate: Rate, flows: u64| Bytes::new(rate.amount_in(watched).get() / flows.max(1));
        let shares = network.links.iter().zip(crossing).map(|(link, flows)| {
            let rate = watch.mean_rate(&link.config)?;
            Some(of(rate, flows))
        });
        Self(shares.collect())
    }

    /// The least on a path; `None` when none of its links has a rate.
    pub(super) fn of(&self, path: impl Iterator<Item = usize>) -> Option<Bytes> {
        path.filter_map(|link| self.0[link]).min()
    }
}

/// The bytes that an equal share of `share` wire bytes carries as payload of full packets.
pub fn payload_of(share: Bytes, payload: u32, overhead: u32) -> u64 {
    let (payload, overhead) = (u128::from(payload), u128::from(overhead));
    // A part of the share, and so no longer than that.
    (u128::from(share.get()) * payload / (payload + overhead).max(1)) as u64
}
