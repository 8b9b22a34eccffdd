//! Pauses of streams with arrival times, in a world that takes as long for every request.

use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_measure::{Bench, Completion, Dated, Pacing, RunPlan, StopRule, StreamSpec, Streamed, Think};
use flashyard_stats::{CAUSE_COUNT, TimeSplit};
use flashyard_units::{SimSpan, SimTime, VolumeId};
use flashyard_workload::{RequestSource, SourceError};
use std::collections::BTreeSet;

/// Time of a request.
const SERVICE: SimSpan = SimSpan::from_ms(1);
/// Requests of a test.
const REQUESTS: u64 = 6;

/// Requests that arrive at equal distances.
struct Paced {
    every: SimSpan,
    number: u64,
}

impl RequestSource for Paced {
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        let arrival = SimTime::ZERO + self.every * self.number;
        self.number += 1;
        let request = BlockRequest { operation: Operation::Read, offset_bytes: 0, len_bytes: 4096 };
        Ok((self.number <= REQUESTS).then_some(TraceRecord { arrival, volume: 0, request }))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Done { issued: SimTime },
    Issue,
    Resume,
}

/// A reading of nothing.
struct Nothing(SimTime);

impl Dated for Nothing {
    fn at(&self) -> SimTime {
        self.0
    }
}

struct World {
    bench: Bench<(), Nothing>,
    events: BTreeSet<(SimTime, usize, Event)>,
    pushed: usize,
    issued: Vec<SimTime>,
}

impl World {
    fn push(&mut self, when: SimTime, event: Event) {
        self.pushed += 1;
        self.events.insert((when, self.pushed, event));
    }
}

impl Streamed<CAUSE_COUNT> for World {
    type Marks = ();
    type Reading = Nothing;

    fn bench(&self) -> &Bench<(), Nothing> {
        &self.bench
    }

    fn bench_mut(&mut self) -> &mut Bench<(), Nothing> {
        &mut self.bench
    }

    fn issue(&mut self, now: SimTime, stream: u16, record: &TraceRecord) {
        self.bench.ledger.issued(now, record.request.operation, 4096);
        let of = &mut self.bench.streams[usize::from(stream)];
        of.issued += 1;
        of.rise(true);
        self.issued.push(now);
        self.push(now + SERVICE, Event::Done { issued: now });
    }

    fn issue_at(&mut self, when: SimTime, _stream: u16) {
        self.push(when, Event::Issue);
    }

    fn resume_at(&mut self, when: SimTime, _stream: u16) {
        self.push(when, Event::Resume);
    }

    fn stop(&mut self, _now: SimTime) {
        self.bench.stopping = true;
    }

    fn fail(&mut self, error: SourceError) {
        panic!("{error}");
    }

    fn under_way(&self) -> impl Iterator<Item = SimTime> {
        std::iter::empty()
    }

    fn marks(&self, _now: SimTime) {}

    fn reading(&mut self, at: SimTime) -> Nothing {
        Nothing(at)
    }
}

/// Milliseconds at which the requests of a job are issued that arrive `every` so often and pause for 10 ms after each `requests`.
fn issued(pacing: Pacing, every: SimSpan, requests: u64) -> Vec<u64> {
    let think = Some(Think { span: SimSpan::from_ms(10), requests });
    let spec = StreamSpec { think, ..StreamSpec::new(VolumeId::new(0), Box::new(Paced { every, number: 0 }), pacing) };
    let plan = RunPlan { warmup: SimSpan::ZERO, stop: StopRule::StreamEnd, ends_together: false, depth: None, seed: 1 };
    let mut world =
        World { bench: Bench::new(plan, vec![spec], 1), events: BTreeSet::new(), pushed: 0, issued: Vec::new() };
    world.start_stage(SimTime::ZERO, VolumeId::new(0));
    while let Some((now, _, event)) = world.events.pop_first() {
        match event {
            Event::Issue => world.issue_pending(now, 0),
            Event::Resume => world.resume(now, 0),
            Event::Done { issued } => {
                let done = Completion {
                    stream: 0,
                    volume: VolumeId::new(0),
                    operation: Operation::Read,
                    issued,
                    bytes: 4096,
                    asked_bytes: 4096,
                };
                let pause_end = world.bench.finished(now, &done, &TimeSplit::default());
                world.go_on(now, 0, pause_end);
            }
        }
    }
    assert!(world.bench.is_idle(), "it stands still");
    world.issued.iter().map(|at| at.as_ps() / 1_000_000_000).collect()
}

#[test]
fn a_request_that_arrives_in_a_pause_is_issued_after_it() {
    for pacing in [Pacing::Open, Pacing::Timed { depth: 1 }, Pacing::Timed { depth: 8 }] {
        // A pause begins with the completion, and the next one has arrived by its end.
        assert_eq!(issued(pacing, SimSpan::from_ms(10), 1), [0, 11, 22, 33, 44, 55], "{pacing:?}");
        assert_eq!(issued(pacing, SimSpan::from_ms(10), 2), [0, 10, 21, 30, 41, 50], "{pacing:?}");
        // Those that arrive in no pause keep their times.
        assert_eq!(issued(pacing, SimSpan::from_ms(50), 1), [0, 50, 100, 150, 200, 250], "{pacing:?}");
    }
}
