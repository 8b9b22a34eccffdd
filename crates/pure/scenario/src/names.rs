//! Choices by name, and what is said of a name that is none of them.

use flashyard_workload::nearest;
use std::fmt;

/// A name that is none of those that are known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Unknown {
    /// What was looked for, as "there is no ..." goes on.
    what: &'static str,
    given: String,
    known: Vec<String>,
}

impl Unknown {
    /// No `what` is called `given`; `known` are the names that there are.
    pub(crate) fn new<'a>(what: &'static str, given: &str, known: impl Iterator<Item = &'a str>) -> Self {
        Self { what, given: given.to_owned(), known: known.map(str::to_owned).collect() }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, given, known } = self;
        write!(f, "there is no {what}{}{given:?}", if what.is_empty() { "" } else { " " })?;
        if let Some(near) = nearest(given, known.iter().map(String::as_str)) {
            write!(f, " (did you mean {near:?}?)")?;
        }
        write!(f, ", give one of {}", known.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_its_nearest_name_and_anything_else_all_of_them() {
        let known = ["wait", "rebuild"];
        let text = |given: &str| Unknown::new("", given, known.into_iter()).to_string();
        assert_eq!(text("rebiuld"), "there is no \"rebiuld\" (did you mean \"rebuild\"?), give one of wait, rebuild");
        assert_eq!(text("xyz"), "there is no \"xyz\", give one of wait, rebuild");
        let world = Unknown::new("world", "xyz", known.into_iter()).to_string();
        assert_eq!(world, "there is no world \"xyz\", give one of wait, rebuild");
    }
}
