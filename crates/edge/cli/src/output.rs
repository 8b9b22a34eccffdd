//! Standard output and files. No command writes a file that it reads, and no file that is there is given up
//! unless the command says so.

use anyhow::{Context, Result, bail};
use flashyard_workbench::refuse_input;
use serde_json::Value;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Refuses to write in place of a file that holds something, unless `force` says that it may go.
pub(crate) fn refuse_existing(option: &str, path: &Path, force: bool) -> Result<()> {
    refuse_input(path).with_context(|| option.to_owned())?;
    if !force && std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        bail!("{option} {}: this file is there already; give another name, or --force to replace it", path.display());
    }
    Ok(())
}

/// Opens a file to write from its beginning, for its owner only, and keeps it from other processes of this program for as long as it is
/// open. What is no regular file is written as it is.
///
/// Errors: another process writes it; others of the operating system.
pub(crate) fn create_private(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(path)?;
    let found = file.metadata()?;
    if found.is_file() {
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Error::new(ErrorKind::ResourceBusy, "another process writes it"),
            TryLockError::Error(error) => error,
        })?;
        file.set_len(0)?;
        if found.mode() & 0o077 != 0 {
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(file)
}

/// Prints a line. A closed pipe ends the program quietly, as for other tools; anything else that keeps it from printing is an error.
pub(crate) fn line(text: &str) {
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            eprintln!("error: standard output: {error}");
            std::process::exit(2);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_not_written_even_by_force() {
        let directory = tempfile::tempdir().expect("there is room");
        let input = directory.path().join("input");
        std::fs::write(&input, "precious").expect("it can be written");
        flashyard_workbench::note_read(&input);
        let forced = refuse_existing("--save", &input, true).expect_err("no force helps");
        assert!(format!("{forced:#}").starts_with("--save: "), "{forced:#}");
        assert_eq!(std::fs::read_to_string(&input).expect("it is there"), "precious");
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
        let kept = create_private(&path).expect("it can be written");
        let busy = create_private(&path).expect_err("it is being written").to_string();
        assert!(busy.contains("another process writes it"), "{busy}");
        drop(kept);
        drop(create_private(&path).expect("it can be written again"));
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
