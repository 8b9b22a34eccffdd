//! Time of giving capacity back: an aged CVFS on the timed drive, at its published size in the part that matters.
//!
//! 1. Files of one size fill the file system, half of them are deleted at random, and what is free is filled and half deleted
//!    again, so that valid data lies in runs everywhere.
//! 2. The last GiB is given back by one of the methods, and the drive says how long that took: reads, programs and flushes of the
//!    file system on 64 dies, and a host's time for every command.
//! 3. Times of methods that move data are for the published half GiB of it.
//! 4. What holes cost: a file of 1 GiB is written into the aged file system and read in sequence, before holes are left and after.
//!    All commands of a request are under way together.
//!
//! What it does not model: the processor's time in the file system beside its commands; reads that a file system sends ahead.
//!
//! Source: [P] sheet cvss §3.1; [A] what is not said otherwise.

use super::design::{DeviceConfig, SUPERBLOCKS};
use super::drive::TimedDrive;
use super::error::CvssError;
use super::stop::Stop;
use flashyard_applications::{CvfsFiles, Files, FilesError};
use flashyard_blk::Blocking;
use flashyard_cvfs::{BLOCK_BYTES, Config, FileSystem, Format, Method, blocks_of_file};
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

/// Blocks of one command at most. Source: [X] FEMU transfers up to 512 KiB (mdts 7)
const COMMAND_BLOCKS_MAX: usize = (512 << 10) / BLOCK_BYTES;

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

/// Bytes a second of sequential reads in requests of `request_blocks`, before 1 GiB of free blocks is marked as allocated and
/// after: each time of a file of 1 GiB that is written first, straight from the drive.
///
/// Errors: a drive or a file system that cannot be, which these can.
pub fn reads_beside_holes(device: DeviceConfig, request_blocks: usize, seed: u64) -> Result<[f64; 2], CvssError> {
    reads_around(device, request_blocks, seed, GIVEN_BLOCKS)
}

fn reads_around(device: DeviceConfig, request_blocks: usize, seed: u64, given: u32) -> Result<[f64; 2], CvssError> {
    let mut files = CvfsFiles::new(empty(device, seed, TIMES * given)?, 1000);
    let number = age(&mut files, seed).map_err(CvssError::Program)?;
    let before = read_new_file(&mut files, number, request_blocks, given)?;
    let blocks = files.fs().usage().blocks - given;
    files.fs_mut().shrink(blocks, Method::Holes).map_err(CvssError::FileSystem)?;
    Ok([before, read_new_file(&mut files, number + 1, request_blocks, given)?])
}

/// Writes a file of so many blocks, reads it, and deletes it.
fn read_new_file(
    files: &mut CvfsFiles<TimedDrive>,
    number: u32,
    request_blocks: usize,
    blocks: u32,
) -> Result<f64, CvssError> {
    let bytes = vec![0; FILE_BYTES];
    files.create(number).map_err(CvssError::Program)?;
    for offset in (0..u64::from(blocks) * BLOCK_BYTES as u64).step_by(FILE_BYTES) {
        files.write(number, offset, &bytes).map_err(CvssError::Program)?;
    }
    let ino = files.inode(number).map_err(CvssError::Program)?;
    let fs = files.fs_mut();
    fs.sync().map_err(CvssError::FileSystem)?;
    let mut places = Vec::new();
    blocks_of_file(fs, ino, &mut places).map_err(CvssError::FileSystem)?;
    let begin = fs.device_mut().set_timed(true);
    for request in places.chunks(request_blocks) {
        read_at_once(fs.device_mut(), request)?;
    }
    let seconds = (fs.device_mut().set_timed(false) - begin) as f64 * 1e-9;
    files.delete(number).map_err(CvssError::Program)?;
    Ok(f64::from(blocks) * BLOCK_BYTES as f64 / seconds)
}

/// One request: a command for each run of blocks, all of them under way together.
fn read_at_once(drive: &mut TimedDrive, places: &[u32]) -> Result<(), CvssError> {
    let mut issued = drive.now_ns();
    let mut done = issued;
    let mut bytes = vec![0; places.len() * BLOCK_BYTES];
    for run in places.chunk_by(|one, next| one + 1 == *next).flat_map(|run| run.chunks(COMMAND_BLOCKS_MAX)) {
        issued += (COMMAND_S * 1e9) as u64;
        drive.set_now_ns(issued);
        let into = &mut bytes[..run.len() * BLOCK_BYTES];
        Blocking::new(&mut *drive).read(run[0], into).map_err(|error| CvssError::FileSystem(error.into()))?;
        done = done.max(drive.now_ns());
    }
    drive.set_now_ns(done);
    Ok(())
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

/// Fills the file system and deletes half of it, twice; the first number that no file has had.
fn age(files: &mut CvfsFiles<TimedDrive>, seed: u64) -> Result<u32, FilesError> {
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
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cvss::{DegradeRule, Design};
    use flashyard_cvfs::{Kind, NewInode, ROOT};
    use flashyard_ftl::ScoreWeights;
    use flashyard_nand::{EccStrength, ErrorRates, RetryRule, WearModel};

    fn device() -> DeviceConfig {
        let wear = WearModel {
            rates: ErrorRates::TLC_2018_AT_300,
            ecc: EccStrength::BITS_50,
            rule: RetryRule::ByErases,
            retention_days: 0.0,
        };
        DeviceConfig {
            design: Design::Artifact,
            reliability: None,
            requirement: None,
            weights: ScoreWeights::default(),
            exchanges_read_hot: false,
            degraded_by: DegradeRule::Drive,
            pages_beyond: 0,
            wear,
        }
    }

    #[test]
    fn remapping_is_sooner_than_relocation() {
        let [remap, relocate] = [Method::Remap, Method::Relocate]
            .map(|method| shrink(device(), method, 1, GIVEN_BLOCKS / 16).expect("it shrinks"));
        assert!(2.0 * remap < relocate, "{remap} and {relocate} s");
    }

    #[test]
    fn reads_beside_holes_are_no_faster_than_the_dies() {
        let rates = reads_around(device(), 1024, 1, GIVEN_BLOCKS / 16).expect("it has room");
        // 64 dies sense 4 KiB in 50 us each.
        let most = 64.0 * BLOCK_BYTES as f64 / 50e-6;
        assert!(rates.iter().all(|&rate| rate < most && rate > most / 10.0), "{rates:?} bytes a second");
    }

    #[test]
    fn a_run_of_blocks_is_read_sooner_than_its_pieces() {
        let mut fs = empty(device(), 1, TIMES * (GIVEN_BLOCKS / 16)).expect("a drive that can be");
        let ino = fs.create(ROOT, b"file", NewInode::of(Kind::File, 0o644), 0).expect("room");
        fs.write(ino, 0, &vec![0; 1024 * BLOCK_BYTES], 0).expect("room");
        fs.sync().expect("a drive that works");
        let mut places = Vec::new();
        blocks_of_file(&mut fs, ino, &mut places).expect("a drive that works");
        let apart: Vec<u32> = places.iter().step_by(2).chain(places.iter().skip(1).step_by(2)).copied().collect();
        let [together, apart] = [places, apart].map(|places| {
            let begin = fs.device_mut().set_timed(true);
            read_at_once(fs.device_mut(), &places).expect("a drive that works");
            fs.device_mut().set_timed(false) - begin
        });
        // Some 16 blocks on each of 64 dies take 800 us and a little, and the commands 5 us each.
        assert!(together < 1_000_000 && apart > 1024 * 5_000, "{together} and {apart} ns");
    }
}
