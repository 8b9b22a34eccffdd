//! Commands to a die.

/// Which bit of a multi-level cell a page holds; decides read and program time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// Least significant bit: fastest. Also every page of a block in single-level mode.
    Lsb,
    /// Centre significant bit.
    Csb,
    /// Most significant bit: slowest.
    Msb,
}

impl PageKind {
    /// The kind of page `row` of a block in three-level mode. Source: [A] sheet xbof §9.4.
    #[inline]
    pub const fn of_row(row: u32) -> Self {
        match row % 3 {
            0 => Self::Lsb,
            1 => Self::Csb,
            _ => Self::Msb,
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
    /// Planes taking part: a page operation each.
    pub planes: u8,
    /// Timing class of the pages; ignored by `Erase`.
    pub page: PageKind,
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
