//! The health log of a drive, from what its life was.

use flashyard_flash::SLOT_BYTES;
use flashyard_nvme::log::{CapacityLog, SmartLog};
use flashyard_nvmf::target::Figures;
use flashyard_systems::jbof::{Capacity, Health};
use std::time::Duration;

/// A data unit: thousand sectors of 512 bytes. Source: NVM Express Base 2.0, figure 207.
const DATA_UNIT_BYTES: u64 = 512_000;
/// 25 degrees Celsius: the model has no temperature. [A]
const TEMPERATURE_KELVIN: u16 = 298;

/// Spare below which a drive warns. [A] what drives of data centres come with
const SPARE_THRESHOLD_PERCENT: u8 = 10;

/// The page of capacity of a drive whose flash wears.
pub(super) fn capacity(health: &Health, capacity: &Capacity, slots: u32) -> CapacityLog {
    let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
    let state = flag(capacity.degraded, CapacityLog::DEGRADED) | flag(health.worn_out, CapacityLog::WORN_OUT);
    CapacityLog {
        word: CapacityLog::WORD,
        raw_blocks: capacity.raw_slots.into(),
        physical_blocks: capacity.physical_slots.into(),
        exported_blocks: u64::from(slots).into(),
        mapped_blocks: capacity.mapped_slots.into(),
        young: capacity.states.young.into(),
        middle_aged: capacity.states.middle_aged.into(),
        retired: capacity.states.retired.into(),
        retries_max: capacity.states.retries_max.into(),
        retires_at: capacity.retires_at.unwrap_or(0).into(),
        endurance: health.endurance.unwrap_or(0).into(),
        erases_mean: (health.erases_mean as u32).into(),
        state: state.into(),
        page_reads: capacity.page_reads.into(),
        read_retries: capacity.read_retries.into(),
        ..CapacityLog::default()
    }
}

/// What the controller of a drive reports.
pub(super) fn figures(health: &Health, slots: u32, endurance_erases: u32, powered: Duration) -> Figures {
    let units = |bytes: u64| SmartLog::counter(bytes.div_ceil(DATA_UNIT_BYTES));
    let mut figures = Figures { capacity_bytes: u64::from(slots) * u64::from(SLOT_BYTES), ..Figures::default() };
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
    smart.media_errors = SmartLog::counter(health.media_errors);
    smart.data_read = units(health.read_bytes);
    smart.data_written = units(health.write_bytes);
    smart.reads = SmartLog::counter(health.reads);
    smart.writes = SmartLog::counter(health.writes);
    smart.busy_minutes = SmartLog::counter((health.busy.as_secs_f64() / 60.0) as u64);
    smart.power_cycles = SmartLog::counter(1 + u64::from(health.breaks));
    smart.power_on_hours = SmartLog::counter(powered.as_secs() / 3600);
    smart.unsafe_shutdowns = SmartLog::counter(u64::from(health.breaks));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::SimSpan;

    fn health(erases_mean: f64, endurance: Option<u32>, retired_superblocks: u32) -> Health {
        Health {
            reads: 1,
            writes: 1,
            read_bytes: 4096,
            write_bytes: 4096,
            busy: SimSpan::ZERO,
            breaks: 0,
            erases_mean,
            erases_max: erases_mean as u32,
            host_slots: 1,
            programmed_slots: 1,
            raw_bit_error_rate: 0.0,
            read_retries: 0,
            media_errors: 0,
            endurance,
            spare_superblocks: 20,
            retired_superblocks,
            worn_out: retired_superblocks == 40,
        }
    }

    fn smart(health: &Health) -> (u8, u8, u8) {
        let smart = figures(health, 100, 3000, Duration::ZERO).smart;
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
