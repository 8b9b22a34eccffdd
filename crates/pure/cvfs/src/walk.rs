//! Looking at all nodes of an inode before an operation that needs them: what cannot be read is refused while nothing has
//! changed.

use crate::error::FsError;
use crate::fs::FileSystem;
use crate::node::{HOLE, UNWRITTEN};
use flashyard_blk::Volume;

/// Nodes in memory from which on a walk keeps none of its own: 16 MiB.
const KEPT_MAX: usize = 4096;

/// Reads the nodes of an inode that point to pages from number `from` on. Each of them belongs where it is, and what they
/// point to can be freed. Nothing changes.
///
/// Errors: no such inode, a node that cannot be read or is damaged.
pub(crate) fn check_nodes<D: Volume>(fs: &mut FileSystem<D>, ino: u32, from: u64) -> Result<(), FsError> {
    fs.inode(ino)?;
    check_below(fs, ino, ino, from)
}

fn check_below<D: Volume>(fs: &mut FileSystem<D>, ino: u32, nid: u32, from: u64) -> Result<(), FsError> {
    let at = fs.address(nid)?;
    check_block(fs, at)?;
    let node = fs.node(nid)?;
    let below = |(slot, &pointer): (usize, &u32)| {
        let (first, count) = node.pages_below(slot);
        (pointer != HOLE && first + count > from).then_some((pointer, first, node.child_level(slot)))
    };
    let held: Vec<_> = node.pointers.iter().enumerate().filter_map(below).collect();
    for (pointer, first, level) in held {
        let Some(level) = level else {
            check_block(fs, pointer)?;
            continue;
        };
        let damaged = FsError::Corrupt { what: "node", block: at };
        let child = match fs.node(pointer) {
            Err(FsError::NotFound) => return Err(damaged),
            child => child?,
        };
        // Levels fall from node to node, so that the walk ends.
        if (child.ino, child.base, child.level, child.inode) != (ino, first, level, None) {
            return Err(damaged);
        }
        check_below(fs, ino, pointer, from)?;
        if fs.nodes.nodes.len() > KEPT_MAX && !fs.nodes.is_dirty(pointer) {
            fs.nodes.nodes.remove(&pointer);
        }
    }
    Ok(())
}

/// Whether a block is one that can be freed.
fn check_block<D: Volume>(fs: &FileSystem<D>, block: u32) -> Result<(), FsError> {
    if block == UNWRITTEN {
        return Ok(());
    }
    let place = fs.layout.place(block).ok_or(FsError::Corrupt { what: "pointer", block })?;
    if fs.segments.is_valid(place) { Ok(()) } else { Err(FsError::Corrupt { what: "valid bit", block }) }
}
