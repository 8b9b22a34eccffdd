//! Any text as a scenario, and as lines after a whole one: it is resolved, or refused in words.

#![no_main]

use flashyard_scenario::{NoFiles, resolve};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let whole = include_str!("../../scenarios/faults/scenario.toml");
    for text in [text.to_owned(), format!("{whole}\n{text}")] {
        if let Err(error) = resolve(&text, "fuzzed", &[], &NoFiles) {
            assert!(!error.to_string().is_empty());
        }
    }
});
