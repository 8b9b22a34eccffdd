//! Volumes: what clients see of a machine, and requests for whole blocks of one.

use crate::request::Operation;
use flashyard_units::VolumeId;

/// A request for a range of blocks of one volume, as every stage between a client and the machine that serves it has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeRequest {
    /// The volume asked.
    pub volume: VolumeId,
    /// The operation to do.
    pub operation: Operation,
    /// First block. Means nothing for a flush.
    pub first: u64,
    /// Blocks. Means nothing for a flush.
    pub count: u32,
    /// First block whose data a remap takes over; means nothing for other operations.
    pub source: u64,
}

impl VolumeRequest {
    /// The refusal of a volume that does not take the operation.
    #[cold]
    pub fn unsupported(&self) -> RequestError {
        RequestError::Unsupported { volume: self.volume, operation: self.operation }
    }
}

/// Requests that a volume takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeLimits {
    /// Blocks that it has.
    pub blocks: u64,
    /// Whether it takes [`Operation::Remap`].
    pub remaps: bool,
    /// Blocks of a read, a write or a remap at most.
    pub request_blocks: u32,
    /// It takes nothing that changes blocks.
    pub read_only: bool,
}

impl VolumeLimits {
    /// Those of a volume of `blocks` that takes requests of any length, writes included.
    pub const fn new(blocks: u64, remaps: bool) -> Self {
        Self { blocks, remaps, request_blocks: u32::MAX, read_only: false }
    }

    /// Whether the range ends within the volume. It may be empty.
    #[inline]
    pub fn contain(&self, first: u64, count: u32) -> bool {
        first.checked_add(count.into()).is_some_and(|end| end <= self.blocks)
    }
}

/// A volume as its clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Which.
    pub id: VolumeId,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Requests that it takes.
    pub limits: VolumeLimits,
    /// Whether acknowledged writes survive a loss of power without a flush.
    pub protected: bool,
}

impl VolumeInfo {
    /// Bytes that it exports.
    pub fn size_bytes(&self) -> u64 {
        self.limits.blocks * u64::from(self.block_bytes)
    }
}

/// Why a volume does not take a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The range, or the source of a remap, is empty or ends beyond the volume.
    #[error("{count} blocks from {first} of a volume of {blocks}; give at least one, and none beyond the last")]
    Range {
        /// First block.
        first: u64,
        /// Blocks asked for.
        count: u32,
        /// Blocks of the volume.
        blocks: u64,
    },
    /// A request that is longer than the volume takes at once.
    #[error("{count} blocks in one request, give at most {request_blocks}")]
    TooLong {
        /// Blocks asked for.
        count: u32,
        /// Blocks that a request may have.
        request_blocks: u32,
    },
    /// A remap between ranges that overlap.
    #[error("{count} blocks from {source_block} cannot be remapped to {first}: the ranges overlap")]
    Overlap {
        /// First block that was to take over data.
        first: u64,
        /// First block whose data it was.
        source_block: u64,
        /// Blocks asked for.
        count: u32,
    },
    /// Payload that is not that of the blocks to be written.
    #[error("a payload of {bytes} bytes, give {expected_bytes}")]
    Payload {
        /// Bytes given.
        bytes: u64,
        /// Bytes of the blocks; none for everything but writes.
        expected_bytes: u64,
    },
    /// The volume does not take this operation.
    #[error("volume {volume} takes no {operation:?}")]
    Unsupported {
        /// Which volume.
        volume: VolumeId,
        /// The operation asked for.
        operation: Operation,
    },
}

/// Whether a volume of these limits takes `request`. Which volume that is does not matter.
///
/// Errors: the first reason against it.
#[inline]
pub fn check(request: &VolumeRequest, limits: &VolumeLimits) -> Result<(), RequestError> {
    let VolumeRequest { operation, first, count, source, .. } = *request;
    let fits = |first: u64| {
        let is_inside = count > 0 && limits.contain(first, count);
        if is_inside { Ok(()) } else { Err(RequestError::Range { first, count, blocks: limits.blocks }) }
    };
    if operation == Operation::Flush {
        return Ok(());
    }
    fits(first)?;
    if limits.read_only && operation != Operation::Read {
        return Err(request.unsupported());
    }
    if operation == Operation::Trim {
        return Ok(());
    }
    if count > limits.request_blocks {
        return Err(RequestError::TooLong { count, request_blocks: limits.request_blocks });
    }
    if operation == Operation::Remap {
        fits(source)?;
        if !limits.remaps {
            return Err(request.unsupported());
        }
        if first.abs_diff(source) < u64::from(count) {
            return Err(RequestError::Overlap { first, source_block: source, count });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: VolumeLimits = VolumeLimits::new(100, true);

    fn request(operation: Operation, first: u64, count: u32, source: u64) -> VolumeRequest {
        VolumeRequest { volume: VolumeId::new(3), operation, first, count, source }
    }

    fn address() -> impl Strategy<Value = u64> {
        prop_oneof![0_u64..130, u64::MAX - 30..=u64::MAX]
    }

    #[test]
    fn a_volume_that_is_read_only_takes_reads_and_flushes() {
        let limits = VolumeLimits { read_only: true, ..LIMITS };
        let taken = |operation| check(&request(operation, 0, 1, 50), &limits).is_ok();
        use Operation::{Flush, Read, Remap, Trim, Write};
        assert_eq!([Read, Flush, Write, Trim, Remap].map(taken), [true, true, false, false, false]);
    }

    proptest! {
        #[test]
        fn what_is_taken_lies_in_the_volume_block_by_block(
            first in address(), count in prop_oneof![0_u32..40, Just(u32::MAX)], source in address(), remaps: bool,
            request_blocks in prop_oneof![1_u32..40, Just(u32::MAX)],
            operation in prop::sample::select(vec![
                Operation::Read, Operation::Write, Operation::Trim, Operation::Flush, Operation::Remap,
            ]),
        ) {
            let limits = VolumeLimits { remaps, request_blocks, ..LIMITS };
            let inside = |first: u64| count > 0 && (0..u128::from(count)).all(|block| u128::from(first) + block < 100);
            // Looked at only where both ranges are known to be short.
            let disjoint = || (first..first + u64::from(count)).all(|block| {
                block < source || block >= source + u64::from(count)
            });
            let expected = match operation {
                Operation::Flush => true,
                Operation::Trim => inside(first),
                Operation::Remap => {
                    inside(first) && inside(source) && count <= request_blocks && remaps && disjoint()
                }
                _ => inside(first) && count <= request_blocks,
            };
            prop_assert_eq!(check(&request(operation, first, count, source), &limits).is_ok(), expected);
        }
    }

    #[test]
    fn what_is_refused_is_refused_in_words() {
        let refused = |request, limits| check(&request, &limits).expect_err("it is impossible").to_string();
        assert_eq!(
            refused(request(Operation::Read, 99, 2, 0), LIMITS),
            "2 blocks from 99 of a volume of 100; give at least one, and none beyond the last"
        );
        assert!(refused(request(Operation::Remap, 0, 2, 99), LIMITS).starts_with("2 blocks from 99 of"));
        assert_eq!(
            refused(request(Operation::Remap, 10, 4, 13), LIMITS),
            "4 blocks from 13 cannot be remapped to 10: the ranges overlap"
        );
        let plain = VolumeLimits { remaps: false, ..LIMITS };
        assert_eq!(refused(request(Operation::Remap, 10, 4, 50), plain), "volume 3 takes no Remap");
    }
}
