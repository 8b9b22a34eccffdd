//! Why a life has no next step.

use super::drive::TimedDrive;
use super::error::CvssError;
use flashyard_applications::FilesError;
use flashyard_cvfs::FsError;

/// Why a life has no next step.
#[derive(Debug)]
pub(super) enum Stop {
    /// The drive or the file system has died.
    Death(&'static str),
    Error(CvssError),
}

impl From<FsError> for Stop {
    fn from(error: FsError) -> Self {
        match error {
            FsError::NoSpace => Self::Death("file system full"),
            FsError::Device(_) | FsError::Frozen => Self::Death("no room"),
            other => Self::Error(CvssError::FileSystem(other)),
        }
    }
}

impl Stop {
    /// A file operation on a drive failed: the end of a life, or an error.
    pub(super) fn of(error: FilesError, drive: &TimedDrive) -> Self {
        match error {
            FilesError::NoSpace => Self::Death("file system full"),
            // CVFS freezes after a failed write, and the drive fails writes when it is worn out.
            FilesError::Failed(_) if drive.is_worn_out() => Self::Death("no room"),
            other => Self::Error(CvssError::Program(other)),
        }
    }
}
