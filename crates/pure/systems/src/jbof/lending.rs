//! Periods: monitors are read, the resource managers take their turns, and what they decide is carried out.

use super::world::{Event, Jbof, TickMark};
use crate::xbof::{DriveReading, HarvestAction};
use flashyard_cxl::Transaction;
use flashyard_ssd::LoanId;
use flashyard_units::{SimSpan, SimTime};

impl Jbof {
    /// One period of the drives.
    pub(super) fn tick(&mut self, now: SimTime) {
        let period = self.config.harvest.period;
        let readings: Vec<DriveReading> =
            (0..self.drives.len()).map(|drive| self.read_monitors(drive, period)).collect();
        self.account_loans(now);
        for (drive, reading) in readings.iter().enumerate() {
            if self.manages(now, drive as u16)
                && let Some(harvest) = &mut self.harvest
            {
                harvest.tick_drive(drive as u16, reading, &self.curves[drive]);
            }
        }
        self.carry_out(now);
        if self.ended.is_none() || self.resilience.is_some() {
            self.runner.queue.push(now + period, Event::Tick);
        }
    }

    /// One period of the hosts' drivers: they load the processor descriptors, and look after the drives.
    pub(super) fn tick_host(&mut self, now: SimTime) {
        let period = self.config.harvest.period;
        self.account_shares(now);
        if let Some(harvest) = &mut self.harvest {
            harvest.tick_host();
            self.scan_by_hosts(now);
        }
        if self.resilience.is_some() {
            self.detect(now);
        }
        if self.ended.is_none() || self.resilience.is_some() {
            self.runner.queue.push(now + period, Event::HostTick);
        }
    }

    /// The firmware of `drive` has read its peers' descriptors.
    pub(super) fn scanned(&mut self, now: SimTime, drive: u16) {
        if let Some(harvest) = &mut self.harvest {
            harvest.scanned(drive);
        }
        self.carry_out(now);
    }

    /// A compare-and-swap of `drive` reaches its descriptor.
    pub(super) fn swap(&mut self, now: SimTime, drive: u16) {
        if self.waits_for_firmware(now, drive, Event::Swap { drive }) {
            return;
        }
        if !self.is_reachable(drive) {
            // Whoever sent it is gone: it never arrives.
            if let Some(harvest) = &mut self.harvest {
                harvest.forget_search(drive);
            }
            return;
        }
        self.account_loans(now);
        if let Some(harvest) = &mut self.harvest {
            harvest.swap(drive);
        }
        self.carry_out(now);
    }

    pub(super) fn carry_out(&mut self, now: SimTime) {
        let Some(harvest) = &mut self.harvest else { return };
        for action in harvest.take_actions() {
            self.act(now, action);
        }
    }

    fn act(&mut self, now: SimTime, action: HarvestAction) {
        match action {
            HarvestAction::Scan { drive, peers, lines } => self.scan(now, drive, peers, lines),
            HarvestAction::Swap { drive, lender } => {
                // Half of an atomic's round trip is the way there.
                let there = self.fabric.access(now, drive, lender, Transaction::Atomic, 1) / 2;
                self.runner.queue.push(now + there, Event::Swap { drive });
            }
            HarvestAction::SetOwnPages { drive, pages } => {
                self.on_drive(now, drive, |drive, now, out| drive.data.set_local_pages(now, pages, out));
            }
            HarvestAction::Attach { borrower, loan, segments, .. } => {
                let data = &mut self.drives[borrower as usize].data;
                data.attach_segments(loan, &segments);
                if self.config.harvest.warm_memory {
                    data.cache.warm_offsite();
                }
            }
            HarvestAction::Return { borrower, loan } => {
                self.on_drive(now, borrower, |drive, now, out| drive.data.return_segments(now, loan, out));
            }
            // A drive that is not ready recovers everything before it is.
            HarvestAction::Lost { borrower, loan } if self.drives[borrower as usize].is_ready() => {
                self.on_drive(now, borrower, |drive, now, out| drive.data.recover_segments(now, loan, out));
            }
            HarvestAction::Lost { .. } => {}
            HarvestAction::Reused { borrower, loan } => {
                self.drives[borrower as usize].data.overwrite_segments(loan);
            }
        }
    }

    /// All pages that `borrower` kept in the memory of `loan` are home.
    pub(super) fn returned(&mut self, now: SimTime, borrower: u16, loan: LoanId) {
        self.account_loans(now);
        if let Some(harvest) = &mut self.harvest {
            harvest.returned(borrower, loan);
        }
        self.carry_out(now);
    }

    fn read_monitors(&mut self, number: usize, period: SimSpan) -> DriveReading {
        let drive = &self.drives[number];
        let nand = &drive.data.nand;
        let cache = drive.data.cache.counters();
        let mark = TickMark {
            busy: drive.compute.busy(),
            waited: self.waited[number],
            jobs: drive.compute.jobs(),
            lent: self.lent[number],
            bus: nand.bus_busy(),
            die: nand.die_busy(),
            accesses: cache.local_hits + cache.offsite_hits + cache.misses,
            misses: cache.misses,
            executed: drive.data.counters().executed,
            redirected: self.served_by_lenders[number],
        };
        let before = std::mem::replace(&mut self.tick_marks[number], mark);
        let cores = period * u64::from(drive.compute.cores());
        let geometry = &nand.config().geometry;
        // A power cut takes back what was booked for work that did not come about.
        let since = |now: SimSpan, before: SimSpan| SimSpan::from_ps(now.as_ps().saturating_sub(before.as_ps()));
        let share = |now, before, whole| since(now, before).ratio_of(whole).min(1.0);
        let processor = share(mark.busy, before.busy, cores);
        let lent = share(mark.lent, before.lent, cores);
        let bus = share(mark.bus, before.bus, period * u64::from(geometry.channels));
        let die = share(mark.die, before.die, period * u64::from(geometry.dies()));
        let executed = mark.executed - before.executed;
        DriveReading {
            processor,
            processor_own: (processor - lent).max(0.0),
            data_end: bus.max(die),
            redirected: (mark.redirected - before.redirected) as f64 / executed.max(1) as f64,
            accesses: mark.accesses - before.accesses,
            misses: mark.misses - before.misses,
            waiting: since(mark.waited, before.waited).ratio_of(period),
            service: self.service(number, since(mark.busy, before.busy), mark.jobs - before.jobs),
            cores: drive.compute.cores(),
            borrowed_empty: drive.data.cache.offsite_free(),
            map_pages: self.models[number].map_pages(),
            local_pages: drive.config().mapping_cache_pages.min(self.models[number].map_pages()),
        }
    }

    /// How long a command keeps a core of the drive: the mean of the last period, or, of an idle drive, that of its
    /// firmware for 4 KiB.
    fn service(&self, number: usize, busy: SimSpan, jobs: u64) -> SimSpan {
        match jobs {
            0 => self.drives[number].firmware_job(0, 1).busy,
            _ => busy / jobs,
        }
    }
}
