//! Completions, periodic monitoring and copy-back.

use super::config::{Design, JbofError};
use super::world::{Event, Failure, Jbof, Phase, Purpose, Request};
use flashyard_cxl::Transaction;
use flashyard_fabric::Direction;
use flashyard_flash::SLOT_BYTES;
use flashyard_ssd::Operation;
use flashyard_stats::{Cause, TimeSplit};
use flashyard_units::{SimSpan, SimTime};

impl Jbof {
    /// The drive completes the request's command at `at`; the application hears of it later.
    #[inline]
    pub(super) fn completed(&mut self, now: SimTime, id: u32, mut at: SimTime, time: &TimeSplit) {
        if self.resilience.is_some() {
            self.collect_stamps(self.requests[id as usize].drive);
            let Request { operation, failure, .. } = self.requests[id as usize];
            let changes = matches!(operation, Operation::Write | Operation::Trim | Operation::Remap);
            if let Some(state) = &mut self.resilience {
                state.driver.note_applied(id, changes && failure.is_none());
            }
            if !self.is_heard(now, id) {
                return;
            }
        }
        self.requests[id as usize].phase = Phase::Completed;
        let request = &self.requests[id as usize];
        let bytes = u64::from(request.count) * u64::from(SLOT_BYTES);
        match request.operation {
            Operation::Read => self.fabric.stream(request.drive, Direction::Out, bytes),
            Operation::Write => self.fabric.stream(request.drive, Direction::In, bytes),
            Operation::Trim | Operation::Remap | Operation::Flush => {}
        }
        let latency = self.config.host.complete_latency;
        let (owner, lender) = (request.drive, request.compute);
        if lender != owner && self.harvest.is_some() {
            // The agent sets the completion flag in the lender's memory; the lender posts the completion.
            let flag = self.fabric.access(now, owner, lender, Transaction::Store, 1);
            self.journeys[id as usize].time.add(Cause::InterDrive, flag);
            at += flag;
        }
        let journey = &mut self.journeys[id as usize];
        journey.time.merge(time);
        if self.config.harvest.lender_p99_cap.is_some()
            && lender == owner
            && let Some(harvest) = &mut self.harvest
        {
            let host = journey.time.get(Cause::Host);
            let whole = at.since(self.requests[id as usize].issued);
            harvest.served_own(owner, SimSpan::from_ps(whole.as_ps().saturating_sub(host.as_ps())));
        }
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
        if self.resilience.is_some() && !self.is_heard(now, id) {
            return;
        }
        let request = self.requests[id as usize];
        self.release(id);
        if let Some(failure) = request.failure
            && self.book.is_none()
        {
            let drive = request.drive;
            self.fault = Some(match failure {
                Failure::WornOut => JbofError::WornOut { drive },
                Failure::Unread { slot } => JbofError::Unread { drive, slot },
            });
        }
        match request.purpose {
            Purpose::Foreground => self.finish_foreground(now, &request, id),
            Purpose::Part { parent } => {
                self.join_stamps(id, parent);
                let whole = &mut self.requests[parent as usize];
                whole.parts -= 1;
                if whole.parts == 0 {
                    let whole = *whole;
                    self.release(parent);
                    // All parts were sent at once: the last one to return is where the time went.
                    self.finish_foreground(now, &whole, id);
                }
            }
            Purpose::CopyRead => self.copy_write(now, &request, id),
            Purpose::CopyWrite => self.copy_done(now, request.home),
            Purpose::Asked { token } | Purpose::AskedOnce { token } => self.answer(now, &request, id, token),
        }
    }

    /// The request's number is free.
    #[inline]
    fn release(&mut self, id: u32) {
        if let Some(state) = &mut self.resilience {
            state.driver.end(id);
        }
        self.free.push(id);
    }

    /// The request has completed; where its time went stands in journey `id`, its own or its last part's.
    #[inline]
    fn finish_foreground(&mut self, now: SimTime, request: &Request, id: u32) {
        self.witness_completion(now, request, id);
        self.note_home(request);
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
                Operation::Trim | Operation::Remap | Operation::Flush => {}
            }
            let len_bytes = u64::from(request.len_bytes);
            stream.count(now, begun.at, request.operation, len_bytes, now.since(request.issued));
            stream.split.record(time);
        }
        self.fill(now, request.stream);
        if self.streams[request.stream as usize].ended {
            self.stream_done(now, request.stream);
        }
        if self.stopping {
            self.copy_back_when_idle(now);
        }
    }

    /// Reads of a virtual drive find what was written on the drive that took it, from the completion on: until then it
    /// is not there, and they are sent to where the data was.
    #[inline]
    fn note_home(&mut self, request: &Request) {
        if let Some(copy_back) = &mut self.copy_back
            && matches!(request.operation, Operation::Write | Operation::Trim)
        {
            let lender = (request.drive != request.home).then_some(request.drive);
            copy_back.map(request.home).write(request.first, request.count, lender);
        }
    }

    /// Starts copying redirected data back to its owners once no request is under way: a copy of what a write is about to
    /// replace would come after it.
    pub(super) fn copy_back_when_idle(&mut self, now: SimTime) {
        let copies = self.config.design == Design::Vh && self.streams.iter().all(|stream| stream.in_flight == 0);
        let slots = self.config.vh.copy_back_slots;
        let Some(copy_back) = self.copy_back.as_mut().filter(|copy_back| copies && !copy_back.is_planned()) else {
            return;
        };
        copy_back.plan(slots);
        for owner in 0..self.config.busy_drives as u16 {
            for _ in 0..self.config.vh.copy_back_depth {
                self.copy_read(now, owner);
            }
        }
        self.close_when_copied(now);
    }

    fn copy_read(&mut self, now: SimTime, owner: u16) {
        let Some(piece) = self.copy_back.as_mut().and_then(|copy_back| copy_back.next(owner)) else { return };
        let id = self.new_request(
            now,
            Request {
                stream: owner,
                home: owner,
                drive: piece.lender,
                compute: piece.lender,
                offer: 0,
                generation: 0,
                stamp: 0,
                failure: None,
                phase: Phase::Firmware,
                in_shadow: false,
                purpose: Purpose::CopyRead,
                operation: Operation::Read,
                first: piece.first,
                count: piece.count,
                len_bytes: 0,
                parts: 0,
                issued: now,
            },
        );
        self.ledger.moved(Operation::Read, piece.count);
        self.submit(now, id);
    }

    fn copy_write(&mut self, now: SimTime, read: &Request, read_id: u32) {
        let stamp = self.stamp_of_copy(read, read_id);
        let id = self.new_request(
            now,
            Request {
                drive: read.home,
                compute: read.home,
                phase: Phase::Firmware,
                purpose: Purpose::CopyWrite,
                operation: Operation::Write,
                stamp,
                ..*read
            },
        );
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
