//! The health log of a drive, from what its life was.

use flashyard_flash::SLOT_BYTES;
use flashyard_nvme::log::SmartLog;
use flashyard_nvmf::target::Figures;
use flashyard_systems::jbof::Health;
use std::time::Duration;

/// A data unit: thousand sectors of 512 bytes. Source: NVM Express Base 2.0, figure 207.
const DATA_UNIT_BYTES: u64 = 512_000;
/// 25 degrees Celsius: the model has no temperature. [A]
const TEMPERATURE_KELVIN: u16 = 298;

/// What the controller of a drive reports.
pub(super) fn figures(health: &Health, slots: u32, endurance_erases: u32, powered: Duration) -> Figures {
    let used = 100.0 * health.erases_mean / f64::from(endurance_erases.max(1));
    let units = |bytes: u64| SmartLog::counter(bytes.div_ceil(DATA_UNIT_BYTES));
    let mut figures = Figures { capacity_bytes: u64::from(slots) * u64::from(SLOT_BYTES), ..Figures::default() };
    let smart = &mut figures.smart;
    smart.temperature_k.set(TEMPERATURE_KELVIN);
    // No block is retired in this model: all of the spare is left.
    smart.spare_percent = 100;
    smart.spare_threshold_percent = 10;
    smart.used_percent = used.min(255.0) as u8;
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
