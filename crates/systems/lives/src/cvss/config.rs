//! Parameters of a lifetime.

use super::design::DeviceConfig;
use super::file_system::FileSystemConfig;
use super::host::HostConfig;
use super::load::{Load, Separation};
use flashyard_applications::FilesError;
use flashyard_cvfs::FsError;
use flashyard_ftl::{FtlConfigError, RemapError};
use flashyard_nand::WearModelError;

/// Parameters of one lifetime.
#[derive(Clone, Debug, PartialEq)]
pub struct CvssConfig {
    /// The drive.
    pub device: DeviceConfig,
    /// The host.
    pub host: HostConfig,
    /// The file system above it.
    pub file_system: FileSystemConfig,
    /// Which data goes apart.
    pub separation: Separation,
    /// The work.
    pub load: Load,
    /// Pages that the host writes between two samples, at least 1.
    pub sample_pages: u64,
    /// Physical pages below which the user wants the drive degraded. Source: [P] sheet cvss §3.7; none by default there.
    pub watermark_pages: Option<u32>,
    /// The user gives unused capacity back at once: a variable drive's file system shrinks to this many times its use
    /// as soon as the load is stored. [A] above 1
    pub give_back_to: Option<f64>,
    /// Seed of the load.
    pub seed: u64,
}

/// Why a lifetime cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum CvssError {
    /// The translation layer does not fit the flash.
    #[error(transparent)]
    Ftl(#[from] FtlConfigError),
    /// The wear model cannot be.
    #[error(transparent)]
    Wear(#[from] WearModelError),
    /// The load does not fit the drive with the room that the file system needs.
    #[error("a load of {load} pages does not fit a drive of {drive}, which must keep {kept} free")]
    Load {
        /// Pages of the load.
        load: u32,
        /// Pages exported.
        drive: u32,
        /// Pages that the file system keeps.
        kept: u32,
    },
    /// A number outside its range.
    #[error("{name} is {value}, give {range}")]
    Range {
        /// Name of the parameter.
        name: &'static str,
        /// The value given.
        value: f64,
        /// The accepted range.
        range: &'static str,
    },
    /// Nothing reaches the drive.
    #[error(
        "the host's page cache takes in all writes of the load, and no page is written to the drive; give less memory to the host, or a load of more data"
    )]
    Absorbed,
    /// The file system failed where it must not.
    #[error("the file system failed: {0}")]
    FileSystem(FsError),
    /// A program's file operation failed where it must not.
    #[error("a file operation failed: {0}")]
    Program(FilesError),
    /// A store has lost something.
    #[error("the store does not find what it wrote: key or file {0}")]
    Store(u64),
    /// The drive refused a remap that the file system asked for.
    #[error("remapping failed: {0}")]
    Remap(#[from] RemapError),
}
