//! Lending: commands find cores, and maps find memory, at peers as well.
//!
//! The driver draws for each command whether it goes home or to a lender ([`Lending::choose`]); a lender's firmware
//! walks the owner's map and hands wrapped operations to the owner's agent (`command.rs`). Every period the managers of
//! the drives and the hosts' driver read monitors and descriptors, and what they decide is carried out (`periods.rs`).
//! Source: [P] sheet xbof §3.

mod command;
mod costs;
mod ledger;
mod periods;
mod search;
#[cfg(test)]
mod tests;

pub(super) use costs::MappingCosts;
pub(super) use ledger::LendingLedger;
pub use search::SearchFigures;
pub(super) use search::scan_of;

use super::enclosure::Enclosure;
use super::request::Request;
use crate::xbof::{Harvest, HarvestConfig, MappingLocks, MemoryLoan, Message, MessageRing, Rings};
use flashyard_kernel::Rng;
use flashyard_measure::Stream;
use flashyard_ssd::{CommandSpec, LoanId, Operation, SegmentState, Translation};
use flashyard_stats::Shards;
use flashyard_units::{DriveId, SimSpan, SimTime};

/// The first of a drive's shadow queues, behind its agent's and its own.
pub(super) const SHADOW_QUEUES: usize = 2;

/// Where the firmware of a command runs.
#[derive(Clone, Copy, Debug)]
struct Route {
    /// The drive whose cores run it: the command's own, or a lender.
    compute: DriveId,
    /// The lender's offer when `compute` is a lender.
    offer: u16,
    /// The generation of the owner's ring that the lender knew when it took the command.
    generation: u16,
    /// In a shadow queue, or on a lender's core from it.
    in_shadow: bool,
    /// Core time of a command that a lender has taken.
    busy: SimSpan,
}

/// Counter readings at the last tick.
#[derive(Clone, Copy, Default)]
struct TickMark {
    busy: SimSpan,
    waited: SimSpan,
    jobs: u64,
    lent: SimSpan,
    bus: SimSpan,
    array: SimSpan,
    accesses: u64,
    misses: u64,
    executed: u64,
    redirected: u64,
}

/// All state of a design whose drives lend each other cores or memory. Vectors are by drive, or by request where said.
pub(super) struct Lending {
    pub(super) harvest: Harvest,
    /// By request.
    routes: Vec<Route>,
    /// The message queues, by owner and lender.
    rings: Rings,
    /// Translations that lenders found in owners' maps for commands in message queues, by request.
    translations: Vec<Option<Translation>>,
    /// Room for the messages of one command.
    messages: Vec<Message>,
    /// Locks of each drive's map.
    locks: Vec<MappingLocks>,
    /// Commands of each drive whose firmware ran on lenders.
    served_by_lenders: Vec<u64>,
    /// Operations that the agent of each drive was paid for.
    unwrapped: Vec<u64>,
    curves: Vec<Shards>,
    /// When the curves last forgot half of what they knew.
    faded: SimTime,
    /// Time that jobs have waited for a core, of jobs that have run.
    waited: Vec<SimSpan>,
    pub(super) ledger: LendingLedger,
    pub(super) search: SearchFigures,
    marks: Vec<TickMark>,
    rng: Rng,
    /// Commands that the driver sent to lenders.
    pub(super) redirected: u64,
}

impl Lending {
    /// Managers in which nothing is lent yet; `seed` is that of the run.
    pub(super) fn new(enclosure: &Enclosure, seed: u64) -> Self {
        let config = &enclosure.config;
        let harvest = HarvestConfig {
            processors: config.harvest.processors && config.design.harvests_processors(),
            memory: config.harvest.memory && config.design.harvests_memory(),
            leaf_drives: config.fabric.radix,
            ..config.harvest
        };
        let pairs = enclosure.drives.iter().zip(&enclosure.models);
        let keys = pairs.map(|(drive, model)| if drive.data.cache.is_complete() { 1 } else { model.map_pages() });
        let count = config.drives as usize;
        Self {
            harvest: Harvest::new(config.drives, harvest),
            routes: Vec::new(),
            rings: Rings::new(count),
            translations: Vec::new(),
            messages: Vec::new(),
            locks: (0..count).map(|_| MappingLocks::default()).collect(),
            served_by_lenders: vec![0; count],
            unwrapped: vec![0; count],
            faded: SimTime::ZERO,
            curves: keys.map(|keys| Shards::new(keys, 8192)).collect(),
            waited: vec![SimSpan::ZERO; count],
            ledger: LendingLedger::new(count),
            search: SearchFigures::new(count),
            marks: vec![TickMark::default(); count],
            rng: Rng::named(seed, "host.redirect"),
            redirected: 0,
        }
    }

    /// The driver's draw: to a lender, or home.
    #[inline]
    pub(super) fn choose(&mut self, now: SimTime, id: u32, request: &Request, streams: &[Stream]) {
        let drive = request.drive;
        let home = Route { compute: drive, offer: 0, generation: 0, in_shadow: false, busy: SimSpan::ZERO };
        if self.routes.len() <= id as usize {
            self.routes.resize(id as usize + 1, home);
        }
        self.routes[id as usize] = home;
        // Messages between drives know these operations and no others.
        let stays = !matches!(request.operation, Operation::Read | Operation::Write | Operation::Trim);
        if self.harvest.bindings(drive).is_empty() || stays {
            return;
        }
        // There would never be room for its messages.
        if costs::entries(request) > MessageRing::ENTRIES {
            return;
        }
        if let Some((lender, offer)) = self.harvest.driver().route(drive, self.rng.unit()) {
            self.harvest.driver_mut().enter(lender, offer);
            self.routes[id as usize] = Route { compute: lender, offer, in_shadow: true, ..home };
            self.redirected += 1;
            let started = || streams.get(request.stream as usize).map_or(SimTime::ZERO, |stream| stream.start);
            self.search.note_redirected(now, drive, started);
        }
    }

    /// The drive whose cores run the firmware of request `id` of `drive`.
    #[inline]
    pub(super) fn compute(&self, id: u32, drive: DriveId) -> DriveId {
        self.routes.get(id as usize).map_or(drive, |route| route.compute)
    }

    /// A request has this number now, and its driver has not sent it yet.
    pub(super) fn begin(&mut self, id: u32, drive: DriveId) {
        if let Some(route) = self.routes.get_mut(id as usize) {
            *route = Route { compute: drive, offer: 0, generation: 0, in_shadow: false, busy: SimSpan::ZERO };
        }
    }

    /// A job that has run had waited so long for a core of `drive`.
    #[inline]
    pub(super) fn note_wait(&mut self, drive: DriveId, waited: SimSpan) {
        self.waited[drive.index()] += waited;
    }

    /// Feeds the miss-ratio curve of a drive.
    #[inline]
    pub(super) fn track_misses(&mut self, drive: DriveId, spec: &CommandSpec) {
        if spec.operation == Operation::Flush {
            return;
        }
        let curve = &mut self.curves[drive.index()];
        let per_page = flashyard_ftl::SLOTS_PER_TRANSLATION_PAGE;
        for page in spec.first / per_page..=(spec.first + spec.count - 1) / per_page {
            curve.access(page);
        }
    }

    /// An access of before the run, to a page of the map of `drive`.
    pub(super) fn warm_curve(&mut self, drive: usize, page: u32) {
        self.curves[drive].access(page);
    }

    /// Commands that message queues hold; one may come several times.
    pub(super) fn commands(&self) -> impl Iterator<Item = u32> + '_ {
        self.rings.commands()
    }

    /// The driver has given `drive` up: its queues are closed.
    pub(super) fn close_rings(&mut self, drive: DriveId) {
        self.rings.close(drive);
    }

    /// Peers hear that `drive` was given up.
    pub(super) fn drive_lost(&mut self, enclosure: &mut Enclosure, now: SimTime, drive: DriveId) {
        self.account_loans(now);
        self.harvest.drive_lost(drive);
        self.carry_out(enclosure, now);
    }

    /// Books the memory lent since the last account; to be called before loans change.
    pub(super) fn account_loans(&mut self, now: SimTime) {
        self.ledger.account_loans(now, self.harvest.loans());
    }

    /// Books the shares of commands that went to lenders since the last account; to be called before the driver moves
    /// them.
    pub(super) fn account_shares(&mut self, now: SimTime) {
        self.ledger.account_shares(now, self.harvest.driver());
    }

    /// Resources without an owner once everything has settled.
    pub(super) fn leaks(&self, enclosure: &Enclosure) -> Vec<String> {
        let mut leaks = self.harvest.leaks();
        let drives = enclosure.drives.len() as u16;
        for borrower in DriveId::first(drives) {
            let offers = 0..self.harvest.config().memory_offers as u16;
            let loans =
                DriveId::first(drives).flat_map(|lender| offers.clone().map(move |offer| LoanId { lender, offer }));
            leaks.extend(loans.filter_map(|loan| self.leaked_segments(enclosure, borrower, loan)));
        }
        let translations = self.translations.iter().flatten().count();
        if translations > 0 {
            leaks.push(format!("{translations} translations that no command will use"));
        }
        leaks
    }

    /// Segments of `loan` that `borrower` keeps beyond those lent to it, in words.
    fn leaked_segments(&self, enclosure: &Enclosure, borrower: DriveId, loan: LoanId) -> Option<String> {
        let segments = enclosure.drives[borrower.index()].data.segments_of(loan);
        // A loan that is being returned has segments in neither state.
        let kept = segments.filter(|(_, state)| *state != SegmentState::Returning).count() as u32;
        let is_it = |lent: &&MemoryLoan| (lent.borrower, lent.loan) == (borrower, loan);
        let lent: u32 = self.harvest.loans().iter().filter(is_it).map(|lent| lent.segments).sum();
        let LoanId { lender, offer } = loan;
        (kept > lent).then(|| {
            format!("drive {borrower} keeps {kept} segments of offer {offer} of drive {lender}, which lends {lent}")
        })
    }
}
