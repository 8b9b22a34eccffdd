//! An analysis as text.

use super::plot::{bar, bytes, count, digits, sparkline, time};
use flashyard_trace_io::{CurvePoint, GapSummary, RateOverTime, ReuseMethod, ReuseSummary, SizeSummary, TraceAnalysis};
use std::fmt::Write;

/// Rows of the miss-ratio plot at most.
const CURVE_ROWS: usize = 14;
/// Frequent sizes on a line.
const FREQUENT: usize = 3;
/// Characters of a bar for a miss ratio of 1.
const BAR: usize = 50;

/// The whole analysis. Labels take sixteen characters, as in the summary.
pub(super) fn text(analysis: &TraceAnalysis) -> String {
    [
        analysis.summary.to_string(),
        rate(&analysis.rate),
        sizes(&analysis.read_sizes, &analysis.write_sizes),
        arrivals(analysis.sequential_percent, &analysis.gaps),
        reuse(&analysis.reuse),
    ]
    .join("\n\n")
}

fn rate(rate: &RateOverTime) -> String {
    if rate.requests_per_s.is_empty() {
        return "rate            all rows arrive at one time".to_owned();
    }
    let mib: Vec<f64> = rate.bytes_per_s.iter().map(|bytes| bytes / 1_048_576.0).collect();
    let line = |label: &str, values: &[f64], mean: f64| {
        let whole = &values[..rate.whole_bins()];
        let least = whole.iter().copied().fold(f64::INFINITY, f64::min);
        let most = whole.iter().copied().fold(0.0, f64::max);
        let figures = format!("min {}, mean {}, max {}", digits(least), digits(mean), digits(most));
        format!("{label:<16}{}\n{:<16}{figures}", sparkline(values), "")
    };
    let bin = time(rate.bin_seconds * 1e6);
    [
        format!("{:<16}one character is {bin}", "over time"),
        line("requests/s", &rate.requests_per_s, rate.requests_per_s_mean),
        line("MiB/s", &mib, rate.bytes_per_s_mean / 1_048_576.0),
    ]
    .join("\n")
}

fn sizes(reads: &SizeSummary, writes: &SizeSummary) -> String {
    let line = |label: &str, sizes: &SizeSummary| {
        if sizes.requests == 0 {
            return format!("{label:<16}none");
        }
        let share = |part: u64| digits(100.0 * part as f64 / sizes.requests as f64);
        let frequent = sizes.frequent.iter().take(FREQUENT);
        let frequent = frequent.map(|size| format!("{} {} %", bytes(size.bytes.into()), share(size.requests)));
        format!(
            "{label:<16}{:<11}{:<11}{:<11}{:<11}{:<10}{}",
            bytes(sizes.p50_bytes.into()),
            bytes(sizes.p90_bytes.into()),
            bytes(sizes.p99_bytes.into()),
            bytes(sizes.max_bytes.into()),
            format!("{} %", digits(sizes.aligned_percent)),
            frequent.collect::<Vec<String>>().join(", "),
        )
    };
    let head = format!(
        "{:<16}{:<11}{:<11}{:<11}{:<11}{:<10}{}",
        "sizes", "p50", "p90", "p99", "max", "on 4 KiB", "most frequent"
    );
    [head, line("reads", reads), line("writes", writes)].join("\n")
}

fn arrivals(sequential_percent: f64, gaps: &GapSummary) -> String {
    format!(
        "{:<16}{} % begin where the one before of the same volume ended\n\
         {:<16}mean {}, p50 {}, p90 {}, p99 {}, max {}; {} % at the same time; variation {}",
        "sequential",
        digits(sequential_percent),
        "arrival gaps",
        time(gaps.mean_us),
        time(gaps.p50_us),
        time(gaps.p90_us),
        time(gaps.p99_us),
        time(gaps.max_us),
        digits(gaps.simultaneous_percent),
        digits(gaps.variation),
    )
}

fn reuse(reuse: &ReuseSummary) -> String {
    let method = match reuse.method {
        ReuseMethod::Exact => "exact".to_owned(),
        ReuseMethod::Sampled { rate } => format!("estimated from {} % of the pages", digits(100.0 * rate)),
    };
    let distance = |distance: Option<u64>| distance.map_or("-".to_owned(), bytes);
    let mut text = format!(
        "{:<16}{} references to 4 KiB pages, {} % of them the first to their page ({method})\n\
         {:<16}p50 {}, p90 {}, p99 {} of other pages in between\n\
         {:<16}misses of a cache that evicts the least recently used page",
        "reuse",
        count(reuse.references),
        digits(reuse.first_percent),
        "reuse distance",
        distance(reuse.distance_p50_bytes),
        distance(reuse.distance_p90_bytes),
        distance(reuse.distance_p99_bytes),
        "cache size",
    );
    for point in plotted(&reuse.curve) {
        let share = format!("{:.1} %", 100.0 * point.miss_ratio);
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{:>12}{share:>9}  {}", bytes(point.bytes), bar(point.miss_ratio, BAR));
    }
    text
}

/// Powers of two and the size that holds all pages, from where the curve leaves the misses of one page to where more
/// memory is of no use.
fn plotted(curve: &[CurvePoint]) -> Vec<CurvePoint> {
    let last = curve.len().saturating_sub(1);
    let shown = |(index, point): &(usize, &CurvePoint)| point.bytes.is_power_of_two() || *index == last;
    let points: Vec<CurvePoint> = curve.iter().enumerate().filter(shown).map(|(_, point)| *point).collect();
    let (Some(most), Some(least)) = (points.first(), points.last()) else { return points };
    let near = |left: f64, right: f64| (left - right).abs() < 0.0005;
    let begin = points.iter().rposition(|point| near(point.miss_ratio, most.miss_ratio)).unwrap_or(0);
    let end = points.iter().position(|point| near(point.miss_ratio, least.miss_ratio)).unwrap_or(0).max(begin);
    // Where there are too many, every second or third one, with the last.
    let step = (end - begin + 1).div_ceil(CURVE_ROWS);
    let mut rows: Vec<CurvePoint> = points[begin..=end].iter().rev().step_by(step).copied().collect();
    rows.reverse();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(misses: &[f64]) -> Vec<CurvePoint> {
        misses
            .iter()
            .enumerate()
            .map(|(octave, &miss_ratio)| CurvePoint { bytes: 4096 << octave, miss_ratio })
            .collect()
    }

    #[test]
    fn the_plot_begins_and_ends_where_memory_matters() {
        let octaves = |misses: &[f64]| plotted(&curve(misses)).iter().map(|point| point.bytes.ilog2() - 12).collect();
        let found: [Vec<u32>; 3] =
            [octaves(&[1.0, 1.0, 0.7, 0.5, 0.5, 0.5]), octaves(&[1.0, 1.0, 1.0]), octaves(&[0.3])];
        assert_eq!(found, [vec![1, 2, 3], vec![2], vec![0]]);
        assert_eq!(plotted(&[]), []);
        let long: Vec<f64> = (0..40).map(|octave| 1.0 - f64::from(octave) / 50.0).collect();
        let rows = plotted(&curve(&long));
        assert_eq!((rows.len(), rows.last().map(|point| point.bytes)), (14, Some(4096 << 39)));
    }

    #[test]
    fn one_time_and_no_requests_are_said_in_words() {
        assert_eq!(rate(&RateOverTime::default()), "rate            all rows arrive at one time");
        assert!(sizes(&SizeSummary::default(), &SizeSummary::default()).ends_with("\nwrites          none"));
    }
}
