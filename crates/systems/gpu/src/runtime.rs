//! Memory beyond the GPU's own by page faults: the host's runtime brings pages, from its DRAM (UVM) or from storage (GDS).
//!
//! The runtime takes the faults that wait when it is free, and works for all of them once: a batch. Pages then come one after the
//! other over the link, and a thread goes on when its page has come.
//!
//! Source: \[P\] sheet micro-cxl-gpu §3.6: 45 us of the runtime for each fault event, data page by page; \[X\] batches and their
//! size: parameters of NVIDIA's open driver (Allen and Ge, SC 2021).

use crate::banks::Banks;
use flashyard_cache::{Policy, PolicyKind};
use flashyard_cxl::CACHE_LINE_BYTES;
use flashyard_memory::{Medium, PAGE_BYTES};
use flashyard_units::{ByteRate, SimSpan, SimTime};

/// Parameters of page faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultConfig {
    /// Work of the runtime for a batch of faults.
    pub work: SimSpan,
    /// Lines that a fault brings: pages of 4 KiB.
    pub lines: u64,
    /// Faults of a batch at most.
    pub at_once: u32,
    /// The way to the host and to storage.
    pub link: ByteRate,
}

/// Faults that the runtime works for together.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    begins: SimTime,
    /// When the last page of it has come, and those that left have gone.
    ends: SimTime,
    faults: u32,
}

/// The runtime, and the GPU's memory that it fills.
pub(crate) struct Runtime {
    config: FaultConfig,
    policy: Box<dyn Policy + Send>,
    /// By place: when its page has come, and whether it was changed.
    pages: Vec<(SimTime, bool)>,
    dram: Banks,
    /// Storage behind it; DRAM of the host otherwise.
    storage: Option<Medium>,
    /// The last batch, which may begin later.
    batch: Batch,
    pub(crate) faults: u64,
    pub(crate) batches: u64,
}

impl Runtime {
    /// The GPU's memory has room for so many lines.
    pub(crate) fn new(config: FaultConfig, lines: u64, dram: Banks, storage: Option<Medium>) -> Self {
        let pages = (lines / config.lines).max(1) as u32;
        Self {
            config,
            policy: PolicyKind::Lru.cache(pages),
            pages: vec![(SimTime::ZERO, false); pages as usize],
            dram,
            storage,
            batch: Batch::default(),
            faults: 0,
            batches: 0,
        }
    }

    /// An access of a thread; returns when it is done.
    pub(crate) fn access(&mut self, now: SimTime, line: u64, is_store: bool) -> SimTime {
        let page = line / self.config.lines;
        let place = match self.policy.touch(page) {
            Some(place) => place as usize,
            None => self.fault(now, page),
        };
        let (ready, is_changed) = &mut self.pages[place];
        *is_changed |= is_store;
        let begins = (*ready).max(now);
        // Memory that is waited for has no queue: times of a bank only grow.
        if begins > now {
            return begins + self.dram.row_miss();
        }
        let done = self.dram.line(now, line);
        if is_store { now } else { done }
    }

    /// Brings a page, in place of the one used longest ago; returns its place.
    fn fault(&mut self, now: SimTime, page: u64) -> usize {
        self.faults += 1;
        // A batch that has begun takes no further faults, but for those of the moment in which it begins.
        if self.batch.faults == 0 || self.batch.begins < now || self.batch.faults >= self.config.at_once {
            let begins = self.batch.ends.max(now);
            self.batch = Batch { begins, ends: begins + self.config.work, faults: 0 };
            self.batches += 1;
        }
        self.batch.faults += 1;
        let begins = self.batch.begins;
        let transfer = self.config.link.span_of(self.config.lines * CACHE_LINE_BYTES);
        let inserted = self.policy.insert(page);
        let mut read = self.batch.ends;
        if let Some(evicted) = inserted.evicted {
            let (_, is_changed) = self.pages[evicted.slot as usize];
            if is_changed {
                read += transfer;
                if let Some(storage) = &mut self.storage {
                    for page in pages_of(evicted.key, &self.config, storage.pages()) {
                        read = read.max(storage.write(begins, page, false).accepted);
                    }
                }
            }
        }
        if let Some(storage) = &mut self.storage {
            for page in pages_of(page, &self.config, storage.pages()) {
                read = read.max(storage.read(begins, page) + self.config.work);
            }
        }
        self.batch.ends = read + transfer;
        self.pages[inserted.slot as usize] = (self.batch.ends, false);
        inserted.slot as usize
    }
}

/// Pages of storage that a page of the runtime lies in, of so many.
fn pages_of(page: u64, config: &FaultConfig, pages: u32) -> impl Iterator<Item = u32> + use<> {
    let each = (config.lines * CACHE_LINE_BYTES).div_ceil(PAGE_BYTES);
    (page * each..(page + 1) * each).map(move |page| (page % u64::from(pages)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_memory::DramConfig;

    const AT: fn(u64) -> SimTime = |us| SimTime::ZERO + SimSpan::from_us(us);

    fn runtime(at_once: u32) -> Runtime {
        let ns = SimSpan::from_ns(1);
        let dram = DramConfig {
            channels: 1,
            banks: 8,
            row_bytes: 4096,
            precharge: ns,
            activate: ns,
            column: ns,
            burst: ns,
            controller: ns,
        };
        // A page of 4 KiB takes 1 us.
        let link = ByteRate::from_mb(4096);
        let config = FaultConfig { work: SimSpan::from_us(45), lines: 64, at_once, link };
        Runtime::new(config, 64 * 4, Banks::new(dram).expect("it is possible"), None)
    }

    #[test]
    fn faults_that_wait_are_worked_for_once_and_their_pages_come_one_after_the_other() {
        let memory = SimSpan::from_ns(5);
        let mut runtime = runtime(256);
        let ends: Vec<SimTime> = [(0, 0), (0, 64), (10, 128), (20, 192), (20, 200)]
            .map(|(us, line)| runtime.access(AT(us), line, false))
            .to_vec();
        let expected = [46, 47, 47 + 46, 47 + 47, 47 + 47].map(|us| AT(us) + memory);
        assert_eq!(ends, expected);
        assert_eq!((runtime.faults, runtime.batches), (4, 2));
        // All is there now; a line takes its memory alone.
        assert_eq!(runtime.access(AT(200), 1, false), AT(200) + SimSpan::from_ns(4));
    }

    #[test]
    fn faults_one_by_one_take_their_sum_and_changed_pages_go_back_first() {
        let memory = SimSpan::from_ns(5);
        let mut runtime = runtime(1);
        let ends = [0, 64, 128, 192].map(|line| runtime.access(AT(0), line, true));
        assert_eq!(ends, [46, 92, 138, 184].map(|us| AT(us) + memory));
        assert_eq!(runtime.access(AT(200), 256, false), AT(200 + 45 + 1 + 1) + memory);
        assert_eq!((runtime.faults, runtime.batches), (5, 5));
    }
}
