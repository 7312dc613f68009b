//! The results in words, for the terminal and the page, and as JSON for programs.

use comity_congestion::table;
use serde_json::{Value, json};

use super::clip::Kind;
use super::metrics::{Metrics, share};
use super::recording::{Recording, Setup};
use super::viewer::{Delay, Transport, transports};
use crate::numbers::{percent, spaced, thousands};

/// A statement about the results, and its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) about: String,
    pub(crate) text: String,
}

/// The settings of the run, in words.
pub(crate) fn situation(setup: &Setup) -> String {
    let video = setup.video();
    let loss = if setup.loss > 0.0 {
        format!(", {} random loss each way", percent(setup.loss))
    } else {
        String::new()
    };
    let others = match setup.flows {
        0 => "nothing else".to_owned(),
        1 => format!("one greedy {} flow", setup.rival()),
        flows => format!("{flows} greedy {} flows", setup.rival()),
    };
    let is_silent = |name: &str| table::find(name).is_ok_and(|row| !row.repeats_losses);
    let repeats = if is_silent(&setup.controller) {
        ". As in its paper, this controller retransmits nothing: a lost packet costs its section"
    } else {
        ""
    };
    format!(
        "{video}, about {} Mb/s on the wire, beside {others}. The bottleneck is emulated: {}, {} delay each \
         way, a queue of {} packets{loss}. The video needs {:.0} % of an equal share. Each section has {} to \
         arrive. The video's controller is {}{repeats}.",
        decimals(setup.demand.as_mbps_f64()),
        spaced(setup.rate),
        spaced(setup.delay),
        setup.queue,
        setup.need() * 100.0,
        spaced(setup.latency),
        setup.controller,
    )
}

/// The results, statement by statement.
pub(crate) fn statements(recording: &Recording, metrics: &Metrics) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut state = |about: &str, text| {
        statements.push(Statement {
            about: about.into(),
            text,
        });
    };
    let (sections, sections_on_time, _) = metrics.total(|_| true);
    let (pictures, on_time, _) = metrics.total(Kind::is_picture);
    if !recording.exactness.overload.is_empty() {
        state(
            "do not trust",
            format!(
                "this machine was too busy to emulate the bottleneck exactly ({}). The machine affected the \
                 results below. Stop other programs and run the demo again.",
                recording.exactness.overload.join("; ")
            ),
        );
    }
    for transport in transports(recording) {
        let text = match transport.viewing {
            Ok(viewing) => viewing.words(),
            Err(reason) => format!("did not run: {reason}"),
        };
        state(&transport.name, text);
    }
    state(
        "on time",
        format!(
            "{} of {} sections ({}); {} of {} pictures ({}).",
            thousands(sections_on_time),
            thousands(sections),
            percent(share(sections_on_time, sections)),
            thousands(on_time),
            thousands(pictures),
            percent(share(on_time, pictures)),
        ),
    );
    state("missing", missing(metrics));
    let sender = &recording.sender;
    state(
        "after the deadline",
        format!(
            "{} bytes were sent after their deadline. {} bytes were retransmitted before it ({} of the video).",
            thousands(sender.late_bytes),
            thousands(sender.retransmitted_bytes),
            percent(share(
                sender.retransmitted_bytes,
                sender.submitted_bytes.max(1)
            )),
        ),
    );
    state("shares", shares(metrics));
    let exactness = &recording.exactness;
    state(
        "the bottleneck",
        format!(
            "{} of {} packets were dropped at the full queue{}.",
            thousands(exactness.dropped_packets),
            thousands(exactness.offered_packets),
            match exactness.lost_packets {
                0 => String::new(),
                lost => format!(", and {} were lost at random", thousands(lost)),
            },
        ),
    );
    state(
        "exactness",
        format!(
            "the emulator was late by at most {:.3} ms for half of the packets to the receiver, by at most \
             {:.3} ms for 99 %, and by at most {:.1} ms for all: {}.",
            exactness.p50_ms,
            exactness.p99_ms,
            exactness.max_ms,
            if exactness.overload.is_empty() {
                "it kept up"
            } else {
                "it did not keep up"
            }
        ),
    );
    statements
}

fn missing(metrics: &Metrics) -> String {
    let late: u64 = metrics.kinds.iter().map(|count| count.late).sum();
    let gaps: u64 = metrics.gaps.values().sum();
    let mut parts: Vec<String> = metrics
        .gaps
        .iter()
        .map(|(reason, count)| format!("{} {reason}", thousands(*count)))
        .collect();
    if metrics.unreported > 0 {
        parts.push(format!("{} unreported", thousands(metrics.unreported)));
    }
    let missing = gaps + metrics.unreported;
    let why = if parts.is_empty() {
        String::new()
    } else {
        format!(" ({})", parts.join("; "))
    };
    format!(
        "{} never complete{why}; {} complete after the deadline.",
        sections(missing),
        sections(late)
    )
}

fn shares(metrics: &Metrics) -> String {
    let flows: Vec<String> = metrics
        .flows
        .iter()
        .map(|flow| {
            format!(
                "{} {} Mb/s ({}; its fair rate is {})",
                flow.name,
                decimals(flow.mbps),
                percent(flow.share),
                decimals(flow.fair_mbps)
            )
        })
        .collect();
    let index = |index: Option<f64>| match index {
        Some(index) => format!("{index:.3}"),
        None => "undefined".into(),
    };
    format!(
        "{}, from {:.1} s to {:.1} s. Jain's index of the rates is {}. Jain's index of the rates divided by \
         their fair rates is {}; the fair rate of the video is at most the rate that it needs.",
        flows.join(", "),
        metrics.counted.0,
        metrics.counted.1,
        index(metrics.jain),
        index(metrics.jain_of_fair),
    )
}

/// The statements, broken into lines of at most `width` characters.
pub(crate) fn text(statements: &[Statement], width: usize) -> String {
    let widest = statements.iter().map(|s| s.about.len()).max().unwrap_or(0);
    let mut out = String::new();
    for statement in statements {
        let mut about = statement.about.as_str();
        for line in wrap(&statement.text, width.saturating_sub(widest + 2).max(20)) {
            out.push_str(&format!("{about:<widest$}  {line}\n"));
            about = "";
        }
    }
    out
}

/// Breaks a text into lines between words.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// All results, for programs.
pub(crate) fn document(recording: &Recording, metrics: &Metrics) -> Value {
    let setup = &recording.setup;
    let kinds: Vec<Value> = metrics
        .kinds
        .iter()
        .map(|count| {
            json!({
                "kind": count.kind.name(),
                "sent": count.sent,
                "on_time": count.on_time,
                "late": count.late,
                "gaps": count.gaps,
                "decodable": count.decodable,
                "sent_bytes": count.bytes.sent,
                "on_time_bytes": count.bytes.on_time,
                "decodable_bytes": count.bytes.decodable,
                "gaps_by_reason": metrics
                    .gaps_of
                    .iter()
                    .filter(|((_, kind), _)| *kind == count.kind)
                    .map(|((reason, _), gaps)| ((*reason).to_owned(), json!(gaps)))
                    .collect::<serde_json::Map<_, _>>(),
            })
        })
        .collect();
    let flows: Vec<Value> = metrics
        .flows
        .iter()
        .map(|flow| {
            json!({
                "name": flow.name,
                "mbps": flow.mbps,
                "share": flow.share,
                "fair_mbps": flow.fair_mbps,
            })
        })
        .collect();
    let (sections, on_time, _) = metrics.total(|_| true);
    let (pictures, pictures_on_time, decodable) = metrics.total(Kind::is_picture);
    let exactness = &recording.exactness;
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "setup": {
            "rate_mbps": setup.rate.as_mbps_f64(),
            "delay_ms": setup.delay.as_secs_f64() * 1e3,
            "queue_packets": setup.queue,
            "loss": setup.loss,
            "flows": setup.flows,
            "clip": setup.clip,
            "copies": setup.copies,
            "latency_ms": setup.latency.as_secs_f64() * 1e3,
            "duration_s": setup.duration.as_secs_f64(),
            "controller": setup.controller,
            "rivals": setup.rivals,
            "sheds": setup.sheds,
            "seed": setup.seed,
            "demand_mbps": setup.demand.as_mbps_f64(),
        },
        "length_s": recording.length_s,
        "cipher": recording.cipher,
        "sections": {
            "sent": sections,
            "on_time": on_time,
            "late": metrics.kinds.iter().map(|count| count.late).sum::<u64>(),
            "gaps": metrics.gaps.values().sum::<u64>(),
            "unreported": metrics.unreported,
        },
        "pictures": {
            "sent": pictures,
            "on_time": pictures_on_time,
            "decodable": decodable,
        },
        "bytes": {
            "sent": metrics.bytes.sent,
            "on_time": metrics.bytes.on_time,
            "decodable": metrics.bytes.decodable,
            "equal_share": metrics.equal_share_bytes,
            "decodable_of_share": metrics.decodable_of_share(),
        },
        "transports": transports(recording).iter().map(transport).collect::<Vec<_>>(),
        "kinds": kinds,
        "gaps": metrics.gaps,
        "slack_ms": metrics.slack_ms.map(|(least, median)| json!({ "p1": least, "p50": median })),
        "bytes_after_deadline": recording.sender.late_bytes,
        "retransmitted_bytes": recording.sender.retransmitted_bytes,
        "pacing_error_p99_us": recording.sender.pacing_p99_us,
        "flows": flows,
        "counted_s": [metrics.counted.0, metrics.counted.1],
        "jain": metrics.jain,
        "jain_of_fair": metrics.jain_of_fair,
        "emulator": {
            "offered_packets": exactness.offered_packets,
            "dropped_packets": exactness.dropped_packets,
            "lost_packets": exactness.lost_packets,
            "timing_error_ms": {
                "p50": exactness.p50_ms,
                "p99": exactness.p99_ms,
                "max": exactness.max_ms,
            },
            "overload": exactness.overload,
        },
    })
}

/// What the viewers of a transport saw. A delay of `null` is infinite: the picture never arrived.
fn transport(transport: &Transport) -> Value {
    let viewing = match &transport.viewing {
        Ok(viewing) => viewing,
        Err(reason) => return json!({ "name": transport.name, "failure": reason }),
    };
    let delay =
        |Delay { p50, p95, p99, max }| json!({ "p50": p50, "p95": p95, "p99": p99, "max": max });
    json!({
        "name": transport.name,
        "pictures": viewing.pictures,
        "shown_in_time": viewing.shown,
        "delay_ms": viewing.delay_ms.map(delay),
        "copies": viewing.copies,
        "freezes": viewing.freezes,
        "frozen_s_per_copy": viewing.frozen_s,
        "longest_freeze_s": viewing.longest_s,
    })
}

fn sections(count: u64) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} section{plural}", thousands(count))
}

/// A rate with at most two decimals, without trailing zeros.
pub(crate) fn decimals(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::metrics::tests::recording;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.99999), "99.9 %", "not all is not 100 %");
        assert_eq!(percent(0.995), "99.5 %");
        assert_eq!(percent(0.0), "0.0 %");
        assert_eq!(percent(1.0421), "104.2 %", "of a share there can be more");
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(decimals(9.0), "9");
        assert_eq!(decimals(2.256), "2.26");
    }

    #[test]
    fn texts_are_broken_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("incomprehensibilities", 5), ["incomprehensibilities"]);
        assert!(wrap("", 5).is_empty());
    }

    #[test]
    fn the_results_are_stated_in_words() {
        let recording = recording();
        let metrics = Metrics::of(&recording);
        let statements = statements(&recording, &metrics);
        let about = |what: &str| {
            let found = statements.iter().find(|statement| statement.about == what);
            found.map(|statement| statement.text.as_str())
        };
        assert_eq!(
            about("on time"),
            Some("3 of 5 sections (60.0 %); 2 of 4 pictures (50.0 %).")
        );
        assert_eq!(
            about("missing"),
            Some(
                "1 section never complete (1 expired <at> the sender); 1 section complete after the deadline."
            )
        );
        assert!(
            about("after the deadline")
                .is_some_and(|text| text.starts_with("0 bytes were sent after"))
        );
        assert!(about("shares").is_some_and(|text| {
            text.starts_with("video 2 Mb/s (25.0 %; its fair rate is 2.25), Reno 1 4 Mb/s (50.0 %;")
                && text.contains("Jain's index of the rates is 0.889")
        }));
        assert_eq!(about("do not trust"), None);
        let text = text(&statements, 80);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(situation(&recording.setup).contains("needs 75 % of an equal share"));
    }

    #[test]
    fn a_controller_without_retransmissions_is_reported() {
        let mut setup = recording().setup;
        let is_reported = |setup: &Setup| situation(setup).contains("retransmits nothing");
        for (controller, repeats) in [("steady", true), ("iftp", false), ("psp", false)] {
            setup.controller = controller.into();
            assert_eq!(is_reported(&setup), !repeats, "{controller}");
        }
    }

    #[test]
    fn overload_comes_first() {
        let mut recording = recording();
        recording.exactness.overload = vec!["900 of 1000 packets were forwarded too late".into()];
        let metrics = Metrics::of(&recording);
        let statements = statements(&recording, &metrics);
        let first = statements.first().map(|statement| statement.about.as_str());
        assert_eq!(first, Some("do not trust"));
        let document = document(&recording, &metrics);
        let overload = &document["emulator"]["overload"];
        assert_eq!(overload.as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn the_document_accounts_for_every_section() {
        let recording = recording();
        let document = document(&recording, &Metrics::of(&recording));
        let number = |name: &str| document["sections"][name].as_u64().unwrap_or(u64::MAX);
        let sum = number("on_time") + number("late") + number("gaps") + number("unreported");
        assert_eq!(number("sent"), sum);
        assert_eq!(document["bytes_after_deadline"], 0);
    }
}
