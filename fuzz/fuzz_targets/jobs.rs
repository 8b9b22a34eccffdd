//! Any text as a job file of fio: it is read, or refused in words.

#![no_main]

use flashyard_workload::fio::FioJobs;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = FioJobs::parse(text) {
        assert!(!error.to_string().is_empty());
    }
});
