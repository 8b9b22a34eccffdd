//! Where the keys of a scenario come from, so that a message names the user's own line or flag.

use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

/// Source of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The scenario file.
    File,
    /// The command line.
    Flag,
    /// A profile that the scenario names.
    Profile,
}

/// Where a key was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// `demo.toml, line 9` or `--set drive.cores=3`.
    pub text: String,
    /// The giver.
    pub by: By,
}

/// The place of every key, by its path: `drive.cores`, `group.0.drive.cores`, `sweep.drive.cores`.
#[derive(Clone, Debug, Default)]
pub struct Places(BTreeMap<String, Place>);

impl Places {
    /// Takes the keys of a text that stands under `section`; `told` puts the number of a line into words. A key that
    /// has a place already keeps it. A text that is no TOML has no keys.
    pub fn take(&mut self, text: &str, section: &str, by: By, told: impl Fn(usize) -> String) {
        let Ok(table) = DeTable::parse(text) else { return };
        let mut walk = Walk { text, by, told: &told, found: &mut self.0 };
        walk.table(section, table.get_ref());
    }

    /// Notes that a flag gives `path`, with all that stands below it.
    pub fn set(&mut self, path: &str, flag: String) {
        self.forget(path);
        self.0.insert(path.to_owned(), Place { text: flag, by: By::Flag });
    }

    /// Puts a key where it was given.
    pub fn put(&mut self, path: &str, place: Place) {
        self.0.insert(path.to_owned(), place);
    }

    /// The key is not there any more, with all that stood below it.
    pub fn forget(&mut self, path: &str) {
        let below = format!("{path}.");
        self.0.retain(|known, _| known != path && !known.starts_with(&below));
    }

    /// Where `path` was given itself.
    pub fn exactly(&self, path: &str) -> Option<&Place> {
        self.0.get(path)
    }

    /// Where `path` was given, or the section that it is in; a drive of a group has what it does not say from `drive`.
    pub fn of(&self, path: &str) -> Option<&Place> {
        let own = self.0.get(path);
        let common = || self.0.get(&format!("drive.{}", inherited(path)?));
        let above = || self.of(path.rsplit_once('.')?.0);
        own.or_else(common).or_else(above)
    }

    /// Where `path` was given, or else the first key below it, or the section that it is in.
    pub fn of_any(&self, path: &str) -> Option<&Place> {
        let below = format!("{path}.");
        let first = || self.0.iter().find(|(known, _)| known.starts_with(&below)).map(|(_, place)| place);
        self.0.get(path).or_else(first).or_else(|| self.of(path))
    }

    /// All keys with their places.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Place)> {
        self.0.iter().map(|(path, place)| (path.as_str(), place))
    }
}

/// `cores` of `group.0.drive.cores`; axes of a sweep inherit nothing.
fn inherited(path: &str) -> Option<&str> {
    path.split_once(".drive.").filter(|(section, _)| *section != "sweep").map(|(_, key)| key)
}

struct Walk<'a, F> {
    text: &'a str,
    by: By,
    told: &'a F,
    found: &'a mut BTreeMap<String, Place>,
}

impl<F: Fn(usize) -> String> Walk<'_, F> {
    fn table(&mut self, path: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let below = match path {
                "" => key.get_ref().to_string(),
                path => format!("{path}.{}", key.get_ref()),
            };
            self.value(&below, key.span().start, value.get_ref());
        }
    }

    fn value(&mut self, path: &str, start: usize, value: &DeValue<'_>) {
        if let DeValue::Table(table) = value {
            return self.table(path, table);
        }
        if let DeValue::Array(items) = value {
            for (number, item) in items.iter().enumerate() {
                if let DeValue::Table(table) = item.get_ref() {
                    self.table(&format!("{path}.{number}"), table);
                }
            }
        }
        let line = self.text[..start].matches('\n').count() + 1;
        let place = || Place { text: (self.told)(line), by: self.by };
        self.found.entry(path.to_owned()).or_insert_with(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_where_it_was_given_last() {
        let text = "seed = 1\n[drive]\ncores = 3\nerase = \"3 ms\"\n[[group]]\nname = \"a\"\ndrive.cores = 2\n[sweep]\n\"drive.cores\" = [1]\n";
        let mut places = Places::default();
        places.take(text, "", By::File, |line| format!("x.toml, line {line}"));
        places.set("drive.erase", "--set drive.erase=1 ms".to_owned());
        places.take("erase = \"9 ms\"\nread_lsb = \"1 us\"", "drive", By::Profile, |line| {
            format!("profile, line {line}")
        });
        for (path, expected) in [
            ("seed", "x.toml, line 1"),
            ("drive.cores", "x.toml, line 3"),
            ("drive.erase", "--set drive.erase=1 ms"),
            ("drive.read_lsb", "profile, line 2"),
            ("group.0.drive.cores", "x.toml, line 7"),
            ("group.0.drive.read_lsb", "profile, line 2"),
            ("sweep.drive.cores", "x.toml, line 9"),
        ] {
            assert_eq!(places.of(path).map(|place| place.text.as_str()), Some(expected), "{path}");
        }
        assert_eq!(places.of("host.cores"), None);
    }
}
