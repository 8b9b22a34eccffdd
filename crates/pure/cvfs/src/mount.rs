//! Making a file system, and finding it again.

use crate::cache::{NodeCache, PageCache};
use crate::checkpoint::Checkpoint;
use crate::device::{blocks_of, trim, zeros};
use crate::discard::Discards;
use crate::error::FsError;
use crate::fs::{Config, Counters, FileSystem, ROOT};
use crate::held::Held;
use crate::holes::{give_back, is_given_back};
use crate::layout::{Format, Layout};
use crate::names::NewInode;
use crate::node::{Kind, Node};
use crate::segments::SegmentMap;
use crate::table::PairTable;
use crate::walk::check_nodes;
use flashyard_blk::{Blocking, Volume};
use std::collections::{BTreeMap, BTreeSet};

impl<D: Volume> FileSystem<D> {
    /// Makes an empty file system on the whole device, and mounts it. Earlier contents are lost.
    ///
    /// Errors: the device is too small or fails.
    pub fn format(device: D, format: Format, config: Config, now: u64) -> Result<Self, FsError> {
        let mut device = Blocking::new(device);
        let layout = Layout::derive(format, blocks_of(&device))?;
        // No part of an earlier file system may look like a part of this one.
        for block in [0, 1, layout.packs[0], layout.packs[1]] {
            device.write(block, &zeros()[..])?;
        }
        trim(&mut device, layout.main_first, layout.blocks - layout.main_first)?;
        device.flush()?;
        let end = layout.segment_first(layout.segments);
        let mut fs = Self::empty(device, layout, config, end);
        fs.add_node(Node::inode(ROOT, NewInode::of(Kind::Directory, 0o755).inode(ROOT, now)))?;
        fs.checkpoint()?;
        layout.write_superblock(&mut fs.device, end)?;
        Ok(fs)
    }

    fn empty(device: Blocking<D>, layout: Layout, config: Config, blocks: u32) -> Self {
        let [addresses, states, owners] = layout.tables.map(PairTable::new);
        Self {
            device,
            layout,
            config,
            nodes: NodeCache::default(),
            pages: PageCache::default(),
            directories: BTreeMap::new(),
            segments: SegmentMap::new(&layout, layout.segments_in(blocks)),
            addresses,
            states,
            owners,
            discards: Discards::default(),
            version: 0,
            blocks,
            orphans: BTreeSet::new(),
            held: Held::default(),
            unwritten: 0,
            changed: false,
            frozen: false,
            resizing: None,
            counters: Counters::default(),
        }
    }

    /// Mounts the file system on the device: the newest checkpoint, with announced remaps and deletions completed.
    /// A deleted file whose nodes cannot be read stays as it is.
    ///
    /// Errors: no file system, a damaged one, the device fails.
    pub fn mount(device: D, config: Config) -> Result<Self, FsError> {
        let mut device = Blocking::new(device);
        let (layout, blocks_named, agree) = Layout::read_superblock(&mut device)?;
        let checkpoint = Checkpoint::read(&mut device, &layout)?;
        let blocks = checkpoint.blocks;
        if blocks > layout.blocks || blocks > blocks_of(&device) || layout.segment_first(0) > blocks {
            return Err(FsError::NotAFileSystem("the device is smaller than the file system"));
        }
        let mut fs = Self::empty(device, layout, config, blocks);
        fs.restore(&checkpoint)?;
        if !agree || blocks != blocks_named {
            // A change of size was interrupted between its checkpoint and its superblock.
            fs.write_size()?;
        }
        fs.finish_remaps(&checkpoint.moves)?;
        for ino in checkpoint.orphans {
            fs.prepare(crate::fs::Cost { new: 0, dirty: 12, frees: true })?;
            // A file that cannot be read cannot be deleted: it stays, a check reports it, and all else is there.
            if check_nodes(&mut fs, ino, 0).is_ok() {
                fs.orphans.remove(&ino);
                fs.delete_inode(ino)?;
            }
        }
        fs.sync()?;
        Ok(fs)
    }

    fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), FsError> {
        let damaged = FsError::NotAFileSystem("a checkpoint that makes no sense");
        let tables = [&mut self.addresses, &mut self.states, &mut self.owners];
        for ((table, shape), states) in tables.into_iter().zip(self.layout.tables).zip(&checkpoint.tables) {
            *table = PairTable::restore(shape, states).ok_or(damaged.clone())?;
        }
        let mut whole = Vec::new();
        for segment in 0..self.layout.segments {
            let entry = self.states.get(&mut self.device, segment)?;
            if self.segments.restore(segment, entry).ok_or(damaged.clone())? {
                whole.push(segment);
            }
        }
        self.segments.restore_logs(checkpoint.logs).ok_or(damaged)?;
        self.version = checkpoint.version;
        self.nodes.used = checkpoint.nodes_used;
        self.nodes.next = checkpoint.next_nid;
        self.orphans = checkpoint.orphans.iter().copied().collect();
        for segment in 0..self.layout.segments_in(self.blocks) {
            find_free(self, segment);
        }
        for segment in whole {
            give_back(self, segment, u32::MAX)?;
        }
        Ok(())
    }

    /// Writes the size to the superblock, and gives the blocks beyond it back to the device.
    pub(crate) fn write_size(&mut self) -> Result<(), FsError> {
        self.layout.write_superblock(&mut self.device, self.blocks)?;
        self.discards.forget_from(self.blocks);
        let end = blocks_of(&self.device).min(self.layout.blocks);
        if end > self.blocks {
            trim(&mut self.device, self.blocks, end - self.blocks)?;
        }
        Ok(())
    }
}

/// Makes the blocks of a segment that hold nothing candidates for a report to the device: the last checkpoint needs none
/// of them.
fn find_free<D: Volume>(fs: &mut FileSystem<D>, segment: u32) {
    let first = fs.layout.segment_first(segment);
    for (from, end) in fs.segments.runs_free(segment) {
        fs.discards.found(first + from, first + end);
    }
    let reserved = fs.segments.reserved_in(segment);
    if reserved == 0 {
        return;
    }
    let mut given: Vec<u32> = fs.segments.valid_in(segment).map(|within| first + within).collect();
    // A table that cannot be read is no reason against a mount.
    given.retain(|&block| is_given_back(fs, block).unwrap_or(false));
    if given.len() == reserved as usize {
        given.iter().for_each(|&block| fs.discards.found(block, block + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryDevice, Method};
    use flashyard_units::{SimSpan, SimTime};

    /// The device holds the blocks that are in use, and no others.
    fn assert_reported(mut fs: FileSystem<MemoryDevice>) -> MemoryDevice {
        for tick in 1..200 {
            fs.tick(SimTime::ZERO + SimSpan::from_ms(tick * 10_050), false).expect("memory does not fail");
        }
        let mut used = 0;
        for block in fs.layout.segment_first(0)..fs.blocks {
            let place = fs.layout.place(block).expect("it is in a segment");
            let holds = fs.segments.is_valid(place) && !is_given_back(&mut fs, block).expect("memory does not fail");
            assert_eq!(fs.device().is_mapped(block), holds, "block {block}");
            used += u64::from(holds);
        }
        assert_eq!((used, fs.usage().discards_pending), (fs.usage().used, 0));
        fs.into_device()
    }

    #[test]
    fn blocks_that_were_free_before_a_mount_are_reported_after_it() {
        let format = Format { segment_blocks: 32, id: 3 };
        let mut fs = FileSystem::format(MemoryDevice::new(3000), format, Config::default(), 0).expect("it has room");
        let [gone, stays] = [&b"gone"[..], b"stays"]
            .map(|name| fs.create(ROOT, name, NewInode::of(Kind::File, 0o644), 0).expect("it has room"));
        for page in 0..300 {
            for ino in [gone, stays] {
                fs.write(ino, page * 4096, &[7; 4096], 0).expect("it has room");
            }
            if page % 50 == 0 {
                fs.sync().expect("memory does not fail");
            }
        }
        fs.sync().expect("memory does not fail");
        fs.unlink(ROOT, b"gone", 0).expect("it is there");
        fs.sync().expect("memory does not fail");
        // Written beside the last checkpoint, and lost.
        fs.write(stays, 0, &[8; 100 * 4096], 0).expect("it has room");
        fs.write_pages().expect("memory does not fail");
        let fs = FileSystem::mount(fs.into_device(), Config::default()).expect("it is whole");
        let mut fs = FileSystem::mount(assert_reported(fs), Config::default()).expect("it is whole");
        fs.write(stays, 0, &[9; 100 * 4096], 0).expect("it has room");
        fs.sync().expect("memory does not fail");
        fs.shrink(2000, Method::Holes).expect("it has room");
        assert!(fs.usage().reserved > 0);
        let fs = FileSystem::mount(fs.into_device(), Config::default()).expect("it is whole");
        let mut fs = FileSystem::mount(assert_reported(fs), Config::default()).expect("it is whole");
        assert!(fs.check().expect("memory does not fail").is_clean());
        let mut found = vec![0; 4096];
        fs.read(stays, 299 * 4096, &mut found).expect("it is there");
        assert_eq!(found, [7; 4096]);
    }
}
