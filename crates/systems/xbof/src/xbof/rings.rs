//! The message queues of all pairs of drives. Of the pairs of a rack only a few ever lend: a ring exists from its first
//! use on, and until then costs one pointer.

use super::message::MessageRing;
use flashyard_units::DriveId;

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
    pub fn get(&mut self, owner: DriveId, lender: DriveId) -> &mut MessageRing {
        self.rings[owner.index() * self.drives + lender.index()].get_or_insert_default()
    }

    /// The commands that entries in the rings are about; one may come several times.
    pub fn commands(&self) -> impl Iterator<Item = u32> + '_ {
        self.rings.iter().flatten().flat_map(|ring| ring.commands())
    }

    /// Closes all rings of `drive`, as owner and as lender. No lender knows the generation of a ring that was never
    /// used: it need not change.
    pub fn close(&mut self, drive: DriveId) {
        let (drive, drives) = (drive.index(), self.drives);
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
    use super::super::message::{Message, MessageKind};
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};

    const DRIVES: u16 = 4;

    fn message(lender: DriveId, command: u32) -> Message {
        Message { kind: MessageKind::Dma, lender, command, buffer: 0, first: 0, span: 0, slots: 1, completion: 0 }
    }

    proptest! {
        /// Against a queue for each pair. A lender stores under the generation that it learnt last; a ring that was
        /// closed since takes nothing of that, and goes on with a lender that learns the new one.
        #[test]
        fn a_closed_ring_takes_nothing_that_was_stored_before_or_by_somebody_who_does_not_know(
            steps in prop::collection::vec((0_u32..8, 0..DRIVES, 0..DRIVES), 1..300),
        ) {
            let mut rings = Rings::new(DRIVES as usize);
            let mut model = BTreeMap::<(DriveId, DriveId), VecDeque<Option<u32>>>::new();
            let mut learnt = BTreeMap::new();
            for (number, (kind, owner, lender)) in (0..).zip(steps) {
                let (owner, lender) = (DriveId::new(owner), DriveId::new(lender));
                let pair = (owner, lender);
                let queue = model.entry(pair).or_default();
                match kind {
                    0..3 => {
                        let ring = rings.get(owner, lender);
                        let known = *learnt.entry(pair).or_insert_with(|| ring.generation());
                        if ring.has_room(1) {
                            let is_current = known == ring.generation();
                            ring.store(&message(lender, number), known);
                            queue.push_back(is_current.then_some(number));
                        }
                    }
                    3..6 => {
                        while queue.front() == Some(&None) {
                            queue.pop_front();
                        }
                        let expected = queue.pop_front().flatten();
                        let taken = rings.get(owner, lender).take();
                        prop_assert_eq!(taken.map(|message| message.command), expected);
                    }
                    6 => drop(learnt.insert(pair, rings.get(owner, lender).generation())),
                    _ => {
                        rings.close(owner);
                        let closed = model.iter_mut().filter(|((one, other), _)| *one == owner || *other == owner);
                        closed.for_each(|(_, queue)| queue.iter_mut().for_each(|entry| *entry = None));
                    }
                }
            }
        }
    }

    #[test]
    fn rings_of_other_drives_stay_open() {
        let mut rings = Rings::new(3);
        let before = [(0, 1), (1, 0), (1, 2)]
            .map(|(owner, lender)| rings.get(DriveId::new(owner), DriveId::new(lender)).generation());
        rings.close(DriveId::new(0));
        let after = [(0, 1), (1, 0), (1, 2)]
            .map(|(owner, lender)| rings.get(DriveId::new(owner), DriveId::new(lender)).generation());
        assert_ne!(after[..2], before[..2]);
        assert_eq!(after[2], before[2]);
        assert_eq!(rings.rings.iter().flatten().count(), 3);
    }
}
