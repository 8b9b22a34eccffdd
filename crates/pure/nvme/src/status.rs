//! Status of a completed command: the type, the code, and what the host should do about it.

/// Declares the codes of one or more types with their names, so that number and name stand on one line.
macro_rules! codes {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        impl Status {
            $(#[doc = concat!($text, ".")] pub const $name: Self = Self($value);)*

            /// The name in the specification, without bits for retry; `None` for codes it does not define.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 & Self::CODE_MASK {
                    $($value => Some($text),)*
                    _ => None,
                }
            }

            /// Every code with a name.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

/// The status field of a completion without its phase bit.
///
/// Layout (Base 2.0, figure 94): code in bits 7:0, type in 10:8, command retry delay in 12:11, More in 13,
/// Do Not Retry in 14.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(u16);

codes! {
    SUCCESS = 0x000, "Successful Completion";
    INVALID_OPCODE = 0x001, "Invalid Command Opcode";
    INVALID_FIELD = 0x002, "Invalid Field in Command";
    COMMAND_ID_CONFLICT = 0x003, "Command ID Conflict";
    DATA_TRANSFER_ERROR = 0x004, "Data Transfer Error";
    ABORTED_POWER_LOSS = 0x005, "Commands Aborted due to Power Loss Notification";
    INTERNAL = 0x006, "Internal Error";
    ABORT_REQUESTED = 0x007, "Command Abort Requested";
    ABORTED_SQ_DELETION = 0x008, "Command Aborted due to SQ Deletion";
    ABORTED_FUSED_FAILED = 0x009, "Command Aborted due to Failed Fused Command";
    ABORTED_FUSED_MISSING = 0x00A, "Command Aborted due to Missing Fused Command";
    INVALID_NAMESPACE = 0x00B, "Invalid Namespace or Format";
    COMMAND_SEQUENCE = 0x00C, "Command Sequence Error";
    INVALID_SGL_SEGMENT = 0x00D, "Invalid SGL Segment Descriptor";
    INVALID_SGL_COUNT = 0x00E, "Invalid Number of SGL Descriptors";
    INVALID_SGL_DATA_LENGTH = 0x00F, "Data SGL Length Invalid";
    INVALID_SGL_METADATA_LENGTH = 0x010, "Metadata SGL Length Invalid";
    INVALID_SGL_TYPE = 0x011, "SGL Descriptor Type Invalid";
    INVALID_CMB_USE = 0x012, "Invalid Use of Controller Memory Buffer";
    INVALID_PRP_OFFSET = 0x013, "PRP Offset Invalid";
    ATOMIC_WRITE_UNIT_EXCEEDED = 0x014, "Atomic Write Unit Exceeded";
    OPERATION_DENIED = 0x015, "Operation Denied";
    INVALID_SGL_OFFSET = 0x016, "SGL Offset Invalid";
    HOST_ID_INCONSISTENT = 0x018, "Host Identifier Inconsistent Format";
    KEEP_ALIVE_EXPIRED = 0x019, "Keep Alive Timer Expired";
    INVALID_KEEP_ALIVE_TIMEOUT = 0x01A, "Keep Alive Timeout Invalid";
    ABORTED_PREEMPT = 0x01B, "Command Aborted due to Preempt and Abort";
    SANITIZE_FAILED = 0x01C, "Sanitize Failed";
    SANITIZE_IN_PROGRESS = 0x01D, "Sanitize In Progress";
    INVALID_SGL_GRANULARITY = 0x01E, "SGL Data Block Granularity Invalid";
    COMMAND_IN_CMB_NOT_SUPPORTED = 0x01F, "Command Not Supported for Queue in CMB";
    NAMESPACE_WRITE_PROTECTED = 0x020, "Namespace is Write Protected";
    INTERRUPTED = 0x021, "Command Interrupted";
    TRANSIENT_TRANSPORT = 0x022, "Transient Transport Error";
    PROHIBITED_BY_LOCKDOWN = 0x023, "Command Prohibited by Command and Feature Lockdown";
    MEDIA_NOT_READY = 0x024, "Admin Command Media Not Ready";
    LBA_OUT_OF_RANGE = 0x080, "LBA Out of Range";
    CAPACITY_EXCEEDED = 0x081, "Capacity Exceeded";
    NAMESPACE_NOT_READY = 0x082, "Namespace Not Ready";
    RESERVATION_CONFLICT = 0x083, "Reservation Conflict";
    FORMAT_IN_PROGRESS = 0x084, "Format In Progress";
    INVALID_VALUE_SIZE = 0x085, "Invalid Value Size";
    INVALID_KEY_SIZE = 0x086, "Invalid Key Size";
    KEY_DOES_NOT_EXIST = 0x087, "KV Key Does Not Exist";
    UNRECOVERED_ERROR = 0x088, "Unrecovered Error";
    KEY_EXISTS = 0x089, "Key Exists";
    INVALID_COMPLETION_QUEUE = 0x100, "Completion Queue Invalid";
    INVALID_QUEUE_IDENTIFIER = 0x101, "Invalid Queue Identifier";
    INVALID_QUEUE_SIZE = 0x102, "Invalid Queue Size";
    ABORT_LIMIT_EXCEEDED = 0x103, "Abort Command Limit Exceeded";
    EVENT_REQUEST_LIMIT_EXCEEDED = 0x105, "Asynchronous Event Request Limit Exceeded";
    INVALID_FIRMWARE_SLOT = 0x106, "Invalid Firmware Slot";
    INVALID_FIRMWARE_IMAGE = 0x107, "Invalid Firmware Image";
    INVALID_INTERRUPT_VECTOR = 0x108, "Invalid Interrupt Vector";
    INVALID_LOG_PAGE = 0x109, "Invalid Log Page";
    INVALID_FORMAT = 0x10A, "Invalid Format";
    FIRMWARE_NEEDS_RESET = 0x10B, "Firmware Activation Requires Conventional Reset";
    INVALID_QUEUE_DELETION = 0x10C, "Invalid Queue Deletion";
    FEATURE_NOT_SAVEABLE = 0x10D, "Feature Identifier Not Saveable";
    FEATURE_NOT_CHANGEABLE = 0x10E, "Feature Not Changeable";
    FEATURE_NOT_NAMESPACE = 0x10F, "Feature Not Namespace Specific";
    FIRMWARE_NEEDS_SUBSYSTEM_RESET = 0x110, "Firmware Activation Requires NVM Subsystem Reset";
    FIRMWARE_NEEDS_CONTROLLER_RESET = 0x111, "Firmware Activation Requires Controller Level Reset";
    FIRMWARE_NEEDS_TIME = 0x112, "Firmware Activation Requires Maximum Time Violation";
    FIRMWARE_PROHIBITED = 0x113, "Firmware Activation Prohibited";
    OVERLAPPING_RANGE = 0x114, "Overlapping Range";
    INSUFFICIENT_CAPACITY = 0x115, "Namespace Insufficient Capacity";
    NAMESPACE_IDENTIFIER_UNAVAILABLE = 0x116, "Namespace Identifier Unavailable";
    NAMESPACE_ATTACHED = 0x118, "Namespace Already Attached";
    NAMESPACE_PRIVATE = 0x119, "Namespace Is Private";
    NAMESPACE_NOT_ATTACHED = 0x11A, "Namespace Not Attached";
    THIN_PROVISIONING_NOT_SUPPORTED = 0x11B, "Thin Provisioning Not Supported";
    INVALID_CONTROLLER_LIST = 0x11C, "Controller List Invalid";
    SELF_TEST_IN_PROGRESS = 0x11D, "Device Self-test In Progress";
    BOOT_PARTITION_WRITE_PROHIBITED = 0x11E, "Boot Partition Write Prohibited";
    INVALID_CONTROLLER_IDENTIFIER = 0x11F, "Invalid Controller Identifier";
    INVALID_SECONDARY_STATE = 0x120, "Invalid Secondary Controller State";
    INVALID_RESOURCE_COUNT = 0x121, "Invalid Number of Controller Resources";
    INVALID_RESOURCE_IDENTIFIER = 0x122, "Invalid Resource Identifier";
    SANITIZE_PROHIBITED_PMR = 0x123, "Sanitize Prohibited While Persistent Memory Region is Enabled";
    INVALID_ANA_GROUP = 0x124, "ANA Group Identifier Invalid";
    ANA_ATTACH_FAILED = 0x125, "ANA Attach Failed";
    INSUFFICIENT_CAPACITY_GENERAL = 0x126, "Insufficient Capacity";
    ATTACHMENT_LIMIT_EXCEEDED = 0x127, "Namespace Attachment Limit Exceeded";
    EXECUTION_LIMIT_PROHIBITED = 0x128, "Prohibition of Command Execution Not Supported";
    COMMAND_SET_NOT_SUPPORTED = 0x129, "I/O Command Set Not Supported";
    COMMAND_SET_NOT_ENABLED = 0x12A, "I/O Command Set Not Enabled";
    COMMAND_SET_COMBINATION_REJECTED = 0x12B, "I/O Command Set Combination Rejected";
    INVALID_COMMAND_SET = 0x12C, "Invalid I/O Command Set";
    IDENTIFIER_UNAVAILABLE = 0x12D, "Identifier Unavailable";
    CONFLICTING_ATTRIBUTES = 0x180, "Conflicting Attributes, or Connect Incompatible Format";
    CONTROLLER_BUSY = 0x181, "Invalid Protection Information, or Controller Busy";
    CONNECT_INVALID_PARAMETERS = 0x182, "Write to Read Only Range, or Connect Invalid Parameters";
    CONNECT_RESTART_DISCOVERY = 0x183, "Command Size Limit Exceeded, or Connect Restart Discovery";
    CONNECT_INVALID_HOST = 0x184, "Connect Invalid Host";
    INVALID_QUEUE_TYPE = 0x185, "Invalid Queue Type";
    DISCOVER_RESTART = 0x190, "Discover Restart";
    AUTHENTICATION_REQUIRED = 0x191, "Authentication Required";
    ZONE_BOUNDARY_ERROR = 0x1B8, "Zoned Boundary Error";
    ZONE_FULL = 0x1B9, "Zone Is Full";
    ZONE_READ_ONLY = 0x1BA, "Zone Is Read Only";
    ZONE_OFFLINE = 0x1BB, "Zone Is Offline";
    ZONE_INVALID_WRITE = 0x1BC, "Zone Invalid Write";
    ZONE_TOO_MANY_ACTIVE = 0x1BD, "Too Many Active Zones";
    ZONE_TOO_MANY_OPEN = 0x1BE, "Too Many Open Zones";
    ZONE_INVALID_TRANSITION = 0x1BF, "Invalid Zone State Transition";
    WRITE_FAULT = 0x280, "Write Fault";
    UNRECOVERED_READ = 0x281, "Unrecovered Read Error";
    GUARD_CHECK = 0x282, "End-to-end Guard Check Error";
    APPLICATION_TAG_CHECK = 0x283, "End-to-end Application Tag Check Error";
    REFERENCE_TAG_CHECK = 0x284, "End-to-end Reference Tag Check Error";
    COMPARE_FAILURE = 0x285, "Compare Failure";
    ACCESS_DENIED = 0x286, "Access Denied";
    UNWRITTEN_BLOCK = 0x287, "Deallocated or Unwritten Logical Block";
    STORAGE_TAG_CHECK = 0x288, "End-to-End Storage Tag Check Error";
    PATH_INTERNAL = 0x300, "Internal Path Error";
    ANA_PERSISTENT_LOSS = 0x301, "Asymmetric Access Persistent Loss";
    ANA_INACCESSIBLE = 0x302, "Asymmetric Access Inaccessible";
    ANA_TRANSITION = 0x303, "Asymmetric Access Transition";
    CONTROLLER_PATHING = 0x360, "Controller Pathing Error";
    HOST_PATHING = 0x370, "Host Pathing Error";
    ABORTED_BY_HOST = 0x371, "Command Aborted By Host";
}

/// Stands between the two names of a code that fabrics commands use in their own way; theirs is the second.
const BOTH: &str = ", or ";

/// Which table the code of a status belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusType {
    /// Codes that any command may return.
    Generic,
    /// Codes that mean different things for different commands.
    CommandSpecific,
    /// Media and data integrity errors.
    Media,
    /// Errors of the way between host and namespace.
    Path,
    /// Reserved types 4 to 6.
    Reserved,
    /// Vendor specific.
    Vendor,
}

impl Status {
    /// The first name of a code that Connect uses in its own way: a command asks for more than a limit of its namespace.
    pub const COMMAND_SIZE_LIMIT: Self = Self::CONNECT_RESTART_DISCOVERY;

    /// The first name of a code that Connect uses in its own way: protection information cannot be as the command says.
    pub const INVALID_PROTECTION: Self = Self::CONTROLLER_BUSY;

    const CODE_MASK: u16 = 0x7FF;
    const MORE: u16 = 1 << 13;
    const DO_NOT_RETRY: u16 = 1 << 14;

    /// A status from its bits, without the phase; the highest bit is ignored.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & 0x7FFF)
    }

    /// The name for a fabrics command or for any other: some numbers have one meaning for each.
    pub fn name_for(self, is_fabrics: bool) -> Option<&'static str> {
        let name = self.name()?;
        Some(match (name.split_once(BOTH), is_fabrics) {
            (Some((_, name)), true) | (Some((name, _)), false) => name,
            (None, _) => name,
        })
    }

    /// The bits without the phase.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Type and code, without retry delay, More and Do Not Retry: for comparison with a constant.
    pub const fn code(self) -> Self {
        Self(self.0 & Self::CODE_MASK)
    }

    /// The table that the code belongs to.
    pub const fn kind(self) -> StatusType {
        match (self.0 >> 8) & 7 {
            0 => StatusType::Generic,
            1 => StatusType::CommandSpecific,
            2 => StatusType::Media,
            3 => StatusType::Path,
            7 => StatusType::Vendor,
            _ => StatusType::Reserved,
        }
    }

    /// This status, marked so that the host does not retry: the same command would fail again.
    pub const fn do_not_retry(self) -> Self {
        Self(self.0 | Self::DO_NOT_RETRY)
    }

    /// This status, telling the host that the error log has an entry for this command.
    pub const fn more(self) -> Self {
        Self(self.0 | Self::MORE)
    }

    /// Whether the command did what was asked.
    pub const fn is_success(self) -> bool {
        self.0 & Self::CODE_MASK == 0
    }

    /// Whether the host should not try again.
    pub const fn forbids_retry(self) -> bool {
        self.0 & Self::DO_NOT_RETRY != 0
    }

    /// Whether the error log has an entry for the command.
    pub const fn has_more(self) -> bool {
        self.0 & Self::MORE != 0
    }
}

impl std::fmt::Debug for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#05x}", self.code().0)?;
        if let Some(name) = self.name() {
            write!(f, " {name}")?;
        }
        if self.forbids_retry() { f.write_str(", do not retry") } else { Ok(()) }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "status {:#05x}", self.code().0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_named() {
        let mut seen: Vec<u16> = Status::ALL.iter().map(|status| status.bits()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), Status::ALL.len());
        assert!(Status::ALL.iter().all(|status| status.name().is_some()));
    }

    #[test]
    fn advice_does_not_change_the_code() {
        let status = Status::INVALID_FIELD.do_not_retry().more();
        assert_eq!(status.bits(), 0x6002);
        assert_eq!(status.code(), Status::INVALID_FIELD);
        assert!(status.forbids_retry() && status.has_more() && !status.is_success());
        assert_eq!(format!("{status:?}"), "0x002 Invalid Field in Command, do not retry");
    }

    #[test]
    fn a_code_has_the_name_that_it_has_for_the_command() {
        let names = |status: Status| (status.name_for(true), status.name_for(false));
        assert_eq!(
            names(Status::CONNECT_INVALID_PARAMETERS.do_not_retry()),
            (Some("Connect Invalid Parameters"), Some("Write to Read Only Range"))
        );
        assert_eq!(names(Status::CONTROLLER_BUSY), (Some("Controller Busy"), Some("Invalid Protection Information")));
        assert_eq!(names(Status::INVALID_FIELD), (Status::INVALID_FIELD.name(), Status::INVALID_FIELD.name()));
        assert_eq!(names(Status::from_bits(0x7F)), (None, None));
    }

    #[test]
    fn types_follow_from_the_code() {
        assert_eq!(Status::LBA_OUT_OF_RANGE.kind(), StatusType::Generic);
        assert_eq!(Status::INVALID_LOG_PAGE.kind(), StatusType::CommandSpecific);
        assert_eq!(Status::COMPARE_FAILURE.kind(), StatusType::Media);
        assert_eq!(Status::ANA_INACCESSIBLE.kind(), StatusType::Path);
        assert_eq!(Status::from_bits(0x4FF).kind(), StatusType::Reserved);
        assert_eq!(Status::from_bits(0xF00).kind(), StatusType::Vendor);
    }
}
