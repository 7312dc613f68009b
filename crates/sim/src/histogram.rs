//! Distributions of times.
use crate::report::Summary;
use comity_units::Span;
/// placeholder
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}
impl Distribution {
    /// records
    pub fn record(&mut self, s: Span) {
        self.count += 1;
        self.sum += s.as_nanos();
        self.max = self.max.max(s.as_nanos());
        self.min = self.min.min(s.as_nanos());
    }
    /// memory
    pub fn memory(&self) -> usize {
        0
    }
    /// with zeros
    pub fn summary_with_zeros(&self, total: u64) -> Summary {
        let mut s = self.summary();
        s.mean = s.mean * s.count as f64 / total.max(1) as f64;
        s.count = total;
        s
    }
    /// summary
    pub fn summary(&self) -> Summary {
        Summary {
            count: self.count,
            mean: self.sum as f64 / 1e9 / self.count.max(1) as f64,
            ..Summary::default()
        }
    }
}
