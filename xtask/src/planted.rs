//! Planted bugs: does the exploration of faults find what it is there to find? Each patch breaks one rule of recovery
//! in a copy of the last commit; the exploration must report a violation there, with a case that replays it. A patch may
//! begin with a line of arguments for `flashyard faults`: the enclosure that its bug is in. A rule that has no world begins with a line of
//! arguments for `cargo test`, which must fail there.

use crate::{Repository, patches};
use anyhow::{Context, Result, bail};
use std::path::Path;

/// The patches, one bug each.
const PATCHES: &str = "scenarios/faults/planted";
/// Where the copy and its build lie, below the target directory.
const COPY: &str = "planted-bugs";
/// The beginning of a line of arguments.
const ARGUMENTS: &str = "Arguments: ";
/// The beginning of a line of arguments for a test.
const TEST: &str = "Test: ";
/// Crash points to find each bug with; the rarest takes a few hundred.
const POINTS: &str = "20000";

/// Checks that every patch still applies to the tree as it is.
///
/// Errors: a directory that cannot be read, git that cannot be run.
pub fn patches_apply(repository: &Repository) -> Result<Vec<String>> {
    patches::stale(repository, PATCHES)
}

/// Plants each bug, or those of these names, in a copy of the last commit, builds it and explores; prints the findings. False when a bug was not
/// found.
///
/// Errors: a name without a patch; a copy that cannot be made, patched or built.
pub fn planted_bugs(repository: &Repository, names: &[&str]) -> Result<bool> {
    let target = repository.root.join("target");
    patches::for_each(repository, PATCHES, &target.join(COPY), names, |copy, name| find(copy, &target, name))
}

fn find(copy: &Path, target: &Path, name: &str) -> Result<bool> {
    let patch = copy.join(PATCHES).join(name).with_extension("patch");
    let patch = std::fs::read_to_string(&patch).with_context(|| format!("{}: cannot be read", patch.display()))?;
    let test: Vec<&str> = arguments(&patch, TEST).collect();
    if !test.is_empty() {
        return fails(copy, target, name, &test);
    }
    // A patch compiles much of the workspace again, which takes longer in a release than it saves.
    let explore = ["run", "--profile", "dev", "--quiet", "-p", "flashyard-cli", "--bin", "flashyard", "--", "faults"];
    let output = patches::cargo()
        .args(explore)
        .args(["--points", POINTS])
        .args(arguments(&patch, ARGUMENTS))
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", target.join("planted-build"))
        .output()
        .context("cargo cannot be run")?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .filter(|line| line.contains("violation") || line.contains("smallest"))
        .for_each(|line| println!("{line}"));
    match output.status.code() {
        Some(1) => Ok(true),
        Some(0) => {
            println!("NOT FOUND in {POINTS} crash points");
            Ok(false)
        }
        _ => bail!("{name} cannot be explored: {}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}

/// Whether a test that a patch names fails, as it must; prints the line that says so.
fn fails(copy: &Path, target: &Path, name: &str, test: &[&str]) -> Result<bool> {
    let output = patches::cargo()
        .args(["test", "--quiet"])
        .args(test)
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", target.join("planted-build"))
        .output()
        .context("cargo cannot be run")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.lines().rev().find(|line| line.starts_with("test result: "));
    let Some(result) = result else {
        bail!("{name} cannot be tested: {}", String::from_utf8_lossy(&output.stderr).trim());
    };
    println!("{result}");
    Ok(result.starts_with("test result: FAILED"))
}

/// The arguments that a patch names behind a word.
fn arguments<'a>(patch: &'a str, word: &str) -> impl Iterator<Item = &'a str> {
    let line = patch.lines().next().and_then(|line| line.strip_prefix(word));
    line.unwrap_or_default().split_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_names_its_arguments_in_its_first_line() {
        let named = |patch| arguments(patch, ARGUMENTS).collect::<Vec<_>>();
        let test = "Test: -p a --lib b\n\ndiff";
        assert_eq!(arguments(test, TEST).collect::<Vec<_>>(), ["-p", "a", "--lib", "b"]);
        assert!(named(test).is_empty());
        assert_eq!(named("Arguments: --set a=1 --set b=[\"c\"]\n\ndiff"), ["--set", "a=1", "--set", "b=[\"c\"]"]);
        assert!(named("diff --git a/x b/x\nArguments: --set a=1").is_empty());
    }

    #[test]
    fn every_planted_bug_still_applies() {
        let repository = Repository::discover().expect("the tests run in the repository");
        assert_eq!(patches_apply(&repository).expect("git is there"), Vec::<String>::new());
        assert!(patches::patches(&repository, PATCHES).expect("they can be listed").len() >= 5);
    }
}
