//! Parameters of an array, and the designs.

use crate::member::RateConfig;
use flashyard_array::layout::LayoutError;
use flashyard_array::learned::MapError;
use flashyard_ssd::{DriveConfig, DriveConfigError};
use flashyard_units::{ByteRate, Named, SimSpan};

/// Bytes of a block: what Linux MD and log-structured designs count in.
pub const BLOCK_BYTES: u32 = 4096;
/// Most chunks of a stripe.
pub const WIDTH_MAX: usize = 16;

/// The size of chunks: a power of two from 4 KiB to 512 KiB, so that a byte of the volume finds its chunk by a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSize {
    /// The power.
    shift: u8,
}

impl ChunkSize {
    /// The size where no other is given. Source: \[P\] sheet paraid §4.
    pub const USUAL: Self = Self { shift: 16 };

    /// So many bytes, where chunks can have that size.
    pub const fn new(bytes: u64) -> Option<Self> {
        let is_size = bytes.is_power_of_two() && bytes >= BLOCK_BYTES as u64 && bytes <= 128 * BLOCK_BYTES as u64;
        if is_size { Some(Self { shift: bytes.trailing_zeros() as u8 }) } else { None }
    }

    /// Its bytes.
    pub const fn bytes(self) -> u32 {
        1 << self.shift
    }

    /// Its blocks.
    pub const fn blocks(self) -> u8 {
        1 << (self.shift - BLOCK_BYTES.trailing_zeros() as u8)
    }

    /// Whole chunks in so many bytes: the number of the chunk that a byte of a volume lies in.
    pub const fn in_bytes(self, bytes: u64) -> u64 {
        bytes >> self.shift
    }
}

/// How an array lays out, writes and moves data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Design {
    /// Linux MD.
    Mdraid,
    /// MD's layout under threads of their own for stripes.
    Straid,
    /// The fast-first layout, without moves.
    ParaidStatic,
    /// The fast-first layout, with moves.
    Paraid,
    /// `Paraid`, which measures drives again and again.
    HeteroRaid,
    /// Declustered layout, replicas first.
    FusionRaid,
    /// Groups of drives that take the log in turn.
    Swan,
    /// A log over MD's layout.
    LogRaid,
}

impl Named for Design {
    const ALL: &'static [Self] = &[
        Self::Mdraid,
        Self::Straid,
        Self::ParaidStatic,
        Self::Paraid,
        Self::HeteroRaid,
        Self::FusionRaid,
        Self::Swan,
        Self::LogRaid,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Mdraid => "mdraid",
            Self::Straid => "straid",
            Self::ParaidStatic => "paraid-s",
            Self::Paraid => "paraid",
            Self::HeteroRaid => "heteroraid",
            Self::FusionRaid => "fusionraid",
            Self::Swan => "swan",
            Self::LogRaid => "lograid",
        }
    }
}

impl Design {
    /// The design in one line.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Mdraid => "Linux MD: drives joined by hand, one thread for the stripes of each array",
            Self::Straid => "the same layout; each write has a thread of its own, joins others and knows parity",
            Self::ParaidStatic => "stripes over all drives, the fastest first, with the writes of straid",
            Self::Paraid => "the same, with hot chunks moved to fast drives",
            Self::HeteroRaid => {
                "paraid that measures its drives in each interval, and moves to those that are fast now"
            }
            Self::FusionRaid => "stripes over all drives by Latin squares; small writes are replicated first",
            Self::Swan => "a log that groups of drives take in turn while the others collect garbage",
            Self::LogRaid => "a log over the layout of mdraid, with garbage collection",
        }
    }

    /// Whether hot chunks move.
    pub const fn moves(self) -> bool {
        matches!(self, Self::Paraid | Self::HeteroRaid)
    }

    /// Whether stripes lie over all drives, the fastest first, each written by a thread of its own.
    pub const fn is_fast_first(self) -> bool {
        matches!(self, Self::ParaidStatic | Self::Paraid | Self::HeteroRaid)
    }

    /// Whether it writes a log.
    pub const fn is_log(self) -> bool {
        matches!(self, Self::Swan | Self::LogRaid)
    }
}

/// Times of the software that writes stripes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoftwareConfig {
    /// Of a request.
    pub request: SimSpan,
    /// Of each command to a drive.
    pub command: SimSpan,
    /// Bytes a second that a core combines into one parity.
    pub parity_rate: ByteRate,
    /// Of a visit of MD's thread to the four KiB of a stripe.
    pub visit: SimSpan,
    /// Stripes whose parity is kept.
    pub parity_cache: u32,
}

/// Of moves of paRAID.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MovesConfig {
    /// The profiler's interval.
    pub interval: SimSpan,
    /// One access in so many is seen.
    pub sample: u32,
    /// Time between looks for idle drives.
    pub look: SimSpan,
}

/// Of FusionRAID.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FusionConfig {
    /// A drive with more work before it has a spike.
    pub spike: SimSpan,
    /// Stripes with replicas, from which on conversion works.
    pub replicated: u32,
}

/// A drive that becomes slow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WearConfig {
    /// The drive.
    pub drive: usize,
    /// When it does.
    pub after: SimSpan,
    /// Share of its rates that it keeps, above 0 and at most 1.
    pub keeps: f64,
}

/// An array and its software.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayConfig {
    /// The design.
    pub design: Design,
    /// The drives, in the order of their slots.
    pub drives: Vec<RateConfig>,
    /// Those of them that are whole SSDs, with their configurations; the others are servers of their rates.
    pub timed: Vec<(usize, DriveConfig)>,
    /// The size of chunks.
    pub chunk: ChunkSize,
    /// Chunks of a stripe, parity included.
    pub width: usize,
    /// Parities of a stripe.
    pub parities: usize,
    /// A drive that is gone.
    pub failed: Option<usize>,
    /// A drive that becomes slow during the run.
    pub wear: Option<WearConfig>,
    /// The software.
    pub software: SoftwareConfig,
    /// Moves of paRAID.
    pub moves: MovesConfig,
    /// FusionRAID.
    pub fusion: FusionConfig,
    /// Share of a log's stripes beyond the data.
    pub spare: f64,
    /// Requests under way.
    pub workers: u32,
    /// Before figures count.
    pub warmup: SimSpan,
    /// For which they count.
    pub measure: SimSpan,
    /// Seed of random choices.
    pub seed: u64,
}

/// Why an array cannot be built or run.
#[derive(Debug, thiserror::Error)]
pub enum ArrayRunError {
    /// The layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The map.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A shape of stripes.
    #[error(
        "stripes have {width} chunks and {parities} parities; give 2 to {WIDTH_MAX} chunks and 1 or 2 parities, fewer than chunks"
    )]
    Shape {
        /// Chunks.
        width: usize,
        /// Parities.
        parities: usize,
    },
    /// A write that a log has no room for.
    #[error(
        "a write of {} KiB, and the log has {} KiB of spare stripes for one: give shorter requests or a larger spare",
        (asked * u64::from(BLOCK_BYTES)) >> 10,
        (longest * u64::from(BLOCK_BYTES)) >> 10
    )]
    Long {
        /// Its blocks.
        asked: u64,
        /// Blocks of the spare stripes.
        longest: u64,
    },
    /// Groups of SWAN.
    #[error("swan groups {width} drives each and needs two groups, and there are {drives} drives")]
    Groups {
        /// Chunks of a stripe.
        width: usize,
        /// Drives.
        drives: usize,
    },
    /// A drive that is to become slow and is not there, or a share of its rates that cannot be.
    #[error(
        "drive {drive} of {drives} is to keep {keeps} of its rates; give a drive counted from 0, and a share above 0 and up to 1"
    )]
    Wear {
        /// The drive.
        drive: usize,
        /// Drives that there are.
        drives: usize,
        /// The share.
        keeps: f64,
    },
    /// A drive that is to become slow and has its own flash.
    #[error(
        "drive {0} is timed: its flash gives its rates, and wear does not slow it; give a drive of published rates"
    )]
    TimedWear(usize),
    /// A load that moves no data.
    #[error("the load has no read or write among {0} requests in a row; arrays carry out reads and writes alone")]
    NoTransfers(u32),
    /// An SSD that cannot be.
    #[error(transparent)]
    Drive(#[from] DriveConfigError),
    /// An SSD without room for a write, or with data that it cannot read.
    #[error("an SSD of the array is worn out; give less wear, or more spare flash")]
    WornOut,
    /// A drive that is not there.
    #[error("drive {0} is to fail and is not there; drives are counted from 0")]
    NoDrive(usize),
    /// Logs do not work degraded here.
    #[error("{0} is not modelled without a drive")]
    Degraded(&'static str),
    /// A log without room to collect garbage.
    #[error("the log has {0} stripes, too few to collect garbage; give larger drives or a smaller paraid.scale")]
    Small(u64),
    /// More stripes than are counted.
    #[error("the drives make {0} stripes, and 2^25 are the most; give a larger paraid.scale")]
    Large(u64),
    /// Requests.
    #[error(transparent)]
    Source(#[from] flashyard_workload::SourceError),
    /// The observer asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl ArrayConfig {
    /// Chunks of data of a stripe.
    pub const fn data(&self) -> usize {
        self.width - self.parities
    }

    /// Errors: a shape that cannot be.
    pub fn validate(&self) -> Result<(), ArrayRunError> {
        let is_shape = (2..=WIDTH_MAX).contains(&self.width) && (1..=2).contains(&self.parities);
        if !is_shape || self.parities >= self.width {
            return Err(ArrayRunError::Shape { width: self.width, parities: self.parities });
        }
        if let Some(WearConfig { drive, keeps, .. }) = self.wear
            && (drive >= self.drives.len() || !(keeps > 0.0 && keeps <= 1.0))
        {
            return Err(ArrayRunError::Wear { drive, drives: self.drives.len(), keeps });
        }
        if let Some(WearConfig { drive, .. }) = self.wear
            && self.timed.iter().any(|&(timed, _)| timed == drive)
        {
            return Err(ArrayRunError::TimedWear(drive));
        }
        match self.failed {
            Some(drive) if drive >= self.drives.len() => Err(ArrayRunError::NoDrive(drive)),
            Some(_) if self.design.is_log() => Err(ArrayRunError::Degraded(self.design.name())),
            _ => Ok(()),
        }
    }
}
