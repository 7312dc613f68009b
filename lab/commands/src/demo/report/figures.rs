//! The charts of a recording.

use super::super::clip::Kind;
use super::super::plot::{Axis, Chart, Colour, Layer, Mark, Rule};
use super::super::recording::{Fate, Flow, Recording, Sent};
use super::super::summary::decimals;
use super::super::viewer::COMITY;
use crate::numbers::thousands;

/// The averaging interval of a rate.
const RATE_WINDOW_S: f64 = 1.0;
/// Axes end this far above the largest value.
const HEADROOM: f64 = 1.05;
const VIDEO: Colour = Colour(0);

/// All charts, in the order of the page.
pub(crate) fn all(recording: &Recording) -> Vec<Chart> {
    let mut charts = vec![timeline(recording)];
    charts.extend(recording.others.iter().filter_map(|other| {
        let sections = other.sections.as_ref().ok()?;
        let id = if other.name.starts_with("TCP") {
            "timeline-tcp"
        } else {
            "timeline-srt"
        };
        Some(completions(id, &other.name, sections, recording))
    }));
    charts.push(rates(recording));
    charts
}

fn colour(kind: Kind) -> Colour {
    Colour(match kind {
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

/// The completion of each section over Comity, relative to its deadline.
pub(crate) fn timeline(recording: &Recording) -> Chart {
    let mut chart = completions("timeline", COMITY, &recording.sections, recording);
    if !recording.exactness.overload.is_empty() {
        // The chart is also stored alone, without the warning of the report.
        chart.title += " (not exact: too busy)";
    }
    chart
}

fn completions(id: &'static str, name: &str, sections: &[Sent], recording: &Recording) -> Chart {
    let latency_ms = recording.setup.latency.as_secs_f64() * 1e3;
    let slacks = || sections.iter().filter_map(slack_ms);
    let most = slacks().fold(latency_ms, f64::max);
    let floor = slacks().fold(-latency_ms / 10.0, |least, slack| least.min(slack * 1.1));
    // A gap has no completion time, so gaps are drawn below everything else, one row per kind.
    let row = (most - floor) * 0.05;
    let of_kind = |kind| sections.iter().filter(move |s| s.kind == kind);
    let mut layers = Vec::new();
    // The numerous small dots are drawn first, so that the others cover them.
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
    let mut rows = 0.0;
    for kind in Kind::ALL {
        let gaps = || of_kind(kind).filter(|section| slack_ms(section).is_none());
        let count = gaps().count() as u64;
        if count == 0 {
            continue;
        }
        let y = floor - row * (rows + 0.5);
        rows += 1.0;
        layers.push(Layer::new(
            format!("{}: {} missing", kind.name(), thousands(count)),
            colour(kind),
            Mark::Crosses(gaps().map(|section| (section.at_s, y)).collect()),
        ));
    }
    let late = slacks().filter(|slack| *slack < 0.0).count() as u64;
    let missing = sections.iter().filter(|s| slack_ms(s).is_none()).count() as u64;
    let sent = sections.len() as u64;
    Chart {
        id,
        title: format!("{name}: time left when each section was complete"),
        description: format!(
            "{name}: of {} sections, {} were complete on time, {} too late, and {} never. Each dot is a section; \
             below the dashed line it was complete after its deadline.{}",
            thousands(sent),
            thousands(sent - late - missing),
            thousands(late),
            thousands(missing),
            if missing > 0 {
                " Crosses are sections that never became complete: given up or lost."
            } else {
                ""
            }
        ),
        x: time_axis("source time (s)", recording),
        y: Axis {
            name: "time left (ms)",
            least: floor - row * rows,
            most: most * HEADROOM,
        },
        layers,
        rules: vec![Rule {
            y: 0.0,
            name: "deadline",
        }],
    }
}

fn time_axis(name: &'static str, recording: &Recording) -> Axis {
    Axis {
        name,
        least: 0.0,
        most: recording.length_s.max(0.1),
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
fn rates(recording: &Recording) -> Chart {
    let layer = |(index, flow): (usize, &Flow)| {
        let points = rate_points(flow, recording.length_s);
        // The video has a thick line and its own colour; the others share four colours.
        match index {
            0 => Layer::new(&flow.name, VIDEO, Mark::Curve(points, 2)),
            other => {
                let colour = Colour(1 + ((other - 1) % 4) as u8);
                Layer::new(&flow.name, colour, Mark::Curve(points, 1))
            }
        }
    };
    let share = recording.setup.equal_share().as_mbps_f64();
    let layers: Vec<Layer> = recording.flows.iter().enumerate().map(layer).collect();
    let points = layers.iter().flat_map(|layer| layer.mark.points());
    let most = points.map(|(_, y)| y).fold(share, f64::max);
    let crossing = if recording.setup.flows > 1 {
        " The curves of the competitors cross where a full queue drops packets of one of them: it halves its \
         rate, or nearly so, and the others take what becomes free."
    } else {
        ""
    };
    Chart {
        id: "rates",
        title: format!("{COMITY}: rate of arrival of each flow"),
        description: format!(
            "Rates of {} on the wire, each averaged over one second. The dashed line is an equal share, {} \
             Mb/s. The video takes what it needs and leaves the rest.{crossing}",
            match recording.flows.len() {
                1 => "one flow".to_owned(),
                flows => format!("{flows} flows"),
            },
            decimals(share)
        ),
        x: time_axis("time (s)", recording),
        y: Axis {
            name: "rate (Mb/s)",
            least: 0.0,
            most: most * HEADROOM,
        },
        layers,
        rules: vec![Rule {
            y: share,
            name: "equal share",
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::metrics::tests::recording;

    fn points(chart: &Chart, name: &str) -> Vec<(f64, f64)> {
        let layer = chart.layers.iter().find(|layer| layer.name == name);
        layer.map_or(Vec::new(), |layer| layer.mark.points().collect())
    }

    #[test]
    fn the_timeline_has_a_dot_or_a_cross_for_every_section() {
        let recording = recording();
        let chart = timeline(&recording);
        let marks: usize = chart.layers.iter().map(|l| l.mark.points().count()).sum();
        assert_eq!(marks, recording.sections.len());
        assert_eq!(points(&chart, "P pictures"), [(1.0, -5.0)]);
        let [(at, y)] = points(&chart, "P: 1 missing")[..] else {
            panic!("one gap");
        };
        assert!(at == 3.0 && y < -40.0 && y > chart.y.least, "{y}");
        let said = "of 5 sections, 3 were complete on time, 1 too late, and 1 never";
        assert!(chart.description.contains(said), "{}", chart.description);
    }

    #[test]
    fn an_overload_is_in_the_title_of_the_timeline() {
        let mut recording = recording();
        assert!(!timeline(&recording).title.contains("not exact"));
        recording.exactness.overload = vec!["busy".into()];
        assert!(timeline(&recording).title.contains("not exact"));
    }

    #[test]
    fn rates_are_averages_of_the_last_second() {
        let chart = rates(&recording());
        let video = points(&chart, "video");
        let (at, rate) = *video.last().unwrap();
        assert!(
            (at - 10.0).abs() < 1e-9 && (rate - 2.0).abs() < 0.01,
            "{rate}"
        );
        assert_eq!(chart.rules[0].y, 3.0);
        assert!(chart.y.most > 4.0);
    }

    #[test]
    fn each_transport_that_ran_has_a_timeline() {
        let ids: Vec<_> = all(&recording()).iter().map(|chart| chart.id).collect();
        assert_eq!(ids, ["timeline", "timeline-tcp", "rates"]);
    }

    #[test]
    fn an_empty_recording_can_be_drawn() {
        let mut recording = recording();
        recording.sections.clear();
        recording.flows.clear();
        recording.length_s = 0.0;
        for chart in all(&recording) {
            assert!(!chart.element().contains("NaN"), "{}", chart.id);
        }
    }
}
