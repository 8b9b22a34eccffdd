//! Traces as sources: which drive replays which, fitted how, and what to say about it.
//!
//! The drives that replay one trace begin at different places: of n such drives the k-th adds k n-ths of the drive to
//! every address, in whole 4 MiB.

use crate::error::{ScenarioError, value};
use crate::files::Files;
use crate::schema::{OneOrMany, WorkloadSection};
use flashyard_measure::Source;
use flashyard_workload::{Replay, ReplayOptions, ScalingNote, SourceError};

/// Places at which drives begin to replay a shared trace are multiples of this: whole translation pages.
const SHIFT_BYTES: u64 = 4 << 20;

/// How a run goes through its traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounds {
    /// How often a trace is replayed; `None` for as long as requests are taken.
    pub(crate) count: Option<u64>,
    /// Whether requests are issued when they arrive.
    pub(crate) keep_arrivals: bool,
}

/// Whether a trace drives the run.
pub fn are_given(workload: &WorkloadSection) -> bool {
    workload.trace.is_some() || workload.traces.is_some()
}

/// One drive's share of a trace.
struct Share<'a> {
    trace: &'a str,
    /// Number among the drives that replay this trace, and their number.
    place: (u32, u32),
}

/// Each busy drive's share of a trace, in order.
fn shares(workload: &WorkloadSection, busy: u32) -> Result<Vec<Share<'_>>, ScenarioError> {
    let too_many =
        |key, count: usize| Err(value(key, format!("{count} traces for {busy} busy drives, give at most one each")));
    let names = match (&workload.trace, &workload.traces) {
        (Some(_), Some(_)) => {
            return Err(value("workload.traces", "give trace or traces, not both".to_owned()));
        }
        (Some(OneOrMany::One(name)), None) => std::slice::from_ref(name),
        (Some(OneOrMany::Many(names)), None) if names.len() != busy as usize => {
            let wrong = format!("{} traces for {busy} busy drives, give one, or one each, or traces", names.len());
            return Err(value("workload.trace", wrong));
        }
        (Some(OneOrMany::Many(names)), None) => names,
        (None, Some(names)) if names.len() > busy as usize => return too_many("workload.traces", names.len()),
        (None, Some(names)) => names,
        (None, None) => &[],
    };
    if names.is_empty() {
        return Err(value("workload.traces", "no trace in the list, give at least one".to_owned()));
    }
    let given: Vec<&str> = names.iter().map(String::as_str).cycle().take(busy as usize).collect();
    let place = |drive: usize, trace| (times(&given[..drive], trace), times(&given, trace));
    Ok(given.iter().enumerate().map(|(drive, trace)| Share { trace, place: place(drive, trace) }).collect())
}

/// How often `trace` is given out to `drives`.
fn times(drives: &[&str], trace: &str) -> u32 {
    drives.iter().filter(|other| **other == trace).count() as u32
}

fn options(workload: &WorkloadSection, rounds: Rounds, share: &Share<'_>, capacity_bytes: u64) -> ReplayOptions {
    let (place, of) = share.place;
    ReplayOptions {
        span_bytes: capacity_bytes,
        shift_bytes: capacity_bytes / u64::from(of.max(1)) * u64::from(place) / SHIFT_BYTES * SHIFT_BYTES,
        size_factor: workload.size_factor.unwrap_or(1.0),
        speed: workload.speed.unwrap_or(1.0),
        repetitions: rounds.count,
        keeps_arrivals: rounds.keep_arrivals,
        volumes: None,
    }
}

/// One source for each busy drive.
pub(crate) fn sources(
    workload: &WorkloadSection,
    rounds: Rounds,
    busy: u32,
    capacity_bytes: u64,
    files: &'static dyn Files,
) -> Result<Vec<Source>, ScenarioError> {
    let source = |share: Share<'_>| {
        let name = share.trace.to_owned();
        let open = Box::new(move || files.open_trace(&name).map_err(SourceError));
        Box::new(Replay::new(open, options(workload, rounds, &share, capacity_bytes))) as Source
    };
    Ok(shares(workload, busy)?.into_iter().map(source).collect())
}

/// Which traces drive the run, in words, with the scaling that is applied.
pub(crate) fn describe(workload: &WorkloadSection, rounds: Rounds, busy: u32, capacity_bytes: u64) -> String {
    let Ok(shares) = shares(workload, busy) else { return "traces".to_owned() };
    let different: Vec<&str> = shares.iter().filter(|share| share.place.0 == 0).map(|share| share.trace).collect();
    let Some(first) = shares.first() else { return "traces".to_owned() };
    let note = options(workload, rounds, first, capacity_bytes).note();
    let several = if different.len() > 1 { "traces" } else { "trace" };
    let shared = match (different.len(), shares.len()) {
        (different, drives) if different == drives => "",
        (1, _) => "; every drive replays it at its own offset",
        _ => "; given out again from the first, drives that replay one begin at different offsets",
    };
    format!("{several} {} ({note}{shared})", different.join(", "))
}

/// Scaling for each drive in all designs: one entry for designs that agree.
///
/// `notes`: for each design its name and the notes of its streams.
pub fn scaling(notes: &[(&str, &[Option<ScalingNote>])]) -> Vec<String> {
    let drives = notes.iter().map(|(_, streams)| streams.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for drive in 0..drives {
        let mut same: Vec<(String, Vec<&str>)> = Vec::new();
        for (design, streams) in notes {
            let Some(Some(note)) = streams.get(drive) else { continue };
            let note = note.to_string();
            match same.iter_mut().find(|(text, _)| *text == note) {
                Some((_, designs)) => designs.push(design),
                None => same.push((note, vec![design])),
            }
        }
        let all = same.len() == 1;
        lines.extend(same.into_iter().map(|(note, designs)| match all {
            true => format!("drive-{drive}: {note}"),
            false => format!("drive-{drive} in {}: {note}", designs.join(", ")),
        }));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 1 << 30;
    const ROUNDS: Rounds = Rounds { count: None, keep_arrivals: false };

    fn of(traces: &[&str]) -> WorkloadSection {
        WorkloadSection {
            traces: Some(traces.iter().map(|name| (*name).to_owned()).collect()),
            ..WorkloadSection::default()
        }
    }

    fn assigned(workload: &WorkloadSection, busy: u32) -> Vec<(String, u64)> {
        let shares = shares(workload, busy).expect("they can be given out");
        let place =
            |share: &Share<'_>| (share.trace.to_owned(), options(workload, ROUNDS, share, CAPACITY).shift_bytes);
        shares.iter().map(place).collect()
    }

    #[test]
    fn one_trace_each_begins_at_the_beginning() {
        assert_eq!(assigned(&of(&["a", "b#msr"]), 2), [("a".to_owned(), 0), ("b#msr".to_owned(), 0)]);
        let text = describe(&of(&["a", "b#msr"]), ROUNDS, 2, CAPACITY);
        assert_eq!(text, "traces a, b#msr (addresses modulo 1073741824 bytes, speed x1, repeated as needed)");
    }

    #[test]
    fn fewer_traces_than_drives_are_given_out_again_and_it_is_said() {
        let expected = [("a", 0), ("b", 0), ("a", CAPACITY / 2)].map(|(name, shift)| (name.to_owned(), shift));
        assert_eq!(assigned(&of(&["a", "b"]), 3), expected);
        assert!(describe(&of(&["a", "b"]), ROUNDS, 3, CAPACITY).contains("given out again from the first"));
        assert!(describe(&of(&["a"]), ROUNDS, 3, CAPACITY).contains("every drive replays it at its own offset"));
    }

    #[test]
    fn one_trace_for_all_is_shifted_from_drive_to_drive() {
        let one = WorkloadSection { trace: Some(OneOrMany::One("a".to_owned())), ..WorkloadSection::default() };
        let shifts: Vec<u64> = assigned(&one, 4).into_iter().map(|(_, shift)| shift).collect();
        assert_eq!(shifts, [0, CAPACITY / 4, CAPACITY / 2, CAPACITY / 4 * 3]);
    }

    #[test]
    fn lists_that_cannot_be_given_out_are_refused() {
        let both = WorkloadSection { trace: Some(OneOrMany::One("a".to_owned())), ..of(&["a"]) };
        let many = WorkloadSection { trace: Some(OneOrMany::Many(vec!["a".to_owned()])), ..WorkloadSection::default() };
        for (workload, why) in [
            (both, "not both"),
            (of(&[]), "at least one"),
            (of(&["a"; 3]), "3 traces for 2 busy drives"),
            (many, "1 traces"),
        ] {
            let error = shares(&workload, 2).map(|_| ()).expect_err(why).to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn designs_that_went_equally_far_share_a_line() {
        let note = |requests| Some(ScalingNote { applied: "x".to_owned(), requests, rounds: 1, ..Default::default() });
        let (short, long) = ([note(5), None], [note(9), None]);
        assert_eq!(scaling(&[("conv", &short), ("oc", &short)]), ["drive-0: x: 5 requests in 1 rounds"]);
        assert_eq!(
            scaling(&[("conv", &short), ("oc", &long), ("vh", &short)]),
            ["drive-0 in conv, vh: x: 5 requests in 1 rounds", "drive-0 in oc: x: 9 requests in 1 rounds"]
        );
        assert!(scaling(&[]).is_empty());
    }
}
