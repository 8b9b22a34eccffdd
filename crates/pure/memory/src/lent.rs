//! DRAM that idle drives lend to a memory device: a further place for pages that leave the internal DRAM.
//!
//! 1. An unchanged copy of a page that leaves goes to the next lender that is idle, over the fabric.
//! 2. A load of such a page takes its line from there, at the latency of the fabric; a page that is loaded often, or stored to, comes back.
//! 3. A lender that becomes busy withdraws its DRAM at once. Its pages are on the medium as well, so that nothing has to be saved.
//!
//! What it does not model: the board and the agreements by which lenders and borrowers find each other (they last far longer than a request),
//! and the work of a lender, which is a draw of times that it is idle and busy for.
//!
//! Source: [P] sheet xbof §4 (idle drives lend DRAM in segments over CXL); that pages of data lie there, and the rule of coming back, are [A].

use crate::dram::{Dram, DramConfig};
use crate::error::MemoryError;
use crate::page_cache::PAGE_BYTES;
use crate::path::{Expander, PathConfig};
use flashyard_cache::{Policy, PolicyKind};
use flashyard_cxl::{CACHE_LINE_BYTES, Completes, Memory, MemoryAccess, Transaction};
use flashyard_fabric::Direction;
use flashyard_kernel::Rng;
use flashyard_units::{SimSpan, SimTime};

/// Bytes of a segment, the unit that is lent. [P] sheet xbof §6
pub const SEGMENT_BYTES: u64 = 2 << 20;

/// Parameters of DRAM that is lent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LentConfig {
    /// Drives that lend while they are idle, 1 to 64.
    pub lenders: u32,
    /// Segments of 2 MiB that each lends.
    pub segments: u32,
    /// The way from the device to a lender.
    pub path: PathConfig,
    /// DRAM of a lender.
    pub dram: DramConfig,
    /// Mean time for which a lender is idle, and busy. Each draws its own.
    pub idle: SimSpan,
    /// See `idle`.
    pub busy: SimSpan,
    /// Loads after which a page comes back.
    pub returns_after: u32,
    /// Seed of those times.
    pub seed: u64,
}

/// Counts of DRAM that is lent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LentCounters {
    /// Requests whose page was there.
    pub hits: u64,
    /// Pages that went there.
    pub taken: u64,
    /// Pages that came back.
    pub returned: u64,
    /// Pages that were lost to lenders that became busy.
    pub withdrawn: u64,
    /// Times that a lender became busy.
    pub withdrawals: u64,
}

/// A page that was found at a lender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Its line is at the device then.
    Line(SimTime),
    /// It comes back whole and is there then.
    Page(SimTime),
}

struct Lender {
    pages: Box<dyn Policy + Send>,
    /// Loads of each slot since it was taken.
    loads: Vec<u32>,
    memory: Expander<Dram>,
    is_idle: bool,
    /// End of the time that it is so.
    until: SimTime,
    rng: Rng,
}

/// Drives that lend DRAM.
pub struct Lent {
    config: LentConfig,
    lenders: Vec<Lender>,
    /// The lender whose turn it is.
    next: usize,
    /// The first of all ends.
    changes: SimTime,
    counters: LentCounters,
}

/// Lines of a page.
const PAGE_LINES: u64 = PAGE_BYTES / CACHE_LINE_BYTES;

impl Lent {
    /// Lenders that are all idle, with empty DRAM.
    ///
    /// Errors: counts outside their ranges, DRAM that cannot be.
    pub fn new(config: LentConfig) -> Result<Self, MemoryError> {
        for (name, value, most) in [("lenders", config.lenders, 64), ("segments of a lender", config.segments, 1 << 16)]
        {
            if value == 0 || value > most {
                return Err(MemoryError::Range {
                    name,
                    value: value.into(),
                    range: "at least 1, and 64 lenders of 128 GiB",
                });
            }
        }
        for (name, span) in [("idle time of lenders in ps", config.idle), ("busy time of lenders in ps", config.busy)] {
            if span == SimSpan::ZERO {
                return Err(MemoryError::Range { name, value: 0, range: "more than nothing" });
            }
        }
        let pages = config.segments * (SEGMENT_BYTES / PAGE_BYTES) as u32;
        let lender = |number: u32| -> Result<Lender, MemoryError> {
            let mut rng = Rng::named(config.seed, &format!("lender {number}"));
            let until = SimTime::ZERO + drawn(&mut rng, config.idle);
            Ok(Lender {
                pages: PolicyKind::Lru.cache(pages),
                loads: vec![0; pages as usize],
                memory: Expander::new(config.path, Dram::new(config.dram)?),
                is_idle: true,
                until,
                rng,
            })
        };
        let lenders = (0..config.lenders).map(lender).collect::<Result<Vec<_>, _>>()?;
        let changes = lenders.iter().map(|lender| lender.until).min().unwrap_or(SimTime::MAX);
        Ok(Self { config, lenders, next: 0, changes, counters: LentCounters::default() })
    }

    /// Counts so far.
    pub fn counters(&self) -> &LentCounters {
        &self.counters
    }

    /// Pages that are there.
    pub fn pages(&self) -> u64 {
        self.lenders.iter().map(|lender| u64::from(lender.pages.len())).sum()
    }

    /// Whether a lender has a page.
    #[cfg(test)]
    pub(crate) fn holds(&self, page: u32) -> bool {
        self.lenders.iter().any(|lender| lender.pages.slot_of(page.into()).is_some())
    }

    /// Lets lenders become busy and idle up to `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: SimTime) {
        if self.changes <= now {
            self.change(now);
        }
    }

    #[cold]
    fn change(&mut self, now: SimTime) {
        for lender in &mut self.lenders {
            while lender.until <= now {
                lender.is_idle = !lender.is_idle;
                if !lender.is_idle {
                    self.counters.withdrawals += 1;
                    while lender.pages.evict().is_some() {
                        self.counters.withdrawn += 1;
                    }
                }
                let mean = if lender.is_idle { self.config.idle } else { self.config.busy };
                lender.until += drawn(&mut lender.rng, mean);
            }
        }
        self.changes = self.lenders.iter().map(|lender| lender.until).min().unwrap_or(SimTime::MAX);
    }

    /// Takes an unchanged page in that leaves the internal DRAM at `now`; it is dropped where no lender is idle.
    pub(crate) fn take(&mut self, now: SimTime, page: u32) {
        self.advance(now);
        let count = self.lenders.len();
        let idle = (0..count).map(|step| (self.next + step) % count).find(|&number| self.lenders[number].is_idle);
        let Some(number) = idle else { return };
        self.next = (number + 1) % count;
        let lender = &mut self.lenders[number];
        let inserted = lender.pages.insert(page.into());
        lender.loads[inserted.slot as usize] = 0;
        self.counters.taken += 1;
        // Its lines go out beside whatever is asked for, and are answered.
        lender.memory.tell(Direction::In, PAGE_LINES * Transaction::Store.request_bytes());
        lender.memory.tell(Direction::Out, PAGE_LINES * Transaction::Store.response_bytes());
    }

    /// Looks for a page for an access to one of its lines; `None` where no lender has it.
    #[inline]
    pub(crate) fn find(&mut self, now: SimTime, page: u32, access: &MemoryAccess) -> Option<Found> {
        self.advance(now);
        let key = u64::from(page);
        let lender = self.lenders.iter_mut().find(|lender| lender.pages.slot_of(key).is_some())?;
        let slot = lender.pages.touch(key)? as usize;
        self.counters.hits += 1;
        lender.loads[slot] += 1;
        let line = |lender: &mut Lender, address: u64| match lender.memory.access(
            now,
            0,
            &MemoryAccess::lines(Transaction::Load, address, 1),
        ) {
            Completes::At(at) => at,
            Completes::Later => now,
        };
        if access.operation == Transaction::Load && lender.loads[slot] < self.config.returns_after {
            return Some(Found::Line(line(lender, access.address)));
        }
        lender.pages.remove(key);
        self.counters.returned += 1;
        let first = key * PAGE_BYTES;
        Some(Found::Page(
            (0..PAGE_LINES).fold(now, |done, number| done.max(line(lender, first + number * CACHE_LINE_BYTES))),
        ))
    }
}

/// An exponential draw, at least a picosecond.
fn drawn(rng: &mut Rng, mean: SimSpan) -> SimSpan {
    let share = -libm::log(1.0 - rng.unit());
    SimSpan::from_ps(((mean.as_ps() as f64 * share) as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::ByteRate;
    use proptest::prelude::*;

    fn config() -> LentConfig {
        let ns = SimSpan::from_ns;
        LentConfig {
            lenders: 2,
            segments: 1,
            path: PathConfig { link_rate: ByteRate::from_mb(16_000), port: ns(100), switches: 0, switch: ns(0) },
            dram: DramConfig {
                channels: 1,
                banks: 8,
                row_bytes: 8192,
                precharge: ns(10),
                activate: ns(10),
                column: ns(10),
                burst: ns(2),
                controller: ns(8),
            },
            idle: SimSpan::from_ms(5),
            busy: SimSpan::from_ms(5),
            returns_after: 3,
            seed: 1,
        }
    }

    const AT: fn(u64) -> SimTime = |us| SimTime::ZERO + SimSpan::from_us(us);

    fn of(operation: Transaction, page: u32) -> MemoryAccess {
        MemoryAccess::lines(operation, u64::from(page) * 4096, 1)
    }

    #[test]
    fn a_line_takes_the_fabric_and_a_page_that_is_loaded_often_comes_back() {
        let mut lent = Lent::new(config()).expect("it is possible");
        lent.take(AT(0), 7);
        assert_eq!(lent.find(AT(1), 8, &of(Transaction::Load, 8)), None);
        // 18 and 86 bytes at 16 GB/s, the way there and back, and a row that was closed.
        let wire = SimSpan::from_ps(18 * 1000 / 16 + 86 * 1000 / 16);
        let Some(Found::Line(at)) = lent.find(AT(1), 7, &of(Transaction::Load, 7)) else { panic!("it is there") };
        let expected = AT(1) + SimSpan::from_ns(2 * 100 + 30) + wire;
        assert!(at.since(AT(1)).as_ns().abs_diff(expected.since(AT(1)).as_ns()) <= 1, "{at:?} {expected:?}");
        assert!(matches!(lent.find(AT(2), 7, &of(Transaction::Load, 7)), Some(Found::Line(_))));
        let Some(Found::Page(at)) = lent.find(AT(3), 7, &of(Transaction::Load, 7)) else { panic!("the third load") };
        assert!(at > AT(3) + SimSpan::from_ns(300), "sixty-four lines take longer than one");
        assert_eq!(lent.find(AT(9), 7, &of(Transaction::Load, 7)), None);
        lent.take(AT(10), 9);
        assert!(matches!(lent.find(AT(11), 9, &of(Transaction::Store, 9)), Some(Found::Page(_))), "it will change");
        let LentCounters { hits, taken, returned, .. } = *lent.counters();
        assert_eq!((hits, taken, returned, lent.pages()), (4, 2, 2, 0));
    }

    #[test]
    fn a_lender_that_becomes_busy_takes_its_dram_back() {
        let mut lent = Lent::new(LentConfig { lenders: 1, ..config() }).expect("it is possible");
        let ends = lent.lenders[0].until;
        (0..10).for_each(|page| lent.take(SimTime::ZERO, page));
        assert_eq!(lent.pages(), 10);
        assert_eq!(lent.find(ends, 3, &of(Transaction::Load, 3)), None);
        lent.take(ends, 3);
        assert_eq!((lent.pages(), lent.counters().withdrawn, lent.counters().withdrawals), (0, 10, 1));
        let again = lent.lenders[0].until;
        lent.take(again, 3);
        assert_eq!(lent.pages(), 1, "it is idle again");
    }

    #[test]
    fn lenders_that_cannot_be_are_refused() {
        for wrong in [
            LentConfig { lenders: 0, ..config() },
            LentConfig { segments: 0, ..config() },
            LentConfig { idle: SimSpan::ZERO, ..config() },
        ] {
            assert!(Lent::new(wrong).is_err());
        }
    }

    proptest! {
        #[test]
        fn a_page_is_at_one_lender_at_most_and_none_is_lost_but_to_busy_ones(
            steps in prop::collection::vec((0_u64..400, 0_u32..900, any::<bool>(), any::<bool>()), 1..400),
        ) {
            let mut lent = Lent::new(LentConfig { lenders: 3, ..config() }).expect("it is possible");
            let mut now = SimTime::ZERO;
            let mut evicted = 0;
            for (gap, page, take, store) in steps {
                now += SimSpan::from_us(gap);
                let operation = if store { Transaction::Store } else { Transaction::Load };
                let found = lent.find(now, page, &of(operation, page));
                if let Some(Found::Line(at) | Found::Page(at)) = found {
                    prop_assert!(at > now);
                }
                if take && !matches!(found, Some(Found::Line(_))) {
                    let before = (lent.pages(), lent.counters().taken);
                    lent.take(now, page);
                    evicted += before.0 + (lent.counters().taken - before.1) - lent.pages();
                }
                let held = |page: u32| lent.lenders.iter().filter(|lender| lender.pages.slot_of(page.into()).is_some()).count();
                prop_assert!((0..900).all(|page| held(page) <= 1));
                let LentCounters { taken, returned, withdrawn, .. } = *lent.counters();
                prop_assert_eq!(taken, returned + withdrawn + evicted + lent.pages());
            }
        }
    }
}
