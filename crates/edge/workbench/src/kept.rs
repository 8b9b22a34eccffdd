//! Finished runs that are kept in a file, so that a long study goes on where it ended.
//!
//! One line of JSON a run, in a file for each build of the program: what another build has finished is not taken over, for
//! its results may differ, and stays beside. The first line names the build. A last line that was not written whole is
//! dropped.

use crate::WorkbenchError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Records of finished runs by name, and the file behind them.
pub struct Kept {
    found: BTreeMap<String, Value>,
    file: Option<(PathBuf, Mutex<File>)>,
}

impl Kept {
    /// Nothing kept.
    pub fn nowhere() -> Self {
        Self { found: BTreeMap::new(), file: None }
    }

    /// Records that `directory` keeps of this build of the program beside profiles of this mark, and will keep, in `NAME-BUILD.jsonl`, or in
    /// `NAME-BUILD-MARK.jsonl`.
    ///
    /// Errors: a file that cannot be read or written, or that is something else.
    pub fn open(directory: &Path, name: &str, profiles: Option<&str>) -> Result<Self, WorkbenchError> {
        let build = build()?;
        Self::open_of(directory, name, &profiles.map_or_else(|| build.clone(), |mark| format!("{build}-{mark}")))
    }

    fn open_of(directory: &Path, name: &str, build: &str) -> Result<Self, WorkbenchError> {
        std::fs::create_dir_all(directory).map_err(|error| WorkbenchError::file(directory, "cannot be made", error))?;
        let path = directory.join(format!("{name}-{build}.jsonl"));
        let head = json!({ "build": build });
        let failed = |error| WorkbenchError::file(&path, "cannot be read or written", error);
        let bytes = match path.exists() {
            true => std::fs::read(&path).map_err(failed)?,
            false => Vec::new(),
        };
        // A line without its end was cut off, perhaps within a character.
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(&[][..], |end| &bytes[..=end]);
        let whole = std::str::from_utf8(whole).map_err(|_| WorkbenchError::NoKeptRuns(path.clone()))?;
        let mut lines = whole.lines().map(serde_json::from_str::<Value>);
        let ours = matches!(lines.next(), Some(Ok(first)) if first == head);
        if !ours && !whole.is_empty() {
            return Err(WorkbenchError::NoKeptRuns(path));
        }
        let mut found = BTreeMap::new();
        if ours {
            for line in lines.map_while(Result::ok) {
                if let (Some(run), Some(record)) = (line["run"].as_str(), line.get("record")) {
                    found.insert(run.to_owned(), record.clone());
                }
            }
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
        if ours {
            file.set_len(whole.len() as u64).map_err(failed)?;
        } else {
            file.set_len(0).map_err(failed)?;
            writeln!(file, "{head}").map_err(failed)?;
        }
        Ok(Self { found, file: Some((path, Mutex::new(file))) })
    }

    /// The record of a run that was finished before.
    pub fn record(&self, run: &str) -> Option<&Value> {
        self.found.get(run)
    }

    /// Keeps the record of a run.
    ///
    /// Errors: a file that cannot be written.
    pub fn keep(&self, run: &str, record: &Value) -> Result<(), WorkbenchError> {
        let Some((path, file)) = &self.file else { return Ok(()) };
        let line = format!("{}\n", json!({ "run": run, "record": record }));
        // A thread that failed in here left a line that is whole or none.
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes()).map_err(|error| WorkbenchError::file(path, "cannot be written", error))
    }
}

/// The file of the program that runs where it is no program of its own but a library of another one.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Says that what runs is in the file `library`, and not in the program that loaded it. The first word counts.
pub fn of_program(library: &Path) {
    PROGRAM.get_or_init(|| library.to_owned());
}

/// A number for the very program that runs: FNV-1a over its file.
pub(crate) fn build() -> Result<String, WorkbenchError> {
    let program = || {
        std::env::current_exe().map_err(|error| WorkbenchError::file(Path::new("this program"), "is not found", error))
    };
    let path = PROGRAM.get().cloned().map_or_else(program, Ok)?;
    let mut bytes = Vec::new();
    File::open(&path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|error| WorkbenchError::file(&path, "cannot be read", error))?;
    Ok(mark_of(&bytes))
}

/// A number for bytes: FNV-1a.
pub(crate) fn mark_of(bytes: &[u8]) -> String {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(directory: &Path, build: &str) -> Kept {
        Kept::open_of(directory, "runs", build).expect("the directory is ours")
    }

    #[test]
    fn finished_runs_of_a_build_are_there_again_for_it_whatever_other_builds_have_done_since() {
        let directory = tempfile::tempdir().expect("there is room");
        let kept = open(directory.path(), "1");
        kept.keep("a", &json!({ "x": 1 })).expect("it can be written");
        kept.keep("b", &json!(2)).expect("it can be written");
        let again = open(directory.path(), "1");
        assert_eq!(again.record("a"), Some(&json!({ "x": 1 })));
        assert_eq!(again.record("b"), Some(&json!(2)));
        let other = open(directory.path(), "2");
        assert_eq!(other.record("a"), None, "its results may differ");
        other.keep("a", &json!(3)).expect("it can be written");
        let back = open(directory.path(), "1");
        assert_eq!((back.record("a"), back.record("b")), (Some(&json!({ "x": 1 })), Some(&json!(2))));
        assert_eq!(open(directory.path(), "2").record("a"), Some(&json!(3)));
    }

    #[test]
    fn runs_beside_other_profiles_are_kept_apart() {
        let directory = tempfile::tempdir().expect("there is room");
        let open = |profiles| Kept::open(directory.path(), "runs", profiles).expect("the directory is ours");
        for (number, profiles) in [None, Some("1"), Some("2")].into_iter().enumerate() {
            let kept = open(profiles);
            assert_eq!(kept.record("a"), None, "{profiles:?}: others have finished it");
            kept.keep("a", &json!(number)).expect("it can be written");
        }
        for (number, profiles) in [None, Some("1"), Some("2")].into_iter().enumerate() {
            assert_eq!(open(profiles).record("a"), Some(&json!(number)));
        }
    }

    #[test]
    fn files_of_others_stay_as_they_are() {
        let directory = tempfile::tempdir().expect("there is room");
        // A file of an earlier version of the program, and a file that is something else.
        let names = ["runs.jsonl", "runs-1.jsonl"];
        for name in names {
            std::fs::write(directory.path().join(name), "{\"build\":\"0\"}\nprecious\n").expect("it can be written");
        }
        open(directory.path(), "2").keep("a", &json!(1)).expect("it can be written");
        let refused = Kept::open_of(directory.path(), "runs", "1").err().expect("it is something else");
        assert!(refused.to_string().contains("move the file away"), "{refused}");
        for name in names {
            let text = std::fs::read_to_string(directory.path().join(name)).expect("it is there");
            assert!(text.ends_with("precious\n"), "{name}");
        }
    }

    #[test]
    fn a_line_that_was_cut_off_is_dropped_and_its_place_used() {
        let directory = tempfile::tempdir().expect("there is room");
        open(directory.path(), "1").keep("a", &json!(1)).expect("it can be written");
        let path = directory.path().join("runs-1.jsonl");
        let mut text = std::fs::read(&path).expect("it is there");
        text.extend_from_slice(b"{\"run\": \"b\", \"rec\xc3");
        std::fs::write(&path, text).expect("it can be written");
        let kept = open(directory.path(), "1");
        assert_eq!(kept.record("b"), None);
        kept.keep("b", &json!(2)).expect("it can be written");
        let again = open(directory.path(), "1");
        assert_eq!((again.record("a"), again.record("b")), (Some(&json!(1)), Some(&json!(2))));
    }
}
