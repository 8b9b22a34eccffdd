//! The tree: writes to its log and memtable, reads through its levels.

use super::error::LsmError;
use super::memtable::{HEADER, Memtable, encode};
use super::table::{BLOCK, Table};
use crate::files::Files;

/// Parameters of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LsmConfig {
    /// Bytes of a record with its key, 24 to 4096.
    pub record_bytes: u32,
    /// Bytes of records at which a memtable is full. [X] 64 MiB in RocksDB
    pub memtable_bytes: u64,
    /// Files of level 0 that begin a merge, at least 1. [X] 4
    pub level_0_files: usize,
    /// Bytes that level 1 may have. [X] 256 MiB
    pub level_1_bytes: u64,
    /// Ratio of the sizes of further levels, at least 2. [X] 10
    pub fan_out: u64,
    /// Bytes of a file that a merge writes. [X] 64 MiB
    pub file_bytes: u64,
    /// Bits of a filter for each key; zero for no filters. [X] 10 where filters are used
    pub bits_per_key: u32,
    /// Whether each record of the log is made durable at once. [X] not by default
    pub syncs: bool,
}

impl LsmConfig {
    /// RocksDB's defaults with filters, each size divided by `scale`, for records of `record_bytes`.
    pub fn scaled(scale: u64, record_bytes: u32) -> Self {
        Self {
            record_bytes,
            memtable_bytes: (64 << 20) / scale,
            level_0_files: 4,
            level_1_bytes: (256 << 20) / scale,
            fan_out: 10,
            file_bytes: (64 << 20) / scale,
            bits_per_key: 10,
            syncs: false,
        }
    }
}

/// Work of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LsmCounters {
    /// Records written by clients.
    pub puts: u64,
    /// Records asked for.
    pub gets: u64,
    /// Of these, records that the memtable had.
    pub in_memory: u64,
    /// Filters that were asked.
    pub filters_asked: u64,
    /// Filters that let a key pass.
    pub filters_passed: u64,
    /// Of these, keys that were not in the file.
    pub filters_wrong: u64,
    /// Blocks that reads of records looked into.
    pub blocks_read: u64,
    /// Memtables written to files.
    pub flushes: u64,
    /// Merges.
    pub merges: u64,
    /// Bytes of files that flushes wrote.
    pub flushed_bytes: u64,
    /// Bytes of files that merges read.
    pub merged_in_bytes: u64,
    /// Bytes of files that merges wrote.
    pub merged_out_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
}

impl LsmCounters {
    /// Bytes written to files for each that a flush wrote, logs aside.
    pub fn write_amplification(&self) -> f64 {
        (self.flushed_bytes + self.merged_out_bytes) as f64 / self.flushed_bytes.max(1) as f64
    }
}

/// A tree. It owns the file numbers from that with which it was made on.
#[derive(Clone, Debug)]
pub struct Lsm {
    pub(super) config: LsmConfig,
    memtable: Memtable,
    /// The log's file, and its bytes.
    log: Option<(u32, u64)>,
    /// Tables by level: level 0 from the oldest on, the others by key.
    pub(super) levels: Vec<Vec<Table>>,
    pub(super) numbers_free: Vec<u32>,
    pub(super) next_number: u32,
    version: u64,
    pub(super) counters: LsmCounters,
    record: Vec<u8>,
}

impl Lsm {
    /// An empty tree with files from `first` on. Panics on parameters outside their ranges.
    pub fn new(config: LsmConfig, first: u32) -> Self {
        let record = config.record_bytes as usize;
        assert!((HEADER + 8..=BLOCK).contains(&record), "a record has 24 to 4096 bytes");
        assert!(config.level_0_files > 0 && config.fan_out > 1 && config.file_bytes >= BLOCK as u64);
        Self {
            config,
            memtable: Memtable::default(),
            log: None,
            levels: vec![Vec::new()],
            numbers_free: Vec::new(),
            next_number: first,
            version: 0,
            counters: LsmCounters::default(),
            record: vec![0; record],
        }
    }

    /// Work up to now.
    pub fn counters(&self) -> LsmCounters {
        self.counters
    }

    /// Tables of each level, and their bytes.
    pub fn levels(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.levels.iter().map(|tables| (tables.len(), tables.iter().map(Table::bytes).sum()))
    }

    /// Bytes that a level may have before it is merged into the next one; level 0 goes by files.
    pub(super) fn target(&self, level: usize) -> u64 {
        self.config.level_1_bytes * self.config.fan_out.pow(level.saturating_sub(1) as u32)
    }

    pub(super) fn take_number(&mut self) -> u32 {
        self.numbers_free.pop().unwrap_or_else(|| {
            self.next_number += 1;
            self.next_number - 1
        })
    }

    /// Writes a record; returns its version.
    ///
    /// Errors: those of the files.
    pub fn put(&mut self, files: &mut impl Files, key: u64) -> Result<u64, LsmError> {
        self.version += 1;
        let (file, offset) = match self.log {
            Some(log) => log,
            None => {
                let file = self.take_number();
                files.create(file)?;
                (file, 0)
            }
        };
        encode(key, self.version, &mut self.record);
        files.write(file, offset, &self.record)?;
        if self.config.syncs {
            files.fsync(file)?;
        }
        let bytes = self.record.len() as u64;
        self.log = Some((file, offset + bytes));
        self.counters.puts += 1;
        self.counters.log_bytes += bytes;
        self.memtable.versions.insert(key, self.version);
        if self.memtable.versions.len() as u64 * bytes >= self.config.memtable_bytes {
            self.flush(files)?;
        }
        Ok(self.version)
    }

    /// Looks a record up; its version if there is one.
    ///
    /// Errors: those of the files; a damaged record.
    pub fn get(&mut self, files: &mut impl Files, key: u64) -> Result<Option<u64>, LsmError> {
        self.counters.gets += 1;
        if let Some(&version) = self.memtable.versions.get(&key) {
            self.counters.in_memory += 1;
            return Ok(Some(version));
        }
        let (counters, record) = (&mut self.counters, self.record.len());
        for (level, tables) in self.levels.iter().enumerate() {
            let candidates = if level == 0 {
                &tables[..]
            } else {
                // Ranges of a later level are disjoint: one table at most.
                let at = tables.partition_point(|table| table.most < key);
                &tables[at..tables.len().min(at + 1)]
            };
            for table in candidates.iter().rev().filter(|table| table.overlaps(key, key)) {
                counters.filters_asked += 1;
                if !table.may_hold(key) {
                    continue;
                }
                counters.filters_passed += 1;
                counters.blocks_read += 1;
                if let Some(version) = table.find(files, key, record)? {
                    return Ok(Some(version));
                }
                counters.filters_wrong += 1;
            }
        }
        Ok(None)
    }

    /// Writes the memtable to a file of level 0, and merges until every level has its size.
    ///
    /// Errors: those of the files; a damaged record.
    pub fn flush(&mut self, files: &mut impl Files) -> Result<(), LsmError> {
        let records: Vec<(u64, u64)> = std::mem::take(&mut self.memtable).versions.into_iter().collect();
        if records.is_empty() {
            return Ok(());
        }
        let file = self.take_number();
        let table = Table::write(files, file, &records, self.record.len(), self.config.bits_per_key)?;
        self.counters.flushes += 1;
        self.counters.flushed_bytes += table.bytes();
        self.levels[0].push(table);
        if let Some((log, _)) = self.log.take() {
            files.delete(log)?;
            self.numbers_free.push(log);
        }
        self.merge_while_needed(files)
    }
}
