//! Where the time of requests goes.

use serde::Serialize;

/// A place where requests spend time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Name in files.
    pub key: &'static str,
    /// Name for readers.
    pub label: &'static str,
    /// Time that counts as it.
    pub note: &'static str,
}

/// Where the time of requests of one kind went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SplitRow {
    /// `mean`, `near p50`, `near p99` or `near p99.9`.
    pub at: String,
    /// Requests that the row averages over: all, or those in the histogram bucket of the percentile.
    pub requests: u64,
    /// Their mean latency in microseconds; the parts add up to it. The mean of a bucket is
    /// not the percentile itself: the bucket has faster and slower requests.
    pub latency_us: f64,
    /// Microseconds spent on each cause, in the order of [`DesignResult::causes`](crate::DesignResult::causes).
    pub parts_us: Vec<f64>,
}
