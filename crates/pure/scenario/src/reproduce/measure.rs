//! What each published number is made of.

use super::{ALI_0, FUJI_0, Finished, MEMORY_PERCENT, MICRO_KIB, Run, SRC};
use crate::run::drive_price;
use flashyard_report::{Prices, Shares};
use flashyard_systems::jbof::{Design, DriveFigures, JbofFigures};
use flashyard_workload::table2::PUBLISHED;

/// The number called `id`, from finished runs or in closed form; `None` when a run is missing.
pub(super) fn measure(id: &str, finished: &[Finished], prices: &Prices, kept: Shares) -> Option<f64> {
    let shrunk_64k = || find(finished, Run::Micro { design: Design::Shrunk, read: true, sequential: true, kib: 64 });
    let busy = 6;
    match id {
        "bom-saving" => {
            let price = |design| drive_price(prices, 2.0, design, kept);
            Some(100.0 * (1.0 - price(Design::Xbof) / price(Design::Conv)))
        }
        "bom-compute-share-pcie5" => Some(compute_share(prices)),
        "bom-compute-share-pcie4" => {
            // [D] sheet §8.9: the controller price that makes the published share.
            Some(compute_share(&Prices { controller: 20.9, ..*prices }))
        }
        "shrunk-64k-throughput" => Some(shrunk_64k()?.throughput() / 6e9),
        "shrunk-64k-processor" => Some(100.0 * shrunk_64k()?.mean(busy, |drive| drive.processor_utilization)),
        "shrunk-64k-flash" => Some(100.0 * shrunk_64k()?.mean(busy, DriveFigures::flash_utilization)),
        "shrunk-4k-processor" => {
            Some(100.0 * find(finished, Run::SmallWrites)?.mean(busy, |drive| drive.processor_utilization))
        }
        "shrunk-4k-flash" => {
            Some(100.0 * find(finished, Run::SmallWrites)?.mean(busy, DriveFigures::flash_utilization))
        }
        "oc-knee" => oc_knee(finished),
        "xbof-processor-gain" => {
            let all = |design| {
                let run = Run::Micro { design, read: true, sequential: true, kib: 256 };
                find(finished, run).map(|figures| figures.mean(12, |drive| drive.processor_utilization))
            };
            Some(100.0 * (all(Design::Xbof)? / all(Design::Shrunk)? - 1.0))
        }
        "ali-0-cost-efficiency" => {
            let efficiency = |design| {
                let figures = find(finished, Run::Table2(design, ALI_0))?;
                Some(figures.throughput() / drive_price(prices, 2.0, design, kept))
            };
            Some(100.0 * (efficiency(Design::Xbof)? / efficiency(Design::Oc)? - 1.0))
        }
        "traces-throughput-oc" => traces(finished, Design::Oc, Design::Conv),
        "traces-throughput-shrunk" => traces(finished, Design::Shrunk, Design::Conv),
        "traces-throughput-vh" => traces(finished, Design::Vh, Design::Conv),
        "traces-gain-on-shrunk" => traces(finished, Design::Xbof, Design::Shrunk),
        "traces-gain-on-vh" => traces(finished, Design::Xbof, Design::Vh),
        "src-vh-ideal" => {
            let of = |design| find(finished, Run::Table2(design, SRC)).map(JbofFigures::throughput);
            Some(100.0 * (of(Design::VhIdeal)? / of(Design::Shrunk)? - 1.0))
        }
        "fuji-0-energy" => {
            // Over unlike spans of time: joules for each byte moved.
            let of = |design| {
                let figures = find(finished, Run::Table2(design, FUJI_0))?;
                Some(figures.energy().as_joules() / figures.bytes() as f64)
            };
            Some(100.0 * (of(Design::Xbof)? / of(Design::Conv)? - 1.0))
        }
        "cores-1-loss" => {
            let of = |design| find(finished, Run::Cores { design, cores: 1, busy: 4 }).map(JbofFigures::throughput);
            Some(100.0 * (1.0 - of(Design::Shrunk)? / of(Design::Conv)?))
        }
        "cores-2-xbof" => {
            let of = |design| find(finished, Run::Cores { design, cores: 2, busy: 4 }).map(JbofFigures::throughput);
            Some(100.0 * of(Design::Xbof)? / of(Design::Conv)?)
        }
        "cores-2-excess-lenders" => {
            let each = |busy: u32| {
                let run = Run::Cores { design: Design::Xbof, cores: 2, busy };
                find(finished, run).map(|figures| figures.throughput() / f64::from(busy))
            };
            Some(100.0 * (each(1)? / each(4)? - 1.0))
        }
        "memory-25-shrunk" => memory(finished, Design::Shrunk, 25),
        "memory-50-shrunk" => memory(finished, Design::Shrunk, 50),
        "memory-75-shrunk" => memory(finished, Design::Shrunk, 75),
        "memory-xbof" => {
            let each: Option<Vec<f64>> =
                MEMORY_PERCENT.iter().map(|&percent| memory(finished, Design::Xbof, percent)).collect();
            Some(each?.iter().sum::<f64>() / MEMORY_PERCENT.len() as f64)
        }
        _ => measure_family(id, finished),
    }
}

/// Numbers that exist for several designs: the design is the end of the id.
fn measure_family(id: &str, finished: &[Finished]) -> Option<f64> {
    let families = ["micro-throughput-", "micro-latency-", "random-4k-misses-", "random-4k-latency-"];
    let family = families.into_iter().find(|family| id.starts_with(family))?;
    let design = Design::by_name(&id[family.len()..])?;
    let small = |design| find(finished, Run::Small(design));
    let mean_us = |figures: &JbofFigures| figures.latency().mean_us();
    match family {
        "micro-throughput-" => mean_ratio(finished, design, JbofFigures::throughput),
        "micro-latency-" => mean_ratio(finished, design, mean_us),
        "random-4k-misses-" => Some(100.0 * small(design)?.mapping_miss_ratio()),
        _ => Some(100.0 * (mean_us(small(design)?) / mean_us(small(Design::Conv)?) - 1.0)),
    }
}

fn find(finished: &[Finished], run: Run) -> Option<&JbofFigures> {
    finished.iter().find(|entry| entry.0 == run).map(|entry| &entry.1)
}

/// Mean over sizes, patterns, reads and writes of a figure against Conv's, in percent above it.
fn mean_ratio(finished: &[Finished], design: Design, figure: impl Fn(&JbofFigures) -> f64) -> Option<f64> {
    let mut sum = 0.0;
    let mut count = 0.0;
    for (read, sequential) in [(true, true), (true, false), (false, true), (false, false)] {
        for kib in MICRO_KIB {
            let of = |design| find(finished, Run::Micro { design, read, sequential, kib });
            sum += figure(of(design)?) / figure(of(Design::Conv)?);
            count += 1.0;
        }
    }
    Some(100.0 * (sum / count - 1.0))
}

/// The fewest busy drives within 2 % of the throughput of six.
fn oc_knee(finished: &[Finished]) -> Option<f64> {
    let most = find(finished, Run::OcScale(6))?.throughput();
    (1..=6)
        .find(|&busy| find(finished, Run::OcScale(busy)).is_some_and(|figures| figures.throughput() >= 0.98 * most))
        .map(f64::from)
}

/// Controller and DRAM as a share of a full 4 TB drive, in percent.
fn compute_share(prices: &Prices) -> f64 {
    let whole = drive_price(prices, 4.0, Design::Conv, Shares { cores: 1.0, memory: 1.0 });
    let compute = prices.controller + 4.0 * prices.dram_per_gb;
    100.0 * compute / whole
}

/// Mean over Table 2 of the throughput against another design's, in percent above it.
fn traces(finished: &[Finished], design: Design, against: Design) -> Option<f64> {
    let mut sum = 0.0;
    for place in 0..PUBLISHED.len() {
        let of = |design| find(finished, Run::Table2(design, place)).map(JbofFigures::throughput);
        sum += of(design)? / of(against)?;
    }
    Some(100.0 * (sum / PUBLISHED.len() as f64 - 1.0))
}

/// Mean latency against Conv's with `percent` of the mapping memory, in percent above it.
fn memory(finished: &[Finished], design: Design, percent: u32) -> Option<f64> {
    let of = |design| find(finished, Run::Memory(design, percent)).map(|figures| figures.latency().mean_us());
    Some(100.0 * (of(design)? / of(Design::Conv)? - 1.0))
}
