//! Time of giving capacity back: an aged CVFS on the timed drive, at its published size in the part that matters.
//!
//! 1. Files of one size fill the file system, half of them are deleted at random, and what is free is filled and half deleted
//!    again, so that valid data lies in runs everywhere.
//! 2. The last GiB is given back by one of the methods, and the drive says how long that took: reads, programs and flushes of the
//!    file system on 64 dies, and a host's time for every command.
//! 3. Times of methods that move data are for the published half GiB of it.
//!
//! What it does not model: the processor's time in the file system beside its commands; reads that a file system sends ahead.
//!
//! Source: [P] sheet cvss §3.1; [A] what is not said otherwise.

use super::design::{DeviceConfig, SUPERBLOCKS};
use super::drive::TimedDrive;
use super::error::CvssError;
use super::stop::Stop;
use flashyard_applications::{CvfsFiles, Files, FilesError};
use flashyard_cvfs::{BLOCK_BYTES, Config, FileSystem, Format, Method};
use flashyard_flash::Geometry;
use flashyard_ftl::{Ftl, FtlConfig};
use flashyard_kernel::Rng;

/// Times what is given back that the drive holds: enough for it to be a part.
const TIMES: u32 = 8;

/// Blocks of a segment. Source: [X] F2FS, 2 MiB
const SEGMENT_BLOCKS: u32 = 512;

/// Bytes of a file. Source: [C] the mean of filebench's file server
const FILE_BYTES: usize = 128 << 10;

/// Blocks given back. Source: [P] sheet cvss §3.1, 1 GiB
const GIVEN_BLOCKS: u32 = (1 << 30) / BLOCK_BYTES as u32;

/// Blocks of valid data in them. Source: [P] sheet cvss §3.1, half a GiB when aged
const MOVED_BLOCKS: f64 = ((1 << 29) / BLOCK_BYTES) as f64;

/// Time of the host for a command, in seconds. [A] as for a request in the lives
const COMMAND_S: f64 = 5e-6;

/// Seconds that it takes to give 1 GiB back, with 0.5 GiB of valid data where data moves.
///
/// Errors: a drive or a file system that cannot be, which these can.
pub fn shrink_seconds(device: DeviceConfig, method: Method, seed: u64) -> Result<f64, CvssError> {
    shrink(device, method, seed, GIVEN_BLOCKS)
}

/// Seconds for `given` blocks, scaled to half a GiB of valid data where data moves.
fn shrink(device: DeviceConfig, method: Method, seed: u64, given: u32) -> Result<f64, CvssError> {
    let error = |stop| match stop {
        Stop::Death(_) => CvssError::Program(FilesError::NoSpace),
        Stop::Error(error) => error,
    };
    let mut files = CvfsFiles::new(empty(device, seed, TIMES * given)?, 1000);
    age(&mut files, seed).map_err(CvssError::Program)?;
    let fs = files.fs_mut();
    fs.sync().map_err(|failed| error(failed.into()))?;
    let begin = fs.device_mut().set_timed(true);
    let before = fs.device().commands();
    let (blocks, moved) = (fs.usage().blocks - given, method != Method::Holes);
    let shrunk = fs.shrink(blocks, method).map_err(|failed| error(failed.into()))?;
    let (end, commands) = (fs.device_mut().set_timed(false), fs.device().commands() - before);
    let seconds = (end - begin) as f64 * 1e-9 + commands as f64 * COMMAND_S;
    Ok(if moved { seconds * MOVED_BLOCKS / shrunk.blocks_moved.max(1) as f64 } else { seconds })
}

fn empty(device: DeviceConfig, seed: u64, blocks: u32) -> Result<FileSystem<TimedDrive>, CvssError> {
    let pages_per_block = blocks / SUPERBLOCKS;
    // An eighth of spare space.
    let geometry = Geometry { pages_per_block: pages_per_block + pages_per_block / 8, ..device.geometry() };
    let ftl = Ftl::new(&geometry, FtlConfig { logical_slots: blocks, remap_entries: blocks, ..device.ftl() })?;
    let drive = TimedDrive::new(ftl, &device, 0, blocks as usize);
    let format = Format { segment_blocks: SEGMENT_BLOCKS, id: seed };
    FileSystem::format(drive, format, Config::default(), 0).map_err(CvssError::FileSystem)
}

/// Fills the file system and deletes half of it, twice.
fn age(files: &mut CvfsFiles<TimedDrive>, seed: u64) -> Result<(), FilesError> {
    let mut rng = Rng::named(seed, "cvss.shrinking");
    let bytes = vec![0; FILE_BYTES];
    let mut numbers = Vec::new();
    let mut next = 0;
    for _ in 0..2 {
        loop {
            let usage = files.fs().usage();
            // A file with its inode and a share of a directory's page.
            if usage.used + 2 * (FILE_BYTES / BLOCK_BYTES) as u64 > usage.capacity {
                break;
            }
            files.create(next)?;
            files.write(next, 0, &bytes)?;
            numbers.push(next);
            next += 1;
        }
        for _ in 0..numbers.len() / 2 {
            let index = rng.below(numbers.len() as u64) as usize;
            files.delete(numbers.swap_remove(index))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cvss::Design;
    use flashyard_ftl::ScoreWeights;
    use flashyard_nand::{EccStrength, ErrorRates, RetryRule, WearModel};

    #[test]
    fn remapping_is_sooner_than_relocation() {
        let wear = WearModel {
            rates: ErrorRates::TLC_2018_AT_300,
            ecc: EccStrength::BITS_50,
            rule: RetryRule::ByErases,
            retention_days: 0.0,
        };
        let device = DeviceConfig {
            design: Design::Artifact,
            reliability: None,
            requirement: None,
            weights: ScoreWeights::default(),
            exchanges_read_hot: false,
            wear,
        };
        let [remap, relocate] = [Method::Remap, Method::Relocate]
            .map(|method| shrink(device, method, 1, GIVEN_BLOCKS / 16).expect("it shrinks"));
        assert!(2.0 * remap < relocate, "{remap} and {relocate} s");
    }
}
