//! A drive small enough that garbage collection runs all the time.

use flashyard_flash::Geometry;
use flashyard_ftl::{FtlConfig, VictimPolicy};
use flashyard_nand::{Capabilities, Currents, IsppModel, NandConfig};
use flashyard_ssd::{BlockedReads, CommandSpec, DriveConfig, FirmwareCost, Operation, PacingRule, StripeConfig};
use flashyard_units::{ByteRate, Hertz, SimSpan};
use std::ops::Range;

pub(crate) mod crashing;

/// Ranges that a command may change: its own, and the one whose data a remap takes over.
pub(crate) fn changed_ranges(spec: &CommandSpec) -> Vec<Range<u32>> {
    let range = |first| first..first + spec.count;
    match spec.operation {
        Operation::Write | Operation::Trim => vec![range(spec.first)],
        Operation::Remap => vec![range(spec.first), range(spec.source)],
        _ => Vec::new(),
    }
}

/// Hosts order overlapping writes themselves; the result of overlapping ones is not defined.
pub(crate) fn conflict(one: &CommandSpec, other: &CommandSpec) -> bool {
    let others = changed_ranges(other);
    let meets = |one: &Range<u32>| others.iter().any(|other| one.start < other.end && other.start < one.end);
    changed_ranges(one).iter().any(meets)
}

/// Three translation pages of map on four dies.
pub(crate) fn config(coalesce: bool, slc: u32, cache_pages: u32, protection: bool) -> DriveConfig {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 2,
        blocks_per_plane: 24,
        pages_per_block: 12,
        page_bytes: 8192,
        pages_per_program: 1,
    };
    DriveConfig {
        nand: NandConfig {
            geometry,
            read: [30, 45, 60].map(SimSpan::from_us),
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
            logical_slots: 2600,
            filled_slots: 2000,
            victim: VictimPolicy::Greedy,
            reclaim_below: 3,
            coalesce,
            slc_superblocks: slc,
            stamps: true,
            // So few that remaps fill them, and pages of the log go to flash.
            remap_entries: 24,
            ..FtlConfig::default()
        },
        cores: 2,
        core_clock: Hertz::new(1_000_000_000),
        firmware: FirmwareCost {
            cycles_per_command: 900,
            cycles_per_slice: 1400,
            stall_per_slice: SimSpan::from_ns(70),
            cycles_per_moved_slice: 0,
            command_interval: SimSpan::ZERO,
        },
        read_rate: ByteRate::from_mb(3000),
        write_rate: ByteRate::from_mb(2000),
        buffer_slots: 64,
        mapping_unit: 1,
        read_cache_slots: 0,
        read_ahead_slots: 0,
        mapping_cache_pages: cache_pages,
        translation_page_bytes: 4096,
        host_map: None,
        offsite_access: SimSpan::from_ns(300),
        offsite_rate: ByteRate::from_mb(16_000),
        segment_pages: 1,
        log_records: 512,
        reclaim_reads: 4,
        power_loss_protection: protection,
        expects_power_cuts: false,
        erases: 0,
        pacing: PacingRule::None,
        program_rate: None,
        records: None,
        stripe: None,
    }
}

/// This drive on eight dies in stripes of four, whose parity leaves as much flash as before.
pub(crate) fn striped(mut config: DriveConfig, rotates: bool, blocked_reads: BlockedReads) -> DriveConfig {
    config.nand.geometry.channels = 4;
    config.nand.geometry.blocks_per_plane = 16;
    DriveConfig { stripe: Some(StripeConfig { members: 4, rotates, blocked_reads }), ..config }
}

/// Ten translation pages of map, two of them in the drive's own memory, two in a borrowed segment. Segments are
/// copied home so slowly that logs run full.
pub(crate) fn borrowing(coalesce: bool, segment_pages: u32, offsite_rate: ByteRate) -> DriveConfig {
    let mut config = config(coalesce, 0, 2, true);
    config.nand.geometry.blocks_per_plane = 80;
    config.ftl.logical_slots = 10_000;
    config.ftl.filled_slots = 8000;
    DriveConfig { segment_pages, offsite_rate, ..config }
}
