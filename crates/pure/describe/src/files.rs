//! Files around a scenario, as their owner gives them.

use flashyard_workload::Records;

/// Files that a scenario needs: profiles by path, traces and job files by name.
pub trait Files: Sync {
    /// The text of `profiles/{kind}/{name}.toml`.
    fn profile(&self, kind: &str, name: &str) -> Option<String>;

    /// Opens a trace from its beginning.
    ///
    /// Errors: what is wrong with it, with file and line.
    fn open_trace(&self, name: &str) -> Result<Records, String>;

    /// The text of a job file.
    ///
    /// Errors: why it cannot be read, with its name.
    fn text(&self, name: &str) -> Result<String, String> {
        Err(format!("{name}: no files can be read here"))
    }

    /// The bytes of a file of an aged drive, decompressed: at most `most_bytes`.
    ///
    /// Errors: why it cannot be read, or that there are more, with its name.
    fn bytes(&self, name: &str, most_bytes: u64) -> Result<Vec<u8>, String> {
        let _ = most_bytes;
        Err(format!("{name}: no files can be read here"))
    }
}

/// No files at all, for scenarios that need none.
pub struct NoFiles;

impl Files for NoFiles {
    fn profile(&self, _kind: &str, _name: &str) -> Option<String> {
        None
    }

    fn open_trace(&self, name: &str) -> Result<Records, String> {
        Err(format!("{name}: no files can be read here"))
    }
}
