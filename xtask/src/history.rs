//! Definitions stay put while results move: a commit that changes a figure of a golden table leaves the definition of
//! that figure alone. Otherwise a tolerance can be set to fit the result.

use crate::Finding;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use toml::Value;

/// The golden tables; the expectations of each lie beside it.
const GOLDEN: &str = ":(glob)scenarios/*/golden.txt";

/// Keys that define an expected number.
const DEFINITION: [&str; 8] = ["kind", "relation", "metric", "unit", "published", "tolerance", "signed", "reading_of"];

/// Commits that change a figure and the definition of the same number, over all of the history that is there. Numbers
/// without a kind are from before there were kinds, and are passed over.
///
/// Errors: git that cannot be run, or a history that it cannot read.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    if !root.join(".git").exists() {
        let message =
            "there is no history here: commits that change figures and definitions at once were not looked for";
        return Ok(vec![Finding::warning("scenarios", 0, message)]);
    }
    let mut findings = Vec::new();
    for commit in git(root, &["rev-list", "--no-merges", "--full-history", "HEAD", "--", GOLDEN])?.lines() {
        // The first commit of the history, or of as much of it as a shallow clone has, changes nothing.
        let Some(parent) = parent(root, commit)? else { continue };
        for golden in git(root, &["diff", "--name-only", &parent, commit, "--", GOLDEN])?.lines() {
            findings.extend(check_table(root, &parent, commit, golden)?);
        }
    }
    Ok(findings)
}

/// Checks the change of one table by `commit`.
fn check_table(root: &Path, parent: &str, commit: &str, golden: &str) -> Result<Vec<Finding>> {
    let expected = golden.replace("golden.txt", "expected.toml");
    let before = definitions(&show(root, parent, &expected)?)?;
    if before.is_empty() {
        return Ok(Vec::new());
    }
    let after = definitions(&show(root, commit, &expected)?)?;
    let (old, new) = (show(root, parent, golden)?, show(root, commit, golden)?);
    let (old, new) = (figures(&old), figures(&new));
    let mut findings = Vec::new();
    for (id, figure) in &new {
        let (Some(was), Some(before), Some(after)) = (old.get(id), before.get(*id), after.get(*id)) else { continue };
        let changed: Vec<&str> = DEFINITION.into_iter().filter(|&key| before.get(key) != after.get(key)).collect();
        if was != figure && !changed.is_empty() {
            let message = format!(
                "commit {} changes {id} from {was} to {figure} and its {} as well; change the definition in a commit \
                 before it",
                &commit[..commit.len().min(9)],
                changed.join(", ")
            );
            findings.push(Finding::failure(&expected, 0, message));
        }
    }
    Ok(findings)
}

/// Figures of a golden table by id: the second word of a line.
fn figures(table: &str) -> BTreeMap<&str, &str> {
    table.lines().map(str::split_whitespace).filter_map(|mut words| Some((words.next()?, words.next()?))).collect()
}

/// Expected numbers that have a kind, by id.
fn definitions(text: &str) -> Result<BTreeMap<String, toml::Table>> {
    let table: toml::Table = text.parse().context("expectations of the history cannot be read")?;
    let entries = table.get("expectation").and_then(Value::as_array).cloned().unwrap_or_default();
    let entries = entries.into_iter().filter_map(|entry| match entry {
        Value::Table(entry) if entry.contains_key("kind") => {
            let id = entry.get("id")?.as_str()?.to_owned();
            Some((id, entry))
        }
        _ => None,
    });
    Ok(entries.collect())
}

/// The parent of a commit; `None` where the history begins.
fn parent(root: &Path, commit: &str) -> Result<Option<String>> {
    let parents = git(root, &["rev-list", "--parents", "--max-count=1", commit])?;
    Ok(parents.split_whitespace().nth(1).map(str::to_owned))
}

/// The text of a file in a commit; empty when it is not there.
fn show(root: &Path, commit: &str, file: &str) -> Result<String> {
    if git(root, &["ls-tree", commit, "--", file])?.is_empty() {
        return Ok(String::new());
    }
    git(root, &["show", &format!("{commit}:{file}")])
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output().context("git cannot be run")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), said.trim());
    String::from_utf8(output.stdout).context("git answers in something other than text")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository of its own, with one expected number.
    struct Scratch(tempfile::TempDir);

    impl Scratch {
        fn new() -> Self {
            let scratch = Self(tempfile::tempdir().expect("a directory can be made"));
            scratch.git(&["init", "--quiet", "--initial-branch=main"]);
            scratch
        }

        fn root(&self) -> &Path {
            self.0.path()
        }

        fn git(&self, arguments: &[&str]) {
            let who = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"];
            git(self.root(), &[&who[..], arguments].concat()).expect("git is there");
        }

        /// A commit of one number as it is expected and as it came out.
        fn commit(&self, definition: &str, golden: &str) {
            let folder = self.root().join("scenarios/study");
            std::fs::create_dir_all(&folder).expect("it can be made");
            let expected = format!("[[expectation]]\nid = \"a\"\nmetric = \"m\"\n{definition}\n");
            std::fs::write(folder.join("expected.toml"), expected).expect("it can be written");
            std::fs::write(folder.join("golden.txt"), format!("{golden}\n")).expect("it can be written");
            self.git(&["add", "."]);
            self.git(&["commit", "--quiet", "--allow-empty", "--message", "step"]);
        }

        fn found(&self) -> Vec<String> {
            check(self.root()).expect("the history can be read").iter().map(ToString::to_string).collect()
        }
    }

    const FIVE: &str = "kind = \"predicted\"\ntolerance = 5.0";
    const SEVEN: &str = "kind = \"predicted\"\ntolerance = 7.0";

    #[test]
    fn a_definition_and_a_figure_change_in_commits_of_their_own() {
        let scratch = Scratch::new();
        scratch.commit(FIVE, "a   6.279 %   predicted   does not agree");
        scratch.commit(SEVEN, "a   6.279 %   predicted   agrees");
        scratch.commit(SEVEN, "a   5.000 %   predicted   agrees");
        assert_eq!(scratch.found(), Vec::<String>::new());
    }

    #[test]
    fn a_tolerance_that_is_set_to_what_came_out_is_found_in_a_clone_and_in_a_shallow_one() {
        let scratch = Scratch::new();
        scratch.commit(FIVE, "a   4.000 %   predicted   agrees");
        scratch.commit(SEVEN, "a   6.279 %   predicted   agrees");
        let found = scratch.found();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("4.000 to 6.279") && found[0].contains("tolerance"), "{found:?}");

        for (depth, count) in [("2", 1), ("1", 0)] {
            let clone = tempfile::tempdir().expect("a directory can be made");
            let from = format!("file://{}", scratch.root().display());
            let into = clone.path().to_str().expect("it is text");
            git(clone.path(), &["clone", "--quiet", "--depth", depth, &from, into]).expect("it can be cloned");
            assert_eq!(check(clone.path()).expect("it can be read").len(), count, "depth {depth}");
        }
    }

    #[test]
    fn kind_metric_and_relation_are_as_fixed_as_the_tolerance() {
        for other in [
            "kind = \"fitted\"\ntolerance = 5.0",
            "kind = \"predicted\"\nrelation = \"at_most\"\ntolerance = 5.0",
            "kind = \"predicted\"\ntolerance = 5.0\npublished = 2.0",
        ] {
            let scratch = Scratch::new();
            scratch.commit(FIVE, "a 4.000 % agrees");
            scratch.commit(other, "a 6.279 % agrees");
            assert_eq!(scratch.found().len(), 1, "{other}");
        }
    }

    #[test]
    fn what_was_before_there_were_kinds_and_what_a_merge_brings_is_passed_over() {
        let scratch = Scratch::new();
        scratch.commit("tolerance = 5.0", "a 4.000 % agrees");
        scratch.commit("tolerance = 7.0", "a 6.279 % agrees");
        scratch.commit(FIVE, "a 5.000 % agrees");
        scratch.git(&["checkout", "--quiet", "-b", "side"]);
        scratch.commit(FIVE, "a 4.500 % agrees");
        scratch.git(&["checkout", "--quiet", "main"]);
        scratch.git(&["commit", "--quiet", "--allow-empty", "--message", "step"]);
        scratch.git(&["merge", "--quiet", "--no-ff", "--message", "merge", "side"]);
        assert_eq!(scratch.found(), Vec::<String>::new());
    }

    #[test]
    fn a_tree_without_history_says_so() {
        let empty = tempfile::tempdir().expect("a directory can be made");
        let found = check(empty.path()).expect("there is nothing to read");
        assert!(found.len() == 1 && !found[0].fails, "{found:?}");
    }
}
