//! Paths for property tests.

use core::ops::Range;

use comity_link::{Jitter, Limit, LinkConfig, Loss, LossModel, LossPlace, Queue};
use comity_units::{Rate, Span};
use proptest::prelude::*;

/// Each packet is lost with this probability.
pub fn losses(share: f64) -> Vec<Loss> {
    vec![Loss {
        model: LossModel::Bernoulli(share),
        place: LossPlace::AfterTransmission,
    }]
}

/// Links with a rate in Mb/s, a delay in milliseconds and a loss rate from these ranges, a queue of
/// 4 to 99 packets, duplication of up to a tenth, and jitter or none.
pub fn random_path(
    mbps: Range<u64>,
    delay: Range<u64>,
    loss: Range<f64>,
) -> impl Strategy<Value = LinkConfig> {
    let jitter = prop_oneof![
        Just(Jitter::None),
        (1_u64..20, any::<bool>()).prop_map(|(mean, reorder)| Jitter::Exponential {
            mean: Span::from_millis(mean),
            reorder,
        }),
    ];
    (mbps, delay, 4_u32..100, loss, 0.0..0.1_f64, jitter).prop_map(
        |(mbps, delay, queue, loss, duplication, jitter)| LinkConfig {
            queue: Queue::DropTail(Limit::Packets(queue)),
            losses: losses(loss),
            jitter,
            duplication,
            ..LinkConfig::new(Rate::from_mbps(mbps), Span::from_millis(delay))
        },
    )
}
