//! States of overwritten drives from run to run, in the user's cache.
//!
//! A drive is overwritten for seconds to minutes before some runs. Its state follows from the program, the drive, the overwrites and
//! the seed alone, so a later run that needs the same one finds it here. Anything here may be deleted at any time.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Result, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The environment variable that names another directory, or turns the cache off.
const VARIABLE: &str = "FLASHYARD_CACHE";

/// Bytes of all files at most; those that were used longest ago give way. Source: \[A\] some tens of drives.
const BYTES_MOST: u64 = 8 << 30;

/// The compression of a file. Source: \[A\] the fastest: places of random data do not compress further.
const COMPRESSION: i32 = 1;

/// A directory of kept states.
pub(crate) struct AgedCache {
    directory: PathBuf,
    build: String,
}

impl AgedCache {
    /// The cache of the user who runs the program: `aged` below the directory that `FLASHYARD_CACHE` names, below
    /// `flashyard` in `XDG_CACHE_HOME`, or in `.cache` of the home directory. `None` where there is none of these, and with
    /// `FLASHYARD_CACHE=off`.
    pub(crate) fn of_user() -> Option<Self> {
        let directory = directory(|name| std::env::var_os(name).filter(|value| !value.is_empty()))?;
        Some(Self { directory, build: crate::kept::build().ok()? })
    }

    /// The state kept under `key`; `None` where there is none, or none that can be read.
    pub(crate) fn find(&self, key: &str, most_bytes: u64) -> Option<Vec<u8>> {
        let file = File::options().read(true).write(true).open(self.path(key)).ok()?;
        // Files that are used stay.
        file.set_modified(SystemTime::now()).ok()?;
        let mut bytes = Vec::new();
        let unpacked = zstd::Decoder::new(file).ok()?;
        let read = unpacked.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes).ok()?;
        (read as u64 <= most_bytes).then_some(bytes)
    }

    /// Keeps a state under `key`, whole or not at all, and lets go of the oldest where there are too many bytes.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn keep(&self, key: &str, bytes: &[u8]) -> Result<()> {
        self.keep_within(key, bytes, BYTES_MOST)
    }

    fn keep_within(&self, key: &str, bytes: &[u8], most: u64) -> Result<()> {
        fs::create_dir_all(&self.directory)?;
        let path = self.path(key);
        // Two runs may make the same state at once.
        let part = path.with_extension(format!("{}-{:?}.part", std::process::id(), std::thread::current().id()));
        let written = File::create(&part).and_then(|file| {
            let mut packer = zstd::Encoder::new(file, COMPRESSION)?;
            packer.write_all(bytes)?;
            packer.finish()?;
            fs::rename(&part, &path)
        });
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written.and_then(|()| trim(&self.directory, most))
    }

    fn path(&self, key: &str) -> PathBuf {
        let hash = flashyard_served::codec::hash_of_bytes(format!("{} {key}", self.build).as_bytes());
        self.directory.join(format!("{hash:016x}.aged"))
    }
}

fn directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let base = match variable(VARIABLE) {
        Some(off) if off == "off" => return None,
        Some(own) => PathBuf::from(own),
        None => match variable("XDG_CACHE_HOME") {
            Some(cache) => Path::new(&cache).join("flashyard"),
            None => Path::new(&variable("HOME")?).join(".cache/flashyard"),
        },
    };
    Some(base.join("aged"))
}

/// Deletes the files that were used longest ago until the others have at most `most` bytes.
fn trim(directory: &Path, most: u64) -> Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // A file may be gone by now: another run does the same.
        if let Ok(about) = entry.metadata()
            && entry.path().extension().is_some_and(|extension| extension == "aged")
        {
            files.push((about.modified()?, about.len(), entry.path()));
        }
    }
    files.sort_unstable();
    let mut bytes: u64 = files.iter().map(|file| file.1).sum();
    for (_, length, path) in files {
        if bytes <= most {
            break;
        }
        let _ = fs::remove_file(path);
        bytes -= length;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn cache(directory: &Path, build: &str) -> AgedCache {
        AgedCache { directory: directory.join("aged"), build: build.to_owned() }
    }

    #[test]
    fn a_state_is_found_by_its_program_and_its_key() {
        let directory = tempfile::tempdir().expect("there is room");
        let ours = cache(directory.path(), "1");
        assert_eq!(ours.find("a", 100), None);
        ours.keep("a", &[7; 100]).expect("it can be written");
        assert_eq!(ours.find("a", 100), Some(vec![7; 100]));
        assert_eq!(ours.find("a", 99), None, "too large for its drive");
        assert_eq!(ours.find("b", 100), None);
        assert_eq!(cache(directory.path(), "2").find("a", 100), None, "its overwrites may differ");
        fs::write(ours.path("a"), b"damaged").expect("it can be written");
        assert_eq!(ours.find("a", 100), None);
    }

    #[test]
    fn states_that_were_used_longest_ago_give_way() {
        let directory = tempfile::tempdir().expect("there is room");
        let ours = cache(directory.path(), "1");
        let bytes: Vec<u8> =
            (0..4000_u32).flat_map(|number| number.wrapping_mul(2_654_435_769).to_le_bytes()).collect();
        for (age, key) in ["a", "b"].into_iter().enumerate() {
            ours.keep(key, &bytes).expect("it can be written");
            let before = SystemTime::now() - Duration::from_secs(1000 - age as u64);
            File::options().write(true).open(ours.path(key)).and_then(|file| file.set_modified(before)).expect("ours");
        }
        assert!(ours.find("a", 1 << 20).is_some(), "now it was used after b");
        ours.keep_within("c", &bytes, bytes.len() as u64 * 5 / 2).expect("it can be written");
        let found = ["a", "b", "c"].map(|key| ours.find(key, 1 << 20).is_some());
        assert_eq!(found, [true, false, true]);
    }

    #[test]
    fn the_directory_is_that_of_the_user() {
        let of = |variables: &'static [(&str, &str)]| {
            directory(|name| variables.iter().find(|entry| entry.0 == name).map(|entry| entry.1.into()))
        };
        assert_eq!(of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]), Some("/c/flashyard/aged".into()));
        assert_eq!(of(&[("HOME", "/h")]), Some("/h/.cache/flashyard/aged".into()));
        assert_eq!(of(&[("HOME", "/h"), ("FLASHYARD_CACHE", "/mine")]), Some("/mine/aged".into()));
        assert_eq!(of(&[("HOME", "/h"), ("FLASHYARD_CACHE", "off")]), None);
        assert_eq!(of(&[]), None);
    }
}
