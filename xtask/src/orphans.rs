//! Rust files that no crate reaches: never compiled, yet believed.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::rust_source::Outline;
use crate::{Finding, Repository};

/// Targets of the workspace for fuzzing, which are no members of this one.
const TARGETS_ELSEWHERE: &str = "fuzz/fuzz_targets/";

/// Rust files outside the module trees of all targets.
///
/// Errors: unreadable or unparsable source.
pub(crate) fn check(repository: &Repository) -> Result<Vec<Finding>> {
    let mut outlines = BTreeMap::new();
    for file in repository.files.iter().filter(|file| file.ends_with(".rs")) {
        outlines.insert(file.clone(), Outline::parse(file, &repository.read(file)?)?);
    }
    let targets = repository.crates.iter().flat_map(|member| &member.targets).map(|target| target.path.as_str());
    let is_elsewhere = |file: &&str| file.starts_with(TARGETS_ELSEWHERE);
    let elsewhere = outlines.keys().map(String::as_str).filter(is_elsewhere);
    Ok(unreached(&outlines, &targets.chain(elsewhere).collect::<Vec<_>>()))
}

fn unreached(outlines: &BTreeMap<String, Outline>, roots: &[&str]) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    let mut pending: Vec<(String, bool)> = roots.iter().map(|root| ((*root).to_owned(), true)).collect();
    while let Some((file, is_root)) = pending.pop() {
        let Some(outline) = outlines.get(&file) else { continue };
        if !reached.insert(file.clone()) {
            continue;
        }
        for module in &outline.modules {
            let places = Outline::candidates(module, &file, is_root);
            pending.extend(places.iter().map(|place| (place.to_string_lossy().replace('\\', "/"), false)));
        }
    }
    let orphans = outlines.keys().filter(|file| !reached.contains(*file));
    let message = "no `mod` leads here from a lib.rs, main.rs or other target; declare or delete it";
    orphans.map(|file| Finding::failure(file, 0, message)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_without_a_path_from_a_root_are_orphans() {
        let sources = [
            ("a/src/lib.rs", "mod gc;"),
            ("a/src/gc/mod.rs", "mod victim;"),
            ("a/src/gc/victim.rs", ""),
            ("a/src/lost.rs", "mod child;"),
            ("a/src/lost/child.rs", ""),
            ("a/tests/run.rs", "mod common;"),
            ("a/tests/common/mod.rs", ""),
        ];
        let outlines =
            sources.iter().map(|(file, text)| ((*file).to_owned(), Outline::parse(file, text).unwrap())).collect();
        let findings = unreached(&outlines, &["a/src/lib.rs", "a/tests/run.rs"]);
        let files: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(files, ["a/src/lost.rs", "a/src/lost/child.rs"]);
    }
}
