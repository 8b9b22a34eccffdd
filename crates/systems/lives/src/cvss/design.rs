//! The rivals, as parameters of the one translation layer.

use super::closed::retries_allowed;
use flashyard_flash::{Geometry, SLOT_BYTES};
use flashyard_ftl::{Allocation, Frontiers, FtlConfig, HOST_STREAMS_MAX, ScoreWeights, VictimPolicy, WearLeveling};
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

/// Erases after which the artifact retires a superblock: above 290. Source: [C] sheet §4.
const ARTIFACT_RETIRES_AT: u32 = 291;

/// Garbage collection runs while at most this many superblocks are erased. Source: [C] sheet §3.6.
const RECLAIM_BELOW: u32 = 20;

/// Pages of a stripe of rotating garbage collection, its parity included. Source: [A] sheet §5, one for each channel.
const STRIPE: u32 = 8;

/// Entries of the protected log in pages of the model: 1 MiB of 8-byte entries for 1 TiB, an eighth of that here, each
/// for one of the 256 pages of 4 KiB. Source: [D] sheet §3.2.
const REMAP_ENTRIES: u32 = 131_072 / 8 / 256;

/// A rival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Fixed capacity: PWL(10), youngest first, greedy, retired at the endurance. Source: [P] and [C] sheet §4.
    Traditional,
    /// The capacity-variant drive by the letter: equation 5.1, host writes to the oldest, moved data to the youngest.
    /// Source: [P] sheet §3.4 to §3.6.
    Literal,
    /// The capacity-variant drive of the public artifact: fewest valid and then the oldest victim, oldest first, one
    /// frontier. Source: [C] sheet §3.5 and §3.6.
    Artifact,
    /// The artifact's with a performance requirement and a frontier of its own for data that is read much, from the
    /// youngest. Source: [A] sheet §8.5 and §9.
    Tuned,
    /// The traditional drive with eight streams by access pattern. Source: [X] sheet §5.
    AutoStream,
    /// The traditional drive with a parity page for every seven and garbage collection that rotates. Source: [A] sheet
    /// §5.
    TtFlash,
}

impl Named for Design {
    const ALL: &'static [Self] =
        &[Self::Traditional, Self::Literal, Self::Artifact, Self::Tuned, Self::AutoStream, Self::TtFlash];

    fn name(self) -> &'static str {
        match self {
            Self::Traditional => "trss",
            Self::Literal => "cv-literal",
            Self::Artifact => "cv-artifact",
            Self::Tuned => "cv-tuned",
            Self::AutoStream => "autostream",
            Self::TtFlash => "ttflash",
        }
    }
}

impl Design {
    /// Whether its capacity may shrink.
    pub const fn is_variable(self) -> bool {
        matches!(self, Self::Literal | Self::Artifact | Self::Tuned)
    }
}

/// A drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceConfig {
    /// The rival.
    pub design: Design,
    /// Raw bit error rate beyond which a variable drive retires a superblock. `None` for the artifact's erases.
    pub reliability: Option<f64>,
    /// Share of its first performance, above 0 and up to 1, that the tuned drive is required to keep.
    pub requirement: f64,
    /// Weights of equation 5.1.
    pub weights: ScoreWeights,
    /// Whether the artifact's drive moves data that is read much out of worn flash. Source: [C] sheet cvss §3.6.
    pub exchanges_read_hot: bool,
    /// Errors and retries.
    pub wear: WearModel,
}

impl DeviceConfig {
    /// Erases at which a superblock is retired.
    pub fn retires_at(&self) -> u32 {
        let wear = self.wear;
        let by_rate = |rate| wear.rates.erases_beyond(rate).unwrap_or(ENDURANCE).clamp(1, ENDURANCE);
        let by_erases = self.reliability.map_or(ARTIFACT_RETIRES_AT, by_rate);
        match self.design {
            Design::Traditional | Design::AutoStream | Design::TtFlash => ENDURANCE,
            Design::Literal | Design::Artifact => by_erases,
            Design::Tuned => {
                // [A] sheet §9: blocks whose retries exceed twice the mean that the requirement allows.
                let most = 2.0 * retries_allowed(self.requirement);
                let beyond = wear.erases_beyond_retries(most as u32);
                beyond.map_or(by_erases, |erases| erases.clamp(1, by_erases))
            }
        }
    }

    /// Flash: superblocks of one block each, without the pages of parity.
    pub(super) fn geometry(&self) -> Geometry {
        let pages = if self.design == Design::TtFlash { PAGES / STRIPE * (STRIPE - 1) } else { PAGES };
        Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: SUPERBLOCKS,
            pages_per_block: pages,
            page_bytes: SLOT_BYTES,
            pages_per_program: 1,
        }
    }

    /// Pages exported when new.
    pub fn logical_pages(&self) -> u32 {
        if self.design == Design::TtFlash { LOGICAL_PAGES / STRIPE * (STRIPE - 1) } else { LOGICAL_PAGES }
    }

    pub(super) fn ftl(&self) -> FtlConfig {
        let base = FtlConfig {
            logical_slots: self.logical_pages(),
            reclaim_below: RECLAIM_BELOW,
            endurance: Some(ENDURANCE),
            retire_at: Some(self.retires_at()),
            ..FtlConfig::default()
        };
        let traditional = FtlConfig {
            allocation: Allocation::YoungestFirst,
            wear_leveling: WearLeveling::Progressive { percent: 10 },
            ..base
        };
        let artifact = FtlConfig {
            allocation: Allocation::OldestFirst,
            victim: VictimPolicy::FewestValidOldest,
            frontiers: Frontiers::Shared,
            remap_entries: REMAP_ENTRIES,
            ..base
        };
        match self.design {
            Design::Traditional | Design::TtFlash => traditional,
            Design::AutoStream => FtlConfig { host_streams: HOST_STREAMS_MAX, ..traditional },
            Design::Literal => FtlConfig {
                allocation: Allocation::WearFocusing,
                victim: VictimPolicy::CapacityVariant(self.weights),
                remap_entries: REMAP_ENTRIES,
                ..base
            },
            Design::Artifact => artifact,
            Design::Tuned => FtlConfig {
                allocation: Allocation::WearFocusing,
                frontiers: Frontiers::Separate,
                host_streams: 2,
                ..artifact
            },
        }
    }
}
