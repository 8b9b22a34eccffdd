//! Capacity given back as holes: free blocks, those nearest to the end first, count as allocated.
//!
//! Such a block is valid and has no owner. Where the device has not heard that it is free, it does as it would have.
//!
//! Source: [P] sheet `cvss` §3.1.

use crate::error::FsError;
use crate::fs::{Cost, FileSystem};
use crate::node::WHOLE_NODE;
use crate::resizing::{Resizing, Shrunk};
use flashyard_blk::Volume;

/// Marks up to `blocks_max` blocks, and a segment's worth at least; the last step returns the result.
///
/// Errors: too few blocks are free.
pub(crate) fn step<D: Volume>(
    fs: &mut FileSystem<D>,
    resizing: &mut Resizing,
    blocks_max: u32,
) -> Result<Option<Shrunk>, FsError> {
    let segment_blocks = fs.layout.segment_blocks;
    let mut count = 0;
    while resizing.given < resizing.wanted && count < blocks_max.max(segment_blocks) {
        // Fewer free blocks must leave room for the next checkpoint.
        fs.prepare(Cost { new: 0, dirty: u64::from(segment_blocks), frees: false })?;
        let segment = resizing.next.checked_sub(1).ok_or(FsError::NoSpace)?;
        let most = (resizing.wanted - resizing.given).min(u64::from(segment_blocks)) as u32;
        let blocks = give_back(fs, segment, most)?;
        resizing.given += u64::from(blocks);
        count += blocks;
        resizing.next = segment;
    }
    fs.checkpoint()?;
    Ok((resizing.given >= resizing.wanted).then(|| fs.report(resizing, resizing.given)))
}

/// Counts up to `most` free blocks of a segment as allocated; how many.
pub(crate) fn give_back<D: Volume>(fs: &mut FileSystem<D>, segment: u32, most: u32) -> Result<u32, FsError> {
    let first = fs.layout.segment_first(segment);
    let places = fs.segments.reserve(segment, most);
    for &within in &places {
        // No node has number zero.
        let owned = fs.set_owner(first + within, 0, WHOLE_NODE);
        // The segment counts the block as allocated and nothing says that it was given back: no checkpoint may hold that.
        fs.frozen |= owned.is_err();
        owned?;
    }
    Ok(places.len() as u32)
}

/// Whether a valid block is one that was given back.
pub(crate) fn is_given_back<D: Volume>(fs: &mut FileSystem<D>, block: u32) -> Result<bool, FsError> {
    Ok(fs.owner(block)?.0 == 0)
}

/// Blocks from a segment on that were given back are free again: they go with the end.
pub(crate) fn take_again<D: Volume>(fs: &mut FileSystem<D>, from: u32) -> Result<(), FsError> {
    for segment in from..fs.layout.segments {
        if fs.segments.reserved_in(segment) == 0 {
            continue;
        }
        for within in fs.segments.valid_in(segment).collect::<Vec<_>>() {
            if is_given_back(fs, fs.layout.segment_first(segment) + within)? {
                fs.segments.unreserve((segment, within));
            }
        }
    }
    Ok(())
}
