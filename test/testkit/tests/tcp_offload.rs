//! Groups of segments that leave as one, and their acknowledgements.
//!
//! Segments have 100 bytes and are numbered from 1; a round trip takes 100 ms.

use comity_congestion::RttConfig;
use comity_congestion::recovery::RecoveryConfig;
use comity_tcp::{Config, DelayedAck, Flags};
use comity_testkit::tcp::{BORN, Pair, Path, Side, listener, opener, reno};
use comity_units::{DataSize, Span, Time};

fn transfer(segmentation_offload: bool, window: u64, count: u64) -> Pair {
    let config = Config {
        sack: true,
        receive_buffer: DataSize::new(50_000),
        recovery: RecoveryConfig::RACK,
        rtt: RttConfig::LINUX,
        delayed_ack: Some(DelayedAck {
            segments: 2,
            timeout: Span::from_millis(40),
            quick: 0,
        }),
        segmentation_offload,
        ..BORN
    };
    let delay = Span::from_millis(50);
    let mut pair = Pair::new(
        opener(config, reno(100, window, window)),
        listener(config, reno(100, window, window)),
        Path::new(delay),
        Path::new(delay),
    );
    pair.call(Side::A, |connection| connection.write(count * 100));
    assert!(pair.drive(Time::from_secs(100)));
    assert_eq!(pair.end(Side::B).delivered(), count * 100);
    pair
}

/// The segments with the PSH flag, and the times in milliseconds of the acknowledgements with their
/// numbers.
fn seen(pair: &Pair) -> (Vec<u32>, Vec<(u64, u32)>) {
    let number = |sequence: u32| (sequence - 1) / 100;
    let of = |side| {
        pair.records()
            .iter()
            .filter(move |record| record.from == side)
    };
    let pushed = of(Side::A)
        .filter(|record| record.segment.payload > 0 && record.segment.flags.contains(Flags::PSH))
        .map(|record| number(record.segment.sequence.get()) + 1)
        .collect();
    let answers = of(Side::B)
        .map(|record| {
            (
                record.at.as_nanos() / 1_000_000,
                number(record.segment.acknowledgement.get()),
            )
        })
        .collect();
    (pushed, answers)
}

#[test]
fn groups_of_two_are_pushed_and_a_single_pushed_segment_is_acknowledged_at_once() {
    // A window of five segments: two groups of two, and a single one whose acknowledgement is
    // delayed by 40 ms. The acknowledgement of the first group releases the sixth, the last of the
    // stream.
    let (pushed, answers) = seen(&transfer(true, 5, 6));
    assert_eq!(pushed, [2, 4, 6]);
    assert_eq!(answers, [(50, 2), (50, 4), (90, 5), (150, 6)]);
    let (pushed, answers) = seen(&transfer(false, 5, 6));
    assert_eq!(pushed, [6]);
    assert_eq!(answers, [(50, 2), (50, 4), (90, 5), (190, 6)]);
}

#[test]
fn a_group_is_at_most_half_of_the_window() {
    let (pushed, _) = seen(&transfer(true, 3, 6));
    assert_eq!(pushed, [6], "halves of three are single segments");
    let (pushed, _) = seen(&transfer(true, 4, 8));
    assert_eq!(pushed, [2, 4, 6, 8]);
}
