//! `comity doctor`: [`probe`] collects facts about this host, [`judge`] evaluates them.

mod facts;
mod judge;
mod probe;

use serde_json::json;

use self::judge::{Finding, Verdict};
use super::{Failure, print};
use crate::args;

pub(crate) fn doctor(args: &args::Doctor) -> Result<(), Failure> {
    let findings = judge::judge(&probe::probe(&args.listen));
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
