//! Formats of traces of loads and stores.

use super::csv::Csv;
use super::lines::{AccessLines, Gem5, Lackey, Ramulator, Ucsd};
use flashyard_units::Named;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessFormat {
    /// Valgrind's tool lackey with `--trace-mem=yes`.
    Lackey,
    /// gem5's packets, as its `decode_packet_trace.py` prints them.
    Gem5,
    /// Separated values with a header.
    Csv,
    /// Address traces of UCSD's course CSE 240A.
    Ucsd,
    /// Processor traces of Ramulator.
    Ramulator,
    /// ChampSim's records of instructions.
    Champsim,
}

impl Named for AccessFormat {
    const ALL: &'static [Self] = &[Self::Lackey, Self::Gem5, Self::Csv, Self::Ucsd, Self::Ramulator, Self::Champsim];

    fn name(self) -> &'static str {
        match self {
            Self::Lackey => "lackey",
            Self::Gem5 => "gem5",
            Self::Csv => "csv",
            Self::Ucsd => "ucsd",
            Self::Ramulator => "ramulator",
            Self::Champsim => "champsim",
        }
    }
}

impl AccessFormat {
    /// Form of a row, for messages.
    pub(super) const fn accepted(self) -> &'static str {
        match self {
            Self::Lackey => "\"I  address,size\", or \" L\", \" S\" or \" M\" in place of I, the address in hex",
            Self::Gem5 => "r|w|command, address, size, flags, tick and up to two more, separated by commas",
            Self::Csv => "the columns of the header: op, address, and size and gap where there are any",
            Self::Ucsd => "l|s, address in hex with 0x, instructions since the last access, separated by blanks",
            Self::Ramulator => "instructions before, address, and the address of a written line where there is one",
            Self::Champsim => {
                "64 bytes: instruction, is and takes a branch (0 or 1), six registers, two stores, four loads"
            }
        }
    }

    /// A parser of its lines; `None` where it has records.
    pub(super) fn lines(self) -> Option<Box<dyn AccessLines>> {
        Some(match self {
            Self::Lackey => Box::new(Lackey),
            Self::Gem5 => Box::new(Gem5),
            Self::Csv => Box::new(Csv::default()),
            Self::Ucsd => Box::new(Ucsd),
            Self::Ramulator => Box::new(Ramulator),
            Self::Champsim => return None,
        })
    }

    /// The format of text that begins with these lines: the first of which all of them are rows.
    pub(super) fn detect(lines: &[String]) -> Option<Self> {
        let fits = |format: &Self| {
            let Some(mut parser) = format.lines() else { return false };
            let mut pending = super::row::Pending::default();
            let rows = lines.iter().filter(|line| !line.trim().is_empty());
            let all = rows.clone().all(|line| parser.parse(line, &mut pending).is_ok());
            all && pending.take().is_some()
        };
        Self::ALL.iter().copied().find(fits)
    }
}
