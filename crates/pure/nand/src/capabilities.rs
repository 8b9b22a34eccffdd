//! Capabilities of flash beyond sensing, programming and erasing one command at a time.

use flashyard_units::SimSpan;

/// Capabilities of the flash of a drive. The default is flash without any of them, as the XBOF sheet has it: a die carries out one
/// command from its start to its end, programs page by page, and its commands take no time on the bus.
///
/// Source of the mechanisms: \[X\] ONFI 5.1, sections 5 (commands) and 4 (bus), and the public data sheets that the profiles
/// name with their figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Capabilities {
    /// Planes of a die sense one page each on their own; programs, erases and reads of several planes hold all of them. A controller
    /// sends one read of all planes for a page of each, as sequential reads want them: it senses once and takes its command cycles
    /// once, and its pages follow each other on the bus.
    pub independent_planes: bool,
    /// A read sends the codewords that are wanted over the bus, and not whole pages; the translation layer says how many.
    pub partial_transfers: bool,
    /// A read hands over what it has sensed to a cache register, and the next may sense while that is sent. The time is that
    /// of handing over, during which the array is busy.
    pub cache_read: Option<SimSpan>,
    /// The data of the next program is taken in while the array still programs.
    pub cache_program: bool,
    /// A program or erase makes way for reads.
    pub suspend: Option<Suspend>,
    /// Word lines are programmed as a whole; needs [`Geometry::pages_per_program`](flashyard_flash::Geometry) above 1.
    pub word_line: Option<WordLine>,
    /// Cells that hold one bit are faster than the first page of others.
    pub single_level: Option<SingleLevel>,
    /// Sensing time of the fourth page of a word line.
    pub read_top: Option<SimSpan>,
    /// Command, address and status cycles on the bus for each command.
    pub command_cycles: SimSpan,
    /// The controller asks a busy die for its status this often: it notices the end of an operation with the next answer.
    /// Zero where a ready/busy line tells.
    pub status_poll: SimSpan,
}

/// How programs and erases make way for reads.
///
/// Each operation gives way [`Suspend::most`] times; it is left alone when it will have ended by the time that this would take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspend {
    /// Whether programs do.
    pub programs: bool,
    /// Whether erases do.
    pub erases: bool,
    /// From the command until the array can sense.
    pub entry: SimSpan,
    /// Time that resuming adds to the time that was left.
    pub resume: SimSpan,
    /// How often one operation makes way at most.
    pub most: u32,
}

/// Times of programming a whole word line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordLine {
    /// The only pass, or the first, coarse one.
    pub program: SimSpan,
    /// The second, fine pass, for which the data is sent again. \[A\] It follows at once: real parts program the first pass of
    /// the next word line in between, which changes no rate.
    pub fine: Option<SimSpan>,
}

/// Times of cells that hold one bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleLevel {
    /// Sensing a page.
    pub read: SimSpan,
    /// Programming a page.
    pub program: SimSpan,
}
