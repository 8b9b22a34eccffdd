//! Looking for lost data: an oracle of what reads may return, plans of faults, and an explorer of crash points.
//!
//! What it models: a block as a linearizable register, behind a volatile write cache where there is one ([`Oracle`]);
//! faults at an event, a time, or some events
//! after the fault before ([`FaultPlan`]); which points to try, and the smallest that fails ([`Explorer`],
//! [`shrink`]).
//!
//! What it does not model: faults themselves. A [`World`] injects them, with an [`Injector`] to say when, and reports
//! to the oracle what its host sees.
//!
//! Invariants: the oracle accepts a history exactly if it is linearizable; the same exploration tries the same points
//! in the same order, under any owner and on any number of threads.

mod explorer;
mod history;
mod injector;
mod oracle;
mod plan;
mod report;
mod short;
mod shrink;
mod text;
mod world;

pub use explorer::{Explorer, Limits, explore};
pub use history::{Event, History};
pub use injector::Injector;
pub use oracle::{Action, Evidence, Extent, Fate, Moment, OperationId, Oracle, OracleCounters, Violation, Wrong};
pub use plan::{At, Case, Fault, FaultPlan};
pub use report::{Failure, Report, StageCount};
pub use shrink::{Shrunk, shrink};
pub use text::{CaseError, Problem};
pub use world::{Fingerprint, Outcome, World};
