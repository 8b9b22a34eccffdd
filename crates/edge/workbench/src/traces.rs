//! The character of a trace, as JSON.

use flashyard_trace_io::{GapSummary, RateOverTime, ReuseMethod, ReuseSummary, SizeSummary, TraceAnalysis};
use serde_json::{Value, json};
use std::path::Path;

/// The JSON form: fields are added, never renamed.
pub fn trace_json(file: &Path, analysis: &TraceAnalysis) -> Value {
    let summary = &analysis.summary;
    let counts = &summary.counts;
    json!({
        "file": file.display().to_string(),
        "format": summary.format,
        "rows": counts.rows,
        "reads": summary.reads,
        "writes": summary.writes,
        "read_percent": summary.read_percent(),
        "mean_read_kib": summary.mean_read_kib(),
        "mean_write_kib": summary.mean_write_kib(),
        "read_bytes": summary.read_bytes,
        "write_bytes": summary.write_bytes,
        "footprint_bytes": summary.footprint_bytes,
        "duration_seconds": summary.duration_seconds,
        "volumes": summary.volumes,
        "reordered_rows": counts.reordered,
        "jumped_rows": counts.jumped,
        "rounded_rows": counts.rounded,
        "skipped_lines": counts.skipped,
        "assumed_rows": counts.assumed,
        "note": summary.note,
        "rate": rate(&analysis.rate),
        "read_sizes": sizes(&analysis.read_sizes),
        "write_sizes": sizes(&analysis.write_sizes),
        "sequential_percent": analysis.sequential_percent,
        "arrival_gaps": gaps(&analysis.gaps),
        "reuse": reuse(&analysis.reuse),
    })
}

fn rate(rate: &RateOverTime) -> Value {
    json!({
        "bin_seconds": rate.bin_seconds,
        "requests_per_s_mean": rate.requests_per_s_mean,
        "bytes_per_s_mean": rate.bytes_per_s_mean,
        "requests_per_s": rate.requests_per_s,
        "bytes_per_s": rate.bytes_per_s,
    })
}

fn sizes(sizes: &SizeSummary) -> Value {
    let frequent = sizes.frequent.iter().map(|size| json!({ "bytes": size.bytes, "requests": size.requests }));
    json!({
        "p50_bytes": sizes.p50_bytes,
        "p90_bytes": sizes.p90_bytes,
        "p99_bytes": sizes.p99_bytes,
        "max_bytes": sizes.max_bytes,
        "aligned_percent": sizes.aligned_percent,
        "frequent": frequent.collect::<Vec<Value>>(),
    })
}

fn gaps(gaps: &GapSummary) -> Value {
    json!({
        "mean_us": gaps.mean_us,
        "p50_us": gaps.p50_us,
        "p90_us": gaps.p90_us,
        "p99_us": gaps.p99_us,
        "max_us": gaps.max_us,
        "simultaneous_percent": gaps.simultaneous_percent,
        "variation": gaps.variation,
    })
}

fn reuse(reuse: &ReuseSummary) -> Value {
    let (method, rate) = match reuse.method {
        ReuseMethod::Exact => ("exact", 1.0),
        ReuseMethod::Sampled { rate } => ("sampled", rate),
    };
    let curve = reuse.curve.iter().map(|point| json!({ "cache_bytes": point.bytes, "miss_ratio": point.miss_ratio }));
    json!({
        "method": method,
        "sampling_rate": rate,
        "page_references": reuse.references,
        "first_percent": reuse.first_percent,
        "distance_p50_bytes": reuse.distance_p50_bytes,
        "distance_p90_bytes": reuse.distance_p90_bytes,
        "distance_p99_bytes": reuse.distance_p99_bytes,
        "miss_ratio_curve": curve.collect::<Vec<Value>>(),
    })
}
