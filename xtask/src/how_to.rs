//! The how-to list of `ARCHITECTURE.md` held to its word: an example of a change touches the files that its entry names
//! and no others. Tutorials show changes that are parts of these examples.
//!
//! An entry with an example ends in ``Example: `tests/how-to/NAME.patch`. Files: `a`, `b`.``, with paths from the root of
//! the repository. The example of a whole system is one that is there, and its files are those that name it.

use crate::{Repository, patches};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// The examples, one change each.
const PATCHES: &str = "tests/how-to";
/// Where the copy and its build lie, below the target directory.
const COPY: &str = "how-to";
/// Pages that show parts of them.
const TUTORIALS: &str = "docs/tutorials/";
/// Files that each change may touch.
const LIMITS: [(&str, usize); 4] =
    [("collection-policy", 2), ("design", 3), ("drive-command", 8), ("report-column", 2)];
/// The example of a whole system: how others name it, and where it lies itself.
const SYSTEM: [&str; 4] = ["flashyard-mirror", "flashyard_mirror", "MirrorRoom", "systems/mirror"];
const ELSEWHERE: [&str; 8] = [
    "*.rs",
    "*.toml",
    "*.lock",
    ":!crates/systems/mirror",
    ":!scenarios/mirror",
    ":!tests",
    ":!crates/**/tests/**",
    // The names above.
    ":!xtask",
];

/// Everything in which the examples and the how-to list differ.
///
/// Errors: files that cannot be read, git that cannot be run.
pub fn how_to(repository: &Repository) -> Result<Vec<String>> {
    let text = repository.read("ARCHITECTURE.md")?;
    let mut found = patches::stale(repository, PATCHES)?;
    let (mut names, mut known) = (BTreeSet::new(), String::new());
    for patch in patches::patches(repository, PATCHES)? {
        let name = patches::name(&patch);
        let change = std::fs::read_to_string(&patch)?;
        let touched = touched(&change);
        known += &change;
        found.extend(against(&text, &format!("{PATCHES}/{name}.patch"), &touched));
        let most = LIMITS.iter().find(|(known, _)| *known == name).map_or(0, |(_, most)| *most);
        if touched.len() > most {
            found.push(format!("{name}: {} files, and {most} are allowed", touched.len()));
        }
        names.insert(name);
    }
    found.extend(LIMITS.iter().filter(|(name, _)| !names.contains(*name)).map(|(name, _)| format!("{name}: no patch")));
    found.extend(against(&text, "crates/systems/mirror", &naming_the_system(repository)?));
    for file in repository.files.iter().filter(|file| file.starts_with(TUTORIALS)) {
        let shown = changes(&repository.read(file)?).into_iter().filter(|(_, change)| !known.contains(change.as_str()));
        found.extend(shown.map(|(line, _)| format!("{file}:{line}: the change is part of no patch of {PATCHES}")));
    }
    Ok(found)
}

/// The changes that a page shows, in blocks of the language `diff`, with their lines.
fn changes(page: &str) -> Vec<(usize, String)> {
    let mut lines = page.lines().enumerate();
    let mut changes = Vec::new();
    while let Some((index, line)) = lines.next() {
        if line == "```diff" {
            let block: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            changes.push((index + 1, block.join("\n") + "\n"));
        }
    }
    changes
}

/// Applies each example to a copy of the last commit and compiles everything there. False when one does not compile.
///
/// Errors: a copy that cannot be made or patched, cargo that cannot be run.
pub fn how_to_compiles(repository: &Repository) -> Result<bool> {
    let target = repository.root.join("target");
    patches::for_each(repository, PATCHES, &target.join(COPY), &[], |copy, _| compiles(copy, &target))
}

/// Everything is compiled with its tests: a match may lack a variant in any crate above those that a patch touches.
fn compiles(copy: &Path, target: &Path) -> Result<bool> {
    let mut check = patches::cargo();
    check.args(["check", "--quiet", "--workspace", "--all-targets"]).current_dir(copy);
    let status = check.env("CARGO_TARGET_DIR", target.join("how-to-build")).status().context("cargo cannot be run")?;
    println!("{}", if status.success() { "compiles" } else { "DOES NOT COMPILE" });
    Ok(status.success())
}

/// Files that a unified diff touches.
fn touched(patch: &str) -> BTreeSet<String> {
    let sides = patch.lines().filter_map(|line| line.strip_prefix("--- a/").or_else(|| line.strip_prefix("+++ b/")));
    sides.map(str::to_owned).collect()
}

/// Files that name the example of a system, tests and prose not counted.
fn naming_the_system(repository: &Repository) -> Result<BTreeSet<String>> {
    let mut search = vec!["grep", "-lIF"];
    search.extend(SYSTEM.iter().flat_map(|name| ["-e", *name]));
    search.push("--");
    search.extend(ELSEWHERE);
    Ok(patches::output(&repository.root, &search)?.lines().map(str::to_owned).collect())
}

/// The difference between the files of `example` and those that its entry in `text` names.
fn against(text: &str, example: &str, files: &BTreeSet<String>) -> Option<String> {
    match named(text, example) {
        None => Some(format!("{example}: no entry of the how-to list ends in \"Example: `{example}`. Files: ...\"")),
        Some(named) if named == *files => None,
        Some(named) => Some(format!("{example}: its entry names {named:?}, and it touches {files:?}")),
    }
}

/// Files that the entry of `example` names; `None` without an entry.
fn named(text: &str, example: &str) -> Option<BTreeSet<String>> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, rest) = words.split_once(&format!("Example: `{example}`. Files: "))?;
    let entry = rest.split(" - **").next()?;
    Some(entry.split('`').skip(1).step_by(2).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_touch_the_files_that_the_list_names() {
        let repository = Repository::discover().expect("the tests run in the repository");
        assert_eq!(how_to(&repository).expect("git is there"), Vec::<String>::new());
    }

    #[test]
    fn changes_that_a_page_shows_have_their_line() {
        let page = "words\n```diff\n a\n+b\n```\n```rust\n+c\n```\n";
        assert_eq!(changes(page), [(2, " a\n+b\n".to_owned())]);
    }

    #[test]
    fn a_file_too_many_and_one_too_few_are_found() {
        let text = "- **One**: words. Example: `tests/a.patch`.\n  Files: `x/y.rs`,\n  `z.rs`.\n- **Two**: `w.rs`.";
        let patch = "diff --git a/x/y.rs b/x/y.rs\n--- a/x/y.rs\n+++ b/x/y.rs\n--- a/z.rs\n+++ b/z.rs\n--- /dev/null\n";
        let mut files = touched(patch);
        assert_eq!(against(text, "tests/a.patch", &files), None);
        files.insert("w.rs".to_owned());
        assert!(against(text, "tests/a.patch", &files).is_some_and(|found| found.contains("w.rs")));
        files.clear();
        assert!(against(text, "tests/a.patch", &files).is_some_and(|found| found.contains("z.rs")));
        assert!(against(text, "tests/b.patch", &files).is_some_and(|found| found.contains("no entry")));
    }
}
