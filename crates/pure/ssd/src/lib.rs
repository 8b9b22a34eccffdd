//! One drive: a compute-end (cores and submission queues) and a data-end (mapping cache, translation
//! layer, write buffer, DMA, flash).
//!
//! The two ends are separate on purpose: a design places the same firmware on the drive's own cores, on
//! the host's, or on a peer's, and hands the result to the data-end that owns the flash.
//!
//! The path of a read: `ComputeEnd::enqueue` → a core (`CoreDone`) → `DriveEffect::FirmwareDone` → the owner
//! calls `DataEnd::execute` → mapping lookup (a miss reads a translation page) → multi-plane flash reads → DMA to
//! the host → `DriveEffect::Completed`. A write waits for room in the write buffer, takes the DMA in, is
//! appended and acknowledged; its die row is programmed once full. A remap looks up two ranges and changes the map.
//!
//! The data-end (`data`) holds parts that change nothing but themselves, and leads the commands through them:
//!
//! - `command`: commands under way, their numbers and where their time went;
//! - `loads`: translation pages on their way from flash;
//! - `write_buffer` and `dma`: slots, room promised to writes, lines of writes and flushes; `pacing`: how fast writes come in;
//! - `collection`: reads and erases of garbage collection, with `grace`: superblocks that old translations may lead to;
//! - `flash_port`: the way to the flash, with `stripe`, `turns` and `power_limit`;
//! - `read_cache`: data kept of reads, and read ahead; `merging`: what writes leave of their mapping units;
//! - `read_plan`, `rebuilds`, `lost`, `movement`: parts of a read, reads being rebuilt, lost data, the record of payload;
//! - `records`: the journal of the map and its checkpoints;
//! - `offsite::segments`: borrowed segments and their logs.
//!
//! The paths go through several parts, and no part knows them: `lookup`, `read`, `rebuild`, `given_up`, `write`, `change`, `remap`,
//! `reclaim`, `worn_out`, `translate`, `power` and the rest of `offsite`.
//!
//! Dies may be striped with parity (`stripe`): garbage collection then goes round their members (`turns`), and reads of
//! the die at work for it are rebuilt from the others (`rebuild`), and so is what flash does not give back.
//!
//! Part of the mapping cache may be in memory borrowed from peers (`offsite`), which may vanish at any moment; the
//! drive's own memory survives power cuts (`power`) if it is protected. Otherwise what is not on flash is lost
//! (`unprotected`, with `volatile`: the data that each slot would have left).
//!
//! What it does not model: writes of less than a slot of 4 KiB, and writes that are joined in the buffer before they become
//! whole mapping units.
//!
//! Invariants: every executed command completes exactly once, or vanishes in a power cut; the write buffer never exceeds its size;
//! acknowledged data is readable from buffer or flash at every moment, and after every loss of power (of an unprotected drive, if
//! it was flushed) or of borrowed memory; what a translation points at is not erased before the translation is used.

mod change;
mod collection;
mod command;
mod compute;
mod config;
mod counters;
mod data;
mod dma;
mod drive;
mod event;
mod flash_port;
mod given_up;
mod grace;
mod loads;
mod lookup;
mod lost;
mod merging;
mod movement;
mod offsite;
mod pacing;
mod power;
mod power_limit;
mod preconditioning;
mod read;
mod read_cache;
mod read_plan;
mod rebuild;
mod rebuilds;
mod reclaim;
mod records;
mod remap;
mod scan;
mod stripe;
mod supply;
mod translate;
mod turns;
mod unprotected;
mod volatile;
mod wear;
mod worn_out;
mod write;
mod write_buffer;

pub use command::CommandSpec;
pub use compute::{ComputeEnd, Job};
pub use config::{DriveConfig, DriveConfigError, FirmwareCost, LOG_RECORDS, SEGMENT_PAGES};
pub use counters::DataCounters;
pub use data::DataEnd;
pub use dma::SharedLink;
pub use drive::Drive;
pub use event::{DriveEffect, DriveEvent};
pub use flash_port::FlashPort;
pub use flashyard_blk::Operation;
pub use movement::{Movement, MovementLog};
pub use offsite::{LoanId, OffsiteCounters, SegmentState};
pub use pacing::PacingRule;
pub use preconditioning::Overwrites;
pub use read_plan::ReadGroup;
pub use records::RecordsConfig;
pub use stripe::{BlockedReads, StripeConfig};
pub use translate::Translation;
pub use wear::WearStates;
