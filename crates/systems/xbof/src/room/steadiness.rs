//! How steady a run was: from the series of the share of a borrower's commands that goes to lenders, and from the two
//! halves of the measured window.

use crate::jbof::{DriveCounters, JbofFigures, Reading};
use flashyard_report::WindowHalf;
use flashyard_units::SimSpan;

/// A share this close to its final mean counts as settled. [A]
const BAND: f64 = 0.05;

/// The share of one drive's commands that went to lenders, over the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Steadiness {
    /// Mean over the window.
    pub(crate) mean: f64,
    /// The most less the least of any interval in the second half of the window.
    pub(crate) swing: f64,
    /// From the beginning of the window until it stays within [`BAND`] of the mean of the second half; `None` when it
    /// has not before that half.
    pub(crate) settled: Option<SimSpan>,
}

/// Steadiness of the share of drive `number`.
pub(crate) fn steadiness(figures: &JbofFigures, number: usize) -> Steadiness {
    let readings = &figures.timeline.readings;
    let end = figures.measured_from + figures.window;
    let measured = readings.windows(2).filter(|pair| pair[0].at >= figures.measured_from && pair[1].at <= end);
    let intervals: Vec<(SimSpan, f64)> = measured
        .map(|pair| (pair[1].at.since(figures.measured_from), redirected(&pair[0], &pair[1], number)))
        .collect();
    of_series(&intervals, figures.window / 2)
}

/// Intervals of the timeline that two halves need at least. [A]
const INTERVALS_MIN: usize = 8;

/// The two halves of the time in which streams were at work in the measured window; `None` where the timeline is too
/// coarse to tell them apart.
pub(crate) fn halves(figures: &JbofFigures) -> Option<[WindowHalf; 2]> {
    let counts = |reading: &&Reading| reading.at >= figures.measured_from && reading.at <= figures.stopped;
    let measured: Vec<&Reading> = figures.timeline.readings.iter().filter(counts).collect();
    let (first, last) = (measured.first()?, measured.last()?);
    let middle = first.at + last.at.since(first.at) / 2;
    let middle = measured[measured.partition_point(|reading| reading.at < middle)];
    (measured.len() > INTERVALS_MIN).then(|| [half(first, middle), half(middle, last)])
}

fn half(begin: &Reading, end: &Reading) -> WindowHalf {
    let sum = |figure: fn(&DriveCounters) -> u64| {
        let of = |reading: &Reading| reading.drives.iter().map(figure).sum::<u64>();
        of(end) - of(begin)
    };
    let bytes = sum(|drive| drive.totals.read_bytes + drive.totals.write_bytes);
    let (programmed, written) = (sum(|drive| drive.programmed_slots), sum(|drive| drive.host_slots));
    WindowHalf {
        throughput_bytes_per_s: bytes as f64 / end.at.since(begin.at).as_secs_f64(),
        write_amplification: (written > 0).then(|| programmed as f64 / written as f64),
    }
}

/// Share of the commands of drive `number` that the driver sent to lenders between two readings.
pub(crate) fn redirected(begin: &Reading, end: &Reading, number: usize) -> f64 {
    let sum = end.drives[number].redirected - begin.drives[number].redirected;
    let span = end.at.since(begin.at).as_ps();
    if span == 0 { 0.0 } else { sum as f64 / span as f64 / 1e6 }
}

/// `intervals` are of equal length, each with the time of its end since the window began.
fn of_series(intervals: &[(SimSpan, f64)], half: SimSpan) -> Steadiness {
    let mean = |of: &[(SimSpan, f64)]| of.iter().map(|(_, share)| share).sum::<f64>() / of.len().max(1) as f64;
    let late = &intervals[intervals.partition_point(|&(end, _)| end <= half)..];
    if late.is_empty() {
        return Steadiness { mean: mean(intervals), ..Steadiness::default() };
    }
    let final_mean = mean(late);
    let range = late.iter().fold((f64::MAX, f64::MIN), |(low, high), &(_, share)| (low.min(share), high.max(share)));
    let outside = intervals.iter().rposition(|(_, share)| (share - final_mean).abs() > BAND);
    let settled = outside.map_or(SimSpan::ZERO, |last| intervals[last].0);
    Steadiness { mean: mean(intervals), swing: range.1 - range.0, settled: (settled <= half).then_some(settled) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(shares: &[f64]) -> Steadiness {
        let ms = |index: usize| SimSpan::from_ms(index as u64 + 1);
        let intervals: Vec<_> = shares.iter().enumerate().map(|(index, &share)| (ms(index), share)).collect();
        of_series(&intervals, SimSpan::from_ms(shares.len() as u64 / 2))
    }

    #[test]
    fn a_step_settles_when_it_stays_in_the_band() {
        let found = of(&[0.0, 0.9, 0.3, 0.42, 0.4, 0.41, 0.4, 0.4]);
        assert_eq!(found.settled, Some(SimSpan::from_ms(3)));
        assert!((found.swing - 0.01).abs() < 1e-12);
    }

    #[test]
    fn a_share_that_swings_never_settles_and_one_that_stands_is_settled_at_once() {
        let found = of(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
        assert_eq!((found.settled, found.swing, found.mean), (None, 1.0, 0.5));
        assert_eq!(of(&[0.2; 6]).settled, Some(SimSpan::ZERO));
        assert_eq!(of(&[]), Steadiness::default());
    }
}
