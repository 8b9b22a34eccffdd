//! Microbenchmarks: one pattern, size and depth at a time.

use super::number::{Number, mean_gain};
use super::record::RunRecord;
use super::runs::Run;
use crate::jbof::Design;
use flashyard_describe::reproduce::percent_above;

/// Request sizes in KiB. Source: [A] sheet xbof §6.
const SIZES_KIB: [u64; 3] = [64, 128, 256];

/// Drives that run the workload. Source: [P] sheet xbof §4.2.
const BUSY: usize = 6;

/// Mapping memory of the DRAM sweep in percent of what the whole map needs. Source: [P] sheet xbof §7, row 33.
const MEMORY_PERCENT: [u32; 3] = [25, 50, 75];

pub(super) fn numbers() -> Vec<Number> {
    let mut numbers = vec![
        shrunk("shrunk-64k-throughput", SHRUNK_64K, |figures| figures.throughput() / BUSY as f64 / 1e9),
        shrunk("shrunk-64k-processor", SHRUNK_64K, processor_percent),
        shrunk("shrunk-64k-flash", SHRUNK_64K, flash_percent),
        shrunk("shrunk-4k-processor", Run::SmallWrites, processor_percent),
        shrunk("shrunk-4k-flash", Run::SmallWrites, flash_percent),
        Number::of("oc-knee", (1..=6).map(Run::OcScale).collect::<Vec<_>>(), knee),
        utilization("ssd-utilization"),
        utilization("xbof-processor-gain"),
    ];
    for design in [Design::Oc, Design::Shrunk, Design::Vh, Design::VhIdeal, Design::Xbof] {
        let id = format!("micro-throughput-{}", design.name());
        numbers.push(Number::of(id, against_conv(design), |figures| mean_gain(figures, RunRecord::throughput)));
    }
    for design in [Design::Oc, Design::Shrunk] {
        let id = format!("micro-latency-{}", design.name());
        numbers.push(Number::of(id, against_conv(design), |figures| mean_gain(figures, mean_us)));
    }
    for design in [Design::Oc, Design::Shrunk, Design::ProcH, Design::Xbof] {
        let misses = |figures: &[&RunRecord]| 100.0 * figures[0].mapping_miss_ratio;
        if design != Design::Xbof {
            numbers.push(Number::of(
                format!("random-4k-misses-{}", design.name()),
                [Run::Unloaded { design, read: true, kib: 4 }],
                misses,
            ));
        }
        let runs = [design, Design::Conv].map(|design| Run::Unloaded { design, read: true, kib: 4 });
        let id = format!("random-4k-latency-{}", design.name());
        numbers.push(Number::of(id, runs, |figures| mean_gain(figures, mean_us)));
    }
    for design in [Design::Shrunk, Design::Oc] {
        let runs = [design, Design::Conv].map(|design| Run::Unloaded { design, read: false, kib: 4 });
        let id = format!("random-4k-write-latency-{}", design.name());
        numbers.push(Number::of(id, runs, |figures| mean_gain(figures, mean_us)));
    }
    for percent in MEMORY_PERCENT {
        let runs = MEMORY_DESIGNS.map(|design| Run::Memory(design, percent));
        numbers.push(Number::of(format!("memory-{percent}-shrunk"), runs, |figures| mean_gain(figures, mean_us)));
    }
    let harvested = [Design::Xbof, Design::Conv].map(|design| MEMORY_PERCENT.map(|share| Run::Memory(design, share)));
    numbers.push(Number::of("memory-xbof", harvested.concat(), |figures| mean_gain(figures, mean_us)));
    numbers
}

const MEMORY_DESIGNS: [Design; 2] = [Design::Shrunk, Design::Conv];

/// Reads of a shrunk drive alone. Source: [P] sheet xbof §7, row 7.
const SHRUNK_64K: Run = Run::Micro { design: Design::Shrunk, read: true, sequential: true, kib: 64 };

fn shrunk(id: &str, run: Run, value: fn(&RunRecord) -> f64) -> Number {
    Number::of(id, [run], move |figures| value(figures[0]))
}

fn processor_percent(figures: &RunRecord) -> f64 {
    100.0 * figures.mean(BUSY, |drive| drive.processor_busy_share)
}

fn flash_percent(figures: &RunRecord) -> f64 {
    100.0 * figures.mean(BUSY, |drive| drive.flash_busy_share)
}

fn mean_us(figures: &RunRecord) -> f64 {
    figures.latency_mean_us
}

/// All microbenchmarks of a design, then those of Conv.
fn against_conv(design: Design) -> Vec<Run> {
    let mut runs = Vec::new();
    for design in [design, Design::Conv] {
        for (read, sequential) in [(true, true), (true, false), (false, true), (false, false)] {
            runs.extend(SIZES_KIB.map(|kib| Run::Micro { design, read, sequential, kib }));
        }
    }
    runs
}

/// Processor utilization of borrowers and lenders against Shrunk's.
fn utilization(id: &str) -> Number {
    let run = |design| Run::Micro { design, read: true, sequential: true, kib: 256 };
    let all = |figures: &RunRecord| figures.mean(figures.drives.len(), |drive| drive.processor_busy_share);
    Number::of(id, [run(Design::Xbof), run(Design::Shrunk)], move |figures| {
        percent_above(all(figures[0]), all(figures[1]))
    })
}

/// The fewest busy drives within 2 % of the throughput of the most.
fn knee(figures: &[&RunRecord]) -> f64 {
    let most = figures[figures.len() - 1].throughput();
    let enough = figures.iter().take_while(|figures| figures.throughput() < 0.98 * most).count();
    (enough + 1) as f64
}
