//! Pages a reader counts on: one at the head of each crate, and the change log.

use anyhow::Result;

use crate::{Finding, Repository};

/// Headings that the change log always has.
const CHANGELOG_HEADINGS: [&str; 2] = ["## [Unreleased]", "### Results changed"];

/// Crate roots without a page, and a change log that is missing or has lost a heading.
///
/// Errors: an unreadable file.
pub(crate) fn check(repository: &Repository) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for target in repository.crates.iter().flat_map(|member| &member.targets).filter(|target| target.shipped) {
        findings.extend(crate_page(&target.path, &repository.read(&target.path)?));
    }
    let changelog = repository.files.iter().any(|file| file == "CHANGELOG.md");
    match changelog {
        true => findings.extend(changelog_headings(&repository.read("CHANGELOG.md")?)),
        false => findings.push(Finding::failure("CHANGELOG.md", 0, "there is no change log; add one")),
    }
    Ok(findings)
}

fn crate_page(file: &str, text: &str) -> Option<Finding> {
    let message = "the crate page is missing; start with `//!` and say what the crate models and what it does not";
    (!text.starts_with("//! ")).then(|| Finding::failure(file, 1, message))
}

fn changelog_headings(text: &str) -> Vec<Finding> {
    let is_missing = |heading: &&str| !text.lines().any(|line| line.trim_end() == *heading);
    let missing = CHANGELOG_HEADINGS.iter().copied().filter(is_missing);
    missing.map(|heading| Finding::failure("CHANGELOG.md", 0, format!("the heading `{heading}` is missing"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_root_starts_with_its_page() {
        assert_eq!(crate_page("src/lib.rs", "//! Quantities.\nmod a;\n"), None);
        for text in ["", "mod a;\n", "// Quantities.\n", "\n//! Late.\n"] {
            assert!(crate_page("src/lib.rs", text).is_some(), "{text:?}");
        }
    }

    #[test]
    fn the_change_log_keeps_its_headings() {
        assert_eq!(changelog_headings("# C\n\n## [Unreleased]\n\n### Results changed\n"), []);
        assert_eq!(changelog_headings("# C\n\n## [Unreleased]\n").len(), 1);
        assert_eq!(changelog_headings("").len(), 2);
    }
}
