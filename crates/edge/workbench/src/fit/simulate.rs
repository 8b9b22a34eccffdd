//! The figures of fio on a simulated drive.

use super::measured::{Figure, FigureKind, Loaded};
use super::parameters::Values;
use crate::parallel::{Watch, run_all};
use crate::{DiskFiles, WorkbenchError};
use flashyard_scenario::{Overrides, ScenarioError, plan_runs};
use std::path::Path;

/// A drive alone behind a host. Small superblocks let collection work in fine steps, so that a short window has many of them; their size
/// changes no figure by more than a percent.
const BASE: &str = r#"
name = "fit"
seed = 1
designs = ["conv"]
[jbof]
drives = 1
busy_drives = 1
[drive]
pages_per_block = 192
filled = 1.0
[prices]
profile = "2025"
"#;

/// A drive to be fitted.
#[derive(Clone, Debug)]
pub struct FitRequest {
    /// Keys of `[drive]` that are known, with their values as a user writes them. They are not moved.
    pub known: Vec<(String, String)>,
    /// Profile of the host behind which the figures were measured.
    pub host: String,
    /// Figures of fio.
    pub figures: Vec<Figure>,
    /// Seed of the simulated loads.
    pub seed: u64,
}

/// Simulates the figures of a request.
pub(super) struct Simulator<'a> {
    request: &'a FitRequest,
    files: &'static DiskFiles,
    threads: Option<usize>,
    watch: &'a dyn Watch,
}

impl<'a> Simulator<'a> {
    pub(super) fn new(request: &'a FitRequest, threads: Option<usize>, watch: &'a dyn Watch) -> Self {
        Self { request, files: DiskFiles::leak(Path::new("."), None, None), threads, watch }
    }

    /// Each figure with these values; `None` where the watcher stopped it.
    ///
    /// Errors: values that make no drive.
    pub(super) fn figures(&self, values: &Values, label: &str) -> Result<Option<Vec<f64>>, WorkbenchError> {
        let figures = &self.request.figures;
        let results = run_all(figures.len(), self.threads, label, self.watch, |place, observer| {
            self.figure(&figures[place], values, observer)
        });
        results.into_iter().map(|result| Ok(result.transpose()?.flatten())).collect()
    }

    fn figure(
        &self,
        figure: &Figure,
        values: &Values,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<f64>, WorkbenchError> {
        let overrides = Overrides { settings: self.settings(figure, values), ..Overrides::default() };
        let (resolved, tasks) = plan_runs(BASE, "the drive to be fitted", &overrides, self.files)?;
        let (design, point, scenario) = &tasks[0];
        let none = || ScenarioError::Program("the drive to be fitted cannot be run".to_owned());
        let run = resolved.room.run().ok_or_else(none)?;
        let ran = ScenarioError::unless_stopped((run.design)(scenario, &design.name, self.files, observer));
        let Some(ran) = ran.map_err(|error| resolved.locate(error, point))? else { return Ok(None) };
        let fio = serde_json::to_value(&ran.fio)?;
        let direction = if figure.kind.reads() { "read" } else { "write" };
        let nothing = || ScenarioError::Program(format!("{}: nothing was simulated", figure.kind));
        let loaded = Loaded::of(&fio["jobs"][0][direction]).ok_or_else(nothing)?;
        Ok(Some(loaded.value_of(figure.kind)))
    }

    /// Keys of the run for a figure.
    fn settings(&self, figure: &Figure, values: &Values) -> Vec<String> {
        let kind = figure.kind;
        let known = self.request.known.iter().map(|(key, value)| format!("drive.{key}={value}"));
        let fitted =
            values.entries.iter().map(|one| format!("{}={}", one.parameter.key, one.parameter.text(one.value)));
        let (warmup_ms, measure_ms) = match kind {
            FigureKind::ReadAlone | FigureKind::WriteAlone => (5, 100),
            FigureKind::WriteMany => (200, 800),
            _ => (100, 200),
        };
        let load = [
            format!("host.profile={}", self.request.host),
            format!("seed={}", self.request.seed),
            format!("drive.drawn={}", kind == FigureKind::WriteMany),
            format!("workload.pattern={}", if kind.is_sequential() { "sequential" } else { "uniform" }),
            format!("workload.size={} B", figure.block_bytes),
            format!("workload.read_share={}", if kind.reads() { "1.0" } else { "0.0" }),
            format!("workload.depth={}", figure.depth),
            format!("run.warmup={warmup_ms} ms"),
            format!("run.measure={measure_ms} ms"),
        ];
        known.chain(fitted).chain(load).collect()
    }
}
