//! The health log of a drive, from what its life was.

use crate::media::Life;
use flashyard_nvme::log::{CapacityLog, SmartLog};
use flashyard_nvmf::target::Figures;
use flashyard_served::{Capacity, Health};

/// A data unit: thousand sectors of 512 bytes. Source: NVM Express Base 2.0, figure 207.
const DATA_UNIT_BYTES: u64 = 512_000;
/// 25 degrees Celsius: the model has no temperature. [A]
const TEMPERATURE_KELVIN: u16 = 298;

/// Spare below which a drive warns. [A] what drives of data centres come with
const SPARE_THRESHOLD_PERCENT: u8 = 10;

/// The page of capacity of a drive whose flash wears.
pub(super) fn capacity(health: &Health, life: &Life, capacity: &Capacity, blocks: u64) -> CapacityLog {
    let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
    let state = flag(capacity.degraded, CapacityLog::DEGRADED) | flag(health.worn_out, CapacityLog::WORN_OUT);
    CapacityLog {
        word: CapacityLog::WORD,
        raw_blocks: capacity.raw_slots.into(),
        physical_blocks: capacity.physical_slots.into(),
        exported_blocks: blocks.into(),
        mapped_blocks: capacity.mapped_slots.into(),
        young: capacity.states.young.into(),
        middle_aged: capacity.states.middle_aged.into(),
        retired: capacity.states.retired.into(),
        retries_max: capacity.states.retries_max.into(),
        retires_at: capacity.retires_at.unwrap_or(0).into(),
        endurance: health.endurance.unwrap_or(0).into(),
        erases_mean: (health.erases_mean as u32).into(),
        state: state.into(),
        page_reads: life.page_reads.into(),
        read_retries: life.read_retries.into(),
        ..CapacityLog::default()
    }
}

/// Figures that the controller of a drive reports, without the entries of its error log.
pub(super) fn figures(health: &Health, life: &Life, capacity_bytes: u64, endurance_erases: u32) -> Figures {
    let units = |bytes: u64| SmartLog::counter(bytes.div_ceil(DATA_UNIT_BYTES));
    let mut figures = Figures { capacity_bytes, ..Figures::default() };
    let smart = &mut figures.smart;
    smart.temperature_k.set(TEMPERATURE_KELVIN);
    // Rounded down: a drive that has lost any of its spare does not say that it has all.
    smart.spare_percent = (100.0 * health.spare()) as u8;
    smart.spare_threshold_percent = SPARE_THRESHOLD_PERCENT;
    if smart.spare_percent < SPARE_THRESHOLD_PERCENT {
        smart.critical_warning |= SmartLog::WARNING_SPARE;
    }
    if health.worn_out {
        smart.critical_warning |= SmartLog::WARNING_READ_ONLY;
    }
    smart.used_percent = (100.0 * health.used(endurance_erases)).min(255.0) as u8;
    smart.media_errors = SmartLog::counter(life.media_errors);
    smart.data_read = units(life.read_bytes);
    smart.data_written = units(life.write_bytes);
    smart.reads = SmartLog::counter(life.reads);
    smart.writes = SmartLog::counter(life.writes);
    smart.busy_minutes = SmartLog::counter(life.busy_us / 60_000_000);
    smart.power_cycles = SmartLog::counter(life.power_cycles);
    smart.power_on_hours = SmartLog::counter(life.powered_ms / 3_600_000);
    smart.unsafe_shutdowns = SmartLog::counter(life.unsafe_shutdowns);
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    fn health(erases_mean: f64, endurance: Option<u32>, retired_superblocks: u32) -> Health {
        Health {
            erases_mean,
            endurance,
            spare_superblocks: 20,
            retired_superblocks,
            worn_out: retired_superblocks == 40,
            ..Health::default()
        }
    }

    fn smart(health: &Health) -> (u8, u8, u8) {
        let smart = figures(health, &Life::default(), 100, 3000).smart;
        (smart.used_percent, smart.spare_percent, smart.critical_warning)
    }

    #[test]
    fn used_life_and_spare_follow_from_erases_and_retired_superblocks() {
        assert_eq!(smart(&health(0.0, Some(300), 0)), (0, 100, 0));
        assert_eq!(smart(&health(150.0, Some(300), 1)), (50, 95, 0));
        assert_eq!(smart(&health(150.0, None, 0)), (5, 100, 0));
        assert_eq!(smart(&health(9000.0, Some(300), 19)), (255, 5, SmartLog::WARNING_SPARE));
        let both = SmartLog::WARNING_SPARE | SmartLog::WARNING_READ_ONLY;
        assert_eq!(smart(&health(300.0, Some(300), 40)), (100, 0, both));
    }
}
