//! Timed runs: requests and page operations for each wall second.

use crate::Digest;
use anyhow::Result;
use flashyard_scenario::{NoFiles, resolve};
use flashyard_xbof::jbof::{Design, JbofFigures};
use flashyard_xbof::room::measure_design;
use std::time::Instant;

const R8: &str = include_str!("../../../../../scenarios/bench/r8.toml");
const XBOF: &str = include_str!("../../../../../scenarios/bench/xbof.toml");

fn run(text: &str, design: Design, overrides: &[&str]) -> Result<(JbofFigures, f64)> {
    let overrides: Vec<String> = overrides.iter().map(|&setting| setting.to_owned()).collect();
    let scenario = resolve(text, "benchmark", &overrides, &NoFiles)?.scenario;
    let began = Instant::now();
    let mut first = began;
    let mut started = false;
    let mut observer = |_share: f64| {
        // Preconditioning is over once the first events have been handled.
        if !started {
            started = true;
            first = Instant::now();
        }
        true
    };
    let figures = measure_design(&scenario, design, &NoFiles, &mut observer)?;
    Ok((figures, first.elapsed().as_secs_f64()))
}

fn report(name: &str, figures: &JbofFigures, seconds: f64, digest: &mut Digest) {
    let operations: u64 = figures.drives.iter().map(|drive| drive.medium.page_operations()).sum();
    let ios = figures.ios();
    println!(
        "  {name:22} {:9.0} requests/s  {:6.2} M page ops/s  {:5.2} M events/s  {:4.1} events a request  WAF {:.2}  simulated {:.0} IOPS",
        ios as f64 / seconds,
        operations as f64 / seconds / 1e6,
        figures.events as f64 / seconds / 1e6,
        figures.events as f64 / ios as f64,
        figures.drives[0].ftl.write_amplification(),
        ios as f64 / figures.window.as_secs_f64(),
    );
    digest.add(ios);
    digest.add(operations);
    digest.add(figures.window.as_ps());
    digest.add(figures.latency().max_us().to_bits());
}

/// Everything that flash and a controller can do: no key of R8 changes, and work is added.
const TODAY: [&str; 7] = [
    "drive.flash.independent_planes=true",
    "drive.flash.partial_transfers=true",
    "drive.flash.pages_per_program=2",
    "drive.flash.command_cycles=\"200 ns\"",
    "drive.flash.suspend={programs=true, erases=true, entry=\"20 us\", resume=\"30 us\", most=8}",
    "drive.pacing=rate",
    "drive.cycles_per_moved_slice=1000",
];

/// Workloads (a), (b) and (c) of the reference device as the other simulators have it.
pub(crate) fn r8(digest: &mut Digest) -> Result<()> {
    workloads(&[], digest)
}

/// These workloads with flash and a controller of today.
pub(crate) fn today(digest: &mut Digest) -> Result<()> {
    workloads(&TODAY, digest)
}

fn workloads(more: &[&str], digest: &mut Digest) -> Result<()> {
    let workloads: [(&str, &[&str]); 3] = [
        (
            "(a) 4K random read",
            &["workload.pattern=uniform", "workload.size=4 KiB", "workload.depth=64", "run.requests_per_drive=4000000"],
        ),
        (
            "(b) 128K seq. read",
            &[
                "workload.pattern=sequential",
                "workload.size=128 KiB",
                "workload.depth=32",
                "run.requests_per_drive=400000",
            ],
        ),
        (
            "(c) 4K random write",
            &[
                "workload.pattern=uniform",
                "workload.size=4 KiB",
                "workload.depth=64",
                "workload.read_share=0.0",
                "drive.overwritten=1.5",
                "run.requests_per_drive=16777216",
            ],
        ),
    ];
    for (name, overrides) in workloads {
        let (figures, seconds) = run(R8, Design::Conv, &[overrides, more].concat())?;
        report(name, &figures, seconds, digest);
    }
    Ok(())
}

/// One conventional drive of the same kind under the same load, behind the same host: the twelve-drive rate is
/// compared with it.
const ALONE: [&str; 3] = ["jbof.drives=1", "jbof.busy_drives=1", "run.requests_per_drive=1500000"];

/// Twelve drives, six of them busy, with harvesting.
pub(crate) fn xbof(digest: &mut Digest) -> Result<()> {
    for (name, overrides) in
        [("64K random read", &["workload.size=64 KiB"][..]), ("4K random read", &["workload.size=4 KiB"][..])]
    {
        let (figures, seconds) = run(XBOF, Design::Xbof, overrides)?;
        report(name, &figures, seconds, digest);
        let (figures, seconds) = run(XBOF, Design::Conv, &[overrides, &ALONE].concat())?;
        report(&format!("{name}, one"), &figures, seconds, digest);
    }
    Ok(())
}
