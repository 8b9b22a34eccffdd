//! The checkpoint pack: the state of the file system, in one write that counts or does not.

use crate::bytes::{Reader, is_sealed, put, seal, u32_at, u64_at};
use crate::device::{BLOCK_BYTES, zeros};
use crate::error::FsError;
use crate::layout::{Layout, MOVES_MAX, ORPHANS_MAX};
use crate::log::LOGS;
use crate::segments::Cursor;
use flashyard_blk::{Blocking, Volume, VolumeError};

const MAGIC: u64 = 0x4356_4653_5041_434b;

/// Contents that go from one place to another, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) destination: u32,
    pub(crate) source: u32,
    pub(crate) count: u32,
}

/// A place of packs, as it is found.
enum Found {
    Whole(Box<Checkpoint>),
    /// No pack, or one that is not whole.
    Torn,
    /// The version where it can be read, and the error.
    Unread(Option<u64>, VolumeError),
}

/// Everything that mounting needs and that is not in a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// Counts checkpoints; the higher of two packs counts.
    pub(crate) version: u64,
    /// Blocks of the volume now.
    pub(crate) blocks: u32,
    pub(crate) nodes_used: u32,
    pub(crate) next_nid: u32,
    pub(crate) logs: [Option<Cursor>; LOGS],
    /// Slots of the tables that count.
    pub(crate) tables: [Vec<u8>; 3],
    /// Inodes without a name, to be deleted at the next mount.
    pub(crate) orphans: Vec<u32>,
    /// Remaps that may have happened or not: to be repeated at the next mount.
    pub(crate) moves: Vec<Move>,
}

impl Checkpoint {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [self.blocks, self.nodes_used, self.next_nid] {
            bytes.extend(number.to_le_bytes());
        }
        for log in self.logs {
            let Cursor { segment, next } = log.unwrap_or(Cursor { segment: u32::MAX, next: 0 });
            bytes.extend(segment.to_le_bytes());
            bytes.extend(next.to_le_bytes());
        }
        for table in &self.tables {
            bytes.extend((table.len() as u32).to_le_bytes());
            bytes.extend(table);
        }
        bytes.extend((self.orphans.len() as u32).to_le_bytes());
        self.orphans.iter().for_each(|ino| bytes.extend(ino.to_le_bytes()));
        bytes.extend((self.moves.len() as u32).to_le_bytes());
        for &Move { destination, source, count } in &self.moves {
            [destination, source, count].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        }
        bytes
    }

    /// `None` when the bytes are none of [`Self::encode`].
    fn decode(version: u64, bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let mut checkpoint = Self {
            version,
            blocks: reader.u32()?,
            nodes_used: reader.u32()?,
            next_nid: reader.u32()?,
            ..Self::default()
        };
        for log in &mut checkpoint.logs {
            let cursor = Cursor { segment: reader.u32()?, next: reader.u32()? };
            *log = (cursor.segment != u32::MAX).then_some(cursor);
        }
        for table in &mut checkpoint.tables {
            let len = reader.u32()? as usize;
            *table = reader.take(len)?.to_vec();
        }
        let orphans = (reader.u32()? as usize).min(ORPHANS_MAX);
        checkpoint.orphans = (0..orphans).map(|_| reader.u32()).collect::<Option<_>>()?;
        let moves = (reader.u32()? as usize).min(MOVES_MAX);
        let one = |reader: &mut Reader<'_>| {
            Some(Move { destination: reader.u32()?, source: reader.u32()?, count: reader.u32()? })
        };
        checkpoint.moves = (0..moves).map(|_| one(&mut reader)).collect::<Option<_>>()?;
        Some(checkpoint)
    }

    /// Writes the pack and makes it durable. Everything that it refers to must be durable already.
    pub(crate) fn write(&self, device: &mut Blocking<impl Volume>, layout: &Layout) -> Result<(), FsError> {
        assert!(self.orphans.len() <= ORPHANS_MAX && self.moves.len() <= MOVES_MAX, "limits are checked before");
        let payload = self.encode();
        let mut pack = vec![0; (1 + payload.len().div_ceil(BLOCK_BYTES)) * BLOCK_BYTES];
        assert!(pack.len() <= layout.pack_blocks as usize * BLOCK_BYTES, "a pack holds whatever the limits allow");
        pack[BLOCK_BYTES..BLOCK_BYTES + payload.len()].copy_from_slice(&payload);
        let header = &mut pack[..BLOCK_BYTES];
        put(header, 0, &MAGIC.to_le_bytes());
        put(header, 8, &layout.id.to_le_bytes());
        put(header, 16, &self.version.to_le_bytes());
        put(header, 24, &(payload.len() as u32).to_le_bytes());
        put(header, 28, &crc32c::crc32c(&payload).to_le_bytes());
        seal(header);
        device.write(layout.packs[(self.version % 2) as usize], &pack)?;
        device.flush()?;
        Ok(())
    }

    /// The newest whole pack.
    ///
    /// Errors: there is none, or one cannot be read that might be newer.
    pub(crate) fn read(device: &mut Blocking<impl Volume>, layout: &Layout) -> Result<Self, FsError> {
        let mut newest: Option<Self> = None;
        let mut unread = Vec::new();
        for first in layout.packs {
            match Self::read_pack(device, layout, first)? {
                Found::Whole(found) if newest.as_ref().is_none_or(|newest| found.version > newest.version) => {
                    newest = Some(*found);
                }
                Found::Whole(_) | Found::Torn => {}
                Found::Unread(version, error) => unread.push((version, error)),
            }
        }
        let newest_version = newest.as_ref().map(|newest| newest.version);
        // An older state in place of one that counts would lose what was made durable.
        let may_be_newer =
            |version: Option<u64>| version.is_none_or(|version| newest_version.is_none_or(|newest| version > newest));
        if let Some((_, error)) = unread.into_iter().find(|&(version, _)| may_be_newer(version)) {
            return Err(error.into());
        }
        newest.ok_or(FsError::NotAFileSystem("no checkpoint"))
    }

    fn read_pack(device: &mut Blocking<impl Volume>, layout: &Layout, first: u32) -> Result<Found, FsError> {
        let mut header = zeros();
        match device.read(first, &mut header[..]) {
            Err(error @ VolumeError::Unread { .. }) => return Ok(Found::Unread(None, error)),
            read => read?,
        }
        let header = &header[..];
        if u64_at(header, 0) != MAGIC || u64_at(header, 8) != layout.id || !is_sealed(header) {
            return Ok(Found::Torn);
        }
        let len = u32_at(header, 24) as usize;
        let blocks = len.div_ceil(BLOCK_BYTES);
        if blocks >= layout.pack_blocks as usize {
            return Ok(Found::Torn);
        }
        let mut payload = vec![0; blocks * BLOCK_BYTES];
        let version = u64_at(header, 16);
        match device.read(first + 1, &mut payload) {
            Err(error @ VolumeError::Unread { .. }) => return Ok(Found::Unread(Some(version), error)),
            read => read?,
        }
        payload.truncate(len);
        if crc32c::crc32c(&payload) != u32_at(header, 28) {
            return Ok(Found::Torn);
        }
        Ok(Self::decode(version, &payload).map_or(Found::Torn, |found| Found::Whole(Box::new(found))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, MemoryDevice};

    fn sample(version: u64) -> Checkpoint {
        Checkpoint {
            version,
            blocks: 1000,
            nodes_used: 3,
            next_nid: 9,
            logs: [None, Some(Cursor { segment: 4, next: 5 }), None, None],
            tables: [vec![1], vec![2, 3], vec![]],
            orphans: vec![7, 8],
            moves: vec![Move { destination: 1, source: 2, count: 3 }],
        }
    }

    #[test]
    fn the_newest_whole_pack_counts() {
        let mut device = Blocking::new(MemoryDevice::new(1000));
        let layout = Layout::derive(Format { segment_blocks: 16, id: 7 }, 1000).unwrap();
        assert!(Checkpoint::read(&mut device, &layout).is_err());
        for version in 1..5 {
            sample(version).write(&mut device, &layout).unwrap();
            assert_eq!(Checkpoint::read(&mut device, &layout), Ok(sample(version)));
        }
        // A torn payload leaves the one before.
        device.write(layout.packs[0] + 1, &[9; BLOCK_BYTES]).unwrap();
        assert_eq!(Checkpoint::read(&mut device, &layout), Ok(sample(3)));
    }
}
