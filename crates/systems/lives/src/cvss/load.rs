//! Work for the drives: writes, deletions and reads, in pages of the load.

use super::autostream::StreamRule;
use super::operation::Operation;
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
    Pages { load: PageLoad, order: Permutation, writes: Option<Zipf>, reads: Option<Zipf>, filled: u32, rng: Rng },
    Tree(Box<Tree>),
}

impl Work {
    pub(super) fn new(load: Load, seed: u64) -> Self {
        let rng = Rng::named(seed, "cvss.load");
        match load {
            Load::Tree(load) => Self::Tree(Box::new(Tree::new(load, rng))),
            Load::Pages(load) => {
                let units = u64::from(load.pages / load.unit_pages);
                let skewed = |skew: f64| (skew > 0.0).then(|| Zipf::new(units, skew));
                let (writes, reads) = (skewed(load.write_skew), skewed(load.read_skew));
                Self::Pages { load, order: Permutation::new(units), writes, reads, filled: 0, rng }
            }
        }
    }

    /// The next operations, at least one page of writes among them. Everything is written once before anything twice.
    pub(super) fn next(&mut self, operations: &mut Vec<Operation>) {
        operations.clear();
        match self {
            Self::Tree(tree) => tree.next(operations),
            Self::Pages { load, order, writes, filled, rng, .. } => {
                let units = load.pages / load.unit_pages;
                let pages = load.unit_pages;
                if *filled < units {
                    operations.push(Operation::Write { first: *filled * pages, pages });
                    *filled += 1;
                    return;
                }
                let first = draw(writes.as_ref(), order, units, rng) * pages;
                if load.recreates {
                    operations.push(Operation::Delete { first, pages });
                }
                operations.push(Operation::Write { first, pages });
            }
        }
    }

    /// A page to read, among those that were written.
    pub(super) fn read(&mut self) -> u32 {
        match self {
            Self::Tree(tree) => tree.read(),
            Self::Pages { load, order, reads, rng, .. } => {
                let units = load.pages / load.unit_pages;
                draw(reads.as_ref(), order, units, rng) * load.unit_pages
            }
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
