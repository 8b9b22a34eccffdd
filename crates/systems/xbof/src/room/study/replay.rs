//! The workloads of Table 2, and sweeps on one of them.

use super::super::groups::drive_price;
use super::number::{Number, mean_gain, throughput_of};
use super::record::{DriveRecord, RunRecord};
use super::runs::{ALI_0, ALI_1, FUJI_0, Run, SRC, TENCENT};
use crate::jbof::Design;
use flashyard_describe::reproduce::percent_above;
use flashyard_report::{Prices, Shares};
use flashyard_workload::table2::PUBLISHED;

/// Cores of Conv [P], in which a run of the core sweep with Conv is listed.
const ALL_CORES: u32 = 6;

pub(super) fn numbers(prices: Prices, kept: Shares) -> Vec<Number> {
    let all: Vec<usize> = (0..PUBLISHED.len()).collect();
    let tencent_reads = [TENCENT[0], TENCENT[2]];
    let efficiency = move |figures: &RunRecord| figures.throughput() / drive_price(&prices, 2.0, figures.design, kept);
    let mut numbers = vec![
        throughput("traces-throughput-oc", Design::Oc, Design::Conv, &all),
        throughput("traces-throughput-shrunk", Design::Shrunk, Design::Conv, &all),
        throughput("traces-throughput-vh", Design::Vh, Design::Conv, &all),
        throughput("traces-gain-on-shrunk", Design::Xbof, Design::Shrunk, &all),
        throughput("traces-gain-on-vh", Design::Xbof, Design::Vh, &all),
        throughput("src-vh-ideal", Design::VhIdeal, Design::Shrunk, &[SRC]),
        throughput("tencent-vh-gain", Design::Vh, Design::Shrunk, &tencent_reads),
        throughput("alibaba-vh-gain", Design::Vh, Design::Shrunk, &[ALI_0, ALI_1]),
        throughput("tencent-vh-loss", Design::Vh, Design::VhIdeal, &TENCENT),
        Number::of("ali-0-cost-efficiency", pair(Design::Xbof, Design::Oc, &[ALI_0]), move |figures| {
            percent_above(efficiency(figures[0]), efficiency(figures[1]))
        }),
        Number::of("fuji-0-energy", pair(Design::Xbof, Design::Conv, &[FUJI_0]), |figures| {
            mean_gain(figures, working_joules)
        }),
    ];
    numbers.push(throughput("traces-throughput-xbof", Design::Xbof, Design::Conv, &all));
    let rivals = [Design::Xbof, Design::Conv, Design::Oc, Design::Shrunk, Design::Vh];
    let runs = rivals.map(|design| Run::Table2(design, ALI_0));
    numbers.push(Number::of("ali-0-best-for-the-money", runs, move |figures| {
        let best = figures[1..].iter().map(|figures| efficiency(figures)).fold(0.0, f64::max);
        percent_above(efficiency(figures[0]), best)
    }));
    for (id, place, permille) in LITTLE_MEMORY {
        let run = Run::Locality { place, permille };
        numbers.push(Number::of(id, [run], |figures| 100.0 * figures[0].mapping_miss_ratio));
    }
    numbers.extend(cores());
    numbers
}

/// Numbers of misses with little mapping memory: the workload that stands for the source's, and thousandths of the map.
/// Source: [P] Fig. 4(c), 0.17 and 0.001 GB a TB; the workloads are [A].
const LITTLE_MEMORY: [(&str, usize, u32); 2] =
    [("locality-workload-0", TENCENT[0], 170), ("locality-workload-1", TENCENT[1], 1)];

/// One design on some workloads, then another.
fn pair(design: Design, against: Design, places: &[usize]) -> Vec<Run> {
    let of = |design| places.iter().map(move |&place| Run::Table2(design, place));
    of(design).chain(of(against)).collect()
}

/// Mean over workloads of the throughput against another design's, in percent above it.
fn throughput(id: &str, design: Design, against: Design, places: &[usize]) -> Number {
    Number::of(id, pair(design, against, places), |figures| mean_gain(figures, RunRecord::throughput))
}

/// Joules for each byte moved, with cores that draw power only while they work.
fn working_joules(figures: &RunRecord) -> f64 {
    let of_drive = |drive: &DriveRecord| drive.energy_joules - drive.core_joules * (1.0 - drive.processor_busy_share);
    figures.drives.iter().map(of_drive).sum::<f64>() / figures.bytes() as f64
}

/// Fewer cores, with the whole map in memory.
fn cores() -> [Number; 3] {
    let conv = Run::Cores { design: Design::Conv, cores: ALL_CORES, busy: 4 };
    let shrunk = Run::Cores { design: Design::Shrunk, cores: 1, busy: 4 };
    let xbof = |busy| Run::Cores { design: Design::Xbof, cores: 2, busy };
    [
        Number::of("cores-1-loss", [shrunk, conv], |figures| -mean_gain(figures, RunRecord::throughput)),
        Number::of("cores-2-xbof", [xbof(4), conv], |figures| {
            100.0 * figures[0].throughput() / figures[1].throughput()
        }),
        Number::of("cores-2-excess-lenders", [xbof(1), xbof(4)], |figures| {
            percent_above(throughput_of(figures[0], 0, 1), throughput_of(figures[1], 0, 4))
        }),
    ]
}
