//! Pages and lines that an endpoint brings into internal DRAM ahead of requests, and keeps there until they are pushed.

use super::{COMING, Endpoint, Page, Part, line_bit, line_of};
use crate::ahead::Stages;
use crate::page_cache::PAGE_BYTES;
use crate::path::Served;
use flashyard_cache::{Evicted, Inserted};
use flashyard_cxl::CACHE_LINE_BYTES;
use flashyard_units::SimTime;

impl Endpoint {
    /// Lets another page leave than one with staged lines, which comes in again, as long as there is one: returns where the page that has
    /// come in lies now, and the page that has left.
    pub(super) fn keep_staged(&mut self, page: u32, part: Part, inserted: Inserted) -> (usize, Option<(u32, Page)>) {
        let mut place = self.place(part, inserted.slot);
        let mut leaving = inserted.evicted.map(|evicted| self.take_out(part, evicted));
        for _ in 0..self.pages.len() {
            let Some((key, held, staged)) = leaving.filter(|leaving| leaving.2 > 0) else { break };
            let Some(again) = self.policy(part).map(|policy| policy.insert(key.into())) else { break };
            leaving = again.evicted.map(|evicted| self.take_out(part, evicted));
            let its = self.place(part, again.slot);
            (self.pages[its], self.staged[its]) = (held, staged);
            if leaving.is_some_and(|leaving| leaving.0 == page) {
                // All others are staged: one of them leaves, and is read again when it is pushed.
                let Some(last) = self.policy(part).map(|policy| policy.insert(page.into())) else { break };
                place = self.place(part, last.slot);
                leaving = last.evicted.map(|evicted| self.take_out(part, evicted));
                break;
            }
        }
        (place, leaving.map(|(key, held, _)| (key, held)))
    }

    /// A page that has left its place, with its number and its staged lines.
    pub(super) fn take_out(&mut self, part: Part, evicted: Evicted) -> (u32, Page, u32) {
        let place = self.place(part, evicted.slot);
        (evicted.key as u32, self.pages[place], std::mem::take(&mut self.staged[place]))
    }

    /// Brings the page of a line into internal DRAM; returns where it is, and when it is there.
    pub(super) fn bring(&mut self, now: SimTime, page: u32) -> (usize, SimTime) {
        if let Some(place) = self.touch(page) {
            if std::mem::take(&mut self.pages[place].is_partial) {
                self.counters.prefetched += 1;
                self.pages[place].ready = self.medium.read(now, page);
            }
            return (place, self.pages[place].ready.max(now));
        }
        self.counters.prefetched += 1;
        let ready = self.fetch(now, page);
        let (place, _) = self.insert(now, page, Part::Kept, ready);
        (place, self.pages[place].ready)
    }

    /// Brings a line into internal DRAM, with its page where lines are not staged for themselves; returns where it is, and when it is there.
    fn bring_line(&mut self, now: SimTime, address: u64) -> (usize, SimTime) {
        let page = self.page_of(address);
        if !self.config.stages_lines() || self.lent.is_some() {
            return self.bring(now, page);
        }
        let held = self.touch(page);
        if let Some(place) = held.filter(|&place| self.pages[place].has(address)) {
            return (place, self.ready(place, page, address).max(now));
        }
        self.counters.prefetched += 1;
        let mut ready = self.medium.read_part(now, page, (address % PAGE_BYTES) as u32, CACHE_LINE_BYTES as u32);
        let place = held.unwrap_or_else(|| {
            let (place, accepted) = self.insert(now, page, Part::Kept, now);
            ready = ready.max(accepted);
            self.pages[place].is_partial = true;
            place
        });
        self.pages[place].lines |= line_bit(address);
        if self.coming.len() >= COMING {
            self.coming.retain(|coming| coming.1 > now);
        }
        self.coming.push_back((line_of(page, address), ready));
        (place, ready)
    }

    /// Where a page lies that has staged lines.
    fn staged_place(&self, address: u64) -> Option<usize> {
        let page = self.page_of(address);
        let kept = self.kept.slot_of(page.into()).map(|slot| slot as usize);
        let passing = || {
            let slot = self.passing.as_ref().and_then(|policy| policy.slot_of(page.into()))?;
            Some(self.place(Part::Passing, slot))
        };
        kept.or_else(passing)
    }
}

impl Stages for Endpoint {
    fn stage(&mut self, now: SimTime, address: u64) -> SimTime {
        let (place, ready) = self.bring_line(now, address);
        self.staged[place] += 1;
        ready
    }

    /// Data that has left internal DRAM since it was staged is read again.
    fn take(&mut self, now: SimTime, address: u64) -> Served {
        self.release(address);
        self.counters.pushed += 1;
        let (_, ready) = self.bring_line(now, address);
        Served { at: self.in_dram(now, ready, address), from_medium: ready > now }
    }

    fn release(&mut self, address: u64) {
        if let Some(place) = self.staged_place(address) {
            self.staged[place] = self.staged[place].saturating_sub(1);
        }
    }
}
