//! Load of a device, as its answers carry it (QoS telemetry).

/// How loaded a device is, in two bits of each of its answers.
///
/// Source: [X] CXL 3.1 §3.3.4 (DevLoad); [P] sheet micro-cxl-gpu §3.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DevLoad {
    /// It would take more.
    #[default]
    Light,
    /// It has as much as it serves well.
    Optimal,
    /// More would wait.
    Moderate,
    /// It cannot keep up, or is about to be busy with itself.
    Severe,
}
