//! Lenders with work of their own, twelve busy drives, applications, and what sharing costs.

use super::super::section::JbofScenario;
use super::loads::APPLICATIONS;
use super::number::{Number, mean_gain, throughput_of};
use super::record::{RunRecord, StreamRecord};
use super::runs::{LenderLoad, PAUSES, Run};
use crate::jbof::Design;
use crate::xbof::HarvestConfig;
use flashyard_applications::hosted::ProgramName;
use flashyard_describe::reproduce::percent_above;
use flashyard_stats::Cause;
use flashyard_units::Named;

/// Busy drives of the default experiment: the first ones. Source: [P] sheet xbof §4.2.
const BORROWERS: usize = 6;
/// The others. Source: [P] sheet xbof §4.2.
const LENDERS: usize = 6;

/// Depths of the lenders' own writes. Source: [P] sheet xbof §7, row 26.
const OWN_DEPTHS: [u32; 3] = [32, 16, 1];

/// Depths at which lenders run src and have something to lend: the source leaves 32 out. Source: [P] sheet xbof §7, rows 26 and 27.
const SRC_DEPTHS: [u32; 2] = [16, 1];

/// Sizes in KiB of the borrowers' requests: those of Fig. 9, which depth 64 is that of. Source: [A] sheet xbof §6.
const BORROWERS_KIB: [u32; 3] = [64, 128, 256];

/// Groups of the complex scenario. Source: [P] sheet xbof §6.
const GROUPS: u32 = 10;

pub(super) fn numbers(base: &JbofScenario) -> Vec<Number> {
    let mut numbers = lenders();
    numbers.extend(complex());
    numbers.extend(latency(base));
    numbers.extend(charged(base));
    let all: Vec<usize> = (0..APPLICATIONS.len()).collect();
    for (id, against) in [("applications-gain", Design::Shrunk), ("applications-conv", Design::Conv)] {
        let of = |design| all.iter().map(move |&place| Run::Application(design, place));
        let runs: Vec<Run> = of(Design::Xbof).chain(of(against)).collect();
        numbers.push(Number::of(id, runs, |figures| mean_gain(figures, RunRecord::throughput)));
    }
    for (id, against) in [("programs-gain", Design::Shrunk), ("programs-conv", Design::Conv)] {
        let of = |design| ProgramName::ALL.iter().map(move |&name| Run::Program(design, name));
        let runs: Vec<Run> = of(Design::Xbof).chain(of(against)).collect();
        numbers.push(Number::of(id, runs, |figures| mean_gain(figures, RunRecord::throughput)));
    }
    numbers
}

/// Runs with lenders at work: XBOF's, then Shrunk's, each with readers and writers of all sizes as borrowers.
fn beside(owns: &[LenderLoad]) -> Vec<Run> {
    let of = |design| {
        let loads = [true, false].into_iter().flat_map(|read| BORROWERS_KIB.map(|kib| (read, kib)));
        owns.iter().flat_map(move |&own| loads.clone().map(move |(read, kib)| Run::Lenders { design, read, kib, own }))
    };
    of(Design::Xbof).chain(of(Design::Shrunk)).collect()
}

fn lenders() -> Vec<Number> {
    let own: Vec<LenderLoad> =
        OWN_DEPTHS.map(LenderLoad::SmallWrites).into_iter().chain(SRC_DEPTHS.map(LenderLoad::Src)).collect();
    let mut numbers = vec![Number::of("lender-loss", beside(&own), |figures| {
        -mean_gain(figures, |figures| throughput_of(figures, BORROWERS, LENDERS))
    })];
    for (id, depth) in [("lender-src", 32), ("lender-src-16", 16)] {
        let own = LenderLoad::Src(depth);
        let runs = [true, false].map(|read| Run::Lenders { design: Design::Xbof, read, kib: 64, own });
        numbers.push(Number::of(id, runs, |figures| {
            let lent = figures.iter().flat_map(|run| run.drives.iter().skip(BORROWERS));
            100.0 * lent.map(|drive| drive.lent_busy_share).sum::<f64>() / (LENDERS * figures.len()) as f64
        }));
    }
    for depth in OWN_DEPTHS {
        let runs = beside(&[LenderLoad::SmallWrites(depth)]);
        numbers.push(Number::of(format!("borrower-gain-{depth}"), runs, |figures| {
            mean_gain(figures, |figures| throughput_of(figures, 0, BORROWERS))
        }));
    }
    numbers
}

fn complex() -> Vec<Number> {
    let of = |design| (0..GROUPS).map(move |group| Run::Complex { design, group });
    let both: Vec<Run> = of(Design::Xbof).chain(of(Design::Shrunk)).collect();
    let peak = |figures: &[&RunRecord]| figures.iter().map(|run| peak(run)).fold(0.0, f64::max) / 1e9;
    // The source compares groups, not drives.
    let completion = |figures: &[&RunRecord]| -> Vec<f64> {
        let (ours, theirs) = figures.split_at(figures.len() / 2);
        let at_work = |group: &RunRecord| -> f64 {
            group.streams.iter().map(|stream| (stream.active() - PAUSES).as_secs_f64()).sum()
        };
        ours.iter().zip(theirs).map(|(ours, theirs)| percent_above(at_work(ours), at_work(theirs))).collect()
    };
    vec![
        Number::of("complex-peak-shrunk", of(Design::Shrunk).collect::<Vec<_>>(), peak),
        Number::of("complex-peak-xbof", of(Design::Xbof).collect::<Vec<_>>(), peak),
        Number::of("complex-completion-most", both.clone(), move |figures| {
            completion(figures).into_iter().fold(0.0, f64::min)
        }),
        Number::of("complex-completion-mean", both, move |figures| {
            let all = completion(figures);
            all.iter().sum::<f64>() / all.len() as f64
        }),
    ]
}

/// The highest throughput of a workload, over its time at work: the figure's distribution is one over workloads.
fn peak(figures: &RunRecord) -> f64 {
    let rate = |stream: &StreamRecord| stream.bytes as f64 / (stream.active() - PAUSES).as_secs_f64();
    figures.streams.iter().map(rate).fold(0.0, f64::max)
}

fn random_64k(design: Design) -> Run {
    Run::Micro { design, read: true, sequential: false, kib: 64 }
}

/// Sizes in KiB of the reads whose latency the source breaks down. Source: [P] sheet xbof §7, row 28.
const BROKEN_DOWN_KIB: [u64; 2] = [4, 64];

/// Time of a read, and where it goes.
fn latency(base: &JbofScenario) -> Vec<Number> {
    let unloaded = |design, kib| Run::Unloaded { design, read: true, kib };
    let both = |design| BROKEN_DOWN_KIB.map(|kib| unloaded(design, kib));
    // Firmware's waits for the map in its own memory are another part of the source's breakdown, "DRAM".
    let stalls_us = BROKEN_DOWN_KIB.map(|kib| (base.drive.stall_per_slice.0 * (kib / 4)).as_us_f64());
    let compared = [both(Design::Xbof), both(Design::Conv)].concat();
    vec![
        Number::of("latency-flash", compared.clone(), |figures| {
            mean_gain(figures, |run| run.spent_us(&[Cause::Mapping, Cause::Bus, Cause::Die]))
        }),
        Number::of("latency-processor", compared, move |figures| {
            let (ours, theirs) = figures.split_at(stalls_us.len());
            let gains = ours.iter().zip(theirs).zip(stalls_us).map(|((ours, theirs), stall_us)| {
                let processor_us = |run: &RunRecord| run.spent_us(&[Cause::Core]) - stall_us;
                percent_above(processor_us(ours), processor_us(theirs))
            });
            gains.sum::<f64>() / stalls_us.len() as f64
        }),
        Number::of("latency-inter-ssd", [random_64k(Design::Xbof), unloaded(Design::Conv, 64)], |figures| {
            let redirected = figures[0].lent_seconds() / (figures[0].core_seconds() / figures[0].requests as f64);
            let each_us = figures[0].spent_us(&[Cause::InterDrive]) * figures[0].requests as f64 / redirected;
            100.0 * each_us / figures[1].spent_in_all_us()
        }),
        Number::of("latency-host", [unloaded(Design::Xbof, 4), unloaded(Design::Conv, 4)], |figures| {
            1000.0 * (figures[0].spent_us(&[Cause::Host]) - figures[1].spent_us(&[Cause::Host]))
        }),
        Number::of("latency-remote-access", [unloaded(Design::Xbof, 4)], |figures| {
            let accesses: u64 = figures[0].drives.iter().map(|drive| drive.offsite_hits).sum();
            figures[0].spent_us(&[Cause::InterDrive]) * figures[0].requests as f64 / accesses as f64
        }),
    ]
}

/// Charges of runs for one message and for one commit, worked out from where requests spent their time.
fn charged(base: &JbofScenario) -> [Number; 2] {
    let cycles = base.drive.cycles_per_command + 16 * base.drive.cycles_per_slice;
    // A command of 64 KiB lies in one page of the map, whose lock it takes.
    let held_us = HarvestConfig::default().read_lock.as_us_f64();
    let firmware_us = cycles as f64 / base.drive.core_clock_mhz as f64 + held_us;
    let stall_us = (base.drive.stall_per_slice.0 * 16).as_us_f64();
    let dequeue = Number::of("message-dequeue", [random_64k(Design::Xbof)], move |figures| {
        let ios = figures[0].requests as f64;
        let share = figures[0].lent_seconds() * 1e6 / firmware_us / ios;
        // A command at home waits for its own memory, a redirected one for its owner's agent.
        let core_us = figures[0].spent_us(&[Cause::Core]);
        let agent_us = core_us - firmware_us - (1.0 - share) * stall_us;
        let operations: u64 = figures[0].drives.iter().map(|drive| drive.agent_operations).sum();
        1000.0 * agent_us * ios / operations as f64
    });
    let writes = Run::Unloaded { design: Design::Xbof, read: false, kib: 4 };
    let commit = Number::of("log-commit", [writes], |figures| {
        let run = figures[0];
        let hits: u64 = run.drives.iter().map(|drive| drive.offsite_hits).sum();
        let records: u64 = run.drives.iter().map(|drive| drive.redo_records).sum();
        let remote_us = flashyard_fabric::FabricConfig::default().load.as_us_f64() * hits as f64;
        let between_us = run.spent_us(&[Cause::InterDrive]) * run.requests as f64;
        1000.0 * (between_us - remote_us) / records as f64
    });
    [dequeue, commit]
}
