//! Stripes of dies with parity: where their members lie, and when their parity is due.
//!
//! The translation layer sees a drive without parity. A stripe is one die row of each of `members - 1` data dies as the
//! layer numbers them, and of one die more for their parity. Which die that is goes round from page row to page row:
//! parity is not read, and so no die is left out.
//!
//! The parity of a stripe that is not full yet is in the controller's memory, beside the write buffer, and is programmed with the
//! stripe's last die row. Source: [A] sheet cvss §5; where parity lies and when it is written is [A], too.

use crate::command::{CommandSpec, Tag};
use flashyard_flash::{FlashCommand, Geometry, Priority, Slot};
use flashyard_ftl::Ftl;
use flashyard_units::Named;
use std::collections::BTreeSet;

/// Fate of a read whose die is held by a program or an erase of garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockedReads {
    /// It waits for it.
    Wait,
    /// Its data is rebuilt from the other members of the stripe.
    Rebuild,
    /// It is rebuilt if the dies of the others are free sooner, as far as their present commands tell.
    RebuildIfSooner,
}

impl Named for BlockedReads {
    const ALL: &'static [Self] = &[Self::Wait, Self::Rebuild, Self::RebuildIfSooner];

    fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Rebuild => "rebuild",
            Self::RebuildIfSooner => "rebuild-if-sooner",
        }
    }
}

/// Parity across dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripeConfig {
    /// Dies of a stripe, that of the parity among them: at least 2, and a divisor of the channels. No two are on one
    /// channel.
    pub members: u32,
    /// Whether garbage collection works on one member of a stripe at a time, in turn.
    pub rotates: bool,
    /// Reads that find their die at work for garbage collection.
    pub blocked_reads: BlockedReads,
}

impl StripeConfig {
    /// The flash that is left for data, as the translation layer sees it.
    pub(crate) fn data_geometry(&self, geometry: &Geometry) -> Geometry {
        Geometry { channels: geometry.channels / self.members * (self.members - 1), ..*geometry }
    }
}

/// The stripes of a drive.
pub(crate) struct Stripes {
    pub(crate) config: StripeConfig,
    /// Stripes of a page row.
    groups: u32,
    /// Full stripes whose parity is not on flash yet.
    pending: BTreeSet<u32>,
}

impl Stripes {
    /// The stripes of a geometry whose channels the members divide.
    pub(crate) fn new(config: StripeConfig, geometry: &Geometry) -> Self {
        Self { config, groups: geometry.dies() / config.members, pending: BTreeSet::new() }
    }

    /// The stripe of a die row as the translation layer counts them, and its place among the data of it.
    pub(crate) fn split(&self, row: u32) -> (u32, u32) {
        let data = self.config.members - 1;
        (row / data, row % data)
    }

    /// The die row at a place among the data of a stripe.
    pub(crate) fn row(&self, stripe: u32, place: u32) -> u32 {
        stripe * (self.config.members - 1) + place
    }

    /// The die that holds a die row.
    pub(crate) fn die(&self, row: u32) -> u16 {
        let (stripe, place) = self.split(row);
        self.die_of_member(stripe, place + u32::from(place >= self.parity_member(stripe)))
    }

    /// The die that holds the parity of a stripe.
    pub(crate) fn parity_die(&self, stripe: u32) -> u16 {
        self.die_of_member(stripe, self.parity_member(stripe))
    }

    /// Which member holds the parity: the next one in each page row.
    fn parity_member(&self, stripe: u32) -> u32 {
        stripe / self.groups % self.config.members
    }

    fn die_of_member(&self, stripe: u32, member: u32) -> u16 {
        // Below the dies of a geometry, which are a u16.
        (stripe % self.groups * self.config.members + member) as u16
    }

    /// Whether the parity of a full stripe is on flash.
    pub(crate) fn parity_is_programmed(&self, stripe: u32) -> bool {
        !self.pending.contains(&stripe)
    }

    /// The parity of a stripe has been programmed.
    pub(crate) fn parity_programmed(&mut self, stripe: u32) {
        self.pending.remove(&stripe);
    }

    /// The flash reads that give back `span` slots from `first`.
    pub(crate) fn plan_rebuild(&self, ftl: &Ftl, first: Slot, span: u32, reads: &mut Vec<FlashCommand>) {
        let per_row = ftl.layout().slots_per_die_row;
        let row = ftl.layout().die_row(first);
        let offset = first.get() - row * per_row;
        let (stripe, own) = self.split(row);
        let mut full = true;
        for place in 0..self.config.members - 1 {
            let other = self.row(stripe, place);
            let slot = Slot::new(other * per_row + offset);
            let programmed = ftl.is_programmed(slot);
            full &= programmed;
            if place != own && programmed {
                let command = ftl.read_command(slot, span, span, Priority::Foreground, 0);
                reads.push(FlashCommand { die: self.die(other), ..command });
            }
        }
        if full && self.parity_is_programmed(stripe) {
            let command = ftl.read_command(first, span, span, Priority::Foreground, 0);
            reads.push(FlashCommand { die: self.parity_die(stripe), ..command });
        }
    }

    /// The slots of a host's read in its first die row on `die`: first one and span. `None` where none is there any more.
    pub(crate) fn slots_on(&self, ftl: &Ftl, spec: &CommandSpec, die: u16) -> Option<(Slot, u32)> {
        let CommandSpec { first, count, .. } = *spec;
        let layout = ftl.layout();
        let places = (first..first + count).map(|logical| ftl.lookup(logical));
        let is_there =
            |slot: &Slot| slot.is_some() && ftl.is_programmed(*slot) && self.die(layout.die_row(*slot)) == die;
        let mut found = places.filter(is_there);
        let start = found.next()?;
        let in_row = found.filter(|&slot| layout.die_row(slot) == layout.die_row(start));
        let (low, high) = in_row.fold((start, start), |(low, high), slot| (low.min(slot), high.max(slot)));
        Some((low, high.get() - low.get() + 1))
    }

    /// The program of the parity, if a stripe is full with the die row that `program` is for.
    pub(crate) fn parity_command(&mut self, row: u32, program: &FlashCommand) -> Option<FlashCommand> {
        let (stripe, place) = self.split(row);
        if place + 2 < self.config.members {
            return None;
        }
        self.pending.insert(stripe);
        Some(FlashCommand { die: self.parity_die(stripe), tag: Tag::Parity(stripe).pack(), ..*program })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn data_and_parity_of_a_stripe_lie_on_all_its_dies_and_on_different_channels(
            members in 2_u32..9, per_channel in 1_u32..5, multiple in 1_u32..4, page_row in 0_u32..1000,
        ) {
            let geometry = Geometry {
                channels: members * multiple,
                dies_per_channel: per_channel,
                planes_per_die: 1,
                blocks_per_plane: 10,
                pages_per_block: 1000,
                page_bytes: 4096,
                pages_per_program: 1,
            };
            let config = StripeConfig { members, rotates: true, blocked_reads: BlockedReads::Rebuild };
            let stripes = Stripes::new(config, &geometry);
            let data_dies = config.data_geometry(&geometry).dies();
            prop_assert_eq!(data_dies, geometry.dies() / members * (members - 1));
            let mut seen = BTreeSet::new();
            for die in 0..data_dies {
                let row = page_row * data_dies + die;
                let (stripe, place) = stripes.split(row);
                prop_assert_eq!(stripes.row(stripe, place), row);
                prop_assert!(seen.insert(stripes.die(row)));
                if place == 0 {
                    prop_assert!(seen.insert(stripes.parity_die(stripe)));
                    let of_stripe = (0..members - 1).map(|place| stripes.die(stripes.row(stripe, place)));
                    let channels: BTreeSet<u32> = of_stripe
                        .chain([stripes.parity_die(stripe)])
                        .map(|die| u32::from(die) % geometry.channels)
                        .collect();
                    prop_assert_eq!(channels.len() as u32, members);
                }
            }
            prop_assert_eq!(seen.len() as u32, geometry.dies());
        }
    }
}
