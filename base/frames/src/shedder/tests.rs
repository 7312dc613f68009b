use std::vec::Vec;

use super::*;

const I: FrameType = FrameType::Key;
const P: FrameType = FrameType::Predicted { referenced: true };
const RB: FrameType = FrameType::Bidirectional { referenced: true };
const B: FrameType = FrameType::Bidirectional { referenced: false };

/// One group of a second: I, then four times P Br B B, each 1000 bytes; 17 pictures: 136 kb/s.
const GROUP: [(FrameType, u8, Option<u64>); 17] = [
    (I, 0, None),
    (P, 1, Some(0)),
    (RB, 1, Some(1)),
    (B, 1, Some(2)),
    (B, 1, Some(2)),
    (P, 2, Some(1)),
    (RB, 2, Some(5)),
    (B, 2, Some(6)),
    (B, 2, Some(6)),
    (P, 3, Some(5)),
    (RB, 3, Some(9)),
    (B, 3, Some(10)),
    (B, 3, Some(10)),
    (P, 4, Some(9)),
    (RB, 4, Some(13)),
    (B, 4, Some(14)),
    (B, 4, Some(14)),
];

fn frames(groups: std::ops::Range<u64>) -> impl Iterator<Item = Frame> {
    groups.flat_map(|group| {
        (0..)
            .zip(GROUP)
            .map(move |(index, (frame_type, position, needs))| Frame {
                stream: 1,
                number: group * 17 + index,
                frame_type,
                position,
                needs: needs.map(|needed| group * 17 + needed),
                is_bound: needs.is_some(),
                source_time: Time::from_nanos((group * 17 + index) * 1_000_000_000 / 17),
                size: DataSize::new(1_000),
            })
    })
}

/// The kept pictures of the tenth group at this target, after nine groups at it.
fn kept(kbps: u64) -> (Vec<usize>, Shedder) {
    let mut shedder = Shedder::new(ShedderConfig {
        headroom: 1.0,
        ..ShedderConfig::default()
    });
    shedder.retarget(Time::ZERO, Rate::from_kbps(kbps), None);
    for frame in frames(0..9) {
        let _ = shedder.offer(&frame);
    }
    let decisions: Vec<_> = frames(9..10).map(|frame| shedder.offer(&frame)).collect();
    let kept = (0..17).filter(|&index| decisions[index].is_ok()).collect();
    (kept, shedder)
}

#[test]
fn the_least_important_go_first() {
    assert_eq!(kept(140).0.len(), 17);
    // 8 kb/s too much is one picture of the seventeen; 32 kb/s too much is half of the eight
    // unreferenced ones.
    assert_eq!(kept(128).0.len(), 16);
    let some = kept(104).0;
    assert_eq!(some.len(), 13);
    assert!(
        [0, 1, 2, 5, 6, 9, 10, 13, 14]
            .iter()
            .all(|index| some.contains(index))
    );
    // 72 kb/s is exactly the group without the eight; 40 kb/s also lacks the referenced B
    // pictures.
    assert_eq!(kept(72).0, [0, 1, 2, 5, 6, 9, 10, 13, 14]);
    assert_eq!(kept(40).0, [0, 1, 5, 9, 13]);
    // P pictures from the end; never the I picture.
    assert_eq!(kept(33).0, [0, 1, 5, 9]);
    assert_eq!(kept(17).0, [0, 1]);
    assert_eq!(kept(1).0, [0]);
}

#[test]
fn dependents_go_with_their_dependency_and_the_account_sums() {
    let (_, shedder) = kept(56);
    let counters = shedder.counters();
    assert!(counters.referenced.frames > 0 && counters.dependent.frames == 0);
    // A target that rises within a group: the dependents of a shed P picture stay undecodable.
    let config = ShedderConfig {
        hold: Span::ZERO,
        ..ShedderConfig::default()
    };
    let mut shedder = Shedder::new(config);
    shedder.retarget(Time::ZERO, Rate::from_kbps(30), None);
    for frame in frames(0..4).take(3 * 17 + 11) {
        let _ = shedder.offer(&frame);
    }
    shedder.retarget(Time::from_millis(3_700), Rate::from_mbps(1), None);
    let rest: Vec<_> = frames(3..5)
        .skip(11)
        .map(|frame| shedder.offer(&frame))
        .collect();
    assert_eq!(rest[..6], [Err(Reason::Dependency); 6]);
    assert_eq!(rest[6..], [Ok(()); 17]);
    let counters = shedder.counters();
    let parts = [
        counters.kept,
        counters.unreferenced,
        counters.referenced,
        counters.predicted,
        counters.dependent,
    ];
    assert_eq!(parts.map(|part| part.frames).iter().sum::<u64>(), 5 * 17);
    assert_eq!(
        parts.map(|part| part.bytes).into_iter().sum::<DataSize>(),
        counters.offered.bytes
    );
    assert!(
        counters.predicted.frames > 0 && counters.dependent.frames > 0,
        "{counters:?}"
    );
}

#[test]
fn more_is_sent_only_after_a_lasting_rise() {
    let (_, mut shedder) = kept(72);
    let mut target = |millis: u64, kbps: u64| {
        shedder.retarget(Time::from_millis(millis), Rate::from_kbps(kbps), None);
        shedder.allowed.map(Rate::as_bps)
    };
    assert_eq!(target(10_000, 140), Some(72_000));
    assert_eq!(target(11_900, 160), Some(72_000));
    // A dip restarts the hold time.
    assert_eq!(target(11_950, 75), Some(72_000));
    assert_eq!(target(12_000, 150), Some(72_000));
    assert_eq!(target(13_900, 145), Some(72_000));
    assert_eq!(target(14_000, 170), Some(145_000));
    assert_eq!(target(14_001, 100), Some(100_000));
}

#[test]
fn a_low_target_that_rises_at_once_sheds_nothing() {
    let mut shedder = Shedder::new(ShedderConfig::default());
    shedder.retarget(Time::ZERO, Rate::from_kbps(20), None);
    for frame in frames(0..4) {
        if frame.source_time >= Time::from_millis(100) {
            shedder.retarget(frame.source_time, Rate::from_kbps(300), None);
        }
        assert_eq!(shedder.offer(&frame), Ok(()), "{}", frame.number);
    }
}

/// Each group begins with a picture nine times as large as each of the others: 200 kb/s. All of
/// it fits, in every part of every group, from the beginning.
#[test]
fn an_incomplete_group_does_not_look_like_a_faster_source() {
    let mut shedder = Shedder::new(ShedderConfig {
        headroom: 1.0,
        ..ShedderConfig::default()
    });
    for mut frame in frames(0..5) {
        if frame.frame_type == I {
            frame.size = DataSize::new(9_000);
        }
        shedder.retarget(frame.source_time, Rate::from_kbps(210), None);
        assert_eq!(shedder.offer(&frame), Ok(()), "{}", frame.number);
    }
    let rate = shedder.source_rate().map(|rate| rate.as_bps() / 1_000);
    assert_eq!(rate, Some(200));
    // With a lower target, shedding begins in the third group.
    let mut shedder = Shedder::new(ShedderConfig::default());
    shedder.retarget(Time::ZERO, Rate::from_kbps(100), None);
    let mut gone = |groups| {
        let decisions = frames(groups).map(|frame| shedder.offer(&frame));
        decisions.filter(Result::is_err).count()
    };
    assert_eq!(gone(0..2), 0);
    let gone = gone(2..3);
    assert!(gone >= 4, "{gone}");
}

/// The first targets are a quarter of what the source needs, and each is an eighth higher than
/// the one before; or the target stays.
#[test]
fn nothing_is_shed_while_the_connection_finds_its_rate() {
    let gone = |rises: bool| {
        let mut shedder = Shedder::new(ShedderConfig::default());
        let mut target = 34_000.0;
        let decisions = frames(0..8).map(|frame| {
            if rises && frame.frame_type == P {
                target *= 1.125;
            }
            let target = Rate::from_bps_f64(target);
            let decision = shedder.offer_at(Some(target), &frame);
            (frame.source_time, decision.is_err())
        });
        let gone: Vec<_> = decisions.filter(|(_, gone)| *gone).collect();
        gone.first().map(|(at, _)| *at)
    };
    assert_eq!(gone(true), None);
    let begin = gone(false).unwrap();
    let limits = Time::from_secs(2)..Time::from_millis(2_200);
    assert!(limits.contains(&begin), "{begin}");
}

/// Targets that rise and fall between two values do not count as the start of a connection.
#[test]
fn a_target_that_goes_up_and_down_below_the_need_does_not_delay_shedding() {
    let mut shedder = Shedder::new(ShedderConfig::default());
    let gone = frames(0..8).filter(|frame| {
        let kbps = 60 + frame.number % 3 * 10;
        shedder
            .offer_at(Some(Rate::from_kbps(kbps)), frame)
            .is_err()
    });
    assert!(gone.count() > 20);
}

/// Groups of two seconds with 25 pictures a second. At 6.2 s the target falls to a half, and
/// from 6.4 s on the pictures are so small that they fit, or stay as they are.
#[test]
fn an_encoder_that_has_followed_its_target_is_not_shed() {
    let gone = |follows: bool| {
        let mut shedder = Shedder::new(ShedderConfig::default());
        let mut gone = [0; 2];
        for number in 0..300_u64 {
            let source_time = Time::from_millis(number * 40);
            let in_group = number % 50;
            let size = match in_group {
                0 => 5_000,
                _ => 1_000,
            };
            let is_small = follows && source_time >= Time::from_millis(6_400);
            let target = match source_time < Time::from_millis(6_200) {
                true => Rate::from_kbps(250),
                false => Rate::from_kbps(125),
            };
            let decision = shedder.offer_at(
                Some(target),
                &Frame {
                    stream: 0,
                    number,
                    frame_type: if in_group == 0 { I } else { P },
                    position: u8::try_from(in_group).unwrap(),
                    needs: (in_group > 0).then(|| number - 1),
                    is_bound: in_group > 0,
                    source_time,
                    size: DataSize::new(if is_small { size / 2 } else { size }),
                },
            );
            let is_after = source_time >= Time::from_secs(8);
            gone[usize::from(is_after)] += u32::from(decision.is_err());
        }
        gone
    };
    assert_eq!(gone(true), [0, 0]);
    let [before, after] = gone(false);
    assert!(
        before > 10 && (40..=70).contains(&after),
        "{before}, {after}"
    );
}

/// The share of pictures that a path of nine tenths of the source loses. A group has an I
/// picture and 24 others of this type, and each needs the one before it.
fn gone_of(frame_type: FrameType) -> f64 {
    let mut shedder = Shedder::new(ShedderConfig::default());
    let mut group = crate::Group::new(crate::DeadlineRule::Each);
    let (mut offered, mut gone) = (0.0, 0.0);
    for number in 0..25 * 30 {
        let in_group = number % 25;
        let source_time = Time::from_millis(40 * number);
        let member = group.push(crate::Arrival {
            number,
            frame_type: if in_group == 0 { I } else { frame_type },
            presentation: Some(3_600 * number),
            source_time,
            reordering: Span::ZERO,
            begins_refresh: false,
        });
        let frame = member.frame(1, number, DataSize::new(1_000));
        let decision = shedder.offer_at(Some(Rate::from_kbps(180)), &frame);
        if source_time >= Time::from_secs(10) {
            (offered, gone) = (offered + 1.0, gone + f64::from(decision.is_err()));
        }
    }
    gone / offered
}

#[test]
fn p_pictures_in_b_slices_are_shed_like_p_pictures() {
    let as_b = gone_of(FrameType::Bidirectional { referenced: true });
    assert!((0.08..=0.2).contains(&as_b), "{as_b}");
    assert_eq!(as_b, gone_of(P));
}

#[test]
fn a_stated_rate_replaces_the_measured_one() {
    let (_, mut shedder) = kept(140);
    assert_eq!(
        shedder.source_rate().map(|rate| rate.as_bps() / 1_000),
        Some(136)
    );
    shedder.retarget(
        Time::from_secs(10),
        Rate::from_kbps(140),
        Some(Rate::from_kbps(280)),
    );
    let kept = frames(10..11)
        .filter(|frame| shedder.offer(frame).is_ok())
        .count();
    // Half of it must go: eight and a half of seventeen.
    assert!((8..=9).contains(&kept), "{kept}");
}
