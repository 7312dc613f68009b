//! The charts of a recording.

use super::super::clip::Kind;
use super::super::metrics::Metrics;
use super::super::plot::{Axis, Chart, Colour, Layer, Mark, Rule};
use super::super::recording::{Fate, Flow, Recording, Sample, Sent};
use super::super::summary::{decimals, percent};
use crate::numbers::thousands;

/// The averaging interval of a rate.
const RATE_WINDOW_S: f64 = 1.0;
/// The width of the histogram's bars, in milliseconds.
const BAR_MS: f64 = 20.0;
/// The size of a full packet on the wire.
const PACKET_BITS: f64 = 1_480.0 * 8.0;
/// Axes end this far above the largest value.
const HEADROOM: f64 = 1.05;
const VIDEO: Colour = Colour::Series(0);
const GREY: Colour = Colour::Series(4);

/// All charts, in the order of the page.
pub(crate) fn all(recording: &Recording, metrics: &Metrics) -> Vec<Chart> {
    let mut charts = vec![
        timeline(recording, metrics),
        rates(recording),
        queue(recording),
        decision(recording),
    ];
    charts.extend(tokens(recording));
    charts.extend([target(recording), slack(recording)]);
    charts
}

fn colour(kind: Kind) -> Colour {
    Colour::Series(match kind {
        Kind::Intra => 0,
        Kind::Predicted => 1,
        Kind::Bidirectional => 2,
        Kind::Audio => 3,
        Kind::Other => 4,
    })
}

fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Intra => "I pictures",
        Kind::Predicted => "P pictures",
        Kind::Bidirectional => "B pictures",
        Kind::Audio => "audio",
        Kind::Other => "tables",
    }
}

fn slack_ms(section: &Sent) -> Option<f64> {
    match section.fate {
        Fate::Complete { slack_ms } => Some(slack_ms),
        Fate::Gap(_) | Fate::Unreported => None,
    }
}

fn time_axis(name: &'static str, recording: &Recording) -> Axis {
    Axis {
        name,
        least: 0.0,
        most: recording.length_s.max(0.1),
    }
}

/// A chart of a value over the time of the run, with an axis from zero.
fn over_run(
    recording: &Recording,
    id: &'static str,
    (title, description): (&str, String),
    name: &'static str,
    layers: Vec<Layer>,
    rules: Vec<Rule>,
) -> Chart {
    Chart {
        id,
        title: title.into(),
        description,
        x: time_axis("time (s)", recording),
        y: Axis {
            name,
            least: 0.0,
            most: top(&layers, &rules),
        },
        layers,
        rules,
    }
}

/// The end of an axis that shows all layers and rules.
fn top(layers: &[Layer], rules: &[Rule]) -> f64 {
    let values = layers.iter().flat_map(|layer| layer.mark.points());
    let all = values
        .map(|(_, y)| y)
        .chain(rules.iter().map(|rule| rule.y));
    all.fold(0.0, f64::max) * HEADROOM
}

/// The completion of each section, relative to its deadline.
pub(crate) fn timeline(recording: &Recording, metrics: &Metrics) -> Chart {
    let latency_ms = recording.setup.latency.as_secs_f64() * 1e3;
    let slacks = || recording.sections.iter().filter_map(slack_ms);
    let most = slacks().fold(latency_ms, f64::max);
    let floor = slacks().fold(-latency_ms / 10.0, |least, slack| least.min(slack * 1.1));
    // A gap has no time of completion: gaps are drawn below everything else, one row per kind.
    let row = (most - floor) * 0.05;
    let of_kind = |kind| recording.sections.iter().filter(move |s| s.kind == kind);
    let mut layers = Vec::new();
    // The numerous small dots are drawn first, behind the others.
    for (kind, radius) in [
        (Kind::Audio, 1),
        (Kind::Other, 1),
        (Kind::Bidirectional, 2),
        (Kind::Predicted, 2),
        (Kind::Intra, 3),
    ] {
        let points = of_kind(kind).filter_map(|s| Some((s.at_s, slack_ms(s)?)));
        let mark = Mark::Dots(points.collect(), radius);
        layers.push(Layer::new(plural(kind), colour(kind), mark));
    }
    let rows: Vec<_> = metrics
        .kinds
        .iter()
        .filter(|count| count.gaps > 0)
        .collect();
    for (place, count) in rows.iter().enumerate() {
        let y = floor - row * (place as f64 + 0.5);
        let gaps = of_kind(count.kind).filter(|section| matches!(section.fate, Fate::Gap(_)));
        layers.push(Layer::new(
            format!(
                "{}: {} never complete",
                count.kind.name(),
                thousands(count.gaps)
            ),
            colour(count.kind),
            Mark::Crosses(gaps.map(|section| (section.at_s, y)).collect()),
        ));
    }
    let (sent, on_time, _) = metrics.total(|_| true);
    let late: u64 = metrics.kinds.iter().map(|count| count.late).sum();
    let gaps: u64 = metrics.gaps.values().sum();
    let mut title = "How long before its deadline each section was complete".to_owned();
    if !recording.exactness.overload.is_empty() {
        // The chart is also used alone, without the report's warning.
        title += " (not exact: the machine was too busy)";
    }
    Chart {
        id: "timeline",
        title,
        description: format!(
            "Of {} sections, {} were complete on time, {} late, and {} never. Each dot is a section. Dots above \
             the dashed line were complete before their deadline, dots below it too late. Crosses are sections \
             that were never complete.",
            thousands(sent),
            thousands(on_time),
            thousands(late),
            thousands(gaps)
        ),
        x: time_axis("source time (s)", recording),
        y: Axis {
            name: "time left at completion (ms)",
            least: floor - row * rows.len() as f64,
            most: most * HEADROOM,
        },
        layers,
        rules: vec![Rule {
            y: 0.0,
            name: "deadline",
        }],
    }
}

fn rate_points(flow: &Flow, length_s: f64) -> Vec<(f64, f64)> {
    flow.samples
        .iter()
        .filter(|sample| (0.0..=length_s).contains(&sample.at_s))
        .filter_map(|sample| {
            let from = (sample.at_s - RATE_WINDOW_S).max(0.0);
            Some((sample.at_s, flow.rate_mbps(from, sample.at_s)?))
        })
        .collect()
}

/// The rate of each flow over time.
pub(crate) fn rates(recording: &Recording) -> Chart {
    let layer = |(place, flow): (usize, &Flow)| {
        let points = rate_points(flow, recording.length_s);
        // The video has a thick line and its own colour; the others share four colours.
        match place {
            0 => Layer::new(&flow.name, VIDEO, Mark::Curve(points, 2)),
            other => {
                let colour = Colour::Series(1 + ((other - 1) % 4) as u8);
                Layer::new(&flow.name, colour, Mark::Curve(points, 1))
            }
        }
    };
    let share = recording.setup.equal_share().as_mbps_f64();
    let description = format!(
        "Rates of {} flows on the wire, each averaged over one second. An equal share is {} Mb/s.",
        recording.flows.len(),
        decimals(share)
    );
    over_run(
        recording,
        "rates",
        ("Rate of arrival of each flow", description),
        "rate (Mb/s)",
        recording.flows.iter().enumerate().map(layer).collect(),
        vec![Rule {
            y: share,
            name: "equal share",
        }],
    )
}

/// The queueing delay at the bottleneck over time.
pub(crate) fn queue(recording: &Recording) -> Chart {
    let delays: Vec<(f64, f64)> = recording
        .queue
        .iter()
        .map(|point| (point.at_s, point.longest_ms))
        .collect();
    let longest = delays.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    let full_ms =
        f64::from(recording.setup.queue) * PACKET_BITS / recording.setup.rate.as_mbps_f64() / 1e3;
    let dropped: u64 = recording.queue.iter().map(|point| point.dropped).sum();
    let drops = recording.queue.iter().filter(|point| point.dropped > 0);
    let high = longest.max(full_ms) * 1.02;
    let layers = vec![
        Layer::new(
            "longest delay within 50 ms",
            Colour::Series(1),
            Mark::Curve(delays, 2),
        ),
        Layer::new(
            format!("packets dropped ({})", thousands(dropped)),
            Colour::Bad,
            Mark::Crosses(drops.map(|point| (point.at_s, high)).collect()),
        ),
    ];
    let description = format!(
        "The longest queueing delay was {longest:.0} ms. The queue was full for {} packets, marked at the top.",
        thousands(dropped)
    );
    over_run(
        recording,
        "queue",
        ("Queueing delay at the bottleneck", description),
        "queueing delay (ms)",
        layers,
        vec![Rule {
            y: full_ms,
            name: "full queue of full-sized packets",
        }],
    )
}

/// The window of the video's controller, or its rate if it has no window.
pub(crate) fn decision(recording: &Recording) -> Chart {
    let samples = video(recording);
    let controller = &recording.setup.controller;
    let ends = samples.last().zip(samples.first());
    let losses = match ends.map_or(0, |(last, first)| last.loss_events - first.loss_events) {
        1 => "one loss episode".to_owned(),
        episodes => format!("{} loss episodes", thousands(episodes)),
    };
    if samples.iter().any(|sample| sample.cwnd_bytes.is_some()) {
        let of_window = |sample: &Sample| sample.cwnd_bytes.map(|bytes| bytes as f64);
        let ssthresh = kilobytes(&samples, |sample| {
            sample.ssthresh_bytes.map(|bytes| bytes as f64)
        });
        let window = kilobytes(&samples, of_window);
        let after_losses = after_losses(&window, &samples);
        let layers = vec![
            in_flight(&samples),
            Layer::new(
                "slow-start threshold",
                Colour::Series(3),
                Mark::Curve(ssthresh, 1),
            ),
            Layer::new("window", VIDEO, Mark::Curve(window, 2)),
            after_losses,
        ];
        let title = "The video\u{2019}s congestion window";
        let description =
            format!("The congestion window of {controller}, and the bytes in flight; {losses}.");
        return over_run(
            recording,
            "decision",
            (title, description),
            "kB",
            layers,
            Vec::new(),
        );
    }
    let rate = over_time(&samples, |sample| sample.pacing_mbps);
    let peak = over_time(&samples, |sample| sample.peak_mbps);
    let after_losses = after_losses(&rate, &samples);
    let share = recording.setup.equal_share().as_mbps_f64();
    let has_peak = samples.iter().any(|sample| sample.peak_mbps.is_some());
    let description = format!(
        "The rate of {controller}{}; {losses}. An equal share is {} Mb/s.",
        if has_peak {
            ", an average, and the maximum rate of a burst"
        } else {
            ""
        },
        decimals(share)
    );
    over_run(
        recording,
        "decision",
        ("The rate of the video\u{2019}s controller", description),
        "rate (Mb/s)",
        vec![
            Layer::new("burst", GREY, Mark::Curve(peak, 1)),
            Layer::new("rate", VIDEO, Mark::Curve(rate, 2)),
            after_losses,
        ],
        vec![Rule {
            y: share,
            name: "equal share",
        }],
    )
}

/// The tokens of a controller whose rate is an average, if it has a bucket.
pub(crate) fn tokens(recording: &Recording) -> Option<Chart> {
    let samples = video(recording);
    let tokens = kilobytes(&samples, |sample| {
        sample.tokens_bytes.map(|bytes| bytes as f64)
    });
    let values = || tokens.iter().map(|(_, y)| *y).filter(|y| y.is_finite());
    let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    let description = format!(
        "The token bucket saves unused rate and spends it on large pictures. It held {least:.0} to {most:.0} kB. \
         Below zero, the controller has borrowed; it borrows only for important pictures."
    );
    let layers = vec![
        in_flight(&samples),
        Layer::new("tokens", VIDEO, Mark::Curve(tokens, 2)),
    ];
    // Without borrowing, the line would coincide with the axis.
    let rules = (least < 0.0).then_some(Rule {
        y: 0.0,
        name: "no tokens",
    });
    let title = "Tokens of the controller for bursts";
    let rules = rules.into_iter().collect();
    let mut chart = over_run(
        recording,
        "tokens",
        (title, description),
        "kB",
        layers,
        rules,
    );
    chart.y.least = least.min(0.0) * HEADROOM;
    Some(chart)
}

/// A value of the samples over time, with holes at samples without it.
fn over_time(samples: &[Sample], of: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
    let point = |sample: &Sample| (sample.at_s, of(sample).unwrap_or(f64::NAN));
    samples.iter().map(point).collect()
}

fn kilobytes(samples: &[Sample], bytes: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
    over_time(samples, |sample| Some(bytes(sample)? / 1e3))
}

fn in_flight(samples: &[Sample]) -> Layer {
    let points = kilobytes(samples, |sample| Some(sample.in_flight_bytes as f64));
    Layer::new("in flight", GREY, Mark::Curve(points, 1))
}

/// Crosses on a line through the samples, one for each report of losses.
fn after_losses(line: &[(f64, f64)], samples: &[Sample]) -> Layer {
    let pairs = samples.iter().zip(samples.iter().skip(1));
    let had_losses = pairs.map(|(before, after)| after.loss_events > before.loss_events);
    let after = line.iter().skip(1).zip(had_losses);
    let crosses = after.filter_map(|(point, had_losses)| had_losses.then_some(*point));
    let crosses = crosses.filter(|(_, y)| y.is_finite()).collect();
    Layer::new("after losses", Colour::Bad, Mark::Crosses(crosses))
}

/// The target bit rate for an encoder.
pub(crate) fn target(recording: &Recording) -> Chart {
    let targets = over_time(&video(recording), |sample| sample.target_mbps);
    let flow = recording.flows.first();
    let arrived = flow.map(|flow| rate_points(flow, recording.length_s));
    let demand = recording.setup.demand.as_mbps_f64();
    let description = format!(
        "The target bit rate, and the {} Mb/s that the video needs on the wire.",
        decimals(demand)
    );
    over_run(
        recording,
        "target",
        (
            "Target bit rate of the video\u{2019}s connection for an encoder",
            description,
        ),
        "rate (Mb/s)",
        vec![
            Layer::new("arrived", GREY, Mark::Curve(arrived.unwrap_or_default(), 1)),
            Layer::new("target", VIDEO, Mark::Curve(targets, 2)),
        ],
        vec![Rule {
            y: demand,
            name: "needed by the video",
        }],
    )
}

fn video(recording: &Recording) -> Vec<Sample> {
    let samples = recording.flows.first().map(|flow| flow.samples.as_slice());
    samples
        .unwrap_or_default()
        .iter()
        .filter(|sample| (0.0..=recording.length_s).contains(&sample.at_s))
        .copied()
        .collect()
}

/// The distribution of the time left at completion.
pub(crate) fn slack(recording: &Recording) -> Chart {
    let slacks = || recording.sections.iter().filter_map(slack_ms);
    let bar = |slack_ms: f64| (slack_ms / BAR_MS).floor();
    let least = slacks().map(bar).fold(0.0, f64::min);
    let most = slacks().map(bar).fold(1.0, f64::max) + 1.0;
    let mut heights = vec![0_u64; (most - least) as usize];
    let mut layers = Vec::new();
    for kind in Kind::ALL {
        let mut counts = vec![0_u64; heights.len()];
        let of_kind = recording.sections.iter().filter(|s| s.kind == kind);
        for slack_ms in of_kind.filter_map(slack_ms) {
            if let Some(count) = counts.get_mut((bar(slack_ms) - least) as usize) {
                *count += 1;
            }
        }
        let mut rectangles = Vec::new();
        for (place, (count, height)) in counts.iter().zip(&mut heights).enumerate() {
            if *count == 0 {
                continue;
            }
            let from = (least + place as f64) * BAR_MS;
            // A gap separates the bars.
            rectangles.push([
                (from + BAR_MS * 0.06, *height as f64),
                (from + BAR_MS * 0.94, (*height + count) as f64),
            ]);
            *height += count;
        }
        layers.push(Layer::new(
            plural(kind),
            colour(kind),
            Mark::Bars(rectangles),
        ));
    }
    let complete = slacks().count() as u64;
    let on_time = slacks().filter(|slack_ms| *slack_ms >= 0.0).count() as u64;
    Chart {
        id: "slack",
        title: "Time left at completion".into(),
        description: format!(
            "Of the {} complete sections, {} were complete with time left.",
            thousands(complete),
            percent(super::super::metrics::share(on_time, complete))
        ),
        x: Axis {
            name: "time left at completion (ms)",
            least: least * BAR_MS,
            most: most * BAR_MS,
        },
        y: Axis {
            name: "sections",
            least: 0.0,
            most: top(&layers, &[]),
        },
        layers,
        rules: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::metrics::tests::recording;

    #[test]
    fn every_section_is_in_the_timeline_once() {
        let recording = recording();
        let chart = timeline(&recording, &Metrics::of(&recording));
        let dots: usize = chart
            .layers
            .iter()
            .map(|layer| match &layer.mark {
                mark @ (Mark::Dots(..) | Mark::Crosses(_)) => mark.points().count(),
                _ => 0,
            })
            .sum();
        assert_eq!(dots, recording.sections.len());
        let cross = chart.layers.iter().find_map(|layer| match &layer.mark {
            Mark::Crosses(points) => points.first().copied(),
            _ => None,
        });
        // Below the late ones, and within the picture.
        assert!(cross.is_some_and(|(at, y)| at == 3.0 && y < -5.0 && y > chart.y.least));
        assert!(
            chart
                .description
                .starts_with("Of 5 sections, 3 were complete on time, 1 late, and 1 never.")
        );
    }

    #[test]
    fn rates_are_those_of_the_last_second() {
        let chart = rates(&recording());
        let Some(Mark::Curve(points, 1)) = chart.layers.get(1).map(|layer| &layer.mark) else {
            panic!("{chart:?}");
        };
        assert!(points.len() > 90);
        assert!(
            points.iter().all(|(_, rate)| (rate - 4.0).abs() < 1e-3),
            "{points:?}"
        );
        assert_eq!(chart.rules.first().map(|rule| rule.y), Some(3.0));
        assert!((4.1..4.3).contains(&chart.y.most), "{}", chart.y.most);
    }

    #[test]
    fn a_full_queue_waits_for_its_bits() {
        let chart = queue(&recording());
        // 60 packets of 1,480 bytes at 9 Mb/s.
        let full = chart.rules.first().map_or(0.0, |rule| rule.y);
        assert!((full - 78.93).abs() < 0.01, "{full}");
        assert!(
            chart
                .description
                .contains("79 ms. The queue was full for 3 packets")
        );
    }

    fn named<'a>(chart: &'a Chart, name: &str) -> &'a Mark {
        let layer = chart.layers.iter().find(|layer| layer.name == name);
        &layer.unwrap_or_else(|| panic!("{chart:?}")).mark
    }

    #[test]
    fn losses_are_marked_where_they_were() {
        let recording = recording();
        let chart = decision(&recording);
        assert_eq!(
            named(&chart, "after losses"),
            &Mark::Crosses(vec![(5.1, 20.0)])
        );
        assert!(chart.title.ends_with("congestion window"));
        assert_eq!(chart.y.name, "kB");
        assert_eq!(tokens(&recording), None, "it has no bucket");
        let svg = chart.svg();
        assert!(!svg.contains("slow-start"), "an empty layer");
    }

    /// The recording with a controller that has no window, but a rate that rises from 2 Mb/s by 0.1
    /// in a second.
    fn without_a_window() -> Recording {
        let mut recording = recording();
        for sample in &mut recording.flows[0].samples {
            sample.cwnd_bytes = None;
            sample.pacing_mbps = Some(2.0 + sample.at_s / 10.0);
            sample.peak_mbps = Some(6.0);
            sample.tokens_bytes = Some(if sample.at_s < 5.0 { 30_000 } else { -12_000 });
        }
        recording
    }

    #[test]
    fn a_controller_without_a_window_is_drawn_by_its_rate() {
        let recording = without_a_window();
        let chart = decision(&recording);
        let Mark::Curve(rate, 2) = named(&chart, "rate") else {
            panic!("{chart:?}");
        };
        assert_eq!(rate.len(), 101);
        assert_eq!((rate[0], rate[100]), ((0.0, 2.0), (10.0, 3.0)));
        let Mark::Curve(peak, 1) = named(&chart, "burst") else {
            panic!("{chart:?}");
        };
        assert!(peak.len() == 101 && peak.iter().all(|(_, peak)| *peak == 6.0));
        let Mark::Crosses(losses) = named(&chart, "after losses") else {
            panic!("{chart:?}");
        };
        let [(at, on)] = losses.as_slice() else {
            panic!("{losses:?}");
        };
        assert!((at - 5.1).abs() < 1e-9 && (on - 2.51).abs() < 1e-9);
        assert!(chart.y.least == 0.0 && (6.1..6.5).contains(&chart.y.most));
        assert_eq!(chart.rules.first().map(|rule| rule.y), Some(3.0));
        assert!(chart.description.contains("one loss episode."));
    }

    #[test]
    fn tokens_can_be_borrowed() {
        let recording = without_a_window();
        let chart = tokens(&recording).unwrap_or_else(|| panic!("it has a bucket"));
        let Mark::Curve(left, 2) = named(&chart, "tokens") else {
            panic!("{chart:?}");
        };
        assert_eq!((left[0], left[100]), ((0.0, 30.0), (10.0, -12.0)));
        assert!(chart.y.least <= -12.0 && chart.y.most >= 30.0);
        assert_eq!(chart.rules.len(), 1);
        let mut never = recording.clone();
        never.length_s = 4.0;
        let chart = tokens(&never).unwrap_or_else(|| panic!("it has a bucket"));
        assert_eq!((chart.y.least, chart.rules.len()), (0.0, 0));
        let ids: Vec<&str> = all(&recording, &Metrics::of(&recording))
            .iter()
            .map(|chart| chart.id)
            .collect();
        let expected = [
            "timeline", "rates", "queue", "decision", "tokens", "target", "slack",
        ];
        assert_eq!(ids, expected);
    }

    #[test]
    fn the_histogram_counts_all_complete_sections() {
        let chart = slack(&recording());
        let count: f64 = chart
            .layers
            .iter()
            .map(|layer| match &layer.mark {
                Mark::Bars(bars) => bars.iter().map(|[(_, low), (_, high)]| high - low).sum(),
                _ => 0.0,
            })
            .sum();
        assert_eq!(count, 4.0);
        assert_eq!((chart.x.least, chart.x.most), (-20.0, 360.0));
    }

    #[test]
    fn an_empty_recording_can_be_drawn() {
        let mut recording = recording();
        recording.sections.clear();
        recording.flows.clear();
        recording.queue.clear();
        recording.length_s = 0.0;
        let metrics = Metrics::of(&recording);
        for chart in all(&recording, &metrics) {
            assert!(!chart.svg().contains("NaN"), "{}", chart.id);
        }
    }
}
