//! The surroundings of the enclosure: the streams that ask, and the figures measured of it.

use super::config::{RunPlan, StopRule};
use super::enclosure::Enclosure;
use super::policy::Policy;
use super::request::Request;
use super::result::Marks;
use super::sanity::Ledger;
use super::stream::{Stream, StreamSpec};
use super::timeline::{Timeline, Totals};
use flashyard_blk::{Operation, TraceRecord};
use flashyard_flash::SLOT_BYTES;
use flashyard_stats::TimeSplit;
use flashyard_units::SimTime;
use flashyard_workload::SourceError;

/// Streams, and everything that is counted of a run.
pub(super) struct Bench {
    pub(super) plan: RunPlan,
    pub(super) streams: Vec<Stream>,
    pub(super) ledger: Ledger,
    /// Requests of each drive's streams.
    pub(super) totals: Vec<Totals>,
    pub(super) timeline: Timeline,
    /// Counters at the start and at the end of the measured window.
    pub(super) begun: Option<Marks>,
    pub(super) ended: Option<Marks>,
    pub(super) stopping: bool,
    /// Since when.
    pub(super) stopped: SimTime,
    /// When the first stream ended in the measured window.
    pub(super) first_end: Option<SimTime>,
}

impl Bench {
    /// Streams that have not begun, and nothing counted, of `drives` drives.
    pub(super) fn new(plan: RunPlan, streams: Vec<StreamSpec>, drives: usize) -> Self {
        Self {
            plan,
            streams: streams.into_iter().map(Stream::new).collect(),
            ledger: Ledger::default(),
            totals: vec![Totals::default(); drives],
            timeline: Timeline::default(),
            begun: None,
            ended: None,
            stopping: false,
            stopped: SimTime::ZERO,
            first_end: None,
        }
    }

    /// The next stage of a drive's streams, if there is one and everything before it is done.
    pub(super) fn next_stage(&self, drive: u16) -> Option<u32> {
        let of_drive = || self.streams.iter().filter(|stream| stream.drive == drive);
        if self.stopping || of_drive().any(|stream| stream.released && !stream.is_done()) {
            return None;
        }
        of_drive().filter(|stream| !stream.released).map(|stream| stream.stage).min()
    }

    /// The next record of a stream that may issue one; `None` at its end, or when its share is issued.
    ///
    /// Errors: a source that fails.
    #[inline]
    pub(super) fn next_record(&mut self, now: SimTime, number: u16) -> Result<Option<TraceRecord>, SourceError> {
        let stream = &mut self.streams[number as usize];
        let enough = stream.is_over(now) || matches!(self.plan.stop, StopRule::Requests(most) if stream.issued >= most);
        if enough { Ok(None) } else { stream.source.next_request() }
    }

    /// The stream issues nothing more.
    pub(super) fn end_stream(&mut self, now: SimTime, number: u16) {
        let is_measuring = self.is_measuring();
        let stream = &mut self.streams[number as usize];
        stream.ended = true;
        if stream.issued > 0 && is_measuring {
            self.first_end.get_or_insert(now);
        }
    }

    /// Whether the measured window is open.
    #[inline]
    pub(super) fn is_measuring(&self) -> bool {
        self.begun.is_some() && self.ended.is_none()
    }

    /// Figures count from here, if they do not yet.
    pub(super) fn begin_window(&mut self, now: SimTime, enclosure: &Enclosure, policy: &mut Policy) {
        if self.begun.is_none() {
            self.begun = Some(self.read_marks(now, enclosure, policy));
            if let Policy::Virtual(spread) = policy {
                spread.forget();
            }
        }
    }

    /// Figures count up to here, if they still do.
    pub(super) fn close_window(&mut self, now: SimTime, enclosure: &Enclosure, policy: &mut Policy) {
        if self.ended.is_none() {
            self.begin_window(now, enclosure, policy);
            self.ended = Some(self.read_marks(now, enclosure, policy));
            // A run without a timeline has none to end.
            if !self.timeline.readings.is_empty() {
                self.finish_timeline(now, enclosure, policy);
            }
        }
    }

    /// Whether every stream has ended, or must not issue, and nothing of it is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.streams.iter().all(|stream| (stream.ended || self.stopping) && stream.in_flight == 0)
    }

    /// Requests of streams under way.
    pub(super) fn in_flight(&self) -> u32 {
        self.streams.iter().map(|stream| stream.in_flight).sum()
    }

    /// Counts a request of busy drive `home` that has completed, after spending its `time`; returns when the pause of
    /// its stream is over, where one begins now.
    #[inline]
    pub(super) fn finished(&mut self, now: SimTime, home: u16, request: &Request, time: &TimeSplit) -> Option<SimTime> {
        self.ledger.finished(now, request, time.total());
        let bytes = u64::from(request.count) * u64::from(SLOT_BYTES);
        let latency = now.since(request.issued);
        self.totals[home as usize].count(request.operation, bytes, latency);
        let stream = &mut self.streams[request.stream as usize];
        let pause = stream.fall().map(|pause| stream.pause_end(now, pause));
        if let (Some(begun), None, true) = (&self.begun, &self.ended, stream.counts(now)) {
            stream.ios += 1;
            match request.operation {
                Operation::Read => stream.read_bytes += bytes,
                Operation::Write => stream.write_bytes += bytes,
                Operation::Trim | Operation::Remap | Operation::Flush => {}
            }
            stream.count(now, begun.at, request.operation, u64::from(request.len_bytes), latency);
            stream.split.record(time);
        }
        pause
    }

    /// Share of the run that is done, from 0 to 1.
    pub(super) fn progress(&self, now: SimTime) -> f64 {
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
            StopRule::StreamEnd => 0.5,
        }
        .min(1.0)
    }
}
