//! Columns as Arrow tables. Numbers move, and are not copied.

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use flashyard_columns::Values;
use flashyard_workbench::Table;
use pyo3::PyResult;
use pyo3_arrow::PyTable;
use std::sync::Arc;

fn array(values: Values) -> (ArrayRef, bool) {
    match values {
        Values::U32(values) => (Arc::new(UInt32Array::from(values)), false),
        Values::U64(values) => (Arc::new(UInt64Array::from(values)), false),
        Values::F64(values) => (Arc::new(Float64Array::from(values)), false),
        Values::OptionalF64(values) => (Arc::new(Float64Array::from(values)), true),
        Values::Text(values) => (Arc::new(StringArray::from(values)), false),
    }
}

/// A table of one batch.
pub(crate) fn arrow(table: Table<'_>) -> PyResult<PyTable> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (name, values) in table {
        let (array, nullable) = array(values);
        fields.push(Field::new(name.into_owned(), array.data_type().clone(), nullable));
        arrays.push(array);
    }
    batch(fields, arrays)
}

pub(crate) fn batch(fields: Vec<Field>, arrays: Vec<ArrayRef>) -> PyResult<PyTable> {
    let schema = Arc::new(Schema::new(fields));
    let failed = |error: ArrowError| crate::error::FlashyardError::new_err(error.to_string());
    let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(failed)?;
    PyTable::try_new(vec![batch], schema)
}

/// A field that has a value in each row.
pub(crate) fn field(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, false)
}
