//! The translation layer of one drive.

use crate::blocks::{Blocks, RowSet, State};
use crate::config::{Frontiers, FtlConfig, FtlConfigError, HOST_STREAMS_MAX};
use crate::counters::FtlCounters;
use crate::drawn::DrawnState;
use crate::map::SparseTable;
use crate::progress::{Leveling, Reclaim};
use crate::remap_log::RemapLog;
use crate::wear::Wear;
use flashyard_flash::{CommandKind, FlashCommand, Geometry, Layout, Pages, Planes, Priority, SLOT_BYTES, Slot};
use std::collections::BTreeSet;

/// Frontiers at most: one for each stream, and for each further one of the host.
const LANES: usize = 2 + HOST_STREAMS_MAX as usize;

/// The origin of appended data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Data from the host.
    Host,
    /// Valid data moved by garbage collection.
    Moved,
    /// Valid data moved by wear leveling, into the superblock that it chose.
    Leveled,
}

/// A die row that has just become full and is to be programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DieRow {
    /// The die row, counted over the whole drive.
    pub number: u32,
    /// The die that holds it.
    pub die: u16,
    /// Timing class of its pages.
    pub pages: Pages,
}

/// The outcome of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Where the data went.
    pub slot: Slot,
    /// Where the map had pointed before; `Slot::NONE` for nowhere.
    pub before: Slot,
    /// The die row that this filled.
    pub row: Option<DieRow>,
}

/// A write frontier: the superblock being filled and how far.
#[derive(Clone, Copy)]
pub(crate) struct Frontier {
    pub(crate) superblock: u32,
    pub(crate) next: u32,
    pub(crate) limit: u32,
}

/// The translation layer of one drive.
pub struct Ftl {
    pub(crate) config: FtlConfig,
    pub(crate) layout: Layout,
    /// Of each die.
    pub(crate) planes: u8,
    page_bytes: u32,
    pages_per_program: u32,
    pub(crate) map: SparseTable,
    pub(crate) blocks: Blocks,
    /// By [`Ftl::lane`].
    pub(crate) frontiers: [Option<Frontier>; LANES],
    /// Which of its frontiers the host writes to.
    host_stream: u32,
    pub(crate) reclaim: Reclaim,
    pub(crate) leveling: Option<Leveling>,
    pub(crate) wear: Option<Box<Wear>>,
    /// Erased superblocks that the host is not promised: [`FtlConfig::kept_erased`], and one for early retirement.
    pub(crate) kept_erased: u32,
    /// Erased superblocks at which ageing without time gives up, while there is something to be given back.
    pub(crate) reserve: u32,
    pub(crate) degraded: bool,
    /// Host reads of each superblock since it was erased; empty until the first is counted.
    pub(crate) reads: Vec<u32>,
    pub(crate) log: RemapLog,
    pub(crate) single_level_in_use: u32,
    pub(crate) stamps: Option<Vec<u64>>,
    /// Logical slots whose map entry points at a slot that is not theirs.
    misled: BTreeSet<u32>,
    pub(crate) counters: FtlCounters,
}

impl Ftl {
    /// A layer over flash that is erased, sequentially filled or in a drawn steady state.
    ///
    /// Errors: when geometry and configuration do not fit together.
    pub fn new(geometry: &Geometry, config: FtlConfig) -> Result<Self, FtlConfigError> {
        config.validate(geometry)?;
        let layout = Layout::new(geometry);
        let raw = layout.superblocks * layout.slots_per_superblock;
        let sequential = if config.drawn { 0 } else { config.filled_slots };
        let mut ftl = Self {
            config,
            layout,
            planes: geometry.planes_per_die as u8,
            page_bytes: geometry.page_bytes,
            pages_per_program: geometry.pages_per_program,
            map: SparseTable::new(config.logical_slots, sequential),
            blocks: Blocks::new(layout, &config, sequential),
            frontiers: [None; LANES],
            host_stream: 0,
            reclaim: Reclaim::default(),
            leveling: None,
            wear: None,
            kept_erased: config.kept_erased(),
            reserve: 0,
            degraded: false,
            reads: Vec::new(),
            log: RemapLog::new(config.remap_entries),
            single_level_in_use: 0,
            stamps: config.stamps.then(|| vec![0; raw as usize]),
            misled: BTreeSet::new(),
            counters: FtlCounters::default(),
        };
        if config.drawn && config.filled_slots > 0 {
            begin_drawn(&mut ftl);
        }
        ftl.set_wear_leveling(config.wear_leveling);
        Ok(ftl)
    }

    /// This layer with both maps in one piece, 8 bytes of memory a slot: faster for a drive that is written all over.
    #[must_use]
    pub fn with_whole_maps(mut self) -> Self {
        self.map.make_whole();
        self.blocks.reverse.make_whole();
        self
    }

    /// The layer's parameters.
    pub fn config(&self) -> &FtlConfig {
        &self.config
    }

    /// Slot arithmetic of the drive.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Counts of the work so far.
    pub fn counters(&self) -> &FtlCounters {
        &self.counters
    }

    /// Where the data of logical slot `logical` is; `Slot::NONE` when it was never written or was deallocated.
    /// Panics beyond the exported slots.
    #[inline]
    pub fn lookup(&self, logical: u32) -> Slot {
        self.map.get(logical)
    }

    /// The payload stamp at `slot`; zero without stamps and for data written before the run.
    #[inline]
    pub fn stamp(&self, slot: Slot) -> u64 {
        self.stamps.as_ref().map_or(0, |stamps| stamps[slot.get() as usize])
    }

    /// The logical slot whose data is at `slot`; `None` where nothing current is.
    #[inline]
    pub fn owner(&self, slot: Slot) -> Option<u32> {
        self.blocks.is_valid(slot).then(|| self.blocks.reverse.get(slot.get()).get())
    }

    /// Whether the data of `slot` is on flash, and not only in the write buffer.
    #[inline]
    pub fn is_programmed(&self, slot: Slot) -> bool {
        let (number, index) = self.layout.split(slot);
        match &self.blocks.all[number as usize].unprogrammed {
            None => true,
            Some(rows) => {
                let row = index / self.layout.slots_per_die_row;
                rows.words[row as usize / 64] >> (row % 64) & 1 == 0
            }
        }
    }

    /// Host slots that can be appended before the host must wait for garbage collection.
    #[inline]
    pub fn host_room(&self) -> u64 {
        let open = self.frontiers[self.lane(Stream::Host)].map_or(0, |frontier| frontier.limit - frontier.next);
        let (erased, kept) = (self.blocks.erased.len(), self.kept_erased);
        // Room that garbage collection takes of a shared frontier is lost to the host, too.
        let lacking = if self.config.frontiers == Frontiers::Shared { kept.saturating_sub(erased) } else { 0 };
        let open = open.saturating_sub(lacking * self.superblock_limit());
        let whole = u64::from(erased.saturating_sub(kept));
        let size = if self.config.has_cache() { self.single_level_limit() } else { self.superblock_limit() };
        u64::from(open) + whole * u64::from(size)
    }

    /// Slots that garbage collection can append with the superblocks erased now.
    #[inline]
    pub fn moved_room(&self) -> u64 {
        let open = self.frontiers[self.lane(Stream::Moved)].map_or(0, |frontier| frontier.limit - frontier.next);
        u64::from(open) + u64::from(self.blocks.erased.len()) * u64::from(self.superblock_limit())
    }

    /// Chooses which of its frontiers the host writes to from now on, 0 to [`FtlConfig::host_streams`] - 1, without
    /// time: room is promised to timed hosts, and superblocks are recovered, for the first one only.
    /// Panics beyond the configured ones.
    #[inline]
    pub fn set_host_stream(&mut self, stream: u32) {
        assert!(stream < self.config.host_streams, "stream {stream} of {}", self.config.host_streams);
        self.host_stream = stream;
    }

    /// The place of the stream's frontier: a shared one is the host's first.
    #[inline]
    pub(crate) fn lane(&self, stream: Stream) -> usize {
        if stream == Stream::Host && self.host_stream > 0 {
            return Stream::Leveled as usize + self.host_stream as usize;
        }
        let shared = stream == Stream::Moved && self.config.frontiers == Frontiers::Shared;
        if shared { Stream::Host as usize } else { stream as usize }
    }

    /// Appends one slot of `logical` with its payload stamp, and points the map at it.
    ///
    /// The caller has checked [`Ftl::host_room`] for the host stream. Panics when no superblock is left:
    /// the room was not checked.
    #[inline]
    pub fn append(&mut self, stream: Stream, logical: u32, stamp: u64) -> Appended {
        let mut appended = self.place(stream, logical, stamp);
        appended.before = self.repoint(logical, appended.slot);
        appended
    }

    /// Appends the data that a logical slot has, because a part of its mapping unit is written. It counts as moved.
    pub fn append_merged(&mut self, logical: u32) -> Appended {
        let stamp = self.stamp(self.lookup(logical));
        let appended = self.append(Stream::Host, logical, stamp);
        self.counters.host_slots -= 1;
        self.counters.moved_slots += 1;
        appended
    }

    /// Points the map of `logical` at `slot`, where its data may no longer be or never was, and gives up the data that
    /// it has, as a map that lost its last changes does. A read finds whatever is at `slot`.
    pub fn mislead(&mut self, logical: u32, slot: Slot) {
        self.repoint(logical, slot);
        if slot.is_some() {
            self.misled.insert(logical);
        }
    }

    /// Points the map of `logical` at `slot`; its old slot is no longer current.
    #[inline]
    pub(crate) fn repoint(&mut self, logical: u32, slot: Slot) -> Slot {
        let old = self.map.replace(logical, slot);
        if self.gives_up(logical, old) {
            self.blocks.invalidate(old);
        }
        old
    }

    /// Whether data at `old` is given up when the map entry of `logical`, which was `old`, changes. A misled entry points at
    /// a slot that was given up already, and may hold something else.
    #[inline]
    pub(crate) fn gives_up(&mut self, logical: u32, old: Slot) -> bool {
        old.is_some() && (self.misled.is_empty() || !self.misled.remove(&logical))
    }

    /// Gives the data of `source` to `destination`, whose own is given up. `None` when `source` has none of its own.
    pub(crate) fn hand_over(&mut self, destination: u32, source: u32) -> Option<Slot> {
        let slot = self.map.get(source);
        if !slot.is_some() || self.misled.contains(&source) {
            return None;
        }
        if destination != source {
            self.repoint(destination, slot);
            self.map.replace(source, Slot::NONE);
            self.blocks.reverse.replace(slot.get(), Slot::new(destination));
        }
        Some(slot)
    }

    /// Pads the stream's frontier up to the next multiple of `unit` slots (a flash page, or a die row).
    /// Returns the die row that this filled.
    #[inline]
    pub fn pad(&mut self, stream: Stream, unit: u32) -> Option<DieRow> {
        let mut frontier = self.frontiers[self.lane(stream)]?;
        let mut filled = None;
        while frontier.next % unit != 0 {
            let slot = self.layout.slot(frontier.superblock, frontier.next);
            self.blocks.pad(slot);
            self.counters.padded_slots += 1;
            filled = self.advance(stream, &mut frontier).or(filled);
        }
        filled
    }

    /// Slots the stream's frontier would pad to reach a multiple of `unit`.
    #[inline]
    pub fn padding_to(&self, stream: Stream, unit: u32) -> u32 {
        self.frontiers[self.lane(stream)].map_or(0, |frontier| frontier.next.next_multiple_of(unit) - frontier.next)
    }

    /// Deallocates a logical slot; returns where it was, unless nowhere.
    #[inline]
    pub fn trim(&mut self, logical: u32) -> Option<Slot> {
        if !self.map.get(logical).is_some() {
            return None;
        }
        self.counters.trimmed_slots += 1;
        Some(self.repoint(logical, Slot::NONE))
    }

    /// Records that the program of die row `number` has completed.
    #[inline]
    pub fn row_programmed(&mut self, number: u32) {
        let (superblock, row) = self.layout.split_die_row(number);
        self.blocks.program_rows(superblock, row..row + 1);
    }

    /// The program command for a full die row; `tag` is the caller's.
    #[inline]
    pub fn program_command(&self, row: DieRow, priority: Priority, tag: u64) -> FlashCommand {
        FlashCommand {
            kind: CommandKind::Program,
            die: row.die,
            planes: Planes::together(self.planes),
            pages: row.pages,
            priority,
            erases: 0,
            reads: 0,
            bus_bytes: self.layout.slots_per_die_row * SLOT_BYTES,
            tag,
        }
    }

    /// The read command for slots `first..first + count`, which lie in one die row; `wanted` of them are needed, and pass
    /// the bus alone where the flash sends codewords and not whole pages.
    #[inline]
    pub fn read_command(&self, first: Slot, count: u32, wanted: u32, priority: Priority, tag: u64) -> FlashCommand {
        let (superblock, index) = self.layout.split_die_row(self.layout.die_row(first));
        let (die, row) = self.layout.die_and_row(index);
        let last = Slot::new(first.get() + count - 1);
        let pages = self.layout.page(last) - self.layout.page(first) + 1;
        let planes = if self.config.independent_planes && pages == 1 {
            Planes::alone(self.layout.plane(first))
        } else {
            Planes::together(pages.min(u32::from(self.planes)) as u8)
        };
        FlashCommand {
            kind: CommandKind::Read,
            die,
            planes,
            pages: self.pages_of(superblock, row, (first, last)),
            priority,
            erases: u16::try_from(self.blocks.erases(superblock)).unwrap_or(u16::MAX),
            reads: self.reads_of(superblock),
            bus_bytes: if self.config.sends_codewords { wanted * SLOT_BYTES } else { pages * self.page_bytes },
            tag,
        }
    }

    /// Bytes of memory behind map, reverse map and superblocks.
    pub fn resident_bytes(&self) -> u64 {
        self.map.resident_bytes() + self.blocks.resident_bytes()
    }

    /// Erases of each superblock.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.all.iter().map(|superblock| superblock.erases)
    }

    /// Slots of each superblock whose data is current.
    pub fn valid_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.all.iter().map(|superblock| superblock.valid)
    }

    /// Checks the invariants of the crate page over all of the drive. For tests: it costs a full scan.
    pub fn check(&self) {
        for logical in 0..self.config.logical_slots {
            let slot = self.map.get(logical);
            if slot.is_some() && !self.misled.contains(&logical) {
                assert!(self.blocks.is_valid(slot), "logical slot {logical} maps to invalid {slot:?}");
                assert_eq!(self.blocks.reverse.get(slot.get()).get(), logical, "{slot:?} has the wrong owner");
            }
        }
        let mapped = (0..self.config.logical_slots).filter(|&logical| self.map.get(logical).is_some()).count()
            - self.misled.len();
        let valid: u64 = self.blocks.all.iter().map(|superblock| u64::from(superblock.valid)).sum();
        assert_eq!(mapped as u64, valid, "valid counts do not add up to the mapped slots");
        for (number, superblock) in (0..).zip(&self.blocks.all).filter(|(_, block)| block.state == State::Closed) {
            let slots = (0..self.written_slots(number)).map(|index| self.layout.slot(number, index));
            let current = slots.filter(|&slot| self.blocks.is_valid(slot)).count();
            assert_eq!(current as u32, superblock.valid, "superblock {number} has another count than its slots");
        }
        let erased = self.blocks.all.iter().filter(|superblock| superblock.state == State::Erased).count();
        assert_eq!(erased as u32, self.blocks.erased.len(), "the erased list and the states differ");
        assert_eq!(self.erase_counts().map(u64::from).sum::<u64>(), self.blocks.erases_total, "erases do not add up");
        let retired = self.blocks.all.iter().filter(|superblock| superblock.state == State::Retired).count();
        assert_eq!(retired as u64, self.counters.retired_superblocks, "retired superblocks and states differ");
        self.check_wear();
    }

    /// Whether the stream's next append must open a superblock.
    #[inline]
    pub(crate) fn needs_superblock(&self, stream: Stream) -> bool {
        self.frontiers[self.lane(stream)].is_none()
    }

    /// Takes the next slot of the stream for `logical` without touching the map.
    #[inline]
    pub(crate) fn place(&mut self, stream: Stream, logical: u32, stamp: u64) -> Appended {
        let mut frontier = match self.frontiers[self.lane(stream)] {
            Some(frontier) => frontier,
            None => self.open_frontier(stream),
        };
        let slot = self.layout.slot(frontier.superblock, frontier.next);
        self.blocks.fill(frontier.superblock, slot, logical);
        if let Some(stamps) = &mut self.stamps {
            stamps[slot.get() as usize] = stamp;
        }
        *self.counter(stream) += 1;
        let row = self.advance(stream, &mut frontier);
        Appended { slot, before: Slot::NONE, row }
    }

    /// Slots appended for the stream.
    #[inline]
    pub(crate) fn counter(&mut self, stream: Stream) -> &mut u64 {
        match stream {
            Stream::Host => &mut self.counters.host_slots,
            Stream::Moved => &mut self.counters.moved_slots,
            Stream::Leveled => &mut self.counters.leveled_slots,
        }
    }

    /// Steps the frontier by one slot; returns the die row that this filled.
    #[inline]
    fn advance(&mut self, stream: Stream, frontier: &mut Frontier) -> Option<DieRow> {
        frontier.next += 1;
        let per_row = self.layout.slots_per_die_row;
        let row = frontier.next.is_multiple_of(per_row).then(|| {
            let index = frontier.next / per_row - 1;
            let (die, row) = self.layout.die_and_row(index);
            let number = frontier.superblock * self.layout.die_rows_per_superblock + index;
            DieRow { number, die, pages: self.row_pages(frontier.superblock, row) }
        });
        let lane = self.lane(stream);
        if frontier.next == frontier.limit {
            self.blocks.close(frontier.superblock, self.birthday());
            self.frontiers[lane] = None;
        } else {
            self.frontiers[lane] = Some(*frontier);
        }
        row
    }

    /// Slots appended so far: the age of superblocks closed now counts from here.
    pub(crate) fn birthday(&self) -> u64 {
        self.counters.host_slots + self.counters.moved_slots + self.counters.leveled_slots
    }

    #[cold]
    fn open_frontier(&mut self, stream: Stream) -> Frontier {
        let spare = self.config.slc_grows && self.blocks.erased.len() > self.config.reserved();
        let cached = self.single_level_in_use < self.config.slc_superblocks || spare;
        let single_level = stream == Stream::Host && cached;
        let like_moved = self.lane(stream) != Stream::Host as usize;
        let superblock = self.blocks.erased.pop(like_moved, self.degraded).expect("room was checked before appending");
        self.open_superblock(superblock, single_level)
    }

    /// A frontier at the start of an erased superblock that was taken from the list of them.
    pub(crate) fn open_superblock(&mut self, superblock: u32, single_level: bool) -> Frontier {
        self.blocks.open(superblock, single_level);
        self.single_level_in_use += u32::from(single_level);
        let limit = if single_level { self.single_level_limit() } else { self.superblock_limit() };
        let rows = limit / self.layout.slots_per_die_row;
        let mut words = vec![u64::MAX; rows.div_ceil(64) as usize];
        if !rows.is_multiple_of(64) {
            *words.last_mut().expect("there is a row") = u64::MAX >> (64 - rows % 64);
        }
        self.blocks.all[superblock as usize].unprogrammed = Some(Box::new(RowSet { words, missing: rows }));
        Frontier { superblock, next: 0, limit }
    }

    /// Called when a superblock has been erased and is ready again.
    pub(crate) fn note_erased(&mut self, superblock: u32) {
        let state = &mut self.blocks.all[superblock as usize];
        if std::mem::replace(&mut state.single_level, false) {
            self.single_level_in_use -= 1;
        }
        self.blocks.count_erase(superblock);
        self.counters.erased_superblocks += 1;
        self.log.forget(&self.layout, superblock);
        if let Some(reads) = self.reads.get_mut(superblock as usize) {
            *reads = 0;
            self.reclaim.refresh.retain(|&due| due != superblock);
        }
        if self.retires(superblock) {
            self.retire(superblock);
        } else {
            self.blocks.make_ready(superblock);
        }
        self.level_after_erase(superblock);
    }

    /// Slots written in a superblock before it is closed.
    pub(crate) fn written_slots(&self, superblock: u32) -> u32 {
        if self.blocks.all[superblock as usize].single_level {
            self.single_level_limit()
        } else {
            self.superblock_limit()
        }
    }

    /// Superblocks that hold single-level data or are being filled with it.
    pub fn single_level_in_use(&self) -> u32 {
        self.single_level_in_use
    }

    /// Whether a superblock holds single-level data or is being filled with it.
    pub fn is_single_level(&self, superblock: u32) -> bool {
        self.blocks.all[superblock as usize].single_level
    }

    pub(crate) fn superblock_limit(&self) -> u32 {
        self.layout.slots_per_superblock
    }

    fn single_level_limit(&self) -> u32 {
        let rows = (self.layout.die_rows_per_superblock / 3).max(self.layout.dies);
        rows / self.layout.dies * self.layout.dies * self.layout.slots_per_die_row
    }

    /// The pages that a die row programs together.
    #[inline]
    pub(crate) fn row_pages(&self, superblock: u32, row: u32) -> Pages {
        let pages = match self.pages_per_program {
            1 => Pages::of_row(row),
            together => Pages::of_bits(0, together - 1),
        };
        self.of_cells(superblock, pages)
    }

    /// The pages of a die row that hold slots `ends.0` to `ends.1`.
    #[inline]
    fn pages_of(&self, superblock: u32, row: u32, ends: (Slot, Slot)) -> Pages {
        let pages = match self.pages_per_program {
            1 => Pages::of_row(row),
            _ => Pages::of_bits(self.layout.page_of_word_line(ends.0), self.layout.page_of_word_line(ends.1)),
        };
        self.of_cells(superblock, pages)
    }

    /// Those pages in the cells of a superblock, which hold one bit in a cache of single-level cells.
    #[inline]
    fn of_cells(&self, superblock: u32, pages: Pages) -> Pages {
        let single_level = self.blocks.all[superblock as usize].single_level;
        match (single_level, self.pages_per_program) {
            (false, _) => pages,
            // Rows are numbered on through the block, but each is the only page of its cells.
            (true, 1) => Pages::LSB.single_level(),
            (true, _) => pages.single_level(),
        }
    }
}

/// Puts a drawn steady state on erased flash.
fn begin_drawn(ftl: &mut Ftl) {
    let state = DrawnState::new(&ftl.layout, &ftl.config, ftl.kept_erased);
    for (stream, entry) in [Stream::Host, Stream::Moved].into_iter().zip(&state.open) {
        let frontier = ftl.open_superblock(entry.number, false);
        ftl.blocks.program_rows(entry.number, 0..entry.written / ftl.layout.slots_per_die_row);
        let lane = ftl.lane(stream);
        ftl.frontiers[lane] = Some(Frontier { next: entry.written, ..frontier });
    }
    ftl.blocks.lay(&state);
    ftl.map = SparseTable::drawn(ftl.config.logical_slots, state.forward());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Superblock;
    use crate::config::Allocation;
    use crate::small::{LOGICAL, SLOTS, SUPERBLOCKS, geometry, small};

    #[test]
    fn a_slot_names_its_owner_while_its_data_is_current() {
        let mut ftl = small(FtlConfig::default());
        let first = ftl.append(Stream::Host, 7, 0).slot;
        assert_eq!(ftl.owner(first), Some(7));
        let second = ftl.append(Stream::Host, 7, 0);
        assert_eq!((second.before, ftl.owner(first), ftl.owner(second.slot)), (first, None, Some(7)));
        assert_eq!((ftl.trim(7), ftl.trim(7)), (Some(second.slot), None));
        assert_eq!(ftl.counters().trimmed_slots, 1);
        assert_eq!(ftl.owner(second.slot), None);
    }

    #[test]
    fn the_host_has_what_is_open_and_the_erased_superblocks_that_are_not_kept() {
        let slots = u64::from(SLOTS);
        let after_five = |policies| {
            let mut ftl = small(policies);
            (0..5).for_each(|logical| _ = ftl.append(Stream::Host, logical, 0));
            ftl
        };
        let mut separate = after_five(FtlConfig::default());
        assert_eq!(separate.host_room(), (slots - 5) + 14 * slots);
        let mut shared = after_five(FtlConfig { frontiers: Frontiers::Shared, ..FtlConfig::default() });
        assert_eq!(shared.host_room(), (slots - 5) + 13 * slots);
        // Collection takes the rest of a shared superblock where none is erased.
        [&mut separate, &mut shared].into_iter().for_each(|ftl| ftl.blocks.erased.clear());
        assert_eq!((separate.host_room(), shared.host_room()), (slots - 5, 0));
        // A third of the rows, whole ones on each of two dies.
        let cached = after_five(FtlConfig { slc_superblocks: 2, ..FtlConfig::default() });
        assert_eq!(cached.host_room(), (16 - 5) + 14 * 16);
        let flash = Geometry { dies_per_channel: 2, ..geometry() };
        let config = FtlConfig { logical_slots: LOGICAL, slc_superblocks: 1, ..FtlConfig::default() };
        let cached = Ftl::new(&flash, config).expect("the small drive fits");
        assert_eq!(cached.host_room(), 15 * 32, "eight rows of 24");
    }

    #[test]
    fn a_cache_grows_while_more_is_erased_than_is_reserved_and_shrinks_with_each_erase() {
        let config = FtlConfig { slc_grows: true, ..FtlConfig::default() };
        let mut ftl = small(config);
        let mut first = 0;
        while ftl.erased_superblocks() > 3 {
            let (erased, in_use) = (ftl.erased_superblocks(), ftl.single_level_in_use());
            let cached = erased > ftl.config.reserved();
            let count = if cached { 16 } else { SLOTS };
            for logical in first..first + count {
                let row = ftl.append(Stream::Host, logical % LOGICAL, 0).row;
                row.iter().for_each(|row| ftl.row_programmed(row.number));
            }
            first += count;
            assert_eq!(ftl.single_level_in_use(), in_use + u32::from(cached), "{erased} were erased");
        }
        let before = ftl.single_level_in_use();
        assert!(before > 2);
        for erased in 1..=2 {
            let victim = ftl.foldable().expect("there is one");
            (0..LOGICAL)
                .filter(|&logical| ftl.layout.split(ftl.lookup(logical)).0 == victim)
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|logical| _ = ftl.trim(logical));
            ftl.condemn(victim);
            ftl.note_erased(victim);
            assert_eq!(ftl.single_level_in_use(), before - erased);
            assert_eq!(ftl.counters().erased_superblocks, u64::from(erased));
        }
    }

    #[test]
    fn orders_of_allocation_tell_moved_data_from_the_hosts() {
        let mut ftl = small(FtlConfig { allocation: Allocation::WearFocusing, ..FtlConfig::default() });
        let counts: Vec<u32> = (0..SUPERBLOCKS).map(|number| (number + 3) % SUPERBLOCKS).collect();
        ftl.project_erase_counts(&counts);
        let opened = [Stream::Host, Stream::Moved].map(|stream| ftl.append(stream, 0, 0).slot);
        assert_eq!(opened.map(|slot| ftl.layout.split(slot).0), [12, 13], "the most and the least erased");
    }

    #[test]
    fn rows_of_any_number_are_open_until_they_are_programmed() {
        // One more than a word of the set holds.
        let flash = Geometry { channels: 1, pages_per_block: 65, ..geometry() };
        let config = FtlConfig { logical_slots: LOGICAL, ..FtlConfig::default() };
        let mut ftl = Ftl::new(&flash, config).expect("the small drive fits");
        for slot in 0..65 * 4 {
            let appended = ftl.append(Stream::Host, slot % LOGICAL, 0);
            assert!(!ftl.is_programmed(appended.slot));
            appended.row.iter().for_each(|row| ftl.row_programmed(row.number));
        }
        assert!(ftl.blocks.all[0].unprogrammed.is_none() && ftl.is_programmed(Slot::new(0)));
    }

    #[test]
    fn each_stream_fills_superblocks_of_its_own() {
        let mut ftl = small(FtlConfig { host_streams: 3, ..FtlConfig::default() });
        let mut streams = vec![(Stream::Moved, 0), (Stream::Leveled, 0)];
        streams.extend((0..3).map(|stream| (Stream::Host, stream)));
        let mut next = 0;
        let mut placed = || -> Vec<(u32, u32)> {
            let append = |&(stream, of_host): &(Stream, u32)| {
                ftl.set_host_stream(of_host);
                next += 1;
                let slot = ftl.append(stream, next, 0).slot;
                ftl.layout().split(slot)
            };
            streams.iter().map(append).collect()
        };
        // Superblocks are opened in the order of their numbers.
        assert_eq!(placed(), [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)]);
        assert_eq!(placed(), [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]);
        // All of them count for the age of superblocks.
        ftl.append(Stream::Moved, 100, 0);
        assert_eq!(ftl.birthday(), 11);
    }

    #[test]
    fn data_that_is_merged_into_a_written_unit_counts_as_moved() {
        let mut ftl = small(FtlConfig { stamps: true, ..FtlConfig::default() });
        ftl.append(Stream::Host, 3, 77);
        let merged = ftl.append_merged(3);
        assert_eq!((ftl.lookup(3), ftl.stamp(merged.slot)), (merged.slot, 77));
        assert_eq!((ftl.counters().host_slots, ftl.counters().moved_slots), (1, 1));
    }

    #[test]
    fn a_misled_entry_reads_what_is_there_and_takes_nothing_from_its_owner() {
        let mut ftl = small(FtlConfig::default());
        let [own, other] = [3, 4].map(|logical| ftl.append(Stream::Host, logical, 0).slot);
        ftl.mislead(3, other);
        assert_eq!((ftl.lookup(3), ftl.owner(own), ftl.owner(other)), (other, None, Some(4)));
        ftl.check();
        // Others give up their data as ever, and the misled one has nothing to give up.
        ftl.append(Stream::Host, 4, 0);
        assert_eq!(ftl.owner(other), None);
        let [three, four] = [3, 4].map(|logical| ftl.append(Stream::Host, logical, 0).slot);
        assert_eq!((ftl.owner(three), ftl.owner(four)), (Some(3), Some(4)));
        ftl.check();
        ftl.mislead(4, Slot::NONE);
        assert_eq!((ftl.lookup(4), ftl.owner(four)), (Slot::NONE, None));
        ftl.check();
    }

    #[test]
    fn padding_reaches_the_next_page_or_die_row() {
        let mut ftl = small(FtlConfig::default());
        assert_eq!((ftl.padding_to(Stream::Host, 4), ftl.pad(Stream::Host, 4)), (0, None));
        ftl.append(Stream::Host, 1, 0);
        assert_eq!([2, 4].map(|unit| ftl.padding_to(Stream::Host, unit)), [1, 3]);
        assert_eq!(ftl.pad(Stream::Host, 2), None);
        assert_eq!([2, 4].map(|unit| ftl.padding_to(Stream::Host, unit)), [0, 2]);
        assert_eq!(ftl.pad(Stream::Host, 4).map(|row| row.number), Some(0));
        assert_eq!((ftl.padding_to(Stream::Host, 4), ftl.counters().padded_slots), (0, 3));
    }

    #[test]
    fn slots_of_a_die_row_that_is_not_full_are_buffered() {
        let mut ftl = small(FtlConfig::default());
        assert_eq!(ftl.buffered(Stream::Host), 0);
        let mut after = |_| {
            ftl.append(Stream::Host, 1, 0);
            ftl.buffered(Stream::Host)
        };
        assert_eq!([0; 11].map(&mut after), [1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
    }

    #[test]
    fn reads_ask_for_the_planes_of_their_pages_and_for_what_is_sent() {
        let read = |codewords, first, count, wanted| {
            let flash = FtlConfig { independent_planes: true, sends_codewords: codewords, ..FtlConfig::default() };
            let command = small(flash).read_command(Slot::new(first), count, wanted, Priority::Foreground, 0);
            (command.planes.plane(), command.planes.count(), command.bus_bytes)
        };
        // Pages of two slots; a die row is one page of each of two planes.
        assert_eq!((read(false, 0, 1, 1), read(false, 3, 1, 1)), ((Some(0), 1, 8192), (Some(1), 1, 8192)));
        assert_eq!((read(false, 1, 2, 2), read(true, 1, 2, 2)), ((None, 2, 16_384), (None, 2, 8192)));
        assert_eq!((read(true, 2, 2, 1), read(true, 0, 4, 3)), ((Some(1), 1, 4096), (None, 2, 12_288)));
        // Rows of a die are pages of the cell in turn.
        let ftl = small(FtlConfig::default());
        let pages = |row: u32| ftl.read_command(Slot::new(row * 8), 1, 1, Priority::Foreground, 0).pages;
        assert_eq!([0, 1, 2, 3].map(pages), [0, 1, 2, 3].map(Pages::of_row));
    }

    #[test]
    fn a_word_line_is_programmed_with_all_its_pages() {
        let flash = Geometry { pages_per_program: 3, ..geometry() };
        let config = FtlConfig { logical_slots: LOGICAL, ..FtlConfig::default() };
        let mut ftl = Ftl::new(&flash, config).expect("the small drive fits");
        let rows: Vec<DieRow> = (0..24).filter_map(|slot| ftl.append(Stream::Host, slot, 0).row).collect();
        assert_eq!(rows.iter().map(|row| (row.number, row.die)).collect::<Vec<_>>(), [(0, 0), (1, 1)]);
        assert!(rows.iter().all(|row| row.pages == Pages::of_bits(0, 2)), "{rows:?}");
        // Three pages of two slots on each of two planes.
        let command = ftl.program_command(rows[1], Priority::Background, 5);
        assert_eq!((command.die, command.planes.count(), command.bus_bytes, command.tag), (1, 2, 12 * 4096, 5));
    }

    #[test]
    fn whole_maps_cost_eight_bytes_a_slot_and_a_superblock_some_tens() {
        let ftl = small(FtlConfig::default()).with_whole_maps();
        let others = ftl.resident_bytes() - 4 * u64::from(LOGICAL + SUPERBLOCKS * SLOTS);
        let least = u64::from(SUPERBLOCKS) * size_of::<Superblock>() as u64;
        assert!((least..least + 16 * u64::from(SUPERBLOCKS)).contains(&others), "{others} bytes, {least} at least");
        // A drawn drive keeps a bit of each slot, too.
        let drawn = small(FtlConfig { drawn: true, filled_slots: LOGICAL, ..FtlConfig::default() });
        assert!(drawn.map.resident_bytes() >= u64::from(SUPERBLOCKS * SLOTS) / 8);
    }
}
