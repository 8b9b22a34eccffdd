//! Errors of the file system.

use flashyard_blk::VolumeError;

/// Why an operation was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FsError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] VolumeError),
    /// No such name, or no such inode.
    #[error("not found")]
    NotFound,
    /// The name is taken.
    #[error("exists already")]
    Exists,
    /// The operation needs a directory.
    #[error("not a directory")]
    NotDirectory,
    /// The operation needs something else than a directory.
    #[error("is a directory")]
    IsDirectory,
    /// The directory has names in it.
    #[error("directory is not empty")]
    NotEmpty,
    /// No room for the data, or for another inode.
    #[error("no space left")]
    NoSpace,
    /// A name is empty, has a slash or a zero byte in it, or is longer than 255 bytes.
    #[error("name is not allowed")]
    BadName,
    /// Beyond the last byte that a file can have.
    #[error("file would be larger than {max} bytes", max = crate::FILE_BYTES_MAX)]
    FileTooLarge,
    /// An argument makes no sense.
    #[error("invalid argument: {0}")]
    Invalid(&'static str),
    /// More files are deleted while open than a checkpoint can name.
    #[error("too many files are open that have no name")]
    TooManyOrphans,
    /// Both packs, or both superblocks, are missing or damaged.
    #[error("no file system here: {0}")]
    NotAFileSystem(&'static str),
    /// A structure on the device does not check out.
    #[error("block {block}: damaged {what}")]
    Corrupt {
        /// The structure.
        what: &'static str,
        /// Its block.
        block: u32,
    },
    /// A write failed earlier; the device holds the last checkpoint. Mount again.
    #[error("frozen after a failed write")]
    Frozen,
    /// Another change of size is under way.
    #[error("another change of size is under way")]
    Busy,
}
