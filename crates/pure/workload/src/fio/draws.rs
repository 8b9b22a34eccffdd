//! One request after the other: its direction, its offset, its length, in fio's order.
//! \[C\] fio 3.33, io_u.c

use super::job::{FioJob, Sequencer};
use super::lengths::BlockSizes;
use super::popular::Distribution;
use super::positions::{Positions, Walk};
use super::seeds::{Seeds, Streams};

const READ: usize = 0;
const WRITE: usize = 1;
const TRIM: usize = 2;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    /// 0 read, 1 write, 2 trim.
    pub(super) direction: usize,
    /// First byte on the drive.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) len: u64,
}

/// A mix of reads and writes: directions are drawn, and held for a while once they change.
#[derive(Clone, Debug)]
struct Mix {
    read_percent: u64,
    current: usize,
    /// Requests of the current direction, all passes counted, at which a direction is drawn again.
    until: u64,
    made: [u64; 3],
}

/// The requests of a job or clone, pass by pass.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    seeds: Seeds,
    streams: Streams,
    /// Whether the streams of later passes are of 64 bits.
    wide: bool,
    positions: Positions,
    mix: Mix,
    operations: [bool; 3],
    random: bool,
    sizes: [BlockSizes; 3],
    /// Whether sizes are those of requests that go on and of random ones, in place of those of reads and writes.
    sizes_by_order: bool,
    random_percent: [u64; 3],
    sequencer: Sequencer,
    /// One in so many requests of a random job is random.
    every: u64,
    left: u64,
    walk: Walk,
    /// For each percent of the requests, from and to which percent of the range they go.
    zones: Vec<(u64, u64)>,
    /// Whether the one place in flight may share its blocks from an attempt before that failed.
    shared_before: Option<bool>,
    is_at_end: bool,
}

impl Mix {
    #[inline]
    fn draw(&mut self, streams: &mut Streams) -> usize {
        if self.made[self.current] >= self.until {
            let drawn = usize::from(streams.mix.percent() > self.read_percent);
            if drawn != self.current {
                let others = if self.current == READ { 100 - self.read_percent } else { self.read_percent };
                self.until = self.made[self.current] * others / 100;
            }
            self.current = drawn;
        }
        self.current
    }
}

impl Draws {
    /// The requests of `job` at `positions`.
    pub(super) fn new(job: &FioJob, seeds: Seeds, wide: (bool, bool), positions: Positions) -> Self {
        let streams = seeds.streams(wide.0);
        Self {
            seeds,
            streams,
            wide: wide.1,
            positions,
            mix: Mix { read_percent: job.read_percent, current: READ, until: 0, made: [0; 3] },
            operations: job.operations,
            random: job.random,
            sizes: job.sizes.clone(),
            sizes_by_order: job.sizes_by_order,
            random_percent: job.random_percent,
            sequencer: job.sequencer,
            every: job.every,
            left: 1,
            walk: Walk { step: job.step, around: job.time_based },
            zones: zones(&job.distribution),
            shared_before: (job.depth() == 1).then_some(false),
            is_at_end: false,
        }
    }

    /// Begins a pass.
    pub(super) fn begin_pass(&mut self, is_first: bool) {
        if !is_first {
            self.mix.until = 0;
            if self.seeds.repeat {
                self.streams = self.seeds.streams(self.wide);
            }
        }
        self.positions.reset(self.seeds.blocks());
        self.is_at_end = false;
    }

    /// The next request; `None` when no offset is left.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Drawn> {
        let direction = self.direction();
        let mut is_shared = self.shared_before == Some(true);
        let drawn = self.draw(direction, &mut is_shared);
        if let Some(before) = &mut self.shared_before {
            // fio forgets that a request may share its blocks when it completes, and not when it could not be made.
            *before = drawn.is_none() && is_shared;
        }
        self.is_at_end = drawn.is_none();
        let drawn = drawn?;
        self.positions.note(direction, drawn.offset, drawn.len);
        self.mix.made[direction] += 1;
        Some(drawn)
    }

    #[inline]
    fn draw(&mut self, direction: usize, is_shared: &mut bool) -> Option<Drawn> {
        let (place, is_random) = self.place(direction, is_shared)?;
        let offset = self.on_drive(direction, place)?;
        let len = self.len(direction, offset, is_random)?;
        if offset + len > self.positions.whole {
            return None;
        }
        let Positions { begin, visited, .. } = &mut self.positions;
        let len = match visited {
            Some(visited) if !*is_shared => {
                let block = self.sizes[direction].smallest();
                let free = visited.visit((offset - *begin) / block, len.div_ceil(block));
                len.min(free * block)
            }
            _ => len,
        };
        (len > 0).then_some(Drawn { direction, offset, len })
    }

    #[inline]
    fn direction(&mut self) -> usize {
        match self.operations {
            [true, true, _] => self.mix.draw(&mut self.streams),
            [true, ..] => READ,
            // A write follows the trim of its blocks.
            [_, true, true] => {
                let starts = &self.positions.starts;
                if starts[WRITE] == starts[TRIM] { TRIM } else { WRITE }
            }
            [_, true, _] => WRITE,
            _ => TRIM,
        }
    }

    /// An offset from the beginning of the range, and whether it is a random one. Sets `is_shared` where its blocks may
    /// have been visited.
    #[inline]
    fn place(&mut self, direction: usize, is_shared: &mut bool) -> Option<(u64, bool)> {
        self.left = self.left.wrapping_sub(1);
        let is_turn = self.left == 0;
        if is_turn {
            self.left = self.every;
        }
        let is_copy = self.random && direction == WRITE && self.operations[TRIM];
        if is_turn && !is_copy && (!self.random || self.goes_anywhere(direction)) {
            return if self.random {
                self.block(direction).map(|offset| (offset, true))
            } else {
                self.positions.next(direction, self.walk).map(|offset| (offset, false))
            };
        }
        *is_shared = true;
        if is_copy {
            return Some((self.positions.starts[TRIM], true));
        }
        if !is_turn && self.sequencer == Sequencer::Identical {
            let start = self.positions.starts[direction];
            return Some((if start == u64::MAX { 0 } else { start - self.positions.begin }, false));
        }
        let next = self.positions.next(direction, self.walk).or_else(|| self.block(direction));
        next.map(|offset| (offset, false))
    }

    #[inline]
    fn goes_anywhere(&mut self, direction: usize) -> bool {
        let percent = self.random_percent[direction];
        percent == 100 || self.streams.anywhere[direction].percent() <= percent
    }

    /// The offset of a block that is drawn. A job that only time ends visits all blocks again once it has visited them.
    #[inline]
    fn block(&mut self, direction: usize) -> Option<u64> {
        let block = self.drawn_block(direction).or_else(|| {
            if !self.walk.around {
                return None;
            }
            self.positions.reset(self.seeds.blocks());
            self.drawn_block(direction)
        });
        block.map(|block| block.saturating_mul(self.sizes[direction].smallest()))
    }

    #[inline]
    fn drawn_block(&mut self, direction: usize) -> Option<u64> {
        if let Some(popular) = &mut self.positions.popular {
            return Some(popular.draw());
        }
        let blocks = self.positions.blocks(self.sizes[direction].smallest());
        if blocks == 0 {
            return None;
        }
        if self.zones.is_empty() {
            return self.even_block(blocks);
        }
        let (from, to) = self.zones[self.streams.zones.percent() as usize - 1];
        Some(self.even_block(blocks * (to - from) / 100)? + from * blocks / 100)
    }

    /// A block below `blocks`, the next free one if it was visited.
    #[inline]
    fn even_block(&mut self, blocks: u64) -> Option<u64> {
        let block = match &mut self.positions.register {
            Some(register) => register.draw()?,
            None => self.streams.blocks.share_of(blocks),
        };
        match &self.positions.visited {
            Some(visited) if visited.is_visited(block) => visited.next_free(block),
            _ => Some(block),
        }
    }

    /// `place` of the range as a place of the drive.
    #[inline]
    fn on_drive(&mut self, direction: usize, place: u64) -> Option<u64> {
        let Positions { begin, span, whole, starts, .. } = &mut self.positions;
        let offset = *begin + Some(place).filter(|place| place < span)?;
        // A trim at the place of the last one would look as if its write had been made.
        if self.random && direction == TRIM && self.operations[WRITE] && offset < *whole && starts[TRIM] == offset {
            starts[WRITE] = starts[WRITE].wrapping_sub(1);
        }
        (offset < *whole).then_some(offset)
    }

    #[inline]
    fn len(&mut self, direction: usize, offset: u64, is_random: bool) -> Option<u64> {
        let Positions { begin, span, starts, ends, .. } = &self.positions;
        if self.random && direction == WRITE && self.operations[TRIM] {
            return Some(ends[TRIM].wrapping_sub(starts[TRIM]));
        }
        let sizes = if self.sizes_by_order { usize::from(is_random) } else { direction };
        self.sizes[sizes].draw(&mut self.streams.sizes[sizes], (begin + span).saturating_sub(offset))
    }

    /// Whether the last pass found no offset.
    pub(super) fn is_at_end(&self) -> bool {
        self.is_at_end
    }
}

/// For each percent of the requests the percents of the range between which it goes.
fn zones(distribution: &Distribution) -> Vec<(u64, u64)> {
    let Distribution::Zoned(zones) = distribution else { return Vec::new() };
    let mut begin = 0;
    let ranges = zones.iter().flat_map(|&(requests, space)| {
        begin += space;
        std::iter::repeat_n((begin - space, begin), requests as usize)
    });
    ranges.collect()
}
