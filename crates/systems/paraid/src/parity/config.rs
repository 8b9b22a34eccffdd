//! Parameters of the exchange of parity, and its designs.

use crate::WIDTH_MAX;
use crate::member::RateConfig;
use flashyard_units::{ByteRate, Named, SimSpan};

/// Most drives of a stripe here: wide stripes are the point. \[A\]
pub(crate) const PARITY_WIDTH_MAX: usize = 64;

const _: () = assert!(PARITY_WIDTH_MAX >= WIDTH_MAX);

/// Where parity is made, and on which way its parts meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParityPath {
    /// In the host, which sends it as it sends data.
    Host,
    /// In the drive that keeps it: each drive with data sends it there.
    Star,
    /// On the way from drive to drive: each adds its part and sends the sum on.
    Chain,
    /// In pairs: drives add up two sums at a time.
    Tree,
}

impl Named for ParityPath {
    const ALL: &'static [Self] = &[Self::Host, Self::Star, Self::Chain, Self::Tree];

    fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Star => "star",
            Self::Chain => "chain",
            Self::Tree => "tree",
        }
    }
}

impl ParityPath {
    /// The design in one line.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Host => "the host makes parity: it sends data and parity, and reads old chunks for partial writes",
            Self::Star => "drives send their parts of parity to the drive that keeps it",
            Self::Chain => "a sum of parts goes from drive to drive and ends where parity is kept",
            Self::Tree => "drives add parts up in pairs, and the last sum goes where parity is kept",
        }
    }

    /// Whether drives send to each other.
    pub const fn is_peer_to_peer(self) -> bool {
        !matches!(self, Self::Host)
    }
}

/// An array behind a network, and its load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParityConfig {
    /// The design.
    pub path: ParityPath,
    /// Drives, which are the chunks of a stripe, parity included.
    pub width: usize,
    /// Parities of a stripe: 1 or 2.
    pub parities: usize,
    /// Bytes of a chunk.
    pub chunk: u32,
    /// Share of writes that are whole stripes; the others are parts of one chunk.
    pub full_share: f64,
    /// Bytes of a partial write, at most a chunk.
    pub partial: u32,
    /// Writes under way.
    pub depth: u32,
    /// Rate of the host's link on the wire, each direction.
    pub host_rate: ByteRate,
    /// Rate of a drive's link on the wire, each direction.
    pub drive_rate: ByteRate,
    /// Latency of a message beside its bytes.
    pub hop: SimSpan,
    /// Bytes of a command or a completion, which go with each message too.
    pub capsule: u32,
    /// Cores of the host that make parity.
    pub host_cores: u32,
    /// Bytes a second that a core of the host combines.
    pub host_combines: ByteRate,
    /// Bytes a second that a drive combines.
    pub drive_combines: ByteRate,
    /// Media of a drive.
    pub drive: RateConfig,
    /// Before figures count.
    pub warmup: SimSpan,
    /// For which they count.
    pub measure: SimSpan,
    /// Seed of random choices.
    pub seed: u64,
}

/// Why such an array cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParityError {
    /// A shape of stripes.
    #[error(
        "stripes have {width} chunks and {parities} parities; give 2 to {PARITY_WIDTH_MAX} chunks and 1 or 2 parities, fewer than chunks"
    )]
    Shape {
        /// Chunks.
        width: usize,
        /// Parities.
        parities: usize,
    },
    /// A partial write larger than a chunk.
    #[error("partial writes have {partial} bytes and chunks {chunk}; give at most a chunk")]
    Partial {
        /// Bytes of a write.
        partial: u32,
        /// Bytes of a chunk.
        chunk: u32,
    },
    /// The observer asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl ParityConfig {
    /// Chunks of data of a stripe.
    pub const fn data(&self) -> usize {
        self.width - self.parities
    }

    /// Errors: a shape that cannot be, a partial write of more than a chunk.
    pub fn validate(&self) -> Result<(), ParityError> {
        let is_shape = (2..=PARITY_WIDTH_MAX).contains(&self.width) && (1..=2).contains(&self.parities);
        if !is_shape || self.parities >= self.width {
            return Err(ParityError::Shape { width: self.width, parities: self.parities });
        }
        if self.partial > self.chunk {
            return Err(ParityError::Partial { partial: self.partial, chunk: self.chunk });
        }
        Ok(())
    }
}
