//! The rivals, as parameters of the one translation layer.

use super::closed::retries_allowed;
use super::error::CvssError;
use flashyard_flash::{Geometry, SLOT_BYTES};
use flashyard_ftl::{
    Allocation, Frontiers, Ftl, FtlConfig, HOST_STREAMS_MAX, ScoreWeights, VictimPolicy, VictimTies, WearLeveling,
};
use flashyard_nand::WearModel;
use flashyard_units::Named;

/// Superblocks of the drive. Source: [P] sheet cvss §4.
pub const SUPERBLOCKS: u32 = 512;

/// Bytes of the published drive that a page of the model stands for. Source: [D] sheet §8.5, 256 MiB / 256.
pub const PAGE_BYTES: u64 = 1 << 20;

/// Pages of a superblock. Source: [D] sheet §8.5.
const PAGES: u32 = 256;

/// Raw pages of the model.
pub const RAW_PAGES: u32 = SUPERBLOCKS * PAGES;

/// Pages exported when new: 128 GB. Source: [D] sheet §4, 2^37 / 1.0737.
pub const LOGICAL_PAGES: u32 = (128_000_000_000 / PAGE_BYTES) as u32;

/// Erases that a superblock is made for. Source: [P] sheet §4.
pub(super) const ENDURANCE: u32 = 300;

/// Erases of the published drive that one erase stands for: ageing is fast-forwarded. What is written counts as often.
/// Source: [P] sheet §4, an acceleration factor of at most 2; [C] the artifact counts two for each.
pub(super) const ACCELERATION: u32 = 2;

/// Erases after which the artifact retires a superblock: above 290. Source: [C] sheet §4.
const ARTIFACT_RETIRES_AT: u32 = 291;

/// Erases before its retirement at which a degraded drive of the artifact keeps a superblock for data that seldom changes: above
/// 285 and below 290. Source: [C] `do_gc`, which goes on at `maintainCapacity` then.
const KEPT_BEFORE: u32 = 5;

/// The artifact's progressive wear leveling. Source: [C] sheet cvss §4.
const PROGRESSIVE: WearLeveling = WearLeveling::Progressive { percent: 10 };

/// Garbage collection runs while at most this many superblocks are erased. Source: [C] sheet §3.6.
const RECLAIM_BELOW: u32 = 20;

/// Entries of the protected log in pages of the model: 1 MiB of 8-byte entries for 1 TiB, an eighth of that here, each
/// for one of the 256 pages of 4 KiB. Source: [D] sheet §3.2.
const REMAP_ENTRIES: u32 = 131_072 / 8 / 256;

/// A rival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Fixed capacity: PWL(10), greedy, retired at the endurance. Of equal victims the least erased is taken. One frontier takes the
    /// superblock that has been erased longest, which is the artifact's rule; the text has the youngest.
    /// Source: [P] and [C] sheet §4; [C] `select_victim_line`, `get_next_free_line` and `gc_write_page` of every version.
    Traditional,
    /// The capacity-variant drive by the letter: equation 5.1, host writes to the oldest, moved data to the youngest.
    /// Source: [P] sheet §3.4 to §3.6.
    Literal,
    /// The capacity-variant drive of the public artifact: fewest valid and then the oldest victim, oldest first, one
    /// frontier. A degraded one turns both choices round, retires at the endurance unless the user has set a rate, and puts data that
    /// seldom changes into superblocks that would be retired soon. Source: [C] sheet §3.5 and §3.6; `get_next_free_line`, `select_victim_line`, `do_gc`.
    Artifact,
    /// The traditional drive with eight streams by access pattern. Source: [X] sheet §5.
    AutoStream,
}

impl Named for Design {
    const ALL: &'static [Self] = &[Self::Traditional, Self::Literal, Self::Artifact, Self::AutoStream];

    fn name(self) -> &'static str {
        match self {
            Self::Traditional => "trss",
            Self::Literal => "cv-literal",
            Self::Artifact => "cv-artifact",
            Self::AutoStream => "autostream",
        }
    }
}

impl Design {
    /// Whether its capacity may shrink.
    pub const fn is_variable(self) -> bool {
        matches!(self, Self::Literal | Self::Artifact)
    }
}

/// The rule by which a variable drive is degraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DegradeRule {
    /// The manager sets it: spare space below its first share, a watermark, or a reduction that failed. It sets the drive back when
    /// there is room again. Source: [P] sheet cvss §3.7.
    Manager,
    /// The drive sets it for good: when a superblock retires and more than three quarters of the flash that is left hold valid data, or
    /// when a victim is more than half valid and any superblock has retired. Source: [C] `do_gc` and `select_victim_line` of the
    /// artifact of 16 and 17 December 2023.
    Drive,
}

impl Named for DegradeRule {
    const ALL: &'static [Self] = &[Self::Manager, Self::Drive];

    fn name(self) -> &'static str {
        match self {
            Self::Manager => "manager",
            Self::Drive => "drive",
        }
    }
}

/// A drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceConfig {
    /// The rival.
    pub design: Design,
    /// Raw bit error rate beyond which a variable drive retires a superblock. `None` for the artifact's erases.
    pub reliability: Option<f64>,
    /// Share of its first performance, above 0 and up to 1, that the user requires a variable drive to keep: it then retires
    /// superblocks early. `None` by default.
    pub requirement: Option<f64>,
    /// Weights of equation 5.1.
    pub weights: ScoreWeights,
    /// Whether the artifact's drive moves data that is read much out of worn flash. Source: [C] sheet cvss §3.6.
    pub exchanges_read_hot: bool,
    /// Rule by which a variable drive is degraded.
    pub degraded_by: DegradeRule,
    /// Pages that a read senses beyond its end, 1 on the emulated drive. Source: [C] `ssd_read` of the artifact goes to page
    /// (first sector + sectors) / 8, with that page.
    pub pages_beyond: u32,
    /// Errors and retries.
    pub wear: WearModel,
}

impl DeviceConfig {
    /// Refuses numbers outside their ranges.
    ///
    /// Errors: the number.
    pub fn validate(&self) -> Result<(), CvssError> {
        self.wear.validate()?;
        match self.requirement {
            Some(share) if !(share > 0.0 && share <= 1.0) => {
                Err(CvssError::Range { name: "requirement", value: share, range: "a share above 0, up to 1" })
            }
            _ => Ok(()),
        }
    }

    /// Erases at which a superblock is retired.
    pub fn retires_at(&self) -> u32 {
        if !self.design.is_variable() {
            return ENDURANCE;
        }
        let wear = self.wear;
        let by_rate = |rate| wear.rates.erases_beyond(rate).unwrap_or(ENDURANCE).clamp(1, ENDURANCE);
        let by_erases = self.reliability.map_or(ARTIFACT_RETIRES_AT, by_rate);
        // [A] sheet §9: blocks whose retries exceed twice the mean that the requirement allows.
        let most = self.requirement.map(|share| 2.0 * retries_allowed(share));
        let beyond = most.and_then(|most| wear.erases_beyond_retries(most as u32));
        beyond.map_or(by_erases, |erases| erases.clamp(1, by_erases))
    }

    /// Sets a drive to the degraded mode or back, with what the artifact's drive does otherwise then.
    pub(super) fn degrade(&self, ftl: &mut Ftl, on: bool) {
        if ftl.degraded() == on {
            return;
        }
        ftl.set_degraded(on);
        if self.design == Design::Artifact {
            // A limit that the user has set holds in both modes. [P] §5.5.4 maps out what exceeds it, and [C] two of the artifact's
            // versions (`sosp`, `backup`) retire at one limit in both.
            let retires_at = if on && self.reliability.is_none() { ENDURANCE } else { self.retires_at() };
            ftl.set_retire_at(Some(retires_at.div_ceil(ACCELERATION)));
            ftl.set_wear_leveling(if on { PROGRESSIVE } else { WearLeveling::None });
        }
    }

    /// Erases of the model from the first on and below the second that are above 285 and below 290 of the artifact's drive, or as far
    /// before another retirement.
    fn kept_erases(&self) -> (u32, u32) {
        let most = self.retires_at() - 1;
        (most.saturating_sub(KEPT_BEFORE) / ACCELERATION + 1, most.div_ceil(ACCELERATION))
    }

    /// Flash: superblocks of one block each.
    pub(super) fn geometry(&self) -> Geometry {
        Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: SUPERBLOCKS,
            pages_per_block: PAGES,
            page_bytes: SLOT_BYTES,
            pages_per_program: 1,
        }
    }

    pub(super) fn ftl(&self) -> FtlConfig {
        let base = FtlConfig {
            logical_slots: LOGICAL_PAGES,
            reclaim_below: RECLAIM_BELOW,
            endurance: Some(ENDURANCE / ACCELERATION),
            retire_at: Some(self.retires_at().div_ceil(ACCELERATION)),
            ..FtlConfig::default()
        };
        let traditional = FtlConfig {
            allocation: Allocation::Fifo,
            frontiers: Frontiers::Shared,
            ties: VictimTies::LeastErased,
            wear_leveling: PROGRESSIVE,
            ..base
        };
        match self.design {
            Design::Traditional => traditional,
            // Its code is not public; streams are frontiers of their own.
            Design::AutoStream => {
                FtlConfig { host_streams: HOST_STREAMS_MAX, frontiers: Frontiers::Separate, ..traditional }
            }
            Design::Literal => FtlConfig {
                allocation: Allocation::WearFocusing,
                victim: VictimPolicy::CapacityVariant(self.weights),
                remap_entries: REMAP_ENTRIES,
                ..base
            },
            Design::Artifact => FtlConfig {
                allocation: Allocation::OldestFirst,
                victim: VictimPolicy::FewestValidOldest,
                frontiers: Frontiers::Shared,
                leveled_erases: Some(self.kept_erases()),
                remap_entries: REMAP_ENTRIES,
                ..base
            },
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use flashyard_nand::{EccStrength, ErrorRates, RetryRule};

    /// The published drive.
    pub(in crate::cvss) fn device(design: Design, reliability: Option<f64>) -> DeviceConfig {
        let wear = WearModel {
            rates: ErrorRates::TLC_2018_AT_300,
            ecc: EccStrength::BITS_50,
            rule: RetryRule::ByErases,
            retention_days: 0.0,
        };
        let weights = ScoreWeights::default();
        let degraded_by = DegradeRule::Manager;
        DeviceConfig {
            design,
            reliability,
            requirement: None,
            weights,
            exchanges_read_hot: true,
            degraded_by,
            pages_beyond: 0,
            wear,
        }
    }

    #[test]
    fn a_degraded_drive_of_the_artifact_retires_at_the_endurance_and_levels_before_its_limit() {
        let artifact = device(Design::Artifact, None);
        // 286 and 288 of the artifact's erases.
        assert_eq!(artifact.kept_erases(), (143, 145));
        // 4 % are 239 erases: 234 and 236 are above 233 and below 238.
        assert_eq!(device(Design::Artifact, Some(0.04)).kept_erases(), (117, 119));
        let mut ftl = Ftl::new(&artifact.geometry(), artifact.ftl()).expect("the drive is possible");
        let mut modes = Vec::new();
        for on in [false, true, true, false] {
            artifact.degrade(&mut ftl, on);
            modes.push((ftl.degraded(), ftl.config().retire_at, ftl.config().wear_leveling));
        }
        let [normal, degraded] =
            [(false, Some(146), WearLeveling::None), (true, Some(150), WearLeveling::Progressive { percent: 10 })];
        assert_eq!(modes, [normal, degraded, degraded, normal]);
        let limited = device(Design::Artifact, Some(0.04));
        let mut ftl = Ftl::new(&limited.geometry(), limited.ftl()).expect("the drive is possible");
        limited.degrade(&mut ftl, true);
        assert_eq!((ftl.degraded(), ftl.config().retire_at), (true, Some(120)), "4 % are 4 % in each mode");
        let literal = device(Design::Literal, Some(0.05));
        let mut ftl = Ftl::new(&literal.geometry(), literal.ftl()).expect("the drive is possible");
        literal.degrade(&mut ftl, true);
        assert_eq!((ftl.degraded(), ftl.config().retire_at), (true, Some(134)), "by the letter, limits stay");
    }
}
