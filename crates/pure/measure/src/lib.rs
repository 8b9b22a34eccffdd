//! The surroundings of any world: the streams that ask it, the window in which figures count, the readings over time, and
//! the laws that its counts must obey.
//!
//! What it models: clients as streams of requests, closed loops or arrivals ([`Stream`]), when a run begins to count and
//! when it ends ([`RunPlan`], [`Bench`]). A world implements [`Streamed`]: it says how a request is issued, and gets
//! the life of its streams from there. The path of one request: [`Streamed::fill`] takes it from its source, the world
//! issues it, [`Ledger::issued`] notes it, the world carries it out and splits its time by cause, [`Bench::finished`]
//! counts it, and [`Streamed::completed`] lets its stream go on.
//!
//! Invariants: the ledger counts apart from the components, in integers, so that laws hold exactly ([`SanityCheck`]);
//! nothing is allocated for a request but places in histograms that it is the first to need; a system's counters are
//! read at the two ends of the window and nowhere else.
//!
//! What it does not model: the way of a request, and counters of its own for any component; those are the
//! world's, which hands them in as marks of the window and as readings of the timeline.

mod bench;
mod laws;
mod ledger;
mod plan;
mod stream;
mod streamed;
mod timeline;

pub use bench::{Bench, Completion, Mark};
pub use laws::{SanityCheck, SanityReport};
pub use ledger::{Ledger, LedgerMark, Totals};
pub use plan::{Observer, RunPlan, STREAMS_MAX, StopRule};
pub use stream::{OperationFigures, Pacing, Samples, Source, Stream, StreamFigures, StreamSpec, Think};
pub use streamed::Streamed;
pub use timeline::{Dated, Timeline};
