//! The analysis of real traces: its parts agree with each other and with the totals, and a sample with exact results.

use flashyard_trace_io::{AnalysisOptions, OpenOptions, ReuseMethod, TraceAnalysis, analyze, open, summarize};
use std::path::{Path, PathBuf};

const FILES: [&str; 7] = [
    "msr-cambridge/rsrch_1.csv",
    "msr-cambridge/msr.cut.per_10k.rw_20_80.105.trace",
    "tencent-flashnet/tencent.cut.per_50k.rw_65_35.211.trace",
    "microsoft-servers/MSN-FS-30s-ms",
    "microsoft-servers/tpcc-small.trace",
    "umass-spc/fin1.trace",
    "blkparse-text/blkparseout_ext4.txt",
];

fn traces() -> Option<PathBuf> {
    flashyard_conformance::traces("real traces were not analyzed")
}

fn analysis(root: &Path, file: &str, options: AnalysisOptions) -> TraceAnalysis {
    let reader = open(&root.join(format!("{file}.zst")), OpenOptions::default()).expect(file);
    analyze(reader, options, &mut |_| true).expect(file).expect("nothing ends it")
}

#[test]
fn parts_agree_with_the_totals() {
    let Some(root) = traces() else { return };
    for file in FILES {
        let found = analysis(&root, file, AnalysisOptions::default());
        let totals = open(&root.join(format!("{file}.zst")), OpenOptions::default()).expect(file);
        assert_eq!(found.summary, summarize(totals).expect(file), "{file}");
        let summary = &found.summary;
        assert_eq!((found.read_sizes.requests, found.write_sizes.requests), (summary.reads, summary.writes), "{file}");
        let bin = found.rate.bin_seconds;
        let near = |left: f64, right: f64| (left - right).abs() <= right * 1e-9;
        let bytes = (summary.read_bytes + summary.write_bytes) as f64;
        assert!(near(found.rate.bytes_per_s.iter().sum::<f64>() * bin, bytes), "{file}");
        assert!(near(found.rate.requests_per_s.iter().sum::<f64>() * bin, summary.counts.rows as f64), "{file}");
        assert!((40..=80).contains(&found.rate.requests_per_s.len()), "{file}");
        // Every page misses once, and the largest cache misses nothing else.
        let reuse = &found.reuse;
        let first = summary.footprint_bytes as f64 / 4096.0 / reuse.references as f64;
        assert_eq!(reuse.method, ReuseMethod::Exact, "{file}");
        assert!(near(reuse.first_percent / 100.0, first), "{file}");
        assert!(reuse.curve.last().is_some_and(|point| near(point.miss_ratio, first)), "{file}");
        assert!(reuse.curve.is_sorted_by(|left, right| left.miss_ratio >= right.miss_ratio), "{file}");
    }
}

#[test]
fn a_sample_is_near_what_is_exact() {
    let Some(root) = traces() else { return };
    for file in FILES {
        let exact = analysis(&root, file, AnalysisOptions::default()).reuse;
        let sampled = analysis(&root, file, AnalysisOptions { exact_bytes_max: 0 }).reuse;
        let ReuseMethod::Sampled { rate } = sampled.method else { panic!("{file} must be sampled") };
        let pairs = exact.curve.iter().zip(&sampled.curve);
        let errors: Vec<f64> = pairs.map(|(exact, sampled)| (exact.miss_ratio - sampled.miss_ratio).abs()).collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let most = errors.iter().copied().fold(0.0, f64::max);
        println!("{file}: sampled {rate:.3}, mean error {mean:.4}, greatest {most:.4}");
        assert!(mean < 0.02 && most < 0.08, "{file}: mean error {mean}, greatest {most}");
        // Fewer pages than the sample holds: nothing is estimated.
        assert!(rate < 1.0 || most < 1e-9, "{file}");
    }
}
