//! Seeds without an effect.

use std::collections::BTreeMap;

use crate::report::RunReport;

/// Finds points whose runs are all equal, whatever their seeds.
#[derive(Debug, Default)]
pub struct SeedsWithoutEffect<P>(BTreeMap<P, Point>);

#[derive(Debug)]
struct Point {
    fingerprint: u64,
    runs: usize,
    are_equal: bool,
}

impl<P: Ord> SeedsWithoutEffect<P> {
    /// Adds a run at a point.
    pub fn add(&mut self, point: P, report: &RunReport) {
        // The lab has no fingerprint: no two of its runs are equal.
        if report.world.lateness().is_some() {
            return;
        }
        let fingerprint = report.fingerprint;
        let point = self.0.entry(point).or_insert(Point {
            fingerprint,
            runs: 0,
            are_equal: true,
        });
        point.runs += 1;
        point.are_equal &= point.fingerprint == fingerprint;
    }

    /// A warning about these points, if there are any.
    pub fn warning(&self) -> Option<String> {
        let repeated = self.0.values().filter(|point| point.runs > 1);
        let points = repeated.clone().count();
        let equal = repeated.filter(|point| point.are_equal).count();
        (equal > 0).then(|| {
            format!(
                "the seeds change nothing at {equal} of {points} points, so intervals of zero say \
                 nothing; randomness comes from starts (start.spread), workloads and losses"
            )
        })
    }
}
