//! A JBOF small enough for the tests of one mechanism: two busy drives and two idle ones.

use super::chain::ChainConfig;
use super::config::{Design, HostConfig, JbofConfig, VhConfig};
use super::world::Jbof;
use crate::xbof::HarvestConfig;
use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_fabric::FabricConfig;
use flashyard_flash::{Geometry, SLOT_BYTES};
use flashyard_ftl::FtlConfig;
use flashyard_host::{DriverConfig, QueueInterface};
use flashyard_kernel::Rng;
use flashyard_measure::{RunPlan, Source, StopRule};
use flashyard_nand::{Capabilities, Currents, IsppModel, NandConfig};
use flashyard_ssd::{DriveConfig, FirmwareCost, Overwrites, PacingRule};
use flashyard_units::{ByteRate, Bytes, Hertz, SimSpan, SimTime, Watts};
use flashyard_workload::{RequestSource, SourceError};

/// Logical slots of each drive: three translation pages.
pub(super) const SLOTS: u64 = 2600;

pub(super) fn drive() -> DriveConfig {
    DriveConfig {
        nand: NandConfig {
            geometry: Geometry {
                channels: 2,
                dies_per_channel: 2,
                planes_per_die: 2,
                blocks_per_plane: 24,
                pages_per_block: 12,
                page_bytes: 8192,
                pages_per_program: 1,
            },
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
            logical_slots: SLOTS as u32,
            filled_slots: 2000,
            reclaim_below: 3,
            stamps: true,
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
        mapping_cache_pages: u32::MAX,
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

pub(super) fn config(design: Design) -> JbofConfig {
    JbofConfig {
        design,
        drives: 4,
        busy_drives: 2,
        drive: drive(),
        overwrites: Overwrites::default(),
        shrunk_cores: 0.5,
        shrunk_memory: 0.5,
        core_power: Watts::new(0.4),
        dram_picojoules_per_bit: 4.0,
        link_picojoules_per_bit: 5.0,
        fabric: FabricConfig::default(),
        host: HostConfig {
            drives_per_host: 0,
            cores: 4,
            clock: Hertz::new(2_000_000_000),
            memory: Bytes::new(1 << 30),
            driver_cycles: 1000,
            submit_latency: SimSpan::from_us(1),
            complete_latency: SimSpan::from_us(1),
            interface: QueueInterface::FREE,
            oc_cycles_factor: 1.0,
            oc_latency: SimSpan::from_us(1),
        },
        driver: DriverConfig::default(),
        harvest: HarvestConfig {
            period: SimSpan::from_us(300),
            pages_per_segment: 1,
            accesses_min: 4,
            warm_memory: false,
            ..HarvestConfig::default()
        },
        chain: ChainConfig::default(),
        vh: VhConfig { copy_back_slots: 16, copy_back_depth: 4, ..VhConfig::default() },
    }
}

/// `requests` requests to each busy drive, at depth 8.
pub(super) fn plan(requests: u64) -> RunPlan {
    RunPlan { warmup: SimSpan::ZERO, stop: StopRule::Requests(requests), ends_together: false, depth: Some(8), seed: 1 }
}

/// As many reads as writes, of one to six slots anywhere.
struct Mix(Rng);

impl RequestSource for Mix {
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        let operation = if self.0.below(2) == 0 { Operation::Read } else { Operation::Write };
        let slots = 1 + self.0.below(6);
        let offset_bytes = self.0.below(SLOTS - slots) * u64::from(SLOT_BYTES);
        let request = BlockRequest { operation, offset_bytes, len_bytes: slots as u32 * SLOT_BYTES };
        Ok(Some(TraceRecord { arrival: SimTime::ZERO, volume: 0, request }))
    }
}

/// A world that has served `requests` mixed requests to each busy drive, and in which nothing is under way.
pub(super) fn drained(design: Design, requests: u64) -> Jbof {
    let source = |drive: u32| -> Source { Box::new(Mix(Rng::named(1, &format!("mix.{drive}")))) };
    let sources = (0..2).map(source).collect();
    let mut world = Jbof::new(config(design), plan(requests), sources).expect("it can be built");
    let run = world.run_with_faults(10_000_000).expect("it runs");
    assert_eq!(run.faults, Vec::<String>::new(), "{design:?}");
    world
}
