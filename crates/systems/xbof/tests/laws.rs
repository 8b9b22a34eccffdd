//! Laws of every run of every design: Little's law, the utilization law, conservation; closed forms of an unloaded and
//! of a saturated drive; the same bytes for the same seed.

use flashyard_describe::NoFiles;
use flashyard_kernel::Rng;
use flashyard_report::THROUGHPUT;
use flashyard_xbof::jbof::{Design, JbofFigures, Reading};
use flashyard_xbof::room::{JbofRun, resolve, run_design};

const DEMO: &str = include_str!("../../../../scenarios/demo/scenario.toml");
const XBOF: &str = include_str!("../../../../scenarios/xbof/scenario.toml");

fn run(design: Design, settings: &[String]) -> JbofFigures {
    let scenario = resolve(XBOF, "xbof", settings, &NoFiles).expect("the scenario is good").scenario;
    run_design(&scenario, design, &NoFiles, &mut |_| true).expect("it runs").figures
}

fn settings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&setting| setting.to_owned()).collect()
}

#[test]
fn every_design_obeys_the_laws_on_random_workloads() {
    for seed in 0..4_u64 {
        let mut rng = Rng::named(seed, "laws");
        let mut pick = |list: &[&str]| list[rng.below(list.len() as u64) as usize].to_owned();
        let settings = vec![
            format!("seed={seed}"),
            format!("workload.pattern={}", pick(&["uniform", "sequential", "zipf", "hot-cold"])),
            format!("workload.size={}", pick(&["4 KiB", "20 KiB", "64 KiB", "256 KiB"])),
            format!("workload.read_share={}", pick(&["0.0", "0.3", "0.7", "1.0"])),
            format!("workload.depth={}", pick(&["1", "7", "64"])),
            "run.warmup=25 ms".to_owned(),
            "run.measure=15 ms".to_owned(),
        ];
        for design in Design::ALL {
            let figures = run(design, &settings);
            assert!(figures.sanity.holds(), "{design:?} with {settings:?}: {:#?}", figures.sanity);
            assert!(figures.ios() > 0, "{design:?} with {settings:?} did nothing");
        }
    }
}

/// Two drives for a moment, which may suspend programs for reads.
const SHORT: &str = r#"
name = "short"
designs = ["conv"]
[jbof]
drives = 2
busy_drives = 1
[drive]
profile = "tlc-gen4-1920gb"
[host]
profile = "dpu"
[prices]
profile = "2025"
[workload]
pattern = "uniform"
size = "4 KiB"
read_share = 0.5
depth = 4
[run]
warmup = "2 ms"
measure = "100 us"
"#;

#[test]
fn a_window_that_ends_beside_a_suspended_program_has_figures() {
    for seed in 1..=8 {
        let seed = format!("seed={seed}");
        let scenario = resolve(SHORT, "short", &settings(&[&seed]), &NoFiles).expect("it is good").scenario;
        let run = run_design(&scenario, Design::Conv, &NoFiles, &mut |_| true).expect("it runs");
        assert!(run.figures.sanity.holds(), "{seed}: {:#?}", run.figures.sanity);
    }
}

#[test]
fn drives_whose_cores_move_what_is_collected_obey_the_laws() {
    let drive = ["channels=2", "dies_per_channel=2", "planes_per_die=1", "blocks_per_plane=32", "pages_per_block=12"];
    let more = ["over_provisioning=0.25", "write_buffer=1 MiB", "overwritten=3", "cycles_per_moved_slice=2000"];
    let mut list: Vec<String> = drive.iter().chain(&more).map(|key| format!("drive.{key}")).collect();
    list.extend(settings(&["seed=1", "workload.read_share=0.2", "workload.depth=16", "run.measure=100 ms"]));
    let scenario = resolve(SHORT, "short", &list, &NoFiles).expect("it is good").scenario;
    for design in [Design::Conv, Design::Xbof] {
        let figures = run_design(&scenario, design, &NoFiles, &mut |_| true).expect("it runs").figures;
        assert!(figures.sanity.holds(), "{design:?}: {:#?}", figures.sanity);
        assert!(figures.drives.iter().any(|drive| drive.ftl.moved_slots > 0), "{design:?} has collected nothing");
    }
}

#[test]
fn open_loop_bursts_obey_the_laws_too() {
    let bursts = "requests_per_second = 20000.0\nburst = \"2 ms\"\npause = \"3 ms\"\n#";
    let text = XBOF.replace("depth = 64", bursts);
    let scenario = resolve(&text, "xbof", &settings(&["run.measure=40 ms"]), &NoFiles).expect("it is good").scenario;
    for design in Design::ALL {
        let figures = run_design(&scenario, design, &NoFiles, &mut |_| true).expect("it runs").figures;
        assert!(figures.sanity.holds(), "{design:?}: {:#?}", figures.sanity);
    }
}

/// The demo with few requests: its drives end one after the other.
fn demo(design: Design, more: &[&str]) -> JbofRun {
    let small = ["run.warmup=20 ms", "run.requests_per_drive=8000", "run.warm_mapping_requests=20000"];
    let list = settings(&[&small[..], more].concat());
    let scenario = resolve(DEMO, "demo", &list, &NoFiles).expect("the scenario is good").scenario;
    run_design(&scenario, design, &NoFiles, &mut |_| true).expect("it runs")
}

#[test]
fn the_measured_window_ends_when_the_first_stream_does() {
    for design in Design::ALL {
        let figures = demo(design, &[]).figures;
        assert!(figures.sanity.holds(), "{design:?}: {:#?}", figures.sanity);
        assert!(figures.sanity.checks.len() > 12, "the window has laws of its own: {:#?}", figures.sanity);
        assert_eq!(figures.first_end, None, "{design:?}: no stream goes on alone");
        let end = figures.measured_from + figures.window;
        let last = figures.timeline.readings.last().expect("there is a timeline");
        assert_eq!(last.at, end, "{design:?}: the timeline ends with the window");
        assert_eq!(figures.stopped == end, design != Design::Vh, "{design:?}: only copying back follows");
        // Six streams of 8000: all but the first have been cut short.
        assert!((40_000..48_000).contains(&figures.requests), "{design:?}: {} requests", figures.requests);
        // All requests measured lie in the window: the timeline completed as many.
        let first = figures.timeline.readings.iter().find(|reading| reading.at >= figures.measured_from);
        let sum = |reading: &Reading| reading.drives.iter().map(|drive| drive.totals.ios).sum::<u64>();
        let completed = sum(last) - sum(first.expect("the window has intervals"));
        assert!(completed <= figures.ios() && completed > figures.ios() * 9 / 10, "{design:?}: {completed}");
    }
}

#[test]
fn throughput_of_a_window_has_no_run_off() {
    let run = demo(Design::Conv, &[]);
    let [first, second] = run.result.halves[..] else { panic!("the window is long enough to be halved") };
    let change = second.throughput_bytes_per_s / first.throughput_bytes_per_s - 1.0;
    assert!(change.abs() < 0.05, "throughput changes by {change} between the halves");
    assert!((run.result.figures.number(&THROUGHPUT) / second.throughput_bytes_per_s - 1.0).abs() < 0.05);
}

#[test]
fn a_run_of_fewer_requests_than_are_in_flight_at_once_is_measured_to_the_last() {
    let figures = demo(Design::Conv, &["run.warmup=0 ms", "run.requests_per_drive=10"]).figures;
    assert!(figures.sanity.holds(), "{:#?}", figures.sanity);
    assert!((10..=60).contains(&figures.ios()), "{} requests", figures.ios());
    assert!(figures.drives.iter().any(|drive| drive.ios == 10), "one stream ended");
}

#[test]
fn a_stream_that_ends_in_the_warm_up_leaves_nothing_to_measure() {
    let list = settings(&["run.requests_per_drive=100", "run.warm_mapping_requests=0"]);
    let scenario = resolve(DEMO, "demo", &list, &NoFiles).expect("the scenario is good").scenario;
    let error = run_design(&scenario, Design::Conv, &NoFiles, &mut |_| true).err().expect("100 requests take no 60 ms");
    assert!(error.to_string().contains("a stream ended before the warm-up of 60.00 ms"), "{error}");
}

#[test]
fn an_unloaded_read_takes_the_sum_of_its_parts() {
    let list = ["workload.pattern=uniform", "workload.size=4 KiB", "workload.depth=1"];
    let figures = run(Design::Conv, &settings(&list));
    // Host 2 us on a core and 8 us off it; firmware 1543 cycles and a 70 ns stall; sensing 45 us on average;
    // 16 KiB over the bus in 6.83 us; 4 KiB at 14 GB/s in 0.29 us.
    let parts = 2.0 + 8.0 + 1.543 + 0.07 + 45.0 + 6.827 + 0.293;
    let found = figures.latency().mean_us();
    assert!((found / parts - 1.0).abs() < 0.01, "{found} us against {parts} us");
}

#[test]
fn a_page_of_the_hosts_map_comes_by_a_command_of_its_own() {
    let list = ["workload.pattern=uniform", "workload.size=4 KiB", "workload.depth=1", "run.measure=160 ms"];
    let with = |memory: &str| {
        let figures = run(Design::Oc, &settings(&[&list[..], &[memory]].concat()));
        assert!(figures.sanity.holds(), "{:#?}", figures.sanity);
        figures
    };
    let (whole, little) = (with("host.memory=64 GiB"), with("host.memory=48 MiB"));
    // A thousandth of the map is in memory. Host 2 us on a core and 8 us off it; sensing 30 us; 4 KiB over the bus in 1.71 us, and at
    // 14 GB/s in 0.29 us.
    let parts = 0.999 * (2.0 + 8.0 + 30.0 + 1.707 + 0.293);
    let found = little.latency().mean_us() - whole.latency().mean_us();
    assert!((found / parts - 1.0).abs() < 0.02, "{found} us against {parts} us");
}

#[test]
fn saturated_drives_are_as_fast_as_their_slowest_part() {
    let throughput = |design, list: &[&str]| run(design, &settings(list)).throughput() / 6e9;
    let reads = throughput(Design::Conv, &[]);
    assert!((reads / 14.0 - 1.0).abs() < 0.005, "the DMA engine reads 14 GB/s, not {reads}");
    let writes = throughput(Design::Conv, &["workload.read_share=0.0"]);
    assert!((writes / 10.0 - 1.0).abs() < 0.005, "the DMA engine writes 10 GB/s, not {writes}");
    // Three cores of 1 GHz, 103 + 16 x 1440 cycles and 16 x 70 ns each.
    let bound = 3.0 * 65_536.0 / (103.0 + 16.0 * 1510.0);
    let shrunk = throughput(Design::Shrunk, &[]);
    assert!((shrunk / bound - 1.0).abs() < 0.005, "{shrunk} GB/s against {bound}");
    // Services before each command.
    let bound = 3.0 * 65_536.0 / (103.0 + 4.0 * 2500.0 + 16.0 * 1510.0);
    let served = throughput(Design::Shrunk, &["chain.services=4", "chain.cycles=2500"]);
    assert!((served / bound - 1.0).abs() < 0.005, "{served} GB/s against {bound} with services");
    let on_host = throughput(Design::Shrunk, &["chain.services=4", "chain.cycles=2500", "chain.placement=host"]);
    assert!((on_host / shrunk - 1.0).abs() < 0.005, "{on_host} GB/s against {shrunk}: the host has time for them");
}

#[test]
fn idle_drives_run_the_services_of_busy_ones() {
    let list = ["workload.pattern=uniform", "workload.size=4 KiB", "chain.services=3", "chain.cycles=2500"];
    let [shrunk, lent] = [Design::Shrunk, Design::Xbof].map(|design| run(design, &settings(&list)));
    assert!(lent.sanity.holds(), "{:#?}", lent.sanity);
    let gain = lent.throughput() / shrunk.throughput();
    assert!(gain > 1.3, "{gain} times what it is without lending");
}

/// Slots written by greedy garbage collection for each of the host's, where `used` of `all` superblocks' worth of slots
/// hold uniform data: a / (a + W(-a e^-a)) with a = all / used. Source: [X] Xiang and Kurkoski, and Desnoyers, on
/// greedy garbage collection.
fn amplification_in_theory(all: f64, used: f64) -> f64 {
    let a = all / used;
    let argument = -a * libm::exp(-a);
    // Newton's method on w e^w = argument, on the branch above -1.
    let w = (0..60).fold(-0.5, |w: f64, _| {
        let power = libm::exp(w);
        w - (w * power - argument) / (power * (w + 1.0))
    });
    a / (a + w)
}

#[test]
fn reclaim_settles_at_what_theory_says_in_timed_runs() {
    let text = include_str!("../../../../scenarios/bench/r8.toml");
    let list = ["workload.read_share=0.0", "drive.overwritten=1.5", "run.requests_per_drive=2000000"];
    let scenario = resolve(text, "r8", &settings(&list), &NoFiles).expect("it is good").scenario;
    let figures = run_design(&scenario, Design::Conv, &NoFiles, &mut |_| true).expect("it runs").figures;
    assert!(figures.sanity.holds(), "{:#?}", figures.sanity);
    // 64 superblocks for the data of 0.8 x 64. Garbage collection begins when two are erased, and those are
    // no spare space. The two that are open are: their data grows old like that of full ones.
    let theory = amplification_in_theory(64.0 - 2.0, 0.8 * 64.0);
    let found = figures.drives[0].ftl.reclaim_amplification();
    println!("{found} against {theory}");
    assert!((found / theory - 1.0).abs() < 0.04, "{found} against {theory} in theory");
}

#[test]
fn the_same_seed_gives_the_same_figures_and_another_seed_does_not() {
    let figures = |seed: u64| {
        let list = [format!("seed={seed}"), "workload.pattern=uniform".to_owned(), "run.measure=10 ms".to_owned()];
        let figures = run(Design::Xbof, &list);
        (figures.ios(), figures.events, figures.latency().max_us().to_bits(), figures.redirected)
    };
    assert_eq!(figures(3), figures(3));
    assert_ne!(figures(3), figures(4));
}

#[test]
fn lending_serves_a_read_burst_and_leaves_as_many_misses_as_its_target_at_depth_one() {
    let throughput = |design| run(design, &[]).throughput();
    let (conv, shrunk, xbof) = (throughput(Design::Conv), throughput(Design::Shrunk), throughput(Design::Xbof));
    assert!(xbof > 1.4 * shrunk && xbof < 1.01 * conv, "{conv} {shrunk} {xbof}");
    let small = ["workload.pattern=uniform", "workload.size=4 KiB", "workload.depth=1", "run.measure=200 ms"];
    let latency = |design| run(design, &settings(&small)).latency().mean_us();
    let (conv, xbof) = (latency(Design::Conv), latency(Design::Xbof));
    // Up to a tenth of the reads also reads a translation page: 30 us on the fastest page and 1.7 us of bus. Peers' memory adds a little.
    let misses = 0.10 * 31.7;
    assert!((misses - 1.0..misses + 0.5).contains(&(xbof - conv)), "{conv} us against {xbof} us");
}

#[test]
fn drives_whose_firmware_takes_no_time_do_not_wait_for_the_warm_up() {
    let text = include_str!("../../../../scenarios/bench/r8.toml");
    let list = settings(&["run.warmup=5 ms", "run.requests_per_drive=20000"]);
    let scenario = resolve(text, "r8", &list, &NoFiles).expect("the scenario is good").scenario;
    let figures = run_design(&scenario, Design::Conv, &NoFiles, &mut |_| true).expect("it runs").figures;
    assert!(figures.latency().max_us() < 2_000.0, "a read took {} us", figures.latency().max_us());
}
