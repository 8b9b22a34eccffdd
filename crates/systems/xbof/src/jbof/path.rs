//! The way of a request, in its order: a stream issues it, the driver sends it, it arrives at its drive, a core runs
//! its firmware, the data-end carries it out, the drive completes it, and the application hears of it.
//!
//! The policies' parts of the way stand with them: a lender's in `lending/command.rs`, where the data of virtual drives
//! is in `spread.rs`.

use super::config::{JbofError, drive_of};
use super::enclosure::Event;
use super::lending::{MappingCosts, scan_of};
use super::policy::Policy;
use super::request::{Phase, Purpose, Request};
use super::world::Jbof;
use flashyard_blk::{Operation, TraceRecord};
use flashyard_fabric::Direction;
use flashyard_flash::SLOT_BYTES;
use flashyard_host::Attempt;
use flashyard_measure::Streamed;
use flashyard_stats::{Cause, TimeSplit};
use flashyard_units::{DriveId, SimTime};

impl Jbof {
    /// Turns a record into a request of whole slots and sends it off.
    #[inline]
    pub(super) fn issue_record(&mut self, now: SimTime, number: u16, record: &TraceRecord) {
        let is_measuring = self.bench.is_measuring();
        let stream = &mut self.bench.streams[number as usize];
        stream.issued += 1;
        let request = &record.request;
        let slots = self.enclosure.drives[drive_of(stream.volume).index()].config().ftl.logical_slots;
        let capacity = u64::from(slots) * u64::from(SLOT_BYTES);
        let end = request.offset_bytes.saturating_add(u64::from(request.len_bytes).max(1));
        if end > capacity {
            self.fault =
                Some(JbofError::BeyondDrive { drive: drive_of(stream.volume), number: stream.issued, end, capacity });
            stream.ended = true;
            return;
        }
        stream.rise(is_measuring && stream.counts(now));
        let first = (request.offset_bytes / u64::from(SLOT_BYTES)) as u32;
        let last = ((end - 1) / u64::from(SLOT_BYTES)) as u32;
        let request = Request {
            stream: number,
            drive: drive_of(stream.volume),
            phase: Phase::Firmware,
            operation: request.operation,
            purpose: Purpose::Foreground,
            first,
            count: if request.operation == Operation::Flush { 0 } else { last - first + 1 },
            source: 0,
            len_bytes: request.len_bytes,
            issued: now,
            stamp: self.enclosure.next_stamp(),
        };
        self.bench.ledger.issued(now, request.operation, request.bytes());
        if let Some(state) = &mut self.enclosure.resilience {
            state.witness_issue(now, &request);
        }
        if let Policy::Virtual(_) = self.policy {
            return self.issue_virtual(now, request);
        }
        let id = self.enclosure.new_request(now, request);
        self.send_or_hold(now, id);
    }

    /// Sends a virtual drive's request: writes to one of its drives, reads to wherever the data is, in parts where it
    /// is in several places.
    fn issue_virtual(&mut self, now: SimTime, mut request: Request) {
        let home = request.drive;
        let Policy::Virtual(spread) = &mut self.policy else { unreachable!("its drives are virtual") };
        if request.operation != Operation::Read {
            request.drive = spread.place(home, request.operation);
            return self.submit_spread(now, request, home);
        }
        let pieces = spread.pieces(home, request.first, request.count);
        if let [piece] = pieces.as_slice() {
            request.drive = piece.lender.unwrap_or(home);
            return self.submit_spread(now, request, home);
        }
        let parent = self.enclosure.new_request(now, request);
        if let Policy::Virtual(spread) = &mut self.policy {
            spread.begin(parent, home, pieces.len() as u32);
        }
        for piece in pieces {
            let drive = piece.lender.unwrap_or(home);
            let (purpose, first, count) = (Purpose::Part { parent }, piece.first, piece.count);
            self.submit_spread(now, Request { drive, purpose, first, count, ..request }, home);
        }
    }

    /// Sends a request of busy drive `home` to where it goes.
    pub(super) fn submit_spread(&mut self, now: SimTime, request: Request, home: DriveId) {
        let id = self.enclosure.new_request(now, request);
        if let Policy::Virtual(spread) = &mut self.policy {
            spread.begin(id, home, 0);
        }
        self.submit(now, id);
    }

    /// Sends a request to its drive, or keeps it until the drive is back.
    #[inline]
    pub(super) fn send_or_hold(&mut self, now: SimTime, id: u32) {
        if self.enclosure.resilience.is_some() && self.enclosure.holds(&mut self.policy, now, id) {
            return;
        }
        self.submit(now, id);
    }

    /// Takes the request through the host driver; it arrives at its drive later.
    #[inline]
    pub(super) fn submit(&mut self, now: SimTime, id: u32) {
        let enclosure = &mut self.enclosure;
        let request = &enclosure.requests[id as usize];
        let mut host = enclosure.host_time(request);
        let mut home = request.drive;
        match &mut self.policy {
            Policy::Direct | Policy::OpenChannel => {}
            Policy::Virtual(spread) => {
                host += spread.cost(id, request, &enclosure.config);
                home = spread.home(id);
            }
            Policy::Lending(lending) => lending.choose(now, id, request, &self.bench.streams),
        }
        if let Some(state) = &mut enclosure.resilience {
            state.driver.send(now, id);
        }
        let issued = if host.as_ps() == 0 { now } else { enclosure.host_of(home).run(now, host) };
        let arrives = issued + enclosure.submit_latency;
        enclosure.journeys[id as usize].time.add(Cause::Host, arrives.since(now));
        if arrives == now {
            self.arrive(now, id);
        } else {
            enclosure.runner.queue.push(arrives, Event::Arrive { request: id });
        }
    }

    /// A command reaches its drive: queue its firmware job, or go straight to the data-end when the
    /// host has done the firmware's work.
    #[inline]
    pub(super) fn arrive(&mut self, now: SimTime, id: u32) {
        if self.enclosure.resilience.is_some() && !self.arrives(now, id) {
            return;
        }
        let enclosure = &mut self.enclosure;
        let request = &enclosure.requests[id as usize];
        let drive = request.drive;
        let mut costs = MappingCosts::default();
        match &mut self.policy {
            Policy::Direct | Policy::Virtual(_) => {}
            Policy::OpenChannel => return self.execute(now, id),
            Policy::Lending(lending) => {
                if lending.compute(id, drive) != drive {
                    return lending.arrive(enclosure, now, id);
                }
                costs = lending.mapping_costs(enclosure, now, id);
                enclosure.journeys[id as usize].time.add(Cause::InterDrive, costs.waits);
            }
        }
        let mut job = enclosure.drives[drive.index()].firmware_job(id, enclosure.slices(request));
        job.busy += costs.held;
        job.stall += costs.waits;
        enclosure.begin_job(now, &job, costs.waits);
        enclosure.enqueue(now, drive, 1, job);
    }

    /// A core has finished a job of the request, or a scan of descriptors.
    #[inline]
    pub(super) fn firmware_done(&mut self, now: SimTime, id: u32) {
        if let Some(drive) = scan_of(id) {
            if let Policy::Lending(lending) = &mut self.policy {
                lending.scanned(&mut self.enclosure, now, drive);
            }
            return;
        }
        if let Policy::Lending(lending) = &mut self.policy {
            let request = &self.enclosure.requests[id as usize];
            if request.phase != Phase::Agent && lending.compute(id, request.drive) != request.drive {
                lending.ran(id, request.drive);
            }
        }
        if self.enclosure.resilience.is_some() && self.enclosure.ends_withdrawn(id) {
            return;
        }
        let journey = &mut self.enclosure.journeys[id as usize];
        let waited = now.since(journey.unqueued);
        journey.time.add(Cause::Queue, waited);
        if let Policy::Lending(lending) = &mut self.policy {
            let request = &self.enclosure.requests[id as usize];
            let (is_agent, compute) = (request.phase == Phase::Agent, lending.compute(id, request.drive));
            lending.note_wait(if is_agent { request.drive } else { compute }, waited);
            if !is_agent && compute != request.drive {
                return self.store_messages(now, id);
            }
        }
        self.execute(now, id);
    }

    /// A lender's core has finished, or there was no room for what it had to store.
    pub(super) fn store_messages(&mut self, now: SimTime, id: u32) {
        if self.enclosure.resilience.is_some() && !self.stores(now, id) {
            return;
        }
        let is_live = self.enclosure.attempt(id) == Attempt::Live;
        if let Policy::Lending(lending) = &mut self.policy {
            lending.store_messages(&mut self.enclosure, now, id, is_live);
        }
    }

    /// New entries are visible in a ring: the owner's agent takes those of one command.
    pub(super) fn take_messages(&mut self, now: SimTime, owner: DriveId, lender: DriveId) {
        if self.enclosure.waits_for_firmware(now, owner, Event::Wrapped { owner, lender }) {
            return;
        }
        if let Policy::Lending(lending) = &mut self.policy {
            lending.take_messages(&mut self.enclosure, now, owner, lender);
        }
    }

    /// Hands the command to the data-end that owns the flash.
    #[inline]
    fn execute(&mut self, now: SimTime, id: u32) {
        self.enclosure.requests[id as usize].phase = Phase::Data;
        if self.enclosure.resilience.as_ref().is_some_and(|state| state.driver.is_applied(id)) {
            if let Policy::Lending(lending) = &mut self.policy {
                lending.drop_translation(&mut self.enclosure, now, id);
            }
            return self.completed(now, id, now, &TimeSplit::default());
        }
        let request = &self.enclosure.requests[id as usize];
        let (drive, spec) = (request.drive, request.command(id));
        if let Policy::Lending(lending) = &mut self.policy {
            lending.track_misses(drive, &spec);
            if lending.compute(id, drive) != drive {
                return lending.execute(&mut self.enclosure, now, id);
            }
        }
        self.enclosure.on_drive(now, drive, |drive, now, out| drive.execute(now, spec, out));
    }

    /// The drive completes the request's command at `at`; the application hears of it later.
    #[inline]
    pub(super) fn completed(&mut self, now: SimTime, id: u32, mut at: SimTime, time: &TimeSplit) {
        if self.enclosure.resilience.is_some() && !self.notes_completion(now, id) {
            return;
        }
        let enclosure = &mut self.enclosure;
        let request = &mut enclosure.requests[id as usize];
        request.phase = Phase::Completed;
        let bytes = u64::from(request.count) * u64::from(SLOT_BYTES);
        match request.operation {
            Operation::Read => enclosure.fabric.stream(request.drive.get(), Direction::Out, bytes),
            Operation::Write => enclosure.fabric.stream(request.drive.get(), Direction::In, bytes),
            _ => {}
        }
        enclosure.journeys[id as usize].time.merge(time);
        if let Policy::Lending(lending) = &mut self.policy {
            at = lending.complete(enclosure, now, id, at);
        }
        let latency = enclosure.complete_latency;
        enclosure.journeys[id as usize].time.add(Cause::Host, latency);
        if enclosure.config.host.interface.coalesces() {
            let posted = at + enclosure.config.host.interface.completion_write;
            return enclosure.runner.queue.push(posted, Event::Posted { request: id });
        }
        let heard = at + latency;
        if heard == now {
            self.finish(now, id);
        } else {
            enclosure.runner.queue.push(heard, Event::Finished { request: id });
        }
    }

    /// The completion has reached its issuer.
    #[inline]
    pub(super) fn finish(&mut self, now: SimTime, id: u32) {
        if self.enclosure.resilience.is_some() && !self.is_heard(now, id) {
            return;
        }
        self.enclosure.release(id);
        let failure = self.enclosure.take_failure(id);
        if self.book.is_none()
            && let Some(failure) = failure
        {
            self.fault = Some(failure.error(self.enclosure.requests[id as usize].drive));
        }
        let request = &self.enclosure.requests[id as usize];
        match request.purpose {
            Purpose::Foreground => self.finish_foreground(now, id, id),
            Purpose::Part { parent } => self.finish_part(now, id, parent),
            Purpose::CopyRead => self.copy_write(now, id),
            Purpose::CopyWrite => self.copy_done(now, id),
            Purpose::Asked { token } | Purpose::AskedOnce { token } => self.answer(now, id, token, failure),
        }
    }

    /// Part `id` of a read has completed. All parts were sent at once: the last one to return is where the time went.
    fn finish_part(&mut self, now: SimTime, id: u32, parent: u32) {
        let Policy::Virtual(spread) = &mut self.policy else { unreachable!("only virtual drives split reads") };
        if let Some(state) = &mut self.enclosure.resilience {
            let requests = &self.enclosure.requests;
            let is_last = spread.parts(parent) == 1;
            state.join_stamps((id, &requests[id as usize]), (parent, &requests[parent as usize]), is_last);
        }
        if spread.part_done(parent) {
            self.enclosure.release(parent);
            self.finish_foreground(now, parent, id);
        }
    }

    /// The request has completed; where its time went stands in journey `last`, its own or its last part's.
    #[inline]
    fn finish_foreground(&mut self, now: SimTime, id: u32, last: u32) {
        let request = self.enclosure.requests[id as usize];
        if let Some(state) = &mut self.enclosure.resilience {
            state.witness_completion(now, &request, last);
        }
        let mut home = request.drive;
        if let Policy::Virtual(spread) = &mut self.policy {
            spread.note_written(id, &request);
            home = spread.home(id);
        }
        let time = &self.enclosure.journeys[last as usize].time;
        let pause_end = self.bench.finished(now, &request.completion(home), time);
        self.go_on(now, request.stream, pause_end);
        if self.bench.stopping {
            self.copy_back_when_idle(now);
        }
    }

    /// Starts copying redirected data back to its owners once no request is under way: a copy of what a write is about
    /// to replace would come after it.
    pub(super) fn copy_back_when_idle(&mut self, now: SimTime) {
        let Policy::Virtual(spread) = &mut self.policy else { return };
        if self.bench.in_flight() > 0 {
            return;
        }
        let Some(depth) = spread.plan() else { return };
        for owner in DriveId::first(self.enclosure.config.busy_drives as u16) {
            for _ in 0..depth {
                self.copy_read(now, owner);
            }
        }
    }

    /// Begins the next copy of busy drive `owner`; the measured window ends with the last copy of all.
    fn copy_read(&mut self, now: SimTime, owner: DriveId) {
        let Policy::Virtual(spread) = &mut self.policy else { return };
        let Some(piece) = spread.next_copy(owner) else {
            if !spread.is_copying() {
                self.close_window(now);
            }
            return;
        };
        let request = Request {
            stream: owner.get(),
            drive: piece.lender,
            phase: Phase::Firmware,
            operation: Operation::Read,
            purpose: Purpose::CopyRead,
            first: piece.first,
            count: piece.count,
            source: 0,
            len_bytes: 0,
            issued: now,
            stamp: 0,
        };
        self.bench.ledger.moved(Operation::Read, request.bytes());
        self.submit_spread(now, request, owner);
    }

    fn copy_write(&mut self, now: SimTime, id: u32) {
        let read = self.enclosure.requests[id as usize];
        let home = self.policy.home(id, &read);
        let mut stamp = read.stamp;
        if self.enclosure.resilience.is_some() {
            stamp = self.enclosure.next_stamp();
        }
        if let Some(state) = &mut self.enclosure.resilience {
            state.note_copy(stamp, &read, id);
        }
        let (purpose, operation, phase) = (Purpose::CopyWrite, Operation::Write, Phase::Firmware);
        self.bench.ledger.moved(operation, read.bytes());
        self.submit_spread(now, Request { drive: home, phase, purpose, operation, stamp, ..read }, home);
    }

    fn copy_done(&mut self, now: SimTime, id: u32) {
        let owner = self.policy.home(id, &self.enclosure.requests[id as usize]);
        if let Policy::Virtual(spread) = &mut self.policy {
            spread.copy_done();
        }
        self.copy_read(now, owner);
    }
}
