//! Cost of a timed run on a core: `cargo bench -p flashyard-lives`.
//!
//! One long run of each personality of the study and of fio on CVFS above the timed drive: operations of the program, and blocks that the
//! file system asks of the drive, for each second of one thread. The making of the files is in the time and not in the
//! operations.

#![expect(clippy::disallowed_types, reason = "a bench measures the real clock; nothing simulated sees it")]
#![expect(clippy::disallowed_methods, reason = "a bench measures the real clock; nothing simulated sees it")]

use flashyard_applications::filebench::PersonalityName;
use flashyard_ftl::ScoreWeights;
use flashyard_lives::cvss::{
    Below, CvssFigures, DegradeRule, Design, DeviceConfig, FilebenchConfig, FilebenchLife, FilebenchLoad, FioConfig,
    FioLife, FioLoad, HostConfig,
};
use flashyard_nand::{EccStrength, ErrorRates, RetryRule, WearModel};
use flashyard_units::{Named, SimSpan};
use std::time::Instant;

fn main() {
    // `cargo test --benches` passes no `--bench`: then a short run shows that it still works.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let run = SimSpan::from_ms(if is_bench { 20_000 } else { 20 });
    let wear = WearModel {
        rates: ErrorRates::TLC_2018_AT_300,
        ecc: EccStrength { bits_per_4_kib: 50 },
        rule: RetryRule::ByErases,
        retention_days: 0.0,
    };
    let device = DeviceConfig {
        design: Design::Artifact,
        reliability: None,
        requirement: None,
        weights: ScoreWeights::default(),
        exchanges_read_hot: true,
        degraded_by: DegradeRule::Drive,
        pages_beyond: 0,
        wear,
    };
    let host = HostConfig { memory_bytes: 16 << 30, dirty_share: 0.1, request_us: 5.0 };
    let (below, seed) = (Below::PUBLISHED, 1);
    // Those of the study.
    for name in [PersonalityName::Fileserver, PersonalityName::Netsfs, PersonalityName::Varmail] {
        let load = FilebenchLoad { name, pages: 61_000, run, every_pages: 1 };
        let mut life = FilebenchLife::new(FilebenchConfig { device, host, below, load, seed }).expect("it is valid");
        time(name.name(), run, || life.live(&mut |_| false).expect("the drive obeys"));
    }
    let load = FioLoad { pages: 36_000, skew: 0.0, run: Some(run), every_pages: 1, direct_depth: None };
    let mut life = FioLife::new(FioConfig { device, host, below, load, seed }).expect("it is valid");
    // The first look is before the first stretch.
    let mut looks = 0;
    let once = &mut |_| {
        looks += 1;
        looks < 2
    };
    time("fio", run, || life.live(once).expect("the drive obeys"));
}

fn time(name: &str, run: SimSpan, live: impl FnOnce() -> CvssFigures) {
    let began = Instant::now();
    let figures = live();
    let seconds = began.elapsed().as_secs_f64();
    let operations = figures.samples[0].timing.requests_per_second * run.as_secs_f64();
    let blocks = figures.host_pages as f64 + figures.reads.iter().sum::<u64>() as f64;
    println!(
        "{name:10} {:8.0} operations and {:9.0} blocks a second; {seconds:.2} s for {operations:.0} and {blocks:.0}",
        operations / seconds,
        blocks / seconds,
    );
}
