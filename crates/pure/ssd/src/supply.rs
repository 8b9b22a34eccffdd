//! Whether a drive has power, and takes commands.

/// Whether a data-end works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Power {
    /// It takes commands.
    Ready,
    /// It has power again, and is restoring the mapping that was in peers' memory.
    Restoring,
    /// It has no power.
    Off,
}
