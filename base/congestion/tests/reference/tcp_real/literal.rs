//! Both halves against a literal reading of the paper, over drawn arrivals and events.

use comity_congestion::controllers::tcp_real::{
    Opening, TcpReal, TcpRealConfig, TimeoutReduction, WaveMeter, Weights,
};
use comity_congestion::{Controller, Event, Meter, Report, Timeout, TimeoutRepair};
use comity_units::{Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{MSS, arrival, by_figure, feedback, tag};
use crate::reference::{ack, loss, timeout};

/// What figure 1 says, written as the figure is.
fn figure_1(
    current_wave_level: f64,
    wave_level_threshold: f64,
    current_rate: f64,
    previous_rate: f64,
) -> f64 {
    let next_wave_level = if previous_rate > current_rate {
        if current_wave_level > wave_level_threshold {
            (0.618 + 0.382 * (current_rate / previous_rate)) * current_wave_level
        } else {
            (0.382 + 0.618 * (current_rate / previous_rate)) * current_wave_level
        }
    } else if current_wave_level > wave_level_threshold {
        (0.382 + 0.618 * (current_rate / previous_rate)) * current_wave_level
    } else {
        (0.5 + 0.5 * (current_rate / previous_rate)) * current_wave_level
    };
    next_wave_level.clamp(1.0, 24.0)
}

/// What the text says: "expand aggressively (conservatively) when the window size is relatively
/// small (large)", and decrease "aggressively (conservatively) when the window size is large
/// (small)", with the weights that the figure has for either.
fn text(
    current_wave_level: f64,
    wave_level_threshold: f64,
    current_rate: f64,
    previous_rate: f64,
) -> f64 {
    let is_small = current_wave_level <= wave_level_threshold;
    let adjust_weight = match (previous_rate > current_rate, is_small) {
        (true, true) => 0.382,
        (true, false) => 0.618,
        (false, true) => 0.618,
        (false, false) => 0.5,
    };
    let rate_ratio = current_rate / previous_rate;
    let next_wave_level = current_wave_level * (1.0 - adjust_weight + adjust_weight * rate_ratio);
    next_wave_level.clamp(1.0, 24.0)
}

/// The level and the threshold after a list of arrivals (time, wave, segments, position), found by
/// reading the whole list from its beginning. The current level is that of the wave, or the last
/// decision. If it `doubles`, "the congestion window effectively grows exponentially until a
/// threshold is reached", or the timer expires.
fn replay(
    arrivals: &[(u64, u16, u16, u16)],
    mut threshold: f64,
    has_level_of_wave: bool,
    mut doubles: bool,
    rule: fn(f64, f64, f64, f64) -> f64,
) -> (Option<f64>, f64) {
    let (mut level, mut previous_rate) = (None::<f64>, None::<f64>);
    let (mut at, mut newest) = (0, 0);
    while let Some(&(t_f, wave, segments, position)) = arrivals.get(at) {
        at += 1;
        if wave <= newest {
            continue;
        }
        newest = wave;
        if position == segments {
            continue;
        }
        let expires = previous_rate.map(|rate| t_f as f64 + 2.0 * f64::from(segments) / rate);
        // The arrival that ends the wave.
        let rest = &arrivals[at..];
        let end = rest.iter().position(|&(t, of, _, position)| {
            let is_behind_timer = expires.is_some_and(|expires| t as f64 > expires);
            let is_last = of == wave && position == segments;
            is_behind_timer || is_last || of > wave + u16::from(previous_rate.is_some())
        });
        let Some(end) = end else { break };
        let (t_r, of, _, last) = rest[end];
        let is_timeout = expires.is_some_and(|expires| t_r as f64 > expires);
        // Of these something arrived while another wave was collected.
        newest = rest[..end]
            .iter()
            .map(|arrival| arrival.1)
            .fold(newest, u16::max);
        at += end;
        if !is_timeout && previous_rate.is_none() && of > wave {
            continue;
        }
        let of_wave = f64::from(segments) / 2.0;
        let current_level = match level {
            Some(level) if !has_level_of_wave => level,
            _ => of_wave,
        };
        if is_timeout {
            threshold = current_level / 2.0;
            doubles = false;
        }
        let rate = f64::from(segments) / (t_r - t_f) as f64;
        level = Some(match previous_rate {
            _ if doubles && 2.0 * of_wave < threshold => current_level.max(2.0 * of_wave),
            // Below one level a threshold is that level.
            _ if doubles => current_level.max(threshold).max(1.0),
            Some(previous) => rule(current_level, threshold, rate, previous),
            None => current_level,
        });
        doubles &= level < Some(threshold);
        previous_rate = Some(rate);
        at += usize::from(of == wave && last <= segments);
    }
    (level, threshold)
}

prop_compose! {
    /// Waves with any times between arrivals, and any segments lost.
    fn transfers()(
        waves in vec((1u16..=24, 0u64..200, vec((1u64..50, any::<bool>(), 0u8..4), 48)), 1..12),
    ) -> Vec<(u64, u16, u16, u16)> {
        let mut arrivals = Vec::new();
        let (mut now, mut number) = (0, 0);
        for (level, gap, segments) in waves {
            number += 1;
            now += gap * 1_000_003;
            for (position, (apart, odd, fate)) in (1..=2 * level).zip(segments) {
                now += apart * 997_001 + u64::from(odd);
                if fate > 0 {
                    arrivals.push((now, number, 2 * level, position));
                }
            }
        }
        arrivals
    }
}

/// The reports to a sender, and its reactions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// The option of an acknowledgement.
    Report(u16),
    Acknowledged,
    FastRetransmit,
    Recovered,
    /// With the bit of section 2.2: whether a duplicate acknowledgement was received.
    Timeout(bool),
    /// The source has one more segment and then none.
    RunsDry,
    Sends,
}

use Step::{
    Acknowledged, FastRetransmit, Recovered, Report as Reported, RunsDry, Sends, Timeout as Expires,
};

/// The window in segments after these events: "for wave level i, the corresponding congestion
/// window size is 2 · i · max_segment_size", and "two segments only if the bit is not set" by a
/// timeout, or "always". Nothing else moves it.
fn window_after(events: &[Step], (initial, most): (u16, u16), always: bool) -> u16 {
    let highest = (most / 2).clamp(1, 24);
    let last = events.iter().rev().find_map(|event| match event {
        Reported(level) => Some(2 * level.clamp(&1, &highest)),
        Expires(bit) if always || !bit => Some(2),
        _ => None,
    });
    last.unwrap_or(2 * (initial / 2).clamp(1, highest))
        .min(most)
}

/// The number of the last segment's wave, the wave's length and the segment's position in it,
/// found by cutting everything that was sent into waves.
fn tag_of_last(
    events: &[Step],
    limits: (u16, u16),
    has_fixed_waves: bool,
    always: bool,
) -> Option<(u16, u16, u16)> {
    let sends: Vec<usize> = (0..events.len())
        .filter(|at| events[*at] == Sends)
        .collect();
    // Whether such an event comes after the segment sent before and before this one.
    let follows = |at: usize, event: Step| {
        let before = sends.iter().rev().find(|sent| **sent < at);
        events[before.map_or(0, |sent| sent + 1)..at].contains(&event)
    };
    let mut wave: Vec<usize> = Vec::new();
    let (mut number, mut length) = (0, 0);
    for &at in &sends {
        let is_ended = wave.last().is_some_and(|last| follows(*last, RunsDry));
        let is_reduced = follows(at, Expires(false)) || always && follows(at, Expires(true));
        if wave.len() == usize::from(length) || is_ended || is_reduced {
            wave.clear();
            number += 1;
        }
        wave.push(at);
        let windows = wave
            .iter()
            .map(|at| window_after(&events[..*at], limits, always));
        length = if has_fixed_waves {
            windows.take(1).max()?
        } else {
            windows.max()?
        };
    }
    let position = wave.len() as u16;
    let is_last = follows(*wave.last()?, RunsDry);
    Some((number, if is_last { position } else { length }, position))
}

fn events() -> impl Strategy<Value = Vec<Step>> {
    let event = prop_oneof![
        20 => Just(Sends),
        3 => (0u16..30).prop_map(Reported),
        2 => Just(Acknowledged),
        1 => Just(FastRetransmit),
        1 => Just(Recovered),
        1 => any::<bool>().prop_map(Expires),
        1 => Just(RunsDry),
    ];
    vec(event, 1..250)
}

proptest! {
    #[test]
    fn the_sender_follows_the_paper(
        events in events(),
        initial in 0u16..12,
        most in 2u16..60,
        has_fixed_waves: bool,
        always: bool,
        first_alone: bool,
    ) {
        let timeout_reduction = match always {
            true => TimeoutReduction::Always,
            false => TimeoutReduction::WithoutDuplicates,
        };
        let timeout_repair = match first_alone {
            true => TimeoutRepair::FirstSegment,
            false => TimeoutRepair::GoBackN,
        };
        let mut sender = TcpReal::new(TcpRealConfig {
            initial_window: MSS * u64::from(initial),
            max_window: MSS * u64::from(most),
            has_fixed_waves,
            timeout_reduction,
            timeout_repair,
            ..TcpRealConfig::new(MSS)
        });
        let now = Time::ZERO;
        for (count, event) in events.iter().enumerate() {
            let window = sender.decision().window;
            let (so_far, limits) = (&events[..=count], (initial, most));
            match *event {
                Reported(level) => feedback(&mut sender, level),
                Acknowledged => sender.on_event(Event::Ack(&ack(now, MSS, Span::from_millis(10), window))),
                FastRetransmit => sender.on_event(Event::Loss(&loss(now, window, window))),
                Recovered => sender.on_event(Event::Recovered),
                Expires(duplicate_seen) => {
                    let timeout = Timeout {
                        duplicate_seen,
                        ..timeout(now, window, window, 1)
                    };
                    sender.on_event(Event::Timeout(&timeout));
                    let alone = first_alone && duplicate_seen && !always;
                    let repair = sender.decision().timeout_repair;
                    prop_assert_eq!(repair == TimeoutRepair::FirstSegment, alone);
                }
                RunsDry => sender.on_event(Event::AppLimited),
                Sends => {
                    let expected = tag_of_last(so_far, limits, has_fixed_waves, always);
                    prop_assert_eq!(Some(tag(&mut sender)), expected, "{:?}", so_far);
                }
            }
            let expected = MSS * u64::from(window_after(so_far, limits, always));
            prop_assert_eq!(sender.decision().window, expected, "{:?}", so_far);
        }
    }

    #[test]
    fn the_meter_follows_the_paper(
        arrivals in transfers(),
        threshold in 0.0f64..24.0,
        before in any::<u16>(),
        has_level_of_wave: bool,
        doubles: bool,
        is_text: bool,
    ) {
        let opening = if doubles { Opening::SlowStart } else { Opening::Figure };
        let weights = if is_text { Weights::Text } else { Weights::Figure };
        let rule = if is_text { text } else { figure_1 };
        let config = TcpRealConfig { has_level_of_wave, opening, weights, ..by_figure(threshold) };
        let mut meter = WaveMeter::new(config);
        let first_threshold = meter.threshold();
        for (count, &(at, wave, segments, position)) in arrivals.iter().enumerate() {
            // The numbers wrap at the meter, and do not in the reading of the list.
            meter.on_arrival(&arrival(at, wave.wrapping_add(before), segments, position));
            let (level, threshold) =
                replay(&arrivals[..=count], first_threshold, has_level_of_wave, doubles, rule);
            prop_assert_eq!(meter.level().is_some(), level.is_some());
            let (found, expected) = (meter.level().unwrap_or(0.0), level.unwrap_or(0.0));
            prop_assert!((found - expected).abs() < 1e-6, "{} and {} after {}", found, expected, count);
            prop_assert!((meter.threshold() - threshold).abs() < 1e-6);
        }
    }

    /// Whatever a peer says, levels are levels, and a report changes only with an arrival.
    #[test]
    fn levels_stay_in_range(
        tags in vec((0u64..1_000_000_000_000, any::<[u16; 3]>()), 1..200),
        max_level in 1u16..100,
        limit in 1u64..300,
        opening in prop_oneof![
            Just(Opening::SlowStart),
            Just(Opening::Sender),
            Just(Opening::Figure),
            Just(Opening::Jump),
        ],
    ) {
        let config = TcpRealConfig { max_level, opening, max_window: MSS * limit, ..TcpRealConfig::new(MSS) };
        let (mut meter, mut sender) = (WaveMeter::new(config), TcpReal::new(config));
        let mut now = 0;
        for (wait, [wave, segments, position]) in tags {
            now += wait;
            meter.on_arrival(&arrival(now, wave % 16, segments, position));
            let report = meter.report(Time::from_nanos(now));
            prop_assert_eq!(report, meter.report(Time::from_nanos(now + 1)));
            if let Report::Wave { level } = report {
                prop_assert!((1..=max_level).contains(&level));
                feedback(&mut sender, level);
                prop_assert!(sender.decision().window <= MSS * limit);
                let (_, segments, position) = tag(&mut sender);
                prop_assert!(1 <= position && position <= segments);
            }
        }
    }
}
