//! An endpoint: a controller, DRAM that caches pages of a medium, and the medium.
//!
//! Source of what annotations do: [P] sheet micro-cxl-ssd §3.5 to §3.7, with its assumptions marked there.

use crate::device_queue::DeviceQueue;
use crate::dram::{Dram, DramConfig};
use crate::error::MemoryError;
use crate::lent::{Found, Lent};
use crate::medium::{Medium, MediumConfig};
use crate::page_cache::{LookUp, PAGE_BYTES, PageCache};
use crate::path::{Device, Served};
use flashyard_cache::{Policy, PolicyKind};
use flashyard_cxl::{Buffering, CACHE_LINE_BYTES, DevLoad, MemoryAccess, Transaction};
use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;

mod staging;

/// Pages among which a walk is recognized by the one before. [A] as many as functions of a program
const RECENT: usize = 64;

/// Places for lines on their way: more are rare.
const COMING: usize = 512;

/// Parameters of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndpointConfig {
    /// Parsing of the request, and the look-up in the table of cached pages.
    pub controller: SimSpan,
    /// The internal DRAM.
    pub dram: DramConfig,
    /// Pages that it caches, at least 16.
    pub cache_pages: u32,
    /// Which page leaves.
    pub policy: PolicyKind,
    /// Whether loads that nothing is said of bring their page into the internal DRAM; it buffers stores alone otherwise.
    pub caches_loads: bool,
    /// Whether internal DRAM buffers stored lines and not their pages, where neither loads nor annotations have pages brought: a store
    /// fetches nothing, and a load asks the medium for its page even while lines of it are buffered, which are laid over what the medium
    /// gives. Source: \[X\] SimpleSSD, whose cache without read caching passes reads on and is not asked.
    pub buffers_lines: bool,
    /// Whether a load whose page is not kept reads its line alone from the medium, and not the page. Where internal DRAM buffers lines, a
    /// line that is staged to be pushed is brought alone as well: flash senses its page, unless the register of its die has it.
    pub reads_lines: bool,
    /// Whether the endpoint reads annotations; it does as without them otherwise.
    pub reads_annotations: bool,
    /// Whether annotations of buffering are among those that it reads. Internal DRAM does as without any where they are not, and
    /// determinism and persistence alone are heeded.
    pub reads_buffering: bool,
    /// One in so many pages is kept for data that is not announced as worth keeping, where annotations are read.
    pub unannounced_part: u32,
    /// Pages that are fetched after one that a bufferable load missed, where the page before it was among the last 64 pages: the
    /// load is part of a walk.
    pub prefetch_pages: u32,
    /// How long a deterministic request keeps internal work away.
    pub guard: SimSpan,
    /// The medium.
    pub medium: MediumConfig,
}

impl EndpointConfig {
    /// Whether internal DRAM is parted by annotations.
    fn parts_dram(&self) -> bool {
        self.reads_annotations && self.reads_buffering
    }

    /// Whether lines are staged for themselves, and not with their pages.
    fn stages_lines(&self) -> bool {
        self.reads_lines && self.buffers_lines && !self.caches_loads && !self.parts_dram()
    }

    /// Time that an idle medium takes for what is staged: a line, or its page.
    pub fn stage_time(&self) -> SimSpan {
        if self.stages_lines() { self.medium.line_read() } else { self.medium.page_read() }
    }

    /// Time that an idle medium takes for a load: nothing where internal DRAM keeps what loads bring, since most find their page there. \[A\]
    pub fn load_time(&self) -> SimSpan {
        match (self.caches_loads, self.reads_lines) {
            (true, _) => SimSpan::ZERO,
            (false, true) => self.medium.line_read(),
            (false, false) => self.medium.page_read(),
        }
    }
}

/// Counts of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounters {
    /// Requests.
    pub requests: u64,
    /// Requests whose page was in the internal DRAM, or on its way there.
    pub hits: u64,
    /// Pages fetched ahead, or lines where those are staged for themselves.
    pub prefetched: u64,
    /// Lines that were read to be pushed.
    pub pushed: u64,
    /// Changed pages that left the internal DRAM.
    pub written_back: u64,
    /// Stores that were complete once they outlived a loss of power.
    pub persisted: u64,
    /// Reads of the internal DRAM for metadata, by which pages are found.
    pub metadata_reads: u64,
    /// Time in the controller, and for that metadata.
    pub controller: SimSpan,
    /// Time in the internal DRAM, or in DRAM that is lent.
    pub dram: SimSpan,
    /// Time for which requests waited for the medium.
    pub medium: SimSpan,
}

impl EndpointCounters {
    /// The counts since those of `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            requests: self.requests - earlier.requests,
            hits: self.hits - earlier.hits,
            prefetched: self.prefetched - earlier.prefetched,
            pushed: self.pushed - earlier.pushed,
            written_back: self.written_back - earlier.written_back,
            persisted: self.persisted - earlier.persisted,
            metadata_reads: self.metadata_reads - earlier.metadata_reads,
            controller: self.controller - earlier.controller,
            dram: self.dram - earlier.dram,
            medium: self.medium - earlier.medium,
        }
    }
}

/// A page of the internal DRAM.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    ready: SimTime,
    dirty: bool,
    /// Whether lines that stores left, and those that were staged, are all that is there of it.
    is_partial: bool,
    /// Of such a page the lines that were staged, as bits.
    lines: u64,
}

impl Page {
    /// Whether a line of it answers loads.
    fn has(&self, address: u64) -> bool {
        !self.is_partial || self.lines & line_bit(address) != 0
    }
}

/// The bit of a line among those of its page.
const fn line_bit(address: u64) -> u64 {
    1 << (address % PAGE_BYTES / CACHE_LINE_BYTES)
}

/// The number of a line on the medium.
const fn line_of(page: u32, address: u64) -> u64 {
    page as u64 * (PAGE_BYTES / CACHE_LINE_BYTES) + address % PAGE_BYTES / CACHE_LINE_BYTES
}

/// The part of the internal DRAM that a page belongs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Data worth keeping; all data where annotations are not read.
    Kept,
    /// Data that nobody announced.
    Passing,
}

/// A type-3 device.
pub struct Endpoint {
    config: EndpointConfig,
    dram: Dram,
    kept: Box<dyn Policy + Send>,
    passing: Option<Box<dyn Policy + Send>>,
    look_up: Option<Box<dyn LookUp + Send>>,
    /// DRAM of other drives that pages may go to.
    lent: Option<Lent>,
    pages: Vec<Page>,
    /// Of each place: lines of its page that were staged and not pushed yet, for which it stays.
    staged: Vec<u32>,
    /// Lines that were staged for themselves and are on their way, with their arrivals; some have arrived.
    coming: VecDeque<(u64, SimTime)>,
    /// Pages that were asked for last, and the place of the next one.
    recent: [u32; RECENT],
    next_recent: usize,
    medium: Medium,
    /// Requests that wait for it.
    queue: DeviceQueue,
    counters: EndpointCounters,
}

impl Endpoint {
    /// An endpoint whose internal DRAM is empty.
    ///
    /// Errors: sizes outside their ranges, a medium that cannot be.
    pub fn new(config: EndpointConfig) -> Result<Self, MemoryError> {
        Self::with_pages(config, |pages, _| Ok(PageCache::of_policy(config.policy, pages)))
    }

    /// An endpoint whose pages worth keeping are found by a cache that `make` makes for so many pages, or for fewer, before a medium
    /// of so many.
    ///
    /// Errors: as [`Endpoint::new`], and those of `make`.
    pub fn with_pages(
        config: EndpointConfig,
        make: impl FnOnce(u32, u32) -> Result<PageCache, MemoryError>,
    ) -> Result<Self, MemoryError> {
        let pages = config.cache_pages;
        if !(16..1 << 26).contains(&pages) {
            let range = "16 to 67108863 pages of 4 KiB";
            return Err(MemoryError::Range { name: "cache_pages", value: pages.into(), range });
        }
        let part = config.unannounced_part;
        if config.parts_dram() && !(2..=16).contains(&part) {
            return Err(MemoryError::Range { name: "unannounced_part", value: part.into(), range: "2 to 16" });
        }
        let passing = if config.parts_dram() { pages / part } else { 0 };
        let medium = Medium::new(&config.medium)?;
        let PageCache { pages: kept, look_up } = make(pages - passing, medium.pages())?;
        if kept.capacity() > pages - passing {
            let value = kept.capacity().into();
            return Err(MemoryError::Range { name: "pages of a cache", value, range: "at most those of the device" });
        }
        Ok(Self {
            config,
            dram: Dram::new(config.dram)?,
            kept,
            look_up,
            lent: None,
            passing: (passing > 0).then(|| config.policy.cache(passing)),
            pages: vec![Page::default(); pages as usize],
            staged: vec![0; pages as usize],
            coming: VecDeque::with_capacity(COMING),
            recent: [u32::MAX; RECENT],
            next_recent: 0,
            medium,
            queue: DeviceQueue::default(),
            counters: EndpointCounters::default(),
        })
    }

    /// The endpoint with DRAM that other drives lend it.
    #[must_use]
    pub fn borrowing(self, lent: Lent) -> Self {
        Self { lent: Some(lent), ..self }
    }

    /// Counts so far.
    pub fn counters(&self) -> &EndpointCounters {
        &self.counters
    }

    /// DRAM that other drives lend it, where they do.
    pub fn lent(&self) -> Option<&Lent> {
        self.lent.as_ref()
    }

    /// The medium.
    pub fn medium(&self) -> &Medium {
        &self.medium
    }

    /// Pages that its internal DRAM caches.
    pub fn cache_pages(&self) -> u32 {
        self.config.cache_pages
    }

    /// Logical pages of the medium.
    pub fn page_count(&self) -> u32 {
        self.medium.pages()
    }

    /// Whether internal DRAM is a buffer of stored lines, and of pages that were staged.
    fn buffers_stores_alone(&self) -> bool {
        self.config.buffers_lines && !self.config.caches_loads && !self.config.parts_dram()
    }

    /// Whether internal DRAM keeps pages that were loaded, by functions that are annotated as bufferable or not.
    pub fn keeps_loads(&self, bufferable: bool) -> bool {
        self.config.caches_loads || self.config.parts_dram() && bufferable
    }

    /// Whether the part of the internal DRAM for data worth keeping is full: all of it where annotations are not read.
    pub fn is_full(&self) -> bool {
        self.kept.len() >= self.kept.capacity()
    }

    /// Figures begin: collection of garbage falls due, where the medium is one on which it is to be then.
    pub fn fall_due(&mut self, now: SimTime) {
        self.medium.fall_due(now);
    }

    /// Puts a page into the internal DRAM without time, as an earlier run would have left it, into the part for data worth keeping or for
    /// other data. `changed` says whether it differs from the medium.
    pub fn warm(&mut self, address: u64, changed: bool, bufferable: bool) {
        let page = self.page_of(address);
        if self.slot_of(page).is_none() {
            let part = if bufferable || self.passing.is_none() { Part::Kept } else { Part::Passing };
            let Some(policy) = self.policy(part) else { return };
            let inserted = policy.insert(page.into());
            let is_partial = changed && self.buffers_stores_alone();
            let place = self.place(part, inserted.slot);
            self.pages[place] = Page { dirty: changed, is_partial, ..Page::default() };
            if let (Some(lent), Some(evicted)) = (&mut self.lent, inserted.evicted) {
                lent.take(SimTime::ZERO, evicted.key as u32);
            }
        }
    }

    /// Writes all changed pages to the medium, as a Global Persistent Flush does; returns when the last is there.
    pub fn flush(&mut self, now: SimTime) -> SimTime {
        let mut ends = now;
        // Slots have no way back to their keys: the policies are emptied, and their pages come in again unchanged.
        for part in [Part::Kept, Part::Passing] {
            let mut left = Vec::new();
            while let Some(evicted) = self.policy(part).and_then(|policy| policy.evict()) {
                left.push(evicted);
            }
            // All are written before the first comes in again: it takes the slot of another one.
            let held: Vec<(u32, Page, u32)> = left.iter().map(|evicted| self.take_out(part, *evicted)).collect();
            for evicted in &left {
                let (place, page) = (self.place(part, evicted.slot), evicted.key as u32);
                if std::mem::take(&mut self.pages[place].dirty) {
                    if self.pages[place].is_partial {
                        self.complete(now, page);
                    }
                    let written = self.medium.write(now, page, true);
                    ends = ends.max(written.programmed);
                }
            }
            for (key, held, staged) in held {
                if let Some(policy) = self.policy(part) {
                    let inserted = policy.insert(key.into());
                    let place = self.place(part, inserted.slot);
                    // A page on its way has still to come.
                    self.pages[place] = Page { dirty: false, is_partial: held.is_partial && !held.dirty, ..held };
                    self.staged[place] = staged;
                }
            }
        }
        ends
    }

    /// Reads a page whose stored lines alone are there, so that it can be written: the medium is busy with it, and what is written waits
    /// in the medium's own buffer, from which programs come later than the read ends.
    fn complete(&mut self, now: SimTime, page: u32) {
        self.medium.read(now, page);
    }

    #[inline]
    fn page_of(&self, address: u64) -> u32 {
        let (page, pages) = (address / PAGE_BYTES, u64::from(self.medium.pages()));
        // Hints and predictions may lie behind the end; a division for each request is spared.
        (if page < pages { page } else { page % pages }) as u32
    }

    fn policy(&mut self, part: Part) -> Option<&mut Box<dyn Policy + Send>> {
        match part {
            Part::Kept => Some(&mut self.kept),
            Part::Passing => self.passing.as_mut(),
        }
    }

    /// Where the data of a part's slot lies.
    #[inline]
    fn place(&self, part: Part, slot: u32) -> usize {
        slot as usize + if part == Part::Passing { self.kept.capacity() as usize } else { 0 }
    }

    /// Notes the use of a page, and says where it lies.
    #[inline]
    fn touch(&mut self, page: u32) -> Option<usize> {
        if let Some(slot) = self.kept.touch(page.into()) {
            return Some(slot as usize);
        }
        let slot = self.passing.as_mut()?.touch(page.into())?;
        Some(self.place(Part::Passing, slot))
    }

    /// Notes a load of a line, and says where its page lies, if the line is there and not by a store alone.
    #[inline]
    fn touch_line(&mut self, page: u32, address: u64) -> Option<usize> {
        if self.buffers_stores_alone() {
            let slot = self.kept.slot_of(page.into())?;
            if !self.pages[slot as usize].has(address) {
                return None;
            }
        }
        self.touch(page)
    }

    /// When a line is there whose page lies in a place.
    #[inline]
    fn ready(&self, place: usize, page: u32, address: u64) -> SimTime {
        if !self.pages[place].is_partial {
            return self.pages[place].ready;
        }
        let line = line_of(page, address);
        let coming = self.coming.iter().rev().find(|coming| coming.0 == line);
        coming.map_or(SimTime::ZERO, |coming| coming.1)
    }

    fn slot_of(&self, page: u32) -> Option<u32> {
        let passing = || self.passing.as_ref().and_then(|policy| policy.slot_of(page.into()));
        self.kept.slot_of(page.into()).or_else(passing)
    }

    /// Takes a page in that is `ready` then; a changed page that leaves for it is written. Returns where it lies, and when
    /// there was a place.
    fn insert(&mut self, now: SimTime, page: u32, part: Part, ready: SimTime) -> (usize, SimTime) {
        let part = if self.passing.is_none() { Part::Kept } else { part };
        let Some(policy) = self.policy(part) else { return (0, now) };
        let inserted = policy.insert(page.into());
        let (place, left) = self.keep_staged(page, part, inserted);
        let mut accepted = now;
        if let Some((key, left)) = left {
            if left.dirty {
                self.counters.written_back += 1;
                if left.is_partial {
                    self.complete(now, key);
                }
                accepted = self.medium.write(now, key, false).accepted;
                self.queue.note(now, accepted);
            }
            if let Some(lent) = &mut self.lent {
                lent.take(now, key);
            }
        }
        self.pages[place] = Page { ready: ready.max(accepted), ..Page::default() };
        (place, accepted)
    }

    /// When a line of the internal DRAM that may be used from `begins` on is done. A line that is waited for holds no bank until
    /// then: banks serve in the order of arrival, and those behind it would wait for the medium as well.
    #[inline]
    fn in_dram(&mut self, at: SimTime, begins: SimTime, address: u64) -> SimTime {
        if begins > at { begins + self.config.dram.row_miss() } else { self.dram.line(at, address) }
    }

    /// Waits at the medium for what this request has not asked for are not its own.
    #[inline]
    fn forget_turn(&mut self) {
        self.medium.take_turn();
    }

    /// Reads the metadata by which a page is found; returns when it is known.
    #[inline]
    fn looked_up(&mut self, at: SimTime, page: u32) -> SimTime {
        let Self { look_up: Some(look_up), dram, counters, config, .. } = self else { return at };
        // Metadata lies behind the pages.
        let begins = u64::from(config.cache_pages) * PAGE_BYTES;
        let mut known = at;
        look_up.reads(page, &mut |granule| {
            counters.metadata_reads += 1;
            known = dram.line(known, begins + u64::from(granule) * CACHE_LINE_BYTES);
        });
        counters.controller += known.since(at);
        known
    }

    /// An access to a page that the internal DRAM does not have and a lender may: its line, or the page in the internal DRAM again.
    fn borrowed(&mut self, at: SimTime, page: u32, access: &MemoryAccess) -> Option<Served> {
        match self.lent.as_mut()?.find(at, page, access)? {
            Found::Line(done) => {
                self.counters.dram += done.since(at);
                Some(Served { at: done, from_medium: false })
            }
            Found::Page(ready) => {
                let (place, accepted) = self.insert(at, page, Part::Kept, ready);
                self.pages[place].dirty = access.operation != Transaction::Load;
                let done = ready.max(accepted);
                self.counters.dram += ready.since(at);
                self.counters.medium += done.since(ready);
                Some(Served { at: done, from_medium: accepted > at })
            }
        }
    }

    /// Reads a page from the lender that has it, which gives it back, or from the medium; returns when it is there.
    fn fetch(&mut self, at: SimTime, page: u32) -> SimTime {
        let whole = MemoryAccess::lines(Transaction::Store, u64::from(page) * PAGE_BYTES, 1);
        match self.lent.as_mut().and_then(|lent| lent.find(at, page, &whole)) {
            Some(Found::Page(ready) | Found::Line(ready)) => ready,
            None => self.medium.read(at, page),
        }
    }

    /// A load of a line of `page` that arrived at `at`.
    fn load(&mut self, at: SimTime, page: u32, access: &MemoryAccess) -> Served {
        let annotation = access.annotation;
        let bufferable = self.config.parts_dram() && annotation.buffering == Buffering::Bufferable;
        if let Some(place) = self.touch_line(page, access.address) {
            self.counters.hits += 1;
            let ready = self.ready(place, page, access.address);
            let begins = ready.max(at);
            let done = self.in_dram(at, begins, access.address);
            self.counters.medium += begins.since(at);
            self.counters.dram += done.since(begins);
            return Served { at: done, from_medium: ready > at };
        }
        if let Some(served) = self.borrowed(at, page, access) {
            return served;
        }
        let bypasses = self.config.reads_annotations && annotation.buffering == Buffering::NotBufferable;
        let is_kept = bufferable || self.config.caches_loads && !bypasses;
        let arrives = if is_kept || !self.config.reads_lines {
            self.medium.read(at, page)
        } else {
            self.medium.read_line(at, page, (access.address % PAGE_BYTES) as u32)
        };
        let mut done = arrives;
        if is_kept {
            let part = if bufferable { Part::Kept } else { Part::Passing };
            let (_, accepted) = self.insert(at, page, part, arrives);
            done = done.max(accepted);
        }
        if bufferable && page.checked_sub(1).is_some_and(|before| self.recent.contains(&before)) {
            for ahead in 1..=self.config.prefetch_pages {
                let next = (page + ahead) % self.medium.pages();
                if self.slot_of(next).is_none() {
                    self.counters.prefetched += 1;
                    let ready = self.fetch(at, next);
                    self.insert(at, next, Part::Kept, ready);
                }
            }
        }
        self.counters.medium += done.since(at);
        Served { at: done, from_medium: true }
    }

    /// A store of a line of `page` that arrived at `at`.
    fn store(&mut self, at: SimTime, page: u32, access: &MemoryAccess) -> Served {
        let persistent = self.config.reads_annotations && access.annotation.buffering == Buffering::NotBufferable;
        let held = self.touch(page);
        self.counters.hits += u64::from(held.is_some());
        if persistent {
            // The rest of the page is read where it is not there, and the line merged into it.
            let ready = match held {
                Some(place) => {
                    self.pages[place].dirty = false;
                    self.pages[place].ready.max(at)
                }
                None => self.fetch(at, page),
            };
            let done = self.medium.write(ready, page, true).programmed;
            self.counters.persisted += 1;
            self.counters.medium += done.since(at);
            return Served { at: done, from_medium: true };
        }
        if held.is_none()
            && let Some(served) = self.borrowed(at, page, access)
        {
            return served;
        }
        let (place, accepted) = match held {
            Some(place) => (place, at),
            None if self.buffers_stores_alone() => {
                let (place, accepted) = self.insert(at, page, Part::Kept, at);
                self.pages[place].is_partial = true;
                (place, accepted)
            }
            None => {
                let ready = self.medium.read(at, page);
                let bufferable = !self.config.parts_dram() || access.annotation.buffering == Buffering::Bufferable;
                self.insert(at, page, if bufferable { Part::Kept } else { Part::Passing }, ready)
            }
        };
        self.pages[place].dirty = true;
        let done = self.in_dram(at, accepted, access.address);
        self.counters.medium += accepted.since(at);
        self.counters.dram += done.since(accepted);
        Served { at: done, from_medium: accepted > at }
    }
}

impl Device for Endpoint {
    fn serve(&mut self, now: SimTime, access: &MemoryAccess) -> Served {
        self.counters.requests += 1;
        self.counters.controller += self.config.controller;
        let at = now + self.config.controller;
        self.forget_turn();
        if self.config.reads_annotations && access.annotation.deterministic {
            self.medium.guard(at + self.config.guard);
        }
        let page = self.page_of(access.address);
        let at = self.looked_up(at, page);
        let served = match access.operation {
            Transaction::Load => self.load(at, page, access),
            Transaction::Store | Transaction::Atomic => self.store(at, page, access),
        };
        let turn = at + self.medium.take_turn();
        self.queue.note(at, turn);
        let last = (self.next_recent + RECENT - 1) % RECENT;
        if self.config.parts_dram() && self.recent[last] != page {
            self.recent[self.next_recent] = page;
            self.next_recent = (self.next_recent + 1) % RECENT;
        }
        served
    }

    /// A hint brings the pages that it touches: the source has devices bring target pages. [P] sheet micro-cxl-gpu §3.2
    fn hint(&mut self, now: SimTime, address: u64, lines: u64) {
        let at = now + self.config.controller;
        let last = address + (lines.max(1) - 1) * CACHE_LINE_BYTES;
        for page in address / PAGE_BYTES..=last / PAGE_BYTES {
            self.forget_turn();
            self.bring(at, self.page_of(page * PAGE_BYTES));
            let turn = at + self.medium.take_turn();
            self.queue.note_hint(at, turn);
        }
    }

    fn persist(&mut self, now: SimTime) -> SimTime {
        self.flush(now + self.config.controller)
    }

    fn load_at(&self, now: SimTime) -> DevLoad {
        self.queue.load_at(now, self.medium.is_collecting(now))
    }
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
