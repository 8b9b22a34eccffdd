//! A host of NVMe/TCP over sockets, for load and for tests: the machine of `nvmf`, and a thread that never sleeps
//! while it waits, so that what it measures is the other side.

mod load;
mod queues;

pub use load::{HostLoad, HostReport, Pattern, run_host_load};
pub use queues::{Host, HostError};
