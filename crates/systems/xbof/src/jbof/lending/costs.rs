//! Costs of commands that know of peers, by themselves.

use super::super::request::Request;
use flashyard_ssd::Operation;
use flashyard_units::SimSpan;

/// Entries of a message queue that a command may take: one DMA operation, and at most one flash operation for each slot of a
/// read; what else changes the map is one operation.
pub(super) fn entries(request: &Request) -> u32 {
    if request.operation == Operation::Read { 1 + request.count } else { 2 }
}

/// Costs to the firmware of a command whose map is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MappingCosts {
    /// Its core works while it holds the locks of the map: firmware that the drive alone would not need.
    pub(crate) held: SimSpan,
    /// Its core waits for locks and commits.
    pub(crate) waits: SimSpan,
}
