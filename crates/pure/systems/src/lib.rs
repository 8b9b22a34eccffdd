//! Mechanisms of published systems, one module each, and the machines they run in.
//!
//! - [`jbof`]: twelve drives behind one host, and the seven designs as placements of the same firmware.
//! - [`xbof`]: descriptors, triggers, load balance, harvesting of processors and mapping memory.
//! - [`cvss`]: capacity-variant storage and its rivals, from new to dead.
//! - [`ffssd`]: fast-forward ageing by prediction of erase counts, and its rivals.
//! - [`lifetime`]: the life of one drive from new to dead, without timing.
//! - [`vh`]: virtual drives that spread writes over idle peers and copy them back.
//!
//! A design never copies a mechanism: it decides where firmware runs and which policies are on.

pub mod cvss;
pub mod ffssd;
pub mod jbof;
pub mod lifetime;
pub mod vh;
pub mod xbof;
