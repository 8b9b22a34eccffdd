//! Traces: files as tables, and tables as the loads of runs.

use crate::table::{batch, field};
use crate::watch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_cast::display::array_value_to_string;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;
use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_trace_io::{AnalysisOptions, Format, OpenOptions, TraceError, TraceReader, analyze, open};
use flashyard_units::SimTime;
use flashyard_workbench::{Watch, trace_json};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3_arrow::PyTable;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Columns of a trace, as `flashyard trace convert` writes them.
const COLUMNS: [&str; 5] = ["time_ns", "operation", "offset_bytes", "length_bytes", "volume"];

/// Operations that a trace may have.
const OPERATIONS: [Operation; 4] = [Operation::Read, Operation::Write, Operation::Trim, Operation::Flush];

fn no_trace(error: &TraceError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn opened(file: &Path, format: Option<&str>) -> PyResult<TraceReader> {
    std::fs::metadata(file)?;
    let known = |name: &str| {
        let unknown = || PyValueError::new_err(format!("there is no format {name:?}, give one of {}", Format::names()));
        Format::by_name(name).ok_or_else(unknown)
    };
    let format = format.map(known).transpose()?;
    open(file, OpenOptions { format }).map_err(|error| no_trace(&error))
}

/// The character of a trace, as JSON.
#[pyfunction]
#[pyo3(signature = (file, format, progress))]
pub(crate) fn trace_info(
    py: Python<'_>,
    file: PathBuf,
    format: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let reader = opened(&file, format)?;
    let found = watch::beside(py, progress.as_ref(), |counter| {
        analyze(reader, AnalysisOptions::default(), &mut |_| !counter.stops())
    })?;
    let analysis = found.map_err(|error| no_trace(&error))?;
    let analysis = analysis.ok_or_else(|| PyKeyboardInterrupt::new_err("interrupted"))?;
    Ok(trace_json(&file, &analysis).to_string())
}

/// The requests of a trace file as a table.
#[pyfunction]
#[pyo3(signature = (file, format, progress))]
pub(crate) fn read_trace(
    py: Python<'_>,
    file: PathBuf,
    format: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<PyTable> {
    let reader = opened(&file, format)?;
    let found = watch::beside(py, progress.as_ref(), |counter| {
        reader.take_while(|_| !counter.stops()).collect::<Result<Vec<TraceRecord>, TraceError>>()
    })?;
    let records = found.map_err(|error| no_trace(&error))?;
    let times = UInt64Array::from_iter_values(records.iter().map(|record| record.arrival.as_ps() / 1_000));
    let operations = StringArray::from_iter_values(records.iter().map(|record| record.request.operation.name()));
    let offsets = UInt64Array::from_iter_values(records.iter().map(|record| record.request.offset_bytes));
    let lengths = UInt32Array::from_iter_values(records.iter().map(|record| record.request.len_bytes));
    let volumes = UInt32Array::from_iter_values(records.iter().map(|record| record.volume));
    let arrays: Vec<ArrayRef> =
        vec![Arc::new(times), Arc::new(operations), Arc::new(offsets), Arc::new(lengths), Arc::new(volumes)];
    let fields = COLUMNS.iter().zip(&arrays).map(|(name, array)| field(name, array.data_type().clone()));
    batch(fields.collect(), arrays)
}

/// The requests of a table: `operation`, `offset_bytes` and `length_bytes`, perhaps `time_ns` (all at once without it) and `volume`.
///
/// Errors: a column that is missing or has a value that is none.
pub(crate) fn records(table: PyTable) -> PyResult<Arc<[TraceRecord]>> {
    let (batches, _) = table.into_inner();
    let mut records = Vec::new();
    for batch in &batches {
        add(batch, &mut records)?;
    }
    if records.is_empty() {
        return Err(PyValueError::new_err("workload: the table has no rows"));
    }
    Ok(records.into())
}

fn add(batch: &RecordBatch, records: &mut Vec<TraceRecord>) -> PyResult<()> {
    let first = records.len();
    let times = column(batch, first, COLUMNS[0], &DataType::UInt64)?;
    let operations = needed(batch, first, COLUMNS[1], &DataType::Utf8)?;
    let offsets = needed(batch, first, COLUMNS[2], &DataType::UInt64)?;
    let lengths = needed(batch, first, COLUMNS[3], &DataType::UInt32)?;
    let volumes = column(batch, first, COLUMNS[4], &DataType::UInt32)?;
    let (operations, offsets) = (operations.as_string::<i32>(), offsets.as_primitive::<UInt64Type>());
    let lengths = lengths.as_primitive::<UInt32Type>();
    records.reserve(batch.num_rows());
    for row in 0..batch.num_rows() {
        let name = operations.value(row);
        let no_operation = || {
            let place = format!("row {} of the table", records.len());
            PyValueError::new_err(format!(
                "workload, {place}: there is no operation {name:?}, give read, write, trim or flush"
            ))
        };
        let operation = OPERATIONS.into_iter().find(|operation| operation.name() == name);
        let arrival_ns = times.as_ref().map_or(0, |times| times.as_primitive::<UInt64Type>().value(row));
        let too_late =
            || PyValueError::new_err(format!("workload: time_ns of {arrival_ns} is beyond the 213 days of a run"));
        let arrival = arrival_ns.checked_mul(1_000).map(SimTime::from_ps).ok_or_else(too_late)?;
        if let Some(before) = records.last().filter(|before| before.arrival > arrival) {
            return Err(PyValueError::new_err(format!(
                "workload, row {} of the table: time_ns goes back from {} to {arrival_ns}; sort the table by time_ns",
                records.len(),
                before.arrival.as_ps() / 1_000
            )));
        }
        records.push(TraceRecord {
            arrival,
            volume: volumes.as_ref().map_or(0, |volumes| volumes.as_primitive::<UInt32Type>().value(row)),
            request: BlockRequest {
                operation: operation.ok_or_else(no_operation)?,
                offset_bytes: offsets.value(row),
                len_bytes: lengths.value(row),
            },
        });
    }
    Ok(())
}

fn needed(batch: &RecordBatch, first: usize, name: &str, kind: &DataType) -> PyResult<ArrayRef> {
    let missing = || {
        PyValueError::new_err(format!(
            "workload: the table has no column {name}; it needs {}",
            COLUMNS[1..4].join(", ")
        ))
    };
    column(batch, first, name, kind)?.ok_or_else(missing)
}

/// A column as that type, if it is there; `first` is the row of the table that is the first of the batch.
fn column(batch: &RecordBatch, first: usize, name: &str, kind: &DataType) -> PyResult<Option<ArrayRef>> {
    let Some(array) = batch.column_by_name(name) else { return Ok(None) };
    let wrong = |row: usize, problem: String| {
        let row = first + row;
        PyValueError::new_err(format!("workload, row {row} of the table: column {name} {problem}"))
    };
    if let Some(row) = (0..array.len()).find(|&row| array.is_null(row)) {
        return Err(wrong(row, "has no value".to_owned()));
    }
    let text = |row: usize| array_value_to_string(array, row).unwrap_or_default();
    // A value that does not fit is none after a safe cast, which names its row so; fractions would be cut off.
    let cast = cast_with_options(array, kind, &CastOptions::default());
    let found = cast.map_err(|error| PyValueError::new_err(format!("workload: column {name}: {error}")))?;
    if let Some(row) = (0..found.len()).find(|&row| found.is_null(row)) {
        return Err(wrong(row, format!("is {}, give a value of {kind}", text(row))));
    }
    if array.data_type().is_floating() {
        let back = cast_with_options(&found, &DataType::Float64, &CastOptions::default());
        let given = cast_with_options(array, &DataType::Float64, &CastOptions::default());
        if let (Ok(back), Ok(given)) = (back, given) {
            let (back, given) = (back.as_primitive::<Float64Type>(), given.as_primitive::<Float64Type>());
            if let Some(row) = (0..found.len()).find(|&row| back.value(row) != given.value(row)) {
                return Err(wrong(row, format!("is {}, give a whole number", text(row))));
            }
        }
    }
    Ok(Some(found))
}
