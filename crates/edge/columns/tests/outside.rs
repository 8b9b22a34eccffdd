//! Our tables as other people's readers see them: one of pyarrow and DuckDB must be there.

use flashyard_columns::{Column, Field, Kind, TableWriter};
use flashyard_conformance::parquet_reader;
use std::process::Command;

const FIELDS: [Field<'_>; 5] = [
    Field { name: "small", kind: Kind::U32 },
    Field { name: "large", kind: Kind::U64 },
    Field { name: "share", kind: Kind::F64 },
    Field { name: "maybe_us", kind: Kind::OptionalF64 },
    Field { name: "name", kind: Kind::Text },
];

/// Prints the names of the columns, and then their values row by row.
const SCRIPT: &str = r#"
import sys
path, reader = sys.argv[1:]
if reader == 'duckdb':
    import duckdb
    found = duckdb.sql("select * from read_parquet('" + path + "')")
    names, rows = found.columns, found.fetchall()
else:
    import pyarrow.parquet
    table = pyarrow.parquet.read_table(path)
    assert table.schema.metadata[b'flashyard.table'] == b'test', table.schema.metadata
    names, rows = table.column_names, zip(*table.to_pydict().values())
print(','.join(names))
for row in rows:
    print(','.join(str(value) for value in row))
"#;

#[test]
fn another_reader_finds_the_same_columns_and_rows() {
    let Some(reader) = parquet_reader("only our own reader has read our tables") else { return };
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let path = directory.path().join("table.parquet");
    let file = std::fs::File::create(&path).expect("it can be made");
    let mut table = TableWriter::new(file, &FIELDS).expect("it can be written");
    for (first, second) in [("a", "\u{e4}\u{1f4be}"), ("", "b")] {
        let columns = [
            Column::U32(&[u32::MAX, 0]),
            Column::U64(&[0, u64::MAX]),
            Column::F64(&[0.1, -2.5e300]),
            Column::OptionalF64(&[None, Some(0.25)]),
            Column::Text(&[first, second]),
        ];
        table.row_group(&columns).expect("it can be written");
    }
    table.metadata("flashyard.table", "test");
    table.finish().expect("it can be written");
    let output = Command::new("python3").args(["-c", SCRIPT]).arg(&path).arg(reader).output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = "small,large,share,maybe_us,name\n4294967295,0,0.1,None,a\n\
                    0,18446744073709551615,-2.5e+300,0.25,\u{e4}\u{1f4be}\n4294967295,0,0.1,None,\n\
                    0,18446744073709551615,-2.5e+300,0.25,b\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
