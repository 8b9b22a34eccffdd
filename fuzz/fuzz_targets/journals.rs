//! Any bytes as a journal: as they are, or behind the head of a real one.
//!
//! What must hold: no panic, no more records than bytes, and errors in words.

#![no_main]

use flashyard_scenario::{NoFiles, resolve, live};
use flashyard_served::{JournalHeader, Session, read_journal};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static HEAD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text = include_str!("../../scenarios/faults/scenario.toml");
    let small = ["drive.blocks_per_plane=32", "drive.over_provisioning=0.5", "drive.filled=0.0"];
    let scenario = resolve(text, "faults", &small.map(str::to_owned), &NoFiles).expect("it is whole").scenario;
    let header = JournalHeader { seed: 1, scenario: "fuzzed".to_owned(), contents: None };
    Session::new(Box::new(live(&scenario, &NoFiles, None).expect("its enclosure can serve")), Some(&header)).take_journal()
});

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    let journal = if choice & 1 == 0 { bytes.to_vec() } else { [&HEAD[..], bytes].concat() };
    match read_journal(&journal) {
        Ok((_, records)) => assert!(records.count() <= journal.len()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
