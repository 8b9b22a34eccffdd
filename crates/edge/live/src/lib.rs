//! An enclosure of drives under the wall clock, with real bytes: the same firmware that runs in virtual time serves clients.
//!
//! What it does: paces the enclosure by the clock ([`Tempo`]), keeps the drives' bytes by physical slot in memory or in a
//! directory ([`Media`]), lets clients in through front ends ([`FrontEnd`]), and runs all of that on one thread
//! ([`Engine`]).
//!
//! The path of a request: a front end hands it in through its [`Context`] → the world takes it (`Served::submit`) → its
//! drive tells where bytes go, slot by slot, and the media follow → the answer is due, the clock has come so far, and
//! the front end gets it with slices of the media.
//!
//! What it does not do: protocols of the network, which are front ends of their own.
//!
//! Invariants: bytes of a write are in the media before its answer; what a read was promised is not overwritten before
//! its answer; the enclosure is asked only at times at which everything due has happened, so that a journal repeats it.

mod acceptor;
mod assemble;
mod block_metadata;
mod budget;
mod channel;
mod clock;
mod connection;
mod engine;
mod error;
mod front;
mod front_ends;
mod hook;
mod host;
mod load;
mod media;
mod namespace;
mod namespaces;
mod nbd;
mod nvme_tcp;
mod operator;
mod peers;
mod record;
mod remote;
mod report;
mod reserved;
mod socket;
mod stream;
mod tls;
mod under_way;

pub use assemble::{SetUp, SetUpError, set_up};
pub use block_metadata::BlockMetadata;
pub use budget::Limits;
pub use channel::{ChannelFront, ChannelVolume, Client, Wake};
pub use clock::{Lateness, Paced, SERVED_MAX, Tempo, noise, time_of};
pub use engine::{Engine, divide, is_divided, set_format};
pub use error::{BlockSizeError, EngineError};
pub use flashyard_blk::Payload;
pub use flashyard_nvmf::target::Strangers;
pub use front::{Answered, BlockState, Claim, Context, Drives, FrontEnd, Inbound, KEYS_MAX, Readiness};
pub use front_ends::FrontEnds;
pub use hook::{EngineAccess, Hook, NoPort, Reader};
pub use host::{Host, HostError, HostLoad, HostReport, Pattern, run_host_load};
pub use load::{Load, LoadReport, run_load, stamped};
pub use media::{
    BlockFormat, Data, DataDirectory, DriveMedia, Erase, Erasures, Media, MediaError, Opened, RecoveryReport,
    SanitizeOutcome, Shape,
};
pub use namespace::{NamespaceError, RemoteNamespace};
pub use namespaces::{Manage, ManageError, NAMESPACES_MAX, NamespaceInfo};
pub use nbd::{Nbd, NbdAddress};
pub use nvme_tcp::{ListenError, NvmeTcp};
pub use operator::Changed;
pub use remote::{Ended, Handle, Remote};
pub use report::Report;
pub use socket::SocketPath;
pub use tls::TlsError;
