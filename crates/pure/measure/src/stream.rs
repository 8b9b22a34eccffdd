//! One stream of requests: where they come from, how they are paced, and what was counted of them.

use flashyard_blk::{Operation, TraceRecord};
use flashyard_stats::{CAUSE_COUNT, LatencyHistogram, MeanEstimate, SplitHistogram};
use flashyard_units::{SimSpan, SimTime, VolumeId};
use flashyard_workload::{RequestSource, SourceError};

/// Where a stream's requests come from.
pub type Source = Box<dyn RequestSource>;

/// When a stream issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// As soon as fewer than `depth` requests are in flight; arrival times are ignored.
    Closed {
        /// Requests in flight at most, at least 1.
        depth: u32,
    },
    /// At arrival times, however many are in flight.
    Open,
    /// Not before their arrival, and while fewer than `depth` requests are in flight: a request that finds no room
    /// is issued when there is some.
    Timed {
        /// Requests in flight at most, at least 1.
        depth: u32,
    },
    /// As one program that thinks: arrivals are its time of thinking so far, which stands still while it waits. Requests of one
    /// arrival come together, once all before them have completed and it has thought as long as the trace says.
    Thinking,
    /// As a thread of one of the run's programs: it asks, computes and waits as the program says. The source is not asked.
    Thread {
        /// The program's place among those of the run.
        program: u16,
        /// The thread's number in it.
        thread: u32,
    },
}

impl Pacing {
    fn depth(self) -> u32 {
        match self {
            Self::Closed { depth } | Self::Timed { depth } => depth,
            Self::Open | Self::Thinking | Self::Thread { .. } => u32::MAX,
        }
    }

    /// Whether requests come when others complete.
    pub fn is_closed(self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Thinking | Self::Thread { .. })
    }

    /// Whether requests come at their arrival times.
    pub fn keeps_arrivals(self) -> bool {
        matches!(self, Self::Open | Self::Timed { .. })
    }
}

/// A pause that a stream makes: after `requests` completions it lets everything in flight complete, and waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// How long it waits once nothing is in flight.
    pub span: SimSpan,
    /// Completions between pauses, at least 1.
    pub requests: u64,
}

/// A stream as its owner describes it.
pub struct StreamSpec {
    /// The volume that is asked.
    pub volume: VolumeId,
    /// Where requests come from. Arrivals count from the stream's start.
    pub source: Source,
    /// When they are issued.
    pub pacing: Pacing,
    /// Streams of a volume start stage by stage: those of the next one when all of the last one have ended.
    pub stage: u32,
    /// Between the beginning of the stage and the stream's start.
    pub delay: SimSpan,
    /// Time after the start that does not count.
    pub ramp: SimSpan,
    /// Time after the ramp from which on nothing is issued.
    pub length: Option<SimSpan>,
    /// Pauses.
    pub think: Option<Think>,
    /// Length of the samples of bandwidth, above zero.
    pub sample: SimSpan,
}

impl StreamSpec {
    /// A stream that starts with the run and goes on until its source or the run ends.
    pub fn new(volume: VolumeId, source: Source, pacing: Pacing) -> Self {
        Self {
            volume,
            source,
            pacing,
            stage: 0,
            delay: SimSpan::ZERO,
            ramp: SimSpan::ZERO,
            length: None,
            think: None,
            sample: SAMPLE,
        }
    }

    /// The stream of a thread of the run's program at place `program`.
    pub fn of_thread(volume: VolumeId, program: u16, thread: u32) -> Self {
        Self::new(volume, Box::new(NoRequests), Pacing::Thread { program, thread })
    }
}

/// The source of a stream that is never asked for requests in advance.
struct NoRequests;

impl RequestSource for NoRequests {
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        Ok(None)
    }
}

/// Bandwidth is sampled over this long unless a stream says otherwise. \[C\] the default of fio's `bwavgtime`
const SAMPLE: SimSpan = SimSpan::from_ms(500);

/// Completed requests of one operation in the measured window.
#[derive(Clone, Debug, Default)]
pub struct OperationFigures {
    /// Requests.
    pub ios: u64,
    /// Bytes as they were asked for, before rounding to whole slots.
    pub bytes: u64,
    /// Latency from the application's call to its return.
    pub latency: LatencyHistogram,
    /// Bytes a second in samples of equal length; only whole samples count.
    pub bandwidth: Samples,
    /// Requests a second in the same samples.
    pub rate: Samples,
    /// Counts of the sample under way.
    sample: (u64, u64),
}

/// Mean, spread and extremes of samples.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Mean and deviation.
    pub mean: MeanEstimate,
    /// The least and the most; `None` without a sample.
    pub range: Option<(f64, f64)>,
}

impl Samples {
    fn record(&mut self, value: f64) {
        self.mean.record(value);
        let (low, high) = self.range.unwrap_or((value, value));
        self.range = Some((low.min(value), high.max(value)));
    }
}

/// Figures of one stream over the measured window.
#[derive(Clone, Debug)]
pub struct StreamFigures {
    /// The volume that was asked.
    pub volume: VolumeId,
    /// The part of the window in which the stream was at work: from its start to its last completion.
    pub active: SimSpan,
    /// Reads, writes, trims and flushes.
    pub operations: [OperationFigures; 4],
    /// Requests issued, by the number then in flight, themselves included: 1, 2 to 3, 4 to 7, ... 64 and more.
    pub depths: [u64; 7],
}

impl StreamFigures {
    /// The figures of one operation.
    pub fn of(&self, operation: Operation) -> &OperationFigures {
        &self.operations[index(operation)]
    }
}

fn index(operation: Operation) -> usize {
    match operation {
        Operation::Read => 0,
        Operation::Write => 1,
        Operation::Flush => 3,
        // Trims: no source of a stream has any other operation.
        _ => 2,
    }
}

/// A stream at work, whose requests spend their time on so many causes.
pub struct Stream<const CAUSES: usize = CAUSE_COUNT> {
    /// The volume that is asked.
    pub volume: VolumeId,
    /// Where requests come from.
    pub source: Source,
    /// When they are issued.
    pub pacing: Pacing,
    /// Streams of a volume start stage by stage.
    pub stage: u32,
    delay: SimSpan,
    ramp: SimSpan,
    length: Option<SimSpan>,
    /// Whether its stage has begun.
    pub released: bool,
    /// When it starts, once its stage has begun.
    pub start: SimTime,
    /// Completions before do not count.
    counted_from: SimTime,
    end: SimTime,
    think: Option<Think>,
    /// Completions since the last pause.
    thought: u64,
    /// Nothing is issued before the pause, or the wait for the start, is over.
    pub held: bool,
    /// The arrival of the pending request has come in that time.
    pub(crate) pending_is_due: bool,
    /// A thread of a program that goes on once nothing of it is in flight.
    pub(crate) waits: bool,
    /// Requests under way.
    pub in_flight: u32,
    /// Requests issued since the run began.
    pub issued: u64,
    /// Whether it issues nothing more.
    pub ended: bool,
    /// The request that waits for its arrival.
    pub pending: Option<TraceRecord>,
    /// Time of thinking behind the last request of [`Pacing::Thinking`].
    thought_until: SimTime,
    /// Thinking before the request that waits.
    thinks: SimSpan,
    /// Completed inside the measured window.
    pub ios: u64,
    /// Bytes read by those, in what moved.
    pub read_bytes: u64,
    /// Bytes written by those, in what moved.
    pub write_bytes: u64,
    operations: [OperationFigures; 4],
    depths: [u64; 7],
    /// Where the time of the requests counted went.
    pub split: SplitHistogram<CAUSES>,
    sample: SimSpan,
    sample_end: SimTime,
    last: SimTime,
}

impl<const CAUSES: usize> Stream<CAUSES> {
    /// A stream whose stage has not begun.
    pub fn new(spec: StreamSpec) -> Self {
        Self {
            volume: spec.volume,
            source: spec.source,
            pacing: spec.pacing,
            stage: spec.stage,
            delay: spec.delay,
            ramp: spec.ramp,
            length: spec.length,
            released: false,
            start: SimTime::ZERO,
            counted_from: SimTime::ZERO,
            end: SimTime::MAX,
            think: spec.think,
            thought: 0,
            held: false,
            pending_is_due: false,
            waits: false,
            in_flight: 0,
            issued: 0,
            ended: false,
            pending: None,
            thought_until: SimTime::ZERO,
            thinks: SimSpan::ZERO,
            ios: 0,
            read_bytes: 0,
            write_bytes: 0,
            operations: std::array::from_fn(|_| OperationFigures::default()),
            depths: [0; 7],
            split: SplitHistogram::default(),
            sample: spec.sample,
            sample_end: SimTime::ZERO,
            last: SimTime::ZERO,
        }
    }

    /// Its stage begins.
    pub fn release(&mut self, now: SimTime) {
        self.released = true;
        // Each of these is in its range; together they may be beyond the end of time.
        self.start = now.saturating_add(self.delay);
        self.counted_from = self.start.saturating_add(self.ramp);
        self.end = self.length.map_or(SimTime::MAX, |length| self.counted_from.saturating_add(length));
    }

    /// Whether everything that it will ask for has completed.
    pub fn is_done(&self) -> bool {
        self.ended && self.in_flight == 0
    }

    /// Whether a run whose streams end together ends now: the stream has nothing more to issue. Requests in flight then
    /// belong to the figures where they are most of the stream, and where leaving them out would leave out the slowest.
    pub fn ends_run(&self) -> bool {
        let few = self.pacing.keeps_arrivals() || self.issued < 2 * u64::from(self.pacing.depth());
        self.ended && self.issued > 0 && (self.in_flight == 0 || !few)
    }

    /// Whether a completion at `now` counts, if the window is open.
    #[inline]
    pub fn counts(&self, now: SimTime) -> bool {
        now >= self.counted_from
    }

    /// Whether it may issue one more.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.in_flight < self.pacing.depth() && self.pending.is_none() && !self.held
    }

    /// The program of [`Pacing::Thinking`] comes to a request: how long it thinks before, once nothing is in flight; `None` where the
    /// request comes with those before it.
    pub fn thinks_before(&mut self, record: &TraceRecord) -> Option<SimSpan> {
        let thought = record.arrival.max(self.thought_until).since(self.thought_until);
        (thought > SimSpan::ZERO).then(|| {
            self.thought_until = record.arrival;
            self.thinks = thought;
            thought
        })
    }

    /// How long the program thinks from now on, where all that it waited for has just completed.
    #[inline]
    pub fn begins_to_think(&self) -> Option<SimSpan> {
        let waited = self.pacing == Pacing::Thinking && self.in_flight == 0 && self.pending.is_some();
        waited.then_some(self.thinks)
    }

    /// Whether its time is over at `when`.
    #[inline]
    pub fn is_over(&self, when: SimTime) -> bool {
        when >= self.end
    }

    /// One more is in flight; `counts` says whether the measured window is open.
    #[inline]
    pub fn rise(&mut self, counts: bool) {
        self.in_flight += 1;
        if counts {
            self.depths[(self.in_flight.ilog2() as usize).min(6)] += 1;
        }
    }

    /// One has completed. Returns the pause that begins now, when there is one and nothing is in flight.
    #[inline]
    pub fn fall(&mut self) -> Option<SimSpan> {
        self.in_flight -= 1;
        let think = self.think?;
        self.thought += 1;
        self.held |= self.thought >= think.requests;
        if self.held && self.in_flight == 0 {
            self.thought = 0;
            return Some(think.span);
        }
        None
    }

    /// When a pause that begins now is over: at the latest when the stream's time is.
    pub fn pause_end(&self, now: SimTime, pause: SimSpan) -> SimTime {
        (now + pause).min(self.end.max(now))
    }

    /// Counts a completion inside the window, which began at `begun`.
    #[inline]
    pub fn count(&mut self, now: SimTime, begun: SimTime, operation: Operation, bytes: u64, latency: SimSpan) {
        if now >= self.sample_end {
            self.sample(now, begun);
        }
        self.last = now;
        let figures = &mut self.operations[index(operation)];
        figures.ios += 1;
        figures.bytes += bytes;
        figures.sample.0 += bytes;
        figures.sample.1 += 1;
        figures.latency.record(latency);
    }

    /// Closes the samples that ended by `now`.
    fn sample(&mut self, now: SimTime, begun: SimTime) {
        if self.sample_end == SimTime::ZERO {
            self.sample_end = begun.max(self.counted_from) + self.sample;
        }
        let seconds = self.sample.as_secs_f64();
        while now >= self.sample_end {
            for figures in &mut self.operations {
                let (bytes, ios) = std::mem::take(&mut figures.sample);
                if figures.ios > 0 {
                    figures.bandwidth.record(bytes as f64 / seconds);
                    figures.rate.record(ios as f64 / seconds);
                }
            }
            self.sample_end += self.sample;
        }
    }

    /// Latency of all operations.
    pub fn latency(&self) -> LatencyHistogram {
        let mut all = LatencyHistogram::new();
        self.operations.iter().for_each(|figures| all.merge(&figures.latency));
        all
    }

    /// The figures of a window that began at `begun`.
    pub fn figures(self, begun: SimTime) -> StreamFigures {
        let from = begun.max(self.counted_from);
        StreamFigures {
            volume: self.volume,
            active: if self.last > from { self.last.since(from) } else { SimSpan::ZERO },
            operations: self.operations,
            depths: self.depths,
        }
    }
}
