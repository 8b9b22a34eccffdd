//! Every kind of wrong trace gets one clear error with its place, and no bytes make a panic.

use flashyard_trace_io::{Format, OpenOptions, TraceError, TraceSummary, open, summarize};
use proptest::prelude::*;
use std::io::Write;
use std::path::Path;

const ROW: &str = "128166385295514663,hm,0,Write,9056014336,2048,2833\n";

fn file(content: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(content).expect("it can be written");
    file
}

fn named(format: Option<&str>) -> OpenOptions {
    OpenOptions { format: format.map(|name| Format::by_name(name).expect("a name of the table")) }
}

fn read(content: &[u8], format: Option<&str>) -> Result<TraceSummary, TraceError> {
    summarize(open(file(content).path(), named(format))?)
}

fn error_of(content: &[u8]) -> TraceError {
    read(content, None).expect_err("it is wrong")
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).expect("it can be compressed")
}

/// Rows that differ, so that compressed streams have some length.
fn rows(count: u64) -> String {
    let row =
        |index: u64| format!("{},hm,0,Write,{},2048,2833\n", 128_166_385_295 + index, index * 7_919 % 65_536 * 512);
    (0..count).map(row).collect()
}

#[test]
fn a_missing_file_is_named() {
    let error = open(Path::new("/nowhere/trace.csv"), OpenOptions::default()).map(|_| ()).expect_err("it is missing");
    assert!(matches!(error, TraceError::Open { .. }));
    assert!(error.to_string().contains("/nowhere/trace.csv: cannot be opened"), "{error}");
}

#[test]
fn a_directory_is_no_trace() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let error = open(directory.path(), OpenOptions::default()).map(|_| ()).expect_err("it is a directory");
    assert!(error.to_string().contains("it is a directory"), "{error}");
}

#[test]
fn an_empty_file_says_so_compressed_or_not() {
    for content in [b"".to_vec(), b"\n \r\n".to_vec(), zstd(b""), gzip(b"\n")] {
        assert!(matches!(error_of(&content), TraceError::Empty { .. }));
    }
    assert!(matches!(read(b"", Some("msr")), Err(TraceError::NoRows { format: "msr", lines: 0, .. })));
}

#[test]
fn a_file_without_the_wanted_event_says_how_much_it_holds() {
    let line = "8,16 3 5 0.000026421 3645 D R 4938888 + 256 [java]\n";
    let error = read(line.repeat(3).as_bytes(), Some("blkparse-queue")).expect_err("no Q event");
    assert!(error.to_string().contains("no rows of format blkparse-queue, only 3 other lines"), "{error}");
}

#[test]
fn a_bad_row_is_named_with_line_and_accepted_form() {
    let error = error_of(format!("{ROW}{ROW}128166385295514663,hm,0,Wrote,1,2,3\n").as_bytes()).to_string();
    for part in [":3:", "\"128166385295514663,hm,0,Wrote,1,2,3\"", "neither Read nor Write", "a row is timestamp"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[test]
fn a_bad_first_row_is_a_bad_row_and_not_an_unknown_format() {
    let error = error_of(format!("what is this\n{}", ROW.repeat(50)).as_bytes());
    assert!(matches!(error, TraceError::Row { line: 1, format: "msr", .. }), "{error}");
}

#[test]
fn blank_lines_count_in_line_numbers() {
    let error = error_of(format!("\n{ROW}\n\nbad\n{ROW}{ROW}").as_bytes());
    assert!(matches!(error, TraceError::Row { line: 5, .. }), "{error}");
    let error = error_of(b"\n\nonce upon a time\n");
    assert!(matches!(error, TraceError::UnknownFormat { line: 3, .. }), "{error}");
}

#[test]
fn a_second_format_in_one_file_is_a_bad_row() {
    let replay = "0.000 0 200626176 4096 0\n";
    for first in [1, 3, 300] {
        let error = error_of(format!("{}{replay}", ROW.repeat(first)).as_bytes());
        let line = u64::try_from(first).expect("small") + 1;
        assert!(matches!(error, TraceError::Row { line: found, .. } if found == line), "{error}");
    }
}

#[test]
fn a_row_cut_off_at_the_end_of_plain_text_is_a_bad_row() {
    let error = error_of(format!("{ROW}{}", &ROW[..30]).as_bytes());
    assert!(matches!(error, TraceError::Row { line: 2, .. }), "{error}");
}

#[test]
fn an_unknown_format_lists_the_known_ones() {
    let error = error_of(b"once upon a time\n").to_string();
    for part in [":1:", "\"once upon a time\"", "msr, web3", "disksim-ns", "blkparse-issue"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[test]
fn a_wrong_name_of_a_format_is_an_error_of_the_first_row() {
    let error = read(ROW.as_bytes(), Some("tencent")).expect_err("it is msr");
    assert!(matches!(error, TraceError::Row { line: 1, format: "tencent", .. }), "{error}");
}

#[test]
fn binary_is_not_text() {
    for content in [&[7, 0, 1, 255, 10, 3][..], &[0xFF, 0xFE, b'\n'], b"\0"] {
        assert!(matches!(error_of(content), TraceError::NotText { line: 1, .. }));
        assert!(matches!(error_of(&zstd(content)), TraceError::NotText { line: 1, .. }));
    }
}

#[test]
fn a_line_without_end_is_refused_in_bounded_memory() {
    // 256 MiB of nothing in a few kilobytes, read up to 64 KiB.
    let bomb = zstd(&vec![b' '; 1 << 28]);
    assert!(bomb.len() < 1 << 16);
    assert!(matches!(error_of(&bomb), TraceError::NotText { line: 1, .. }));
}

#[test]
fn a_line_of_the_longest_length_is_still_text() {
    let row = format!("{}{ROW}", " ".repeat((1 << 16) - ROW.len()));
    assert_eq!(read(row.as_bytes(), None).expect("it is good").counts.rows, 1);
}

#[test]
fn a_truncated_compressed_file_says_after_which_line() {
    let text = rows(20_000);
    for whole in [zstd(text.as_bytes()), gzip(text.as_bytes())] {
        for cut in [5, whole.len() / 2, whole.len() - 10, whole.len() - 1] {
            let error = error_of(&whole[..cut]);
            assert!(matches!(error, TraceError::Damaged { .. }), "cut at {cut}: {error}");
        }
        assert!(error_of(&whole[..whole.len() - 1]).to_string().contains("after this line"));
    }
}

#[test]
fn a_damaged_compressed_file_is_an_error_and_never_a_shorter_trace() {
    let text = rows(20_000);
    for whole in [gzip(text.as_bytes()), zstd(text.as_bytes())] {
        let mut damaged = whole.clone();
        let end = damaged.len() - 3;
        damaged.truncate(end);
        damaged.extend([0x55; 64]);
        assert!(read(&damaged, None).is_err());
    }
}

#[test]
fn gzip_and_zstd_read_like_plain_text_and_in_several_pieces() {
    let text = rows(500);
    let pieces = |pack: fn(&[u8]) -> Vec<u8>| [pack(text.as_bytes()), pack(text.as_bytes())].concat();
    let plain = read(text.repeat(2).as_bytes(), None).expect("it is good");
    assert_eq!(plain.counts.rows, 1_000);
    for content in [pieces(gzip), pieces(zstd), zstd(text.repeat(2).replace('\n', "\r\n").as_bytes())] {
        assert_eq!(read(&content, None).expect("it is good"), plain);
    }
}

#[test]
fn nothing_follows_an_error() {
    let file = file(format!("{ROW}bad\n{ROW}").as_bytes());
    let mut reader = open(file.path(), OpenOptions::default()).expect("it opens");
    assert!(matches!(reader.next(), Some(Ok(_))));
    assert!(matches!(reader.next(), Some(Err(_))));
    assert!(reader.next().is_none());
}

#[test]
fn rows_out_of_order_and_clock_jumps_follow_the_stated_rule() {
    let content = "0 0 8 8 1\n5000 0 8 9 1\n4000 0 8 8 1\n9000000000000000 0 8 8 1\n6000 0 8 8 1\n";
    let file = file(content.as_bytes());
    let mut reader = open(file.path(), named(Some("disksim-ns"))).expect("it is good");
    let arrivals: Vec<u64> =
        (&mut reader).map(|record| record.expect("it is good").arrival.as_ps() / 1_000_000).collect();
    assert_eq!(arrivals, [0, 5, 5, 5, 6]);
    assert_eq!((reader.counts().reordered, reader.counts().jumped), (1, 1));
}

#[test]
fn a_trace_longer_than_simulated_time_is_refused_with_its_row() {
    let content: String = (0..20_u64).map(|step| format!("{} 0 8 8 1\n", step * 20 * 86_400_000_000)).collect();
    let error = read(content.as_bytes(), Some("disksim-us")).expect_err("380 days");
    assert!(matches!(error, TraceError::Row { line: 12, .. }) && error.to_string().contains("213 days"), "{error}");
}

#[test]
fn requests_for_no_bytes_are_passed_over_and_counted() {
    let summary = read(b"0.5 0 8 0 1\n1.5 0 9 3 1\n", None).expect("it is good");
    assert_eq!((summary.counts.rows, summary.counts.skipped_no_range), (1, 1));
}

#[test]
fn discards_are_rows_without_bytes_or_footprint() {
    let line = |time: u64, flags: &str| format!("8,16 3 5 0.{time:09} 3645 Q {flags} 4938888 + 256 [java]\n");
    let summary = read([line(1, "D"), line(2, "WS"), line(3, "FN")].concat().as_bytes(), None).expect("it is good");
    assert_eq!((summary.counts.rows, summary.trims, summary.writes), (2, 1, 1));
    assert_eq!((summary.read_bytes, summary.write_bytes, summary.footprint_bytes), (0, 131_072, 131_072));
}

#[test]
fn the_printed_summary_has_a_unit_to_every_figure() {
    let text = read(ROW.repeat(2).as_bytes(), None).expect("it is good").to_string();
    for line in ["format          msr", "rows            2", "mean write      2.0 KiB", "duration        0.000 s"] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

/// Fields that rows of all formats are made of, some of them at the edges of what fits.
const FIELDS: &str = "(0|1|8|512|4096|0\\.5|1e9|1\\.82083E\\+11|18446744073709551615|4294967295|9999999999999999999\
    |8,16|4095,4294967295|Read|Write|R|WS|D|Q|C|\\+|hm|-1|é)";

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(content in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&content, None);
    }

    #[test]
    fn no_bytes_behind_a_magic_number_make_the_reader_panic(
        content in prop::collection::vec(any::<u8>(), 0..400),
        gzip in any::<bool>(),
    ) {
        let magic: &[u8] = if gzip { &[0x1F, 0x8B, 8, 0] } else { &[0x28, 0xB5, 0x2F, 0xFD] };
        let _ = read(&[magic, &content].concat(), None);
    }

    #[test]
    fn no_fields_make_any_format_panic(
        rows in prop::collection::vec((prop::collection::vec(FIELDS, 4..11), prop::sample::select(vec![",", " ", "\t"])), 1..5)
    ) {
        let lines: Vec<String> = rows.iter().map(|(fields, separator)| fields.join(separator)).collect();
        let file = file(lines.join("\n").as_bytes());
        for options in Format::all().map(Some).chain([None]).map(|format| OpenOptions { format }) {
            if let Ok(reader) = open(file.path(), options) {
                // Ends either way; every record that comes out fits.
                for record in reader.flatten() {
                    prop_assert!(record.request.len_bytes > 0 && record.request.end_bytes().is_some());
                }
            }
        }
    }

    #[test]
    fn a_damaged_byte_never_makes_the_reader_panic(position in 0..10_000_usize, byte in any::<u8>(), packing in 0..3_usize) {
        let text = rows(100);
        let mut content = vec![text.clone().into_bytes(), gzip(text.as_bytes()), zstd(text.as_bytes())].swap_remove(packing);
        let position = position % content.len();
        content[position] = byte;
        let _ = read(&content, None);
    }
}
