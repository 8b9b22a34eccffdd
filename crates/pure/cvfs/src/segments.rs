//! Segments: valid blocks, the ends of the logs, free space.
//!
//! A log goes on in a free segment while there are more of them than are kept spare, and otherwise in the free blocks
//! between the valid ones of a segment that was written before (`slack`).
//!
//! Invariant: a block that the last checkpoint refers to is not written again before the next checkpoint. A segment
//! becomes free only in [`SegmentMap::commit`], when no block of it is valid.
//!
//! Source: \[X\] F2FS, which fills slack space when free segments are short, and the rule of its mkfs for spare ones.

use crate::bytes::{put, u16_at, u32_at, u64_at};
use crate::layout::Layout;
use crate::log::{LOGS, Log};
use crate::slack::Slack;
use std::collections::BTreeSet;

/// Segments that files cannot use, whatever the size: four open logs and as many to write to [A].
const SPARE_SEGMENTS_MIN: u32 = 8;
/// Divisor that gives further spare segments of a small volume: 10 % [A].
const SPARE_PART: u32 = 10;

/// Segments of so many that files cannot use.
///
/// Source: \[D\] mkfs of F2FS takes the share that leaves most; with `2 (100 / share + 1) + 6` segments reserved and the
/// share of the rest beside them that is `8 + 2 sqrt(2 segments)`.
pub(crate) fn spare(segments: u32) -> u32 {
    SPARE_SEGMENTS_MIN + (segments / SPARE_PART).min((8 * u64::from(segments)).isqrt() as u32)
}

/// Where a log goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) segment: u32,
    /// Place of the next block in there, which may be written; equal to the blocks of a segment when there is none.
    pub(crate) next: u32,
}

/// One segment.
#[derive(Clone, Debug)]
struct Segment {
    valid: u32,
    /// Of these, blocks that hold nothing and only count as allocated: capacity given back in place.
    reserved: u32,
    /// Checkpoint before which it was written last.
    written: u64,
    /// The log that was there last.
    log: Log,
    /// Valid blocks.
    bits: Box<[u64]>,
    /// Blocks that the last checkpoint refers to.
    durable: Box<[u64]>,
}

impl Segment {
    /// Blocks that may not be written before the next checkpoint, as bits.
    fn busy(&self, word: usize) -> u64 {
        self.bits[word] | self.durable[word]
    }

    /// Of `blocks`, the first place from `from` on that may be written; `blocks` when there is none.
    fn writable_from(&self, from: u32, blocks: u32) -> u32 {
        let mut at = from;
        while at < blocks {
            let busy = self.busy((at / 64) as usize) >> (at % 64);
            let skip = busy.trailing_ones();
            let left = 64 - at % 64;
            if skip < left {
                return (at + skip).min(blocks);
            }
            at += left;
        }
        blocks
    }

    /// Places from `from` on that may be written.
    fn room_from(&self, from: u32, blocks: u32) -> u32 {
        let mut busy = 0;
        for word in from / 64..blocks.div_ceil(64) {
            let before = from.saturating_sub(word * 64);
            busy += (self.busy(word as usize) >> before).count_ones();
        }
        blocks - from - busy
    }
}

/// All segments.
#[derive(Clone, Debug)]
pub(crate) struct SegmentMap {
    segment_blocks: u32,
    segments: Vec<Segment>,
    free: BTreeSet<u32>,
    slack: Slack,
    logs: [Option<Cursor>; LOGS],
    /// Segments from here on are beyond the end of the volume, or about to be.
    limit: u32,
    /// The segment that a log has taken last.
    taken: u32,
    /// Valid blocks that hold something, and others.
    valid: u64,
    reserved: u64,
    /// Segments that changed since they were written to the table.
    dirty: BTreeSet<u32>,
    /// Segments that changed since the last checkpoint, or that a log has left.
    changed: BTreeSet<u32>,
}

impl SegmentMap {
    /// All segments empty; those below `limit` are free.
    pub(crate) fn new(layout: &Layout, limit: u32) -> Self {
        let words = layout.segment_blocks.div_ceil(64) as usize;
        let bits: Box<[u64]> = vec![0; words].into();
        let empty = Segment { valid: 0, reserved: 0, written: 0, log: Log::DataCold, durable: bits.clone(), bits };
        Self {
            segment_blocks: layout.segment_blocks,
            segments: vec![empty; layout.segments as usize],
            free: (0..limit).collect(),
            slack: Slack::new(layout.segments),
            logs: [None; LOGS],
            limit,
            taken: 0,
            valid: 0,
            reserved: 0,
            dirty: BTreeSet::new(),
            changed: BTreeSet::new(),
        }
    }

    /// Takes over one segment from its table entry; `None` when its counts and its bits differ. True when all its blocks are
    /// given back, by a version of the format that did not give them owners.
    pub(crate) fn restore(&mut self, segment: u32, entry: &[u8]) -> Option<bool> {
        let state = &mut self.segments[segment as usize];
        state.valid = u32_at(entry, 0);
        state.log = Log::ALL.get(usize::from(entry[5])).copied()?;
        state.reserved = u32::from(u16_at(entry, 6));
        state.written = u64_at(entry, 8);
        for (index, word) in state.bits.iter_mut().enumerate() {
            let mut bytes = [0; 8];
            let from = &entry[16 + index * 8..entry.len().min(24 + index * 8)];
            bytes[..from.len()].copy_from_slice(from);
            *word = u64::from_le_bytes(bytes);
        }
        let whole = entry[4] != 0;
        if state.bits.iter().map(|word| word.count_ones()).sum::<u32>() != state.valid || state.reserved > state.valid {
            return None;
        }
        state.durable.clone_from(&state.bits);
        self.valid += u64::from(state.valid - state.reserved);
        self.reserved += u64::from(state.reserved);
        if state.valid > 0 {
            self.free.remove(&segment);
        }
        Some(whole)
    }

    /// Takes over the logs, after all segments; `None` when a cursor lies outside, on a block in use or beside another.
    pub(crate) fn restore_logs(&mut self, logs: [Option<Cursor>; LOGS]) -> Option<()> {
        for (index, cursor) in logs.iter().flatten().enumerate() {
            let state = self.segments.get(cursor.segment as usize)?;
            let shared = logs.iter().flatten().take(index).any(|other| other.segment == cursor.segment);
            if cursor.next > self.segment_blocks
                || state.writable_from(cursor.next, self.segment_blocks) != cursor.next
                || shared
            {
                return None;
            }
            self.free.remove(&cursor.segment);
            self.taken = self.taken.max(cursor.segment);
        }
        self.logs = logs;
        (0..self.limit).for_each(|segment| self.offer(segment));
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
        put(entry, 4, &[0, state.log as u8]);
        put(entry, 6, &(state.reserved as u16).to_le_bytes());
        put(entry, 8, &state.written.to_le_bytes());
        for (to, word) in entry[16..].chunks_mut(8).zip(&state.bits) {
            to.copy_from_slice(&word.to_le_bytes()[..to.len()]);
        }
    }

    /// Takes the next block of a log, without making it valid. `None` when no block is free.
    pub(crate) fn allocate(&mut self, log: Log, version: u64) -> Option<(u32, u32)> {
        let log = self.log_with_room(log)?;
        let cursor = self.logs[log as usize]?;
        let state = &mut self.segments[cursor.segment as usize];
        state.written = version;
        let next = state.writable_from(cursor.next + 1, self.segment_blocks);
        self.logs[log as usize] = Some(Cursor { next, ..cursor });
        Some((cursor.segment, cursor.next))
    }

    /// This log, which goes on in another segment if it has to; another one that has room, if it cannot.
    fn log_with_room(&mut self, log: Log) -> Option<Log> {
        let blocks = self.segment_blocks;
        let has_room = |logs: &[Option<Cursor>; LOGS], log: Log| logs[log as usize].is_some_and(|at| at.next < blocks);
        if has_room(&self.logs, log) {
            return Some(log);
        }
        let short = self.free_count() <= spare(self.usable());
        let slack = if short { self.take_slack(&[log, log.sibling()]) } else { None };
        let segment = slack.or_else(|| self.take_free()).or_else(|| self.take_slack(&Log::ALL));
        let Some(segment) = segment else {
            // The last blocks of the volume: better in the wrong log than not at all.
            return Log::ALL.into_iter().find(|&log| has_room(&self.logs, log));
        };
        let state = &mut self.segments[segment as usize];
        state.log = log;
        let next = state.writable_from(0, blocks);
        self.dirty.insert(segment);
        let before = self.logs[log as usize].replace(Cursor { segment, next });
        if let Some(before) = before {
            self.offer(before.segment);
            // Blocks that died in it while it was open count from the next checkpoint on.
            self.changed.insert(before.segment);
        }
        Some(log)
    }

    /// The segment with most slack of the first of these logs that has any.
    fn take_slack(&mut self, logs: &[Log]) -> Option<u32> {
        logs.iter().find_map(|&log| self.slack.take(log, self.taken))
    }

    /// Lets logs go on in the slack of a segment, if it has any and no log is there.
    fn offer(&mut self, segment: u32) {
        let state = &self.segments[segment as usize];
        let closed = !self.free.contains(&segment) && !self.is_open(segment);
        let room = if closed && segment < self.limit { state.room_from(0, self.segment_blocks) } else { 0 };
        self.slack.set(segment, state.log, room);
    }

    /// Blocks of a segment that logs may go on in: none where one is, and none in free segments.
    pub(crate) fn slack_in(&self, segment: u32) -> u32 {
        self.slack.of(segment)
    }

    /// Keeps logs out of the slack of a segment until the next checkpoint.
    pub(crate) fn keep_out(&mut self, segment: u32) {
        self.slack.set(segment, Log::DataCold, 0);
        self.changed.insert(segment);
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
            self.changed.insert(segment);
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
            self.changed.insert(segment);
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

    /// Blocks of a segment that are not valid, in runs: the place of the first one and the end of each.
    pub(crate) fn runs_free(&self, segment: u32) -> Vec<(u32, u32)> {
        if self.valid_count(segment) == 0 {
            return vec![(0, self.segment_blocks)];
        }
        let mut runs = Vec::<(u32, u32)>::new();
        for within in (0..self.segment_blocks).filter(|&within| !self.is_valid((segment, within))) {
            match runs.last_mut() {
                Some(last) if last.1 == within => last.1 += 1,
                _ => runs.push((within, within + 1)),
            }
        }
        runs
    }

    pub(crate) fn valid_count(&self, segment: u32) -> u32 {
        self.segments[segment as usize].valid
    }

    pub(crate) fn written(&self, segment: u32) -> u64 {
        self.segments[segment as usize].written
    }

    /// Blocks of a segment that are given back.
    pub(crate) fn reserved_in(&self, segment: u32) -> u32 {
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

    /// A checkpoint is durable: blocks that died before it may be written again.
    pub(crate) fn commit(&mut self) {
        for segment in std::mem::take(&mut self.changed) {
            let state = &mut self.segments[segment as usize];
            state.durable.copy_from_slice(&state.bits);
            if state.valid == 0 && segment < self.limit && !self.is_open(segment) {
                self.free.insert(segment);
            }
            self.offer(segment);
        }
    }

    /// Valid blocks.
    pub(crate) fn valid(&self) -> u64 {
        self.valid
    }

    /// Blocks that can be written without a checkpoint.
    pub(crate) fn writable(&self) -> u64 {
        let left = |at: &Cursor| self.segments[at.segment as usize].room_from(at.next, self.segment_blocks);
        let open: u32 = self.logs.iter().flatten().map(left).sum();
        self.free.len() as u64 * u64::from(self.segment_blocks) + self.slack.blocks() + u64::from(open)
    }

    pub(crate) fn free_count(&self) -> u32 {
        self.free.len() as u32
    }

    /// As many segments as data may lie in: those below the limit, without as many as are given back.
    pub(crate) fn usable(&self) -> u32 {
        self.limit.saturating_sub(self.reserved_segments())
    }

    /// Blocks given back.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Segments that these would fill.
    pub(crate) fn reserved_segments(&self) -> u32 {
        self.reserved.div_ceil(u64::from(self.segment_blocks)) as u32
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Stops allocation from a segment on, or allows it again.
    pub(crate) fn set_limit(&mut self, limit: u32) {
        if limit < self.limit {
            self.free.split_off(&limit);
            for log in &mut self.logs {
                if let Some(cursor) = log.take_if(|cursor| cursor.segment >= limit) {
                    self.changed.insert(cursor.segment);
                }
            }
            (limit..self.limit).for_each(|segment| self.slack.set(segment, Log::DataCold, 0));
        } else {
            // Free with the next checkpoint, if nothing is valid there: the last one may refer to it.
            self.changed.extend(self.limit..limit);
        }
        self.limit = limit;
    }

    /// Counts up to `most` blocks of a segment as allocated that may be written now and that no log is at, the highest ones;
    /// their places.
    pub(crate) fn reserve(&mut self, segment: u32, most: u32) -> Vec<u32> {
        if segment >= self.limit || self.is_open(segment) {
            return Vec::new();
        }
        let state = &self.segments[segment as usize];
        let may = |within: &u32| state.busy((within / 64) as usize) >> (within % 64) & 1 == 0;
        let places: Vec<u32> = (0..self.segment_blocks).rev().filter(may).take(most as usize).collect();
        for &within in &places {
            self.set((segment, within));
        }
        self.segments[segment as usize].reserved += places.len() as u32;
        self.valid -= places.len() as u64;
        self.reserved += places.len() as u64;
        self.offer(segment);
        places
    }

    /// A block that was given back is free again.
    pub(crate) fn unreserve(&mut self, place: (u32, u32)) {
        self.clear(place);
        self.segments[place.0 as usize].reserved -= 1;
        self.valid += 1;
        self.reserved -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Format;

    #[test]
    fn a_segment_that_an_older_version_gave_back_is_told() {
        let layout = Layout::derive(Format { segment_blocks: 16, id: 7 }, 1000).expect("it has room");
        let mut map = SegmentMap::new(&layout, layout.segments);
        let mut entry = [0; 18];
        assert_eq!(map.restore(3, &entry), Some(false));
        entry[4] = 1;
        assert_eq!(map.restore(3, &entry), Some(true));
        assert_eq!(map.reserve(3, u32::MAX).len(), 16);
        map.encode(3, &mut entry);
        let mut again = SegmentMap::new(&layout, layout.segments);
        assert_eq!((again.restore(3, &entry), again.reserved(), again.valid()), (Some(false), 16, 0));
        // More blocks given back than are valid.
        entry[6] = 17;
        assert_eq!(again.restore(3, &entry), None);
    }
}
