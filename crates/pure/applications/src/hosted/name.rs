//! The programs that can be hosted, and how much they do by default.

use crate::filebench::PersonalityName;
use flashyard_units::Named;

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramName {
    /// filebench's file server: files are made, appended to, read whole and deleted.
    Fileserver,
    /// filebench's web server: files are read whole, and a log grows.
    Webserver,
    /// filebench's mail server: mail is made, read and made durable.
    Varmail,
    /// `overwrite` of db_bench: records of random keys are written again.
    Overwrite,
    /// `readrandom` of db_bench: records of random keys are read.
    ReadRandom,
    /// `readrandomwriterandom` of db_bench: reads, and writes between them.
    ReadRandomWriteRandom,
}

impl Named for ProgramName {
    const ALL: &'static [Self] = &[
        Self::Fileserver,
        Self::Webserver,
        Self::Varmail,
        Self::Overwrite,
        Self::ReadRandom,
        Self::ReadRandomWriteRandom,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Fileserver => "fileserver",
            Self::Webserver => "webserver",
            Self::Varmail => "varmail",
            Self::Overwrite => "overwrite",
            Self::ReadRandom => "readrandom",
            Self::ReadRandomWriteRandom => "readrandomwriterandom",
        }
    }
}

/// Work of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Filebench(PersonalityName),
    /// Clients of a store, of whose requests this share are reads.
    Store(f64),
}

impl ProgramName {
    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::Fileserver => Kind::Filebench(PersonalityName::Fileserver),
            Self::Webserver => Kind::Filebench(PersonalityName::Webserver),
            Self::Varmail => Kind::Filebench(PersonalityName::Varmail),
            Self::Overwrite => Kind::Store(0.0),
            Self::ReadRandom => Kind::Store(1.0),
            // [C] db_bench: `readwritepercent` is 90 by default.
            Self::ReadRandomWriteRandom => Kind::Store(0.9),
        }
    }
}
