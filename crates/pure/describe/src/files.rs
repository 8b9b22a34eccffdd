//! Files around a scenario, as their owner gives them.

use flashyard_memory::Access;
use flashyard_workload::Records;

/// Accesses of a traced program, or what is wrong with its file, with the place. The last ends it.
pub type AccessRecords = Box<dyn Iterator<Item = Result<Access, String>> + Send>;

/// Files that a scenario needs: profiles by path, traces and job files by name.
pub trait Files: Sync {
    /// The text of `profiles/{kind}/{name}.toml`, if there is one.
    ///
    /// Errors: it is there and cannot be read.
    fn profile(&self, kind: &str, name: &str) -> Result<Option<String>, String>;

    /// The command line gives the name of a file: it is looked up as that means it.
    fn given_by_flag(&self, name: &str) {
        let _ = name;
    }

    /// A name that finds the file called `name` from anywhere; `None` where there is no such file.
    fn place(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Opens a trace from its beginning.
    ///
    /// Errors: what is wrong with it, with file and line.
    fn open_trace(&self, name: &str) -> Result<Records, String>;

    /// Opens a trace of loads and stores from its beginning.
    ///
    /// Errors: what is wrong with it, with file and line.
    fn open_accesses(&self, name: &str) -> Result<AccessRecords, String> {
        Err(format!("{name}: no files can be read here"))
    }

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

    /// Overwritten slots from which on the state of a drive is kept from run to run; `None` where none is.
    fn keeps_aged_from(&self) -> Option<u64> {
        None
    }

    /// The state that was kept under `key` by this very program, decompressed, if it is there and has at most `most_bytes`.
    fn aged(&self, key: &str, most_bytes: u64) -> Option<Vec<u8>> {
        let _ = (key, most_bytes);
        None
    }

    /// Keeps a state under `key` for a time. A state that cannot be kept is made again when it is needed.
    fn keep_aged(&self, key: &str, bytes: &[u8]) {
        let _ = (key, bytes);
    }
}

/// No files at all, for scenarios that need none.
pub struct NoFiles;

impl Files for NoFiles {
    fn profile(&self, _kind: &str, _name: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn open_trace(&self, name: &str) -> Result<Records, String> {
        Err(format!("{name}: no files can be read here"))
    }
}
