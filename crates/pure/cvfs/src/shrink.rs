//! Giving capacity back while the file system is in use.
//!
//! The seven steps (sheet `cvss` §3.3 [P]): the request comes with a size; it is checked; nothing is allocated above
//! the new end any more; each valid block above moves to a lower free one and its pointer follows; a checkpoint; the
//! superblock; the answer.
//!
//! A remap leaves nothing behind at its source, to which the last checkpoint still points. So a batch of remaps is
//! announced by a checkpoint of its own before it begins; a mount that finds an announcement repeats the remaps, which
//! changes nothing where they have happened.

use crate::ahead;
use crate::checkpoint::Move;
use crate::device::blocks_of;
use crate::error::FsError;
use crate::fs::{Cost, FileSystem};
use crate::holes;
use crate::layout::{MOVES_MAX, SEGMENTS_MIN};
use crate::log::Log;
use crate::node::WHOLE_NODE;
use crate::resizing::{Method, Resizing, Shrunk};
use flashyard_blk::{Operation, RequestError, Volume, VolumeError};

impl<D: Volume> FileSystem<D> {
    /// Shrinks the volume to at most `blocks` blocks, whole segments, in one go.
    ///
    /// Errors: as for [`Self::shrink_begin`] and [`Self::shrink_step`].
    pub fn shrink(&mut self, blocks: u32, method: Method) -> Result<Shrunk, FsError> {
        self.shrink_begin(blocks, method)?;
        loop {
            if let Some(shrunk) = self.shrink_step(4096)? {
                return Ok(shrunk);
            }
        }
    }

    /// Begins to shrink: from now on nothing is written above the new end.
    ///
    /// Errors: not smaller, too small for what is in use, the device knows no remap, frozen, or busy with another one.
    pub fn shrink_begin(&mut self, blocks: u32, method: Method) -> Result<(), FsError> {
        self.check_frozen()?;
        if self.resizing.is_some() {
            return Err(FsError::Busy);
        }
        if method == Method::Remap && !self.device.remaps() {
            let volume = self.device.volume().info().id;
            let refused = RequestError::Unsupported { volume, operation: Operation::Remap };
            return Err(VolumeError::from(refused).into());
        }
        let now = self.layout.segments_in(self.blocks);
        let reserved = self.segments.reserved_segments();
        let count_reserved = if method == Method::Holes { reserved } else { 0 };
        let target = self.layout.segments_in(blocks);
        if target + count_reserved >= now {
            return Err(FsError::Invalid("the new size is not smaller by a segment"));
        }
        let used = self.segments.valid() + self.unwritten;
        // Blocks above the new end that are given back already go with it, so this is careful by those.
        let usable = if method == Method::Holes { target } else { target.saturating_sub(reserved) };
        if target < SEGMENTS_MIN || used > self.capacity(usable) {
            return Err(FsError::NoSpace);
        }
        self.sync()?;
        let holes = u64::from(now - count_reserved - target) * u64::from(self.layout.segment_blocks);
        if method != Method::Holes {
            self.segments.set_limit(target);
            self.changed = true;
        }
        self.resizing = Some(Resizing {
            method,
            blocks_before: self.blocks,
            moved_before: self.counters.blocks_moved + self.counters.blocks_cleaned,
            segments: target,
            wanted: holes,
            given: 0,
            nodes: false,
            slack: false,
            marked: Vec::new(),
            next: if method == Method::Holes { now } else { target },
        });
        Ok(())
    }

    /// Moves up to `blocks_max` blocks; the last step returns the result. Other operations may come between.
    ///
    /// Errors: there is no space after all, or the device fails. Then the size is what it was.
    pub fn shrink_step(&mut self, blocks_max: u32) -> Result<Option<Shrunk>, FsError> {
        let Some(mut resizing) = self.resizing.take() else {
            return Err(FsError::Invalid("no change of size is under way"));
        };
        let step = match resizing.method {
            Method::Holes => holes::step(self, &mut resizing, blocks_max),
            Method::Remap | Method::Relocate => self.step_move(&mut resizing, blocks_max),
        };
        match step {
            Ok(None) => self.resizing = Some(resizing),
            Ok(Some(_)) => {}
            Err(_) if resizing.method == Method::Holes => holes::undo(self, resizing.marked),
            Err(_) => self.segments.set_limit(self.layout.segments_in(self.blocks)),
        }
        step
    }

    /// Makes the volume larger again, up to the size it was made with and that of the device.
    ///
    /// Errors: not larger, larger than that, or a change of size is under way.
    pub fn grow(&mut self, blocks: u32) -> Result<u32, FsError> {
        self.check_frozen()?;
        if self.resizing.is_some() {
            return Err(FsError::Busy);
        }
        if blocks > blocks_of(&self.device).min(self.layout.blocks) {
            return Err(FsError::Invalid("larger than the device, or than the file system was made for"));
        }
        let segments = self.layout.segments_in(blocks);
        if segments <= self.segments.limit() {
            return Err(FsError::Invalid("the new size is not larger by a segment"));
        }
        self.blocks = self.layout.segment_first(segments);
        self.segments.set_limit(segments);
        self.changed = true;
        self.checkpoint()?;
        self.write_size()?;
        Ok(self.blocks)
    }

    /// The least size to shrink to with what is in use now, in blocks.
    pub(crate) fn blocks_min(&self) -> u32 {
        let used = self.segments.valid() + self.unwritten;
        let enough = |&segments: &u32| used <= self.capacity(segments) && segments >= SEGMENTS_MIN;
        let lowest = (used / u64::from(self.layout.segment_blocks)) as u32;
        let segments = (lowest..).find(enough).unwrap_or(self.layout.segments);
        self.layout.segment_first(segments + self.segments.reserved_segments())
    }

    fn step_move(&mut self, resizing: &mut Resizing, blocks_max: u32) -> Result<Option<Shrunk>, FsError> {
        // A segment at a time fits into the space that is kept back, or can be made to.
        let blocks_max = blocks_max.clamp(1, self.step_max());
        self.prepare(Cost { new: 0, dirty: 2 * u64::from(blocks_max), frees: true })?;
        self.sync()?;
        let mut sources = self.sources(resizing, blocks_max)?;
        if sources.is_empty() && !resizing.nodes {
            (resizing.nodes, resizing.next) = (true, resizing.segments);
            sources = self.sources(resizing, blocks_max)?;
        }
        if sources.is_empty() {
            return self.finish(resizing).map(Some);
        }
        let moved = match resizing.method {
            Method::Remap => self.remap(&sources)?,
            _ => {
                self.carry(&sources)?;
                self.checkpoint()?;
                sources.len()
            }
        };
        self.counters.blocks_moved += moved as u64;
        Ok(None)
    }

    /// Blocks that one step may move: what it writes must fit beside what is kept back.
    fn step_max(&self) -> u32 {
        let spare = self.segments.writable().saturating_sub(self.reserve()) / 4;
        (spare.min(4096) as u32).max(self.layout.segment_blocks / 2)
    }

    /// Valid blocks above the new end, the lowest ones.
    fn sources(&mut self, resizing: &mut Resizing, blocks_max: u32) -> Result<Vec<u32>, FsError> {
        let mut sources = Vec::new();
        let (mut read, end) = (resizing.next, self.layout.segments_in(self.blocks));
        for segment in resizing.next..end {
            if segment == read {
                read = ahead::read_owners(self, segment..end, blocks_max - sources.len() as u32)?;
            }
            let first = self.layout.segment_first(segment);
            // Holes go with the end when all is done.
            let reserved = self.segments.reserved_in(segment);
            let holes_only = self.segments.valid_count(segment) == reserved;
            let valid = self.segments.valid_in(segment).map(|within| first + within).filter(|_| !holes_only);
            let valid: Vec<u32> = valid.collect();
            for block in valid {
                if sources.len() as u32 == blocks_max {
                    return Ok(sources);
                }
                let (nid, slot) = self.owner(block)?;
                let is_hole = nid == 0 && reserved > 0;
                if !is_hole && (slot == WHOLE_NODE) == resizing.nodes {
                    sources.push(block);
                }
            }
            if sources.is_empty() {
                resizing.next = segment + 1;
            }
        }
        Ok(sources)
    }

    /// Remaps the first of these blocks, as many as one checkpoint can announce; how many.
    fn remap(&mut self, sources: &[u32]) -> Result<usize, FsError> {
        let taken = take_destinations(self, sources);
        // Destinations that were taken are valid, and nothing points to them.
        self.frozen |= taken.is_err();
        let moves = taken?;
        self.checkpoint_announcing(moves.clone())?;
        let done = self.carry_out(&moves);
        // The sources are unmapped now, and the last checkpoint needs them moved.
        self.frozen |= done.is_err();
        done.map(|()| moves.iter().map(|run| run.count as usize).sum())
    }

    /// Repeats the remaps that a checkpoint announced.
    pub(crate) fn finish_remaps(&mut self, moves: &[Move]) -> Result<(), FsError> {
        if moves.is_empty() { Ok(()) } else { self.carry_out(moves) }
    }

    fn carry_out(&mut self, moves: &[Move]) -> Result<(), FsError> {
        for &Move { destination, source, count } in moves {
            self.device.remap(destination, source, count)?;
        }
        let sources: Vec<u32> = moves.iter().flat_map(|run| run.source..run.source + run.count).collect();
        ahead::read_holders(self, &sources, false)?;
        for &Move { destination, source, count } in moves {
            for index in 0..count {
                self.redirect(source + index, destination + index)?;
            }
        }
        self.checkpoint()
    }

    /// Redirects the pointer to one block to another.
    fn redirect(&mut self, source: u32, destination: u32) -> Result<(), FsError> {
        let (nid, slot) = self.owner(source)?;
        let damaged = FsError::Corrupt { what: "owner", block: source };
        if slot == WHOLE_NODE {
            if self.address(nid)? != source {
                return Err(damaged);
            }
            self.set_address(nid, destination)?;
        } else {
            let node = self.node_moved(nid)?;
            let pointer = node.pointers.get_mut(usize::from(slot)).filter(|pointer| **pointer == source);
            *pointer.ok_or(damaged)? = destination;
        }
        self.free_block(source)
    }

    fn finish(&mut self, resizing: &Resizing) -> Result<Shrunk, FsError> {
        holes::take_again(self, resizing.segments)?;
        let before = self.blocks;
        self.blocks = self.layout.segment_first(resizing.segments);
        self.changed = true;
        if let Err(error) = self.checkpoint() {
            self.blocks = before;
            return Err(error);
        }
        self.write_size()?;
        Ok(self.report(resizing, u64::from(resizing.blocks_before - self.blocks)))
    }

    pub(crate) fn report(&self, resizing: &Resizing, blocks_given: u64) -> Shrunk {
        let moved = self.counters.blocks_moved + self.counters.blocks_cleaned;
        Shrunk {
            method: resizing.method,
            blocks_before: resizing.blocks_before,
            blocks: self.blocks,
            blocks_given,
            blocks_moved: moved - resizing.moved_before,
        }
    }
}

/// A destination for each of the first sources, as many as make one list of moves.
fn take_destinations<D: Volume>(fs: &mut FileSystem<D>, sources: &[u32]) -> Result<Vec<Move>, FsError> {
    let mut moves = Vec::<Move>::new();
    for &source in sources {
        // The next block may begin a run of its own.
        if moves.len() == MOVES_MAX {
            break;
        }
        let (nid, slot) = fs.owner(source)?;
        let log = if slot == WHOLE_NODE { Log::NodeCold } else { Log::DataCold };
        // The destination is valid from now on, so that nothing else is written there.
        let destination = fs.take_block(log, nid, slot)?;
        match moves.last_mut() {
            Some(last) if last.source + last.count == source && last.destination + last.count == destination => {
                last.count += 1;
            }
            _ => moves.push(Move { destination, source, count: 1 }),
        }
    }
    Ok(moves)
}
