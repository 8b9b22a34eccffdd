//! Effects of the keys of a controller on a drive: each against a closed form on the reference device R8, whose host, firmware and
//! map cost nothing.

use flashyard_describe::NoFiles;
use flashyard_xbof::jbof::{Design, JbofFigures};
use flashyard_xbof::room::{resolve, run_design};

const R8: &str = include_str!("../../../../scenarios/bench/r8.toml");

/// A page of R8 is sensed in 75 us, passes the bus in 12.3 us and the link, whose flits carry 64 of 68 bytes, in 1.09 us.
const SENSE_US: f64 = 75.0;
const BUS_US: f64 = 4096.0 / 333.0;
const LINK_US: f64 = 1.024 * 68.0 / 64.0;

fn run(settings: &[&str]) -> JbofFigures {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    let scenario =
        resolve(R8, "r8", &settings, &NoFiles).unwrap_or_else(|error| panic!("{settings:?}: {error}")).scenario;
    let figures = run_design(&scenario, Design::Conv, &NoFiles, &mut |_| true).expect("it runs").figures;
    assert!(figures.sanity.holds(), "{settings:?}: {:#?}", figures.sanity);
    figures
}

fn refusal(settings: &[&str]) -> String {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    match resolve(R8, "r8", &settings, &NoFiles) {
        Err(error) => error.to_string(),
        Ok(resolved) => match run_design(&resolved.scenario, Design::Conv, &NoFiles, &mut |_| true) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{settings:?} runs"),
        },
    }
}

fn mean_us(figures: &JbofFigures) -> f64 {
    figures.drives[0].latency.mean_us()
}

fn median_us(figures: &JbofFigures) -> f64 {
    figures.drives[0].latency.percentile_us(0.5)
}

#[track_caller]
fn near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{found} where {expected} is expected");
}

const READS: [&str; 4] =
    ["workload.depth=1", "workload.read_share=1.0", "run.requests_per_drive=20000", "run.warmup=0 ms"];

#[test]
fn a_map_that_is_partly_in_memory_costs_a_read_of_flash_for_each_miss() {
    let whole = run(&READS);
    near(mean_us(&whole), SENSE_US + BUS_US + LINK_US, 0.001);
    let ample = run(&[&READS[..], &["drive.map_memory=1 GiB"]].concat());
    assert_eq!(mean_us(&ample), mean_us(&whole));
    // Half of the translation pages are there when reads are uniform, and a miss reads 4 KiB from flash of the fastest kind.
    let slots = f64::from(whole.drives[0].servers.dies) * 2.0 * 64.0 * 256.0 * 0.8;
    let half = format!("drive.map_memory={} KiB", (slots / 1024.0 / 2.0).round() * 4.0);
    let partial = run(&[&READS[..], &[&half, "run.warm_mapping_requests=20000"]].concat());
    near(mean_us(&partial), mean_us(&whole) + 0.5 * (SENSE_US + BUS_US), 0.01);
    let cache = partial.drives[0].cache;
    near(cache.misses as f64 / 20_000.0, 0.5, 0.02);
}

#[test]
fn programs_keep_to_the_rate_that_power_allows() {
    let writes =
        ["workload.read_share=0.0", "workload.pattern=sequential", "workload.size=128 KiB", "workload.depth=32"];
    let span = ["run.warmup=200 ms", "run.requests_per_drive=20000"];
    let rate = |figures: &JbofFigures| figures.drives[0].write_bytes as f64 / figures.window.as_secs_f64() / 1e6;
    let free = rate(&run(&[&writes[..], &span].concat()));
    let limited = rate(&run(&[&writes[..], &span, &["drive.program_rate=100 MB/s"]].concat()));
    let ample = rate(&run(&[&writes[..], &span, &["drive.program_rate=100 GB/s"]].concat()));
    assert!(free > 300.0, "{free} MB/s");
    near(limited, 100.0, 0.01);
    near(ample, free, 0.001);
}

#[test]
fn a_write_of_half_a_unit_reads_the_other_half_and_writes_both() {
    // Fewer than the buffer holds.
    let writes = ["workload.depth=1", "workload.read_share=0.0", "run.requests_per_drive=500", "run.warmup=0 ms"];
    let slots = run(&writes);
    near(median_us(&slots), LINK_US, 0.01);
    assert_eq!(slots.drives[0].ftl.moved_slots, 0);
    let units = run(&[&writes[..], &["drive.mapping_unit=8 KiB"]].concat());
    // Few of the other halves are still in the write buffer.
    near(median_us(&units), SENSE_US + BUS_US + LINK_US, 0.01);
    let ftl = units.drives[0].ftl;
    assert_eq!((ftl.host_slots, ftl.moved_slots), (500, 500));
    let whole = run(&[&writes[..], &["drive.mapping_unit=8 KiB", "workload.size=8 KiB"]].concat());
    near(median_us(&whole), 2.0 * LINK_US, 0.01);
    assert_eq!(whole.drives[0].ftl.moved_slots, 0);
}

#[test]
fn what_is_read_ahead_comes_at_the_speed_of_all_buses() {
    let sequential = [&READS[..], &["workload.pattern=sequential", "drive.read_cache=8 MiB"]].concat();
    let alone = run(&sequential);
    // Sequential data is new to the cache, too.
    near(mean_us(&alone), SENSE_US + BUS_US + LINK_US, 0.001);
    let ahead = run(&[&sequential[..], &["drive.read_ahead=1 MiB"]].concat());
    near(mean_us(&ahead), BUS_US / 8.0, 0.02);
    let random = run(&[&READS[..], &["drive.read_cache=8 MiB", "drive.read_ahead=1 MiB"]].concat());
    near(mean_us(&random), SENSE_US + BUS_US + LINK_US, 0.01);
}

#[test]
fn what_has_been_read_is_read_from_the_cache() {
    // 4 MiB, read about five times over.
    let small = ["workload.span=4 MiB", "drive.read_cache=8 MiB"];
    let cached = run(&[&READS[..], &small].concat());
    let pages = 1024.0;
    // Of n draws of p pages, p (1 - (1 - 1/p)^n) are first ones.
    let first = pages * (1.0 - libm::exp(20_000.0 * libm::log(1.0 - 1.0 / pages)));
    near(mean_us(&cached), LINK_US + (SENSE_US + BUS_US) * first / 20_000.0, 0.02);
}

#[test]
fn keys_that_cannot_be_are_refused_by_name() {
    for (settings, words) in [
        (&["drive.mapping_unit=12 KiB"][..], ["drive.mapping_unit", "power of two"]),
        (&["drive.mapping_unit=64 KiB"], ["drive.mapping_unit", "8 KiB that a die programs"]),
        (&["drive.mapping_unit=8 KiB", "drive.frontiers=shared"], ["drive.mapping_unit", "separate"]),
        (&["drive.mapping_unit=8 KiB", "drive.drawn=true"], ["drive.mapping_unit", "drawn"]),
        (&["drive.slc_grows=true", "drive.drawn=true"], ["drive.", "single-level cache"]),
        (&["drive.read_ahead=1 MiB"], ["drive.read_ahead", "drive.read_cache"]),
        (&["drive.read_ahead=8 MiB", "drive.read_cache=8 MiB"], ["drive.read_ahead", "half"]),
        (&["drive.program_rate=0 MB/s"], ["drive.program_rate", "1 MB/s"]),
        (&["drive.map_memory=1 KiB"], ["drive.map_memory", "4 KiB"]),
    ] {
        let message = refusal(settings);
        for word in words {
            assert!(message.contains(word), "{settings:?}: {message:?} does not say {word:?}");
        }
    }
}
