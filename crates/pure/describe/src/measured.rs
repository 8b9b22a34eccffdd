//! Figures of the runs of a scenario.

use crate::fio::JobsInWords;
use flashyard_report::{DesignDetail, DesignResult, Equipment, FioReport};
use flashyard_workload::ScalingNote;

/// Figures of one design that was run.
pub struct Measured {
    /// The design, without its point of a sweep.
    pub design: String,
    /// Figures.
    pub result: DesignResult,
    /// Distributions and series.
    pub detail: DesignDetail,
    /// The run in the layout of fio's JSON.
    pub fio: FioReport,
    /// Equipment that the explorer of a sweep compares.
    pub equipment: Equipment,
    /// The job files that drove it, in words, if any did.
    pub jobs: Option<JobsInWords>,
    /// For each stream the changes that fitted recorded requests to the volume.
    pub scaling: Vec<Option<ScalingNote>>,
    /// Whether requests were issued as others completed.
    pub closed_loop: bool,
    /// End of the first stream in seconds of the measured window, and the length of that, where streams went on.
    pub first_end_seconds: Option<(f64, f64)>,
    /// Simulated seconds of the whole run.
    pub simulated_seconds: f64,
}
