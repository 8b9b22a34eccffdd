//! The borrower's turn: what a drive takes from peers and gives back.
//!
//! Looking for an offer takes time: the drive's firmware loads every descriptor of its peers ([`super::scan`]), then
//! sends a compare-and-swap to the one it likes best. Another borrower may have come first: then it goes on to the
//! next.

use super::choice::{self, Candidate};
use super::descriptor::{Descriptor, DescriptorKind, MemoryInfo, ProcessorInfo};
use super::driver::OWN_QUEUE;
use super::harvest::{Harvest, HarvestAction, MemoryLoan};
use super::manager::{HeldMemory, HeldProcessor, Manager, Search};
use super::reading::DriveReading;
use super::trigger::TriggerAction;
use super::window::Region;
use flashyard_ssd::LoanId;
use flashyard_stats::{AnchoredCurve, Shards};
use flashyard_units::DriveId;

impl Harvest {
    /// Whether the drive's commands could use a peer's processor now; renews what it holds or gives it back.
    pub(super) fn borrow_processors(&mut self, drive: DriveId, reading: &DriveReading) -> bool {
        self.drop_lost_processors(drive);
        // The cores' work without lenders: their own work over the share that stayed home.
        let demand = reading.processor / (1.0 - reading.redirected).max(0.05);
        let pointless = demand < self.config.stop_borrowing_below || reading.data_end > self.config.data_end_saturated;
        let manager = &self.managers[drive.index()];
        if pointless && !manager.processors.is_empty() {
            self.release_processors(drive);
            return false;
        }
        let amount = self.config.indicator.amount(reading);
        for held in manager.processors.iter().filter(|held| self.reachable[held.lender.index()]) {
            self.tables.update(held.lender, held.index, |now| now.with_borrower_utilization(amount));
        }
        let busy = manager.trigger.action(&self.config) == TriggerAction::Borrow;
        busy && !manager.lending && manager.processors.len() < self.config.lenders_max as usize
    }

    /// Forgets processors whose lender has withdrawn, and tells it so.
    fn drop_lost_processors(&mut self, drive: DriveId) {
        let mut processors = std::mem::take(&mut self.managers[drive.index()].processors);
        processors.retain(|held| {
            // Of a lender out of reach the driver will tell.
            if !self.reachable[held.lender.index()] {
                return true;
            }
            let descriptor = self.tables.load(held.lender, held.index);
            let mine = is_held(descriptor, drive, DescriptorKind::Processor);
            if !mine {
                self.tables.update(held.lender, held.index, |now| released_by(now, drive));
                self.counters.processors_returned += 1;
            }
            mine
        });
        self.managers[drive.index()].processors = processors;
    }

    pub(super) fn release_processors(&mut self, drive: DriveId) {
        for held in std::mem::take(&mut self.managers[drive.index()].processors) {
            if self.reachable[held.lender.index()] {
                self.tables.update(held.lender, held.index, |now| released_by(now, drive));
            }
            self.counters.processors_returned += 1;
        }
    }

    /// The segments of peers that the drive needs now; begins to return what it does not need or what is withdrawn.
    ///
    /// It needs as many as bring the miss ratio that it predicts below the target, and takes them in one search. While
    /// what it took fills with pages, or is on its way back, misses say nothing about what it needs.
    pub(super) fn borrow_memory(&mut self, drive: DriveId, reading: &DriveReading, curve: &Shards) -> u32 {
        let mut held = std::mem::take(&mut self.managers[drive.index()].memories);
        held.retain_mut(|memory| self.keep_memory(drive, memory));
        let changing = held.iter().any(|memory| memory.returning) || reading.borrowed_empty > 0;
        let borrowed: u32 = held.iter().map(|memory| memory.segments).sum();
        let manager = &mut self.managers[drive.index()];
        manager.memories = held;
        manager.misses.read(reading, &self.config);
        let (false, Some(ratio)) = (changing, manager.misses.ratio()) else { return 0 };
        let have = reading.local_pages + borrowed * self.config.pages_per_segment;
        let curve = AnchoredCurve::new(curve, u64::from(reading.map_pages), u64::from(have), ratio);
        self.return_surplus(drive, have, &curve);
        if ratio <= self.config.target_miss_ratio || self.managers[drive.index()].segments_lent() > 0 {
            return 0;
        }
        let wanted = curve.steps_below(self.config.target_miss_ratio, u64::from(self.config.pages_per_segment)) as u32;
        let mut found = 0;
        for (loan, log_pages, segments) in more_of_held(&mut self.managers, &self.reachable, drive, wanted) {
            found += segments.len() as u32;
            let lent = self.loans.iter_mut().find(|lent| (lent.borrower, lent.loan) == (drive, loan));
            lent.into_iter().for_each(|lent| lent.segments += segments.len() as u32);
            self.actions.push(HarvestAction::Attach { borrower: drive, loan, segments, log_pages });
            self.managers[drive.index()].misses.settle();
        }
        wanted - found
    }

    /// Begins to return the offer taken last when the drive has not needed it for some periods: one at a time, and well
    /// below the target, so that it does not have to be taken again. [A] hysteresis
    fn return_surplus(&mut self, drive: DriveId, have: u32, curve: &AnchoredCurve) {
        let config = &self.config;
        let manager = &mut self.managers[drive.index()];
        let Some(last) = manager.memories.last_mut() else { return };
        let rest = have - last.segments * config.pages_per_segment;
        let needed = curve.miss_ratio(u64::from(rest)) >= config.target_miss_ratio / 2.0;
        manager.misses.surplus = if needed { 0 } else { manager.misses.surplus + 1 };
        if manager.misses.surplus >= config.samples && self.reachable[last.loan.lender.index()] {
            last.returning = true;
            self.actions.push(HarvestAction::Return { borrower: drive, loan: last.loan });
        }
    }

    /// Reads a held descriptor again. If it is no longer as it was taken, it is lost; if it was withdrawn, it is
    /// returned once its pages are home.
    fn keep_memory(&mut self, drive: DriveId, held: &mut HeldMemory) -> bool {
        let loan = held.loan;
        if !self.reachable[loan.lender.index()] {
            return true;
        }
        let descriptor = self.tables.load(loan.lender, self.config.memory_index(loan.offer));
        let mine = descriptor.borrower() == Some(drive)
            && descriptor.kind() == DescriptorKind::Memory
            && descriptor.amount() == held.offered
            && MemoryInfo::unpack(descriptor.info()) == held.info;
        if !mine {
            self.release_memory(drive, loan);
            self.actions.push(HarvestAction::Lost { borrower: drive, loan });
            self.end_loan(drive, loan);
            return false;
        }
        if !held.returning && !descriptor.is_valid() {
            held.returning = true;
            self.actions.push(HarvestAction::Return { borrower: drive, loan });
        }
        true
    }

    /// All pages that `drive` kept in the memory of `loan` are home: the descriptor is free again.
    pub fn returned(&mut self, drive: DriveId, loan: LoanId) {
        let memories = &mut self.managers[drive.index()].memories;
        let Some(position) = memories.iter().position(|held| held.loan == loan) else { return };
        memories.remove(position);
        if self.reachable[loan.lender.index()] {
            self.release_memory(drive, loan);
        }
        self.end_loan(drive, loan);
    }

    fn release_memory(&mut self, drive: DriveId, loan: LoanId) {
        let index = self.config.memory_index(loan.offer);
        self.tables.update(loan.lender, index, |now| released_by(now, drive));
    }

    pub(super) fn end_loan(&mut self, drive: DriveId, loan: LoanId) {
        self.loans.retain(|lent| (lent.borrower, lent.loan) != (drive, loan));
        self.managers[drive.index()].misses.settle();
        self.counters.memories_returned += 1;
    }

    /// Begins to look for offers: the firmware has to load peers' tables.
    pub(super) fn search(&mut self, drive: DriveId, processor: bool, memory: u32) {
        if (processor || memory > 0) && self.managers[drive.index()].search.is_none() {
            let reach = self.config.scan.first();
            self.send_scan(drive, Search { processor, memory, reach, found: Vec::new() });
        }
    }

    fn send_scan(&mut self, drive: DriveId, search: Search) {
        let peers = search.reach.peers(drive, self.managers.len() as u16, self.config.leaf_drives);
        if peers.is_empty() {
            return;
        }
        // A cache line holds four descriptors, those of processors first.
        let first = if search.processor { 0 } else { self.config.processor_offers / 4 };
        let memories = if search.memory > 0 { self.config.memory_offers } else { 0 };
        let lines = u64::from((self.config.processor_offers + memories).div_ceil(4) - first);
        self.managers[drive.index()].search = Some(search);
        self.actions.push(HarvestAction::Scan { drive, peers, lines });
    }

    /// The firmware of `drive` has read the tables: it sends a compare-and-swap to the best offer.
    pub fn scanned(&mut self, drive: DriveId) {
        let Some(mut search) = self.managers[drive.index()].search.take() else { return };
        let peers = search.reach.peers(drive, self.managers.len() as u16, self.config.leaf_drives);
        let mut processors: Vec<Candidate<(DriveId, u16, Descriptor)>> = Vec::new();
        let mut memories: Vec<(u32, (DriveId, u16, Descriptor))> = Vec::new();
        for lender in peers.into_iter().rev() {
            if !self.reachable[lender.index()] {
                continue;
            }
            let (first, first_memory) = (processors.len(), memories.len());
            let (mut holders, mut segments) = (0, 0);
            for index in (0..self.tables.per_drive() as u16).rev() {
                let descriptor = self.tables.load(lender, index);
                let free = descriptor.is_valid() && descriptor.borrower().is_none();
                match descriptor.kind() {
                    DescriptorKind::Processor if search.processor && free => {
                        let (_, utilization) = descriptor.utilizations();
                        processors.push(Candidate { offer: (lender, index, descriptor), utilization, holders: 0 });
                    }
                    DescriptorKind::Processor => holders += u32::from(descriptor.borrower().is_some()),
                    DescriptorKind::Memory => {
                        if search.memory > 0 && free && !self.knows_memory(drive, lender, index) {
                            segments += descriptor.amount();
                            memories.push((0, (lender, index, descriptor)));
                        }
                    }
                }
            }
            processors[first..].iter_mut().for_each(|candidate| candidate.holders = holders);
            memories[first_memory..].iter_mut().for_each(|(on_offer, _)| *on_offer = segments);
        }
        // Best last, of equals the nearest last: the sort is stable. Of memory the lender of most. [A] sheet xbof §3.2
        memories.sort_by_key(|&(on_offer, _)| on_offer);
        search.found.extend(memories.into_iter().map(|(_, offer)| offer));
        choice::order(self.config.lender_choice, &mut processors, &mut self.choosers[drive.index()]);
        search.found.extend(processors.into_iter().map(|candidate| candidate.offer));
        self.send_swap(drive, search);
    }

    fn send_swap(&mut self, drive: DriveId, search: Search) {
        if let Some(&(lender, ..)) = search.found.last() {
            self.managers[drive.index()].search = Some(search);
            self.actions.push(HarvestAction::Swap { drive, lender });
            return;
        }
        if let (true, Some(reach)) = (search.processor || search.memory > 0, search.reach.next()) {
            self.send_scan(drive, Search { reach, ..search });
        }
    }

    /// The compare-and-swap of `drive` reaches the descriptor it was sent to.
    pub fn swap(&mut self, drive: DriveId) {
        let Some(mut search) = self.managers[drive.index()].search.take() else { return };
        let Some((lender, index, read)) = search.found.pop() else { return };
        let kind = read.kind();
        let info = match kind {
            DescriptorKind::Processor => {
                let offered = ProcessorInfo::unpack(read.info());
                ProcessorInfo { directory: Region::Directory.address(), borrower_queue: OWN_QUEUE, ..offered }.pack()
            }
            DescriptorKind::Memory => {
                let log_pages = Region::LogPage(self.managers[drive.index()].free_log_page()).address();
                MemoryInfo { log_pages, ..MemoryInfo::unpack(read.info()) }.pack()
            }
        };
        let taken = read.taken(drive, info).filter(|&new| {
            self.reachable[lender.index()]
                && !(kind == DescriptorKind::Memory && self.knows_memory(drive, lender, index))
                && self.tables.compare_and_swap(lender, index, read, new).is_ok()
        });
        match (taken, kind) {
            (None, _) => {
                self.counters.contended += 1;
                search.avoid(lender);
            }
            (Some(_), DescriptorKind::Processor) => {
                search.processor = false;
                self.counters.processors_taken += 1;
                self.managers[drive.index()].processors.push(HeldProcessor { lender, index });
            }
            (Some(descriptor), DescriptorKind::Memory) => {
                let wanted = search.memory;
                search.memory = wanted.saturating_sub(descriptor.amount());
                self.attach(drive, (lender, index), descriptor, wanted);
            }
        }
        let (processor, memory) = (search.processor, search.memory);
        search.found.retain(|(.., descriptor)| match descriptor.kind() {
            DescriptorKind::Processor => processor,
            DescriptorKind::Memory => memory > 0,
        });
        self.send_swap(drive, search);
    }

    /// Reads the list of lent segments where the descriptor says it is, and uses as many of them as are wanted: enough for the target
    /// of misses, and no more. \[P\] §4.5
    fn attach(&mut self, drive: DriveId, (lender, index): (DriveId, u16), descriptor: Descriptor, wanted: u32) {
        let info = MemoryInfo::unpack(descriptor.info());
        let list = segment_list(&self.managers, lender, info);
        let Some(list) = list.filter(|list| list.len() == descriptor.amount() as usize && !list.is_empty()) else {
            self.tables.update(lender, index, |now| released_by(now, drive));
            self.counters.refused += 1;
            return;
        };
        let segments = list[..list.len().min(wanted as usize)].to_vec();
        let count = segments.len() as u32;
        self.counters.memories_taken += 1;
        let loan = LoanId { lender, offer: index - self.config.processor_offers as u16 };
        self.loans.push(MemoryLoan { borrower: drive, loan, segments: count });
        let manager = &mut self.managers[drive.index()];
        manager.memories.push(HeldMemory {
            loan,
            offered: descriptor.amount(),
            segments: count,
            info,
            returning: false,
        });
        manager.misses.settle();
        self.actions.push(HarvestAction::Attach { borrower: drive, loan, segments, log_pages: info.log_pages });
    }

    /// Whether the drive believes that it holds the descriptor. When it is free all the same, its lender has taken
    /// it back or restarted; it cannot be taken as another loan before the drive has noticed the end of this one.
    fn knows_memory(&self, drive: DriveId, lender: DriveId, index: u16) -> bool {
        let held = |held: &HeldMemory| (held.loan.lender, self.config.memory_index(held.loan.offer)) == (lender, index);
        self.managers[drive.index()].memories.iter().any(held)
    }
}

/// The list of segments to which a memory descriptor of a lender points.
fn segment_list(managers: &[Manager], lender: DriveId, info: MemoryInfo) -> Option<&[u32]> {
    match Region::at(info.segment_list) {
        Some(Region::SegmentList(number)) => managers[lender.index()].lists.get(number as usize).map(Vec::as_slice),
        _ => None,
    }
}

/// Segments of offers that a drive holds, which no other drive can take, up to so many beyond those that it uses: it uses them from now on.
fn more_of_held(
    managers: &mut [Manager],
    reachable: &[bool],
    drive: DriveId,
    mut wanted: u32,
) -> Vec<(LoanId, u32, Vec<u32>)> {
    let mut held = std::mem::take(&mut managers[drive.index()].memories);
    let mut more = Vec::new();
    for memory in held.iter_mut().filter(|memory| !memory.returning && reachable[memory.loan.lender.index()]) {
        let list = segment_list(managers, memory.loan.lender, memory.info).unwrap_or_default();
        let segments: Vec<u32> = list.iter().skip(memory.segments as usize).take(wanted as usize).copied().collect();
        wanted -= segments.len() as u32;
        memory.segments += segments.len() as u32;
        if !segments.is_empty() {
            more.push((memory.loan, memory.info.log_pages, segments));
        }
    }
    managers[drive.index()].memories = held;
    more
}

fn is_held(descriptor: Descriptor, drive: DriveId, kind: DescriptorKind) -> bool {
    descriptor.is_valid() && descriptor.kind() == kind && descriptor.borrower() == Some(drive)
}

/// Clears the borrower id, unless it is another's by now.
pub(super) fn released_by(descriptor: Descriptor, drive: DriveId) -> Descriptor {
    if descriptor.borrower() == Some(drive) { descriptor.released() } else { descriptor }
}
