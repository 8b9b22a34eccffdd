//! The file system: its state, its checkpoint, and its shares of space.

use crate::cache::{NodeCache, PageCache};
use crate::checkpoint::{Checkpoint, Move};
use crate::directory::Directory;
use crate::discard::{DiscardPolicy, Discards};
use crate::error::FsError;
use crate::held::Held;
use crate::layout::Layout;
use crate::resizing::Resizing;
use crate::segments::{SegmentMap, spare};
use crate::table::PairTable;
use flashyard_blk::{Blocking, Volume};
use std::collections::{BTreeMap, BTreeSet};

/// The inode of the root directory.
pub const ROOT: u32 = 1;

/// Names of directories kept in memory after a checkpoint.
const NAMES_MAX: usize = 1 << 20;

/// Choice of the segment to clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaning {
    /// The segment with the fewest valid blocks.
    Greedy,
    /// The segment with the most space freed for its cost, times the checkpoints since it was written:
    /// `(free / (used + free of a copy)) * age`, as in Sprite LFS. [X]
    CostBenefit,
}

/// Settings of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Choice of the segment to clean.
    pub cleaning: Cleaning,
    /// When free blocks are reported to the device.
    pub discards: DiscardPolicy,
    /// Blocks that a range must have to be reported, as time passes: at least 1.
    pub discard_blocks_min: u32,
    /// Pages in memory before they are written: at least 1. [A] 4096, which are 16 MiB.
    pub dirty_pages_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cleaning: Cleaning::CostBenefit,
            discards: DiscardPolicy::AGGRESSIVE,
            discard_blocks_min: 1,
            dirty_pages_max: 4096,
        }
    }
}

/// Work done since mounting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Pages that were put into memory to be written, each time that one was.
    pub pages_put: u64,
    /// Of these, pages that were there already, and took the change in.
    pub pages_absorbed: u64,
    /// Pages that were cut off before they were written.
    pub pages_dropped: u64,
    /// Pages that cleaning and shrinking took into memory, to write them elsewhere.
    pub pages_carried: u64,
    /// Pages written to the logs.
    pub pages_written: u64,
    /// Nodes written to the logs.
    pub nodes_written: u64,
    /// Segments cleaned.
    pub segments_cleaned: u64,
    /// Valid blocks moved by cleaning.
    pub blocks_cleaned: u64,
    /// Blocks reported to the device as free.
    pub blocks_discarded: u64,
    /// Blocks moved by shrinking, by any method.
    pub blocks_moved: u64,
}

/// Space, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Blocks of the volume.
    pub blocks: u32,
    /// Blocks that files, directories and nodes may use in all.
    pub capacity: u64,
    /// Blocks that they use, and that are set aside for pages in memory.
    pub used: u64,
    /// Blocks counted as allocated by shrinking with holes.
    pub reserved: u64,
    /// Pages in memory that are not on the device yet.
    pub pages_dirty: u64,
    /// Free blocks not yet reported to the device since mounting.
    pub discards_pending: u64,
    /// Free segments.
    pub segments_free: u32,
    /// Blocks of a segment.
    pub segment_blocks: u32,
    /// Least size that the volume could shrink to now, in blocks.
    pub blocks_min: u32,
    /// Inodes and nodes in use.
    pub nodes: u32,
    /// Inodes and nodes that there can be.
    pub nodes_max: u32,
}

/// Most space that an operation needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Blocks that were not in use before.
    pub(crate) new: u64,
    /// Blocks to be written at the next checkpoint.
    pub(crate) dirty: u64,
    /// Whether it gives space back: then it may use what is kept for that.
    pub(crate) frees: bool,
}

/// A mounted file system.
#[derive(Debug)]
pub struct FileSystem<D> {
    pub(crate) device: Blocking<D>,
    pub(crate) layout: Layout,
    pub(crate) config: Config,
    pub(crate) nodes: NodeCache,
    pub(crate) pages: PageCache,
    pub(crate) directories: BTreeMap<u32, Directory>,
    pub(crate) segments: SegmentMap,
    /// Addresses of nodes.
    pub(crate) addresses: PairTable,
    /// States of segments.
    pub(crate) states: PairTable,
    /// Owner of each block: node and slot.
    pub(crate) owners: PairTable,
    pub(crate) discards: Discards,
    /// Version of the last checkpoint.
    pub(crate) version: u64,
    /// Blocks of the volume.
    pub(crate) blocks: u32,
    /// Inodes without a name that are still held.
    pub(crate) orphans: BTreeSet<u32>,
    pub(crate) held: Held,
    /// Pages and nodes that have no block yet.
    pub(crate) unwritten: u64,
    /// Something besides nodes and pages changed.
    pub(crate) changed: bool,
    pub(crate) frozen: bool,
    pub(crate) resizing: Option<Resizing>,
    pub(crate) counters: Counters,
}

impl<D: Volume> FileSystem<D> {
    /// Work done since mounting.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The device below.
    pub fn device(&self) -> &D {
        self.device.volume()
    }

    /// The device below, for counts and cuts. Writing to it behind the file system destroys it.
    pub fn device_mut(&mut self) -> &mut D {
        self.device.volume_mut()
    }

    /// Gives the device back without a checkpoint: like a loss of power that loses nothing written.
    pub fn into_device(self) -> D {
        self.device.into_volume()
    }

    /// Space in use and free.
    pub fn usage(&self) -> Usage {
        Usage {
            blocks: self.blocks,
            capacity: self.capacity(self.segments.usable()),
            used: self.segments.valid() + self.unwritten,
            reserved: self.segments.reserved(),
            pages_dirty: self.pages.len() as u64,
            discards_pending: self.discards.pending(),
            segments_free: self.segments.free_count(),
            segment_blocks: self.layout.segment_blocks,
            blocks_min: self.blocks_min(),
            nodes: self.nodes.used,
            nodes_max: self.addresses.entries() - 1,
        }
    }

    /// Whether a checkpoint would write anything.
    pub fn is_dirty(&self) -> bool {
        self.changed || !self.pages.is_empty() || self.nodes.dirty_count() > 0 || self.segments.dirty_count() > 0
    }

    /// Makes everything done so far survive a loss of power: what `fsync` and `sync` mean here.
    ///
    /// Errors: the device fails; then the file system is frozen.
    pub fn sync(&mut self) -> Result<(), FsError> {
        self.check_frozen()?;
        if self.is_dirty() { self.checkpoint() } else { Ok(()) }
    }

    pub(crate) fn check_frozen(&self) -> Result<(), FsError> {
        if self.frozen { Err(FsError::Frozen) } else { Ok(()) }
    }

    /// Blocks that files may use of this many segments.
    pub(crate) fn capacity(&self, segments: u32) -> u64 {
        u64::from(segments.saturating_sub(spare(segments))) * u64::from(self.layout.segment_blocks)
    }

    /// Blocks that must stay writable so that something can be deleted, moved or cleaned: a segment, and nodes for each page
    /// of it.
    pub(crate) fn reserve(&self) -> u64 {
        2 * u64::from(self.layout.segment_blocks)
    }

    /// Blocks that a checkpoint would write to the logs.
    pub(crate) fn dirty_blocks(&self) -> u64 {
        (self.pages.len() + self.nodes.dirty_count()) as u64
    }

    /// Makes sure that an operation of this cost, and the checkpoint after it, find their space.
    ///
    /// Errors: they do not.
    pub(crate) fn prepare(&mut self, cost: Cost) -> Result<(), FsError> {
        self.check_frozen()?;
        let used = self.segments.valid() + self.unwritten;
        if !cost.frees && used + cost.new > self.capacity(self.segments.usable()) {
            return Err(FsError::NoSpace);
        }
        if self.pages.len() >= self.config.dirty_pages_max {
            self.write_pages()?;
        }
        if self.nodes.dirty_count() >= self.config.dirty_pages_max {
            self.checkpoint()?;
        }
        if self.segments.writable() >= self.dirty_blocks() + cost.dirty + self.reserve() {
            return Ok(());
        }
        // A checkpoint lets blocks that died since the last one be written again.
        if self.is_dirty() {
            self.checkpoint()?;
        }
        // Deleting may use the rest of the reserve.
        let least = if cost.frees { 0 } else { self.reserve() };
        if self.segments.writable() >= self.dirty_blocks() + cost.dirty + least {
            return Ok(());
        }
        Err(FsError::NoSpace)
    }

    /// Writes everything that is in memory only, and makes it count.
    pub(crate) fn checkpoint(&mut self) -> Result<(), FsError> {
        self.checkpoint_announcing(Vec::new())
    }

    /// A checkpoint that announces remaps: a mount after a loss of power repeats them.
    pub(crate) fn checkpoint_announcing(&mut self, moves: Vec<Move>) -> Result<(), FsError> {
        self.check_frozen()?;
        let done = self.try_checkpoint(moves);
        // Memory and device no longer agree: the last checkpoint is the truth.
        self.frozen |= done.is_err();
        done
    }

    fn try_checkpoint(&mut self, moves: Vec<Move>) -> Result<(), FsError> {
        self.write_pages()?;
        self.write_nodes()?;
        for segment in self.segments.take_dirty() {
            let entry = self.states.get_mut(&mut self.device, segment)?;
            self.segments.encode(segment, entry);
        }
        for table in [&mut self.addresses, &mut self.states, &mut self.owners] {
            table.write(&mut self.device)?;
        }
        self.device.flush()?;
        self.version += 1;
        let checkpoint = Checkpoint {
            version: self.version,
            blocks: self.blocks,
            nodes_used: self.nodes.used,
            next_nid: self.nodes.next,
            logs: self.segments.logs(),
            tables: [&self.addresses, &self.states, &self.owners].map(PairTable::states),
            orphans: self.orphans.iter().copied().collect(),
            moves,
        };
        checkpoint.write(&mut self.device, &self.layout)?;
        self.counters.checkpoints += 1;
        self.changed = false;
        self.segments.commit();
        self.discards.commit();
        self.forget();
        Ok(())
    }

    /// Drops what memory need not hold: all of it is on the device.
    fn forget(&mut self) {
        self.nodes.forget();
        if self.directories.values().map(Directory::len).sum::<usize>() > NAMES_MAX {
            self.directories.clear();
        }
    }
}

/// Drops clean nodes, tables and names beyond what is kept after a checkpoint, where there is nothing to make one of: programs that only read
/// bring more of them in all the time.
pub fn forget_clean<D: Volume>(fs: &mut FileSystem<D>) {
    if !fs.is_dirty() {
        fs.forget();
        [&mut fs.addresses, &mut fs.states, &mut fs.owners].into_iter().for_each(PairTable::forget);
    }
}
