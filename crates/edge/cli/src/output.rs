//! Standard output and files.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs::File;
use std::io::{BufWriter, Write};
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
    replace_file(&directory.join(name), |file| Ok(Some(file.write_all(content.as_bytes())?)))?;
    Ok(())
}

/// Lets `write` fill a file beside `path`, then renames it to `path`. When `write` fails, or ends with `None`
/// because it was interrupted, `path` stays as it was and nothing is left beside it.
pub(crate) fn replace_file<R>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<Option<R>>,
) -> Result<Option<R>> {
    let failed = || format!("{}: cannot be written", path.display());
    // A directory cannot be replaced, and a device must not be.
    let Some(name) = path.file_name().filter(|_| path.is_file() || !path.exists()) else {
        bail!("{}: cannot be written: there is something that is no regular file", path.display());
    };
    let partial = path.with_file_name(format!(".{}.partial", name.display()));
    let mut file = BufWriter::new(File::create(&partial).with_context(failed)?);
    let written = write(&mut file).and_then(|result| {
        file.flush().with_context(failed)?;
        if result.is_some() {
            std::fs::rename(&partial, path).with_context(failed)?;
        }
        Ok(result)
    });
    if !matches!(written, Ok(Some(_))) {
        // The first error counts; a file that cannot be removed does no harm.
        let _ = std::fs::remove_file(&partial);
    }
    written
}
