//! Files that stay where they were first written: a file system without a log, to compare others with.
//!
//! 1. A page of a file takes the next free block by address after the page before it when it is first written, and keeps it.
//! 2. Pages are written when so many are in memory, or when the file is made durable.
//! 3. Blocks of a deleted file are free at once, and the volume hears of them at once, or never.
//!
//! What it does not model: names, nodes and journals. They are in memory and are lost with it.
//!
//! Source: [X] what allocation in place has in common in ext4 and XFS.

use crate::files::{Files, FilesError};
use flashyard_blk::{Blocking, Operation, Piece, RequestError, Volume, VolumeError};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a block. Source: [X] as CVFS's
const BLOCK: usize = flashyard_cvfs::BLOCK_BYTES;

/// Settings of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPlaceConfig {
    /// Whether the volume hears of blocks that become free.
    pub discards: bool,
    /// Pages in memory before they are written, at least 1.
    pub dirty_pages_max: usize,
}

#[derive(Debug, Default)]
struct File {
    /// Block of each page; `None` for one that was never written to the volume.
    blocks: Vec<Option<u32>>,
    size: u64,
}

/// Files in place on a volume of 4 KiB blocks.
#[derive(Debug)]
pub struct InPlaceFiles<D> {
    device: Blocking<D>,
    config: InPlaceConfig,
    files: BTreeMap<u32, File>,
    free: BTreeSet<u32>,
    /// Blocks below which everything lies.
    end: u32,
    dirty: BTreeMap<(u32, u32), Box<[u8]>>,
    /// Pages in memory that have no block yet.
    unplaced: u32,
}

fn failed(error: VolumeError) -> FilesError {
    FilesError::Failed(error.to_string())
}

impl<D: Volume> InPlaceFiles<D> {
    /// No files on a whole volume.
    pub fn new(device: D, config: InPlaceConfig) -> Self {
        let device = Blocking::new(device);
        let end = u32::try_from(device.blocks()).unwrap_or(u32::MAX);
        Self {
            device,
            config,
            files: BTreeMap::new(),
            free: (0..end).collect(),
            end,
            dirty: BTreeMap::new(),
            unplaced: 0,
        }
    }

    /// The volume below.
    pub fn device(&self) -> &D {
        self.device.volume()
    }

    /// The volume below. Writing to it behind the files destroys them.
    pub fn device_mut(&mut self) -> &mut D {
        self.device.volume_mut()
    }

    /// Blocks that may be used.
    pub fn blocks(&self) -> u32 {
        self.end
    }

    /// Blocks in use, with those that pages in memory will need.
    pub fn used(&self) -> u32 {
        self.end - self.free.len() as u32 + self.unplaced
    }

    /// Blocks of a file's pages, in the order of the file.
    ///
    /// Errors: no such file.
    pub fn blocks_of(&self, number: u32, into: &mut Vec<u32>) -> Result<(), FilesError> {
        into.extend(self.files.get(&number).ok_or(FilesError::Number(number))?.blocks.iter().flatten());
        Ok(())
    }

    /// Gives blocks from `end` on up. They can only be given up while nothing lies there: nothing ever moves.
    ///
    /// Errors: something lies there, or the pages in memory would find no room.
    pub fn shrink(&mut self, end: u32) -> Result<(), FilesError> {
        let above = self.free.range(end..).count() as u32;
        if end >= self.end || above < self.end - end || self.free.len() as u32 - above < self.unplaced {
            return Err(FilesError::NoSpace);
        }
        self.free.split_off(&end);
        self.end = end;
        Ok(())
    }

    /// Writes all pages in memory.
    ///
    /// Errors: the volume's.
    pub fn write_back(&mut self) -> Result<(), FilesError> {
        // A page leaves memory once it is written: after an error the others are still there.
        while let Some((&(number, page), bytes)) = self.dirty.first_key_value() {
            let Some(file) = self.files.get_mut(&number) else {
                self.dirty.pop_first();
                continue;
            };
            let before = page.checked_sub(1).and_then(|before| file.blocks[before as usize]);
            let place = &mut file.blocks[page as usize];
            let block = match *place {
                Some(block) => block,
                None => {
                    let after = before.map_or(0, |before| before + 1);
                    let next = self.free.range(after..).next().or_else(|| self.free.first());
                    let block = *next.ok_or(FilesError::NoSpace)?;
                    self.free.remove(&block);
                    self.unplaced -= 1;
                    *place.insert(block)
                }
            };
            self.device.write(block, bytes).map_err(failed)?;
            self.dirty.pop_first();
        }
        Ok(())
    }

    fn page(&mut self, number: u32, page: u32) -> Result<Box<[u8]>, FilesError> {
        if let Some(bytes) = self.dirty.get(&(number, page)) {
            return Ok(bytes.clone());
        }
        let mut bytes = vec![0; BLOCK].into_boxed_slice();
        let block = self.files.get(&number).and_then(|file| *file.blocks.get(page as usize)?);
        if let Some(block) = block {
            self.device.read(block, &mut bytes).map_err(failed)?;
        }
        Ok(bytes)
    }

    /// Pages from `page` on that lie one after the other and are not in memory, up to `most`: the first block and their number.
    fn run(&self, number: u32, page: u32, most: usize) -> Option<(u32, usize)> {
        let blocks = &self.files.get(&number)?.blocks;
        let first = (*blocks.get(page as usize)?)?;
        let is_next = |&offset: &u32| {
            blocks.get((page + offset) as usize).is_some_and(|&block| block == Some(first + offset))
                && !self.dirty.contains_key(&(number, page + offset))
        };
        let count = (0..most as u32).take_while(is_next).count();
        (count > 0).then_some((first, count))
    }

    fn discard(&mut self, mut blocks: Vec<u32>) -> Result<(), FilesError> {
        blocks.sort_unstable();
        for run in blocks.chunk_by(|&one, &next| next == one + 1) {
            match self.device.trim(run[0], run.len() as u32) {
                Ok(()) | Err(VolumeError::Refused(RequestError::Unsupported { operation: Operation::Trim, .. })) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }
}

impl<D: Volume> Files for InPlaceFiles<D> {
    fn create(&mut self, number: u32) -> Result<(), FilesError> {
        if self.files.contains_key(&number) {
            return Err(FilesError::Number(number));
        }
        self.files.insert(number, File::default());
        Ok(())
    }

    fn write(&mut self, number: u32, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        let mut done = 0;
        while done < bytes.len() {
            if self.dirty.len() >= self.config.dirty_pages_max {
                self.write_back()?;
            }
            let at = offset + done as u64;
            let (page, within) = ((at / BLOCK as u64) as u32, (at % BLOCK as u64) as usize);
            let count = (BLOCK - within).min(bytes.len() - done);
            let part = &bytes[done..done + count];
            let file = self.files.get_mut(&number).ok_or(FilesError::Number(number))?;
            let pages = page as usize + 1;
            if file.blocks.len() < pages {
                let more = (pages - file.blocks.len()) as u32;
                if self.free.len() < (self.unplaced + more) as usize {
                    return Err(FilesError::NoSpace);
                }
                // Every page up to the end gets a block: there are no holes.
                let first = file.blocks.len() as u32;
                file.blocks.resize(pages, None);
                self.unplaced += more;
                for hole in first..page {
                    self.dirty.insert((number, hole), vec![0; BLOCK].into_boxed_slice());
                }
            }
            file.size = file.size.max(at + count as u64);
            if count == BLOCK {
                self.dirty.insert((number, page), part.into());
            } else {
                let mut held = self.page(number, page)?;
                held[within..within + count].copy_from_slice(part);
                self.dirty.insert((number, page), held);
            }
            done += count;
        }
        Ok(())
    }

    fn read(&mut self, number: u32, offset: u64, buffer: &mut [u8]) -> Result<usize, FilesError> {
        let len = self.size(number)?.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let mut done = 0;
        let mut pieces = Vec::new();
        while done < len {
            let at = offset + done as u64;
            let (page, within) = ((at / BLOCK as u64) as u32, (at % BLOCK as u64) as usize);
            let pages = (within + len - done).div_ceil(BLOCK);
            let count = if let Some((block, blocks)) = self.run(number, page, pages) {
                let count = (blocks * BLOCK - within).min(len - done);
                pieces.push(Piece { first: block.into(), skip: within, at: done, len: count });
                count
            } else {
                let count = (BLOCK - within).min(len - done);
                let bytes = self.page(number, page)?;
                buffer[done..done + count].copy_from_slice(&bytes[within..within + count]);
                count
            };
            done += count;
        }
        self.device.read_together(&pieces, buffer).map_err(failed)?;
        Ok(len)
    }

    fn size(&mut self, number: u32) -> Result<u64, FilesError> {
        self.files.get(&number).map(|file| file.size).ok_or(FilesError::Number(number))
    }

    fn delete(&mut self, number: u32) -> Result<(), FilesError> {
        let file = self.files.remove(&number).ok_or(FilesError::Number(number))?;
        let held: Vec<(u32, u32)> = self.dirty.range((number, 0)..=(number, u32::MAX)).map(|(&key, _)| key).collect();
        for key in held {
            self.dirty.remove(&key);
        }
        let blocks: Vec<u32> = file.blocks.iter().copied().flatten().collect();
        self.unplaced -= (file.blocks.len() - blocks.len()) as u32;
        self.free.extend(&blocks);
        if self.config.discards { self.discard(blocks) } else { Ok(()) }
    }

    fn fsync(&mut self, number: u32) -> Result<(), FilesError> {
        self.size(number)?;
        self.write_back()?;
        self.device.flush().map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_cvfs::MemoryDevice;
    use flashyard_kernel::Rng;
    use proptest::prelude::*;

    fn files(blocks: u32, discards: bool) -> InPlaceFiles<MemoryDevice> {
        InPlaceFiles::new(MemoryDevice::new(blocks), InPlaceConfig { discards, dirty_pages_max: 5 })
    }

    proptest! {
        #[test]
        fn files_are_what_was_written_and_blocks_are_neither_lost_nor_shared(seed: u64, discards: bool) {
            let mut rng = Rng::named(seed, "test");
            let mut files = files(60, discards);
            let mut model: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
            for step in 0..300_u32 {
                let number = rng.below(6) as u32;
                let known = model.contains_key(&number);
                match rng.below(8) {
                    0 if known => {
                        files.delete(number).expect("it is there");
                        model.remove(&number);
                    }
                    1 if known => files.fsync(number).expect("the volume works"),
                    _ if !known => {
                        files.create(number).expect("it is new");
                        model.insert(number, Vec::new());
                    }
                    _ => {
                        let (offset, bytes) = (rng.below(30_000) as usize, vec![step as u8; rng.below(9_000) as usize + 1]);
                        if files.write(number, offset as u64, &bytes).is_err() {
                            // It may have written a part: the file is of no use then.
                            files.delete(number).expect("it is there");
                            model.remove(&number);
                            continue;
                        }
                        let content = model.get_mut(&number).expect("it is known");
                        let end = content.len().max(offset + bytes.len());
                        content.resize(end, 0);
                        content[offset..offset + bytes.len()].copy_from_slice(&bytes);
                    }
                }
                for (&number, content) in &model {
                    let mut found = vec![0; content.len()];
                    prop_assert_eq!(files.read(number, 0, &mut found), Ok(content.len()));
                    prop_assert!(&found == content, "file {} differs after step {}", number, step);
                }
                let pages: usize = model.values().map(|content| content.len().div_ceil(BLOCK)).sum();
                prop_assert_eq!(files.used() as usize, pages);
            }
            files.write_back().expect("the volume works");
            if discards {
                prop_assert_eq!(files.device().mapped(), files.used());
            }
        }
    }

    #[test]
    fn a_page_keeps_its_block_and_only_free_blocks_are_given_up() {
        let mut files = files(20, true);
        files.create(1).expect("it is new");
        files.write(1, 0, &[1; 4 * BLOCK]).expect("it fits");
        files.fsync(1).expect("the volume works");
        let place = |files: &InPlaceFiles<MemoryDevice>| {
            let mut blocks = Vec::new();
            files.blocks_of(1, &mut blocks).expect("it is there");
            blocks
        };
        assert_eq!(place(&files), [0, 1, 2, 3]);
        files.write(1, 0, &[2; 4 * BLOCK]).expect("it fits");
        files.fsync(1).expect("the volume works");
        assert_eq!(place(&files), [0, 1, 2, 3]);
        assert_eq!(files.shrink(3), Err(FilesError::NoSpace));
        assert_eq!((files.shrink(4), files.blocks(), files.used()), (Ok(()), 4, 4));
        assert_eq!(files.write(1, 4 * BLOCK as u64, &[3; BLOCK]), Err(FilesError::NoSpace));
    }
}
