//! The repository is tidy; `cargo xtask tidy` prints the same findings.

use xtask::{Repository, tidy};

#[test]
fn the_repository_is_tidy() {
    let repository = Repository::discover().unwrap();
    let findings = tidy(&repository).unwrap();
    let failures: Vec<String> = findings.iter().filter(|f| f.fails).map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{} findings:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_checks_see_the_whole_tree() {
    // A check that silently reads nothing passes for ever.
    let repository = Repository::discover().unwrap();
    for file in ["layers.toml", "xtask/src/lib.rs", "crates/pure/kernel/src/lib.rs", ".ci/run", "LICENSE"] {
        assert!(repository.files.iter().any(|seen| seen == file), "{file} is not among the checked files");
    }
    assert!(!repository.files.iter().any(|file| file.starts_with("target/")), "build output is checked");
}
