//! The host driver's part: shadow queue pairs, their bindings, and the draw that redirects commands.
//!
//! Every period the driver reads all processor descriptors. A taken descriptor binds the borrower's queue pair to the
//! lender's shadow queue pair, both named by it; a descriptor no longer taken unbinds them, and the shadow queue
//! pair can be bound again once it is drained. Source: [P] sheet xbof §3.4, §3.9.

use super::balance::{BalanceRule, LenderLoad, demand, limited_share, water_filling};
use super::config::HarvestConfig;
use super::descriptor::{DescriptorKind, ProcessorInfo};
use super::sensing::Record;
use super::table::ResourceTables;
use flashyard_kernel::Rng;
use flashyard_units::DriveId;

/// Completion queue id of a drive's own queue pair for input and output; 0 is the admin queue. [X] NVMe
pub const OWN_QUEUE: u16 = 1;

/// Completion queue id of the shadow queue pair that is reserved for a processor offer.
pub const fn shadow_queue(offer: u16) -> u16 {
    OWN_QUEUE + 1 + offer
}

/// A borrower's queue pair bound to a shadow queue pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binding {
    /// The lender.
    pub lender: DriveId,
    /// Which of its offers, and so which of its shadow queue pairs.
    pub offer: u16,
    /// Share of this lender and the borrower alone that goes to the lender (the balance law's p).
    pub share: f64,
    /// Upper edge of this binding's part of a uniform draw.
    edge: f64,
}

/// Counters of the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCounters {
    /// Shadow queue pairs bound.
    pub bound: u64,
    /// Shadow queue pairs unbound.
    pub unbound: u64,
    /// Taken descriptors that name queue pairs which do not exist.
    pub refused: u64,
}

/// A shadow queue pair, created when the drives are initialized.
#[derive(Clone, Copy, Default)]
struct Shadow {
    borrower: Option<DriveId>,
    /// Commands in the queue, or on a core from it.
    in_flight: u32,
}

/// The driver's view of all drives.
pub struct Driver {
    offers: usize,
    shadows: Vec<Shadow>,
    bindings: Vec<Vec<Binding>>,
    /// Utilizations seen and shares sent, one record for each shadow queue pair: of its binding.
    records: Vec<Record>,
    rng: Rng,
    /// Load that borrowers balanced before have been given on each lender in this period, beyond what was measured.
    moved: Vec<f64>,
    /// The lenders of the borrower being balanced, and what the rule gives them.
    loads: Vec<LenderLoad>,
    shares: Vec<f64>,
    /// Drives that had commands of their own in the last period: they go through the driver.
    has_own: Vec<bool>,
    counters: DriverCounters,
}

impl Driver {
    /// A driver of `drives` drives with `offers` shadow queue pairs each, none bound. `seed` is that of the noise.
    pub fn new(drives: usize, offers: usize, seed: u64) -> Self {
        Self {
            offers,
            shadows: vec![Shadow::default(); drives * offers],
            bindings: vec![Vec::new(); drives],
            records: vec![Record::default(); drives * offers],
            rng: Rng::named(seed, "harvest.sensing"),
            moved: vec![0.0; drives],
            loads: Vec::new(),
            shares: Vec::new(),
            has_own: vec![false; drives],
            counters: DriverCounters::default(),
        }
    }

    /// Whether `drive` had commands of its own in the last period.
    pub(super) fn note_own(&mut self, drive: DriveId, has_own: bool) {
        self.has_own[drive.index()] = has_own;
    }

    /// Whether `drive` had commands of its own when its last period ended.
    pub fn has_own(&self, drive: DriveId) -> bool {
        self.has_own[drive.index()]
    }

    /// Counters so far.
    pub fn counters(&self) -> &DriverCounters {
        &self.counters
    }

    /// The lenders that `borrower`'s commands may go to.
    #[inline]
    pub fn bindings(&self, borrower: DriveId) -> &[Binding] {
        &self.bindings[borrower.index()]
    }

    /// Where a command of `borrower` goes for a uniform `draw` in [0, 1): a lender and its offer, or home.
    #[inline]
    pub fn route(&self, borrower: DriveId, draw: f64) -> Option<(DriveId, u16)> {
        let bindings = &self.bindings[borrower.index()];
        bindings.iter().find(|binding| draw < binding.edge).map(|binding| (binding.lender, binding.offer))
    }

    /// The share of `borrower`'s commands that goes to lenders.
    pub fn redirected(&self, borrower: DriveId) -> f64 {
        self.bindings[borrower.index()].last().map_or(0.0, |binding| binding.edge)
    }

    /// A command enters a shadow queue.
    #[inline]
    pub fn enter(&mut self, lender: DriveId, offer: u16) {
        self.shadow(lender, offer).in_flight += 1;
    }

    /// A command from a shadow queue has left its core, or was given up.
    #[inline]
    pub fn leave(&mut self, lender: DriveId, offer: u16) {
        self.shadow(lender, offer).in_flight -= 1;
    }

    /// Whether a shadow queue pair is neither bound nor draining.
    pub fn is_free(&self, lender: DriveId, offer: u16) -> bool {
        let shadow = &self.shadows[lender.index() * self.offers + offer as usize];
        shadow.borrower.is_none() && shadow.in_flight == 0
    }

    /// One period: reads the processor descriptors of all drives, binds and unbinds, and moves the shares.
    /// Offers of a lender out of reach stay as they were until the drive is given up.
    pub fn tick(&mut self, tables: &ResourceTables, reachable: &[bool], config: &HarvestConfig) {
        let drives = self.bindings.len();
        for lender in DriveId::first(drives as u16).filter(|&lender| reachable[lender.index()]) {
            for offer in 0..self.offers as u16 {
                self.follow(tables, lender, offer);
            }
        }
        self.moved.fill(0.0);
        for borrower in 0..drives {
            match config.balance {
                BalanceRule::Literal => self.approach_law(tables, borrower, config, 1.0),
                BalanceRule::Damped => self.approach_law(tables, borrower, config, config.damping),
                BalanceRule::WaterFilling => self.fill(tables, borrower, config),
            }
        }
    }

    /// Takes back every binding of `drive`, as borrower and as lender. What is in its shadow queues drains.
    pub fn forget(&mut self, drive: DriveId) {
        for lender in DriveId::first(self.bindings.len() as u16) {
            for offer in 0..self.offers as u16 {
                if lender == drive || self.shadow(lender, offer).borrower == Some(drive) {
                    self.unbind(lender, offer);
                }
            }
        }
    }

    /// Shadow queues that hold commands: when no request is under way there are none.
    pub fn leaks(&self) -> Vec<String> {
        let held = self.shadows.iter().enumerate().filter(|(_, shadow)| shadow.in_flight > 0);
        held.map(|(place, shadow)| {
            format!(
                "{} commands in shadow queue {} of drive {}",
                shadow.in_flight,
                place % self.offers,
                place / self.offers
            )
        })
        .collect()
    }

    fn follow(&mut self, tables: &ResourceTables, lender: DriveId, offer: u16) {
        let descriptor = tables.load(lender, offer);
        let taken = descriptor.is_valid() && descriptor.kind() == DescriptorKind::Processor;
        let borrower = descriptor.borrower().filter(|_| taken);
        let info = ProcessorInfo::unpack(descriptor.info());
        let wanted = borrower.filter(|&borrower| {
            borrower.index() < self.bindings.len()
                && borrower != lender
                && info.borrower_queue == OWN_QUEUE
                && info.shadow_queue == shadow_queue(offer)
        });
        self.counters.refused += u64::from(borrower.is_some() && wanted.is_none());
        if self.shadow(lender, offer).borrower == wanted {
            return;
        }
        self.unbind(lender, offer);
        if let Some(borrower) = wanted
            && self.shadow(lender, offer).in_flight == 0
        {
            self.shadow(lender, offer).borrower = Some(borrower);
            self.counters.bound += 1;
            self.records[lender.index() * self.offers + offer as usize] = Record::default();
            self.bindings[borrower.index()].push(Binding { lender, offer, share: 0.0, edge: 0.0 });
        }
    }

    fn unbind(&mut self, lender: DriveId, offer: u16) {
        if let Some(borrower) = self.shadow(lender, offer).borrower.take() {
            self.counters.unbound += 1;
            let bindings = &mut self.bindings[borrower.index()];
            bindings.retain(|binding| (binding.lender, binding.offer) != (lender, offer));
            lay_out(bindings);
        }
    }

    /// Moves every share by `step` towards the balance law, with the utilizations that the descriptors name.
    fn approach_law(&mut self, tables: &ResourceTables, borrower: usize, config: &HarvestConfig, step: f64) {
        for binding in &mut self.bindings[borrower] {
            let descriptor = tables.load(binding.lender, binding.offer);
            let record = &mut self.records[binding.lender.index() * self.offers + binding.offer as usize];
            let (own, lender) = record.sense(descriptor.utilizations(), &config.sensing, &mut self.rng);
            let weights = config.weights_beside(self.has_own[binding.lender.index()]);
            let law = config.indicator.share(lender, own, &weights);
            binding.share += step * (law - binding.share);
            binding.share = binding.share.min(limited_share(descriptor.limit(), own));
        }
        lay_out(&mut self.bindings[borrower]);
    }

    /// Moves the shares towards those that make the borrower and all of its lenders equally busy. Borrowers take turns:
    /// each reckons with what those before it have just been given.
    fn fill(&mut self, tables: &ResourceTables, borrower: usize, config: &HarvestConfig) {
        let Self { bindings, records, loads, shares, moved, rng, offers, .. } = self;
        let (bindings, sensing) = (&mut bindings[borrower], &config.sensing);
        let place = |binding: &Binding| binding.lender.index() * *offers + binding.offer as usize;
        loads.clear();
        let mut own: f64 = 0.0;
        for binding in bindings.iter() {
            let descriptor = tables.load(binding.lender, binding.offer);
            let (seen, lender) = records[place(binding)].sense(descriptor.utilizations(), sensing, rng);
            // Every descriptor names the borrower's utilization; a descriptor that it has not written yet says nothing.
            own = own.max(seen);
            loads.push(LenderLoad { own: lender, limit: descriptor.limit() });
        }
        let home = 1.0 - bindings.iter().map(|binding| records[place(binding)].sent(sensing)).sum::<f64>();
        let demand = demand(own, home);
        for (binding, load) in bindings.iter().zip(loads.iter_mut()) {
            let lent = records[place(binding)].sent(sensing) * demand;
            load.own = (load.own - lent).max(0.0) + moved[binding.lender.index()];
        }
        water_filling(demand, loads, shares);
        for ((share, binding), load) in shares.iter_mut().zip(bindings.iter()).zip(loads.iter()) {
            let now = records[place(binding)].latest();
            // A limit holds at once.
            *share = (now + config.damping * (*share - now)).min(load.limit / demand);
        }
        let kept = (1.0 - shares.iter().sum::<f64>()).max(0.01);
        for (binding, &share) in bindings.iter_mut().zip(shares.iter()) {
            let record = &mut records[place(binding)];
            moved[binding.lender.index()] += (share - record.sent(sensing)) * demand;
            record.send(share);
            binding.share = share / (share + kept);
        }
        lay_out(bindings);
    }

    fn shadow(&mut self, lender: DriveId, offer: u16) -> &mut Shadow {
        &mut self.shadows[lender.index() * self.offers + offer as usize]
    }
}

/// Divides the draw: p of one lender means p / (1 - p) commands there for each at home.
fn lay_out(bindings: &mut [Binding]) {
    let odds = |share: f64| share / (1.0 - share).max(0.01);
    let total = 1.0 + bindings.iter().map(|binding| odds(binding.share)).sum::<f64>();
    let mut edge = 0.0;
    for binding in bindings {
        edge += odds(binding.share) / total;
        binding.edge = edge;
    }
}

#[cfg(test)]
mod tests {
    use super::super::descriptor::Descriptor;
    use super::*;
    use flashyard_units::{DriveId, Named};

    fn taken(tables: &mut ResourceTables, info: ProcessorInfo) {
        tables.update(DriveId::new(1), 0, |descriptor| {
            let offer = descriptor.offered(DescriptorKind::Processor, 0, 0).with_lender_utilization(0.1);
            offer.taken(DriveId::new(0), info.pack()).expect("free").with_borrower_utilization(0.9)
        });
    }

    const INFO: ProcessorInfo =
        ProcessorInfo { directory: 0, borrower_queue: OWN_QUEUE, shadow_queue: shadow_queue(0) };

    #[test]
    fn a_taken_descriptor_binds_and_a_released_one_is_bound_again_only_once_drained() {
        let (mut tables, mut driver) = (ResourceTables::new(3, 1), Driver::new(3, 1, 0));
        let config = HarvestConfig::default();
        taken(&mut tables, INFO);
        driver.tick(&tables, &[true; 3], &config);
        assert!(driver.bindings(DriveId::new(0))[0].share > 0.3);
        assert_eq!(driver.route(DriveId::new(0), 0.0), Some((DriveId::new(1), 0)));
        assert_eq!(driver.route(DriveId::new(0), 0.999), None);
        driver.enter(DriveId::new(1), 0);
        tables.update(DriveId::new(1), 0, Descriptor::released);
        tables.update(DriveId::new(1), 0, |free| free.taken(DriveId::new(2), INFO.pack()).expect("free"));
        driver.tick(&tables, &[true; 3], &config);
        assert!(
            driver.bindings(DriveId::new(0)).is_empty() && driver.bindings(DriveId::new(2)).is_empty(),
            "a command of drive 0 is in the queue"
        );
        driver.leave(DriveId::new(1), 0);
        driver.tick(&tables, &[true; 3], &config);
        assert_eq!((driver.bindings(DriveId::new(0)).len(), driver.bindings(DriveId::new(2)).len()), (0, 1));
    }

    #[test]
    fn a_lender_gives_its_shadow_queue_the_low_weight_while_it_has_commands_of_its_own() {
        let config = HarvestConfig { reserves: true, damping: 1.0, ..Default::default() };
        let share = |has_own| {
            let (mut tables, mut driver) = (ResourceTables::new(3, 1), Driver::new(3, 1, 0));
            taken(&mut tables, INFO);
            driver.note_own(DriveId::new(1), has_own);
            driver.tick(&tables, &[true; 3], &config);
            driver.bindings(DriveId::new(0))[0].share
        };
        // Utilizations of 0.9 and 0.1, to the steps of the descriptor.
        assert!((share(false) - 0.9).abs() < 1e-4, "equal weights");
        assert!((share(true) - 0.75).abs() < 1e-4, "three of all weights to one of the shadow queue");
        assert_eq!([false, true].map(|has_own| config.shadow_weight(has_own)), [2, 1]);
        let always_low = HarvestConfig { reserves: false, ..config };
        assert_eq!([false, true].map(|has_own| always_low.shadow_weight(has_own)), [1, 1]);
    }

    #[test]
    fn water_filling_gives_two_lenders_what_each_has_left() {
        let (mut tables, mut driver) = (ResourceTables::new(3, 1), Driver::new(3, 1, 0));
        let config = HarvestConfig { balance: BalanceRule::WaterFilling, ..Default::default() };
        for lender in [1, 2] {
            tables.update(DriveId::new(lender), 0, |descriptor| {
                descriptor.offered(DescriptorKind::Processor, 0, 0).taken(DriveId::new(0), INFO.pack()).expect("free")
            });
        }
        // A demand of 1.2 drives; one lender is busy to 30 % with its own, the other idle: (1.2 + 0.3) / 3 each.
        for _ in 0..20 {
            let shares: Vec<f64> = (1..3)
                .map(|lender| {
                    let binding =
                        driver.bindings(DriveId::new(0)).iter().find(|binding| binding.lender == DriveId::new(lender));
                    binding.map_or(0.0, |binding| driver.records[binding.lender.index()].sent(&config.sensing))
                })
                .collect();
            let own = (1.2 * (1.0 - shares[0] - shares[1])).min(1.0);
            for (lender, alone) in [(1, 0.3), (2, 0.0)] {
                tables.update(DriveId::new(lender), 0, |now| {
                    let busy = alone + 1.2 * shares[usize::from(lender) - 1];
                    now.with_borrower_utilization(own).with_lender_utilization(busy)
                });
            }
            driver.tick(&tables, &[true; 3], &config);
        }
        assert!(
            (driver.redirected(DriveId::new(0)) - 0.7 / 1.2).abs() < 0.01,
            "{}",
            driver.redirected(DriveId::new(0))
        );
        let first = driver.records[1].sent(&config.sensing);
        assert!((first - 0.2 / 1.2).abs() < 0.01, "{first}");
    }

    #[test]
    fn a_lenders_limit_holds_under_every_rule() {
        for &balance in BalanceRule::ALL {
            let (mut tables, mut driver) = (ResourceTables::new(2, 1), Driver::new(2, 1, 0));
            let config = HarvestConfig { balance, ..Default::default() };
            taken(&mut tables, INFO);
            tables.update(DriveId::new(1), 0, |now| now.with_limit(0.1));
            for _ in 0..40 {
                let share = driver.redirected(DriveId::new(0));
                tables.update(DriveId::new(1), 0, |now| {
                    now.with_borrower_utilization(0.9 * (1.0 - share)).with_lender_utilization(0.9 * share)
                });
                driver.tick(&tables, &[true; 2], &config);
            }
            let lent = driver.redirected(DriveId::new(0)) * 0.9;
            assert!((0.09..0.101).contains(&lent), "{balance:?} lends {lent}");
        }
    }

    #[test]
    fn queue_pairs_that_do_not_exist_are_not_bound() {
        for info in [ProcessorInfo { borrower_queue: 2, ..INFO }, ProcessorInfo { shadow_queue: 3, ..INFO }] {
            let (mut tables, mut driver) = (ResourceTables::new(2, 1), Driver::new(2, 1, 0));
            taken(&mut tables, info);
            driver.tick(&tables, &[true; 2], &HarvestConfig::default());
            assert!(driver.bindings(DriveId::new(0)).is_empty());
            assert_eq!(driver.counters().refused, 1);
        }
    }
}
