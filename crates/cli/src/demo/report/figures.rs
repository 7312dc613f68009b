//! The charts of a recording.

use super::super::account::Account;
use super::super::clip::Kind;
use super::super::plot::scale::end;
use super::super::plot::{Axis, Chart, Colour, Layer, Mark, Rule};
use super::super::recording::{Fate, Flow, Recording, Sample};
use super::super::telling::{decimals, grouped, percent};

/// Over how long a rate is measured.
const RATE_WINDOW_S: f64 = 1.0;
/// How wide the bars of the histogram are, in milliseconds.
const BAR_MS: f64 = 20.0;
/// A full packet on the wire.
const PACKET_BITS: f64 = 1_480.0 * 8.0;

/// All of them, in the order in which the page has them.
pub(crate) fn all(recording: &Recording, account: &Account) -> Vec<Chart> {
    let mut charts = vec![
        timeline(recording, account),
        rates(recording),
        queue(recording),
        decision(recording),
    ];
    charts.extend(savings(recording));
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

fn time_axis(recording: &Recording) -> Axis {
    Axis {
        name: "time (s)".into(),
        least: 0.0,
        most: recording.length_s.max(0.1),
    }
}

/// How long before or after its deadline each section was complete.
pub(crate) fn timeline(recording: &Recording, account: &Account) -> Chart {
    let latency_ms = recording.setup.latency.as_secs_f64() * 1e3;
    let mut most = latency_ms;
    let mut least = -latency_ms / 10.0;
    for section in &recording.sections {
        if let Fate::Complete { slack_ms } = section.fate {
            most = most.max(slack_ms);
            least = least.min(slack_ms * 1.1);
        }
    }
    // What never was complete has no time: it stands below all that has, one row for each kind.
    let row = (most - least) * 0.05;
    let missing = account.kinds.iter().filter(|count| count.gaps > 0).count();
    let floor = least;
    least -= row * missing as f64;
    let mut layers = Vec::new();
    // The many small ones go to the back.
    for kind in [
        Kind::Audio,
        Kind::Other,
        Kind::Bidirectional,
        Kind::Predicted,
        Kind::Intra,
    ] {
        let of_kind = recording.sections.iter().filter(|s| s.kind == kind);
        let points = of_kind
            .filter_map(|section| match section.fate {
                Fate::Complete { slack_ms } => Some((section.at_s, slack_ms)),
                _ => None,
            })
            .collect();
        let diameter = match kind {
            Kind::Intra => 6.0,
            Kind::Predicted => 4.0,
            Kind::Bidirectional => 3.4,
            Kind::Audio | Kind::Other => 2.6,
        };
        layers.push(Layer {
            name: Some(plural(kind).into()),
            colour: colour(kind),
            mark: Mark::Dots(points, diameter),
        });
    }
    let rows = account.kinds.iter().filter(|count| count.gaps > 0);
    for (place, count) in rows.enumerate() {
        let y = floor - row * (place as f64 + 0.5);
        let of_kind = recording.sections.iter().filter(|s| s.kind == count.kind);
        layers.push(Layer {
            name: Some(format!(
                "{}: {} never whole",
                count.kind.name(),
                grouped(count.gaps)
            )),
            colour: colour(count.kind),
            mark: Mark::Crosses(
                of_kind
                    .filter(|section| matches!(section.fate, Fate::Gap(_)))
                    .map(|section| (section.at_s, y))
                    .collect(),
            ),
        });
    }
    let (sent, on_time, _) = account.total(|_| true);
    let late: u64 = account.kinds.iter().map(|count| count.late).sum();
    let gaps: u64 = account.gaps.values().sum();
    Chart {
        id: "timeline",
        title: if recording.exactness.overload.is_empty() {
            "How long before its deadline each section was complete".into()
        } else {
            // The picture also goes where the report's warning does not.
            "How long before its deadline each section was complete (not exact: the machine was too busy)".into()
        },
        description: format!(
            "Of {} sections {} were complete on time, {} late, and {} never. Each dot is a section: above the dashed \
             line it was complete before its deadline, below it too late. Crosses below are sections that never \
             were complete.",
            grouped(sent),
            grouped(on_time),
            grouped(late),
            grouped(gaps)
        ),
        x: Axis {
            name: "when it came into being (s)".into(),
            ..time_axis(recording)
        },
        y: Axis {
            name: "time left at completion (ms)".into(),
            least,
            most: end(most),
        },
        layers,
        rules: vec![Rule {
            y: 0.0,
            name: "deadline".into(),
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

fn top(layers: &[Layer], rules: &[Rule]) -> f64 {
    let points = layers.iter().flat_map(|layer| match &layer.mark {
        Mark::Crosses(points)
        | Mark::Dots(points, _)
        | Mark::Line(points)
        | Mark::ThinLine(points) => points.iter().map(|(_, y)| *y).collect::<Vec<_>>(),
        Mark::Bars(bars) => bars.iter().map(|[_, (_, y)]| *y).collect(),
    });
    let all = points.chain(rules.iter().map(|rule| rule.y * 1.1));
    end(all.filter(|y| y.is_finite()).fold(0.0, f64::max))
}

/// What arrived of each flow over time.
pub(crate) fn rates(recording: &Recording) -> Chart {
    let layers: Vec<Layer> = recording
        .flows
        .iter()
        .enumerate()
        .map(|(place, flow)| {
            let points = rate_points(flow, recording.length_s);
            Layer {
                name: Some(flow.name.clone()),
                // The video stands out; the others share four colours.
                colour: Colour::Series(match place {
                    0 => 0,
                    other => 1 + ((other - 1) % 4) as u8,
                }),
                mark: if place == 0 {
                    Mark::Line(points)
                } else {
                    Mark::ThinLine(points)
                },
            }
        })
        .collect();
    let share = recording.setup.equal_share().as_mbps_f64();
    let rules = vec![Rule {
        y: share,
        name: "equal share".into(),
    }];
    Chart {
        id: "rates",
        title: "What arrived of each flow".into(),
        description: format!(
            "Rates on the wire over the last second of {} flows; an equal share would be {} Mb/s.",
            recording.flows.len(),
            decimals(share)
        ),
        x: time_axis(recording),
        y: Axis {
            name: "rate (Mb/s)".into(),
            least: 0.0,
            most: top(&layers, &rules),
        },
        layers,
        rules,
    }
}

/// How long packets waited at the bottleneck.
pub(crate) fn queue(recording: &Recording) -> Chart {
    let points: Vec<(f64, f64)> = recording
        .queue
        .iter()
        .map(|point| (point.at_s, point.longest_ms))
        .collect();
    let longest = points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    let full_ms =
        f64::from(recording.setup.queue) * PACKET_BITS / recording.setup.rate.as_mbps_f64() / 1e3;
    let rules = vec![Rule {
        y: full_ms,
        name: "full of full-sized packets".into(),
    }];
    let dropped: u64 = recording.queue.iter().map(|point| point.dropped).sum();
    let mut layers = vec![Layer {
        name: Some("longest wait within 50 ms".into()),
        colour: Colour::Series(1),
        mark: Mark::Line(points),
    }];
    let most = top(&layers, &rules);
    layers.push(Layer {
        name: Some(format!("packets dropped ({})", grouped(dropped))),
        colour: Colour::Bad,
        mark: Mark::Crosses(
            recording
                .queue
                .iter()
                .filter(|point| point.dropped > 0)
                .map(|point| (point.at_s, most * 0.97))
                .collect(),
        ),
    });
    Chart {
        id: "queue",
        title: "How long packets waited at the bottleneck".into(),
        description: format!(
            "The longest wait was {longest:.0} ms; {} packets found the queue full, which are marked at the top.",
            grouped(dropped)
        ),
        x: time_axis(recording),
        y: Axis {
            name: "queueing delay (ms)".into(),
            least: 0.0,
            most,
        },
        layers,
        rules,
    }
}

/// What the video's controller decided: its window, or its rate if it has no window.
pub(crate) fn decision(recording: &Recording) -> Chart {
    let samples = video(recording);
    let has_window = samples.iter().any(|sample| sample.cwnd_bytes.is_some());
    let (layers, what, unit) = if has_window {
        (window(&samples), "window", "kB")
    } else {
        (pacing(&samples), "rate", "rate (Mb/s)")
    };
    let episodes = samples
        .last()
        .zip(samples.first())
        .map_or(0, |(last, first)| last.loss_events - first.loss_events);
    let controller = &recording.setup.controller;
    let losses = match episodes {
        1 => "one loss episode".to_owned(),
        _ => format!("{} loss episodes", grouped(episodes)),
    };
    let (description, rules) = if has_window {
        let description =
            format!("The congestion window of {controller} and what was in flight; {losses}.");
        (description, Vec::new())
    } else {
        let share = recording.setup.equal_share().as_mbps_f64();
        let description = format!(
            "The rate of {controller}{}; {losses}. An equal share would be {} Mb/s.",
            if samples.iter().any(|sample| sample.peak_mbps.is_some()) {
                ", which is an average, and how fast a burst may go"
            } else {
                ""
            },
            decimals(share)
        );
        let rule = Rule {
            y: share,
            name: "equal share".into(),
        };
        (description, vec![rule])
    };
    Chart {
        id: "decision",
        title: format!("What the video\u{2019}s controller decided: its {what}"),
        description,
        x: time_axis(recording),
        y: Axis {
            name: unit.into(),
            least: 0.0,
            most: top(&layers, &rules),
        },
        layers,
        rules,
    }
}

fn window(samples: &[Sample]) -> Vec<Layer> {
    vec![
        Layer {
            name: Some("in flight".into()),
            colour: Colour::Series(4),
            mark: Mark::ThinLine(kilobytes(samples, |sample| {
                Some(sample.in_flight_bytes as f64)
            })),
        },
        Layer {
            name: Some("slow-start threshold".into()),
            colour: Colour::Series(3),
            mark: Mark::ThinLine(kilobytes(samples, |sample| {
                sample.ssthresh_bytes.map(|bytes| bytes as f64)
            })),
        },
        Layer {
            name: Some("window".into()),
            colour: Colour::Series(0),
            mark: Mark::Line(kilobytes(samples, window_of)),
        },
        losses(&kilobytes(samples, window_of), samples),
    ]
}

fn window_of(sample: &Sample) -> Option<f64> {
    sample.cwnd_bytes.map(|bytes| bytes as f64)
}

fn pacing(samples: &[Sample]) -> Vec<Layer> {
    let rate = over_time(samples, |sample| sample.pacing_mbps);
    let peak = over_time(samples, |sample| sample.peak_mbps);
    let losses = losses(&rate, samples);
    vec![
        Layer {
            name: Some("burst".into()),
            colour: Colour::Series(4),
            mark: Mark::ThinLine(peak),
        },
        Layer {
            name: Some("rate".into()),
            colour: Colour::Series(0),
            mark: Mark::Line(rate),
        },
        losses,
    ]
}

/// What a controller whose rate is an average has saved up of it, if it keeps such an account.
pub(crate) fn savings(recording: &Recording) -> Option<Chart> {
    let samples = video(recording);
    let saved = kilobytes(&samples, |sample| {
        sample.saved_bytes.map(|bytes| bytes as f64)
    });
    let ends = saved.iter().filter(|(_, y)| y.is_finite());
    let (least, most) = ends.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), (_, y)| (least.min(*y), most.max(*y)),
    );
    if least > most {
        return None;
    }
    let layers = vec![
        Layer {
            name: Some("in flight".into()),
            colour: Colour::Series(4),
            mark: Mark::ThinLine(kilobytes(&samples, |sample| {
                Some(sample.in_flight_bytes as f64)
            })),
        },
        Layer {
            name: Some("saved".into()),
            colour: Colour::Series(0),
            mark: Mark::Line(saved),
        },
    ];
    let rules = Some(Rule {
        y: 0.0,
        name: "nothing saved".into(),
    });
    Some(Chart {
        id: "savings",
        title: "What the controller had saved up for bursts".into(),
        description: format!(
            "What was not sent of the rate is saved up and spent on large pictures: between {least:.0} and {most:.0} kB. \
             Below zero the account is overdrawn, which only important pictures may do."
        ),
        x: time_axis(recording),
        y: Axis {
            name: "kB".into(),
            least: if least < 0.0 { -end(-least) } else { 0.0 },
            most: top(&layers, &[]),
        },
        layers,
        // Otherwise it is the axis.
        rules: rules.filter(|_| least < 0.0).into_iter().collect(),
    })
}

/// A value of the samples over time, with a hole wherever there is none.
fn over_time(samples: &[Sample], of: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
    let point = |sample: &Sample| (sample.at_s, of(sample).unwrap_or(f64::NAN));
    samples.iter().map(point).collect()
}

fn kilobytes(samples: &[Sample], bytes: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
    over_time(samples, |sample| Some(bytes(sample)? / 1e3))
}

/// A cross on a line through the samples wherever losses were told of.
fn losses(line: &[(f64, f64)], samples: &[Sample]) -> Layer {
    let had_losses = samples.windows(2).map(|pair| match pair {
        [before, after] => after.loss_events > before.loss_events,
        _ => false,
    });
    let after = line.iter().skip(1).zip(had_losses);
    let crosses = after.filter_map(|(point, had_losses)| had_losses.then_some(*point));
    Layer {
        name: Some("after losses".into()),
        colour: Colour::Bad,
        mark: Mark::Crosses(crosses.filter(|(_, y)| y.is_finite()).collect()),
    }
}

/// What the video's controller decided: the bit rate for an encoder.
pub(crate) fn target(recording: &Recording) -> Chart {
    let samples = video(recording);
    let targets = samples
        .iter()
        .map(|sample| (sample.at_s, sample.target_mbps.unwrap_or(f64::NAN)))
        .collect();
    let arrived = recording
        .flows
        .first()
        .map(|flow| rate_points(flow, recording.length_s))
        .unwrap_or_default();
    let layers = vec![
        Layer {
            name: Some("arrived".into()),
            colour: Colour::Series(4),
            mark: Mark::ThinLine(arrived),
        },
        Layer {
            name: Some("target".into()),
            colour: Colour::Series(0),
            mark: Mark::Line(targets),
        },
    ];
    let rules = vec![Rule {
        y: recording.setup.demand.as_mbps_f64(),
        name: "what the video needs".into(),
    }];
    Chart {
        id: "target",
        title: "What the video\u{2019}s connection would let an encoder send".into(),
        description: format!(
            "The target bit rate against the {} Mb/s that the video needs on the wire.",
            decimals(recording.setup.demand.as_mbps_f64())
        ),
        x: time_axis(recording),
        y: Axis {
            name: "rate (Mb/s)".into(),
            least: 0.0,
            most: top(&layers, &rules),
        },
        layers,
        rules,
    }
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

/// How the times left at completion are distributed.
pub(crate) fn slack(recording: &Recording) -> Chart {
    let complete: Vec<(Kind, f64)> = recording
        .sections
        .iter()
        .filter_map(|section| match section.fate {
            Fate::Complete { slack_ms } => Some((section.kind, slack_ms)),
            _ => None,
        })
        .collect();
    let bar = |slack_ms: f64| (slack_ms / BAR_MS).floor();
    let least = complete.iter().map(|(_, s)| bar(*s)).fold(0.0, f64::min);
    let most = complete.iter().map(|(_, s)| bar(*s)).fold(1.0, f64::max) + 1.0;
    let bars = (most - least) as usize;
    let mut heights = vec![0_u64; bars];
    let mut layers = Vec::new();
    for kind in Kind::ALL {
        let mut counts = vec![0_u64; bars];
        let of_kind = complete.iter().filter(|(of, _)| *of == kind);
        for (_, slack_ms) in of_kind {
            if let Some(count) = counts.get_mut((bar(*slack_ms) - least) as usize) {
                *count += 1;
            }
        }
        let mut rectangles = Vec::new();
        for (place, (count, height)) in counts.iter().zip(&mut heights).enumerate() {
            if *count == 0 {
                continue;
            }
            let from = (least + place as f64) * BAR_MS;
            // A gap between bars, so that they can be told apart.
            rectangles.push([
                (from + BAR_MS * 0.06, *height as f64),
                (from + BAR_MS * 0.94, (*height + count) as f64),
            ]);
            *height += count;
        }
        layers.push(Layer {
            name: Some(plural(kind).into()),
            colour: colour(kind),
            mark: Mark::Bars(rectangles),
        });
    }
    let on_time = complete.iter().filter(|(_, s)| *s >= 0.0).count() as u64;
    Chart {
        id: "slack",
        title: "How much time was left".into(),
        description: format!(
            "Of the {} sections that were complete, {} had time left when they were.",
            grouped(complete.len() as u64),
            percent(super::super::account::share(on_time, complete.len() as u64))
        ),
        x: Axis {
            name: "time left at completion (ms)".into(),
            least: least * BAR_MS,
            most: most * BAR_MS,
        },
        y: Axis {
            name: "sections".into(),
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
    use crate::demo::account::tests::recording;

    #[test]
    fn every_section_is_in_the_timeline_once() {
        let recording = recording();
        let chart = timeline(&recording, &Account::of(&recording));
        let dots: usize = chart
            .layers
            .iter()
            .map(|layer| match &layer.mark {
                Mark::Dots(points, _) | Mark::Crosses(points) => points.len(),
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
                .starts_with("Of 5 sections 3 were complete on time, 1 late, and 1 never.")
        );
    }

    #[test]
    fn rates_are_those_of_the_last_second() {
        let chart = rates(&recording());
        let Some(Mark::ThinLine(points)) = chart.layers.get(1).map(|layer| &layer.mark) else {
            panic!("{chart:?}");
        };
        assert!(points.len() > 90);
        assert!(
            points.iter().all(|(_, rate)| (rate - 4.0).abs() < 1e-3),
            "{points:?}"
        );
        assert_eq!(chart.rules.first().map(|rule| rule.y), Some(3.0));
        assert_eq!(chart.y.most, 4.0);
    }

    #[test]
    fn a_full_queue_waits_for_its_bits() {
        let chart = queue(&recording());
        // 60 packets of 1,480 bytes at 9 Mb/s.
        let full = chart.rules.first().map_or(0.0, |rule| rule.y);
        assert!((full - 78.93).abs() < 0.01, "{full}");
        assert!(chart.description.contains("79 ms; 3 packets"));
    }

    fn named<'a>(chart: &'a Chart, name: &str) -> &'a Mark {
        let layer = chart
            .layers
            .iter()
            .find(|layer| layer.name.as_deref() == Some(name));
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
        assert!(chart.title.ends_with("its window"));
        assert_eq!(chart.y.name, "kB");
        assert_eq!(savings(&recording), None, "it keeps no account");
        let svg = chart.standalone();
        assert!(!svg.contains("slow-start"), "what there is nothing of");
    }

    /// The recording with a controller that has no window, but a rate that rises from 2 Mb/s by 0.1
    /// in a second.
    fn without_a_window() -> Recording {
        let mut recording = recording();
        for sample in &mut recording.flows[0].samples {
            sample.cwnd_bytes = None;
            sample.pacing_mbps = Some(2.0 + sample.at_s / 10.0);
            sample.peak_mbps = Some(6.0);
            sample.saved_bytes = Some(if sample.at_s < 5.0 { 30_000 } else { -12_000 });
        }
        recording
    }

    #[test]
    fn a_law_without_a_window_is_drawn_by_its_rate() {
        let recording = without_a_window();
        let chart = decision(&recording);
        let Mark::Line(rate) = named(&chart, "rate") else {
            panic!("{chart:?}");
        };
        assert_eq!(rate.len(), 101);
        assert_eq!((rate[0], rate[100]), ((0.0, 2.0), (10.0, 3.0)));
        let Mark::ThinLine(peak) = named(&chart, "burst") else {
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
        assert_eq!((chart.y.least, chart.y.most), (0.0, 6.0));
        assert_eq!(chart.rules.first().map(|rule| rule.y), Some(3.0));
        assert!(chart.description.contains("one loss episode."));
    }

    #[test]
    fn what_was_saved_can_be_overdrawn() {
        let recording = without_a_window();
        let chart = savings(&recording).unwrap_or_else(|| panic!("it keeps an account"));
        let Mark::Line(saved) = named(&chart, "saved") else {
            panic!("{chart:?}");
        };
        assert_eq!((saved[0], saved[100]), ((0.0, 30.0), (10.0, -12.0)));
        assert!(chart.y.least <= -12.0 && chart.y.most >= 30.0);
        assert_eq!(chart.rules.len(), 1);
        let mut never = recording.clone();
        never.length_s = 4.0;
        let chart = savings(&never).unwrap_or_else(|| panic!("it keeps an account"));
        assert_eq!((chart.y.least, chart.rules.len()), (0.0, 0));
        let ids: Vec<&str> = all(&recording, &Account::of(&recording))
            .iter()
            .map(|chart| chart.id)
            .collect();
        let expected = [
            "timeline", "rates", "queue", "decision", "savings", "target", "slack",
        ];
        assert_eq!(ids, expected);
    }

    #[test]
    fn the_histogram_counts_all_that_was_complete() {
        let chart = slack(&recording());
        let count: f64 = chart
            .layers
            .iter()
            .map(|layer| match &layer.mark {
                Mark::Bars(bars) => bars.iter().map(|[(_, y0), (_, y1)]| y1 - y0).sum(),
                _ => 0.0,
            })
            .sum();
        assert_eq!(count, 4.0);
        assert_eq!((chart.x.least, chart.x.most), (-20.0, 360.0));
    }

    #[test]
    fn nothing_at_all_can_be_drawn() {
        let mut recording = recording();
        recording.sections.clear();
        recording.flows.clear();
        recording.queue.clear();
        recording.length_s = 0.0;
        let account = Account::of(&recording);
        for chart in all(&recording, &account) {
            assert!(!chart.standalone().contains("NaN"), "{}", chart.id);
        }
    }
}
