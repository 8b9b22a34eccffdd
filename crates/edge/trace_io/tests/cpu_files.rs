//! Binary block traces by processor: from any part of a set, the whole set is read, merged by time.

use flashyard_trace_io::{Event, Format, OpenOptions, TraceError, TraceReader, open, open_stream};
use proptest::prelude::*;
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

/// An event: nanoseconds, sector, lower half of the action.
fn event(ns: u64, sector: u64, action: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(0x6561_7407_u32.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(ns.to_le_bytes());
    bytes.extend(sector.to_le_bytes());
    for number in [4_096, (1 << 16) | action, 7, 0x80_0010, 0] {
        bytes.extend(u32::to_le_bytes(number));
    }
    bytes.extend([0, 0, 0, 0]);
    bytes
}

/// Queued events of a processor at every `step` ns from `first` on, at sectors of eight times the time.
fn queued(first: u64, step: u64, count: u64) -> Vec<u8> {
    (0..count).flat_map(|index| event(first + index * step, (first + index * step) * 8, 1)).collect()
}

fn sectors(reader: TraceReader) -> Vec<u64> {
    reader.map(|record| record.expect("it is good").request.offset_bytes / 512 / 8).collect()
}

fn opened(path: &Path) -> Result<TraceReader, TraceError> {
    open(path, OpenOptions::default())
}

fn error_of(path: &Path) -> String {
    opened(path).and_then(|reader| reader.collect::<Result<Vec<_>, _>>()).map(|_| ()).expect_err("wrong").to_string()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("it can be compressed")
}

fn archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        builder.append_data(&mut header, name, &bytes[..]).expect("memory takes all");
    }
    builder.into_inner().expect("memory takes all")
}

/// Three processors of four, compressed in three ways.
fn three() -> [(&'static str, Vec<u8>); 3] {
    [
        ("sda.blktrace.0", queued(0, 30, 5)),
        ("sda.blktrace.1.zst", zstd(&queued(10, 30, 5))),
        ("sda.blktrace.3.gz", gzip(&queued(20, 30, 5))),
    ]
}

const MERGED: [u64; 15] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140];

#[test]
fn any_file_or_the_directory_or_an_archive_stands_for_the_set() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let write = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).expect("it can be written");
    for (name, bytes) in three() {
        write(name, &bytes);
    }
    write("notes.txt", b"not a trace");
    let elsewhere = tempfile::tempdir().expect("a temporary directory can be made");
    let plain = archive(&three());
    let mut paths = vec![directory.path().to_owned()];
    paths.extend(three().map(|(name, _)| directory.path().join(name)));
    for (name, bytes) in [("a.tar", plain.clone()), ("a.tar.zst", zstd(&plain)), ("a.tar.gz", gzip(&plain))] {
        fs::write(elsewhere.path().join(name), bytes).expect("it can be written");
        paths.push(elsewhere.path().join(name));
    }
    for path in paths {
        let reader = opened(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(reader.format(), Format::blktrace(Event::Queue));
        assert_eq!(
            reader.note(),
            "read as blktrace-queue, 3 processor files merged by time, none for processor 2",
            "{}",
            path.display()
        );
        assert_eq!(sectors(reader), MERGED, "{}", path.display());
    }
}

#[test]
fn a_processor_without_events_and_one_that_goes_back_are_read() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let first = directory.path().join("sda.blktrace.0");
    fs::write(&first, b"").expect("it can be written");
    let back = [event(50, 50 * 8, 1), event(20, 20 * 8, 1)].concat();
    fs::write(directory.path().join("sda.blktrace.1"), back).expect("it can be written");
    fs::write(directory.path().join("sda.blktrace.2"), queued(30, 30, 2)).expect("it can be written");
    let mut reader = opened(&first).expect("its siblings hold events");
    let records: Vec<_> = (&mut reader).map(|record| record.expect("it is good")).collect();
    let times: Vec<u64> = records.iter().map(|record| record.arrival.as_ps() / 1_000).collect();
    let places: Vec<u64> = records.iter().map(|record| record.request.offset_bytes / 512 / 8).collect();
    assert_eq!((places, times), (vec![30, 50, 20, 60], vec![0, 20, 20, 30]));
    assert_eq!(reader.counts().reordered, 1);
}

#[test]
fn the_earliest_event_of_the_set_is_counted_or_the_one_that_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let first = directory.path().join("sda.blktrace.0");
    fs::write(&first, event(9, 8, 8)).expect("it can be written");
    fs::write(directory.path().join("sda.blktrace.1"), [event(5, 8, 7), event(6, 8, 2)].concat()).expect("it can be");
    let mut reader = opened(&first).expect("it is good");
    assert_eq!(reader.format().name(), "blktrace-issue");
    assert_eq!((&mut reader).count(), 1);
    assert_eq!((reader.counts().skipped, reader.counts().skipped_other_event), (2, 2));
    let named = OpenOptions { format: Some(Format::blktrace(Event::Complete)) };
    assert_eq!(open(&first, named).expect("it is good").count(), 1);
    let error = open(&first, OpenOptions { format: Some(Format::blktrace(Event::Queue)) });
    let error = error.expect("it opens").next().expect("an error").expect_err("no such event").to_string();
    assert!(error.contains("no rows of format blktrace-queue, only 3 other lines"), "{error}");
}

#[test]
fn a_set_that_is_none_is_explained() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let write = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).expect("it can be written");
    assert!(error_of(directory.path()).contains("it is a directory without files such as sda.blktrace.0"));
    write("sda.blktrace.0", &queued(0, 1, 2));
    write("sda.blktrace.0.zst", &zstd(&queued(0, 1, 2)));
    assert!(error_of(directory.path()).contains("are both of processor 0; keep one"));
    fs::remove_file(directory.path().join("sda.blktrace.0.zst")).expect("it is there");
    write("sdb.blktrace.0", &queued(0, 1, 3));
    assert!(error_of(directory.path()).contains("several traces, such as sda and sdb"));
    // Named by a file, each is its own trace.
    assert_eq!(opened(&directory.path().join("sdb.blktrace.0")).expect("it is good").count(), 3);
    let msr = OpenOptions { format: Format::by_name("msr") };
    let error = open(directory.path(), msr).map(|_| ()).expect_err("two traces");
    assert!(matches!(error, TraceError::CpuFiles { .. }), "{error}");
    write("other.tar", &archive(&[("readme.txt", b"no trace".to_vec())]));
    assert!(error_of(&directory.path().join("other.tar")).contains("an archive without files such as sda.blktrace.0"));
    write("two.tar", &archive(&[("n1/sda.blktrace.0", queued(0, 1, 1)), ("n2/sda.blktrace.0", queued(0, 1, 1))]));
    assert!(error_of(&directory.path().join("two.tar")).contains("n1/sda and n2/sda"));
}

#[test]
fn an_error_names_the_file_and_the_byte() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let write = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).expect("it can be written");
    let cut = queued(5, 10, 4)[..48 * 3 + 20].to_vec();
    write("sda.blktrace.0", &queued(0, 10, 4));
    write("sda.blktrace.1", &cut);
    let error = error_of(&directory.path().join("sda.blktrace.0"));
    assert!(error.contains("sda.blktrace.1: byte 144: ") && error.contains("ends after 20 bytes"), "{error}");
    let members = [("sda.blktrace.0", queued(0, 10, 4)), ("sda.blktrace.1", [queued(5, 10, 1), vec![7; 48]].concat())];
    write("set.tar", &archive(&members));
    let error = error_of(&directory.path().join("set.tar"));
    assert!(error.contains("set.tar:sda.blktrace.1: byte 48: ") && error.contains("magic number"), "{error}");
    // An archive that ends inside a member, and inside a compressed stream.
    let whole = archive(&members);
    write("cut.tar", &whole[..512 + 100]);
    assert!(error_of(&directory.path().join("cut.tar")).contains("it ends inside sda.blktrace.0"));
    let packed = zstd(&whole);
    write("cut.tar.zst", &packed[..packed.len() / 2]);
    assert!(error_of(&directory.path().join("cut.tar.zst")).contains("cut.tar.zst"));
}

#[test]
fn a_stream_holds_the_events_of_one_file_and_no_archive() {
    let path = Path::new("stdin");
    let reader = open_stream(path, Cursor::new(zstd(&queued(0, 10, 4))), OpenOptions::default()).expect("it is good");
    assert_eq!(sectors(reader), [0, 10, 20, 30]);
    let (directory, other) = (tempfile::tempdir().expect("a temporary directory can be made"), "events.bin");
    fs::write(directory.path().join(other), queued(0, 10, 4)).expect("it can be written");
    let reader = opened(&directory.path().join(other)).expect("its content tells it");
    assert_eq!(reader.note(), "read as blktrace-queue, events of one file");
    assert_eq!(sectors(reader), [0, 10, 20, 30]);
    let archive = Cursor::new(archive(&three()));
    let error = open_stream(path, archive, OpenOptions::default()).map(|_| ()).expect_err("an archive");
    assert!(error.to_string().contains("an archive in a stream"), "{error}");
}

#[test]
fn no_damage_to_an_archive_makes_the_reader_panic() {
    let whole = archive(&three());
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let path = directory.path().join("damaged.tar");
    for position in (0..whole.len()).step_by(37) {
        let mut damaged = whole.clone();
        damaged[position] ^= 0x41;
        fs::write(&path, &damaged).expect("it can be written");
        if let Ok(reader) = opened(&path) {
            let rows = reader.flatten().count();
            assert!(rows <= MERGED.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn merged_events_are_those_of_a_stable_sort(
        cpus in prop::collection::vec(prop::collection::vec((0..40_u64, any::<bool>()), 0..30), 1..6)
    ) {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let mut expected = Vec::new();
        for (cpu, mut events) in cpus.into_iter().enumerate() {
            events.sort_unstable();
            let mut bytes = Vec::new();
            for (index, (ns, queued)) in events.into_iter().enumerate() {
                let sector = (cpu as u64) << 20 | (index as u64) << 10 | ns;
                bytes.extend(event(ns, sector * 8, if queued { 1 } else { 7 }));
                if queued {
                    expected.push((ns, sector));
                }
            }
            fs::write(directory.path().join(format!("sda.blktrace.{cpu}")), bytes).expect("it can be written");
        }
        // In order of processors so far, and a stable sort keeps that on ties.
        expected.sort_by_key(|(ns, _)| *ns);
        let named = OpenOptions { format: Some(Format::blktrace(Event::Queue)) };
        let reader = open(directory.path(), named).expect("it opens");
        let found: Result<Vec<u64>, _> =
            reader.map(|record| record.map(|record| record.request.offset_bytes / 512 / 8)).collect();
        match found {
            Ok(found) => prop_assert_eq!(found, expected.iter().map(|(_, sector)| *sector).collect::<Vec<_>>()),
            Err(error) => prop_assert!(expected.is_empty(), "{}", error),
        }
    }
}
