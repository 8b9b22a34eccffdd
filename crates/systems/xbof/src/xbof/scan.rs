//! The peers that a borrower reads, and in which order.
//!
//! `All` reads every peer. `LeafFirst` reads the peers behind its own leaf switch, takes what it likes there, and reads
//! the others only when it still lacks something: fewer loads and shorter ways, at the price of a choice among fewer.
//! Within a reach peers are read from the next one on, so that borrowers of one instant spread.
//! Source: order [A] sheet xbof §3.2; leaf first is ours.

use flashyard_units::{DriveId, Named};

/// The peers whose tables a borrower reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanOrder {
    /// All peers at once.
    #[default]
    All,
    /// Those behind its own leaf switch, then all others.
    LeafFirst,
}

impl Named for ScanOrder {
    const ALL: &'static [Self] = &[Self::All, Self::LeafFirst];

    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::LeafFirst => "leaf-first",
        }
    }
}

impl ScanOrder {
    /// The reach that a search reads first.
    pub(super) const fn first(self) -> Reach {
        match self {
            Self::All => Reach::All,
            Self::LeafFirst => Reach::Leaf,
        }
    }
}

/// The part of the peers that one scan reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reach {
    #[default]
    All,
    Leaf,
    BeyondLeaf,
}

impl Reach {
    /// Where a search goes on that still lacks something.
    pub(super) fn next(self) -> Option<Self> {
        (self == Self::Leaf).then_some(Self::BeyondLeaf)
    }

    /// The peers of `drive` among `count` drives in the order in which it reads them.
    pub(super) fn peers(self, drive: DriveId, count: u16, leaf_drives: u32) -> Vec<DriveId> {
        let leaf = |drive: DriveId| u32::from(drive.get()) / leaf_drives.max(1);
        let reads = |peer: &DriveId| match self {
            Self::All => true,
            Self::Leaf => leaf(*peer) == leaf(drive),
            Self::BeyondLeaf => leaf(*peer) != leaf(drive),
        };
        (1..count).map(|step| DriveId::new((drive.get() + step) % count)).filter(reads).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_read_from_the_next_one_on() {
        assert_eq!(Reach::All.peers(DriveId::new(2), 5, 2), [3, 4, 0, 1].map(DriveId::new));
        assert_eq!(Reach::Leaf.peers(DriveId::new(2), 5, 2), [3].map(DriveId::new));
        assert_eq!(Reach::BeyondLeaf.peers(DriveId::new(2), 5, 2), [4, 0, 1].map(DriveId::new));
    }

    #[test]
    fn a_leaf_and_what_is_beyond_it_are_all_peers() {
        for drive in DriveId::first(255) {
            let mut both = Reach::Leaf.peers(drive, 255, 32);
            both.extend(Reach::BeyondLeaf.peers(drive, 255, 32));
            both.sort_unstable();
            assert!(both.into_iter().eq(DriveId::first(255).filter(|&peer| peer != drive)));
        }
    }
}
