//! Reads being rebuilt from the other members of their stripes.

use flashyard_flash::FlashCommand;

/// Purpose of a rebuilt read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rebuilt {
    /// That many slots of a host's command.
    Command(u32, u32),
    /// A die row that garbage collection moves.
    Row(u32),
}

/// Fate of data that flash has not given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// There is no parity.
    Lost,
    /// The other members are in the write buffer.
    AtHand,
    /// The other members are being read.
    UnderWay,
}

/// A multi-plane read that is being rebuilt.
#[derive(Clone, Copy)]
pub(crate) struct Rebuild {
    pub(crate) target: Rebuilt,
    /// Flash reads that have not completed.
    pub(crate) remaining: u32,
    /// Whether flash did not give it back at first, so that no other member may fail.
    pub(crate) recovers: bool,
    pub(crate) failed: bool,
}

/// Reads being rebuilt.
#[derive(Default)]
pub(crate) struct Rebuilds {
    all: Vec<Rebuild>,
    free: Vec<u32>,
    /// The flash reads of the one at hand: their memory is used again.
    pub(crate) reads: Vec<FlashCommand>,
}

impl Rebuilds {
    /// Takes a rebuild in; returns its number.
    pub(crate) fn add(&mut self, rebuild: Rebuild) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = rebuild;
                number
            }
            None => {
                self.all.push(rebuild);
                (self.all.len() - 1) as u32
            }
        }
    }

    /// A flash read of a rebuild was given up.
    pub(crate) fn fail(&mut self, number: u32) {
        self.all[number as usize].failed = true;
    }

    /// A flash read has completed; returns the rebuild if it was the last one.
    pub(crate) fn read_done(&mut self, number: u32) -> Option<Rebuild> {
        let rebuild = &mut self.all[number as usize];
        rebuild.remaining -= 1;
        if rebuild.remaining > 0 {
            return None;
        }
        self.free.push(number);
        Some(self.all[number as usize])
    }

    /// All commands have vanished; returns the die rows that garbage collection waits for: it reads them again.
    pub(crate) fn clear(&mut self) -> Vec<u32> {
        let under_way = self.all.iter().filter(|rebuild| rebuild.remaining > 0);
        let row_of = |rebuild: &Rebuild| match rebuild.target {
            Rebuilt::Row(row) => Some(row),
            Rebuilt::Command(..) => None,
        };
        let rows = under_way.filter_map(row_of).collect();
        self.all.clear();
        self.free.clear();
        rows
    }
}
