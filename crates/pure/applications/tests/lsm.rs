//! Laws of the merge tree on CVFS: contents, sizes of levels, write amplification, what filters let pass.

use flashyard_applications::CvfsFiles;
use flashyard_applications::lsm::{Clients, Lsm, LsmConfig, Mix, Request};
use flashyard_cvfs::{Config, FileSystem, Format, MemoryDevice};
use std::collections::BTreeMap;

fn files(blocks: u32) -> CvfsFiles<MemoryDevice> {
    let config = Config { dirty_pages_max: 500, ..Config::default() };
    let format = Format { segment_blocks: 64, id: 1 };
    let fs = FileSystem::format(MemoryDevice::new(blocks), format, config, 0).expect("the device is large enough");
    CvfsFiles::new(fs, 1000)
}

fn small() -> LsmConfig {
    // 64 KiB memtables, 256 KiB in level 1.
    LsmConfig::scaled(1024, 500)
}

/// A tree after `requests` requests beside the versions that it must have.
fn run(mix: Mix, requests: u64, config: LsmConfig) -> (Lsm, CvfsFiles<MemoryDevice>, BTreeMap<u64, u64>) {
    let (mut tree, mut files, mut model) = (Lsm::new(config, 0), files(60_000), BTreeMap::new());
    let mut clients = Clients::new(mix, 5);
    for number in 0..mix.keys {
        let key = clients.key(number);
        model.insert(key, tree.put(&mut files, key).expect("there is room"));
    }
    for _ in 0..requests {
        match clients.next_request() {
            Request::Get(key) => {
                let found = tree.get(&mut files, key).expect("all is sound");
                assert_eq!(found, model.get(&key).copied(), "key {key}");
            }
            Request::Put(key) | Request::Change(key) => {
                model.insert(key, tree.put(&mut files, key).expect("there is room"));
            }
        }
    }
    (tree, files, model)
}

#[test]
fn every_record_is_found_in_its_last_version_and_no_other() {
    let (mut tree, mut files, model) = run(Mix::ycsb_a(20_000), 40_000, small());
    for (&key, &version) in &model {
        assert_eq!(tree.get(&mut files, key).expect("all is sound"), Some(version));
    }
    assert_eq!(tree.get(&mut files, 12_345).expect("all is sound"), None);
    assert!(tree.levels().count() > 2, "the load makes several levels");
    files.fs_mut().sync().expect("the device is sound");
    assert!(files.fs_mut().check().expect("the device is sound").is_clean());
}

#[test]
fn levels_keep_their_sizes() {
    let (tree, _, _) = run(Mix { keys: 20_000, gets: 0.0, changes: 0.0, skew: 0.0 }, 60_000, small());
    let levels: Vec<(usize, u64)> = tree.levels().collect();
    assert!(levels[0].0 < 4, "{levels:?}");
    for (level, &(_, bytes)) in levels.iter().enumerate().skip(1) {
        assert!(bytes <= (256 << 10) * 10_u64.pow(level as u32 - 1), "{levels:?}");
    }
}

#[test]
fn write_amplification_is_that_of_leveled_compaction() {
    // Data of 10 MB, so levels of 256 KiB, 2.5 MiB and the rest.
    let uniform = Mix { keys: 20_000, gets: 0.0, changes: 0.0, skew: 0.0 };
    let (tree, _, _) = run(uniform, 100_000, small());
    let levels = tree.levels().count() - 1;
    let amplification = tree.counters().write_amplification();
    // At least a flush and a merge into each level; at most the fan-out and itself for each level, and level 0 with
    // level 1 whole.
    let most = 1.0 + (levels as f64) * 11.0;
    assert!((1.0 + levels as f64..most).contains(&amplification), "{amplification} with {levels} levels");
    // No more comes out of merges than went in, but for the ends of files.
    let counters = tree.counters();
    assert!(counters.merged_out_bytes <= counters.merged_in_bytes + counters.merges * 4096 * 64);
    // Skewed updates meet again in memtables and level 0: they amplify less.
    let (skewed, _, _) = run(Mix { skew: 0.99, ..uniform }, 100_000, small());
    assert!(skewed.counters().flushed_bytes < counters.flushed_bytes);
    assert!(skewed.counters().write_amplification() < amplification * 1.2);
}

#[test]
fn filters_spare_reads_of_levels_without_the_key() {
    let mix = Mix { keys: 20_000, gets: 0.5, changes: 0.0, skew: 0.0 };
    let reads = |bits_per_key| {
        let (tree, _, _) = run(mix, 40_000, LsmConfig { bits_per_key, ..small() });
        let counters = tree.counters();
        (counters.blocks_read as f64 / (counters.gets - counters.in_memory) as f64, counters)
    };
    let (with, counters) = reads(10);
    let (without, _) = reads(0);
    // (1 - exp(-6/10))^6 = 0.0084 of the filters without the key let it pass.
    let denied = counters.filters_asked - counters.filters_passed;
    let wrong = counters.filters_wrong as f64 / (denied + counters.filters_wrong) as f64;
    assert!((0.004..0.013).contains(&wrong), "{wrong}");
    assert!((1.0..1.05).contains(&with), "one block for each record: {with}");
    assert!(without > with + 0.3, "each level on the way costs one: {without}");
}
