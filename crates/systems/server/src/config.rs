//! Parameters of a server.

use crate::stack::Stack;
use flashyard_flash::SLOT_BYTES;
use flashyard_measure::STREAMS_MAX;
use flashyard_ssd::{DriveConfig, DriveConfigError, Overwrites};
use flashyard_units::SimSpan;

/// Virtual drives of a server at most. Source: \[P\] §5: cards have more than a thousand functions; a server has 8 to 12 drives.
pub const DRIVES_MAX: u32 = 64;

/// Parameters of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerConfig {
    /// The stack.
    pub stack: Stack,
    /// Virtual drives: 1 to [`DRIVES_MAX`]. Each has a drive, or a network volume, of its own.
    pub drives: u32,
    /// The drive behind each of them; its capacity is that of network volumes, too.
    pub drive: DriveConfig,
    /// Overwrites before the run.
    pub overwrites: Overwrites,
}

/// Why a server cannot be built or run.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A drive cannot be.
    #[error("a drive cannot be built")]
    Drive(#[from] DriveConfigError),
    /// A number outside its range.
    #[error("{name} is {value}, give {least} to {most}")]
    Range {
        /// Which one.
        name: &'static str,
        /// The value given.
        value: u64,
        /// The least possible.
        least: u64,
        /// The most possible.
        most: u64,
    },
    /// A request beyond the volume.
    #[error("request {number} of stream {stream} ends at byte {end}, beyond the volume's {capacity} bytes")]
    BeyondVolume {
        /// The stream.
        stream: u16,
        /// Count of its requests, from 1.
        number: u64,
        /// Byte after the request.
        end: u64,
        /// Bytes of the volume.
        capacity: u64,
    },
    /// A drive is worn out, or cannot correct what it reads.
    #[error("virtual drive {drive} fails: its drive is worn out, or cannot correct what it reads")]
    Failed {
        /// Which.
        drive: u16,
    },
    /// A stream failed.
    #[error(transparent)]
    Source(#[from] flashyard_workload::SourceError),
    /// The streams ended before anything counted.
    #[error(
        "a stream ended before the warm-up of {warmup} did, so nothing was measured; \
         give more requests or a shorter warm-up"
    )]
    NothingMeasured {
        /// The warm-up.
        warmup: SimSpan,
    },
    /// More time than can be reckoned with.
    #[error("the run goes on beyond {horizon} of simulated time, and more cannot be added up; give less work")]
    BeyondTime {
        /// The most that is possible.
        horizon: SimSpan,
    },
    /// The observer asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl ServerConfig {
    /// Checks ranges.
    ///
    /// Errors: a number outside its range, a drive that cannot be.
    pub fn validate(&self) -> Result<(), ServerError> {
        if !(1..=DRIVES_MAX).contains(&self.drives) {
            let (value, most) = (u64::from(self.drives), u64::from(DRIVES_MAX));
            return Err(ServerError::Range { name: "virtual drives", value, least: 1, most });
        }
        Ok(self.drive.validate()?)
    }

    /// Checks the streams, of which there are `streams` to volumes up to `last`.
    ///
    /// Errors: none, more than 4096, a volume that is not there.
    pub(crate) fn check_streams(&self, streams: usize, last: u64) -> Result<(), ServerError> {
        let most = u64::from(self.drives) - 1;
        if last > most {
            return Err(ServerError::Range { name: "volume of a stream", value: last, least: 0, most });
        }
        match streams as u64 {
            1..=STREAMS_MAX => Ok(()),
            value => Err(ServerError::Range { name: "streams", value, least: 1, most: STREAMS_MAX }),
        }
    }

    /// Bytes of each volume.
    pub fn capacity(&self) -> u64 {
        u64::from(self.drive.ftl.logical_slots) * u64::from(SLOT_BYTES)
    }
}
