//! The move that a wear-leveling policy asks for.

/// Move that a policy asks for.
pub(crate) struct Exchange {
    /// Superblock whose data moves first.
    pub(super) source: u32,
    /// Its destination: an erased superblock; `None` for the next one for moved data.
    pub(super) destination: Option<u32>,
    /// Superblock whose data then moves to the source.
    pub(super) then: Option<u32>,
}
