//! The surroundings of a world: the streams that ask, and the figures measured of it.

use crate::ledger::{Ledger, LedgerMark, Totals};
use crate::plan::{RunPlan, StopRule};
use crate::stream::{Pacing, Stream, StreamSpec};
use crate::timeline::Timeline;
use flashyard_blk::{Operation, TraceRecord};
use flashyard_stats::{CAUSE_COUNT, SplitHistogram, TimeSplit};
use flashyard_units::{SimTime, VolumeId};
use flashyard_workload::{Program, SourceError, Step};

/// Streams, and everything that is counted of a run. `M` are the counters that the system reads at the ends of the
/// measured window, `R` those that it reads over time; its requests spend their time on `CAUSES` causes.
pub struct Bench<M, R, const CAUSES: usize = CAUSE_COUNT> {
    /// How long to run and what to measure.
    pub plan: RunPlan,
    /// The streams, in the order in which they were given.
    pub streams: Vec<Stream<CAUSES>>,
    /// Programs whose threads are streams.
    pub programs: Vec<Box<dyn Program>>,
    /// Counts of all requests.
    pub ledger: Ledger,
    /// Requests of each volume's streams.
    pub totals: Vec<Totals>,
    /// How things go over time.
    pub timeline: Timeline<R>,
    /// The beginning of the measured window.
    pub begun: Option<Mark<M>>,
    /// Its end.
    pub ended: Option<Mark<M>>,
    /// Whether streams issue nothing more.
    pub stopping: bool,
    /// Since when.
    pub stopped: SimTime,
    /// When the first stream ended in the measured window.
    pub first_end: Option<SimTime>,
}

/// One end of the measured window.
#[derive(Clone, Debug)]
pub struct Mark<M> {
    /// When.
    pub at: SimTime,
    /// Requests by then.
    pub ledger: LedgerMark,
    /// The system's counters by then.
    pub counters: M,
}

/// A request that has completed, as its figures need it.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// Its stream.
    pub stream: u16,
    /// The volume that its stream asks.
    pub volume: VolumeId,
    /// The operation asked for.
    pub operation: Operation,
    /// When it was issued.
    pub issued: SimTime,
    /// Bytes that moved: whole slots.
    pub bytes: u64,
    /// Bytes that the application asked for.
    pub asked_bytes: u64,
}

impl<M, R, const CAUSES: usize> Bench<M, R, CAUSES> {
    /// Streams that have not begun, and nothing counted, of the first `volumes` volumes.
    pub fn new(plan: RunPlan, streams: Vec<StreamSpec>, volumes: usize) -> Self {
        Self {
            plan,
            streams: streams.into_iter().map(Stream::new).collect(),
            programs: Vec::new(),
            ledger: Ledger::default(),
            totals: vec![Totals::default(); volumes],
            timeline: Timeline::default(),
            begun: None,
            ended: None,
            stopping: false,
            stopped: SimTime::ZERO,
            first_end: None,
        }
    }

    /// The next stage of a volume's streams, if there is one and everything before it is done.
    pub(crate) fn next_stage(&self, volume: VolumeId) -> Option<u32> {
        let of_volume = || self.streams.iter().filter(|stream| stream.volume == volume);
        if self.stopping || of_volume().any(|stream| stream.released && !stream.is_done()) {
            return None;
        }
        of_volume().filter(|stream| !stream.released).map(|stream| stream.stage).min()
    }

    /// The next record of a stream that may issue one; `None` at its end, or when its share is issued.
    ///
    /// Errors: a source that fails.
    #[inline]
    pub(crate) fn next_record(&mut self, now: SimTime, number: u16) -> Result<Option<TraceRecord>, SourceError> {
        let stream = &mut self.streams[number as usize];
        let enough = stream.is_over(now) || matches!(self.plan.stop, StopRule::Requests(most) if stream.issued >= most);
        if enough { Ok(None) } else { stream.source.next_request() }
    }

    /// The next step of a stream that is a thread of a program; its end when its share is issued.
    ///
    /// Errors: a program that fails, or is not there.
    pub(crate) fn next_step(&mut self, now: SimTime, number: u16) -> Result<Step, SourceError> {
        let stream = &mut self.streams[number as usize];
        let enough = stream.is_over(now) || matches!(self.plan.stop, StopRule::Requests(most) if stream.issued >= most);
        let Pacing::Thread { program, thread } = stream.pacing else { return Ok(Step::End) };
        if enough {
            return Ok(Step::End);
        }
        let program = self.programs.get_mut(program as usize);
        program.ok_or_else(|| SourceError("the run has no such program".to_owned()))?.next_step(thread)
    }

    /// The stream issues nothing more.
    pub(crate) fn end_stream(&mut self, now: SimTime, number: u16) {
        let is_measuring = self.is_measuring();
        let stream = &mut self.streams[number as usize];
        stream.ended = true;
        if stream.issued > 0 && is_measuring {
            self.first_end.get_or_insert(now);
        }
    }

    /// Whether the measured window is open.
    #[inline]
    pub fn is_measuring(&self) -> bool {
        self.begun.is_some() && self.ended.is_none()
    }

    /// Whether every stream has ended, or must not issue, and nothing of it is under way.
    pub fn is_idle(&self) -> bool {
        self.streams.iter().all(|stream| (stream.ended || self.stopping) && stream.in_flight == 0)
    }

    /// Requests of streams under way.
    pub fn in_flight(&self) -> u32 {
        self.streams.iter().map(|stream| stream.in_flight).sum()
    }

    /// When the first of several streams ended, where the others went on without it in the measured window.
    pub fn first_end_alone(&self) -> Option<SimTime> {
        self.first_end.filter(|&end| end < self.stopped && !self.plan.ends_together)
    }

    /// Where the time of the requests of all streams went.
    pub fn split(&self) -> SplitHistogram<CAUSES> {
        let mut split = SplitHistogram::default();
        self.streams.iter().for_each(|stream| split.merge(&stream.split));
        split
    }

    /// Counts a request that has completed, after spending its `time`; returns when the pause of its stream is over,
    /// where one begins now.
    #[inline]
    pub fn finished(&mut self, now: SimTime, done: &Completion, time: &TimeSplit<CAUSES>) -> Option<SimTime> {
        self.ledger.finished(now, done.issued, time.total());
        let latency = now.since(done.issued);
        self.totals[done.volume.index()].count(done.operation, done.bytes, latency);
        let stream = &mut self.streams[done.stream as usize];
        let pause = stream.fall().map(|pause| stream.pause_end(now, pause));
        if let (Some(begun), None, true) = (&self.begun, &self.ended, stream.counts(now)) {
            stream.ios += 1;
            match done.operation {
                Operation::Read => stream.read_bytes += done.bytes,
                Operation::Write => stream.write_bytes += done.bytes,
                _ => {}
            }
            stream.count(now, begun.at, done.operation, done.asked_bytes, latency);
            stream.split.record(time);
        }
        pause
    }

    /// Share of the run that is done, from 0 to 1.
    pub fn progress(&self, now: SimTime) -> f64 {
        match self.plan.stop {
            StopRule::After(span) => now.as_ps() as f64 / (self.plan.warmup + span).as_ps() as f64,
            StopRule::Requests(count) => {
                let issued = self.streams.iter().map(|stream| stream.issued.min(count));
                let (sum, most) = issued.fold((0, 0), |(sum, most), issued| (sum + issued, issued.max(most)));
                if self.plan.ends_together {
                    most as f64 / count as f64
                } else {
                    sum as f64 / (count * self.streams.len() as u64) as f64
                }
            }
            StopRule::StreamEnd => {
                let streams = self.streams.iter();
                let of = |stream: &Stream<CAUSES>| if stream.ended { Some(1.0) } else { stream.source.progress() };
                let sum: Option<f64> = streams.map(of).sum();
                sum.map_or(0.5, |sum| sum / self.streams.len().max(1) as f64)
            }
        }
        .min(1.0)
    }
}
