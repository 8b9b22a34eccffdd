//! Records in memory, and their bytes in files.

use super::bloom::scramble;
use std::collections::BTreeMap;

/// Bytes of a record besides its value: its key and its version.
pub(crate) const HEADER: usize = 16;

/// Records that are not in a file yet: the version of each key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memtable {
    pub(crate) versions: BTreeMap<u64, u64>,
}

/// Writes a record's bytes; its value follows from key and version.
pub(crate) fn encode(key: u64, version: u64, into: &mut [u8]) {
    into[..8].copy_from_slice(&key.to_le_bytes());
    into[8..HEADER].copy_from_slice(&version.to_le_bytes());
    let word = scramble(key ^ scramble(version)).to_le_bytes();
    for part in into[HEADER..].chunks_mut(8) {
        part.copy_from_slice(&word[..part.len()]);
    }
}

/// Key and version of a record's bytes; `None` when its value does not begin and end as theirs.
pub(crate) fn decode(bytes: &[u8]) -> Option<(u64, u64)> {
    let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let (key, version) = (word(0)?, word(8)?);
    let expected = scramble(key ^ scramble(version));
    let value = &bytes[HEADER..];
    let last = value.len().checked_sub(1)? / 8 * 8;
    let is_whole = word(HEADER)? == expected && value[last..] == expected.to_le_bytes()[..value.len() - last];
    is_whole.then_some((key, version))
}
