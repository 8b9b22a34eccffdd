//! Identify structures of a controller.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Identify Controller: 4096 bytes (Base 2.0, figure 276). Numbers in field comments are offsets in bytes.
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IdentifyController {
    /// 0: PCI vendor.
    pub vendor: U16,
    /// 2: PCI subsystem vendor.
    pub subsystem_vendor: U16,
    /// 4: serial number, padded with spaces.
    pub serial: [u8; 20],
    /// 24: model number, padded with spaces.
    pub model: [u8; 40],
    /// 64: firmware revision, padded with spaces.
    pub firmware: [u8; 8],
    /// 72: recommended arbitration burst, 2^n commands.
    pub arbitration_burst: u8,
    /// 73: IEEE identifier of the vendor.
    pub ieee: [u8; 3],
    /// 76: ways to the subsystem: several ports in bit 0, several controllers in bit 1, ANA in bit 3.
    pub multipath: u8,
    /// 77: most data of a command, 2^n pages of 4 KiB; zero is no limit.
    pub data_pages_max_log2: u8,
    /// 78: controller identifier.
    pub controller_id: U16,
    /// 80: version of the base specification.
    pub version: U32,
    /// 84: time to resume from RTD3, in microseconds.
    pub rtd3_resume_us: U32,
    /// 88: time to enter RTD3, in microseconds.
    pub rtd3_entry_us: U32,
    /// 92: asynchronous events that can be enabled.
    pub async_events: U32,
    /// 96: attributes of the controller.
    pub attributes: U32,
    /// 100: read recovery levels.
    pub read_recovery_levels: U16,
    /// 102: reserved.
    pub reserved_102: [u8; 9],
    /// 111: kind of controller: 1 I/O, 2 discovery, 3 administrative.
    pub controller_kind: u8,
    /// 112: FRU globally unique identifier.
    pub fru_guid: [u8; 16],
    /// 128: command retry delay 1, in units of 100 ms.
    pub retry_delay_1: U16,
    /// 130: command retry delay 2.
    pub retry_delay_2: U16,
    /// 132: command retry delay 3.
    pub retry_delay_3: U16,
    /// 134: reserved.
    pub reserved_134: [u8; 119],
    /// 253: NVM subsystem report of the management interface.
    pub management_report: u8,
    /// 254: cycles of vital product data.
    pub vpd_writes: u8,
    /// 255: capabilities of the management endpoint.
    pub management_endpoint: u8,
    /// 256: optional admin commands.
    pub admin_optional: U16,
    /// 258: Abort commands outstanding at once, less one.
    pub abort_limit: u8,
    /// 259: Asynchronous Event Requests outstanding at once, less one.
    pub event_request_limit: u8,
    /// 260: firmware updates: first slot read-only in bit 0, slots in bits 3:1.
    pub firmware_updates: u8,
    /// 261: attributes of log pages.
    pub log_attributes: u8,
    /// 262: entries of the error log, less one.
    pub error_log_entries: u8,
    /// 263: power states, less one.
    pub power_states: u8,
    /// 264: vendor specific admin commands have the standard format.
    pub vendor_admin_format: u8,
    /// 265: autonomous power state transitions.
    pub autonomous_power: u8,
    /// 266: temperature from which on a warning is given, in kelvin.
    pub temperature_warning_k: U16,
    /// 268: temperature from which on operation is at risk, in kelvin.
    pub temperature_critical_k: U16,
    /// 270: longest time to activate firmware, in units of 100 ms.
    pub firmware_activation_time: U16,
    /// 272: preferred host memory buffer, in units of 4 KiB.
    pub host_memory_preferred: U32,
    /// 276: least host memory buffer, in units of 4 KiB.
    pub host_memory_min: U32,
    /// 280: total capacity in bytes, 128 bits.
    pub capacity_total: [u8; 16],
    /// 296: capacity without a namespace in bytes, 128 bits.
    pub capacity_unallocated: [u8; 16],
    /// 312: replay protected memory block.
    pub rpmb: U32,
    /// 316: extended self-test time, in minutes.
    pub self_test_time_min: U16,
    /// 318: self-test options.
    pub self_test_options: u8,
    /// 319: granularity of firmware updates, in units of 4 KiB.
    pub firmware_granularity: u8,
    /// 320: granularity of the keep-alive timer, in units of 100 ms; zero is no keep alive.
    pub keep_alive_granularity: U16,
    /// 322: host controlled thermal management.
    pub thermal_management: U16,
    /// 324: least thermal management temperature, in kelvin.
    pub thermal_min_k: U16,
    /// 326: greatest thermal management temperature, in kelvin.
    pub thermal_max_k: U16,
    /// 328: sanitize capabilities.
    pub sanitize: U32,
    /// 332: least size of a host memory descriptor, in units of 4 KiB.
    pub host_memory_descriptor_min: U32,
    /// 336: most host memory descriptors.
    pub host_memory_descriptors_max: U16,
    /// 338: greatest NVM set identifier.
    pub nvm_set_max: U16,
    /// 340: greatest endurance group identifier.
    pub endurance_group_max: U16,
    /// 342: longest ANA transition, in seconds.
    pub ana_transition_s: u8,
    /// 343: ANA capabilities: states that are reported in bits 4:0, bit 6: groups do not change while attached.
    pub ana_capabilities: u8,
    /// 344: greatest ANA group identifier.
    pub ana_group_max: U32,
    /// 348: number of ANA groups.
    pub ana_groups: U32,
    /// 352: size of the persistent event log, in units of 64 KiB.
    pub persistent_events: U32,
    /// 356: domain.
    pub domain: U16,
    /// 358: reserved.
    pub reserved_358: [u8; 10],
    /// 368: greatest endurance group capacity in bytes, 128 bits.
    pub endurance_group_capacity_max: [u8; 16],
    /// 384: reserved.
    pub reserved_384: [u8; 128],
    /// 512: submission queue entry: required size in bits 3:0, greatest in 7:4, both 2^n bytes.
    pub sq_entry_sizes: u8,
    /// 513: completion queue entry, likewise.
    pub cq_entry_sizes: u8,
    /// 514: commands outstanding on a queue; required over fabrics.
    pub commands_max: U16,
    /// 516: greatest namespace identifier.
    pub namespaces_max: U32,
    /// 520: optional NVM commands, see the constants of this type.
    pub nvm_optional: U16,
    /// 522: fused operations.
    pub fused: U16,
    /// 524: format attributes.
    pub format_attributes: u8,
    /// 525: volatile write cache: present in bit 0, Flush of all namespaces in bits 2:1 (2 no, 3 yes).
    pub write_cache: u8,
    /// 526: write unit that is atomic in normal operation, in blocks less one.
    pub atomic_write_normal: U16,
    /// 528: write unit that is atomic over a power failure, in blocks less one.
    pub atomic_write_power_fail: U16,
    /// 530: vendor specific I/O commands have the standard format.
    pub vendor_io_format: u8,
    /// 531: namespace write protection.
    pub write_protection: u8,
    /// 532: unit of atomic compare and write, in blocks less one.
    pub atomic_compare_write: U16,
    /// 534: formats of the Copy descriptor: 0h in bit 0.
    pub copy_formats: U16,
    /// 536: SGL support: in bits 1:0 (1 without alignment), keyed in 2, address as offset in 20, transport in 21.
    pub sgl: U32,
    /// 540: most namespaces that are allowed at once.
    pub namespaces_allowed_max: U32,
    /// 544: most namespace attachments of the domain, 128 bits.
    pub domain_attachments_max: [u8; 16],
    /// 560: most I/O controller namespace attachments.
    pub controller_attachments_max: U32,
    /// 564: reserved.
    pub reserved_564: [u8; 204],
    /// 768: name of the subsystem, zero-terminated.
    pub subsystem_nqn: [u8; 256],
    /// 1024: reserved.
    pub reserved_1024: [u8; 768],
    /// 1792: size of a command capsule of I/O queues, in units of 16 bytes: entry and data.
    pub command_capsule_units: U32,
    /// 1796: size of a response capsule of I/O queues, in units of 16 bytes.
    pub response_capsule_units: U32,
    /// 1800: where in the capsule data begins behind the entry, in units of 16 bytes.
    pub capsule_data_offset: U16,
    /// 1802: attributes of fabrics: static controllers in bit 0.
    pub fabrics_attributes: u8,
    /// 1803: most SGL data block descriptors of a capsule.
    pub sgl_descriptors_max: u8,
    /// 1804: optional fabrics commands: Disconnect in bit 0.
    pub fabrics_optional: U16,
    /// 1806: kind of discovery controller: 0 not reported, 1 direct, 2 central.
    pub discovery_kind: u8,
    /// 1807: reserved.
    pub reserved_1807: [u8; 241],
    /// 2048: power states.
    pub power: [PowerState; 32],
    /// 3072: vendor specific.
    pub vendor_specific: [u8; 1024],
}

const _: () = assert!(size_of::<IdentifyController>() == crate::IDENTIFY_BYTES);

impl IdentifyController {
    /// Log page attributes: telemetry.
    pub const LOG_TELEMETRY: u8 = 1 << 3;
    /// Optional admin command: Format NVM.
    pub const FORMAT: u16 = 1 << 1;
    /// Optional admin command: Device Self-test.
    pub const SELF_TEST: u16 = 1 << 4;
    /// Self-test options: one test at a time of the subsystem.
    pub const SELF_TEST_SINGLE: u8 = 1;
    /// Optional admin commands: Namespace Management and Namespace Attachment.
    pub const NAMESPACE_MANAGEMENT: u16 = 1 << 3;
    /// Sanitize: block erase is there.
    pub const SANITIZE_BLOCK_ERASE: u32 = 1 << 1;
    /// Sanitize: a wish not to deallocate is not heeded.
    pub const SANITIZE_DEALLOCATES: u32 = 1 << 29;
    /// Sanitize: the medium is not modified further afterwards.
    pub const SANITIZE_LEAVES_MEDIUM: u32 = 1 << 30;
    /// Compare is there ([`Self::nvm_optional`]).
    pub const COMPARE: u16 = 1 << 0;
    /// Write Uncorrectable is there.
    pub const WRITE_UNCORRECTABLE: u16 = 1 << 1;
    /// Dataset Management is there.
    pub const DATASET_MANAGEMENT: u16 = 1 << 2;
    /// Write Zeroes is there.
    pub const WRITE_ZEROES: u16 = 1 << 3;
    /// The Save field of features is there.
    pub const SAVE_FEATURES: u16 = 1 << 4;
    /// Reservations are there.
    pub const RESERVATIONS: u16 = 1 << 5;
    /// The Timestamp feature is there.
    pub const TIMESTAMP: u16 = 1 << 6;
    /// Verify is there.
    pub const VERIFY: u16 = 1 << 7;
    /// Copy is there.
    pub const COPY: u16 = 1 << 8;
    /// A Compare and a Write can be fused ([`Self::fused`]).
    pub const COMPARE_AND_WRITE: u16 = 1 << 0;
    /// SGLs are there, of any alignment ([`Self::sgl`]).
    pub const SGL_SUPPORTED: u32 = 1 << 0;
    /// The address of a data block may be an offset into the capsule.
    pub const SGL_OFFSET: u32 = 1 << 20;
    /// Transport data blocks are there.
    pub const SGL_TRANSPORT: u32 = 1 << 21;
    /// Changed namespaces are announced ([`Self::async_events`]).
    pub const EVENT_NAMESPACES: u32 = 1 << 8;
    /// Changed ANA states are announced.
    pub const EVENT_ANA: u32 = 1 << 11;
    /// A changed discovery log is announced.
    pub const EVENT_DISCOVERY: u32 = 1 << 31;

    /// First bytes of [`Self::vendor_specific`] when the controller takes [`crate::nvm::NvmCommand::Remap`]: operation
    /// codes of vendors mean something else elsewhere.
    const REMAP_WORD: [u8; 16] = *b"flashyard REMAP1";

    /// Whether the controller announces remaps.
    pub fn announces_remap(&self) -> bool {
        self.vendor_specific.starts_with(&Self::REMAP_WORD)
    }

    /// Announces remaps.
    pub fn announce_remap(&mut self) {
        self.vendor_specific[..Self::REMAP_WORD.len()].copy_from_slice(&Self::REMAP_WORD);
    }

    /// A structure of zeros.
    pub fn zeroed() -> Box<Self> {
        // Zero is a value of every field, so this cannot fail but for want of memory.
        Self::new_box_zeroed().expect("4 KiB are there")
    }
}

/// One power state: 32 bytes (Base 2.0, figure 277), the fields that are not always zero here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PowerState {
    /// 0: greatest power, in units of 10 mW.
    pub power_max: U16,
    /// 2: reserved.
    pub reserved_2: u8,
    /// 3: unit of the greatest power in bit 0, not operational in bit 1.
    pub flags: u8,
    /// 4: time to enter, in microseconds.
    pub entry_us: U32,
    /// 8: time to leave, in microseconds.
    pub exit_us: U32,
    /// 12: read throughput, relative to other states; then read latency, write throughput and write latency.
    pub relative: [u8; 4],
    /// 16: idle and active power, not reported.
    pub powers: [u8; 16],
}

/// Identify Controller of the NVM command set: 4096 bytes (NVM Command Set 1.0, figure 100).
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IdentifyControllerNvm {
    /// 0: most data of a Verify, 2^n pages of 4 KiB; zero is no limit.
    pub verify_pages_max_log2: u8,
    /// 1: most blocks of a Write Zeroes, likewise.
    pub zeroes_pages_max_log2: u8,
    /// 2: most blocks of a Write Uncorrectable, likewise.
    pub uncorrectable_pages_max_log2: u8,
    /// 3: most ranges of a Dataset Management; zero is no limit.
    pub dsm_ranges_max: u8,
    /// 4: most blocks of a range.
    pub dsm_range_blocks_max: U32,
    /// 8: most blocks of all ranges together.
    pub dsm_blocks_max: U64,
    /// 16: reserved.
    pub reserved_16: [u8; 4080],
}

const _: () = assert!(size_of::<IdentifyControllerNvm>() == crate::IDENTIFY_BYTES && size_of::<PowerState>() == 32);

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn fields_of_the_controller_are_at_their_offsets() {
        type C = IdentifyController;
        let offsets = [
            (offset_of!(C, arbitration_burst), 72),
            (offset_of!(C, multipath), 76),
            (offset_of!(C, controller_id), 78),
            (offset_of!(C, async_events), 92),
            (offset_of!(C, controller_kind), 111),
            (offset_of!(C, admin_optional), 256),
            (offset_of!(C, abort_limit), 258),
            (offset_of!(C, temperature_warning_k), 266),
            (offset_of!(C, capacity_total), 280),
            (offset_of!(C, rpmb), 312),
            (offset_of!(C, keep_alive_granularity), 320),
            (offset_of!(C, sanitize), 328),
            (offset_of!(C, ana_transition_s), 342),
            (offset_of!(C, ana_groups), 348),
            (offset_of!(C, endurance_group_capacity_max), 368),
            (offset_of!(C, sq_entry_sizes), 512),
            (offset_of!(C, namespaces_max), 516),
            (offset_of!(C, nvm_optional), 520),
            (offset_of!(C, write_cache), 525),
            (offset_of!(C, copy_formats), 534),
            (offset_of!(C, sgl), 536),
            (offset_of!(C, subsystem_nqn), 768),
            (offset_of!(C, command_capsule_units), 1792),
            (offset_of!(C, capsule_data_offset), 1800),
            (offset_of!(C, fabrics_optional), 1804),
            (offset_of!(C, discovery_kind), 1806),
            (offset_of!(C, power), 2048),
            (offset_of!(C, vendor_specific), 3072),
        ];
        for (is, should) in offsets {
            assert_eq!(is, should);
        }
    }
}
