//! Runs of random networks.

use comity_sim::network::{FlowSpec, LinkSpec, NodeId};
use comity_sim::{RunOptions, run, run_observed};
use comity_units::Seed;
use proptest::prelude::*;

use crate::properties::flows::network;
use crate::properties::invariants::{check_conservation, check_order, result};
use crate::properties::record::Record;

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn packets_are_conserved_in_order_and_within_windows(network in network(), seed in any::<u64>()) {
        let mut record = Record::default();
        let seed = Seed::new(seed);
        let report = run_observed(&network, seed, &RunOptions { collapse: false }, &mut record).unwrap();
        check_conservation(&network, &report, &record)?;
        check_order(&network, &record)?;
    }

    #[test]
    fn computing_ahead_changes_nothing(network in network(), seed in any::<u64>()) {
        let seed = Seed::new(seed);
        let simulate = |collapse| {
            let mut record = Record::default();
            let report = run_observed(&network, seed, &RunOptions { collapse }, &mut record).unwrap();
            (report, record)
        };
        let ((in_turn, in_turn_record), (ahead, ahead_record)) = (simulate(false), simulate(true));
        check_conservation(&network, &ahead, &ahead_record)?;
        check_order(&network, &ahead_record)?;
        for (end, events) in &in_turn_record.ends {
            let other = &ahead_record.ends[end];
            let at = events.iter().zip(other).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(events.get(at), other.get(at), "event {} of end {:?}", at, end);
        }
        for (link, events) in &in_turn_record.links {
            let other = &ahead_record.links[link];
            let at = events.iter().zip(other).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(events.get(at), other.get(at), "packet {} of link {}", at, link);
        }
        prop_assert_eq!(in_turn.fingerprint, ahead.fingerprint);
        prop_assert_eq!(result(in_turn), result(ahead));
    }

    #[test]
    fn looking_on_changes_nothing(network in network(), seed in any::<u64>()) {
        let seed = Seed::new(seed);
        let mut record = Record::default();
        let seen = run_observed(&network, seed, &RunOptions::default(), &mut record).unwrap();
        prop_assert_eq!(seen, run(&network, seed, &RunOptions::default()).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_run_is_the_same_on_every_thread(network in network(), seed in any::<u64>()) {
        let seed = Seed::new(seed);
        let alone = run(&network, seed, &RunOptions::default()).unwrap();
        let simulate = || run(&network, seed, &RunOptions::default()).unwrap();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(simulate)).collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), alone);
            }
        });
    }

    /// Two islands: events on one do not affect the other.
    #[test]
    fn a_flow_elsewhere_leaves_every_other_number_alone(here in network(), there in network(), seed in any::<u64>()) {
        let seed = Seed::new(seed);
        let alone = run(&here, seed, &RunOptions::default()).unwrap();
        let mut both = here.clone();
        let shift = |node: NodeId| NodeId(node.0 + here.nodes.len() as u32);
        both.nodes.extend(there.nodes.iter().map(|name| format!("there {name}")));
        // In front of the original, so that every index changes and only the names stay.
        let links = there.links.into_iter().map(|link| LinkSpec {
            name: format!("there {}", link.name),
            from: shift(link.from),
            to: shift(link.to),
            ..link
        });
        let (links, ours) = (links.collect::<Vec<_>>(), both.links);
        let elsewhere = links.len();
        both.links = links.into_iter().chain(ours).collect();
        both.flows.extend(there.flows.into_iter().map(|flow| FlowSpec {
            name: format!("there {}", flow.name),
            source: shift(flow.source),
            destination: shift(flow.destination),
            ..flow
        }));
        let together = run(&both, seed, &RunOptions::default()).unwrap();
        prop_assert_eq!(&together.links[elsewhere..], &alone.links[..]);
        prop_assert_eq!(&together.flows[..alone.flows.len()], &alone.flows[..]);
    }
}
