//! Numbered files, which programs work on, and those of CVFS.

use flashyard_blk::Volume;
use flashyard_cvfs::{FileSystem, FsError, Kind, NewInode, ROOT};

/// Why a file operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// There is no room.
    #[error("the file system is full")]
    NoSpace,
    /// No file has this number, or there is one already.
    #[error("file {0} is not as the program believes")]
    Number(u32),
    /// Anything else, in the words of the file system.
    #[error("{0}")]
    Failed(String),
}

/// Files with numbers in place of names.
pub trait Files {
    /// Makes an empty file.
    ///
    /// Errors: the number is taken; no space.
    fn create(&mut self, number: u32) -> Result<(), FilesError>;
    /// Writes bytes of a file, which grows where needed.
    ///
    /// Errors: no such file; no space.
    fn write(&mut self, number: u32, offset: u64, bytes: &[u8]) -> Result<(), FilesError>;
    /// Reads bytes of a file; returns their number.
    ///
    /// Errors: no such file.
    fn read(&mut self, number: u32, offset: u64, buffer: &mut [u8]) -> Result<usize, FilesError>;
    /// Bytes of a file.
    ///
    /// Errors: no such file.
    fn size(&mut self, number: u32) -> Result<u64, FilesError>;
    /// Deletes a file.
    ///
    /// Errors: no such file.
    fn delete(&mut self, number: u32) -> Result<(), FilesError>;
    /// Makes what was written to a file survive a loss of power.
    ///
    /// Errors: no such file.
    fn fsync(&mut self, number: u32) -> Result<(), FilesError>;
}

/// Files of CVFS, in directories of some width.
#[derive(Debug)]
pub struct CvfsFiles<D> {
    fs: FileSystem<D>,
    /// Inode of each number; zero for none.
    inodes: Vec<u32>,
    /// Inode of each directory; zero for none yet.
    directories: Vec<u32>,
    width: u32,
}

impl From<FsError> for FilesError {
    fn from(error: FsError) -> Self {
        if error == FsError::NoSpace { Self::NoSpace } else { Self::Failed(error.to_string()) }
    }
}

impl<D: Volume> CvfsFiles<D> {
    /// The files of an empty file system, `width` of them (at least 1) in a directory.
    pub fn new(fs: FileSystem<D>, width: u32) -> Self {
        Self { fs, inodes: Vec::new(), directories: Vec::new(), width: width.max(1) }
    }

    /// The file system.
    pub fn fs(&self) -> &FileSystem<D> {
        &self.fs
    }

    /// The file system, for what files have no word for.
    pub fn fs_mut(&mut self) -> &mut FileSystem<D> {
        &mut self.fs
    }

    /// The inode of a file.
    ///
    /// Errors: no such file.
    pub fn inode(&self, number: u32) -> Result<u32, FilesError> {
        self.inodes.get(number as usize).copied().filter(|&ino| ino != 0).ok_or(FilesError::Number(number))
    }

    fn directory(&mut self, number: u32) -> Result<u32, FilesError> {
        let index = (number / self.width) as usize;
        if self.directories.len() <= index {
            self.directories.resize(index + 1, 0);
        }
        if self.directories[index] == 0 {
            let name = format!("d{index}");
            self.directories[index] = self.fs.create(ROOT, name.as_bytes(), NewInode::of(Kind::Directory, 0o755), 0)?;
        }
        Ok(self.directories[index])
    }
}

impl<D: Volume> Files for CvfsFiles<D> {
    fn create(&mut self, number: u32) -> Result<(), FilesError> {
        if self.inode(number).is_ok() {
            return Err(FilesError::Number(number));
        }
        let parent = self.directory(number)?;
        let ino = self.fs.create(parent, number.to_string().as_bytes(), NewInode::of(Kind::File, 0o644), 0)?;
        if self.inodes.len() <= number as usize {
            self.inodes.resize(number as usize + 1, 0);
        }
        self.inodes[number as usize] = ino;
        Ok(())
    }

    fn write(&mut self, number: u32, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        let written = self.fs.write(self.inode(number)?, offset, bytes, 0)?;
        if written < bytes.len() { Err(FilesError::NoSpace) } else { Ok(()) }
    }

    fn read(&mut self, number: u32, offset: u64, buffer: &mut [u8]) -> Result<usize, FilesError> {
        Ok(self.fs.read(self.inode(number)?, offset, buffer)?)
    }

    fn size(&mut self, number: u32) -> Result<u64, FilesError> {
        Ok(self.fs.inode(self.inode(number)?)?.size)
    }

    fn delete(&mut self, number: u32) -> Result<(), FilesError> {
        self.inode(number)?;
        let parent = self.directory(number)?;
        self.fs.unlink(parent, number.to_string().as_bytes(), 0)?;
        self.inodes[number as usize] = 0;
        Ok(())
    }

    fn fsync(&mut self, number: u32) -> Result<(), FilesError> {
        self.inode(number)?;
        Ok(self.fs.sync()?)
    }
}
