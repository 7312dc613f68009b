//! Claims for programs.

use comity_sim::claims::{Book, CheckReport, Claim, ClaimReport, Expected, Form, Outcome, Row};
use serde_json::{Map, Value, json};

use super::counts::Counts;

pub(super) fn list(book: &Book, claims: &[&Claim]) -> Value {
    let entries: Vec<Value> = claims
        .iter()
        .map(|claim| {
            let (files, runs) = book.needs(claim);
            let mut entry = head(claim);
            let files: Vec<String> = files
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            entry.insert("scenarios".into(), json!(files));
            entry.insert("runs".into(), json!(runs));
            entry.insert("check_count".into(), json!(claim.check_count()));
            entry.insert("known_to_fail".into(), json!(claim.failing_count()));
            Value::Object(entry)
        })
        .collect();
    json!({ "format": "comity-claims-list/1", "claims": entries })
}

fn head(claim: &Claim) -> Map<String, Value> {
    let tests: Vec<Value> = claim
        .tests
        .iter()
        .map(|(file, name)| json!({ "file": file, "name": name }))
        .collect();
    let mut entry = Map::new();
    for (key, value) in [
        ("id", json!(claim.id)),
        ("system", json!(claim.system)),
        ("says", json!(claim.says)),
        ("source", json!(claim.source)),
        ("missing", json!(claim.missing)),
        ("tests", json!(tests)),
    ] {
        entry.insert(key.into(), value);
    }
    entry
}

pub(super) fn document(
    reports: &[ClaimReport<'_>],
    form: Form,
    counts: &Counts,
    (wall_seconds, was_interrupted): (f64, bool),
) -> Value {
    let claims: Vec<Value> = reports.iter().map(claim).collect();
    json!({
        "format": "comity-claims/2",
        "version": env!("CARGO_PKG_VERSION"),
        "form": match form {
            Form::Quick => "quick",
            Form::Full => "full",
        },
        "claims": claims,
        "counts": {
            "claims": counts.claims,
            "hold": counts.hold,
            "hold_in_part": counts.hold_in_part,
            "fail_as_known": counts.fail_as_known,
            "fail": counts.fail,
            "not_judged": counts.not_judged,
            "by_tests": counts.by_tests,
            "missing": counts.missing,
            "checks": counts.checks,
            "checks_that_hold": counts.checks_that_hold,
            "checks_that_fail_as_known": counts.checks_that_fail_as_known,
            "checks_that_hold_unexpectedly": counts.hold_unexpectedly,
        },
        "interrupted": was_interrupted,
        "wall_seconds": wall_seconds,
    })
}

fn claim(report: &ClaimReport<'_>) -> Value {
    let mut entry = head(report.claim);
    let checks: Vec<Value> = report.checks.iter().map(check).collect();
    entry.insert("outcome".into(), outcome(report.outcome()).into());
    let as_expected = report.checks.iter().all(CheckReport::is_as_expected);
    entry.insert("as_expected".into(), as_expected.into());
    entry.insert("checks".into(), checks.into());
    Value::Object(entry)
}

const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "holds",
        Outcome::HoldsInPart => "holds_in_part",
        Outcome::Fails => "fails",
        Outcome::Shown => "shown",
        Outcome::Skipped => "skipped",
    }
}

fn check(report: &CheckReport<'_>) -> Value {
    let rows: Vec<Value> = report.rows.iter().map(row).collect();
    json!({
        "says": report.says,
        "text": report.text,
        "outcome": outcome(report.outcome),
        "expected": match report.expected {
            Expected::Holds => "holds",
            Expected::Fails => "fails",
            Expected::Chance => "chance",
        },
        "as_expected": report.is_as_expected(),
        "reason": report.reason,
        "rows": rows,
    })
}

fn row(row: &Row) -> Value {
    let at: Map<String, Value> = row
        .at
        .iter()
        .map(|(axis, value)| (axis.clone(), value.clone().into()))
        .collect();
    let interval = row.interval.map(|interval| {
        json!({
            "low": interval.low,
            "high": interval.high,
            "method": if interval.is_bootstrap { "bootstrap" } else { "jackknife" },
        })
    });
    let bounds: Vec<Value> = row
        .bounds
        .iter()
        .map(|bound| json!({ "relation": bound.relation, "value": bound.value }))
        .collect();
    json!({
        "at": at,
        "paper": row.paper,
        "value": row.value,
        "interval": interval,
        "bounds": bounds,
        "holds": row.holds,
        "sure": row.is_sure,
    })
}
