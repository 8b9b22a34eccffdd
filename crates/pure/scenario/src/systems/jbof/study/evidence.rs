//! The main figures of a run, for those who want to know why a number came out as it did.

use super::runs::Run;
use flashyard_report::CAUSES;
use flashyard_systems::jbof::{DriveFigures, JbofFigures};
use serde_json::{Map, Value, json};

/// One run. Shares and ratios are numbers from 0; times are simulated microseconds of a mean request.
pub(super) fn of_run(run: Run, figures: &JbofFigures) -> Value {
    let mean = figures.split.mean();
    let split: Map<String, Value> =
        CAUSES.iter().zip(mean.parts_us).map(|(cause, us)| (format!("{}_us", cause.key), json!(us))).collect();
    json!({
        "run": format!("{run:?}"),
        "design": figures.design.name(),
        "throughput_bytes_per_s": figures.throughput(),
        "requests": figures.ios(),
        "latency_mean_us": figures.latency().mean_us(),
        "latency_split": split,
        "mapping_miss_ratio": figures.mapping_miss_ratio(),
        "redirected_share": figures.redirected as f64 / figures.requests.max(1) as f64,
        "host_busy_share": figures.host_utilization,
        "energy_joules": figures.energy().as_joules(),
        "processors_taken": figures.harvest.processors_taken,
        "drives": figures.drives.iter().map(|drive| of_drive(drive, figures)).collect::<Vec<_>>(),
    })
}

fn of_drive(drive: &DriveFigures, figures: &JbofFigures) -> Value {
    json!({
        "throughput_bytes_per_s": (drive.read_bytes + drive.write_bytes) as f64 / figures.window.as_secs_f64(),
        "latency_mean_us": drive.latency.mean_us(),
        "processor_busy_share": drive.processor_utilization,
        "lent_busy_share": drive.lent_utilization,
        "flash_busy_share": drive.flash_utilization(),
        "mapping_miss_ratio": drive.cache.miss_ratio(),
    })
}
