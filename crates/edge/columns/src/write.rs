//! Columns to a Parquet file.

use crate::table::{Column, Field, Kind, TableError, Values};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use std::io::Write;
use std::sync::Arc;

/// Level of zstd: higher ones take several times as long for a few per cent.
const ZSTD_LEVEL: i32 = 3;

/// A Parquet file in the making.
pub struct TableWriter<W: Write + Send> {
    kinds: Vec<Kind>,
    file: SerializedFileWriter<W>,
}

impl<W: Write + Send> TableWriter<W> {
    /// A file of `fields` that is written to `out`.
    ///
    /// Errors: those of `out`.
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
    /// Errors: those of the output. Panics on columns that are not the fields'.
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
    /// Errors: those of the output.
    pub fn finish(self) -> Result<W, TableError> {
        Ok(self.file.into_inner()?)
    }
}

/// Writes a table that is in memory, as one row group, with lines of metadata.
///
/// Errors: those of the output. Panics on columns of different lengths.
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
