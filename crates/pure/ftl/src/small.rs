//! A layer small enough for the tests of one mechanism.

use crate::config::FtlConfig;
use crate::ftl::{Ftl, Stream};
use flashyard_flash::{FlashCommand, Geometry, Medium, MediumCounters};

pub(crate) const SUPERBLOCKS: u32 = 16;
/// Slots of a superblock, twelve die rows of four.
pub(crate) const SLOTS: u32 = 48;
pub(crate) const LOGICAL: u32 = SUPERBLOCKS * SLOTS * 6 / 10;

/// A layer over new flash, of this size and with these policies.
pub(crate) fn small(policies: FtlConfig) -> Ftl {
    Ftl::new(&geometry(), FtlConfig { logical_slots: LOGICAL, ..policies }).expect("the small drive fits")
}

/// Such a layer with so many slots written, and all of them on flash.
pub(crate) fn used(slots: u32, policies: FtlConfig) -> Ftl {
    let mut ftl = small(policies);
    for number in 0..slots {
        let row = ftl.append(Stream::Host, number % LOGICAL, 0).row;
        row.iter().for_each(|row| ftl.row_programmed(row.number));
    }
    ftl
}

pub(crate) fn geometry() -> Geometry {
    Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 2,
        blocks_per_plane: SUPERBLOCKS,
        pages_per_block: 6,
        page_bytes: 8192,
        pages_per_program: 1,
    }
}

/// A medium that completes everything at once.
#[derive(Default)]
pub(crate) struct Nothing(MediumCounters);

impl Medium for Nothing {
    fn accept(&mut self, _: FlashCommand) {}

    fn counters(&self) -> &MediumCounters {
        &self.0
    }
}
