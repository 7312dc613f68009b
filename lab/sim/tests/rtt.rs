//! Base round trips: `rtt` sets them, results have them, and links say nothing else.

use comity_sim::network::Network;
use comity_sim::scenario::{NoFiles, Reading, Scenario, simulate};
use comity_units::Span;

const TEXT: &str = r#"
    scenario = { name = "x", duration = "3s" }
    [topology]
    kind = "dumbbell"
    bottleneck = { rate = "10Mbps", delay = "8ms" }
    [[flow]]
    group = "a"
    rwnd = 2
"#;

fn read(text: &str) -> Result<Scenario, String> {
    Scenario::parse("x.toml", text, NoFiles, &Reading::default()).map_err(|error| error.to_string())
}

fn network(text: &str) -> Network {
    let scenario = read(text).unwrap_or_else(|error| panic!("{error}"));
    scenario.prepare(&scenario.runs()[0]).0
}

/// The base round trips in microseconds.
fn rtts(text: &str) -> Vec<u64> {
    let rtts = network(text).base_rtts();
    rtts.into_iter()
        .map(|rtt| rtt.unwrap().as_nanos() / 1_000)
        .collect()
}

/// The smallest round trip that a sender measures is the base, the transmission of a packet and
/// that of its acknowledgement.
#[test]
fn flows_have_the_round_trips_that_they_request() {
    let text = TEXT.replace(
        "rwnd = 2",
        r#"rwnd = 2
        count = 3
        rtt = ["50ms", "200ms"]"#,
    );
    assert_eq!(rtts(&text), [50_000, 200_000, 50_000]);
    let scenario = read(&text).unwrap();
    let run = &scenario.runs()[0];
    let (network, settings) = scenario.prepare(run);
    let report = simulate(&network, run, &settings).unwrap();
    for (flow, rtt_ms) in report.flows.iter().zip([50.0, 200.0, 50.0]) {
        assert_eq!(flow.base_rtt.map(Span::as_secs_f64), Some(rtt_ms / 1e3));
        let transmissions_ms = flow.min_rtt_s.unwrap() * 1e3 - rtt_ms;
        assert!(
            (0.05..3.0).contains(&transmissions_ms),
            "{}: {transmissions_ms} ms",
            flow.name
        );
    }
}

#[test]
fn the_links_of_hosts_make_up_for_the_rest_of_the_path() {
    // 16 ms of the bottleneck, 4 ms of the receiver's host, 3 ms of a reverse direction.
    let hosts = "access = { rate = \"100Mbps\", delay = \"5ms\" }\n\
                 access_to = { rate = \"100Mbps\", delay = \"2ms\" }\n[[flow]]";
    let base = TEXT.replace("[[flow]]", hosts);
    assert_eq!(rtts(&base), [30_000]);
    let with = |keys: &str| base.replace("rwnd = 2", keys);
    assert_eq!(rtts(&with("rtt = \"20ms\"")), [20_000]);
    assert_eq!(rtts(&with("rtt = \"20001us\"")), [20_001]);
    let own = network(&with(
        "rtt = \"80ms\"\naccess = { rate = \"7Mbps\", queue = 9 }",
    ));
    assert_eq!(own.base_rtts(), [Some(Span::from_millis(80))]);
    let link = |name: &str| own.links.iter().find(|link| link.name == name).unwrap();
    assert_eq!(
        format!("{:?}", link("a-0.source").config.rate),
        "Constant(7Mbps)",
        "the host has its own link"
    );
    let delay = link("a-0.destination").config.delay.at_start();
    assert_eq!(delay, Span::from_millis(2), "the other host keeps its link");
    let error = read(&with("rtt = \"19ms\"")).unwrap_err();
    assert!(
        error.contains("`flow.a.rtt` = 19ms is less than 20ms") && error.contains("at least 20ms"),
        "{error}"
    );
}

/// `access_to` of the topology holds for flows with a link of their own.
#[test]
fn access_to_of_the_topology_is_not_replaced_by_access_of_a_flow() {
    let own = "access = { rate = \"100Mbps\", delay = \"10ms\" }";
    let flow = TEXT.replace("rwnd = 2", own);
    assert_eq!(rtts(&flow), [2 * (10 + 8 + 10) * 1_000], "as `access`");
    let none = flow.replace("[[flow]]", "access_to = \"none\"\n[[flow]]");
    assert_eq!(rtts(&none), [2 * (10 + 8) * 1_000]);
    let other = "access_to = { rate = \"100Mbps\", delay = \"1ms\" }\n[[flow]]";
    let other = flow.replace("[[flow]]", other);
    assert_eq!(rtts(&other), [2 * (10 + 8 + 1) * 1_000]);
}

#[test]
fn keys_that_contradict_a_round_trip_are_refused() {
    for (keys, expected) in [
        (
            "access = \"none\"",
            "`flow.a.access` cannot be used together with `rtt`",
        ),
        (
            "access = { rate = \"1Mbps\", delay = \"2ms\" }",
            "`flow.a.access.delay` cannot be used together with `rtt`",
        ),
        (
            "access = { rate = \"1Mbps\", reverse = { delay = \"2ms\" } }",
            "`flow.a.access.reverse.delay` cannot be used together with `rtt`",
        ),
        (
            "access_delays = [\"2ms\"]",
            "`flow.a.access_delays` cannot be used together with `rtt`",
        ),
    ] {
        let text = TEXT.replace("rwnd = 2", &format!("rtt = \"50ms\"\n{keys}"));
        let error = read(&text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let error = read(&TEXT.replace("rwnd = 2", "rtt = 50")).unwrap_err();
    assert!(error.contains("expected a duration"), "{error}");
}
