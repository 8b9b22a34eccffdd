//! Every way in which a trace can be wrong gets one clear error with its place.

use flashyard_trace_io::{Format, OpenOptions, TraceError, open};
use proptest::prelude::*;
use std::io::Write;
use std::path::Path;

fn file(content: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(content).expect("it can be written");
    file
}

fn read(path: &Path) -> Result<usize, TraceError> {
    open(path, OpenOptions::default())?.try_fold(0, |rows, record| record.map(|_| rows + 1))
}

fn error_of(content: &[u8]) -> String {
    read(file(content).path()).expect_err("it is wrong").to_string()
}

const ROW: &str = "128166385295514663,hm,0,Write,9056014336,2048,2833\n";

#[test]
fn a_missing_file_is_named() {
    let message = read(Path::new("/nowhere/trace.csv")).expect_err("it is missing").to_string();
    assert!(message.contains("/nowhere/trace.csv: cannot be opened"), "{message}");
}

#[test]
fn an_empty_file_says_so() {
    assert!(error_of(b"").contains("holds no rows"));
    assert!(error_of(b"\n\n").contains("holds no rows"));
}

#[test]
fn a_bad_row_is_named_with_line_and_accepted_form() {
    let message = error_of(format!("{ROW}{ROW}128166385295514663,hm,0,Wrote,1,2,3\n").as_bytes());
    assert!(
        message.contains(":3:") && message.contains("neither Read nor Write") && message.contains("a row is"),
        "{message}"
    );
}

#[test]
fn a_second_format_in_one_file_is_a_bad_row() {
    let content = format!("{}0.000 0 200626176 4096 0\n", ROW.repeat(300));
    assert!(error_of(content.as_bytes()).contains(":301:"));
}

#[test]
fn an_unknown_format_lists_the_known_ones() {
    let message = error_of(b"once upon a time\n");
    assert!(message.contains(":1:") && message.contains("msr") && message.contains("disksim-ns"), "{message}");
}

#[test]
fn binary_is_not_text() {
    assert!(error_of(&[7, 0, 1, 255, 10, 3]).contains("not text"));
}

#[test]
fn a_truncated_compressed_file_says_after_which_line() {
    let whole = zstd::encode_all(ROW.repeat(20_000).as_bytes(), 1).expect("it can be compressed");
    let message = error_of(&whole[..whole.len() - 10]);
    assert!(message.contains("truncated or damaged"), "{message}");
}

#[test]
fn gzip_and_zstd_read_like_plain_text() {
    let text = ROW.repeat(500);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).expect("memory takes all");
    let gzip = gzip.finish().expect("memory takes all");
    let zstd = zstd::encode_all(text.as_bytes(), 1).expect("it can be compressed");
    for content in [text.into_bytes(), gzip, zstd] {
        assert_eq!(read(file(&content).path()).expect("it is good"), 500);
    }
}

#[test]
fn rows_out_of_order_and_clock_jumps_follow_the_stated_rule() {
    let content = "0 0 8 8 1\n5000 0 8 9 1\n4000 0 8 8 1\n9000000000000000 0 8 8 1\n6000 0 8 8 1\n";
    let file = file(content.as_bytes());
    let options = OpenOptions { format: Format::by_name("disksim-ns") };
    let mut reader = open(file.path(), options).expect("it is good");
    let arrivals: Vec<u64> =
        (&mut reader).map(|record| record.expect("it is good").arrival.as_ps() / 1_000_000).collect();
    assert_eq!(arrivals, [0, 5, 5, 5, 6]);
    assert_eq!((reader.counts().reordered, reader.counts().jumped), (1, 1));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(content in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(file(&content).path());
    }

    #[test]
    fn no_text_makes_the_reader_panic(content in "[0-9,. \tRWQDead+-]{0,60}(\n[0-9,. \tRWQDead+-]{0,60}){0,8}") {
        let _ = read(file(content.as_bytes()).path());
    }
}
