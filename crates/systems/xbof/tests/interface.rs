//! NVMe's queues between driver and drive: a command takes the sum of its parts, a coalesced interrupt comes no later than
//! its aggregation time, and nothing is lost.

use flashyard_blk::Operation;
use flashyard_describe::NoFiles;
use flashyard_xbof::jbof::{Design, JbofFigures};
use flashyard_xbof::room::{resolve, run_design};

const XBOF: &str = include_str!("../../../../scenarios/xbof/scenario.toml");
const REQUESTS: u64 = 501;
const US: u128 = 1_000_000;

/// Random reads of 4 KiB; all requests count.
fn run(design: Design, depth: u32, host: &[&str]) -> JbofFigures {
    let mut settings: Vec<String> = ["workload.pattern=uniform", "workload.size=4 KiB", "workload.read_share=1.0"]
        .iter()
        .chain(&["run.warmup=0 ns", "run.warm_mapping_requests=1000", "jbof.busy_drives=1"])
        .chain(host)
        .map(|&setting| setting.to_owned())
        .collect();
    settings.push(format!("workload.depth={depth}"));
    settings.push(format!("run.requests_per_drive={REQUESTS}"));
    let text = XBOF.replace("measure = \"80 ms\"", "");
    let scenario = resolve(&text, "xbof", &settings, &NoFiles).expect("the scenario is good").scenario;
    run_design(&scenario, design, &NoFiles, &mut |_| true).expect("it runs").figures
}

/// Latency of all reads of the drive, in picoseconds. Those in flight when the last one is issued may not count.
fn latency(figures: &JbofFigures) -> u128 {
    let reads = figures.streams[0].of(Operation::Read);
    assert!((REQUESTS - 8..=REQUESTS).contains(&reads.ios), "{} completions", reads.ios);
    assert!(figures.sanity.holds(), "{:#?}", figures.sanity);
    reads.latency.sum_ps()
}

const PARTS: [&str; 5] = [
    "host.doorbell=300 ns",
    "host.command_fetch=900 ns",
    "host.completion_write=400 ns",
    "host.completions=interrupt",
    "host.interrupt_latency=3 us",
];
const COALESCED: [&str; 2] = ["host.interrupt_threshold=4", "host.interrupt_time=200 us"];

#[test]
fn a_command_takes_the_sum_of_its_parts() {
    let free = latency(&run(Design::Conv, 1, &[]));
    let queues = latency(&run(Design::Conv, 1, &PARTS));
    assert_eq!(queues - free, u128::from(REQUESTS) * 4_600_000, "0.3 + 0.9 + 0.4 + 3 us each");
    let polled = latency(&run(Design::Conv, 1, &PARTS[..3]));
    assert_eq!(polled - free, u128::from(REQUESTS) * 1_600_000, "0.3 + 0.9 + 0.4 us each");
}

#[test]
fn a_lone_completion_waits_for_exactly_the_aggregation_time() {
    let queues = latency(&run(Design::Conv, 1, &PARTS));
    let coalesced = latency(&run(Design::Conv, 1, &[&PARTS[..], &COALESCED].concat()));
    assert_eq!(coalesced - queues, u128::from(REQUESTS) * 200 * US);
}

#[test]
fn every_design_goes_on_to_its_last_request() {
    for design in Design::ALL {
        // Nine in flight are two interrupts of four, and one that the time sends.
        let coalesced = run(design, 9, &[&PARTS[..], &COALESCED].concat());
        assert!(latency(&coalesced) > latency(&run(design, 9, &PARTS)), "{design:?} waits for interrupts");
    }
}

#[test]
fn an_aggregation_time_that_nvme_cannot_count_is_refused() {
    let odd = ["host.completions=interrupt", "host.interrupt_threshold=4", "host.interrupt_time=150 us"];
    let scenario = resolve(XBOF, "xbof", &odd.map(str::to_owned), &NoFiles).expect("the keys are known").scenario;
    let message = run_design(&scenario, Design::Conv, &NoFiles, &mut |_| true).err().map(|error| error.to_string());
    assert!(message.as_ref().is_some_and(|message| message.contains("multiple of")), "{message:?}");
}
