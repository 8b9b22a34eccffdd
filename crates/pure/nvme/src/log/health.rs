//! Health, errors and firmware.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// SMART / Health Information: 512 bytes (Base 2.0, figure 207). Numbers in field comments are offsets in bytes;
/// counters of 16 bytes are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SmartLog {
    /// 0: warnings, constants of this type.
    pub critical_warning: u8,
    /// 1: composite temperature in kelvin.
    pub temperature_k: U16,
    /// 3: spare that is left, in percent.
    pub spare_percent: u8,
    /// 4: spare below which a warning is given, in percent.
    pub spare_threshold_percent: u8,
    /// 5: lifetime that is used, in percent; may exceed 100, and stays at 255.
    pub used_percent: u8,
    /// 6: warnings of endurance groups.
    pub endurance_warning: u8,
    /// 7: reserved.
    pub reserved_7: [u8; 25],
    /// 32: data read by the host, in units of 512,000 bytes, rounded up.
    pub data_read: [u8; 16],
    /// 48: data written by the host, in the same units.
    pub data_written: [u8; 16],
    /// 64: read commands.
    pub reads: [u8; 16],
    /// 80: write commands.
    pub writes: [u8; 16],
    /// 96: time with commands outstanding, in minutes.
    pub busy_minutes: [u8; 16],
    /// 112: power cycles.
    pub power_cycles: [u8; 16],
    /// 128: time with power, in hours.
    pub power_on_hours: [u8; 16],
    /// 144: power losses without announcement.
    pub unsafe_shutdowns: [u8; 16],
    /// 160: errors of data that could not be corrected.
    pub media_errors: [u8; 16],
    /// 176: entries of the error log over the lifetime.
    pub error_entries: [u8; 16],
    /// 192: time above the warning temperature, in minutes.
    pub warm_minutes: U32,
    /// 196: time above the critical temperature, in minutes.
    pub hot_minutes: U32,
    /// 200: temperatures of sensors in kelvin; zero is no sensor.
    pub sensors_k: [U16; 8],
    /// 216: transitions and times of thermal management.
    pub thermal: [U32; 4],
    /// 232: reserved.
    pub reserved_232: [u8; 280],
}

const _: () = assert!(size_of::<SmartLog>() == 512);

impl SmartLog {
    /// Spare is below its threshold.
    pub const WARNING_SPARE: u8 = 1 << 0;
    /// A temperature is outside its thresholds.
    pub const WARNING_TEMPERATURE: u8 = 1 << 1;
    /// Reliability is degraded.
    pub const WARNING_RELIABILITY: u8 = 1 << 2;
    /// The medium is read-only.
    pub const WARNING_READ_ONLY: u8 = 1 << 3;

    /// The log in its 512 bytes; `None` for another number of them.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read_from_bytes(bytes).ok()
    }

    /// A counter as its 16 bytes.
    pub const fn counter(value: u64) -> [u8; 16] {
        (value as u128).to_le_bytes()
    }

    /// `bytes` in the unit of [`Self::data_read`], as its 16 bytes.
    pub const fn data_units(bytes: u64) -> [u8; 16] {
        Self::counter(bytes.div_ceil(512_000))
    }
}

impl Default for SmartLog {
    fn default() -> Self {
        let zeros = [0_u8; 512];
        zerocopy::transmute!(zeros)
    }
}

/// An entry of the error log: 64 bytes (Base 2.0, figure 206).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ErrorEntry {
    /// 0: number of the error, from one; zero is no entry.
    pub count: U64,
    /// 8: submission queue.
    pub sq_id: U16,
    /// 10: command.
    pub command_id: U16,
    /// 12: status with phase.
    pub status: U16,
    /// 14: which parameter.
    pub parameter: U16,
    /// 16: first block with the error.
    pub lba: U64,
    /// 24: namespace.
    pub nsid: U32,
    /// 28: vendor specific page.
    pub vendor_page: u8,
    /// 29: transport: 3 is TCP.
    pub transport: u8,
    /// 30: reserved.
    pub reserved_30: [u8; 2],
    /// 32: command specific.
    pub command_specific: U64,
    /// 40: transport specific.
    pub transport_specific: U16,
    /// 42: reserved.
    pub reserved_42: [u8; 22],
}

/// Firmware slots: 512 bytes (Base 2.0, figure 209).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct FirmwareSlots {
    /// 0: active slot in bits 2:0, next one in 6:4.
    pub active: u8,
    /// 1: reserved.
    pub reserved_1: [u8; 7],
    /// 8: revisions, padded with spaces; zeros are an empty slot.
    pub revisions: [[u8; 8]; 7],
    /// 64: reserved.
    pub reserved_64: [u8; 448],
}

impl ErrorEntry {
    /// The entry in its 64 bytes; `None` for another number of them.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read_from_bytes(bytes).ok()
    }
}

const _: () = assert!(size_of::<ErrorEntry>() == 64 && size_of::<FirmwareSlots>() == 512);

impl FirmwareSlots {
    /// One slot with `revision`, which is active.
    pub fn single(revision: [u8; 8]) -> Self {
        let mut revisions = [[0; 8]; 7];
        revisions[0] = revision;
        Self { active: 1, reserved_1: [0; 7], revisions, reserved_64: [0; 448] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn fields_are_at_their_offsets() {
        let offsets = [
            (offset_of!(SmartLog, used_percent), 5),
            (offset_of!(SmartLog, data_read), 32),
            (offset_of!(SmartLog, busy_minutes), 96),
            (offset_of!(SmartLog, media_errors), 160),
            (offset_of!(SmartLog, warm_minutes), 192),
            (offset_of!(SmartLog, sensors_k), 200),
            (offset_of!(SmartLog, thermal), 216),
            (offset_of!(ErrorEntry, lba), 16),
            (offset_of!(ErrorEntry, transport), 29),
            (offset_of!(ErrorEntry, command_specific), 32),
            (offset_of!(FirmwareSlots, revisions), 8),
        ];
        for (is, should) in offsets {
            assert_eq!(is, should);
        }
    }

    #[test]
    fn data_units_are_rounded_up() {
        assert_eq!(SmartLog::data_units(1)[0], 1);
        assert_eq!(SmartLog::data_units(512_000)[0], 1);
        assert_eq!(SmartLog::data_units(512_001)[0], 2);
    }
}
