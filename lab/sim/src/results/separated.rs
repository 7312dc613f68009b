//! A directory of CSV files.

use std::io;
use std::path::Path;

use super::column::{Cell, Table, Visitor};
use super::error::WriteError;
use super::json;
use super::partial::{METADATA, Partial};
use super::set::Metadata;
use super::tables::Tables;

pub(super) fn write(
    tables: &Tables<'_>,
    metadata: &Metadata,
    path: &Path,
) -> Result<(), WriteError> {
    let mut partial = Partial::directory(path)?;
    let mut writer = partial.create(METADATA)?;
    json::object(tables, metadata, &mut writer.file)
        .map_err(|source| WriteError::io(path, source))?;
    writer.close()?;
    tables.each(&mut partial)?;
    partial.finish()
}

impl Visitor for Partial<'_> {
    type Error = WriteError;

    fn visit<R>(&mut self, table: Table<'_, R>) -> Result<(), WriteError> {
        let mut writer = self.create(&format!("{}.csv", table.name))?;
        let target = writer.target;
        rows(table, &mut writer.file).map_err(|source| WriteError::io(target, source))?;
        writer.close()
    }
}

/// All tables, one after another, for tests of failures.
#[cfg(test)]
pub(super) struct InOneFile<'a, W> {
    pub(super) out: &'a mut W,
    pub(super) path: &'a Path,
}

#[cfg(test)]
impl<W: io::Write> Visitor for InOneFile<'_, W> {
    type Error = WriteError;

    fn visit<R>(&mut self, table: Table<'_, R>) -> Result<(), WriteError> {
        rows(table, self.out).map_err(|source| WriteError::io(self.path, source))
    }
}

fn rows<R>(table: Table<'_, R>, out: &mut impl io::Write) -> io::Result<()> {
    use io::Write;
    let mut out = csv::Writer::from_writer(out);
    out.write_record(table.columns.0.iter().map(|column| column.name.as_bytes()))?;
    let mut field = Vec::new();
    for row in table.rows {
        for column in &table.columns.0 {
            field.clear();
            match column.cell(&row) {
                Cell::Boolean(value) => write!(field, "{value}")?,
                Cell::Integer(value) => write!(field, "{value}")?,
                Cell::Missing => {}
                // Unlike `Display`, this writes very large and very small numbers with powers of
                // ten.
                Cell::Number(value) => write!(field, "{value:?}")?,
                Cell::Text(text) => field.extend_from_slice(text.as_bytes()),
                Cell::Unsigned(value) => write!(field, "{value}")?,
            }
            out.write_field(&field)?;
        }
        out.write_record(None::<&[u8]>)?;
    }
    out.flush()
}
