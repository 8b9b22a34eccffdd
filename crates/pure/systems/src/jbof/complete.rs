//! Completions, periodic monitoring and copy-back.

use super::world::{Event, Jbof, Phase, Purpose, Request, TickMark};
use crate::xbof::{DriveReading, MemoryLoan};
use flashyard_fabric::Direction;
use flashyard_flash::SLOT_BYTES;
use flashyard_ssd::{Operation, SegmentState};
use flashyard_stats::{Cause, TimeSplit};
use flashyard_units::{SimSpan, SimTime};

impl Jbof {
    /// The drive completes the request's command at `at`; the application hears of it later.
    #[inline]
    pub(super) fn completed(&mut self, now: SimTime, id: u32, at: SimTime, time: &TimeSplit) {
        let request = &self.requests[id as usize];
        let bytes = u64::from(request.count) * u64::from(SLOT_BYTES);
        match request.operation {
            Operation::Read => self.fabric.stream(request.drive, Direction::Out, bytes),
            Operation::Write => self.fabric.stream(request.drive, Direction::In, bytes),
            Operation::Trim | Operation::Flush => {}
        }
        let latency = self.config.host.complete_latency;
        let journey = &mut self.journeys[id as usize];
        journey.time.merge(time);
        journey.time.add(Cause::Host, latency);
        let heard = at + latency;
        if heard == now {
            self.finish(now, id);
        } else {
            self.runner.queue.push(heard, Event::Finished { request: id });
        }
    }

    /// The completion has reached whoever asked.
    #[inline]
    pub(super) fn finish(&mut self, now: SimTime, id: u32) {
        let request = self.requests[id as usize];
        self.free.push(id);
        match request.purpose {
            Purpose::Foreground => self.finish_foreground(now, &request, id),
            Purpose::Part { parent } => {
                let whole = &mut self.requests[parent as usize];
                whole.parts -= 1;
                if whole.parts == 0 {
                    let whole = *whole;
                    self.free.push(parent);
                    // All parts were sent at once: the last one to return is where the time went.
                    self.finish_foreground(now, &whole, id);
                }
            }
            Purpose::CopyRead => self.copy_write(now, &request),
            Purpose::CopyWrite => self.copy_done(now, request.home),
        }
    }

    /// The request has completed; where its time went stands in journey `id`, its own or its last part's.
    #[inline]
    fn finish_foreground(&mut self, now: SimTime, request: &Request, id: u32) {
        let time = &self.journeys[id as usize].time;
        self.ledger.finished(now, request, time.total());
        let bytes = u64::from(request.count) * u64::from(SLOT_BYTES);
        self.totals[request.home as usize].count(request.operation, bytes, now.since(request.issued));
        let stream = &mut self.streams[request.stream as usize];
        if let Some(pause) = stream.fall() {
            let over = stream.pause_end(now, pause);
            self.runner.queue.push(over, Event::Resume { stream: request.stream });
        }
        if let (Some(begun), None, true) = (&self.begun, &self.ended, stream.counts(now)) {
            stream.ios += 1;
            match request.operation {
                Operation::Read => stream.read_bytes += bytes,
                Operation::Write => stream.write_bytes += bytes,
                Operation::Trim | Operation::Flush => {}
            }
            let len_bytes = u64::from(request.len_bytes);
            stream.count(now, begun.at, request.operation, len_bytes, now.since(request.issued));
            stream.split.record(time);
        }
        self.fill(now, request.stream);
        if self.streams[request.stream as usize].ended {
            self.stream_done(now, request.stream);
        }
    }

    /// One period of monitoring: readings, managers' turns, and what they mean for mapping memory.
    pub(super) fn tick(&mut self, now: SimTime) {
        let period = self.config.harvest.period;
        let readings: Vec<DriveReading> =
            (0..self.drives.len()).map(|drive| self.read_monitors(drive, period)).collect();
        self.account_loans(now);
        let Some(harvest) = &mut self.harvest else { return };
        let before = harvest.loans().to_vec();
        harvest.tick(&readings, &self.curves);
        if before != harvest.loans() {
            self.apply_loans(now, &readings);
        }
        if self.ended.is_none() {
            self.runner.queue.push(now + period, Event::Tick);
        }
    }

    fn read_monitors(&mut self, number: usize, period: SimSpan) -> DriveReading {
        let drive = &self.drives[number];
        let nand = &drive.data.nand;
        let cache = drive.data.cache.counters();
        let mark = TickMark {
            busy: drive.compute.busy(),
            lent: self.lent[number],
            bus: nand.bus_busy(),
            die: nand.die_busy(),
            accesses: cache.local_hits + cache.offsite_hits + cache.misses,
            misses: cache.misses,
        };
        let before = std::mem::replace(&mut self.tick_marks[number], mark);
        let cores = period * u64::from(drive.compute.cores());
        let geometry = &nand.config().geometry;
        let share = |now: SimSpan, before: SimSpan, whole: SimSpan| (now - before).ratio_of(whole).min(1.0);
        let processor = share(mark.busy, before.busy, cores);
        let lent = share(mark.lent, before.lent, cores);
        let bus = share(mark.bus, before.bus, period * u64::from(geometry.channels));
        let die = share(mark.die, before.die, period * u64::from(geometry.dies()));
        DriveReading {
            processor,
            processor_own: (processor - lent).max(0.0),
            data_end: bus.max(die),
            accesses: mark.accesses - before.accesses,
            misses: mark.misses - before.misses,
            local_pages: self.local_pages(),
        }
    }

    /// Translation pages of a drive's own memory when nothing is lent.
    fn local_pages(&self) -> u32 {
        self.drives[0].config().mapping_cache_pages.min(self.config.map_pages())
    }

    fn apply_loans(&mut self, now: SimTime, readings: &[DriveReading]) {
        let Some(harvest) = &self.harvest else { return };
        let per_segment = harvest.config().pages_per_segment;
        let warm = harvest.config().warm_memory;
        let loans = harvest.loans().to_vec();
        let count = self.drives.len() as u16;
        for number in 0..count {
            let lent: u32 =
                loans.iter().filter(|loan| loan.lender == number).map(|loan| loan.segments * per_segment).sum();
            let local = readings[number as usize].local_pages - lent.min(readings[number as usize].local_pages);
            self.on_drive(now, number, |drive, now, out| {
                for lender in 0..count {
                    let ours = |loan: &&MemoryLoan| (loan.borrower, loan.lender) == (number, lender);
                    let wanted: u32 = loans.iter().filter(ours).map(|loan| loan.segments).sum();
                    let in_use = |state| matches!(state, SegmentState::Live | SegmentState::Flushing);
                    let held = drive.data.segments_of(lender).filter(|segment| in_use(segment.1)).count() as u32;
                    if wanted < held {
                        drive.data.return_segments(now, lender, out);
                    }
                    let missing = wanted - if wanted < held { 0 } else { held };
                    let addresses: Vec<u32> = (0..missing).collect();
                    drive.data.attach_segments(lender, &addresses);
                }
                drive.data.set_local_pages(now, local, out);
                if warm {
                    drive.data.cache.warm_offsite();
                }
            });
        }
    }

    /// Starts copying redirected data back to its owners.
    pub(super) fn start_copy_back(&mut self, now: SimTime) {
        let slots = self.config.vh.copy_back_slots;
        if let Some(copy_back) = &mut self.copy_back {
            copy_back.plan(slots);
        }
        for owner in 0..self.config.busy_drives as u16 {
            for _ in 0..self.config.vh.copy_back_depth {
                self.copy_read(now, owner);
            }
        }
        self.close_when_copied(now);
    }

    fn copy_read(&mut self, now: SimTime, owner: u16) {
        let Some(piece) = self.copy_back.as_mut().and_then(|copy_back| copy_back.next(owner)) else { return };
        let id = self.new_request(Request {
            stream: owner,
            home: owner,
            drive: piece.lender,
            compute: piece.lender,
            offer: 0,
            phase: Phase::Firmware,
            purpose: Purpose::CopyRead,
            operation: Operation::Read,
            first: piece.first,
            count: piece.count,
            len_bytes: 0,
            parts: 0,
            issued: now,
        });
        self.ledger.moved(Operation::Read, piece.count);
        self.submit(now, id);
    }

    fn copy_write(&mut self, now: SimTime, read: &Request) {
        let id = self.new_request(Request {
            drive: read.home,
            compute: read.home,
            phase: Phase::Firmware,
            purpose: Purpose::CopyWrite,
            operation: Operation::Write,
            ..*read
        });
        self.ledger.moved(Operation::Write, read.count);
        self.submit(now, id);
    }

    fn copy_done(&mut self, now: SimTime, owner: u16) {
        if let Some(copy_back) = &mut self.copy_back {
            copy_back.done();
        }
        self.copy_read(now, owner);
        self.close_when_copied(now);
    }

    fn close_when_copied(&mut self, now: SimTime) {
        if self.copy_back.as_ref().is_some_and(|copy_back| !copy_back.is_running()) {
            self.close_window(now);
        }
    }
}
