//! The way of a request through the stages of its stack, down to storage and back.

use crate::config::ServerError;
use crate::network::span_of;
use crate::request::{Event, Gathered, Own, Request, Role};
use crate::stack::{Part, Stage, Way};
use crate::world::{OfDrive, Server};
use flashyard_blk::{Operation, TraceRecord};
use flashyard_flash::SLOT_BYTES;
use flashyard_latte::dispatch::FRONT;
use flashyard_measure::Streamed;
use flashyard_ssd::CommandSpec;
use flashyard_stats::{Cause, TimeSplit};
use flashyard_units::{SimSpan, SimTime};

impl Server {
    /// Turns a record into a request of whole blocks, which begins its way.
    #[inline]
    pub(crate) fn issue_record(&mut self, now: SimTime, number: u16, record: &TraceRecord) {
        let is_measuring = self.bench.is_measuring();
        let stream = &mut self.bench.streams[number as usize];
        stream.issued += 1;
        let record = &record.request;
        let capacity = self.capacity;
        let end = record.offset_bytes.saturating_add(u64::from(record.len_bytes).max(1));
        if end > capacity {
            self.fault = Some(ServerError::BeyondVolume { stream: number, number: stream.issued, end, capacity });
            stream.ended = true;
            return;
        }
        stream.rise(is_measuring && stream.counts(now));
        let first = (record.offset_bytes / u64::from(SLOT_BYTES)) as u32;
        let last = ((end - 1) / u64::from(SLOT_BYTES)) as u32;
        let is_flush = record.operation == Operation::Flush;
        let (first, count) = if is_flush { (0, 0) } else { (first, last - first + 1) };
        let request = Request {
            stream: number,
            drive: stream.volume.get(),
            operation: record.operation,
            first,
            count,
            asked_bytes: record.len_bytes,
            issued: now,
            stage: 0,
            unqueued: now,
            time: TimeSplit::default(),
            role: Role::Guest,
        };
        self.bench.ledger.issued(now, request.operation, request.bytes());
        let id = self.requests.insert(request) as u32;
        self.go_through(now, id);
    }

    /// Takes a request through its next stages, up to one that takes time; ends it behind the last one. Delays that follow each
    /// other are one wait.
    #[inline]
    pub(crate) fn go_through(&mut self, now: SimTime, id: u32) {
        let mut next = now;
        while next == now {
            let request = &mut self.requests[id as usize];
            let way = request.role.way(self.table);
            while let Some(stage) = way.get(usize::from(request.stage)) {
                let (time, part) = match *stage {
                    Stage::Delay { time, part } => (time, part),
                    // One of its own is a delay, too.
                    Stage::Interrupt { time } if !self.coalesces => (time, Part::Guest),
                    _ => break,
                };
                request.time.add(Own::Of(part), time);
                request.stage += 1;
                next += time;
            }
            if next > now {
                break;
            }
            let Some(stage) = way.get(usize::from(request.stage)) else {
                return match request.role {
                    Role::Guest => self.finish(now, id),
                    Role::Order { .. } => self.order_ended(now, id),
                };
            };
            request.stage += 1;
            next = match *stage {
                Stage::Turn { pool, time } => self.turn(now, id, pool, time),
                Stage::Work { pool, time, part } => self.work(now, id, pool, time, part),
                Stage::Carry { pool, bytes_per_us, way, part } => {
                    let bytes = match (way, request.operation) {
                        (Way::Down, Operation::Write) | (Way::Up, Operation::Read) => request.bytes(),
                        _ => continue,
                    };
                    self.work(now, id, pool, span_of(bytes, bytes_per_us), part)
                }
                Stage::Gather { pool, time, most, part } => self.gather(now, id, pool, (time, most), part),
                Stage::Services { pool, percent, part } => match self.services_time {
                    SimSpan::ZERO => continue,
                    time => self.work(now, id, pool, SimSpan::from_ps(time.as_ps() * percent / 100), part),
                },
                Stage::Storage => return self.ask_storage(now, id),
                Stage::Interrupt { time } => return self.wait_for_interrupt(now, id, time),
                Stage::Delay { .. } => unreachable!("delays are taken above"),
            };
        }
        self.runner.queue.push(next, Event::Next { request: id });
    }

    /// Occupies a server of `pool` for `time`; returns when that ends.
    #[inline]
    fn work(&mut self, now: SimTime, id: u32, pool: usize, time: SimSpan, part: Part) -> SimTime {
        let group = self.group(id, pool);
        let ends = self.pools[pool][group].run(now, time);
        let request = &mut self.requests[id as usize];
        request.time.add(Own::Of(part), time);
        request.time.add(Own::Wait, ends.since(now) - time);
        ends
    }

    /// The group of a pool that a request goes through.
    #[inline]
    fn group(&self, id: u32, pool: usize) -> usize {
        let (request, pool) = (&self.requests[id as usize], &self.table.pools[pool]);
        let place = match pool.for_each_leg {
            true => u32::from(request.drive) * self.legs + request.role.leg(),
            false => request.drive.into(),
        };
        (place / pool.drives) as usize
    }

    /// Joins the next access of `pool`, unless that brings `most` requests already; returns when it ends.
    #[inline]
    fn gather(&mut self, now: SimTime, id: u32, pool: usize, (time, most): (SimSpan, u32), part: Part) -> SimTime {
        let group = self.group(id, pool);
        let next = &mut self.gathered[pool][group];
        if next.begins > now && next.requests < most {
            next.requests += 1;
        } else {
            let ends = self.pools[pool][group].run(now, time);
            *next = Gathered { begins: now + (ends.since(now) - time), ends, requests: 1 };
        }
        let ends = next.ends;
        let request = &mut self.requests[id as usize];
        request.time.add(Own::Of(part), time);
        request.time.add(Own::Wait, ends.since(now) - time);
        ends
    }

    /// Occupies a server of `pool` for `time`; returns when that begins.
    #[inline]
    fn turn(&mut self, now: SimTime, id: u32, pool: usize, time: SimSpan) -> SimTime {
        let group = self.group(id, pool);
        let waited = self.pools[pool][group].run(now, time).since(now) - time;
        self.requests[id as usize].time.add(Own::Wait, waited);
        now + waited
    }

    /// The request reaches its storage: a firmware job of its drive, its network volume, or the service in front of both.
    #[inline]
    fn ask_storage(&mut self, now: SimTime, id: u32) {
        let request = &mut self.requests[id as usize];
        let number = request.drive;
        let is_networked = match request.role {
            Role::Guest => self.table.network.is_some(),
            Role::Order { leg, .. } => self.table.tiers.is_some() && leg != FRONT,
        };
        match request.role {
            Role::Guest if !self.services.is_empty() => self.ask_service(now, id),
            _ if !is_networked => {
                let number = self.parts[(u32::from(number) * self.legs + request.role.leg()) as usize].drive;
                let job = self.drives[usize::from(number)].firmware_job(id, request.count);
                request.time.add(Cause::Core, job.busy + job.stall);
                request.unqueued = now + job.busy + job.stall;
                self.on_drive(now, number, |drive, now, out| drive.enqueue(now, 1, job, out));
            }
            _ => {
                let is_read = request.operation == Operation::Read;
                let ends = self.networks[usize::from(number)].carry_out(now, is_read, request.bytes());
                request.time.add(Own::Of(Part::Network), ends.since(now));
                self.runner.queue.push(ends, Event::Next { request: id });
            }
        }
    }

    /// A core of the drive has run the request's firmware: the data-end carries it out.
    #[inline]
    pub(crate) fn execute(&mut self, now: SimTime, id: u32) {
        self.last_stamp += 1;
        let stamp = self.last_stamp;
        let request = &mut self.requests[id as usize];
        request.time.add(Cause::Queue, now.since(request.unqueued));
        let Request { operation, first, count, drive, role, .. } = *request;
        let OfDrive { drive, from } = self.parts[(u32::from(drive) * self.legs + role.leg()) as usize];
        let spec = CommandSpec { tag: id, operation, first: from + first, count, source: 0, stamp };
        self.on_drive(now, drive, |drive, now, out| drive.execute(now, spec, out));
    }

    /// The drive completes the request at `at`: the stages behind it follow.
    #[inline]
    pub(crate) fn completed(&mut self, id: u32, at: SimTime, time: &TimeSplit) {
        self.requests[id as usize].time.merge(&time.widened());
        self.runner.queue.push(at, Event::Next { request: id });
    }

    /// The application hears of its request's completion.
    #[inline]
    fn finish(&mut self, now: SimTime, id: u32) {
        let request = &self.requests[id as usize];
        debug_assert_eq!(request.time.total(), now.since(request.issued), "the parts of {request:?}");
        let stream = request.stream;
        let pause_end = self.bench.finished(now, &request.completion(), &request.time);
        self.requests.remove(id as usize);
        self.go_on(now, stream, pause_end);
    }

    /// A request reaches the interrupt of its guest, which takes `time`.
    pub(crate) fn wait_for_interrupt(&mut self, now: SimTime, id: u32, time: SimSpan) {
        let request = &mut self.requests[id as usize];
        request.unqueued = now;
        // A completion goes to the queue of its request, and the numbers of requests spread evenly over queues.
        let place = u32::from(request.drive) * self.config.queues + id % self.config.queues;
        let waiting = &mut self.interrupts[place as usize];
        waiting.requests.push(id);
        let coalescing = self.config.coalescing;
        if waiting.requests.len() >= coalescing.completions as usize {
            self.interrupt(now, place, time);
        } else if waiting.requests.len() == 1 {
            let number = waiting.interrupts;
            self.runner.queue.push(now + coalescing.time, Event::Interrupt { place, number });
        }
    }

    /// The time after which an interrupt comes is over, unless it came before.
    pub(crate) fn interrupt_due(&mut self, now: SimTime, place: u32, number: u32) {
        if self.interrupts[place as usize].interrupts == number {
            let time = self.table.interrupt().expect("a request waited for one");
            self.interrupt(now, place, time);
        }
    }

    /// All that wait at `place` go on behind an interrupt.
    fn interrupt(&mut self, now: SimTime, place: u32, time: SimSpan) {
        let waiting = &mut self.interrupts[place as usize];
        waiting.interrupts = waiting.interrupts.wrapping_add(1);
        self.interrupted += 1;
        for &id in &waiting.requests {
            let request = &mut self.requests[id as usize];
            request.time.add(Own::Wait, now.since(request.unqueued));
            request.time.add(Own::Of(Part::Guest), time);
            self.runner.queue.push(now + time, Event::Next { request: id });
        }
        waiting.requests.clear();
    }
}
