//! Sorted files: blocks of 4 KiB with whole records, and in memory the first key of each block and the filter.

use super::bloom::Bloom;
use super::error::LsmError;
use super::memtable::{decode, encode};
use crate::files::Files;

/// Bytes of a block. Source: [X] RocksDB's default.
pub(crate) const BLOCK: usize = 4096;

/// Bytes that are written or read at a time where a file is written or read as a whole: read-ahead of compactions. [X] 2 MiB
/// in RocksDB, here at most this.
const PIECE: usize = 512 << 10;

/// A file of records.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) file: u32,
    pub(crate) least: u64,
    pub(crate) most: u64,
    pub(crate) records: u32,
    /// First key of each block.
    index: Vec<u64>,
    filter: Option<Bloom>,
}

impl Table {
    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        (self.index.len() * BLOCK) as u64
    }

    pub(crate) fn overlaps(&self, least: u64, most: u64) -> bool {
        self.least <= most && least <= self.most
    }

    /// Whether the filter lets a key pass; a table without one lets every key pass.
    pub(crate) fn may_hold(&self, key: u64) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.may_hold(key))
    }

    /// Writes records, in the order of their keys and at least one, to a new file.
    ///
    /// Errors: those of the files.
    pub(crate) fn write(
        files: &mut impl Files,
        file: u32,
        records: &[(u64, u64)],
        record_bytes: usize,
        bits_per_key: u32,
    ) -> Result<Self, LsmError> {
        let per_block = BLOCK / record_bytes;
        let mut filter = (bits_per_key > 0).then(|| Bloom::new(records.len(), bits_per_key));
        if let Some(filter) = &mut filter {
            records.iter().for_each(|&(key, _)| filter.insert(key));
        }
        files.create(file)?;
        let blocks: Vec<&[(u64, u64)]> = records.chunks(per_block).collect();
        let mut buffer = vec![0; PIECE];
        let mut offset = 0;
        for piece in blocks.chunks(PIECE / BLOCK) {
            let bytes = &mut buffer[..piece.len() * BLOCK];
            bytes.fill(0);
            for (block, records) in bytes.chunks_mut(BLOCK).zip(piece) {
                for (place, &(key, version)) in block.chunks_exact_mut(record_bytes).zip(*records) {
                    encode(key, version, place);
                }
            }
            files.write(file, offset, bytes)?;
            offset += bytes.len() as u64;
        }
        files.fsync(file)?;
        Ok(Self {
            file,
            least: records[0].0,
            most: records[records.len() - 1].0,
            records: records.len() as u32,
            index: blocks.iter().map(|block| block[0].0).collect(),
            filter,
        })
    }

    /// Reads all records into `into`.
    ///
    /// Errors: those of the files; a damaged record.
    pub(crate) fn read_all(
        &self,
        files: &mut impl Files,
        record_bytes: usize,
        into: &mut Vec<(u64, u64)>,
    ) -> Result<(), LsmError> {
        let per_block = BLOCK / record_bytes;
        let mut left = self.records as usize;
        let mut buffer = vec![0; PIECE.min(self.index.len() * BLOCK)];
        let mut offset = 0;
        while left > 0 {
            let count = files.read(self.file, offset, &mut buffer)?;
            if count == 0 {
                return Err(LsmError::Damaged(self.file));
            }
            for block in buffer[..count].chunks(BLOCK) {
                for place in block.chunks_exact(record_bytes).take(per_block.min(left)) {
                    into.push(decode(place).ok_or(LsmError::Damaged(self.file))?);
                    left -= 1;
                }
            }
            offset += count as u64;
        }
        Ok(())
    }

    /// Reads the block in which a key must be; its version if it is there.
    ///
    /// Errors: those of the files; a damaged record.
    pub(crate) fn find(&self, files: &mut impl Files, key: u64, record_bytes: usize) -> Result<Option<u64>, LsmError> {
        let Some(block) = self.index.partition_point(|&first| first <= key).checked_sub(1) else { return Ok(None) };
        let per_block = BLOCK / record_bytes;
        let mut buffer = [0; BLOCK];
        files.read(self.file, (block * BLOCK) as u64, &mut buffer)?;
        let count = per_block.min(self.records as usize - block * per_block);
        for place in buffer.chunks_exact(record_bytes).take(count) {
            let (found, version) = decode(place).ok_or(LsmError::Damaged(self.file))?;
            if found == key {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }
}
