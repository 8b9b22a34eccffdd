//! The life of streams in a world: stages begin and end, streams issue while they have room, and the measured window
//! opens and closes around them.

use crate::bench::{Bench, Mark};
use crate::stream::{Pacing, Stream};
use crate::timeline::Dated;
use flashyard_blk::TraceRecord;
use flashyard_units::{SimTime, VolumeId};
use flashyard_workload::{SourceError, Step};

/// A world that streams ask, whose requests spend their time on `CAUSES` causes.
///
/// The world says how a request is issued and what is read of it; what is provided here goes by that alone.
pub trait Streamed<const CAUSES: usize>: Sized {
    /// Counters that it reads at the ends of the measured window.
    type Marks;
    /// Counters that it reads over time.
    type Reading: Dated;

    /// Its surroundings.
    fn bench(&self) -> &Bench<Self::Marks, Self::Reading, CAUSES>;

    /// Its surroundings, to change.
    fn bench_mut(&mut self) -> &mut Bench<Self::Marks, Self::Reading, CAUSES>;

    /// Issues a request of a stream, or ends the run with an error.
    fn issue(&mut self, now: SimTime, stream: u16, record: &TraceRecord);

    /// Calls [`Self::issue_pending`] at `when`.
    fn issue_at(&mut self, when: SimTime, stream: u16);

    /// Calls [`Self::resume`] at `when`.
    fn resume_at(&mut self, when: SimTime, stream: u16);

    /// Streams issue nothing more.
    fn stop(&mut self, now: SimTime);

    /// A source has failed: ends the run.
    fn fail(&mut self, error: SourceError);

    /// When each request under way was issued.
    fn under_way(&self) -> impl Iterator<Item = SimTime>;

    /// Its counters at an end of the measured window.
    fn marks(&self, now: SimTime) -> Self::Marks;

    /// Its counters at an instant of the timeline.
    fn reading(&mut self, at: SimTime) -> Self::Reading;

    /// The measured window has begun.
    fn window_begun(&mut self) {}

    /// Begins the next stage of a volume's streams, if there is one and everything before it is done.
    fn start_stage(&mut self, now: SimTime, volume: VolumeId) {
        let Some(stage) = self.bench().next_stage(volume) else { return };
        for number in 0..self.bench().streams.len() {
            let stream = &mut self.bench_mut().streams[number];
            // A stream that ends at once may have begun the rest of its stage already.
            if stream.volume != volume || stream.stage != stage || stream.released {
                continue;
            }
            stream.release(now);
            if stream.start > now {
                stream.held = true;
                let start = stream.start;
                self.resume_at(start, number as u16);
            } else {
                self.fill(now, number as u16);
            }
        }
    }

    /// A stream's start has come, or its pause is over.
    fn resume(&mut self, now: SimTime, stream: u16) {
        let resumed = &mut self.bench_mut().streams[stream as usize];
        resumed.held = false;
        if std::mem::take(&mut resumed.pending_is_due) {
            self.issue_pending(now, stream);
        } else {
            self.fill(now, stream);
        }
    }

    /// Issues a stream's next requests while it has room; a stream with arrival times waits for the next arrival.
    #[inline]
    fn fill(&mut self, now: SimTime, number: u16) {
        if matches!(self.bench().streams[number as usize].pacing, Pacing::Thread { .. }) {
            return self.run_thread(now, number);
        }
        while self.bench().streams[number as usize].has_room() {
            let Some(record) = self.next_record(now, number) else { break };
            let stream = &mut self.bench_mut().streams[number as usize];
            if stream.pacing.keeps_arrivals() {
                // A record that is out of order arrives at once: time does not run backwards.
                let arrival = (stream.start + record.arrival.since(SimTime::ZERO)).max(now);
                if stream.is_over(arrival) {
                    self.stream_ends(now, number);
                    break;
                }
                stream.pending = Some(record);
                self.issue_at(arrival, number);
                break;
            }
            if stream.pacing == Pacing::Thinking
                && let Some(thinks) = stream.thinks_before(&record)
            {
                stream.pending = Some(record);
                if stream.in_flight == 0 {
                    self.issue_at(now + thinks, number);
                }
                break;
            }
            self.issue(now, number, &record);
        }
    }

    /// Carries out the steps of a program's thread, until it has to wait for time or for its requests.
    fn run_thread(&mut self, now: SimTime, number: u16) {
        loop {
            let bench = self.bench_mut();
            let stream = &mut bench.streams[number as usize];
            if bench.stopping || stream.ended || stream.held || (stream.waits && stream.in_flight > 0) {
                return;
            }
            stream.waits = false;
            match bench.next_step(now, number) {
                Ok(Step::Ask(request)) => self.issue(now, number, &TraceRecord { arrival: now, volume: 0, request }),
                Ok(Step::Compute(span)) => {
                    bench.streams[number as usize].held = true;
                    return self.resume_at(now + span, number);
                }
                Ok(Step::Wait) => bench.streams[number as usize].waits = true,
                Ok(Step::End) => return self.stream_ends(now, number),
                Err(error) => {
                    bench.streams[number as usize].ended = true;
                    return self.fail(error);
                }
            }
        }
    }

    /// The stream's next record, unless it has ended, its share is issued, or the run is stopping.
    #[inline]
    fn next_record(&mut self, now: SimTime, number: u16) -> Option<TraceRecord> {
        let bench = self.bench_mut();
        if bench.stopping || bench.streams[number as usize].ended {
            return None;
        }
        match bench.next_record(now, number) {
            Ok(Some(record)) => return Some(record),
            Ok(None) => self.stream_ends(now, number),
            Err(error) => {
                bench.streams[number as usize].ended = true;
                self.fail(error);
            }
        }
        None
    }

    /// The stream issues nothing more.
    fn stream_ends(&mut self, now: SimTime, number: u16) {
        self.bench_mut().end_stream(now, number);
        self.stream_done(now, number);
    }

    /// Begins what waits for a stream that has ended. Ends the run once every stream is done; where streams end
    /// together, with the first one.
    fn stream_done(&mut self, now: SimTime, number: u16) {
        let bench = self.bench();
        let stream = &bench.streams[number as usize];
        if bench.plan.ends_together && stream.ends_run() {
            self.stop(now);
            return;
        }
        self.start_stage(now, stream.volume);
        if self.bench().streams.iter().all(Stream::is_done) {
            self.stop(now);
        }
    }

    /// Issues the request that has just arrived and waits for the one after.
    fn issue_pending(&mut self, now: SimTime, stream: u16) {
        let bench = self.bench_mut();
        let waiting = &mut bench.streams[stream as usize];
        if waiting.held {
            // It pauses: what has arrived is issued after that.
            waiting.pending_is_due = waiting.pending.is_some();
            return;
        }
        if let Some(record) = waiting.pending.take()
            && !bench.stopping
        {
            self.issue(now, stream, &record);
            self.fill(now, stream);
        }
    }

    /// Lets a stream go on, of which a request was counted as finished, until its pause is over if it makes one.
    #[inline]
    fn go_on(&mut self, now: SimTime, stream: u16, pause_end: Option<SimTime>) {
        if let Some(over) = pause_end {
            self.resume_at(over, stream);
        }
        if let Some(thinks) = self.bench().streams[stream as usize].begins_to_think() {
            self.issue_at(now + thinks, stream);
        }
        self.fill(now, stream);
        if self.bench().streams[stream as usize].ended {
            self.stream_done(now, stream);
        }
    }

    /// Figures count from here, if they do not yet.
    fn begin_window(&mut self, now: SimTime) {
        if self.bench().begun.is_none() {
            let mark = self.mark(now);
            self.bench_mut().begun = Some(mark);
            self.window_begun();
        }
    }

    /// Figures count up to here, if they still do.
    fn close_window(&mut self, now: SimTime) {
        if self.bench().ended.is_some() {
            return;
        }
        self.begin_window(now);
        let mark = self.mark(now);
        self.bench_mut().ended = Some(mark);
        // A run without a timeline has none to end. It ends with the measured window, so that no interval tells of the
        // time in which requests only run out.
        if self.bench().timeline.readings.is_empty() {
            return;
        }
        self.read_timeline(now);
        if self.bench().timeline.ends_before(now) {
            let reading = self.reading(now);
            self.bench_mut().timeline.add(reading);
        }
        self.bench_mut().timeline.close();
    }

    /// All counters at an end of the measured window.
    fn mark(&self, now: SimTime) -> Mark<Self::Marks> {
        let bench = self.bench();
        let ledger = bench.ledger.mark(now, &bench.totals, self.under_way());
        Mark { at: now, ledger, counters: self.marks(now) }
    }

    /// Reads the counters at every instant that is due before `now`.
    #[cold]
    fn read_timeline(&mut self, now: SimTime) {
        while self.bench().timeline.due() < now {
            let reading = self.reading(self.bench().timeline.due());
            self.bench_mut().timeline.add(reading);
        }
    }
}
