//! Directories: names in pages, and the same names in memory.
//!
//! A page holds entries one after the other: inode, kind, length of the name, name. Inode zero ends the page.

use crate::bytes::{put, u32_at};
use crate::device::{BLOCK_BYTES, Block};
use crate::error::FsError;
use crate::node::Kind;
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

    /// Takes in the names of page `number`, once those of the pages before it are in.
    ///
    /// Errors: it does not hold names.
    pub(crate) fn read_page(&mut self, number: u32, page: &Block) -> Result<(), FsError> {
        let mut at = 0;
        let damaged = |()| FsError::Corrupt { what: "directory", block: number };
        while let Some((entry, end)) = entry_at(&page[..], at).map_err(damaged)? {
            self.names.insert(entry.name, (entry.ino, entry.kind, number));
            at = end;
        }
        // An entry that lost its inode would hide all those after it.
        if page[at..].iter().any(|&byte| byte != 0) {
            return Err(damaged(()));
        }
        self.used.push(at as u16);
        Ok(())
    }

    /// Adds a name that is not there to `page`, which has this number and room for it. Returns the pages in use.
    pub(crate) fn add(&mut self, number: u32, page: &mut Block, name: &[u8], (of, kind): (u32, Kind)) -> u64 {
        if number as usize == self.used.len() {
            self.used.push(0);
        }
        let at = usize::from(self.used[number as usize]);
        self.used[number as usize] += (HEADER + name.len()) as u16;
        self.names.insert(name.to_vec(), (of, kind, number));
        put(&mut page[..], at, &of.to_le_bytes());
        page[at + 4] = kind.code();
        page[at + 5] = name.len() as u8;
        page[at + HEADER..at + HEADER + name.len()].copy_from_slice(name);
        self.used.len() as u64
    }

    /// The page that a name is in.
    pub(crate) fn page_of(&self, name: &[u8]) -> Option<u32> {
        self.names.get(name).map(|&(_, _, number)| number)
    }

    /// Takes a name out of `page`, the one that it is in.
    ///
    /// Errors: it is not there.
    pub(crate) fn remove(&mut self, number: u32, page: &mut Block, name: &[u8]) -> Result<(), FsError> {
        let len = remove_entry(page, name).ok_or(FsError::Corrupt { what: "directory", block: number })?;
        self.names.remove(name);
        self.used[number as usize] -= len as u16;
        Ok(())
    }

    /// The first page with room for a name; the number of pages when there is none.
    pub(crate) fn page_for(&self, name: &[u8]) -> u32 {
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
