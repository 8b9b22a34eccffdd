//! Any bytes through every format of loads and stores: the first byte chooses the format, or detection, the others are the file.
//!
//! What must hold: no panic, and errors that begin with the file's name.

#![no_main]

use flashyard_trace_io::{AccessFormat, open_accesses_stream};
use flashyard_units::Named;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    let formats = AccessFormat::ALL;
    let format = formats.get(usize::from(*choice) % (formats.len() + 1)).copied();
    let error = match open_accesses_stream(Path::new("fuzzed"), Cursor::new(bytes.to_vec()), format) {
        Err(error) => Some(error),
        Ok(reader) => reader.filter_map(Result::err).last(),
    };
    assert!(error.is_none_or(|error| error.to_string().starts_with("fuzzed")));
});
