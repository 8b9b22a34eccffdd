//! Steps of a personality.

/// One step of a personality; numbers are a thread's own names of open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes a file and holds it.
    Create(u8),
    /// Opens the next file and holds it.
    Open(u8),
    /// Writes all of the held file.
    Write(u8),
    /// Appends to the held file.
    Append(u8),
    /// Reads all of the held file.
    Read(u8),
    /// Makes the held file durable.
    Fsync(u8),
    /// Lets the held file go.
    Close(u8),
    /// Deletes the held file, or the next one.
    Delete(Option<u8>),
    /// Looks at the next file.
    Stat,
    /// Appends to the log, a file of its own that all threads share.
    Log,
}
