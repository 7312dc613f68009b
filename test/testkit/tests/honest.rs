//! A sender tells lying receivers from honest ones.

use bytes::Bytes;
use comity_congestion::Report;
use comity_link::LinkConfig;
use comity_testkit::datagram::{Pair, controllers, ends};
use comity_testkit::liar::{Change, Liar, Lie};
use comity_testkit::paths::{losses, random_path};
use comity_transport::datagram::{CloseReason, Config, Connection, Violation};
use comity_transport::timeline::{Importance, Outgoing, StreamId};
use comity_transport::wire::CloseCode;
use comity_units::{Rate, Seed, Span, Time};
use proptest::prelude::*;

/// Ends that know proofs.
fn config(seed: u64) -> Config {
    Config {
        proofs: true,
        seed: Seed::new(seed),
        ..Config::default()
    }
}

fn pair(controller: &str, links: [&LinkConfig; 2], seed: u64) -> Pair<Bytes> {
    let ends = ends(controller, config(seed), config(seed + 1_000_000));
    Pair::new(ends, links, Seed::new(seed))
}

/// Submits 60 kB each 40 ms, of one second of life: more than the path carries.
fn stream(pair: &mut Pair<Bytes>, sections: u64) {
    for number in 1..=sections {
        pair.run_until(Time::from_millis(40 * number));
        let now = pair.now();
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(1),
            source_time: now,
            deadline: now + Span::from_secs(1),
            needs: None,
            payload: Bytes::from(vec![0; 60_000]),
        };
        // A full buffer is the source's problem, and a closed connection the test's aim.
        let _ = pair.ends[0].submit(now, section);
    }
}

/// A path of 8 Mb/s with a round trip of 40 ms that loses this share of the packets.
fn lossy(share: f64) -> LinkConfig {
    LinkConfig {
        losses: losses(share),
        ..LinkConfig::new(Rate::from_mbps(8), Span::from_millis(20))
    }
}

fn violation(pair: &Pair<Bytes>) -> Option<&Violation> {
    match pair.ends[0].close_reason() {
        Some(CloseReason::Violation(violation)) => Some(violation),
        _ => None,
    }
}

/// It knows which numbers were left out, and so acknowledges all that was lost. A guess is right in
/// one of eight cases.
#[test]
#[cfg_attr(miri, ignore = "too many packets for an interpreter")]
fn a_receiver_that_acknowledges_lost_packets_is_detected_within_a_few_lies() {
    const RUNS: u64 = 20;
    let (mut runs, mut lies) = (0, Vec::new());
    for controller in controllers() {
        for seed in 0..RUNS {
            let (forward, back) = (lossy(0.05), lossy(0.0));
            let mut pair = pair(controller, [&forward, &back], seed);
            pair.liar = Some(Liar::new(Lie::Acks, Seed::new(seed)));
            stream(&mut pair, 250);
            let lies_received = pair.liar.as_ref().map_or(0, |liar| liar.received);
            assert!(lies_received > 0, "{controller}, {seed}: nothing was lost");
            let found = violation(&pair);
            assert!(
                matches!(found, Some(Violation::AcknowledgedUnseen { .. })),
                "{controller}, {seed}: {found:?} after {lies_received} lies"
            );
            let reason = pair.ends[1].close_reason();
            assert!(
                matches!(reason, Some(CloseReason::Peer { code, .. }) if *code == CloseCode::OPTIMISTIC_ACK),
                "{controller}, {seed}: {reason:?}"
            );
            runs += 1;
            lies.push(lies_received);
        }
    }
    // One lie in 512 is the fourth.
    let many = lies.iter().filter(|lies| **lies > 3).count();
    assert!(
        many * 50 <= runs && lies.iter().all(|lies| *lies <= 10),
        "{lies:?}"
    );
}

/// True acknowledgements, and reports that say nothing of losses.
#[test]
#[cfg_attr(miri, ignore = "too many packets for an interpreter")]
fn a_meter_that_contradicts_its_acknowledgements_is_detected() {
    const LIES: [(&str, Change); 6] = [
        ("tfrc", |report| change_losses(report, |_| 0.0, 1)),
        ("tfrc", |report| change_losses(report, |_| 1e-9, 1)),
        ("tfrc", |report| change_losses(report, |p| p / 100.0, 1)),
        ("tfrc", |report| change_losses(report, |p| p, 20)),
        ("psp", |report| change_count(report, |packets| packets + 1)),
        ("psp", |report| change_count(report, |_| 1_000_000)),
    ];
    for (kind, (controller, lie)) in LIES.into_iter().enumerate() {
        let (mut found, mut most) = (0, 0);
        for seed in 0..50 {
            let (forward, back) = (lossy(0.05), lossy(0.0));
            let mut pair = pair(controller, [&forward, &back], seed);
            pair.liar = Some(Liar::new(Lie::Reports(lie), Seed::new(seed)));
            stream(&mut pair, 500);
            let lies = pair.liar.as_ref().map_or(0, |liar| liar.received);
            assert!(lies > 0, "{controller}, {kind}");
            let is_found = violation(&pair) == Some(&Violation::FalseReport);
            found += u64::from(is_found && lies <= 100);
            most = most.max(lies);
        }
        assert_eq!(found, 50, "{controller}, {kind}: up to {most} lies");
        // A count is found at once.
        assert!(controller != "psp" || most == 1, "{kind}: {most}");
    }
}

/// True acknowledgements of the newest packet alone, and counts of all packets: none of them can be
/// shown to be false, and none has an effect.
#[test]
#[cfg_attr(miri, ignore = "too many packets for an interpreter")]
fn packets_that_were_declared_lost_do_not_count() {
    let sent = |lies: bool, seed| {
        let (forward, back) = (lossy(0.05), lossy(0.0));
        let mut pair = pair("psp", [&forward, &back], seed);
        pair.liar = lies.then(|| Liar::new(Lie::Narrow, Seed::new(seed)));
        stream(&mut pair, 250);
        let received = pair.liar.as_ref().map_or(0, |liar| liar.received);
        assert!(received > 20 || !lies, "{seed}: {received} lies");
        pair.ends[0].statistics().sent.packets
    };
    for seed in 0..10 {
        let (honest, lying) = (sent(false, seed), sent(true, seed));
        assert!(
            lying <= honest * 5 / 4,
            "{seed}: {lying} packets, honest: {honest}"
        );
    }
}

fn change_losses(report: &Report, losses: impl Fn(f64) -> f64, times: u64) -> Report {
    match *report {
        Report::LossEvents { rate, received } => Report::LossEvents {
            rate: losses(rate),
            received: Rate::from_bps(received.as_bps() * times),
        },
        other => other,
    }
}

fn change_count(report: &Report, packets: impl Fn(u32) -> u32) -> Report {
    match *report {
        Report::Count { round, packets: n } => Report::Count {
            round,
            packets: packets(n),
        },
        other => other,
    }
}

/// Without proofs such a receiver is not found.
#[test]
fn without_proofs_contents_reveal_skipped_numbers() {
    let legacy = |seed| Config {
        proofs: false,
        ..config(seed)
    };
    let ends = ends("steady", legacy(1), legacy(2));
    let mut pair = Pair::new(ends, [&lossy(0.05), &lossy(0.0)], Seed::new(1));
    pair.liar = Some(Liar::new(Lie::Acks, Seed::new(1)));
    stream(&mut pair, 250);
    assert!(pair.ends[0].is_open());
    assert!(pair.liar.is_some_and(|liar| liar.received > 100));
}

/// The path of end 0 changes now.
fn change_path(end: &mut Connection<Bytes>, now: Time, controller: &str) {
    use comity_congestion::table::{self, Parameters, Setup};
    let setup = Setup::new(comity_units::DataSize::new(end.config().payload.into()));
    let row = table::find(controller).expect("a known controller");
    let fresh = row.build(&setup, &Parameters::new()).expect("defaults");
    end.on_new_path(now, fresh);
}

fn honest(
    controller: &str,
    [forward, back]: [&LinkConfig; 2],
    seed: u64,
    (moves_at, outage, stall): (u64, u64, u64),
) -> Result<(), TestCaseError> {
    let mut pair = pair(controller, [forward, back], seed);
    let at = Time::from_millis(outage);
    pair.set_outage(at, at + Span::from_millis(outage / 4));
    stream(&mut pair, moves_at);
    // Packets on the way arrive after later ones, and nothing that was measured holds.
    pair.set_extra_delay(0, Span::from_millis(stall));
    let now = pair.reading(0);
    match seed % 2 {
        0 => change_path(&mut pair.ends[0], now, controller),
        _ => pair.ends[0].on_kept_path(true),
    }
    let more = pair.now() + Span::from_secs(1);
    pair.run_until(more);
    pair.set_extra_delay(0, Span::ZERO);
    pair.set_extra_delay(1, Span::from_millis(stall));
    pair.run_until(more + Span::from_secs(1));
    prop_assert!(pair.violations.is_empty(), "{:?}", pair.violations);
    prop_assert!(pair.ends[0].statistics().sent.packets > 3);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 96 }))]

    /// Losses, queues, duplicates, reordering, jitter and lost acknowledgements in both directions,
    /// an outage, a path that changes and one that stalls.
    #[test]
    fn an_honest_receiver_is_never_accused(
        forward in random_path(1..12, 1..80, 0.0..0.3),
        back in random_path(1..12, 1..80, 0.0..0.3),
        controller in proptest::sample::select(controllers()),
        seed: u64,
        scenes in (10_u64..120, 1_u64..4_000, 0_u64..600),
    ) {
        honest(controller, [&forward, &back], seed >> 1, scenes)?;
    }
}
