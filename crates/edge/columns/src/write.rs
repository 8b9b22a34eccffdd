//! Columns to a Parquet file.

use crate::read::Values;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::io::Write;
use std::sync::Arc;

/// Level of zstd: higher ones take several times as long for a few per cent.
const ZSTD_LEVEL: i32 = 3;

/// What a column holds.
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

/// A column's name, with its unit last, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Name of the column.
    pub name: &'a str,
    /// What it holds.
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

/// Why a table cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// What the file system says.
    #[error(transparent)]
    File(std::io::Error),
    /// What is wrong with the content.
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
    /// Brings out the file system's word, which would be said twice otherwise.
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

/// A Parquet file in the making.
pub struct TableWriter<W: Write + Send> {
    kinds: Vec<Kind>,
    file: SerializedFileWriter<W>,
}

impl<W: Write + Send> TableWriter<W> {
    /// A file of `fields` that is written to `out`.
    ///
    /// Errors: what `out` says.
    pub fn new(out: W, fields: &[Field<'_>]) -> Result<Self, TableError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(concat!("flashyard ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let file = SerializedFileWriter::new(out, schema(fields)?, Arc::new(properties))?;
        Ok(Self { kinds: fields.iter().map(|field| field.kind).collect(), file })
    }

    /// Writes rows: a column for each field, in the fields' order, all of one length.
    ///
    /// Errors: what the output says. Panics on columns that are not the fields'.
    pub fn row_group(&mut self, columns: &[Column<'_>]) -> Result<(), TableError> {
        assert_eq!(columns.len(), self.kinds.len(), "a row group has a column for each field");
        for (index, (column, kind)) in columns.iter().zip(&self.kinds).enumerate() {
            assert_eq!(column.kind(), *kind, "column {index} is of another kind");
            assert_eq!(column.rows(), columns[0].rows(), "column {index} is of another length");
        }
        let mut group = self.file.next_row_group()?;
        for column in columns {
            let mut writer = group.next_column()?.expect("the schema has a column for each field");
            column.write(&mut writer)?;
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Adds a line of metadata to the file's end.
    pub fn metadata(&mut self, key: &str, value: &str) {
        self.file.append_key_value_metadata(KeyValue::new(key.to_owned(), value.to_owned()));
    }

    /// Writes the footer; the rows so far are the table.
    ///
    /// Errors: what the output says.
    pub fn finish(self) -> Result<W, TableError> {
        Ok(self.file.into_inner()?)
    }
}

/// Writes a table that is in memory, as one row group, with lines of metadata.
///
/// Errors: what the output says. Panics on columns of different lengths.
pub fn write_table<W: Write + Send>(
    out: W,
    columns: &[(&str, Values)],
    metadata: &[(&str, &str)],
) -> Result<W, TableError> {
    let fields: Vec<Field<'_>> = columns.iter().map(|(name, values)| Field { name, kind: values.kind() }).collect();
    let mut table = TableWriter::new(out, &fields)?;
    // Texts are borrowed as a list of slices, which must live somewhere.
    let texts: Vec<Vec<&str>> = columns.iter().map(|(_, values)| values.texts()).collect();
    let row_group: Vec<Column<'_>> =
        columns.iter().zip(&texts).map(|((_, values), text)| values.column(text)).collect();
    if row_group.first().is_some_and(|column| column.rows() > 0) {
        table.row_group(&row_group)?;
    }
    metadata.iter().for_each(|(key, value)| table.metadata(key, value));
    table.finish()
}

fn schema(fields: &[Field<'_>]) -> Result<TypePtr, ParquetError> {
    let unsigned = |bits| Some(LogicalType::integer(bits, false));
    let fields = fields.iter().map(|field| {
        let (physical, logical) = match field.kind {
            Kind::U32 => (Physical::INT32, unsigned(32)),
            Kind::U64 => (Physical::INT64, unsigned(64)),
            Kind::F64 | Kind::OptionalF64 => (Physical::DOUBLE, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if field.kind == Kind::OptionalF64 { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let builder = Type::primitive_type_builder(field.name, physical);
        builder.with_repetition(repetition).with_logical_type(logical).build().map(Arc::new)
    });
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields.collect::<Result<_, _>>()?).build()?))
}

impl Column<'_> {
    fn kind(&self) -> Kind {
        match self {
            Self::U32(_) => Kind::U32,
            Self::U64(_) => Kind::U64,
            Self::F64(_) => Kind::F64,
            Self::OptionalF64(_) => Kind::OptionalF64,
            Self::Text(_) => Kind::Text,
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::OptionalF64(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Parquet's unsigned numbers are the signed ones with the same bits.
    fn write(&self, writer: &mut SerializedColumnWriter<'_>) -> Result<usize, ParquetError> {
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
