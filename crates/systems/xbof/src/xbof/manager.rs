//! The resource manager of one drive: what it holds of peers, what it lends, and where its search for offers stands.

use super::config::HarvestConfig;
use super::descriptor::{Descriptor, DescriptorKind, MemoryInfo};
use super::guard::LenderGuard;
use super::misses::MissMonitor;
use super::scan::Reach;
use super::trigger::ProcessorTrigger;
use super::window::Region;
use flashyard_ssd::LoanId;
use flashyard_units::DriveId;

/// A memory descriptor that a drive holds, as it was when the drive took it.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldMemory {
    pub(super) loan: LoanId,
    /// Segments that the descriptor offers.
    pub(super) offered: u32,
    /// Those of them that the drive uses: the first ones.
    pub(super) segments: u32,
    pub(super) info: MemoryInfo,
    /// The pages in it are being copied home.
    pub(super) returning: bool,
}

/// A processor descriptor that a drive holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldProcessor {
    pub(super) lender: DriveId,
    pub(super) index: u16,
}

/// A drive looking for offers.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    pub(super) processor: bool,
    /// Segments still wanted.
    pub(super) memory: u32,
    /// The peers whose tables it reads.
    pub(super) reach: Reach,
    /// Offers found, the best last: lender, index, and the descriptor as it was read.
    pub(super) found: Vec<(DriveId, u16, Descriptor)>,
}

impl Search {
    /// Another borrower takes memory of `lender`: its other offers come after those of other lenders, so that borrowers
    /// of one instant do not get a share of every lender and with it of every lender's failures. [A]
    pub(super) fn avoid(&mut self, lender: DriveId) {
        let (last, mut first): (Vec<_>, Vec<_>) = std::mem::take(&mut self.found)
            .into_iter()
            .partition(|(from, _, offer)| *from == lender && offer.kind() == DescriptorKind::Memory);
        self.found = last;
        self.found.append(&mut first);
    }
}

/// One drive's resource manager.
#[derive(Default)]
pub(super) struct Manager {
    pub(super) trigger: ProcessorTrigger,
    pub(super) lending: bool,
    /// Samples in a row above the utilization where lending stops.
    pub(super) full: u32,
    pub(super) processors: Vec<HeldProcessor>,
    pub(super) memories: Vec<HeldMemory>,
    pub(super) misses: MissMonitor,
    pub(super) search: Option<Search>,
    /// The segment lists in the drive's exposed memory, one for each memory descriptor.
    pub(super) lists: Vec<Vec<u32>>,
    /// Periods since each descriptor was withdrawn.
    pub(super) waited: Vec<u32>,
    /// The borrower of each shadow queue's commands, as last read from a taken descriptor.
    pub(super) serving: Vec<Option<DriveId>>,
    /// Translation pages of its own memory, by the last reading.
    pub(super) local_pages: u32,
    /// Holds what lending costs the drive's own commands to a cap, when there is one.
    pub(super) guard: Option<Box<LenderGuard>>,
    /// Wants everything back that it lends: set by [`super::Harvest::withdraw`] for one period.
    pub(super) withdrawing: bool,
}

impl Manager {
    pub(super) fn new(config: &HarvestConfig) -> Self {
        let (processors, memories) = (config.processor_offers as usize, config.memory_offers as usize);
        Self {
            lists: vec![Vec::new(); memories],
            waited: vec![0; processors + memories],
            serving: vec![None; processors],
            guard: config.lender_p99_cap.map(|cap| Box::new(LenderGuard::new(cap))),
            ..Self::default()
        }
    }

    /// Segments on offer or lent.
    pub(super) fn segments_lent(&self) -> u32 {
        self.lists.iter().map(|list| list.len() as u32).sum()
    }

    /// The first log page after those in use.
    pub(super) fn free_log_page(&self) -> u32 {
        let end = |held: &HeldMemory| match Region::at(held.info.log_pages) {
            Some(Region::LogPage(first)) => first + held.segments,
            _ => 0,
        };
        self.memories.iter().map(end).max().unwrap_or(0)
    }
}
