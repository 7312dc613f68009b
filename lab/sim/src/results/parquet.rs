//! A directory of Parquet files.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::{Type, TypePtr};

use super::column::{Column, Table, Values, Visitor, signed};
use super::error::WriteError;
use super::json;
use super::partial::Partial;
use super::set::Metadata;
use super::tables::Tables;

/// The rows of a group. A reader can skip groups or read them in parallel, and a group bounds the
/// memory that writing takes.
const GROUP: usize = 1 << 17;

pub(super) fn write(
    tables: &Tables<'_>,
    metadata: &Metadata,
    path: &Path,
) -> Result<(), WriteError> {
    let partial = Partial::directory(path)?;
    tables.each(&mut Files {
        partial: &partial,
        metadata,
    })?;
    partial.finish()
}

struct Files<'a, 'p> {
    partial: &'p Partial<'a>,
    metadata: &'p Metadata,
}

impl Visitor for Files<'_, '_> {
    type Error = WriteError;

    fn visit<R>(&mut self, table: Table<'_, R>) -> Result<(), WriteError> {
        let mut writer = self.partial.create(&format!("{}.parquet", table.name))?;
        let target = writer.target;
        file(table, self.metadata, &mut writer.file)
            .map_err(|source| WriteError::parquet(target, source))?;
        writer.close()
    }
}

/// All tables, one after another, for tests of failures.
#[cfg(test)]
pub(super) struct InOneFile<'a, W> {
    pub(super) metadata: &'a Metadata,
    pub(super) out: &'a mut W,
    pub(super) path: &'a Path,
}

#[cfg(test)]
impl<W: Write + Send> Visitor for InOneFile<'_, W> {
    type Error = WriteError;

    fn visit<R>(&mut self, table: Table<'_, R>) -> Result<(), WriteError> {
        file(table, self.metadata, &mut *self.out)
            .map_err(|source| WriteError::parquet(self.path, source))
    }
}

/// One table as one file.
fn file<R>(
    mut table: Table<'_, R>,
    metadata: &Metadata,
    out: impl Write + Send,
) -> Result<(), ParquetError> {
    let mut entries: Vec<KeyValue> = metadata
        .entries
        .iter()
        .map(|(key, value)| KeyValue::new(format!("comity.{key}"), value.clone()))
        .collect();
    let mut units = Vec::new();
    json::units(&table, &mut units)?;
    entries.push(KeyValue::new(
        "comity.table".to_owned(),
        table.name.to_owned(),
    ));
    entries.push(KeyValue::new(
        "comity.units".to_owned(),
        String::from_utf8_lossy(&units).into_owned(),
    ));
    let properties = WriterProperties::builder()
        .set_created_by(format!("comity version {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(entries))
        .build();
    let mut writer = SerializedFileWriter::new(out, schema(&table)?, Arc::new(properties))?;
    loop {
        let rows: Vec<R> = table.rows.by_ref().take(GROUP).collect();
        if rows.is_empty() {
            break;
        }
        let mut group = writer.next_row_group()?;
        for column in &table.columns.0 {
            let Some(mut into) = group.next_column()? else {
                break;
            };
            fill(column, &rows, &mut into)?;
            into.close()?;
        }
        group.close()?;
    }
    writer.close().map(drop)
}

fn schema<R>(table: &Table<'_, R>) -> Result<TypePtr, ParquetError> {
    let fields = table.columns.0.iter().map(|column| {
        let (physical, logical) = match column.values {
            Values::Boolean(_) => (Physical::BOOLEAN, None),
            Values::Integer(_) | Values::Unsigned(_) => (Physical::INT64, None),
            Values::Number(_) => (Physical::DOUBLE, None),
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if column.is_optional {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        Type::primitive_type_builder(&column.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    });
    let fields = fields.collect::<Result<_, _>>()?;
    Type::group_type_builder(table.name)
        .with_fields(fields)
        .build()
        .map(Arc::new)
}

/// Writes one column of a group of rows.
fn fill<R>(
    column: &Column<'_, R>,
    rows: &[R],
    into: &mut SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    let optional = column.is_optional;
    match &column.values {
        Values::Boolean(read) => put::<BoolType>(optional, rows.iter().map(read), into),
        Values::Integer(read) => put::<Int64Type>(optional, rows.iter().map(read), into),
        Values::Number(read) => put::<DoubleType>(optional, rows.iter().map(read), into),
        Values::Unsigned(read) => {
            let values = rows.iter().map(|row| read(row).map(signed));
            put::<Int64Type>(optional, values, into)
        }
        Values::Text(read) => {
            // Successive rows often have the same text, and share one copy of it.
            let mut last = ByteArray::from("");
            let values = rows.iter().map(|row| {
                let text = read(row)?;
                if last.data() != text.as_bytes() {
                    last = ByteArray::from(&*text);
                }
                Some(last.clone())
            });
            put::<ByteArrayType>(optional, values, into)
        }
    }
}

fn put<T: DataType>(
    is_optional: bool,
    cells: impl Iterator<Item = Option<T::T>>,
    into: &mut SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    let mut levels = Vec::new();
    let mut values = Vec::new();
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    let levels = is_optional.then_some(&*levels);
    into.typed::<T>()
        .write_batch(&values, levels, None)
        .map(drop)
}
