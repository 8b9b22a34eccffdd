//! Pages of files: reading, writing, cutting off.

use crate::cache::{Page, RUN_BLOCKS_MAX, Run};
use crate::device::{BLOCK_BYTES, Block, zeros};
use crate::error::FsError;
use crate::fs::{Cost, FileSystem};
use crate::log::Log;
use crate::node::{FILE_BYTES_MAX, HOLE, Kind, UNWRITTEN};
use crate::walk::check_nodes;
use flashyard_blk::{Piece, Volume};
use std::collections::btree_map::Entry;
use std::ops::Range;

const PAGE: u64 = BLOCK_BYTES as u64;
/// Pages that one call of `prepare` admits.
const PAGES_AT_ONCE: u64 = 64;

/// A block of these bytes, one block of them.
fn block_from(bytes: &[u8]) -> Box<Block> {
    Box::<[u8]>::from(bytes).try_into().expect("a whole page is a block")
}

impl<D: Volume> FileSystem<D> {
    /// Reads bytes of a file or symbolic link into `buffer`; returns their number. Holes read as zeros.
    ///
    /// Errors: no such inode, a directory, the device fails.
    pub fn read(&mut self, ino: u32, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        let inode = self.inode(ino)?;
        if inode.kind == Kind::Directory {
            return Err(FsError::IsDirectory);
        }
        let len = inode.size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let mut done = 0;
        let mut pieces = Vec::new();
        while done < len {
            let at = offset + done as u64;
            let (page, within) = ((at / PAGE), (at % PAGE) as usize);
            let pages = (within + len - done).div_ceil(BLOCK_BYTES);
            let count = if let Some((block, blocks)) = self.run_from(ino, page, pages)? {
                let count = (blocks * BLOCK_BYTES - within).min(len - done);
                pieces.push(Piece { first: block.into(), skip: within, at: done, len: count });
                count
            } else {
                let count = (BLOCK_BYTES - within).min(len - done);
                let bytes = self.page(ino, page)?;
                buffer[done..done + count].copy_from_slice(&bytes[within..within + count]);
                count
            };
            done += count;
        }
        self.device.read_together(&pieces, buffer)?;
        Ok(len)
    }

    /// The blocks of pages that lie one after the other on the device, up to `pages_max`; `None` when the first page is
    /// elsewhere.
    fn run_from(&mut self, ino: u32, page: u64, pages_max: usize) -> Result<Option<(u32, usize)>, FsError> {
        let mut first = 0;
        let mut count = 0;
        while count < pages_max.min(RUN_BLOCKS_MAX) {
            let number = page + count as u64;
            if self.pages.holds(ino, number) {
                break;
            }
            let block = self.block_of(ino, number)?;
            if block == HOLE || (count > 0 && block != first + count as u32) {
                break;
            }
            if count == 0 {
                first = block;
            }
            count += 1;
        }
        Ok((count > 0).then_some((first, count)))
    }

    pub(crate) fn block_of(&mut self, ino: u32, page: u64) -> Result<u32, FsError> {
        match self.find_slot(ino, page)? {
            None => Ok(HOLE),
            Some((nid, slot)) => Ok(self.node(nid)?.pointers[slot]),
        }
    }

    /// A page as it is now.
    pub(crate) fn page(&mut self, ino: u32, page: u64) -> Result<Box<Block>, FsError> {
        if let Some(held) = self.pages.0.get(&(ino, page)) {
            return Ok(held.bytes.clone());
        }
        let mut bytes = zeros();
        match self.block_of(ino, page)? {
            HOLE => {}
            block => self.device.read(block, &mut bytes[..])?,
        }
        Ok(bytes)
    }

    /// Writes bytes of a file, which grows where needed; returns their number. There are fewer than `bytes` when space ends in the midst of them.
    ///
    /// Errors: no such inode, a directory, no space for the first of them (then nothing is written), a failed device.
    pub fn write(&mut self, ino: u32, offset: u64, bytes: &[u8], now: u64) -> Result<usize, FsError> {
        let inode = self.inode(ino)?;
        if inode.kind == Kind::Directory {
            return Err(FsError::IsDirectory);
        }
        let end = offset.checked_add(bytes.len() as u64).filter(|&end| end <= FILE_BYTES_MAX);
        let end = end.ok_or(FsError::FileTooLarge)?;
        let mut at = offset;
        while at < end {
            let upto = ((at / PAGE + PAGES_AT_ONCE) * PAGE).min(end);
            let part = &bytes[(at - offset) as usize..(upto - offset) as usize];
            match self.write_part(ino, at, part) {
                Err(FsError::NoSpace) if at > offset => return Ok((at - offset) as usize),
                done => done?,
            }
            let inode = self.inode_mut(ino)?;
            inode.size = inode.size.max(upto);
            (inode.modified, inode.changed) = (now, now);
            at = upto;
        }
        Ok(bytes.len())
    }

    fn write_part(&mut self, ino: u32, offset: u64, bytes: &[u8]) -> Result<(), FsError> {
        let end = offset + bytes.len() as u64;
        let pages = offset / PAGE..end.div_ceil(PAGE);
        self.prepare_pages(ino, pages.clone(), Cost::default())?;
        for page in pages {
            let from = offset.max(page * PAGE);
            let upto = end.min((page + 1) * PAGE);
            let part = &bytes[(from - offset) as usize..(upto - offset) as usize];
            if part.len() == BLOCK_BYTES {
                self.put_page(ino, page, block_from(part))?;
                continue;
            }
            // A page in memory is changed where it is.
            let before = if self.pages.holds(ino, page) { None } else { Some(self.page(ino, page)?) };
            let held = self.put_page(ino, page, before)?;
            held[(from % PAGE) as usize..][..part.len()].copy_from_slice(part);
        }
        Ok(())
    }

    /// Finds space for pages that are going to be written, and for their nodes and `extra`.
    pub(crate) fn prepare_pages(&mut self, ino: u32, pages: Range<u64>, extra: Cost) -> Result<(), FsError> {
        let count = pages.end.saturating_sub(pages.start);
        let mut new = 0;
        let mut nodes = 0;
        for page in pages.clone() {
            new += u64::from(self.block_of(ino, page)? == HOLE);
        }
        if let Some(last) = pages.end.checked_sub(1).filter(|_| count > 0) {
            // Pages of one call lie below two leaves at most, which share the nodes above or not.
            nodes = self.nodes_missing(ino, pages.start)? + self.nodes_missing(ino, last)?;
        }
        // Number zero is that of no node.
        if u64::from(self.nodes.used) + self.held.unused() + nodes + extra.new > u64::from(self.addresses.entries()) - 1
        {
            return Err(FsError::NoSpace);
        }
        // The inode, and the leaves that may be changed.
        self.prepare(Cost { new: new + nodes + extra.new, dirty: count + nodes + 3 + extra.dirty, frees: false })
    }

    /// Puts a page into memory, or without bytes keeps the one that is there, to be written later. Space must be prepared.
    pub(crate) fn put_page(
        &mut self,
        ino: u32,
        page: u64,
        bytes: impl Into<Option<Box<Block>>>,
    ) -> Result<&mut Block, FsError> {
        let bytes = bytes.into();
        let (nid, slot) = self.make_slot(ino, page)?;
        let pointer = &mut self.node_mut(nid)?.pointers[slot];
        let before = *pointer;
        if before == HOLE {
            *pointer = UNWRITTEN;
            self.unwritten += 1;
            self.inode_mut(ino)?.pages += 1;
        }
        let hot = before != HOLE || self.is_directory(ino)?;
        let log = if hot { Log::DataHot } else { Log::DataCold };
        self.counters.pages_put += 1;
        match self.pages.0.entry((ino, page)) {
            Entry::Occupied(held) => {
                self.counters.pages_absorbed += 1;
                let held = held.into_mut();
                if let Some(bytes) = bytes {
                    held.bytes = bytes;
                }
                Ok(&mut held.bytes)
            }
            Entry::Vacant(place) => {
                let bytes = bytes.unwrap_or_else(zeros);
                Ok(&mut place.insert(Page { bytes, log }).bytes)
            }
        }
    }

    /// Takes a page that was read into memory, to be written elsewhere. Space must be prepared.
    pub(crate) fn move_page(&mut self, (ino, page): (u32, u64), bytes: &[u8]) {
        self.pages.0.insert((ino, page), Page { bytes: block_from(bytes), log: Log::DataCold });
        self.counters.pages_carried += 1;
    }

    /// Writes pages in memory to their logs. The nodes that point to them are dirty already.
    pub(crate) fn write_pages(&mut self) -> Result<(), FsError> {
        let done = self.try_write_pages();
        self.frozen |= done.is_err();
        done
    }

    fn try_write_pages(&mut self) -> Result<(), FsError> {
        let pages = std::mem::take(&mut self.pages.0);
        for log in [Log::DataHot, Log::DataCold] {
            let mut run = Run::default();
            for (&(ino, number), page) in pages.iter().filter(|(_, page)| page.log == log) {
                let (nid, slot) = self.find_slot(ino, number)?.ok_or(FsError::NotFound)?;
                match self.node(nid)?.pointers[slot] {
                    UNWRITTEN => self.unwritten -= 1,
                    block => self.free_block(block)?,
                }
                let block = self.take_block(log, nid, slot as u16)?;
                debug_assert!(self.nodes.is_dirty(nid), "whoever put the page there has marked its node");
                self.node_moved(nid)?.pointers[slot] = block;
                run.add(&mut self.device, block, &page.bytes[..])?;
                self.counters.pages_written += 1;
            }
            run.write(&mut self.device)?;
        }
        Ok(())
    }

    /// Cuts a file off, or makes it longer with a hole.
    ///
    /// Errors: no such inode, a directory, too large, a node that cannot be read (then nothing has changed), the device fails.
    pub fn truncate(&mut self, ino: u32, size: u64, now: u64) -> Result<(), FsError> {
        let inode = self.inode(ino)?;
        if inode.kind == Kind::Directory {
            return Err(FsError::IsDirectory);
        }
        if size > FILE_BYTES_MAX {
            return Err(FsError::FileTooLarge);
        }
        // The inode, and the page that is cut with its leaf, or the leaves and nodes on the way to the new end.
        self.prepare(Cost { new: 0, dirty: 6, frees: true })?;
        let last = size / PAGE;
        if size < inode.size {
            check_nodes(self, ino, size.div_ceil(PAGE))?;
            let is_cut = !size.is_multiple_of(PAGE) && self.block_of(ino, last)? != HOLE;
            let tail = if is_cut { Some(self.page(ino, last)?) } else { None };
            let done = self.cut(ino, size.div_ceil(PAGE)).and_then(|()| {
                let Some(mut bytes) = tail else { return Ok(()) };
                bytes[(size % PAGE) as usize..].fill(0);
                self.put_page(ino, last, bytes).map(drop)
            });
            // Half of what goes is gone in memory, all of it is there in the last checkpoint.
            self.frozen |= done.is_err();
            done?;
        }
        let inode = self.inode_mut(ino)?;
        inode.size = size;
        (inode.modified, inode.changed) = (now, now);
        Ok(())
    }

    /// Frees all pages from number `from` on, with the nodes that only they need.
    pub(crate) fn cut(&mut self, ino: u32, from: u64) -> Result<(), FsError> {
        self.cut_below(ino, ino, from)?;
        Ok(())
    }

    /// Cuts below one node; returns whether it points to nothing afterwards.
    fn cut_below(&mut self, ino: u32, nid: u32, from: u64) -> Result<bool, FsError> {
        let node = self.node(nid)?;
        let held: Vec<(usize, u32)> =
            node.pointers.iter().copied().enumerate().filter(|&(_, pointer)| pointer != HOLE).collect();
        let mut left = held.len();
        for (slot, pointer) in held {
            let node = self.node(nid)?;
            let (first, count) = node.pages_below(slot);
            if first + count <= from {
                continue;
            }
            let gone = match node.child_level(slot) {
                None => {
                    match pointer {
                        UNWRITTEN => self.unwritten -= 1,
                        block => self.free_block(block)?,
                    }
                    self.counters.pages_dropped += u64::from(self.pages.0.remove(&(ino, first)).is_some());
                    self.inode_mut(ino)?.pages -= 1;
                    true
                }
                Some(_) => {
                    let empty = self.cut_below(ino, pointer, from)?;
                    if empty {
                        self.drop_node(pointer)?;
                    }
                    empty
                }
            };
            if gone {
                left -= 1;
                self.node_mut(nid)?.pointers[slot] = HOLE;
            }
        }
        Ok(left == 0)
    }
}
