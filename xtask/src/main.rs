//! `cargo xtask COMMAND`: the repository's own chores, from the command line.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use xtask::{
    Finding, Outcome, PagesRun, Repository, Which, drive_real_traces, forget_skipped, golden, history, how_to_compiles,
    layers, pages_run, planted_bugs, run_tests, skipped, tidy, validation,
};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  layers       compare the manifests with layers.toml
  tidy         layers, lengths, provenance marks, banned words, orphans, crate pages, links, unused dependencies,
               what ratchets.toml counts, history
  history      find commits that change a golden figure together with its tolerance, metric, relation or kind
  golden       run the reproductions, or the named one, or those that take minutes (--long), or the others with the quick
               numbers of those (--short), and compare them with scenarios/*/golden.txt (--accept: take whole tables)
  how-to       apply each example of the how-to list (tests/how-to) to a copy of the last commit, and compile it
  pages-run    run the commands of the pages (blocks of the language console), or of those named, and compare what they
               print with what stands there (--program FILE: with that flashyard; --accept: take what they print)
  planted      break the recovery in copies of the last commit, and see `flashyard faults` find each bug; those that
               are named, or all
  validation   write the tables of docs/validation.md from the golden tables
  real-traces  drive target/release/flashyard over the recorded traces in ../shared/traces
  test         all tests as `cargo test --workspace` has them, several programs at a time: many of them wait
  skipped      list the tests that checked nothing because something was missing (--forget: begin a new list)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match names.as_slice() {
        ["layers"] => Repository::discover().and_then(|repository| layers(&repository)).map(|found| show(&found)),
        ["tidy"] => Repository::discover().and_then(|repository| tidy(&repository)).map(|found| show(&found)),
        ["history"] => Repository::discover().and_then(|repository| history(&repository)).map(|found| show(&found)),
        ["golden", rest @ .., "--accept"] if rest.len() <= 1 => compare_golden(rest.first(), true),
        ["golden", rest @ ..] if rest.len() <= 1 => compare_golden(rest.first(), false),
        ["how-to"] => Repository::discover().and_then(|repository| how_to_compiles(&repository)),
        ["planted", names @ ..] => Repository::discover().and_then(|repository| planted_bugs(&repository, names)),
        ["validation"] => Repository::discover().and_then(|repository| validation(&repository)).map(|()| true),
        ["test"] => Repository::discover().and_then(|repository| run_tests(&repository)),
        ["real-traces"] => real_traces(),
        ["pages-run", rest @ ..] => run_pages(rest),
        ["skipped"] => Repository::discover().and_then(|repository| skipped(&repository)).map(|list| {
            println!("{list}");
            true
        }),
        ["skipped", "--forget"] => {
            Repository::discover().and_then(|repository| forget_skipped(&repository)).map(|()| true)
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Prints the findings and tells whether all of them are mere warnings.
fn show(findings: &[Finding]) -> bool {
    for finding in findings {
        eprintln!("{finding}");
    }
    let failures = findings.iter().filter(|finding| finding.fails).count();
    println!("{failures} errors, {} warnings", findings.len() - failures);
    failures == 0
}

fn compare_golden(which: Option<&&str>, accept: bool) -> Result<bool> {
    let which = match which.copied() {
        None => Which::All,
        Some("--long") => Which::Long,
        Some("--short") => Which::Short,
        Some(system) => Which::Of(system),
    };
    golden(&Repository::discover()?, which, accept)
}

fn run_pages(arguments: &[&str]) -> Result<bool> {
    let (mut run, mut pages) = (PagesRun::default(), Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--accept" => run.accept = true,
            "--program" => run.program = Some(Path::new(arguments.next().context("--program needs a file")?)),
            page => pages.push(page),
        }
    }
    pages_run(&Repository::discover()?, PagesRun { pages: &pages, ..run })
}

fn real_traces() -> Result<bool> {
    let outcome = drive_real_traces(&Repository::discover()?)?;
    Ok(matches!(outcome, Outcome::Skipped | Outcome::Driven { failed: 0, .. }))
}
