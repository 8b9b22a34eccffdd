//! Larger storage as a leg of a mirror: its last block says how many blocks are used. A mirror and the services above it keep records at the end of
//! their blocks, and find them after a restart only where these end as they did before.

use crate::leg::{BLOCK, LegState, Source, Task};
use flashyard_blk::Operation;
use flashyard_service::checksum;

/// The beginning of the block: these bytes, the blocks that are used, and the checksum of both.
const MAGIC: [u8; 8] = *b"FLYUSED1";
const SUM: usize = 16;

fn encode(blocks: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..SUM].copy_from_slice(&blocks.to_le_bytes());
    let sum = checksum(0, &bytes[..SUM]);
    bytes[SUM..SUM + 4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<u64> {
    let blocks = u64::from_le_bytes(bytes.get(8..SUM)?.try_into().ok()?);
    (bytes == encode(blocks)).then_some(blocks)
}

/// Uses `blocks` of a leg that has more, and says so in its last block, durably. Space that is borrowed holds nothing after a restart.
///
/// Errors: it cannot be written.
pub(crate) fn keep(leg: &mut LegState, blocks: u64) -> Result<(), String> {
    let all = leg.all_blocks();
    if leg.used == Some(blocks) || blocks >= all || leg.loan.is_some() {
        return Ok(());
    }
    let write = Task { order: 0, operation: Operation::Write, first: all - 1, count: 1, durable: false };
    let flush = Task { order: 0, operation: Operation::Flush, first: 0, count: 0, durable: false };
    let written = leg.carry_out_now(write, Source::Bytes(&encode(blocks)), &mut []);
    let done = written.and_then(|()| leg.carry_out_now(flush, Source::Zeros, &mut []));
    done.map_err(|failure| format!("{}: its last block cannot be written: {failure}", leg.name))?;
    leg.used = Some(blocks);
    Ok(())
}

/// Finds how many blocks of a leg are used, where its last block says so.
///
/// Errors: it cannot be read.
pub(crate) fn find(leg: &mut LegState) -> Result<(), String> {
    let all = leg.all_blocks();
    if leg.is_new || leg.gone.is_some() || leg.loan.is_some() || all == 0 {
        return Ok(());
    }
    let mut bytes = vec![0; BLOCK];
    let task = Task { order: 0, operation: Operation::Read, first: all - 1, count: 1, durable: false };
    let read = leg.carry_out_now(task, Source::Zeros, &mut bytes);
    read.map_err(|failure| format!("{}: its last block cannot be read: {failure}", leg.name))?;
    leg.used = decode(&bytes).filter(|&blocks| blocks < all);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leg::{Memory, Storage};

    fn memory(blocks: u64) -> LegState {
        LegState::new(Storage::Memory(Memory::new(blocks)), "memory".to_owned())
    }

    #[test]
    fn larger_storage_says_how_much_of_it_is_used_and_other_storage_nothing() {
        let mut leg = memory(100);
        find(&mut leg).expect("memory can be read");
        assert_eq!((leg.used, leg.info().limits.blocks), (None, 100));
        for blocks in [60, 40] {
            keep(&mut leg, blocks).expect("memory can be written");
            leg.used = None;
            find(&mut leg).expect("memory can be read");
            assert_eq!((leg.used, leg.info().limits.blocks), (Some(blocks), blocks));
        }
        keep(&mut leg, 40).expect("it says so already");
        let mut equal = memory(40);
        keep(&mut equal, 40).expect("there is nothing to say");
        find(&mut equal).expect("memory can be read");
        assert_eq!(equal.used, None);
    }

    #[test]
    fn a_block_with_a_wrong_sum_says_nothing() {
        let mut bytes = encode(77);
        assert_eq!(decode(&bytes), Some(77));
        bytes[9] ^= 1;
        assert_eq!(decode(&bytes), None);
        assert_eq!(decode(&[0; BLOCK]), None);
    }
}
