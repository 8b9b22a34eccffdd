//! From the `[workload]` and `[run]` sections to sources of requests and the plan of a run.

use crate::drive::bytes_u32;
use crate::error::{ScenarioError, value};
use crate::files::Files;
use crate::schema::{PatternName, RunSection, Scenario, WorkloadSection};
use crate::traces::{self, Rounds};
use flashyard_kernel::Rng;
use flashyard_measure::{RunPlan, Source, StopRule};
use flashyard_units::SimSpan;
use flashyard_workload::surrogates::Characteristics;
use flashyard_workload::{AddressPattern, Arrival, Pass, SizeMix, Synthetic, SyntheticSpec, surrogates, table2};

/// How long to run.
pub fn plan(scenario: &Scenario) -> Result<RunPlan, ScenarioError> {
    let run = &scenario.run;
    let stop = match (run.measure, run.requests_per_drive) {
        (Some(time), _) => StopRule::After(time.0),
        (None, Some(requests)) => StopRule::Requests(requests),
        (None, None) if traces::are_given(&scenario.workload) => StopRule::StreamEnd,
        (None, None) => {
            return Err(value("run", "give measure = \"100 ms\" or requests_per_drive = 10000".to_owned()));
        }
    };
    let warmup = run.warmup.map_or(SimSpan::ZERO, |time| time.0);
    // Where arrivals are replayed, the trace says how much load there is at any time: a drive that is asked for nothing
    // more is part of it.
    let replayed = traces::are_given(&scenario.workload) && scenario.workload.depth.is_none();
    let ends_together = !replayed || matches!(stop, StopRule::Requests(_));
    Ok(RunPlan { warmup, stop, ends_together, depth: scenario.workload.depth, seed: scenario.seed })
}

/// How a run goes through its traces: until enough was asked, but once where the scenario says neither how much that is
/// nor how often.
fn rounds(scenario: &Scenario) -> Rounds {
    let RunSection { measure, requests_per_drive, .. } = &scenario.run;
    let ends_with_trace = measure.is_none() && requests_per_drive.is_none();
    Rounds {
        count: scenario.workload.repetitions.or(ends_with_trace.then_some(1)),
        keep_arrivals: scenario.workload.depth.is_none(),
    }
}

/// One source for each busy drive of a run that goes by [`plan`].
///
/// Errors: a workload that cannot be.
pub fn sources(
    scenario: &Scenario,
    busy: u32,
    capacity_bytes: u64,
    files: &'static dyn Files,
) -> Result<Vec<Source>, ScenarioError> {
    sources_in(scenario, rounds(scenario), busy, capacity_bytes, files)
}

/// The source of a drive that takes requests as long as it lives, whatever their times: without a number of repetitions
/// a trace goes round.
///
/// Errors: a workload that cannot be.
pub fn endless_source(
    scenario: &Scenario,
    capacity_bytes: u64,
    files: &'static dyn Files,
) -> Result<Source, ScenarioError> {
    let rounds = Rounds { count: scenario.workload.repetitions, keep_arrivals: false };
    let mut sources = sources_in(scenario, rounds, 1, capacity_bytes, files)?;
    sources.pop().ok_or_else(|| value("workload", "a life needs a workload".to_owned()))
}

fn sources_in(
    scenario: &Scenario,
    rounds: Rounds,
    busy: u32,
    capacity_bytes: u64,
    files: &'static dyn Files,
) -> Result<Vec<Source>, ScenarioError> {
    let workload = &scenario.workload;
    if traces::are_given(workload) {
        return traces::sources(workload, rounds, busy, capacity_bytes, files);
    }
    let spec = spec(workload, capacity_bytes)?;
    (0..busy)
        .map(|drive| {
            let rng = Rng::named(scenario.seed, &format!("workload.{drive}"));
            if let (Some(name), Some(times)) = (&workload.surrogate, workload.pass) {
                let span_bytes = workload.span.map_or(capacity_bytes, |size| size.0.get());
                let pass = Pass::new(surrogate(name)?, span_bytes, times, &spec.arrival, rng);
                return Ok(Box::new(pass.map_err(|error| value("workload.pass", error.to_string()))?) as Source);
            }
            let source =
                Synthetic::new(spec.clone(), rng).map_err(|error| value("workload.size", error.to_string()))?;
            Ok(Box::new(source) as Source)
        })
        .collect()
}

fn surrogate(name: &str) -> Result<&'static Characteristics, ScenarioError> {
    surrogates::characteristics(name).ok_or_else(|| {
        let names: Vec<&str> = surrogates::TRACES.iter().map(|row| row.name).collect();
        value("workload.surrogate", format!("there is no trace {name:?}, give one of {}", names.join(", ")))
    })
}

/// The load of the run, in words, with every scaling that is applied.
pub fn in_words(scenario: &Scenario, busy: u32, capacity_bytes: u64) -> String {
    let workload = &scenario.workload;
    let looping = match workload.depth {
        Some(depth) => format!("closed loop of depth {depth} on each of {} drives", busy),
        None => format!("arrival times kept, on each of {} drives", busy),
    };
    if traces::are_given(workload) {
        return format!("{}; {looping}", traces::describe(workload, rounds(scenario), busy, capacity_bytes));
    }
    match &workload.table2 {
        Some(name) => format!("synthetic, with the published means of {name}; {looping}"),
        None => match &workload.surrogate {
            Some(name) => format!("synthetic, with the published characteristics of {name}; {looping}"),
            None => format!("synthetic pattern; {looping}"),
        },
    }
}

/// The load that a generator makes on a drive of `capacity_bytes`.
pub fn spec(workload: &WorkloadSection, capacity_bytes: u64) -> Result<SyntheticSpec, ScenarioError> {
    let span_bytes = workload.span.map_or(capacity_bytes, |size| size.0.get());
    if span_bytes > capacity_bytes || span_bytes == 0 {
        return Err(value(
            "workload.span",
            format!("{span_bytes} bytes of a drive of {capacity_bytes}, give 1 to that"),
        ));
    }
    let mut spec = match (&workload.table2, &workload.surrogate, workload.pattern) {
        (Some(name), ..) => table2::workload(name, span_bytes).ok_or_else(|| {
            let names: Vec<&str> = table2::names().collect();
            value("workload.table2", format!("there is no workload {name:?}, give one of {}", names.join(", ")))
        })?,
        (None, Some(name), _) => surrogate(name)?.workload(span_bytes),
        (None, None, Some(pattern)) => pattern_spec(workload, pattern, span_bytes)?,
        (None, None, None) => {
            return Err(value(
                "workload",
                "give fio, trace, traces, table2, surrogate or pattern (sequential, uniform, zipf, hot-cold)".into(),
            ));
        }
    };
    spec.arrival = arrival(workload)?;
    Ok(spec)
}

fn pattern_spec(
    workload: &WorkloadSection,
    pattern: PatternName,
    span_bytes: u64,
) -> Result<SyntheticSpec, ScenarioError> {
    let size =
        workload.size.ok_or_else(|| value("workload.size", "give the request size, for example \"64 KiB\"".into()))?;
    let size = bytes_u32("workload.size", size.0.get())?;
    if u64::from(size) > span_bytes {
        let message =
            format!("requests of {size} bytes do not fit {span_bytes} bytes; give less, or more workload.span");
        return Err(value("workload.size", message));
    }
    Ok(SyntheticSpec {
        read_share: workload.read_share.unwrap_or(1.0),
        read_size: SizeMix::Fixed(size),
        write_size: SizeMix::Fixed(size),
        address: match pattern {
            PatternName::Sequential => AddressPattern::Sequential { start: 0 },
            PatternName::Uniform => AddressPattern::Uniform,
            PatternName::Zipf => AddressPattern::Zipf { theta: workload.zipf_theta.unwrap_or(0.99) },
            PatternName::HotCold => AddressPattern::HotCold {
                space: workload.hot_space.unwrap_or(0.2),
                traffic: workload.hot_traffic.unwrap_or(0.7),
            },
        },
        span_bytes,
        alignment_bytes: size,
        arrival: Arrival::Immediate,
        requests: None,
    })
}

fn arrival(workload: &WorkloadSection) -> Result<Arrival, ScenarioError> {
    match (workload.depth, workload.requests_per_second, workload.burst, workload.pause) {
        (Some(_), _, _, _) => Ok(Arrival::Immediate),
        (None, Some(per_second), Some(on), Some(off)) => Ok(Arrival::Bursts { per_second, on: on.0, off: off.0 }),
        (None, Some(per_second), None, None) => Ok(Arrival::Poisson { per_second }),
        (None, Some(_), _, _) => Err(value("workload.burst", "bursts need both burst and pause".to_owned())),
        (None, None, _, _) => Err(value(
            "workload.depth",
            "generated requests need a depth (closed loop) or requests_per_second (open loop)".to_owned(),
        )),
    }
}
