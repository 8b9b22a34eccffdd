//! Miss ratios of cache policies on a recorded trace, against those of libCacheSim (1a1a11a/libCacheSim aa0fc40).
//!
//! Its program was run with the defaults of each policy. A key is the first sector of a request as it stands, reads and
//! writes alike; every key takes the same room; nothing warms the cache up. Sizes are 1, 5, 10, 20 and 40 % of the keys.

use flashyard_cache::PolicyKind;
use flashyard_trace_io::{OpenOptions, open};

const TRACE: &str = "cloudphysics/cloudPhysicsIO.vscsi.zst";
const REQUESTS: usize = 113_872;
const SIZES: [u32; 5] = [489, 2448, 4897, 9794, 19_589];

/// The miss ratios that libCacheSim prints, with four digits, and how far from them ours may be.
///
/// FIFO, LRU and CLOCK have one definition, so nothing but rounding may differ. The others are followed as published. For
/// W-TinyLFU a paper leaves the sketch open, and libCacheSim counts in one of its own, so 0.02 was set before the first run.
const EXPECTED: [(PolicyKind, [f64; 5], f64); 8] = [
    (PolicyKind::Fifo, [0.8476, 0.8266, 0.8054, 0.7128, 0.6343], 0.000_05),
    (PolicyKind::Lru, [0.8380, 0.8246, 0.8049, 0.7249, 0.6328], 0.000_05),
    (PolicyKind::Clock, [0.8372, 0.8240, 0.8044, 0.7483, 0.6359], 0.000_05),
    (PolicyKind::Arc, [0.8275, 0.8114, 0.7728, 0.7026, 0.5679], 0.002),
    (PolicyKind::Sieve, [0.8292, 0.8172, 0.7907, 0.7162, 0.5720], 0.002),
    (PolicyKind::S3Fifo, [0.8304, 0.8026, 0.7525, 0.6780, 0.6177], 0.002),
    (PolicyKind::Lirs, [0.8315, 0.8138, 0.7518, 0.6559, 0.5190], 0.002),
    (PolicyKind::WTinyLfu, [0.8473, 0.8210, 0.7761, 0.6881, 0.5296], 0.02),
];

/// Where we disagree: W-TinyLFU of this size misses more than that of libCacheSim, by 0.040.
///
/// The two count different accesses. Ours follows the paper, every access once. That program passes over hits in the window,
/// counts a key again when it leaves the window, and fills protected room with keys that were never hit. Exact counters in
/// place of our sketch miss 0.8322, 0.8164, 0.7997, 0.7283 and 0.5389, and would disagree for 4897 keys too.
const DISAGREES: [(PolicyKind, u32); 1] = [(PolicyKind::WTinyLfu, 9794)];

#[test]
fn policies_miss_as_often_as_those_of_libcachesim() {
    let Some(root) = flashyard_conformance::traces("miss ratios of caches were not compared") else { return };
    let reader = open(&root.join(TRACE), OpenOptions::default()).expect("the trace can be read");
    let keys: Vec<u64> = reader.map(|record| record.expect("its rows are good").request.offset_bytes / 512).collect();
    assert_eq!(keys.len(), REQUESTS);
    let mut disagrees = Vec::new();
    for (policy, expected, tolerance) in EXPECTED {
        for (size, expected) in SIZES.into_iter().zip(expected) {
            let mut cache = policy.cache(size);
            let misses = keys.iter().filter(|&&key| !cache.access(key).is_hit()).count();
            let found = misses as f64 / keys.len() as f64;
            println!("{policy:10} {size:6} keys: {found:.4}, expected {expected:.4} within {tolerance}");
            if (found - expected).abs() > tolerance {
                disagrees.push((policy, size));
            }
        }
    }
    assert_eq!(disagrees, DISAGREES, "these are not within their tolerance; --nocapture shows all");
}
