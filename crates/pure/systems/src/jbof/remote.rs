//! Firmware on a lender's cores: the command is fetched from the shadow queue, the owner's map is walked by coherent
//! loads under its locks, and the wrapped operations go into the owner's message queue, whose agent carries them out.
//! Source: [P] sheet xbof §3.4, §3.7.

use super::route::command_spec;
use super::world::{Event, Jbof, Phase, Request};
use crate::xbof::{Message, MessageKind, MessageRing};
use flashyard_cxl::Transaction;
use flashyard_flash::Slot;
use flashyard_host::Attempt;
use flashyard_ssd::{Job, Operation, ReadGroup, Translation};
use flashyard_stats::Cause;
use flashyard_units::{SimSpan, SimTime};

/// Mapping entries in one cache line of 64 bytes.
const ENTRIES_PER_LINE: u32 = 16;

/// How long a lender waits before it looks again for room in a full ring. [A]
const RING_RETRY: SimSpan = SimSpan::from_us(1);

impl Jbof {
    /// A command has reached a lender's shadow queue.
    pub(super) fn arrive_at_lender(&mut self, now: SimTime, id: u32) {
        let Request { compute: lender, offer, drive, count, .. } = self.requests[id as usize];
        let serves = self.harvest.as_mut().and_then(|harvest| harvest.serves(lender, offer));
        if serves != Some(drive) {
            return self.refuse(now, id);
        }
        self.requests[id as usize].generation = self.ring(drive, lender).generation();
        // The owner's firmware, at the lender's clock.
        let firmware = self.drives[drive as usize].config().firmware;
        let mut job = self.drives[lender as usize].job_of(&firmware, id, self.requests[id as usize].count);
        // Its core waits for remote lines instead of its own DRAM.
        job.stall = self.remote_stall(now, lender, drive, count);
        job.stall += self.mapping_costs(now, id);
        self.lent[lender as usize] += job.busy;
        self.lending.lend(lender, drive, job.busy);
        self.journeys[id as usize].time.add(Cause::InterDrive, job.stall);
        self.begin_job(now, &job, job.stall);
        self.enqueue(now, lender, 2 + offer as usize, job);
    }

    /// A descriptor leads the lender nowhere: it completes the command with an error, and the driver sends it home.
    fn refuse(&mut self, now: SimTime, id: u32) {
        let drive = self.requests[id as usize].drive;
        self.leave_shadow(id);
        self.refused += 1;
        self.requests[id as usize].compute = drive;
        let again = self.config.host.complete_latency + self.config.submit_latency();
        self.journeys[id as usize].time.add(Cause::Host, again);
        self.runner.queue.push(now + again, Event::Arrive { request: id });
    }

    /// A command has left the shadow queue and the lender's core, or the driver has given it up.
    pub(super) fn leave_shadow(&mut self, id: u32) {
        let request = &mut self.requests[id as usize];
        let (lender, offer) = (request.compute, request.offer);
        if let (true, Some(harvest)) = (std::mem::take(&mut request.in_shadow), &mut self.harvest) {
            harvest.driver_mut().leave(lender, offer);
        }
    }

    /// Directory line, entry lines, lock taken and released. Source: [A] xbof §8.8.
    fn remote_stall(&mut self, now: SimTime, lender: u16, owner: u16, slots: u32) -> SimSpan {
        let lines = 1 + u64::from(slots.div_ceil(ENTRIES_PER_LINE));
        self.fabric.access(now, lender, owner, Transaction::Load, lines)
            + self.fabric.access(now, lender, owner, Transaction::Atomic, 2)
    }

    /// What sharing the map costs the firmware of a command, wherever it runs: waiting for the locks of its
    /// translation pages while lenders walk them too, and the redo record of a change to borrowed memory.
    #[inline]
    pub(super) fn mapping_costs(&mut self, now: SimTime, id: u32) -> SimSpan {
        let Request { drive, operation, first, count, stamp, .. } = self.requests[id as usize];
        let mut cost = SimSpan::ZERO;
        if operation == Operation::Flush {
            return cost;
        }
        let source = (operation == Operation::Remap).then_some(stamp as u32);
        let config = &self.config.harvest;
        let shared = self.harvest.as_ref().is_some_and(|harvest| !harvest.bindings(drive).is_empty());
        if shared {
            let per_page = flashyard_ftl::SLOTS_PER_TRANSLATION_PAGE;
            let locks = &mut self.locks[drive as usize];
            for first in [Some(first), source].into_iter().flatten() {
                for page in first / per_page..=(first + count - 1) / per_page {
                    cost += match operation {
                        Operation::Read => locks.read(now, page, config.read_lock),
                        _ => locks.write(now, page, config.write_lock),
                    };
                }
            }
        }
        let records = matches!(operation, Operation::Write | Operation::Remap);
        if records && self.drives[drive as usize].data.cache.offsite_capacity() > 0 {
            cost += config.log_commit;
        }
        cost
    }

    /// A lender's core has finished: it stores the wrapped operations into the owner's ring.
    pub(super) fn store_messages(&mut self, now: SimTime, id: u32) {
        let request = self.requests[id as usize];
        let Request { drive: owner, compute: lender, .. } = request;
        if self.resilience.is_some() && !self.stores(now, id) {
            return;
        }
        // One DMA operation, and at most one flash operation for each slot.
        if !self.ring(owner, lender).has_room(1 + request.count) {
            self.journeys[id as usize].time.add(Cause::InterDrive, RING_RETRY);
            self.runner.queue.push(now + RING_RETRY, Event::Store { request: id });
            return;
        }
        self.leave_shadow(id);
        let translation = match self.attempt(id) {
            Attempt::Live => self.drives[owner as usize].data.translate(&command_spec(id, &request)),
            Attempt::Draining | Attempt::Withdrawn | Attempt::Dead => None,
        };
        let offsite = translation.as_ref().map_or(0, Translation::offsite_pages);
        let entries = self.wrap(id, &request, translation);
        let walked = self.config.drive.offsite_access * u64::from(offsite);
        let visible = walked + self.fabric.access(now + walked, lender, owner, Transaction::Store, entries);
        self.journeys[id as usize].time.add(Cause::InterDrive, visible);
        self.runner.queue.push(now + visible, Event::Wrapped { owner, lender });
    }

    /// Stores a command's operations into the owner's ring; returns how many there are.
    fn wrap(&mut self, id: u32, request: &Request, translation: Option<Translation>) -> u64 {
        let (owner, lender, generation) = (request.drive, request.compute, request.generation);
        let ring = self.rings.get(owner, lender);
        let blank = Message {
            kind: MessageKind::Dma,
            lender: lender as u8,
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
                    Operation::Trim | Operation::Flush => MessageKind::Deallocate,
                    Operation::Remap => unreachable!("a remap is not sent to lenders"),
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
    pub(super) fn take_messages(&mut self, now: SimTime, owner: u16, lender: u16) {
        if self.waits_for_firmware(now, owner, Event::Wrapped { owner, lender }) {
            return;
        }
        if !self.drives[owner as usize].is_ready() {
            return;
        }
        let mut flash = std::mem::take(&mut self.messages);
        let ring = self.ring(owner, lender);
        if let Some(dma) = ring.take_command(&mut flash) {
            self.unwrap_command(now, owner, &dma, &flash);
        }
        self.messages = flash;
    }

    fn unwrap_command(&mut self, now: SimTime, owner: u16, dma: &Message, flash: &[Message]) {
        let id = dma.buffer;
        let request = &mut self.requests[id as usize];
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
        // One DMA operation and one flash operation for each flash page. [D] xbof §8.8
        let pages = request.count.div_ceil(self.drives[owner as usize].data.ftl.layout().slots_per_page);
        let busy = self.config.harvest.agent_cost * u64::from(1 + pages);
        let job = Job { tag: id, busy, stall: SimSpan::ZERO };
        self.begin_job(now, &job, SimSpan::ZERO);
        self.enqueue(now, owner, 0, job);
    }

    /// The owner's agent starts what a lender has wrapped.
    pub(super) fn execute_wrapped(&mut self, now: SimTime, id: u32) {
        let request = &self.requests[id as usize];
        let (owner, spec) = (request.drive, command_spec(id, request));
        match self.translations[id as usize].take() {
            Some(translation) => self.on_drive(now, owner, |drive, now, out| {
                drive.data.execute_translated(now, spec, translation, out);
            }),
            None => self.on_drive(now, owner, |drive, now, out| drive.execute(now, spec, out)),
        }
    }

    /// What a lender found in the owner's map for a command that was given up is not used.
    pub(super) fn drop_translation(&mut self, now: SimTime, id: u32) {
        let owner = self.requests[id as usize].drive;
        if let Some(translation) = self.translations.get_mut(id as usize).and_then(Option::take) {
            self.on_drive(now, owner, |drive, now, out| drive.data.drop_translation(now, translation, out));
        }
    }

    #[inline]
    fn ring(&mut self, owner: u16, lender: u16) -> &mut MessageRing {
        self.rings.get(owner, lender)
    }
}
