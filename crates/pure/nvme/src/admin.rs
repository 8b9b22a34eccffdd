//! Admin commands that a controller over fabrics answers.

use crate::Sqe;
use thiserror::Error;
use zerocopy::little_endian::U32;

/// Operation codes of admin commands (Base 2.0, figure 138).
pub mod opcode {
    /// Get Log Page.
    pub const GET_LOG_PAGE: u8 = 0x02;
    /// Identify.
    pub const IDENTIFY: u8 = 0x06;
    /// Abort.
    pub const ABORT: u8 = 0x08;
    /// Set Features.
    pub const SET_FEATURES: u8 = 0x09;
    /// Get Features.
    pub const GET_FEATURES: u8 = 0x0A;
    /// Asynchronous Event Request.
    pub const ASYNC_EVENT_REQUEST: u8 = 0x0C;
    /// Namespace Management.
    pub const NAMESPACE_MANAGEMENT: u8 = 0x0D;
    /// Device Self-test.
    pub const SELF_TEST: u8 = 0x14;
    /// Namespace Attachment.
    pub const NAMESPACE_ATTACHMENT: u8 = 0x15;
    /// Keep Alive.
    pub const KEEP_ALIVE: u8 = 0x18;
    /// Format NVM.
    pub const FORMAT_NVM: u8 = 0x80;
    /// Sanitize.
    pub const SANITIZE: u8 = 0x84;
}

/// Data that an Identify command returns: its Controller or Namespace Structure field.
pub mod cns {
    /// Namespace, of the NVM command set.
    pub const NAMESPACE: u8 = 0x00;
    /// Controller.
    pub const CONTROLLER: u8 = 0x01;
    /// List of active namespaces.
    pub const NAMESPACES_ACTIVE: u8 = 0x02;
    /// Descriptors that identify a namespace.
    pub const NAMESPACE_DESCRIPTORS: u8 = 0x03;
    /// Namespace, the part specific to an I/O command set.
    pub const NAMESPACE_OF_COMMAND_SET: u8 = 0x05;
    /// Controller, the part specific to an I/O command set.
    pub const CONTROLLER_OF_COMMAND_SET: u8 = 0x06;
    /// List of active namespaces of an I/O command set.
    pub const NAMESPACES_ACTIVE_OF_COMMAND_SET: u8 = 0x07;
    /// Namespace, the part independent of the I/O command set.
    pub const NAMESPACE_INDEPENDENT: u8 = 0x08;
    /// List of allocated namespaces.
    pub const NAMESPACES_ALLOCATED: u8 = 0x10;
    /// Namespace, allocated whether attached or not.
    pub const NAMESPACE_ALLOCATED: u8 = 0x11;
    /// List of controllers that a namespace is attached to.
    pub const CONTROLLERS_OF_NAMESPACE: u8 = 0x12;
    /// List of controllers of the subsystem.
    pub const CONTROLLERS: u8 = 0x13;
    /// I/O command sets that the controller supports together.
    pub const COMMAND_SETS: u8 = 0x1C;
}

/// An admin command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// Identify.
    Identify(Identify),
    /// Get Log Page.
    GetLogPage(GetLogPage),
    /// Abort a command: rarely worth the trouble, and never guaranteed to have an effect.
    Abort {
        /// Submission queue of the command.
        sq_id: u16,
        /// Its identifier.
        command_id: u16,
    },
    /// Set Features.
    SetFeatures {
        /// Feature identifier.
        feature: u8,
        /// Keep the value over resets.
        save: bool,
        /// Dwords 11 to 15; the first is the value of most features.
        values: [u32; 5],
    },
    /// Get Features.
    GetFeatures {
        /// Feature identifier.
        feature: u8,
        /// Which value.
        select: Select,
        /// Dword 11, a parameter of some features.
        parameter: u32,
    },
    /// A command that is completed when something happens.
    AsyncEventRequest,
    /// The host is alive.
    KeepAlive,
    /// Format NVM.
    Format(Format),
    /// Sanitize.
    Sanitize(Sanitize),
    /// Namespace Management.
    ManageNamespace {
        /// Namespace to delete, or [`crate::NSID_ALL`]; of no meaning to others.
        nsid: u32,
        /// One of the constants of [`Management`].
        select: u8,
        /// I/O command set of a namespace to be created.
        command_set: u8,
    },
    /// Namespace Attachment: the controllers are a list in its data.
    AttachNamespace {
        /// Namespace.
        nsid: u32,
        /// One of the constants of [`Management`].
        select: u8,
    },
    /// Device Self-test.
    SelfTest {
        /// Namespace that is tested beside the controller, [`crate::NSID_ALL`], or zero for none.
        nsid: u32,
        /// Action, four bits: [`SelfTestLog::SHORT`](crate::log::SelfTestLog::SHORT) and the constants beside it.
        code: u8,
    },
}

impl AdminCommand {
    /// The name in the specification.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Identify(_) => "Identify",
            Self::GetLogPage(_) => "Get Log Page",
            Self::Abort { .. } => "Abort",
            Self::SetFeatures { .. } => "Set Features",
            Self::GetFeatures { .. } => "Get Features",
            Self::AsyncEventRequest => "Asynchronous Event Request",
            Self::KeepAlive => "Keep Alive",
            Self::Format(_) => "Format NVM",
            Self::Sanitize(_) => "Sanitize",
            Self::ManageNamespace { .. } => "Namespace Management",
            Self::AttachNamespace { .. } => "Namespace Attachment",
            Self::SelfTest { .. } => "Device Self-test",
        }
    }
}

/// Which value Get Features asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// The value in force.
    Current,
    /// The value after manufacture.
    Default,
    /// The value kept over resets.
    Saved,
    /// Whether it can be changed, saved and set for each namespace.
    Supported,
    /// A value that the specification reserves, 4 to 7.
    Reserved(u8),
}

/// Parameters of Identify (Base 2.0, figures 271 and 272).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identify {
    /// Which structure, of [`cns`].
    pub cns: u8,
    /// Namespace, where the structure is about one.
    pub nsid: u32,
    /// Controller from which on a list of controllers is wanted.
    pub controller_id: u16,
    /// I/O command set; 0 is the NVM command set.
    pub command_set: u8,
}

/// Parameters of Get Log Page (Base 2.0, figures 197 to 201).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GetLogPage {
    /// Which page.
    pub page: u8,
    /// Namespace, where the page is about one.
    pub nsid: u32,
    /// Field specific to the page, 7 bits.
    pub specific: u8,
    /// Identifier specific to the page.
    pub specific_id: u16,
    /// Leave the asynchronous event that announced the page in force.
    pub retain_event: bool,
    /// Length asked for in bytes, a multiple of 4 and at least 4.
    pub len_bytes: u64,
    /// First byte asked for, a multiple of 4.
    pub offset_bytes: u64,
    /// I/O command set of pages that have one.
    pub command_set: u8,
}

/// The operation code is no admin command that this crate has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("operation code {opcode:#04x} is not a known admin command")]
pub struct UnknownOpcode {
    /// The code.
    pub opcode: u8,
}

impl AdminCommand {
    /// The command in `sqe`, whose data pointer is not looked at.
    ///
    /// Errors: an operation code that this crate does not have.
    pub fn decode(sqe: &Sqe) -> Result<Self, UnknownOpcode> {
        Ok(match sqe.opcode {
            opcode::IDENTIFY => Self::Identify(Identify {
                cns: sqe.cdw(10) as u8,
                nsid: sqe.nsid.get(),
                controller_id: (sqe.cdw(10) >> 16) as u16,
                command_set: (sqe.cdw(11) >> 24) as u8,
            }),
            opcode::GET_LOG_PAGE => Self::GetLogPage(GetLogPage::decode(sqe)),
            opcode::ABORT => Self::Abort { sq_id: sqe.cdw(10) as u16, command_id: (sqe.cdw(10) >> 16) as u16 },
            opcode::SET_FEATURES => Self::SetFeatures {
                feature: sqe.cdw(10) as u8,
                save: sqe.cdw(10) >> 31 != 0,
                values: [11, 12, 13, 14, 15].map(|number| sqe.cdw(number)),
            },
            opcode::GET_FEATURES => Self::GetFeatures {
                feature: sqe.cdw(10) as u8,
                select: Select::from_bits((sqe.cdw(10) >> 8) as u8 & 7),
                parameter: sqe.cdw(11),
            },
            opcode::ASYNC_EVENT_REQUEST => Self::AsyncEventRequest,
            opcode::KEEP_ALIVE => Self::KeepAlive,
            opcode::FORMAT_NVM => Self::Format(Format::decode(sqe)),
            opcode::SANITIZE => Self::Sanitize(Sanitize::decode(sqe)),
            opcode::NAMESPACE_MANAGEMENT => Self::ManageNamespace {
                nsid: sqe.nsid.get(),
                select: sqe.cdw(10) as u8 & 0xF,
                command_set: (sqe.cdw(11) >> 24) as u8,
            },
            opcode::NAMESPACE_ATTACHMENT => {
                Self::AttachNamespace { nsid: sqe.nsid.get(), select: sqe.cdw(10) as u8 & 0xF }
            }
            opcode::SELF_TEST => Self::SelfTest { nsid: sqe.nsid.get(), code: sqe.cdw(10) as u8 & 0xF },
            opcode => return Err(UnknownOpcode { opcode }),
        })
    }

    /// An entry with this command; the data pointer is left at zero.
    pub fn encode(&self, command_id: u16) -> Sqe {
        let mut sqe = Sqe::new(self.opcode(), command_id);
        match *self {
            Self::Identify(identify) => {
                sqe.nsid = U32::new(identify.nsid);
                sqe.set_cdw(10, u32::from(identify.cns) | u32::from(identify.controller_id) << 16);
                sqe.set_cdw(11, u32::from(identify.command_set) << 24);
            }
            Self::GetLogPage(get) => get.encode(&mut sqe),
            Self::Abort { sq_id, command_id } => {
                sqe.set_cdw(10, u32::from(sq_id) | u32::from(command_id) << 16);
            }
            Self::SetFeatures { feature, save, values } => {
                sqe.set_cdw(10, u32::from(feature) | u32::from(save) << 31);
                for (number, value) in (11..).zip(values) {
                    sqe.set_cdw(number, value);
                }
            }
            Self::GetFeatures { feature, select, parameter } => {
                sqe.set_cdw(10, u32::from(feature) | u32::from(select.bits()) << 8);
                sqe.set_cdw(11, parameter);
            }
            Self::Format(format) => {
                sqe.nsid = U32::new(format.nsid);
                sqe.set_cdw(10, format.dword());
            }
            Self::Sanitize(sanitize) => {
                sqe.set_cdw(10, sanitize.dword());
                sqe.set_cdw(11, sanitize.pattern);
            }
            Self::ManageNamespace { nsid, select, command_set } => {
                sqe.nsid = U32::new(nsid);
                sqe.set_cdw(10, u32::from(select & 0xF));
                sqe.set_cdw(11, u32::from(command_set) << 24);
            }
            Self::AttachNamespace { nsid, select: code } | Self::SelfTest { nsid, code } => {
                sqe.nsid = U32::new(nsid);
                sqe.set_cdw(10, u32::from(code & 0xF));
            }
            Self::AsyncEventRequest | Self::KeepAlive => {}
        }
        sqe
    }

    /// The operation code.
    pub const fn opcode(&self) -> u8 {
        match self {
            Self::Identify(_) => opcode::IDENTIFY,
            Self::GetLogPage(_) => opcode::GET_LOG_PAGE,
            Self::Abort { .. } => opcode::ABORT,
            Self::SetFeatures { .. } => opcode::SET_FEATURES,
            Self::GetFeatures { .. } => opcode::GET_FEATURES,
            Self::AsyncEventRequest => opcode::ASYNC_EVENT_REQUEST,
            Self::KeepAlive => opcode::KEEP_ALIVE,
            Self::Format(_) => opcode::FORMAT_NVM,
            Self::Sanitize(_) => opcode::SANITIZE,
            Self::ManageNamespace { .. } => opcode::NAMESPACE_MANAGEMENT,
            Self::AttachNamespace { .. } => opcode::NAMESPACE_ATTACHMENT,
            Self::SelfTest { .. } => opcode::SELF_TEST,
        }
    }
}

/// Choices of Namespace Management and Namespace Attachment (Base 2.0, sections 5.23 and 5.22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Management;

impl Management {
    /// Namespace Management: create.
    pub const CREATE: u8 = 0;
    /// Namespace Management: delete.
    pub const DELETE: u8 = 1;
    /// Namespace Attachment: attach.
    pub const ATTACH: u8 = 0;
    /// Namespace Attachment: detach.
    pub const DETACH: u8 = 1;
}

/// Format NVM (Base 2.0, section 5.14): a namespace gets blocks of another format, and its data is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Namespace, or [`crate::NSID_ALL`].
    pub nsid: u32,
    /// Place of the format among those of the namespace, six bits.
    pub format: u8,
    /// Metadata is a part of the block's data.
    pub metadata_inline: bool,
    /// Kind of protection information, three bits; zero is none.
    pub protection: u8,
    /// Protection information comes first in the metadata.
    pub protection_first: bool,
    /// Secure erase, three bits: [`Self::NO_SECURE_ERASE`], [`Self::USER_DATA_ERASE`] or [`Self::CRYPTOGRAPHIC_ERASE`].
    pub secure_erase: u8,
}

impl Format {
    /// Data need only be out of the reach of hosts.
    pub const NO_SECURE_ERASE: u8 = 0;
    /// Data is erased wherever it is.
    pub const USER_DATA_ERASE: u8 = 1;
    /// The key of the data is deleted.
    pub const CRYPTOGRAPHIC_ERASE: u8 = 2;

    fn decode(sqe: &Sqe) -> Self {
        let bits = sqe.cdw(10);
        Self {
            nsid: sqe.nsid.get(),
            format: (bits & 0xF) as u8 | ((bits >> 12 & 3) << 4) as u8,
            metadata_inline: bits & 1 << 4 != 0,
            protection: (bits >> 5 & 7) as u8,
            protection_first: bits & 1 << 8 != 0,
            secure_erase: (bits >> 9 & 7) as u8,
        }
    }

    fn dword(&self) -> u32 {
        let field = |value: u8, bits: u32, at: u32| (u32::from(value) & ((1 << bits) - 1)) << at;
        field(self.format, 4, 0)
            | field(self.format >> 4, 2, 12)
            | u32::from(self.metadata_inline) << 4
            | field(self.protection, 3, 5)
            | u32::from(self.protection_first) << 8
            | field(self.secure_erase, 3, 9)
    }
}

/// Sanitize (Base 2.0, section 5.22): all data of the subsystem is gone for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sanitize {
    /// Action, three bits: see the constants of this type.
    pub action: u8,
    /// The host may leave the failure mode without a sanitize that succeeds.
    pub unrestricted_exit: bool,
    /// Passes of an overwrite, four bits; zero is sixteen.
    pub passes: u8,
    /// Passes of an overwrite invert the pattern.
    pub inverts: bool,
    /// Blocks are not to be deallocated.
    pub no_deallocate: bool,
    /// Pattern of an overwrite.
    pub pattern: u32,
}

impl Sanitize {
    /// Action: leave the failure mode.
    pub const EXIT_FAILURE_MODE: u8 = 1;
    /// Action: erase the blocks of the medium.
    pub const BLOCK_ERASE: u8 = 2;
    /// Action: overwrite.
    pub const OVERWRITE: u8 = 3;
    /// Action: delete the keys of the data.
    pub const CRYPTO_ERASE: u8 = 4;

    fn decode(sqe: &Sqe) -> Self {
        Self { pattern: sqe.cdw(11), ..Self::of_dword(sqe.cdw(10)) }
    }

    /// The command of dword 10, which the Sanitize Status page gives back, without its pattern.
    pub fn of_dword(bits: u32) -> Self {
        Self {
            action: (bits & 7) as u8,
            unrestricted_exit: bits & 1 << 3 != 0,
            passes: (bits >> 4 & 0xF) as u8,
            inverts: bits & 1 << 8 != 0,
            no_deallocate: bits & 1 << 9 != 0,
            pattern: 0,
        }
    }

    /// Dword 10.
    pub fn dword(&self) -> u32 {
        u32::from(self.action & 7)
            | u32::from(self.unrestricted_exit) << 3
            | u32::from(self.passes & 0xF) << 4
            | u32::from(self.inverts) << 8
            | u32::from(self.no_deallocate) << 9
    }
}

impl Select {
    /// Decodes the three bits of the field.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 7 {
            0 => Self::Current,
            1 => Self::Default,
            2 => Self::Saved,
            3 => Self::Supported,
            reserved => Self::Reserved(reserved),
        }
    }

    /// The three bits of the field.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Current => 0,
            Self::Default => 1,
            Self::Saved => 2,
            Self::Supported => 3,
            Self::Reserved(bits) => bits & 7,
        }
    }
}

impl GetLogPage {
    fn decode(sqe: &Sqe) -> Self {
        let dwords = u64::from(sqe.cdw(10) >> 16) | u64::from(sqe.cdw(11) & 0xFFFF) << 16;
        Self {
            page: sqe.cdw(10) as u8,
            nsid: sqe.nsid.get(),
            specific: (sqe.cdw(10) >> 8) as u8 & 0x7F,
            specific_id: (sqe.cdw(11) >> 16) as u16,
            retain_event: sqe.cdw(10) & 1 << 15 != 0,
            len_bytes: (dwords + 1) * 4,
            offset_bytes: u64::from(sqe.cdw(12)) | u64::from(sqe.cdw(13)) << 32,
            command_set: (sqe.cdw(14) >> 24) as u8,
        }
    }

    fn encode(&self, sqe: &mut Sqe) {
        let dwords = (self.len_bytes / 4).saturating_sub(1) as u32;
        sqe.nsid = U32::new(self.nsid);
        let low = u32::from(self.page) | u32::from(self.specific & 0x7F) << 8 | u32::from(self.retain_event) << 15;
        sqe.set_cdw(10, low | dwords << 16);
        sqe.set_cdw(11, dwords >> 16 | u32::from(self.specific_id) << 16);
        sqe.set_cdw(12, self.offset_bytes as u32);
        sqe.set_cdw(13, (self.offset_bytes >> 32) as u32);
        sqe.set_cdw(14, u32::from(self.command_set) << 24);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_command() -> impl Strategy<Value = AdminCommand> {
        let log = (any::<[u8; 2]>(), 0u8..128, any::<(u16, bool, u64, u32, u32)>()).prop_map(
            |([page, command_set], specific, (specific_id, retain_event, offset_bytes, nsid, dwords))| GetLogPage {
                page,
                nsid,
                specific,
                specific_id,
                retain_event,
                len_bytes: (u64::from(dwords) + 1) * 4,
                offset_bytes,
                command_set,
            },
        );
        prop_oneof![
            any::<(u8, u32, u16, u8)>().prop_map(|(cns, nsid, controller_id, command_set)| {
                AdminCommand::Identify(Identify { cns, nsid, controller_id, command_set })
            }),
            log.prop_map(AdminCommand::GetLogPage),
            any::<(u16, u16)>().prop_map(|(sq_id, command_id)| AdminCommand::Abort { sq_id, command_id }),
            any::<(u8, bool, [u32; 5])>().prop_map(|(feature, save, values)| AdminCommand::SetFeatures {
                feature,
                save,
                values
            }),
            any::<(u8, u8, u32)>().prop_map(|(feature, select, parameter)| AdminCommand::GetFeatures {
                feature,
                select: Select::from_bits(select),
                parameter
            }),
            (0_u32..1 << 14, any::<u32>()).prop_map(|(bits, nsid)| {
                let mut sqe = Sqe::new(opcode::FORMAT_NVM, 0);
                sqe.nsid = U32::new(nsid);
                sqe.set_cdw(10, bits);
                AdminCommand::Format(Format::decode(&sqe))
            }),
            (0_u32..1 << 10, any::<u32>()).prop_map(|(bits, pattern)| {
                AdminCommand::Sanitize(Sanitize { pattern, ..Sanitize::of_dword(bits) })
            }),
            any::<(u32, u8, u8)>().prop_map(|(nsid, select, command_set)| AdminCommand::ManageNamespace {
                nsid,
                select: select & 0xF,
                command_set
            }),
            any::<(u32, u8)>().prop_map(|(nsid, select)| AdminCommand::AttachNamespace { nsid, select: select & 0xF }),
            any::<(u32, u8)>().prop_map(|(nsid, code)| AdminCommand::SelfTest { nsid, code: code & 0xF }),
            prop_oneof![Just(AdminCommand::AsyncEventRequest), Just(AdminCommand::KeepAlive)],
        ]
    }

    proptest! {
        #[test]
        fn commands_survive_the_wire(command in any_command(), id: u16) {
            let sqe = command.encode(id);
            prop_assert_eq!(AdminCommand::decode(&Sqe::from_array(sqe.to_array())), Ok(command));
        }
    }

    #[test]
    fn lengths_of_log_pages_count_dwords_from_zero() {
        let get = GetLogPage { page: 2, nsid: crate::NSID_ALL, len_bytes: 512, ..GetLogPage::default() };
        assert_eq!(AdminCommand::GetLogPage(get).encode(0).cdw(10), 0x007F_0002);
    }

    #[test]
    fn fields_of_format_and_sanitize_are_at_their_bits() {
        let format = Format { nsid: 1, format: 0x1F, secure_erase: 1, protection: 5, ..Format::default() };
        assert_eq!(AdminCommand::Format(format).encode(0).cdw(10), 0xF | 5 << 5 | 1 << 9 | 1 << 12);
        let sanitize = Sanitize { action: Sanitize::BLOCK_ERASE, unrestricted_exit: true, ..Sanitize::default() };
        assert_eq!(AdminCommand::Sanitize(sanitize).encode(0).cdw(10), 0b1010);
    }

    #[test]
    fn unknown_operations_are_refused() {
        assert_eq!(AdminCommand::decode(&Sqe::new(0xC1, 0)), Err(UnknownOpcode { opcode: 0xC1 }));
    }
}
