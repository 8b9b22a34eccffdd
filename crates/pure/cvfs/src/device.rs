//! The waist below: a device of 4 KiB blocks.

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 4096;

/// One block.
pub(crate) type Block = [u8; BLOCK_BYTES];

/// A block of zeros on the heap.
pub(crate) fn zeros() -> Box<Block> {
    Box::new([0; BLOCK_BYTES])
}

/// Why a device did not carry out a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The range lies beyond the end.
    #[error("blocks {first} to {last} of a device of {blocks}")]
    OutOfRange {
        /// First block of the command.
        first: u32,
        /// Its last block.
        last: u64,
        /// Blocks of the device.
        blocks: u32,
    },
    /// It does not know the command.
    #[error("the device cannot {0}")]
    Unsupported(&'static str),
    /// It has lost power: nothing more comes from it.
    #[error("the device has lost power")]
    PowerLost,
    /// Input or output failed, in the words of the layer below.
    #[error("{0}")]
    Io(String),
}

/// A device of 4 KiB blocks.
///
/// Contract: a command that was acknowledged is visible to every later one; after a loss of power, everything up to
/// the last flush is there, and of what came later any part: a write may be torn between any two sectors, a trim or
/// remap may have happened for any of its blocks.
pub trait BlockDevice {
    /// Blocks of the device.
    fn blocks(&self) -> u32;

    /// Reads `buffer.len()` bytes, whole blocks, beginning with block `first`. Trimmed blocks read as anything.
    ///
    /// Errors: [`DeviceError`].
    fn read(&mut self, first: u32, buffer: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes whole blocks.
    ///
    /// Errors: [`DeviceError`].
    fn write(&mut self, first: u32, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Makes everything acknowledged so far survive a loss of power.
    ///
    /// Errors: [`DeviceError`].
    fn flush(&mut self) -> Result<(), DeviceError>;

    /// Marks the blocks as free. A hint: a device may ignore it.
    ///
    /// Errors: [`DeviceError`].
    fn trim(&mut self, first: u32, count: u32) -> Result<(), DeviceError>;

    /// Whether [`Self::remap`] works.
    fn can_remap(&self) -> bool {
        false
    }

    /// Moves the contents of `count` blocks from `source` to `destination` without copying: the source is unmapped
    /// afterwards. A block whose source is unmapped leaves its destination as it is, so that repeating a remap
    /// changes nothing. The ranges do not overlap.
    ///
    /// Source: [P] sheet `cvss` §3.2; unmapped sources are skipped: [C].
    ///
    /// Errors: [`DeviceError::Unsupported`] unless [`Self::can_remap`].
    fn remap(&mut self, destination: u32, source: u32, count: u32) -> Result<(), DeviceError> {
        let _ = (destination, source, count);
        Err(DeviceError::Unsupported("remap"))
    }
}

impl<D: BlockDevice + ?Sized> BlockDevice for Box<D> {
    fn blocks(&self) -> u32 {
        (**self).blocks()
    }

    fn read(&mut self, first: u32, buffer: &mut [u8]) -> Result<(), DeviceError> {
        (**self).read(first, buffer)
    }

    fn write(&mut self, first: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        (**self).write(first, bytes)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        (**self).flush()
    }

    fn trim(&mut self, first: u32, count: u32) -> Result<(), DeviceError> {
        (**self).trim(first, count)
    }

    fn can_remap(&self) -> bool {
        (**self).can_remap()
    }

    fn remap(&mut self, destination: u32, source: u32, count: u32) -> Result<(), DeviceError> {
        (**self).remap(destination, source, count)
    }
}

impl<D: BlockDevice + ?Sized> BlockDevice for &mut D {
    fn blocks(&self) -> u32 {
        (**self).blocks()
    }

    fn read(&mut self, first: u32, buffer: &mut [u8]) -> Result<(), DeviceError> {
        (**self).read(first, buffer)
    }

    fn write(&mut self, first: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        (**self).write(first, bytes)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        (**self).flush()
    }

    fn trim(&mut self, first: u32, count: u32) -> Result<(), DeviceError> {
        (**self).trim(first, count)
    }

    fn can_remap(&self) -> bool {
        (**self).can_remap()
    }

    fn remap(&mut self, destination: u32, source: u32, count: u32) -> Result<(), DeviceError> {
        (**self).remap(destination, source, count)
    }
}

/// Checks that a range lies on a device.
///
/// Errors: [`DeviceError::OutOfRange`].
pub fn check_range(first: u32, count: u64, blocks: u32) -> Result<(), DeviceError> {
    let end = u64::from(first) + count;
    match end <= u64::from(blocks) {
        true => Ok(()),
        false => Err(DeviceError::OutOfRange { first, last: end.saturating_sub(1), blocks }),
    }
}

/// Commands that a device was given, and their blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Read commands, and blocks in them.
    pub reads: u64,
    /// Blocks read.
    pub blocks_read: u64,
    /// Write commands.
    pub writes: u64,
    /// Blocks written.
    pub blocks_written: u64,
    /// Flushes.
    pub flushes: u64,
    /// Trim commands.
    pub trims: u64,
    /// Blocks trimmed.
    pub blocks_trimmed: u64,
    /// Remap commands.
    pub remaps: u64,
    /// Blocks remapped.
    pub blocks_remapped: u64,
}

/// Times of commands on a drive, for tables of time. Sources: sheet `cvss` §4 unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceCosts {
    /// One page from flash, in microseconds. [P] 50.
    pub read_us: f64,
    /// One page to flash, in microseconds. [P] 500.
    pub program_us: f64,
    /// Pages that are read or programmed at a time when many are asked for. [P] 8 channels of 8 LUNs.
    pub lanes: f64,
    /// One entry of the map moved, with its record in protected memory, in microseconds. [A] 0.1: two entries and a
    /// record of 8 bytes in DRAM.
    pub map_entry_us: f64,
    /// Each command, from the file system to the drive and back, in microseconds. [A] 10.
    pub command_us: f64,
}

impl Default for DeviceCosts {
    fn default() -> Self {
        Self { read_us: 50.0, program_us: 500.0, lanes: 64.0, map_entry_us: 0.1, command_us: 10.0 }
    }
}

impl DeviceCosts {
    /// Seconds that a drive needs at least for this traffic, one command after the other: pages of a command go through
    /// the lanes together.
    pub fn seconds(&self, traffic: &Traffic) -> f64 {
        // Pages fill the lanes at best, and no command is faster than a page.
        let pages = |commands: u64, blocks: u64| (blocks as f64 / self.lanes).max(commands as f64);
        let commands = traffic.reads + traffic.writes + traffic.flushes + traffic.trims + traffic.remaps;
        let us = pages(traffic.reads, traffic.blocks_read) * self.read_us
            + pages(traffic.writes, traffic.blocks_written) * self.program_us
            + (traffic.blocks_remapped + traffic.blocks_trimmed) as f64 * self.map_entry_us
            + commands as f64 * self.command_us;
        us / 1e6
    }
}

/// A device in memory: sparse, with its mapped blocks and its traffic.
#[derive(Clone, Debug, Default)]
pub struct MemoryDevice {
    blocks: Vec<Option<Box<Block>>>,
    /// Counts since the beginning.
    pub traffic: Traffic,
    /// Whether it knows remap.
    pub remaps: bool,
}

impl MemoryDevice {
    /// An empty device that knows remap.
    pub fn new(blocks: u32) -> Self {
        Self { blocks: vec![None; blocks as usize], traffic: Traffic::default(), remaps: true }
    }

    /// Blocks that hold something: the utilization as the device sees it.
    pub fn mapped(&self) -> u32 {
        self.blocks.iter().flatten().count() as u32
    }

    /// Whether a block holds something.
    pub fn is_mapped(&self, block: u32) -> bool {
        self.blocks[block as usize].is_some()
    }

    fn check(&self, first: u32, bytes: usize) -> Result<usize, DeviceError> {
        debug_assert_eq!(bytes % BLOCK_BYTES, 0, "whole blocks");
        check_range(first, (bytes / BLOCK_BYTES) as u64, self.blocks())?;
        Ok(first as usize)
    }
}

impl BlockDevice for MemoryDevice {
    fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    fn read(&mut self, first: u32, buffer: &mut [u8]) -> Result<(), DeviceError> {
        let first = self.check(first, buffer.len())?;
        for (to, from) in buffer.chunks_exact_mut(BLOCK_BYTES).zip(&self.blocks[first..]) {
            match from {
                Some(block) => to.copy_from_slice(&block[..]),
                None => to.fill(0),
            }
        }
        self.traffic.reads += 1;
        self.traffic.blocks_read += (buffer.len() / BLOCK_BYTES) as u64;
        Ok(())
    }

    fn write(&mut self, first: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        let first = self.check(first, bytes.len())?;
        for (from, to) in bytes.chunks_exact(BLOCK_BYTES).zip(&mut self.blocks[first..]) {
            to.get_or_insert_with(zeros).copy_from_slice(from);
        }
        self.traffic.writes += 1;
        self.traffic.blocks_written += (bytes.len() / BLOCK_BYTES) as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.traffic.flushes += 1;
        Ok(())
    }

    fn trim(&mut self, first: u32, count: u32) -> Result<(), DeviceError> {
        check_range(first, count.into(), self.blocks())?;
        self.blocks[first as usize..(first + count) as usize].fill(None);
        self.traffic.trims += 1;
        self.traffic.blocks_trimmed += u64::from(count);
        Ok(())
    }

    fn can_remap(&self) -> bool {
        self.remaps
    }

    fn remap(&mut self, destination: u32, source: u32, count: u32) -> Result<(), DeviceError> {
        if !self.remaps {
            return Err(DeviceError::Unsupported("remap"));
        }
        check_range(destination, count.into(), self.blocks())?;
        check_range(source, count.into(), self.blocks())?;
        for index in 0..count {
            if let Some(block) = self.blocks[(source + index) as usize].take() {
                self.blocks[(destination + index) as usize] = Some(block);
            }
        }
        self.traffic.remaps += 1;
        self.traffic.blocks_remapped += u64::from(count);
        Ok(())
    }
}
