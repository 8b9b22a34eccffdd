//! NVMe/TCP at both ends, as machines: bytes in, bytes and commands out. No sockets, no clock, no threads.
//!
//! # The target
//!
//! A [`target::Target`] holds what connections share: subsystems, controllers, figures to report. For each TCP
//! connection its owner keeps a [`target::Session`] and an [`target::Effects`]:
//!
//! 1. bytes from the socket go to [`target::Session::receive`];
//! 2. commands for the backend come out in `effects.commands`; each is answered through
//!    [`target::Session::complete`] with the buffer that came with it, filled if it was a read, in any order and at any
//!    later time;
//! 3. `effects.output` is written to the socket: [`Output::slices`] for a vectored write, then [`Output::advance`] with
//!    what the socket took. Keep what is left for the next time, and read no more from a host that lets too much of it
//!    pile up ([`Output::pending_bytes`]): the machine itself takes commands as long as the queue has entries;
//! 4. when `effects.close` is set, send the rest and close; when the socket closes, call [`target::Session::closed`];
//! 5. after any of these, and after [`target::Target::expire`], call [`target::Session::poll`] for every connection
//!    that [`target::Target::take_wakes`] names;
//! 6. call [`target::Target::expire`] when [`target::Target::deadline`] has come.
//!
//! Time is [`flashyard_units::SimTime`] from any beginning, as long as it does not go backwards. Everything but reads
//! and writes of namespaces is answered inside: Connect, properties, Identify, log pages, features, events, keep alive,
//! authentication.
//!
//! ```
//! use flashyard_nvme::Status;
//! use flashyard_nvme::nvm::NvmCommand;
//! use flashyard_nvmf::target::{Effects, Namespace, Session, Subsystem, Target, TargetConfig};
//! use flashyard_units::SimTime;
//!
//! # fn read_socket() -> Vec<u8> { Vec::new() }
//! # fn write_socket(slices: Vec<&[u8]>) -> usize { slices.iter().map(|slice| slice.len()).sum() }
//! let namespace = Namespace::new(1, 1 << 20, 12);
//! let subsystem = Subsystem::new("nqn.2026-01.example:jbof", "0001", vec![namespace]);
//! let config = TargetConfig { subsystems: vec![subsystem], ..TargetConfig::default() };
//! let mut target = Target::new(config)?;
//!
//! // A connection was accepted on port 1.
//! let mut session = Session::new(&mut target, 1);
//! let mut effects = Effects::default();
//! session.receive(&mut target, SimTime::ZERO, &read_socket(), &mut effects);
//! while let Some(mut command) = effects.commands.pop() {
//!     if let NvmCommand::Read { range, .. } = command.operation {
//!         command.payload.resize(command.data_bytes as usize, range.lba as u8);
//!     }
//!     session.complete(&mut target, command.tag, Status::SUCCESS, command.payload, &mut effects);
//! }
//! let taken = write_socket(effects.output.slices().collect());
//! effects.output.advance(taken);
//! # Ok::<(), flashyard_nvmf::target::ConfigError>(())
//! ```
//!
//! # The path of a 4 KiB write
//!
//! `tcp::Framer` finds the capsule → `target/plan.rs` checks it → its data goes from the caller's bytes into a pooled
//! buffer, at once when it is in the capsule, after an R2T when not → [`target::Command`] → the backend →
//! [`target::Session::complete`] → a completion in [`Output`], the buffer back in the pool. Nothing is allocated once
//! the pool and the slab of commands have grown to the depth of the queue.
//!
//! # TLS
//!
//! A connection over TLS has the same bytes inside. The machines know the keys ([`tls`]), announce ports that speak TLS only
//! ([`target::Security`]), and hold a host to the name that its key is for ([`target::secure`]). The records of TLS
//! are the business of the owner of the sockets.
//!
//! # What there is not
//!
//! Keys of TLS that authentication makes (secure channel concatenation), the Diffie-Hellman groups of authentication, metadata and protection information, fused commands,
//! Write Uncorrectable, Copy between namespaces, vendor commands but Remap, thin provisioning, persistent events; of zones
//! descriptor extensions, random write areas and the log page of changed ones. ANA states are those that the owner sets.
//!
//! Sources: [P] NVM Express Base Specification 2.0, NVM Command Set Specification 1.0, Zoned Namespace Command Set
//! Specification 1.1, TCP Transport Specification 1.0.

pub mod dhchap;
pub mod initiator;
mod interchange;
mod output;
pub mod secret;
pub mod target;
pub mod tls;
mod volume;

pub use output::Output;

/// Greatest namespace identifier of a subsystem.
pub const NAMESPACES_MAX: u32 = 1024;
