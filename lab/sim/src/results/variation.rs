//! The smoothness of flows by time scale.

use comity_units::Span;

use crate::metrics;
use crate::report::RunReport;

/// The time scales are these multiples of one bin, of ten bins, of a hundred bins and so on.
const STEPS: [u64; 3] = [1, 2, 5];

/// The variation of one flow's goodput over one time scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Variation {
    /// The index of the flow in the report.
    pub(super) flow: usize,
    pub(super) scale: Span,
    /// How many intervals of the scale lie in measured time.
    pub(super) intervals: u64,
    /// The coefficient of variation over them; `None` for a flow without data.
    pub(super) coefficient: Option<f64>,
}

/// The variation of each flow over 1, 2, 5, 10, ... bins, up to scales with two intervals in
/// measured time. Incomplete bins at the end of the warm-up or of the run are left out.
pub(super) fn variations(report: &RunReport) -> Vec<Variation> {
    let Some(series) = report
        .series
        .as_ref()
        .filter(|series| !series.bin.is_zero())
    else {
        return Vec::new();
    };
    let bin = series.bin.as_nanos();
    let first = report.warmup.as_nanos().div_ceil(bin);
    let bins = (report.duration.as_nanos() / bin).saturating_sub(first);
    let scales: Vec<u64> = (0..)
        .map_while(|power| 10_u64.checked_pow(power))
        .flat_map(|decade| STEPS.map(|step| decade.saturating_mul(step)))
        .take_while(|&factor| bins / factor >= 2)
        .collect();
    let mut variations = Vec::new();
    for (flow, of) in series.flows.iter().enumerate() {
        let delivered: Vec<f64> = (first..first + bins)
            .map(|at| {
                let bytes = usize::try_from(at)
                    .ok()
                    .and_then(|at| of.delivered_bytes.get(at));
                bytes.map_or(0.0, |&bytes| bytes as f64)
            })
            .collect();
        variations.extend(scales.iter().map(|&factor| {
            let scale = series.bin * factor;
            let coefficient = metrics::rebin(&delivered, series.bin, scale)
                .and_then(|sums| metrics::coefficient_of_variation(&sums));
            Variation {
                flow,
                scale,
                intervals: bins / factor,
                coefficient: coefficient.ok(),
            }
        }));
    }
    variations
}
