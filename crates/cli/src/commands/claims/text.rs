//! Claims for people.

use std::fmt::Write as _;

use comity_sim::claims::{
    Book, Bound, CheckReport, Claim, ClaimReport, Expected, Form, Interval, Outcome, Row,
};

use super::super::sim::tables::{Table, plural};
use super::counts::Counts;

pub(super) fn list(book: &Book, claims: &[&Claim]) -> String {
    let mut table = Table::new([
        "claim",
        "system",
        "runs",
        "checks",
        "known to fail",
        "what the paper says",
    ]);
    for column in [2, 3, 4] {
        table.right(column);
    }
    for claim in claims {
        let (_, runs) = book.needs(claim);
        let dash_for_none = |count: usize| match count {
            0 => "-".into(),
            count => count.to_string(),
        };
        table.row([
            claim.id.clone(),
            claim.system.clone(),
            dash_for_none(runs),
            dash_for_none(claim.check_count()),
            dash_for_none(claim.failing_count()),
            match &claim.missing {
                Some(reason) => format!("{} (not reproduced yet: {reason})", claim.says),
                None => claim.says.clone(),
            },
        ]);
    }
    format!("{table}\n")
}

/// One claim, and an empty line.
pub(super) fn report(report: &ClaimReport<'_>) -> String {
    let mut text = String::new();
    claim(&mut text, report);
    text.push('\n');
    text
}

/// How many claims of each kind there were.
pub(super) fn summary(form: Form, counts: &Counts, wall_seconds: f64) -> String {
    let mut text = String::new();
    let form = match form {
        Form::Quick => "quick form",
        Form::Full => "full form",
    };
    let mut parts = vec![format!("{} hold", counts.hold)];
    let mut add = |count: usize, what: &str| {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    };
    add(counts.hold_in_part, "hold in part");
    add(counts.fail_as_known, "fail as known");
    add(counts.fail, "fail unexpectedly");
    add(
        counts.not_judged,
        "are only shown, or are judged in the other form",
    );
    add(counts.by_tests, "are checked only by tests");
    add(counts.missing, "are not reproduced yet");
    let _ = writeln!(
        text,
        "{}: {} ({form}, {wall_seconds:.0} s)",
        plural(counts.claims, "claim"),
        parts.join(", ")
    );
    let fail = counts.checks - counts.checks_that_hold - counts.checks_that_fail_as_known;
    let _ = writeln!(
        text,
        "{} judged: {} hold, {} fail as known, {fail} fail unexpectedly",
        plural(counts.checks, "check"),
        counts.checks_that_hold,
        counts.checks_that_fail_as_known,
    );
    if counts.hold_unexpectedly > 0 {
        let _ = writeln!(
            text,
            "{} known to fail and held: check whether `expected` is out of date",
            match counts.hold_unexpectedly {
                1 => "1 check was".into(),
                count => format!("{count} checks were"),
            }
        );
    }
    text
}

fn claim(text: &mut String, report: &ClaimReport<'_>) {
    let claim = report.claim;
    let surprise = report
        .checks
        .iter()
        .any(|check| check.outcome == Outcome::Fails && !check.is_as_expected());
    let outcome = match report.outcome() {
        _ if surprise => "fails, unexpectedly",
        Outcome::Holds => "holds",
        Outcome::HoldsInPart => "holds in part",
        Outcome::Fails => "fails, as known",
        Outcome::Skipped => "is judged in the other form",
        Outcome::Shown if !report.checks.is_empty() => "is shown only",
        Outcome::Shown if !claim.tests.is_empty() => "is held by tests",
        Outcome::Shown => "is not reproduced yet",
    };
    let _ = writeln!(text, "{} {outcome}", claim.id);
    let source = claim.source.as_ref().map(|source| format!(" ({source})"));
    let _ = writeln!(text, "  {}{}", claim.says, source.unwrap_or_default());
    if let Some(reason) = &claim.missing {
        let _ = writeln!(text, "  {reason}");
    }
    for (file, name) in &claim.tests {
        let _ = writeln!(text, "  test {name} in {file}");
    }
    if report.checks.iter().any(|check| !check.rows.is_empty()) {
        let mut table = Table::new(["check", "at", "paper", "here", "±95%", "wanted", ""]);
        for column in [2, 3, 4] {
            table.right(column);
        }
        for check in &report.checks {
            rows(&mut table, check);
        }
        for line in table.to_string().lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    for check in &report.checks {
        let _ = match (check.outcome, check.expected, check.reason) {
            (Outcome::Skipped, ..) => {
                writeln!(text, "  {}: judged in the other form", check.says)
            }
            (Outcome::Shown, _, Some(reason)) => writeln!(text, "  {}: {reason}", check.says),
            (Outcome::Fails, Expected::Fails, Some(reason)) => {
                writeln!(text, "  {}: known to fail: {reason}", check.says)
            }
            (Outcome::Holds | Outcome::Fails, Expected::Chance, Some(reason)) => {
                writeln!(text, "  {}: chance decides: {reason}", check.says)
            }
            (Outcome::Holds, Expected::Fails, Some(reason)) => {
                writeln!(
                    text,
                    "  {}: holds, but was known to fail: {reason}",
                    check.says
                )
            }
            _ => Ok(()),
        };
    }
}

fn rows(table: &mut Table, check: &CheckReport<'_>) {
    for (index, row) in check.rows.iter().enumerate() {
        let at: Vec<_> = row
            .at
            .iter()
            .map(|(axis, value)| format!("{axis} {value}"))
            .collect();
        table.row([
            if index == 0 {
                check.says.into()
            } else {
                String::new()
            },
            at.join(", "),
            row.paper.map_or_else(String::new, number),
            row.value.map_or_else(|| "no value".into(), number),
            row.interval
                .map_or_else(|| "-".into(), |interval| around(row, interval)),
            wanted(&row.bounds),
            verdict(row).into(),
        ]);
    }
}

fn verdict(row: &Row) -> &'static str {
    // Without an interval nothing reaches across.
    match (row.holds, row.is_sure || row.interval.is_none()) {
        (None, _) => "",
        (Some(true), true) => "holds",
        (Some(true), false) => "holds?",
        (Some(false), false) => "fails?",
        (Some(false), true) => "fails",
    }
}

/// Half the width of an interval around its value, or both ends of another one.
fn around(row: &Row, interval: Interval) -> String {
    match row.value {
        Some(value) if !interval.is_bootstrap => {
            let half = (interval.high - interval.low) / 2.0;
            // What is left of rounding is nothing.
            number(if half < 1e-9 * value.abs() { 0.0 } else { half })
        }
        _ => format!("{} to {}", number(interval.low), number(interval.high)),
    }
}

fn wanted(bounds: &[Bound]) -> String {
    if let [low, high] = bounds
        && low.relation == ">="
        && high.relation == "<="
    {
        return format!("{} to {}", number(low.value), number(high.value));
    }
    let each: Vec<_> = bounds
        .iter()
        .map(|bound| format!("{} {}", bound.relation, number(bound.value)))
        .collect();
    each.join(" and ")
}

/// Four digits, whatever the size.
fn number(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".into();
    }
    if !(1e-6..1e15).contains(&size) {
        return format!("{value:.3e}");
    }
    let (mut decimals, mut scaled) = (3_usize, size);
    while scaled < 1.0 {
        scaled *= 10.0;
        decimals += 1;
    }
    while scaled >= 10.0 {
        scaled /= 10.0;
        decimals = decimals.saturating_sub(1);
    }
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits_whatever_their_size() {
        for (value, text) in [
            (0.0, "0"),
            (0.897_26, "0.8973"),
            (1540.6, "1541"),
            (0.000_064_75, "0.00006475"),
            (-2.5, "-2.5"),
            (123_456_789.0, "123456789"),
            (1e-9, "1.000e-9"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn two_bounds_are_a_range() {
        let bound = |relation, value| Bound { relation, value };
        assert_eq!(
            wanted(&[bound(">=", 0.85), bound("<=", 1.2)]),
            "0.85 to 1.2"
        );
        assert_eq!(wanted(&[bound(">", 0.5)]), "> 0.5");
        assert_eq!(
            wanted(&[bound(">=", 0.5), bound("<", 1.0)]),
            ">= 0.5 and < 1"
        );
        assert_eq!(wanted(&[]), "");
    }

    #[test]
    fn a_question_mark_says_that_the_interval_reaches_across() {
        let mut row = Row {
            at: Vec::new(),
            paper: None,
            value: Some(1.0),
            interval: Some(Interval {
                low: 0.5,
                high: 1.5,
                is_bootstrap: false,
            }),
            bounds: Vec::new(),
            holds: Some(true),
            is_sure: false,
        };
        assert_eq!(verdict(&row), "holds?");
        row.is_sure = true;
        assert_eq!(verdict(&row), "holds");
        row.holds = Some(false);
        assert_eq!(verdict(&row), "fails");
        row.interval = None;
        row.is_sure = false;
        assert_eq!(verdict(&row), "fails");
        row.holds = None;
        assert_eq!(verdict(&row), "");
    }
}
