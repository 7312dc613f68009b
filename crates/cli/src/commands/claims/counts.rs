//! How many claims and checks hold.

use comity_sim::claims::{ClaimReport, Outcome};

/// Numbers of claims and checks, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) claims: usize,
    pub(super) hold: usize,
    /// Claims with a check that holds, and another one that is known to fail or is not judged.
    pub(super) hold_in_part: usize,
    /// Claims that fail and are known to fail.
    pub(super) fail_as_known: usize,
    /// Claims with a check that fails and was expected to hold.
    pub(super) fail: usize,
    /// Claims that are only shown, or that the other form judges.
    pub(super) not_judged: usize,
    /// Claims that only tests check.
    pub(super) by_tests: usize,
    pub(super) missing: usize,
    /// Judged checks.
    pub(super) checks: usize,
    pub(super) checks_that_hold: usize,
    pub(super) checks_that_fail_as_known: usize,
    /// Checks that hold and were expected to fail.
    pub(super) hold_unexpectedly: usize,
}

impl Counts {
    pub(super) fn of(reports: &[ClaimReport<'_>]) -> Self {
        let mut counts = Self {
            claims: reports.len(),
            ..Self::default()
        };
        for report in reports {
            for check in &report.checks {
                let (holds, fails) = (
                    check.outcome == Outcome::Holds,
                    check.outcome == Outcome::Fails,
                );
                counts.checks += usize::from(holds || fails);
                counts.checks_that_hold += usize::from(holds);
                counts.checks_that_fail_as_known += usize::from(fails && check.is_as_expected());
            }
            let surprises = || report.checks.iter().filter(|check| !check.is_as_expected());
            counts.hold_unexpectedly += surprises()
                .filter(|check| check.outcome == Outcome::Holds)
                .count();
            let fails_unexpectedly = surprises().any(|check| check.outcome == Outcome::Fails);
            let slot = match report.outcome() {
                _ if fails_unexpectedly => &mut counts.fail,
                Outcome::Holds => &mut counts.hold,
                Outcome::HoldsInPart => &mut counts.hold_in_part,
                Outcome::Fails => &mut counts.fail_as_known,
                _ if !report.checks.is_empty() => &mut counts.not_judged,
                _ if !report.claim.tests.is_empty() => &mut counts.by_tests,
                _ => &mut counts.missing,
            };
            *slot += 1;
        }
        counts
    }
}
