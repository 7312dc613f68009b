//! Numbers and tables for people.

use std::fmt;

use comfy_table::{CellAlignment, ContentArrangement, presets};

use crate::numbers::thousands;

/// A table without frames.
pub struct Table(comfy_table::Table);

impl Table {
    /// A table with these headings.
    pub fn new<T: Into<String>>(header: impl IntoIterator<Item = T>) -> Self {
        let mut table = comfy_table::Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(header.into_iter().map(Into::into).collect::<Vec<String>>());
        Self(table)
    }

    /// Aligns a column of numbers to the right.
    pub fn right(&mut self, column: usize) {
        if let Some(column) = self.0.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.add_row(cells.into_iter().collect::<Vec<_>>());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, line) in self.0.lines().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            // Cells have a space on each side.
            let line = line.strip_prefix(' ').unwrap_or(&line);
            f.write_str(line.trim_end())?;
        }
        Ok(())
    }
}

/// A count with its noun.
pub fn plural(count: usize, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", thousands(count as u64))
}
