//! Why a lifetime cannot be simulated.

use flashyard_applications::FilesError;
use flashyard_cvfs::FsError;
use flashyard_ftl::FtlConfigError;
use flashyard_nand::WearModelError;

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
        "the host's memory takes in all writes of the load, and no page is written to the drive; give less memory to the host, a load of more data, or less skew"
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
}
