//! The surroundings of the enclosure: the streams that ask, and the figures measured of it.

use super::enclosure::Event;
use super::policy::Policy;
use super::request::Purpose;
use super::result::Marks;
use super::timeline::Reading;
use super::world::Jbof;
use flashyard_blk::TraceRecord;
use flashyard_measure::Streamed;
use flashyard_stats::CAUSE_COUNT;
use flashyard_units::SimTime;
use flashyard_workload::SourceError;

/// Streams, and everything that is counted of a run.
pub(super) type Bench = flashyard_measure::Bench<Marks, Reading>;

impl Streamed<CAUSE_COUNT> for Jbof {
    type Marks = Marks;
    type Reading = Reading;

    #[inline]
    fn bench(&self) -> &Bench {
        &self.bench
    }

    #[inline]
    fn bench_mut(&mut self) -> &mut Bench {
        &mut self.bench
    }

    #[inline]
    fn issue(&mut self, now: SimTime, stream: u16, record: &TraceRecord) {
        self.issue_record(now, stream, record);
    }

    fn issue_at(&mut self, when: SimTime, stream: u16) {
        self.enclosure.runner.queue.push(when, Event::Issue { stream });
    }

    fn resume_at(&mut self, when: SimTime, stream: u16) {
        self.enclosure.runner.queue.push(when, Event::Resume { stream });
    }

    fn stop(&mut self, now: SimTime) {
        self.stop_streams(now);
    }

    fn fail(&mut self, error: SourceError) {
        self.fault = Some(error.into());
    }

    fn under_way(&self) -> impl Iterator<Item = SimTime> {
        let enclosure = &self.enclosure;
        let mut lives = vec![true; enclosure.requests.len()];
        enclosure.free.iter().for_each(|&id| lives[id as usize] = false);
        let requests = enclosure.requests.iter().zip(lives);
        requests.filter(|(one, lives)| *lives && one.purpose == Purpose::Foreground).map(|(request, _)| request.issued)
    }

    fn marks(&self, now: SimTime) -> Marks {
        Marks::of(&self.enclosure, &self.policy, now)
    }

    fn reading(&mut self, at: SimTime) -> Reading {
        Reading::of(self, at)
    }

    fn window_begun(&mut self) {
        if let Policy::Virtual(spread) = &mut self.policy {
            spread.forget();
        }
    }
}
