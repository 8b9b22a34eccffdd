//! Where firmware runs: own cores, a lender's, or the host's; and where a virtual drive's data goes.

use super::config::Design;
use super::scanning::scan_of;
use super::world::{Jbof, Phase, Purpose, Request};
use flashyard_ssd::{CommandSpec, Job, Operation};
use flashyard_stats::{Cause, TimeSplit};
use flashyard_units::{SimSpan, SimTime};

/// What the request asks of the data-end.
pub(super) fn command_spec(id: u32, request: &Request) -> CommandSpec {
    let Request { operation, first, count, stamp, .. } = *request;
    CommandSpec { tag: id, operation, first, count, stamp }
}

impl Jbof {
    /// A command reaches its drive: queue its firmware job, or go straight to the data-end when the
    /// host has done the firmware's work.
    #[inline]
    pub(super) fn arrive(&mut self, now: SimTime, id: u32) {
        let request = self.requests[id as usize];
        if self.resilience.is_some() && !self.arrives(now, id) {
            return;
        }
        if self.config.design == Design::Oc {
            return self.execute(now, id);
        }
        if request.compute != request.drive {
            return self.arrive_at_lender(now, id);
        }
        let mut job = self.drives[request.drive as usize].firmware_job(id, self.slices(&request));
        let between = if self.harvest.is_some() { self.mapping_costs(now, id) } else { SimSpan::ZERO };
        job.stall += between;
        self.journeys[id as usize].time.add(Cause::InterDrive, between);
        self.begin_job(now, &job, between);
        self.enqueue(now, request.compute, 1, job);
    }

    /// Slices that firmware works through. Copy-back moves extents of whole flash pages: the 10 GB/s at
    /// which the source copies back cannot pay for slices of 4 KiB ([D] xbof §8.4).
    fn slices(&self, request: &Request) -> u32 {
        match request.purpose {
            Purpose::Foreground | Purpose::Part { .. } | Purpose::Asked { .. } | Purpose::AskedOnce { .. } => {
                request.count
            }
            Purpose::CopyRead | Purpose::CopyWrite => {
                request.count.div_ceil(self.drives[request.drive as usize].data.ftl.layout().slots_per_page)
            }
        }
    }

    /// Accounts for a firmware job that waits for a core: `between` of its stall is spent on other drives.
    #[inline]
    pub(super) fn begin_job(&mut self, now: SimTime, job: &Job, between: SimSpan) {
        let journey = &mut self.journeys[job.tag as usize];
        journey.time.add(Cause::Core, job.busy + job.stall - between);
        journey.unqueued = now + job.busy + job.stall;
    }

    /// Queues a firmware job with `drive`.
    // Not in each caller: the code of a command must fit the instruction cache (docs/speed.md).
    #[inline(never)]
    pub(super) fn enqueue(&mut self, now: SimTime, drive: u16, queue: usize, job: Job) {
        self.ledger.demanded(job.busy);
        self.on_drive(now, drive, |drive, now, out| drive.enqueue(now, queue, job, out));
    }

    /// A core has finished a job of the request, or a scan of descriptors.
    #[inline]
    pub(super) fn firmware_done(&mut self, now: SimTime, id: u32) {
        if let Some(drive) = scan_of(id) {
            return self.scanned(now, drive);
        }
        if self.is_withdrawn(id) {
            return;
        }
        let request = &self.requests[id as usize];
        let journey = &mut self.journeys[id as usize];
        let waited = now.since(journey.unqueued);
        journey.time.add(Cause::Queue, waited);
        let (agent, compute) = (request.phase == Phase::Agent, request.compute);
        let here = agent || compute == request.drive;
        self.waited[if agent { request.drive } else { compute } as usize] += waited;
        if here {
            return self.execute(now, id);
        }
        self.store_messages(now, id);
    }

    /// Hands the command to the data-end that owns the flash.
    #[inline]
    fn execute(&mut self, now: SimTime, id: u32) {
        let request = &mut self.requests[id as usize];
        request.phase = Phase::Data;
        if self.resilience.as_ref().is_some_and(|state| state.driver.is_applied(id)) {
            self.drop_translation(now, id);
            return self.completed(now, id, now, &TimeSplit::default());
        }
        let (drive, from_lender) = (request.drive, request.compute != request.drive);
        let spec = command_spec(id, request);
        self.track_misses(drive, &spec);
        if from_lender {
            self.served_by_lenders[drive as usize] += 1;
            return self.execute_wrapped(now, id);
        }
        self.on_drive(now, drive, |drive, now, out| drive.execute(now, spec, out));
    }

    /// Feeds the miss-ratio curve of a drive that harvests memory.
    #[inline]
    fn track_misses(&mut self, drive: u16, spec: &CommandSpec) {
        if self.harvest.is_none() || spec.operation == Operation::Flush {
            return;
        }
        let curve = &mut self.curves[drive as usize];
        let per_page = flashyard_ftl::SLOTS_PER_TRANSLATION_PAGE;
        for page in spec.first / per_page..=(spec.first + spec.count - 1) / per_page {
            curve.access(page);
        }
    }

    /// Extra host time of a redirected write of a virtual drive.
    #[inline]
    pub(super) fn virtual_cost(&self, request: &Request) -> SimSpan {
        let moved = request.drive != request.home && request.purpose == Purpose::Foreground;
        if self.is_virtual() && moved {
            self.config.host.clock.span_of(self.config.vh.redirect_cycles)
        } else {
            SimSpan::ZERO
        }
    }

    /// The lender that takes part of busy drive `owner`'s writes, for a draw among its lenders.
    fn lender_of(&self, owner: u16, draw: u64) -> Option<u16> {
        let idle = self.config.drives - self.config.busy_drives;
        let lenders = u64::from(self.config.vh.lenders.min(idle));
        // Draw 0 of 1 + lenders stays home.
        let index = draw.checked_sub(1)?;
        let place = (u64::from(owner) * lenders + index) % u64::from(idle);
        Some((u64::from(self.config.busy_drives) + place) as u16)
    }

    /// Sends a virtual drive's request: writes to one of its drives, reads to wherever the data is.
    pub(super) fn issue_virtual(&mut self, now: SimTime, mut request: Request) {
        let owner = request.home;
        let idle = self.config.drives - self.config.busy_drives;
        let choices = u64::from(self.config.vh.lenders.min(idle)) + 1;
        let lender = match request.operation {
            Operation::Write => {
                let draw = self.vh_rng.below(choices);
                self.lender_of(owner, draw)
            }
            _ => None,
        };
        match request.operation {
            Operation::Write | Operation::Trim => {
                self.redirected += u64::from(lender.is_some());
                request.drive = lender.unwrap_or(owner);
                request.compute = request.drive;
                let id = self.new_request(now, request);
                self.submit(now, id);
            }
            Operation::Read => self.issue_pieces(now, request),
            Operation::Flush | Operation::Remap => {
                let id = self.new_request(now, request);
                self.submit(now, id);
            }
        }
    }

    /// Splits a read along the homes of its data.
    fn issue_pieces(&mut self, now: SimTime, request: Request) {
        let mut pieces = Vec::new();
        if let Some(copy_back) = &mut self.copy_back {
            copy_back.map(request.home).pieces(request.first, request.count, |piece| pieces.push(piece));
        }
        let parent = self.new_request(now, Request { parts: pieces.len() as u32, ..request });
        if let [piece] = pieces.as_slice() {
            let drive = piece.lender.unwrap_or(request.home);
            let whole = &mut self.requests[parent as usize];
            whole.parts = 0;
            whole.drive = drive;
            whole.compute = drive;
            return self.submit(now, parent);
        }
        for piece in pieces {
            let drive = piece.lender.unwrap_or(request.home);
            let part = Request {
                drive,
                compute: drive,
                purpose: Purpose::Part { parent },
                first: piece.first,
                count: piece.count,
                ..request
            };
            let id = self.new_request(now, part);
            self.submit(now, id);
        }
    }
}
