//! Tests that were skipped because something outside the repository is missing: they pass, and have checked nothing.

use std::fs;
use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};

use crate::Repository;

/// The file in which they are written down, by `flashyard_conformance`.
const RECORD: &str = "skipped.txt";

/// Forgets the tests that were skipped so far.
///
/// Errors: a record that cannot be removed.
pub fn forget_skipped(repository: &Repository) -> Result<()> {
    let path = repository.target_directory.join(RECORD);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The tests that were skipped since they were last forgotten, counted and listed.
///
/// Errors: a record that cannot be read.
pub fn skipped(repository: &Repository) -> Result<String> {
    let path = repository.target_directory.join(RECORD);
    match fs::read_to_string(&path) {
        Ok(record) => Ok(summary(&record)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(summary("")),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Writes down that `test` is skipped: `unchecked` says what is missing, and what was not checked for it.
///
/// Errors: a record that cannot be written.
pub(crate) fn note_skipped(repository: &Repository, test: &str, unchecked: &str) -> Result<()> {
    let path = repository.target_directory.join(RECORD);
    eprintln!("SKIPPED {test}: {unchecked}");
    let file = fs::OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| writeln!(file, "{test}: {unchecked}"));
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn summary(record: &str) -> String {
    // One test may miss several things, and tests run several times.
    let mut lines: Vec<&str> = record.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    let test = |line: &&str| line.split_once(": ").map_or(*line, |(test, _)| test).to_owned();
    let mut tests: Vec<String> = lines.iter().map(test).collect();
    tests.dedup();
    match tests.len() {
        0 => "no test was skipped".to_owned(),
        count => format!("{count} tests were skipped and checked nothing:\n  {}", lines.join("\n  ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_once_and_listed_with_everything_they_miss() {
        assert_eq!(summary(""), "no test was skipped");
        let record = "b: fio is missing: x\na: git is missing: y\nb: fio is missing: x\na: cp is missing: y\n";
        let expected = "2 tests were skipped and checked nothing:\n  a: cp is missing: y\n  a: git is missing: y\n  \
                        b: fio is missing: x";
        assert_eq!(summary(record), expected);
    }
}
