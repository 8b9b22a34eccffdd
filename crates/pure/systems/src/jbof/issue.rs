//! Streams: what is asked of the busy drives, and when.

use super::config::{Design, JbofError, StopRule};
use super::stream::Stream;
use super::world::{Event, Jbof, Journey, Phase, Purpose, Request, Source};
use flashyard_blk::{Operation, TraceRecord};
use flashyard_flash::SLOT_BYTES;
use flashyard_ftl::SLOTS_PER_TRANSLATION_PAGE;
use flashyard_host::ProcessorPool;
use flashyard_stats::Cause;
use flashyard_units::SimTime;

impl Jbof {
    /// Brings the mapping caches of busy drives to the state that `accesses` requests of
    /// each source leave, without timing. Does nothing where the whole map is in memory.
    ///
    /// Errors: a source that fails.
    pub fn warm_mapping(&mut self, sources: Vec<Source>, accesses: u64) -> Result<(), JbofError> {
        for ((drive, model), mut source) in self.drives.iter_mut().zip(&self.models).zip(sources) {
            if drive.data.cache.is_complete() {
                continue;
            }
            let pages = model.map_pages();
            for _ in 0..accesses {
                let Some(record) = source.next_request()? else { break };
                let page = record.request.offset_bytes / u64::from(SLOT_BYTES * SLOTS_PER_TRANSLATION_PAGE);
                // The state of the drive before the run is clean: only the order of use matters.
                drive.data.cache.access((page as u32).min(pages - 1), false);
            }
            drive.data.cache.reset_counters();
        }
        Ok(())
    }

    /// Begins the next stage of a drive's streams, if there is one and everything before it is done.
    pub(super) fn start_stage(&mut self, now: SimTime, drive: u16) {
        let of_drive = || self.streams.iter().filter(|stream| stream.drive == drive);
        if self.stopping || of_drive().any(|stream| stream.released && !stream.is_done()) {
            return;
        }
        let waiting = of_drive().filter(|stream| !stream.released).map(|stream| stream.stage);
        let Some(stage) = waiting.min() else { return };
        for number in 0..self.streams.len() {
            let stream = &self.streams[number];
            // A stream that ends at once may have begun the rest of its stage already.
            if stream.drive == drive && stream.stage == stage && !stream.released {
                self.start_stream(now, number as u16);
            }
        }
    }

    /// Lets a stream issue what it may, now or when its start has come.
    fn start_stream(&mut self, now: SimTime, number: u16) {
        let stream = &mut self.streams[number as usize];
        stream.release(now);
        if stream.start > now {
            stream.held = true;
            self.runner.queue.push(stream.start, Event::Resume { stream: number });
        } else {
            self.fill(now, number);
        }
    }

    /// A stream's start has come, or its pause is over.
    pub(super) fn resume(&mut self, now: SimTime, stream: u16) {
        self.streams[stream as usize].held = false;
        self.fill(now, stream);
    }

    /// Issues a stream's next requests while it has room; one that keeps arrival times waits for the next arrival.
    #[inline]
    pub(super) fn fill(&mut self, now: SimTime, number: u16) {
        while self.streams[number as usize].has_room() {
            let Some(record) = self.next_record(now, number) else { break };
            let stream = &mut self.streams[number as usize];
            if stream.pacing.keeps_arrivals() {
                // A record that is out of order arrives at once: time does not run backwards.
                let arrival = (stream.start + record.arrival.since(SimTime::ZERO)).max(now);
                if stream.is_over(arrival) {
                    self.end_stream(now, number);
                    break;
                }
                stream.pending = Some(record);
                self.runner.queue.push(arrival, Event::Issue { stream: number });
                break;
            }
            self.issue(now, number, &record);
        }
    }

    /// Issues the request that has just arrived and waits for the one after.
    pub(super) fn issue_pending(&mut self, now: SimTime, stream: u16) {
        if let Some(record) = self.streams[stream as usize].pending.take()
            && !self.stopping
        {
            self.issue(now, stream, &record);
            self.fill(now, stream);
        }
    }

    fn end_stream(&mut self, now: SimTime, number: u16) {
        let stream = &mut self.streams[number as usize];
        stream.ended = true;
        if stream.issued > 0 && self.begun.is_some() && self.ended.is_none() {
            self.first_end.get_or_insert(now);
        }
        self.stream_done(now, number);
    }

    /// The stream's next record, unless it has ended, its share is issued, or the run is stopping.
    #[inline]
    fn next_record(&mut self, now: SimTime, number: u16) -> Option<TraceRecord> {
        let stream = &mut self.streams[number as usize];
        if self.stopping || stream.ended {
            return None;
        }
        let enough = stream.is_over(now) || matches!(self.plan.stop, StopRule::Requests(most) if stream.issued >= most);
        let next = if enough { Ok(None) } else { stream.source.next_request() };
        match next {
            Ok(Some(record)) => Some(record),
            Ok(None) => {
                self.end_stream(now, number);
                None
            }
            Err(error) => {
                self.fault = Some(error.into());
                stream.ended = true;
                None
            }
        }
    }

    /// Begins what waits for a stream that has ended. Ends the run once every stream is done; where streams end together,
    /// with the first one.
    pub(super) fn stream_done(&mut self, now: SimTime, number: u16) {
        if self.plan.ends_together && self.streams[number as usize].ends_run() {
            self.stop(now);
            return;
        }
        self.start_stage(now, self.streams[number as usize].drive);
        let drained = self.streams.iter().all(Stream::is_done);
        if drained {
            self.stop(now);
        }
    }

    /// Turns a record into a request of whole slots and sends it off.
    #[inline]
    fn issue(&mut self, now: SimTime, number: u16, record: &TraceRecord) {
        let stream = &mut self.streams[number as usize];
        stream.issued += 1;
        let request = &record.request;
        let capacity = u64::from(self.drives[stream.drive as usize].config().ftl.logical_slots) * u64::from(SLOT_BYTES);
        let end = request.offset_bytes.saturating_add(u64::from(request.len_bytes).max(1));
        if end > capacity {
            self.fault = Some(JbofError::BeyondDrive { drive: stream.drive, number: stream.issued, end, capacity });
            stream.ended = true;
            return;
        }
        stream.rise(self.begun.is_some() && self.ended.is_none() && stream.counts(now));
        let home = stream.drive;
        self.last_stamp += 1;
        let first = (request.offset_bytes / u64::from(SLOT_BYTES)) as u32;
        let last = ((end - 1) / u64::from(SLOT_BYTES)) as u32;
        let (operation, len_bytes) = (request.operation, request.len_bytes);
        let request = Request {
            stream: number,
            home,
            drive: home,
            compute: home,
            offer: 0,
            generation: 0,
            stamp: self.last_stamp,
            failure: None,
            phase: Phase::Firmware,
            in_shadow: false,
            purpose: Purpose::Foreground,
            operation,
            first,
            count: if operation == Operation::Flush { 0 } else { last - first + 1 },
            len_bytes,
            parts: 0,
            issued: now,
        };
        self.ledger.issued(now, &request);
        self.witness_issue(now, &request);
        if self.copy_back.is_some() {
            self.issue_virtual(now, request);
        } else {
            let id = self.new_request(now, request);
            self.send_or_hold(now, id);
        }
    }

    /// Gives the request a number.
    #[inline]
    pub(super) fn new_request(&mut self, now: SimTime, request: Request) -> u32 {
        let id = match self.free.pop() {
            Some(id) => {
                self.requests[id as usize] = request;
                self.journeys[id as usize] = Journey::default();
                id
            }
            None => {
                self.requests.push(request);
                self.journeys.push(Journey::default());
                (self.requests.len() - 1) as u32
            }
        };
        if let Some(state) = &mut self.resilience {
            state.driver.begin(now, id);
        }
        id
    }

    /// Takes the request through the host driver; it arrives at its drive later.
    #[inline]
    pub(super) fn submit(&mut self, now: SimTime, id: u32) {
        self.choose_compute(now, id);
        if let Some(state) = &mut self.resilience {
            state.driver.send(now, id);
        }
        let request = &self.requests[id as usize];
        let home = request.home;
        let host = self.config.host_time(&self.models[request.drive as usize].drive.firmware, request.count)
            + self.virtual_cost(request);
        let issued = if host.as_ps() == 0 { now } else { self.host_of(home).run(now, host) };
        let arrives = issued + self.config.submit_latency();
        self.journeys[id as usize].time.add(Cause::Host, arrives.since(now));
        if arrives == now {
            self.arrive(now, id);
        } else {
            self.runner.queue.push(arrives, Event::Arrive { request: id });
        }
    }

    /// The host in front of `drive`.
    #[inline]
    fn host_of(&mut self, drive: u16) -> &mut ProcessorPool {
        match &mut self.hosts[..] {
            [only] => only,
            hosts => &mut hosts[(u32::from(drive) / self.config.drives_per_host()) as usize],
        }
    }

    /// The driver's draw: to a lender, or home.
    #[inline]
    fn choose_compute(&mut self, now: SimTime, id: u32) {
        let Some(harvest) = &mut self.harvest else { return };
        let request = &mut self.requests[id as usize];
        // Messages between drives know neither flushes nor a second range.
        let stays = matches!(request.operation, Operation::Flush | Operation::Remap);
        if harvest.bindings(request.drive).is_empty() || stays {
            return;
        }
        if let Some((lender, offer)) = harvest.driver().route(request.drive, self.route_rng.unit()) {
            harvest.driver_mut().enter(lender, offer);
            request.compute = lender;
            request.offer = offer;
            request.in_shadow = true;
            self.redirected += 1;
            let (drive, stream) = (request.drive, request.stream);
            self.note_redirected(now, drive, stream);
        }
    }

    /// Whether the design spreads or copies, for figures.
    pub(super) fn is_virtual(&self) -> bool {
        matches!(self.config.design, Design::Vh | Design::VhIdeal)
    }
}
