//! The book of an enclosure that serves: effects for its owner, in order, and counts of what was asked from outside.

use super::enclosure::Enclosure;
use super::request::Purpose;
use super::timeline::Reading;
use flashyard_blk::Operation;
use flashyard_served::{Answer, Effect};
use flashyard_ssd::Movement;
use flashyard_stats::LatencyHistogram;
use flashyard_units::{DriveId, SimSpan, SimTime, VolumeId};

/// Effects and counts that a world that serves keeps for its owner.
pub(super) struct Book {
    pub(super) effects: Vec<Effect>,
    /// Drives that have been reported gone.
    pub(super) gone: Vec<bool>,
    /// By drive, since figures were last taken.
    pub(super) latency: Vec<LatencyHistogram>,
    /// Requests under way.
    pub(super) in_flight: u32,
    /// Requests of each drive.
    pub(super) asked: Vec<Requests>,
    /// The counters when figures were last taken.
    pub(super) reading: Option<Reading>,
    /// Room for one step's movements.
    movements: Vec<Movement>,
}

/// Requests from outside of one drive: those under way, and counts of those completed (NVMe base 2.0, Figure 207).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requests {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) depth: u32,
    /// Time with a request under way, up to `since`.
    busy: SimSpan,
    since: SimTime,
}

impl Requests {
    pub(super) fn rise(&mut self, now: SimTime) {
        self.account(now);
        self.depth += 1;
    }

    pub(super) fn complete(&mut self, now: SimTime, operation: Operation) {
        match operation {
            Operation::Read => self.reads += 1,
            Operation::Write => self.writes += 1,
            _ => {}
        }
        self.fall(now);
    }

    pub(super) fn fall(&mut self, now: SimTime) {
        self.account(now);
        self.depth -= 1;
    }

    fn account(&mut self, now: SimTime) {
        self.busy = self.busy_until(now);
        self.since = now;
    }

    pub(super) fn busy_until(&self, now: SimTime) -> SimSpan {
        if self.depth > 0 { self.busy + now.saturating_since(self.since) } else { self.busy }
    }
}

impl Book {
    /// The book of an enclosure of so many drives, of which nothing was asked yet.
    pub(super) fn new(drives: usize) -> Self {
        Self {
            effects: Vec::with_capacity(256),
            gone: vec![false; drives],
            latency: vec![LatencyHistogram::new(); drives],
            in_flight: 0,
            asked: vec![Requests::default(); drives],
            reading: None,
            movements: Vec::with_capacity(64),
        }
    }

    /// Takes over what `drive` tells of payload.
    pub(super) fn gather(&mut self, enclosure: &mut Enclosure, drive: DriveId) {
        enclosure.drives[drive.index()].data.movements.take(&mut self.movements);
        for mut movement in self.movements.drain(..) {
            if let Movement::Written { tag, .. } | Movement::Read { tag, .. } = &mut movement {
                let purpose = enclosure.requests[*tag as usize].purpose;
                let (Purpose::Asked { token } | Purpose::AskedOnce { token }) = purpose else { continue };
                *tag = token;
            }
            self.effects.push(Effect::Payload { drive, movement });
        }
    }

    /// Reports drives that have just become unreachable.
    pub(super) fn tell_gone(&mut self, enclosure: &Enclosure) {
        for (drive, gone) in (0..).map(DriveId::new).zip(&mut self.gone) {
            if !enclosure.is_reachable(drive) && !std::mem::replace(gone, true) {
                self.effects.push(Effect::Gone { volume: VolumeId::new(drive.get()) });
            }
        }
    }

    /// Reports a drive that takes commands again.
    pub(super) fn tell_back(&mut self, drive: DriveId) {
        if std::mem::take(&mut self.gone[drive.index()]) {
            self.effects.push(Effect::Back { volume: VolumeId::new(drive.get()) });
        }
    }

    /// Nothing comes of a request any more.
    pub(super) fn dropped(&mut self, now: SimTime, token: u32, drive: DriveId) {
        self.in_flight -= 1;
        self.asked[drive.index()].fall(now);
        self.effects.push(Effect::Answered { token, at: now, answer: Answer::Dropped });
    }
}
