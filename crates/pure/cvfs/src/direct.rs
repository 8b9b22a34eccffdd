//! Overwrites in place, past the page cache and the logs.
//!
//! A page that has a block keeps it: no pointer changes, and no checkpoint is needed. After a loss of power it holds the old
//! bytes or the new ones, whatever the last checkpoint says.
//!
//! Source: \[X\] F2FS, whose direct overwrites are in place unless it is mounted purely log-structured.

use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::fs::FileSystem;
use crate::node::{HOLE, UNWRITTEN};
use flashyard_blk::Volume;

/// Blocks of the device that hold the pages of a file, in the order of the file; pages that are only in memory and holes are
/// left out.
///
/// Errors: no such inode, the device fails.
pub fn blocks_of_file<D: Volume>(fs: &mut FileSystem<D>, ino: u32, into: &mut Vec<u32>) -> Result<(), FsError> {
    let pages = fs.inode(ino)?.size.div_ceil(BLOCK_BYTES as u64);
    for page in 0..pages {
        let block = fs.block_of(ino, page)?;
        if block != HOLE && block != UNWRITTEN {
            into.push(block);
        }
    }
    Ok(())
}

/// Overwrites whole pages of a file in place where they have blocks; pages that have none yet, or that are changed in
/// memory, are written as [`FileSystem::write`] does. Returns the pages that were overwritten in place.
///
/// Errors: not whole pages, beyond the end of the file, no such inode; no space, the device fails (then pages before are written).
pub fn overwrite<D: Volume>(
    fs: &mut FileSystem<D>,
    ino: u32,
    offset: u64,
    bytes: &[u8],
    now: u64,
) -> Result<u64, FsError> {
    let page_bytes = BLOCK_BYTES as u64;
    let end = offset.checked_add(bytes.len() as u64).filter(|&end| end <= fs.inode(ino).map_or(0, |inode| inode.size));
    if end.is_none() || !offset.is_multiple_of(page_bytes) || !bytes.len().is_multiple_of(BLOCK_BYTES) {
        return Err(FsError::Invalid("a direct overwrite is of whole pages that the file has"));
    }
    fs.check_frozen()?;
    let mut in_place = 0;
    for (page, part) in (offset / page_bytes..).zip(bytes.chunks(BLOCK_BYTES)) {
        let block = fs.block_of(ino, page)?;
        if block == HOLE || block == UNWRITTEN || fs.pages.holds(ino, page) {
            fs.write(ino, page * page_bytes, part, now)?;
        } else {
            fs.device.write(block, part)?;
            in_place += 1;
        }
    }
    Ok(in_place)
}
