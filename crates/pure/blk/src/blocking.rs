//! A user of a volume that has one request under way at a time and waits for it.

use crate::contract::{Completion, Payload, Volume, VolumeError};
use crate::request::Operation;
use crate::volume::VolumeRequest;
use flashyard_units::{SimSpan, SimTime};
use std::ops::Range;

/// The longest wait for one completion.
const PATIENCE: SimSpan = SimSpan::from_ms(60_000);

/// Blocks of a volume, and the place of their bytes in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first block.
    pub first: u64,
    /// Bytes of it that are not wanted, fewer than a block.
    pub skip: usize,
    /// Where the bytes begin in the buffer.
    pub at: usize,
    /// How many bytes; they may end within a block.
    pub len: usize,
}

/// Where what one request has found goes to.
struct Place {
    bytes: Range<usize>,
    skip: usize,
    /// Bytes that the request finds.
    found: usize,
}

/// A volume whose requests are waited for, one after the other. Ranges that are longer than a request may be are taken in
/// parts; when a part fails, those before it have happened.
#[derive(Debug)]
pub struct Blocking<V> {
    volume: V,
    now: SimTime,
    tokens: u64,
    ended: Vec<Completion>,
    /// A buffer of a write that has ended.
    spare: Vec<u8>,
}

impl<V: Volume> Blocking<V> {
    /// Takes the volume over, at the beginning of its time. No request is under way on it.
    pub fn new(volume: V) -> Self {
        Self { volume, now: SimTime::ZERO, tokens: 0, ended: Vec::new(), spare: Vec::new() }
    }

    /// Blocks of the volume.
    pub fn blocks(&self) -> u64 {
        self.volume.info().limits.blocks
    }

    /// Whether it takes [`Operation::Remap`].
    pub fn remaps(&self) -> bool {
        self.volume.info().limits.remaps
    }

    /// The volume.
    pub fn volume(&self) -> &V {
        &self.volume
    }

    /// The volume, for counts and faults. Requests behind the back of its user may destroy what that keeps there.
    pub fn volume_mut(&mut self) -> &mut V {
        &mut self.volume
    }

    /// Gives the volume back.
    pub fn into_volume(self) -> V {
        self.volume
    }

    /// Carries one request out and returns the bytes that it has found. The request's volume is that of this one.
    ///
    /// Errors: those of the volume; no completion within a minute, and then the volume is of no use any more.
    pub fn call(
        &mut self,
        operation: Operation,
        first: u64,
        count: u32,
        source: u64,
        payload: Payload,
    ) -> Result<Vec<u8>, VolumeError> {
        let request = VolumeRequest { volume: self.volume.info().id, operation, first, count, source };
        self.tokens += 1;
        self.volume.submit(self.now, self.tokens, &request, payload)?;
        let deadline = self.now.saturating_add(PATIENCE);
        loop {
            self.now = self.volume.advance(deadline, &mut self.ended)?;
            // Completions of calls that were given up come late.
            if let Some(completion) = self.ended.drain(..).find(|completion| completion.token == self.tokens) {
                return completion.result.map(|()| completion.bytes);
            }
            if self.now >= deadline {
                return Err(VolumeError::Late(PATIENCE));
            }
        }
    }

    /// Calls `part` for each part of `count` blocks that one request may be about, with its offset.
    fn in_parts(
        &mut self,
        count: u64,
        mut part: impl FnMut(&mut Self, u64, u32) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        let most = u64::from(self.volume.info().limits.request_blocks);
        let mut done = 0;
        while done < count {
            let blocks = most.min(count - done);
            part(self, done, blocks as u32)?;
            done += blocks;
        }
        Ok(())
    }

    fn blocks_in(&self, bytes: usize) -> u64 {
        let block_bytes = self.volume.info().block_bytes as usize;
        debug_assert_eq!(bytes % block_bytes, 0, "whole blocks");
        (bytes / block_bytes) as u64
    }

    /// Reads whole blocks, beginning with block `first`.
    ///
    /// Errors: those of [`Self::call`].
    pub fn read(&mut self, first: impl Into<u64>, buffer: &mut [u8]) -> Result<(), VolumeError> {
        let (first, block_bytes) = (first.into(), self.volume.info().block_bytes as usize);
        self.in_parts(self.blocks_in(buffer.len()), |this, offset, blocks| {
            let found = this.call(Operation::Read, first + offset, blocks, 0, Payload::None)?;
            let part = &mut buffer[offset as usize * block_bytes..][..blocks as usize * block_bytes];
            if found.len() != part.len() {
                return Err(VolumeError::Io(format!("{} bytes instead of {}", found.len(), part.len())));
            }
            part.copy_from_slice(&found);
            Ok(())
        })
    }

    /// Reads pieces that are apart on the volume, all of them under way together. Blocks that are wanted in part are read whole.
    ///
    /// Errors: those of [`Self::call`], of any piece. The buffer then holds anything.
    pub fn read_together(&mut self, pieces: &[Piece], buffer: &mut [u8]) -> Result<(), VolumeError> {
        let info = self.volume.info();
        let block_bytes = info.block_bytes as usize;
        let first_token = self.tokens + 1;
        let mut places = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let blocks = (piece.skip + piece.len).div_ceil(block_bytes) as u32;
            let (mut first, mut skip, mut bytes) = (piece.first, piece.skip, piece.at..piece.at + piece.len);
            let mut left = blocks;
            while left > 0 {
                let count = info.limits.request_blocks.min(left);
                let request = VolumeRequest { volume: info.id, operation: Operation::Read, first, count, source: 0 };
                self.tokens += 1;
                self.volume.submit(self.now, self.tokens, &request, Payload::None)?;
                let upto = bytes.end.min(bytes.start + count as usize * block_bytes - skip);
                places.push(Place { bytes: bytes.start..upto, skip, found: count as usize * block_bytes });
                (first, skip, bytes.start, left) = (first + u64::from(count), 0, upto, left - count);
            }
        }
        let deadline = self.now.saturating_add(PATIENCE);
        let mut left = places.len();
        while left > 0 {
            self.now = self.volume.advance(deadline, &mut self.ended)?;
            for completion in self.ended.drain(..) {
                // Completions of calls that were given up come late.
                let Some(index) = completion.token.checked_sub(first_token) else { continue };
                let place = places.get(index as usize).ok_or_else(|| VolumeError::Io("an unknown token".to_owned()))?;
                completion.result?;
                if completion.bytes.len() != place.found {
                    return Err(VolumeError::Io(format!(
                        "{} bytes instead of {}",
                        completion.bytes.len(),
                        place.found
                    )));
                }
                buffer[place.bytes.clone()].copy_from_slice(&completion.bytes[place.skip..][..place.bytes.len()]);
                left -= 1;
            }
            if left > 0 && self.now >= deadline {
                return Err(VolumeError::Late(PATIENCE));
            }
        }
        Ok(())
    }

    /// Writes whole blocks, beginning with block `first`.
    ///
    /// Errors: those of [`Self::call`].
    pub fn write(&mut self, first: impl Into<u64>, bytes: &[u8]) -> Result<(), VolumeError> {
        let (first, block_bytes) = (first.into(), self.volume.info().block_bytes as usize);
        self.in_parts(self.blocks_in(bytes.len()), |this, offset, blocks| {
            let mut buffer = std::mem::take(&mut this.spare);
            buffer.extend_from_slice(&bytes[offset as usize * block_bytes..][..blocks as usize * block_bytes]);
            this.spare = this.call(Operation::Write, first + offset, blocks, 0, Payload::Bytes(buffer))?;
            this.spare.clear();
            Ok(())
        })
    }

    /// Makes everything done so far survive a loss of power.
    ///
    /// Errors: those of [`Self::call`].
    pub fn flush(&mut self) -> Result<(), VolumeError> {
        self.call(Operation::Flush, 0, 0, 0, Payload::None).map(drop)
    }

    /// Marks the blocks as free.
    ///
    /// Errors: those of [`Self::call`].
    pub fn trim(&mut self, first: impl Into<u64>, count: u32) -> Result<(), VolumeError> {
        self.call(Operation::Trim, first.into(), count, 0, Payload::None).map(drop)
    }

    /// Lets `count` blocks from `first` on take over the data of those from `source` on. Blocks of the source that hold
    /// nothing leave theirs as they are, so that repeating it changes nothing.
    ///
    /// Errors: those of [`Self::call`].
    pub fn remap(&mut self, first: impl Into<u64>, source: impl Into<u64>, count: u32) -> Result<(), VolumeError> {
        let (first, source) = (first.into(), source.into());
        self.in_parts(count.into(), |this, offset, blocks| {
            this.call(Operation::Remap, first + offset, blocks, source + offset, Payload::None).map(drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{RequestError, VolumeInfo, VolumeLimits, check};
    use flashyard_units::VolumeId;
    use proptest::prelude::*;

    /// Blocks of the volume below.
    const BLOCKS: usize = 64;
    /// Bytes of its blocks.
    const BLOCK_BYTES: usize = 16;

    /// A volume in virtual time: a request takes as many microseconds as it has blocks, after those before it.
    struct Slow {
        blocks: Vec<[u8; BLOCK_BYTES]>,
        limits: VolumeLimits,
        free_at: SimTime,
        under_way: std::collections::VecDeque<(SimTime, Completion)>,
        requests: Vec<u32>,
    }

    impl Slow {
        fn new(request_blocks: u32) -> Self {
            let limits = VolumeLimits { blocks: BLOCKS as u64, remaps: true, request_blocks, read_only: false };
            let blocks = vec![[0; BLOCK_BYTES]; BLOCKS];
            Self { blocks, limits, free_at: SimTime::ZERO, under_way: Default::default(), requests: Vec::new() }
        }
    }

    impl Volume for Slow {
        fn info(&self) -> VolumeInfo {
            let id = VolumeId::new(0);
            VolumeInfo { id, block_bytes: BLOCK_BYTES as u32, limits: self.limits, protected: true }
        }

        fn submit(
            &mut self,
            now: SimTime,
            token: u64,
            request: &VolumeRequest,
            payload: Payload,
        ) -> Result<(), VolumeError> {
            check(request, &self.limits)?;
            payload.check(request, BLOCK_BYTES as u32)?;
            let (first, count) = (request.first as usize, request.count as usize);
            let mut found = Vec::new();
            match payload {
                Payload::Bytes(bytes) => {
                    self.blocks[first..first + count].as_flattened_mut().copy_from_slice(&bytes);
                }
                _ if request.operation == Operation::Read => {
                    found.extend_from_slice(self.blocks[first..first + count].as_flattened());
                }
                _ => {}
            }
            self.free_at = self.free_at.max(now) + SimSpan::from_us(request.count.into());
            self.under_way.push_back((self.free_at, Completion { token, result: Ok(()), bytes: found }));
            self.requests.push(request.count);
            Ok(())
        }

        fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
            let now = self.next_due().map_or(until, |due| due.min(until));
            while self.next_due().is_some_and(|due| due <= now) {
                into.extend(self.under_way.pop_front().map(|(_, completion)| completion));
            }
            Ok(now)
        }

        fn next_due(&self) -> Option<SimTime> {
            self.under_way.front().map(|(due, _)| *due)
        }
    }

    proptest! {
        #[test]
        fn long_ranges_are_taken_in_parts_and_read_as_written(
            request_blocks in 1_u32..20, first in 0_u64..40, count in 1_usize..24, seed: u8,
        ) {
            let mut volume = Blocking::new(Slow::new(request_blocks));
            let bytes: Vec<u8> = (0..count * BLOCK_BYTES).map(|at| (at as u8).wrapping_mul(31) ^ seed).collect();
            let mut found = vec![0; bytes.len()];
            volume.write(first, &bytes).expect("it fits");
            volume.read(first, &mut found).expect("it fits");
            prop_assert_eq!(&found, &bytes);
            let requests = &volume.volume().requests;
            prop_assert!(requests.iter().all(|&blocks| blocks <= request_blocks));
            prop_assert_eq!(requests.len(), 2 * count.div_ceil(request_blocks as usize));
            // One after the other: the time is the sum.
            prop_assert_eq!(volume.now, SimTime::ZERO + SimSpan::from_us(2 * count as u64));
        }
    }

    proptest! {
        #[test]
        fn pieces_are_read_together_and_each_goes_to_its_place(
            request_blocks in 1_u32..9,
            pieces in prop::collection::vec((0_u64..50, 0..BLOCK_BYTES, 1..13 * BLOCK_BYTES), 0..9),
            seed: u8,
        ) {
            let mut volume = Blocking::new(Slow::new(request_blocks));
            let bytes: Vec<u8> = (0..BLOCKS * BLOCK_BYTES).map(|at| (at as u8).wrapping_mul(31) ^ seed).collect();
            volume.write(0_u64, &bytes).expect("it fits");
            let written = volume.volume().requests.len();
            let mut expected = Vec::new();
            let mut list = Vec::new();
            let mut requests = 0;
            for (first, skip, len) in pieces {
                list.push(Piece { first, skip, at: expected.len(), len });
                expected.extend_from_slice(&bytes[first as usize * BLOCK_BYTES + skip..][..len]);
                requests += (skip + len).div_ceil(BLOCK_BYTES).div_ceil(request_blocks as usize);
            }
            let mut found = vec![0; expected.len()];
            volume.read_together(&list, &mut found).expect("it fits");
            prop_assert_eq!(found, expected);
            // A block that is wanted in part is read with its neighbours.
            prop_assert_eq!(volume.volume().requests.len() - written, requests);
        }
    }

    #[test]
    fn a_piece_that_cannot_be_read_fails_all() {
        let mut volume = Blocking::new(Slow::new(8));
        let piece = |first, at| Piece { first, skip: 0, at, len: BLOCK_BYTES };
        let pieces = [piece(3, 0), piece(64, BLOCK_BYTES)];
        assert!(matches!(volume.read_together(&pieces, &mut [0; 2 * BLOCK_BYTES]), Err(VolumeError::Refused(_))));
        // The piece that was under way comes late, and is left out.
        volume.read(5_u64, &mut [0; BLOCK_BYTES]).expect("it fits");
    }

    #[test]
    fn time_passes_until_the_next_completion_and_no_further() {
        let mut volume = Slow::new(8);
        let read =
            |count| VolumeRequest { volume: VolumeId::new(0), operation: Operation::Read, first: 0, count, source: 0 };
        volume.submit(SimTime::ZERO, 7, &read(5), Payload::None).expect("it fits");
        let (at, mut ended) = (|us| SimTime::ZERO + SimSpan::from_us(us), Vec::new());
        assert_eq!((volume.advance(at(3), &mut ended), ended.len()), (Ok(at(3)), 0));
        assert_eq!(volume.next_due(), Some(at(5)));
        assert_eq!((volume.advance(at(30), &mut ended), ended[0].token), (Ok(at(5)), 7));
        assert_eq!(volume.next_due(), None);
        let too_long = RequestError::TooLong { count: 9, request_blocks: 8 };
        assert_eq!(volume.submit(at(5), 8, &read(9), Payload::None), Err(too_long.into()));
    }

    #[test]
    fn a_volume_that_never_answers_is_late() {
        struct Silent;
        impl Volume for Silent {
            fn info(&self) -> VolumeInfo {
                Slow::new(1).info()
            }

            fn submit(&mut self, _: SimTime, _: u64, _: &VolumeRequest, _: Payload) -> Result<(), VolumeError> {
                Ok(())
            }

            fn advance(&mut self, until: SimTime, _: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
                Ok(until)
            }
        }
        assert_eq!(Blocking::new(Silent).flush(), Err(VolumeError::Late(PATIENCE)));
    }
}
