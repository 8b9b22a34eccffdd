//! Memory beyond the GPU's own by page faults: the host's runtime brings blocks of pages, from its DRAM (UVM) or from storage (GDS).
//!
//! Source: \[P\] sheet micro-cxl-gpu §3.6: 45 us of the runtime for each fault; blocks of 64 KiB are \[A\] §4.

use crate::banks::Banks;
use flashyard_cache::{Policy, PolicyKind};
use flashyard_cxl::CACHE_LINE_BYTES;
use flashyard_memory::Medium;
use flashyard_units::{ByteRate, SimSpan, SimTime};

/// Lines of a block, and pages of 4 KiB in it.
const BLOCK_LINES: u64 = 1024;
const BLOCK_PAGES: u64 = 16;

/// The runtime, and the GPU's memory that it fills.
pub(crate) struct Runtime {
    fault: SimSpan,
    link: ByteRate,
    policy: Box<dyn Policy + Send>,
    /// By place: when its block has come, and whether it was changed.
    blocks: Vec<(SimTime, bool)>,
    dram: Banks,
    /// Storage behind it; DRAM of the host otherwise.
    storage: Option<Medium>,
    /// When the runtime is free.
    free: SimTime,
    pub(crate) faults: u64,
}

impl Runtime {
    /// The GPU's memory has room for so many lines.
    pub(crate) fn new(fault: SimSpan, link: ByteRate, lines: u64, dram: Banks, storage: Option<Medium>) -> Self {
        let blocks = (lines / BLOCK_LINES).max(1) as u32;
        Self {
            fault,
            link,
            policy: PolicyKind::Lru.cache(blocks),
            blocks: vec![(SimTime::ZERO, false); blocks as usize],
            dram,
            storage,
            free: SimTime::ZERO,
            faults: 0,
        }
    }

    /// An access of a thread; returns when it is done.
    pub(crate) fn access(&mut self, now: SimTime, line: u64, is_store: bool) -> SimTime {
        let block = line / BLOCK_LINES;
        let place = match self.policy.touch(block) {
            Some(place) => place as usize,
            None => self.fault(now, block),
        };
        let (ready, is_changed) = &mut self.blocks[place];
        *is_changed |= is_store;
        let begins = (*ready).max(now);
        // Memory that is waited for has no queue: times of a bank only grow.
        if begins > now {
            return begins + self.dram.row_miss();
        }
        let done = self.dram.line(now, line);
        if is_store { now } else { done }
    }

    /// Brings a block, in place of the one used longest ago; returns its place.
    fn fault(&mut self, now: SimTime, block: u64) -> usize {
        self.faults += 1;
        let begins = self.free.max(now);
        let transfer = self.link.span_of(BLOCK_LINES * CACHE_LINE_BYTES);
        let inserted = self.policy.insert(block);
        let mut moved = transfer;
        let mut read = begins + self.fault;
        if let Some(evicted) = inserted.evicted {
            let (_, is_changed) = self.blocks[evicted.slot as usize];
            if is_changed {
                moved += transfer;
                if let Some(storage) = &mut self.storage {
                    let pages = storage.pages();
                    let written = |page: u64| storage.write(begins, page_of(evicted.key, page, pages), false).accepted;
                    read = (0..BLOCK_PAGES).map(written).fold(read, SimTime::max);
                }
            }
        }
        if let Some(storage) = &mut self.storage {
            let pages = storage.pages();
            let arrives = |page: u64| storage.read(begins, page_of(block, page, pages)) + self.fault;
            read = (0..BLOCK_PAGES).map(arrives).fold(read, SimTime::max);
        }
        self.free = read + moved;
        self.blocks[inserted.slot as usize] = (self.free, false);
        inserted.slot as usize
    }
}

fn page_of(block: u64, page: u64, pages: u32) -> u32 {
    ((block * BLOCK_PAGES + page) % u64::from(pages)) as u32
}
