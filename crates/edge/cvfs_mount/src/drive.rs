//! A drive that is served over NVMe/TCP as a device: one program of this machine at a time.
//!
//! Drives let many hosts write, and two file systems on one destroy each other. A lock of this machine keeps its other programs away, and ends with
//! the program, however that ends; a reservation would outlive it. Programs of other machines are not kept away.

use crate::file::open_alone;
use flashyard_blk::{Completion, Payload, Volume, VolumeError, VolumeInfo, VolumeRequest};
use flashyard_live::{NamespaceError, RemoteNamespace};
use flashyard_units::SimTime;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The name of the host that file systems reach drives by.
pub const HOST_NQN: &str = "nqn.2026-11.io.flashyard:cvfs";

/// A drive is no device.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// No connection, or no namespace that fits.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Its lock.
    #[error("{path}: {source}")]
    Lock {
        /// The file of the lock.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// A drive that this program alone uses, of those on this machine.
pub struct DriveDevice {
    namespace: RemoteNamespace,
    _lock: File,
}

/// The file that stands for a drive: a server has it under many addresses, and one port.
fn lock_path(address: SocketAddr, nqn: &str) -> PathBuf {
    let name: String = nqn.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    std::env::temp_dir().join(format!("flashyard-cvfs-{}-{name}.lock", address.port()))
}

/// Locks a drive. The file stays: another program may wait for it.
fn lock_drive(address: SocketAddr, nqn: &str) -> Result<File, DriveError> {
    let path = lock_path(address, nqn);
    // That of another user can be read and locked, but not written.
    let locked = open_alone(&path, |path| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).open(path).or_else(|_| File::open(path))
    });
    locked.map_err(|source| DriveError::Lock { path, source })
}

impl DriveDevice {
    /// Connects to the first namespace of the subsystem `nqn`, and keeps other programs of ours on this machine away from it.
    ///
    /// Errors: it is in use, there is no answer, no access, no namespace that fits.
    pub fn connect(address: SocketAddr, nqn: &str) -> Result<Self, DriveError> {
        let lock = lock_drive(address, nqn)?;
        Ok(Self { namespace: RemoteNamespace::connect(address, HOST_NQN, nqn, None)?, _lock: lock })
    }
}

impl Volume for DriveDevice {
    fn info(&self) -> VolumeInfo {
        self.namespace.info()
    }

    fn submit(
        &mut self,
        now: SimTime,
        token: u64,
        request: &VolumeRequest,
        payload: Payload,
    ) -> Result<(), VolumeError> {
        self.namespace.submit(now, token, request, payload)
    }

    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
        self.namespace.advance(until, into)
    }

    fn next_due(&self) -> Option<SimTime> {
        self.namespace.next_due()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_used_once_at_a_time_whatever_address_it_is_called_by() {
        let nqn = format!("nqn.2026-01.test:{}", std::process::id());
        let address = |text: &str| text.parse().expect("it is one");
        let first = lock_drive(address("127.0.0.1:4420"), &nqn).expect("it is free");
        let refused = lock_drive(address("[::1]:4420"), &nqn).expect_err("it is in use").to_string();
        assert!(refused.ends_with("it is mounted, or in use by another command; unmount it first"), "{refused}");
        lock_drive(address("127.0.0.1:4421"), &nqn).expect("it is another one");
        drop(first);
        lock_drive(address("127.0.0.1:4420"), &nqn).expect("it is free again");
        for port in [4420, 4421] {
            _ = std::fs::remove_file(lock_path(SocketAddr::from(([127, 0, 0, 1], port)), &nqn));
        }
    }
}
