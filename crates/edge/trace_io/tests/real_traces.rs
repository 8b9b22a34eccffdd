//! Every supported real trace against the statistics published beside the files.

use flashyard_trace_io::{Event, Format, OpenOptions, TraceSummary, open, summarize};
use std::path::{Path, PathBuf};

/// A row of the published tables, and the format that its file is found to have.
struct Expected {
    file: &'static str,
    format: &'static str,
    rows: u64,
    read_percent: f64,
    read_kib: f64,
    write_kib: f64,
    total_mib: f64,
    footprint_mib: f64,
    seconds: f64,
    volumes: u64,
}

/// Published as "clock jump" only: the clock rule's result, without the years that the phone's clock jumped.
const BOOTING_SECONDS: f64 = 112.850;

/// Every file of the published tables of block traces, those of binary traces by processor included.
#[rustfmt::skip]
const EXPECTED: [Expected; 40] = [
    row("msr-cambridge/rsrch_1.csv", "msr", 13_780, [0.3, 13.2, 12.2, 163.8, 112.4, 576_557.644], 1),
    row("msr-cambridge/wdev_1.csv", "msr", 1_055, [0.0, 0.0, 5.1, 5.3, 1.4, 595_003.214], 1),
    row("msr-cambridge/web3-trace.txt", "web3", 31_380, [32.0, 74.9, 20.8, 1_168.8, 604.3, 594_376.222], 1),
    row("msr-cambridge/msr-cambridge1-sample.csv", "msr", 1_000, [50.8, 11.7, 7.1, 9.2, 7.5, 127.233], 1),
    row("msr-cambridge/hm_0.segment7016.csv", "msr", 7_016, [83.0, 13.0, 5.8, 80.9, 52.8, 148.406], 1),
    row("msr-cambridge/mds_0.writes1000.csv", "msr", 1_000, [0.0, 0.0, 5.7, 5.6, 1.8, 618.765], 1),
    row("msr-cambridge/msr.cut.per_10k.rw_20_80.105.trace", "replay", 10_000, [20.2, 1.8, 6.2, 52.3, 28.8, 242.905], 1),
    row("msr-cambridge/msr.cut.per_10k.most_thpt_rand_iops.1006.trace", "replay", 10_000, [83.2, 4.2, 54.9, 124.2, 113.4, 1.017], 1),
    row("tencent-cbs/cloud_storage-sample.csv", "tencent", 50_000, [49.0, 25.8, 33.4, 1_448.1, 1_360.3, 1.0], 2038),
    row("tencent-flashnet/tencent.cut.per_50k.most_size_thpt.222.trace", "profile", 50_000, [83.3, 28.9, 5.5, 1_219.0, 31.1, 77.0], 1),
    row("tencent-flashnet/tencent.cut.per_50k.rw_65_35.211.trace", "profile", 50_000, [65.9, 10.7, 11.8, 540.7, 55.2, 132.0], 1),
    row("tencent-flashnet/tencent.cut.per_50k.rw_75_25.379.trace", "profile", 50_000, [75.8, 12.9, 11.3, 610.1, 50.9, 87.0], 1),
    row("microsoft-servers/MSN-FS-30s-ms", "disksim-ms", 149_999, [87.0, 18.2, 9.2, 2_501.1, 2_101.7, 143.068], 1),
    row("microsoft-servers/DTRS1K.trace", "disksim-us", 127_043, [89.0, 55.6, 53.4, 6_864.4, 4_969.8, 300.0], 1),
    row("microsoft-servers/tpcc-small.trace", "disksim-ns", 6_999, [62.6, 8.1, 8.7, 57.0, 80.0, 0.136], 16),
    row("umass-spc/fin1.trace", "disksim-pages", 50_000, [58.4, 7.5, 6.4, 341.5, 121.7, 853.403], 1),
    row("umass-spc/wsrch-small.trace", "disksim-ns", 24_783, [100.0, 15.1, 8.0, 364.4, 363.4, 60.055], 6),
    row("ycsb-rocksdb/ssdtrace-sample.blkparse", "blkparse-queue", 1_695, [100.0, 114.2, 0.0, 189.0, 189.0, 0.680], 1),
    row("blkparse-text/blkparseout_ext4.txt", "blkparse-issue", 9_887, [91.4, 113.2, 290.1, 1_239.4, 1_238.9, 810.380], 1),
    row("disksim-ssd/ssd-iozone-aligned2-100K.trace", "disksim-ms", 100_000, [0.0, 0.0, 359.9, 35_148.4, 1_059.8, 936.449], 1),
    row("llm/trace_opt_7b_mqsim_512tok_cache_drop.txt", "disksim-ns", 36_873, [86.4, 96.6, 474.0, 5_320.4, 5_320.1, 34.313], 1),
    row("cloudphysics/cloudPhysicsIO.vscsi", "vscsi1", 113_872, [41.3, 37.4, 35.2, 4_011.1, 1_051.6, 7_200.090], 1),
    row("fiu/cheetah.cs.fiu.edu-110108-113008.sample.blkparse", "fiu", 9_997, [89.0, 4.0, 4.0, 39.1, 35.9, 23.566], 1),
    row("fiu/homes-sample.1.blkparse", "fiu", 1_000, [0.0, 0.0, 4.0, 3.9, 3.4, 1_120.827], 2),
    row("umass-spc/Financial_mini.spc", "spc", 949, [19.3, 1.6, 2.9, 2.5, 1.9, 28.443], 16),
    row("nexus5/Booting_log176.txt", "nexus", 18_417, [66.9, 61.1, 37.5, 959.3, 908.2, BOOTING_SECONDS], 1),
    row("nexus5/Movie_log121.txt", "nexus", 4_781, [94.6, 27.9, 17.1, 127.4, 127.0, 997.481], 1),
    row("netapp/small-tpch.csv", "netapp", 780, [0.0, 0.0, 48.0, 36.6, 36.6, 0.925], 1),
    row("ec2-spark-wordcount/150520220958/node0-xvda1.blktrace.0", "blktrace-queue", 16_639, [94.8, 17.4, 11.5, 277.8, 76.5, 87.962], 1),
    row("ec2-spark-wordcount/150520220958/node1-xvda1.blktrace.0", "blktrace-queue", 12_755, [88.1, 16.1, 7.9, 188.3, 74.8, 89.832], 1),
    row("ec2-spark-wordcount/150520220958/node2-xvda1.blktrace.0", "blktrace-queue", 12_937, [94.5, 16.4, 12.0, 203.8, 75.5, 94.570], 1),
    row("ec2-spark-wordcount/150520220958/node3-xvda1.blktrace.0", "blktrace-queue", 11_334, [93.8, 15.1, 13.0, 165.8, 76.1, 92.714], 1),
    row("ec2-spark-wordcount/150520220958/node4-xvda1.blktrace.0", "blktrace-queue", 12_657, [94.2, 15.3, 10.9, 185.6, 74.2, 96.627], 1),
    row("ec2-spark-wordcount/150520220958/node5-xvda1.blktrace.0", "blktrace-queue", 9_844, [93.7, 15.6, 10.6, 147.2, 72.5, 94.753], 1),
    row("ec2-spark-wordcount/150520220958/node6-xvda1.blktrace.0", "blktrace-queue", 12_522, [94.3, 16.7, 12.2, 201.0, 75.2, 95.002], 1),
    row("ec2-spark-wordcount/150520220958/node7-xvda1.blktrace.0", "blktrace-queue", 14_829, [93.9, 16.6, 10.4, 234.4, 75.2, 96.644], 1),
    row("ec2-spark-wordcount/150520220958/node8-xvda1.blktrace.0", "blktrace-queue", 15_083, [94.3, 16.7, 11.5, 241.1, 76.2, 97.776], 1),
    row("ec2-spark-wordcount/150520220958/node9-xvda1.blktrace.0", "blktrace-queue", 14_339, [95.5, 17.2, 11.4, 237.3, 75.5, 98.975], 1),
    row("hadoop-eternity/eternity8-sdb.blktrace.tar", "blktrace-queue", 107_614, [97.2, 271.0, 15.3, 27_739.1, 27_700.2, 176.934], 1),
    row("hadoop-eternity/eternity9-sdb.blktrace.tar", "blktrace-queue", 127_657, [98.6, 289.0, 17.1, 35_541.8, 35_538.9, 171.865], 1),
];

/// File, format, rows; then read %, mean read KiB, mean write KiB, total MiB, footprint MiB, seconds; volumes.
const fn row(file: &'static str, format: &'static str, rows: u64, figures: [f64; 6], volumes: u64) -> Expected {
    let [read_percent, read_kib, write_kib, total_mib, footprint_mib, seconds] = figures;
    Expected { file, format, rows, read_percent, read_kib, write_kib, total_mib, footprint_mib, seconds, volumes }
}

/// Irregular rows, counted with other programs: file, reordered, jumped, rounded.
const IRREGULAR: [(&str, u64, u64, u64); 7] = [
    ("msr-cambridge/web3-trace.txt", 0, 0, 86),
    ("tencent-cbs/cloud_storage-sample.csv", 1_297, 0, 0),
    ("tencent-flashnet/tencent.cut.per_50k.most_size_thpt.222.trace", 1, 0, 0),
    ("tencent-flashnet/tencent.cut.per_50k.rw_75_25.379.trace", 3, 0, 0),
    ("blkparse-text/blkparseout_ext4.txt", 3_712, 1, 0),
    ("nexus5/Booting_log176.txt", 1_536, 7, 0),
    ("nexus5/Movie_log121.txt", 47, 0, 0),
];

fn traces() -> Option<PathBuf> {
    flashyard_conformance::traces("real traces were not read")
}

fn read(root: &Path, file: &str, format: Option<Format>) -> TraceSummary {
    let reader = open(&root.join(format!("{file}.zst")), OpenOptions { format }).expect(file);
    summarize(reader).expect(file)
}

#[test]
fn statistics_agree_with_the_published_ones() {
    let Some(root) = traces() else { return };
    for expected in &EXPECTED {
        let file = expected.file;
        let summary = read(&root, file, None);
        assert_eq!(summary.format, expected.format, "{file}");
        assert_eq!(summary.counts.rows, expected.rows, "{file}: rows");
        assert_eq!(summary.reads + summary.writes, expected.rows, "{file}: reads and writes");
        assert_eq!(summary.volumes, expected.volumes, "{file}: volumes");
        let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
        // Half of the last published digit, and a little for figures that lie just between two.
        let figures = [
            ("read %", summary.read_percent(), expected.read_percent, 0.051),
            ("mean read KiB", summary.mean_read_kib(), expected.read_kib, 0.051),
            ("mean write KiB", summary.mean_write_kib(), expected.write_kib, 0.051),
            ("total MiB", mib(summary.read_bytes + summary.write_bytes), expected.total_mib, 0.051),
            ("footprint MiB", mib(summary.footprint_bytes), expected.footprint_mib, 0.051),
            ("seconds", summary.duration_seconds, expected.seconds, 0.00051),
        ];
        for (name, found, published, tolerance) in figures {
            assert!((found - published).abs() <= tolerance, "{file}: {name} {found} against {published}\n{summary}");
        }
        let irregular = IRREGULAR.iter().find(|(name, ..)| *name == file);
        let irregular = irregular.map_or((0, 0, 0), |(_, reordered, jumped, rounded)| (*reordered, *jumped, *rounded));
        let counts = summary.counts;
        assert_eq!((counts.reordered, counts.jumped, counts.rounded), irregular, "{file}: reordered, jumped, rounded");
        let reasons: u64 = counts.reasons().iter().map(|(count, _)| count).sum();
        assert_eq!(counts.skipped, reasons, "{file}: every skipped line has a reason");
        assert_eq!(counts.assumed, 0, "{file}: it holds all");
    }
}

#[test]
fn arrivals_begin_at_zero_and_never_go_back() {
    let Some(root) = traces() else { return };
    for expected in &EXPECTED {
        let reader = open(&root.join(format!("{}.zst", expected.file)), OpenOptions::default()).expect(expected.file);
        let arrivals: Vec<u64> =
            reader.take(20_000).map(|record| record.expect(expected.file).arrival.as_ps()).collect();
        assert_eq!(arrivals.first(), Some(&0), "{}", expected.file);
        assert!(arrivals.is_sorted(), "{}", expected.file);
    }
}

#[test]
fn another_event_and_another_unit_can_be_asked_for() {
    let Some(root) = traces() else { return };
    let ycsb = |event| read(&root, "ycsb-rocksdb/ssdtrace-sample.blkparse", Some(Format::blkparse(event)));
    assert_eq!(ycsb(Event::Queue).counts.rows, 1_695);
    assert_eq!(ycsb(Event::Issue).counts.rows, 1_694);
    assert_eq!(ycsb(Event::Complete).counts.rows, 1_694);
    let eternity = |event| read(&root, "hadoop-eternity/eternity8-sdb.blktrace.tar", Some(Format::blktrace(event)));
    assert_eq!(eternity(Event::Issue).counts.rows, 110_246);
    // 49,195 C events are published, 51 of them of flushes, for no bytes.
    let completions = eternity(Event::Complete).counts;
    assert_eq!((completions.rows, completions.skipped_no_range), (49_144, 51));
    let nanoseconds = read(&root, "microsoft-servers/DTRS1K.trace", Format::by_name("disksim-ns"));
    assert!((nanoseconds.duration_seconds - 0.3).abs() < 0.000_001, "{nanoseconds}");
}

#[test]
fn every_skipped_line_of_a_blkparse_file_has_its_reason() {
    let Some(root) = traces() else { return };
    let counts = read(&root, "blkparse-text/blkparseout_ext4.txt", None).counts;
    // 9,888 I and 9,887 C lines; two blank lines; five tables of seven or eight lines, and three lines.
    assert_eq!((counts.skipped_other_event, counts.skipped_no_range), (19_775, 0));
    assert_eq!((counts.skipped_totals, counts.skipped_blank), (42, 2));
}

/// Traces without addresses, times or directions: file, format, rows, then read %, total MiB, footprint MiB, seconds
/// where they are published, else -1.
const REFERENCES: [(&str, &str, u64, [f64; 4]); 6] = [
    ("tectonic/block_traces_1.csv", "tectonic", 999, [60.0, -1.0, -1.0, 39.0]),
    ("ec2-spark-wordcount/150520220958/node0-rmem.log", "rmem", 72_318, [39.6, 282.5, 273.8, 163.4]),
    ("ec2-spark-wordcount/150520220958/node1-rmem.log", "rmem", 101_746, [24.0, 397.4, 331.1, 154.0]),
    ("ec2-spark-wordcount/150520220958/node2-rmem.log", "rmem", 99_834, [43.1, 390.0, 361.8, 140.8]),
    ("ec2-spark-wordcount/150520220958/node4-rmem.log", "rmem", 102_146, [43.0, 399.0, 361.9, 137.5]),
    ("ec2-spark-wordcount/150520220958/node7-rmem.log", "rmem", 95_339, [27.7, 372.4, 327.7, 128.5]),
];

#[test]
fn other_references_agree_with_the_published_statistics() {
    let Some(root) = traces() else { return };
    for (file, format, rows, published) in REFERENCES {
        let summary = read(&root, file, None);
        assert_eq!((summary.format, summary.counts.rows), (format, rows), "{file}");
        let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
        let found = [
            summary.read_percent(),
            mib(summary.read_bytes + summary.write_bytes),
            mib(summary.footprint_bytes),
            summary.duration_seconds,
        ];
        for (found, published) in found.into_iter().zip(published).filter(|(_, published)| *published >= 0.0) {
            assert!((found - published).abs() <= 0.051, "{file}: {found} against {published}\n{summary}");
        }
    }
    let tectonic = read(&root, "tectonic/block_traces_1.csv", None);
    assert!((tectonic.mean_read_kib() - 2_324.0).abs() < 0.51 && (tectonic.mean_write_kib() - 4_990.0).abs() < 0.51);
    assert_eq!((tectonic.counts.assumed, tectonic.counts.skipped_header), (999, 1));
}

#[test]
fn page_references_are_those_of_the_paper() {
    let Some(root) = traces() else { return };
    for (file, rows, references, different) in [
        ("arc/P3.lis", 238_578, 3_912_296, 762_543),
        ("arc/P12.lis", 547_147, 13_208_930, 3_153_310),
        ("arc/OLTP.lis", 914_145, 914_145, 186_880),
    ] {
        // Pages of 4 KiB, so that the footprint counts blocks.
        let pages = read(&root, file, Format::by_name("arc-pages"));
        assert_eq!((pages.counts.rows, pages.counts.assumed), (rows, rows), "{file}");
        assert_eq!((pages.read_bytes / 4096, pages.footprint_bytes / 4096), (references, different), "{file}");
        let blocks = read(&root, file, None);
        assert_eq!((blocks.format, blocks.read_bytes / 512), ("arc", references), "{file}");
    }
}

#[test]
fn the_note_of_an_archive_names_the_missing_processor() {
    let Some(root) = traces() else { return };
    for (node, missing) in [(8, 2), (9, 33)] {
        let file = root.join(format!("hadoop-eternity/eternity{node}-sdb.blktrace.tar.zst"));
        let note = open(&file, OpenOptions::default()).expect("it opens").note();
        let end = format!("39 processor files merged by time, none for processor {missing}");
        assert!(note.ends_with(&end), "{note}");
    }
}

#[test]
fn what_is_no_block_trace_is_refused() {
    let Some(root) = traces() else { return };
    for directory in ["memory", "graph", "vectors", "tpch-sf0.01", "llm"] {
        let Ok(files) = std::fs::read_dir(root.join(directory)) else { continue };
        for file in files.flatten().map(|entry| entry.path()) {
            if file.to_string_lossy().contains("mqsim") {
                continue;
            }
            let found = open(&file, OpenOptions::default()).map(|reader| reader.format());
            assert!(found.is_err(), "{} is taken for {found:?}", file.display());
        }
    }
}

#[test]
fn no_file_of_the_block_trace_directories_is_left_out() {
    let Some(root) = traces() else { return };
    // A processor's file stands for its siblings.
    let tried = |file: &str| {
        let file = file.replace(".blktrace.1", ".blktrace.0");
        EXPECTED.iter().any(|row| row.file == file) || REFERENCES.iter().any(|row| row.0 == file)
    };
    let listed: Vec<&str> =
        EXPECTED.iter().filter_map(|row| row.file.rsplit_once('/')).map(|(first, _)| first).collect();
    for directory in listed.into_iter().filter(|directory| *directory != "llm") {
        for entry in std::fs::read_dir(root.join(directory)).expect(directory).flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(name) = name.strip_suffix(".zst") {
                assert!(tried(&format!("{directory}/{name}")), "{directory}/{name} is in no table of this test");
            }
        }
    }
}
