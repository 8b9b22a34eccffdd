//! The log of writes at the front end: slots in a ring, taken in the order of arrival and given back in the same order.

use crate::location::{Locations, State};

/// No block owns the slot.
const FREE: u32 = u32::MAX;
/// Set in the owner of a slot that is being written: blocks have numbers of 31 bits.
const WRITING: u32 = 1 << 31;

/// Slots of the front end that take writes, from its first block on.
///
/// A slot is given back at the tail only, once nothing is under way on it and its block is elsewhere or clean: the order of
/// flushes is that of appends. Source: sheet §2.6, "cache append and flush run in the same order".
#[derive(Clone, Debug)]
pub(crate) struct FrontLog {
    /// The block of each slot.
    owners: Vec<u32>,
    /// Appends ever begun, and those given back.
    head: u64,
    tail: u64,
}

/// A run of slots that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl FrontLog {
    /// An empty log of `slots`, at least one.
    pub(crate) fn new(slots: u32) -> Self {
        Self { owners: vec![FREE; slots as usize], head: 0, tail: 0 }
    }

    pub(crate) fn slots(&self) -> u32 {
        self.owners.len() as u32
    }

    /// Slots between tail and head.
    pub(crate) fn used(&self) -> u32 {
        (self.head - self.tail) as u32
    }

    /// Positions in use, oldest first.
    pub(crate) fn positions(&self) -> std::ops::Range<u64> {
        self.tail..self.head
    }

    /// The first position from `from` on, below `until`, whose slot is being written or holds the newest copy of a block that the
    /// back end has not; `until` if there is none. A position that this has passed is never looked at again.
    pub(crate) fn unsettled(&self, map: &Locations, from: u64, until: u64) -> u64 {
        let is_settled = |position: &u64| {
            let slot = self.slot_of(*position);
            let owner = self.owners[slot as usize];
            let is_dirty = || {
                let location = map.get(owner.into());
                location.state == State::Dirty && location.slot == u64::from(slot)
            };
            owner == FREE || owner & WRITING == 0 && !is_dirty()
        };
        (from.max(self.tail)..until).find(|position| !is_settled(position)).unwrap_or(until)
    }

    fn slot_of(&self, position: u64) -> u32 {
        (position % self.owners.len() as u64) as u32
    }

    /// The slot at a position with its block, if one owns it.
    pub(crate) fn at(&self, position: u64) -> (u32, Option<u32>) {
        let slot = self.slot_of(position);
        (slot, self.owner(slot))
    }

    /// The block that owns a slot.
    pub(crate) fn owner(&self, slot: u32) -> Option<u32> {
        let owner = self.owners[slot as usize];
        (owner != FREE).then_some(owner & !WRITING)
    }

    /// Takes slots for the blocks from `first` on, as many as follow each other up to `count`. There must be room.
    pub(crate) fn append(&mut self, first: u64, count: u32) -> Slots {
        let slot = self.slot_of(self.head);
        let count = count.min(self.slots() - slot);
        debug_assert!(self.used() + count <= self.slots(), "the log has room");
        for place in 0..count {
            self.owners[(slot + place) as usize] = (first as u32 + place) | WRITING;
        }
        self.head += u64::from(count);
        Slots { first: slot, count }
    }

    /// A write to the slot has ended.
    pub(crate) fn written(&mut self, slot: u32) {
        self.owners[slot as usize] &= !WRITING;
    }

    /// No block owns the slot any more.
    pub(crate) fn release(&mut self, slot: u32) {
        self.owners[slot as usize] = FREE;
    }

    /// Gives back what can be given back at the tail; a clean copy goes with its slot. Returns whether anything was.
    pub(crate) fn advance(&mut self, map: &mut Locations, is_free: impl Fn(u32) -> bool) -> bool {
        let before = self.tail;
        while self.tail < self.head {
            let (slot, owner) = self.at(self.tail);
            if !is_free(slot) {
                break;
            }
            if let Some(block) = owner {
                let location = map.get(block.into());
                let is_newest = location.slot == u64::from(slot);
                match location.state {
                    State::Dirty if is_newest => break,
                    State::Clean if is_newest => _ = map.evict(block.into(), slot.into()),
                    _ => {}
                }
                self.release(slot);
            }
            self.tail += 1;
        }
        self.tail > before
    }

    /// Memory that was taken in the beginning, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.owners.capacity() * size_of::<u32>()
    }

    /// All copies are lost.
    pub(crate) fn clear(&mut self) {
        self.owners.fill(FREE);
        self.tail = self.head;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_back_in_order_and_clean_copies_with_them() {
        let (mut log, mut map) = (FrontLog::new(4), Locations::new(10));
        let is_free = |_: u32| true;
        assert_eq!(log.append(7, 3), Slots { first: 0, count: 3 });
        assert_eq!(log.unsettled(&map, 0, 3), 0, "the first one is being written");
        (0..3).for_each(|place| _ = map.written_front(7 + place, place));
        (0..3).for_each(|slot| log.written(slot));
        assert!(!log.advance(&mut map, is_free), "the first one is dirty");
        // The second is flushed, the first is not: nothing moves.
        let began = map.begin_flush(8, 1).expect("it is dirty");
        assert!(map.end_flush(8, began, true) && !log.advance(&mut map, is_free));
        let began = map.begin_flush(7, 0).expect("it is dirty");
        assert!(map.end_flush(7, began, true));
        assert_eq!(log.unsettled(&map, 0, 3), 2, "the third is dirty");
        assert!(!log.advance(&mut map, |slot| slot != 0), "somebody reads it");
        assert_eq!(log.unsettled(&map, 0, 2), 2, "a read keeps no flush waiting");
        assert!(log.advance(&mut map, is_free));
        assert_eq!((log.used(), map.get(7).state, map.get(9).state), (1, State::Back, State::Dirty));
        // A run ends at the end of the ring.
        assert_eq!(log.append(0, 3), Slots { first: 3, count: 1 });
        assert_eq!(log.append(1, 2), Slots { first: 0, count: 2 });
    }
}
