//! Commands to a die.

/// The pages of a word line that a command concerns, by the bit of its cells that they hold: they decide how long the
/// array senses or programs.
///
/// A page is usually addressed alone. A read of a die row whose word line was programmed as a whole may concern several,
/// and the program of such a word line concerns all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages(u8);

impl Pages {
    const ONE_BIT: u8 = 0b1_0000;
    /// The page of the least significant bit: the fastest.
    pub const LSB: Self = Self(0b0001);
    /// The page of the centre significant bit.
    pub const CSB: Self = Self(0b0010);
    /// The page of the most significant bit of three: the slowest of them.
    pub const MSB: Self = Self(0b0100);
    /// The page of the fourth bit.
    pub const TOP: Self = Self(0b1000);
    /// Bits of a cell at most.
    pub const BITS: usize = 4;
    /// Values of [`Self::index`], from 0.
    pub const SETS: usize = 32;

    /// The page of row `row` of a block in three-level mode. Source: \[A\] sheet xbof §9.4.
    #[inline]
    pub const fn of_row(row: u32) -> Self {
        Self(1 << (row % 3))
    }

    /// The pages of bits `first` to `last` of a word line, bit 0 the least significant. Panics beyond the bits of a cell.
    #[inline]
    pub const fn of_bits(first: u32, last: u32) -> Self {
        assert!(first <= last && last < Self::BITS as u32, "a cell has four bits at most");
        Self(((1 << (last + 1)) - (1 << first)) as u8)
    }

    /// As many pages, each of a word line of its own whose cells hold one bit.
    #[inline]
    #[must_use]
    pub const fn single_level(self) -> Self {
        Self(self.0 | Self::ONE_BIT)
    }

    /// Whether cells hold one bit.
    #[inline]
    pub const fn is_single_level(self) -> bool {
        self.0 & Self::ONE_BIT != 0
    }

    /// How many pages each plane takes part with.
    #[inline]
    pub const fn count(self) -> u32 {
        // Processors of the least kind that the program runs on have no instruction that counts bits.
        const BITS_OF: u64 = 0x4332_3221_3221_2110;
        (BITS_OF >> (4 * (self.0 & (Self::ONE_BIT - 1)) as u32)) as u32 & 0b111
    }

    /// Every set of pages that there can be: the pages of bits in a row, of cells with several bits or one.
    pub fn all() -> impl Iterator<Item = Self> {
        let runs = (0..Self::BITS as u32).flat_map(|last| (0..=last).map(move |first| Self::of_bits(first, last)));
        runs.flat_map(|pages| [pages, pages.single_level()])
    }

    /// A place in a table that has one for each set of pages.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The planes of a die that a command concerns.
///
/// One byte: the number of planes that work together, or, with the highest bit, the plane that works on its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Planes(u8);

impl Planes {
    const ALONE: u8 = 0x80;

    /// `count` planes by one multi-plane command, 1 to 64. A die whose planes do not sense independently does nothing else
    /// meanwhile; one plane of it counts as such a command, too.
    #[inline]
    pub const fn together(count: u8) -> Self {
        debug_assert!(0 < count && count < Self::ALONE, "1 to 64 planes work together");
        Self(count)
    }

    /// Plane number `plane`, 0 to 63, on its own: the others may sense meanwhile.
    #[inline]
    pub const fn alone(plane: u8) -> Self {
        debug_assert!(plane < Self::ALONE, "planes are 0 to 63");
        Self(plane | Self::ALONE)
    }

    /// How many planes take part: a page operation each.
    #[inline]
    pub const fn count(self) -> u32 {
        if self.0 & Self::ALONE == 0 { self.0 as u32 } else { 1 }
    }

    /// The plane that works on its own.
    #[inline]
    pub const fn plane(self) -> Option<u8> {
        if self.0 & Self::ALONE == 0 { None } else { Some(self.0 & !Self::ALONE) }
    }
}

impl std::fmt::Debug for Planes {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.plane() {
            Some(plane) => write!(out, "plane {plane}"),
            None => write!(out, "{} planes", self.0),
        }
    }
}

/// Type of a command to a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Sense pages and bring them over the bus.
    Read,
    /// Take pages over the bus and program them.
    Program,
    /// Erase one block on each plane.
    Erase,
}

/// Rank of a command at its die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// A request waits for it.
    Foreground,
    /// Housekeeping.
    Background,
}

/// One (multi-plane) command to one die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashCommand {
    /// Kind of the command.
    pub kind: CommandKind,
    /// Die number, channels first: `die % channels` is the channel.
    pub die: u16,
    /// Planes taking part: a page operation for each of its pages.
    pub planes: Planes,
    /// Pages of the word line; ignored by `Erase`.
    pub pages: Pages,
    /// Rank of the command at the die.
    pub priority: Priority,
    /// Erases of the superblock so far, 65,535 for more; zero where wear does not matter.
    pub erases: u16,
    /// Host page reads of the superblock since its last erase, as far as they are counted.
    pub reads: u32,
    /// Bytes over the channel bus.
    pub bus_bytes: u32,
    /// The issuer's own number, handed back on completion.
    pub tag: u64,
}

// A command is copied into every queue that it waits in.
const _: () = assert!(size_of::<FlashCommand>() == 24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_by_their_bits() {
        for pages in Pages::all() {
            assert_eq!(pages.count(), (pages.index() % 16).count_ones());
        }
    }

    #[test]
    fn pages_of_bits_are_the_union_of_theirs() {
        let of_one = [Pages::LSB, Pages::CSB, Pages::MSB, Pages::TOP];
        for first in 0..4 {
            for last in first..4 {
                let union = of_one[first..=last].iter().fold(0, |bits, page| bits | page.index());
                assert_eq!(Pages::of_bits(first as u32, last as u32).index(), union);
            }
        }
        assert_eq!([0, 1, 2, 3].map(Pages::of_row), [Pages::LSB, Pages::CSB, Pages::MSB, Pages::LSB]);
    }

    #[test]
    fn a_plane_alone_counts_as_one_and_planes_together_have_no_number() {
        assert_eq!((Planes::alone(5).count(), Planes::alone(5).plane()), (1, Some(5)));
        assert_eq!((Planes::together(4).count(), Planes::together(4).plane()), (4, None));
    }
}
