//! Random early detection against a run of ns-2 2.35.
//!
//! 1,000 B every 0.73 ms, 0 to 50 ms, 150.5 to 190.5 ms and 300.7 to 320.7 ms, into a 4 Mb/s RED
//! link: thresholds 4 and 12, weight 0.05, mean packet 1,000 B, not gentle, `linterm_` 10⁹ to
//! prevent random drops, `use_mark_p_` off. The averages are ns-2's trace of `ave_` after the
//! arrival, to six digits; the drops are those of its trace.

use comity_link::{
    AnalyticLink, DropCause, Limit, LinkConfig, Outcome, Packet, Queue, RedConfig, RedUnit,
};
use comity_units::{DataSize, Rate, Seed, Span, Time};

/// Arrival in microseconds and average after it.
const AVERAGES: [(u64, f64); 26] = [
    (1_460, 0.05),
    (2_190, 0.0975),
    (2_920, 0.192625),
    (3_650, 0.332994),
    (4_380, 0.466344),
    (8_030, 1.54872),
    (15_330, 5.05056),
    (22_630, 9.67796),
    (29_930, 14.3154),
    (37_230, 15.9361),
    (44_530, 15.4561),
    (150_500, 1.84368),
    (151_230, 1.7515),
    (151_960, 1.71392),
    (152_690, 1.67823),
    (159_260, 2.81753),
    (166_560, 6.04452),
    (173_860, 10.5512),
    (181_160, 14.5118),
    (188_460, 15.5355),
    (300_700, 1.8903),
    (301_430, 1.79578),
    (302_160, 1.756),
    (305_810, 1.96309),
    (313_110, 4.24952),
    (320_410, 8.18887),
];

#[test]
fn averages_and_certain_drops_are_those_of_ns2() {
    let red = RedConfig {
        limit: Limit::Packets(101),
        min_threshold: 4.0,
        max_threshold: 12.0,
        max_probability: 1e-9,
        weight: 0.05,
        gentle: false,
        ecn: false,
        mean_packet: DataSize::new(1_000),
        unit: RedUnit::Packets,
        wait: true,
    };
    let config = LinkConfig {
        queue: Queue::Red(red),
        ..LinkConfig::new(Rate::from_mbps(4), Span::from_millis(10))
    };
    let mut link = AnalyticLink::new(&config, Seed::new(1)).unwrap();
    let bursts = [(0, 50_000), (150_500, 190_500), (300_700, 320_700)];
    let offers = bursts
        .into_iter()
        .flat_map(|(start, end)| (start..end).step_by(730));
    let (mut dropped, mut compared) = (Vec::new(), 0);
    for (number, micros) in offers.enumerate() {
        let packet = Packet {
            bytes: 1_000,
            ecn_capable: false,
            flow: 0,
        };
        match link.offer(Time::from_micros(micros), packet) {
            Outcome::Dropped(cause) => {
                assert_eq!(cause, DropCause::EarlyDrop);
                dropped.push(number);
            }
            outcome => assert!(matches!(outcome, Outcome::Carried(_)), "{outcome:?}"),
        }
        if let Some((_, expected)) = AVERAGES.iter().find(|(at, _)| *at == micros) {
            let got = link.average_queue().unwrap();
            assert!(
                (got / expected - 1.0).abs() < 5e-6,
                "at {micros} us: {got}, ns-2 {expected}"
            );
            compared += 1;
        }
    }
    assert_eq!(compared, AVERAGES.len());
    let expected: Vec<usize> = (36..=68).chain(104..=123).collect();
    assert_eq!(dropped, expected);
}
