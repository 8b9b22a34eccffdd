//! The move that a wear-leveling policy asks for.

/// What a policy asks for.
pub(crate) struct Exchange {
    /// Whose data moves first.
    pub(super) source: u32,
    /// Where to: an erased superblock; `None` for the one that is next for moved data.
    pub(super) destination: Option<u32>,
    /// Whose data then moves to the source.
    pub(super) then: Option<u32>,
}
