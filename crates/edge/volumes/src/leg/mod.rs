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
pub(crate) use file::{FileLeg, open_alone, zero};
pub(crate) use memory::Memory;
pub(crate) use remote::RemoteLeg;
pub(crate) use task::{BLOCK, Begun, End, Source, Task};
pub(crate) use throttle::{Pace, Throttle};

use flashyard_array::Label;
use flashyard_billboard::{Agreement, Choice};
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_nvmf::initiator::InitiatorConfig;
use flashyard_service::Failure;
use flashyard_units::VolumeId;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Patience for an order while volumes wait. Source: \[A\] a disk that has stood still begins to turn in less.
const PATIENCE: Duration = Duration::from_secs(10);
/// Patience for threads of a file that is closed. Source: \[A\].
const CLOSED: Duration = Duration::from_secs(1);
/// Time between two looks for its end.
const POLL: Duration = Duration::from_micros(200);

/// The storage of a leg.
pub(crate) enum Storage {
    Memory(Memory),
    File(FileLeg),
    Drive(Box<DriveLeg>),
    Remote(Box<RemoteLeg>),
    /// There is none now; this is what there was, or will be.
    Absent(VolumeLimits),
}

/// Space of another server.
#[derive(Clone)]
pub(crate) struct Loan {
    /// Its size, and from whom it may be.
    pub(crate) terms: Arc<Terms>,
    /// The agreement and its lender; nothing while one is looked for.
    pub(crate) held: Option<(Agreement, String)>,
    /// The leg that takes its place, once that has all copies.
    pub(crate) to: Option<usize>,
}

/// Terms on which space is borrowed.
pub(crate) struct Terms {
    pub(crate) mib: u32,
    pub(crate) board: SocketAddr,
    pub(crate) choice: Choice,
    /// Requests and bytes a second that a lender must have free.
    pub(crate) free_iops: u64,
    pub(crate) free_bandwidth: u64,
    pub(crate) pace: Option<Pace>,
    /// How this host connects: its name and the secrets of both sides.
    pub(crate) host: InitiatorConfig,
}

/// Counts of a leg's orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Reads and writes.
    pub orders: [u64; 2],
    /// Their bytes.
    pub bytes: [u64; 2],
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
    /// Space of another server that it is, or is to be.
    pub(crate) loan: Option<Loan>,
    /// Blocks of it that are used, where it has more.
    pub(crate) used: Option<u64>,
    /// Its number in an array, and the shape of that.
    pub(crate) label: Option<Label>,
    /// Whether the service knows that it has ended.
    pub(crate) is_told: bool,
    /// Orders that it was given, and those of storage whose place it took.
    pub(crate) carried: Carried,
}

impl LegState {
    pub(crate) fn new(storage: Storage, name: String) -> Self {
        let (throttle, gone, loan, used, label) = (None, None, None, None, None);
        let carried = Carried::default();
        Self { storage, name, throttle, gone, is_new: false, loan, used, label, is_told: false, carried }
    }

    /// No storage, and why.
    pub(crate) fn none(why: &str) -> Self {
        let leg = Self::new(Storage::Memory(Memory::new(0)), "none".to_owned());
        Self { gone: Some(why.to_owned()), is_new: true, is_told: true, ..leg }
    }

    /// Closes its storage, and waits a moment until the operating system has taken it back.
    pub(crate) fn close(&mut self) {
        let limits = self.info().limits;
        let old = std::mem::replace(&mut self.storage, Storage::Absent(limits));
        let file = if let Storage::File(file) = &old { Some(file.downgrade()) } else { None };
        drop(old);
        let begun = Instant::now();
        while file.as_ref().is_some_and(|file| file.strong_count() > 0) && begun.elapsed() < CLOSED {
            std::thread::sleep(POLL);
        }
    }

    /// Its properties as a volume.
    pub(crate) fn info(&self) -> VolumeInfo {
        let request_blocks = match &self.storage {
            Storage::Memory(_) | Storage::File(_) => u32::MAX,
            Storage::Drive(drive) => drive.info().limits.request_blocks,
            Storage::Remote(remote) => remote.request_blocks(),
            Storage::Absent(limits) => limits.request_blocks,
        };
        let blocks = self.all_blocks().min(self.used.unwrap_or(u64::MAX));
        let limits = VolumeLimits { blocks, remaps: false, request_blocks, read_only: false };
        VolumeInfo { id: VolumeId::new(0), block_bytes: BLOCK as u32, limits, protected: false }
    }

    /// Blocks of its storage, those that are not used among them.
    pub(crate) fn all_blocks(&self) -> u64 {
        match &self.storage {
            Storage::Memory(memory) => memory.blocks(),
            Storage::File(file) => file.blocks(),
            Storage::Drive(drive) => drive.info().limits.blocks,
            Storage::Remote(remote) => remote.blocks(),
            Storage::Absent(limits) => limits.blocks,
        }
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
            Storage::Absent(_) => Begun::Ended(Err(Failure::Gone)),
        }
    }

    /// Carries out an order while nothing else is under way, and waits for its end.
    ///
    /// Errors: those of the order, or no end in time.
    pub(crate) fn carry_out_now(&mut self, task: Task, source: Source<'_>, into: &mut [u8]) -> Result<(), Failure> {
        if let Begun::Ended(result) = self.begin(task, source, into) {
            return result;
        }
        let (begun, mut ends) = (Instant::now(), Vec::new());
        while begun.elapsed() < PATIENCE && self.gone.is_none() {
            if let Storage::Remote(remote) = &mut self.storage {
                remote.ready();
            }
            self.poll(&mut ends);
            if let Some(End { result, bytes, .. }) = ends.pop() {
                if task.operation == Operation::Read && bytes.len() == into.len() {
                    into.copy_from_slice(&bytes);
                }
                if let Storage::Remote(remote) = &mut self.storage {
                    remote.ready();
                }
                return result;
            }
            std::thread::sleep(POLL);
        }
        Err(Failure::Gone)
    }

    /// Takes the ends of orders that were under way. After one with [`Failure::Gone`] it answers no more.
    pub(crate) fn poll(&mut self, ends: &mut Vec<End>) {
        let gone = match &mut self.storage {
            Storage::Memory(_) | Storage::Absent(_) => None,
            Storage::File(file) => file.poll(ends),
            Storage::Drive(drive) => drive.poll(ends),
            Storage::Remote(remote) => remote.poll(ends),
        };
        if gone.is_some() && self.gone.is_none() {
            self.gone = gone;
        }
    }
}
