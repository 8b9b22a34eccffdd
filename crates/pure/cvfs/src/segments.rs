//! Segments: valid blocks, the ends of the logs, free space.
//!
//! Invariant: a block that the last checkpoint refers to is not written again before the next checkpoint. A segment
//! becomes free only in [`SegmentMap::commit`], when no block of it is valid.

use crate::bytes::{put, u32_at, u64_at};
use crate::layout::Layout;
use std::collections::BTreeSet;

/// Logs that are written side by side.
pub(crate) const LOGS: usize = 4;

/// Contents of a log. Blocks that die at about the same time lie together, and cleaning finds emptier victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Log {
    /// Inodes of directories and of files.
    NodeHot,
    /// Nodes of pointers, and nodes that cleaning has moved.
    NodeCold,
    /// Pages of directories, and pages that were written before.
    DataHot,
    /// Pages written for the first time, and pages that cleaning has moved.
    DataCold,
}

impl Log {
    pub(crate) const ALL: [Self; LOGS] = [Self::NodeHot, Self::NodeCold, Self::DataHot, Self::DataCold];
}

/// Where a log goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) segment: u32,
    /// Place of the next block in there; equal to the blocks of a segment when it is full.
    pub(crate) next: u32,
}

/// One segment.
#[derive(Clone, Debug)]
struct Segment {
    valid: u32,
    /// Counted as allocated although nothing is in it: capacity given back in place.
    reserved: bool,
    /// Checkpoint before which it was written last.
    written: u64,
    bits: Box<[u64]>,
}

/// All segments.
#[derive(Clone, Debug)]
pub(crate) struct SegmentMap {
    segment_blocks: u32,
    segments: Vec<Segment>,
    free: BTreeSet<u32>,
    logs: [Option<Cursor>; LOGS],
    /// Segments from here on are beyond the end of the volume, or about to be.
    limit: u32,
    /// The segment that a log has taken last.
    taken: u32,
    valid: u64,
    reserved: u32,
    /// Segments that changed since they were written to the table.
    dirty: BTreeSet<u32>,
    /// Segments that lost their last valid block since the last checkpoint, and others that may have.
    emptied: BTreeSet<u32>,
}

impl SegmentMap {
    /// All segments empty; those below `limit` are free.
    pub(crate) fn new(layout: &Layout, limit: u32) -> Self {
        let words = layout.segment_blocks.div_ceil(64) as usize;
        let empty = Segment { valid: 0, reserved: false, written: 0, bits: vec![0; words].into() };
        Self {
            segment_blocks: layout.segment_blocks,
            segments: vec![empty; layout.segments as usize],
            free: (0..limit).collect(),
            logs: [None; LOGS],
            limit,
            taken: 0,
            valid: 0,
            reserved: 0,
            dirty: BTreeSet::new(),
            emptied: BTreeSet::new(),
        }
    }

    /// Takes over one segment from its table entry; `None` when its count and its bits differ.
    pub(crate) fn restore(&mut self, segment: u32, entry: &[u8]) -> Option<()> {
        let state = &mut self.segments[segment as usize];
        state.valid = u32_at(entry, 0);
        state.reserved = u32_at(entry, 4) != 0;
        state.written = u64_at(entry, 8);
        for (index, word) in state.bits.iter_mut().enumerate() {
            let mut bytes = [0; 8];
            let from = &entry[16 + index * 8..entry.len().min(24 + index * 8)];
            bytes[..from.len()].copy_from_slice(from);
            *word = u64::from_le_bytes(bytes);
        }
        if state.bits.iter().map(|word| word.count_ones()).sum::<u32>() != state.valid {
            return None;
        }
        self.valid += u64::from(state.valid);
        self.reserved += u32::from(state.reserved);
        if state.valid > 0 || state.reserved {
            self.free.remove(&segment);
        }
        Some(())
    }

    /// Takes over the logs; `None` when a cursor lies outside.
    pub(crate) fn restore_logs(&mut self, logs: [Option<Cursor>; LOGS]) -> Option<()> {
        for cursor in logs.iter().flatten() {
            if cursor.segment >= self.segments.len() as u32 || cursor.next > self.segment_blocks {
                return None;
            }
            self.free.remove(&cursor.segment);
            self.taken = self.taken.max(cursor.segment);
        }
        self.logs = logs;
        Some(())
    }

    /// Segments whose entries are to be written.
    pub(crate) fn take_dirty(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.dirty)
    }

    pub(crate) fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    /// Writes the table entry of a segment.
    pub(crate) fn encode(&self, segment: u32, entry: &mut [u8]) {
        let state = &self.segments[segment as usize];
        put(entry, 0, &state.valid.to_le_bytes());
        put(entry, 4, &u32::from(state.reserved).to_le_bytes());
        put(entry, 8, &state.written.to_le_bytes());
        for (to, word) in entry[16..].chunks_mut(8).zip(&state.bits) {
            to.copy_from_slice(&word.to_le_bytes()[..to.len()]);
        }
    }

    /// Takes the next block of a log, without making it valid. `None` when no block is free.
    pub(crate) fn allocate(&mut self, log: Log, version: u64) -> Option<(u32, u32)> {
        let open = self.logs[log as usize].filter(|cursor| cursor.next < self.segment_blocks);
        let fresh = if open.is_none() { self.take_free() } else { None };
        let (log, mut cursor) = match (open, fresh) {
            (Some(cursor), _) => (log, cursor),
            (None, Some(segment)) => {
                let before = self.logs[log as usize].replace(Cursor { segment, next: 0 });
                // Blocks that died in the segment before while it was open count from now on.
                self.emptied.extend(before.map(|cursor| cursor.segment));
                (log, Cursor { segment, next: 0 })
            }
            // The last blocks of the volume: better in the wrong log than not at all.
            (None, None) => {
                let has_room = |log: &Log| self.logs[*log as usize].is_some_and(|at| at.next < self.segment_blocks);
                let log = Log::ALL.into_iter().find(has_room)?;
                (log, self.logs[log as usize]?)
            }
        };
        let place = (cursor.segment, cursor.next);
        cursor.next += 1;
        self.logs[log as usize] = Some(cursor);
        self.segments[cursor.segment as usize].written = version;
        Some(place)
    }

    /// The next free segment after the one taken last, around the end: logs go through the whole volume, as those of
    /// F2FS do.
    fn take_free(&mut self) -> Option<u32> {
        let next = self.free.range(self.taken + 1..).next().or_else(|| self.free.first()).copied()?;
        self.taken = next;
        self.free.remove(&next);
        Some(next)
    }

    /// Makes a block valid; returns whether it was not.
    pub(crate) fn set(&mut self, (segment, within): (u32, u32)) -> bool {
        let state = &mut self.segments[segment as usize];
        let (word, bit) = ((within / 64) as usize, 1 << (within % 64));
        let changed = state.bits[word] & bit == 0;
        if changed {
            state.bits[word] |= bit;
            state.valid += 1;
            self.valid += 1;
            self.dirty.insert(segment);
            self.free.remove(&segment);
        }
        changed
    }

    /// Makes a block invalid; returns whether it was valid.
    pub(crate) fn clear(&mut self, (segment, within): (u32, u32)) -> bool {
        let state = &mut self.segments[segment as usize];
        let (word, bit) = ((within / 64) as usize, 1 << (within % 64));
        let changed = state.bits[word] & bit != 0;
        if changed {
            state.bits[word] &= !bit;
            state.valid -= 1;
            self.valid -= 1;
            self.dirty.insert(segment);
            if state.valid == 0 {
                self.emptied.insert(segment);
            }
        }
        changed
    }

    pub(crate) fn is_valid(&self, (segment, within): (u32, u32)) -> bool {
        self.segments[segment as usize].bits[(within / 64) as usize] >> (within % 64) & 1 == 1
    }

    /// Places of the valid blocks of a segment.
    pub(crate) fn valid_in(&self, segment: u32) -> impl Iterator<Item = u32> {
        (0..self.segment_blocks).filter(move |&within| self.is_valid((segment, within)))
    }

    pub(crate) fn valid_count(&self, segment: u32) -> u32 {
        self.segments[segment as usize].valid
    }

    pub(crate) fn written(&self, segment: u32) -> u64 {
        self.segments[segment as usize].written
    }

    pub(crate) fn is_reserved(&self, segment: u32) -> bool {
        self.segments[segment as usize].reserved
    }

    pub(crate) fn is_free(&self, segment: u32) -> bool {
        self.free.contains(&segment)
    }

    pub(crate) fn is_open(&self, segment: u32) -> bool {
        self.logs.iter().flatten().any(|cursor| cursor.segment == segment)
    }

    pub(crate) fn logs(&self) -> [Option<Cursor>; LOGS] {
        self.logs
    }

    /// A checkpoint is durable: segments emptied before it may be written again.
    pub(crate) fn commit(&mut self) {
        for segment in std::mem::take(&mut self.emptied) {
            let state = &self.segments[segment as usize];
            if self.is_open(segment) {
                // An open segment is looked at again when it closes: keep it only if it is full and stays so.
                continue;
            }
            if state.valid == 0 && !state.reserved && segment < self.limit {
                self.free.insert(segment);
            }
        }
    }

    /// Valid blocks.
    pub(crate) fn valid(&self) -> u64 {
        self.valid
    }

    /// Blocks that can be written without a checkpoint.
    pub(crate) fn writable(&self) -> u64 {
        let open: u32 = self.logs.iter().flatten().map(|cursor| self.segment_blocks - cursor.next).sum();
        self.free.len() as u64 * u64::from(self.segment_blocks) + u64::from(open)
    }

    pub(crate) fn free_count(&self) -> u32 {
        self.free.len() as u32
    }

    /// Segments that data may lie in: below the limit and not given back.
    pub(crate) fn usable(&self) -> u32 {
        self.limit - self.reserved
    }

    pub(crate) fn reserved(&self) -> u32 {
        self.reserved
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Stops allocation from a segment on, or allows it again.
    pub(crate) fn set_limit(&mut self, limit: u32) {
        if limit < self.limit {
            self.free.split_off(&limit);
            // Segments given back already go with the rest.
            for segment in limit..self.limit {
                if std::mem::take(&mut self.segments[segment as usize].reserved) {
                    self.reserved -= 1;
                    self.dirty.insert(segment);
                }
            }
            for log in &mut self.logs {
                if let Some(cursor) = log.take_if(|cursor| cursor.segment >= limit) {
                    self.emptied.insert(cursor.segment);
                }
            }
        } else {
            // Free with the next checkpoint, if nothing is valid there: the last one may refer to it.
            self.emptied.extend(self.limit..limit);
        }
        self.limit = limit;
    }

    /// Counts a free segment as allocated, the highest one; `None` when none is free.
    pub(crate) fn reserve(&mut self) -> Option<u32> {
        let segment = self.free.pop_last()?;
        self.segments[segment as usize].reserved = true;
        self.reserved += 1;
        self.dirty.insert(segment);
        Some(segment)
    }
}
