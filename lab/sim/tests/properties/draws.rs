//! Random numbers: each part of a network has a stream of its own.

use comity_congestion::recovery::RecoveryConfig;
use comity_link::{Jitter, Limit, LinkConfig, Loss, LossModel, LossPlace};
use comity_sim::network::{CbrSpacing, DatagramSpec, Network, TransportSpec, Workload};
use comity_sim::{Fate, RunOptions, run, run_observed};
use comity_tcp::Config;
use comity_units::{DataSize, Rate, Seed, Span, Time};

use crate::common;
use crate::properties::record::Record;

/// A datagram flow over a link with `losses`, and TCP flows that share the access but not that
/// link.
fn lossy(losses: Vec<Loss>, others: usize) -> Network {
    let mut builder = common::Builder::new(20, 0);
    let (a, b, c) = (builder.node("a"), builder.node("b"), builder.node("c"));
    let clean = common::link_config(Rate::from_mbps(100), Span::from_millis(3), Limit::Unlimited);
    builder.link(
        a,
        b,
        LinkConfig {
            losses,
            ..clean.clone()
        },
    );
    builder.link(b, a, clean.clone());
    builder.duplex(a, c, &clean);
    let datagram = TransportSpec::Datagram(DatagramSpec {
        wire: DataSize::new(500),
    });
    let workload = Workload::Poisson {
        rate: Rate::from_kbps(800),
    };
    builder.flow("probe", (a, b), datagram, workload);
    for _ in 0..others {
        let tcp = common::ns2_tcp(Config::NS2_2_35, RecoveryConfig::RENO, 1_000, 10);
        builder.flow("other", (a, c), tcp, Workload::Greedy);
    }
    builder.network
}

/// The losses of the probe, by packet number.
fn fates(network: &Network, seed: u64) -> Vec<(Time, bool)> {
    let mut record = Record::default();
    run_observed(
        network,
        Seed::new(seed),
        &RunOptions::default(),
        &mut record,
    )
    .unwrap();
    let fate =
        |&(at, _, fate): &(Time, (u32, bool), Fate)| (at, matches!(fate, Fate::Carried { .. }));
    record.links[&0].iter().map(fate).collect()
}

#[test]
fn a_link_draws_the_same_losses_with_any_other_flows() {
    let models = [
        LossModel::Bernoulli(0.1),
        LossModel::GilbertElliott {
            p_good_to_bad: 0.02,
            p_bad_to_good: 0.2,
            loss_good: 0.0,
            loss_bad: 0.7,
        },
        LossModel::OnOff {
            mean_on: Span::from_secs(1),
            mean_off: Span::from_secs(1),
            drop_on: 0.3,
            drop_off: 0.0,
            start_on: true,
            shared: None,
        },
    ];
    for model in models {
        let losses = vec![Loss {
            model: model.clone(),
            place: LossPlace::BeforeQueue,
        }];
        let alone = fates(&lossy(losses.clone(), 0), 7);
        assert!(alone.len() > 3_000, "{model:?}");
        assert_eq!(fates(&lossy(losses.clone(), 3), 7), alone, "{model:?}");
        assert_ne!(
            fates(&lossy(losses, 0), 8),
            alone,
            "{model:?}: another seed"
        );
        let lost = alone.iter().filter(|(_, is_carried)| !is_carried).count();
        assert!(
            (100..900).contains(&lost),
            "{model:?}: {lost} of {} lost",
            alone.len()
        );
    }
}

#[test]
fn every_random_part_of_a_network_follows_the_seed() {
    let base = || lossy(Vec::new(), 2);
    let differs = |name: &str, change: &dyn Fn(&mut Network)| {
        let mut network = base();
        // Without random starts and the Poisson source, nothing random remains.
        for flow in &mut network.flows {
            flow.start.spread = Span::ZERO;
        }
        network.flows[0].workload = Workload::Cbr {
            spacing: CbrSpacing::Rate(Rate::from_kbps(800)),
            jitter: 0.0,
        };
        let run = |network: &Network, seed| {
            run(network, Seed::new(seed), &RunOptions::default())
                .unwrap()
                .fingerprint
        };
        assert_eq!(
            run(&network, 1),
            run(&network, 2),
            "nothing is random without {name}"
        );
        change(&mut network);
        assert_ne!(run(&network, 1), run(&network, 2), "{name}");
        assert_eq!(run(&network, 1), run(&network, 1), "{name}");
    };
    let rate = Rate::from_kbps(800);
    differs("starts", &|network| {
        network.flows[1].start.spread = Span::from_secs(1);
    });
    differs("Poisson arrivals", &|network| {
        network.flows[0].workload = Workload::Poisson { rate }
    });
    differs("jitter of a source", &|network| {
        network.flows[0].workload = Workload::Cbr {
            spacing: CbrSpacing::Rate(rate),
            jitter: 0.5,
        };
    });
    differs("spells", &|network| {
        let (mean_on, mean_off) = (Span::from_millis(100), Span::from_millis(100));
        network.flows[0].workload = Workload::OnOff {
            rate,
            mean_on,
            mean_off,
        };
    });
    differs("jitter of a link", &|network| {
        network.links[0].config.jitter = Jitter::Uniform {
            max: Span::from_millis(2),
            reorder: true,
        };
    });
    differs("copies", &|network| {
        network.links[0].config.duplication = 0.1;
    });
    differs("losses", &|network| {
        let loss = Loss {
            model: LossModel::Bernoulli(0.1),
            place: LossPlace::AfterTransmission,
        };
        network.links[0].config.losses.push(loss);
    });
}
