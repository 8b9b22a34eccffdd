//! The state of a drive between two runs: it decides all that the layer does next, while nothing is under way.
//!
//! Beside the state that a restart finds on flash ([`SuperblockContents`]) it holds the orders in which superblocks are
//! opened and reclaimed, birthdays, reads, retired superblocks and counters, so that a layer built from it does to the
//! slot what the old one would have done. Not in it: payload stamps, and the memory of a wear leveling, which begins
//! with the erases that there are.

use crate::blocks::State;
use crate::config::FtlConfig;
use crate::counters::FtlCounters;
use crate::ftl::Ftl;
use crate::recovered::{RecoveryError, SuperblockContents};
use flashyard_flash::{Geometry, Slot};

/// The state of a translation layer and of the flash below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgedState {
    /// Contents of each superblock; [`crate::UsedSuperblock::opened`] of a closed one is its birthday.
    pub contents: Vec<SuperblockContents>,
    /// Erased superblocks, in the order in which they became so as far as it matters. The other empty ones are retired.
    pub erased: Vec<u32>,
    /// Closed superblocks, in an order of becoming victims that gives the same ones again.
    pub closed: Vec<u32>,
    /// Superblocks that are retired when they are next emptied.
    pub retiring: Vec<u32>,
    /// Host reads of each superblock since its erase; empty when they were not counted.
    pub reads: Vec<u32>,
    /// Slots of the protected log of remaps, with their logical slots.
    pub remapped: Vec<(u32, u32)>,
    /// Counts so far.
    pub counters: FtlCounters,
    /// Whether the drive is degraded.
    pub degraded: bool,
}

impl Ftl {
    /// The state of the layer. A superblock that is being emptied counts as closed: its garbage collection begins
    /// again.
    pub fn aged_state(&self) -> AgedState {
        let numbers =
            |wanted: &dyn Fn(u32) -> bool| (0..self.layout.superblocks).filter(|&number| wanted(number)).collect();
        let retiring = |number: u32| self.blocks.all[number as usize].retiring && !self.is_retired(number);
        AgedState {
            contents: self.contents(),
            erased: self.blocks.erased.in_order(),
            closed: self.blocks.victims.in_order(),
            retiring: numbers(&retiring),
            reads: self.reads.clone(),
            remapped: self.remap_log().map(|(slot, logical)| (slot.get(), logical)).collect(),
            counters: self.counters,
            degraded: self.degraded,
        }
    }

    /// A layer in that state, with parameters that may be others as far as they fit: it goes on where the old one
    /// stopped.
    ///
    /// Errors: a state that cannot be, or not of this drive.
    pub fn from_aged(geometry: &Geometry, config: FtlConfig, state: &AgedState) -> Result<Self, RecoveryError> {
        // Nothing is retired, and no policy looks, until everything is in its place.
        let quiet = FtlConfig { retire_at: None, coalesce: true, ..config };
        let log = state.remapped.iter().map(|&(slot, logical)| (Slot::new(slot), logical));
        let mut ftl = Self::recovered_with_log(geometry, quiet, &state.contents, log)?;
        ftl.config = config;
        ftl.counters = state.counters;
        ftl.degraded = state.degraded;
        if !state.reads.is_empty() {
            ftl.reads = state.reads.clone();
            ftl.reads.resize(state.contents.len(), 0);
        }
        for (number, contents) in (0..).zip(&state.contents) {
            let superblock = &mut ftl.blocks.all[number as usize];
            if let Some(used) = &contents.used
                && superblock.state == State::Closed
            {
                superblock.closed_at = if used.opened == u64::MAX { 0 } else { used.opened };
                ftl.blocks.victims.remove(number, superblock.valid);
            }
        }
        ftl.order_aged(state)?;
        for &number in &state.retiring {
            ftl.known(number)?;
            ftl.blocks.all[number as usize].retiring = true;
        }
        ftl.retire_erased();
        let retired = ftl.blocks.all.iter().filter(|superblock| superblock.state == State::Retired).count();
        ftl.counters.retired_superblocks = retired as u64;
        let worn_out = |erases: u32| config.retire_at.is_some_and(|last| erases >= last);
        let early = !state.retiring.is_empty()
            || ftl.blocks.all.iter().any(|block| block.state == State::Retired && !worn_out(block.erases));
        ftl.kept_erased = config.kept_erased() + u32::from(early);
        ftl.set_wear_leveling(config.wear_leveling);
        Ok(ftl)
    }

    /// Lists erased and closed superblocks in their orders. Empty ones that are not named are retired, closed ones that
    /// are not named come last.
    fn order_aged(&mut self, state: &AgedState) -> Result<(), RecoveryError> {
        for &number in &state.erased {
            self.known(number)?;
            if !self.blocks.take_erased(number) {
                return Err(RecoveryError::Order { superblock: number });
            }
            self.blocks.all[number as usize].state = State::Victim;
        }
        for number in 0..self.layout.superblocks {
            if self.blocks.take_erased(number) {
                self.blocks.all[number as usize].state = State::Retired;
            }
        }
        state.erased.iter().for_each(|&number| self.blocks.make_ready(number));
        let mut listed = vec![false; self.blocks.all.len()];
        for number in state.closed.iter().copied().chain(0..self.layout.superblocks) {
            self.known(number)?;
            let superblock = &self.blocks.all[number as usize];
            if superblock.state == State::Closed && !std::mem::replace(&mut listed[number as usize], true) {
                self.blocks.victims.insert(number, superblock.valid);
            }
        }
        Ok(())
    }

    fn known(&self, superblock: u32) -> Result<(), RecoveryError> {
        if superblock < self.layout.superblocks { Ok(()) } else { Err(RecoveryError::Order { superblock }) }
    }
}
