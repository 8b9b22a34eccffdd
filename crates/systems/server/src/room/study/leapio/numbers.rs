//! The published figures: under which load each is measured, and which figure of which runs it is.

use super::loads::Load;
use super::runs::{LeapRecord, LeapRun, Services};
use crate::stack::Stack;
use flashyard_describe::reproduce::{Number, percent_above};

/// A number made of runs.
type LeapNumber = Number<LeapRun, LeapRecord>;

/// A figure of a run.
type Figure = fn(&LeapRecord) -> f64;

/// Requests in flight over which figure 6 is taken. Source: \[P\] 1 to 256.
pub(super) const DEPTHS: [u32; 5] = [1, 4, 16, 64, 256];
/// The depth of latencies. \[A\]
const USUAL: u32 = 32;

fn rate(record: &LeapRecord) -> f64 {
    record.thousand_per_second
}

fn mean(record: &LeapRecord) -> f64 {
    record.mean_us
}

fn p99(record: &LeapRecord) -> f64 {
    record.percentiles_us[1]
}

fn p999(record: &LeapRecord) -> f64 {
    record.percentiles_us[2]
}

fn p9999(record: &LeapRecord) -> f64 {
    record.percentiles_us[3]
}

fn bytes(record: &LeapRecord) -> f64 {
    record.gigabytes_per_second.iter().sum()
}

const fn mixed(stack: Stack, depth: u32) -> LeapRun {
    LeapRun::new(stack, Load::Polling { guests: 1, depth, read_percent: 50 })
}

const fn database(stack: Stack, clients: u32) -> LeapRun {
    LeapRun::new(stack, Load::Database { clients })
}

const fn db_bench(stack: Stack) -> LeapRun {
    LeapRun::new(stack, Load::DbBench)
}

/// Clients of the database on a drive of this or of another server. Source: \[P\] §5.1.4 has 32 threads, and §5.2 (2), whose runtime is on a card, repeats
/// that setup.
const CLIENTS: u32 = 32;

pub(super) const fn search(stack: Stack, batch: bool, services: Services) -> LeapRun {
    LeapRun::new(stack, Load::Search { batch }).with(services)
}

pub(super) const fn neighbours(writes: bool, isolated: bool) -> LeapRun {
    LeapRun::new(Stack::LeapIo, Load::Neighbours { writes, isolated })
}

/// Figures of two runs, the first over the second.
const RATIOS: &[(&str, LeapRun, LeapRun, Figure)] = &[
    (
        "eight-guests",
        LeapRun::new(Stack::LeapIo, Load::Polling { guests: 8, depth: 32, read_percent: 100 }),
        LeapRun::reads(Stack::LeapIo, 256),
        rate,
    ),
    (
        "background-hurts",
        search(Stack::LeapIo, true, Services::None),
        search(Stack::LeapIo, false, Services::None),
        mean,
    ),
    (
        "priority-restores",
        search(Stack::LeapIo, true, Services::Priority),
        search(Stack::LeapIo, false, Services::None),
        mean,
    ),
    (
        "snapshot-reads",
        search(Stack::LeapIo, false, Services::Versions),
        search(Stack::LeapIo, false, Services::Short),
        mean,
    ),
    (
        "snapshot-background",
        search(Stack::LeapIo, true, Services::Versions),
        search(Stack::LeapIo, false, Services::Versions),
        mean,
    ),
    (
        "snapshot-priority",
        search(Stack::LeapIo, true, Services::PriorityVersions),
        search(Stack::LeapIo, false, Services::Versions),
        mean,
    ),
    (
        "remote-priority",
        search(Stack::LeapIoRemote, true, Services::Priority),
        search(Stack::LeapIoRemote, false, Services::None),
        mean,
    ),
    (
        "raid0-gains",
        search(Stack::LeapIoRemote, true, Services::PriorityStripe),
        search(Stack::LeapIoRemote, true, Services::Priority),
        mean,
    ),
    (
        "raid1-loses",
        search(Stack::LeapIoRemote, true, Services::PriorityMirror),
        search(Stack::LeapIoRemote, true, Services::PriorityStripe),
        bytes,
    ),
    ("neighbour-hurts", neighbours(true, false), neighbours(false, false), mean),
    ("channels-isolate", neighbours(true, true), neighbours(false, true), mean),
];

/// Figures of two runs, the first above the second in percent.
const ABOVE: &[(&str, LeapRun, LeapRun, Figure)] = &[
    ("reads-latency", LeapRun::reads(Stack::LeapIo, USUAL), LeapRun::reads(Stack::PassThrough, USUAL), mean),
    ("reads-tail", LeapRun::reads(Stack::LeapIo, USUAL), LeapRun::reads(Stack::PassThrough, USUAL), p999),
    ("db-bench-pass-through", db_bench(Stack::LeapIo), db_bench(Stack::PassThrough), rate),
    ("db-bench-virtual-host", db_bench(Stack::LeapIo), db_bench(Stack::VirtualHost), rate),
    ("db-bench-tail", db_bench(Stack::LeapIo), db_bench(Stack::VirtualHost), p9999),
    ("remote-throughput", database(Stack::LeapIoRemote, CLIENTS), database(Stack::KernelNof, CLIENTS), rate),
    ("remote-latency", database(Stack::LeapIoRemote, CLIENTS), database(Stack::KernelNof, CLIENTS), mean),
    ("soc-loss", LeapRun::reads(Stack::LeapIoSoc, 256), LeapRun::reads(Stack::LeapIo, 256), rate),
    ("soc-remote-throughput", database(Stack::LeapIoRemoteSoc, CLIENTS), database(Stack::LeapIoRemote, CLIENTS), rate),
    ("soc-remote-tail", database(Stack::LeapIoRemoteSoc, CLIENTS), database(Stack::LeapIoRemote, CLIENTS), p99),
];

/// Dollars a year of a card, and of the cores that it frees. Source: \[P\] sheet §4.
const DOLLARS: [f64; 2] = [100.0, 2000.0];

/// Losses of LeapIO at each depth of figure 6, in percent.
fn losses(records: &[&LeapRecord]) -> Vec<f64> {
    records.chunks(2).map(|pair| percent_above(rate(pair[0]), rate(pair[1]))).collect()
}

pub(super) fn numbers() -> Vec<LeapNumber> {
    let ratio = |&(id, above, below, of): &(&'static str, LeapRun, LeapRun, Figure)| {
        Number::of(id, [above, below], move |records: &[&LeapRecord]| of(records[0]) / of(records[1]))
    };
    let above = |&(id, above, below, of): &(&'static str, LeapRun, LeapRun, Figure)| {
        Number::of(id, [above, below], move |records: &[&LeapRecord]| percent_above(of(records[0]), of(records[1])))
    };
    let mut numbers: Vec<LeapNumber> = RATIOS.iter().map(ratio).chain(ABOVE.iter().map(above)).collect();
    let both = |of: fn(Stack, u32) -> LeapRun| -> Vec<LeapRun> {
        DEPTHS.iter().flat_map(|&depth| [of(Stack::LeapIo, depth), of(Stack::PassThrough, depth)]).collect()
    };
    let (reads, writes) = (both(LeapRun::reads), both(mixed));
    let average = |records: &[&LeapRecord]| losses(records).iter().sum::<f64>() / DEPTHS.len() as f64;
    numbers.push(Number::of("reads-loss", reads.clone(), average));
    numbers.push(Number::of("mixed-loss", writes.clone(), average));
    numbers.push(Number::of("bare-loss-least", [reads, writes].concat(), |records: &[&LeapRecord]| {
        losses(records).into_iter().fold(f64::INFINITY, f64::min)
    }));
    numbers.push(Number::of("bare-requests", [LeapRun::reads(Stack::LeapIo, 256)], |records: &[&LeapRecord]| {
        rate(records[0])
    }));
    let interrupts = [
        database(Stack::LeapIoOs, CLIENTS),
        database(Stack::PassThroughOs, CLIENTS),
        LeapRun::reads(Stack::LeapIo, USUAL),
        LeapRun::reads(Stack::PassThrough, USUAL),
    ];
    numbers.push(Number::of("interrupts-cost", interrupts, |records: &[&LeapRecord]| {
        (mean(records[0]) - mean(records[1])) / (mean(records[2]) - mean(records[3]))
    }));
    let all = [Stack::FullVirtualization, Stack::VirtualHost, Stack::PassThrough, Stack::LeapIo].map(db_bench);
    numbers.push(Number::of("db-bench-full", all, |records: &[&LeapRecord]| {
        rate(records[0]) / records[1..].iter().map(|record| rate(record)).fold(f64::INFINITY, f64::min)
    }));
    let priority = [search(Stack::LeapIo, true, Services::Priority)];
    numbers.push(Number::of("priority-batch", priority, |records: &[&LeapRecord]| {
        100.0 * records[0].gigabytes_per_second[1] / bytes(records[0])
    }));
    numbers.push(Number::closed("soc-saving", DOLLARS[1] / DOLLARS[0]));
    numbers.push(Number::closed("soc-cores-pay", 4.0 * DOLLARS[0] / DOLLARS[1]));
    numbers
}
