//! Every supported real trace against the statistics published beside the files. Skips, loudly, where the
//! files are not there.

use flashyard_trace_io::{OpenOptions, open, summarize};
use std::path::{Path, PathBuf};

/// File, format, rows, read %, mean read KiB, mean write KiB, total MiB, footprint MiB, seconds, volumes.
type Expected = (&'static str, &'static str, u64, f64, f64, f64, f64, f64, f64, u64);

const EXPECTED: [Expected; 20] = [
    ("msr-cambridge/rsrch_1.csv", "msr", 13_780, 0.3, 13.2, 12.2, 163.8, 112.4, 576_557.644, 1),
    ("msr-cambridge/wdev_1.csv", "msr", 1_055, 0.0, 0.0, 5.1, 5.3, 1.4, 595_003.214, 1),
    ("msr-cambridge/web3-trace.txt", "msr-reduced", 31_380, 32.0, 74.9, 20.8, 1_168.8, 604.3, 594_376.222, 1),
    ("msr-cambridge/msr-cambridge1-sample.csv", "msr", 1_000, 50.8, 11.7, 7.1, 9.2, 7.5, 127.233, 1),
    ("msr-cambridge/hm_0.segment7016.csv", "msr", 7_016, 83.0, 13.0, 5.8, 80.9, 52.8, 148.406, 1),
    ("msr-cambridge/mds_0.writes1000.csv", "msr", 1_000, 0.0, 0.0, 5.7, 5.6, 1.8, 618.765, 1),
    ("msr-cambridge/msr.cut.per_10k.rw_20_80.105.trace", "replay", 10_000, 20.2, 1.8, 6.2, 52.3, 28.8, 242.905, 1),
    (
        "msr-cambridge/msr.cut.per_10k.most_thpt_rand_iops.1006.trace",
        "replay",
        10_000,
        83.2,
        4.2,
        54.9,
        124.2,
        113.4,
        1.017,
        1,
    ),
    ("tencent-cbs/cloud_storage-sample.csv", "tencent", 50_000, 49.0, 25.8, 33.4, 1_448.1, 1_360.3, 1.0, 2038),
    (
        "tencent-flashnet/tencent.cut.per_50k.most_size_thpt.222.trace",
        "profile",
        50_000,
        83.3,
        28.9,
        5.5,
        1_219.0,
        31.1,
        77.0,
        1,
    ),
    (
        "tencent-flashnet/tencent.cut.per_50k.rw_65_35.211.trace",
        "profile",
        50_000,
        65.9,
        10.7,
        11.8,
        540.7,
        55.2,
        132.0,
        1,
    ),
    (
        "tencent-flashnet/tencent.cut.per_50k.rw_75_25.379.trace",
        "profile",
        50_000,
        75.8,
        12.9,
        11.3,
        610.1,
        50.9,
        87.0,
        1,
    ),
    ("microsoft-servers/MSN-FS-30s-ms", "disksim-ms", 149_999, 87.0, 18.2, 9.2, 2_501.1, 2_101.7, 143.068, 1),
    ("microsoft-servers/DTRS1K.trace", "disksim-us", 127_043, 89.0, 55.6, 53.4, 6_864.4, 4_969.8, 300.0, 1),
    ("microsoft-servers/tpcc-small.trace", "disksim-ns", 6_999, 62.6, 8.1, 8.7, 57.0, 80.0, 0.136, 16),
    ("umass-spc/fin1.trace", "disksim-pages", 50_000, 58.4, 7.5, 6.4, 341.5, 121.7, 853.403, 1),
    ("umass-spc/wsrch-small.trace", "disksim-ns", 24_783, 100.0, 15.1, 8.0, 364.4, 363.4, 60.055, 6),
    ("ycsb-rocksdb/ssdtrace-sample.blkparse", "blkparse-queue", 1_695, 100.0, 114.2, 0.0, 189.0, 189.0, 0.680, 1),
    ("blkparse-text/blkparseout_ext4.txt", "blkparse-issue", 9_887, 91.4, 113.2, 290.1, 1_239.4, 1_238.9, 810.380, 1),
    (
        "disksim-ssd/ssd-iozone-aligned2-100K.trace",
        "disksim-ms",
        100_000,
        0.0,
        0.0,
        359.9,
        35_148.4,
        1_059.8,
        936.449,
        1,
    ),
];

fn traces() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3)?.join("../shared/traces");
    root.is_dir().then_some(root)
}

#[test]
fn statistics_agree_with_the_published_ones() {
    let Some(root) = traces() else {
        eprintln!("SKIPPED: no ../shared/traces beside the repository, real traces were not read");
        return;
    };
    let llm = (
        "llm/trace_opt_7b_mqsim_512tok_cache_drop.txt",
        "disksim-ns",
        36_873,
        86.4,
        96.6,
        474.0,
        5_320.4,
        5_320.1,
        34.313,
        1,
    );
    for (file, format, rows, reads, read, write, total, footprint, seconds, volumes) in
        EXPECTED.into_iter().chain([llm])
    {
        let reader = open(&root.join(format!("{file}.zst")), OpenOptions::default()).expect(file);
        let summary = summarize(reader).expect(file);
        assert_eq!(summary.format, format, "{file}");
        assert_eq!(summary.counts.rows, rows, "{file}: rows");
        assert_eq!(summary.volumes, volumes, "{file}: volumes");
        let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
        let figures = [
            ("read %", summary.read_percent(), reads, 0.051),
            ("mean read KiB", summary.mean_read_kib(), read, 0.051),
            ("mean write KiB", summary.mean_write_kib(), write, 0.051),
            ("total MiB", mib(summary.read_bytes + summary.write_bytes), total, 0.051),
            ("footprint MiB", mib(summary.footprint_bytes), footprint, 0.051),
            ("seconds", summary.duration_seconds, seconds, 0.00051),
        ];
        for (name, found, published, tolerance) in figures {
            assert!((found - published).abs() <= tolerance, "{file}: {name} {found} against {published}\n{summary}");
        }
    }
}
