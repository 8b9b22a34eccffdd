//! Periods: monitors are read, the resource managers take their turns, and what they decide is carried out.

use super::super::enclosure::{Enclosure, Event};
use super::search::scan_tag;
use super::{Lending, SHADOW_QUEUES, TickMark};
use crate::xbof::{DriveReading, HarvestAction};
use flashyard_cxl::Transaction;
use flashyard_ssd::{Drive, Job, LoanId};
use flashyard_stats::Shards;
use flashyard_units::{DriveId, SimSpan, SimTime};

/// Time after which accesses count half as much in miss-ratio curves, which are of current look-ups. Source: [A] sheet xbof §9.2.
const CURVE_WINDOW: SimSpan = SimSpan::from_secs(10);

impl Lending {
    /// One period of the drives.
    pub(in super::super) fn tick(&mut self, enclosure: &mut Enclosure, now: SimTime) {
        let period = self.harvest.config().period;
        let drives = 0..enclosure.drives.len();
        let readings: Vec<DriveReading> = drives.map(|drive| self.read_monitors(enclosure, drive, period)).collect();
        self.account_loans(now);
        if now.since(self.faded) >= CURVE_WINDOW {
            self.faded = now;
            self.curves.iter_mut().for_each(Shards::fade);
        }
        for (drive, reading) in readings.iter().enumerate() {
            if enclosure.manages(now, DriveId::new(drive as u16)) {
                self.harvest.tick_drive(DriveId::new(drive as u16), reading, &self.curves[drive]);
            }
        }
        self.weigh(enclosure);
        self.carry_out(enclosure, now);
    }

    /// Every lender sets the weights of its shadow queues, which the driver reckons with as well.
    fn weigh(&self, enclosure: &mut Enclosure) {
        if !self.harvest.config().processors {
            return;
        }
        for (drive, number) in enclosure.drives.iter_mut().zip(0..) {
            let weight = self.harvest.config().shadow_weight(self.harvest.driver().has_own(DriveId::new(number)));
            for offer in 0..self.harvest.config().processor_offers as usize {
                drive.compute.set_weight(SHADOW_QUEUES + offer, weight);
            }
        }
    }

    /// One period of the hosts' drivers: they load the processor descriptors.
    pub(in super::super) fn tick_host(&mut self, enclosure: &mut Enclosure, now: SimTime) {
        self.account_shares(now);
        self.harvest.tick_host();
        self.scan_by_hosts(enclosure, now);
    }

    /// The firmware of `drive` has read its peers' descriptors.
    pub(in super::super) fn scanned(&mut self, enclosure: &mut Enclosure, now: SimTime, drive: DriveId) {
        self.harvest.scanned(drive);
        self.carry_out(enclosure, now);
    }

    /// A compare-and-swap of `drive` reaches its descriptor.
    pub(in super::super) fn swap(&mut self, enclosure: &mut Enclosure, now: SimTime, drive: DriveId) {
        self.account_loans(now);
        self.harvest.swap(drive);
        self.carry_out(enclosure, now);
    }

    /// Lets drives and fabric do what the managers have decided.
    pub(in super::super) fn carry_out(&mut self, enclosure: &mut Enclosure, now: SimTime) {
        for action in self.harvest.take_actions() {
            self.act(enclosure, now, action);
        }
    }

    fn act(&mut self, enclosure: &mut Enclosure, now: SimTime, action: HarvestAction) {
        match action {
            HarvestAction::Scan { drive, peers, lines } => self.scan(enclosure, now, drive, peers, lines),
            HarvestAction::Swap { drive, lender } => {
                // Half of an atomic's round trip is the way there.
                let there = enclosure.fabric.access(now, drive.get(), lender.get(), Transaction::Atomic, 1) / 2;
                enclosure.runner.queue.push(now + there, Event::Swap { drive });
            }
            HarvestAction::SetOwnPages { drive, pages } => {
                enclosure.on_drive(now, drive, |drive, now, out| drive.data.set_local_pages(now, pages, out));
            }
            HarvestAction::Attach { borrower, loan, segments, .. } => {
                let data = &mut enclosure.drives[borrower.index()].data;
                data.attach_segments(loan, &segments);
                if self.harvest.config().warm_memory {
                    data.cache.warm_offsite();
                }
            }
            HarvestAction::Return { borrower, loan } => {
                enclosure.on_drive(now, borrower, |drive, now, out| drive.data.return_segments(now, loan, out));
            }
            // A drive that is not ready recovers everything before it is.
            HarvestAction::Lost { borrower, loan } if enclosure.drives[borrower.index()].is_ready() => {
                enclosure.on_drive(now, borrower, |drive, now, out| drive.data.recover_segments(now, loan, out));
            }
            HarvestAction::Lost { .. } => {}
            HarvestAction::Reused { borrower, loan } => {
                enclosure.drives[borrower.index()].data.overwrite_segments(loan);
            }
        }
    }

    /// All pages that `borrower` kept in the memory of `loan` are home.
    pub(in super::super) fn returned(
        &mut self,
        enclosure: &mut Enclosure,
        now: SimTime,
        borrower: DriveId,
        loan: LoanId,
    ) {
        self.account_loans(now);
        self.harvest.returned(borrower, loan);
        self.carry_out(enclosure, now);
    }

    /// The firmware of `drive` loads `lines` lines from each peer: a core of it waits for one after the other.
    fn scan(&mut self, enclosure: &mut Enclosure, now: SimTime, drive: DriveId, peers: Vec<DriveId>, lines: u64) {
        let stall = enclosure.fabric.scan(drive.get(), peers.into_iter().map(DriveId::get), lines);
        self.search.scans[drive.index()] += 1;
        self.search.scanning[drive.index()] += stall;
        let job = Job { tag: scan_tag(drive), busy: SimSpan::ZERO, stall, slices: 1 };
        enclosure.on_drive(now, drive, |drive, now, out| drive.enqueue(now, 0, job, out));
    }

    /// Every host's driver loads the processor descriptors of all drives, for any may lend to its own: one core of each
    /// waits for one line after the other. A host is joined to the leaf switch of its first drive.
    fn scan_by_hosts(&mut self, enclosure: &mut Enclosure, now: SimTime) {
        // A line holds four descriptors.
        let lines = u64::from(self.harvest.config().processor_offers.div_ceil(4));
        for (number, host) in enclosure.hosts.iter_mut().enumerate() {
            let beside = number as u32 * enclosure.config.drives_per_host();
            let stall = enclosure.fabric.scan(beside as u16, 0..enclosure.drives.len() as u16, lines);
            self.search.host_scanning += stall;
            host.run(now, stall);
        }
    }

    pub(super) fn read_monitors(&mut self, enclosure: &Enclosure, number: usize, period: SimSpan) -> DriveReading {
        let drive = &enclosure.drives[number];
        let nand = &drive.data.flash.nand;
        let cache = drive.data.cache.counters();
        let mark = TickMark {
            busy: drive.compute.busy(),
            waited: self.waited[number],
            jobs: drive.compute.jobs(),
            lent: drive.compute.busy_from(SHADOW_QUEUES),
            bus: nand.bus_busy(),
            array: nand.array_busy(),
            accesses: cache.local_hits + cache.offsite_hits + cache.misses,
            misses: cache.misses,
            executed: drive.data.counters().executed,
            redirected: self.served_by_lenders[number],
        };
        let before = std::mem::replace(&mut self.marks[number], mark);
        let cores = period * u64::from(drive.compute.cores());
        let geometry = &nand.config().geometry;
        // A power cut takes back what was booked for work that did not come about.
        let since = |now: SimSpan, before: SimSpan| SimSpan::from_ps(now.as_ps().saturating_sub(before.as_ps()));
        let share = |now, before, whole| since(now, before).ratio_of(whole).min(1.0);
        let processor = share(mark.busy, before.busy, cores);
        let lent = share(mark.lent, before.lent, cores);
        let bus = share(mark.bus, before.bus, period * u64::from(geometry.channels));
        let array = share(mark.array, before.array, period * u64::from(geometry.dies()));
        let executed = mark.executed - before.executed;
        DriveReading {
            processor,
            processor_own: (processor - lent).max(0.0),
            data_end: bus.max(array),
            commands: executed,
            redirected: (mark.redirected - before.redirected) as f64 / executed.max(1) as f64,
            accesses: mark.accesses - before.accesses,
            misses: mark.misses - before.misses,
            waiting: since(mark.waited, before.waited).ratio_of(period),
            service: service(drive, since(mark.busy, before.busy), mark.jobs - before.jobs),
            cores: drive.compute.cores(),
            borrowed_empty: drive.data.cache.offsite_free(),
            map_pages: enclosure.models[number].map_pages(),
            local_pages: drive.config().mapping_cache_pages.min(enclosure.models[number].map_pages()),
        }
    }
}

/// Time that a command keeps a core of the drive: the mean of the last period, or, of an idle drive, that of its
/// firmware for 4 KiB.
fn service(drive: &Drive, busy: SimSpan, jobs: u64) -> SimSpan {
    match jobs {
        0 => drive.firmware_job(0, 1).busy,
        _ => busy / jobs,
    }
}
