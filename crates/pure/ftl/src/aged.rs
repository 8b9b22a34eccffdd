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
use crate::retire::note_due_refreshes;
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
        note_due_refreshes(&mut ftl);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::Stream;
    use crate::small::{LOGICAL, Nothing, SLOTS, geometry, small};

    /// A layer that holds something in closed, open and erased superblocks.
    fn used(policies: FtlConfig) -> Ftl {
        let mut ftl = small(policies);
        for number in 0..LOGICAL * 3 + 5 {
            ftl.age_write(number % LOGICAL, 0, &mut Nothing::default()).expect("there is spare room");
        }
        ftl
    }

    fn again(ftl: &Ftl) -> Ftl {
        let state = ftl.aged_state();
        let again = Ftl::from_aged(&geometry(), *ftl.config(), &state).expect("it is the state of a layer");
        assert_eq!(again.aged_state(), state);
        assert_eq!((again.kept_erased, again.host_room()), (ftl.kept_erased, ftl.host_room()));
        again.check();
        again
    }

    /// A superblock in that state.
    fn one(ftl: &Ftl, state: State) -> u32 {
        ftl.blocks.all.iter().position(|superblock| superblock.state == state).expect("there is one") as u32
    }

    #[test]
    fn everything_that_decides_what_comes_next_is_there_again() {
        // Ageing pads nothing, and neither does the start of an aged drive.
        let mut ftl = used(FtlConfig { coalesce: false, remap_entries: 4, ..FtlConfig::default() });
        assert_eq!(ftl.padding_to(Stream::Host, ftl.layout().slots_per_page), 1, "a page is half filled");
        ftl.count_reads(Slot::new(one(&ftl, State::Closed) * SLOTS), 7);
        ftl.remap(3, 4).expect("the log has room");
        ftl.set_degraded(true);
        let again = again(&ftl);
        assert_eq!((again.reads.clone(), again.degraded()), (ftl.reads, true));
        let birthdays = |ftl: &Ftl| ftl.blocks.all.iter().map(|superblock| superblock.closed_at).max();
        assert!(birthdays(&again) > Some(0));
    }

    #[test]
    fn superblocks_that_an_owner_retires_stay_so_and_have_their_room() {
        let kept = FtlConfig::default().kept_erased();
        let mut ftl = used(FtlConfig::default());
        assert_eq!(again(&ftl).kept_erased, kept);
        let closed = one(&ftl, State::Closed);
        ftl.retire_early(closed);
        assert_eq!(ftl.aged_state().retiring, [closed]);
        assert_eq!(again(&ftl).kept_erased, kept + 1);
        let mut ftl = used(FtlConfig::default());
        let erased = one(&ftl, State::Erased);
        ftl.retire_early(erased);
        assert_eq!(ftl.aged_state().retiring, [], "it is retired already");
        let again = again(&ftl);
        assert_eq!((again.kept_erased, again.is_retired(erased)), (kept + 1, true));
    }

    #[test]
    fn superblocks_that_a_rule_retires_have_the_room_of_the_rule() {
        let mut ftl = used(FtlConfig { retire_at: Some(6), ..FtlConfig::default() });
        while ftl.retired_superblocks() == 0 {
            ftl.age_write(0, 0, &mut Nothing::default()).expect("there is spare room");
        }
        assert_eq!(again(&ftl).kept_erased, ftl.config().kept_erased());
    }
}
