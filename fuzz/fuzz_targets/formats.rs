//! Any bytes through every trace format: the first byte chooses the format, or detection, the others are the file.
//!
//! What must hold: no panic, requests that fit into 64 bits, arrivals that never go back, and errors that begin with
//! the file's name.

#![no_main]

use flashyard_trace_io::{Format, OpenOptions, open_stream};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    let formats: Vec<Format> = Format::all().collect();
    let format = formats.get(usize::from(*choice) % (formats.len() + 1)).copied();
    let opened = open_stream(Path::new("fuzzed"), Cursor::new(bytes.to_vec()), OpenOptions { format });
    let error = match opened {
        Err(error) => Some(error),
        Ok(reader) => {
            let mut latest = None;
            let mut wrong = None;
            for record in reader {
                match record {
                    Ok(record) => {
                        assert!(record.request.len_bytes > 0 && record.request.end_bytes().is_some());
                        assert!(Some(record.arrival) >= latest);
                        latest = Some(record.arrival);
                    }
                    Err(error) => wrong = Some(error),
                }
            }
            wrong
        }
    };
    assert!(error.is_none_or(|error| error.to_string().starts_with("fuzzed")));
});
