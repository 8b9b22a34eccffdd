//! The personalities.

use super::step::Step::{self, Append, Close, Create, Delete, Fsync, Log, Open, Read, Stat, Write};
use crate::distribution::{Table, gamma, tabular};
use flashyard_kernel::Rng;
use flashyard_units::Named;

/// Gamma's shape of sizes whose personality gives a mean only. Source: [X] filebench's default of 1,500 thousandths.
const SIZE_SHAPE: f64 = 1.5;

/// Bytes of one call of a personality that says so. Source: [C] `$iosize` of fileserver and varmail.
const CALL_BYTES: u64 = 1 << 20;

/// A personality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonalityName {
    /// A file server: files are made, appended to, read whole and deleted.
    Fileserver,
    /// A network file server: programs start, files are rewritten under another name, some grow.
    Netsfs,
    /// A mail server: mail is made, read and made durable.
    Varmail,
    /// A web server: pages are read whole, and a log grows.
    Webserver,
}

impl Named for PersonalityName {
    const ALL: &'static [Self] = &[Self::Fileserver, Self::Netsfs, Self::Varmail, Self::Webserver];

    fn name(self) -> &'static str {
        match self {
            Self::Fileserver => "fileserver",
            Self::Netsfs => "netsfs",
            Self::Varmail => "varmail",
            Self::Webserver => "webserver",
        }
    }
}

/// Sizes of files or of appends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sizes {
    /// Gamma with this mean in bytes.
    Gamma(u64),
    /// Uniform up to this many bytes, at least one.
    UpTo(u64),
    /// From a table.
    Table(Table),
}

impl Sizes {
    pub(crate) fn draw(self, rng: &mut Rng) -> u64 {
        match self {
            Self::Gamma(mean) => (gamma(SIZE_SHAPE, mean as f64, rng) as u64).max(1),
            Self::UpTo(most) => 1 + rng.below(most),
            Self::Table(table) => tabular(table, rng),
        }
    }
}

/// A choice of files by index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Choice {
    /// In turn.
    InTurn,
    /// By a gamma distribution of this shape over the entries, around a mean of half of them.
    Gamma(f64),
}

/// A personality's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Personality {
    /// Its name.
    pub name: PersonalityName,
    /// Entries of the fileset by default.
    pub entries: u32,
    /// Threads.
    pub threads: u32,
    /// Entries that are there when the program starts, in percent.
    pub preallocated_percent: u32,
    /// Rounds of the steps that the program begins in a second at most; `None` for as many as it can.
    pub rounds_per_second: Option<u32>,
    /// Mean entries of a directory.
    pub directory_width: u32,
    pub(crate) sizes: Sizes,
    pub(crate) appends: Sizes,
    pub(crate) choice: Choice,
    pub(crate) call_bytes: u64,
    pub(crate) phases: &'static [Phase],
}

/// [C] netsfs: rows of percent and KiB.
const NETSFS_SIZES: Table = &[
    (33, 1, 1),
    (21, 1, 3),
    (13, 3, 5),
    (10, 5, 11),
    (8, 11, 21),
    (5, 21, 43),
    (4, 43, 85),
    (3, 85, 171),
    (2, 171, 341),
    (1, 341, 1707),
];

/// [C] netsfs: sizes of writes.
const NETSFS_WRITES: Table = &[(50, 9, 15), (14, 17, 23), (14, 33, 39), (12, 65, 71), (10, 129, 135)];

/// Steps, and how often they come in a round.
pub(crate) type Phase = (&'static [Step], u32);

/// [C] fileserver.
const FILESERVER: &[Phase] = &[(
    &[Create(0), Write(0), Close(0), Open(0), Append(0), Close(0), Open(0), Read(0), Close(0), Delete(None), Stat],
    1,
)];

/// [C] varmail.
const VARMAIL: &[Phase] = &[
    (&[Delete(None), Create(0), Append(0), Fsync(0), Close(0)], 1),
    (&[Open(0), Read(0), Append(0), Fsync(0), Close(0), Open(0), Read(0), Close(0)], 1),
];

/// [C] webserver: ten pages for a line of the log, which is the first file here.
const WEBSERVER: &[Phase] = &[(&[Open(0), Read(0), Close(0)], 10), (&[Log], 1)];

/// [C] netsfs: a launch, rewrites under another name, appends and a look.
const NETSFS: &[Phase] = &[
    (&[Open(2), Read(2), Open(3), Read(3), Close(2), Open(4), Read(4), Close(3), Close(4)], 1),
    (&[Open(0), Read(0), Create(1), Write(1), Close(1), Delete(Some(0))], 6),
    (&[Open(5), Append(5), Close(5)], 3),
    (&[Stat], 1),
];

impl Personality {
    /// Mean pages of 4 KiB of a file as it is made, from ten thousand draws.
    pub fn mean_pages(&self, seed: u64) -> f64 {
        let mut rng = Rng::named(seed, "applications.sizes");
        let draws = 10_000_u32;
        let pages: u64 = (0..draws).map(|_| self.sizes.draw(&mut rng).div_ceil(4096)).sum();
        pages as f64 / f64::from(draws)
    }

    /// The steps of a round.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.phases.iter().flat_map(|&(steps, count)| steps.repeat(count as usize)).collect()
    }

    /// A personality with its published defaults.
    pub const fn of(name: PersonalityName) -> Self {
        match name {
            PersonalityName::Fileserver => Self {
                name,
                entries: 10_000,                // [C]
                threads: 50,                    // [C]
                preallocated_percent: 80,       // [C]
                rounds_per_second: None,        // [C]
                directory_width: 20,            // [C]
                sizes: Sizes::Gamma(128 << 10), // [C]
                appends: Sizes::UpTo(16 << 10), // [C]
                choice: Choice::InTurn,
                call_bytes: CALL_BYTES,
                phases: FILESERVER,
            },
            PersonalityName::Netsfs => Self {
                name,
                entries: 100_000,            // [C]
                threads: 1,                  // [C]
                preallocated_percent: 60,    // [C]
                rounds_per_second: Some(10), // [C] `$eventrate`
                directory_width: 20,         // [C]
                sizes: Sizes::Table(NETSFS_SIZES),
                appends: Sizes::Table(NETSFS_WRITES),
                choice: Choice::Gamma(0.1), // [C] a gamma of 100 thousandths
                call_bytes: 8 << 10,        // [C] reads are of 8 KiB in 85 of 100 cases
                phases: NETSFS,
            },
            PersonalityName::Webserver => Self {
                name,
                entries: 1000,                  // [C]
                threads: 100,                   // [C]
                preallocated_percent: 100,      // [C]
                rounds_per_second: None,        // [C]
                directory_width: 20,            // [C]
                sizes: Sizes::Gamma(16 << 10),  // [C]
                appends: Sizes::UpTo(16 << 10), // [C]
                choice: Choice::InTurn,
                call_bytes: CALL_BYTES,
                phases: WEBSERVER,
            },
            PersonalityName::Varmail => Self {
                name,
                entries: 1000,                  // [C]
                threads: 16,                    // [C]
                preallocated_percent: 80,       // [C]
                rounds_per_second: None,        // [C]
                directory_width: 1_000_000,     // [C]
                sizes: Sizes::Gamma(16 << 10),  // [C]
                appends: Sizes::UpTo(16 << 10), // [C]
                choice: Choice::InTurn,
                call_bytes: CALL_BYTES,
                phases: VARMAIL,
            },
        }
    }
}
