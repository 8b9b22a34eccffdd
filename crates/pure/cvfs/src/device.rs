//! The device below: a volume of 4 KiB blocks, one request at a time.

use flashyard_blk::{
    Blocking, Completion, Immediate, Operation, Payload, RequestError, Volume, VolumeError, VolumeInfo, VolumeLimits,
    VolumeRequest, check,
};
use flashyard_units::{SimTime, VolumeId};

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 4096;

/// One block.
pub(crate) type Block = [u8; BLOCK_BYTES];

/// A block of zeros on the heap.
pub(crate) fn zeros() -> Box<Block> {
    Box::new([0; BLOCK_BYTES])
}

/// Blocks of `device` that the file system can name: the first 16 TiB of a larger one.
pub(crate) fn blocks_of(device: &Blocking<impl Volume>) -> u32 {
    u32::try_from(device.blocks()).unwrap_or(u32::MAX)
}

/// A trim; devices that do not take it are none the worse.
///
/// Errors: those of the device.
pub(crate) fn trim(device: &mut Blocking<impl Volume>, first: u32, count: u32) -> Result<(), VolumeError> {
    match device.trim(first, count) {
        Err(VolumeError::Refused(RequestError::Unsupported { .. })) => Ok(()),
        done => done,
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

/// Contents of a block in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Held {
    #[default]
    Nothing,
    /// Zeros, which programs that only measure write: they need no memory.
    Zeros,
    Bytes(Box<Block>),
}

/// A device in memory: sparse, with its mapped blocks and its traffic.
#[derive(Clone, Debug, Default)]
pub struct MemoryDevice {
    blocks: Vec<Held>,
    /// Counts since the beginning.
    pub traffic: Traffic,
    /// Whether it knows remap.
    pub remaps: bool,
    ended: Immediate,
}

impl MemoryDevice {
    /// An empty device that knows remap.
    pub fn new(blocks: u32) -> Self {
        Self {
            blocks: vec![Held::Nothing; blocks as usize],
            traffic: Traffic::default(),
            remaps: true,
            ended: Immediate::default(),
        }
    }

    /// Blocks that hold something: the utilization as the device sees it.
    pub fn mapped(&self) -> u32 {
        self.blocks.iter().filter(|&held| *held != Held::Nothing).count() as u32
    }

    /// Whether a block holds something.
    pub fn is_mapped(&self, block: u32) -> bool {
        self.blocks[block as usize] != Held::Nothing
    }

    fn carry_out(&mut self, request: &VolumeRequest, payload: Payload) -> Result<Vec<u8>, VolumeError> {
        let (first, count) = (request.first as usize, request.count as usize);
        let blocks = u64::from(request.count);
        let range = first..first + count;
        match (request.operation, payload) {
            (Operation::Read, _) => {
                self.traffic.reads += 1;
                self.traffic.blocks_read += blocks;
                let mut found = Vec::with_capacity(count * BLOCK_BYTES);
                for block in &self.blocks[range] {
                    match block {
                        Held::Bytes(bytes) => found.extend_from_slice(&bytes[..]),
                        Held::Nothing | Held::Zeros => found.resize(found.len() + BLOCK_BYTES, 0),
                    }
                }
                return Ok(found);
            }
            (Operation::Write, payload) => {
                self.traffic.writes += 1;
                self.traffic.blocks_written += blocks;
                let Payload::Bytes(mut bytes) = payload else {
                    self.blocks[range].fill(Held::Zeros);
                    return Ok(Vec::new());
                };
                for (from, to) in bytes.chunks_exact(BLOCK_BYTES).zip(&mut self.blocks[range]) {
                    if *from == [0; BLOCK_BYTES] {
                        *to = Held::Zeros;
                    } else if let Held::Bytes(bytes) = to {
                        bytes.copy_from_slice(from);
                    } else {
                        let mut bytes = zeros();
                        bytes.copy_from_slice(from);
                        *to = Held::Bytes(bytes);
                    }
                }
                bytes.clear();
                return Ok(bytes);
            }
            (Operation::Flush, _) => self.traffic.flushes += 1,
            (Operation::Trim, _) => {
                self.blocks[range].fill(Held::Nothing);
                self.traffic.trims += 1;
                self.traffic.blocks_trimmed += blocks;
            }
            (Operation::Remap, _) if self.remaps => {
                for index in 0..count {
                    let held = std::mem::take(&mut self.blocks[request.source as usize + index]);
                    if held != Held::Nothing {
                        self.blocks[first + index] = held;
                    }
                }
                self.traffic.remaps += 1;
                self.traffic.blocks_remapped += blocks;
            }
            _ => return Err(request.unsupported().into()),
        }
        Ok(Vec::new())
    }
}

/// A device of 4 KiB blocks in memory, as its users see it.
pub(crate) fn info_of(blocks: usize, remaps: bool) -> VolumeInfo {
    let limits = VolumeLimits::new(blocks as u64, remaps);
    VolumeInfo { id: VolumeId::new(0), block_bytes: BLOCK_BYTES as u32, limits, protected: false }
}

impl Volume for MemoryDevice {
    fn info(&self) -> VolumeInfo {
        info_of(self.blocks.len(), self.remaps)
    }

    fn submit(
        &mut self,
        now: SimTime,
        token: u64,
        request: &VolumeRequest,
        payload: Payload,
    ) -> Result<(), VolumeError> {
        check(request, &self.info().limits)?;
        payload.check(request, BLOCK_BYTES as u32)?;
        let found = self.carry_out(request, payload);
        self.ended.complete(now, token, found);
        Ok(())
    }

    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
        Ok(self.ended.advance(until, into))
    }
}
