//! Capacity given back as holes: free segments, those nearest to the end first, count as allocated, and where they are not enough
//! free blocks between valid ones.
//!
//! Such a block is valid and has no owner. A segment that is given back as a whole says so by its count, and no block of it is
//! told apart. Where the device has not heard that a block is free, it does as it would have.
//!
//! Source: \[P\] sheet `cvss` §3.1: an available range of free space from the end is marked as allocated.

use crate::ahead;
use crate::error::FsError;
use crate::fs::{Cost, FileSystem};
use crate::node::WHOLE_NODE;
use crate::resizing::{Resizing, Shrunk};
use flashyard_blk::Volume;
use std::ops::Range;

/// Marks up to `blocks_max` blocks, and a segment's worth at least; the last step makes all of them count and returns the result.
///
/// Errors: too few blocks are free, or the device fails.
pub(crate) fn step<D: Volume>(
    fs: &mut FileSystem<D>,
    resizing: &mut Resizing,
    blocks_max: u32,
) -> Result<Option<Shrunk>, FsError> {
    let segment_blocks = fs.layout.segment_blocks;
    let mut count = 0;
    // Owners of the segments with slack from here on are in memory.
    let mut read = u32::MAX;
    while resizing.given < resizing.wanted && count < blocks_max.max(segment_blocks) {
        let Some(segment) = resizing.next.checked_sub(1) else {
            if resizing.slack {
                return Err(FsError::NoSpace);
            }
            (resizing.slack, resizing.next) = (true, fs.segments.limit());
            continue;
        };
        resizing.next = segment;
        if !resizing.slack && !fs.segments.is_free(segment) {
            continue;
        }
        // Fewer free blocks must leave room for the next checkpoint.
        fs.prepare(Cost { new: 0, dirty: u64::from(segment_blocks), frees: false })?;
        let left = resizing.wanted - resizing.given;
        if resizing.slack && segment < read {
            let blocks = left.min(u64::from(blocks_max.max(segment_blocks) - count)) as u32;
            read = ahead::read_owners_down(fs, segment, blocks)?;
        }
        let most = left.min(u64::from(segment_blocks)) as u32;
        let first = fs.layout.segment_first(segment);
        let places = give_back(fs, segment, most)?;
        resizing.given += places.len() as u64;
        count += places.len() as u32;
        places.iter().for_each(|within| note(&mut resizing.marked, first + within));
    }
    if resizing.given < resizing.wanted {
        return Ok(None);
    }
    fs.checkpoint()?;
    Ok(Some(fs.report(resizing, resizing.given)))
}

/// Notes a block of a segment, whose blocks come from the highest on.
fn note(marked: &mut Vec<Range<u32>>, block: u32) {
    match marked.last_mut() {
        Some(run) if run.start == block + 1 => run.start = block,
        _ => marked.push(block..block + 1),
    }
}

/// Blocks that a change of size has marked before it failed are free again.
pub(crate) fn undo<D: Volume>(fs: &mut FileSystem<D>, marked: Vec<Range<u32>>) {
    for place in marked.into_iter().flatten().filter_map(|block| fs.layout.place(block)) {
        fs.segments.unreserve(place);
    }
}

/// Counts up to `most` free blocks of a segment as allocated; their places, from the highest on.
///
/// Errors: the device fails. Then they are free as before.
pub(crate) fn give_back<D: Volume>(fs: &mut FileSystem<D>, segment: u32, most: u32) -> Result<Vec<u32>, FsError> {
    let first = fs.layout.segment_first(segment);
    let places = fs.segments.reserve(segment, most);
    if !is_whole(fs, segment) {
        // No node has number zero.
        if let Err(error) = places.iter().try_for_each(|within| fs.set_owner(first + within, 0, WHOLE_NODE)) {
            places.into_iter().for_each(|within| fs.segments.unreserve((segment, within)));
            return Err(error);
        }
    }
    Ok(places)
}

/// Whether all blocks of a segment are given back.
fn is_whole<D: Volume>(fs: &FileSystem<D>, segment: u32) -> bool {
    fs.segments.reserved_in(segment) == fs.layout.segment_blocks
}

/// Whether a valid block is one that was given back.
pub(crate) fn is_given_back<D: Volume>(fs: &mut FileSystem<D>, block: u32) -> Result<bool, FsError> {
    let whole = fs.layout.place(block).is_some_and(|(segment, _)| is_whole(fs, segment));
    Ok(whole || fs.owner(block)?.0 == 0)
}

/// Blocks from a segment on that were given back are free again: they go with the end.
///
/// Errors: the device fails. Then they stay given back.
pub(crate) fn take_again<D: Volume>(fs: &mut FileSystem<D>, from: u32) -> Result<(), FsError> {
    let given: Vec<u32> = (from..fs.layout.segments).filter(|&segment| fs.segments.reserved_in(segment) > 0).collect();
    let pieces = given.iter().copied().filter(|&segment| !is_whole(fs, segment));
    let pieces: Vec<u32> = pieces.collect();
    // All that can fail comes before the first change.
    fs.owners.load_together(&mut fs.device, pieces)?;
    for segment in given {
        // Its count falls with the first block that is taken.
        let whole = is_whole(fs, segment);
        for within in fs.segments.valid_in(segment).collect::<Vec<_>>() {
            if whole || fs.owner(fs.layout.segment_first(segment) + within)?.0 == 0 {
                fs.segments.unreserve((segment, within));
            }
        }
    }
    Ok(())
}
