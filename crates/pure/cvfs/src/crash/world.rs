//! The world that is explored.

use super::device::{CrashDevice, Loss};
use super::run::{Run, cleaning};
use super::tree::Tree;
use crate::discard::DiscardPolicy;
use crate::error::FsError;
use crate::fs::{Config, FileSystem};
use crate::layout::Format;
use flashyard_blk::VolumeError;
use flashyard_faults::{Case, Fault, Fingerprint, Injector, Outcome, World};

/// A small volume, worked on by random operations with changes of size among them.
#[derive(Clone, Copy, Debug)]
pub struct CrashWorld {
    /// Blocks of the device: above 280.
    pub blocks: u32,
    /// Operations of a run that does not say.
    pub operations: u32,
}

impl Default for CrashWorld {
    fn default() -> Self {
        Self { blocks: 320, operations: 120 }
    }
}

type Volume<'a> = FileSystem<CrashDevice<'a>>;

impl World for CrashWorld {
    fn name(&self) -> String {
        format!("cvfs, a volume of {} blocks", self.blocks)
    }

    fn faults(&self) -> Vec<Fault> {
        Loss::ALL.map(Loss::fault).to_vec()
    }

    fn size(&self) -> u32 {
        self.operations
    }

    fn run(&self, case: &Case) -> Outcome {
        let mut outcome = Outcome::default();
        let device = CrashDevice::new(self.blocks, Injector::new(&case.plan), case.seed);
        let config = Config {
            cleaning: cleaning(case.seed),
            discards: DiscardPolicy::AGGRESSIVE,
            discard_blocks_min: 1,
            // Small, so that pages are written long before a checkpoint.
            dirty_pages_max: 16,
        };
        let mut state = Walk { config, outcome: &mut outcome, fingerprint: Fingerprint::default() };
        let walked = state.walk(device, case.seed, case.size.unwrap_or(self.operations));
        let fingerprint = state.fingerprint.get();
        if let Err(violation) = walked {
            outcome.violation = Some(violation);
        }
        Outcome { fingerprint, ..outcome }
    }
}

/// One run under way.
struct Walk<'o> {
    config: Config,
    outcome: &'o mut Outcome,
    fingerprint: Fingerprint,
}

impl Walk<'_> {
    /// Errors: the violation, in a sentence.
    fn walk(&mut self, device: CrashDevice<'_>, seed: u64, operations: u32) -> Result<(), String> {
        let format = Format { segment_blocks: 8, id: seed };
        let mut fs = FileSystem::format(device, format, self.config, 0).map_err(|error| format!("format: {error}"))?;
        let mut run = Run::new(seed, Tree { blocks: fs.usage().blocks, ..Tree::default() });
        fs.device_mut().watch(false);
        let mut walked = Ok(());
        for number in 0..operations {
            walked = match run.step(&mut fs) {
                Ok(()) => Ok(()),
                Err(_) if fs.device().lost().is_some() => {
                    self.count(&fs);
                    let (mounted, found) = self.recover(fs, &mut run)?;
                    fs = mounted;
                    found
                }
                Err(error) => Err(format!("operation {number}: {error}")),
            };
            if walked.is_err() {
                break;
            }
        }
        self.count(&fs);
        if walked.is_ok() {
            fs.device_mut().watch(true);
            walked = match Tree::of(&mut fs) {
                Ok(tree) if tree == run.tree => check(&mut fs),
                Ok(tree) => Err(format!("at the end, {}", run.tree.difference(&tree))),
                Err(error) => Err(format!("at the end: {error}")),
            };
        }
        let counters = &mut self.outcome.counters;
        *counters.entry("shrinks").or_default() += run.shrinks;
        *counters.entry("blocks remapped").or_default() += fs.device().remapped;
        *counters.entry("blocks trimmed").or_default() += fs.device().trimmed;
        *counters.entry("refusals").or_default() += run.refusals;
        let injector = fs.into_device().into_injector();
        self.outcome.events = injector.events();
        self.outcome.taken = injector.into_taken();
        walked
    }

    fn count(&mut self, fs: &Volume<'_>) {
        let counters = &mut self.outcome.counters;
        *counters.entry("checkpoints").or_default() += fs.counters().checkpoints;
        *counters.entry("segments cleaned").or_default() += fs.counters().segments_cleaned;
    }

    /// Mounts after a loss of power, as often as it takes, and compares.
    ///
    /// Errors: it cannot be mounted. A difference is in the second value.
    fn recover<'a>(&mut self, fs: Volume<'a>, run: &mut Run) -> Result<(Volume<'a>, Result<(), String>), String> {
        let mut device = fs.into_device();
        let began = device.events();
        loop {
            let loss = device.lost();
            self.fingerprint.step(loss.map_or(9, |loss| loss as u64));
            device.switch_on();
            match FileSystem::mount(&mut device, self.config) {
                Ok(_) => break,
                Err(FsError::Device(VolumeError::PowerLost)) => {}
                Err(error) => return Err(format!("no mount after a loss of power ({loss:?}): {error}")),
            }
        }
        self.outcome.recoveries.push(began..device.events());
        *self.outcome.counters.entry("mounts after a loss").or_default() += 1;
        // The first mount has lent the device only; a second one must find the same and write nothing.
        device.watch(true);
        let mut fs = FileSystem::mount(device, self.config).map_err(|error| format!("second mount: {error}"))?;
        let found = self.compare(&mut fs, run);
        fs.device_mut().watch(false);
        Ok((fs, found))
    }

    fn compare(&mut self, fs: &mut Volume<'_>, run: &mut Run) -> Result<(), String> {
        check(fs)?;
        let tree = Tree::of(fs).map_err(|error| format!("after a loss of power: {error}"))?;
        // Of equal trees the latest: later trees go on from there.
        let Some(index) = run.since.iter().rposition(|candidate| *candidate == tree) else {
            let latest = run.since.last().map_or_else(String::new, |latest| latest.difference(&tree));
            let first = run.since.first().map_or_else(String::new, |first| first.difference(&tree));
            let count = run.since.len();
            return Err(format!("none of {count} trees was found: of the last, {latest}; of the first, {first}"));
        };
        self.fingerprint.step(100 + index as u64);
        run.found(index);
        Ok(())
    }
}

fn check(fs: &mut Volume<'_>) -> Result<(), String> {
    let report = fs.check().map_err(|error| format!("check: {error}"))?;
    if report.is_clean() { Ok(()) } else { Err(format!("check: {}", report.problems.join("; "))) }
}
