//! The links that scenarios describe.

use std::path::Path;

use comity_link::{
    CodelConfig, DelayProfile, Jitter, Limit, Loss, LossModel, LossPlace, Queue, RateProfile,
    RedConfig,
};
use comity_sim::network::Network;
use comity_sim::scenario::{Files, NoFiles, Reading, Scenario};
use comity_units::{Rate, Span, Time};

fn first(scenario: &Scenario) -> Network {
    scenario.prepare(&scenario.runs()[0]).0
}

#[test]
fn half_normal_jitter_has_what_rfc_8868_recommends() {
    let text = "[scenario]\nname = \"jitter\"\nduration = \"1s\"\n\
                [topology]\nkind = \"dumbbell\"\n\
                bottleneck = { rate = \"1Mbps\", delay = \"1ms\", \
                jitter = { kind = \"half_normal\" } }\n\
                [[flow]]\ngroup = \"tcp\"\n";
    let scenario = Scenario::parse("x.toml", text, NoFiles, &Reading::default()).unwrap();
    assert_eq!(
        first(&scenario).links[0].config.jitter,
        Jitter::HalfNormal {
            stddev: Span::from_millis(5),
            max: Span::from_millis(15),
            reorder: false
        }
    );
}

#[test]
fn links_carry_everything_that_a_link_can() {
    struct Trace;
    impl Files for Trace {
        fn read(&self, path: &Path) -> std::io::Result<String> {
            Ok(match path.to_str() {
                Some("traces/a.mahi") => "5\n10\n".into(),
                Some("traces/b.csv") => "0s, 1Mbps\n2s, 3Mbps\n".into(),
                other => panic!("unexpected request for {other:?}"),
            })
        }
    }
    let text = r#"
        scenario = { name = "x", duration = "1s" }
        [topology]
        kind = "graph"
        nodes = ["a", "b"]
        [[topology.link]]
        name = "one"
        from = "a"
        to = "b"
        trace = "traces/a.mahi"
        delay = [{ at = "0s", delay = "1ms" }, { at = "1s", delay = "2ms" }]
        queue = { kind = "red", limit = "30 packets", min_threshold = 4 }
        jitter = { kind = "normal", mean = "1ms", stddev = "2ms", reorder = true }
        duplication = 0.25
        losses = [
            { model = "packets", place = "before_queue", packets = [3, 4] },
            { model = "gilbert_elliott", good_to_bad = 0.1, bad_to_good = 0.5 },
        ]
        [topology.link.reverse]
        rate = [{ at = "0s", rate = "1Mbps" }, { at = "1s", rate = "0bps" }]
        jitter = "3ms"
        [[topology.link]]
        name = "two"
        from = "a"
        to = "b"
        duplex = false
        trace = { file = "traces/b.csv" }
        delay = "0s"
        queue = { kind = "codel", target = "10ms" }
        [[flow]]
        group = "tcp"
        from = "a"
        to = "b"
    "#;
    let scenario = Scenario::parse("x.toml", text, Trace, &Reading::default());
    let network = first(&scenario.unwrap_or_else(|problems| panic!("{problems}")));
    let link = |name: &str| {
        &network
            .links
            .iter()
            .find(|link| link.name == name)
            .unwrap()
            .config
    };
    let one = link("one");
    let RateProfile::Deliveries(trace) = &one.rate else {
        panic!("{:?}", one.rate)
    };
    assert_eq!(trace.opportunities(), 2);
    let second = (Time::from_secs(1), Span::from_millis(2));
    assert_eq!(
        one.delay,
        DelayProfile::Steps(vec![(Time::ZERO, Span::from_millis(1)), second])
    );
    assert_eq!(
        one.queue,
        Queue::Red(RedConfig {
            limit: Limit::Packets(30),
            min_threshold: 4.0,
            ..RedConfig::default()
        }),
        "absent keys have the defaults of the link"
    );
    assert_eq!(one.duplication, 0.25);
    assert_eq!(one.losses.len(), 2);
    assert_eq!(one.losses[0].model, LossModel::Packets(vec![3, 4]));
    assert_eq!(one.losses[0].place, LossPlace::BeforeQueue);
    assert_eq!(one.losses[1].place, LossPlace::AfterTransmission);
    let reverse = link("one.reverse");
    let steps = vec![
        (Time::ZERO, Rate::from_mbps(1)),
        (Time::from_secs(1), Rate::ZERO),
    ];
    assert_eq!(reverse.rate, RateProfile::Steps(steps));
    assert_eq!(reverse.delay, one.delay, "taken over");
    assert_eq!(reverse.queue, one.queue, "taken over");
    assert_eq!(reverse.losses, [], "never taken over");
    assert_eq!(reverse.duplication, 0.0, "never taken over");
    assert_eq!(
        reverse.jitter,
        Jitter::Uniform {
            max: Span::from_millis(3),
            reorder: false
        }
    );
    let two = link("two");
    let steps = vec![
        (Time::ZERO, Rate::from_mbps(1)),
        (Time::from_secs(2), Rate::from_mbps(3)),
    ];
    assert_eq!(two.rate, RateProfile::Steps(steps));
    assert_eq!(
        two.queue,
        Queue::CoDel(CodelConfig {
            target: Span::from_millis(10),
            ..CodelConfig::default()
        })
    );
    assert!(network.links.iter().all(|link| link.name != "two.reverse"));
}

#[test]
fn losses_of_both_directions_come_behind_those_of_the_reverse_direction() {
    let links = |keys: &str| {
        let text = format!(
            "scenario = {{ name = 'x', duration = '1s' }}\nflow = [{{ group = 'tcp' }}]\n\
             [topology]\nkind = 'dumbbell'\n[topology.bottleneck]\n\
             rate = '1Mbps'\ndelay = '1ms'\n{keys}"
        );
        Scenario::parse("x.toml", &text, NoFiles, &Reading::default())
            .map(|scenario| first(&scenario).links)
            .map_err(|problems| problems.to_string())
    };
    let on_off = |direction: &str| {
        format!(
            "{{ model = 'on_off', mean_on = '1s', mean_off = '1s', drop_on = 0.5, \
             direction = '{direction}' }}"
        )
    };
    let bernoulli = "{ model = 'bernoulli', probability = 0.1 }";
    let written = |first: &str, second: &str| {
        format!("losses = [{first}, {second}]\nreverse.losses = [{bernoulli}]")
    };
    let at = |model| Loss {
        model,
        place: LossPlace::AfterTransmission,
    };
    let on_off_of = |shared| {
        at(LossModel::OnOff {
            mean_on: Span::from_secs(1),
            mean_off: Span::from_secs(1),
            drop_on: 0.5,
            drop_off: 0.0,
            start_on: true,
            shared,
        })
    };
    let independent = at(LossModel::Bernoulli(0.1));
    let found = links(&written(bernoulli, &on_off("both"))).unwrap();
    assert_eq!(
        found[0].config.losses,
        [independent.clone(), on_off_of(Some(1))]
    );
    assert_eq!(
        found[1].config.losses,
        [independent.clone(), on_off_of(Some(1))]
    );
    let found = links(&written(&on_off("each"), bernoulli)).unwrap();
    assert_eq!(
        found[0].config.losses,
        [on_off_of(None), independent.clone()]
    );
    assert_eq!(found[1].config.losses, [independent, on_off_of(None)]);

    let problem = links(&format!("losses = [{}]", on_off("boht"))).unwrap_err();
    for part in [
        "topology.bottleneck.losses.0.direction",
        "x.toml:8",
        "did you mean \"both\"?",
        "expected one of \"forward\", \"both\", \"each\"",
    ] {
        assert!(problem.contains(part), "{part} is not in:\n{problem}");
    }
    let mistyped = on_off("both").replace("direction", "directon");
    let problem = links(&format!("losses = [{mistyped}]")).unwrap_err();
    for part in ["directon", "x.toml:8", "did you mean `direction`?"] {
        assert!(problem.contains(part), "{part} is not in:\n{problem}");
    }
}

#[test]
fn a_one_way_link_has_no_losses_in_both_directions() {
    let text = r#"
        scenario = { name = "x", duration = "1s" }
        flow = [{ group = "tcp", from = "a", to = "b" }]
        [topology]
        kind = "graph"
        nodes = ["a", "b"]
        [[topology.link]]
        from = "a"
        to = "b"
        duplex = false
        rate = "1Mbps"
        delay = "1ms"
        losses = [{ model = "bernoulli", probability = 0.1, direction = "each" }]
        [[topology.link]]
        from = "b"
        to = "a"
        duplex = false
        rate = "1Mbps"
        delay = "1ms"
    "#;
    let problems = Scenario::parse("x.toml", text, NoFiles, &Reading::default());
    let said = problems.unwrap_err().to_string();
    for part in [
        "losses.0.direction` cannot be used together with `duplex = false`",
        "x.toml:13",
    ] {
        assert!(said.contains(part), "{part} is not in:\n{said}");
    }
}
