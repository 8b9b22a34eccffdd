//! Where the random numbers of a job begin.
//!
//! fio draws each thing, sizes, directions, blocks, zones, from a stream of its own. The seeds of all streams follow from one
//! number and from the number of the job among all jobs and clones of the file, so every invocation draws alike.
//! \[C\] fio 3.33, init.c and the order of the purposes in fio.h

use super::job::FioJob;
use super::tausworthe::{Generator, Tausworthe88};
use flashyard_kernel::Rng;

/// `randseed` when it is not given.
const DEFAULT: u64 = 0x89;

/// A seed is multiplied by this from stream to stream: a prime near the golden ratio of 2 to the power of 32.
const STEP: u64 = 0x9e37_0001;

/// Seed of the blocks with `randrepeat`, and of everything with `allrandrepeat`, for the first job.
const REPEATED: u64 = 0xb189_9bed;

/// Streams of a job.
const STREAMS: usize = 21;

/// Numbers of the streams that concern offsets, lengths and directions.
const SIZES: [usize; 3] = [0, 1, 2];
const MIX: usize = 4;
const BLOCKS: usize = 6;
const SEQUENTIAL_OR_RANDOM: usize = 10;
const ZONES: usize = 16;

/// Seeds of one job or clone.
#[derive(Clone, Debug)]
pub(super) struct Seeds {
    streams: [u64; STREAMS],
    /// Whether every pass begins with these seeds again.
    pub(super) repeat: bool,
    number: u64,
    trims_as_writes: bool,
}

/// The streams of a pass.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    /// Lengths of reads, writes and trims.
    pub(super) sizes: [Generator; 3],
    /// Read or write.
    pub(super) mix: Tausworthe88,
    /// Which block.
    pub(super) blocks: Generator,
    /// Whether the next read, write or trim goes on or anywhere.
    pub(super) anywhere: [Tausworthe88; 3],
    /// Which zone.
    pub(super) zones: Tausworthe88,
}

impl Seeds {
    /// The seeds of clone `clone` (from 0). Without anything that repeats, they come from `rng`, where fio asks its
    /// operating system.
    pub(super) fn new(job: &FioJob, clone: u32, rng: &mut Rng) -> Self {
        let number = u64::from(job.number + clone);
        let repeat = job.repeat && job.seed.is_none();
        let mut streams = [0; STREAMS];
        if job.repeat_all {
            for (index, seed) in streams.iter_mut().enumerate() {
                *seed = REPEATED.wrapping_mul(number).wrapping_add(index as u64);
            }
        } else if !repeat && job.seed.is_none() {
            streams.iter_mut().for_each(|seed| *seed = rng.next_u64());
        } else {
            let begin = job.seed.unwrap_or(DEFAULT);
            let mut base = (0..4).fold(begin, |base, _| base.wrapping_mul(STEP));
            for (index, seed) in streams.iter_mut().enumerate() {
                *seed = base.wrapping_mul(number).wrapping_add(index as u64);
                base = base.wrapping_mul(STEP);
            }
        }
        // A seed of one's own ends the repetition, but fio notes that only once it has made the seeds of the first clone.
        if job.random && job.repeat && (repeat || clone == 0) {
            streams[BLOCKS] = REPEATED.wrapping_mul(number);
        }
        Self { streams, repeat, number, trims_as_writes: job.trims_and_writes() }
    }

    /// Seed of the blocks of the random map and of a shift register.
    pub(super) fn blocks(&self) -> u64 {
        self.streams[BLOCKS]
    }

    /// Seed of popular blocks over the file called `name`.
    pub(super) fn popularity(&self, name: &str) -> u32 {
        if self.repeat { jenkins(name.as_bytes()).wrapping_mul(self.number as u32) } else { self.blocks() as u32 }
    }

    /// Streams at their beginning, of 64 bits if `wide`.
    pub(super) fn streams(&self, wide: bool) -> Streams {
        // Each block is written as it was trimmed, so lengths of trims and writes are drawn alike.
        let size = |direction: usize| if self.trims_as_writes { direction.min(1) } else { direction };
        let narrow = |stream: usize| Tausworthe88::seeded(self.streams[stream] as u32);
        Streams {
            sizes: SIZES.map(|direction| Generator::seeded(self.streams[size(direction)], wide)),
            mix: narrow(MIX),
            blocks: Generator::seeded(self.streams[BLOCKS], wide),
            anywhere: std::array::from_fn(|_| narrow(SEQUENTIAL_OR_RANDOM)),
            zones: narrow(ZONES),
        }
    }
}

/// Hash of the name of a file: B. Jenkins' lookup3 ("Hash functions for hash table lookup", 2006), of which fio takes only
/// the first byte of each word in all blocks but the last.
fn jenkins(key: &[u8]) -> u32 {
    let begin = 0x61c8_8647_u32.wrapping_add(key.len() as u32);
    let [mut a, mut b, mut c] = [begin; 3];
    let mut rest = key;
    while rest.len() > 12 {
        a = a.wrapping_add(rest[0].into());
        b = b.wrapping_add(rest[4].into());
        c = c.wrapping_add(rest[8].into());
        for shift in [4, 6, 8, 16, 19, 4] {
            a = a.wrapping_sub(c) ^ c.rotate_left(shift);
            c = c.wrapping_add(b);
            (a, b, c) = (b, c, a);
        }
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    let word = |index: usize| {
        let byte = |place: usize| u32::from(rest.get(index * 4 + place).copied().unwrap_or(0)) << (8 * place);
        (0..4).map(byte).sum::<u32>()
    };
    (a, b, c) = (a.wrapping_add(word(0)), b.wrapping_add(word(1)), c.wrapping_add(word(2)));
    for shift in [14, 11, 25, 16, 4, 14, 24] {
        c = (c ^ b).wrapping_sub(b.rotate_left(shift));
        (a, b, c) = (b, c, a);
    }
    // Seven turns leave the last word that changed in the second place.
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hash_as_in_fio() {
        // Written down from a call of the hash of fio 3.33. [C]
        let golden = [
            ("a", 0x6bbe_9f77),
            ("job.0.0", 0x054a_f66c),
            ("/dev/nvme0n1", 0x55a7_2e6e),
            ("database.1.0", 0x487b_1950),
            ("a/file/of/a/longer/name", 0xb677_ed50),
        ];
        for (name, hash) in golden {
            assert_eq!(jenkins(name.as_bytes()), hash, "{name}");
        }
    }
}
