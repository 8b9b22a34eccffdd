//! CVFS on real devices: regular files and drives over NVMe/TCP, and a mount through FUSE.
//!
//! The path of a request: the kernel, `mount` (one thread, one lock), [`flashyard_cvfs::FileSystem`], a [`Device`]. A
//! second thread lets time pass: discards, a checkpoint every five seconds, and steps of a change of size between the
//! requests of programs. Through `control`, extended attributes of its root, other programs ask a mount to shrink.
//! `manage` is one of them, which looks at the drive below.
//!
//! What it does not model: access rights (the kernel checks them), locks (the kernel keeps them), special files.

mod control;
mod drive;
mod file;
mod listing;
mod manage;
mod mount;

pub use control::{Asked, ControlError, VolumeUsage, ask_info, ask_shrink, parse_method};
pub use drive::{DriveDevice, DriveError, HOST_NQN};
pub use file::{FileDevice, open_alone};
pub use manage::{Looked, ManageError, ManagedVolume, Management, MountedVolume, Wishes};
pub use mount::{Device, MountError, Mounted, mount};
