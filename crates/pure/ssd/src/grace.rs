//! Holds back the erase of an emptied superblock while a read may still come to it by an old translation.
//!
//! Translations count in one of two epochs. A superblock emptied in this epoch may be erased once every translation
//! of this epoch and of the ones before has ended; a new epoch begins when the one before the present has none left.
//! A translation costs two additions; nothing is searched.

/// Emptied superblocks, and the translations that they wait for.
#[derive(Default)]
pub(crate) struct Grace {
    /// Translations under way: of even epochs, of odd ones.
    outstanding: [u32; 2],
    current: u8,
    /// Emptied in the epoch before the present one, or earlier.
    aged: Vec<u32>,
    /// Emptied in the present epoch.
    fresh: Vec<u32>,
}

impl Grace {
    /// A translation begins; returns what to hand to [`Grace::end`].
    #[inline]
    pub(crate) fn begin(&mut self) -> u8 {
        self.outstanding[self.current as usize] += 1;
        self.current
    }

    /// A translation has been used or dropped. Returns whether superblocks may have become ready.
    #[inline]
    pub(crate) fn end(&mut self, epoch: u8) -> bool {
        self.outstanding[epoch as usize] -= 1;
        self.outstanding[epoch as usize] == 0 && self.is_holding()
    }

    /// Whether a superblock waits.
    #[inline]
    pub(crate) fn is_holding(&self) -> bool {
        !self.aged.is_empty() || !self.fresh.is_empty()
    }

    /// A superblock has been emptied: [`Grace::release`] says when it may be erased.
    pub(crate) fn hold(&mut self, superblock: u32) {
        self.fresh.push(superblock);
    }

    /// Translations under way are void.
    pub(crate) fn forget_translations(&mut self) {
        self.outstanding = [0; 2];
    }

    /// Appends all superblocks to `emptied`: they are not erased.
    pub(crate) fn give_up(&mut self, emptied: &mut Vec<u32>) {
        emptied.append(&mut self.aged);
        emptied.append(&mut self.fresh);
    }

    /// Superblocks that may be erased now, appended to `ready`.
    pub(crate) fn release(&mut self, ready: &mut Vec<u32>) {
        while self.is_holding() && self.outstanding[1 - self.current as usize] == 0 {
            ready.append(&mut self.aged);
            std::mem::swap(&mut self.aged, &mut self.fresh);
            self.current = 1 - self.current;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_superblock_is_released_after_the_translations_made_before_it_was_emptied_and_not_kept_for_ever(
            steps in prop::collection::vec((0_u32..3, any::<prop::sample::Index>()), 0..200),
        ) {
            let mut grace = Grace::default();
            let mut under_way: Vec<(usize, u8)> = Vec::new();
            // Each held superblock with the translations that were under way when it was emptied.
            let mut held: Vec<(u32, Vec<usize>)> = Vec::new();
            let mut ready = Vec::new();
            for (number, (step, choice)) in steps.into_iter().enumerate() {
                match step {
                    0 => under_way.push((number, grace.begin())),
                    1 if !under_way.is_empty() => {
                        let (_, epoch) = under_way.swap_remove(choice.index(under_way.len()));
                        grace.end(epoch);
                        grace.release(&mut ready);
                    }
                    _ => {
                        held.push((number as u32, under_way.iter().map(|entry| entry.0).collect()));
                        grace.hold(number as u32);
                        grace.release(&mut ready);
                    }
                }
                for superblock in ready.drain(..) {
                    let place = held.iter().position(|entry| entry.0 == superblock).expect("it is released once");
                    let (_, waits_for) = held.swap_remove(place);
                    prop_assert!(waits_for.iter().all(|number| under_way.iter().all(|entry| entry.0 != *number)));
                }
                prop_assert!(held.is_empty() || !under_way.is_empty(), "nothing to wait for");
                prop_assert_eq!(grace.is_holding(), !held.is_empty());
            }
        }
    }
}
