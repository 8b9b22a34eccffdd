//! Virtual drives of a server: requests for each second of processor time that the run itself takes.

use crate::Digest;
use anyhow::Result;
use flashyard_scenario::{NoFiles, resolve};
use flashyard_server::Stack;
use flashyard_server::room::measure_stack;
use flashyard_units::Named;
use std::time::Instant;

const SCENARIO: &str = include_str!("../../../../../scenarios/local-storage/scenario.toml");

/// A second of virtual time behind each stack, and a quarter of one of eight virtual drives.
pub(crate) fn measure(digest: &mut Digest) -> Result<()> {
    for (stack, drives, measured) in
        [(Stack::Ristretto, 1, "1 s"), (Stack::Latte, 1, "1 s"), (Stack::Latte, 8, "250 ms")]
    {
        let settings = [
            format!("designs=[\"{}\"]", stack.name()),
            format!("server.virtual_drives={drives}"),
            format!("run.measure={measured}"),
        ];
        let scenario = resolve(SCENARIO, "benchmark", &settings, &NoFiles)?.scenario;
        let mut first = None;
        // Drives are filled and caches warmed before the first events.
        let mut observer = |_: f64| {
            first.get_or_insert_with(Instant::now);
            true
        };
        let figures = measure_stack(&scenario, stack, &NoFiles, &mut observer)?;
        let seconds = first.map_or(f64::INFINITY, |first| first.elapsed().as_secs_f64());
        println!(
            "  {:9} x {drives} {:9.0} requests/s  {:5.2} M events/s  {:4.1} events a request",
            stack.name(),
            figures.requests as f64 / seconds,
            figures.events as f64 / seconds / 1e6,
            figures.events as f64 / figures.requests as f64,
        );
        digest.add(figures.ios());
        digest.add(figures.latency().max_us().to_bits());
    }
    Ok(())
}
