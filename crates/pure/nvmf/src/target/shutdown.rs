//! Shutdowns that a host asks for (CC.SHN): a controller says that it is shut down once what it has answered is durable.
//!
//! Source: \[P\] NVM Express Base 2.0, section 3.6.1: the controller brings what its volatile write cache has to the medium before it
//! reports that shutdown processing is complete.

use super::directory::Target;
use super::effects::Shutdown;
use flashyard_nvme::property::ShutdownStatus;

/// Controllers that are to be shut down, since the last call. The owner of the target makes sure of what was written to each subsystem,
/// and then calls [`shut_down`].
pub fn take_shutdowns(target: &mut Target) -> Vec<Shutdown> {
    std::mem::take(&mut target.shutdowns)
}

/// The writes before a shutdown are durable, as far as they can be.
pub fn shut_down(target: &mut Target, shutdown: Shutdown) {
    if let Some(controller) = target.controller(shutdown.controller)
        && controller.status.shutdown == ShutdownStatus::Processing
    {
        controller.status.shutdown = ShutdownStatus::Complete;
    }
}
