//! Finished runs that are kept in a file, so that a long study goes on where it ended.
//!
//! One line of JSON a run. The first line names the build of the program: what another build has finished is not
//! taken over, for its results may differ. A last line that was not written whole is dropped.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Records of finished runs by name, and the file behind them.
pub(crate) struct Kept {
    found: BTreeMap<String, Value>,
    file: Option<(PathBuf, Mutex<File>)>,
}

impl Kept {
    /// Nothing kept.
    pub(crate) fn nowhere() -> Self {
        Self { found: BTreeMap::new(), file: None }
    }

    /// What `directory` keeps of this build of the program, and what it will keep.
    ///
    /// Errors: a file that cannot be read or written.
    pub(crate) fn open(directory: &Path, name: &str) -> Result<Self> {
        Self::open_of(directory, name, &json!({ "build": build()? }))
    }

    fn open_of(directory: &Path, name: &str, head: &Value) -> Result<Self> {
        std::fs::create_dir_all(directory).with_context(|| format!("--out {}: cannot be made", directory.display()))?;
        let path = directory.join(name);
        let failed = || format!("{}: cannot be read or written", path.display());
        let text = match path.exists() {
            true => std::fs::read_to_string(&path).with_context(failed)?,
            false => String::new(),
        };
        // A line without its end was cut off.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut lines = whole.lines().map(serde_json::from_str::<Value>);
        let ours = matches!(lines.next(), Some(Ok(first)) if first == *head);
        let mut found = BTreeMap::new();
        if ours {
            for line in lines.map_while(Result::ok) {
                if let (Some(run), Some(record)) = (line["run"].as_str(), line.get("record")) {
                    found.insert(run.to_owned(), record.clone());
                }
            }
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&path).with_context(failed)?;
        if ours {
            file.set_len(whole.len() as u64).with_context(failed)?;
        } else {
            file.set_len(0).with_context(failed)?;
            writeln!(file, "{head}").with_context(failed)?;
        }
        Ok(Self { found, file: Some((path, Mutex::new(file))) })
    }

    /// The record of a run that was finished before.
    pub(crate) fn record(&self, run: &str) -> Option<&Value> {
        self.found.get(run)
    }

    /// Keeps the record of a run.
    ///
    /// Errors: a file that cannot be written.
    pub(crate) fn keep(&self, run: &str, record: &Value) -> Result<()> {
        let Some((path, file)) = &self.file else { return Ok(()) };
        let line = format!("{}\n", json!({ "run": run, "record": record }));
        // A thread that failed in here left a line that is whole or none.
        let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(line.as_bytes()).with_context(|| format!("{}: cannot be written", path.display()))
    }
}

/// A number for the very program that runs: FNV-1a over its file.
fn build() -> Result<String> {
    let path = std::env::current_exe().context("the program does not find itself")?;
    let mut bytes = Vec::new();
    File::open(&path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .with_context(|| format!("{}: cannot be read", path.display()))?;
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    Ok(format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "runs.jsonl";

    fn open(directory: &Path, build: &str) -> Kept {
        Kept::open_of(directory, NAME, &json!({ "build": build })).expect("the directory is ours")
    }

    #[test]
    fn finished_runs_are_there_again_unless_the_program_has_changed() {
        let directory = tempfile::tempdir().expect("there is room");
        let kept = open(directory.path(), "1");
        kept.keep("a", &json!({ "x": 1 })).expect("it can be written");
        kept.keep("b", &json!(2)).expect("it can be written");
        let again = open(directory.path(), "1");
        assert_eq!(again.record("a"), Some(&json!({ "x": 1 })));
        assert_eq!(again.record("b"), Some(&json!(2)));
        assert_eq!(open(directory.path(), "2").record("a"), None);
        assert_eq!(open(directory.path(), "1").record("a"), None, "the other build began anew");
    }

    #[test]
    fn a_line_that_was_cut_off_is_dropped_and_its_place_used() {
        let directory = tempfile::tempdir().expect("there is room");
        open(directory.path(), "1").keep("a", &json!(1)).expect("it can be written");
        let path = directory.path().join(NAME);
        let mut text = std::fs::read_to_string(&path).expect("it is there");
        text.push_str("{\"run\": \"b\", \"rec");
        std::fs::write(&path, text).expect("it can be written");
        let kept = open(directory.path(), "1");
        assert_eq!(kept.record("b"), None);
        kept.keep("b", &json!(2)).expect("it can be written");
        let again = open(directory.path(), "1");
        assert_eq!((again.record("a"), again.record("b")), (Some(&json!(1)), Some(&json!(2))));
    }
}
