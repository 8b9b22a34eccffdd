//! Standard output and files.

use anyhow::{Context, Result};
use serde_json::Value;
use std::io::Write;
use std::path::Path;

/// Prints a line; a closed pipe ends the program quietly, as for other tools.
pub(crate) fn line(text: &str) {
    if writeln!(std::io::stdout(), "{text}").is_err() {
        std::process::exit(0);
    }
}

/// Prints JSON.
pub(crate) fn json(value: &Value) {
    line(&format!("{value:#}"));
}

/// Writes a file whole or not at all: beside its place first, then renamed.
pub(crate) fn write_file(directory: &Path, name: &str, content: &str) -> Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("--out {}: cannot be made", directory.display()))?;
    let (path, partial) = (directory.join(name), directory.join(format!(".{name}.partial")));
    std::fs::write(&partial, content).with_context(|| format!("{}: cannot be written", partial.display()))?;
    std::fs::rename(&partial, &path).with_context(|| format!("{}: cannot be written", path.display()))
}
