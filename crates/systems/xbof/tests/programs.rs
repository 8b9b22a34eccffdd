//! Programs on file systems of their own drive an enclosure of small drives.

use flashyard_describe::NoFiles;
use flashyard_report::DesignResult;
use flashyard_xbof::jbof::{Design, JbofFigures};
use flashyard_xbof::room::{measure_design, of_laws, resolve, run_design};

/// Three small drives, one of them busy.
const SMALL: &str = r#"
name = "programs"
seed = 1
designs = ["xbof"]
[jbof]
drives = 3
busy_drives = 1
[drive]
profile = "xbof-4tb"
channels = 2
dies_per_channel = 2
planes_per_die = 2
blocks_per_plane = 256
pages_per_block = 32
over_provisioning = 0.1
reclaim_below = 4
write_buffer = "512 KiB"
core_clock_mhz = 50
[host]
profile = "dpu"
[prices]
profile = "2025"
[harvest]
period = "3 ms"
segment_pages = 4
[program]
name = "fileserver"
threads = 8
entries = 400
[run]
warmup = "50 ms"
measure = "100 ms"
"#;

fn figures(design: Design, settings: &[&str]) -> JbofFigures {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    let resolved = resolve(SMALL, "small", &settings, &NoFiles).expect("it is a scenario");
    measure_design(&resolved.scenario, design, &NoFiles, &mut |_| true).expect("it runs")
}

fn result(settings: &[&str]) -> DesignResult {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    let resolved = resolve(SMALL, "small", &settings, &NoFiles).expect("it is a scenario");
    run_design(&resolved.scenario, Design::Xbof, &NoFiles, &mut |_| true).expect("it runs").result
}

#[test]
fn every_program_runs_on_every_design_and_each_request_that_it_issues_completes() {
    for name in ["fileserver", "webserver", "varmail", "overwrite", "readrandom", "readrandomwriterandom"] {
        for file_system in ["cvfs", "in-place"] {
            let settings = [format!("program.name={name:?}"), format!("program.file_system={file_system:?}")];
            let mut settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            // Three memtables.
            if !["fileserver", "webserver", "varmail"].contains(&name) {
                settings.push("program.entries=30000");
            }
            let all = [Design::Conv, Design::Oc, Design::Vh, Design::Xbof];
            for &design in if file_system == "cvfs" { &all[..] } else { &all[3..] } {
                let figures = figures(design, &settings);
                // One of the laws: requests issued = requests finished, and bytes in = bytes out.
                of_laws(&figures).expect("the laws hold");
                let what = format!("{name} on {file_system}, {}", design.name());
                assert_eq!(figures.streams.len(), 8, "{what}");
                assert!(figures.ios() > 20, "{what}: {} requests", figures.ios());
            }
        }
    }
}

#[test]
fn a_faster_drive_lets_the_program_come_further() {
    let [slow, fast] = [Design::Shrunk, Design::Conv].map(|design| figures(design, &[]).throughput());
    assert!(fast > 1.1 * slow, "{fast} and {slow} B/s: twice the cores");
}

#[test]
fn a_program_again_is_the_same_to_the_byte_and_another_seed_is_another_run() {
    let text = |settings: &[&str]| serde_json::to_string(&result(settings)).expect("it is plain data");
    assert_eq!(text(&[]), text(&[]));
    assert_ne!(text(&[]), text(&["seed=2"]));
}

#[test]
fn reads_and_writes_share_a_half_duplex_link() {
    // A link that is slower than the rest.
    let settings = ["drive.link_rate=\"100 MB/s\"", "drive.core_clock_mhz=1000", "run.measure=\"500 ms\""];
    let rate = |more: &[&str]| figures(Design::Conv, &[&settings[..], more].concat()).throughput();
    let shared = rate(&["fabric.half_duplex=true"]);
    assert!((80e6..99e6).contains(&shared), "{shared} B/s over 93.75 MB/s of payload, and what was under way");
    // DMA engines pace transfers otherwise, and these are faster.
    let apart = rate(&[]);
    assert!(apart > 1.2 * shared, "{apart} and {shared} B/s");
}

#[test]
fn a_file_set_that_does_not_fit_and_a_program_that_is_none_are_refused() {
    let refused = |setting: &str| {
        let resolved = resolve(SMALL, "small", &[setting.to_owned()], &NoFiles).map_err(|error| error.to_string())?;
        let run = run_design(&resolved.scenario, Design::Xbof, &NoFiles, &mut |_| true);
        run.map(drop).map_err(|error| error.to_string())
    };
    let error = refused("program.entries=20000").expect_err("it is larger than the drive");
    assert!(error.contains("program.entries") && error.contains("full"), "{error}");
    let error = refused("program.name=\"oltp\"").expect_err("there is no such program");
    assert!(error.contains("fileserver") && error.contains("readrandomwriterandom"), "{error}");
}
