//! A mirror small enough for tests: a drive with many slow dies beside a smaller, faster one.

use crate::config::MirrorConfig;
use crate::policy::ReadPolicy;
use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_flash::{Geometry, SLOT_BYTES};
use flashyard_ftl::FtlConfig;
use flashyard_kernel::Rng;
use flashyard_measure::{RunPlan, Source, StopRule};
use flashyard_nand::{Capabilities, Currents, IsppModel, NandConfig};
use flashyard_ssd::{DriveConfig, FirmwareCost, Overwrites, PacingRule};
use flashyard_units::{ByteRate, Hertz, SimSpan, SimTime};
use flashyard_workload::{RequestSource, SourceError};

/// A mistake in the mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// Blocks written while a drive is away are not noted: it returns as if it had them.
    ForgetsStale,
    /// Requests do not wait for writes of their blocks.
    Overlaps,
}

/// Blocks of the volume.
pub(crate) const BLOCKS: u64 = 2200;

fn drive(blocks: u32, dies_per_channel: u32, speed: u64) -> DriveConfig {
    DriveConfig {
        nand: NandConfig {
            geometry: Geometry {
                channels: 2,
                dies_per_channel,
                planes_per_die: 2,
                blocks_per_plane: 48 / dies_per_channel,
                pages_per_block: 12,
                page_bytes: 8192,
                pages_per_program: 1,
            },
            read: [60, 90, 120].map(|us| SimSpan::from_us(us / speed)),
            program: IsppModel { pulse: SimSpan::from_us(40), pulses: [5, 7, 10] },
            erase: SimSpan::from_ms(3),
            channel: ByteRate::from_mb(1200),
            starvation_bound: 4,
            raw_bit_error_rate: 4e-3,
            correctable_bit_error_rate: 4e-3,
            read_retries_max: None,
            wear: None,
            currents: Currents { volts: 3.3, active_ma: 25.0, bus_idle_ma: 5.0, standby_ma: 0.01 },
            capabilities: Capabilities::default(),
        },
        ftl: FtlConfig {
            logical_slots: blocks,
            filled_slots: 2000,
            reclaim_below: 3,
            stamps: true,
            ..FtlConfig::default()
        },
        cores: 2,
        core_clock: Hertz::new(1_000_000_000 * speed),
        firmware: FirmwareCost {
            cycles_per_command: 900,
            cycles_per_slice: 1400,
            stall_per_slice: SimSpan::from_ns(70),
            cycles_per_moved_slice: 0,
            command_interval: SimSpan::ZERO,
        },
        read_rate: ByteRate::from_mb(3000),
        write_rate: ByteRate::from_mb(1500 * speed),
        buffer_slots: 64,
        mapping_unit: 1,
        read_cache_slots: 0,
        read_ahead_slots: 0,
        mapping_cache_pages: 2,
        translation_page_bytes: 4096,
        host_map: None,
        offsite_access: SimSpan::from_ns(300),
        offsite_rate: ByteRate::from_mb(16_000),
        segment_pages: 1,
        log_records: 512,
        reclaim_reads: 4,
        power_loss_protection: true,
        expects_power_cuts: false,
        erases: 0,
        pacing: PacingRule::None,
        program_rate: None,
        records: None,
        stripe: None,
    }
}

pub(crate) fn config(policy: ReadPolicy) -> MirrorConfig {
    MirrorConfig {
        drives: [drive(2600, 4, 1), drive(BLOCKS as u32, 2, 2)],
        overwrites: [Overwrites::times(0.5); 2],
        policy,
        submit_latency: SimSpan::from_us(1),
        complete_latency: SimSpan::from_us(2),
        resync_depth: 8,
    }
}

pub(crate) fn plan(requests: u64, depth: u32) -> RunPlan {
    RunPlan {
        warmup: SimSpan::from_us(500),
        stop: StopRule::Requests(requests),
        ends_together: false,
        depth: Some(depth),
        seed: 1,
    }
}

/// Reads, and writes with some trims and flushes, of one to six blocks anywhere.
pub(crate) struct Mix {
    pub(crate) rng: Rng,
    /// In a hundred.
    pub(crate) reads: u64,
}

impl RequestSource for Mix {
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        let operation = match self.rng.below(100) {
            below if below < self.reads => Operation::Read,
            99 => Operation::Flush,
            97..99 => Operation::Trim,
            _ => Operation::Write,
        };
        let blocks = 1 + self.rng.below(6);
        // Half of the requests meet at a few blocks.
        let area = if self.rng.below(2) == 0 { 40 } else { BLOCKS };
        let offset_bytes = self.rng.below(area - blocks) * u64::from(SLOT_BYTES);
        let request = BlockRequest { operation, offset_bytes, len_bytes: blocks as u32 * SLOT_BYTES };
        Ok(Some(TraceRecord { arrival: SimTime::ZERO, volume: 0, request }))
    }
}

pub(crate) fn mix(seed: u64, reads: u64) -> Source {
    Box::new(Mix { rng: Rng::named(seed, "mirror.mix"), reads })
}
