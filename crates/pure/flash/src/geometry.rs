//! How a drive's flash is divided, and how slots are numbered.

use crate::command::Pages;
use flashyard_units::Bytes;

/// Size of the mapping unit in bytes: one logical block of a translation layer. Source: [P] xbof §2.1.
pub const SLOT_BYTES: u32 = 4096;

/// A physical slot number; `Slot::NONE` means nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    /// No slot.
    pub const NONE: Self = Self(u32::MAX);

    /// Slot number `number`.
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Whether this is a place at all.
    #[inline]
    pub const fn is_some(self) -> bool {
        self.0 != u32::MAX
    }
}

/// The division of a drive's flash. All counts are above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels (buses).
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes of each die.
    pub planes_per_die: u32,
    /// Blocks of each plane.
    pub blocks_per_plane: u32,
    /// Pages of each block.
    pub pages_per_block: u32,
    /// Bytes of a page, a multiple of 4096.
    pub page_bytes: u32,
    /// Pages of a plane that are programmed together: 1, or the bits of a cell, where a word line is programmed as a whole.
    pub pages_per_program: u32,
}

/// Why a geometry cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// A count is zero.
    #[error("{0} is zero, give at least 1")]
    Zero(&'static str),
    /// The page is not made of mapping units.
    #[error("page_bytes is {0}, give a multiple of {SLOT_BYTES}")]
    PageSize(u32),
    /// A die row is wider than a machine word of valid bits.
    #[error("a die row (page size x planes x pages of a program) has {0} slots of 4 KiB, at most 64 are possible")]
    DieRow(u64),
    /// Word lines that cannot be.
    #[error("{pages} pages are programmed together in blocks of {block}, give 1 to {most} that divide a block", most = Pages::BITS)]
    WordLine {
        /// Pages asked for.
        pages: u32,
        /// Pages of a block.
        block: u32,
    },
    /// Too large for 32-bit slot numbers, 8-bit planes or 16-bit dies.
    #[error(
        "the geometry has {slots} slots of 4 KiB, {dies} dies and {planes} planes a die; at most 4294967294, 65535 and 255 are possible"
    )]
    TooLarge {
        /// Slots asked for.
        slots: u64,
        /// Dies asked for.
        dies: u64,
        /// Planes a die asked for.
        planes: u32,
    },
}

impl Geometry {
    /// Checks counts and sizes.
    pub fn validate(&self) -> Result<(), GeometryError> {
        for (name, value) in [
            ("channels", self.channels),
            ("dies_per_channel", self.dies_per_channel),
            ("planes_per_die", self.planes_per_die),
            ("blocks_per_plane", self.blocks_per_plane),
            ("pages_per_block", self.pages_per_block),
        ] {
            if value == 0 {
                return Err(GeometryError::Zero(name));
            }
        }
        if self.page_bytes == 0 || !self.page_bytes.is_multiple_of(SLOT_BYTES) {
            return Err(GeometryError::PageSize(self.page_bytes));
        }
        let dies = u64::from(self.channels) * u64::from(self.dies_per_channel);
        let (pages, block) = (self.pages_per_program, self.pages_per_block);
        if !(1..=Pages::BITS as u32).contains(&pages) || !block.is_multiple_of(pages) {
            return Err(GeometryError::WordLine { pages, block });
        }
        let row_slots = u64::from(self.planes_per_die) * u64::from(self.page_bytes / SLOT_BYTES) * u64::from(pages);
        if row_slots > 64 {
            return Err(GeometryError::DieRow(row_slots));
        }
        let counts = [self.planes_per_die, self.blocks_per_plane, self.pages_per_block, self.page_bytes / SLOT_BYTES];
        let slots = counts.iter().try_fold(dies, |product, &count| product.checked_mul(u64::from(count)));
        match slots {
            Some(slots) if slots < u64::from(u32::MAX) && dies <= 65_535 && self.planes_per_die <= 255 => Ok(()),
            slots => {
                Err(GeometryError::TooLarge { slots: slots.unwrap_or(u64::MAX), dies, planes: self.planes_per_die })
            }
        }
    }

    /// Dies of the drive.
    pub const fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Blocks of a superblock: one of every plane.
    pub const fn blocks_per_superblock(&self) -> u32 {
        self.dies() * self.planes_per_die
    }

    /// Physical pages of the drive.
    pub const fn pages(&self) -> u64 {
        self.dies() as u64 * self.planes_per_die as u64 * self.blocks_per_plane as u64 * self.pages_per_block as u64
    }

    /// Raw capacity.
    pub const fn raw_bytes(&self) -> Bytes {
        Bytes::new(self.pages() * self.page_bytes as u64)
    }
}

/// Slot arithmetic of a geometry, with one superblock made of one block of every plane.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Slots of one flash page.
    pub slots_per_page: u32,
    /// Slots of one page of every plane of a die.
    pub slots_per_plane_row: u32,
    /// Slots of one die row: what every plane of a die programs at once.
    pub slots_per_die_row: u32,
    /// Dies of the drive.
    pub dies: u32,
    /// Die rows of a superblock.
    pub die_rows_per_superblock: u32,
    /// Slots of a superblock.
    pub slots_per_superblock: u32,
    /// Superblocks of the drive.
    pub superblocks: u32,
    page_shift: Divisor,
    plane_row_shift: Divisor,
    row_shift: Divisor,
    die_shift: Divisor,
    superblock_shift: Divisor,
    superblock_rows_shift: Divisor,
}

impl Layout {
    /// The layout of a geometry that was validated.
    pub fn new(geometry: &Geometry) -> Self {
        let slots_per_page = geometry.page_bytes / SLOT_BYTES;
        let slots_per_plane_row = slots_per_page * geometry.planes_per_die;
        let slots_per_die_row = slots_per_plane_row * geometry.pages_per_program;
        let dies = geometry.dies();
        let die_rows_per_superblock = dies * (geometry.pages_per_block / geometry.pages_per_program);
        let slots_per_superblock = die_rows_per_superblock * slots_per_die_row;
        Self {
            slots_per_page,
            slots_per_plane_row,
            slots_per_die_row,
            dies,
            die_rows_per_superblock,
            slots_per_superblock,
            superblocks: geometry.blocks_per_plane,
            page_shift: Divisor::new(slots_per_page),
            plane_row_shift: Divisor::new(slots_per_plane_row),
            row_shift: Divisor::new(slots_per_die_row),
            die_shift: Divisor::new(dies),
            superblock_shift: Divisor::new(slots_per_superblock),
            superblock_rows_shift: Divisor::new(die_rows_per_superblock),
        }
    }

    /// The superblock of `slot` and the slot's index in it.
    #[inline]
    pub fn split(&self, slot: Slot) -> (u32, u32) {
        let superblock = self.superblock_shift.quotient(slot.get());
        (superblock, slot.get() - superblock * self.slots_per_superblock)
    }

    /// The slot at `index` of `superblock`.
    #[inline]
    pub fn slot(&self, superblock: u32, index: u32) -> Slot {
        Slot::new(superblock * self.slots_per_superblock + index)
    }

    /// The die row, counted over the whole drive, that holds `slot`.
    #[inline]
    pub fn die_row(&self, slot: Slot) -> u32 {
        self.row_shift.quotient(slot.get())
    }

    /// The die rows that the first `slots` slots of a superblock fill.
    #[inline]
    pub fn full_die_rows(&self, slots: u32) -> u32 {
        self.row_shift.quotient(slots)
    }

    /// The flash page, counted over the whole drive, that holds `slot`.
    #[inline]
    pub fn page(&self, slot: Slot) -> u32 {
        self.page_shift.quotient(slot.get())
    }

    /// The page of every plane, counted over the whole drive, that holds `slot`: slots of one are sensed at once.
    #[inline]
    pub fn plane_row(&self, slot: Slot) -> u32 {
        self.plane_row_shift.quotient(slot.get())
    }

    /// The number after the last slot of the page that holds `slot`.
    #[inline]
    pub fn page_end(&self, slot: Slot) -> u32 {
        (self.page(slot) + 1) * self.slots_per_page
    }

    /// The number after the last slot of the [plane row](Self::plane_row) that holds `slot`.
    #[inline]
    pub fn plane_row_end(&self, slot: Slot) -> u32 {
        (self.plane_row(slot) + 1) * self.slots_per_plane_row
    }

    /// The plane of its die that holds `slot`.
    #[inline]
    pub fn plane(&self, slot: Slot) -> u8 {
        let first = self.plane_row(slot) * self.slots_per_plane_row;
        self.page_shift.quotient(slot.get() - first) as u8
    }

    /// Which of the pages that a die row programs together holds `slot`, from 0.
    #[inline]
    pub fn page_of_word_line(&self, slot: Slot) -> u32 {
        let first = self.die_row(slot) * self.slots_per_die_row;
        self.plane_row_shift.quotient(slot.get() - first)
    }

    /// The superblock of a die row counted over the whole drive, and the die row's index in it.
    #[inline]
    pub fn split_die_row(&self, number: u32) -> (u32, u32) {
        let superblock = self.superblock_rows_shift.quotient(number);
        (superblock, number - superblock * self.die_rows_per_superblock)
    }

    /// Die and page row inside the block of die row `index` of a superblock.
    #[inline]
    pub fn die_and_row(&self, index: u32) -> (u16, u32) {
        let row = self.die_shift.quotient(index);
        ((index - row * self.dies) as u16, row)
    }
}

/// Division by a number that is fixed at start, as a multiplication without a branch.
///
/// The factor is more than 2^63 / d by at most 1, so that twice a dividend below 2^32 times the factor is more than 2^64 times the
/// quotient by less than 2^64 / d: rounded down, the quotient is exact for d up to 2^31. Of more a drive has one, numbered 0: all its numbers are less than d.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    value: u32,
    factor: u64,
}

impl Divisor {
    /// Divides by `value`, which is not zero.
    pub fn new(value: u32) -> Self {
        let factor = if value > 1 << 31 { 0 } else { (1 << 63) / u64::from(value) + 1 };
        Self { value, factor }
    }

    /// The quotient, rounded down.
    #[inline]
    pub const fn quotient(self, dividend: u32) -> u32 {
        ((((dividend as u64) << 1) as u128 * self.factor as u128) >> 64) as u32
    }

    /// The remainder.
    #[inline]
    pub const fn remainder(self, dividend: u32) -> u32 {
        dividend - self.quotient(dividend) * self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE_1: Geometry = Geometry {
        channels: 8,
        dies_per_channel: 8,
        planes_per_die: 4,
        blocks_per_plane: 1024,
        pages_per_block: 1024,
        page_bytes: 16_384,
        pages_per_program: 1,
    };

    #[test]
    fn a_division_is_exact_at_its_limits_and_around_multiples() {
        let divisors = (1..200).chain((0..=31).flat_map(|bit| [(1 << bit) - 1, 1 << bit])).chain([1536, 12_345_678]);
        for value in divisors.filter(|&value| value > 0) {
            let divisor = Divisor::new(value);
            let multiples =
                [0, 1, 2, 3, 1000, u32::MAX / value / 2, u32::MAX / value].map(|times| times.saturating_mul(value));
            for dividend in
                multiples.into_iter().flat_map(|near| [near.saturating_sub(1), near, near.saturating_add(1), !near])
            {
                let result = (divisor.quotient(dividend), divisor.remainder(dividend));
                assert_eq!(result, (dividend / value, dividend % value), "{dividend} / {value}");
            }
        }
    }

    #[test]
    fn the_drive_of_table_1_holds_two_to_the_forty_second_bytes() {
        assert_eq!(TABLE_1.validate(), Ok(()));
        assert_eq!(TABLE_1.raw_bytes(), Bytes::new(1 << 42));
    }

    #[test]
    fn consecutive_slots_fill_a_die_row_then_go_to_the_next_channel() {
        let layout = Layout::new(&TABLE_1);
        assert_eq!(layout.slots_per_die_row, 16);
        assert_eq!(layout.split(Slot::new((1 << 20) + 17)), (1, 17));
        assert_eq!(layout.die_and_row(1), (1, 0));
        assert_eq!(layout.die_and_row(64), (0, 1));
        assert_eq!(layout.page(Slot::new(7)), 1);
        assert_eq!((layout.page_end(Slot::new(7)), layout.plane_row_end(Slot::new(7))), (8, 16));
    }

    #[test]
    fn a_word_line_programmed_as_a_whole_holds_page_after_page_of_all_planes() {
        let one_shot = Geometry { pages_per_block: 1023, pages_per_program: 3, ..TABLE_1 };
        assert_eq!(one_shot.validate(), Ok(()));
        let layout = Layout::new(&one_shot);
        assert_eq!((layout.slots_per_plane_row, layout.slots_per_die_row), (16, 48));
        assert_eq!(layout.die_rows_per_superblock, 64 * 341);
        let place = |index| (layout.plane(layout.slot(3, index)), layout.page_of_word_line(layout.slot(3, index)));
        assert_eq!([0, 4, 15, 16, 47].map(place), [(0, 0), (1, 0), (3, 0), (0, 1), (3, 2)]);
        assert_eq!(layout.die_row(layout.slot(0, 47)), 0);
        assert_eq!(layout.die_and_row(64), (0, 1));
    }

    #[test]
    fn impossible_geometries_are_named() {
        assert_eq!(
            Geometry { pages_per_program: 3, ..TABLE_1 }.validate(),
            Err(GeometryError::WordLine { pages: 3, block: 1024 })
        );
        assert_eq!(Geometry { channels: 0, ..TABLE_1 }.validate(), Err(GeometryError::Zero("channels")));
        assert_eq!(Geometry { page_bytes: 5000, ..TABLE_1 }.validate(), Err(GeometryError::PageSize(5000)));
        assert!(matches!(
            Geometry { blocks_per_plane: 8192, ..TABLE_1 }.validate(),
            Err(GeometryError::TooLarge { .. })
        ));
    }
}
