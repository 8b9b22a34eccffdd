//! Repository chores that cargo does not know: imports allowed between crates, and a tidy tree.
//!
//! What it checks: `layers` compares the manifests with `layers.toml`; `tidy` adds lengths, provenance marks, banned
//! words, orphan files, crate pages, links, unused dependencies, methods by type and circles of files, and whether
//! definitions and results of reproductions change in commits of their own; `history` is the last of these alone;
//! `golden` compares the reproduction with the accepted table; `planted` shows that the faults find bugs; `how-to` compiles
//! the examples of the how-to list; `real-traces` drives the built program over the recorded traces that lie beside the
//! repository; `validation` writes the tables of `docs/validation.md`; `pages-run` runs the commands of the
//! pages and compares their output; `test` runs all programs of tests, several at a time; `skipped` lists the tests that checked nothing because a program is missing. `cargo test` runs `tidy` as well.
//!
//! What it does not check: style that rustfmt and clippy see, and licences (`deny.toml` is for cargo-deny).
//!
//! Invariants: a check only reads; every finding names a place and a remedy. Checks work on values (text, lists of
//! crates), so that each is tested on small inputs.

mod alignment;
mod console;
mod counts;
mod dependencies;
mod finding;
mod fits;
mod golden;
mod history;
mod how_to;
mod imports;
mod layers;
mod lengths;
mod links;
mod orphans;
mod pages;
mod pages_run;
mod patches;
mod planted;
mod policy;
mod provenance;
mod ratchets;
mod real_traces;
mod repository;
mod rust_source;
mod skipped;
mod subjects;
mod test_programs;
mod validation;
mod words;

pub use finding::Finding;
pub use golden::{Which, golden};
pub use how_to::{how_to, how_to_compiles};
pub use pages_run::{PagesRun, pages_run};
pub use planted::{patches_apply, planted_bugs};
pub use real_traces::{Outcome, drive_real_traces};
pub use repository::Repository;
pub use skipped::{forget_skipped, skipped};
pub use test_programs::run_tests;
pub use validation::validation;

use anyhow::Result;

/// Everything in the manifests that `layers.toml` does not allow.
///
/// Errors: a `layers.toml` that cannot be read or has an unknown form.
pub fn layers(repository: &Repository) -> Result<Vec<Finding>> {
    let policy = policy::Policy::parse(&repository.read("layers.toml")?)?;
    Ok(layers::check(&policy, &repository.crates))
}

/// Commits that change a golden figure together with the tolerance, metric, relation or kind that it is judged by.
///
/// Errors: git that cannot be run, or a history that it cannot read.
pub fn history(repository: &Repository) -> Result<Vec<Finding>> {
    history::check(&repository.root)
}

/// Everything untidy in the repository, `layers` included; warnings and failures mixed, in path order.
///
/// Errors: a file that cannot be read, or Rust source that cannot be parsed.
pub fn tidy(repository: &Repository) -> Result<Vec<Finding>> {
    let mut findings = layers(repository)?;
    findings.extend(dependencies::check(repository)?);
    findings.extend(orphans::check(repository)?);
    findings.extend(pages::check(repository)?);
    findings.extend(counts::check(repository)?);
    findings.extend(validation::check(repository)?);
    findings.extend(fits::check(repository)?);
    findings.extend(ratchets::check(repository)?);
    findings.extend(history(repository)?);
    for file in &repository.files {
        let Some(text) = repository.text(file)? else { continue };
        findings.extend(words::check(file, &text));
        if file.ends_with(".rs") || file.ends_with(".py") {
            findings.extend(lengths::check(file, &text)?);
        }
        if provenance::applies_to(file) {
            findings.extend(provenance::check(file, &text));
        }
        if let Some(model) =
            file.strip_prefix(layers::SYSTEMS_FOLDER).filter(|file| file.contains("/src/") && !file.contains("/room"))
            && text.contains("use serde")
        {
            let message =
                format!("{model} is a model: sections and records, which are file formats, stand in the room");
            findings.push(Finding::failure(file, 0, message));
        }
        if provenance::has_constants(file) {
            findings.extend(provenance::check_constants(file, &text));
        }
        if file.ends_with(".md") {
            findings.extend(links::check(&repository.root, file, &text));
        }
    }
    findings.sort();
    Ok(findings)
}
