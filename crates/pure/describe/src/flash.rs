//! The `[drive.flash]` section: what the flash of a drive can do beyond one command at a time, page by page.

use crate::error::{ScenarioError, value};
use crate::quantity::Time;
use flashyard_flash::Geometry;
use flashyard_nand::{Capabilities, SingleLevel, Suspend, WordLine};
use flashyard_units::SimSpan;
use schemars::JsonSchema;
use serde::Deserialize;

/// Capabilities of flash. Absent keys leave it without them, as the published XBOF drive is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlashSection {
    /// Whether the planes of a die sense one page each on their own.
    pub independent_planes: bool,
    /// Whether a read sends the 4 KiB that are wanted over the bus, and not whole pages.
    pub partial_transfers: bool,
    /// Cache read: time to hand a sensed page over to the cache register, so that the next is sensed while it is sent;
    /// without the key there is no such register.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    pub cache_read: Option<Time>,
    /// Cache program: whether the data of the next program is taken in while the array programs.
    pub cache_program: bool,
    /// Pages of a plane that are programmed together: 1, or the bits of a cell, up to 4; 1 without the key.
    #[schemars(range(min = 1, max = 4))]
    pub pages_per_program: Option<u32>,
    /// Time to program a whole word line, the first pass where there are two; that of its pages, one after the other, without
    /// the key.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    pub word_line_program: Option<Time>,
    /// Time of the second pass of a word line, for which its data is sent again.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    pub word_line_fine: Option<Time>,
    /// Read time of the fourth page of a word line; that of MSB pages without the key.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    pub read_top: Option<Time>,
    /// Read time of cells that hold one bit; that of LSB pages without the key.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    pub single_level_read: Option<Time>,
    /// Program time of cells that hold one bit; that of LSB pages without the key.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    pub single_level_program: Option<Time>,
    /// Command, address and status cycles on the bus for each command; none without the key.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    pub command_cycles: Option<Time>,
    /// How often a busy die is asked for its status; without the key a ready/busy line tells at once.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1 ms"))]
    pub status_poll: Option<Time>,
    /// Suspension of programs and erases for reads; none without it.
    pub suspend: Option<SuspendSection>,
}

/// How programs and erases make way for reads.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuspendSection {
    /// Whether programs make way.
    pub programs: bool,
    /// Whether erases make way.
    pub erases: bool,
    /// Time from the command until the array can sense.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "10 ms"))]
    pub entry: Time,
    /// Time that resuming adds to the time that was left.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "10 ms"))]
    pub resume: Time,
    /// How often one operation makes way at most.
    #[schemars(range(min = 1, max = 1000))]
    pub most: u32,
}

impl SuspendSection {
    /// The rules by which operations make way.
    pub const fn rules(self) -> Suspend {
        Suspend {
            programs: self.programs,
            erases: self.erases,
            entry: self.entry.0,
            resume: self.resume.0,
            most: self.most,
        }
    }
}

impl FlashSection {
    /// Pages of a plane that are programmed together.
    pub fn pages_per_program(&self) -> u32 {
        self.pages_per_program.unwrap_or(1)
    }

    /// Capabilities of the flash of `geometry`; `lsb` are the times to read and program its first pages.
    ///
    /// Errors: keys that do not go together.
    pub fn capabilities(&self, geometry: &Geometry, lsb: (SimSpan, SimSpan)) -> Result<Capabilities, ScenarioError> {
        let word_line = match (geometry.pages_per_program, self.word_line_program) {
            (1, None) => None,
            (1, Some(_)) => {
                return Err(value(
                    "drive.flash.word_line_program",
                    "drive.flash.pages_per_program says that each page is programmed alone".to_owned(),
                ));
            }
            (pages, None) => {
                let fine = self.word_line_fine.map(|time| time.0);
                Some(WordLine { program: lsb.1 * u64::from(pages), fine })
            }
            (_, Some(program)) => Some(WordLine { program: program.0, fine: self.word_line_fine.map(|time| time.0) }),
        };
        if word_line.is_none() && self.word_line_fine.is_some() {
            let message = "there is no first pass: give drive.flash.word_line_program".to_owned();
            return Err(value("drive.flash.word_line_fine", message));
        }
        let (read, program) = (self.single_level_read, self.single_level_program);
        let single_level = (read.is_some() || program.is_some()).then(|| SingleLevel {
            read: read.map_or(lsb.0, |time| time.0),
            program: program.map_or(lsb.1, |time| time.0),
        });
        Ok(Capabilities {
            independent_planes: self.independent_planes,
            partial_transfers: self.partial_transfers,
            cache_read: self.cache_read.map(|time| time.0),
            cache_program: self.cache_program,
            suspend: self.suspend.map(SuspendSection::rules),
            word_line,
            single_level,
            read_top: self.read_top.map(|time| time.0),
            command_cycles: self.command_cycles.map_or(SimSpan::ZERO, |time| time.0),
            status_poll: self.status_poll.map_or(SimSpan::ZERO, |time| time.0),
        })
    }
}
