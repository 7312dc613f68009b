//! Tables in memory, column by column, for readers that share memory.

use std::convert::Infallible;

use super::column::{Cell, Column, Table, Values as Readers, Visitor, signed};
use super::error::WriteError;
use super::meaning::meaning;
use super::set::ResultSet;
use super::tables::Tables;

/// A table in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnarTable {
    /// Its name.
    pub name: &'static str,
    /// The number of rows.
    pub rows: usize,
    /// The columns that some row fills, and those that every table has.
    pub columns: Vec<ColumnarColumn>,
}

/// One column of a table in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnarColumn {
    /// Its name.
    pub name: String,
    /// The unit of its values.
    pub unit: &'static str,
    /// What it means.
    pub meaning: String,
    /// Its values; rows without one hold zero, false or an empty text.
    pub values: ColumnarValues,
    /// Which rows have a value; `None` if all have one.
    pub validity: Option<Vec<bool>>,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnarValues {
    /// Yes or no.
    Boolean(Vec<bool>),
    /// Whole numbers. Counts are signed, so that differences do not wrap. A value beyond the range
    /// becomes the largest number.
    Integer(Vec<i64>),
    /// Numbers.
    Number(Vec<f64>),
    /// Texts, one after another.
    Text {
        /// The beginning of each text in `bytes`, and then the length of `bytes`.
        offsets: Vec<i64>,
        /// All texts, in UTF-8.
        bytes: Vec<u8>,
    },
}

/// One table of these results; `None` if there is no such table.
///
/// # Errors
/// [`WriteError::RepeatedAxis`] when a run has two values for one axis.
pub fn table(set: &ResultSet, name: &str) -> Result<Option<ColumnarTable>, WriteError> {
    let tables = Tables::new(set.runs.iter(), &set.scenario)?;
    let mut gatherer = Gatherer { name, table: None };
    // The gatherer leaves out columns that no row fills, and reads only the rows of this table.
    match tables.each_whole(&mut gatherer) {
        Ok(()) => Ok(gatherer.table),
        Err(never) => match never {},
    }
}

/// Gathers the table of one name.
struct Gatherer<'n> {
    name: &'n str,
    table: Option<ColumnarTable>,
}

impl Visitor for Gatherer<'_> {
    type Error = Infallible;

    fn visit<R>(&mut self, table: Table<'_, R>) -> Result<(), Infallible> {
        if table.name != self.name {
            return Ok(());
        }
        let mut builders: Vec<Builder> = table.columns.0.iter().map(Builder::new).collect();
        let mut rows = 0;
        for row in table.rows {
            rows += 1;
            for (builder, column) in builders.iter_mut().zip(&table.columns.0) {
                let cell = column.cell(&row);
                builder.is_filled |= column.is_filled_by(&cell);
                builder.push(cell);
            }
        }
        let columns = builders.into_iter().zip(&table.columns.0);
        let columns = columns.filter_map(|(builder, column)| {
            let is_filled = builder.is_filled || !column.may_be_empty();
            is_filled.then(|| ColumnarColumn {
                name: column.name.to_string(),
                unit: column.unit(),
                meaning: meaning(table.name, &column.name).unwrap_or_default(),
                values: builder.values,
                validity: builder.lacks_value.then_some(builder.validity),
            })
        });
        self.table = Some(ColumnarTable {
            name: table.name,
            rows,
            columns: columns.collect(),
        });
        Ok(())
    }
}

/// A column that grows row by row.
struct Builder {
    values: ColumnarValues,
    validity: Vec<bool>,
    is_filled: bool,
    lacks_value: bool,
}

impl Builder {
    fn new<R>(column: &Column<'_, R>) -> Self {
        Self {
            values: match column.values {
                Readers::Boolean(_) => ColumnarValues::Boolean(Vec::new()),
                Readers::Integer(_) | Readers::Unsigned(_) => ColumnarValues::Integer(Vec::new()),
                Readers::Number(_) => ColumnarValues::Number(Vec::new()),
                Readers::Text(_) => ColumnarValues::Text {
                    offsets: vec![0],
                    bytes: Vec::new(),
                },
            },
            validity: Vec::new(),
            is_filled: false,
            lacks_value: false,
        }
    }

    fn push(&mut self, cell: Cell<'_>) {
        let is_value = cell != Cell::Missing;
        self.lacks_value |= !is_value;
        self.validity.push(is_value);
        match (&mut self.values, cell) {
            (ColumnarValues::Boolean(values), cell) => {
                values.push(matches!(cell, Cell::Boolean(true)));
            }
            (ColumnarValues::Integer(values), cell) => values.push(match cell {
                Cell::Integer(value) => value,
                Cell::Unsigned(value) => signed(value),
                _ => 0,
            }),
            (ColumnarValues::Number(values), cell) => values.push(match cell {
                Cell::Number(value) => value,
                _ => 0.0,
            }),
            (ColumnarValues::Text { offsets, bytes }, cell) => {
                if let Cell::Text(text) = cell {
                    bytes.extend_from_slice(text.as_bytes());
                }
                offsets.push(bytes.len() as i64);
            }
        }
    }
}
