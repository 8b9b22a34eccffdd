//! What the driver in front of drives does about those that do not answer.

use flashyard_units::SimSpan;

/// Parameters of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverConfig {
    /// Periods without an answer after which a drive is given up. [A]
    pub silent_periods: u32,
    /// Time after which a command is given up, with the drive that has it. [X] the default of Linux
    pub io_timeout: SimSpan,
}

impl Default for DriverConfig {
    fn default() -> Self {
        Self { silent_periods: 2, io_timeout: SimSpan::from_ms(30_000) }
    }
}
