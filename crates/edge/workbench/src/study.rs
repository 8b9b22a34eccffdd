//! Studies of published results: runs that are carried out one by one, and kept.

use crate::parallel::{Watch, run_all};
use crate::{DiskFiles, Kept, WorkbenchError};
use flashyard_report::{ChartSection, Comparison};
use flashyard_scenario::SYSTEMS;
use flashyard_scenario::reproduce::Reproduction;
use serde_json::Value;
use std::path::Path;

/// Where a study keeps finished runs: the beginning of the name.
const KEPT: &str = "runs";

/// A study that is open, for all of its numbers or for some.
pub struct StudyRun {
    study: Box<dyn Reproduction>,
    kept: Kept,
}

/// Results of a study.
pub struct StudyResults {
    study: Box<dyn Reproduction>,
    /// Records of finished runs by name, in the order of the study.
    pub finished: Vec<(String, Value)>,
    /// Published numbers beside ours.
    pub comparisons: Vec<Comparison>,
    /// Whether all runs were finished; false where its watcher stopped it.
    pub complete: bool,
}

impl StudyRun {
    /// Opens the study `name` for all numbers or those of `ids`. Runs that `directory` keeps from before are not repeated, and
    /// new ones are kept there.
    ///
    /// Errors: a study or a number that is not there; a directory that cannot be used.
    pub fn open(name: &str, ids: &[String], directory: Option<&Path>) -> Result<Self, WorkbenchError> {
        let files = DiskFiles::leak(Path::new("."), None, None);
        let study = SYSTEMS.study(name)?.open(ids, files)?;
        let profiles = files.profiles_mark();
        let open = |directory| Kept::open(directory, KEPT, profiles.as_deref());
        let kept = directory.map_or_else(|| Ok(Kept::nowhere()), open)?;
        Ok(Self { study, kept })
    }

    /// Carries out the runs that are missing, on `threads` threads, all cores without it.
    ///
    /// Errors: a run that fails, a record that cannot be kept.
    pub fn carry_out(self, threads: Option<usize>, watch: &dyn Watch) -> Result<StudyResults, WorkbenchError> {
        let Self { study, kept } = self;
        let runs = study.runs();
        let missing: Vec<usize> = (0..runs.len()).filter(|&index| kept.record(&runs[index]).is_none()).collect();
        let results = run_all(missing.len(), threads, "runs", watch, |place, observer| {
            let index = missing[place];
            let failed = |source| WorkbenchError::Run { run: runs[index].clone(), source };
            let record = study.carry_out(index, observer).map_err(failed)?;
            if let Some(record) = &record {
                kept.keep(&runs[index], record)?;
            }
            Ok::<_, WorkbenchError>(record)
        });
        let mut fresh = Vec::new();
        for (index, result) in missing.into_iter().zip(results) {
            if let Some(record) = result.transpose()?.flatten() {
                fresh.push((runs[index].clone(), record));
            }
        }
        // In the order of the study, wherever a record comes from.
        let of = |run: &String| {
            let record = kept.record(run).or_else(|| fresh.iter().find(|entry| entry.0 == *run).map(|entry| &entry.1));
            record.map(|record| (run.clone(), record.clone()))
        };
        let finished: Vec<(String, Value)> = runs.iter().filter_map(of).collect();
        let comparisons = study.compare(&finished)?;
        let complete = finished.len() == runs.len();
        Ok(StudyResults { study, finished, comparisons, complete })
    }
}

impl StudyResults {
    /// The records as a table for people.
    ///
    /// Errors: a record that this version did not write.
    pub fn details(&self) -> Result<String, WorkbenchError> {
        Ok(self.study.details(&self.finished)?)
    }

    /// The records as charts.
    ///
    /// Errors: a record that this version did not write.
    pub fn charts(&self) -> Result<Vec<ChartSection>, WorkbenchError> {
        Ok(self.study.charts(&self.finished, &self.comparisons)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_keeps_its_runs_beside_the_profiles_at_hand() {
        let directory = tempfile::tempdir().expect("there is room");
        StudyRun::open("xbof", &[], Some(directory.path())).expect("there is such a study");
        let mark = DiskFiles::leak(Path::new("."), None, None).profiles_mark().expect("this tree has profiles");
        let names = std::fs::read_dir(directory.path()).expect("it is there").flatten().map(|entry| entry.file_name());
        let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        assert!(matches!(&names[..], [one] if one.ends_with(&format!("-{mark}.jsonl"))), "{names:?}");
    }
}
