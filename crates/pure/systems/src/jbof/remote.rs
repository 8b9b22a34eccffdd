//! Firmware on a lender's cores: the command is fetched from the shadow queue, the owner's map is walked by coherent
//! loads under its locks, and the wrapped operations go into the owner's message queue, whose agent carries them out.
//! Source: [P] sheet xbof §3.4, §3.7.

use super::world::{Event, Jbof, Phase, Request};
use crate::xbof::{Message, MessageKind, MessageRing};
use flashyard_cxl::Transaction;
use flashyard_ssd::{Job, Operation};
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
        let mut job = self.drives[drive as usize].firmware_job(id, self.requests[id as usize].count);
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
        let Request { drive, operation, first, count, .. } = self.requests[id as usize];
        let mut cost = SimSpan::ZERO;
        if operation == Operation::Flush {
            return cost;
        }
        let config = &self.config.harvest;
        let shared = self.harvest.as_ref().is_some_and(|harvest| !harvest.bindings(drive).is_empty());
        if shared {
            let per_page = flashyard_ftl::SLOTS_PER_TRANSLATION_PAGE;
            let locks = &mut self.locks[drive as usize];
            for page in first / per_page..=(first + count - 1) / per_page {
                cost += match operation {
                    Operation::Read => locks.read(now, page, config.read_lock),
                    _ => locks.write(now, page, config.write_lock),
                };
            }
        }
        if operation == Operation::Write && self.drives[drive as usize].data.cache.offsite_capacity() > 0 {
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
        if !self.ring(owner, lender).has_room(2) {
            self.journeys[id as usize].time.add(Cause::InterDrive, RING_RETRY);
            self.runner.queue.push(now + RING_RETRY, Event::Store { request: id });
            return;
        }
        self.leave_shadow(id);
        let dma = Message {
            kind: MessageKind::Dma,
            lender: lender as u8,
            command: id,
            buffer: id,
            first: request.first,
            span: request.count,
            slots: request.count,
            completion: id,
        };
        let kind = match request.operation {
            Operation::Read => MessageKind::LookUpRead,
            Operation::Write => MessageKind::Program,
            Operation::Trim | Operation::Flush => MessageKind::Deallocate,
        };
        let ring = self.ring(owner, lender);
        ring.store(&dma, request.generation);
        ring.store(&Message { kind, ..dma }, request.generation);
        let visible = self.fabric.access(now, lender, owner, Transaction::Store, 2);
        self.journeys[id as usize].time.add(Cause::InterDrive, visible);
        self.runner.queue.push(now + visible, Event::Wrapped { owner, lender });
    }

    /// New entries are visible in a ring: the owner's agent takes those of one command.
    pub(super) fn take_messages(&mut self, now: SimTime, owner: u16, lender: u16) {
        if self.waits_for_firmware(now, owner, Event::Wrapped { owner, lender }) {
            return;
        }
        let ring = self.ring(owner, lender);
        let Some((dma, flash)) = ring.take_command() else { return };
        let id = dma.buffer;
        let operation = match flash.kind {
            MessageKind::FlashRead | MessageKind::LookUpRead => Operation::Read,
            MessageKind::Program => Operation::Write,
            MessageKind::Deallocate | MessageKind::Dma => Operation::Trim,
        };
        let request = &mut self.requests[id as usize];
        request.phase = Phase::Agent;
        (request.operation, request.first, request.count) = (operation, flash.first, flash.slots);
        // One DMA operation and one flash operation for each flash page. [D] xbof §8.8
        let pages = flash.slots.div_ceil(self.drives[owner as usize].data.ftl.layout().slots_per_page);
        let busy = self.config.harvest.agent_cost * u64::from(1 + pages);
        let job = Job { tag: id, busy, stall: SimSpan::ZERO };
        self.begin_job(now, &job, SimSpan::ZERO);
        self.enqueue(now, owner, 0, job);
    }

    #[inline]
    fn ring(&mut self, owner: u16, lender: u16) -> &mut MessageRing {
        &mut self.rings[owner as usize * self.drives.len() + lender as usize]
    }
}
