//! The file system of a life, and what its manager asks of it.

use super::drive::TimedDrive;
use super::stop::Stop;
use flashyard_applications::{CvfsFiles, Files, FilesError, InPlaceFiles};
use flashyard_cvfs::{FsError, Method, blocks_of_file, overwrite};
use flashyard_units::{Named, SimTime};

/// Where data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// To the logs of CVFS, as published.
    Log,
    /// Where it was first written: a control.
    InPlace,
}

impl Named for Placement {
    const ALL: &'static [Self] = &[Self::Log, Self::InPlace];

    fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::InPlace => "in-place",
        }
    }
}

/// When the drive hears that data is no longer needed. A file system in place tells at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardRule {
    /// Forced above a variable drive, and when idle above another one. Source: [P] sheet cvss §3.3 and §5.5.2.
    Published,
    /// Forced above every drive: a control.
    Forced,
}

impl Named for DiscardRule {
    const ALL: &'static [Self] = &[Self::Published, Self::Forced];

    fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Forced => "forced",
        }
    }
}

/// Files of programs.
pub(super) enum MountedFiles {
    Log(Box<CvfsFiles<TimedDrive>>),
    InPlace(Box<InPlaceFiles<TimedDrive>>),
}

impl MountedFiles {
    pub(super) fn drive(&self) -> &TimedDrive {
        match self {
            Self::Log(files) => files.fs().device(),
            Self::InPlace(files) => files.device(),
        }
    }

    pub(super) fn drive_mut(&mut self) -> &mut TimedDrive {
        match self {
            Self::Log(files) => files.fs_mut().device_mut(),
            Self::InPlace(files) => files.device_mut(),
        }
    }

    /// Blocks of the file system, and those that are in use.
    pub(super) fn space(&self) -> (u32, u32) {
        match self {
            Self::Log(files) => {
                let usage = files.fs().usage();
                (usage.blocks, usage.used as u32)
            }
            Self::InPlace(files) => (files.blocks(), files.used()),
        }
    }

    /// Makes everything durable.
    pub(super) fn sync(&mut self) -> Result<(), Stop> {
        match self {
            Self::Log(files) => Ok(files.fs_mut().sync()?),
            Self::InPlace(files) => files.write_back().map_err(|error| Stop::of(error, files.device())),
        }
    }

    /// Writes whole pages of a file past memory: in place where they have a place.
    pub(super) fn write_direct(&mut self, number: u32, offset: u64, bytes: &[u8]) -> Result<(), Stop> {
        match self {
            Self::Log(files) => {
                let ino = files.inode(number).map_err(|error| Stop::of(error, files.fs().device()))?;
                let done = overwrite(files.fs_mut(), ino, offset, bytes, 0);
                done.map(drop).map_err(|error| Stop::of(error.into(), files.fs().device()))
            }
            Self::InPlace(files) => {
                let done = files.write(number, offset, bytes).and_then(|()| files.write_back());
                done.map_err(|error| Stop::of(error, files.device()))
            }
        }
    }

    /// Lets time pass for discards.
    pub(super) fn tick(&mut self, now: SimTime) -> Result<(), Stop> {
        match self {
            Self::Log(files) => Ok(files.fs_mut().tick(now, true)?),
            Self::InPlace(_) => Ok(()),
        }
    }

    /// Gives blocks from `blocks` on up; the blocks that were remapped for it, or `None` when it is refused.
    pub(super) fn shrink(&mut self, blocks: u32) -> Result<Option<u64>, Stop> {
        match self {
            Self::Log(files) => match files.fs_mut().shrink(blocks, Method::Remap) {
                Ok(shrunk) => Ok(Some(shrunk.blocks_moved)),
                Err(FsError::NoSpace | FsError::Invalid(_)) => Ok(None),
                Err(error) => Err(error.into()),
            },
            Self::InPlace(files) => Ok(files.shrink(blocks).is_ok().then_some(0)),
        }
    }

    /// Blocks of a file's pages, in the order of the file.
    pub(super) fn blocks_of(&mut self, number: u32, into: &mut Vec<u32>) -> Result<(), Stop> {
        match self {
            Self::Log(files) => {
                let ino = files.inode(number).map_err(|error| Stop::of(error, files.fs().device()))?;
                Ok(blocks_of_file(files.fs_mut(), ino, into)?)
            }
            Self::InPlace(files) => files.blocks_of(number, into).map_err(|error| Stop::of(error, files.device())),
        }
    }
}

impl Files for MountedFiles {
    fn create(&mut self, number: u32) -> Result<(), FilesError> {
        match self {
            Self::Log(files) => files.create(number),
            Self::InPlace(files) => files.create(number),
        }
    }

    fn write(&mut self, number: u32, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        match self {
            Self::Log(files) => files.write(number, offset, bytes),
            Self::InPlace(files) => files.write(number, offset, bytes),
        }
    }

    fn read(&mut self, number: u32, offset: u64, buffer: &mut [u8]) -> Result<usize, FilesError> {
        match self {
            Self::Log(files) => files.read(number, offset, buffer),
            Self::InPlace(files) => files.read(number, offset, buffer),
        }
    }

    fn size(&mut self, number: u32) -> Result<u64, FilesError> {
        match self {
            Self::Log(files) => files.size(number),
            Self::InPlace(files) => files.size(number),
        }
    }

    fn delete(&mut self, number: u32) -> Result<(), FilesError> {
        match self {
            Self::Log(files) => files.delete(number),
            Self::InPlace(files) => files.delete(number),
        }
    }

    fn fsync(&mut self, number: u32) -> Result<(), FilesError> {
        match self {
            Self::Log(files) => files.fsync(number),
            Self::InPlace(files) => files.fsync(number),
        }
    }
}
