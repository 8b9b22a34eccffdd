//! Directories: names in pages, and the same names in memory.
//!
//! A page holds entries one after the other: inode, kind, length of the name, name. Inode zero ends the page.

use crate::bytes::{put, u32_at};
use crate::device::{BLOCK_BYTES, Block};
use crate::error::FsError;
use crate::fs::FileSystem;
use crate::node::Kind;
use flashyard_blk::Volume;
use std::collections::BTreeMap;

/// Bytes of an entry besides its name.
const HEADER: usize = 6;
/// Bytes of a name at most.
pub(crate) const NAME_MAX: usize = 255;

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its bytes, without a slash.
    pub name: Vec<u8>,
    /// The inode that it names.
    pub ino: u32,
    /// Kind of that inode.
    pub kind: Kind,
}

/// The names of one directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    /// Inode and kind of each name, and the page that it is in.
    names: BTreeMap<Vec<u8>, (u32, Kind, u32)>,
    /// Bytes in use of each page.
    used: Vec<u16>,
}

impl Directory {
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<(u32, Kind)> {
        self.names.get(name).map(|&(ino, kind, _)| (ino, kind))
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.names.iter().map(|(name, &(ino, kind, _))| Entry { name: name.clone(), ino, kind })
    }

    /// The first page with room for a name; the number of pages when there is none.
    fn page_for(&self, name: &[u8]) -> u32 {
        let fits = |used: &u16| usize::from(*used) + HEADER + name.len() <= BLOCK_BYTES;
        self.used.iter().position(fits).unwrap_or(self.used.len()) as u32
    }
}

/// The entry at byte `at` of a page, and where the next one begins; `None` at the end.
///
/// Errors: not an entry.
fn entry_at(page: &[u8], at: usize) -> Result<Option<(Entry, usize)>, ()> {
    if at + HEADER > BLOCK_BYTES || u32_at(page, at) == 0 {
        return Ok(None);
    }
    let end = at + HEADER + usize::from(page[at + 5]);
    let kind = Kind::from_code(page[at + 4]).ok_or(())?;
    let name = page.get(at + HEADER..end).ok_or(())?.to_vec();
    Ok(Some((Entry { name, ino: u32_at(page, at), kind }, end)))
}

/// Errors: a name that is not allowed.
pub(crate) fn check_name(name: &[u8]) -> Result<(), FsError> {
    let bad = name.is_empty() || name.len() > NAME_MAX || name == b"." || name == b"..";
    if bad || name.iter().any(|byte| matches!(byte, 0 | b'/')) { Err(FsError::BadName) } else { Ok(()) }
}

impl<D: Volume> FileSystem<D> {
    /// The names of a directory.
    pub(crate) fn directory(&mut self, ino: u32) -> Result<&mut Directory, FsError> {
        if !self.directories.contains_key(&ino) {
            let directory = self.load_directory(ino)?;
            self.directories.insert(ino, directory);
        }
        Ok(self.directories.get_mut(&ino).expect("just loaded"))
    }

    fn load_directory(&mut self, ino: u32) -> Result<Directory, FsError> {
        let inode = self.inode(ino)?;
        if inode.kind != Kind::Directory {
            return Err(FsError::NotDirectory);
        }
        let mut directory = Directory::default();
        for number in 0..(inode.size / BLOCK_BYTES as u64) as u32 {
            let page = self.page(ino, number.into())?;
            let mut at = 0;
            let damaged = |()| FsError::Corrupt { what: "directory", block: number };
            while let Some((entry, end)) = entry_at(&page[..], at).map_err(damaged)? {
                directory.names.insert(entry.name, (entry.ino, entry.kind, number));
                at = end;
            }
            directory.used.push(at as u16);
        }
        Ok(directory)
    }

    /// The page that a name would go to.
    pub(crate) fn page_for(&mut self, ino: u32, name: &[u8]) -> Result<u64, FsError> {
        Ok(self.directory(ino)?.page_for(name).into())
    }

    /// Adds a name that is not there. Space must be prepared.
    pub(crate) fn add_name(&mut self, ino: u32, name: &[u8], of: u32, kind: Kind) -> Result<(), FsError> {
        let number = self.directory(ino)?.page_for(name);
        let mut page = self.page(ino, number.into())?;
        let directory = self.directory(ino)?;
        if number as usize == directory.used.len() {
            directory.used.push(0);
        }
        let at = usize::from(directory.used[number as usize]);
        directory.used[number as usize] += (HEADER + name.len()) as u16;
        directory.names.insert(name.to_vec(), (of, kind, number));
        let pages = directory.used.len() as u64;
        put(&mut page[..], at, &of.to_le_bytes());
        page[at + 4] = kind.code();
        page[at + 5] = name.len() as u8;
        page[at + HEADER..at + HEADER + name.len()].copy_from_slice(name);
        self.put_page(ino, number.into(), page)?;
        self.inode_mut(ino)?.size = pages * BLOCK_BYTES as u64;
        Ok(())
    }

    /// Takes a name out that is there. Space must be prepared.
    pub(crate) fn remove_name(&mut self, ino: u32, name: &[u8]) -> Result<(), FsError> {
        let (_, _, number) = *self.directory(ino)?.names.get(name).ok_or(FsError::NotFound)?;
        let mut page = self.page(ino, number.into())?;
        let len = remove_entry(&mut page, name).ok_or(FsError::Corrupt { what: "directory", block: number })?;
        let directory = self.directory(ino)?;
        directory.names.remove(name);
        directory.used[number as usize] -= len as u16;
        self.put_page(ino, number.into(), page)?;
        Ok(())
    }
}

/// Closes the gap that a name leaves; the bytes that it had.
fn remove_entry(page: &mut Block, name: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some((entry, end)) = entry_at(&page[..], at).ok()? {
        if entry.name == name {
            page.copy_within(end.., at);
            page[BLOCK_BYTES - (end - at)..].fill(0);
            return Some(end - at);
        }
        at = end;
    }
    None
}
