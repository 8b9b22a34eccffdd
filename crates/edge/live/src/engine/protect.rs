//! The metadata of blocks that a write carries beside their bytes, where they have some.
//!
//! Clients that know nothing of metadata write blocks with protection information as well: the engine makes it for them, as the
//! controller of a drive does when a host asks for that, and reads leave it off.

use super::Engine;
use super::request::{Carried, Pending};
use crate::block_metadata::BlockMetadata;
use crate::media::UNWRITTEN;
use flashyard_blk::{Operation, Payload, VolumeRequest};
use flashyard_flash::SLOT_BYTES;
use flashyard_nvme::protection::{Metadata, Protection, Tuple};
use std::ops::Range;

/// A write to blocks with protection information gets what it does not bring.
#[cold]
pub(super) fn with_protection(engine: &Engine, request: &VolumeRequest, carried: Carried) -> Carried {
    let metadata = engine.spaces.of(request.volume).metadata;
    if request.operation != Operation::Write || !metadata.is_protection() || !carried.metadata.is_none() {
        return carried;
    }
    let reference = if metadata == Metadata::Type3 { 0 } else { request.first as u32 };
    let asked = Protection { action: true, reference, ..Protection::default() };
    let block_bytes = SLOT_BYTES >> engine.shifts[request.volume.index()];
    let made = match &carried.payload {
        Payload::Bytes(bytes) => {
            let blocks = (0..).zip(bytes.chunks_exact(block_bytes as usize));
            BlockMetadata::Bytes(blocks.flat_map(|(place, data)| asked.tuple(metadata, place, data).encode()).collect())
        }
        Payload::Zeros => BlockMetadata::zeros(metadata, asked),
        Payload::None => BlockMetadata::None,
    };
    Carried { metadata: made, ..carried }
}

/// The metadata of a unit of which a write changes the bytes of `range`, which are behind the first `at` of the write: that of
/// `before`, and of the blocks that are written what the write carries. Those that it deallocates are as if never written.
pub(super) fn metadata_of_unit(
    pending: &Pending,
    block_bytes: usize,
    (range, at): (Range<usize>, usize),
    before: impl FnOnce() -> [u8; UNWRITTEN.len()],
) -> [u8; UNWRITTEN.len()] {
    let mut entry = if range.len() < SLOT_BYTES as usize { before() } else { UNWRITTEN };
    let tuples = |bytes: usize| bytes / block_bytes * Tuple::BYTES;
    let written = &mut entry[tuples(range.start)..tuples(range.end)];
    if !pending.carried.metadata.copy_to(at / block_bytes, written) {
        written.fill(0xFF);
    }
    entry
}
