//! Columns and their kinds, on the way to a file and back.

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers below 2^32.
    U32,
    /// Whole numbers below 2^64.
    U64,
    /// Floating-point numbers.
    F64,
    /// Floating-point numbers, or nothing.
    OptionalF64,
    /// Texts; few different ones are stored once each.
    Text,
}

/// A column's name, with its unit last, and the type of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Name of the column.
    pub name: &'a str,
    /// Type of its values.
    pub kind: Kind,
}

/// The values of one column in one row group.
#[derive(Clone, Copy, Debug)]
pub enum Column<'a> {
    /// For [`Kind::U32`].
    U32(&'a [u32]),
    /// For [`Kind::U64`].
    U64(&'a [u64]),
    /// For [`Kind::F64`].
    F64(&'a [f64]),
    /// For [`Kind::OptionalF64`].
    OptionalF64(&'a [Option<f64>]),
    /// For [`Kind::Text`].
    Text(&'a [&'a str]),
}

impl Column<'_> {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::U32(_) => Kind::U32,
            Self::U64(_) => Kind::U64,
            Self::F64(_) => Kind::F64,
            Self::OptionalF64(_) => Kind::OptionalF64,
            Self::Text(_) => Kind::Text,
        }
    }

    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::OptionalF64(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Parquet's unsigned numbers are the signed ones with the same bits.
    pub(crate) fn write(&self, writer: &mut SerializedColumnWriter<'_>) -> Result<usize, ParquetError> {
        match self {
            Self::U32(values) => {
                let values: Vec<i32> = values.iter().map(|value| value.cast_signed()).collect();
                writer.typed::<Int32Type>().write_batch(&values, None, None)
            }
            Self::U64(values) => {
                let values: Vec<i64> = values.iter().map(|value| value.cast_signed()).collect();
                writer.typed::<Int64Type>().write_batch(&values, None, None)
            }
            Self::F64(values) => writer.typed::<DoubleType>().write_batch(values, None, None),
            Self::OptionalF64(values) => {
                let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
                let present: Vec<f64> = values.iter().flatten().copied().collect();
                writer.typed::<DoubleType>().write_batch(&present, Some(&levels), None)
            }
            Self::Text(values) => {
                let values: Vec<ByteArray> = values.iter().map(|&value| ByteArray::from(value)).collect();
                writer.typed::<ByteArrayType>().write_batch(&values, None, None)
            }
        }
    }
}

/// The values of a column, on their own.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Of [`Kind::U32`].
    U32(Vec<u32>),
    /// Of [`Kind::U64`].
    U64(Vec<u64>),
    /// Of [`Kind::F64`].
    F64(Vec<f64>),
    /// Of [`Kind::OptionalF64`].
    OptionalF64(Vec<Option<f64>>),
    /// Of [`Kind::Text`].
    Text(Vec<String>),
}

impl Values {
    /// Their type.
    pub fn kind(&self) -> Kind {
        match self {
            Self::U32(_) => Kind::U32,
            Self::U64(_) => Kind::U64,
            Self::F64(_) => Kind::F64,
            Self::OptionalF64(_) => Kind::OptionalF64,
            Self::Text(_) => Kind::Text,
        }
    }

    /// The texts among them.
    pub(crate) fn texts(&self) -> Vec<&str> {
        match self {
            Self::Text(values) => values.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// The values, borrowed; `text` is borrowed already.
    pub(crate) fn column<'a>(&'a self, text: &'a Vec<&'a str>) -> Column<'a> {
        match self {
            Self::U32(values) => Column::U32(values),
            Self::U64(values) => Column::U64(values),
            Self::F64(values) => Column::F64(values),
            Self::OptionalF64(values) => Column::OptionalF64(values),
            Self::Text(_) => Column::Text(text),
        }
    }

    /// Appends values of the same column, which are of the same kind.
    pub(crate) fn append(&mut self, more: Self) {
        match (self, more) {
            (Self::U32(values), Self::U32(more)) => values.extend(more),
            (Self::U64(values), Self::U64(more)) => values.extend(more),
            (Self::F64(values), Self::F64(more)) => values.extend(more),
            (Self::OptionalF64(values), Self::OptionalF64(more)) => values.extend(more),
            (Self::Text(values), Self::Text(more)) => values.extend(more),
            _ => unreachable!("a column is of one kind in all row groups"),
        }
    }
}

/// Why a table cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// Error of the file system.
    #[error(transparent)]
    File(std::io::Error),
    /// Error in the content.
    #[error(transparent)]
    Parquet(ParquetError),
    /// A file that this crate did not write.
    #[error("column {name} is of a type that is not read here: {found}")]
    UnknownType {
        /// The column.
        name: String,
        /// Its type.
        found: String,
    },
}

impl From<ParquetError> for TableError {
    /// Brings out the file system's error, which would be repeated otherwise.
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(inner) => match inner.downcast() {
                Ok(inner) => Self::File(*inner),
                Err(inner) => Self::Parquet(ParquetError::External(inner)),
            },
            error => Self::Parquet(error),
        }
    }
}
