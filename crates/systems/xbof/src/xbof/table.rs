//! The idle resource tables: descriptors in the drives' exposed memory, changed by compare-and-swap only.

use super::descriptor::Descriptor;
use flashyard_units::DriveId;

/// Uses of the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounters {
    /// Compare-and-swaps that changed a descriptor.
    pub swaps: u64,
    /// Compare-and-swaps that found another word than they expected.
    pub refused: u64,
}

/// The tables of all drives. Each has the same number of descriptors: processor offers first.
pub struct ResourceTables {
    words: Vec<u128>,
    per_drive: usize,
    counters: TableCounters,
}

impl ResourceTables {
    /// Tables of `drives` drives with `per_drive` invalid descriptors each.
    pub fn new(drives: usize, per_drive: usize) -> Self {
        let words = vec![Descriptor::INVALID.word(); drives * per_drive];
        Self { words, per_drive, counters: TableCounters::default() }
    }

    /// Descriptors of one drive.
    pub fn per_drive(&self) -> usize {
        self.per_drive
    }

    /// Uses so far.
    pub fn counters(&self) -> &TableCounters {
        &self.counters
    }

    /// Loads a descriptor. Panics beyond the tables.
    pub fn load(&self, drive: DriveId, index: u16) -> Descriptor {
        Descriptor::from_word(self.words[self.place(drive, index)])
    }

    /// Replaces a descriptor if it still is `expected`.
    ///
    /// Errors: the descriptor that is there instead.
    pub fn compare_and_swap(
        &mut self,
        drive: DriveId,
        index: u16,
        expected: Descriptor,
        new: Descriptor,
    ) -> Result<(), Descriptor> {
        let place = self.place(drive, index);
        let found = Descriptor::from_word(self.words[place]);
        if found != expected {
            self.counters.refused += 1;
            return Err(found);
        }
        self.words[place] = new.word();
        self.counters.swaps += 1;
        Ok(())
    }

    /// Loads, changes and swaps until no one else has come between; returns the new descriptor.
    pub fn update(&mut self, drive: DriveId, index: u16, change: impl Fn(Descriptor) -> Descriptor) -> Descriptor {
        let mut expected = self.load(drive, index);
        loop {
            let new = change(expected);
            match self.compare_and_swap(drive, index, expected, new) {
                Ok(()) => return new,
                Err(found) => expected = found,
            }
        }
    }

    /// Makes all descriptors of a drive invalid, as its initialization does: what peers read before no longer matches.
    pub fn initialize(&mut self, drive: DriveId) {
        for index in 0..self.per_drive as u16 {
            self.update(drive, index, |descriptor| descriptor.released().withdrawn());
        }
    }

    fn place(&self, drive: DriveId, index: u16) -> usize {
        assert!((index as usize) < self.per_drive, "descriptor {index} of {}", self.per_drive);
        drive.index() * self.per_drive + index as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::descriptor::DescriptorKind;
    use super::*;

    #[test]
    fn of_two_borrowers_that_read_the_same_offer_one_gets_it() {
        let mut tables = ResourceTables::new(3, 1);
        tables.update(DriveId::new(2), 0, |descriptor| descriptor.offered(DescriptorKind::Processor, 0, 0));
        let read = tables.load(DriveId::new(2), 0);
        let (first, second) =
            (read.taken(DriveId::new(0), 0).expect("free"), read.taken(DriveId::new(1), 0).expect("free"));
        assert_eq!(tables.compare_and_swap(DriveId::new(2), 0, read, first), Ok(()));
        assert_eq!(tables.compare_and_swap(DriveId::new(2), 0, read, second), Err(first));
        assert_eq!(tables.load(DriveId::new(2), 0).borrower(), Some(DriveId::new(0)));
        assert_eq!(*tables.counters(), TableCounters { swaps: 2, refused: 1 });
    }

    #[test]
    fn a_swap_that_was_on_its_way_when_the_drive_started_anew_is_refused() {
        let mut tables = ResourceTables::new(1, 1);
        tables.update(DriveId::new(0), 0, |descriptor| descriptor.offered(DescriptorKind::Memory, 4, 0));
        let read = tables.load(DriveId::new(0), 0);
        tables.initialize(DriveId::new(0));
        assert!(
            tables
                .compare_and_swap(DriveId::new(0), 0, read, read.taken(DriveId::new(1), 0).expect("it was free"))
                .is_err()
        );
    }
}
