//! filebench's personalities as file operations.
//!
//! 1. A fileset has so many entries, each with a size of its own; a share of them is there when the program starts.
//! 2. Each thread does the steps of its personality one after the other, for ever: it makes, opens, writes, reads, deletes
//!    and looks at files. A file that a thread holds open is no other thread's.
//! 3. Files that no index chooses are taken in turn: each thread opens the next idle one after that it opened before.
//!
//! Bytes tell their file, how often it was made, and their place, so that a mix-up is found by comparing contents.
//!
//! Source: [C] the files `fileserver.f`, `netsfs.f`, `varmail.f` and `webserver.f` of filebench 1.5; [X] how it chooses files.

mod fileset;
mod personality;
mod program;
mod step;

pub use fileset::Fileset;
pub use personality::{Personality, PersonalityName};
pub use program::{Done, Program, fill};
pub use step::Step;
