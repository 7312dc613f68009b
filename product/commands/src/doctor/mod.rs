//! `comity doctor`: [`probe`] collects facts about this host, [`judge`] evaluates them.

mod facts;
mod judge;
mod probe;

use serde_json::json;

use self::judge::{Finding, Verdict};
use super::{Failure, print};
use crate::args;

/// `comity doctor`. `kernel_controllers` are the controllers that this program can add to the
/// kernel, each with the missing requirements.
///
/// # Errors
/// If a check is bad. The message is printed.
pub fn doctor(
    args: &args::Doctor,
    kernel_controllers: Vec<(&'static str, Vec<String>)>,
) -> Result<(), Failure> {
    let facts = probe::probe(&args.listen, kernel_controllers);
    let findings = judge::judge(&facts);
    if args.json {
        print(format!("{:#}\n", document(&findings)))?;
    } else {
        print(text(&findings))?;
    }
    match worst(&findings) {
        Verdict::Bad => Err(Failure::Failed),
        Verdict::CouldBeBetter | Verdict::Good => Ok(()),
    }
}

fn worst(findings: &[Finding]) -> Verdict {
    let verdicts = findings.iter().map(|finding| finding.verdict);
    verdicts.max().unwrap_or(Verdict::Good)
}

fn document(findings: &[Finding]) -> serde_json::Value {
    let checks: Vec<_> = findings
        .iter()
        .map(|finding| {
            json!({
                "check": finding.check,
                "found": finding.found,
                "verdict": finding.verdict.word(),
                "remedy": finding.remedy,
            })
        })
        .collect();
    json!({
        "format": "comity-doctor/1",
        "verdict": worst(findings).word(),
        "checks": checks,
    })
}

fn text(findings: &[Finding]) -> String {
    let checks = findings.iter().map(|finding| finding.check.chars().count());
    let width = checks.max().unwrap_or(0);
    let mut text = String::new();
    for Finding {
        check,
        found,
        verdict,
        ..
    } in findings
    {
        let verdict = verdict.word();
        text.push_str(&format!("{check:width$}  {verdict:15}  {found}\n"));
    }
    let mut remedies = findings
        .iter()
        .filter_map(|finding| Some((finding, finding.remedy.as_ref()?)))
        .peekable();
    if remedies.peek().is_some() {
        text.push_str("\nHow to fix:\n");
    }
    for (finding, remedy) in remedies {
        text.push_str(&format!("  {}:\n    {remedy}\n", finding.check));
    }
    text
}
