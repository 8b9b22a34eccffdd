//! Data that is read much moves out of worn superblocks, as in the public artifact of the capacity-variant drive.
//!
//! 1. Superblocks with more erases and more reads than the mean are looked at.
//! 2. The least worn superblock with data is looked for among those of fewer erases than the mean that were read less than
//!    0.3 of the mean.
//! 3. If the data would need fewer retries there, a retry for each 50 erases, both change places.
//!
//! Flash changes places, not data: each superblock keeps its number and its data, and gets the other's erases. What was worn
//! is erased once more.
//!
//! The artifact looks after every read; here a look is taken with that at wear. Source: [C] sheet cvss §3.6; it takes no
//! time there.

use super::design::ACCELERATION;
use flashyard_ftl::Ftl;

/// Reads by the mean's below which a superblock may take what is read much. Source: [C] sheet cvss §3.6.
const LITTLE_READ: f64 = 0.3;

/// Erases for each retry, of which each stands for more. Source: [C] sheet cvss §3.9.
const ERASES_PER_RETRY: u32 = 50 / ACCELERATION;

/// Reads of a block, 64 of which are a superblock, before anything is looked at. Source: [C] 1,000 of a superblock.
const READS_LEAST: u32 = 16;

/// Goes through the superblocks that need `retries`, with `in_use` of all not retired; returns the pages that change places.
pub(super) fn exchange(ftl: &mut Ftl, retries: &[u8], in_use: u32) -> u64 {
    let mut erases: Vec<u32> = ftl.erase_counts().collect();
    let valid: Vec<u32> = ftl.valid_counts().collect();
    let numbers = 0..erases.len() as u32;
    let mean_erases = (erases.iter().map(|&erases| u64::from(erases)).sum::<u64>() / erases.len() as u64) as u32;
    let reads: u64 = numbers.clone().map(|number| u64::from(ftl.reads_of(number))).sum();
    let mean_reads = reads as f64 / f64::from(in_use.max(1));
    let mut moved = 0;
    for worn in numbers.clone().filter(|&number| retries[number as usize] > 0) {
        let (reads, before) = (ftl.reads_of(worn), erases[worn as usize]);
        if reads < READS_LEAST || f64::from(reads) <= mean_reads || before <= mean_erases {
            continue;
        }
        let takes = |&number: &u32| {
            let little_read = f64::from(ftl.reads_of(number)) < LITTLE_READ * mean_reads;
            number != worn && valid[number as usize] > 0 && erases[number as usize] < mean_erases && little_read
        };
        let Some(young) = numbers.clone().filter(takes).min_by_key(|&number| erases[number as usize]) else { continue };
        let least = erases[young as usize];
        if before / ERASES_PER_RETRY > (least + 1) / ERASES_PER_RETRY {
            erases[young as usize] = before + 1;
            erases[worn as usize] = least;
            moved += u64::from(valid[worn as usize]) + u64::from(valid[young as usize]);
        }
    }
    if moved > 0 {
        ftl.project_erase_counts(&erases);
    }
    moved
}
