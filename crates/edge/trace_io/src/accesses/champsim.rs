//! ChampSim's traces: a record of 64 bytes for each instruction.
//!
//! | bytes | what |
//! |--:|---|
//! | 0 to 7 | address of the instruction |
//! | 8, 9 | whether it is a branch, and whether that is taken: 0 or 1 |
//! | 10 to 15 | registers: two that it writes, four that it reads |
//! | 16 to 31 | addresses of two stores |
//! | 32 to 63 | addresses of four loads |
//!
//! Numbers are little-endian; an address of 0 is none. Sizes are not told: an access is taken to be of one line. \[X\] `inc/trace_instruction.h` of
//! ChampSim

use super::row::Pending;
use flashyard_memory::AccessKind;

/// Bytes of a record.
pub(super) const RECORD: usize = 64;

/// Whether these bytes, from a file's start, are records: both marks of branches are 0 or 1, registers of most records are there.
pub(super) fn recognises(head: &[u8]) -> bool {
    let (records, _) = head.as_chunks::<RECORD>();
    let is_one = |record: &&[u8; RECORD]| {
        record[8] <= 1 && record[9] <= record[8] && address(record, 0) != 0 && address(record, 0) >> 56 == 0
    };
    !records.is_empty() && records.iter().all(|record| is_one(&record))
}

fn address(record: &[u8; RECORD], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&record[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Reads a record.
///
/// Errors: marks of branches that are neither 0 nor 1.
pub(super) fn parse(record: &[u8; RECORD], pending: &mut Pending) -> Result<(), String> {
    if record[8] > 1 || record[9] > 1 {
        return Err(format!("the marks of branches are {} and {}", record[8], record[9]));
    }
    pending.instruction();
    for (at, kind) in [(32, AccessKind::Load), (40, AccessKind::Load), (48, AccessKind::Load), (56, AccessKind::Load)]
        .into_iter()
        .chain([(16, AccessKind::Store), (24, AccessKind::Store)])
    {
        let address = address(record, at);
        if address != 0 {
            pending.access(kind, address, 1)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(loads: [u64; 4], stores: [u64; 2]) -> [u8; RECORD] {
        let mut record = [0; RECORD];
        record[..8].copy_from_slice(&0x40_1000_u64.to_le_bytes());
        for (place, address) in stores.into_iter().chain(loads).enumerate() {
            record[16 + 8 * place..24 + 8 * place].copy_from_slice(&address.to_le_bytes());
        }
        record
    }

    #[test]
    fn loads_come_before_stores_and_other_instructions_are_the_gap() {
        let mut pending = Pending::default();
        let file = [record([0; 4], [0; 2]), record([0; 4], [0; 2]), record([64, 0, 0, 130], [200, 0])];
        assert!(recognises(file.as_flattened()));
        for record in &file {
            parse(record, &mut pending).expect("it is a record");
        }
        let found: Vec<(AccessKind, u64, u32)> =
            std::iter::from_fn(|| pending.take()).map(|access| (access.kind, access.address, access.gap)).collect();
        assert_eq!(found, [(AccessKind::Load, 64, 2), (AccessKind::Load, 130, 0), (AccessKind::Store, 200, 0)]);
        let mut wrong = file[0];
        wrong[8] = 7;
        assert!(parse(&wrong, &mut pending).is_err() && !recognises(&wrong) && !recognises(&[0; 200]));
    }
}
