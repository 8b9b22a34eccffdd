//! Distributions of reports, from the histograms of any world.

use flashyard_report::{LatencyBucket, Percentile, SplitRow};
use flashyard_stats::{LatencyHistogram, MeanSplit, SplitHistogram};

/// Percentiles that the report draws, in percent: close together where the tail is.
const PERCENTS: [f64; 17] =
    [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99];

/// The buckets of a histogram.
pub fn buckets(latency: &LatencyHistogram) -> Vec<LatencyBucket> {
    latency.buckets().map(|(up_to_us, requests)| LatencyBucket { up_to_us, requests }).collect()
}

/// Where the time went: of the mean request, and of those near p50, p99 and p99.9.
pub fn split_rows<const N: usize>(split: &SplitHistogram<N>) -> Vec<SplitRow> {
    let row = |at: &str, mean: MeanSplit<N>| SplitRow {
        at: at.to_owned(),
        requests: mean.requests,
        latency_us: mean.total_us(),
        parts_us: mean.parts_us.to_vec(),
    };
    if split.count() == 0 {
        return Vec::new();
    }
    vec![
        row("mean", split.mean()),
        row("near p50", split.near(0.5)),
        row("near p99", split.near(0.99)),
        row("near p99.9", split.near(0.999)),
    ]
}

/// The percentiles that the report draws; none of no request.
pub fn percentiles(latency: &LatencyHistogram) -> Vec<Percentile> {
    if latency.count() == 0 {
        return Vec::new();
    }
    let point = |percent: f64| Percentile { percent, latency_us: latency.percentile_us(percent / 100.0) };
    PERCENTS.map(point).to_vec()
}
