//! Mapping memory borrowed from peers, and the logs that keep the map whole when it vanishes.
//!
//! A borrower keeps translation pages in segments of a lender's memory. It takes and returns them a loan at a time; a
//! lender may have several loans, and memory is lost a lender at a time. Its own memory survives a power cut, the
//! lender's may vanish at any moment, so each change of an entry out there is recorded in the segment's log page at
//! home first. When half of a log page is full, the pages that its records are about are copied home and programmed to
//! flash in the background; records go on in the other half, and wait when that is full too. A page that leaves for
//! another is copied home as well, and its records are struck out. After a loss the pages are restored from flash and
//! log.
//!
//! What it does not model: the time that a page on its way out of the cache spends on the link (the page that takes
//! its frame comes from flash, which takes longer), and losing half of a segment.
//!
//! Invariants: a record in a log is about the page that is in that place now; flash and log together give the map;
//! nothing here costs anything while nothing is borrowed.
//! Source: [P] xbof §3.6, §3.9; record and halves are [A].

mod commit;
mod lending;
mod loan;
mod log;
mod recover;
mod segment;
mod segments;

pub use loan::LoanId;
pub(crate) use log::{PLACES_MAX, RECORDS_MAX};
pub use segment::SegmentState;
pub(crate) use segments::Offsite;
pub use segments::OffsiteCounters;
