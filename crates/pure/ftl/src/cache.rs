//! The mapping cache: which translation pages are in memory, least recently used first out.
//!
//! Two lists: pages in the drive's own memory, and pages in memory borrowed from peers (*offsite*).
//! A page is brought into the own memory; what falls out of it moves offsite while there is room, and out
//! of that to flash, dirty pages with a write. A hit offsite brings the page home: the hottest stay local.
//! Source: [P] xbof §3.6 (LRU, offsite metadata), [A] placement.

/// No page. Two bits stay free above it.
const NIL: u32 = u32::MAX >> 2;

/// Where a translation page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residence {
    /// On flash only.
    Flash,
    /// In the drive's own memory.
    Local,
    /// In borrowed memory.
    Offsite,
}

/// What falls out of the cache for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Translation page number.
    pub page: u32,
    /// Whether it must be written to flash.
    pub dirty: bool,
}

/// The outcome of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where the page was found; `Flash` is a miss.
    pub found: Residence,
    /// What had to leave.
    pub evicted: Option<Evicted>,
}

/// Accesses by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Found in the drive's own memory.
    pub local_hits: u64,
    /// Found in borrowed memory.
    pub offsite_hits: u64,
    /// Read from flash.
    pub misses: u64,
    /// Dirty pages written to flash.
    pub write_backs: u64,
}

impl CacheCounters {
    /// Misses for each access; zero before the first.
    pub fn miss_ratio(&self) -> f64 {
        let total = self.local_hits + self.offsite_hits + self.misses;
        if total == 0 { 0.0 } else { self.misses as f64 / total as f64 }
    }

    /// What was counted since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            local_hits: self.local_hits - before.local_hits,
            offsite_hits: self.offsite_hits - before.offsite_hits,
            misses: self.misses - before.misses,
            write_backs: self.write_backs - before.write_backs,
        }
    }
}

#[derive(Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
    len: u32,
    capacity: u32,
}

impl List {
    const fn empty(capacity: u32) -> Self {
        Self { head: NIL, tail: NIL, len: 0, capacity }
    }
}

/// Neighbours of a page in its list, with its state in the two bits above each: a page costs one cache line
/// fetch, and the fetches of random pages are what an access costs.
#[derive(Clone, Copy)]
struct Node {
    /// Page after this one; above it the list that it is in.
    next_and_place: u32,
    /// Page before this one; above it whether it is dirty.
    previous_and_dirty: u32,
}

impl Node {
    const ABSENT: Self = Self { next_and_place: NIL, previous_and_dirty: NIL };

    #[inline]
    fn next(self) -> u32 {
        self.next_and_place & NIL
    }

    #[inline]
    fn previous(self) -> u32 {
        self.previous_and_dirty & NIL
    }

    #[inline]
    fn place(self) -> u32 {
        self.next_and_place >> STATE_SHIFT
    }

    #[inline]
    fn is_dirty(self) -> bool {
        self.previous_and_dirty > NIL
    }

    #[inline]
    fn set_next(&mut self, page: u32) {
        self.next_and_place = self.next_and_place & !NIL | page;
    }

    #[inline]
    fn set_previous(&mut self, page: u32) {
        self.previous_and_dirty = self.previous_and_dirty & !NIL | page;
    }
}

const STATE_SHIFT: u32 = 30;
const LOCAL: u32 = 1;
const OFFSITE: u32 = 2;
const DIRTY: u32 = 1 << STATE_SHIFT;

/// Least-recently-used cache of translation pages with a local and an offsite part.
pub struct MappingCache {
    /// Empty when all pages fit the local memory: then nothing is tracked.
    nodes: Vec<Node>,
    lists: [List; 2],
    pages: u32,
    counters: CacheCounters,
}

impl MappingCache {
    /// A cache of `capacity` of the drive's `pages` translation pages, warm with the last ones, as a
    /// sequential fill leaves it. Panics beyond 2^30 - 1 pages: the map of 4 PB.
    pub fn new(pages: u32, capacity: u32) -> Self {
        assert!(pages < NIL, "{pages} translation pages, a cache names fewer than {NIL}");
        let capacity = capacity.max(1);
        let mut cache = Self {
            nodes: Vec::new(),
            lists: [List::empty(capacity), List::empty(0)],
            pages,
            counters: CacheCounters::default(),
        };
        if capacity < pages {
            cache.nodes = vec![Node::ABSENT; pages as usize];
            for page in pages - capacity..pages {
                cache.push_front(LOCAL, page);
            }
        }
        cache
    }

    /// Whether every translation page is always in the drive's own memory.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Translation pages of the drive.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Translation pages held in the drive's own memory at most.
    pub fn local_capacity(&self) -> u32 {
        self.lists[0].capacity
    }

    /// Translation pages held in borrowed memory at most.
    pub fn offsite_capacity(&self) -> u32 {
        self.lists[1].capacity
    }

    /// Translation pages in borrowed memory.
    pub fn offsite_len(&self) -> u32 {
        self.lists[1].len
    }

    /// Accesses by outcome.
    pub fn counters(&self) -> &CacheCounters {
        &self.counters
    }

    /// Touches `page`, bringing it into the drive's own memory; `write` makes it dirty.
    #[inline]
    pub fn access(&mut self, page: u32, write: bool) -> Access {
        if self.is_complete() {
            self.counters.local_hits += 1;
            return Access { found: Residence::Local, evicted: None };
        }
        let found = self.residence(page);
        match found {
            Residence::Local => {
                self.counters.local_hits += 1;
                self.unlink(LOCAL, page);
            }
            Residence::Offsite => {
                self.counters.offsite_hits += 1;
                self.unlink(OFFSITE, page);
            }
            Residence::Flash => self.counters.misses += 1,
        }
        self.push_front(LOCAL, page);
        if write {
            self.nodes[page as usize].previous_and_dirty |= DIRTY;
        }
        Access { found, evicted: self.settle() }
    }

    /// Forgets the counts, not the pages: after warming.
    pub fn reset_counters(&mut self) {
        self.counters = CacheCounters::default();
    }

    /// Where `page` is.
    #[inline]
    pub fn residence(&self, page: u32) -> Residence {
        if self.is_complete() {
            return Residence::Local;
        }
        match self.nodes[page as usize].place() {
            LOCAL => Residence::Local,
            OFFSITE => Residence::Offsite,
            _ => Residence::Flash,
        }
    }

    /// Sets how many pages the drive's own memory holds, when part of it is lent. Pages that no longer
    /// fit leave through `evicted`.
    pub fn set_local_capacity(&mut self, capacity: u32, mut evicted: impl FnMut(Evicted)) {
        if self.is_complete() {
            return;
        }
        self.lists[0].capacity = capacity.max(1);
        while self.lists[0].len > self.lists[0].capacity {
            if let Some(out) = self.settle() {
                evicted(out);
            }
        }
    }

    /// Sets how many pages borrowed memory holds. Pages that no longer fit leave through `evicted`.
    pub fn set_offsite_capacity(&mut self, capacity: u32, mut evicted: impl FnMut(Evicted)) {
        self.lists[1].capacity = capacity;
        while self.lists[1].len > capacity {
            if let Some(out) = self.drop_offsite_tail() {
                evicted(out);
            }
        }
    }

    /// Fills free borrowed memory with pages that are on flash only, lowest numbers first, without
    /// counting or timing: the state that a long warm-up reaches.
    pub fn warm_offsite(&mut self) {
        let mut page = 0;
        while self.lists[1].len < self.lists[1].capacity && page < self.pages && !self.is_complete() {
            if self.residence(page) == Residence::Flash {
                self.push_front(OFFSITE, page);
            }
            page += 1;
        }
    }

    /// Restores the capacities after an insertion: local overflow moves offsite, offsite overflow leaves.
    #[inline]
    fn settle(&mut self) -> Option<Evicted> {
        if self.lists[0].len <= self.lists[0].capacity {
            return None;
        }
        let page = self.lists[0].tail;
        self.unlink(LOCAL, page);
        if self.lists[1].capacity == 0 {
            return Some(self.forget(page));
        }
        self.push_front(OFFSITE, page);
        if self.lists[1].len > self.lists[1].capacity { self.drop_offsite_tail() } else { None }
    }

    fn drop_offsite_tail(&mut self) -> Option<Evicted> {
        let page = self.lists[1].tail;
        if page == NIL {
            return None;
        }
        self.unlink(OFFSITE, page);
        Some(self.forget(page))
    }

    fn forget(&mut self, page: u32) -> Evicted {
        let dirty = self.nodes[page as usize].is_dirty();
        self.nodes[page as usize] = Node::ABSENT;
        self.counters.write_backs += u64::from(dirty);
        Evicted { page, dirty }
    }

    #[inline]
    fn push_front(&mut self, place: u32, page: u32) {
        let list = &mut self.lists[place as usize - 1];
        let head = list.head;
        list.head = page;
        list.len += 1;
        if head == NIL {
            list.tail = page;
        } else {
            self.nodes[head as usize].set_previous(page);
        }
        let node = &mut self.nodes[page as usize];
        node.next_and_place = place << STATE_SHIFT | head;
        node.set_previous(NIL);
    }

    #[inline]
    fn unlink(&mut self, place: u32, page: u32) {
        let node = self.nodes[page as usize];
        let (next, previous) = (node.next(), node.previous());
        let list = &mut self.lists[place as usize - 1];
        list.len -= 1;
        if previous == NIL {
            list.head = next;
        } else {
            self.nodes[previous as usize].set_next(next);
        }
        if next == NIL {
            list.tail = previous;
        } else {
            self.nodes[next as usize].set_previous(previous);
        }
        // The caller links the page anew or forgets it: its place changes there.
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The obvious model: two vectors, most recent first.
    struct Model {
        local: Vec<(u32, bool)>,
        offsite: Vec<(u32, bool)>,
        capacities: [usize; 2],
    }

    impl Model {
        fn access(&mut self, page: u32, write: bool) -> Access {
            let take = |list: &mut Vec<(u32, bool)>| {
                list.iter().position(|entry| entry.0 == page).map(|index| list.remove(index).1)
            };
            let (found, dirty) = match (take(&mut self.local), take(&mut self.offsite)) {
                (Some(dirty), _) => (Residence::Local, dirty),
                (None, Some(dirty)) => (Residence::Offsite, dirty),
                (None, None) => (Residence::Flash, false),
            };
            self.local.insert(0, (page, dirty || write));
            let mut out = (self.local.len() > self.capacities[0]).then(|| self.local.pop().expect("it is too long"));
            if let Some(entry) = out.take() {
                self.offsite.insert(0, entry);
                if self.offsite.len() > self.capacities[1] {
                    out = self.offsite.pop();
                }
            }
            Access { found, evicted: out.map(|(page, dirty)| Evicted { page, dirty }) }
        }
    }

    proptest! {
        #[test]
        fn the_cache_agrees_with_two_plain_lists(
            capacity in 1_u32..10, offsite in 0_u32..10, accesses in prop::collection::vec((0_u32..30, any::<bool>()), 0..300),
        ) {
            let mut cache = MappingCache::new(30, capacity);
            cache.set_offsite_capacity(offsite, |_| {});
            let mut model = Model {
                local: (30 - capacity..30).rev().map(|page| (page, false)).collect(),
                offsite: Vec::new(),
                capacities: [capacity as usize, offsite as usize],
            };
            for (page, write) in accesses {
                prop_assert_eq!(cache.access(page, write), model.access(page, write));
            }
        }
    }

    #[test]
    fn uniform_accesses_miss_by_the_share_that_is_not_cached() {
        let mut cache = MappingCache::new(10_000, 3_333);
        let mut rng = flashyard_kernel::Rng::named(1, "test");
        for _ in 0..200_000 {
            cache.access(rng.below(10_000) as u32, false);
        }
        assert!((cache.counters().miss_ratio() - 0.6667).abs() < 0.005);
    }
}
