//! A file or a block device. What the page cache has is read at once; everything else is done by threads of its own, as it
//! may take long, and the thread that serves must not wait.

use crate::leg::task::{BLOCK, Begun, End, Source, Task};
use flashyard_blk::Operation;
use flashyard_service::Failure;
use rustix::fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, Weak};

/// Threads of one file. Source: \[A\] as many requests as a drive of a workstation needs to show half its speed.
const THREADS: usize = 4;

/// Why a file is no leg.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be opened or made.
    #[error("{path}: {doing}")]
    Io {
        /// Which.
        path: String,
        /// The step that failed.
        doing: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process has it, or another leg.
    #[error("{0}: in use by another server, or by another volume of this one")]
    InUse(String),
    /// It is a block device that is in use beside our servers, or by one.
    #[error("{0}: mounted, or part of another device, or in use by another volume")]
    Claimed(String),
    /// No block fits.
    #[error("{path}: it has {bytes} bytes, a volume needs at least one block of {BLOCK}")]
    Small {
        /// Which.
        path: String,
        /// Its size.
        bytes: u64,
    },
    /// It is not there, and its size is not known.
    #[error("{0}: does not exist; say how large it is to be made (size = \"1 GiB\")")]
    Missing(String),
    /// It is to be lent, which erases it, and holds other data.
    #[error(
        "{0}: it holds something that was not lent, and lending erases it; name a file that is not there, or zero its first MiB"
    )]
    NotLent(String),
    /// It is there with another size than wanted.
    #[error("{path}: it has {bytes} bytes, not {wanted}; leave the size out, or move the file away")]
    Size {
        /// Which.
        path: String,
        /// Its size.
        bytes: u64,
        /// As wanted.
        wanted: u64,
    },
}

/// Where the blocks of a leg lie in its file: in pieces of one size, in any order.
#[derive(Clone, Debug)]
struct Layout {
    /// Byte at which each piece begins.
    pieces: Arc<[u64]>,
    piece_bytes: u64,
}

impl Layout {
    /// The parts of a task: where each lies in the file, and its bytes.
    fn parts(&self, task: Task) -> impl Iterator<Item = (u64, usize)> + '_ {
        let (mut at, end) = (task.first * BLOCK as u64, task.first * BLOCK as u64 + task.bytes() as u64);
        std::iter::from_fn(move || {
            let (piece, within) = (at / self.piece_bytes, at % self.piece_bytes);
            let len = (self.piece_bytes - within).min(end - at);
            let from = *self.pieces.get(piece as usize).filter(|_| len > 0)?;
            at += len;
            Some((from + within, len as usize))
        })
    }
}

/// Work for a thread.
struct Job {
    task: Task,
    /// Bytes of a write, unless it writes zeros; room for those of a read.
    bytes: Option<Vec<u8>>,
}

/// A file with its threads.
pub(crate) struct FileLeg {
    file: Arc<File>,
    layout: Layout,
    blocks: u64,
    jobs: Sender<Job>,
    ends: Receiver<(End, Option<String>)>,
    under_way: u32,
    spare: Vec<Vec<u8>>,
    /// Whether the file was made when it was opened.
    pub(crate) is_new: bool,
    /// Whether the file system can say that it would have to wait.
    knows_now: bool,
}

impl FileLeg {
    /// Opens the file at `path`; makes it, of `size` bytes, if it is not there. `waker` is called after each end.
    ///
    /// Errors: it cannot be opened, has another size, or is in use.
    pub(crate) fn open(
        path: &Path,
        size: Option<u64>,
        waker: impl Fn() + Send + Clone + 'static,
    ) -> Result<Self, FileError> {
        let shown = || path.display().to_string();
        let failed = |doing| move |source| FileError::Io { path: path.display().to_string(), doing, source };
        let exists = path.exists();
        if !exists && size.is_none() {
            return Err(FileError::Missing(shown()));
        }
        let mut file = open_alone(path, exists)?;
        if let Some(size) = size.filter(|_| !exists) {
            file.set_len(size).map_err(failed("has no room"))?;
        }
        // Block devices have no length, but an end.
        let bytes = file.seek(SeekFrom::End(0)).map_err(failed("its size cannot be told"))?;
        if let Some(wanted) = size.filter(|&wanted| wanted != bytes) {
            return Err(FileError::Size { path: shown(), bytes, wanted });
        }
        let blocks = bytes / BLOCK as u64;
        if blocks == 0 {
            return Err(FileError::Small { path: shown(), bytes });
        }
        let layout = Layout { pieces: [0].into(), piece_bytes: blocks * BLOCK as u64 };
        Ok(Self { is_new: !exists, ..Self::of(Arc::new(file), layout, blocks, waker) })
    }

    /// Blocks in pieces of a file, `blocks` in all; a piece has `piece_bytes` and begins at one of `pieces`. They are new: somebody has zeroed them.
    pub(crate) fn of_pieces(
        file: Arc<File>,
        pieces: Vec<u64>,
        piece_bytes: u64,
        blocks: u64,
        waker: impl Fn() + Send + Clone + 'static,
    ) -> Self {
        let layout = Layout { pieces: pieces.into(), piece_bytes };
        Self { is_new: true, ..Self::of(file, layout, blocks, waker) }
    }

    fn of(file: Arc<File>, layout: Layout, blocks: u64, waker: impl Fn() + Send + Clone + 'static) -> Self {
        let (jobs, queue) = channel();
        let (ended, ends) = channel();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..THREADS {
            let (file, queue, ended, waker) = (Arc::clone(&file), Arc::clone(&queue), ended.clone(), waker.clone());
            let layout = layout.clone();
            std::thread::spawn(move || work((&file, &layout), &queue, &ended, waker));
        }
        Self { file, layout, blocks, jobs, ends, under_way: 0, spare: Vec::new(), is_new: false, knows_now: true }
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Tells as long as it lives that a thread may still write.
    pub(crate) fn downgrade(&self) -> Weak<File> {
        Arc::downgrade(&self.file)
    }

    pub(crate) fn begin(&mut self, task: Task, source: Source<'_>, into: &mut [u8]) -> Begun {
        if task.operation == Operation::Read && self.read_now(task, into) {
            return Begun::Ended(Ok(()));
        }
        let mut room = || self.spare.pop().unwrap_or_default();
        let bytes = match (task.operation, source) {
            (Operation::Read, _) => {
                let mut bytes = room();
                bytes.resize(task.bytes(), 0);
                Some(bytes)
            }
            (Operation::Write, Source::Bytes(bytes)) => {
                let mut copy = room();
                copy.clear();
                copy.extend_from_slice(bytes);
                Some(copy)
            }
            _ => None,
        };
        match self.jobs.send(Job { task, bytes }) {
            Ok(()) => {
                self.under_way += 1;
                Begun::UnderWay
            }
            Err(_) => Begun::Ended(Err(Failure::Gone)),
        }
    }

    /// Reads what the page cache has, all of it or nothing.
    fn read_now(&mut self, task: Task, into: &mut [u8]) -> bool {
        if !self.knows_now || into.is_empty() {
            return false;
        }
        let bytes = into.len();
        let Some((offset, _)) = self.layout.parts(task).next().filter(|(_, len)| *len == bytes) else { return false };
        match preadv2(&*self.file, &mut [IoSliceMut::new(into)], offset, ReadWriteFlags::NOWAIT) {
            Ok(count) => count == bytes,
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                self.knows_now = false;
                false
            }
            Err(_) => false,
        }
    }

    /// Takes what threads have ended; says why if the file answers no more.
    pub(crate) fn poll(&mut self, into: &mut Vec<End>) -> Option<String> {
        let mut gone = None;
        while self.under_way > 0
            && let Ok((end, why)) = self.ends.try_recv()
        {
            self.under_way -= 1;
            gone = gone.or(why);
            into.push(end);
        }
        gone
    }

    /// Keeps a buffer for the next order.
    pub(crate) fn give(&mut self, bytes: Vec<u8>) {
        if bytes.capacity() > 0 && self.spare.len() < 64 {
            self.spare.push(bytes);
        }
    }
}

/// Opens a file, or makes it, and keeps other servers away from it; from a block device also mounts, and devices that are made of others.
///
/// Errors: it cannot be opened, or is in use.
pub(crate) fn open_alone(path: &Path, exists: bool) -> Result<File, FileError> {
    let shown = || path.display().to_string();
    let failed = |doing| move |source| FileError::Io { path: path.display().to_string(), doing, source };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(!exists).truncate(false);
    if path.metadata().is_ok_and(|found| found.file_type().is_block_device()) {
        // The lock is one among programs that ask for it.
        options.custom_flags(OFlags::EXCL.bits() as i32);
    }
    let file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => FileError::Claimed(shown()),
        _ => failed("cannot be opened")(error),
    })?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        Errno::WOULDBLOCK => FileError::InUse(shown()),
        error => failed("cannot be locked")(error.into()),
    })?;
    Ok(file)
}

/// A thread: carries out jobs until there are no more.
fn work(file: (&File, &Layout), queue: &Mutex<Receiver<Job>>, ended: &Sender<(End, Option<String>)>, waker: impl Fn()) {
    loop {
        let Ok(Ok(job)) = queue.lock().map(|queue| queue.recv()) else { return };
        let Job { task, mut bytes } = job;
        let (result, why) = match carry_out(file, task, &mut bytes) {
            Ok(()) => (Ok(()), None),
            Err(error) => failure_of(task, &error),
        };
        let bytes = bytes.unwrap_or_default();
        if ended.send((End { order: task.order, result, bytes }, why)).is_err() {
            return;
        }
        waker();
    }
}

fn carry_out((file, layout): (&File, &Layout), task: Task, bytes: &mut Option<Vec<u8>>) -> io::Result<()> {
    if task.operation == Operation::Flush {
        return file.sync_data();
    }
    let mut done = 0;
    for (offset, len) in layout.parts(task) {
        let part = done..done + len;
        done += len;
        match (task.operation, bytes.as_mut()) {
            (Operation::Read, Some(bytes)) => file.read_exact_at(&mut bytes[part], offset)?,
            (Operation::Write, Some(bytes)) => file.write_all_at(&bytes[part], offset)?,
            // Front ends take trimmed blocks for zeros.
            (Operation::Write, None) | (Operation::Trim, _) => zero(file, offset, len)?,
            _ => {}
        }
    }
    // A disk that is full by then has lost something that it has taken.
    if task.durable { file.sync_data().map_err(io::Error::other) } else { Ok(()) }
}

/// Makes bytes of a file zeros, as a hole where that is possible.
pub(crate) fn zero(file: &File, offset: u64, len: usize) -> io::Result<()> {
    match punch(file, offset, len) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let zeros = vec![0; len.min(1 << 20)];
            (0..len)
                .step_by(zeros.len().max(1))
                .try_for_each(|at| file.write_all_at(&zeros[..zeros.len().min(len - at)], offset + at as u64))
        }
        result => result.map_err(io::Error::from),
    }
}

fn punch(file: &File, offset: u64, len: usize) -> Result<(), Errno> {
    fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len as u64)
}

/// The meaning of an error for the order, and for the file if it means its end: after a write or a flush that has failed the page
/// cache may hold what the disk does not, and a file that ends early is no longer the one that was opened.
fn failure_of(task: Task, error: &io::Error) -> (Result<(), Failure>, Option<String>) {
    let is_end = error.kind() == io::ErrorKind::UnexpectedEof;
    match (task.operation, error.kind()) {
        (Operation::Write | Operation::Trim, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            (Err(Failure::NoRoom), None)
        }
        (Operation::Read, _) if !is_end => (Err(Failure::Unread { block: task.first }), None),
        _ => {
            let why = if is_end { "the file is shorter than it was".to_owned() } else { error.to_string() };
            (Err(Failure::Gone), Some(why))
        }
    }
}
