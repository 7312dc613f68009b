//! Sources that follow the target bit rate, or need not.

use super::*;

const FRAME: Span = Span::from_millis(40);
const LATENCY: Span = Span::from_millis(400);

/// The results of a video.
struct Shown {
    /// Key frames on time, and their total.
    keys: (usize, usize),
    /// The target bit rate at each key frame.
    targets: Vec<Option<Rate>>,
}

/// A video of up to 4 Mb/s and 25 frames a second through `path`, from an encoder that follows the
/// target bit rate. Each 25th frame is a key frame `ratio` times as long as the others. The results
/// begin after ten seconds.
fn show(path: &LinkConfig, seconds: u64, ratio: u64) -> Shown {
    let config = Config::default();
    let mut pair = Pair::new(ends("steady", config), [path, path], Seed::new(1));
    let (mut keys, mut targets) = (0, Vec::new());
    for number in 0..seconds * 25 {
        pair.run_until(Time::ZERO + FRAME * number);
        let now = pair.now();
        let most = Rate::from_mbps(4);
        let target = pair.ends[0].target_bitrate();
        let second = target.unwrap_or(most).min(most).as_bps() / 8;
        let is_key = number % 25 == 0;
        let (parts, importance) = if is_key { (ratio, 200) } else { (1, 100) };
        let length = u32::try_from(second * parts / (24 + ratio)).expect("a frame");
        if is_key && now >= WARM {
            keys += 1;
            targets.push(target);
        }
        let frame = Outgoing {
            importance: Importance(importance),
            ..section(now, number, length, LATENCY)
        };
        pair.ends[0].submit(now, frame).expect("room");
    }
    pair.run_until(pair.now() + LATENCY);
    let is_key_on_time = |delivery: &Delivery<Bytes>| match delivery {
        Delivery::Section(section) => {
            let meta = &section.meta;
            meta.importance == Importance(200)
                && meta.source_time >= WARM
                && section.completed <= meta.deadline
        }
        Delivery::Gap(_) => false,
    };
    let deliveries = pair.deliveries[1].iter();
    let on_time = deliveries.filter(|(_, one)| is_key_on_time(one)).count();
    Shown {
        keys: (on_time, keys),
        targets,
    }
}

const WARM: Time = Time::from_secs(10);

#[test]
fn an_encoder_follows_a_narrow_path_and_its_key_frames_are_on_time() {
    let shown = show(&link(Rate::from_mbps(2)), 60, 5);
    assert_eq!(shown.keys, (50, 50));
    // 2 Mb/s, less at most 57 bytes of headers for each 1,457, and packets that are not full.
    for target in shown.targets {
        let target = target.expect("the path is known").as_mbps_f64();
        assert!((1.6..1.93).contains(&target), "{target} Mb/s");
    }
}

/// Frames of one size in bursts meet no congestion, however late their acknowledgements.
#[test]
fn a_video_within_capacity_keeps_its_rate() {
    for (mbps, delay) in [(1_000, 5), (100, 5), (20, 1), (8, 20)] {
        for ratio in [1, 5] {
            let path = LinkConfig {
                queue: Queue::DropTail(Limit::Packets(60)),
                ..LinkConfig::new(Rate::from_mbps(mbps), Span::from_millis(delay))
            };
            let shown = show(&path, 30, ratio);
            assert_eq!(shown.keys, (20, 20), "{mbps} Mb/s, {delay} ms");
            for target in shown.targets.into_iter().flatten() {
                assert!(
                    target >= Rate::from_mbps(4),
                    "{target} through {mbps} Mb/s, {delay} ms, {ratio}"
                );
            }
        }
    }
}
