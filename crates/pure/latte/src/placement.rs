//! Where blocks lie: the location map with the slots that it names, in the log and in the read cache.

use crate::config::{Config, Counters};
use crate::front_log::FrontLog;
use crate::location::{Locations, State};
use crate::lost::LostBlocks;
use crate::operation::{RUN, Table};
use crate::pins::Pins;
use crate::read_cache::ReadCache;

/// The location map, the slots of the front end, and the blocks that were lost with one.
#[derive(Debug)]
pub(crate) struct Placement {
    pub(crate) map: Locations,
    pub(crate) log: FrontLog,
    pub(crate) cache: ReadCache,
    pub(crate) pins: Pins,
    pub(crate) lost: LostBlocks,
}

impl Placement {
    /// All blocks at the back end.
    pub(crate) fn new(config: &Config) -> Self {
        let &Config { blocks, log_slots, cache_slots, policy, .. } = config;
        Self {
            map: Locations::at_back(blocks as usize),
            log: FrontLog::new(log_slots),
            cache: ReadCache::new(policy, log_slots, cache_slots),
            pins: Pins::new(log_slots + cache_slots),
            lost: LostBlocks::new(blocks),
        }
    }

    /// Fills the cache with copies of runs of blocks spread evenly over the volume.
    pub(crate) fn warm(&mut self, config: &Config) {
        let (blocks, slots) = (u64::from(config.blocks), u64::from(config.cache_slots.min(config.blocks)));
        let run = RUN as u64;
        let upto = |runs: u64| (runs * run).min(blocks) * slots / blocks / run;
        let mut left = slots;
        for number in 0..blocks.div_ceil(run) {
            // The share of the blocks up to here gains a run over that of the blocks before, or does not.
            if upto(number + 1) == upto(number) {
                continue;
            }
            for block in number * run..((number + 1) * run).min(blocks) {
                if left > 0 {
                    left -= 1;
                    self.warm_block(block as u32);
                }
            }
        }
    }

    fn warm_block(&mut self, block: u32) {
        let Some(slot) = self.cache.admit(&mut self.map, block, |_| true) else { return };
        self.cache.arrived(block);
        if let Some(version) = self.map.begin_promotion(block.into()) {
            self.map.promoted(block.into(), version, slot.into());
        }
    }

    /// Memory that was taken in the beginning, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let slots = self.log.memory_bytes() + self.cache.memory_bytes() + self.pins.memory_bytes();
        self.map.memory_bytes() + self.lost.memory_bytes() + slots
    }

    /// The slot of the block's copy at the front end, if there is one.
    #[inline]
    pub(crate) fn front_slot(&self, block: u32) -> Option<u32> {
        let location = self.map.get(block.into());
        matches!(location.state, State::Dirty | State::Clean).then_some(location.slot as u32)
    }

    /// Whether a copy of one of the blocks is at the front end.
    pub(crate) fn is_at_front(&self, first: u32, end: u32) -> bool {
        (first..end).any(|block| self.front_slot(block).is_some())
    }

    /// Whether the newest copy of one of the blocks is at the front end alone.
    pub(crate) fn is_dirty(&self, first: u32, end: u32) -> bool {
        (first..end).any(|block| self.map.get(block.into()).state == State::Dirty)
    }

    /// Whether the back end takes a write of the blocks now.
    pub(crate) fn takes_back(&self, first: u32, end: u32) -> bool {
        (first..end).all(|block| self.map.takes_back(block.into()))
    }

    /// Blocks from `block` on, whose copy lies in `slot`, whose copies follow each other at the front end.
    pub(crate) fn front_run(&self, block: u32, end: u32, slot: u32) -> u32 {
        let most = (end - block).min(RUN as u32);
        (1..most).find(|&place| self.front_slot(block + place) != Some(slot + place)).unwrap_or(most)
    }

    /// Blocks from `block` on that are at the back end alone.
    pub(crate) fn back_run(&self, block: u32, end: u32) -> u32 {
        let most = (end - block).min(RUN as u32);
        (1..most).find(|&place| self.front_slot(block + place).is_some()).unwrap_or(most)
    }

    /// Blocks of the log that are not at the back end.
    pub(crate) fn dirty(&self) -> u32 {
        self.map.dirty()
    }

    /// Gives slots of the log back that can be given back.
    pub(crate) fn advance(&mut self, table: &Table) {
        let pins = &self.pins;
        self.log.advance(&mut self.map, |slot| pins.is_free(slot, |slot| table.uses(slot)));
    }

    /// Takes a block into the cache; returns its slot, on which an order begins, unless the one that it would get is in use.
    pub(crate) fn admit(&mut self, block: u32, table: &Table) -> Option<u32> {
        let pins = &self.pins;
        let slot = self.cache.admit(&mut self.map, block, |slot| pins.is_free(slot, |slot| table.uses(slot)))?;
        self.pins.pin(slot, 1);
        Some(slot)
    }

    /// Copies of blocks from `slot` on cannot be read: those that are at the back end as well count no more. Returns whether there were any.
    pub(crate) fn give_up(&mut self, first: u32, slot: u32, count: u32) -> bool {
        let mut any = false;
        for (block, slot) in (first..first + count).zip(slot..) {
            if self.map.evict(block.into(), slot.into()) {
                self.free(block, slot);
                any = true;
            }
        }
        any
    }

    /// The copy of a block in `slot` of the front end counts no more.
    fn free(&mut self, block: u32, slot: u32) {
        if slot < self.log.slots() {
            if self.log.owner(slot) == Some(block) {
                self.log.release(slot);
            }
        } else {
            self.cache.forget(&mut self.map, block, slot);
        }
    }

    /// A write of blocks to slots of the log has ended; `counts` unless it has failed or the front end is lost.
    pub(crate) fn front_written(&mut self, first: u32, slot: u32, count: u32, counts: bool) {
        for (block, slot) in (first..first + count).zip(slot..) {
            if counts {
                self.log.written(slot);
                if let Some(old) = self.map.written_front(block.into(), slot.into()) {
                    self.free(block, old as u32);
                }
            } else {
                self.log.release(slot);
            }
        }
    }

    /// A write or a trim of blocks at the back end has ended; `alone` where there was no front end when it began.
    pub(crate) fn back_changed(&mut self, first: u32, began: &[u16], is_ok: bool, alone: bool) {
        for (block, &began) in (first..).zip(began) {
            if let Some(slot) = self.map.end_back(block.into(), began, is_ok) {
                self.free(block, slot as u32);
            }
            // One that began before may be older than what was lost.
            if is_ok && alone {
                self.lost.remove(block);
            }
        }
    }

    /// A copy of the block, which was read as version `began`, was written to `slot`, or could not be. Returns whether it counts.
    pub(crate) fn promoted(&mut self, block: u32, slot: u32, began: u16, is_ok: bool) -> bool {
        self.cache.arrived(block);
        // Evicted again before its copy was there?
        if !self.cache.holds(block, slot) {
            return false;
        }
        let counts = is_ok && self.map.promoted(block.into(), began, slot.into());
        if !counts {
            self.cache.forget(&mut self.map, block, slot);
        }
        counts
    }

    /// The front end is lost, and what it alone had.
    pub(crate) fn lose_front(&mut self, counters: &mut Counters) {
        let lost = &mut self.lost;
        self.map.lose_front(|block| {
            lost.insert(block as u32);
            counters.lost += 1;
        });
        self.log.clear();
        self.cache.clear();
    }

    /// A planted mistake: blocks count as written before the back end has them.
    #[cfg(test)]
    pub(crate) fn forget_copies(&mut self, first: u32, count: u32) {
        for block in first..first + count {
            if let Some(slot) = self.front_slot(block) {
                self.map.set_back(block.into());
                self.free(block, slot);
            }
        }
    }
}
