//! Where everything lies, and the superblock that says so.
//!
//! ```text
//! 0 1          two copies of the superblock
//! 2 ..         two checkpoint packs
//! ..           node addresses, segment states, owners of blocks: tables of two slots for each block
//! main_first.. segments, the only part that shrinks
//! ```

use crate::bytes::{is_sealed, put, seal, u32_at, u64_at};
use crate::device::{BLOCK_BYTES, Block, zeros};
use crate::error::FsError;
use crate::table::TableShape;
use flashyard_blk::{Blocking, Volume, VolumeError};

/// "CVFS" and the version of the format.
const MAGIC: u64 = 0x4356_4653_0000_0003;
/// Versions before, which this one reads. By the first, logs went on in free segments alone: a program that knows no other would
/// write over valid blocks of this one. By the second, holes had no owner in whole segments as well.
const MAGICS_BEFORE: [u64; 2] = [0x4356_4653_0000_0001, 0x4356_4653_0000_0002];
/// Moves that one checkpoint can announce.
pub(crate) const MOVES_MAX: usize = 2000;
/// Deleted but open files that one checkpoint can name.
pub(crate) const ORPHANS_MAX: usize = 500;
/// Bytes of a checkpoint besides table states, moves and orphans, rounded up.
const CHECKPOINT_FIXED_BYTES: usize = 256;
/// Segments that there must be at least: four open logs, and something to clean.
pub(crate) const SEGMENTS_MIN: u32 = 14;

/// Parameters of a new file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Blocks of a segment, 8 to 512. 512 are 2 MiB.
    pub segment_blocks: u32,
    /// Tells this file system from an earlier one on the same device.
    pub id: u64,
}

impl Default for Format {
    fn default() -> Self {
        Self { segment_blocks: 512, id: 0 }
    }
}

/// The places of everything, in blocks. A function of what the superblock holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) id: u64,
    /// Blocks of the device when the file system was made.
    pub(crate) blocks: u32,
    pub(crate) segment_blocks: u32,
    /// First blocks of the two packs.
    pub(crate) packs: [u32; 2],
    pub(crate) pack_blocks: u32,
    /// Node addresses, segment states, owners.
    pub(crate) tables: [TableShape; 3],
    pub(crate) main_first: u32,
    /// Segments at full size.
    pub(crate) segments: u32,
}

impl Layout {
    /// Errors: sizes that make no file system.
    pub(crate) fn derive(format: Format, blocks: u32) -> Result<Self, FsError> {
        let segment_blocks = format.segment_blocks;
        if !(8..=512).contains(&segment_blocks) || !segment_blocks.is_multiple_of(8) {
            return Err(FsError::Invalid("a segment has 8 to 512 blocks, a multiple of 8"));
        }
        let segments_max = blocks / segment_blocks;
        // Every other block may be a node: files of one block and their inodes fill a volume.
        let nodes = (blocks / 2).max(64);
        let shapes = [
            (nodes, 4),
            // Valid count, kind, age, bits: see `segments`.
            (segments_max, 16 + segment_blocks / 8),
            // Owner and slot of each block.
            (segments_max, 6 * segment_blocks),
        ];
        let table_blocks = shapes.map(|(entries, bytes)| TableShape::blocks_for(entries, bytes));
        let states: u32 = table_blocks.iter().map(|blocks| blocks.div_ceil(4)).sum();
        let payload = CHECKPOINT_FIXED_BYTES + states as usize + MOVES_MAX * 12 + ORPHANS_MAX * 4;
        let pack_blocks = payload.div_ceil(BLOCK_BYTES) as u32 + 1;
        let packs = [2, 2 + pack_blocks];
        let mut next = 2 + 2 * pack_blocks;
        let mut tables = [TableShape::default(); 3];
        for (table, (entries, entry_bytes)) in tables.iter_mut().zip(shapes) {
            *table = TableShape::new(next, entries, entry_bytes);
            next += 2 * table.blocks;
        }
        let segments = blocks.saturating_sub(next) / segment_blocks;
        if segments < SEGMENTS_MIN {
            return Err(FsError::Invalid("the device is too small for a file system"));
        }
        Ok(Self { id: format.id, blocks, segment_blocks, packs, pack_blocks, tables, main_first: next, segments })
    }

    /// The first block of a segment.
    pub(crate) fn segment_first(&self, segment: u32) -> u32 {
        self.main_first + segment * self.segment_blocks
    }

    /// The segment of a block, and its place in there. `None` outside of the main area.
    pub(crate) fn place(&self, block: u32) -> Option<(u32, u32)> {
        let within = block.checked_sub(self.main_first)?;
        let segment = within / self.segment_blocks;
        (segment < self.segments).then_some((segment, within % self.segment_blocks))
    }

    /// Whole segments in a volume of `blocks` blocks.
    pub(crate) fn segments_in(&self, blocks: u32) -> u32 {
        (blocks.saturating_sub(self.main_first) / self.segment_blocks).min(self.segments)
    }

    /// The superblock of a volume that has `blocks_now` blocks.
    pub(crate) fn superblock(&self, blocks_now: u32) -> Box<Block> {
        let mut block = zeros();
        put(&mut block[..], 0, &MAGIC.to_le_bytes());
        put(&mut block[..], 8, &self.id.to_le_bytes());
        put(&mut block[..], 16, &self.blocks.to_le_bytes());
        put(&mut block[..], 20, &self.segment_blocks.to_le_bytes());
        put(&mut block[..], 24, &blocks_now.to_le_bytes());
        seal(&mut block[..]);
        block
    }

    /// Writes both copies, one after the other: one of them is whole at any time.
    pub(crate) fn write_superblock(&self, device: &mut Blocking<impl Volume>, blocks_now: u32) -> Result<(), FsError> {
        let block = self.superblock(blocks_now);
        for copy in 0..2_u64 {
            device.write(copy, &block[..])?;
            device.flush()?;
        }
        Ok(())
    }

    /// Reads the first whole copy: the layout, the size that it names, and whether both copies name it in this version of the
    /// format.
    ///
    /// Errors: there is none, or it makes no sense.
    pub(crate) fn read_superblock(device: &mut Blocking<impl Volume>) -> Result<(Self, u32, bool), FsError> {
        let mut found: Option<(Self, u32)> = None;
        let mut agree = true;
        let mut unread = None;
        for copy in 0..2_u64 {
            let mut block = zeros();
            match device.read(copy, &mut block[..]) {
                // The other copy may be whole.
                Err(error @ VolumeError::Unread { .. }) => {
                    (agree, unread) = (false, Some(error));
                    continue;
                }
                read => read?,
            }
            let magic = u64_at(&block[..], 0);
            agree &= magic == MAGIC;
            if !(magic == MAGIC || MAGICS_BEFORE.contains(&magic)) || !is_sealed(&block[..]) {
                agree = false;
                continue;
            }
            let format = Format { id: u64_at(&block[..], 8), segment_blocks: u32_at(&block[..], 20) };
            let layout = Self::derive(format, u32_at(&block[..], 16))?;
            let read = (layout, u32_at(&block[..], 24));
            agree &= found.is_none_or(|found| found == read);
            found.get_or_insert(read);
        }
        let missing = unread.map_or(FsError::NotAFileSystem("no superblock"), FsError::from);
        let (layout, blocks_now) = found.ok_or(missing)?;
        Ok((layout, blocks_now, agree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_follow_each_other_and_segments_fill_the_rest() {
        for (blocks, segment_blocks) in [(400, 8), (4096, 16), (262_144, 512), (16_777_216, 512)] {
            let layout = Layout::derive(Format { segment_blocks, id: 7 }, blocks).unwrap();
            let end = layout.main_first + layout.segments * segment_blocks;
            assert!(end <= blocks && blocks - end < segment_blocks, "{layout:?}");
            assert_eq!(layout.place(layout.main_first + segment_blocks), Some((1, 0)));
            assert_eq!(layout.place(layout.main_first - 1), None);
            // Tables and packs cost less than two percent of a volume with large segments.
            assert!(segment_blocks < 512 || blocks < 1 << 20 || layout.main_first < blocks / 50, "{layout:?}");
        }
    }

    #[test]
    fn what_makes_no_file_system_is_refused() {
        assert!(Layout::derive(Format { segment_blocks: 7, id: 0 }, 1 << 20).is_err());
        assert!(Layout::derive(Format::default(), 100).is_err());
    }

    #[test]
    fn one_whole_superblock_is_enough() {
        let mut device = Blocking::new(crate::MemoryDevice::new(1000));
        let layout = Layout::derive(Format { segment_blocks: 16, id: 7 }, 1000).unwrap();
        layout.write_superblock(&mut device, 900).unwrap();
        assert_eq!(Layout::read_superblock(&mut device), Ok((layout, 900, true)));
        device.write(0_u64, &[0xaa; BLOCK_BYTES]).unwrap();
        assert_eq!(Layout::read_superblock(&mut device), Ok((layout, 900, false)));
        device.write(1_u64, &[0xaa; BLOCK_BYTES]).unwrap();
        assert!(Layout::read_superblock(&mut device).is_err());
    }

    #[test]
    fn a_volume_of_a_version_before_becomes_one_of_this() {
        MAGICS_BEFORE.into_iter().for_each(becomes_one_of_this);
    }

    fn becomes_one_of_this(magic_before: u64) {
        let device = crate::MemoryDevice::new(1000);
        let fs = crate::FileSystem::format(device, Format { segment_blocks: 16, id: 7 }, crate::Config::default(), 0);
        let mut device = Blocking::new(fs.unwrap().into_device());
        let magic = |device: &mut Blocking<crate::MemoryDevice>| {
            let mut block = zeros();
            device.read(0_u64, &mut block[..]).unwrap();
            (u64_at(&block[..], 0), block)
        };
        let (_, mut block) = magic(&mut device);
        put(&mut block[..], 0, &magic_before.to_le_bytes());
        seal(&mut block[..]);
        device.write(0_u64, &block[..]).unwrap();
        device.write(1_u64, &block[..]).unwrap();
        let fs = crate::FileSystem::mount(device.into_volume(), crate::Config::default()).unwrap();
        assert_eq!(magic(&mut Blocking::new(fs.into_device())).0, MAGIC);
    }
}
