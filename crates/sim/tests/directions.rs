//! Losses in the forward and in the reverse direction are counted separately.

use crate::common;

use comity_congestion::recovery::RecoveryConfig;
use comity_link::{Limit, Loss, LossModel, LossPlace};
use comity_sim::network::{Network, Workload};
use comity_sim::report::RunReport;
use comity_sim::{Fate, LinkEvent, Observer, RunOptions, run_observed};
use comity_transport::tcp::Config;
use comity_units::{Rate, Seed, Span};

/// Counts the losses of each of two links and each of two flows: data and acknowledgements.
#[derive(Default)]
struct Watch {
    links: [[u64; 2]; 2],
    flows: [[u64; 2]; 2],
}

impl Observer for Watch {
    fn on_link(&mut self, link: u32, event: &LinkEvent<'_>) {
        if matches!(event.fate, Fate::Carried { .. }) {
            return;
        }
        let way = usize::from(event.packet.is_return);
        self.links[link as usize][way] += 1;
        self.flows[event.packet.flow as usize][way] += 1;
    }
}

/// A flow in each direction between two nodes; each link has random losses and a short queue.
fn network(losses: [f64; 2]) -> Network {
    let mut builder = common::Builder::new(60, 10);
    let (a, b) = (builder.node("a"), builder.node("b"));
    for (ends, probability) in [((a, b), losses[0]), ((b, a), losses[1])] {
        let mut config =
            common::link_config(Rate::from_mbps(1), Span::from_millis(10), Limit::Packets(8));
        config.losses = vec![Loss {
            model: LossModel::Bernoulli(probability),
            place: LossPlace::AfterTransmission,
        }];
        builder.link(ends.0, ends.1, config);
    }
    for ends in [(a, b), (b, a)] {
        let tcp = common::ns2_tcp(Config::NS2_2_35, RecoveryConfig::NEW_RENO, 1_000, 20);
        builder.flow("flow", ends, tcp, Workload::Greedy);
    }
    builder.network
}

fn simulate(losses: [f64; 2]) -> (Watch, RunReport) {
    let mut watch = Watch::default();
    let options = RunOptions { collapse: false };
    let report = run_observed(&network(losses), Seed::new(1), &options, &mut watch).unwrap();
    (watch, report)
}

#[test]
fn each_direction_has_its_own_losses() {
    let (watch, report) = simulate([0.03, 0.01]);
    for (link, [data, answers]) in report.links.iter().zip(watch.links) {
        assert!(data > 0 && answers > 0, "{data} {answers}");
        let dropped = link.dropped_full + link.dropped_early + link.lost;
        assert_eq!((dropped, link.dropped_acks), (data + answers, answers));
    }
    for (flow, [data, answers]) in report.flows.iter().zip(watch.flows) {
        assert_eq!(
            (flow.dropped_packets, flow.dropped_acks),
            (data + answers, answers)
        );
    }
}

#[test]
fn a_link_without_losses_drops_nothing_of_the_reverse_flow() {
    let mut network = network([0.03, 0.0]);
    network.flows.truncate(1);
    let mut watch = Watch::default();
    let options = RunOptions::default();
    let report = run_observed(&network, Seed::new(1), &options, &mut watch).unwrap();
    let flow = &report.flows[0];
    assert!(flow.dropped_packets > 20 && flow.acks > 1_000);
    assert_eq!(flow.dropped_acks, 0);
    let returned: Vec<u64> = report.links.iter().map(|link| link.dropped_acks).collect();
    assert_eq!(returned, [0, 0]);
}
