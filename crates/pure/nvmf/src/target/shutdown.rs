//! Shutdowns that a host asks for (CC.SHN): a controller says that it is shut down once what it has answered is durable.
//!
//! Source: \[P\] NVM Express Base 2.0, section 3.6.1: the controller brings what its volatile write cache has to the medium before it
//! reports that shutdown processing is complete.

use super::directory::Target;
use flashyard_nvme::property::ShutdownStatus;

/// A controller that is to be shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Place of its subsystem in the configuration.
    pub subsystem: usize,
    pub(super) controller: (usize, u64),
}

/// Controllers that are to be shut down, since the last call. The owner of the target makes sure of what was written to each subsystem,
/// and then calls [`shut_down`].
pub fn take_shutdowns(target: &mut Target) -> Vec<Shutdown> {
    std::mem::take(&mut target.shutdowns)
}

/// What was written before a shutdown is durable, as far as it can be.
pub fn shut_down(target: &mut Target, shutdown: Shutdown) {
    if let Some(controller) = target.controller(shutdown.controller)
        && controller.status.shutdown == ShutdownStatus::Processing
    {
        controller.status.shutdown = ShutdownStatus::Complete;
    }
}
