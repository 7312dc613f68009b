use super::*;

/// A fully known path. The sender's clock runs fast by `drift` parts per million and was 5 s ahead,
/// and 50 packets leave per second.
struct Path {
    map: ClockMap,
    drift: f64,
    random: u64,
    at: f64,
}

impl Path {
    fn new(drift: f64) -> Self {
        Self {
            map: ClockMap::default(),
            drift,
            random: 0x9e37_79b9_7f4a_7c15,
            at: 1.0,
        }
    }

    /// Uniform in (0, 1].
    fn uniform(&mut self) -> f64 {
        // Xorshift of Marsaglia with its full period.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((self.random >> 11) as f64 + 1.0) / (1_u64 << 53) as f64
    }

    /// The time of the sender's clock at a local time, in seconds.
    fn sender(&self, local: f64) -> f64 {
        5.0 + local * (1.0 + self.drift / 1e6)
    }

    /// Sends for `seconds` over a path of `delay(local time)` and a queue of uniform length.
    fn run(&mut self, seconds: f64, mean_queue: f64, delay: impl Fn(f64) -> f64) {
        let end = self.at + seconds;
        while self.at < end {
            let queue = 2.0 * mean_queue * self.uniform();
            let departure = (self.sender(self.at) * 1e6) as u64;
            let arrival = self.at + delay(self.at) + queue;
            self.map
                .on_arrival(Time::from_nanos((arrival * 1e9) as u64), departure as u32);
            self.at += 0.02;
        }
    }

    /// The error of the map in milliseconds, for the present.
    fn error(&self) -> f64 {
        let local = self
            .map
            .to_local(Time::from_nanos((self.sender(self.at) * 1e9) as u64));
        (local.as_secs_f64() - self.at) * 1e3
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many packets for an interpreter")]
fn drift_is_measured_and_followed() {
    for drift in [-100.0, -20.0, 0.0, 100.0] {
        let mut path = Path::new(drift);
        path.map.set_base_one_way(Span::from_millis(20));
        path.run(120.0, 0.005, |_| 0.020);
        let found = path.map.drift_ppm();
        assert!((found - drift).abs() < 5.0, "{drift} ppm: {found}");
        let error = path.error();
        assert!((-0.3..0.7).contains(&error), "{drift} ppm: {error} ms");
    }
}

#[test]
fn without_queues_the_map_is_exact() {
    let mut path = Path::new(0.0);
    path.map.set_base_one_way(Span::from_millis(20));
    path.run(5.0, 0.0, |_| 0.020);
    assert!(path.error().abs() < 0.002, "{}", path.error());
    assert_eq!(path.map.queueing().as_millis(), 0);
    assert!(path.map.one_way().abs_diff(Span::from_millis(20)) < Span::from_micros(3));
}

#[test]
#[cfg_attr(miri, ignore = "too many packets for an interpreter")]
fn a_growing_queue_does_not_count_as_drift() {
    let mut path = Path::new(0.0);
    path.map.set_base_one_way(Span::from_millis(20));
    path.run(60.0, 0.002, |_| 0.020);
    // 2 ms per second for 30 s, and it stays.
    let start = path.at;
    path.run(60.0, 0.002, |at| 0.020 + 0.002 * (at - start).min(30.0));
    let found = path.map.drift_ppm();
    assert!(found.abs() < 10.0, "{found} ppm");
}

#[test]
#[cfg_attr(miri, ignore = "too many packets for an interpreter")]
fn a_temporary_queue_does_not_move_the_map() {
    let mut path = Path::new(30.0);
    path.map.set_base_one_way(Span::from_millis(20));
    path.run(60.0, 0.001, |_| 0.020);
    // A saw-tooth of 60 ms and 7 s, as loss-based control causes it.
    path.run(120.0, 0.001, |at| 0.020 + 0.060 * (at / 7.0 % 1.0));
    let (error, drift) = (path.error(), path.map.drift_ppm());
    assert!((-0.5..2.0).contains(&error), "{error} ms");
    assert!((20.0..40.0).contains(&drift), "{drift} ppm");
}

#[test]
#[cfg_attr(miri, ignore = "too many packets for an interpreter")]
fn a_longer_path_takes_effect_after_a_window_and_by_slewing() {
    let mut path = Path::new(0.0);
    path.map.set_base_one_way(Span::from_millis(20));
    path.run(60.0, 0.001, |_| 0.020);
    path.run(12.0, 0.001, |_| 0.050);
    let error = path.error();
    assert!(
        (-1.0..1.0).contains(&error),
        "within the window: {error} ms"
    );
    // The window of 16 s is over after 16 to 18 s, and 30 ms take 3 s at 10 ms per second.
    path.run(12.0, 0.001, |_| 0.050);
    let error = path.error();
    assert!(
        (29.0..31.5).contains(&error),
        "after the window: {error} ms"
    );
    let drift = path.map.drift_ppm();
    assert!(drift.abs() < 10.0, "a step is no drift: {drift} ppm");
    path.run(60.0, 0.001, |_| 0.050);
    let drift = path.map.drift_ppm();
    assert!(
        drift.abs() < 10.0,
        "a step is no drift later on: {drift} ppm"
    );
}

#[test]
#[cfg_attr(miri, ignore = "too many packets for an interpreter")]
fn a_shorter_path_takes_effect_at_once_and_by_slewing() {
    let mut path = Path::new(0.0);
    path.map.set_base_one_way(Span::from_millis(50));
    path.run(60.0, 0.001, |_| 0.050);
    path.run(1.0, 0.001, |_| 0.020);
    let error = path.error();
    assert!((-12.0..-8.0).contains(&error), "after 1 s: {error} ms");
    path.run(3.0, 0.001, |_| 0.020);
    let error = path.error();
    assert!((-31.0..-29.0).contains(&error), "after 4 s: {error} ms");
    path.run(60.0, 0.001, |_| 0.020);
    let drift = path.map.drift_ppm();
    assert!(drift.abs() < 10.0, "a step is no drift: {drift} ppm");
}

#[test]
fn the_map_never_jumps() {
    let mut path = Path::new(100.0);
    path.run(1.0, 0.010, |_| 0.030);
    path.map.set_base_one_way(Span::from_millis(30));
    let mut before = path.error();
    for step in 0..400 {
        let delay = if step % 80 < 40 { 0.030 } else { 0.090 };
        path.run(0.2, 0.010, |_| delay);
        let error = path.error();
        // 10 ms per second, and the rest of the drift; packets are up to 100 ms apart on arrival.
        assert!((error - before).abs() < 3.5, "from {before} to {error} ms");
        before = error;
    }
}

#[test]
fn departures_wrap_even_after_a_long_silence() {
    let mut map = ClockMap::default();
    let near_wrap = u32::MAX - 500_000;
    map.on_arrival(Time::from_secs(10), near_wrap);
    let sent = |micros: u64| Time::from_micros(u64::from(near_wrap) + micros);
    map.on_arrival(Time::from_secs(11), near_wrap.wrapping_add(1_000_000));
    assert_eq!(map.to_local(sent(1_000_000)), Time::from_secs(11));
    // Fifty minutes of silence: more than half of the range of the field.
    map.on_arrival(
        Time::from_secs(3_011),
        near_wrap.wrapping_add(3_001_000_000),
    );
    assert_eq!(map.to_local(sent(3_001_000_000)), Time::from_secs(3_011));
    assert_eq!(map.to_local(Time::MAX), Time::MAX);
}

#[test]
fn the_first_base_takes_effect_at_once_and_the_next_by_slewing() {
    let mut map = ClockMap::default();
    map.on_arrival(Time::from_millis(1_050), 1_000_000);
    let sent = Time::from_secs(1);
    assert_eq!(map.to_local(sent), Time::from_millis(1_050));
    map.set_base_one_way(Span::from_millis(50));
    assert_eq!(map.to_local(sent), sent);
    map.set_base_one_way(Span::from_millis(20));
    assert_eq!(map.to_local(sent), sent);
    map.on_arrival(Time::from_millis(2_050), 2_000_000);
    assert_eq!(map.to_local(sent), sent + Span::from_millis(10));
}

#[test]
fn the_slope_below_touches_the_hull_at_the_middle() {
    // Worked by hand: hull (0, 0), (4, 2), (10, 8); the mean of the abscissas is 4.8, so the edge
    // from 4 to 10.
    let points = [(0.0, 0.0), (2.0, 5.0), (4.0, 2.0), (8.0, 9.0), (10.0, 8.0)];
    assert_eq!(slope_below(&points), Some(1.0));
    assert_eq!(slope_below(&[(1.0, 1.0)]), None);
}

#[test]
fn jitter_by_hand() {
    let mut map = ClockMap::default();
    // The sender's clock passes 2^32 us after the second packet. The transit times of successive
    // packets differ by +160, 0 and -320 us; J is 10, 9.375 and 28.7890625 us.
    let wrap = 1_u32 << 31;
    let departures = [wrap + (wrap - 15_000), wrap + (wrap - 5_000), 5_000, 15_000];
    let arrivals = [1_000_000, 1_010_160, 1_020_160, 1_029_840];
    let mut found = Vec::new();
    for (departure, arrival) in departures.into_iter().zip(arrivals) {
        map.on_arrival(Time::from_micros(arrival), departure);
        found.push(map.jitter().as_nanos());
    }
    assert_eq!(found, [0, 10_000, 9_375, 28_789]);
}

/// The maximum jump of a stamp is 2^31 us, and a sixteenth of it counts.
#[test]
#[cfg_attr(miri, ignore = "too many packets for an interpreter")]
fn jitter_stays_within_the_range_of_stamps() {
    let mut map = ClockMap::default();
    for at in 0..10_000_u64 {
        let departure = if at % 2 == 0 { 0 } else { 1 << 31 };
        map.on_arrival(Time::from_micros(at), departure);
    }
    let most = Span::from_micros(1 << 31);
    assert!(map.jitter() <= most && map.jitter() > most.mul_f64(0.99));
    // A regular path is also regular on average: (15/16)^1,000 of 2^31 us is less than 1 ns.
    for at in 10_000..11_000_u64 {
        map.on_arrival(Time::from_micros(at), at as u32);
    }
    assert!(map.jitter() < Span::from_micros(1), "{}", map.jitter());
}

/// A packet every 20 ms over a path of 20 ms each way. Every tenth round trip is measured. The
/// sender's clock is `ahead` seconds ahead of the local one. Returns whether the map is right to 1
/// ms for packets that leave at the end of each second.
fn seconds_right(map: &mut ClockMap, from: u64, seconds: u64, ahead: f64, queue: f64) -> Vec<bool> {
    let mut right = Vec::new();
    for step in from * 50..(from + seconds) * 50 {
        let left = step as f64 * 0.02;
        let arrival = Time::from_nanos(((left + 0.02 + queue) * 1e9) as u64);
        map.on_arrival(arrival, ((left + ahead) * 1e6) as u32);
        if step % 10 == 0 {
            map.on_round_trip(arrival, Span::from_secs_f64(0.04 + queue));
        }
        if step % 50 == 49 {
            let shown = map.to_local(Time::from_nanos(((left + ahead) * 1e9) as u64));
            right.push((shown.as_secs_f64() - left).abs() < 1e-3);
        }
    }
    right
}

/// A virtual machine is paused: its monotonic clock stops for the pause, and stays behind by its
/// length.
#[test]
#[cfg_attr(miri, ignore = "too many packets for an interpreter")]
fn a_clock_jump_is_followed_within_two_round_trips_and_a_queue_is_not() {
    let map = || {
        let mut map = ClockMap::default();
        map.set_base_one_way(Span::from_millis(20));
        assert_eq!(seconds_right(&mut map, 10, 30, 100.0, 0.0), [true; 30]);
        map
    };
    // The sender's machine was paused for 3 s; in the second case, the receiver's.
    assert_eq!(seconds_right(&mut map(), 40, 5, 97.0, 0.0), [true; 5]);
    assert_eq!(seconds_right(&mut map(), 40, 5, 103.0, 0.0), [true; 5]);
    // A little below and a little above the threshold for a jump. Below it, slewing corrects the
    // map.
    let mut slow = seconds_right(&mut map(), 40, 30, 99.95, 0.0);
    assert_eq!((slow[0], slow[29]), (false, true));
    slow = seconds_right(&mut map(), 40, 2, 99.85, 0.0);
    assert_eq!(slow, [true; 2]);
    // A queue of 3 s delays the round trip by as much, and does not affect later packets without
    // it.
    let mut queued = map();
    assert_eq!(seconds_right(&mut queued, 40, 5, 100.0, 3.0), [true; 5]);
    assert_eq!(seconds_right(&mut queued, 45, 5, 100.0, 0.0), [true; 5]);
    // After a pause, all packets are queued. The queueing delay does not count as a part of the
    // jump.
    let mut both = map();
    let right = seconds_right(&mut both, 40, 1, 97.0, 0.3);
    assert_eq!(right, [true]);
}
