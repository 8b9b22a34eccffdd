//! Vocabularies: the most frequent items of a training trace have a class each, and all others class 0.

use std::collections::BTreeMap;

/// Items by class.
#[derive(Clone, Debug)]
pub(crate) struct Words<T> {
    /// Items in order, each with its class.
    known: Vec<(T, u32)>,
    /// Items by class, from class 1 on.
    items: Vec<T>,
}

impl<T: Ord + Copy> Words<T> {
    /// A vocabulary of `classes`, class 0 among them, for the most frequent of `items`.
    pub(crate) fn of(items: impl Iterator<Item = T>, classes: usize) -> Self {
        let mut counts: BTreeMap<T, u64> = BTreeMap::new();
        for item in items {
            *counts.entry(item).or_default() += 1;
        }
        let mut order: Vec<(T, u64)> = counts.into_iter().collect();
        order.sort_by_key(|entry| std::cmp::Reverse(entry.1));
        let items: Vec<T> = order.into_iter().map(|entry| entry.0).take(classes.saturating_sub(1)).collect();
        let mut known: Vec<(T, u32)> = items.iter().copied().zip(1..).collect();
        known.sort_unstable_by_key(|entry| entry.0);
        Self { known, items }
    }

    /// The class of an item.
    pub(crate) fn class(&self, item: T) -> u32 {
        self.known.binary_search_by_key(&item, |entry| entry.0).map_or(0, |place| self.known[place].1)
    }

    /// The item of a class; `None` for class 0 and those that no item has.
    pub(crate) fn item(&self, class: usize) -> Option<T> {
        self.items.get(class.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_items_have_classes() {
        let words = Words::of([5, 7, 5, 9, 7, 5, 1].into_iter(), 3);
        assert_eq!([5, 7, 9, 1].map(|item| words.class(item)), [1, 2, 0, 0]);
        assert_eq!((words.item(0), words.item(1), words.item(2), words.item(3)), (None, Some(5), Some(7), None));
    }
}
