//! From a scenario to the parameters and sources of an enclosure.

use super::section::{HostSection, JbofScenario};
use crate::jbof::{ChainConfig, Design, DriverConfig, HostConfig, JbofConfig, Source, VhConfig};
use crate::xbof::{BalanceRule, HarvestConfig, Indicator, LenderChoice, Sensing, Weights};
use flashyard_describe::drive::{bytes_u32, drive};
use flashyard_describe::load::sources;
use flashyard_describe::{Files, JobFiles, ScenarioError, Time, traces};
use flashyard_fabric::FabricConfig;
use flashyard_flash::SLOT_BYTES;
use flashyard_host::QueueInterface;
use flashyard_units::{Hertz, Named, SimSpan, Watts};

/// Makes the seed of warming another one than that of the run.
const WARMING_SEED: u64 = 0x5741_524D;

/// The parameters of a world of `design`.
pub(crate) fn jbof(scenario: &JbofScenario, design: Design) -> Result<JbofConfig, ScenarioError> {
    let host = &scenario.host;
    let kept = scenario.jbof.kept();
    let (driver, harvest) = (driver(scenario), harvest(scenario)?);
    if design.harvests_memory() {
        notices_in_time(&driver, &harvest)?;
    }
    Ok(JbofConfig {
        design,
        drives: scenario.jbof.drives,
        busy_drives: scenario.jbof.busy_drives,
        drive: drive(&scenario.drive)?,
        overwrites: scenario.drive.overwrites(),
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
            interface: interface(host)?,
            oc_cycles_factor: host.oc_cycles_factor,
            oc_latency: host.oc_latency.0,
        },
        driver,
        harvest,
        vh: virtual_drives(scenario)?,
        chain: chain(scenario),
    })
}

/// Steps of the aggregation time of interrupts. Source: [P] NVM Express Base Specification, feature 08h.
const AGGREGATION_STEP: SimSpan = SimSpan::from_us(100);

fn interface(host: &HostSection) -> Result<QueueInterface, ScenarioError> {
    let base = QueueInterface::FREE;
    let span = |key: Option<Time>, base| key.map_or(base, |time| time.0);
    if host.interrupt_threshold.is_some() != host.interrupt_time.is_some() {
        let (given, missing) = match host.interrupt_time {
            Some(_) => ("host.interrupt_time", "interrupt_threshold"),
            None => ("host.interrupt_threshold", "interrupt_time"),
        };
        return Err(ScenarioError::value(given, format!("interrupts are coalesced by both; give host.{missing} too")));
    }
    let time = span(host.interrupt_time, base.time);
    if !time.as_ps().is_multiple_of(AGGREGATION_STEP.as_ps()) {
        let message = format!("{time} is no multiple of {AGGREGATION_STEP}, in which NVMe counts it");
        return Err(ScenarioError::value("host.interrupt_time", message));
    }
    Ok(QueueInterface {
        doorbell: span(host.doorbell, base.doorbell),
        command_fetch: span(host.command_fetch, base.command_fetch),
        completion_write: span(host.completion_write, base.completion_write),
        completions: host.completions.map_or(base.completions, |choice| choice.0),
        interrupt_latency: span(host.interrupt_latency, base.interrupt_latency),
        threshold: host.interrupt_threshold.unwrap_or(base.threshold),
        time,
    })
}

fn driver(scenario: &JbofScenario) -> DriverConfig {
    let (section, base) = (&scenario.host, DriverConfig::default());
    DriverConfig {
        period: section.period.map(|time| time.0),
        silent_periods: section.silent_periods.unwrap_or(base.silent_periods),
        io_timeout: section.io_timeout.map_or(base.io_timeout, |time| time.0),
    }
}

/// A lender takes memory back by force from a borrower that does not answer. The driver must have given that borrower up by then:
/// its clients would read through a map that others write over.
///
/// Errors: a driver that looks too rarely.
fn notices_in_time(driver: &DriverConfig, harvest: &HarvestConfig) -> Result<(), ScenarioError> {
    let look = driver.period.unwrap_or(harvest.period);
    let spans = |periods: u32, period: SimSpan| u128::from(periods) * u128::from(period.as_ps());
    if spans(harvest.withdraw_periods, harvest.period) > spans(driver.silent_periods, look) {
        return Ok(());
    }
    let message = format!(
        "a lender takes its memory back after {} periods of {}, and the driver gives a silent drive up after {} looks, one in {look} (host.silent_periods): clients \
         would read through segments that are the lender's again; give more harvest.withdraw_periods, or fewer host.silent_periods",
        harvest.withdraw_periods, harvest.period, driver.silent_periods,
    );
    Err(ScenarioError::value("harvest.withdraw_periods", message))
}

fn fabric(scenario: &JbofScenario) -> FabricConfig {
    let (section, base) = (&scenario.fabric, FabricConfig::default());
    FabricConfig {
        link_rate: scenario.drive.link_rate.0,
        radix: section.radix.unwrap_or(base.radix),
        hop: section.hop.map_or(base.hop, |time| time.0),
        half_duplex: section.half_duplex.unwrap_or(base.half_duplex),
        ..base
    }
}

fn virtual_drives(scenario: &JbofScenario) -> Result<VhConfig, ScenarioError> {
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

fn chain(scenario: &JbofScenario) -> ChainConfig {
    let (section, base) = (&scenario.chain, ChainConfig::default());
    ChainConfig {
        services: section.services.unwrap_or(base.services),
        cycles: section.cycles.unwrap_or(base.cycles),
        placement: section.placement.map_or(base.placement, |choice| choice.0),
    }
}

fn harvest(scenario: &JbofScenario) -> Result<HarvestConfig, ScenarioError> {
    let section = &scenario.harvest;
    let base = HarvestConfig::default();
    let weights = Weights {
        lender_total: section.lender_weight.unwrap_or(base.weights.lender_total),
        shadow: section.shadow_weight.unwrap_or(base.weights.shadow),
        ..base.weights
    };
    if weights.shadow == 0 || weights.lender_total <= weights.shadow {
        return Err(ScenarioError::value(
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
        return Err(ScenarioError::value("harvest.indicator", message));
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
        reserves: section.reserves.unwrap_or(base.reserves),
        counts_lent: section.counts_lent.unwrap_or(base.counts_lent),
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
fn sensing(scenario: &JbofScenario) -> Sensing {
    let (section, base) = (&scenario.harvest, Sensing::default());
    Sensing {
        phase: section.host_phase.unwrap_or(base.phase),
        delay: section.sensing_delay.unwrap_or(base.delay),
        noise: section.sensing_noise.unwrap_or(base.noise),
    }
}

/// Sources that warm mapping caches: the same description with other random numbers, a trace at most once.
/// The lenders of virtual drives get writes all over their borrowers' space: generated requests warm them as well.
pub(crate) fn warming_sources(
    scenario: &JbofScenario,
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
    let all = design.is_virtual() && !traces::are_given(&warming.workload);
    let busy = if all { warming.jbof.drives } else { warming.jbof.busy_drives };
    sources(&warming, busy, capacity_bytes, files)
}
