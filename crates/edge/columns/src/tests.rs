use crate::{Column, Field, Kind, TableReader, TableWriter, Values, write_table};
use proptest::prelude::*;
use std::fs::File;
use std::io::{Seek, Write};

const FIELDS: [Field<'_>; 5] = [
    Field { name: "small", kind: Kind::U32 },
    Field { name: "large", kind: Kind::U64 },
    Field { name: "share", kind: Kind::F64 },
    Field { name: "maybe_us", kind: Kind::OptionalF64 },
    Field { name: "name", kind: Kind::Text },
];

type Row = (u32, u64, f64, Option<f64>, String);

fn bytes(groups: &[Vec<Row>]) -> Vec<u8> {
    let mut table = TableWriter::new(Vec::new(), &FIELDS).expect("memory takes everything");
    for rows in groups {
        let small: Vec<u32> = rows.iter().map(|row| row.0).collect();
        let large: Vec<u64> = rows.iter().map(|row| row.1).collect();
        let share: Vec<f64> = rows.iter().map(|row| row.2).collect();
        let maybe: Vec<Option<f64>> = rows.iter().map(|row| row.3).collect();
        let name: Vec<&str> = rows.iter().map(|row| row.4.as_str()).collect();
        let columns = [
            Column::U32(&small),
            Column::U64(&large),
            Column::F64(&share),
            Column::OptionalF64(&maybe),
            Column::Text(&name),
        ];
        table.row_group(&columns).expect("memory takes everything");
    }
    table.metadata("rows", &groups.iter().map(Vec::len).sum::<usize>().to_string());
    table.finish().expect("memory takes everything")
}

fn reader(bytes: &[u8]) -> TableReader {
    let mut file = tempfile::tempfile().expect("a temporary file can be made");
    file.write_all(bytes).and_then(|()| file.rewind()).expect("it can be written");
    TableReader::new(file).expect("it is a table")
}

#[test]
fn unsigned_numbers_keep_their_highest_bit_and_nothing_stays_nothing() {
    let rows = vec![(u32::MAX, u64::MAX, -0.5, None, "b".to_owned()), (0, 0, 1.5, Some(2.0), "a".to_owned())];
    let table = reader(&bytes(&[rows]));
    assert_eq!((table.rows(), table.row_groups(), table.metadata("rows")), (2, 1, Some("2")));
    let expected = [
        Values::U32(vec![u32::MAX, 0]),
        Values::U64(vec![u64::MAX, 0]),
        Values::F64(vec![-0.5, 1.5]),
        Values::OptionalF64(vec![None, Some(2.0)]),
        Values::Text(vec!["b".to_owned(), "a".to_owned()]),
    ];
    assert_eq!(table.row_group(0).expect("it reads"), expected);
    assert_eq!(
        table.fields().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        FIELDS.map(|field| field.name)
    );
}

#[test]
fn a_small_table_is_written_at_once() {
    let columns = [("name", Values::Text(vec!["b".to_owned()])), ("n", Values::U32(vec![7]))];
    let table = reader(&write_table(Vec::new(), &columns, &[("key", "value")]).expect("memory takes everything"));
    assert_eq!(table.row_group(0).expect("it reads"), columns.map(|(_, values)| values));
    assert_eq!(table.metadata("key"), Some("value"));
    let nothing = [("n", Values::U32(vec![]))];
    assert_eq!(reader(&write_table(Vec::new(), &nothing, &[]).expect("memory takes everything")).row_groups(), 0);
}

#[test]
fn a_table_without_rows_has_its_columns() {
    let table = reader(&bytes(&[]));
    assert_eq!((table.rows(), table.fields().len(), table.metadata("rows")), (0, 5, Some("0")));
}

#[test]
fn a_full_disk_is_said_once() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no space left"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let written = write_table(Full, &[("n", Values::U32(vec![7]))], &[]);
    assert!(matches!(written.map(|_| ()), Err(error) if error.to_string() == "no space left"));
}

#[test]
fn what_is_no_table_is_refused() {
    let mut file = tempfile::tempfile().expect("a temporary file can be made");
    file.write_all(b"1,2,3\n").expect("it can be written");
    assert!(TableReader::new(file).is_err());
    let nothing: File = tempfile::tempfile().expect("a temporary file can be made");
    assert!(TableReader::new(nothing).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_was_written_is_read_and_the_same_rows_are_the_same_bytes(
        groups in prop::collection::vec(prop::collection::vec(
            (any::<u32>(), any::<u64>(), -1e9..1e9, prop::option::of(-1e9..1e9), "[a-c]{0,2}"), 1..60), 1..4),
    ) {
        let written = bytes(&groups);
        prop_assert_eq!(&written, &bytes(&groups));
        let table = reader(&written);
        prop_assert_eq!(table.row_groups(), groups.len());
        let all: Vec<&Row> = groups.iter().flatten().collect();
        let column = |name: &str| table.column(name).expect("it reads").expect("it is there");
        prop_assert_eq!(column("small"), Values::U32(all.iter().map(|row| row.0).collect()));
        prop_assert_eq!(column("large"), Values::U64(all.iter().map(|row| row.1).collect()));
        prop_assert_eq!(column("share"), Values::F64(all.iter().map(|row| row.2).collect()));
        prop_assert_eq!(column("maybe_us"), Values::OptionalF64(all.iter().map(|row| row.3).collect()));
        prop_assert_eq!(column("name"), Values::Text(all.iter().map(|row| row.4.clone()).collect()));
    }
}
