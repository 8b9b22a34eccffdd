//! Control of a mount by other programs: extended attributes of its root.

use flashyard_cvfs::{Method, Usage};
use rustix::fs::{FsWord, XattrFlags, getxattr, setxattr, statfs};
use rustix::io::Errno;
use std::path::Path;
use std::time::Duration;

/// Written to shrink: bytes and method. Read: how it goes.
pub(crate) const SHRINK: &str = "user.cvfs.shrink";
/// Read: space and counters.
pub(crate) const INFO: &str = "user.cvfs.info";
/// Read: blocks of the volume, those that files use, and the least that it could shrink to.
pub(crate) const USAGE: &str = "user.cvfs.usage";
/// Value of [`SHRINK`] until the change of size is over.
pub(crate) const UNDER_WAY: &str = "under way";
/// The kind of a file system that a program serves. Source: statfs(2)
const FUSE: FsWord = 0x6573_5546;
/// Between looks at how it goes.
const LOOK: Duration = Duration::from_millis(5);

/// Why a mount did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No volume of this kind is mounted there.
    #[error("{path}: no volume is mounted there; give the directory that `flashyard cvfs mount` was given")]
    NoMount {
        /// The directory.
        path: String,
    },
    /// The mount refuses.
    #[error("the mount refuses {attribute}")]
    Refused {
        /// The attribute.
        attribute: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The mount tried, and could not.
    #[error("{0}")]
    Failed(String),
}

/// A request to shrink a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Size wanted, in bytes.
    pub bytes: u64,
    /// How to get there.
    pub method: Method,
}

/// The method of this name.
pub fn parse_method(name: &str) -> Option<Method> {
    match name {
        "remap" => Some(Method::Remap),
        "relocate" => Some(Method::Relocate),
        "holes" => Some(Method::Holes),
        _ => None,
    }
}

impl Asked {
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(text).ok()?.split_whitespace();
        let bytes = words.next()?.parse().ok()?;
        let method = parse_method(words.next()?)?;
        Some(Self { bytes, method })
    }
}

fn refused(attribute: &'static str) -> impl Fn(Errno) -> ControlError {
    move |source| ControlError::Refused { attribute, source: source.into() }
}

fn read(mount: &Path, attribute: &'static str) -> Result<String, ControlError> {
    let mut bytes = vec![0; 4096];
    let len = getxattr(mount, attribute, &mut bytes[..]).map_err(refused(attribute))?;
    Ok(String::from_utf8_lossy(&bytes[..len]).into_owned())
}

/// Whether a volume is mounted at `mount`. Any directory of most file systems takes our attributes, and keeps them.
///
/// Errors: no volume is mounted there.
fn check(mount: &Path) -> Result<(), ControlError> {
    let is_fuse = statfs(mount).is_ok_and(|found| found.f_type == FUSE);
    let is_ours = || read(mount, USAGE).is_ok_and(|text| parse_usage(&text).is_some());
    if is_fuse && is_ours() { Ok(()) } else { Err(ControlError::NoMount { path: mount.display().to_string() }) }
}

/// Space and counters of a mount, as text.
///
/// Errors: no such mount.
pub fn ask_info(mount: &Path) -> Result<String, ControlError> {
    check(mount)?;
    read(mount, INFO)
}

pub(crate) fn usage_text(usage: &Usage) -> String {
    format!("{} {} {}", usage.blocks, usage.used, usage.blocks_min)
}

/// Blocks of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeUsage {
    /// All blocks.
    pub blocks: u32,
    /// Blocks in use by files.
    pub used: u32,
    /// The least that it could shrink to now.
    pub least: u32,
}

fn parse_usage(text: &str) -> Option<VolumeUsage> {
    let mut numbers = text.split(' ').map(|word| word.parse().ok());
    Some(VolumeUsage { blocks: numbers.next()??, used: numbers.next()??, least: numbers.next()?? })
}

/// Blocks of a mount.
///
/// Errors: no such mount, or one of another version.
pub(crate) fn ask_usage(mount: &Path) -> Result<VolumeUsage, ControlError> {
    check(mount)?;
    let text = read(mount, USAGE)?;
    parse_usage(&text).ok_or_else(|| ControlError::Failed(format!("{USAGE} is {text:?}")))
}

/// Asks a mount to shrink, and waits until it has; returns the outcome as text.
///
/// Errors: no such mount, or it refuses or fails.
pub fn ask_shrink(mount: &Path, asked: Asked) -> Result<String, ControlError> {
    let method = match asked.method {
        Method::Remap => "remap",
        Method::Relocate => "relocate",
        Method::Holes => "holes",
    };
    check(mount)?;
    let text = format!("{} {method}", asked.bytes);
    setxattr(mount, SHRINK, text.as_bytes(), XattrFlags::empty()).map_err(refused(SHRINK))?;
    loop {
        std::thread::sleep(LOOK);
        let state = read(mount, SHRINK)?;
        if let Some(done) = state.strip_prefix("done: ") {
            return Ok(done.to_owned());
        }
        if let Some(failed) = state.strip_prefix("failed: ") {
            return Err(ControlError::Failed(failed.to_owned()));
        }
        if state != UNDER_WAY {
            return Err(ControlError::Failed(format!("the mount does not say how it goes: {SHRINK} is {state:?}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_no_mount_is_refused_at_once_and_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let asked = Asked { bytes: 1 << 20, method: Method::Relocate };
        let refused = |refused: ControlError| {
            assert!(matches!(refused, ControlError::NoMount { .. }), "{refused}");
            assert!(refused.to_string().contains("no volume is mounted there"), "{refused}");
        };
        refused(ask_shrink(directory.path(), asked).unwrap_err());
        refused(ask_info(directory.path()).unwrap_err());
        assert!(getxattr(directory.path(), SHRINK, &mut [0; 64][..]).is_err(), "no attribute is left behind");
        // Left behind by a version that did not look, where directories take attributes.
        let names = [(USAGE, "1 1 1"), (SHRINK, "4096 remap")];
        for (name, value) in names {
            let _ = setxattr(directory.path(), name, value.as_bytes(), XattrFlags::empty());
        }
        refused(ask_shrink(directory.path(), asked).unwrap_err());
        refused(ask_shrink(&directory.path().join("missing"), asked).unwrap_err());
    }

    #[test]
    fn a_size_and_a_method_are_understood_and_nothing_else() {
        assert_eq!(Asked::parse(b"4096 remap"), Some(Asked { bytes: 4096, method: Method::Remap }));
        for text in [&b"4096"[..], b"remap 4096", b"-1 remap", b"1 other", b"\xff\xff"] {
            assert_eq!(Asked::parse(text), None);
        }
    }
}
