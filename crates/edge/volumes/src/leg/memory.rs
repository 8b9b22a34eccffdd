//! Bytes in memory.

use crate::leg::task::{BLOCK, Source, Task};
use flashyard_blk::Operation;

/// Blocks in memory. They end with the process.
pub(crate) struct Memory {
    bytes: Vec<u8>,
}

impl Memory {
    /// Zeros, of which the operating system gives each page as it is written.
    pub(crate) fn new(blocks: u64) -> Self {
        Self { bytes: vec![0; blocks as usize * BLOCK] }
    }

    pub(crate) fn blocks(&self) -> u64 {
        (self.bytes.len() / BLOCK) as u64
    }

    /// Blocks as they are now.
    pub(crate) fn slice(&self, first: u64, count: u32) -> &[u8] {
        let first = first as usize * BLOCK;
        &self.bytes[first..first + count as usize * BLOCK]
    }

    pub(crate) fn carry_out(&mut self, task: Task, source: Source<'_>, into: &mut [u8]) {
        let first = task.first as usize * BLOCK;
        match task.operation {
            Operation::Read if !into.is_empty() => into.copy_from_slice(&self.bytes[first..first + task.bytes()]),
            Operation::Write => {
                let blocks = &mut self.bytes[first..first + task.bytes()];
                match source {
                    Source::Zeros => blocks.fill(0),
                    Source::Bytes(bytes) => blocks.copy_from_slice(bytes),
                }
            }
            Operation::Trim => self.bytes[first..first + task.bytes()].fill(0),
            _ => {}
        }
    }
}
