//! Parameters of the translation layer.

use flashyard_flash::{Geometry, Layout};

/// How reclaim chooses its victim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VictimPolicy {
    /// Fewest valid slots.
    #[default]
    Greedy,
    /// Most free space times age for each slot moved: (1 - u) age / 2u.
    CostBenefit,
}

/// Parameters of one drive's translation layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FtlConfig {
    /// Slots the drive exports.
    pub logical_slots: u32,
    /// Slots written sequentially before the run, from slot 0 up; at most `logical_slots`.
    pub filled_slots: u32,
    /// Victim choice.
    pub victim: VictimPolicy,
    /// Reclaim runs while at most this many superblocks are erased. At least 2.
    pub reclaim_below: u32,
    /// Whether commands share flash pages. When false every command starts a flash page and pads its
    /// last one, as result 8 of the source needs ([D] xbof §8.3).
    pub coalesce: bool,
    /// Superblocks used as single-level-cell cache at any time; zero for none.
    pub slc_superblocks: u32,
    /// Whether each slot carries a payload stamp.
    pub stamps: bool,
}

/// Why a translation layer cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FtlConfigError {
    /// Too little spare space to move anything.
    #[error(
        "{logical} logical slots leave {spare} spare superblocks of {total}; export at most {most} slots ({share:.2} % of raw)",
        share = 100.0 * f64::from(*most) / f64::from(*raw)
    )]
    TooLittleSpare {
        /// Slots asked for.
        logical: u32,
        /// Superblocks left over.
        spare: u32,
        /// Superblocks in all.
        total: u32,
        /// Slots possible.
        most: u32,
        /// Raw slots.
        raw: u32,
    },
    /// More was to be filled than is exported.
    #[error("{filled} slots are to be filled but only {logical} are exported")]
    Overfilled {
        /// Slots to fill.
        filled: u32,
        /// Slots exported.
        logical: u32,
    },
    /// A number outside its range.
    #[error("{name} is {value}, give {range}")]
    Range {
        /// Which one.
        name: &'static str,
        /// What was given.
        value: u32,
        /// What is possible.
        range: &'static str,
    },
}

impl FtlConfig {
    /// Superblocks that can never hold exported data: two open frontiers, the reclaim threshold.
    const fn reserved(&self) -> u32 {
        2 + self.reclaim_below + self.slc_superblocks
    }

    /// Slots exported when `spare` (0..1) of the raw capacity is kept back.
    pub fn logical_slots_for(geometry: &Geometry, spare: f64) -> u32 {
        let layout = Layout::new(geometry);
        let raw = f64::from(layout.superblocks) * f64::from(layout.slots_per_superblock);
        (raw * (1.0 - spare)) as u32
    }

    /// Checks ranges against a geometry.
    pub fn validate(&self, geometry: &Geometry) -> Result<(), FtlConfigError> {
        let layout = Layout::new(geometry);
        let raw = layout.superblocks * layout.slots_per_superblock;
        if self.reclaim_below < 2 {
            let (name, value) = ("reclaim_below", self.reclaim_below);
            return Err(FtlConfigError::Range { name, value, range: "at least 2 superblocks" });
        }
        if self.logical_slots == 0 {
            return Err(FtlConfigError::Range { name: "logical_slots", value: 0, range: "at least 1 slot" });
        }
        if self.filled_slots > self.logical_slots {
            return Err(FtlConfigError::Overfilled { filled: self.filled_slots, logical: self.logical_slots });
        }
        let needed = self.logical_slots.div_ceil(layout.slots_per_superblock);
        let spare = layout.superblocks.saturating_sub(needed);
        if spare < self.reserved() {
            let most = layout.superblocks.saturating_sub(self.reserved()) * layout.slots_per_superblock;
            let (logical, total) = (self.logical_slots, layout.superblocks);
            return Err(FtlConfigError::TooLittleSpare { logical, spare, total, most, raw });
        }
        Ok(())
    }
}
