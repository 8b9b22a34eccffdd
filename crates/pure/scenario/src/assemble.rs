//! From a scenario to the parameters and sources of a world.

use crate::Files;
use crate::fio::JobFiles;
use crate::parse::ScenarioError;
use crate::schema::{DriveSection, PatternName, PricesSection, Scenario, StripeSection, WorkloadSection};
use crate::traces;
use flashyard_fabric::FabricConfig;
use flashyard_flash::{Geometry, SLOT_BYTES};
use flashyard_ftl::FtlConfig;
use flashyard_kernel::Rng;
use flashyard_nand::{Currents, IsppModel, NandConfig};
use flashyard_report::Prices;
use flashyard_ssd::{BlockedReads, DriveConfig, FirmwareCost, StripeConfig};
use flashyard_systems::jbof::{Design, DriverConfig, HostConfig, JbofConfig, RunPlan, Source, StopRule, VhConfig};
use flashyard_systems::xbof::{BalanceRule, HarvestConfig, Indicator, LenderChoice, Sensing, Weights};
use flashyard_units::Named;
use flashyard_units::{Hertz, SimSpan, Watts};
use flashyard_workload::{AddressPattern, Arrival, SizeMix, Synthetic, SyntheticSpec, surrogates, table2};

/// Makes the seed of warming another one than that of the run.
const WARMING_SEED: u64 = 0x5741_524D;

pub(crate) fn value(key: &'static str, message: String) -> ScenarioError {
    ScenarioError::Value { key, message }
}

fn bytes_u32(key: &'static str, bytes: u64) -> Result<u32, ScenarioError> {
    u32::try_from(bytes).map_err(|_| value(key, format!("{bytes} bytes are too many, give less than 4 GiB")))
}

/// The parameters of one drive with full resources.
pub(crate) fn drive(section: &DriveSection) -> Result<DriveConfig, ScenarioError> {
    let geometry = geometry(section)?;
    let page_transfer = section.translation_page_transfer.0.get();
    let mut config = DriveConfig {
        nand: nand(section, geometry),
        ftl: ftl(section, &geometry),
        cores: section.cores,
        core_clock: Hertz::new(section.core_clock_mhz * 1_000_000),
        firmware: FirmwareCost {
            cycles_per_command: section.cycles_per_command,
            cycles_per_slice: section.cycles_per_slice,
            stall_per_slice: section.stall_per_slice.0,
        },
        read_rate: section.read_rate.0,
        write_rate: section.write_rate.0,
        buffer_slots: bytes_u32("drive.write_buffer", section.write_buffer.0.get())? / SLOT_BYTES,
        mapping_cache_pages: u32::MAX,
        translation_page_bytes: bytes_u32("drive.translation_page_transfer", page_transfer)?,
        offsite_access: FabricConfig::default().load,
        offsite_rate: section.link_rate.0,
        segment_pages: HarvestConfig::default().pages_per_segment,
        log_records: HarvestConfig::default().log_records,
        reclaim_reads: section.reclaim_reads,
        power_loss_protection: section.power_loss_protection,
        erases: 0,
        stripe: section.stripe.as_ref().map(|section| stripe(section, geometry.channels)).transpose()?,
    };
    // Parity takes its space beside the spare space.
    let logical_slots = FtlConfig::logical_slots_for(&config.data_geometry(), section.over_provisioning);
    config.ftl.logical_slots = logical_slots;
    config.ftl.filled_slots = (f64::from(logical_slots) * section.filled) as u32;
    if let Some(wear) = &section.wear {
        wear.apply(&mut config)?;
    }
    Ok(config)
}

fn geometry(section: &DriveSection) -> Result<Geometry, ScenarioError> {
    let geometry = Geometry {
        channels: section.channels,
        dies_per_channel: section.dies_per_channel,
        planes_per_die: section.planes_per_die,
        blocks_per_plane: section.blocks_per_plane,
        pages_per_block: section.pages_per_block,
        page_bytes: bytes_u32("drive.page_size", section.page_size.0.get())?,
    };
    geometry.validate().map_err(|error| crate::keyed::geometry(&error))?;
    Ok(geometry)
}

fn nand(section: &DriveSection, geometry: Geometry) -> NandConfig {
    NandConfig {
        geometry,
        read: [section.read_lsb.0, section.read_csb.0, section.read_msb.0],
        program: IsppModel { pulse: section.program_pulse.0, pulses: section.program_pulses },
        erase: section.erase.0,
        channel: section.channel_rate.0,
        starvation_bound: section.starvation_bound,
        raw_bit_error_rate: section.raw_bit_error_rate,
        correctable_bit_error_rate: section.correctable_bit_error_rate,
        read_retries_max: section.read_retries_max,
        wear: None,
        currents: Currents {
            volts: section.supply_volts,
            active_ma: section.active_milliamperes,
            bus_idle_ma: section.bus_idle_milliamperes,
            standby_ma: section.standby_milliamperes,
        },
    }
}

/// The translation layer without its slots, which hang on what parity takes.
fn ftl(section: &DriveSection, geometry: &Geometry) -> FtlConfig {
    let base = FtlConfig::default();
    FtlConfig {
        victim: section.victim.0,
        reclaim_below: section.reclaim_below,
        coalesce: section.coalesce_writes,
        slc_superblocks: section.slc_superblocks,
        remap_entries: remap_entries(geometry),
        allocation: section.allocation.map_or(base.allocation, |choice| choice.0),
        wear_leveling: section.wear_leveling.map_or(base.wear_leveling, |policy| policy.0),
        frontiers: section.frontiers.map_or(base.frontiers, |choice| choice.0),
        ..base
    }
}

fn stripe(section: &StripeSection, channels: u32) -> Result<StripeConfig, ScenarioError> {
    if section.members < 2 || !channels.is_multiple_of(section.members) {
        let message = format!(
            "stripes of {} dies do not fit {channels} channels, give a divisor of the channels from 2 up",
            section.members
        );
        return Err(value("drive.stripe.members", message));
    }
    Ok(StripeConfig {
        members: section.members,
        rotates: section.rotates,
        blocked_reads: section.blocked_reads.map_or(BlockedReads::Rebuild, |choice| choice.0),
    })
}

/// Entries of a drive's protected log of remaps: 1 MiB of 8-byte entries for each TiB of flash, and a page of 4 KiB at
/// least. Source: \[P\] sheet cvss §3.2; the page is \[A\].
fn remap_entries(geometry: &Geometry) -> u32 {
    const BYTES_PER_ENTRY: u64 = 1 << 23;
    let entries = geometry.raw_bytes().get() / BYTES_PER_ENTRY;
    u32::try_from(entries).unwrap_or(u32::MAX).max(SLOT_BYTES / 8)
}

/// The parameters of a world of `design`.
pub(crate) fn jbof(scenario: &Scenario, design: Design) -> Result<JbofConfig, ScenarioError> {
    let host = &scenario.host;
    let kept = scenario.jbof.kept();
    Ok(JbofConfig {
        design,
        drives: scenario.jbof.drives,
        busy_drives: scenario.jbof.busy_drives,
        drive: drive(&scenario.drive)?,
        overwritten: scenario.drive.overwritten,
        shrunk_cores: kept.cores,
        shrunk_memory: kept.memory,
        core_power: Watts::new(scenario.drive.core_power_watts),
        dram_picojoules_per_bit: scenario.drive.dram_picojoules_per_bit,
        link_picojoules_per_bit: scenario.drive.link_picojoules_per_bit,
        fabric: fabric(scenario),
        host: HostConfig {
            drives_per_host: host.drives_per_host.unwrap_or(0),
            cores: host.cores,
            clock: Hertz::new(host.clock_mhz * 1_000_000),
            memory: host.memory.0,
            driver_cycles: host.driver_cycles,
            submit_latency: host.submit_latency.0,
            complete_latency: host.complete_latency.0,
            oc_cycles_factor: host.oc_cycles_factor,
            oc_latency: host.oc_latency.0,
        },
        driver: driver(scenario),
        harvest: harvest(scenario)?,
        vh: virtual_drives(scenario)?,
    })
}

fn driver(scenario: &Scenario) -> DriverConfig {
    let (section, base) = (&scenario.host, DriverConfig::default());
    DriverConfig {
        silent_periods: section.silent_periods.unwrap_or(base.silent_periods),
        io_timeout: section.io_timeout.map_or(base.io_timeout, |time| time.0),
    }
}

fn fabric(scenario: &Scenario) -> FabricConfig {
    let (section, base) = (&scenario.fabric, FabricConfig::default());
    FabricConfig {
        link_rate: scenario.drive.link_rate.0,
        radix: section.radix.unwrap_or(base.radix),
        hop: section.hop.map_or(base.hop, |time| time.0),
        ..base
    }
}

fn virtual_drives(scenario: &Scenario) -> Result<VhConfig, ScenarioError> {
    let section = &scenario.vh;
    let base = VhConfig::default();
    let copy_back_slots = match section.copy_back_size {
        Some(size) => (bytes_u32("vh.copy_back_size", size.0.get())? / SLOT_BYTES).max(1),
        None => base.copy_back_slots,
    };
    Ok(VhConfig {
        lenders: section.lenders.unwrap_or(base.lenders),
        redirect_cycles: section.redirect_cycles.unwrap_or(base.redirect_cycles),
        copy_back_slots,
        copy_back_depth: section.copy_back_depth.unwrap_or(base.copy_back_depth),
    })
}

fn harvest(scenario: &Scenario) -> Result<HarvestConfig, ScenarioError> {
    let section = &scenario.harvest;
    let base = HarvestConfig::default();
    let weights = Weights {
        lender_total: section.lender_weight.unwrap_or(base.weights.lender_total),
        shadow: section.shadow_weight.unwrap_or(base.weights.shadow),
        ..base.weights
    };
    if weights.shadow == 0 || weights.lender_total <= weights.shadow {
        return Err(value(
            "harvest.lender_weight",
            format!(
                "{} of which {} for the shadow queue; give a total above a shadow weight above 0",
                weights.lender_total, weights.shadow
            ),
        ));
    }
    let period = section.period.map_or(base.period, |time| time.0);
    let (balance, lender_choice) =
        (section.balance.map(|choice| choice.0), section.lender_choice.map(|choice| choice.0));
    let indicator = section.indicator.map_or(base.indicator, |choice| choice.0);
    let needs_shares = [
        ("balance = \"water-filling\"", balance == Some(BalanceRule::WaterFilling)),
        ("lender_choice = \"most-spare\"", lender_choice == Some(LenderChoice::MostSpare)),
        ("lender_p99_cap", section.lender_p99_cap.is_some()),
    ];
    if let Some((other, _)) = needs_shares.iter().find(|other| other.1)
        && indicator != Indicator::Utilization
    {
        let message = format!("{other} reckons in shares of cores, which {} is not; leave one out", indicator.name());
        return Err(value("harvest.indicator", message));
    }
    Ok(HarvestConfig {
        indicator,
        period,
        scan: section.scan.map_or(base.scan, |choice| choice.0),
        watermark: section.watermark.unwrap_or(base.watermark),
        processor_offers: section.processor_offers.unwrap_or(base.processor_offers),
        memory_offers: section.memory_offers.unwrap_or(base.memory_offers),
        lenders_max: section.lenders_max.unwrap_or(base.lenders_max),
        pages_per_segment: section.segment_pages.unwrap_or(base.pages_per_segment),
        log_records: section.log_records.unwrap_or(base.log_records),
        accesses_min: section.accesses_min.unwrap_or(base.accesses_min),
        withdraw_periods: section.withdraw_periods.unwrap_or(base.withdraw_periods),
        lender_choice: lender_choice.unwrap_or(base.lender_choice),
        balance: balance.unwrap_or(base.balance),
        weights,
        damping: section.damping.unwrap_or(base.damping),
        sensing: sensing(scenario),
        lender_p99_cap: section.lender_p99_cap,
        seed: scenario.seed,
        target_miss_ratio: section.target_miss_ratio.unwrap_or(base.target_miss_ratio),
        warm_memory: section.warm_memory.unwrap_or(base.warm_memory),
        ..base
    })
}

/// The driver's view of utilizations.
fn sensing(scenario: &Scenario) -> Sensing {
    let (section, base) = (&scenario.harvest, Sensing::default());
    Sensing {
        phase: section.host_phase.unwrap_or(base.phase),
        delay: section.sensing_delay.unwrap_or(base.delay),
        noise: section.sensing_noise.unwrap_or(base.noise),
    }
}

/// How long to run.
pub(crate) fn plan(scenario: &Scenario) -> Result<RunPlan, ScenarioError> {
    let run = &scenario.run;
    let stop = match (run.measure, run.requests_per_drive) {
        (Some(time), _) => StopRule::After(time.0),
        (None, Some(requests)) => StopRule::Requests(requests),
        (None, None) if traces::are_given(&scenario.workload) => StopRule::StreamEnd,
        (None, None) => {
            return Err(value("run", "give measure = \"100 ms\" or requests_per_drive = 10000".to_owned()));
        }
    };
    let warmup = run.warmup.map_or(SimSpan::ZERO, |time| time.0);
    // Where arrivals are replayed, the trace says how much load there is at any time: a drive that is asked for nothing
    // more is part of it.
    let replayed = traces::are_given(&scenario.workload) && scenario.workload.depth.is_none();
    let ends_together = !replayed || matches!(stop, StopRule::Requests(_));
    Ok(RunPlan { warmup, stop, ends_together, depth: scenario.workload.depth, seed: scenario.seed })
}

/// One source for each busy drive.
pub(crate) fn sources(
    scenario: &Scenario,
    capacity_bytes: u64,
    files: &'static dyn Files,
) -> Result<Vec<Source>, ScenarioError> {
    let workload = &scenario.workload;
    let busy = scenario.jbof.busy_drives;
    if traces::are_given(workload) {
        return traces::sources(workload, busy, capacity_bytes, files);
    }
    let spec = spec(workload, capacity_bytes)?;
    (0..busy)
        .map(|drive| {
            let rng = Rng::named(scenario.seed, &format!("workload.{drive}"));
            let source =
                Synthetic::new(spec.clone(), rng).map_err(|error| value("workload.size", error.to_string()))?;
            Ok(Box::new(source) as Source)
        })
        .collect()
}

/// Sources that warm mapping caches: the same description with other random numbers, a trace at most once.
/// The lenders of virtual drives get writes all over their borrowers' space: generated requests warm them as well.
pub(crate) fn warming_sources(
    scenario: &Scenario,
    design: Design,
    jobs: Option<&JobFiles>,
    capacity_bytes: u64,
    files: &'static dyn Files,
) -> Result<Vec<Source>, ScenarioError> {
    let mut warming = scenario.clone();
    warming.seed ^= WARMING_SEED;
    if let Some(jobs) = jobs {
        return jobs.warming_sources(&warming, capacity_bytes);
    }
    warming.workload.repetitions = Some(1);
    if design.is_virtual() && !traces::are_given(&warming.workload) {
        warming.jbof.busy_drives = warming.jbof.drives;
    }
    sources(&warming, capacity_bytes, files)
}

/// The load of the run, in words, with every scaling that is applied.
pub(crate) fn describe(scenario: &Scenario, capacity_bytes: u64) -> String {
    let workload = &scenario.workload;
    let looping = match workload.depth {
        Some(depth) => format!("closed loop of depth {depth} on each of {} drives", scenario.jbof.busy_drives),
        None => format!("arrival times kept, on each of {} drives", scenario.jbof.busy_drives),
    };
    if traces::are_given(workload) {
        return format!("{}; {looping}", traces::describe(workload, scenario.jbof.busy_drives, capacity_bytes));
    }
    match &workload.table2 {
        Some(name) => format!("synthetic, with the published means of {name}; {looping}"),
        None => match &workload.surrogate {
            Some(name) => format!("synthetic, with the published characteristics of {name}; {looping}"),
            None => format!("synthetic pattern; {looping}"),
        },
    }
}

/// The load that a generator makes on a drive of `capacity_bytes`.
pub(crate) fn spec(workload: &WorkloadSection, capacity_bytes: u64) -> Result<SyntheticSpec, ScenarioError> {
    let span_bytes = workload.span.map_or(capacity_bytes, |size| size.0.get());
    if span_bytes > capacity_bytes || span_bytes == 0 {
        return Err(value(
            "workload.span",
            format!("{span_bytes} bytes of a drive of {capacity_bytes}, give 1 to that"),
        ));
    }
    let mut spec = match (&workload.table2, &workload.surrogate, workload.pattern) {
        (Some(name), ..) => table2::workload(name, span_bytes).ok_or_else(|| {
            let names: Vec<&str> = table2::names().collect();
            value("workload.table2", format!("there is no workload {name:?}, give one of {}", names.join(", ")))
        })?,
        (None, Some(name), _) => {
            let characteristics = surrogates::characteristics(name).ok_or_else(|| {
                let names: Vec<&str> = surrogates::TRACES.iter().map(|row| row.name).collect();
                value("workload.surrogate", format!("there is no trace {name:?}, give one of {}", names.join(", ")))
            })?;
            characteristics.workload(span_bytes)
        }
        (None, None, Some(pattern)) => pattern_spec(workload, pattern, span_bytes)?,
        (None, None, None) => {
            return Err(value(
                "workload",
                "give fio, trace, traces, table2, surrogate or pattern (sequential, uniform, zipf, hot-cold)".into(),
            ));
        }
    };
    spec.arrival = arrival(workload)?;
    Ok(spec)
}

fn pattern_spec(
    workload: &WorkloadSection,
    pattern: PatternName,
    span_bytes: u64,
) -> Result<SyntheticSpec, ScenarioError> {
    let size =
        workload.size.ok_or_else(|| value("workload.size", "give the request size, for example \"64 KiB\"".into()))?;
    let size = bytes_u32("workload.size", size.0.get())?;
    if u64::from(size) > span_bytes {
        let message =
            format!("requests of {size} bytes do not fit {span_bytes} bytes; give less, or more workload.span");
        return Err(value("workload.size", message));
    }
    Ok(SyntheticSpec {
        read_share: workload.read_share.unwrap_or(1.0),
        read_size: SizeMix::Fixed(size),
        write_size: SizeMix::Fixed(size),
        address: match pattern {
            PatternName::Sequential => AddressPattern::Sequential { start: 0 },
            PatternName::Uniform => AddressPattern::Uniform,
            PatternName::Zipf => AddressPattern::Zipf { theta: workload.zipf_theta.unwrap_or(0.99) },
            PatternName::HotCold => AddressPattern::HotCold {
                space: workload.hot_space.unwrap_or(0.2),
                traffic: workload.hot_traffic.unwrap_or(0.7),
            },
        },
        span_bytes,
        alignment_bytes: size,
        arrival: Arrival::Immediate,
        requests: None,
    })
}

fn arrival(workload: &WorkloadSection) -> Result<Arrival, ScenarioError> {
    match (workload.depth, workload.requests_per_second, workload.burst, workload.pause) {
        (Some(_), _, _, _) => Ok(Arrival::Immediate),
        (None, Some(per_second), Some(on), Some(off)) => Ok(Arrival::Bursts { per_second, on: on.0, off: off.0 }),
        (None, Some(per_second), None, None) => Ok(Arrival::Poisson { per_second }),
        (None, Some(_), _, _) => Err(value("workload.burst", "bursts need both burst and pause".to_owned())),
        (None, None, _, _) => Err(value(
            "workload.depth",
            "generated requests need a depth (closed loop) or requests_per_second (open loop)".to_owned(),
        )),
    }
}

/// The price list.
pub fn prices(section: &PricesSection) -> Prices {
    Prices {
        nand_per_128_gb: section.nand_dollars_per_128_gb,
        dram_per_gb: section.dram_dollars_per_gb,
        controller: section.controller_dollars,
        oc_controller: section.oc_controller_dollars,
        other: section.other_dollars,
        cxl_premium: section.cxl_premium,
    }
}
