//! Things under way, by a number that stays theirs until they end.

/// Values by number. A number is free again once its value is removed, and the last one freed is given out first, so that
/// the numbers in use stay small and their places warm.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Keeps `value` under [`Slab::next_number`], which is returned. Allocates only when no number is free.
    #[inline]
    pub fn insert(&mut self, value: T) -> usize {
        match self.free.pop() {
            Some(number) => {
                self.places[number] = Some(value);
                number
            }
            None => {
                self.places.push(Some(value));
                self.places.len() - 1
            }
        }
    }

    /// The number that the next value gets.
    pub fn next_number(&self) -> usize {
        self.free.last().copied().unwrap_or(self.places.len())
    }

    /// The value under `number`, if there is one.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        self.places.get(number)?.as_ref()
    }

    /// Like [`Self::get`], to change.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.places.get_mut(number)?.as_mut()
    }

    /// Takes the value under `number` out, if there is one.
    #[inline]
    pub fn remove(&mut self, number: usize) -> Option<T> {
        let value = self.places.get_mut(number)?.take()?;
        self.free.push(number);
        Some(value)
    }

    /// Values that there are.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All numbers are below this: as many as there ever were values at once.
    pub fn numbers(&self) -> usize {
        self.places.len()
    }

    /// The values with their numbers, in the order of the numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.places.iter().enumerate().filter_map(|(number, value)| Some((number, value.as_ref()?)))
    }

    /// Like [`Self::iter`], to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.places.iter_mut().enumerate().filter_map(|(number, value)| Some((number, value.as_mut()?)))
    }
}

impl<T> std::ops::Index<usize> for Slab<T> {
    type Output = T;

    /// Panics where there is no value.
    #[inline]
    fn index(&self, number: usize) -> &T {
        self.get(number).expect("the number has a value")
    }
}

impl<T> std::ops::IndexMut<usize> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        self.get_mut(number).expect("the number has a value")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_slab_is_a_map_that_gives_out_the_number_freed_last(
            steps in prop::collection::vec(prop_oneof![Just(None), (0_usize..12).prop_map(Some)], 0..200),
        ) {
            let (mut slab, mut model, mut freed) = (Slab::default(), BTreeMap::new(), Vec::new());
            for (value, step) in steps.into_iter().enumerate() {
                match step {
                    None => {
                        let expected = freed.pop().unwrap_or(model.len());
                        prop_assert_eq!(slab.next_number(), expected);
                        prop_assert_eq!(slab.insert(value), expected);
                        model.insert(expected, value);
                    }
                    Some(number) => {
                        let removed = model.remove(&number);
                        freed.extend(removed.map(|_| number));
                        prop_assert_eq!(slab.remove(number), removed);
                        prop_assert_eq!(slab.get_mut(number + 1), model.get_mut(&(number + 1)));
                        if let Some(kept) = model.get_mut(&(number + 1)) {
                            *kept += 1000;
                            slab[number + 1] += 1000;
                        }
                    }
                }
                prop_assert_eq!((slab.len(), slab.is_empty()), (model.len(), model.is_empty()));
                prop_assert!(slab.iter().eq(model.iter().map(|(&number, value)| (number, value))));
                prop_assert_eq!(slab.numbers(), model.len() + freed.len());
            }
            slab.iter_mut().for_each(|(number, value)| *value = number);
            prop_assert!(slab.iter().all(|(number, &value)| number == value && slab[number] == value));
        }
    }
}
