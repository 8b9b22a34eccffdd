//! The JBOF: drives behind hosts, XBOF and its rivals, from mechanisms to published numbers.
//!
//! - [`jbof`]: the machine, and seven designs as placements of one firmware.
//! - [`xbof`]: descriptors, triggers, load balance, harvesting of processors and mapping memory.
//! - [`vh`]: virtual drives that spread writes over idle peers and copy them back.
//! - [`room`]: sections of scenarios, runs and their figures, serving, the enclosure as a world of faults, the study.
//!
//! A design never copies a mechanism: it decides where firmware runs and which policies are on.

pub mod jbof;
pub mod room;
pub mod vh;
pub mod xbof;
