//! Numbers and tables for people.

use std::fmt;

use comfy_table::{CellAlignment, ContentArrangement, presets};

use crate::numbers::thousands;

/// A table without frames.
pub(crate) struct Table(comfy_table::Table);

impl Table {
    pub(crate) fn new<T: Into<String>>(header: impl IntoIterator<Item = T>) -> Self {
        let mut table = comfy_table::Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(header.into_iter().map(Into::into).collect::<Vec<String>>());
        Self(table)
    }

    /// Puts the numbers of a column under each other.
    pub(crate) fn right(&mut self, column: usize) {
        if let Some(column) = self.0.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.add_row(cells.into_iter().collect::<Vec<_>>());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, line) in self.0.lines().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            // Cells have a space on either side.
            let line = line.strip_prefix(' ').unwrap_or(&line);
            f.write_str(line.trim_end())?;
        }
        Ok(())
    }
}

/// The unit that suits a set of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateUnit {
    pub(crate) name: &'static str,
    bps: f64,
}

impl RateUnit {
    /// The unit in which the largest rate has one to three digits before the point.
    pub(crate) fn of(rates: impl Iterator<Item = f64>) -> Self {
        let largest = rates.fold(0.0, f64::max);
        [("Gb/s", 1e9), ("Mb/s", 1e6), ("kb/s", 1e3)]
            .into_iter()
            .find(|(_, bps)| largest >= *bps)
            .map_or(
                Self {
                    name: "b/s",
                    bps: 1.0,
                },
                |(name, bps)| Self { name, bps },
            )
    }

    pub(crate) fn show(self, rate: f64) -> String {
        digits(rate / self.bps)
    }
}

/// Four digits, at most three of them behind the point.
pub(crate) fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1_000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// The value, or a dash without one.
pub(super) fn or_dash(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or("-".into(), show)
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 9.995 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.2}%")
    }
}

/// A count with its noun.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", thousands(count as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        assert_eq!(digits(1234.4), "1234");
        assert_eq!(digits(123.44), "123.4");
        assert_eq!(digits(12.3), "12.30");
        assert_eq!(digits(0.0), "0.000");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(12), "12");
        assert_eq!(percent(0.5), "50.0%");
        assert_eq!(percent(0.0123), "1.23%");
        assert_eq!(percent(0.0), "0.0%");
    }

    #[test]
    fn the_unit_suits_the_largest() {
        let unit = RateUnit::of([48_533.0, 1_500_000.0].into_iter());
        assert_eq!(unit.name, "Mb/s");
        assert_eq!(unit.show(48_533.0), "0.049");
        assert_eq!(RateUnit::of(std::iter::empty()).name, "b/s");
    }
}
