//! One JSON file.

use std::io::{self, Write};
use std::path::Path;

use super::column::{Cell, Table, Visitor};
use super::error::WriteError;
use super::partial::Partial;
use super::set::Metadata;
use super::tables::Tables;

pub(super) fn write(
    tables: &Tables<'_>,
    metadata: &Metadata,
    path: &Path,
) -> Result<(), WriteError> {
    let (partial, mut writer) = Partial::file(path)?;
    document(tables, metadata, &mut writer.file).map_err(|source| WriteError::io(path, source))?;
    writer.close()?;
    partial.finish()
}

/// The whole document.
pub(super) fn document(
    tables: &Tables<'_>,
    metadata: &Metadata,
    out: &mut impl Write,
) -> io::Result<()> {
    out.write_all(b"{\"metadata\":")?;
    object(tables, metadata, out)?;
    out.write_all(b",\n\"tables\":{")?;
    tables.each(&mut Rows { out, first: true })?;
    out.write_all(b"}}\n")
}

/// The metadata with the units of all columns, also those that no row fills.
pub(super) fn object(
    tables: &Tables<'_>,
    metadata: &Metadata,
    out: &mut impl Write,
) -> io::Result<()> {
    out.write_all(b"{")?;
    for (key, value) in &metadata.entries {
        string(out, key)?;
        out.write_all(b":")?;
        string(out, value)?;
        out.write_all(b",\n")?;
    }
    out.write_all(b"\"units\":{")?;
    tables.each_whole(&mut Units { out, first: true })?;
    out.write_all(b"}}")
}

/// The units of a table's columns as an object.
pub(super) fn units<R>(table: &Table<'_, R>, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{")?;
    for (at, column) in table.columns.0.iter().enumerate() {
        out.write_all(if at == 0 { b"" } else { b"," })?;
        string(out, &column.name)?;
        out.write_all(b":")?;
        string(out, column.unit())?;
    }
    out.write_all(b"}")
}

struct Units<'w, W> {
    out: &'w mut W,
    first: bool,
}

impl<W: Write> Visitor for Units<'_, W> {
    type Error = io::Error;

    fn visit<R>(&mut self, table: Table<'_, R>) -> io::Result<()> {
        self.out.write_all(if self.first { b"" } else { b",\n" })?;
        self.first = false;
        string(self.out, table.name)?;
        self.out.write_all(b":")?;
        units(&table, self.out)
    }
}

struct Rows<'w, W> {
    out: &'w mut W,
    first: bool,
}

impl<W: Write> Visitor for Rows<'_, W> {
    type Error = io::Error;

    fn visit<R>(&mut self, table: Table<'_, R>) -> io::Result<()> {
        self.out
            .write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        string(self.out, table.name)?;
        self.out.write_all(b":[")?;
        let mut keys = Vec::with_capacity(table.columns.0.len());
        for column in &table.columns.0 {
            let mut key = if keys.is_empty() {
                b"{".to_vec()
            } else {
                b",".to_vec()
            };
            string(&mut key, &column.name)?;
            key.push(b':');
            keys.push(key);
        }
        for (number, row) in table.rows.enumerate() {
            self.out
                .write_all(if number == 0 { b"\n" } else { b",\n" })?;
            for (key, column) in keys.iter().zip(&table.columns.0) {
                self.out.write_all(key)?;
                value(self.out, &column.cell(&row))?;
            }
            self.out.write_all(b"}")?;
        }
        self.out.write_all(b"]")
    }
}

fn value(out: &mut impl Write, cell: &Cell<'_>) -> io::Result<()> {
    match cell {
        Cell::Boolean(value) => write!(out, "{value}"),
        Cell::Integer(value) => write!(out, "{value}"),
        Cell::Missing => out.write_all(b"null"),
        Cell::Number(value) => Ok(serde_json::to_writer(out, value)?),
        Cell::Text(text) => string(out, text),
        Cell::Unsigned(value) => write!(out, "{value}"),
    }
}

fn string(out: &mut impl Write, text: &str) -> io::Result<()> {
    Ok(serde_json::to_writer(out, text)?)
}
