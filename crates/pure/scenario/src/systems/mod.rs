//! Rooms of systems: what each adds to scenarios, its study and its world of faults.

pub(crate) mod cvss;
pub(crate) mod jbof;
pub(crate) mod life;
pub(crate) mod ttflash;
