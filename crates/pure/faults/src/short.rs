//! A vector whose first element lies inline: nearly every slot has one value and at most one reader, and
//! then it costs no allocation and no second cache miss.

/// A list in insertion order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Short<T> {
    first: Option<T>,
    /// Empty while `first` is.
    rest: Vec<T>,
}

impl<T> Default for Short<T> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}

impl<T> Short<T> {
    /// A list of one.
    pub(crate) fn of(element: T) -> Self {
        Self { first: Some(element), rest: Vec::new() }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// The element that has been in the list for longest.
    #[inline]
    pub(crate) fn first(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// The element at `index`, which must exist.
    #[inline]
    pub(crate) fn at(&self, index: usize) -> &T {
        match index {
            0 => self.first.as_ref().expect("an index below the length"),
            _ => &self.rest[index - 1],
        }
    }

    /// The element at `index`, which must exist.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: usize) -> &mut T {
        match index {
            0 => self.first.as_mut().expect("an index below the length"),
            _ => &mut self.rest[index - 1],
        }
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.rest)
    }

    #[inline]
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.rest)
    }

    #[inline]
    pub(crate) fn push(&mut self, element: T) {
        match self.first {
            None => self.first = Some(element),
            Some(_) => {
                if self.rest.capacity() == 0 {
                    // The least that `push` would take is four.
                    self.rest.reserve_exact(1);
                }
                self.rest.push(element);
            }
        }
    }

    /// Keeps the elements that `keep` accepts, in their order.
    #[inline]
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.rest.retain(&mut keep);
        if self.first.as_ref().is_some_and(|first| !keep(first)) {
            self.first = if self.rest.is_empty() { None } else { Some(self.rest.remove(0)) };
        }
        if self.rest.is_empty() {
            // Most slots are quiet most of the time, and there are millions of them.
            self.rest = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_short_list_is_a_vector(elements in prop::collection::vec(0_u8..20, 0..12), pivot in 0_u8..20) {
            let mut short = Short::default();
            elements.iter().for_each(|&element| short.push(element));
            let mut vector = elements;
            short.retain(|&element| element > pivot);
            vector.retain(|&element| element > pivot);
            prop_assert_eq!(short.iter().copied().collect::<Vec<_>>(), vector.clone());
            prop_assert_eq!(short.len(), vector.len());
            prop_assert_eq!(short.first(), vector.first());
            for (index, element) in vector.iter().enumerate() {
                prop_assert_eq!(short.at(index), element);
            }
        }
    }
}
