//! The way of a request, in its order: a stream issues it, it waits for writes of its blocks, the host sends it to one
//! drive or both, a core runs its firmware, the data-end carries it out, and the host hears of it.

use crate::config::MirrorError;
use crate::request::{CAUSES, Command, Copy, Event, Failure, OTHER_COPY, Purpose, Request};
use crate::side::{note_torn, note_written};
use crate::world::Mirror;
use flashyard_blk::{Operation, TraceRecord};
use flashyard_flash::SLOT_BYTES;
use flashyard_measure::Streamed;
use flashyard_served::Answer;
use flashyard_ssd::CommandSpec;
use flashyard_stats::{Cause, TimeSplit};
use flashyard_units::SimTime;

impl Request {
    /// A request of a range of blocks, of which no drive knows yet.
    pub(crate) fn new(now: SimTime, purpose: Purpose, operation: Operation, first: u32, count: u32) -> Self {
        Self {
            purpose,
            operation,
            first,
            count,
            asked_bytes: count.saturating_mul(SLOT_BYTES),
            issued: now,
            stamp: 0,
            copies: [Copy::Unsent; 2],
            sent: None,
            done: None,
            given_up: false,
            unread: [false; 2],
        }
    }

    /// Whether a stream issued it.
    pub(crate) fn is_of_stream(&self) -> bool {
        matches!(self.purpose, Purpose::Stream { .. })
    }
}

impl Mirror {
    /// Turns a record into a request of whole blocks and takes it in.
    #[inline]
    pub(crate) fn issue_record(&mut self, now: SimTime, number: u16, record: &TraceRecord) {
        let is_measuring = self.bench.is_measuring();
        let stream = &mut self.bench.streams[number as usize];
        stream.issued += 1;
        let record = &record.request;
        let capacity = self.config.capacity();
        let end = record.offset_bytes.saturating_add(u64::from(record.len_bytes).max(1));
        if end > capacity {
            self.fault = Some(MirrorError::BeyondVolume { stream: number, number: stream.issued, end, capacity });
            stream.ended = true;
            return;
        }
        stream.rise(is_measuring && stream.counts(now));
        let first = (record.offset_bytes / u64::from(SLOT_BYTES)) as u32;
        let last = ((end - 1) / u64::from(SLOT_BYTES)) as u32;
        let is_flush = record.operation == Operation::Flush;
        let (first, count) = if is_flush { (0, 0) } else { (first, last - first + 1) };
        let mut request = Request::new(now, Purpose::Stream { stream: number }, record.operation, first, count);
        request.asked_bytes = record.len_bytes;
        self.take_in(now, request);
    }

    /// Takes a client's request in. It waits if a write of one of its blocks is under way.
    #[inline]
    pub(crate) fn take_in(&mut self, now: SimTime, mut request: Request) {
        self.last_stamp += 1;
        request.stamp = self.last_stamp;
        self.bench.ledger.issued(now, request.operation, request.bytes());
        let id = self.requests.insert(request) as u32;
        if self.must_wait(&request) {
            self.locks.wait(id, request.first, request.count);
        } else {
            self.begin(now, id);
        }
    }

    /// Whether a write of one of the request's blocks is under way.
    #[inline]
    fn must_wait(&self, request: &Request) -> bool {
        #[cfg(test)]
        if self.bug == Some(crate::small::Bug::Overlaps) {
            return false;
        }
        self.locks.covers(request.first, request.count)
    }

    /// No write of the request's blocks is under way any more.
    #[inline]
    fn begin(&mut self, now: SimTime, id: u32) {
        let request = &self.requests[id as usize];
        if request.changes_data() {
            self.locks.acquire(id, request.first, request.count);
        }
        self.dispatch(now, id);
    }

    /// Sends the request to a drive that has its data, or to all that take writes. It is held if there is none.
    pub(crate) fn dispatch(&mut self, now: SimTime, id: u32) {
        let request = &self.requests[id as usize];
        if request.given_up {
            return self.end_without(now, id, Answer::Dropped);
        }
        let was_sent = request.sent.is_some();
        let sent = if request.operation == Operation::Read {
            let able = [0, 1].map(|drive| self.is_able(drive, request));
            let depths = [0, 1].map(|drive: usize| self.sides[drive].depth.level());
            let chosen = self.chooser.choose(depths, able);
            chosen.is_some_and(|drive| self.send(now, id, drive))
        } else {
            let takes = [0, 1].map(|drive: usize| self.sides[drive].takes_writes());
            let both = (0..2).filter(|&drive| takes[drive]);
            both.map(|drive| self.send(now, id, drive)).fold(false, |any, sent| any | sent)
        };
        self.outages.sent_again += u64::from(was_sent && sent);
        if !sent {
            self.hold(now, id);
        }
    }

    /// Whether `drive` can serve a read.
    #[inline]
    fn is_able(&self, drive: usize, request: &Request) -> bool {
        let side = &self.sides[drive];
        side.serves && !request.unread[drive] && !side.stale.overlaps(request.first, request.count)
    }

    /// Sends the request to `drive`; it arrives there later.
    #[inline]
    pub(crate) fn send(&mut self, now: SimTime, id: u32, drive: usize) -> bool {
        let request = &mut self.requests[id as usize];
        let first_sent = *request.sent.get_or_insert(now);
        request.copies[drive] = Copy::UnderWay;
        let mut time = TimeSplit::default();
        time.add(Cause::Host, first_sent.since(request.issued) + self.config.submit_latency);
        time.add(OTHER_COPY, now.since(first_sent));
        let command = Command { request: id, drive, sent: now, time, unqueued: now, failure: None };
        let command = self.commands.insert(command) as u32;
        self.sides[drive].depth.rise(now);
        let generation = self.drives[drive].generation() as u16;
        let arrival = Event::Arrive { drive: drive as u8, generation, command };
        self.runner.queue.push(now + self.config.submit_latency, arrival);
        true
    }

    /// A command reaches its drive: its firmware job waits for a core.
    #[inline]
    pub(crate) fn arrive(&mut self, now: SimTime, number: u32) {
        let command = &mut self.commands[number as usize];
        let (drive, slices) = (command.drive, self.requests[command.request as usize].count);
        let job = self.drives[drive].firmware_job(number, slices);
        command.time.add(Cause::Core, job.busy + job.stall);
        command.unqueued = now + job.busy + job.stall;
        self.on_drive(now, drive, |drive, now, out| drive.enqueue(now, 1, job, out));
    }

    /// A core has run the command's firmware: the data-end carries it out.
    #[inline]
    pub(crate) fn execute(&mut self, now: SimTime, number: u32) {
        let command = &mut self.commands[number as usize];
        command.time.add(Cause::Queue, now.since(command.unqueued));
        let Request { operation, first, count, stamp, .. } = self.requests[command.request as usize];
        let spec = CommandSpec { tag: number, operation, first, count, source: 0, stamp };
        let drive = command.drive;
        self.on_drive(now, drive, |drive, now, out| drive.execute(now, spec, out));
    }

    /// The drive completes the command at `at`; the host hears of it later.
    #[inline]
    pub(crate) fn completed(&mut self, number: u32, at: SimTime, time: &TimeSplit) {
        let command = &mut self.commands[number as usize];
        command.time.merge(&time.widened());
        command.time.add(Cause::Host, self.config.complete_latency);
        let drive = &mut self.drives[command.drive];
        if drive.config().ftl.stamps {
            let found = drive.data.take_stamps_read();
            if let Some(book) = &mut self.book {
                book.note_stamps(found);
            }
        }
        let generation = self.drives[command.drive].generation() as u16;
        let heard = Event::Heard { drive: command.drive as u8, generation, command: number };
        self.runner.queue.push(at + self.config.complete_latency, heard);
    }

    /// The host hears of a command's completion.
    #[inline]
    pub(crate) fn heard(&mut self, now: SimTime, number: u32) {
        let Some(command) = self.commands.remove(number as usize) else { return };
        let Command { request: id, drive, .. } = command;
        let side = &mut self.sides[drive];
        side.depth.fall(now);
        let request = &mut self.requests[id as usize];
        let kind = match request.operation {
            Operation::Read => 0,
            Operation::Write => 1,
            _ => 2,
        };
        side.commands[kind] += 1;
        if self.bench.is_measuring() {
            side.latency.record(now.since(command.sent));
        }
        match command.failure {
            None => {
                if let Some(book) = &mut self.book {
                    book.keep_stamps(number, request);
                }
                request.copies[drive] = Copy::Done;
                request.done.get_or_insert((command.time, now));
            }
            Some(Failure::WornOut) => {
                request.copies[drive] = Copy::Lost;
                side.worn_out = true;
            }
            Some(Failure::Unread { block }) => {
                request.copies[drive] = Copy::Lost;
                request.unread[drive] = true;
                let other = 1 - drive;
                // A copy for a drive that comes back is judged by its own end.
                let is_for_host = !matches!(request.purpose, Purpose::Resync { .. });
                let has_no_copy = self.sides[other].stale.contains(block) && is_for_host;
                if request.unread[other] || has_no_copy {
                    return self.end_without(now, id, Answer::Unread { block: block.into() });
                }
            }
        }
        self.copy_ended(now, id);
    }

    /// A copy of the request is done or lost: it has ended when none is under way and one is done.
    #[inline]
    pub(crate) fn copy_ended(&mut self, now: SimTime, id: u32) {
        let request = &self.requests[id as usize];
        if let Purpose::Resync { to } = request.purpose {
            return self.resync_ended(now, id, to.into());
        }
        if request.copies.contains(&Copy::UnderWay) {
            return;
        }
        match request.done {
            Some((time, done)) => self.finish(now, id, time, done),
            None => self.dispatch(now, id),
        }
    }

    /// The request has completed; `time` says where its time went up to `done`, when its first copy was.
    #[inline]
    fn finish(&mut self, now: SimTime, id: u32, mut time: TimeSplit<CAUSES>, done: SimTime) {
        let Some(request) = self.requests.remove(id as usize) else { return };
        time.add(OTHER_COPY, now.since(done));
        debug_assert_eq!(time.total(), now.since(request.issued), "the parts of {request:?}");
        if request.changes_data() {
            note_written(&mut self.sides, &request);
            #[cfg(test)]
            if self.bug == Some(crate::small::Bug::ForgetsStale) {
                self.sides.iter_mut().for_each(|side| side.stale.remove(request.first, request.count));
            }
            self.unlock(now, id);
        }
        match request.purpose {
            Purpose::Stream { stream } => {
                let pause_end = self.bench.finished(now, &request.completion(stream), &time);
                self.go_on(now, stream, pause_end);
            }
            Purpose::Asked { token } => {
                self.answer(now, token, &request, Answer::Done);
            }
            Purpose::Resync { .. } => {}
        }
    }

    /// A request from outside has ended. Its causes account for all of its time.
    fn answer(&mut self, now: SimTime, token: u32, request: &Request, answer: Answer) {
        let latency = now.since(request.issued);
        self.bench.ledger.finished(now, request.issued, latency);
        self.bench.totals[0].count(request.operation, request.bytes(), latency);
        if let Some(book) = &mut self.book {
            book.gather(&mut self.drives, &self.requests, &self.commands);
            book.answer(now, token, request.operation, latency, answer);
        }
    }

    /// The request ends without being carried out.
    #[cold]
    pub(crate) fn end_without(&mut self, now: SimTime, id: u32, answer: Answer) {
        let Some(request) = self.requests.remove(id as usize) else { return };
        match request.purpose {
            Purpose::Asked { token } => {
                self.answer(now, token, &request, answer);
            }
            Purpose::Stream { .. } | Purpose::Resync { .. } => {
                self.fault = Some(match answer {
                    Answer::Unread { block } => MirrorError::Unread { block: block as u32 },
                    _ => MirrorError::WornOut,
                });
            }
        }
        if request.changes_data() {
            note_torn(&mut self.sides, &request);
            self.unlock(now, id);
        }
    }

    /// The request's blocks are not being written any more: what waits for that goes on.
    #[inline]
    pub(crate) fn unlock(&mut self, now: SimTime, id: u32) {
        self.locks.release(id);
        while let Some(waiting) = self.locks.next() {
            self.begin(now, waiting);
        }
        if !self.held.is_empty() {
            self.send_held(now);
        }
        self.resync(now);
    }
}
