//! Folders of patches: whether each still applies to the tree, and a copy of the last commit to apply it to.

use crate::Repository;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The patches of `folder`, by name.
///
/// Errors: a folder that cannot be read.
pub(crate) fn patches(repository: &Repository, folder: &str) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(repository.root.join(folder)).with_context(|| format!("{folder}: cannot be read"))?;
    let mut patches: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()?;
    patches.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
    patches.sort();
    Ok(patches)
}

/// The patches of `folder` that do not apply to the tree as it is, each with the reason.
///
/// Errors: a folder that cannot be read, git that cannot be run.
pub(crate) fn stale(repository: &Repository, folder: &str) -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for patch in patches(repository, folder)? {
        let check = git(&repository.root, &["apply", "--check", path(&patch)?])?;
        if !check.status.success() {
            stale.push(format!("{}: {}", patch.display(), String::from_utf8_lossy(&check.stderr).trim()));
        }
    }
    Ok(stale)
}

/// The name of a patch without its extension.
pub(crate) fn name(patch: &Path) -> String {
    patch.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Applies each patch of `folder` whose name is one of `names`, or all without names, to a copy of the last commit at `place`, and carries `check` out
/// there. True when all checks were.
///
/// Errors: a name without a patch; a copy that cannot be made or patched; those of `check`.
pub(crate) fn for_each(
    repository: &Repository,
    folder: &str,
    place: &Path,
    names: &[&str],
    check: impl Fn(&Path, &str) -> Result<bool>,
) -> Result<bool> {
    let mut all = patches(repository, folder)?;
    if let Some(other) = names.iter().find(|wanted| !all.iter().any(|patch| name(patch) == **wanted)) {
        bail!("{folder} has no {other}");
    }
    all.retain(|patch| names.is_empty() || names.contains(&name(patch).as_str()));
    remove_copy(repository, place)?;
    run(&repository.root, &["worktree", "add", "--quiet", "--detach", path(place)?, "HEAD"])?;
    let all = all.into_iter().map(|patch| {
        println!("== {}", name(&patch));
        run(place, &["checkout", "--quiet", "--force", "HEAD"])?;
        run(place, &["apply", path(&patch)?])?;
        check(place, &name(&patch))
    });
    let found = all.collect::<Result<Vec<_>>>();
    remove_copy(repository, place)?;
    Ok(found?.into_iter().all(|found| found))
}

/// Cargo as this program was called by it.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
}

/// Standard output of git.
///
/// Errors: git that cannot be run, or fails.
pub(crate) fn output(directory: &Path, arguments: &[&str]) -> Result<String> {
    let output = git(directory, arguments)?;
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The name of a file as git takes it.
///
/// Errors: a name that is not Unicode.
pub(crate) fn path(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{}: not a name in Unicode", path.display()))
}

fn remove_copy(repository: &Repository, copy: &Path) -> Result<()> {
    if copy.exists() {
        run(&repository.root, &["worktree", "remove", "--force", path(copy)?])?;
    }
    Ok(())
}

fn run(directory: &Path, arguments: &[&str]) -> Result<()> {
    output(directory, arguments).map(drop)
}

fn git(directory: &Path, arguments: &[&str]) -> Result<Output> {
    Command::new("git").args(arguments).current_dir(directory).output().context("git cannot be run")
}
