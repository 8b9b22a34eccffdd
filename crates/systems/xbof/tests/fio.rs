//! Job files of fio as workloads: what their options do to a run, in closed form where there is one.

use flashyard_blk::Operation;
use flashyard_describe::{Files, Overrides};
use flashyard_workload::Records;
use flashyard_xbof::jbof::{Design, StreamFigures};
use flashyard_xbof::room::{JbofRun, fio_report, resolve, resolve_with, run_design};

/// Job files by name, written here.
struct Texts(Vec<(&'static str, String)>);

impl Files for Texts {
    fn profile(&self, _kind: &str, _name: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn open_trace(&self, name: &str) -> Result<Records, String> {
        Err(format!("{name}: these tests use no traces"))
    }

    fn text(&self, name: &str) -> Result<String, String> {
        let found = self.0.iter().find(|file| file.0 == name).map(|file| file.1.clone());
        found.ok_or_else(|| format!("{name}: cannot be read"))
    }
}

const SCENARIO: &str = include_str!("../../../../scenarios/fio/scenario.toml");
const MIXED: &str = include_str!("../../../../scenarios/fio/mixed.fio");

fn files(job: &str) -> &'static Texts {
    Box::leak(Box::new(Texts(vec![("mixed.fio", MIXED.to_owned()), ("job.fio", job.to_owned())])))
}

fn attempt(design: Design, job: &str, settings: &[&str]) -> Result<JbofRun, String> {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    let files = files(job);
    let resolved = resolve_with(
        SCENARIO,
        "fio",
        &Overrides { settings, jobs: Some("job.fio".to_owned()), ..Overrides::default() },
        files,
    );
    let scenario = resolved.map_err(|error| error.to_string())?.scenario;
    run_design(&scenario, design, files, &mut |_| true).map_err(|error| error.to_string())
}

/// Runs one section `[job]` on a full drive.
fn run(options: &str) -> JbofRun {
    attempt(Design::Conv, &format!("[job]\nioengine=libaio\nsize=1g\n{options}\n"), &[]).expect("it runs")
}

fn first(run: &JbofRun) -> &StreamFigures {
    &run.figures.streams[0]
}

fn seconds(run: &JbofRun) -> f64 {
    first(run).active.as_secs_f64()
}

#[test]
fn a_job_ends_after_its_bytes_or_its_runtime_whichever_is_first() {
    let by_bytes = run("rw=randread\niodepth=8\nio_size=4m\nruntime=1s");
    assert_eq!(first(&by_bytes).of(Operation::Read).bytes, 4 << 20);
    let by_time = run("rw=randread\niodepth=8\nruntime=10ms");
    assert!((0.01..0.0105).contains(&seconds(&by_time)), "{}", seconds(&by_time));
    let again = run("rw=read\nsize=64k\niodepth=8\ntime_based\nruntime=10ms");
    assert!(first(&again).of(Operation::Read).bytes > 1 << 19);
    assert!((0.01..0.0105).contains(&seconds(&again)), "{}", seconds(&again));
}

#[test]
fn a_target_holds_a_job_back_and_a_depth_bounds_it() {
    let slow = run("rw=randread\niodepth=4\nrate_iops=20000\nruntime=20ms");
    let ios = first(&slow).of(Operation::Read).ios;
    assert!((400..=404).contains(&ios), "{ios} requests in 20 ms at 20,000 a second");
    // One at a time takes some 65 us: the target of ten times that cannot be met.
    let bounded = run("rw=randread\niodepth=1\nrate_iops=150000\nruntime=20ms");
    let free = run("rw=randread\niodepth=1\nruntime=20ms");
    let [bounded, free] = [bounded, free].map(|run| first(&run).of(Operation::Read).ios);
    assert!(bounded.abs_diff(free) <= 2, "{bounded} and {free}");
}

#[test]
fn pauses_come_after_their_blocks_once_nothing_is_in_flight() {
    let busy = run("rw=randread\nnumber_ios=40");
    let pausing = run("rw=randread\nnumber_ios=40\nthinktime=1ms\nthinktime_blocks=4");
    // Nine pauses between forty requests in fours; the last one is after the last completion.
    let more = seconds(&pausing) - seconds(&busy);
    assert!((more - 0.009).abs() < 1e-9, "{more} s of pauses");
}

#[test]
fn a_delayed_job_begins_late_and_runs_as_long() {
    let late = run("rw=randread\nstartdelay=5ms\nruntime=10ms");
    assert!((0.01..0.0105).contains(&seconds(&late)), "{}", seconds(&late));
    assert!((0.015..0.0155).contains(&late.figures.simulated.as_secs_f64()));
}

#[test]
fn the_ramp_does_not_count_and_comes_before_the_runtime() {
    let ramped = run("rw=randread\nramp_time=5ms\nruntime=10ms");
    assert!((0.01..0.0105).contains(&ramped.figures.window.as_secs_f64()));
    assert!((0.015..0.0155).contains(&ramped.figures.simulated.as_secs_f64()));
    let job = "[job]\nrw=randread\nramp_time=5ms\nruntime=10ms\n";
    let cut = attempt(Design::Conv, job, &["run.measure=2 ms", "run.warmup=1 ms"]).expect("it runs");
    assert_eq!(cut.figures.window.as_secs_f64(), 0.002);
}

#[test]
fn stages_follow_each_other_on_each_drive_and_ramp_for_themselves() {
    let job = "[global]\nioengine=libaio\nsize=50%\niodepth=4\nramp_time=1ms\n[a]\nrw=randread\nruntime=5ms\n\
               [b]\nrw=randread\nruntime=2ms\n[c]\nstonewall\nrw=randwrite\nstartdelay=3ms\nruntime=4ms\n\
               [d]\nstonewall\nrw=randread\nnumber_ios=100\nramp_time=0\n";
    let staged = attempt(Design::Xbof, job, &[]).expect("it runs");
    let seconds: Vec<f64> = staged.figures.streams.iter().map(|stream| stream.active.as_secs_f64()).collect();
    for (found, expected) in seconds.iter().zip([0.005, 0.002, 0.004]) {
        assert!((expected..expected + 0.0007).contains(found), "{seconds:?}");
    }
    let last = &staged.figures.streams[3];
    assert_eq!((last.of(Operation::Read).ios, last.of(Operation::Write).ios), (100, 0));
    // Ramp, a and what it has in flight, delay, ramp, c, d.
    let (whole, parts) = (staged.figures.simulated.as_secs_f64(), 0.001 + 0.003 + 0.001 + seconds[0] + seconds[2]);
    assert!((parts + seconds[3]..parts + seconds[3] + 0.001).contains(&whole), "{whole} against {parts}");
    assert!(staged.figures.sanity.holds());
    let report = serde_json::to_value(fio_report(&staged)).expect("it is plain data");
    let groups: Vec<u64> = (0..8).filter_map(|index| report["jobs"][index]["groupid"].as_u64()).collect();
    assert_eq!(groups, [0, 0, 0, 0, 1, 1, 2, 2]);
}

#[test]
fn clones_and_jobs_share_a_drive_with_their_own_depths() {
    let both = attempt(
        Design::Conv,
        "[global]\nioengine=libaio\nrw=randread\nsize=50%\nruntime=10ms\n[a]\niodepth=2\nnumjobs=3\n[b]\niodepth=8\n",
        &[],
    )
    .expect("it runs");
    assert_eq!(both.figures.streams.len(), 2 * 4);
    let drives: Vec<u16> = both.figures.streams.iter().map(|stream| stream.volume.get()).collect();
    assert_eq!(drives, [0, 0, 0, 0, 1, 1, 1, 1]);
    let ios: Vec<u64> = both.figures.streams.iter().map(|stream| stream.of(Operation::Read).ios).collect();
    // Four times the depth, far from saturation: nearly four times the requests.
    let ratio = ios[3] as f64 / ios[0] as f64;
    assert!((3.6..4.1).contains(&ratio), "{ios:?}");
    let of_drive: u64 = ios[..4].iter().sum();
    assert_eq!(both.figures.drives[0].ios, of_drive);
    assert_eq!(both.figures.drives[0].latency.count(), of_drive);
    assert_eq!(both.figures.drives[2].ios, 0);
}

#[test]
fn trims_reads_and_writes_have_their_own_latencies() {
    let mixed = run("rw=randrw\nrwmixread=50\nbs=4k,512\nnumber_ios=2000\niodepth=4");
    let (read, write) = (first(&mixed).of(Operation::Read), first(&mixed).of(Operation::Write));
    assert_eq!(read.ios + write.ios, 2000);
    // Bytes are those asked for, though a drive moves whole slots.
    assert_eq!((read.bytes, write.bytes), (read.ios * 4096, write.ios * 512));
    assert!(write.latency.mean_us() < read.latency.mean_us());
    assert_eq!(read.latency.count(), read.ios);
    let trims = run("rw=randtrim\nbs=64k\nnumber_ios=100");
    assert_eq!(first(&trims).of(Operation::Trim).bytes, 100 * 65_536);
}

#[test]
fn every_design_obeys_the_laws_with_several_streams_a_drive() {
    let scenario = resolve(SCENARIO, "fio", &[], files("")).expect("the scenario is good").scenario;
    for design in Design::ALL {
        let run = run_design(&scenario, design, files(""), &mut |_| true).expect("it runs");
        assert!(run.figures.sanity.holds(), "{design:?}: {:#?}", run.figures.sanity);
        assert_eq!(run.figures.streams.len(), 6);
        assert!(run.figures.streams.iter().all(|stream| stream.of(Operation::Write).ios > 100), "{design:?}");
    }
}

#[test]
fn the_same_job_file_gives_the_same_bytes_and_another_seed_does_not() {
    let text = |seed: &str| {
        let run = attempt(Design::Xbof, MIXED, &[seed]).expect("it runs");
        serde_json::to_string(&fio_report(&run)).expect("it is plain data")
    };
    assert_eq!(text("seed=5"), text("seed=5"));
    assert_ne!(text("seed=5"), text("seed=6"));
}

#[test]
fn a_group_is_reported_as_one_and_samples_come_at_their_interval() {
    let report = |job: &str| {
        let run = attempt(Design::Conv, job, &[]).expect("it runs");
        serde_json::to_value(fio_report(&run)).expect("it is plain data")
    };
    let job = "[job]\nioengine=libaio\nrw=randread\niodepth=4\nnumjobs=3\nruntime=10ms\nbwavgtime=2\n";
    let apart = report(job);
    let jobs = apart["jobs"].as_array().expect("jobs are a list");
    assert_eq!(jobs.len(), 6);
    assert_eq!(jobs[0]["read"]["bw_samples"], 5);
    let added = report(&format!("{job}group_reporting\n"));
    let ios: u64 = jobs.iter().map(|job| job["read"]["total_ios"].as_u64().expect("a number")).sum();
    assert_eq!(added["jobs"].as_array().map(Vec::len), Some(1));
    assert_eq!(added["jobs"][0]["read"]["total_ios"], ios);
    assert_eq!(added["jobs"][0]["job options"]["bwavgtime"], "2");
}

#[test]
fn without_a_job_file_each_drive_is_a_job() {
    let demo = include_str!("../../../../scenarios/demo/scenario.toml");
    let settings = ["run.requests_per_drive=500", "run.warmup=0 ms", "run.warm_mapping_requests=0"];
    let scenario = resolve(demo, "demo", &settings.map(str::to_owned), files("")).expect("it is good").scenario;
    let run = run_design(&scenario, Design::Conv, files(""), &mut |_| true).expect("it runs");
    let report = serde_json::to_value(fio_report(&run)).expect("it is plain data");
    assert_eq!(report["jobs"].as_array().map(Vec::len), Some(6));
    assert_eq!(report["jobs"][5]["jobname"], "drive-5");
}

#[test]
fn what_does_not_go_together_is_refused_with_its_key() {
    let error = |job: &str, settings: &[&str]| attempt(Design::Conv, job, settings).err().expect("it is wrong");
    assert!(error("[a]\nrw=reed\n", &[]).starts_with("job.fio: line 2: rw: \"reed\" is not supported"));
    assert!(error("[a]\n", &["run.requests_per_drive=4"]).starts_with("run.requests_per_drive: a job file says when"));
    assert_eq!(error("[a]\n", &["workload.fio=gone.fio"]), "workload.fio: gone.fio: cannot be read");
    assert_eq!(error("[a]\nnumjobs=4096\n", &[]), "streams is 8192, give 1 to 4096");
    assert!(error("[a]\nsize=9t\n", &[]).starts_with("job.fio: line 1: size: job a: 9895604649984 bytes"));
    assert!(error("[a]\nsize=1m\nramp_time=1\n", &[]).contains("nothing was measured"));
}
