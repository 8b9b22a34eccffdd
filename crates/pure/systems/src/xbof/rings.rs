//! The message queues of all pairs of drives. Of the pairs of a rack only a few ever lend: a ring exists from its first
//! use on, and until then costs one pointer.

use super::message::MessageRing;

/// Rings by owner and lender.
pub struct Rings {
    rings: Vec<Option<Box<MessageRing>>>,
    drives: usize,
}

impl Rings {
    /// No ring yet, for `drives` drives.
    pub fn new(drives: usize) -> Self {
        Self { rings: (0..drives * drives).map(|_| None).collect(), drives }
    }

    /// The ring that `lender` fills for `owner`.
    #[inline]
    pub fn get(&mut self, owner: u16, lender: u16) -> &mut MessageRing {
        self.rings[owner as usize * self.drives + lender as usize].get_or_insert_default()
    }

    /// The commands that entries in the rings are about; one may come several times.
    pub fn commands(&self) -> impl Iterator<Item = u32> + '_ {
        self.rings.iter().flatten().flat_map(|ring| ring.commands())
    }

    /// Closes all rings of `drive`, as owner and as lender. Nobody knows the generation of a ring that was never used:
    /// it need not change.
    pub fn close(&mut self, drive: u16) {
        let (drive, drives) = (drive as usize, self.drives);
        let both = (0..drives).flat_map(|peer| [peer * drives + drive, drive * drives + peer]);
        for index in both {
            if let Some(ring) = &mut self.rings[index] {
                ring.close();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_of_other_drives_stay_open() {
        let mut rings = Rings::new(3);
        let before = [(0, 1), (1, 0), (1, 2)].map(|(owner, lender)| rings.get(owner, lender).generation());
        rings.close(0);
        let after = [(0, 1), (1, 0), (1, 2)].map(|(owner, lender)| rings.get(owner, lender).generation());
        assert_ne!(after[..2], before[..2]);
        assert_eq!(after[2], before[2]);
        assert_eq!(rings.rings.iter().flatten().count(), 3);
    }
}
