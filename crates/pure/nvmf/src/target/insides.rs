//! Telemetry that is kept: the insides of drives in words, and what hosts have asked for.

/// The insides of one drive.
#[derive(Debug, Default)]
pub(super) struct Insides {
    /// By data area, as they are now.
    pub(super) texts: [String; 3],
    /// Warnings of SMART.
    pub(super) warnings: u8,
    /// Those that the drive has written down by itself, whether hosts have not said yet that they have read them, and how often that was.
    pub(super) kept: [String; 3],
    pub(super) is_available: bool,
    pub(super) generation: u8,
}

/// Telemetry that the host of a controller has asked for.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) texts: [String; 3],
    pub(super) generation: u8,
}
