//! Equal shares of the links on a flow's path.

use comity_units::{DataSize, Rate};

use super::links::Watch;
use crate::network::Network;

/// For each link, the bytes that its rate allows in the measured interval, divided by the number of
/// flows whose data crosses it. Every such flow counts, whatever its demand and start. ACKs do not
/// count.
pub(super) struct Shares(Vec<Option<DataSize>>);

impl Shares {
    /// The shares of links, by these data paths.
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
        let of =
            |rate: Rate, flows: u64| DataSize::new(rate.amount_in(watched).get() / flows.max(1));
        let shares = network.links.iter().zip(crossing).map(|(link, flows)| {
            let rate = watch.mean_rate(&link.config.rate)?;
            Some(of(rate, flows))
        });
        Self(shares.collect())
    }

    /// The minimum on a path; `None` if none of its links has a rate.
    pub(super) fn of(&self, path: impl Iterator<Item = usize>) -> Option<DataSize> {
        path.filter_map(|link| self.0[link]).min()
    }
}

/// The bytes that an equal share of `share` wire bytes carries as payload of full packets.
pub fn payload_of(share: DataSize, payload: u32, overhead: u32) -> u64 {
    let (payload, overhead) = (u128::from(payload), u128::from(overhead));
    // A part of the share, so it fits.
    (u128::from(share.get()) * payload / (payload + overhead).max(1)) as u64
}
