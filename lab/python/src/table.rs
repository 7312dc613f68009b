//! Tables over the Arrow C stream interface, without a copy.

use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, LargeStringArray, RecordBatch,
    RecordBatchIterator,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use comity_sim::results::{ColumnarColumn, ColumnarTable, ColumnarValues};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A table whose columns other libraries can share.
#[pyclass(frozen, module = "comity._comity")]
pub(crate) struct Table {
    batch: RecordBatch,
}

impl Table {
    /// Takes the columns over as they lie in memory.
    pub(crate) fn new(table: ColumnarTable) -> PyResult<Self> {
        let mut fields = Vec::with_capacity(table.columns.len());
        let mut arrays = Vec::with_capacity(table.columns.len());
        for column in table.columns {
            let (field, array) = array(column).map_err(|error| refused(&error))?;
            fields.push(field);
            arrays.push(array);
        }
        let name = [("table".to_owned(), table.name.to_owned())];
        let schema = Arc::new(Schema::new_with_metadata(fields, name));
        let batch = RecordBatch::try_new(schema, arrays).map_err(|error| refused(&error))?;
        Ok(Self { batch })
    }
}

fn refused(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn array(column: ColumnarColumn) -> Result<(Field, ArrayRef), ArrowError> {
    let is_optional = column.validity.is_some();
    let nulls = column.validity.map(NullBuffer::from);
    let (kind, array): (_, ArrayRef) = match column.values {
        ColumnarValues::Boolean(values) => (
            DataType::Boolean,
            Arc::new(BooleanArray::new(values.into(), nulls)),
        ),
        ColumnarValues::Integer(values) => (
            DataType::Int64,
            Arc::new(Int64Array::try_new(ScalarBuffer::from(values), nulls)?),
        ),
        ColumnarValues::Number(values) => (
            DataType::Float64,
            Arc::new(Float64Array::try_new(ScalarBuffer::from(values), nulls)?),
        ),
        ColumnarValues::Text { offsets, bytes } => {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            let texts = LargeStringArray::try_new(offsets, Buffer::from_vec(bytes), nulls)?;
            (DataType::LargeUtf8, Arc::new(texts))
        }
    };
    let metadata = [
        ("unit".to_owned(), column.unit.to_owned()),
        ("meaning".to_owned(), column.meaning),
    ];
    let field = Field::new(column.name, kind, is_optional).with_metadata(metadata);
    Ok((field, array))
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Name, unit and meaning of each column.
    fn columns(&self) -> Vec<(String, String, String)> {
        let schema = self.batch.schema_ref();
        let of = |field: &Field, key| field.metadata().get(key).cloned().unwrap_or_default();
        let fields = schema.fields().iter();
        fields
            .map(|field| {
                (
                    field.name().clone(),
                    of(field, "unit"),
                    of(field, "meaning"),
                )
            })
            .collect()
    }

    /// The address of a column's values, for tests that nothing copies them.
    fn address(&self, column: &str) -> Option<usize> {
        let array = self.batch.column_by_name(column)?.to_data();
        array
            .buffers()
            .last()
            .map(|buffer| buffer.as_ptr() as usize)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema_ref().as_ref());
        let schema = schema.map_err(|error| refused(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows as an Arrow stream. A requested schema is a wish that may be ignored.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
