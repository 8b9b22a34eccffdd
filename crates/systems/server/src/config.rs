//! Parameters of a server.

use crate::chain::{Chain, ChainError};
use crate::stack::{Network, Stack};
use flashyard_blk::{VolumeInfo, VolumeLimits};
use flashyard_flash::SLOT_BYTES;
use flashyard_latte::{Learning, Rule};
use flashyard_measure::STREAMS_MAX;
use flashyard_ssd::{DriveConfig, DriveConfigError, Overwrites};
use flashyard_units::{Named, SimSpan, VolumeId};

/// Virtual drives of a server at most. Source: \[P\] §5: cards have more than a thousand functions; a server has 8 to 12 drives.
pub const DRIVES_MAX: u32 = 64;

/// Queues of a virtual drive at most. Source: \[P\] §7: a guest has 120 processors.
pub const QUEUES_MAX: u32 = 128;

/// Parameters of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerConfig {
    /// The stack.
    pub stack: Stack,
    /// Virtual drives: 1 to [`DRIVES_MAX`]. Each has a drive or its part of one, or a network volume of its own.
    pub drives: u32,
    /// The drive behind each of them; its capacity is that of network volumes, too.
    pub drive: DriveConfig,
    /// Overwrites before the run.
    pub overwrites: Overwrites,
    /// Virtual drives that have parts of one drive: 1 to [`DRIVES_MAX`].
    pub per_drive: u32,
    /// Queues of a guest: 1 to [`QUEUES_MAX`].
    pub queues: u32,
    /// When completions of a queue share an interrupt.
    pub coalescing: Coalescing,
    /// The service of stacks that have one: LATTE as it is asked for.
    pub latte: flashyard_latte::Config,
    /// Whether its cache is full when the run begins.
    pub is_warm: bool,
    /// Services that the stack's runtime runs for each virtual drive.
    pub chain: Chain,
    /// Limits of network volumes, in place of those of their class.
    pub limits: NetworkLimits,
}

/// When completions of one queue share an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalescing {
    /// Completions from which on an interrupt comes: 1 to 256. With 1 each has its own.
    pub completions: u32,
    /// Time after which it comes whatever waits.
    pub time: SimSpan,
}

impl Coalescing {
    /// Every completion has an interrupt of its own.
    pub const NONE: Self = Self { completions: 1, time: SimSpan::ZERO };

    /// Completions that an interrupt may be for at most. Source: feature 08h, eight bits of which 0 is one.
    pub const COMPLETIONS_MAX: u32 = 256;
}

/// Limits of a network volume that differ from those of its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkLimits {
    /// Requests a second, at least one.
    pub requests_per_second: Option<u64>,
    /// Bytes a microsecond in each direction, at least one.
    pub bytes_per_us: Option<u64>,
}

impl NetworkLimits {
    /// A class with these limits.
    pub(crate) fn apply(self, class: Network) -> Network {
        Network {
            requests_per_second: self.requests_per_second.unwrap_or(class.requests_per_second),
            bytes_per_us: self.bytes_per_us.unwrap_or(class.bytes_per_us),
            ..class
        }
    }
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
    /// Services that make no chain.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// Services of a stack that runs none.
    #[error("{} runs no services", .0.name())]
    NoServices(Stack),
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
        for (name, value, most) in [
            ("virtual drives", self.drives, DRIVES_MAX),
            ("virtual drives of one drive", self.per_drive, DRIVES_MAX),
            ("queues", self.queues, QUEUES_MAX),
            ("completions of an interrupt", self.coalescing.completions, Coalescing::COMPLETIONS_MAX),
        ] {
            if !(1..=most).contains(&value) {
                return Err(ServerError::Range { name, value: value.into(), least: 1, most: most.into() });
            }
        }
        if self.stack.table().tiers.is_some() {
            let (value, most) = (self.latte.front_slots(), u64::from(self.part_slots()));
            if value > most {
                return Err(ServerError::Range { name: "blocks of the front end", value, least: 2, most });
            }
        }
        if self.stack.table().below.is_none() && !self.chain.is_empty() {
            return Err(ServerError::NoServices(self.stack));
        }
        self.chain.validate(self.part_slots())?;
        Ok(self.drive.validate()?)
    }

    /// Drives that each virtual drive has, or has parts of.
    pub(crate) fn legs(&self) -> u32 {
        self.chain.legs()
    }

    /// Whether the cache of services is full when the run begins.
    pub(crate) fn starts_warm(&self) -> bool {
        self.is_warm && self.stack.table().tiers.is_some_and(|tiers| tiers.chooses)
    }

    /// The service of virtual drive `number`. CSAL writes to the front end always, which is all log, and keeps no copies.
    pub(crate) fn tiers(&self, number: u32) -> flashyard_latte::Config {
        let latte = self.latte;
        if !self.stack.table().tiers.is_some_and(|tiers| tiers.chooses) {
            let csal = flashyard_latte::Config::csal(latte.blocks, latte.log_slots + latte.cache_slots);
            return flashyard_latte::Config { flush_age: latte.flush_age, ..csal };
        }
        let rule = match latte.rule {
            Rule::Learned(plan) => Rule::Learned(Learning { seed: plan.seed.wrapping_add(number.into()), ..plan }),
            rule => rule,
        };
        flashyard_latte::Config { rule, ..latte }
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

    /// Slots of a drive that each of its virtual drives has.
    pub(crate) fn part_slots(&self) -> u32 {
        self.drive.ftl.logical_slots / self.per_drive
    }

    /// A drive, or the part of one, as services see it.
    pub(crate) fn leg_info(&self) -> VolumeInfo {
        VolumeInfo {
            id: VolumeId::new(0),
            block_bytes: SLOT_BYTES,
            limits: VolumeLimits::new(self.part_slots().into(), false),
            protected: self.drive.power_loss_protection,
        }
    }

    /// Bytes of each volume.
    pub fn capacity(&self) -> u64 {
        let has_service = self.stack.table().tiers.is_some();
        let blocks = if has_service { self.latte.blocks } else { self.chain.blocks(&self.leg_info()) };
        u64::from(blocks) * u64::from(SLOT_BYTES)
    }
}
