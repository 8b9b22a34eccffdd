//! The size of chunks by measured amplification and throughput.

use crate::carbon::ARRAYS;
use crate::drawing::{Line, lines};
use crate::page::{hold, of, run};
use flashyard_paraid::room::ParaidRoom;
use serde_json::Value;
use std::fmt::Write;

/// Five SSDs in the steady state of random writes. [A] R8, smaller by the pages of its blocks
const DRIVE: &str = "ssd.drive={profile=\"r8\", pages_per_block=16, drawn=true}";
/// One that was written in sequence, once.
const IN_ORDER: &str = "ssd.drive={profile=\"r8\", pages_per_block=16}";
const ARRAY: &str =
    "paraid.arrays.aged={width=5, parities=1, drives=[{kind=\"nvme\", capacity=\"1 GiB\", timed=true, count=5}]}";
/// Loads of the page beside those of the scenario. [A] the least and the most that applications write at once
const SMALL: &str = "paraid.workloads.small={pattern=\"uniform\", read_share=0.0, write=\"4 KiB\"}";
const LARGE: &str = "paraid.workloads.large={pattern=\"sequential\", read_share=0.0, write=\"1 MiB\"}";
const LOADS: [(&str, &str); 4] = [
    ("small", "4 KiB at random"),
    ("p-write", "64 KiB at random"),
    ("large", "1 MiB in sequence"),
    ("meta", "Meta, mixed"),
];
/// Sizes in KiB. [A] sheet paraid §9
const SIZES: [u32; 3] = [16, 64, 256];
/// The size of those that is [P] that of the source.
const USUAL: usize = 1;

/// Figures of a run.
#[derive(Clone, Copy)]
struct Measured {
    gb_per_s: f64,
    p99_us: f64,
    /// Bytes to drives by bytes asked, and flash bytes by bytes of drives.
    array: f64,
    drives: f64,
}

impl Measured {
    /// Bytes of flash for a byte asked.
    fn flash(&self) -> f64 {
        self.array * self.drives
    }

    /// Throughput by the flash that it takes.
    fn score(&self) -> f64 {
        self.gb_per_s / self.flash()
    }
}

/// A run of the array of such drives, for so long.
fn carried(drive: &str, size: u32, load: &str, seed: u32, [warmup, measure]: [&str; 2]) -> Value {
    let mut settings =
        [drive, ARRAY, SMALL, LARGE, "paraid.array=\"aged\"", "paraid.workers=64"].map(str::to_owned).to_vec();
    settings.extend([
        format!("seed={seed}"),
        format!("paraid.chunk=\"{size} KiB\""),
        format!("paraid.workload=\"{load}\""),
        format!("paraid.warmup=\"{warmup}\""),
        format!("paraid.measure=\"{measure}\""),
    ]);
    run(&ParaidRoom, ARRAYS, "straid", &settings)
}

fn measured(size: u32, load: &str, seed: u32) -> Measured {
    let result = carried(DRIVE, size, load, seed, ["4 s", "1 s"]);
    let array = of(&result, "write_amplification_of_array");
    Measured {
        gb_per_s: of(&result, "throughput_bytes_per_s") / 1e9,
        p99_us: of(&result, "latency_us.p99"),
        array,
        drives: of(&result, "flash_bytes_per_byte") / array,
    }
}

/// The mean of a figure over runs.
fn mean(runs: &[Measured], figure: impl Fn(&Measured) -> f64) -> f64 {
    runs.iter().map(figure).sum::<f64>() / runs.len() as f64
}

#[test]
fn flash_bytes_are_those_of_drives_and_sequential_writes_are_not_amplified() {
    let result = carried(IN_ORDER, 64, "large", 1, ["100 ms", "200 ms"]);
    let mut sum = 0.0;
    for drive in 0..5 {
        let amplification = of(&result, &format!("drives.{drive}.write_amplification"));
        assert!((1.0..=1.05).contains(&amplification), "drive {drive}: {amplification}");
        sum += amplification * of(&result, &format!("drives.{drive}.write_bytes"));
    }
    let flash = of(&result, "flash_bytes_per_byte") * of(&result, "write_bytes");
    assert!((sum - flash).abs() <= 1e-9 * flash, "{sum} and {flash}");
}

#[test]
fn a_block_and_its_parity_are_programmed_at_least_once() {
    for size in SIZES {
        let result = carried(DRIVE, size, "small", 1, ["50 ms", "50 ms"]);
        let array = of(&result, "write_amplification_of_array");
        assert!((1.9..=2.1).contains(&array), "{size}: {array}");
        assert!(of(&result, "flash_bytes_per_byte") >= array, "{size}: {result}");
    }
}

#[test]
#[ignore = "minutes: make test-long"]
fn sizes_of_chunks_are_those_of_today() {
    let mut table = "| load | chunk, KiB | GB/s | p99, us | array, B/B | drives, B/B | flash, B/B | score, GB/s |\n|---|--:|--:|--:|--:|--:|--:|--:|\n".to_owned();
    let mut chosen = "| load | chosen | its score by that of 64 KiB | throughput | flash bytes | best of the other seeds |\n|---|--:|--:|--:|--:|--:|\n".to_owned();
    let (mut throughput, mut programmed) = (Vec::new(), Vec::new());
    for (load, title) in LOADS {
        let first = SIZES.map(|size| measured(size, load, 1));
        let others = SIZES.map(|size| [2, 3].map(|seed| measured(size, load, seed)));
        let all: Vec<Vec<Measured>> =
            first.iter().zip(&others).map(|(one, two)| [&[*one], two.as_slice()].concat()).collect();
        for (size, runs) in SIZES.iter().zip(&all) {
            writeln!(
                table,
                "| {title} | {size} | {:.3} | {:.0} | {:.2} | {:.2} | {:.2} | {:.3} |",
                mean(runs, |run| run.gb_per_s),
                mean(runs, |run| run.p99_us),
                mean(runs, |run| run.array),
                mean(runs, |run| run.drives),
                mean(runs, Measured::flash),
                mean(runs, Measured::score),
            )
            .expect("a string takes all");
        }
        let best = |score: &dyn Fn(usize) -> f64| {
            (0..SIZES.len()).max_by(|&one, &other| score(one).total_cmp(&score(other))).expect("there are sizes")
        };
        let choice = best(&|size| first[size].score());
        let hindsight = best(&|size| mean(&others[size], Measured::score));
        let by = |figure: fn(&Measured) -> f64| mean(&others[choice], figure) / mean(&others[USUAL], figure);
        writeln!(
            chosen,
            "| {title} | {} KiB | {:.2} | {:.2} | {:.2} | {} KiB |",
            SIZES[choice],
            by(Measured::score),
            by(|run| run.gb_per_s),
            by(Measured::flash),
            SIZES[hindsight],
        )
        .expect("a string takes all");
        let line = |figure: fn(&Measured) -> f64| Line {
            name: title,
            points: SIZES.iter().zip(&all).map(|(&size, runs)| (f64::from(size), mean(runs, figure))).collect(),
        };
        throughput.push(line(|run| run.gb_per_s));
        programmed.push(line(Measured::flash));
    }
    let picture = lines(
        "Throughput and flash programmed by the size of chunks",
        &[("GB/s by KiB of a chunk", throughput), ("Flash bytes by a byte asked", programmed)],
    );
    hold(&[("chunks", table), ("chunks-chosen", chosen)], &[("chunk-sizes.svg", picture)]);
}
