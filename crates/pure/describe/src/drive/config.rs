//! From the `[drive]` section to the parameters of a drive.

use super::section::{DriveSection, StripeSection};
use crate::error::{ScenarioError, value};
use crate::flash::FlashSection;
use crate::keyed;
use crate::quantity::Size;
use flashyard_fabric::FabricConfig;
use flashyard_flash::{Geometry, SLOT_BYTES};
use flashyard_ftl::FtlConfig;
use flashyard_nand::{Capabilities, Currents, IsppModel, NandConfig};
use flashyard_ssd::{BlockedReads, DriveConfig, FirmwareCost, LOG_RECORDS, PacingRule, SEGMENT_PAGES, StripeConfig};
use flashyard_units::{Hertz, SimSpan};

/// A size that has 32 bits.
///
/// Errors: more, as a mistake in `key`.
pub fn bytes_u32(key: &'static str, bytes: u64) -> Result<u32, ScenarioError> {
    u32::try_from(bytes).map_err(|_| value(key, format!("{bytes} bytes are too many, give less than 4 GiB")))
}

/// The parameters of one drive with full resources.
///
/// Errors: values that do not go together, by their keys.
pub fn drive(section: &DriveSection) -> Result<DriveConfig, ScenarioError> {
    let geometry = geometry(section)?;
    let page_transfer = section.translation_page_transfer.0.get();
    let mut config = DriveConfig {
        nand: nand(section, geometry)?,
        ftl: ftl(section, &geometry),
        cores: section.cores,
        core_clock: Hertz::new(section.core_clock_mhz * 1_000_000),
        firmware: FirmwareCost {
            cycles_per_command: section.cycles_per_command,
            cycles_per_slice: section.cycles_per_slice,
            stall_per_slice: section.stall_per_slice.0,
            cycles_per_moved_slice: section.cycles_per_moved_slice,
            command_interval: section.command_interval.map_or(SimSpan::ZERO, |time| time.0),
        },
        read_rate: section.read_rate.0,
        write_rate: section.write_rate.0,
        buffer_slots: bytes_u32("drive.write_buffer", section.write_buffer.0.get())? / SLOT_BYTES,
        mapping_unit: mapping_unit(section)?,
        read_cache_slots: slots("drive.read_cache", section.read_cache)?,
        read_ahead_slots: read_ahead(section)?,
        mapping_cache_pages: map_pages(section),
        translation_page_bytes: bytes_u32("drive.translation_page_transfer", page_transfer)?,
        host_map: None,
        offsite_access: FabricConfig::default().load,
        offsite_rate: section.link_rate.0,
        segment_pages: SEGMENT_PAGES,
        log_records: LOG_RECORDS,
        reclaim_reads: section.reclaim_reads,
        power_loss_protection: section.power_loss_protection,
        expects_power_cuts: false,
        erases: 0,
        pacing: section.pacing.map_or(PacingRule::None, |choice| choice.0),
        program_rate: section.program_rate.map(|rate| rate.0),
        records: None,
        stripe: section.stripe.as_ref().map(|section| stripe(section, geometry.channels)).transpose()?,
    };
    // Parity takes its space beside the spare space.
    let logical_slots = FtlConfig::logical_slots_for(&config.data_geometry(), section.over_provisioning);
    config.ftl.logical_slots = logical_slots;
    // Records take theirs off the spare space.
    config.records = section.records.as_ref().map(|records| records.config(&config)).transpose()?;
    config.ftl.filled_slots = (f64::from(logical_slots) * section.filled) as u32;
    if let Some(wear) = &section.wear {
        wear.apply(&mut config)?;
    }
    Ok(config)
}

/// Whole slots of a size that may be left out.
fn slots(key: &'static str, size: Option<Size>) -> Result<u32, ScenarioError> {
    let slots = size.map_or(0, |size| size.0.get() / u64::from(SLOT_BYTES));
    u32::try_from(slots).map_err(|_| value(key, format!("{slots} slots of 4 KiB are too many, give less than 16 TiB")))
}

/// Slots that are read ahead.
fn read_ahead(section: &DriveSection) -> Result<u32, ScenarioError> {
    let (cache, ahead) =
        (slots("drive.read_cache", section.read_cache)?, slots("drive.read_ahead", section.read_ahead)?);
    if ahead > cache / 2 {
        let message = "it is more than half of drive.read_cache; give less, or a larger cache".to_owned();
        return Err(value("drive.read_ahead", message));
    }
    Ok(ahead)
}

/// Slots of a mapping unit.
fn mapping_unit(section: &DriveSection) -> Result<u32, ScenarioError> {
    let Some(unit) = section.mapping_unit else { return Ok(1) };
    let bytes = unit.0.get();
    if !bytes.is_power_of_two() {
        return Err(value(
            "drive.mapping_unit",
            format!("{bytes} bytes are no power of two, give 4, 8, 16, 32 or 64 KiB"),
        ));
    }
    Ok(bytes_u32("drive.mapping_unit", bytes)? / SLOT_BYTES)
}

/// Translation pages that the memory for the map holds: a page of 4 KiB maps as many more slots as a unit has.
fn map_pages(section: &DriveSection) -> u32 {
    let unit = section.mapping_unit.map_or(1, |unit| unit.0.get() / u64::from(SLOT_BYTES));
    let pages = section.map_memory.map(|memory| memory.0.get() / u64::from(SLOT_BYTES) * unit);
    pages.and_then(|pages| u32::try_from(pages).ok()).unwrap_or(u32::MAX)
}

fn geometry(section: &DriveSection) -> Result<Geometry, ScenarioError> {
    let geometry = Geometry {
        channels: section.channels,
        dies_per_channel: section.dies_per_channel,
        planes_per_die: section.planes_per_die,
        blocks_per_plane: section.blocks_per_plane,
        pages_per_block: section.pages_per_block,
        page_bytes: bytes_u32("drive.page_size", section.page_size.0.get())?,
        pages_per_program: section.flash.as_ref().map_or(1, FlashSection::pages_per_program),
    };
    geometry.validate().map_err(|error| keyed::geometry(&error))?;
    Ok(geometry)
}

fn nand(section: &DriveSection, geometry: Geometry) -> Result<NandConfig, ScenarioError> {
    let program = IsppModel { pulse: section.program_pulse.0, pulses: section.program_pulses };
    let flash = section.flash.as_ref();
    let lsb = (section.read_lsb.0, program.program_time(0));
    Ok(NandConfig {
        geometry,
        read: [section.read_lsb.0, section.read_csb.0, section.read_msb.0],
        program,
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
        capabilities: flash.map_or(Ok(Capabilities::default()), |flash| flash.capabilities(&geometry, lsb))?,
    })
}

/// The translation layer without its slots, which hang on what parity takes.
fn ftl(section: &DriveSection, geometry: &Geometry) -> FtlConfig {
    let base = FtlConfig::default();
    FtlConfig {
        drawn: section.drawn,
        victim: section.victim.0,
        reclaim_below: section.reclaim_below,
        coalesce: section.coalesce_writes,
        slc_superblocks: section.slc_superblocks,
        slc_grows: section.slc_grows,
        refresh_reads: section.refresh_reads,
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

/// Why a key of drives has no effect on any of `drives`, which have it: they begin as aged ones.
pub fn idle_where_aged(key: &str, drives: &[&DriveSection]) -> Option<String> {
    let aged = drives.iter().all(|drive| drive.aged_state.is_some());
    // Asking for no wear misleads no user: a sweep may begin there.
    let has_erases = || drives.iter().any(|drive| drive.wear.as_ref().is_some_and(|wear| wear.erases > 0));
    let is_idle = match key {
        "filled" | "overwritten" | "until_steady" | "drawn" | "precondition" => true,
        "wear.erases" => has_erases(),
        _ => false,
    };
    (is_idle && aged && !drives.is_empty()).then(|| "drive.aged_state says what is on the drive".to_owned())
}
