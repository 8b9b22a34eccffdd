//! A Parquet file of this crate's kinds back to columns.

use crate::table::{Kind, TableError, Values};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;

/// A Parquet file, read one row group at a time.
pub struct TableReader {
    file: SerializedFileReader<File>,
    fields: Vec<(String, Kind)>,
}

impl TableReader {
    /// Reads the footer of `file`.
    ///
    /// Errors: no Parquet file, or one with a column of another kind than ours.
    pub fn new(file: File) -> Result<Self, TableError> {
        let file = SerializedFileReader::new(file)?;
        let columns = file.metadata().file_metadata().schema_descr().columns();
        let fields = columns.iter().map(|column| Ok((column.name().to_owned(), kind_of(column)?)));
        let fields = fields.collect::<Result<_, TableError>>()?;
        Ok(Self { file, fields })
    }

    /// Names and kinds of the columns, in order.
    pub fn fields(&self) -> &[(String, Kind)] {
        &self.fields
    }

    /// Rows of the whole file.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// Row groups of the file.
    pub fn row_groups(&self) -> usize {
        self.file.num_row_groups()
    }

    /// The metadata line of this key.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        let lines = self.file.metadata().file_metadata().key_value_metadata()?;
        lines.iter().find(|line| line.key == key)?.value.as_deref()
    }

    /// The columns of the row group `index`, below [`row_groups`](Self::row_groups).
    ///
    /// Errors: a damaged file.
    pub fn row_group(&self, index: usize) -> Result<Vec<Values>, TableError> {
        let group = self.file.get_row_group(index)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let read = |(column, (_, kind)): (usize, &(String, Kind))| read(group.get_column_reader(column)?, *kind, rows);
        self.fields.iter().enumerate().map(read).collect()
    }

    /// The column `name` of the whole file; `None` when there is none.
    ///
    /// Errors: a damaged file.
    pub fn column(&self, name: &str) -> Result<Option<Values>, TableError> {
        let Some(column) = self.fields.iter().position(|(field, _)| field == name) else { return Ok(None) };
        let mut whole: Option<Values> = None;
        for index in 0..self.row_groups() {
            let values = self.row_group(index)?.swap_remove(column);
            match &mut whole {
                Some(before) => before.append(values),
                None => whole = Some(values),
            }
        }
        Ok(whole)
    }
}

fn kind_of(column: &ColumnDescriptor) -> Result<Kind, TableError> {
    let unsigned = |bits| column.logical_type_ref() == Some(&LogicalType::integer(bits, false));
    let text = column.logical_type_ref() == Some(&LogicalType::String);
    let optional = column.self_type().get_basic_info().repetition() == Repetition::OPTIONAL;
    match (column.physical_type(), optional) {
        (Physical::INT32, false) if unsigned(32) => Ok(Kind::U32),
        (Physical::INT64, false) if unsigned(64) => Ok(Kind::U64),
        (Physical::DOUBLE, false) => Ok(Kind::F64),
        (Physical::DOUBLE, true) => Ok(Kind::OptionalF64),
        (Physical::BYTE_ARRAY, false) if text => Ok(Kind::Text),
        (physical, _) => Err(TableError::UnknownType { name: column.name().to_owned(), found: format!("{physical}") }),
    }
}

fn read(reader: ColumnReader, kind: Kind, rows: usize) -> Result<Values, TableError> {
    Ok(match kind {
        Kind::U32 => {
            let (values, _) = read_typed::<Int32Type>(reader, rows)?;
            Values::U32(values.into_iter().map(i32::cast_unsigned).collect())
        }
        Kind::U64 => {
            let (values, _) = read_typed::<Int64Type>(reader, rows)?;
            Values::U64(values.into_iter().map(i64::cast_unsigned).collect())
        }
        Kind::F64 => Values::F64(read_typed::<DoubleType>(reader, rows)?.0),
        Kind::OptionalF64 => {
            let (values, levels) = read_typed::<DoubleType>(reader, rows)?;
            let mut values = values.into_iter();
            Values::OptionalF64(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
        }
        Kind::Text => {
            let (values, _) = read_typed::<ByteArrayType>(reader, rows)?;
            let text = |value: ByteArray| Ok(value.as_utf8()?.to_owned());
            Values::Text(values.into_iter().map(text).collect::<Result<_, ParquetError>>()?)
        }
    })
}

/// The values that are there, and for each row whether one is (1) or not (0).
fn read_typed<T: DataType>(reader: ColumnReader, rows: usize) -> Result<(Vec<T::T>, Vec<i16>), ParquetError> {
    let mut reader = get_typed_column_reader::<T>(reader);
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let (records, ..) = reader.read_records(rows - read, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::EOF(format!("a column ends after {read} of {rows} rows")));
        }
        read += records;
    }
    Ok((values, levels))
}
