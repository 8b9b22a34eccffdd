//! Translation apart from execution: a lender's core walks the owner's map, and the owner's data-end carries out
//! the result later.
//!
//! In between the data may be moved. Its old place stays readable until the translation is used or dropped
//! ([`crate::grace`]); data in the write buffer stays there for it.

use crate::command::CommandSpec;
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::read_plan::{ReadGroup, ReadPlan};
use crate::supply::Power;
use flashyard_blk::Operation;
use flashyard_ftl::{Residence, SLOTS_PER_TRANSLATION_PAGE};
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;

/// Result of a walk through the map. It must be used or dropped through the drive that made it: superblocks wait for
/// it.
#[must_use = "superblocks wait for it: execute or drop it"]
pub struct Translation {
    plan: ReadPlan,
    offsite_pages: u32,
    epoch: u8,
    generation: u32,
}

impl Translation {
    /// Translation pages among those walked that are in borrowed memory: each costs the walker an access there.
    pub fn offsite_pages(&self) -> u32 {
        self.offsite_pages
    }

    /// The flash reads found, in order, as they cross the fabric in messages.
    pub fn reads(&self) -> &[ReadGroup] {
        &self.plan.groups
    }

    /// Slots that need no flash read: in the write buffer, or never written.
    pub fn at_hand(&self) -> u32 {
        self.plan.at_hand
    }

    /// Replaces the places found by those that arrived in messages.
    pub fn set_reads(&mut self, reads: impl Iterator<Item = ReadGroup>, at_hand: u32) {
        self.plan.groups.clear();
        self.plan.groups.extend(reads);
        self.plan.at_hand = at_hand;
    }
}

impl DataEnd {
    /// Translates a command without executing it. A read's translation says which flash pages to read; of other
    /// commands it says only that their translation pages are there.
    ///
    /// `None` when a translation page is not in memory, on its way from flash, or out of reach: the owner executes
    /// the command in the usual way, and reads the page. `None` too while the drive is not ready. Panics beyond the exported slots.
    pub fn translate(&mut self, spec: &CommandSpec) -> Option<Translation> {
        spec.check(self.ftl.config());
        if self.power != Power::Ready {
            return None;
        }
        let mut offsite_pages = 0;
        if spec.operation != Operation::Flush {
            let pages = spec.first / SLOTS_PER_TRANSLATION_PAGE..=spec.last_page();
            if self.cache.is_complete() {
                self.cache.access(*pages.start(), false);
            } else {
                for page in pages.clone() {
                    match self.cache.residence(page) {
                        Residence::Local => {}
                        Residence::Offsite => offsite_pages += 1,
                        Residence::Flash | Residence::Lost => return None,
                    }
                    if self.loads.is_loading(page) {
                        return None;
                    }
                }
                for page in pages {
                    self.cache.access(page, spec.operation != Operation::Read);
                }
            }
        }
        let mut plan = self.spare_plans.pop().unwrap_or_default();
        if spec.operation == Operation::Read {
            std::mem::swap(&mut self.plan, &mut plan);
            self.plan_read(spec);
            std::mem::swap(&mut self.plan, &mut plan);
        }
        Some(Translation { plan, offsite_pages, epoch: self.collection.grace.begin(), generation: self.generation })
    }

    /// Carries out a translated command. A translation from before a power cut is void: the command is looked up
    /// again.
    pub fn execute_translated(
        &mut self,
        now: SimTime,
        spec: CommandSpec,
        mut translation: Translation,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        if translation.generation != self.generation || spec.operation == Operation::Flush {
            self.drop_translation(now, translation, out);
            return self.execute(now, spec, out);
        }
        let index = self.admit(now, spec);
        if spec.operation == Operation::Read {
            std::mem::swap(&mut self.plan, &mut translation.plan);
            self.carry_out(now, index, out);
            std::mem::swap(&mut self.plan, &mut translation.plan);
        } else {
            self.start_data(now, index, out);
        }
        self.drop_translation(now, translation, out);
    }

    /// Gives up a translation without executing it.
    pub fn drop_translation(
        &mut self,
        now: SimTime,
        translation: Translation,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        if translation.generation == self.generation && self.collection.grace.end(translation.epoch) {
            self.collection.erase_released(now, &self.ftl, &mut self.flash, self.volatile.as_deref(), out);
        }
        self.spare_plans.push(translation.plan);
    }
}
