//! The file systems that hosted programs may have, and where a program waits for them.

use super::noting::Noting;
use crate::files::{CvfsFiles, Files, FilesError};
use crate::in_place::{InPlaceConfig, InPlaceFiles};
use flashyard_cvfs::{Config, DiscardPolicy, FileSystem, Format, MemoryDevice};
use flashyard_units::Named;

/// A file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystemName {
    /// CVFS: logs, nodes, directories, checkpoints and cleaning are on the volume.
    Cvfs,
    /// Data is written where it was first written; names and nodes are in memory.
    InPlace,
}

impl Named for FileSystemName {
    const ALL: &'static [Self] = &[Self::Cvfs, Self::InPlace];

    fn name(self) -> &'static str {
        match self {
            Self::Cvfs => "cvfs",
            Self::InPlace => "in-place",
        }
    }
}

/// Files of a program on a volume in memory.
pub(super) enum HostedFiles {
    Log(Box<CvfsFiles<Noting<MemoryDevice>>>),
    InPlace(Box<InPlaceFiles<Noting<MemoryDevice>>>),
}

impl HostedFiles {
    /// An empty file system on a volume of so many blocks, `width` files in a directory. The volume does not hear of blocks
    /// that become free: [X] file systems are mounted without `discard` by default.
    ///
    /// Errors: a volume that is too small.
    pub(super) fn new(name: FileSystemName, blocks: u32, width: u32, seed: u64) -> Result<Self, FilesError> {
        let volume = Noting::new(MemoryDevice::new(blocks));
        let settings = Config { discards: DiscardPolicy::IDLE_ONLY, ..Config::default() };
        Ok(match name {
            FileSystemName::Cvfs => {
                let fs = FileSystem::format(volume, Format { id: seed, ..Format::default() }, settings, 0)?;
                Self::Log(Box::new(CvfsFiles::new(fs, width)))
            }
            FileSystemName::InPlace => {
                let config = InPlaceConfig { discards: false, dirty_pages_max: settings.dirty_pages_max };
                Self::InPlace(Box::new(InPlaceFiles::new(volume, config)))
            }
        })
    }

    /// The volume below.
    pub(super) fn volume_mut(&mut self) -> &mut Noting<MemoryDevice> {
        match self {
            Self::Log(files) => files.fs_mut().device_mut(),
            Self::InPlace(files) => files.device_mut(),
        }
    }

    /// Writes what is in memory.
    ///
    /// Errors: those of the file system.
    pub(super) fn sync(&mut self) -> Result<(), FilesError> {
        match self {
            Self::Log(files) => Ok(files.fs_mut().sync()?),
            Self::InPlace(files) => files.write_back(),
        }
    }

    fn files(&mut self) -> &mut dyn Files {
        match self {
            Self::Log(files) => &mut **files,
            Self::InPlace(files) => &mut **files,
        }
    }
}

impl Files for HostedFiles {
    fn create(&mut self, number: u32) -> Result<(), FilesError> {
        self.files().create(number)
    }

    fn write(&mut self, number: u32, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        self.files().write(number, offset, bytes)
    }

    fn read(&mut self, number: u32, offset: u64, buffer: &mut [u8]) -> Result<usize, FilesError> {
        self.volume_mut().set_reads_together(true);
        let count = self.files().read(number, offset, buffer);
        self.volume_mut().set_reads_together(false);
        self.volume_mut().wait();
        count
    }

    fn size(&mut self, number: u32) -> Result<u64, FilesError> {
        self.files().size(number)
    }

    fn delete(&mut self, number: u32) -> Result<(), FilesError> {
        self.files().delete(number)
    }

    fn fsync(&mut self, number: u32) -> Result<(), FilesError> {
        self.files().fsync(number)?;
        self.volume_mut().wait();
        Ok(())
    }
}
