//! The state of a world that can break: the plan of its faults, the health of each drive, the host's driver, and what
//! clients have asked for and got.

use super::request::Request;
use flashyard_host::{Driver, DriverConfig, DriverCounters};
use flashyard_ssd::Operation;
use flashyard_units::{DriveId, SimSpan, SimTime};
use std::collections::BTreeMap;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Power of the whole enclosure, for so long.
    BoxPower {
        /// How long it is away.
        off: SimSpan,
    },
    /// Power of one drive: pulled and put back.
    DrivePower {
        /// Which.
        drive: DriveId,
        /// How long it is away.
        off: SimSpan,
    },
    /// The link of one drive. The drive goes on alone.
    Link {
        /// The drive.
        drive: DriveId,
        /// How long it is down.
        down: SimSpan,
    },
    /// The firmware of one drive stands still, and then goes on where it was.
    Hang {
        /// Which.
        drive: DriveId,
        /// How long.
        span: SimSpan,
    },
    /// A lender wants its memory and its cores back at once.
    Withdraw {
        /// Which.
        drive: DriveId,
    },
}

/// When a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultTime {
    /// After this many events of the world.
    Event(u64),
    /// At a time.
    At(SimTime),
    /// This many events after the fault before it.
    AfterLast(u64),
}

/// A client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The number of the request, from 1; a write makes every slot hold it.
    pub number: u64,
    /// The drive asked.
    pub drive: DriveId,
    /// The operation.
    pub operation: Operation,
    /// First logical slot of 4 KiB.
    pub first: u32,
    /// Slots.
    pub count: u32,
}

/// Told of everything that a client sees: what it asked for and what it got.
pub trait Witness {
    /// A request was issued.
    fn issued(&mut self, now: SimTime, asked: &Asked);
    /// Request `number` has completed. A read brings what each slot holds, in order; zero for what was never written.
    fn completed(&mut self, now: SimTime, number: u64, operation: Operation, found: &[u64]);
    /// The power of a drive has failed.
    fn power_lost(&mut self, _now: SimTime, _drive: DriveId) {}
}

/// The state of one drive as physics has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Health {
    pub(super) powered: bool,
    pub(super) linked: bool,
    /// Recovered from its last start.
    pub(super) ready: bool,
    pub(super) hung_until: SimTime,
    /// Starts and link failures so far: what a host sees in the controller's status and its port.
    pub(super) breaks: u32,
}

/// Counters of a run with faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounters {
    /// Faults that took effect.
    pub faults: u64,
    /// Drives given up by the driver.
    pub given_up: u64,
    /// Commands sent again.
    pub resubmitted: u64,
    /// Commands sent again after the owner was done with the first attempt.
    pub drained: u64,
    /// Commands that took too long.
    pub timed_out: u64,
    /// Drives reset.
    pub resets: u64,
    /// Copies of what virtual drives had redirected, written to its owners.
    pub copied_back: u64,
}

/// Everything about faults; a run without them has none of it.
pub(super) struct Resilience {
    plan: std::vec::IntoIter<(FaultTime, Fault)>,
    next: Option<(FaultTime, Fault)>,
    /// How many events came before each fault so far.
    taken: Vec<u64>,
    pub(super) health: Vec<Health>,
    pub(super) driver: Driver,
    witness: Box<dyn Witness>,
    /// Stamps that each read has found so far: request and stamps by slot.
    found: Vec<Vec<u64>>,
    /// Stamps of copies that virtual drives have made: for each, its first slot and the stamps that it stands for.
    copies: BTreeMap<u64, (u32, Vec<u64>)>,
    copied_back: u64,
    /// Drives whose power or link is away.
    away: u32,
}

impl Resilience {
    /// Drives that are all well, before `plan` begins.
    pub(super) fn new(
        plan: Vec<(FaultTime, Fault)>,
        witness: Box<dyn Witness>,
        drives: usize,
        config: DriverConfig,
    ) -> Self {
        let health = Health { powered: true, linked: true, ready: true, hung_until: SimTime::ZERO, breaks: 0 };
        let mut plan = plan.into_iter();
        Self {
            next: plan.next(),
            plan,
            taken: Vec::new(),
            health: vec![health; drives],
            driver: Driver::new(drives, config),
            witness,
            found: Vec::new(),
            copies: BTreeMap::new(),
            copied_back: 0,
            away: 0,
        }
    }

    /// The next fault of the plan, if it is due after event number `step`.
    pub(super) fn take_due(&mut self, now: SimTime, step: u64) -> Option<Fault> {
        let (time, fault) = self.next?;
        let due = match time {
            FaultTime::Event(number) => step >= number,
            FaultTime::At(time) => now >= time,
            FaultTime::AfterLast(events) => step >= self.taken.last().unwrap_or(&0) + events,
        };
        if !due {
            return None;
        }
        self.taken.push(step);
        self.next = self.plan.next();
        Some(fault)
    }

    pub(super) fn taken(&self) -> &[u64] {
        &self.taken
    }

    pub(super) fn counters(&self) -> FaultCounters {
        let DriverCounters { given_up, resubmitted, drained, timed_out, resets } = *self.driver.counters();
        let (faults, copied_back) = (self.taken.len() as u64, self.copied_back);
        FaultCounters { faults, given_up, resubmitted, drained, timed_out, resets, copied_back }
    }

    /// Forgets what a request has found: its number is used again.
    pub(super) fn forget_found(&mut self, id: u32) {
        if let Some(stamps) = self.found.get_mut(id as usize) {
            stamps.clear();
        }
    }

    /// Requests that are kept for drives whose power or link is away.
    #[inline]
    pub(super) fn held_for_good(&self) -> u32 {
        if self.away == 0 {
            return 0;
        }
        let is_away = |health: &Health| !health.powered || !health.linked;
        let drives = DriveId::first(self.health.len() as u16).filter(|drive| is_away(&self.health[drive.index()]));
        drives.map(|drive| self.driver.held(drive) as u32).sum()
    }

    pub(super) fn count_away(&mut self) {
        self.away = self.health.iter().filter(|health| !health.powered || !health.linked).count() as u32;
    }

    /// Whether a drive has power and a link and has recovered.
    #[inline]
    pub(super) fn is_reachable(&self, drive: DriveId) -> bool {
        let health = &self.health[drive.index()];
        health.powered && health.linked && health.ready
    }

    /// Whether a drive has queue pairs: the driver has enabled it since it last broke.
    #[inline]
    pub(super) fn has_queues(&self, drive: DriveId) -> bool {
        self.is_reachable(drive) && self.driver.has_enabled(drive, self.health[drive.index()].breaks)
    }

    /// Drives that have power and a link, and that the driver has not enabled yet.
    #[inline]
    pub(super) fn starting(&self) -> u32 {
        let starts = |drive: &DriveId| {
            let health = &self.health[drive.index()];
            health.powered && health.linked && !self.has_queues(*drive)
        };
        DriveId::first(self.health.len() as u16).filter(starts).count() as u32
    }

    /// When a drive that stands still goes on; `None` when it does not stand still.
    #[inline]
    pub(super) fn hangs_until(&self, now: SimTime, drive: DriveId) -> Option<SimTime> {
        let until = self.health[drive.index()].hung_until;
        (until > now).then_some(until)
    }

    /// Whether the drive's resource manager runs in this period, and the driver gets an answer.
    pub(super) fn manages(&self, now: SimTime, drive: DriveId) -> bool {
        self.is_reachable(drive) && self.hangs_until(now, drive).is_none()
    }

    /// The power of a drive has failed. One without protection has lost the names of what it has carried out, too.
    pub(super) fn lose_power(&mut self, now: SimTime, drive: DriveId, protected: bool, requests: &[Request]) {
        if !protected {
            self.driver.forget_applied(|id| requests.get(id as usize).is_some_and(|request| request.drive == drive));
        }
        self.witness.power_lost(now, drive);
    }

    /// Tells the witness of a request.
    pub(super) fn witness_issue(&mut self, now: SimTime, request: &Request) {
        let Request { drive, operation, first, count, stamp, .. } = *request;
        self.witness.issued(now, &Asked { number: stamp, drive, operation, first, count });
    }

    /// Tells the witness of a completion; what a read has found is that of request `id`.
    pub(super) fn witness_completion(&mut self, now: SimTime, request: &Request, id: u32) {
        let stamps = self.found.get_mut(id as usize).map(std::mem::take).unwrap_or_default();
        self.witness.completed(now, request.stamp, request.operation, &stamps);
    }

    /// Keeps what reads have found, as (request, slot, stamp), until their clients hear of it.
    pub(super) fn collect_stamps(&mut self, requests: &[Request], read: Vec<(u32, u32, u64)>) {
        for (id, slot, stamp) in read {
            let request = &requests[id as usize];
            let stamp = self.original(stamp, slot);
            let stamps = self.found_of(id);
            stamps.resize(request.count as usize, 0);
            stamps[(slot - request.first) as usize] = stamp;
        }
    }

    /// Adds what a part of a read has found to what the whole has. The whole ends under the number of its last part.
    pub(super) fn join_stamps(&mut self, part: (u32, &Request), whole: (u32, &Request), is_last: bool) {
        let found = std::mem::take(self.found_of(part.0));
        let joined = self.found_of(whole.0);
        joined.resize(whole.1.count as usize, 0);
        for (slot, stamp) in (part.1.first - whole.1.first..).zip(found) {
            joined[slot as usize] = stamp;
        }
        if is_last {
            *self.found_of(part.0) = std::mem::take(self.found_of(whole.0));
        }
    }

    /// Keeps what `stamp`, that of a copy of what read `id` has found, stands for.
    pub(super) fn note_copy(&mut self, stamp: u64, read: &Request, id: u32) {
        let mut found = std::mem::take(self.found_of(id));
        found.resize(read.count as usize, 0);
        self.copied_back += 1;
        self.copies.insert(stamp, (read.first, found));
    }

    fn found_of(&mut self, id: u32) -> &mut Vec<u64> {
        if self.found.len() <= id as usize {
            self.found.resize(id as usize + 1, Vec::new());
        }
        &mut self.found[id as usize]
    }

    /// The stamp that a client wrote to a slot of this stamp: a copy has the stamp of what was copied.
    pub(super) fn original(&self, stamp: u64, slot: u32) -> u64 {
        self.copies.get(&stamp).map_or(stamp, |(first, stamps)| stamps[(slot - first) as usize])
    }

    /// Whether no drive is away, as physics or the driver has it.
    pub(super) fn is_whole(&self) -> bool {
        let up = |health: &Health| health.powered && health.linked && health.ready;
        self.health.iter().all(up) && self.driver.trusts_all()
    }
}
