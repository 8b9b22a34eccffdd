//! Data that the controller keeps of reads, and reads ahead of hosts that read in sequence.
//!
//! The cache decides when data is there, never what it is: a read takes what the map says at its moment, from wherever. So a slot
//! that is written, deallocated or remapped leaves the cache, and one that garbage collection moves stays. Reads that peers
//! or lenders have translated pass it by.
//!
//! Source: \[X\] controllers of client drives cache reads, and most controllers read ahead; sets of eight and the rules of streams
//! are \[A\].

use crate::command::{CommandSpec, Tag};
use crate::config::DriveConfig;
use crate::event::{DriveEffect, DriveEvent};
use crate::flash_port::FlashPort;
use crate::lost::LostData;
use crate::read_plan::{ReadGroup, Supply, Together, fills_row, joins};
use flashyard_ftl::Ftl;
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;
use std::ops::Range;

/// Slots of a set.
const WAYS: usize = 8;

/// Sequences of reads that are followed at once.
const STREAMS: usize = 8;

const EMPTY: u32 = u32::MAX;

/// A read of flash that no command has asked for yet.
struct Fetch {
    /// Its logical slots; empty for a number that is free.
    slots: Range<u32>,
    group: ReadGroup,
    /// Whether the slots still hold what is read.
    current: bool,
    /// Whether it could not be read.
    failed: bool,
    /// Commands that wait, with the number of slots that each waits for.
    waiters: Vec<(u32, u32)>,
}

/// A sequence of reads.
#[derive(Clone, Copy)]
struct Sequence {
    /// The slot with which it goes on.
    next: u32,
    /// Up to which slot it was read ahead.
    ahead: u32,
    /// When it was last met, by the count of reads.
    met: u64,
}

/// The read cache of a drive.
pub(crate) struct ReadCache {
    sets: Vec<[u32; WAYS]>,
    /// The way that is replaced next in each set.
    hands: Vec<u8>,
    /// Slots to be read ahead; none for zero.
    ahead: u32,
    sequences: [Sequence; STREAMS],
    reads: u64,
    fetches: Vec<Fetch>,
}

impl ReadCache {
    /// A cache of `slots`, at least one set, that reads `ahead` slots ahead.
    pub(crate) fn new(slots: u32, ahead: u32) -> Self {
        let sets = (slots as usize / WAYS).max(1);
        Self {
            sets: vec![[EMPTY; WAYS]; sets],
            hands: vec![0; sets],
            ahead,
            sequences: [Sequence { next: EMPTY, ahead: 0, met: 0 }; STREAMS],
            reads: 0,
            fetches: Vec::new(),
        }
    }

    fn set_of(&self, slot: u32) -> usize {
        let mixed = slot.wrapping_mul(2_654_435_761);
        ((u64::from(mixed) * self.sets.len() as u64) >> 32) as usize
    }

    /// Where the data of `slot` is.
    pub(crate) fn supply(&self, slot: u32) -> Supply {
        if self.sets[self.set_of(slot)].contains(&slot) {
            return Supply::Cached;
        }
        let fetched =
            self.fetches.iter().position(|fetch| fetch.current && !fetch.failed && fetch.slots.contains(&slot));
        fetched.map_or(Supply::Elsewhere, Supply::Fetched)
    }

    /// Keeps a slot, in place of the one that its set has kept the longest.
    pub(crate) fn keep(&mut self, slot: u32) {
        let set = self.set_of(slot);
        if self.sets[set].contains(&slot) {
            return;
        }
        let way = self.sets[set].iter().position(|&kept| kept == EMPTY).unwrap_or_else(|| {
            let hand = self.hands[set] as usize;
            self.hands[set] = ((hand + 1) % WAYS) as u8;
            hand
        });
        self.sets[set][way] = slot;
    }

    /// The slot holds something else now, or nothing.
    pub(crate) fn replaced(&mut self, slot: u32) {
        let set = self.set_of(slot);
        if let Some(way) = self.sets[set].iter().position(|&kept| kept == slot) {
            self.sets[set][way] = EMPTY;
        }
        for fetch in self.fetches.iter_mut().filter(|fetch| fetch.slots.contains(&slot)) {
            fetch.current = false;
        }
    }

    /// Notes a read; returns the slots to be read ahead of the sequence that it goes on with, which are below `slots`.
    fn follow(&mut self, read: Range<u32>, slots: u32) -> Range<u32> {
        if self.ahead == 0 {
            return 0..0;
        }
        self.reads += 1;
        let met = self.reads;
        let known = self.sequences.iter_mut().find(|sequence| sequence.next == read.start);
        let Some(sequence) = known else {
            let oldest = self.sequences.iter_mut().min_by_key(|sequence| sequence.met);
            if let Some(oldest) = oldest {
                *oldest = Sequence { next: read.end, ahead: read.end, met };
            }
            return 0..0;
        };
        sequence.next = read.end;
        sequence.met = met;
        let from = sequence.ahead.max(read.end);
        // By halves, so that whole pages are read.
        if from - read.end > self.ahead / 2 {
            return 0..0;
        }
        sequence.ahead = u64::from(slots).min(u64::from(read.end) + u64::from(self.ahead)) as u32;
        from.min(sequence.ahead)..sequence.ahead
    }

    /// Follows the sequence of a read, and reads ahead of it; returns how many slots.
    pub(crate) fn read_ahead(
        &mut self,
        now: SimTime,
        read: &CommandSpec,
        (config, ftl, flash): (&DriveConfig, &mut Ftl, &mut FlashPort),
        counts_reads: bool,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) -> u64 {
        let slots = self.follow(read.first..read.first + read.count, config.ftl.logical_slots);
        let (mut logical, mut fetched) = (slots.start, 0);
        while logical < slots.end {
            let Some((group, next)) = self.run_from(logical..slots.end, ftl, config.reads_together()) else {
                logical += 1;
                continue;
            };
            let number = self.begin(logical..next, group);
            fetched += u64::from(group.slots);
            let command = flash.group_command(ftl, group, Tag::Ahead(number as u32));
            if counts_reads {
                ftl.count_reads(group.first, command.planes.count());
            }
            flash.issue(now, command, out);
            logical = next;
        }
        fetched
    }

    /// The slots from the first of `slots` on that one flash read brings, and the slot after them; `None` if the first is not
    /// on flash alone.
    fn run_from(&self, slots: Range<u32>, ftl: &Ftl, together: Together) -> Option<(ReadGroup, u32)> {
        let on_flash = |logical: u32| {
            let slot = ftl.lookup(logical);
            let alone = slot.is_some() && ftl.is_programmed(slot) && self.supply(logical) == Supply::Elsewhere;
            alone.then_some(slot)
        };
        let first = on_flash(slots.start)?;
        let mut group = ReadGroup { first, last: first, slots: 1 };
        let mut next = slots.start + 1;
        while next < slots.end
            && let Some(slot) = on_flash(next)
            && joins(ftl.layout(), group.last, slot, together != Together::None)
        {
            group.last = slot;
            group.slots += 1;
            next += 1;
        }
        if together == Together::Rows && !fills_row(ftl.layout(), &group) {
            return self.run_from(slots, ftl, Together::None);
        }
        Some((group, next))
    }

    /// Begins a fetch; returns its number.
    fn begin(&mut self, slots: Range<u32>, group: ReadGroup) -> usize {
        let free = self.fetches.iter().position(|fetch| fetch.slots.is_empty());
        let number = free.unwrap_or_else(|| {
            self.fetches.push(Fetch { slots: 0..0, group, current: true, failed: false, waiters: Vec::new() });
            self.fetches.len() - 1
        });
        let fetch = &mut self.fetches[number];
        (fetch.slots, fetch.group, fetch.current, fetch.failed) = (slots, group, true, false);
        number
    }

    /// A command waits for a slot of a fetch; returns whether it waits for no other slot of it.
    pub(crate) fn wait(&mut self, fetch: usize, command: u32) -> bool {
        let waiters = &mut self.fetches[fetch].waiters;
        match waiters.last_mut() {
            Some(last) if last.0 == command => {
                last.1 += 1;
                false
            }
            _ => {
                waiters.push((command, 1));
                true
            }
        }
    }

    /// A fetch has ended, and its number is free: what it has read is kept if it is current. Returns its reads, the commands that
    /// wait, and whether it could not be read.
    pub(crate) fn end(&mut self, number: usize) -> (ReadGroup, Vec<(u32, u32)>, bool) {
        let fetch = &mut self.fetches[number];
        let (slots, failed) = (std::mem::replace(&mut fetch.slots, 0..0), fetch.failed);
        let (group, waiters, keeps) = (fetch.group, std::mem::take(&mut fetch.waiters), fetch.current && !failed);
        if keeps {
            slots.for_each(|slot| self.keep(slot));
        }
        (group, waiters, failed)
    }

    /// Keeps the memory of a list of waiters.
    pub(crate) fn keep_list(&mut self, number: usize, mut waiters: Vec<(u32, u32)>) {
        waiters.clear();
        self.fetches[number].waiters = waiters;
    }

    /// A fetch could not be read.
    pub(crate) fn fail(&mut self, fetch: usize) {
        self.fetches[fetch].failed = true;
    }

    /// Everything is forgotten: the power has failed.
    pub(crate) fn clear(&mut self) {
        self.sets.fill([EMPTY; WAYS]);
        self.hands.fill(0);
        self.sequences = [Sequence { next: EMPTY, ahead: 0, met: 0 }; STREAMS];
        self.fetches.clear();
    }
}

/// A slot holds something else now, or nothing; returns whether its data was lost.
#[inline]
pub(crate) fn replaced(lost: &mut LostData, cache: &mut Option<Box<ReadCache>>, logical: u32) -> bool {
    if let Some(cache) = cache {
        cache.replaced(logical);
    }
    lost.replace(logical)
}
