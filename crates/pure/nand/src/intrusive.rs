//! FIFO lists threaded through a slab, so that queueing never allocates.

/// End of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// A first-in first-out list of slab indices; the links live in the slab's `next` array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fifo {
    head: u32,
    tail: u32,
}

impl Default for Fifo {
    fn default() -> Self {
        Self { head: NIL, tail: NIL }
    }
}

impl Fifo {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// The oldest element.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        (self.head != NIL).then_some(self.head)
    }

    /// Appends `index`; `next_of` gives access to an element's link.
    #[inline]
    pub(crate) fn push<T>(&mut self, slab: &mut [T], index: u32, next_of: impl Fn(&mut T) -> &mut u32) {
        *next_of(&mut slab[index as usize]) = NIL;
        if self.head == NIL {
            self.head = index;
        } else {
            *next_of(&mut slab[self.tail as usize]) = index;
        }
        self.tail = index;
    }

    /// Removes the oldest element.
    #[inline]
    pub(crate) fn pop<T>(&mut self, slab: &mut [T], next_of: impl Fn(&mut T) -> &mut u32) -> Option<u32> {
        if self.head == NIL {
            return None;
        }
        let index = self.head;
        self.head = *next_of(&mut slab[index as usize]);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn a_threaded_list_behaves_like_a_queue(steps in prop::collection::vec(any::<bool>(), 0..200)) {
            let mut links = vec![NIL; 200];
            let (mut list, mut model) = (Fifo::default(), VecDeque::new());
            for (index, push) in steps.into_iter().enumerate() {
                if push {
                    list.push(&mut links, index as u32, |link| link);
                    model.push_back(index as u32);
                } else {
                    prop_assert_eq!(list.pop(&mut links, |link| link), model.pop_front());
                }
                prop_assert_eq!(list.is_empty(), model.is_empty());
            }
        }
    }
}
