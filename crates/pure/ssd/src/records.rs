//! Records that a drive writes to flash about itself: the journal of its map, and checkpoints.
//!
//! Each mapping unit that is programmed adds an entry to the journal. A page of the journal goes to flash when it is full. Along
//! with it goes a share of the checkpoint, which sweeps over the map once for each length of the journal and writes
//! the pages of the map that have changed, so that older entries are needed no more. Records take turns on the dies, as pages of
//! single-level cells, in the background; they take die time, bus time, energy and their share of the program rate.
//! Source: \[X\] Lim, "Implementation of metadata logging and power loss recovery for page-mapping FTL", IEICE Electronics Express
//! 10 (2013): all changes of the map are logged to flash blocks of their own. \[A\] that a checkpoint is spread evenly over
//! the journal, that records are single-level, and that space is kept for two of each, the old one and the new one.
//!
//! What it does not model: entries of trims and remaps, erases of the records' own blocks, and reads of records at power-on.

use crate::command::Tag;
use flashyard_flash::{CommandKind, FlashCommand, Geometry, Pages, Planes, Priority, SLOT_BYTES, Slot};
use flashyard_ftl::Ftl;

/// Bytes of a page of the map: what is written of it at once. Source: \[A\] a slot of 4 KiB, as translation pages have.
const MAP_PAGE_BYTES: u32 = SLOT_BYTES;

/// Records of a drive about its map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordsConfig {
    /// Bytes of an entry of the journal, 4 to 64: one for each mapping unit that is programmed, padding among them.
    pub journal_entry_bytes: u32,
    /// Bytes of an entry of the map, 4 or 8: one for each mapping unit.
    pub map_entry_bytes: u32,
    /// Flash pages of journal over which a checkpoint goes once round the map.
    pub journal_pages: u32,
}

impl RecordsConfig {
    /// Pages of the map of `logical_slots`, in units of `unit` slots.
    fn map_pages(&self, logical_slots: u32, unit: u32) -> u32 {
        // Sizes may be asked for before they are checked.
        logical_slots.div_ceil(unit.max(1)).div_ceil(MAP_PAGE_BYTES / self.map_entry_bytes.clamp(1, MAP_PAGE_BYTES))
    }

    /// Blocks of each plane that records of a drive with this flash take: two journals and two checkpoints, in whole superblocks.
    pub(crate) fn blocks(&self, geometry: &Geometry, logical_slots: u32, unit: u32) -> u32 {
        let map = u64::from(self.map_pages(logical_slots, unit)) * u64::from(MAP_PAGE_BYTES);
        let journal = u64::from(self.journal_pages) * u64::from(geometry.page_bytes);
        let superblock = geometry.raw_bytes().get() / u64::from(geometry.blocks_per_plane.max(1));
        u32::try_from((2 * (map + journal)).div_ceil(superblock.max(1))).unwrap_or(u32::MAX)
    }
}

/// The records of a drive, as far as they are not on flash.
pub(crate) struct Records {
    config: RecordsConfig,
    /// Slots of a mapping unit.
    unit: u32,
    /// Slots of the map for one page of it.
    slots_per_map_page: u32,
    map_pages: u32,
    /// Mapping units whose entries fill a page of the journal.
    units_per_journal_page: u32,
    /// Pages of the map that go into one flash page.
    map_pages_per_page: u32,
    /// Mapping units since the last full page of the journal.
    units: u32,
    /// Pages of the map that have changed since the checkpoint passed them, one bit each.
    dirty: Vec<u64>,
    /// Journal pages of this round of the checkpoint, and the page of the map that it goes on with.
    step: u32,
    sweep: u32,
    /// Changed pages of the map that wait until they fill a flash page.
    gathered: u32,
    /// Programs that are due.
    journal_due: u32,
    checkpoint_due: u32,
    next_die: u32,
}

impl Records {
    pub(crate) fn new(config: RecordsConfig, page_bytes: u32, logical_slots: u32, unit: u32) -> Self {
        let map_pages = config.map_pages(logical_slots, unit);
        Self {
            config,
            unit,
            slots_per_map_page: MAP_PAGE_BYTES / config.map_entry_bytes * unit,
            map_pages,
            units_per_journal_page: page_bytes / config.journal_entry_bytes,
            map_pages_per_page: page_bytes / MAP_PAGE_BYTES,
            units: 0,
            dirty: vec![0; map_pages.div_ceil(64) as usize],
            step: 0,
            sweep: 0,
            gathered: 0,
            journal_due: 0,
            checkpoint_due: 0,
            next_die: 0,
        }
    }

    /// A die row is programmed: its entries go to the journal, and the pages of the map for what it holds have changed.
    pub(crate) fn note_row(&mut self, ftl: &Ftl, row: u32) {
        let slots = ftl.layout().slots_per_die_row;
        for slot in row * slots..(row + 1) * slots {
            if let Some(logical) = ftl.owner(Slot::new(slot)) {
                self.note_changed(logical);
            }
        }
        self.note_units(slots / self.unit);
    }

    fn note_changed(&mut self, logical: u32) {
        let page = logical / self.slots_per_map_page;
        self.dirty[page as usize / 64] |= 1 << (page % 64);
    }

    fn note_units(&mut self, units: u32) {
        self.units += units;
        while self.units >= self.units_per_journal_page {
            self.units -= self.units_per_journal_page;
            self.journal_due += 1;
            self.advance_checkpoint();
        }
    }

    /// The checkpoint's share of a journal page.
    fn advance_checkpoint(&mut self) {
        self.step += 1;
        let share = u64::from(self.map_pages) * u64::from(self.step) / u64::from(self.config.journal_pages);
        let end = share as u32;
        for page in self.sweep..end {
            let (word, bit) = (page as usize / 64, 1_u64 << (page % 64));
            if self.dirty[word] & bit != 0 {
                self.dirty[word] &= !bit;
                self.gathered += 1;
            }
        }
        self.checkpoint_due += self.gathered / self.map_pages_per_page;
        self.gathered %= self.map_pages_per_page;
        self.sweep = end;
        if self.step == self.config.journal_pages {
            (self.step, self.sweep) = (0, 0);
        }
    }

    /// Takes the programs that are due: pages of the journal and of the checkpoint.
    pub(crate) fn take_due(&mut self) -> (u32, u32) {
        (std::mem::take(&mut self.journal_due), std::mem::take(&mut self.checkpoint_due))
    }

    /// The program of a page of records, on the die whose turn it is.
    pub(crate) fn program(&mut self, geometry: &Geometry) -> FlashCommand {
        self.next_die = (self.next_die + 1) % geometry.dies();
        FlashCommand {
            kind: CommandKind::Program,
            die: self.next_die as u16,
            planes: Planes::together(1),
            pages: Pages::LSB.single_level(),
            priority: Priority::Background,
            // The wear of the blocks of records is not modelled.
            erases: 0,
            reads: 0,
            bus_bytes: geometry.page_bytes,
            tag: Tag::Record.pack(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u32 = 16_384;

    fn records(journal_pages: u32, unit: u32) -> Records {
        let config = RecordsConfig { journal_entry_bytes: 8, map_entry_bytes: 4, journal_pages };
        // A map of 64 pages of 1,024 entries.
        Records::new(config, PAGE, 64 * 1024 * unit, unit)
    }

    #[test]
    fn a_journal_page_is_due_for_each_page_of_entries() {
        let mut records = records(1_000_000, 1);
        records.note_units(2047);
        assert_eq!(records.take_due(), (0, 0));
        records.note_units(1);
        assert_eq!(records.take_due(), (1, 0));
        (0..100).for_each(|_| records.note_units(512));
        assert_eq!(records.take_due(), (25, 0));
    }

    #[test]
    fn a_round_of_the_checkpoint_writes_each_changed_page_once() {
        for (journal_pages, unit) in [(1, 1), (4, 1), (7, 4), (64, 16), (100, 1)] {
            let mut records = records(journal_pages, unit);
            // Every other page of the map, several times each.
            for page in (0..64).step_by(2) {
                (0..3).for_each(|slot| records.note_changed((page * 1024 + slot) * unit));
            }
            records.note_units(2048 * journal_pages);
            assert_eq!(records.take_due(), (journal_pages, 32 / 4), "{journal_pages} pages, units of {unit}");
            records.note_units(2048 * journal_pages);
            assert_eq!(records.take_due(), (journal_pages, 0), "nothing has changed since");
        }
    }

    #[test]
    fn pages_changed_behind_the_checkpoint_wait_for_its_next_round() {
        let mut records = records(4, 1);
        records.note_units(2048);
        (0..16).for_each(|page| records.note_changed(page * 1024));
        records.note_units(3 * 2048);
        assert_eq!(records.take_due(), (4, 0));
        records.note_units(2048);
        assert_eq!(records.take_due(), (1, 4));
    }

    #[test]
    fn two_journals_and_two_checkpoints_take_whole_superblocks() {
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: 2,
            blocks_per_plane: 100,
            pages_per_block: 16,
            page_bytes: PAGE,
            pages_per_program: 1,
        };
        // A superblock of 2 MiB; maps of 256 KiB and journals of 768 KiB take 2 MiB.
        let config = RecordsConfig { journal_entry_bytes: 8, map_entry_bytes: 4, journal_pages: 48 };
        assert_eq!(config.blocks(&geometry, 64 * 1024, 1), 1);
        assert_eq!(RecordsConfig { journal_pages: 49, ..config }.blocks(&geometry, 64 * 1024, 1), 2);
    }
}
