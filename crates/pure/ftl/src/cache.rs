//! The mapping cache: which translation pages are in memory, least recently used first out.
//!
//! One list over pages in the drive's own memory and pages in memory borrowed from peers (*offsite*). A new page
//! takes a free local place, else a free offsite frame, else the place of the page used longest ago, and keeps it
//! until it leaves: bringing a page home for a hit, and another one out for it, would cost two transfers of 4 KiB
//! where the hit costs one load.
//! Source: [P] xbof §3.6 (LRU over local and offsite memory), [A] placement.

use crate::frames::Frames;
use crate::recency::{NIL, Place, Recency};
use std::ops::Range;

/// Where a translation page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residence {
    /// On flash only.
    Flash,
    /// In the drive's own memory.
    Local,
    /// In borrowed memory.
    Offsite,
    /// In borrowed memory that cannot be used: on its way home, or lost.
    Lost,
}

/// A page that falls out of the cache for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Translation page number.
    pub page: u32,
    /// Whether it must be written to flash.
    pub dirty: bool,
    /// The offsite frame that it was in.
    pub frame: Option<u32>,
}

/// The outcome of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where the page was found; `Flash` is a miss.
    pub found: Residence,
    /// The page that had to leave.
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
        self.misses_per_access().unwrap_or(0.0)
    }

    /// Misses for each access, absent without one.
    pub fn misses_per_access(&self) -> Option<f64> {
        let total = self.local_hits + self.offsite_hits + self.misses;
        (total > 0).then(|| self.misses as f64 / total as f64)
    }

    /// Counts since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            local_hits: self.local_hits - before.local_hits,
            offsite_hits: self.offsite_hits - before.offsite_hits,
            misses: self.misses - before.misses,
            write_backs: self.write_backs - before.write_backs,
        }
    }
}

/// Least-recently-used cache of translation pages in local places and offsite frames.
pub struct MappingCache {
    /// Empty when all pages fit the local memory: then nothing is tracked.
    recency: Recency,
    frames: Frames,
    local_len: u32,
    local_capacity: u32,
    /// Pages in frames, those out of reach included.
    offsite_len: u32,
    pages: u32,
    counters: CacheCounters,
}

impl MappingCache {
    /// A cache of `capacity` of the drive's `pages` translation pages, warm with the last ones, as a
    /// sequential fill leaves it. Panics beyond 2^30 - 1 pages: the map of 4 PB.
    pub fn new(pages: u32, capacity: u32) -> Self {
        assert!(pages < NIL, "{pages} translation pages, a cache names fewer than {NIL}");
        let capacity = capacity.max(1);
        let tracked = if capacity < pages { pages } else { 0 };
        let mut cache = Self {
            recency: Recency::new(tracked),
            frames: Frames::default(),
            local_len: 0,
            local_capacity: capacity,
            offsite_len: 0,
            pages,
            counters: CacheCounters::default(),
        };
        if tracked > 0 {
            for page in pages - capacity..pages {
                cache.recency.insert(page, Place::Local);
            }
            cache.local_len = capacity;
        }
        cache
    }

    /// Whether every translation page is always in the drive's own memory.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.recency.is_empty()
    }

    /// Translation pages of the drive.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Translation pages held in the drive's own memory at most.
    pub fn local_capacity(&self) -> u32 {
        self.local_capacity
    }

    /// Share of the drive's own memory, of `all` translation pages, that holds pages or is lent to a peer.
    pub fn local_use(&self, all: u32) -> f64 {
        let held = if self.is_complete() { self.pages } else { self.local_len };
        let lent = all.saturating_sub(self.local_capacity);
        (f64::from(held) + f64::from(lent)).min(f64::from(all)) / f64::from(all.max(1))
    }

    /// Translation pages held in borrowed memory at most.
    pub fn offsite_capacity(&self) -> u32 {
        self.frames.borrowed()
    }

    /// Places in borrowed memory that no page has taken yet.
    pub fn offsite_free(&self) -> u32 {
        self.frames.free()
    }

    /// Translation pages in borrowed memory.
    pub fn offsite_len(&self) -> u32 {
        self.offsite_len
    }

    /// Accesses by outcome.
    pub fn counters(&self) -> &CacheCounters {
        &self.counters
    }

    /// Touches `page`, bringing it into memory; `write` makes it dirty. A page that is `Lost` stays as it is, and
    /// the access does not count: the caller repeats it once the page is found again.
    // Not in each caller: the code of a command must fit the instruction cache (docs/speed.md).
    #[inline(never)]
    pub fn access(&mut self, page: u32, write: bool) -> Access {
        if self.is_complete() {
            self.counters.local_hits += 1;
            return Access { found: Residence::Local, evicted: None };
        }
        let found = self.residence(page);
        let mut evicted = None;
        match found {
            Residence::Local => {
                self.counters.local_hits += 1;
                self.recency.touch(page);
            }
            Residence::Offsite => {
                self.counters.offsite_hits += 1;
                self.recency.touch(page);
            }
            Residence::Flash => {
                self.counters.misses += 1;
                evicted = self.bring_in(page);
            }
            Residence::Lost => return Access { found, evicted },
        }
        if write {
            self.recency.set_dirty(page, true);
        }
        Access { found, evicted }
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
        match self.recency.place(page) {
            Place::Local => Residence::Local,
            Place::Offsite => Residence::Offsite,
            Place::Absent => Residence::Flash,
            Place::Lost => Residence::Lost,
        }
    }

    /// The offsite frame of `page`, in reach or not.
    #[inline]
    pub fn frame_of(&self, page: u32) -> Option<u32> {
        self.frames.frame_of(page)
    }

    /// The page in offsite frame `frame`.
    #[inline]
    pub fn page_in(&self, frame: u32) -> Option<u32> {
        self.frames.page_in(frame)
    }

    /// Pages in the offsite frames `frames`, with whether they are dirty; by frame.
    pub fn pages_in(&self, frames: Range<u32>) -> impl Iterator<Item = (u32, bool)> + '_ {
        frames.filter_map(|frame| self.frames.page_in(frame)).map(|page| (page, self.recency.is_dirty(page)))
    }

    /// Marks a page in memory as changed since it was written home, or as written home. Without effect on a page
    /// that is on flash only.
    #[inline]
    pub fn set_dirty(&mut self, page: u32, dirty: bool) {
        if self.residence(page) != Residence::Flash && !self.is_complete() {
            self.recency.set_dirty(page, dirty);
        }
    }

    /// Sets how many pages the drive's own memory holds, when part of it is lent. Local pages that no longer fit
    /// leave through `evicted`, least recently used first.
    pub fn set_local_capacity(&mut self, capacity: u32, mut evicted: impl FnMut(Evicted)) {
        if self.is_complete() {
            return;
        }
        self.local_capacity = capacity.max(1);
        let mut next = self.recency.least();
        while self.local_len > self.local_capacity {
            let page = next.expect("a page in excess is listed");
            next = self.recency.used_after(page);
            if self.recency.place(page) == Place::Local {
                evicted(self.forget(page));
            }
        }
    }

    /// Adds empty offsite frames. Panics when one of them is there already.
    pub fn add_frames(&mut self, frames: Range<u32>) {
        self.frames.add(frames, self.pages);
    }

    /// Puts the offsite frames `frames` out of reach: their pages become `Lost`, and no other page takes a place
    /// there.
    pub fn lose_frames(&mut self, frames: Range<u32>) {
        self.frames.close(&frames);
        for page in frames.filter_map(|frame| self.frames.page_in(frame)) {
            if self.recency.place(page) == Place::Offsite {
                self.recency.lose(page);
            }
        }
    }

    /// Takes offsite frames away. Their pages leave through `evicted`, by frame.
    pub fn remove_frames(&mut self, frames: Range<u32>, mut evicted: impl FnMut(Evicted)) {
        self.frames.close(&frames);
        for frame in frames.clone() {
            if let Some(page) = self.frames.page_in(frame) {
                evicted(self.forget(page));
            }
        }
        self.frames.remove(frames);
    }

    /// Forgets a page of the drive's own memory whose reading from flash was cut short. Pages in frames stay: their
    /// memory is out of reach then.
    pub fn drop_unread(&mut self, page: u32) {
        if !self.is_complete() && self.recency.place(page) == Place::Local {
            self.local_len -= 1;
            self.recency.remove(page);
        }
    }

    /// Fills free borrowed memory with pages that are on flash only, lowest numbers first, without
    /// counting or timing: the state that a long warm-up reaches.
    pub fn warm_offsite(&mut self) {
        let mut page = 0;
        while self.frames.has_free() && page < self.pages && !self.is_complete() {
            if self.residence(page) == Residence::Flash {
                self.frames.fill_free(page);
                self.offsite_len += 1;
                self.recency.insert(page, Place::Offsite);
            }
            page += 1;
        }
    }

    /// Finds a place for an absent page; returns the page that had to leave for it.
    #[inline]
    fn bring_in(&mut self, page: u32) -> Option<Evicted> {
        if self.local_len < self.local_capacity {
            self.local_len += 1;
            self.recency.insert(page, Place::Local);
            return None;
        }
        if self.frames.fill_free(page).is_some() {
            self.offsite_len += 1;
            self.recency.insert(page, Place::Offsite);
            return None;
        }
        let least = self.recency.least().expect("a full cache holds a page");
        let evicted = self.forget(least);
        match evicted.frame {
            None => {
                self.local_len += 1;
                self.recency.insert(page, Place::Local);
            }
            Some(frame) => {
                self.frames.fill(frame, page);
                self.offsite_len += 1;
                self.recency.insert(page, Place::Offsite);
            }
        }
        Some(evicted)
    }

    fn forget(&mut self, page: u32) -> Evicted {
        let frame = if self.recency.place(page) == Place::Local {
            self.local_len -= 1;
            None
        } else {
            self.offsite_len -= 1;
            Some(self.frames.empty(page))
        };
        let dirty = self.recency.remove(page);
        self.counters.write_backs += u64::from(dirty);
        Evicted { page, dirty, frame }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGES: u32 = 30;
    const FRAMES_PER_SEGMENT: u32 = 3;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Entry {
        page: u32,
        dirty: bool,
        frame: Option<u32>,
        lost: bool,
    }

    #[derive(Clone, Debug)]
    enum Step {
        Access(u32, bool),
        SetDirty(u32, bool),
        Local(u32),
        Add(u32),
        Lose(u32),
        Remove(u32),
    }

    /// The obvious model: one vector, most recently used first; lost pages keep their entry.
    struct Model {
        entries: Vec<Entry>,
        local_capacity: usize,
        free: Vec<u32>,
        segments: [bool; 4],
    }

    fn frames(segment: u32) -> Range<u32> {
        segment * FRAMES_PER_SEGMENT..(segment + 1) * FRAMES_PER_SEGMENT
    }

    fn in_segment(entry: &Entry, segment: u32) -> bool {
        entry.frame.is_some_and(|frame| frames(segment).contains(&frame))
    }

    impl Model {
        fn locals(&self) -> usize {
            self.entries.iter().filter(|entry| entry.frame.is_none()).count()
        }

        fn leave(&mut self, place: usize) -> Evicted {
            let Entry { page, dirty, frame, .. } = self.entries.remove(place);
            Evicted { page, dirty, frame }
        }

        fn access(&mut self, page: u32, write: bool, frame_taken: Option<u32>) -> Access {
            if let Some(place) = self.entries.iter().position(|entry| entry.page == page) {
                if self.entries[place].lost {
                    return Access { found: Residence::Lost, evicted: None };
                }
                let entry = self.entries.remove(place);
                self.entries.insert(0, Entry { dirty: entry.dirty || write, ..entry });
                let found = if entry.frame.is_some() { Residence::Offsite } else { Residence::Local };
                return Access { found, evicted: None };
            }
            let mut evicted = None;
            let frame = if self.locals() < self.local_capacity {
                None
            } else if self.free.is_empty() {
                let last = self.entries.iter().rposition(|entry| !entry.lost).expect("a local page is listed");
                let out = self.leave(last);
                evicted = Some(out);
                out.frame
            } else {
                // Which of the free frames is the cache's choice.
                let place = self.free.iter().position(|&free| Some(free) == frame_taken).expect("it was free");
                Some(self.free.swap_remove(place))
            };
            self.entries.insert(0, Entry { page, dirty: write, frame, lost: false });
            Access { found: Residence::Flash, evicted }
        }

        fn shrink(&mut self, capacity: usize) -> Vec<Evicted> {
            self.local_capacity = capacity.max(1);
            let mut out = Vec::new();
            while self.locals() > self.local_capacity {
                let last = self.entries.iter().rposition(|entry| entry.frame.is_none()).expect("there is one");
                out.push(self.leave(last));
            }
            out
        }

        fn remove(&mut self, segment: u32) -> Vec<Evicted> {
            self.free.retain(|frame| !frames(segment).contains(frame));
            let mut out = Vec::new();
            while let Some(place) = self.entries.iter().position(|entry| in_segment(entry, segment)) {
                out.push(self.leave(place));
            }
            out.sort_by_key(|evicted| evicted.frame);
            out
        }
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            12 => (0..PAGES, any::<bool>()).prop_map(|(page, write)| Step::Access(page, write)),
            2 => (0..PAGES, any::<bool>()).prop_map(|(page, dirty)| Step::SetDirty(page, dirty)),
            1 => (0_u32..10).prop_map(Step::Local),
            2 => (0_u32..4).prop_map(Step::Add),
            1 => (0_u32..4).prop_map(Step::Lose),
            1 => (0_u32..4).prop_map(Step::Remove),
        ]
    }

    fn apply(cache: &mut MappingCache, model: &mut Model, step: &Step) -> Result<(), TestCaseError> {
        let mut gone = Vec::new();
        match *step {
            Step::Access(page, write) => {
                let access = cache.access(page, write);
                prop_assert_eq!(access, model.access(page, write, cache.frame_of(page)));
            }
            Step::SetDirty(page, dirty) => {
                cache.set_dirty(page, dirty);
                model.entries.iter_mut().filter(|entry| entry.page == page).for_each(|entry| entry.dirty = dirty);
            }
            Step::Local(capacity) => {
                cache.set_local_capacity(capacity, |evicted| gone.push(evicted));
                prop_assert_eq!(gone, model.shrink(capacity as usize));
            }
            Step::Add(segment) if !model.segments[segment as usize] => {
                model.segments[segment as usize] = true;
                cache.add_frames(frames(segment));
                model.free.extend(frames(segment));
            }
            Step::Lose(segment) if model.segments[segment as usize] => {
                cache.lose_frames(frames(segment));
                model.free.retain(|frame| !frames(segment).contains(frame));
                model.entries.iter_mut().filter(|entry| in_segment(entry, segment)).for_each(|entry| entry.lost = true);
            }
            Step::Remove(segment) if model.segments[segment as usize] => {
                model.segments[segment as usize] = false;
                cache.remove_frames(frames(segment), |evicted| gone.push(evicted));
                prop_assert_eq!(gone, model.remove(segment));
            }
            _ => {}
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn the_cache_agrees_with_one_plain_list(capacity in 1_u32..10, steps in prop::collection::vec(step(), 0..300)) {
            let mut cache = MappingCache::new(PAGES, capacity);
            let local = |page| Entry { page, dirty: false, frame: None, lost: false };
            let mut model = Model {
                entries: (PAGES - capacity..PAGES).rev().map(local).collect(),
                local_capacity: capacity as usize,
                free: Vec::new(),
                segments: [false; 4],
            };
            for step in &steps {
                apply(&mut cache, &mut model, step)?;
                let offsite = model.entries.iter().filter(|entry| entry.frame.is_some()).count();
                prop_assert_eq!(cache.offsite_len() as usize, offsite);
                let borrowed = model.segments.iter().filter(|&&segment| segment).count() as u32 * FRAMES_PER_SEGMENT;
                prop_assert_eq!((cache.offsite_capacity(), cache.offsite_free()), (borrowed, model.free.len() as u32));
                for entry in &model.entries {
                    prop_assert_eq!(cache.frame_of(entry.page), entry.frame);
                    if let Some(frame) = entry.frame {
                        prop_assert_eq!(cache.page_in(frame), Some(entry.page));
                        let listed = cache.pages_in(frame..frame + 1).next();
                        prop_assert_eq!(listed, Some((entry.page, entry.dirty)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_page_keeps_its_place_until_it_leaves() {
        let mut cache = MappingCache::new(10, 2);
        cache.add_frames(0..2);
        cache.access(0, true);
        assert_eq!((cache.residence(0), cache.frame_of(0)), (Residence::Offsite, Some(0)));
        for page in [1, 8, 9, 0] {
            cache.access(page, false);
        }
        assert_eq!((cache.residence(0), cache.residence(8)), (Residence::Offsite, Residence::Local));
        // Page 1 was used longest ago: page 2 takes its frame.
        let evicted = Evicted { page: 1, dirty: false, frame: Some(1) };
        assert_eq!(cache.access(2, false).evicted, Some(evicted));
        assert_eq!(cache.frame_of(2), Some(1));
    }

    #[test]
    fn accesses_are_counted_by_outcome_and_places_as_they_are_taken() {
        let mut cache = MappingCache::new(10, 3);
        cache.add_frames(0..2);
        let places = |cache: &MappingCache| (cache.offsite_capacity(), cache.offsite_free(), cache.offsite_len());
        assert_eq!((cache.pages(), cache.local_capacity(), places(&cache)), (10, 3, (2, 2, 0)));
        // The last three pages are there; the first one goes to a frame.
        [9, 8, 0, 0].into_iter().for_each(|page| _ = cache.access(page, false));
        let counted = CacheCounters { local_hits: 2, offsite_hits: 1, misses: 1, write_backs: 0 };
        assert_eq!((*cache.counters(), places(&cache)), (counted, (2, 1, 1)));
        cache.reset_counters();
        assert_eq!((*cache.counters(), places(&cache)), (CacheCounters::default(), (2, 1, 1)));
        let mut complete = MappingCache::new(4, 4);
        [0, 3].into_iter().for_each(|page| _ = complete.access(page, true));
        assert_eq!((complete.is_complete(), complete.counters().local_hits), (true, 2));
    }

    #[test]
    fn pages_that_leave_after_a_change_are_written_back() {
        let mut cache = MappingCache::new(10, 3);
        [9, 8].into_iter().for_each(|page| _ = cache.access(page, true));
        let mut after = |page| {
            cache.access(page, false);
            cache.counters().write_backs
        };
        assert_eq!([0, 1, 2, 3].map(&mut after), [0, 1, 2, 2], "the first to leave was not changed");
    }

    #[test]
    fn counts_since_a_moment_are_differences() {
        let before = CacheCounters { local_hits: 2, offsite_hits: 3, misses: 5, write_backs: 7 };
        let after = CacheCounters { local_hits: 12, offsite_hits: 33, misses: 55, write_backs: 77 };
        let since = CacheCounters { local_hits: 10, offsite_hits: 30, misses: 50, write_backs: 70 };
        assert_eq!((after.since(&before), after.miss_ratio()), (since, 0.55));
        assert_eq!((CacheCounters::default().miss_ratio(), CacheCounters::default().misses_per_access()), (0.0, None));
        assert_eq!(after.misses_per_access(), Some(0.55));
    }

    #[test]
    fn a_page_whose_reading_was_cut_short_leaves_its_place_and_pages_in_frames_stay() {
        let mut cache = MappingCache::new(10, 3);
        cache.access(0, false);
        cache.drop_unread(0);
        assert_eq!((cache.residence(0), cache.access(1, false).evicted), (Residence::Flash, None));
        cache.add_frames(0..1);
        cache.access(2, false);
        cache.drop_unread(2);
        assert_eq!((cache.residence(2), cache.offsite_len()), (Residence::Offsite, 1));
        let mut complete = MappingCache::new(4, 4);
        complete.drop_unread(1);
        assert_eq!(complete.residence(1), Residence::Local);
    }

    #[test]
    fn warm_frames_hold_the_lowest_pages_that_are_on_flash_only() {
        let warm = |frames: u32| {
            let mut cache = MappingCache::new(10, 3);
            cache.add_frames(0..frames);
            cache.access(1, false);
            cache.warm_offsite();
            let listed: Vec<u32> = (0..10).filter(|&page| cache.residence(page) == Residence::Offsite).collect();
            (listed, cache.offsite_len(), cache.offsite_free())
        };
        assert_eq!(warm(3), (vec![0, 1, 2], 3, 0));
        assert_eq!(warm(20), (vec![0, 1, 2, 3, 4, 5, 6], 7, 13), "the last three are local");
        let mut complete = MappingCache::new(4, 4);
        complete.add_frames(0..2);
        complete.warm_offsite();
        assert_eq!((complete.offsite_len(), complete.offsite_free()), (0, 2));
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
