//! Numbers for pages, without gaps.

use std::collections::HashMap;

/// Pages in a chunk.
const CHUNK: u64 = 64;
/// No number yet.
const NONE: u32 = u32::MAX;

/// Pages of volumes, numbered in the order in which they are first seen. Neighbours share a look-up.
#[derive(Debug, Default)]
pub(super) struct PageNumbers {
    /// Volume and chunk of its address space, to a chunk of numbers.
    places: HashMap<(u32, u64), u32>,
    chunks: Vec<[u32; CHUNK as usize]>,
    next: u32,
}

impl PageNumbers {
    /// Calls `visit` with the number of each page of `volume` from `first` to `last`, in order.
    #[inline]
    pub(super) fn visit(&mut self, volume: u32, first: u64, last: u64, mut visit: impl FnMut(u32)) {
        for place in first / CHUNK..=last / CHUNK {
            let fresh = self.chunks.len() as u32;
            let chunk = *self.places.entry((volume, place)).or_insert(fresh);
            if chunk == fresh {
                self.chunks.push([NONE; CHUNK as usize]);
            }
            let low = first.max(place * CHUNK) % CHUNK;
            let high = last.min(place * CHUNK + (CHUNK - 1)) % CHUNK;
            for number in &mut self.chunks[chunk as usize][low as usize..=high as usize] {
                if *number == NONE {
                    *number = self.next;
                    self.next += 1;
                }
                visit(*number);
            }
        }
    }

    /// Memory in use, in bytes: chunks, and keys, values and a control byte of the map.
    pub(super) fn bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<[u32; CHUNK as usize]>()
            + self.places.capacity() * (size_of::<((u32, u64), u32)>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equal_pages_have_equal_numbers_and_there_are_no_gaps(
            ranges in prop::collection::vec((0_u32..3, 0_u64..500, 0_u64..200), 1..40),
        ) {
            let mut numbers = PageNumbers::default();
            let mut known: HashMap<(u32, u64), u32> = HashMap::new();
            for (volume, first, more) in ranges {
                let mut page = first;
                numbers.visit(volume, first, first + more, |number| {
                    let next = known.len() as u32;
                    assert_eq!(*known.entry((volume, page)).or_insert(next), number);
                    page += 1;
                });
                prop_assert_eq!(page, first + more + 1);
            }
        }
    }
}
