//! Choices that people know by name.

/// One of a fixed set of choices, with the name by which scenarios and results know it.
///
/// Invariant: names of different choices differ.
pub trait Named: Copy + 'static {
    /// All choices, in the order in which messages list them.
    const ALL: &'static [Self];

    /// The name in scenarios and results.
    fn name(self) -> &'static str;

    /// The choice called `name`; `None` where there is none.
    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|choice| choice.name() == name)
    }

    /// All names, in the order of [`ALL`](Self::ALL).
    fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|choice| choice.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Side {
        Left,
        Right,
    }

    impl Named for Side {
        const ALL: &'static [Self] = &[Self::Left, Self::Right];

        fn name(self) -> &'static str {
            match self {
                Self::Left => "left",
                Self::Right => "right",
            }
        }
    }

    #[test]
    fn choices_are_found_by_their_names_only() {
        assert_eq!(Side::by_name("right"), Some(Side::Right));
        assert_eq!((Side::by_name("Right"), Side::by_name("")), (None, None));
        assert!(Side::names().eq(["left", "right"]));
    }
}
