//! Parameters of the translation layer.

use flashyard_flash::{Geometry, Layout};
use flashyard_units::Named;
use std::fmt;
use std::str::FromStr;

/// Frontiers that a host can have. Source: \[P\] sheet cvss §5, the streams of AutoStream.
pub const HOST_STREAMS_MAX: u32 = 8;

/// How garbage collection chooses its victim.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum VictimPolicy {
    /// Fewest valid slots.
    #[default]
    Greedy,
    /// Most free space times age for each slot moved: (1 - u) age / 2u.
    CostBenefit,
    /// The greatest weighted sum of invalid share, erases and host reads; needs [`FtlConfig::endurance`].
    /// Source: [P] cvss §3.6, equation 5.1. Ties go to the lowest number ([A]).
    CapacityVariant(ScoreWeights),
    /// Fewest valid slots, then most erases, then the lowest number. Source: [C] cvss §3.6.
    FewestValidOldest,
}

impl Named for VictimPolicy {
    const ALL: &'static [Self] =
        &[Self::Greedy, Self::CostBenefit, Self::CapacityVariant(ScoreWeights::PUBLISHED), Self::FewestValidOldest];

    fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::CostBenefit => "cost-benefit",
            Self::CapacityVariant(_) => "capacity-variant",
            Self::FewestValidOldest => "fewest-valid-oldest",
        }
    }
}

/// Weights of the capacity-variant score. Each factor is a share from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreWeights {
    /// Weight of the invalid share.
    pub invalid: f64,
    /// Weight of erases over nominal erases.
    pub age: f64,
    /// Weight of host reads over those of the superblock that is read most.
    pub reads: f64,
    /// Weight of the invalid share in degraded mode.
    pub degraded_invalid: f64,
    /// Weight of erases over nominal erases in degraded mode, where age counts against a victim.
    pub degraded_age: f64,
}

impl ScoreWeights {
    /// Source: [P] cvss §3.6; the degraded ones are [A] there.
    const PUBLISHED: Self = Self { invalid: 0.4, age: 0.3, reads: 0.3, degraded_invalid: 0.6, degraded_age: 0.4 };
}

impl Default for ScoreWeights {
    fn default() -> Self {
        Self::PUBLISHED
    }
}

/// Which of several superblocks with equally few valid slots the greedy victim is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VictimTies {
    /// The superblock that came to this count last.
    #[default]
    NewestFirst,
    /// The superblock that has had this count longest. Source: [C] wear-leveling §9.
    OldestFirst,
    /// The superblock with the fewest erases, among several the lowest number. Source: [C] the public artifact of cvss, whose
    /// `select_victim_line` compares erases where as much is valid. A choice costs a look at every superblock.
    LeastErased,
}

impl Named for VictimTies {
    const ALL: &'static [Self] = &[Self::NewestFirst, Self::OldestFirst, Self::LeastErased];

    fn name(self) -> &'static str {
        match self {
            Self::NewestFirst => "newest-first",
            Self::OldestFirst => "oldest-first",
            Self::LeastErased => "least-erased",
        }
    }
}

/// Which erased superblock is opened next. Ties go to the lowest number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allocation {
    /// The superblock that has been erased longest.
    #[default]
    Fifo,
    /// Fewest erases.
    YoungestFirst,
    /// Most erases; in degraded mode fewest. Source: [C] the public artifact of cvss, `get_next_free_line`.
    OldestFirst,
    /// Most erases for host data and fewest for moved data; in degraded mode the other way round. Streams of the
    /// host after the first are placed like moved data.
    /// Source: [P] cvss §3.5.
    WearFocusing,
}

impl Named for Allocation {
    const ALL: &'static [Self] = &[Self::Fifo, Self::YoungestFirst, Self::OldestFirst, Self::WearFocusing];

    fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::YoungestFirst => "youngest-first",
            Self::OldestFirst => "oldest-first",
            Self::WearFocusing => "wear-focusing",
        }
    }
}

/// Whether host data and moved data share superblocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frontiers {
    /// A write frontier each.
    #[default]
    Separate,
    /// One write frontier for both. Source: [P] wear-leveling §2.
    Shared,
}

impl Named for Frontiers {
    const ALL: &'static [Self] = &[Self::Separate, Self::Shared];

    fn name(self) -> &'static str {
        match self {
            Self::Separate => "separate",
            Self::Shared => "shared",
        }
    }
}

/// How wear is spread over superblocks beside garbage collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WearLeveling {
    /// Not at all.
    #[default]
    None,
    /// The most and the least erased superblock in use exchange their data when they are further apart than this.
    HotColdSwap {
        /// Erases.
        threshold: u32,
    },
    /// A superblock just erased takes the data of the least erased one, and is then left alone for a while.
    OldBlockProtection {
        /// Erases by which it must be ahead.
        threshold: u32,
        /// Erases of the whole drive for which it is left alone.
        protection: u64,
    },
    /// Superblocks are in a hot or a cold pool; the ends of the pools exchange data.
    DualPool {
        /// Erases.
        threshold: u32,
    },
    /// As a drive ages, superblocks ahead of a growing threshold take the data of the least erased one;
    /// needs [`FtlConfig::endurance`].
    Progressive {
        /// Share of the endurance at which a new drive begins, in percent: 0 to 100.
        percent: u32,
    },
    /// While erases are spread too unevenly over the drive, the data of the least erased superblock moves.
    UnevenFactor {
        /// Jain's fairness index of erase counts, in percent, at or below which wear is uneven: 0 to 100.
        percent: u32,
    },
}

/// How [`WearLeveling::Progressive`] reads what its rule leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgressiveReading {
    /// Of equally young superblocks the one closed last gives its data away, and the mean is that of all erases. Source: \[A\]
    #[default]
    Plain,
    /// A heap names the superblock, and the mean is that of erases by garbage collection over the superblocks without those that it keeps
    /// erased, in whole erases. Source: \[C\] FTLSim-WL, the simulator of the wear-leveling study (`ftlsim_pwl.c`).
    Heap,
}

impl fmt::Display for WearLeveling {
    /// As [`FromStr`] reads it: `obp(4,8)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::HotColdSwap { threshold } => write!(f, "hot-cold-swap({threshold})"),
            Self::OldBlockProtection { threshold, protection } => write!(f, "obp({threshold},{protection})"),
            Self::DualPool { threshold } => write!(f, "dp({threshold})"),
            Self::Progressive { percent } => write!(f, "pwl({percent})"),
            Self::UnevenFactor { percent } => write!(f, "uneven({percent})"),
        }
    }
}

/// A text that names no wear leveling.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {0:?}, give none, hot-cold-swap(TH), obp(TH,PT), dp(TH), pwl(PERCENT) or uneven(PERCENT)")]
pub struct UnknownWearLeveling(String);

impl FromStr for WearLeveling {
    type Err = UnknownWearLeveling;

    /// Errors: an unknown name, wrong numbers in the brackets.
    fn from_str(text: &str) -> Result<Self, UnknownWearLeveling> {
        let wrong = || UnknownWearLeveling(text.to_owned());
        let (name, rest) = text.split_once('(').unwrap_or((text, ""));
        let numbers: Vec<u32> = match rest.strip_suffix(')') {
            Some(inside) => {
                inside.split(',').map(|part| part.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?
            }
            None if name == text => Vec::new(),
            None => return Err(wrong()),
        };
        match (name, numbers.as_slice()) {
            ("none", []) => Ok(Self::None),
            ("hot-cold-swap", &[threshold]) => Ok(Self::HotColdSwap { threshold }),
            ("obp", &[threshold, protection]) => {
                Ok(Self::OldBlockProtection { threshold, protection: protection.into() })
            }
            ("dp", &[threshold]) => Ok(Self::DualPool { threshold }),
            ("pwl", &[percent]) => Ok(Self::Progressive { percent }),
            ("uneven", &[percent]) => Ok(Self::UnevenFactor { percent }),
            _ => Err(wrong()),
        }
    }
}

/// Parameters of one drive's translation layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FtlConfig {
    /// Slots the drive exports.
    pub logical_slots: u32,
    /// Slots written sequentially before the run, from slot 0 up; at most `logical_slots`.
    pub filled_slots: u32,
    /// Whether the filled slots lie as after overwriting them at random for long, drawn from the seed. Needs victims of
    /// fewest valid slots and no single-level cache.
    pub drawn: bool,
    /// Victim choice.
    pub victim: VictimPolicy,
    /// Which of several equal victims is taken, for the greedy one.
    pub ties: VictimTies,
    /// Garbage collection runs while at most this many superblocks are erased. At least 2.
    pub reclaim_below: u32,
    /// Whether commands share flash pages. When false every command starts a flash page and pads its
    /// last one, as result 8 of the source needs ([D] xbof §8.3).
    pub coalesce: bool,
    /// Superblocks used as single-level-cell cache at any time; zero for none.
    pub slc_superblocks: u32,
    /// Whether the cache grows beyond that: as long as more superblocks are erased than garbage collection and frontiers need,
    /// the host's next is single-level, too. Source: \[X\] client drives use spare space as such a cache; the limit is \[A\].
    pub slc_grows: bool,
    /// Host reads of a superblock after which its data is moved, because reads disturb it; `None` for never.
    pub refresh_reads: Option<u32>,
    /// Whether each slot carries a payload stamp.
    pub stamps: bool,
    /// Which erased superblock is opened next.
    pub allocation: Allocation,
    /// Whether host data and moved data share superblocks.
    pub frontiers: Frontiers,
    /// Frontiers of the host, each with an open superblock of its own: 1 to [`HOST_STREAMS_MAX`].
    /// See [`crate::Ftl::set_host_stream`].
    pub host_streams: u32,
    /// How wear is spread.
    pub wear_leveling: WearLeveling,
    /// How progressive wear leveling reads its rule.
    pub progressive: ProgressiveReading,
    /// Erases from the first on and below the second at which a superblock takes part in [`WearLeveling::Progressive`]; `None` for all.
    pub leveled_erases: Option<(u32, u32)>,
    /// Erases that a superblock is made for: thresholds and scores refer to it. It retires nothing.
    pub endurance: Option<u32>,
    /// Erases at which a superblock is retired; `None` for never. At least 1.
    pub retire_at: Option<u32>,
    /// Entries of the protected log of remapped slots, 8 bytes each; zero for a drive that cannot remap.
    pub remap_entries: u32,
    /// Whether planes of a die sense independently: a read of one page names its plane then.
    pub independent_planes: bool,
    /// Whether power cuts take what is not on flash. The rows that they take must not take the room that garbage collection needs
    /// to finish a victim: where collection begins early enough for it, one erased superblock more is kept from the host.
    pub loses_memory: bool,
    /// Whether a read brings the slots that are wanted over the bus, and not whole pages.
    pub sends_codewords: bool,
    /// Where the layer's own random choices start: a drawn state, the pools of [`WearLeveling::DualPool`].
    pub seed: u64,
}

impl Default for FtlConfig {
    /// No slots at all, which the owner must change; greedy garbage collection below 2 erased superblocks, no wear
    /// leveling.
    fn default() -> Self {
        Self {
            logical_slots: 0,
            filled_slots: 0,
            drawn: false,
            victim: VictimPolicy::Greedy,
            ties: VictimTies::NewestFirst,
            reclaim_below: 2,
            coalesce: true,
            slc_superblocks: 0,
            slc_grows: false,
            refresh_reads: None,
            stamps: false,
            allocation: Allocation::Fifo,
            frontiers: Frontiers::Separate,
            host_streams: 1,
            wear_leveling: WearLeveling::None,
            progressive: ProgressiveReading::Plain,
            leveled_erases: None,
            endurance: None,
            retire_at: None,
            remap_entries: 0,
            independent_planes: false,
            loses_memory: false,
            sends_codewords: false,
            seed: 0,
        }
    }
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
        /// Name of the parameter.
        name: &'static str,
        /// The value given.
        value: u32,
        /// The accepted range.
        range: &'static str,
    },
    /// Something that host data and moved data in one frontier cannot have.
    #[error("a shared frontier cannot have {what}, give separate ones")]
    NotShared {
        /// The setting.
        what: &'static str,
    },
    /// Something for which no drawn state is known.
    #[error("no steady state can be drawn with {what}, simulate it")]
    NotDrawn {
        /// The setting.
        what: &'static str,
    },
    /// A policy that measures wear against an endurance that is not given.
    #[error("{policy} needs the endurance of a superblock, give `endurance` at least 1 erase")]
    NoEndurance {
        /// The policy.
        policy: &'static str,
    },
}

impl FtlConfig {
    /// Superblocks that can never hold exported data: the open frontiers, the garbage collection threshold.
    pub const fn reserved(&self) -> u32 {
        let kept = self.kept_erased();
        let below = if self.reclaim_below > kept { self.reclaim_below } else { kept };
        1 + self.host_streams + below + self.slc_superblocks
    }

    /// Whether there is a cache of single-level cells.
    pub const fn has_cache(&self) -> bool {
        self.slc_superblocks > 0 || self.slc_grows
    }

    /// Erased superblocks that the host is not promised. One is for moved data, or garbage collection could not start.
    /// Others are for work that gives back its room later: two victims on their way that fill a shared frontier,
    /// superblocks that are retired instead, those that wear leveling fills before it empties another.
    pub(crate) const fn kept_erased(&self) -> u32 {
        let shared = matches!(self.frontiers, Frontiers::Shared) as u32;
        let leveling = !matches!(self.wear_leveling, WearLeveling::None) as u32;
        let kept = 1 + shared + leveling + self.retire_at.is_some() as u32;
        kept + (self.loses_memory && self.reclaim_below > kept) as u32
    }

    /// Whether a superblock with so many erases takes part in progressive wear leveling.
    pub(crate) fn levels(&self, erases: u32) -> bool {
        self.leveled_erases.is_none_or(|(from, below)| (from..below).contains(&erases))
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
        if self.host_streams == 0 || self.host_streams > HOST_STREAMS_MAX {
            let (name, value) = ("host_streams", self.host_streams);
            return Err(FtlConfigError::Range { name, value, range: "1 to 8 streams" });
        }
        self.validate_wear()?;
        if self.drawn {
            self.validate_drawn()?;
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

    fn validate_drawn(&self) -> Result<(), FtlConfigError> {
        if !matches!(self.victim, VictimPolicy::Greedy | VictimPolicy::FewestValidOldest) {
            return Err(FtlConfigError::NotDrawn { what: "victims that are not those of fewest valid slots" });
        }
        if self.has_cache() {
            return Err(FtlConfigError::NotDrawn { what: "a single-level cache" });
        }
        Ok(())
    }

    fn validate_wear(&self) -> Result<(), FtlConfigError> {
        if self.retire_at == Some(0) {
            return Err(FtlConfigError::Range { name: "retire_at", value: 0, range: "at least 1 erase" });
        }
        if self.frontiers == Frontiers::Shared {
            if self.has_cache() {
                return Err(FtlConfigError::NotShared { what: "a single-level cache" });
            }
            if !self.coalesce {
                return Err(FtlConfigError::NotShared { what: "commands that begin a flash page each" });
            }
        }
        if let WearLeveling::Progressive { percent } | WearLeveling::UnevenFactor { percent } = self.wear_leveling
            && percent > 100
        {
            return Err(FtlConfigError::Range { name: "percent", value: percent, range: "0 to 100" });
        }
        if self.endurance.unwrap_or(0) == 0 {
            if matches!(self.wear_leveling, WearLeveling::Progressive { .. }) {
                return Err(FtlConfigError::NoEndurance { policy: "progressive wear leveling" });
            }
            if matches!(self.victim, VictimPolicy::CapacityVariant(_)) {
                return Err(FtlConfigError::NoEndurance { policy: "the capacity-variant victim" });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wear_leveling_is_read_back_by_its_name() {
        for name in ["none", "hot-cold-swap(8)", "obp(4,8)", "dp(5)", "pwl(50)", "uneven(70)"] {
            assert_eq!(name.parse::<WearLeveling>().expect("it is one of the forms").to_string(), name);
        }
    }

    #[test]
    fn wrong_forms_are_told_the_right_ones() {
        for name in ["obp", "obp(4)", "dp(5", "dp(5)x", "none(", "none(5", "pwl(x)", "greedy", "dp(-1)", "none(1)"] {
            let message = name.parse::<WearLeveling>().expect_err("it is wrong").to_string();
            assert!(message.contains("obp(TH,PT), dp(TH)") && message.contains(name), "{message}");
        }
    }

    #[test]
    fn a_share_of_the_flash_is_not_exported() {
        let geometry = crate::small::geometry();
        assert_eq!([0.0, 0.25].map(|spare| FtlConfig::logical_slots_for(&geometry, spare)), [16 * 48, 12 * 48]);
    }

    #[test]
    fn each_thing_that_borrows_room_keeps_a_superblock_back() {
        let (shared, retire_at) = (Frontiers::Shared, Some(5));
        let wear_leveling = WearLeveling::HotColdSwap { threshold: 1 };
        let base = FtlConfig::default();
        let all = FtlConfig { frontiers: shared, retire_at, wear_leveling, ..base };
        // Erased ones that are not promised, and those that never hold exported data: two frontiers and the threshold, too.
        for (config, kept, reserved) in [
            (base, 1, 4),
            (FtlConfig { frontiers: shared, ..base }, 2, 4),
            (FtlConfig { retire_at, ..base }, 2, 4),
            (FtlConfig { wear_leveling, ..base }, 2, 4),
            (FtlConfig { loses_memory: true, ..base }, 2, 4),
            (FtlConfig { loses_memory: true, wear_leveling, ..base }, 2, 4),
            (all, 4, 6),
            (FtlConfig { loses_memory: true, ..all }, 4, 6),
            (FtlConfig { loses_memory: true, reclaim_below: 5, ..all }, 5, 7),
            (FtlConfig { reclaim_below: 9, ..base }, 1, 11),
            (FtlConfig { host_streams: 3, slc_superblocks: 2, ..base }, 1, 8),
        ] {
            assert_eq!((config.kept_erased(), config.reserved()), (kept, reserved), "{config:?}");
        }
    }

    #[test]
    fn numbers_outside_their_ranges_are_refused() {
        let good = FtlConfig { logical_slots: 100, filled_slots: 100, ..FtlConfig::default() };
        let check = |config: FtlConfig| config.validate(&crate::small::geometry());
        let name = |config| match check(config) {
            Err(FtlConfigError::Range { name, .. }) => name,
            other => panic!("{other:?}"),
        };
        assert_eq!(name(FtlConfig { reclaim_below: 1, ..good }), "reclaim_below");
        assert_eq!(name(FtlConfig { logical_slots: 0, filled_slots: 0, ..good }), "logical_slots");
        assert_eq!(name(FtlConfig { retire_at: Some(0), ..good }), "retire_at");
        assert_eq!([0, 9].map(|host_streams| name(FtlConfig { host_streams, ..good })), ["host_streams"; 2]);
        let uneven = |percent| FtlConfig { wear_leveling: WearLeveling::UnevenFactor { percent }, ..good };
        assert_eq!((name(uneven(101)), check(uneven(100))), ("percent", Ok(())));
        let overfilled = Err(FtlConfigError::Overfilled { filled: 101, logical: 100 });
        assert_eq!(check(FtlConfig { filled_slots: 101, ..good }), overfilled);
        assert_eq!(check(FtlConfig { host_streams: 8, retire_at: Some(1), ..good }), Ok(()));
        for (endurance, is_refused) in [(None, true), (Some(0), true), (Some(1), false)] {
            for config in [
                FtlConfig { wear_leveling: WearLeveling::Progressive { percent: 10 }, endurance, ..good },
                FtlConfig { victim: VictimPolicy::CapacityVariant(ScoreWeights::default()), endurance, ..good },
            ] {
                assert_eq!(matches!(check(config), Err(FtlConfigError::NoEndurance { .. })), is_refused);
            }
        }
        for config in [
            FtlConfig { slc_superblocks: 1, ..good },
            FtlConfig { slc_grows: true, ..good },
            FtlConfig { coalesce: false, ..good },
        ] {
            let shared = check(FtlConfig { frontiers: Frontiers::Shared, ..config });
            assert!(matches!(shared, Err(FtlConfigError::NotShared { .. })), "{shared:?}");
        }
    }

    #[test]
    fn the_most_slots_that_a_refusal_names_are_taken() {
        let geometry = crate::small::geometry();
        let with = |logical_slots| FtlConfig { logical_slots, ..FtlConfig::default() }.validate(&geometry);
        let Err(FtlConfigError::TooLittleSpare { logical, spare, total, most, raw }) = with(750) else {
            panic!("there is no spare room")
        };
        assert_eq!((logical, spare, total, raw), (750, 0, 16, 768));
        assert_eq!(with(most), Ok(()));
        assert!(with(most + 1).is_err(), "{most} slots are not the most");
    }

    #[test]
    fn choices_of_the_translation_layer_are_found_by_their_names() {
        assert!(
            VictimPolicy::names().all(|name| VictimPolicy::by_name(name).is_some_and(|found| found.name() == name))
        );
        assert_eq!(
            VictimPolicy::by_name("capacity-variant"),
            Some(VictimPolicy::CapacityVariant(ScoreWeights::default()))
        );
        assert!(VictimTies::names().eq(["newest-first", "oldest-first", "least-erased"]));
        assert_eq!(Allocation::by_name("youngest-first"), Some(Allocation::YoungestFirst));
        assert_eq!(Frontiers::by_name("shared"), Some(Frontiers::Shared));
    }
}
