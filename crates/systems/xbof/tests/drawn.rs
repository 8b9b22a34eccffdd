//! A drawn steady state in time: against a drive that was overwritten before its run.

use flashyard_describe::NoFiles;
use flashyard_report::IOS;
use flashyard_xbof::jbof::Design;
use flashyard_xbof::room::{JbofRun, resolve, run_design};

const DRIVES: &str = include_str!("../../../../scenarios/drives/scenario.toml");

/// Random writes to the drive of the scenario, with superblocks of 1,536 slots, from the state that `settings` give.
fn run(settings: &[&str]) -> JbofRun {
    let small = ["drive.pages_per_block=24", "drive.dies_per_channel=1", "drive.blocks_per_plane=800"];
    let writes = ["workload.read_share=0.0", "drive.filled=1.0", "run.measure=1500 ms"];
    let settings = small.iter().chain(&writes).chain(settings).map(|&setting| setting.to_owned());
    let scenario = resolve(DRIVES, "drives", &settings.collect::<Vec<_>>(), &NoFiles).expect("it is whole").scenario;
    run_design(&scenario, Design::Conv, &NoFiles, &mut |_| true).expect("it runs")
}

/// Slots that the drive wrote for each one of the host, and requests a second.
fn figures(run: &JbofRun) -> (f64, f64) {
    (
        run.figures.drives[0].ftl.write_amplification(),
        run.result.figures.number(&IOS) / run.figures.window.as_secs_f64(),
    )
}

#[test]
fn a_drawn_drive_is_as_fast_as_one_that_was_overwritten() {
    let (amplification, rate) = figures(&run(&["drive.drawn=true", "run.warmup=0 ms"]));
    let (expected, expected_rate) = figures(&run(&["drive.overwritten=3.0", "run.warmup=1000 ms"]));
    assert!((amplification / expected - 1.0).abs() < 0.03, "{amplification} against {expected}");
    assert!((rate / expected_rate - 1.0).abs() < 0.03, "{rate} against {expected_rate} requests a second");
}

#[test]
fn a_drive_whose_hosts_fill_the_buffer_collects_from_its_first_moment() {
    // Many more rows of hosts wait for power than collection may read at once.
    let limited = ["drive.drawn=true", "drive.program_rate=200 MB/s", "drive.reclaim_reads=4", "run.warmup=0 ms"];
    let window = |measure| figures(&run(&[&limited[..], &[measure]].concat())).0;
    let (first, long) = (window("run.measure=500 ms"), window("run.measure=4 s"));
    assert!((first / long - 1.0).abs() < 0.3, "{first} at first, {long} in the long run");
}
