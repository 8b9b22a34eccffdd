//! Parameters of a mirror.

use crate::policy::ReadPolicy;
use flashyard_flash::SLOT_BYTES;
use flashyard_measure::STREAMS_MAX;
use flashyard_ssd::{DriveConfig, DriveConfigError, Overwrites};
use flashyard_units::{SimSpan, VolumeId};

/// The one volume of a mirror.
pub(crate) const VOLUME: VolumeId = VolumeId::new(0);

/// Parameters of a mirror.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MirrorConfig {
    /// Its drives, which may differ. The volume is as large as the smaller one.
    pub drives: [DriveConfig; 2],
    /// Random overwrites of the filled slots of each drive before the run, without timing.
    pub overwrites: [Overwrites; 2],
    /// The drive that a read goes to.
    pub policy: ReadPolicy,
    /// From the host to a drive.
    pub submit_latency: SimSpan,
    /// From a drive's completion to the host.
    pub complete_latency: SimSpan,
    /// Blocks that are copied to a returned drive at once, at least 1.
    pub resync_depth: u32,
}

/// Why a mirror cannot be built or run.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// A drive cannot be.
    #[error("drive {drive} cannot be built")]
    Drive {
        /// Which.
        drive: usize,
        /// Why not.
        #[source]
        error: DriveConfigError,
    },
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
    /// Both drives are worn out.
    #[error("neither drive has room for a write, or will have any: both are worn out")]
    WornOut,
    /// Neither drive can read a block.
    #[error("no drive can correct the data that it reads at block {block}; allow more retries, or less wear")]
    Unread {
        /// The first one, as far as that can be told.
        block: u32,
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

impl MirrorConfig {
    /// Checks ranges.
    ///
    /// Errors: a number outside its range, a drive that cannot be.
    pub fn validate(&self) -> Result<(), MirrorError> {
        if self.resync_depth == 0 {
            return Err(MirrorError::Range { name: "resync depth", value: 0, least: 1, most: u64::from(u32::MAX) });
        }
        for (drive, config) in self.drives.iter().enumerate() {
            config.validate().map_err(|error| MirrorError::Drive { drive, error })?;
        }
        Ok(())
    }

    /// Checks how many streams there are.
    ///
    /// Errors: none, or more than 4096.
    pub(crate) fn check_streams(streams: usize) -> Result<(), MirrorError> {
        match streams as u64 {
            1..=STREAMS_MAX => Ok(()),
            value => Err(MirrorError::Range { name: "streams", value, least: 1, most: STREAMS_MAX }),
        }
    }

    /// Blocks of the volume, of 4 KiB each.
    pub fn blocks(&self) -> u32 {
        let [first, second] = &self.drives;
        first.ftl.logical_slots.min(second.ftl.logical_slots)
    }

    /// Bytes of the volume.
    pub fn capacity(&self) -> u64 {
        u64::from(self.blocks()) * u64::from(SLOT_BYTES)
    }
}
