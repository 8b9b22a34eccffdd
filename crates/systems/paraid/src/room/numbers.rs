//! Published numbers from runs, and arithmetic of published ones.

use super::drawn::capacity_model;
use super::runs::{Manner, ParaidNumber, ParaidRecord, ParaidRun};
use super::section::ParaidScenario;
use crate::Design;
use Design::{FusionRaid, Mdraid, Paraid, Straid};
use Manner::{Degraded, Replay, Study, Workers};
use flashyard_array::layout::most_stripes;
use flashyard_describe::ScenarioError;
use flashyard_describe::reproduce::{Number, claim, percent_above};

/// Read rates of drives by kind in GiB/s: NVMe, a slower one, SATA, a degraded NVMe. \[P\] sheet paraid §4
const RATES: [f64; 4] = [3.33, 2.58, 0.53, 1.34];
/// Terabytes of half a drive, and g a GB and kg a TB and year of it. \[D\] sheet §8.4
const HALF_DRIVE: (f64, f64, f64) = (61.44, 30.0, 8.0);
/// Making of DRAM of 10 nm and of flash of 1z nm, in g a GB. \[X\] sheet §8.4
const DRAM_BY_FLASH: (f64, f64) = (65.0, 5.6);
/// Published speed-ups: RAID-5 and RAID-6 under Meta's and FIU's loads. \[P\] sheet §7
const SPEED_UPS: [f64; 4] = [1.9, 1.99, 1.91, 1.68];
/// Loads in place of FIU's traces, and the public samples.
pub(super) const FIU: [&str; 2] = ["fiu-mail", "fiu-homes"];
const FIU_SAMPLES: [&str; 2] =
    ["fiu/cheetah.cs.fiu.edu-110108-113008.sample.blkparse.zst", "fiu/homes-sample.1.blkparse.zst"];
const META_SAMPLE: &str = "tectonic/block_traces_1.csv.zst";
/// Drives and deviations of the layout study. \[P\] sheet §4: both are swept; the steps are \[A\]
const DRIVES: [usize; 5] = [10, 20, 30, 40, 50];
const DEVIATIONS: [f64; 5] = [0.1, 0.2, 0.3, 0.4, 0.5];

pub(super) const fn run(array: &'static str, design: Design, load: &'static str, manner: Manner) -> ParaidRun {
    ParaidRun::Array { array, design, load, manner }
}

const fn study(array: &'static str, load: &'static str) -> ParaidRun {
    run(array, Mdraid, load, Study)
}

/// Throughput of the first half of runs by that of the second, the mean of the ratios.
pub(super) fn ratio(id: &str, first: Vec<ParaidRun>, second: Vec<ParaidRun>) -> ParaidNumber {
    Number::of(id, [first, second].concat(), mean_ratio)
}

/// Throughput of the first half of `runs` by that of the second, run by run, in the mean.
pub(super) fn mean_ratio(runs: &[&ParaidRecord]) -> f64 {
    let (first, second) = runs.split_at(runs.len() / 2);
    let ratios = first.iter().zip(second).map(|(first, second)| first.gib_per_s / second.gib_per_s);
    ratios.sum::<f64>() / first.len() as f64
}

/// Percent that the first is of the second.
fn share(id: &str, first: ParaidRun, second: ParaidRun) -> ParaidNumber {
    Number::of(id, [first, second], |runs| 100.0 * mean_ratio(runs))
}

/// Percent that the first is below the second.
fn below(id: &str, first: ParaidRun, second: ParaidRun, of: fn(&ParaidRecord) -> f64) -> ParaidNumber {
    Number::of(id, [first, second], move |runs: &[&ParaidRecord]| -percent_above(of(runs[0]), of(runs[1])))
}

/// A figure of one run.
fn figure(id: &str, of: ParaidRun, value: impl Fn(&ParaidRecord) -> f64 + Send + Sync + 'static) -> ParaidNumber {
    Number::of(id, [of], move |runs: &[&ParaidRecord]| value(runs[0]))
}

/// Loads on an array by a design and by another.
fn pair(id: &str, array: &'static str, designs: [Design; 2], loads: &[&'static str], manner: Manner) -> ParaidNumber {
    let [first, second] = designs.map(|design| loads.iter().map(|load| run(array, design, load, manner)).collect());
    ratio(id, first, second)
}

fn throughput(record: &ParaidRecord) -> f64 {
    record.gib_per_s
}

/// Reads of three drives in one array, which the slowest holds up.
fn of_drives() -> Vec<ParaidNumber> {
    let nvme = |load| study("three-nvme", load);
    let [fast, slower, sata, _] = RATES;
    let sum = |array: [f64; 3]| array.iter().sum::<f64>();
    vec![
        Number::closed("nvme-by-sata-512k", fast / sata),
        Number::closed("nvme-by-sata-1m", fast / sata),
        share("mixed-partial", study("case-1", "p-read"), nvme("p-read")),
        share("mixed-full", study("case-1", "f-read"), nvme("f-read")),
        Number::closed("case-1-sum", sum([fast, fast, sata])),
        figure("case-1-rate", study("case-1", "f-read"), throughput),
        figure("case-1-use", study("case-1", "f-read"), move |run| 100.0 * run.drive_reads[0] / fast),
        Number::closed("case-2-sum", sum([fast, fast, slower])),
        figure("case-2-full", study("case-2", "f-read"), throughput),
        figure("case-2-partial", study("case-2", "p-read"), throughput),
        figure("case-2-drive-use", study("case-2", "p-read"), move |run| 100.0 * run.drive_reads[0] / fast),
        figure("case-2-array-use", study("case-2", "p-read"), move |run| 100.0 * run.gib_per_s / (2.0 * fast + slower)),
        below("case-2-loss", study("case-2", "p-read"), nvme("p-read"), throughput),
        below("case-2-sata-loss", study("case-2-sata", "f-read"), study("three-sata", "f-read"), throughput),
        below("case-3-loss", study("case-3", "f-read"), nvme("f-read"), throughput),
        Number::closed("case-3-drive", 100.0 * RATES[3] / fast),
    ]
}

/// Replayed loads on the two configurations.
fn of_loads() -> Vec<ParaidNumber> {
    let meta = |design| run("config-1", design, "meta", Replay);
    vec![
        pair("raid5-meta", "config-1", [Paraid, Mdraid], &["meta"], Replay),
        pair("raid5-meta-sample", "config-1", [Paraid, Mdraid], &[META_SAMPLE], Replay),
        below("raid5-meta-p99", meta(Paraid), meta(Mdraid), |run| run.p99_us),
        below("raid5-meta-p999", meta(Paraid), meta(Mdraid), |run| run.p999_us),
        pair("raid5-fiu", "config-1", [Paraid, Mdraid], &FIU, Replay),
        pair("raid5-fiu-sample", "config-1", [Paraid, Mdraid], &FIU_SAMPLES, Replay),
        Number::of(
            "raid5-fiu-fusion",
            [FusionRaid, Paraid].map(|design| FIU.map(|load| run("config-1", design, load, Replay))).concat(),
            |runs| 100.0 * mean_ratio(runs),
        ),
        pair("raid6-meta", "config-2", [Paraid, Mdraid], &["meta"], Replay),
        pair("raid6-fiu", "config-2", [Paraid, Mdraid], &FIU, Replay),
        emission(),
        Number::closed("emission-arithmetic", 100.0 * (1.0 - 4.0 / SPEED_UPS.iter().sum::<f64>())),
    ]
}

/// Emission of a run by its throughput and the volume that it makes of the drives.
pub(super) fn emission_by_work(run: &ParaidRecord) -> f64 {
    run.emission_kg / run.gib_per_s / run.volume_gib
}

/// Emission by throughput and volume.
fn emission() -> ParaidNumber {
    let loads = ["meta", FIU[0], FIU[1]];
    let runs = [Paraid, Mdraid].map(|design| loads.map(|load| run("config-1", design, load, Replay))).concat();
    Number::of("emission", runs, move |runs: &[&ParaidRecord]| {
        let (paraid, mdraid) = runs.split_at(runs.len() / 2);
        let saved = paraid
            .iter()
            .zip(mdraid)
            .map(|(ours, theirs)| -percent_above(emission_by_work(ours), emission_by_work(theirs)));
        saved.sum::<f64>() / paraid.len() as f64
    })
}

/// Layouts of drives that are drawn.
fn of_layouts() -> Vec<ParaidNumber> {
    let point = |drives, deviation| ParaidRun::Drawn { drives, deviation };
    let all = || -> Vec<ParaidRun> {
        DRIVES.iter().flat_map(|&drives| DEVIATIONS.map(|deviation| point(drives, deviation))).collect()
    };
    let mean = |runs: &[&ParaidRecord], of: fn(&ParaidRecord) -> f64| {
        runs.iter().map(|run| of(run)).sum::<f64>() / runs.len() as f64
    };
    vec![
        Number::of("layout-all", all(), move |runs| 100.0 * mean(runs, |run| claim(run.drawn[0] >= 99.5))),
        Number::of("layout-gain", all(), move |runs| mean(runs, |run| percent_above(run.drawn[0], run.drawn[1]))),
        figure("layout-least", point(10, 0.5), |run| run.drawn[0]),
        Number::of("capacity-drawn", all(), |runs: &[&ParaidRecord]| {
            runs.iter().map(|run| (run.drawn[2] - run.drawn[3]).abs()).fold(0.0, f64::max)
        }),
        figure("drawn-04", point(10, 0.4), |run| run.drawn[0]),
        figure("drawn-05", point(10, 0.5), |run| run.drawn[0]),
        figure("drawn-05-20", point(20, 0.5), |run| run.drawn[0]),
    ]
}

/// Three drives that are alike.
fn of_alike() -> Vec<ParaidNumber> {
    let alike = |id, designs, load, manner| pair(id, "three-nvme", designs, &[load], manner);
    let of = |design, load, manner| run("three-nvme", design, load, manner);
    vec![
        alike("alike-sequential", [Paraid, Mdraid], "f-write", Workers),
        alike("alike-sequential-192", [Paraid, Mdraid], "f-write-192", Workers),
        alike("alike-random", [Paraid, Mdraid], "p-write", Workers),
        alike("alike-straid-sequential", [Paraid, Straid], "f-write", Workers),
        alike("alike-straid-random", [Paraid, Straid], "p-write", Workers),
        Number::of(
            "alike-fusion",
            [of(FusionRaid, "p-write", Workers), of(Paraid, "p-write", Workers)],
            |runs: &[&ParaidRecord]| claim(runs[0].gib_per_s > runs[1].gib_per_s),
        ),
        alike("alike-reads", [Paraid, Mdraid], "p-read", Workers),
    ]
}

/// Two NVMe drives and a SATA drive, of which the first or the last is gone.
fn of_degraded() -> Vec<ParaidNumber> {
    let runs = |designs: [Design; 2], load| {
        designs.map(|design| [0, 2].map(|gone| run("mixed", design, load, Degraded(gone)))).concat()
    };
    let more = |id, load| {
        Number::of(id, runs([Paraid, Mdraid], load), |runs: &[&ParaidRecord]| 100.0 * (mean_ratio(runs) - 1.0))
    };
    vec![
        more("degraded-read", "p-read"),
        more("degraded-write", "p-write"),
        Number::of("degraded-straid", runs([Paraid, Straid], "p-write"), mean_ratio),
    ]
}

/// Maps, and arithmetic of published figures. `base` has the drives.
///
/// Errors: a scenario without the published arrays.
fn of_figures(base: &ParaidScenario) -> Result<Vec<ParaidNumber>, ScenarioError> {
    let map = |array| ParaidRun::Map { array };
    let gib = |array| -> Result<(f64, f64), ScenarioError> {
        let units: Vec<u64> = base.drives(array)?.iter().map(|drive| drive.capacity >> 30).collect();
        let width = base.width(array)?;
        Ok(((most_stripes(&units, width) * width as u64) as f64, units.iter().sum::<u64>() as f64))
    };
    let [(first, _), (second, second_all)] = [gib("config-1")?, gib("config-2")?];
    let (terabytes, grams, kilograms) = HALF_DRIVE;
    Ok(vec![
        Number::closed("embodied-half-drive", terabytes * grams),
        Number::closed("operational-half-drive", terabytes * kilograms),
        figure("map-1", map("config-1"), |run| run.map_bytes),
        figure("map-2", map("config-2"), |run| run.map_bytes),
        Number::of("map-per-gib", [map("config-1"), map("config-2")], move |runs: &[&ParaidRecord]| {
            (runs[0].map_bytes / first + runs[1].map_bytes / second) / 2.0
        }),
        Number::closed("dram-by-flash", DRAM_BY_FLASH.0 / DRAM_BY_FLASH.1),
        Number::closed("volume-1", first),
        Number::closed("volume-2", second / 1024.0),
        Number::closed("volume-2-share", 100.0 * second / second_all),
        Number::closed("capacity-model-1", capacity_model(5, 0.1)),
        Number::closed("capacity-model-3", capacity_model(5, 0.3)),
    ])
}

/// All numbers but those of `orders`.
///
/// Errors: a scenario without the published arrays.
pub(super) fn numbers(base: &ParaidScenario) -> Result<Vec<ParaidNumber>, ScenarioError> {
    let mut numbers = of_drives();
    numbers.extend(of_loads());
    numbers.extend(of_layouts());
    numbers.extend(of_alike());
    numbers.extend(of_degraded());
    numbers.extend(of_figures(base)?);
    Ok(numbers)
}

/// Runs that charts show beside those of numbers: all designs under replayed loads on the first configuration.
pub(super) fn drawn_in_charts() -> Vec<ParaidRun> {
    let designs = [Straid, Design::ParaidStatic, FusionRaid, Design::Swan, Design::LogRaid];
    let loads = ["meta", FIU[0], FIU[1]];
    designs.into_iter().flat_map(|design| loads.map(|load| run("config-1", design, load, Replay))).collect()
}
