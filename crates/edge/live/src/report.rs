//! Report at the end of a run under the wall clock.

use crate::clock::Lateness;
use flashyard_stats::LatencyHistogram;
use flashyard_units::SimSpan;
use std::fmt;
use std::time::Duration;

/// Work that a run has done, and how well it kept time.
#[derive(Clone, Debug)]
pub struct Report {
    /// Time on the wall.
    pub elapsed: Duration,
    /// Virtual time.
    pub simulated: SimSpan,
    /// Reads, writes, trims, flushes and remaps answered.
    pub requests: [u64; 5],
    /// Bytes read and written.
    pub bytes: [u64; 2],
    /// Requests still under way at the end.
    pub unanswered: u32,
    /// From each request to its answer, in virtual time.
    pub latency: LatencyHistogram,
    /// How late answers were handed out.
    pub lateness: Lateness,
    /// Digest of everything that happened.
    pub digest: u64,
    /// Events of the enclosure.
    pub events: u64,
}

impl Report {
    /// Whether the timings that clients measured mean anything: 99 of 100 answers were at most `tolerance` late.
    pub fn is_usable(&self, tolerance: SimSpan) -> bool {
        self.lateness.answers.percentile_us(0.99) <= tolerance.as_us_f64()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [reads, writes, trims, flushes, remaps] = self.requests;
        let mib = |bytes: u64| bytes as f64 / (1 << 20) as f64;
        writeln!(
            f,
            "{:.3} s on the wall, {:.3} s simulated, {} events",
            self.elapsed.as_secs_f64(),
            self.simulated.as_secs_f64(),
            self.events
        )?;
        writeln!(
            f,
            "answered {reads} reads ({:.1} MiB), {writes} writes ({:.1} MiB), {trims} trims, {flushes} flushes",
            mib(self.bytes[0]),
            mib(self.bytes[1])
        )?;
        if remaps > 0 {
            writeln!(f, "answered {remaps} remaps")?;
        }
        if self.unanswered > 0 {
            writeln!(f, "{} requests were not answered any more", self.unanswered)?;
        }
        row(f, "latency", &self.latency)?;
        row(f, "lateness of answers", &self.lateness.answers)?;
        row(f, "clock of an idle thread", &self.lateness.noise)?;
        write!(f, "digest of all effects {:016x}", self.digest)
    }
}

fn row(f: &mut fmt::Formatter<'_>, what: &str, histogram: &LatencyHistogram) -> fmt::Result {
    if histogram.count() == 0 {
        return Ok(());
    }
    let at = |quantile| histogram.percentile_us(quantile);
    writeln!(f, "{what}: median {:.1} us, p99 {:.1} us, max {:.1} us", at(0.5), at(0.99), histogram.max_us())
}
