//! Nodes in memory, and the way from a file's page to its block.

use crate::bytes::{put, u32_at};
use crate::cache::Run;
use crate::device::zeros;
use crate::error::FsError;
use crate::fs::FileSystem;
use crate::log::Log;
use crate::node::{HOLE, Inode, Kind, Node, Path, UNWRITTEN, WHOLE_NODE, decode_as};
use flashyard_blk::Volume;
use std::collections::BTreeMap;

impl<D: Volume> FileSystem<D> {
    /// Where a node lies: [`HOLE`] for none, [`UNWRITTEN`] in memory only.
    pub(crate) fn address(&mut self, nid: u32) -> Result<u32, FsError> {
        if nid == 0 || nid >= self.addresses.entries() {
            return Ok(HOLE);
        }
        Ok(u32_at(self.addresses.get(&mut self.device, nid)?, 0))
    }

    pub(crate) fn set_address(&mut self, nid: u32, address: u32) -> Result<(), FsError> {
        put(self.addresses.get_mut(&mut self.device, nid)?, 0, &address.to_le_bytes());
        Ok(())
    }

    /// A node to look at.
    pub(crate) fn node(&mut self, nid: u32) -> Result<&Node, FsError> {
        if !self.nodes.nodes.contains_key(&nid) {
            let at = self.address(nid)?;
            if at == HOLE || at == UNWRITTEN {
                return Err(FsError::NotFound);
            }
            let mut block = zeros();
            self.device.read(at, &mut block[..])?;
            self.nodes.nodes.insert(nid, decode_as(nid, &block[..], at)?);
        }
        Ok(&self.nodes.nodes[&nid])
    }

    /// A node to be changed.
    pub(crate) fn node_mut(&mut self, nid: u32) -> Result<&mut Node, FsError> {
        self.node(nid)?;
        self.nodes.dirty.insert(nid);
        self.nodes.cold.remove(&nid);
        Ok(self.nodes.nodes.get_mut(&nid).expect("just read"))
    }

    /// A node that is written again at the next checkpoint, to another place, for no reason of its own.
    pub(crate) fn node_moved(&mut self, nid: u32) -> Result<&mut Node, FsError> {
        self.node(nid)?;
        if self.nodes.dirty.insert(nid) {
            self.nodes.cold.insert(nid);
        }
        Ok(self.nodes.nodes.get_mut(&nid).expect("just read"))
    }

    /// The inode of a file.
    ///
    /// Errors: there is none with this number.
    pub fn inode(&mut self, ino: u32) -> Result<Inode, FsError> {
        self.node(ino)?.inode.ok_or(FsError::NotFound)
    }

    pub(crate) fn inode_mut(&mut self, ino: u32) -> Result<&mut Inode, FsError> {
        self.node_mut(ino)?.inode.as_mut().ok_or(FsError::NotFound)
    }

    /// A number for a new node. The node must follow at once.
    fn take_nid(&mut self) -> Result<u32, FsError> {
        let entries = self.addresses.entries();
        for step in 0..entries {
            // Number zero means no node, and number one is the root.
            let nid = 2 + (self.nodes.next.wrapping_add(step)) % (entries - 2);
            if self.address(nid)? == HOLE && !self.held.is_unused(nid) {
                self.nodes.next = nid - 1;
                return Ok(nid);
            }
        }
        Err(FsError::NoSpace)
    }

    pub(crate) fn add_node(&mut self, node: Node) -> Result<(), FsError> {
        self.set_address(node.nid, UNWRITTEN)?;
        self.unwritten += 1;
        self.nodes.used += 1;
        self.nodes.dirty.insert(node.nid);
        self.nodes.cold.remove(&node.nid);
        self.nodes.nodes.insert(node.nid, node);
        Ok(())
    }

    pub(crate) fn add_inode(&mut self, inode: Inode) -> Result<u32, FsError> {
        let ino = self.take_nid()?;
        self.add_node(Node::inode(ino, inode))?;
        Ok(ino)
    }

    /// Forgets a node and frees its block.
    pub(crate) fn drop_node(&mut self, nid: u32) -> Result<(), FsError> {
        match self.address(nid)? {
            HOLE => {}
            UNWRITTEN => self.unwritten -= 1,
            block => self.free_block(block)?,
        }
        self.set_address(nid, HOLE)?;
        self.nodes.used -= 1;
        self.nodes.dirty.remove(&nid);
        self.nodes.cold.remove(&nid);
        self.nodes.nodes.remove(&nid);
        self.changed = true;
        Ok(())
    }

    /// The node and slot that point to a page; `None` when a node on the way is missing.
    pub(crate) fn find_slot(&mut self, ino: u32, page: u64) -> Result<Option<(u32, usize)>, FsError> {
        let path = Path::to(page).ok_or(FsError::FileTooLarge)?;
        let mut nid = ino;
        for step in 0..path.depth - 1 {
            nid = self.node(nid)?.pointers[usize::from(path.slots[step])];
            if nid == HOLE {
                return Ok(None);
            }
        }
        Ok(Some((nid, path.slots[path.depth - 1].into())))
    }

    /// The node and slot that point to a page, with all nodes on the way; the last one is going to be changed.
    pub(crate) fn make_slot(&mut self, ino: u32, page: u64) -> Result<(u32, usize), FsError> {
        let path = Path::to(page).ok_or(FsError::FileTooLarge)?;
        let mut nid = ino;
        for step in 0..path.depth - 1 {
            let slot = usize::from(path.slots[step]);
            let node = self.node(nid)?;
            let level = node.child_level(slot).expect("only the last slot of a way points to a page");
            let mut child = node.pointers[slot];
            if child == HOLE {
                child = self.take_nid()?;
                self.add_node(Node::pointers(child, ino, path.bases[step + 1], level))?;
                self.node_mut(nid)?.pointers[slot] = child;
            }
            nid = child;
        }
        self.node_mut(nid)?;
        Ok((nid, path.slots[path.depth - 1].into()))
    }

    /// Nodes that [`Self::make_slot`] might have to make.
    pub(crate) fn nodes_missing(&mut self, ino: u32, page: u64) -> Result<u64, FsError> {
        let path = Path::to(page).ok_or(FsError::FileTooLarge)?;
        let mut nid = ino;
        for step in 0..path.depth - 1 {
            nid = self.node(nid)?.pointers[usize::from(path.slots[step])];
            if nid == HOLE {
                return Ok((path.depth - 1 - step) as u64);
            }
        }
        Ok(0)
    }

    /// Takes a block from a log for a node or page, valid and with its owner.
    pub(crate) fn take_block(&mut self, log: Log, nid: u32, slot: u16) -> Result<u32, FsError> {
        let place = self.segments.allocate(log, self.version + 1).ok_or(FsError::NoSpace)?;
        let block = self.layout.segment_first(place.0) + place.1;
        self.segments.set(place);
        let owned = self.set_owner(block, nid, slot);
        // The block is valid and has no owner: no checkpoint may say so.
        self.frozen |= owned.is_err();
        owned?;
        self.discards.written(block);
        Ok(block)
    }

    /// The last holder of a block no longer needs it.
    pub(crate) fn free_block(&mut self, block: u32) -> Result<(), FsError> {
        let place = self.layout.place(block).ok_or(FsError::Corrupt { what: "pointer", block })?;
        if !self.segments.clear(place) {
            return Err(FsError::Corrupt { what: "valid bit", block });
        }
        self.discards.freed(block);
        Ok(())
    }

    fn owner_index(&self, block: u32) -> Result<(u32, usize), FsError> {
        let (segment, within) = self.layout.place(block).ok_or(FsError::Corrupt { what: "pointer", block })?;
        Ok((segment, within as usize * 6))
    }

    /// Node and slot that hold a block, or did when it was written.
    pub(crate) fn owner(&mut self, block: u32) -> Result<(u32, u16), FsError> {
        let (segment, at) = self.owner_index(block)?;
        let entry = self.owners.get(&mut self.device, segment)?;
        Ok((u32_at(entry, at), crate::bytes::u16_at(entry, at + 4)))
    }

    pub(crate) fn set_owner(&mut self, block: u32, nid: u32, slot: u16) -> Result<(), FsError> {
        let (segment, at) = self.owner_index(block)?;
        let entry = self.owners.get_mut(&mut self.device, segment)?;
        put(entry, at, &nid.to_le_bytes());
        put(entry, at + 4, &slot.to_le_bytes());
        Ok(())
    }

    /// Writes changed nodes to their logs.
    pub(crate) fn write_nodes(&mut self) -> Result<(), FsError> {
        let mut by_log = BTreeMap::<Log, Vec<u32>>::new();
        for &nid in &self.nodes.dirty {
            let node = &self.nodes.nodes[&nid];
            let hot = node.inode.is_some() && !self.nodes.cold.contains(&nid);
            by_log.entry(if hot { Log::NodeHot } else { Log::NodeCold }).or_default().push(nid);
        }
        for (log, nids) in by_log {
            let mut run = Run::default();
            for nid in nids {
                match self.address(nid)? {
                    UNWRITTEN => self.unwritten -= 1,
                    block => self.free_block(block)?,
                }
                let block = self.take_block(log, nid, WHOLE_NODE)?;
                self.set_address(nid, block)?;
                let bytes = self.nodes.nodes[&nid].encode(self.version + 1);
                run.add(&mut self.device, block, &bytes[..])?;
                self.counters.nodes_written += 1;
            }
            run.write(&mut self.device)?;
        }
        self.nodes.dirty.clear();
        self.nodes.cold.clear();
        Ok(())
    }

    /// Whether pages of an inode are rewritten often by their nature.
    pub(crate) fn is_directory(&mut self, ino: u32) -> Result<bool, FsError> {
        Ok(self.inode(ino)?.kind == Kind::Directory)
    }
}
