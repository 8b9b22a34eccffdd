//! A guest: submits commands to a queue pair in shared memory and polls for completions.

use crate::memory::{DATA_MAX, ENTRIES_MAX, Shared};
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvme::{Cqe, Status};
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Why a guest has no queues.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// The socket or the memory.
    #[error("the queues cannot be reached")]
    Io(#[from] io::Error),
    /// The server's answer.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// Numbers beyond what there can be.
    #[error("{entries} entries and {data_bytes} bytes of data, give 2 to {ENTRIES_MAX} and 4096 to {DATA_MAX}")]
    Size {
        /// Entries of each queue.
        entries: u32,
        /// Bytes of data.
        data_bytes: u64,
    },
}

/// A command that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Its identifier.
    pub id: u16,
    /// Its status.
    pub status: Status,
}

/// One end of a queue pair.
pub struct Guest {
    shared: Shared,
    entries: u32,
    tail: u32,
    head: u32,
    phase: bool,
    blocks: u64,
    kicks: bool,
    stream: UnixStream,
}

impl Guest {
    /// Connects to the server at a socket, with queues of `entries` and so many bytes of data.
    ///
    /// Errors: numbers that cannot be, a socket without a server, a server that refuses.
    pub fn connect(socket: &Path, entries: u32, data_bytes: u64) -> Result<Self, GuestError> {
        if !(2..=ENTRIES_MAX).contains(&entries) || !(4096..=DATA_MAX).contains(&data_bytes) {
            return Err(GuestError::Size { entries, data_bytes });
        }
        let mut stream = UnixStream::connect(socket)?;
        writeln!(stream, "queues {entries} {data_bytes}")?;
        let mut line = String::new();
        BufReader::new(Read::take(&mut stream, 256)).read_line(&mut line)?;
        let refused = || GuestError::Refused(line.trim().trim_start_matches("refused ").to_owned());
        let words: Vec<&str> = line.split_whitespace().collect();
        let &["memory", path, blocks, kicks] = words.as_slice() else { return Err(refused()) };
        let (Ok(blocks), Ok(kicks)) = (blocks.parse(), kicks.parse()) else { return Err(refused()) };
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        // The server keeps its end open until it has heard this.
        stream.write_all(b"!")?;
        let shared = Shared::map(file, entries, data_bytes)?;
        Ok(Self { shared, entries, tail: 0, head: 0, phase: true, blocks, kicks, stream })
    }

    /// Blocks of 4096 bytes of its namespace.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Puts an entry into the queue as it is, and rings. The caller leaves one slot free.
    ///
    /// Errors: a kick that the server does not take.
    pub fn submit_entry(&mut self, entry: &[u8; 64]) -> io::Result<()> {
        self.shared.set_submission(self.tail, entry);
        self.tail = (self.tail + 1) % self.entries;
        self.shared.set_tail(self.tail);
        if self.kicks { self.stream.write_all(b"k") } else { Ok(()) }
    }

    /// Submits a command whose data begins at byte `at` of the data.
    ///
    /// Errors: as [`Guest::submit_entry`].
    pub fn submit(&mut self, command: NvmCommand, id: u16, at: u64) -> io::Result<()> {
        let mut sqe = command.encode(id, 1);
        sqe.data[..8].copy_from_slice(&at.to_le_bytes());
        sqe.data[8..12].copy_from_slice(&(command.data_bytes(4096) as u32).to_le_bytes());
        self.submit_entry(&sqe.to_array())
    }

    /// Submits a read of blocks.
    ///
    /// Errors: as [`Guest::submit_entry`].
    pub fn read(&mut self, lba: u64, blocks: u32, id: u16, at: u64) -> io::Result<()> {
        self.submit(NvmCommand::Read { range: BlockRange { lba, blocks }, fua: false }, id, at)
    }

    /// Submits a write of blocks.
    ///
    /// Errors: as [`Guest::submit_entry`].
    pub fn write(&mut self, lba: u64, blocks: u32, id: u16, at: u64) -> io::Result<()> {
        self.submit(NvmCommand::Write { range: BlockRange { lba, blocks }, fua: false }, id, at)
    }

    /// The next completion, if there is one.
    pub fn poll(&mut self) -> Option<Completed> {
        let cqe = Cqe::from_array(self.shared.completion(self.head, self.phase)?);
        self.head += 1;
        if self.head == self.entries {
            (self.head, self.phase) = (0, !self.phase);
        }
        self.shared.set_head(self.head);
        Some(Completed { id: cqe.command_id.get(), status: cqe.status() })
    }

    /// Waits for a completion: by its interrupt where the server kicks, by polling otherwise.
    ///
    /// Errors: a server that has ended.
    pub fn wait(&mut self) -> io::Result<Completed> {
        loop {
            if let Some(completed) = self.poll() {
                return Ok(completed);
            }
            if self.kicks {
                let mut bytes = [0; 64];
                if self.stream.read(&mut bytes)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Sets bytes of the data.
    pub fn set_data(&mut self, at: usize, bytes: &[u8]) {
        self.shared.write(at, bytes);
    }

    /// Copies bytes of the data.
    pub fn data(&self, at: usize, into: &mut [u8]) {
        self.shared.read(at, into);
    }

    /// Writes any value into the doorbell of submissions, for tests of servers.
    pub fn ring(&mut self, tail: u32) {
        self.shared.set_tail(tail);
    }

    /// Commands that the server has completed, of all guests, and nanoseconds that its runtime was busy.
    pub fn counts(&self) -> [u64; 2] {
        self.shared.counts()
    }
}
