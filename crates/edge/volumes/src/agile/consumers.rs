//! Consumers of a lender by number: a name has one as long as the lender knows something of its agreements.

use std::collections::BTreeMap;

/// Names and numbers of consumers.
#[derive(Debug, Default)]
pub(super) struct Consumers {
    numbers: BTreeMap<String, u16>,
    names: BTreeMap<u16, String>,
    /// The number that is tried first for the next name.
    next: u16,
}

impl Consumers {
    /// The number of a name that has one.
    fn known(&self, name: &str) -> Option<u16> {
        self.numbers.get(name).copied()
    }

    /// The number of a name, which gets one; none where all are taken.
    pub(super) fn number(&mut self, name: &str) -> Option<u16> {
        if let Some(number) = self.known(name) {
            return Some(number);
        }
        let mut free = (0..=u16::MAX).map(|step| self.next.wrapping_add(step));
        let number = free.find(|number| !self.names.contains_key(number))?;
        self.next = number.wrapping_add(1);
        self.numbers.insert(name.to_owned(), number);
        self.names.insert(number, name.to_owned());
        Some(number)
    }

    /// The name of a number; empty for one that is free.
    pub(super) fn name(&self, number: u16) -> &str {
        self.names.get(&number).map_or("", String::as_str)
    }

    /// Frees the numbers that `is_used` does not want.
    pub(super) fn keep(&mut self, mut is_used: impl FnMut(u16) -> bool) {
        self.names.retain(|&number, _| is_used(number));
        self.numbers.retain(|_, number| self.names.contains_key(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_come_and_go_leave_room_for_others() {
        let mut consumers = Consumers::default();
        let stays = consumers.number("stays").expect("there is room");
        for number in 0..70_000 {
            let comes = consumers.number(&format!("comes-{number}")).expect("there is room");
            assert_eq!(consumers.name(comes), format!("comes-{number}"));
            if number % 1000 == 0 {
                consumers.keep(|number| number == stays);
            }
        }
        assert_eq!((consumers.known("stays"), consumers.name(stays)), (Some(stays), "stays"));
        assert_eq!(consumers.known("comes-1"), None);
    }

    #[test]
    fn each_number_has_one_name() {
        let mut consumers = Consumers::default();
        let count = usize::from(u16::MAX) + 1;
        let found: std::collections::BTreeSet<_> =
            (0..count).filter_map(|number| consumers.number(&number.to_string())).collect();
        assert_eq!((found.len(), consumers.number("more")), (count, None));
        assert_eq!(consumers.number("7"), consumers.known("7"));
        consumers.keep(|number| number != 9);
        assert_eq!(consumers.number("more"), Some(9));
    }
}
