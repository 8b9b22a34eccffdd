//! Properties of a controller, which are the registers that fabrics have.

/// Where a property is and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Controller capabilities (8 bytes).
    Capabilities,
    /// Version (4 bytes).
    Version,
    /// Controller configuration (4 bytes), the only writable one.
    Configuration,
    /// Controller status (4 bytes).
    Status,
    /// NVM subsystem reset (4 bytes).
    SubsystemReset,
}

impl Property {
    /// The property at `offset` bytes; `None` where fabrics have none.
    pub const fn at(offset: u32) -> Option<Self> {
        match offset {
            0x00 => Some(Self::Capabilities),
            0x08 => Some(Self::Version),
            0x14 => Some(Self::Configuration),
            0x1C => Some(Self::Status),
            0x20 => Some(Self::SubsystemReset),
            _ => None,
        }
    }

    /// Offset in bytes.
    pub const fn offset(self) -> u32 {
        match self {
            Self::Capabilities => 0x00,
            Self::Version => 0x08,
            Self::Configuration => 0x14,
            Self::Status => 0x1C,
            Self::SubsystemReset => 0x20,
        }
    }

    /// Whether the property has 8 bytes instead of 4.
    pub const fn is_wide(self) -> bool {
        matches!(self, Self::Capabilities)
    }
}

/// Version 2.0 of the base specification, as the property has it: major, minor and tertiary number.
pub const VERSION_2_0: u32 = 0x0002_0000;

/// Controller capabilities (Base 2.0, figure 36), the fields that are not zero over fabrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Most entries of a queue, 2 to 65,536.
    pub queue_entries_max: u32,
    /// Longest time that enabling and disabling take, in units of 500 ms.
    pub timeout: u8,
    /// The NVM command set is there.
    pub nvm_command_set: bool,
    /// Other I/O command sets can be chosen.
    pub command_sets: bool,
    /// No I/O command set at all: a discovery controller.
    pub admin_only: bool,
}

impl Capabilities {
    /// Decodes the value of the property.
    pub const fn decode(bits: u64) -> Self {
        Self {
            queue_entries_max: (bits & 0xFFFF) as u32 + 1,
            timeout: (bits >> 24) as u8,
            nvm_command_set: bits & 1 << 37 != 0,
            command_sets: bits & 1 << 43 != 0,
            admin_only: bits & 1 << 44 != 0,
        }
    }

    /// The value of the property. Queues are contiguous, as fabrics demand; pages are 4 KiB.
    pub const fn encode(&self) -> u64 {
        const CONTIGUOUS_QUEUES: u64 = 1 << 16;
        (self.queue_entries_max.saturating_sub(1) & 0xFFFF) as u64
            | CONTIGUOUS_QUEUES
            | (self.timeout as u64) << 24
            | (self.nvm_command_set as u64) << 37
            | (self.command_sets as u64) << 43
            | (self.admin_only as u64) << 44
    }
}

/// How a host announces that it is going to stop a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shutdown {
    /// Not at all.
    #[default]
    None,
    /// There is time to finish.
    Normal,
    /// Power is about to fail.
    Abrupt,
    /// The reserved value 3.
    Reserved,
}

/// Controller configuration (Base 2.0, figure 46).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Whether the controller takes commands.
    pub enable: bool,
    /// Chosen I/O command set: 0 NVM, 6 all supported, 7 none.
    pub command_set: u8,
    /// Size of a memory page: 2^(12 + n) bytes.
    pub memory_page_size: u8,
    /// Arbitration: 0 round robin.
    pub arbitration: u8,
    /// Announced end.
    pub shutdown: Shutdown,
    /// Size of a submission queue entry: 2^n bytes.
    pub sq_entry_size: u8,
    /// Size of a completion queue entry: 2^n bytes.
    pub cq_entry_size: u8,
}

impl Configuration {
    /// Chosen I/O command set: all that the controller supports.
    pub const ALL_COMMAND_SETS: u8 = 6;

    /// Enables a controller over fabrics, where entries of 64 and 16 bytes are the only ones.
    pub fn enabled(command_set: u8) -> Self {
        Self { enable: true, command_set, sq_entry_size: 6, cq_entry_size: 4, ..Self::default() }
    }

    /// Decodes the value of the property.
    pub const fn decode(bits: u32) -> Self {
        Self {
            enable: bits & 1 != 0,
            command_set: (bits >> 4) as u8 & 7,
            memory_page_size: (bits >> 7) as u8 & 15,
            arbitration: (bits >> 11) as u8 & 7,
            shutdown: match (bits >> 14) & 3 {
                0 => Shutdown::None,
                1 => Shutdown::Normal,
                2 => Shutdown::Abrupt,
                _ => Shutdown::Reserved,
            },
            sq_entry_size: (bits >> 16) as u8 & 15,
            cq_entry_size: (bits >> 20) as u8 & 15,
        }
    }

    /// The value of the property.
    pub const fn encode(&self) -> u32 {
        self.enable as u32
            | (self.command_set as u32 & 7) << 4
            | (self.memory_page_size as u32 & 15) << 7
            | (self.arbitration as u32 & 7) << 11
            | (self.shutdown as u32) << 14
            | (self.sq_entry_size as u32 & 15) << 16
            | (self.cq_entry_size as u32 & 15) << 20
    }
}

/// How far a controller has come with being stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShutdownStatus {
    /// Works.
    #[default]
    None,
    /// Not finished.
    Processing,
    /// Finished.
    Complete,
    /// The reserved value 3.
    Reserved,
}

/// Controller status (Base 2.0, figure 47).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerStatus {
    /// Takes commands.
    pub ready: bool,
    /// Fatal error: only a reset helps.
    pub fatal: bool,
    /// How far a stop has come.
    pub shutdown: ShutdownStatus,
}

impl ControllerStatus {
    /// Decodes the value of the property.
    pub const fn decode(bits: u32) -> Self {
        Self {
            ready: bits & 1 != 0,
            fatal: bits & 2 != 0,
            shutdown: match (bits >> 2) & 3 {
                0 => ShutdownStatus::None,
                1 => ShutdownStatus::Processing,
                2 => ShutdownStatus::Complete,
                _ => ShutdownStatus::Reserved,
            },
        }
    }

    /// The value of the property.
    pub const fn encode(&self) -> u32 {
        self.ready as u32 | (self.fatal as u32) << 1 | (self.shutdown as u32) << 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn meanings_survive_their_bits(bits: u64) {
            let capabilities = Capabilities::decode(bits);
            prop_assert_eq!(Capabilities::decode(capabilities.encode()), capabilities);
            let configuration = Configuration::decode(bits as u32);
            prop_assert_eq!(Configuration::decode(configuration.encode()), configuration);
            let status = ControllerStatus::decode(bits as u32);
            prop_assert_eq!(ControllerStatus::decode(status.encode()), status);
        }
    }

    #[test]
    fn a_linux_host_enables_with_these_bits() {
        let enabled = Configuration::decode(0x0046_0001);
        let expected = Configuration { enable: true, sq_entry_size: 6, cq_entry_size: 4, ..Configuration::default() };
        assert_eq!(enabled, expected);
    }

    #[test]
    fn offsets_name_their_property() {
        for property in [Property::Capabilities, Property::Version, Property::Configuration, Property::Status] {
            assert_eq!(Property::at(property.offset()), Some(property));
        }
        assert_eq!(Property::at(0x0C), None);
    }
}
