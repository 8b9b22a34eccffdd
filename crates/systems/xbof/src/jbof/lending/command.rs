//! Firmware on a lender's cores: the command is fetched from the shadow queue, the owner's map is walked by coherent
//! loads under its locks, and the wrapped operations go into the owner's message queue, whose agent carries them out.
//! In the order of a command's way. Source: [P] sheet xbof §3.4, §3.7.

use super::super::enclosure::{Enclosure, Event};
use super::super::request::{Phase, Request};
use super::costs::{MappingCosts, entries};
use super::{Lending, Route, SHADOW_QUEUES};
use crate::xbof::{Message, MessageKind};
use flashyard_cxl::Transaction;
use flashyard_flash::Slot;
use flashyard_ftl::SLOTS_PER_TRANSLATION_PAGE;
use flashyard_ssd::{DataEnd, Job, Operation, ReadGroup, Translation};
use flashyard_stats::{Cause, TimeSplit};
use flashyard_units::{DriveId, SimSpan, SimTime};
use std::ops::Range;

/// Mapping entries in one cache line of 64 bytes.
const ENTRIES_PER_LINE: u32 = 16;

/// Time after which a lender looks again for room in a full ring. [A]
const RING_RETRY: SimSpan = SimSpan::from_us(1);

impl Lending {
    /// A command has reached a lender's shadow queue.
    pub(in super::super) fn arrive(&mut self, enclosure: &mut Enclosure, now: SimTime, id: u32) {
        let Route { compute: lender, offer, .. } = self.routes[id as usize];
        let Request { drive, count, .. } = enclosure.requests[id as usize];
        if self.harvest.serves(lender, offer) != Some(drive) {
            return self.refuse(enclosure, now, id);
        }
        self.routes[id as usize].generation = self.rings.get(drive, lender).generation();
        // The owner's firmware, at the lender's clock.
        let firmware = enclosure.drives[drive.index()].config().firmware;
        let mut job = enclosure.drives[lender.index()].job_of(&firmware, id, count);
        let costs = self.mapping_costs(enclosure, now, id);
        job.busy += costs.held;
        // Its core waits for remote lines instead of its own DRAM.
        job.stall = remote_stall(enclosure, now, lender, drive, count) + costs.waits;
        self.routes[id as usize].busy = job.busy;
        enclosure.journeys[id as usize].time.add(Cause::InterDrive, job.stall);
        enclosure.begin_job(now, &job, job.stall);
        enclosure.enqueue(now, lender, SHADOW_QUEUES + offer as usize, job);
    }

    /// A descriptor leads the lender nowhere: it completes the command with an error, and the driver sends it home.
    fn refuse(&mut self, enclosure: &mut Enclosure, now: SimTime, id: u32) {
        self.leave_shadow(id);
        self.routes[id as usize].compute = enclosure.requests[id as usize].drive;
        let again = enclosure.config.complete_latency() + enclosure.config.submit_latency();
        enclosure.journeys[id as usize].time.add(Cause::Host, again);
        enclosure.runner.queue.push(now + again, Event::Arrive { request: id });
    }

    /// Costs of sharing the map to the firmware of a command, wherever it runs: the locks of its translation pages while
    /// lenders walk the map too or keep pages of it, and the redo record of a change to borrowed memory.
    #[inline]
    pub(in super::super) fn mapping_costs(&mut self, enclosure: &Enclosure, now: SimTime, id: u32) -> MappingCosts {
        let request = &enclosure.requests[id as usize];
        let &Request { drive, operation, first, count, source, .. } = request;
        let mut costs = MappingCosts::default();
        if operation == Operation::Flush {
            return costs;
        }
        let source = (operation == Operation::Remap).then_some(source);
        let config = &enclosure.config.harvest;
        let borrows_memory = enclosure.drives[drive.index()].data.cache.offsite_capacity() > 0;
        if borrows_memory || !self.harvest.bindings(drive).is_empty() {
            let per_page = SLOTS_PER_TRANSLATION_PAGE;
            let locks = &mut self.locks[drive.index()];
            for first in [Some(first), source].into_iter().flatten() {
                for page in first / per_page..=(first + count - 1) / per_page {
                    if request.changes_data() {
                        costs.waits += locks.write(now, page, config.write_lock);
                        costs.held += config.write_lock;
                    } else {
                        costs.waits += locks.read(now, page, config.read_lock);
                        costs.held += config.read_lock;
                    }
                }
            }
        }
        if borrows_memory && request.changes_data() {
            let data = &enclosure.drives[drive.index()].data;
            let ranges = [Some(first), source].into_iter().flatten();
            let records: u64 = ranges.map(|first| records(data, operation, first, count)).sum();
            costs.waits += config.log_commit * records;
        }
        costs
    }

    /// Books what a lender's core has spent on a command of `drive` that it has run.
    #[inline]
    pub(in super::super) fn ran(&mut self, id: u32, drive: DriveId) {
        let Route { compute, busy, .. } = self.routes[id as usize];
        self.ledger.lend(compute, drive, busy);
    }

    /// A lender's core has finished: it stores the wrapped operations into the owner's ring. The map is not looked up
    /// for an attempt that the driver does not wait for.
    pub(in super::super) fn store_messages(&mut self, enclosure: &mut Enclosure, now: SimTime, id: u32, is_live: bool) {
        let request = enclosure.requests[id as usize];
        let (owner, lender) = (request.drive, self.routes[id as usize].compute);
        if !self.rings.get(owner, lender).has_room(entries(&request)) {
            enclosure.journeys[id as usize].time.add(Cause::InterDrive, RING_RETRY);
            enclosure.runner.queue.push(now + RING_RETRY, Event::Store { request: id });
            return;
        }
        self.leave_shadow(id);
        let translation =
            if is_live { enclosure.drives[owner.index()].data.translate(&request.command(id)) } else { None };
        let offsite = translation.as_ref().map_or(0, Translation::offsite_pages);
        let entries = self.wrap(id, &request, translation);
        let walked = enclosure.config.drive.offsite_access * u64::from(offsite);
        let visible =
            walked + enclosure.fabric.access(now + walked, lender.get(), owner.get(), Transaction::Store, entries);
        enclosure.journeys[id as usize].time.add(Cause::InterDrive, visible);
        enclosure.runner.queue.push(now + visible, Event::Wrapped { owner, lender });
    }

    /// Stores a command's operations into the owner's ring; returns how many there are.
    pub(super) fn wrap(&mut self, id: u32, request: &Request, translation: Option<Translation>) -> u64 {
        let Route { compute: lender, generation, .. } = self.routes[id as usize];
        let owner = request.drive;
        let ring = self.rings.get(owner, lender);
        let blank = Message {
            kind: MessageKind::Dma,
            lender,
            command: id,
            buffer: id,
            first: request.first,
            span: 1,
            slots: request.count,
            completion: id,
        };
        let translated = translation.is_some();
        let mut entries = 1;
        match (request.operation, &translation) {
            (Operation::Read, Some(translation)) => {
                let reads = translation.reads();
                entries += reads.len() as u64;
                ring.store(&Message { span: reads.len() as u32, slots: translation.at_hand(), ..blank }, generation);
                for read in reads {
                    let (first, span) = (read.first.get(), read.last.get() - read.first.get() + 1);
                    let kind = MessageKind::FlashRead;
                    ring.store(&Message { kind, first, span, slots: read.slots, ..blank }, generation);
                }
            }
            (operation, _) => {
                entries += 1;
                ring.store(&blank, generation);
                let kind = match operation {
                    Operation::Read => MessageKind::LookUpRead,
                    Operation::Write => MessageKind::Program,
                    Operation::Trim => MessageKind::Deallocate,
                    _ => unreachable!("{operation:?} is not sent to lenders"),
                };
                ring.store(&Message { kind, span: u32::from(translated), ..blank }, generation);
            }
        }
        if self.translations.len() <= id as usize {
            self.translations.resize_with(id as usize + 1, || None);
        }
        self.translations[id as usize] = translation;
        entries
    }

    /// New entries are visible in a ring: the owner's agent takes those of one command.
    pub(in super::super) fn take_messages(
        &mut self,
        enclosure: &mut Enclosure,
        now: SimTime,
        owner: DriveId,
        lender: DriveId,
    ) {
        if !enclosure.drives[owner.index()].is_ready() {
            return;
        }
        let mut flash = std::mem::take(&mut self.messages);
        if let Some(dma) = self.rings.get(owner, lender).take_command(&mut flash) {
            self.unwrap_command(enclosure, now, owner, &dma, &flash);
        }
        self.messages = flash;
    }

    /// Operations of redirected commands that the agent of drive `owner` was paid for so far.
    pub(in super::super) fn agent_operations(&self, owner: usize) -> u64 {
        self.unwrapped[owner]
    }

    fn unwrap_command(
        &mut self,
        enclosure: &mut Enclosure,
        now: SimTime,
        owner: DriveId,
        dma: &Message,
        flash: &[Message],
    ) {
        let id = dma.buffer;
        let request = &mut enclosure.requests[id as usize];
        request.phase = Phase::Agent;
        let translation = &mut self.translations[id as usize];
        match flash {
            [only] if only.kind != MessageKind::FlashRead => {
                request.operation = match only.kind {
                    MessageKind::Program => Operation::Write,
                    MessageKind::Deallocate => Operation::Trim,
                    _ => Operation::Read,
                };
                (request.first, request.count) = (only.first, only.slots);
            }
            _ => {
                let read = |entry: &Message| ReadGroup {
                    first: Slot::new(entry.first),
                    last: Slot::new(entry.first + entry.span - 1),
                    slots: entry.slots,
                };
                if let Some(translation) = translation {
                    translation.set_reads(flash.iter().map(read), dma.slots);
                }
            }
        }
        // One DMA operation, and the flash operations in the ring; of a command that the owner places or looks up itself, one for
        // each flash page. [D] xbof §8.8
        let operations = match flash {
            [only] if only.kind == MessageKind::Deallocate => 1,
            [only] if only.kind != MessageKind::FlashRead => {
                request.count.div_ceil(enclosure.drives[owner.index()].data.ftl.layout().slots_per_page)
            }
            _ => flash.len() as u32,
        };
        let operations = u64::from(1 + operations);
        self.unwrapped[owner.index()] += operations;
        let busy = enclosure.config.harvest.agent_cost * operations;
        let job = Job { tag: id, busy, stall: SimSpan::ZERO, slices: 1 };
        enclosure.begin_job(now, &job, SimSpan::ZERO);
        enclosure.enqueue(now, owner, 0, job);
    }

    /// The owner's agent starts what a lender has wrapped.
    pub(in super::super) fn execute(&mut self, enclosure: &mut Enclosure, now: SimTime, id: u32) {
        let request = &enclosure.requests[id as usize];
        let (owner, spec) = (request.drive, request.command(id));
        self.served_by_lenders[owner.index()] += 1;
        match self.translations[id as usize].take() {
            Some(translation) => enclosure.on_drive(now, owner, |drive, now, out| {
                drive.data.execute_translated(now, spec, translation, out);
            }),
            None => enclosure.on_drive(now, owner, |drive, now, out| drive.execute(now, spec, out)),
        }
    }

    /// The owner completes the command at `at`, where its time went to `journey`; returns when the driver can hear of
    /// it. The agent sets the completion flag in the lender's memory, and the lender posts the completion.
    pub(in super::super) fn complete(
        &mut self,
        enclosure: &mut Enclosure,
        now: SimTime,
        id: u32,
        at: SimTime,
    ) -> SimTime {
        let Request { drive: owner, issued, .. } = enclosure.requests[id as usize];
        let lender = self.routes[id as usize].compute;
        let time: &mut TimeSplit = &mut enclosure.journeys[id as usize].time;
        if lender != owner {
            let flag = enclosure.fabric.access(now, owner.get(), lender.get(), Transaction::Store, 1);
            time.add(Cause::InterDrive, flag);
            return at + flag;
        }
        if enclosure.config.harvest.lender_p99_cap.is_some() {
            let in_drive = at.since(issued).as_ps().saturating_sub(time.get(Cause::Host).as_ps());
            self.harvest.served_own(owner, SimSpan::from_ps(in_drive));
        }
        at
    }

    /// A command has left the shadow queue and the lender's core, or the driver has given it up.
    pub(in super::super) fn leave_shadow(&mut self, id: u32) {
        let Some(route) = self.routes.get_mut(id as usize) else { return };
        if std::mem::take(&mut route.in_shadow) {
            self.harvest.driver_mut().leave(route.compute, route.offer);
        }
    }

    /// Drops the translation that a lender found in the owner's map for a command that was given up.
    pub(in super::super) fn drop_translation(&mut self, enclosure: &mut Enclosure, now: SimTime, id: u32) {
        let owner = enclosure.requests[id as usize].drive;
        if let Some(translation) = self.translations.get_mut(id as usize).and_then(Option::take) {
            enclosure.on_drive(now, owner, |drive, now, out| drive.data.drop_translation(now, translation, out));
        }
    }
}

/// Entries in borrowed memory, as the map lies now, that a command on these slots changes: each is a redo record.
fn records(data: &DataEnd, operation: Operation, first: u32, count: u32) -> u64 {
    let slots_of = |page: u32| page * SLOTS_PER_TRANSLATION_PAGE..(page + 1) * SLOTS_PER_TRANSLATION_PAGE;
    let pages = first / SLOTS_PER_TRANSLATION_PAGE..=(first + count - 1) / SLOTS_PER_TRANSLATION_PAGE;
    let away = pages.filter(|&page| data.cache.frame_of(page).is_some()).map(slots_of);
    let slots = away.map(|slots| slots.start.max(first)..slots.end.min(first + count));
    // A trim of what is not mapped changes nothing.
    let changed = |slots: Range<u32>| match operation {
        Operation::Trim => slots.filter(|&slot| data.ftl.lookup(slot).is_some()).count() as u64,
        _ => slots.len() as u64,
    };
    slots.map(changed).sum()
}

/// Directory line, entry lines, lock taken and released. Source: [A] xbof §8.8.
fn remote_stall(enclosure: &mut Enclosure, now: SimTime, lender: DriveId, owner: DriveId, slots: u32) -> SimSpan {
    let lines = 1 + u64::from(slots.div_ceil(ENTRIES_PER_LINE));
    enclosure.fabric.access(now, lender.get(), owner.get(), Transaction::Load, lines)
        + enclosure.fabric.access(now, lender.get(), owner.get(), Transaction::Atomic, 2)
}
