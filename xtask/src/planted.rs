//! Planted bugs: does the exploration of faults find what it is there to find? Each patch breaks one rule of recovery
//! in a copy of the last commit; the exploration must report a violation there, with a case that replays it.

use crate::Repository;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The patches, one bug each.
const PATCHES: &str = "scenarios/faults/planted";
/// Where the copy and its build lie, below the target directory.
const COPY: &str = "planted-bugs";
/// Crash points to find each bug with; the rarest takes a few hundred.
const POINTS: &str = "20000";

/// Checks that every patch still applies to the tree as it is.
///
/// Errors: a directory that cannot be read, git that cannot be run.
pub fn patches_apply(repository: &Repository) -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for patch in patches(repository)? {
        let check = git(&repository.root, &["apply", "--check", path(&patch)?])?;
        if !check.status.success() {
            stale.push(format!("{}: {}", patch.display(), String::from_utf8_lossy(&check.stderr).trim()));
        }
    }
    Ok(stale)
}

/// Plants each bug in a copy of the last commit, builds it and explores; prints the findings. False when a bug was not
/// found.
///
/// Errors: a copy that cannot be made, patched or built.
pub fn planted_bugs(repository: &Repository) -> Result<bool> {
    let target = repository.root.join("target");
    let copy = target.join(COPY);
    remove_copy(repository, &copy)?;
    run(&repository.root, &["worktree", "add", "--quiet", "--detach", path(&copy)?, "HEAD"])?;
    let found = patches(repository)?.iter().map(|patch| find(&copy, &target, patch)).collect::<Result<Vec<_>>>();
    remove_copy(repository, &copy)?;
    Ok(found?.into_iter().all(|found| found))
}

fn find(copy: &Path, target: &Path, patch: &Path) -> Result<bool> {
    let name = patch.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    println!("== {name}");
    run(copy, &["checkout", "--quiet", "--force", "HEAD"])?;
    run(copy, &["apply", path(patch)?])?;
    let explore = ["run", "--release", "--quiet", "-p", "flashyard-cli", "--bin", "flashyard", "--", "faults"];
    let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(explore)
        .args(["--points", POINTS])
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

fn patches(repository: &Repository) -> Result<Vec<PathBuf>> {
    let folder = repository.root.join(PATCHES);
    let entries = std::fs::read_dir(&folder).with_context(|| format!("{PATCHES}: cannot be read"))?;
    let mut patches: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()?;
    patches.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
    patches.sort();
    Ok(patches)
}

fn remove_copy(repository: &Repository, copy: &Path) -> Result<()> {
    if copy.exists() {
        run(&repository.root, &["worktree", "remove", "--force", path(copy)?])?;
    }
    Ok(())
}

fn run(directory: &Path, arguments: &[&str]) -> Result<()> {
    let output = git(directory, arguments)?;
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

fn git(directory: &Path, arguments: &[&str]) -> Result<Output> {
    Command::new("git").args(arguments).current_dir(directory).output().context("git cannot be run")
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{}: not a name in Unicode", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_planted_bug_still_applies() {
        let repository = Repository::discover().expect("the tests run in the repository");
        assert_eq!(patches_apply(&repository).expect("git is there"), Vec::<String>::new());
        assert!(patches(&repository).expect("they can be listed").len() >= 3);
    }
}
