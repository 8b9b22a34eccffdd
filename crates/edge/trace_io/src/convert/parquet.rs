//! Parquet: a row a request, in the order of the trace.

use super::sink::{ConvertError, Sink};
use crate::reader::RowCounts;
use flashyard_blk::TraceRecord;
use flashyard_columns::{Column, Field, Kind, TableWriter};
use std::io::Write;

/// Rows of a group: some 3 MB in memory, and enough for columns to compress well.
const GROUP_ROWS: usize = 1 << 17;

const FIELDS: [Field<'_>; 5] = [
    // Arrival since the first row; fractions of a nanosecond are cut off.
    Field { name: "time_ns", kind: Kind::U64 },
    Field { name: "operation", kind: Kind::Text },
    Field { name: "offset_bytes", kind: Kind::U64 },
    Field { name: "length_bytes", kind: Kind::U32 },
    Field { name: "volume", kind: Kind::U32 },
];

pub(super) struct Parquet<W: Write + Send> {
    table: TableWriter<W>,
    times: Vec<u64>,
    operations: Vec<&'static str>,
    offsets: Vec<u64>,
    lengths: Vec<u32>,
    volumes: Vec<u32>,
}

impl<W: Write + Send> Parquet<W> {
    pub(super) fn new(out: W) -> Result<Self, ConvertError> {
        Ok(Self {
            table: TableWriter::new(out, &FIELDS)?,
            times: Vec::new(),
            operations: Vec::new(),
            offsets: Vec::new(),
            lengths: Vec::new(),
            volumes: Vec::new(),
        })
    }

    fn group(&mut self) -> Result<(), ConvertError> {
        self.table.row_group(&[
            Column::U64(&self.times),
            Column::Text(&self.operations),
            Column::U64(&self.offsets),
            Column::U32(&self.lengths),
            Column::U32(&self.volumes),
        ])?;
        self.times.clear();
        self.operations.clear();
        self.offsets.clear();
        self.lengths.clear();
        self.volumes.clear();
        Ok(())
    }
}

impl<W: Write + Send> Sink for Parquet<W> {
    fn row(&mut self, record: &TraceRecord) -> Result<(), ConvertError> {
        self.times.push(record.arrival.as_ps() / 1_000);
        self.operations.push(record.request.operation.name());
        self.offsets.push(record.request.offset_bytes);
        self.lengths.push(record.request.len_bytes);
        self.volumes.push(record.volume);
        if self.times.len() == GROUP_ROWS { self.group() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>, format: &str, counts: &RowCounts) -> Result<(), ConvertError> {
        if !self.times.is_empty() {
            self.group()?;
        }
        let counted = [
            ("rows", counts.rows),
            ("reordered_rows", counts.reordered),
            ("jumped_rows", counts.jumped),
            ("rounded_rows", counts.rounded),
            ("skipped_lines", counts.skipped),
            ("assumed_rows", counts.assumed),
        ];
        self.table.metadata("flashyard.trace.format", format);
        for (key, count) in counted {
            self.table.metadata(&format!("flashyard.trace.{key}"), &count.to_string());
        }
        self.table.finish()?.flush()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::{BlockRequest, Operation};
    use flashyard_columns::{TableReader, Values};
    use flashyard_units::SimTime;
    use std::io::Seek;

    #[test]
    fn rows_of_all_groups_and_the_counts_can_be_read_back() {
        let mut file = tempfile::tempfile().expect("a temporary file can be made");
        let copy = file.try_clone().expect("a second handle can be made");
        let mut sink = Box::new(Parquet::new(copy).expect("the file takes it"));
        let operations = [Operation::Read, Operation::Write, Operation::Trim, Operation::Flush];
        let rows = GROUP_ROWS as u64 + 3;
        for row in 0..rows {
            let operation = operations[row as usize % 4];
            let request = BlockRequest { operation, offset_bytes: u64::MAX - row, len_bytes: u32::MAX - row as u32 };
            let record = TraceRecord { arrival: SimTime::from_ps(row * 1_500), volume: row as u32 % 7, request };
            sink.row(&record).expect("the file takes it");
        }
        let counts = RowCounts { rows, reordered: 5, ..RowCounts::default() };
        sink.finish("msr", &counts).expect("the file takes it");
        file.rewind().expect("files can be rewound");
        let table = TableReader::new(file).expect("it is a table");
        assert_eq!((table.rows(), table.row_groups()), (rows, 2));
        assert_eq!(table.metadata("flashyard.trace.format"), Some("msr"));
        assert_eq!(table.metadata("flashyard.trace.reordered_rows"), Some("5"));
        let expected = [
            Values::U64((rows - 3..rows).map(|row| row * 3 / 2).collect()),
            Values::Text((rows - 3..rows).map(|row| operations[row as usize % 4].name().to_owned()).collect()),
            Values::U64((rows - 3..rows).map(|row| u64::MAX - row).collect()),
            Values::U32((rows - 3..rows).map(|row| u32::MAX - row as u32).collect()),
            Values::U32((rows - 3..rows).map(|row| row as u32 % 7).collect()),
        ];
        assert_eq!(table.row_group(1).expect("it reads"), expected);
    }
}
