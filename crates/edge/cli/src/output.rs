//! Standard output and files. No command writes a file that it reads, and no file that is there is given up
//! unless the command says so.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Files that this command reads. A number of an inode may be given to another file once the first is gone, so that
/// identities are compared while both names exist.
static READ: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Notes that the command reads `path`, so that it is never written.
pub(crate) fn note_read(path: &Path) {
    READ.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    // Of the file itself, whatever links lead there.
    let found = std::fs::metadata(path).ok().filter(|found| found.is_file())?;
    Some((found.dev(), found.ino()))
}

/// Refuses to write what the command reads.
pub(crate) fn refuse_input(path: &Path) -> Result<()> {
    let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if identity(path).is_some_and(|written| read.iter().any(|input| identity(input) == Some(written))) {
        bail!("{}: this command reads that file, and does not write it; give another name", path.display());
    }
    Ok(())
}

/// Refuses to write in place of a file that holds something, unless `force` says that it may go.
pub(crate) fn refuse_existing(option: &str, path: &Path, force: bool) -> Result<()> {
    refuse_input(path).with_context(|| option.to_owned())?;
    if !force && std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        bail!("{option} {}: this file is there already; give another name, or --force to replace it", path.display());
    }
    Ok(())
}

/// Opens a file to write from its beginning, for its owner only. What is no regular file is written as it is.
pub(crate) fn create_private(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path)?;
    let found = file.metadata()?;
    if found.is_file() && found.mode() & 0o077 != 0 {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Prints a line; a closed pipe ends the program quietly, as for other tools.
pub(crate) fn line(text: &str) {
    if writeln!(std::io::stdout(), "{text}").is_err() {
        std::process::exit(0);
    }
}

/// Characters that a line of tables may have: those of the terminal, or of `COLUMNS`, or 80 where neither is known.
pub(crate) fn width() -> usize {
    let of_terminal = rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    let asked_for = || std::env::var("COLUMNS").ok()?.parse().ok();
    of_terminal.filter(|&columns| columns > 0).or_else(asked_for).unwrap_or(80).max(WIDTH_MIN)
}

/// A table on fewer characters than this is not worth printing. [A]
const WIDTH_MIN: usize = 40;

/// An error with its causes. A cause that the text before it tells already is not told again.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
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
    refuse_input(path)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn what_is_read_is_not_written_by_any_name() {
        let directory = tempfile::tempdir().expect("there is room");
        let input = directory.path().join("input");
        std::fs::write(&input, "precious").expect("it can be written");
        note_read(&input);
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("input", &link).expect("it can be made");
        let hard = directory.path().join("hard");
        std::fs::hard_link(&input, &hard).expect("it can be made");
        let dotted = directory.path().join("../").join(directory.path().file_name().expect("it has one")).join("input");
        for name in [&input, &link, &hard, &dotted] {
            let refused = write_file(
                name.parent().expect("it has one"),
                &name.file_name().expect("it has one").to_string_lossy(),
                "new",
            );
            let text = format!("{:#}", refused.expect_err("it is read"));
            assert!(text.contains("this command reads that file"), "{text}");
            let forced = refuse_existing("--save", name, true).expect_err("no force helps");
            assert!(format!("{forced:#}").starts_with("--save: "), "{forced:#}");
        }
        assert_eq!(std::fs::read_to_string(&input).expect("it is there"), "precious");
        write_file(directory.path(), "other", "new").expect("nobody reads it");
    }

    #[test]
    fn a_file_that_holds_something_goes_only_by_force() {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().join("file");
        refuse_existing("--journal", &path, false).expect("nothing is there");
        std::fs::write(&path, "").expect("it can be written");
        refuse_existing("--journal", &path, false).expect("nothing is in it");
        std::fs::write(&path, "precious").expect("it can be written");
        let text = refuse_existing("--journal", &path, false).expect_err("it holds something").to_string();
        assert!(text.starts_with("--journal ") && text.contains("--force"), "{text}");
        refuse_existing("--journal", &path, true).expect("it may go");
        drop(create_private(&path).expect("it can be written"));
        let found = std::fs::metadata(&path).expect("it is there");
        assert_eq!((found.len(), found.mode() & 0o777), (0, 0o600));
    }

    #[test]
    fn a_cause_is_told_once() {
        let busy = || anyhow::Error::from(Error::new(ErrorKind::AddrInUse, "address in use"));
        let port = || busy().context("127.0.0.1:4420: cannot be listened on: address in use");
        assert_eq!(told(&port()), "127.0.0.1:4420: cannot be listened on: address in use");
        let deeper = port().context("--listen");
        assert_eq!(told(&deeper), "--listen: 127.0.0.1:4420: cannot be listened on: address in use");
        let apart = anyhow::Error::from(Error::new(ErrorKind::NotFound, "no such file")).context("x.toml");
        assert_eq!(told(&apart), "x.toml: no such file");
    }
}
