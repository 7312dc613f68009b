//! Losses in the forward and in the reverse direction are counted separately.

use crate::common;

use comity_congestion::recovery::RecoveryConfig;
use comity_link::{Limit, Loss, LossModel, LossPlace};
use comity_sim::network::{Network, Workload};
use comity_sim::report::RunReport;
use comity_sim::scenario::{NoFiles, Reading, Scenario};
use comity_sim::{Fate, LinkEvent, Observer, RunOptions, run_observed};
use comity_tcp::Config;
use comity_units::{Rate, Seed, Span, Time};

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

/// The losses of each of two links, by the times of the offers.
#[derive(Default)]
struct Losses([Vec<(Time, bool)>; 2]);

impl Observer for Losses {
    fn on_link(&mut self, link: u32, event: &LinkEvent<'_>) {
        let is_lost = !matches!(event.fate, Fate::Carried { .. });
        self.0[link as usize].push((event.offered_at, is_lost));
    }
}

/// The losses of packets that enter both directions of a link at the same times, where on/off
/// losses of the link have this direction. All packets of an error phase are lost.
fn phases(direction: &str) -> [Vec<(Time, bool)>; 2] {
    let text = format!(
        r#"
        scenario = {{ name = "x", duration = "60s" }}
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        rate = "8Mbps"
        delay = "10ms"
        reverse.losses = [{{ model = "packets", packets = [7], place = "before_queue" }}]
        [[topology.bottleneck.losses]]
        model = "on_off"
        mean_on = "1s"
        mean_off = "1s"
        drop_on = 1
        place = "before_queue"
        direction = "{direction}"
        [[flow]]
        group = "there"
        transport = "datagram"
        from = "left"
        to = "right"
        workload = {{ kind = "cbr", interval = "10ms" }}
        [[flow]]
        group = "back"
        transport = "datagram"
        from = "right"
        to = "left"
        workload = {{ kind = "cbr", interval = "10ms" }}
        "#
    );
    let scenario = Scenario::parse("x.toml", &text, NoFiles, &Reading::default());
    let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
    let run = &scenario.runs()[0];
    let (network, _) = scenario.prepare(run);
    let mut losses = Losses::default();
    run_observed(&network, run.seed, &RunOptions::default(), &mut losses).unwrap();
    let [forward, mut reverse] = losses.0;
    assert!(reverse[7].1, "losses of the reverse direction stay");
    reverse[7] = forward[7];
    [forward, reverse]
}

#[test]
fn a_loss_of_both_directions_has_one_state_and_that_of_each_has_two() {
    let share = |losses: &[(Time, bool)]| {
        losses.iter().filter(|(_, is_lost)| *is_lost).count() as f64 / losses.len() as f64
    };
    let [alone, clean] = phases("forward");
    assert!(alone.len() > 5_900, "{}", alone.len());
    assert_eq!(share(&clean[8..]), 0.0);
    // A share of 1/2, with a standard deviation of 0.065 over 60 s.
    assert!((share(&alone) - 0.5).abs() < 0.26, "{}", share(&alone));
    let [forward, reverse] = phases("both");
    assert_eq!(
        forward, alone,
        "the phases are those of the forward direction"
    );
    assert_eq!(reverse, forward);
    let [forward, reverse] = phases("each");
    assert_eq!(forward, alone);
    let differ = forward.iter().zip(&reverse).filter(|(a, b)| a.1 != b.1);
    let differ = differ.count() as f64 / forward.len() as f64;
    assert!((0.2..0.8).contains(&differ), "{differ}");
    assert!((share(&reverse) - 0.5).abs() < 0.26, "{}", share(&reverse));
}
