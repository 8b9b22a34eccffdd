//! Files that are written whole or not at all, and never those that were read.

use crate::WorkbenchError;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Files that were read. A number of an inode may be given to another file once the first is gone, so that
/// identities are compared while both names exist.
static READ: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Notes that `path` is read, so that it is never written.
pub fn note_read(path: &Path) {
    READ.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    // Of the file itself, whatever links lead there.
    let found = std::fs::metadata(path).ok().filter(|found| found.is_file())?;
    Some((found.dev(), found.ino()))
}

/// Refuses to write what was read.
///
/// Errors: it was.
pub fn refuse_input(path: &Path) -> Result<(), WorkbenchError> {
    let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if identity(path).is_some_and(|written| read.iter().any(|input| identity(input) == Some(written))) {
        return Err(WorkbenchError::IsInput(path.to_owned()));
    }
    Ok(())
}

/// Lets `write` fill a file beside `path`, then renames it to `path`. When `write` fails, or ends with `None`
/// because it was interrupted, `path` stays as it was and nothing is left beside it.
///
/// Errors: a file that was read, that is no regular one, or that cannot be written; those of `write`.
pub fn replace_file<R, E: From<WorkbenchError>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<Option<R>, E>,
) -> Result<Option<R>, E> {
    refuse_input(path)?;
    let failed = |error| E::from(WorkbenchError::file(path, "cannot be written", error));
    // A directory cannot be replaced, and a device must not be.
    let Some(name) = path.file_name().filter(|_| path.is_file() || !path.exists()) else {
        return Err(WorkbenchError::NoRegularFile(path.to_owned()).into());
    };
    let partial = path.with_file_name(format!(".{}.partial", name.display()));
    let mut file = BufWriter::new(File::create(&partial).map_err(failed)?);
    let written = write(&mut file).and_then(|result| {
        file.flush().map_err(failed)?;
        if result.is_some() {
            std::fs::rename(&partial, path).map_err(failed)?;
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
            let refused = replace_file(name, |_| Ok::<_, WorkbenchError>(Some(())));
            let text = refused.expect_err("it is read").to_string();
            assert!(text.contains("this command reads that file"), "{text}");
        }
        assert_eq!(std::fs::read_to_string(&input).expect("it is there"), "precious");
    }

    #[test]
    fn a_file_that_is_not_finished_leaves_the_one_before() {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().join("file");
        std::fs::write(&path, "before").expect("it can be written");
        let interrupted = replace_file(&path, |file| {
            file.write_all(b"after").map_err(|error| WorkbenchError::file(&path, "cannot be written", error))?;
            Ok::<Option<()>, WorkbenchError>(None)
        });
        assert!(matches!(interrupted, Ok(None)));
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "before");
        assert_eq!(std::fs::read_dir(directory.path()).expect("it is there").count(), 1);
    }
}
