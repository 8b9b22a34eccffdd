//! `flashyard completions` and `flashyard man`: the command line for shells and for `man`.

use crate::arguments::Arguments;
use crate::{Outcome, output};
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Result<Outcome> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "flashyard", &mut text);
    output::line(String::from_utf8(text).context("completions are text")?.trim_end());
    Ok(Outcome::Done)
}

/// Writes a manual page for each command, `flashyard-run.1` and the like.
///
/// Errors: a directory or file that cannot be written.
pub(crate) fn manual(directory: &Path) -> Result<Outcome> {
    let failed = || format!("{}: cannot be written", directory.display());
    std::fs::create_dir_all(directory).with_context(failed)?;
    clap_mangen::generate_to(Arguments::command(), directory).with_context(failed)?;
    let pages = std::fs::read_dir(directory).with_context(failed)?.count();
    output::line(&format!("wrote {pages} pages into {}; read one by: man -l FILE", directory.display()));
    Ok(Outcome::Done)
}
