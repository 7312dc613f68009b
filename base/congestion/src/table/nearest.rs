//! The known name that is nearest to a mistyped one.

use alloc::vec::Vec;

/// The longest name that is compared.
const LONGEST: usize = 64;

/// Names of earlier versions and of other tools, each with the name that it has here. [`nearest`]
/// returns the new name for the old one, so every error about an unknown name suggests it.
const RENAMED: &[(&str, &str)] = &[
    ("careful", "bugfix"),
    ("least_discount", "min_discount"),
    ("least_limit", "min_limit"),
    ("deviation", "stddev"),
    ("delay_deviation_s", "delay_stddev_s"),
    ("queueing_deviation_s", "queueing_stddev_s"),
    ("arrival_spacing_deviation_s", "arrival_spacing_stddev_s"),
    (
        "tokens_per_rtt_deviation_bytes",
        "tokens_per_rtt_stddev_bytes",
    ),
    ("separation", "max_min_ratio"),
    ("returned_packets", "acks"),
    ("dropped_returned_packets", "dropped_acks"),
    ("repeated_bytes", "retransmitted_bytes"),
    ("window", "rwnd"),
    ("rtt", "rto"),
    ("window_bytes", "cwnd_bytes"),
    ("mean_window_bytes", "mean_cwnd_bytes"),
    ("wait_count", "queueing_delay_count"),
    ("wait_mean_s", "queueing_delay_mean_s"),
    ("wait_stddev_s", "queueing_delay_stddev_s"),
    ("wait_min_s", "queueing_delay_min_s"),
    ("wait_max_s", "queueing_delay_max_s"),
    ("wait_median_s", "queueing_delay_median_s"),
    ("wait_p95_s", "queueing_delay_p95_s"),
    ("wait_p99_s", "queueing_delay_p99_s"),
    ("used", "utilisation"),
    ("play", "run"),
    ("algorithm", "controller"),
    ("bandwidth", "rate"),
    ("buffer", "queue"),
    ("capacity", "rate"),
    ("cc", "controller"),
    ("congestion", "controller"),
    ("end_time", "stop"),
    ("latency", "delay"),
    ("loss", "losses"),
    ("loss_rate", "losses"),
    ("lossrate", "losses"),
    ("rcvbuf", "rwnd"),
    ("start_time", "start"),
];

/// The candidate that `name` most likely means, the first of several. Returns `None` if more than a
/// third of its letters would have to change, or more than four. One letter may always differ,
/// except in a name of one letter. Two exchanged neighbours count as one change.
///
/// ```
/// use comity_congestion::table::nearest;
/// assert_eq!(nearest("latensy", ["payload", "latency"]), Some("latency"));
/// assert_eq!(nearest("rneo", ["cubic", "reno"]), Some("reno"));
/// assert_eq!(nearest("bbr", ["cubic", "libra"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = name.chars().count();
    if letters > LONGEST {
        return None;
    }
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let renamed = RENAMED.iter().find(|(old, _)| *old == name);
    if let Some(&new) = renamed.and_then(|(_, new)| candidates.iter().find(|known| *known == new)) {
        return Some(new);
    }
    let allowed = (letters / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        // A word without any common letter is another word.
        .filter(|(distance, _)| *distance <= allowed && *distance < letters)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be inserted, removed, replaced or exchanged with the next one, without
/// regard to case: the optimal string alignment distance (Damerau 1964). No letter changes twice.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().flat_map(char::to_lowercase).collect();
    // The distances of the letters of `left` so far, and of those without the last one, to every
    // prefix of `right`.
    let mut row: Vec<usize> = (0..=right.len()).collect();
    let mut row_before: Vec<usize> = Vec::new();
    let mut letter_before = None;
    for from in left.chars().flat_map(char::to_lowercase) {
        let mut next = Vec::with_capacity(row.len());
        next.push(row.first().map_or(0, |first| first + 1));
        let mut to_before = None;
        for (at, to) in right.iter().enumerate() {
            let cell = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX);
            let replaced = cell(&row, at) + usize::from(from != *to);
            let changed = cell(&next, at).min(cell(&row, at + 1)) + 1;
            let mut least = replaced.min(changed);
            if letter_before == Some(*to) && to_before == Some(from) && at > 0 {
                least = least.min(cell(&row_before, at - 1).saturating_add(1));
            }
            next.push(least);
            to_before = Some(*to);
        }
        row_before = core::mem::replace(&mut row, next);
        letter_before = Some(from);
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_by_hand() {
        for (left, right, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
            ("Reno", "reno", 0),
            ("reno", "rneo", 1),
            ("ca", "abc", 3),
            ("wnidow", "window", 1),
            ("µs", "us", 1),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
            assert_eq!(distance(right, left), expected, "{right} {left}");
        }
    }

    #[test]
    fn an_old_name_is_answered_with_the_new_one() {
        assert_eq!(nearest("careful", ["cubic", "bugfix"]), Some("bugfix"));
        assert_eq!(nearest("careful", ["cubic", "useful"]), None);
    }

    #[test]
    fn what_is_another_word_is_not_meant() {
        let known = ["window", "warmup", "latency"];
        assert_eq!(nearest("windw", known), Some("window"));
        assert_eq!(nearest("Latecny", known), Some("latency"));
        assert_eq!(nearest("queue", known), None);
        assert_eq!(nearest("http", ["udp", "rtp", "comity"]), None);
        assert_eq!(nearest("a", ["b"]), None);
        assert_eq!(nearest("", ["b"]), None);
        assert_eq!(nearest(&"x".repeat(10_000), known), None);
    }
}
