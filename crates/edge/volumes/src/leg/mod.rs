//! Legs: what a volume is made of. Each takes orders, and carries them out at once or tells later that they have ended.

mod drive;
mod file;
mod memory;
mod remote;
mod task;
mod throttle;

pub(crate) use drive::DriveLeg;
pub use drive::{OpenDrive, RunsDrive};
pub use file::FileError;
pub(crate) use file::FileLeg;
pub(crate) use memory::Memory;
pub(crate) use remote::RemoteLeg;
pub(crate) use task::{BLOCK, Begun, End, Source, Task};
pub(crate) use throttle::{Pace, Throttle};

use flashyard_blk::{VolumeInfo, VolumeLimits};
use flashyard_service::Failure;
use flashyard_units::VolumeId;

/// The storage of a leg.
pub(crate) enum Storage {
    Memory(Memory),
    File(FileLeg),
    Drive(Box<DriveLeg>),
    Remote(Box<RemoteLeg>),
}

/// A leg: its storage, its name for messages, and whether it still answers.
pub(crate) struct LegState {
    pub(crate) storage: Storage,
    pub(crate) name: String,
    pub(crate) throttle: Option<Throttle>,
    /// Why it has ended.
    pub(crate) gone: Option<String>,
    /// Whether it was made just now: nothing but zeros is there.
    pub(crate) is_new: bool,
}

impl LegState {
    /// No storage, and why.
    pub(crate) fn none(why: &str) -> Self {
        let (storage, name) = (Storage::Memory(Memory::new(0)), "none".to_owned());
        Self { storage, name, throttle: None, gone: Some(why.to_owned()), is_new: true }
    }

    /// Its properties as a volume.
    pub(crate) fn info(&self) -> VolumeInfo {
        let (blocks, request_blocks) = match &self.storage {
            Storage::Memory(memory) => (memory.blocks(), u32::MAX),
            Storage::File(file) => (file.blocks(), u32::MAX),
            Storage::Drive(drive) => (drive.info().limits.blocks, drive.info().limits.request_blocks),
            Storage::Remote(remote) => (remote.blocks(), remote.request_blocks()),
        };
        let limits = VolumeLimits { blocks, remaps: false, request_blocks };
        VolumeInfo { id: VolumeId::new(0), block_bytes: BLOCK as u32, limits, protected: false }
    }

    /// Begins an order that reads into `into` if that can be done at once, or writes `source`.
    pub(crate) fn begin(&mut self, task: Task, source: Source<'_>, into: &mut [u8]) -> Begun {
        if self.gone.is_some() {
            return Begun::Ended(Err(Failure::Gone));
        }
        match &mut self.storage {
            Storage::Memory(memory) => {
                memory.carry_out(task, source, into);
                Begun::Ended(Ok(()))
            }
            Storage::File(file) => file.begin(task, source, into),
            Storage::Drive(drive) => drive.begin(task, source),
            Storage::Remote(remote) => remote.begin(task, source),
        }
    }

    /// Takes the ends of orders that were under way. After one with [`Failure::Gone`] it answers no more.
    pub(crate) fn poll(&mut self, ends: &mut Vec<End>) {
        let gone = match &mut self.storage {
            Storage::Memory(_) => None,
            Storage::File(file) => file.poll(ends),
            Storage::Drive(drive) => drive.poll(ends),
            Storage::Remote(remote) => remote.poll(ends),
        };
        if gone.is_some() && self.gone.is_none() {
            self.gone = gone;
        }
    }
}
