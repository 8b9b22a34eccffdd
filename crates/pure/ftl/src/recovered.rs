//! A layer built from the contents of flash: for an owner that keeps payload and its reverse map across restarts.
//!
//! The owner names the current slots of each superblock. The frontiers go on where they stopped: the drive's memory is
//! protected, so that a half-filled die row is in the write buffer again. Garbage collection under way begins again:
//! its victim is an ordinary superblock with less to move.

use crate::blocks::{Blocks, RowSet, State};
use crate::config::{Frontiers, FtlConfig, FtlConfigError};
use crate::ftl::{Frontier, Ftl, Stream};
use flashyard_flash::{Geometry, Layout};

/// Contents of one superblock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuperblockContents {
    /// Erases so far.
    pub erases: u32,
    /// Its slots; `None` for an erased one.
    pub used: Option<UsedSuperblock>,
}

/// A superblock that is not erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedSuperblock {
    /// The stream that fills it, or has filled it.
    pub stream: Stream,
    /// Whether in single-level mode.
    pub single_level: bool,
    /// Grows from each superblock opened to the next.
    pub opened: u64,
    /// Slots up to the last one ever written.
    pub written: u32,
    /// Slots whose data is current: index in the superblock and logical slot, in order of the index.
    pub valid: Vec<(u32, u32)>,
    /// Logical slots among them whose data cannot be read: their owner's business, this layer does not look at them.
    pub lost: Vec<u32>,
}

/// Why no layer can be built from contents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    /// The layer itself cannot be.
    #[error(transparent)]
    Config(#[from] FtlConfigError),
    /// Not one entry for each superblock.
    #[error("contents of {given} superblocks for a drive of {expected}")]
    Count {
        /// Superblocks given.
        given: usize,
        /// Superblocks of the drive.
        expected: u32,
    },
    /// A slot or a logical slot that there is not, or slots out of order.
    #[error("superblock {superblock}: slot {index} with logical slot {logical} cannot be")]
    Slot {
        /// The superblock.
        superblock: u32,
        /// Index in it.
        index: u32,
        /// Logical slot.
        logical: u32,
    },
    /// A superblock that there is not, or that is in another state than a list says.
    #[error("superblock {superblock} is listed as one that it is not")]
    Order {
        /// The superblock.
        superblock: u32,
    },
    /// Two slots are current for one logical slot.
    #[error("logical slot {logical} is current twice, the second time in superblock {superblock}")]
    Twice {
        /// The logical slot.
        logical: u32,
        /// Where the second one is.
        superblock: u32,
    },
}

impl Ftl {
    /// A layer over flash with these contents, one entry for each superblock. Nothing is filled beside them.
    ///
    /// Errors: geometry and configuration that do not fit together; contents that cannot be.
    pub fn recovered(
        geometry: &Geometry,
        config: FtlConfig,
        contents: &[SuperblockContents],
    ) -> Result<Self, RecoveryError> {
        let mut ftl = Self::new(geometry, FtlConfig { filled_slots: 0, drawn: false, ..config })?;
        ftl.config = config;
        let layout = ftl.layout;
        if contents.len() != layout.superblocks as usize {
            return Err(RecoveryError::Count { given: contents.len(), expected: layout.superblocks });
        }
        ftl.blocks.erased.clear();
        for (superblock, contents) in (0..).zip(contents) {
            ftl.blocks.all[superblock as usize].erases = contents.erases;
            match &contents.used {
                Some(used) => ftl.fill_recovered(&layout, superblock, used)?,
                None => ftl.blocks.make_ready(superblock),
            }
        }
        ftl.blocks.erases_total = ftl.erase_counts().map(u64::from).sum();
        for stream in ftl.resumable() {
            let lane = ftl.lane(stream);
            let of_stream = |entry: &(u32, &UsedSuperblock)| ftl.lane(entry.1.stream) == lane;
            let used = (0..).zip(contents).filter_map(|(number, contents)| Some((number, contents.used.as_ref()?)));
            if let Some((superblock, used)) = used.filter(of_stream).max_by_key(|(_, used)| used.opened) {
                ftl.resume(stream, superblock, used.written);
            }
        }
        let Blocks { all, victims, .. } = &mut ftl.blocks;
        for (number, superblock) in (0..).zip(all.iter()).filter(|(_, superblock)| superblock.state == State::Closed) {
            victims.insert(number, superblock.valid);
        }
        ftl.retire_erased();
        ftl.set_wear_leveling(config.wear_leveling);
        Ok(ftl)
    }

    /// Streams whose frontiers go on. The superblock that wear leveling was filling is left as it is: its source is
    /// there still.
    fn resumable(&self) -> impl Iterator<Item = Stream> + use<> {
        let shared = self.config.frontiers == Frontiers::Shared;
        [Stream::Host, Stream::Moved].into_iter().take(if shared { 1 } else { 2 })
    }

    fn fill_recovered(&mut self, layout: &Layout, number: u32, used: &UsedSuperblock) -> Result<(), RecoveryError> {
        let superblock = &mut self.blocks.all[number as usize];
        superblock.state = State::Closed;
        superblock.single_level = used.single_level;
        self.single_level_in_use += u32::from(used.single_level);
        let limit = self.written_slots(number);
        (0..layout.slots_per_superblock).for_each(|index| self.blocks.pad(layout.slot(number, index)));
        let mut next = 0;
        for &(index, logical) in &used.valid {
            if index < next || index >= used.written.min(limit) || logical >= self.config.logical_slots {
                return Err(RecoveryError::Slot { superblock: number, index, logical });
            }
            next = index + 1;
            let slot = layout.slot(number, index);
            if self.map.replace(logical, slot).is_some() {
                return Err(RecoveryError::Twice { logical, superblock: number });
            }
            self.blocks.fill(number, slot, logical);
        }
        Ok(())
    }

    /// Goes on filling a superblock after its first `written` slots, if it is not full.
    fn resume(&mut self, stream: Stream, superblock: u32, written: u32) {
        let limit = self.written_slots(superblock);
        let pads = stream == Stream::Host && !self.config.coalesce;
        let next = if pads { written.next_multiple_of(self.layout.slots_per_page) } else { written };
        if next >= limit {
            return;
        }
        let per_row = self.layout.slots_per_die_row;
        let (full, rows) = (next / per_row, limit / per_row);
        let mut words = vec![0; rows.div_ceil(64) as usize];
        (full..rows).for_each(|row| words[row as usize / 64] |= 1 << (row % 64));
        let state = &mut self.blocks.all[superblock as usize];
        state.state = State::Open;
        state.unprogrammed = Some(Box::new(RowSet { words, missing: rows - full }));
        let lane = self.lane(stream);
        self.frontiers[lane] = Some(Frontier { superblock, next, limit });
    }

    /// Slots of the stream's frontier that are in the write buffer: those of a die row that is not full.
    pub fn buffered(&self, stream: Stream) -> u32 {
        self.frontiers[self.lane(stream)].map_or(0, |frontier| frontier.next % self.layout.slots_per_die_row)
    }

    /// Contents of each superblock, as [`Ftl::recovered`] takes them.
    pub fn contents(&self) -> Vec<SuperblockContents> {
        (0..self.layout.superblocks).map(|number| self.contents_of(number)).collect()
    }

    fn contents_of(&self, number: u32) -> SuperblockContents {
        let superblock = &self.blocks.all[number as usize];
        let erases = superblock.erases;
        if matches!(superblock.state, State::Erased | State::Retired) {
            return SuperblockContents { erases, used: None };
        }
        let open = [Stream::Host, Stream::Moved, Stream::Leveled].into_iter().find_map(|stream| {
            self.frontiers[stream as usize].filter(|frontier| frontier.superblock == number).map(|at| (stream, at.next))
        });
        let (stream, written) = open.unwrap_or((Stream::Host, self.written_slots(number)));
        // The open ones are the youngest.
        let opened = if open.is_some() { u64::MAX } else { superblock.closed_at };
        let current = |index: &u32| self.blocks.is_valid(self.layout.slot(number, *index));
        let logical = |index: u32| self.blocks.reverse.get(self.layout.slot(number, index).get()).get();
        let valid = (0..written).filter(current).map(|index| (index, logical(index))).collect();
        let single_level = superblock.single_level;
        let used = UsedSuperblock { stream, single_level, opened, written, valid, lost: Vec::new() };
        SuperblockContents { erases, used: Some(used) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VictimPolicy;
    use flashyard_flash::{FlashCommand, Medium, MediumCounters};
    use flashyard_kernel::Rng;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Counting(MediumCounters);

    impl Medium for Counting {
        fn accept(&mut self, command: FlashCommand) {
            self.0.count(&command);
        }

        fn counters(&self) -> &MediumCounters {
            &self.0
        }
    }

    fn small(coalesce: bool, slc: u32) -> (Geometry, FtlConfig) {
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: 2,
            blocks_per_plane: 24,
            pages_per_block: 6,
            page_bytes: 8192,
            pages_per_program: 1,
        };
        let config = FtlConfig {
            logical_slots: 24 * 96 * 6 / 10,
            filled_slots: 700,
            victim: VictimPolicy::Greedy,
            reclaim_below: 2,
            coalesce,
            slc_superblocks: slc,
            stamps: false,
            ..FtlConfig::default()
        };
        (geometry, config)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn a_recovered_layer_maps_what_the_old_one_did_and_goes_on(
            seed: u64, steps in 0_u32..3000, coalesce: bool, slc in 0_u32..3, restarts in 1_u32..6,
        ) {
            let (geometry, config) = small(coalesce, slc);
            let mut ftl = Ftl::new(&geometry, config).expect("the small drive fits");
            let mut medium = Counting::default();
            let mut rng = Rng::named(seed, "test");
            for _ in 0..restarts {
                for _ in 0..steps {
                    let logical = rng.below(u64::from(config.logical_slots)) as u32;
                    if rng.below(20) == 0 { ftl.trim(logical); } else { ftl.age_write(logical, 0, &mut medium).expect("nothing wears out"); }
                }
                let again = Ftl::recovered(&geometry, config, &ftl.contents()).expect("these are contents of a layer");
                again.check();
                for logical in 0..config.logical_slots {
                    prop_assert_eq!(again.lookup(logical), ftl.lookup(logical));
                }
                // Ageing pads nothing: where commands begin a page each, a frontier inside one is never seen in time.
                if coalesce {
                    prop_assert_eq!(again.host_room(), ftl.host_room());
                    prop_assert_eq!(again.buffered(Stream::Host), ftl.buffered(Stream::Host));
                }
                prop_assert_eq!(again.moved_room(), ftl.moved_room());
                prop_assert_eq!(again.buffered(Stream::Moved), ftl.buffered(Stream::Moved));
                prop_assert!(again.erase_counts().eq(ftl.erase_counts()));
                ftl = again;
            }
        }
    }

    #[test]
    fn rows_that_were_begun_are_on_flash_and_later_ones_are_not() {
        // Rows in more than one word of the set.
        let geometry = Geometry { pages_per_block: 48, ..small(true, 0).0 };
        let layout = Layout::new(&geometry);
        for rows in [0, 1, 63, 64, 65, 130, layout.die_rows_per_superblock - 1] {
            let used = UsedSuperblock {
                stream: Stream::Host,
                single_level: false,
                opened: 1,
                written: rows * layout.slots_per_die_row,
                valid: Vec::new(),
                lost: Vec::new(),
            };
            let mut contents = vec![SuperblockContents { erases: 0, used: None }; 24];
            contents[3].used = Some(used);
            let mut ftl = Ftl::recovered(&geometry, small(true, 0).1, &contents).expect("it is the start of a layer");
            let on_flash = |ftl: &Ftl| -> Vec<u32> {
                let first = |row: &u32| layout.slot(3, row * layout.slots_per_die_row);
                (0..layout.die_rows_per_superblock).filter(|row| ftl.is_programmed(first(row))).collect()
            };
            assert_eq!(on_flash(&ftl), (0..rows).collect::<Vec<_>>());
            let row = (0..layout.slots_per_die_row).find_map(|logical| ftl.append(Stream::Host, logical, 0).row);
            ftl.row_programmed(row.expect("it fills a row").number);
            assert_eq!(on_flash(&ftl), (0..=rows).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_hosts_commands_alone_begin_a_page_each_after_a_start() {
        for (coalesce, stream, next) in [(false, Stream::Host, 6), (true, Stream::Host, 5), (false, Stream::Moved, 5)] {
            let (geometry, config) = small(coalesce, 0);
            let mut ftl = Ftl::new(&geometry, FtlConfig { filled_slots: 0, ..config }).expect("the small drive fits");
            (0..5).for_each(|logical| _ = ftl.append(stream, logical, 0));
            let again = Ftl::recovered(&geometry, config, &ftl.contents()).expect("these are contents of a layer");
            assert_eq!(again.buffered(stream), next % again.layout().slots_per_die_row);
        }
        // Nothing is drawn, so that victims need not be those of a drawn drive.
        let (geometry, config) = small(true, 0);
        let config = FtlConfig { drawn: true, victim: VictimPolicy::CostBenefit, ..config };
        let erased = vec![SuperblockContents { erases: 0, used: None }; 24];
        assert!(Ftl::recovered(&geometry, config, &erased).is_ok());
    }

    #[test]
    fn contents_that_cannot_be_are_refused_in_words() {
        let (geometry, config) = small(true, 0);
        let whole = Ftl::new(&geometry, config).expect("the small drive fits").contents();
        let refused = |change: &dyn Fn(&mut Vec<SuperblockContents>)| {
            let mut contents = whole.clone();
            change(&mut contents);
            Ftl::recovered(&geometry, config, &contents).err().expect("it cannot be").to_string()
        };
        let first = |contents: &mut Vec<SuperblockContents>, entry| {
            contents[0].used.as_mut().expect("it is filled").valid[1] = entry;
        };
        assert_eq!(refused(&|contents| contents.truncate(3)), "contents of 3 superblocks for a drive of 24");
        assert_eq!(
            refused(&|contents| first(contents, (1, 99_999))),
            "superblock 0: slot 1 with logical slot 99999 cannot be"
        );
        assert_eq!(
            refused(&|contents| first(contents, (1, 0))),
            "logical slot 0 is current twice, the second time in superblock 0"
        );
        assert_eq!(refused(&|contents| first(contents, (0, 1))), "superblock 0: slot 0 with logical slot 1 cannot be");
    }
}
