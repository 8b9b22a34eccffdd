//! A program at work for the threads that ask it.

use super::files::{FileSystemName, HostedFiles};
use super::name::{Kind, ProgramName};
use crate::filebench::{self, Personality};
use crate::files::FilesError;
use crate::lsm::{Clients, Lsm, LsmConfig, LsmError, Mix, Request};
use flashyard_units::{Named, SimSpan};
use flashyard_workload::{Program, SourceError, Step};
use std::collections::VecDeque;

/// Threads of a store's clients. Source: [C] RocksDB's `tools/benchmark.sh`
const CLIENTS: u32 = 64;

/// Bytes of a record: a key of 20 and a value of 400. Source: [C] RocksDB's `tools/benchmark.sh`
const RECORD_BYTES: u32 = 420;

/// Records of a store. [A] 105 MB in three levels: contents are kept in memory
const RECORDS: u32 = 250_000;

/// RocksDB's sizes for each of this store's: a second of the published one has its flushes and merges in 60 ms. [A]
const SMALLER: u64 = 16;

/// A file server's entries. [A] a fifth of the published 10,000: contents are kept in memory
const FILESERVER_ENTRIES: u32 = 2000;

/// Parameters of a hosted program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostedConfig {
    /// The program.
    pub name: ProgramName,
    /// Its file system.
    pub file_system: FileSystemName,
    /// Threads, at least 1; the published number without it.
    pub threads: Option<u32>,
    /// Files of the file set, or records of the store, at least 1.
    pub entries: Option<u32>,
    /// A thread's own time for each operation.
    pub operation_time: SimSpan,
    /// Blocks of 4 KiB of a request at most, at least 1.
    pub request_blocks: u32,
    /// Blocks of the volume.
    pub volume_blocks: u32,
    /// Seed of the program.
    pub seed: u64,
}

impl HostedConfig {
    /// A program with its published threads, on CVFS on a volume of 4 GiB.
    pub const fn new(name: ProgramName, seed: u64) -> Self {
        Self {
            name,
            file_system: FileSystemName::Cvfs,
            threads: None,
            entries: None,
            operation_time: SimSpan::from_us(5), // [A] a call that copies 16 KiB, as sheet cvss has it
            request_blocks: 32,                  // [X] Linux reads ahead 128 KiB
            volume_blocks: 1 << 20,              // [A] many times what any of the programs stores
            seed,
        }
    }
}

/// Why a program cannot be hosted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostedError {
    /// A number outside its range.
    #[error("{0} is 0, give at least 1")]
    Zero(&'static str),
    /// The file system refuses what the program needs before it starts.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The store fails before the program starts.
    #[error(transparent)]
    Store(#[from] LsmError),
}

enum Work {
    Filebench(Box<filebench::Program>),
    Store { tree: Box<Lsm>, clients: Vec<Clients> },
}

#[derive(Default)]
struct Thread {
    /// Steps that are left of its operation.
    steps: VecDeque<Step>,
    /// Whether it has computed for its next operation.
    is_ready: bool,
}

/// A program with its files.
pub struct Hosted {
    config: HostedConfig,
    files: HostedFiles,
    work: Work,
    threads: Vec<Thread>,
    operations: u64,
}

impl Hosted {
    /// A program whose files are there, all of them durable, and whose threads are about to start.
    ///
    /// Errors: a number that is zero, files that do not fit the volume.
    pub fn new(config: HostedConfig) -> Result<Self, HostedError> {
        let numbers =
            [("threads", config.threads), ("entries", config.entries), ("request_blocks", Some(config.request_blocks))];
        if let Some((name, _)) = numbers.iter().find(|(_, number)| *number == Some(0)) {
            return Err(HostedError::Zero(name));
        }
        let (files, work, threads) = match config.name.kind() {
            Kind::Filebench(name) => {
                let mut personality = Personality::of(name);
                personality.threads = config.threads.unwrap_or(personality.threads);
                let fewer = config.name == ProgramName::Fileserver;
                let entries = if fewer { FILESERVER_ENTRIES } else { personality.entries };
                let mut files = Self::empty(&config, personality.directory_width)?;
                let mut program = filebench::Program::new(personality, config.entries.unwrap_or(entries), config.seed);
                while program.preallocate(&mut files, 64)? {}
                (files, Work::Filebench(Box::new(program)), personality.threads)
            }
            Kind::Store(gets) => {
                // The files of a store lie in one directory.
                let mut files = Self::empty(&config, u32::MAX)?;
                let mut tree = Lsm::new(LsmConfig::scaled(SMALLER, RECORD_BYTES), 0);
                let mix = Mix { keys: config.entries.unwrap_or(RECORDS).into(), gets, changes: 0.0, skew: 0.0 };
                let threads = config.threads.unwrap_or(CLIENTS);
                let of_thread = |thread| Clients::new(mix, config.seed.wrapping_add(thread));
                let clients: Vec<Clients> = (0..u64::from(threads)).map(of_thread).collect();
                for number in 0..mix.keys {
                    tree.put(&mut files, clients[0].key(number))?;
                }
                (files, Work::Store { tree: Box::new(tree), clients }, threads)
            }
        };
        let threads = (0..threads).map(|_| Thread::default()).collect();
        let mut hosted = Self { config, files, work, threads, operations: 0 };
        hosted.files.sync()?;
        hosted.files.volume_mut().listen();
        Ok(hosted)
    }

    fn empty(config: &HostedConfig, width: u32) -> Result<HostedFiles, FilesError> {
        HostedFiles::new(config.file_system, config.volume_blocks, width, config.seed)
    }

    /// Operations that threads have begun.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    fn operate(&mut self, thread: u32) -> Result<(), SourceError> {
        self.operations += 1;
        let failed = |error: &dyn std::error::Error| SourceError(format!("{}: {error}", self.config.name.name()));
        match &mut self.work {
            Work::Filebench(program) => {
                program.step(thread, &mut self.files).map_err(|error| failed(&error))?;
            }
            Work::Store { tree, clients } => match clients[thread as usize].next_request() {
                Request::Get(key) | Request::Change(key) => {
                    if tree.get(&mut self.files, key).map_err(|error| failed(&error))?.is_none() {
                        return Err(SourceError(format!("{}: key {key} is lost", self.config.name.name())));
                    }
                }
                Request::Put(key) => {
                    tree.put(&mut self.files, key).map_err(|error| failed(&error))?;
                }
            },
        }
        let steps = &mut self.threads[thread as usize].steps;
        self.files.volume_mut().take_steps(self.config.request_blocks, steps);
        Ok(())
    }
}

impl Program for Hosted {
    fn threads(&self) -> u32 {
        self.threads.len() as u32
    }

    fn next_step(&mut self, thread: u32) -> Result<Step, SourceError> {
        let own = &mut self.threads[thread as usize];
        if let Some(step) = own.steps.pop_front() {
            return Ok(step);
        }
        if std::mem::replace(&mut own.is_ready, false) {
            self.operate(thread)?;
            let own = &mut self.threads[thread as usize];
            if let Some(step) = own.steps.pop_front() {
                return Ok(step);
            }
        }
        self.threads[thread as usize].is_ready = true;
        Ok(Step::Compute(self.config.operation_time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::Operation;

    fn small(name: ProgramName, file_system: FileSystemName) -> HostedConfig {
        // A store has more than its memtable holds.
        let entries = if matches!(name.kind(), Kind::Store(_)) { 20_000 } else { 300 };
        HostedConfig {
            file_system,
            threads: Some(3),
            entries: Some(entries),
            volume_blocks: 64 << 10,
            ..HostedConfig::new(name, 1)
        }
    }

    /// Steps of threads that take turns.
    fn steps(config: HostedConfig, count: u32) -> Vec<Step> {
        let mut hosted = Hosted::new(config).expect("it fits");
        (0..count).map(|turn| hosted.next_step(turn % 3).expect("it goes on")).collect()
    }

    #[test]
    fn every_program_asks_on_every_file_system_and_the_same_again_for_the_same_seed() {
        for &file_system in FileSystemName::ALL {
            for &name in ProgramName::ALL {
                let config = small(name, file_system);
                // A memtable takes ten thousand writes.
                let turns = if name == ProgramName::Overwrite { 40_000 } else { 3000 };
                let found = steps(config, turns);
                let what = format!("{} on {}", name.name(), file_system.name());
                assert!(found == steps(config, turns), "{what}");
                assert!(found != steps(HostedConfig { seed: 2, ..config }, turns), "{what}");
                let asked = |wanted| found.iter().any(|step| matches!(step, Step::Ask(one) if one.operation == wanted));
                assert!(asked(Operation::Read), "{what}");
                let is_durable = matches!(name, ProgramName::Varmail | ProgramName::Overwrite);
                assert_eq!(asked(Operation::Flush), is_durable, "{what}");
            }
        }
    }

    #[test]
    fn a_thread_computes_before_each_operation_and_waits_behind_its_requests() {
        let mut hosted = Hosted::new(small(ProgramName::Varmail, FileSystemName::Cvfs)).expect("it fits");
        let mut before = Step::Wait;
        for _ in 0..5000 {
            let step = hosted.next_step(0).expect("it goes on");
            match step {
                Step::Compute(span) => {
                    assert_eq!(span, SimSpan::from_us(5));
                    assert!(!matches!(before, Step::Ask(_)), "it would not wait");
                }
                Step::Wait => assert!(matches!(before, Step::Ask(_)), "it waits for nothing"),
                Step::Ask(request) => assert!(request.len_bytes <= 128 << 10),
                Step::End => panic!("it has no end"),
            }
            before = step;
        }
        assert!(hosted.operations() > 100);
    }

    #[test]
    fn a_store_reads_one_block_for_a_record_and_its_merges_come_in_order() {
        let config = HostedConfig { entries: Some(60_000), ..small(ProgramName::ReadRandom, FileSystemName::InPlace) };
        let reads: Vec<Step> = steps(config, 3000).into_iter().filter(|step| matches!(step, Step::Ask(_))).collect();
        assert!(reads.len() > 300);
        assert!(reads.iter().all(|step| matches!(step, Step::Ask(one)
            if one.operation == Operation::Read && one.len_bytes == 4096)));
        let mut hosted = Hosted::new(HostedConfig { name: ProgramName::Overwrite, ..config }).expect("it fits");
        let (mut written, mut read) = (0_u64, 0_u64);
        for _ in 0..60_000 {
            if let Step::Ask(request) = hosted.next_step(0).expect("it goes on") {
                let sum = if request.operation == Operation::Read { &mut read } else { &mut written };
                *sum += u64::from(request.len_bytes);
            }
        }
        assert!(written > 4 << 20 && read > 4 << 20, "{written} and {read} bytes of flushes and merges");
    }

    #[test]
    fn numbers_that_are_zero_and_volumes_that_are_too_small_are_refused() {
        let config = small(ProgramName::Fileserver, FileSystemName::Cvfs);
        let error = |config| Hosted::new(config).err().expect("it cannot be").to_string();
        assert_eq!(error(HostedConfig { threads: Some(0), ..config }), "threads is 0, give at least 1");
        assert_eq!(error(HostedConfig { volume_blocks: 9000, ..config }), "the file system is full");
    }
}
