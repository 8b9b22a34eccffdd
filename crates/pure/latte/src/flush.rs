//! Flushes: dirty slots of the log go to the back end in the order of appends, chunk by chunk through a buffer.

use crate::front_log::FrontLog;
use crate::location::Locations;
use crate::operation::{RUN, Versions};

/// Chunks under way at most. Source: \[A\] one is read while others are written.
const CHUNKS: usize = 4;

/// A chunk: neighbours in the log. Source: \[A\] sheet §3.4 has 1 MiB; an order has [`RUN`] blocks here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    /// The block at each place of the buffer, its slot, and its version when the flush began.
    pub(crate) blocks: [u32; RUN],
    pub(crate) slots: [u32; RUN],
    pub(crate) began: Versions,
    pub(crate) count: u32,
    /// Orders under way.
    pub(crate) orders: u32,
    /// Places whose slot could not be read.
    pub(crate) unread: u32,
}

/// Flushes under way.
#[derive(Clone, Debug)]
pub(crate) struct Flushes {
    chunks: [Option<Chunk>; CHUNKS],
    /// The chunk that has ended in this step: its buffer is free after it.
    resting: Option<u32>,
    /// Position in the log up to which everything was looked at.
    next: u64,
}

impl Flushes {
    pub(crate) fn new() -> Self {
        Self { chunks: [None; CHUNKS], resting: None, next: 0 }
    }

    /// Whether anything is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.chunks.iter().any(Option::is_some)
    }

    /// Begins a flush of the next dirty slots; returns its number. `None` where no chunk is free, or nothing is to be flushed.
    pub(crate) fn begin(&mut self, log: &FrontLog, map: &mut Locations) -> Option<u32> {
        let is_free = |number: &usize| self.chunks[*number].is_none() && self.resting != Some(*number as u32);
        let number = (0..CHUNKS).find(is_free)?;
        let range = log.positions();
        let mut chunk = Chunk { blocks: [0; RUN], slots: [0; RUN], began: [0; RUN], count: 0, orders: 0, unread: 0 };
        let mut position = self.next.max(range.start);
        while position < range.end && (chunk.count as usize) < RUN {
            let (slot, owner) = log.at(position);
            if let Some(block) = owner
                && let Some(began) = map.begin_flush(block.into(), slot.into())
            {
                let place = chunk.count as usize;
                (chunk.blocks[place], chunk.slots[place], chunk.began[place]) = (block, slot, began);
                chunk.count += 1;
            }
            position += 1;
        }
        self.next = position;
        if chunk.count == 0 {
            return None;
        }
        self.chunks[number] = Some(chunk);
        Some(number as u32)
    }

    /// Slots that were passed over, or whose flush has failed, are looked at again.
    pub(crate) fn look_again(&mut self) {
        self.next = 0;
    }

    pub(crate) fn chunk(&mut self, number: u32) -> &mut Chunk {
        self.chunks[number as usize].as_mut().expect("orders name chunks under way")
    }

    /// A step of the service begins.
    pub(crate) fn begin_step(&mut self) {
        self.resting = None;
    }

    /// The chunk is over.
    pub(crate) fn end(&mut self, number: u32) {
        self.chunks[number as usize] = None;
        self.resting = Some(number);
    }
}

impl Chunk {
    /// The length of the run of slots that follow each other from `place` on.
    pub(crate) fn slots_from(&self, place: u32) -> u32 {
        run(&self.slots, place, self.count)
    }

    /// The length of the run of blocks that follow each other from `place` on, and that were read.
    pub(crate) fn blocks_from(&self, place: u32) -> u32 {
        let run = run(&self.blocks, place, self.count);
        (1..run).find(|&more| self.unread >> (place + more) & 1 == 1).unwrap_or(run)
    }
}

fn run(numbers: &[u32; RUN], place: u32, count: u32) -> u32 {
    let first = numbers[place as usize];
    (1..count - place).find(|&more| numbers[(place + more) as usize] != first + more).unwrap_or(count - place)
}
