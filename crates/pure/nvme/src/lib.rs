//! Waist: what NVMe looks like on the wire.
//!
//! Two levels. *Packet*: structures of exact size with little-endian fields, read from and written to bytes as they
//! are ([`command::Sqe`], [`identify::IdentifyController`], [`log::SmartLog`]). *Meaning*: plain enums and structs with
//! `decode` and `encode` ([`nvm::NvmCommand`], [`admin::AdminCommand`], [`fabrics::FabricsCommand`], [`tcp::Pdu`]).
//! Decoding any bytes ends in a value or an error, never in a panic.
//!
//! Holds formats and checks only: no time, no controller, no connection. Not here: PRP lists, metadata in buffers of its
//! own, the key-value command set, NVMe over PCIe registers beyond the ones fabrics have.
//!
//! Sources: [P] NVM Express Base Specification 2.0, NVM Command Set Specification 1.0, Zoned Namespace Command Set
//! Specification 1.1, TCP Transport Specification 1.0.

pub mod admin;
pub mod auth;
pub mod command;
pub mod event;
pub mod fabrics;
pub mod feature;
pub mod identify;
pub mod log;
pub mod nvm;
pub mod property;
pub mod protection;
pub mod reservation;
pub mod sgl;
pub mod status;
pub mod tcp;
pub mod text;
pub mod zone;

pub use command::{Cqe, Sqe};
pub use status::Status;

/// The namespace identifier that means all namespaces.
pub const NSID_ALL: u32 = 0xFFFF_FFFF;

/// Size in bytes of the data structures of Identify and of the unit of many log pages.
pub const IDENTIFY_BYTES: usize = 4096;
