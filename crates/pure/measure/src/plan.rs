//! How long a run is, and what is measured of it.

use crate::stream::{Pacing, Source, StreamSpec};
use flashyard_units::{SimSpan, VolumeId};

/// Hears how far a run is (0 to 1) every few milliseconds of wall time; returns false to stop it.
pub type Observer<'a> = &'a mut dyn FnMut(f64) -> bool;

/// Most streams of a run: each has histograms of some 250 KiB for four operations, and touches part of them.
pub const STREAMS_MAX: u64 = 4096;

/// How long to run and what to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPlan {
    /// Simulated time before figures count.
    pub warmup: SimSpan,
    /// When streams stop issuing.
    pub stop: StopRule,
    /// Whether the run is over for all streams when one that issued something ends. The others alone make less load
    /// than was asked for, so it must not count. False where every stream is a story of its own: jobs, replayed
    /// arrivals.
    pub ends_together: bool,
    /// Requests in flight for each busy drive; `None` replays arrival times.
    pub depth: Option<u32>,
    /// Seed of all random streams.
    pub seed: u64,
}

/// When streams stop issuing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRule {
    /// This long after the warm-up; figures cover exactly that window.
    After(SimSpan),
    /// After this many requests of each stream, or at its end.
    Requests(u64),
    /// At the end of every stream.
    StreamEnd,
}

impl RunPlan {
    /// One stream for each source, to a volume of its own from the first on, at the plan's depth.
    pub fn streams(&self, sources: Vec<Source>) -> Vec<StreamSpec> {
        let pacing = self.depth.map_or(Pacing::Open, |depth| Pacing::Closed { depth });
        (0..).map(VolumeId::new).zip(sources).map(|(volume, source)| StreamSpec::new(volume, source, pacing)).collect()
    }
}
