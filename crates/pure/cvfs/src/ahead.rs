//! Reading ahead: what moving a batch of blocks needs is sent for at once, tables first and then nodes, and waited for once each.
//!
//! Source: \[C\] `gc_data_segment` of the artifact's file system, which asks for the node addresses, the nodes and the pages of a
//! whole segment before it waits for any of them.

use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::fs::FileSystem;
use crate::node::{HOLE, UNWRITTEN, WHOLE_NODE, decode_as};
use flashyard_blk::{Piece, Volume};
use std::collections::BTreeSet;

/// Reads the owners of the blocks of segments in this range together, of as many segments as have `blocks` valid blocks; the first
/// segment that is left out.
pub(crate) fn read_owners<D: Volume>(
    fs: &mut FileSystem<D>,
    segments: std::ops::Range<u32>,
    blocks: u32,
) -> Result<u32, FsError> {
    let (mut next, mut left) = (segments.start, blocks);
    let mut wanted = Vec::new();
    while next < segments.end && left > 0 {
        let valid = fs.segments.valid_count(next) - fs.segments.reserved_in(next);
        if valid > 0 {
            wanted.push(next);
        }
        left = left.saturating_sub(valid);
        next += 1;
    }
    fs.owners.load_together(&mut fs.device, wanted)?;
    Ok(next)
}

/// Reads the owners of the blocks of segments from `segment` down together, of as many as have room for `blocks` blocks between valid
/// ones; the last segment of them.
pub(crate) fn read_owners_down<D: Volume>(fs: &mut FileSystem<D>, segment: u32, blocks: u32) -> Result<u32, FsError> {
    let (mut next, mut left) = (segment + 1, blocks);
    let mut wanted = Vec::new();
    while next > 0 && left > 0 {
        next -= 1;
        let room = fs.segments.slack_in(next);
        if room > 0 {
            wanted.push(next);
        }
        left = left.saturating_sub(room);
    }
    fs.owners.load_together(&mut fs.device, wanted)?;
    Ok(next)
}

/// Reads what points to these blocks: their owners, then the addresses of the owning nodes, and then these nodes. Nodes that are moved
/// as a whole are read only if `whole` says so.
pub(crate) fn read_holders<D: Volume>(fs: &mut FileSystem<D>, blocks: &[u32], whole: bool) -> Result<(), FsError> {
    let segments: BTreeSet<u32> = blocks.iter().filter_map(|&block| fs.layout.place(block)).map(|at| at.0).collect();
    fs.owners.load_together(&mut fs.device, segments)?;
    let (mut moved, mut read) = (BTreeSet::new(), BTreeSet::new());
    for &block in blocks {
        let (nid, slot) = fs.owner(block)?;
        // A damaged owner is told when the turn comes to its block.
        if nid != 0 && nid < fs.addresses.entries() {
            if slot == WHOLE_NODE && !whole {
                moved.insert(nid)
            } else {
                read.insert(nid)
            };
        }
    }
    fs.addresses.load_together(&mut fs.device, moved.union(&read).copied())?;
    read_nodes(fs, &read)
}

/// Reads those nodes that are not in memory, all together; adjacent ones are one command.
fn read_nodes<D: Volume>(fs: &mut FileSystem<D>, nids: &BTreeSet<u32>) -> Result<(), FsError> {
    let mut wanted = Vec::new();
    for &nid in nids {
        let at = fs.address(nid)?;
        // Nodes that are nowhere are told as those with damaged owners are.
        if ![HOLE, UNWRITTEN].contains(&at) && !fs.nodes.nodes.contains_key(&nid) {
            wanted.push((at, nid));
        }
    }
    wanted.sort_unstable();
    let mut pieces = Vec::<Piece>::new();
    for (index, &(at, _)) in wanted.iter().enumerate() {
        match pieces.last_mut() {
            Some(last) if last.first + (last.len / BLOCK_BYTES) as u64 == u64::from(at) => last.len += BLOCK_BYTES,
            _ => pieces.push(Piece { first: at.into(), skip: 0, at: index * BLOCK_BYTES, len: BLOCK_BYTES }),
        }
    }
    let mut bytes = vec![0; wanted.len() * BLOCK_BYTES];
    fs.device.read_together(&pieces, &mut bytes)?;
    for ((at, nid), bytes) in wanted.into_iter().zip(bytes.chunks(BLOCK_BYTES)) {
        fs.nodes.nodes.insert(nid, decode_as(nid, bytes, at)?);
    }
    Ok(())
}
