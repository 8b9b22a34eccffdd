//! Numbers of variable length, and what superblocks hold, as bytes of a journal or of an aged drive.

use flashyard_faults::Fingerprint;
use flashyard_ftl::{Stream, SuperblockContents, UsedSuperblock};

/// A hash of bytes.
pub fn hash_of_bytes(bytes: &[u8]) -> u64 {
    let mut hash = Fingerprint::default();
    bytes.iter().for_each(|&byte| hash.step(byte.into()));
    hash.get()
}

/// Appends a number, seven bits a byte, the lowest first.
pub fn number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes a number; `None` where there is none, or where it is beyond 64 bits.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7F);
        if bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    u32::try_from(take(bytes)?).ok()
}

/// Streams by number; numbers from there on say the same of superblocks with slots whose data is lost, which follow.
const STREAMS: [Stream; 3] = [Stream::Host, Stream::Moved, Stream::Leveled];

/// Appends the contents of all drives.
pub fn put_contents(bytes: &mut Vec<u8>, drives: &[Vec<SuperblockContents>]) {
    number(bytes, drives.len() as u64);
    for superblocks in drives {
        number(bytes, superblocks.len() as u64);
        for SuperblockContents { erases, used } in superblocks {
            number(bytes, u64::from(*erases) << 1 | u64::from(used.is_some()));
            let Some(used) = used else { continue };
            let stream = used.stream as u64 + if used.lost.is_empty() { 0 } else { STREAMS.len() as u64 };
            number(bytes, stream << 1 | u64::from(used.single_level));
            number(bytes, used.opened);
            number(bytes, used.written.into());
            number(bytes, used.valid.len() as u64);
            let mut next = 0;
            for &(index, logical) in &used.valid {
                number(bytes, u64::from(index - next));
                number(bytes, logical.into());
                next = index;
            }
            if !used.lost.is_empty() {
                number(bytes, used.lost.len() as u64);
                used.lost.iter().for_each(|&logical| number(bytes, logical.into()));
            }
        }
    }
}

/// Takes the contents of all drives.
pub fn take_contents(bytes: &mut &[u8]) -> Option<Vec<Vec<SuperblockContents>>> {
    let drives = take(bytes)?;
    (0..drives).map(|_| (0..take(bytes)?).map(|_| take_superblock(bytes)).collect()).collect()
}

fn take_superblock(bytes: &mut &[u8]) -> Option<SuperblockContents> {
    let head = take(bytes)?;
    let erases = u32::try_from(head >> 1).ok()?;
    if head & 1 == 0 {
        return Some(SuperblockContents { erases, used: None });
    }
    let flags = take(bytes)?;
    let (opened, written, count) = (take(bytes)?, take_u32(bytes)?, take(bytes)?);
    let mut next = 0_u32;
    let valid = (0..count).map(|_| {
        next = next.checked_add(take_u32(bytes)?)?;
        Some((next, take_u32(bytes)?))
    });
    let valid = valid.collect::<Option<_>>()?;
    let (stream, has_lost) = ((flags >> 1) as usize % STREAMS.len(), (flags >> 1) as usize / STREAMS.len());
    let lost = match has_lost {
        0 => Vec::new(),
        1 => (0..take(bytes)?).map(|_| take_u32(bytes)).collect::<Option<_>>()?,
        _ => return None,
    };
    let (stream, single_level) = (STREAMS[stream], flags & 1 == 1);
    Some(SuperblockContents {
        erases,
        used: Some(UsedSuperblock { stream, single_level, opened, written, valid, lost }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back_and_what_is_cut_short_does_not(value: u64) {
            let mut bytes = Vec::new();
            number(&mut bytes, value);
            prop_assert_eq!(take(&mut &bytes[..]), Some(value));
            prop_assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
        }

        #[test]
        fn contents_come_back(
            drives in prop::collection::vec(prop::collection::vec(
                (any::<u32>(), any::<Option<(u8, bool, u64, u32)>>(), prop::collection::btree_map(0_u32..5000, any::<u32>(), 0..20)),
                0..5,
            ), 0..4),
        ) {
            let contents: Vec<Vec<_>> = drives.into_iter().map(|superblocks| {
                superblocks.into_iter().map(|(erases, used, valid)| SuperblockContents {
                    erases: erases >> 1,
                    used: used.map(|(stream, single_level, opened, written)| UsedSuperblock {
                        stream: STREAMS[usize::from(stream % 3)],
                        single_level,
                        opened,
                        written,
                        lost: valid.values().copied().filter(|logical| logical % 4 == 0).collect(),
                        valid: valid.into_iter().collect(),
                    }),
                }).collect()
            }).collect();
            let mut bytes = Vec::new();
            put_contents(&mut bytes, &contents);
            prop_assert_eq!(take_contents(&mut &bytes[..]), Some(contents));
        }

        #[test]
        fn any_bytes_that_are_contents_are_those_that_would_be_written(
            bytes in prop::collection::vec(prop_oneof![0_u8..5, any::<u8>()], 0..100),
        ) {
            if let Some(contents) = take_contents(&mut &bytes[..]) {
                let mut again = Vec::new();
                put_contents(&mut again, &contents);
                prop_assert_eq!(take_contents(&mut &again[..]), Some(contents));
            }
        }
    }
}
