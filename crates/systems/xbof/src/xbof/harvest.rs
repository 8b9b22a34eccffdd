//! The resource managers of all drives, the tables they meet in, and the driver of the host.
//!
//! There is no central manager in the system: every period each drive reads its monitors and the descriptors it has a
//! part in, and offers, takes or gives back ([`super::lend`], [`super::borrow`]); half a period later the host driver
//! reads the descriptors and binds queue pairs ([`super::driver`]). This file only keeps their state side by side.
//! Work for the drives and the fabric comes out as actions, in order.

use super::config::HarvestConfig;
use super::descriptor::{DRIVES_MAX, ProcessorInfo};
use super::driver::{Binding, Driver};
use super::manager::Manager;
use super::reading::DriveReading;
use super::table::ResourceTables;
use super::window::Region;
use flashyard_kernel::Rng;
use flashyard_ssd::LoanId;
use flashyard_stats::Shards;
use flashyard_units::{DriveId, SimSpan};

/// Borrowed mapping memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLoan {
    /// The borrower.
    pub borrower: DriveId,
    /// The lender, and its offer.
    pub loan: LoanId,
    /// How many segments.
    pub segments: u32,
}

/// Counters of harvesting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HarvestCounters {
    /// Processor offers taken.
    pub processors_taken: u64,
    /// Processor offers given back or withdrawn.
    pub processors_returned: u64,
    /// Memory offers taken.
    pub memories_taken: u64,
    /// Memory offers given back, withdrawn or lost.
    pub memories_returned: u64,
    /// Compare-and-swaps that came too late.
    pub contended: u64,
    /// Withdrawals whose borrower did not let go in time.
    pub forced: u64,
    /// Descriptors whose fields name nothing that exists.
    pub refused: u64,
}

/// A drive's action on its own decision, or on a peer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HarvestAction {
    /// The drive's firmware loads `lines` lines from each of these peers, then goes on with [`Harvest::scanned`].
    Scan {
        /// The drive that looks for offers.
        drive: DriveId,
        /// The peers, in the order in which it reads their tables.
        peers: Vec<DriveId>,
        /// Lines of 64 bytes of each.
        lines: u64,
    },
    /// A compare-and-swap is on its way to a lender's table; it arrives with [`Harvest::swap`].
    Swap {
        /// The sender.
        drive: DriveId,
        /// Where it goes.
        lender: DriveId,
    },
    /// The drive keeps this many translation pages in its own memory from now on.
    SetOwnPages {
        /// The lender.
        drive: DriveId,
        /// Pages.
        pages: u32,
    },
    /// The borrower may use these segments.
    Attach {
        /// The borrower.
        borrower: DriveId,
        /// The lender, and its offer.
        loan: LoanId,
        /// Their numbers in the lender's memory.
        segments: Vec<u32>,
        /// Where the log pages for them begin in the borrower's memory.
        log_pages: u32,
    },
    /// The borrower copies its pages home, then calls [`Harvest::returned`].
    Return {
        /// The borrower.
        borrower: DriveId,
        /// The lender, and its offer.
        loan: LoanId,
    },
    /// The borrower can no longer trust the lender's memory: it recovers from its logs.
    Lost {
        /// The borrower.
        borrower: DriveId,
        /// The lender, and its offer.
        loan: LoanId,
    },
    /// The lender has taken the memory of a loan back by force and overwrites it.
    Reused {
        /// The borrower that had its pages there.
        borrower: DriveId,
        /// The lender that overwrites them, and the offer by which it lent them.
        loan: LoanId,
    },
}

/// The managers, the tables and the driver.
pub struct Harvest {
    pub(super) config: HarvestConfig,
    pub(super) tables: ResourceTables,
    pub(super) driver: Driver,
    pub(super) managers: Vec<Manager>,
    pub(super) loans: Vec<MemoryLoan>,
    pub(super) counters: HarvestCounters,
    pub(super) actions: Vec<HarvestAction>,
    /// Drives whose memory can be reached.
    pub(super) reachable: Vec<bool>,
    /// Whether all lending is paused: set by [`Harvest::pause`].
    pub(super) paused: bool,
    /// Random numbers of each drive, for its choice of lenders.
    pub(super) choosers: Vec<Rng>,
}

impl Harvest {
    /// Managers of `drives` drives (at most [`DRIVES_MAX`]), all descriptors invalid, all shadow queue pairs free.
    pub fn new(drives: u32, config: HarvestConfig) -> Self {
        assert!(drives <= DRIVES_MAX, "descriptors name {DRIVES_MAX} drives, not {drives}");
        let count = drives as usize;
        Self {
            tables: ResourceTables::new(count, (config.processor_offers + config.memory_offers) as usize),
            driver: Driver::new(count, config.processor_offers as usize, config.seed),
            managers: (0..count).map(|_| Manager::new(&config)).collect(),
            loans: Vec::new(),
            counters: HarvestCounters::default(),
            actions: Vec::new(),
            reachable: vec![true; count],
            paused: false,
            choosers: (0..count).map(|drive| Rng::named(config.seed, &format!("harvest.choice.{drive}"))).collect(),
            config,
        }
    }

    /// The parameters.
    pub fn config(&self) -> &HarvestConfig {
        &self.config
    }

    /// Counters so far.
    pub fn counters(&self) -> &HarvestCounters {
        &self.counters
    }

    /// The tables, to read.
    pub fn tables(&self) -> &ResourceTables {
        &self.tables
    }

    /// The tables, for a fault to change.
    pub fn tables_mut(&mut self) -> &mut ResourceTables {
        &mut self.tables
    }

    /// The driver.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The driver, for commands that enter and leave shadow queues.
    #[inline]
    pub fn driver_mut(&mut self) -> &mut Driver {
        &mut self.driver
    }

    /// The lenders that `drive`'s commands may go to.
    #[inline]
    pub fn bindings(&self, drive: DriveId) -> &[Binding] {
        self.driver.bindings(drive)
    }

    /// All memory lent now.
    pub fn loans(&self) -> &[MemoryLoan] {
        &self.loans
    }

    /// Takes the actions decided since the last call, in order.
    pub fn take_actions(&mut self) -> Vec<HarvestAction> {
        std::mem::take(&mut self.actions)
    }

    /// One period of all drives: their readings and their miss-ratio curves.
    pub fn tick(&mut self, readings: &[DriveReading], curves: &[Shards]) {
        for drive in DriveId::first(self.managers.len() as u16) {
            self.tick_drive(drive, &readings[drive.index()], &curves[drive.index()]);
        }
    }

    /// One period of one drive.
    pub fn tick_drive(&mut self, drive: DriveId, reading: &DriveReading, curve: &Shards) {
        let (mut processor, mut memory) = (false, 0);
        self.managers[drive.index()].local_pages = reading.local_pages;
        self.managers[drive.index()].withdrawing |= self.paused;
        if self.config.processors {
            self.lend_processors(drive, reading);
            processor = self.borrow_processors(drive, reading);
        }
        if self.config.memory {
            memory = self.borrow_memory(drive, reading, curve);
            self.lend_memory(drive, reading, curve);
        }
        self.managers[drive.index()].withdrawing = false;
        self.search(drive, processor, memory);
    }

    /// A command of `drive` itself, run by its own cores, has completed after so long in the drive.
    #[inline]
    pub fn served_own(&mut self, drive: DriveId, latency: SimSpan) {
        if let Some(guard) = &mut self.managers[drive.index()].guard {
            guard.count(latency);
        }
    }

    /// One period of the host driver.
    pub fn tick_host(&mut self) {
        self.driver.tick(&self.tables, &self.reachable, &self.config);
    }

    /// The drive whose mapping directory a lender walks for the commands in a shadow queue: what the descriptor says,
    /// or said before the borrower let go while the queue drains. `None` when its fields lead nowhere.
    #[inline]
    pub fn serves(&mut self, lender: DriveId, offer: u16) -> Option<DriveId> {
        let descriptor = self.tables.load(lender, offer);
        let serving = &mut self.managers[lender.index()].serving[offer as usize];
        if let Some(borrower) = descriptor.borrower() {
            let directory = ProcessorInfo::unpack(descriptor.info()).directory;
            let exists = Region::at(directory) == Some(Region::Directory);
            *serving = exists.then_some(borrower);
        }
        *serving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(processor: f64) -> DriveReading {
        let half = DriveReading { local_pages: 4096, map_pages: 8192, ..Default::default() };
        DriveReading { processor, processor_own: processor, data_end: 0.4, ..half }
    }

    fn curves(count: usize) -> Vec<Shards> {
        (0..count).map(|_| Shards::new(8192, 64)).collect()
    }

    /// Runs periods of all drives and the host; scans and swaps take effect at once, in the order they were sent.
    fn periods(harvest: &mut Harvest, readings: &[DriveReading], count: u32) -> Vec<HarvestAction> {
        let curves = curves(readings.len());
        let mut seen = Vec::new();
        for _ in 0..count {
            harvest.tick(readings, &curves);
            loop {
                let actions = harvest.take_actions();
                if actions.is_empty() {
                    break;
                }
                for action in actions {
                    match action {
                        HarvestAction::Scan { drive, .. } => harvest.scanned(drive),
                        HarvestAction::Swap { drive, .. } => harvest.swap(drive),
                        other => seen.push(other),
                    }
                }
            }
            harvest.tick_host();
        }
        seen
    }

    #[test]
    fn busy_drives_that_want_the_same_lender_end_up_with_different_ones() {
        let mut harvest = Harvest::new(4, HarvestConfig { lenders_max: 1, ..Default::default() });
        // Both have read both offers before either swaps; drive 2 is the less loaded lender for both.
        let readings = [reading(0.99), reading(0.99), reading(0.0), reading(0.1)];
        periods(&mut harvest, &readings, 4);
        let lenders: Vec<DriveId> = DriveId::first(2).map(|drive| harvest.bindings(drive)[0].lender).collect();
        assert_eq!(lenders, [2, 3].map(DriveId::new));
        assert_eq!(harvest.counters().contended, 1);
        assert_eq!(harvest.tables().counters().refused, 1);
        assert_eq!(harvest.serves(DriveId::new(2), 0), Some(DriveId::new(0)));
    }

    #[test]
    fn one_lender_serves_several_borrowers_and_one_borrower_uses_several_lenders() {
        let config = HarvestConfig { processor_offers: 2, lenders_max: 3, ..Default::default() };
        let mut harvest = Harvest::new(3, config);
        periods(&mut harvest, &[reading(0.99), reading(0.99), reading(0.0)], 4);
        assert_eq!(
            (harvest.bindings(DriveId::new(0)).len(), harvest.bindings(DriveId::new(1)).len()),
            (1, 1),
            "both offers of drive 2"
        );
        let mut harvest = Harvest::new(3, config);
        periods(&mut harvest, &[reading(0.99), reading(0.0), reading(0.0)], 6);
        let lenders: Vec<DriveId> = harvest.bindings(DriveId::new(0)).iter().map(|binding| binding.lender).collect();
        assert_eq!(lenders.len(), 3);
        assert!(lenders.contains(&DriveId::new(1)) && lenders.contains(&DriveId::new(2)));
    }

    #[test]
    fn a_lender_that_becomes_busy_withdraws_and_lends_again_when_it_is_idle() {
        let mut harvest = Harvest::new(2, HarvestConfig::default());
        periods(&mut harvest, &[reading(0.99), reading(0.0)], 3);
        assert_eq!(harvest.bindings(DriveId::new(0)).len(), 1);
        periods(&mut harvest, &[reading(0.99), reading(0.95)], 3);
        assert!(harvest.bindings(DriveId::new(0)).is_empty());
        assert_eq!(harvest.counters().processors_returned, 1);
        periods(&mut harvest, &[reading(0.99), reading(0.0)], 4);
        assert_eq!(harvest.bindings(DriveId::new(0)).len(), 1);
    }

    #[test]
    fn a_lender_that_counts_lent_work_withdraws_when_its_cores_are_full_and_does_not_borrow_for_that() {
        for counts_lent in [false, true] {
            let mut harvest = Harvest::new(4, HarvestConfig { counts_lent, lenders_max: 1, ..Default::default() });
            let (burst, lending) = (reading(0.99), |processor| DriveReading { processor, ..reading(0.5) });
            // Neither lends nor borrows.
            let aside = DriveReading { data_end: 0.9, ..reading(0.9) };
            periods(&mut harvest, &[burst, lending(0.5), aside, aside], 3);
            periods(&mut harvest, &[burst, lending(0.79), aside, aside], 3);
            assert_eq!(harvest.bindings(DriveId::new(0)).len(), 1, "between the watermark and where lending stops");
            for withdrawn in [false, counts_lent] {
                periods(&mut harvest, &[burst, lending(0.9), aside, aside], 1);
                assert_eq!(harvest.tables().load(DriveId::new(1), 0).is_valid(), !withdrawn);
            }
            periods(&mut harvest, &[burst, lending(0.9), reading(0.0), reading(0.0)], 4);
            assert!(harvest.bindings(DriveId::new(1)).is_empty(), "its own commands keep it half busy");
        }
    }

    #[test]
    fn every_withdrawn_processor_has_the_same_number_of_periods() {
        let mut harvest = Harvest::new(2, HarvestConfig::default());
        let wait = |harvest: &mut Harvest, periods: u32| {
            for _ in 0..periods {
                harvest.tick_drive(DriveId::new(1), &reading(0.95), &curves(1)[0]);
            }
            harvest.counters().forced
        };
        periods(&mut harvest, &[reading(0.99), reading(0.0)], 3);
        assert_eq!(wait(&mut harvest, 3), 0, "it withdraws, and two periods have passed since");
        // The borrower lets go, and takes it again.
        periods(&mut harvest, &[reading(0.99), reading(0.0)], 6);
        assert_eq!(harvest.bindings(DriveId::new(0)).len(), 1);
        assert_eq!(wait(&mut harvest, 3), 0, "it withdraws again, and again two periods have passed since");
        assert_eq!(wait(&mut harvest, 1), 1);
    }

    fn missing(misses: u64) -> DriveReading {
        DriveReading { accesses: 1000, misses, ..reading(0.1) }
    }

    fn loan(lender: DriveId, offer: u16) -> LoanId {
        LoanId { lender, offer }
    }

    #[test]
    fn a_missing_drive_borrows_an_idle_peers_segments_and_returns_them_when_the_peer_needs_them() {
        let mut harvest = Harvest::new(2, HarvestConfig { memory_offers: 2, ..Default::default() });
        let seen = periods(&mut harvest, &[missing(500), reading(0.0)], 2);
        let attach = |offer, segments: &[u32], log_page| {
            let log_pages = Region::LogPage(log_page).address();
            HarvestAction::Attach {
                borrower: DriveId::new(0),
                loan: loan(DriveId::new(1), offer),
                segments: segments.to_vec(),
                log_pages,
            }
        };
        let own_pages = |pages| HarvestAction::SetOwnPages { drive: DriveId::new(1), pages };
        assert_eq!(seen, [own_pages(512), attach(0, &[1, 2, 3, 4], 0), attach(1, &[5, 6, 7], 4)]);
        let lent = [(0, 4), (1, 3)];
        assert_eq!(
            harvest.loans(),
            lent.map(|(offer, segments)| MemoryLoan {
                borrower: DriveId::new(0),
                loan: loan(DriveId::new(1), offer),
                segments
            })
        );
        let seen = periods(&mut harvest, &[missing(500), missing(500)], 2);
        let returns =
            [0, 1].map(|offer| HarvestAction::Return { borrower: DriveId::new(0), loan: loan(DriveId::new(1), offer) });
        assert_eq!(seen, returns);
        harvest.returned(DriveId::new(0), loan(DriveId::new(1), 1));
        assert_eq!(periods(&mut harvest, &[missing(500), missing(500)], 1), [own_pages(2048)]);
        harvest.returned(DriveId::new(0), loan(DriveId::new(1), 0));
        assert!(harvest.loans().is_empty());
        assert_eq!(periods(&mut harvest, &[missing(500), missing(500)], 1), [own_pages(4096)]);
    }

    fn seven_offers() -> HarvestConfig {
        HarvestConfig { memory_offers: 7, ..Default::default() }
    }

    #[test]
    fn a_borrower_takes_offers_until_its_predicted_misses_are_below_the_target() {
        let mut harvest = Harvest::new(3, seven_offers());
        // 40 % of the map are in memory and half of the accesses miss: 4916 pages of 8192 are absent, and a fifth of
        // them may stay absent.
        let needy = DriveReading { local_pages: 3276, ..missing(500) };
        periods(&mut harvest, &[needy, reading(0.0), reading(0.0)], 1);
        let segments: u32 = harvest.loans().iter().map(|lent| lent.segments).sum();
        assert_eq!(segments, 8, "3276 and 8 times 512 pages leave 820, which is below 983; 7 times leaves 1332");
        assert!(
            harvest.loans().iter().take(7).all(|lent| lent.loan.lender == DriveId::new(1)),
            "{:?}",
            harvest.loans()
        );
        // The remaining misses stay at the target or below it.
        for misses in [95, 100, 90, 60] {
            periods(&mut harvest, &[DriveReading { misses, ..needy }, reading(0.0), reading(0.0)], 1);
            assert_eq!(harvest.loans().len(), 8);
        }
        // It was not enough after all.
        periods(&mut harvest, &[DriveReading { misses: 300, ..needy }, reading(0.0), reading(0.0)], 2);
        assert!(harvest.loans().len() > 8);
    }

    #[test]
    fn a_borrower_uses_more_of_an_offer_that_it_holds_before_it_takes_another() {
        let mut harvest = Harvest::new(3, HarvestConfig { memory_offers: 1, ..Default::default() });
        let needy = DriveReading { local_pages: 7000, ..missing(500) };
        let used = |harvest: &Harvest| -> Vec<u32> { harvest.loans().iter().map(|lent| lent.segments).collect() };
        let others = [reading(0.0), reading(0.0)];
        periods(&mut harvest, &[needy, others[0], others[1]], 1);
        let first = used(&harvest);
        assert_eq!(first.len(), 1, "one offer does");
        let seen = periods(&mut harvest, &[DriveReading { misses: 110, ..needy }, others[0], others[1]], 2);
        let more = used(&harvest);
        assert!(more.len() == 1 && more[0] > first[0], "{first:?}, then {more:?}");
        let attached: usize = seen
            .iter()
            .map(|action| match action {
                HarvestAction::Attach { segments, .. } => segments.len(),
                _ => 0,
            })
            .sum();
        assert_eq!(attached as u32, more[0] - first[0]);
    }

    #[test]
    fn a_borrower_waits_until_what_it_took_is_full() {
        let mut harvest = Harvest::new(2, HarvestConfig { target_miss_ratio: 0.4, ..seven_offers() });
        let offers = |harvest: &Harvest| harvest.loans().len();
        periods(&mut harvest, &[missing(500), reading(0.0)], 2);
        assert_eq!(offers(&harvest), 2);
        periods(&mut harvest, &[DriveReading { borrowed_empty: 1, ..missing(500) }, reading(0.0)], 4);
        assert_eq!(offers(&harvest), 2);
        periods(&mut harvest, &[missing(500), reading(0.0)], 1);
        assert!(offers(&harvest) > 2);
    }

    #[test]
    fn surplus_memory_goes_back_one_offer_at_a_time_and_only_when_misses_are_well_below_the_target() {
        let mut harvest = Harvest::new(2, seven_offers());
        periods(&mut harvest, &[missing(500), reading(0.0)], 2);
        assert_eq!(harvest.loans().len(), 7);
        let seen = periods(&mut harvest, &[missing(60), reading(0.0)], 6);
        assert_eq!(seen, [], "below the target, but not by much");
        let mut harvest = Harvest::new(2, seven_offers());
        periods(&mut harvest, &[missing(500), reading(0.0)], 2);
        // A straight line to no memory: by the drive's curve, an offer less makes 6.6 % more misses.
        let seen = periods(&mut harvest, &[missing(0), reading(0.0)], 6);
        assert_eq!(seen, [], "without it there would be too many misses");
        let mut curves = curves(2);
        (0..400_000).for_each(|number| curves[0].access(number % 1000));
        for left in (0..7).rev() {
            for period in 0..3 {
                harvest.tick(&[missing(0), reading(0.0)], &curves);
                let seen = harvest.take_actions();
                let returned = HarvestAction::Return { borrower: DriveId::new(0), loan: loan(DriveId::new(1), left) };
                // A look at it after the last return has settled, and another one.
                let due = period == if left == 6 { 1 } else { 2 };
                assert_eq!(seen.contains(&returned), due, "offer {left}, period {period}: {seen:?}");
                if due {
                    harvest.returned(DriveId::new(0), loan(DriveId::new(1), left));
                    break;
                }
            }
        }
        assert!(harvest.loans().is_empty());
    }

    #[test]
    fn borrowers_of_one_instant_end_up_with_a_lender_each() {
        let mut harvest = Harvest::new(4, seven_offers());
        let readings = [missing(500), missing(500), reading(0.0), reading(0.0)];
        periods(&mut harvest, &readings[..], 2);
        assert_eq!(harvest.loans().len(), 14);
        let lenders = |borrower| {
            let of = harvest.loans().iter().filter(move |lent| lent.borrower == borrower);
            of.map(|lent| lent.loan.lender).collect::<Vec<_>>()
        };
        assert_eq!(
            (lenders(DriveId::new(0)), lenders(DriveId::new(1))),
            (vec![DriveId::new(2); 7], vec![DriveId::new(3); 7])
        );
    }

    #[test]
    fn a_borrower_that_does_not_let_go_in_time_loses_the_memory() {
        let mut harvest = Harvest::new(2, HarvestConfig { memory_offers: 2, ..Default::default() });
        periods(&mut harvest, &[missing(500), reading(0.0)], 2);
        let seen = periods(&mut harvest, &[missing(500), missing(500)], 6);
        for offer in 0..2 {
            let reused = HarvestAction::Reused { borrower: DriveId::new(0), loan: loan(DriveId::new(1), offer) };
            let lost = HarvestAction::Lost { borrower: DriveId::new(0), loan: loan(DriveId::new(1), offer) };
            assert!(seen.contains(&reused) && seen.contains(&lost), "{seen:?}");
        }
        assert_eq!(harvest.counters().forced, 2);
        assert!(harvest.loans().is_empty());
    }

    /// Outcome of a run of a few periods with a descriptor that is spoilt in the middle.
    fn outcome(index: u16, bit: Option<u32>) -> String {
        let mut harvest = Harvest::new(3, HarvestConfig { damping: 1.0, ..Default::default() });
        let busy = DriveReading { accesses: 1000, misses: 500, ..reading(0.9) };
        let readings = [busy, reading(0.2), DriveReading { processor_own: 0.9, ..reading(0.9) }];
        periods(&mut harvest, &readings, 3);
        assert!(
            harvest.tables().load(DriveId::new(1), index).borrower() == Some(DriveId::new(0)),
            "drive 0 holds the descriptor"
        );
        if let Some(bit) = bit {
            let tables = harvest.tables_mut();
            tables.update(DriveId::new(1), index, |now| super::super::Descriptor::from_word(now.word() ^ 1 << bit));
        }
        // The lender's next command, the host's next look, and one period of all drives.
        let serves = harvest.serves(DriveId::new(1), 0);
        harvest.tick_host();
        let bound: Vec<Binding> = harvest.bindings(DriveId::new(0)).to_vec();
        let seen = periods(&mut harvest, &readings, 1);
        format!("{serves:?} {bound:?} {seen:?} {:?}", harvest.counters())
    }

    #[test]
    fn every_bit_of_a_held_descriptor_acts_but_those_of_the_version() {
        for index in [0, 1] {
            let whole = outcome(index, None);
            assert_eq!(whole, outcome(index, None));
            for bit in 0..106 {
                assert_ne!(outcome(index, Some(bit)), whole, "bit {bit} of descriptor {index} changes nothing");
            }
        }
        // Memory has no limit; a processor's binds where it is below what would be lent.
        for bit in 106..112 {
            assert_ne!(outcome(0, Some(bit)), outcome(0, None), "bit {bit} of the limit changes nothing");
        }
    }

    #[test]
    fn a_compare_and_swap_fails_whatever_bit_has_changed_on_its_way() {
        for bit in 0..128 {
            let mut harvest = Harvest::new(2, HarvestConfig::default());
            let readings = [reading(0.99), reading(0.0)];
            for _ in 0..2 {
                harvest.tick(&readings, &curves(2));
            }
            harvest.tick(&readings, &curves(2));
            harvest.scanned(DriveId::new(0));
            assert!(
                harvest
                    .take_actions()
                    .contains(&HarvestAction::Swap { drive: DriveId::new(0), lender: DriveId::new(1) })
            );
            harvest
                .tables_mut()
                .update(DriveId::new(1), 0, |now| super::super::Descriptor::from_word(now.word() ^ 1 << bit));
            harvest.swap(DriveId::new(0));
            assert_eq!((harvest.counters().contended, harvest.counters().processors_taken), (1, 0), "bit {bit}");
        }
    }
}
