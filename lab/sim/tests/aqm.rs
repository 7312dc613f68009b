//! Active queue management in scenarios, and its effects on TCP.

use comity_link::{FqCodelConfig, Limit, PieConfig, Queue};
use comity_sim::report::RunReport;
use comity_sim::scenario::{NoFiles, Reading, Scenario};
use comity_sim::{RunOptions, run};
use comity_units::{DataSize, Seed, Span};

fn scenario(queue: &str, flows: &str) -> Scenario {
    let text = format!(
        r#"
        scenario = {{ name = "x", duration = "30s", warmup = "10s" }}
        [topology]
        kind = "dumbbell"
        bottleneck = {{ rate = "10Mbps", delay = "20ms", queue = {queue}, reverse = {{ queue = 1000 }} }}
        {flows}"#
    );
    Scenario::parse("x.toml", &text, NoFiles, &Reading::default())
        .unwrap_or_else(|problems| panic!("{problems}"))
}

const GREEDY: &str = r#"
        [[flow]]
        group = "tcp"
        count = 4
        start = { spread = "1s" }
        controller = "cubic"
"#;

fn queue(scenario: &Scenario) -> Queue {
    let (network, _) = scenario.prepare(&scenario.runs()[0]);
    let is_managed = |queue: &&Queue| !matches!(queue, Queue::DropTail(_));
    let mut queues = network.links.iter().map(|link| &link.config.queue);
    queues.find(is_managed).unwrap().clone()
}

fn simulate(scenario: &Scenario) -> RunReport {
    let (network, _) = scenario.prepare(&scenario.runs()[0]);
    run(&network, Seed::new(1), &RunOptions::default()).unwrap()
}

#[test]
fn every_key_of_a_table_reaches_the_queue() {
    assert_eq!(
        queue(&scenario("{ kind = 'fq_codel' }", GREEDY)),
        Queue::FqCodel(FqCodelConfig::default())
    );
    assert_eq!(
        queue(&scenario("{ kind = 'pie' }", GREEDY)),
        Queue::Pie(PieConfig::default())
    );
    let table = "{ kind = 'fq_codel', target = '6ms', interval = '90ms', limit = '9kB', ecn = false, \
                 mtu = '700B', queues = 5, quantum = '300B', drop_batch = 7 }";
    assert_eq!(
        queue(&scenario(table, GREEDY)),
        Queue::FqCodel(FqCodelConfig {
            target: Span::from_millis(6),
            interval: Span::from_millis(90),
            limit: Limit::Bytes(DataSize::new(9_000)),
            ecn: false,
            mtu: DataSize::new(700),
            queues: 5,
            quantum: DataSize::new(300),
            drop_batch: 7,
        })
    );
    let table = "{ kind = 'pie', target = '20ms', update_interval = '30ms', limit = 50, alpha = 0.25, \
                 beta = 2.5, max_burst = '0s', ecn = true, mean_packet = '900B' }";
    assert_eq!(
        queue(&scenario(table, GREEDY)),
        Queue::Pie(PieConfig {
            target: Span::from_millis(20),
            update_interval: Span::from_millis(30),
            limit: Limit::Packets(50),
            alpha: 0.25,
            beta: 2.5,
            max_burst: Span::ZERO,
            ecn: true,
            mean_packet: DataSize::new(900),
        })
    );
}

/// The mean queueing delay at the bottleneck in milliseconds, its utilisation, and early drops.
fn bottleneck(report: &RunReport) -> (f64, f64, u64) {
    let link = report
        .links
        .iter()
        .find(|link| link.dropped_early + link.dropped_full > 0)
        .unwrap();
    let wait = link.queueing_delay.mean * 1e3;
    (wait, link.utilisation.unwrap(), link.dropped_early)
}

/// Four CUBIC flows over 10 Mb/s and 40 ms. A drop-tail queue of 400 packets holds 480 ms.
#[test]
fn pie_holds_the_delay_of_tcp_near_its_target() {
    for (target, low, high) in [("15ms", 9.0, 21.0), ("40ms", 28.0, 50.0)] {
        let table = format!("{{ kind = 'pie', target = '{target}' }}");
        let (wait, used, early) = bottleneck(&simulate(&scenario(&table, GREEDY)));
        assert!((low..high).contains(&wait), "{target}: {wait} ms");
        assert!(used > 0.93, "{target}: {used}");
        assert!(early > 50, "{target}: {early}");
    }
    let (wait, _, early) = bottleneck(&simulate(&scenario("400", GREEDY)));
    assert!(wait > 200.0 && early == 0, "{wait} ms, {early}");
}

/// A flow of 200 B packets beside four TCP flows with two round trips: FQ-CoDel serves it first,
/// and shares more equally than CoDel.
#[test]
fn fq_codel_spares_a_sparse_flow_and_shares_equally() {
    let flows = r#"
        [[flow]]
        group = "near"
        count = 2
        start = { spread = "1s" }
        [[flow]]
        group = "far"
        count = 2
        start = { spread = "1s" }
        access = { rate = "100Mbps", delay = "30ms", queue = 1000 }
        [[flow]]
        group = "sparse"
        transport = "datagram"
        packet = "200B"
        workload = { kind = "cbr", rate = "80kbps" }
    "#;
    let of = |queue: &str| {
        let report = simulate(&scenario(queue, flows));
        let sparse = report.flows.iter().find(|flow| flow.group == "sparse");
        let delay = &sparse.unwrap().delay;
        let goodputs = report.flows.iter().filter(|flow| flow.group != "sparse");
        let goodputs: Vec<f64> = goodputs.map(|flow| flow.goodput_bps).collect();
        let least = goodputs.iter().copied().fold(f64::MAX, f64::min);
        let most = goodputs.iter().copied().fold(0.0, f64::max);
        ((delay.p99 - delay.min) * 1e3, least / most)
    };
    let (sparse, share) = of("{ kind = 'fq_codel' }");
    // The packet in transmission takes 1.2 ms, and so does the quantum of each restarting TCP flow.
    assert!((0.5..6.1).contains(&sparse), "{sparse} ms");
    assert!(share > 0.7, "{share}");
    let (sparse, share) = of("{ kind = 'codel' }");
    assert!(sparse > 12.0, "{sparse} ms");
    assert!(share < 0.6, "{share}");
}
