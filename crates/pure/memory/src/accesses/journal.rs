//! A database that writes ahead: changes of its data, a record of them in a journal, and the wait until that record outlives a loss of power.
//!
//! Source: [P] sheet micro-cxl-ssd §3.6 (commit records as stores that persist, in place of a global flush), which reports no number for it;
//! sizes are [A].

use crate::access::{Access, AccessKind, Accesses};
use crate::error::MemoryError;
use crate::page_cache::PAGE_BYTES;
use flashyard_cxl::CACHE_LINE_BYTES;
use flashyard_kernel::Rng;
use flashyard_units::Named;

/// How a transaction makes sure of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// The record is written by stores that persist.
    Store,
    /// The record is stored as all data is, and everything that was changed is flushed.
    Flush,
    /// The record is stored, and nothing is waited for: it may be lost.
    Nothing,
}

impl Named for Commit {
    const ALL: &'static [Self] = &[Self::Store, Self::Flush, Self::Nothing];

    fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Flush => "flush",
            Self::Nothing => "nothing",
        }
    }
}

/// Parameters of such a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// Bytes of its data.
    pub footprint: u64,
    /// Lines of data that a transaction reads and changes, anywhere.
    pub updates: u32,
    /// Lines of its record.
    pub record_lines: u32,
    /// Bytes of the journal, which is written in a circle.
    pub journal: u64,
    /// Other instructions before each access.
    pub gap: u32,
    /// How it commits.
    pub commit: Commit,
}

/// Transactions one after the other.
#[derive(Clone, Debug)]
pub struct Journal {
    config: JournalConfig,
    rng: Rng,
    /// Step of the transaction.
    step: u32,
    /// The line that is changed after it was read.
    line: u64,
    /// Lines of the journal written so far.
    written: u64,
}

impl Journal {
    /// Transactions of `config`.
    ///
    /// Errors: data or a journal of less than a page, transactions that change nothing.
    pub fn new(config: JournalConfig, rng: Rng) -> Result<Self, MemoryError> {
        for (name, value) in [("bytes of data", config.footprint), ("bytes of a journal", config.journal)] {
            if !(PAGE_BYTES..1 << 48).contains(&value) {
                return Err(MemoryError::Range { name, value, range: "4096 to 2^48" });
            }
        }
        for (name, value) in [("updates of a transaction", config.updates), ("lines of a record", config.record_lines)]
        {
            if value == 0 || value > 1 << 20 {
                return Err(MemoryError::Range { name, value: value.into(), range: "1 to 1048576" });
            }
        }
        Ok(Self { config, rng, step: 0, line: 0, written: 0 })
    }

    /// Bytes of the data, of the journal, and of all before them.
    pub fn bytes(config: &JournalConfig) -> u64 {
        config.footprint.next_multiple_of(PAGE_BYTES) + config.journal
    }
}

impl Accesses for Journal {
    fn next_access(&mut self) -> Option<Access> {
        let JournalConfig { footprint, updates, record_lines, journal, gap, commit } = self.config;
        let (step, changes) = (self.step, 2 * updates);
        let flush = u32::from(commit == Commit::Flush);
        self.step = (step + 1) % (changes + record_lines + flush);
        let access = |kind, address, function| Access { kind, address, gap, depends: false, function };
        Some(if step < changes {
            if step % 2 == 0 {
                self.line = self.rng.below(footprint / CACHE_LINE_BYTES) * CACHE_LINE_BYTES;
            }
            access(if step % 2 == 0 { AccessKind::Load } else { AccessKind::Store }, self.line, 0)
        } else if step < changes + record_lines {
            let begins = footprint.next_multiple_of(PAGE_BYTES);
            let address = begins + self.written % (journal / CACHE_LINE_BYTES) * CACHE_LINE_BYTES;
            self.written += 1;
            let persists = commit == Commit::Store;
            access(if persists { AccessKind::PersistentStore } else { AccessKind::Store }, address, 1)
        } else {
            access(AccessKind::Flush, 0, 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(commit: Commit, count: usize) -> Vec<AccessKind> {
        let config = JournalConfig { footprint: 1 << 20, updates: 2, record_lines: 1, journal: 8192, gap: 3, commit };
        let mut journal = Journal::new(config, Rng::named(1, "test")).expect("it is possible");
        (0..count).filter_map(|_| journal.next_access()).map(|access| access.kind).collect()
    }

    #[test]
    fn a_transaction_changes_what_it_read_and_makes_sure_of_its_record() {
        use AccessKind::{Flush, Load, PersistentStore, Store};
        assert_eq!(kinds(Commit::Store, 6), [Load, Store, Load, Store, PersistentStore, Load]);
        assert_eq!(kinds(Commit::Flush, 7), [Load, Store, Load, Store, Store, Flush, Load]);
        assert_eq!(kinds(Commit::Nothing, 6), [Load, Store, Load, Store, Store, Load]);
    }

    #[test]
    fn the_journal_goes_in_a_circle_behind_the_data() {
        let commit = Commit::Store;
        let config = JournalConfig { footprint: 5000, updates: 1, record_lines: 1, journal: 8192, gap: 0, commit };
        let mut journal = Journal::new(config, Rng::named(1, "test")).expect("it is possible");
        let all: Vec<Access> = (0..3 * 129).filter_map(|_| journal.next_access()).collect();
        let records: Vec<u64> = all.iter().skip(2).step_by(3).map(|access| access.address).collect();
        assert_eq!((records[0], records[1], records[127], records[128]), (8192, 8256, 16_320, 8192));
        assert!(all.chunks(3).all(|of| of[0].address == of[1].address && of[0].address < 5000));
        assert!(Journal::new(JournalConfig { updates: 0, ..config }, Rng::named(1, "test")).is_err());
        assert!(Journal::new(JournalConfig { journal: 64, ..config }, Rng::named(1, "test")).is_err());
    }
}
