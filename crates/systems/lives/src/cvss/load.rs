//! Work for the drives: writes, deletions and reads, in pages of the load.

use super::autostream::StreamRule;
use super::operation::Operation;
use super::passes::Passes;
use super::tree::{Tree, TreeLoad};
use flashyard_kernel::Rng;
use flashyard_workload::{Permutation, Zipf};

/// Data kept apart on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separation {
    /// Nothing.
    None,
    /// Data that is read more than most between its writes, for drives that have a frontier for it.
    /// Source: [A] sheet cvss §8.5.
    ReadHot,
    /// By streams that the host chooses, for drives that have them.
    Streams(StreamRule),
}

/// Overwrites of pages in place of the load, and reads of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageLoad {
    /// Pages in all.
    pub pages: u32,
    /// Pages that are overwritten together, at least 1.
    pub unit_pages: u32,
    /// Exponent of the writes' Zipf distribution over units; zero for uniform ones.
    pub write_skew: f64,
    /// Skew of the reads, over the same order of units.
    pub read_skew: f64,
    /// Whether a unit is a file that is deleted and made again.
    pub recreates: bool,
    /// Whether the load goes through its units in one order again and again, as fio does; it is drawn without end otherwise.
    pub repeats: bool,
}

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Overwrites and reads.
    Pages(PageLoad),
    /// A log-structured merge tree.
    Tree(TreeLoad),
}

impl Load {
    /// Pages of the load that may be stored at once.
    pub fn pages(&self) -> u32 {
        match self {
            Self::Pages(load) => load.pages,
            Self::Tree(load) => load.pages(),
        }
    }
}

/// A load at work.
pub(super) enum Work {
    Pages { load: PageLoad, units: Units, filled: u32 },
    Tree(Box<Tree>),
}

/// Which unit comes next.
pub(super) enum Units {
    Drawn { count: u32, order: Permutation, writes: Option<Zipf>, reads: Option<Zipf>, rng: Rng },
    Repeated(Box<Passes>),
}

impl Work {
    pub(super) fn new(load: Load, seed: u64) -> Self {
        let rng = Rng::named(seed, "cvss.load");
        match load {
            Load::Tree(load) => Self::Tree(Box::new(Tree::new(load, rng))),
            Load::Pages(load) => Self::Pages { load, units: Units::new(&load, rng), filled: 0 },
        }
    }

    /// The next operations, at least one page of writes among them. Everything is written once before anything twice.
    pub(super) fn next(&mut self, operations: &mut Vec<Operation>) {
        operations.clear();
        match self {
            Self::Tree(tree) => tree.next(operations),
            Self::Pages { load, units, filled } => {
                let pages = load.unit_pages;
                if *filled < load.pages / pages {
                    operations.push(Operation::Write { first: *filled * pages, pages });
                    *filled += 1;
                    return;
                }
                let first = units.write() * pages;
                if load.recreates {
                    operations.push(Operation::Delete { first, pages });
                }
                operations.push(Operation::Write { first, pages });
            }
        }
    }

    /// Whether a run of the load's program has ended since the last time; the next one finds a cache without its file.
    pub(super) fn take_ended(&mut self) -> bool {
        match self {
            Self::Pages { units: Units::Repeated(passes), .. } => passes.take_ended(),
            Self::Pages { .. } | Self::Tree(_) => false,
        }
    }

    /// A page to read, among those that were written.
    pub(super) fn read(&mut self) -> u32 {
        match self {
            Self::Tree(tree) => tree.read(),
            Self::Pages { load, units, .. } => units.read() * load.unit_pages,
        }
    }
}

impl Units {
    fn new(load: &PageLoad, rng: Rng) -> Self {
        let count = load.pages / load.unit_pages;
        if load.repeats {
            return Self::Repeated(Box::new(Passes::new(count, load.write_skew)));
        }
        let skewed = |skew: f64| (skew > 0.0).then(|| Zipf::new(count.into(), skew));
        let (writes, reads) = (skewed(load.write_skew), skewed(load.read_skew));
        Self::Drawn { count, order: Permutation::new(count.into()), writes, reads, rng }
    }

    fn write(&mut self) -> u32 {
        match self {
            Self::Drawn { count, order, writes, rng, .. } => draw(writes.as_ref(), order, *count, rng),
            Self::Repeated(passes) => passes.write(),
        }
    }

    fn read(&mut self) -> u32 {
        match self {
            Self::Drawn { count, order, reads, rng, .. } => draw(reads.as_ref(), order, *count, rng),
            Self::Repeated(passes) => passes.read(),
        }
    }
}

fn draw(zipf: Option<&Zipf>, order: &Permutation, units: u32, rng: &mut Rng) -> u32 {
    let unit = match zipf {
        Some(zipf) => order.place(zipf.draw(rng)),
        None => rng.below(u64::from(units)),
    };
    // Below the units, which are a u32.
    unit as u32
}
