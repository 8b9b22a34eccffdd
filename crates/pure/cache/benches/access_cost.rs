//! Cost of one access: `cargo bench -p flashyard-cache`.
//!
//! Keys follow a Zipf law, exponent 0.99, over ten times as many as a cache holds; popular ones lie anywhere. Prints the fastest of
//! several rounds for each policy, its misses and its memory, and a hash of what was evicted, so that two versions are compared on equal
//! work. The aim is well below 100 ns for S3-FIFO, with a cache that no processor cache holds.

#![expect(clippy::disallowed_types, reason = "a bench measures the real clock; nothing simulated sees it")]
#![expect(clippy::disallowed_methods, reason = "a bench measures the real clock; nothing simulated sees it")]

use flashyard_cache::{
    Access, Arc, Candidates, Clock, Fifo, Lirs, Lru, MarkedS3Fifo, PackedMarks, Policy, S3Fifo, Sieve, WTinyLfu,
};
use std::time::Instant;

const ROUNDS: u32 = 5;
/// Keys for each that a cache holds.
const SPREAD: u32 = 10;

/// Counts of a round of accesses.
#[derive(Default)]
struct Round {
    misses: u64,
    hash: u64,
}

impl Round {
    fn note(&mut self, is_hit: bool, evicted: Option<u64>) {
        self.misses += u64::from(!is_hit);
        self.hash = (self.hash ^ evicted.map_or(1, |key| key + 2)).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }
}

fn main() {
    // `cargo test --benches` passes no `--bench`: then few accesses show that it still runs.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let sizes: &[(u32, usize)] =
        if is_bench { &[(10_000, 4_000_000), (1_000_000, 8_000_000)] } else { &[(100, 1_000)] };
    for &(capacity, accesses) in sizes {
        let keys = zipf(capacity * SPREAD, accesses);
        println!("{capacity} of {} keys", capacity * SPREAD);
        policy(Fifo::new(capacity), &keys);
        policy(Lru::new(capacity), &keys);
        policy(Clock::new(capacity), &keys);
        policy(Sieve::new(capacity), &keys);
        policy(Arc::new(capacity), &keys);
        policy(Lirs::new(capacity), &keys);
        policy(S3Fifo::new(capacity), &keys);
        policy(WTinyLfu::new(capacity), &keys);
        marked(capacity, &keys);
        candidates(capacity, &keys);
    }
}

fn policy(mut cache: impl Policy, keys: &[u32]) {
    let (name, bytes) = (cache.kind().name(), cache.memory_bytes());
    measure(name, bytes, cache.capacity(), keys, |key, round| match cache.access(key.into()) {
        Access::Hit { .. } => round.note(true, None),
        Access::Miss(inserted) => round.note(false, inserted.evicted.map(|evicted| evicted.key)),
    });
}

/// With the location map of its owner, which is read and written too.
fn marked(capacity: u32, keys: &[u32]) {
    let mut map = PackedMarks::new(capacity * SPREAD);
    let mut cache = MarkedS3Fifo::new(capacity, capacity);
    let bytes = cache.memory_bytes();
    measure("marked s3-fifo", bytes, capacity, keys, |block, round| {
        if map.slot(block).is_some() {
            MarkedS3Fifo::hit(&mut map, block);
            return round.note(true, None);
        }
        let mut evicted = None;
        if cache.miss(&mut map, block) {
            let moved = cache.admit(&mut map, block);
            map.set_slot(block, moved.slot);
            evicted = moved.evicted.map(|evicted| evicted.block.into());
        }
        round.note(false, evicted);
    });
}

fn candidates(capacity: u32, keys: &[u32]) {
    let mut candidates = Candidates::new(capacity);
    let bytes = candidates.memory_bytes();
    measure("candidates", bytes, capacity, keys, |key, round| round.note(candidates.offer(key.into()), None));
}

fn measure(name: &str, bytes: usize, capacity: u32, keys: &[u32], mut access: impl FnMut(u32, &mut Round)) {
    let mut fastest = f64::INFINITY;
    let mut round = Round::default();
    for _ in 0..ROUNDS {
        round = Round::default();
        let begun = Instant::now();
        keys.iter().for_each(|&key| access(key, &mut round));
        fastest = fastest.min(begun.elapsed().as_nanos() as f64 / keys.len() as f64);
    }
    let misses = round.misses as f64 / keys.len() as f64;
    let bytes = bytes as f64 / f64::from(capacity);
    println!("{name:16}{fastest:7.1} ns an access, {misses:.4} miss, {bytes:.1} B a key, hash {:016x}", round.hash);
}

/// Keys by a Zipf law over `count` of them.
fn zipf(count: u32, accesses: usize) -> Vec<u32> {
    let mut sum = 0.0;
    let mut sums = Vec::with_capacity(count as usize);
    for rank in 1..=count {
        sum += libm::pow(rank.into(), -0.99);
        sums.push(sum);
    }
    // xorshift64*, and a multiplication that spreads ranks over all keys.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut draw = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let unit = (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = sums.partition_point(|&least| least < unit * sum) as u64;
        (rank * 7_368_787 % u64::from(count)) as u32
    };
    (0..accesses).map(|_| draw()).collect()
}
