//! Nodes and pages in memory, and blocks on their way to the device.

use crate::device::{BLOCK_BYTES, Block};
use crate::log::Log;
use crate::node::Node;
use flashyard_blk::{Blocking, Volume, VolumeError};
use std::collections::{BTreeMap, BTreeSet};

/// Clean nodes kept in memory after a checkpoint: 16 MiB.
const CLEAN_MAX: usize = 4096;
/// Blocks that are written, or read, with one command at most: 1 MiB.
pub(crate) const RUN_BLOCKS_MAX: usize = 256;

/// Nodes in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeCache {
    pub(crate) nodes: BTreeMap<u32, Node>,
    pub(crate) dirty: BTreeSet<u32>,
    /// Nodes that only cleaning has touched.
    pub(crate) cold: BTreeSet<u32>,
    /// Nodes in use.
    pub(crate) used: u32,
    /// Where to look for a free one first.
    pub(crate) next: u32,
}

impl NodeCache {
    pub(crate) fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    pub(crate) fn is_dirty(&self, nid: u32) -> bool {
        self.dirty.contains(&nid)
    }

    pub(crate) fn forget(&mut self) {
        if self.nodes.len() > CLEAN_MAX {
            self.nodes.retain(|nid, _| self.dirty.contains(nid));
        }
    }
}

/// A page in memory that is not on the device yet.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) bytes: Box<Block>,
    pub(crate) log: Log,
}

/// Pages by inode and number.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageCache(pub(crate) BTreeMap<(u32, u64), Page>);

impl PageCache {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn holds(&self, ino: u32, page: u64) -> bool {
        self.0.contains_key(&(ino, page))
    }
}

/// Adjacent blocks on their way to the device, so that they are one command.
#[derive(Debug, Default)]
pub(crate) struct Run {
    first: u32,
    bytes: Vec<u8>,
}

impl Run {
    /// Takes a block in; writes those before it if it is not the next one.
    pub(crate) fn add(
        &mut self,
        device: &mut Blocking<impl Volume>,
        block: u32,
        bytes: &[u8],
    ) -> Result<(), VolumeError> {
        let held = self.bytes.len() / BLOCK_BYTES;
        if held == RUN_BLOCKS_MAX || (held > 0 && block != self.first + held as u32) {
            self.write(device)?;
        }
        if self.bytes.is_empty() {
            self.first = block;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes the blocks held.
    pub(crate) fn write(&mut self, device: &mut Blocking<impl Volume>) -> Result<(), VolumeError> {
        if !self.bytes.is_empty() {
            device.write(self.first, &self.bytes)?;
            self.bytes.clear();
        }
        Ok(())
    }
}
