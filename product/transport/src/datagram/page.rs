//! Compares the numbers of `docs/protocol/recovery.md`, "Numbers of this implementation", with the
//! code.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Config, advertised_room, bucket_pace, departures, intervals, loss, received, timers};
use crate::timeline::{clock, inbox, outbox};

const PAGE: &str = include_str!("../../../../docs/protocol/recovery.md");

#[test]
fn the_numbers_on_the_page_are_those_of_the_code() {
    let connection = Config::default();
    let (receiver, sender) = (inbox::Config::default(), outbox::Config::default());
    let clock = clock::Config::default();
    let expected = [
        ("ack_frequency", connection.ack_frequency.to_string()),
        ("ack_delay", connection.ack_delay.to_string()),
        ("MAX_RANGES", received::MAX_RANGES.to_string()),
        ("REPEATED", received::REPEATED.to_string()),
        ("REPORT_WITH_ACK", intervals::REPORT_WITH_ACK.to_string()),
        ("REPORT_ALONE", intervals::REPORT_ALONE.to_string()),
        ("MEASURE_INTERVAL", intervals::MEASURE_INTERVAL.to_string()),
        ("MIN_THRESHOLD", loss::MIN_THRESHOLD.to_string()),
        ("MAX_THRESHOLD", loss::MAX_THRESHOLD.to_string()),
        ("LATENESS_MEMORY", loss::LATENESS_MEMORY.to_string()),
        ("MAX_PROBES", timers::MAX_PROBES.to_string()),
        ("TELL_INTERVAL", departures::TELL_INTERVAL.to_string()),
        ("PACE_INTERVAL", bucket_pace::PACE_INTERVAL.to_string()),
        (
            "MAX_UNANSWERED",
            advertised_room::MAX_UNANSWERED.to_string(),
        ),
        ("keep_alive", connection.keep_alive.to_string()),
        ("idle_timeout", connection.idle_timeout.to_string()),
        ("send_sections", connection.send_sections.to_string()),
        ("receive_sections", connection.receive_sections.to_string()),
        ("receive_buffer", connection.receive_buffer.to_string()),
        ("max_streams", receiver.max_streams.to_string()),
        ("max_fragments", receiver.max_fragments.to_string()),
        ("tolerance_percent", sender.tolerance_percent.to_string()),
        ("bucket", clock.bucket.to_string()),
        ("window", clock.window.to_string()),
        ("history", clock.history.to_string()),
        ("min_history", clock.min_history.to_string()),
        ("slew", clock.slew.to_string()),
        ("step", clock.step.to_string()),
        ("max_drift_ppm", clock.max_drift_ppm.to_string()),
    ];
    let (_, after) = PAGE
        .split_once("\n## Numbers of this implementation\n")
        .expect("the page has the heading");
    let chapter = after.split("\n## ").next().unwrap_or_default();
    let on_the_page: Vec<(&str, String)> = chapter
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(name, rest)| {
            let value = rest.split(" |").next().unwrap_or_default();
            (name, value.to_string())
        })
        .collect();
    assert_eq!(on_the_page, expected);
}
