//! Files that a scenario names: which keys hold names, those that the command line gives, and where the files are.

use crate::files::Files;
use crate::places::{By, Places};
use crate::section::Section;
use crate::used::without_number;
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// Keys of scenarios of every system that hold names of files; systems have more in their [`Section`]s.
const KEYS: [&str; 4] = ["workload.fio", "workload.trace", "workload.traces", "drive.aged_state"];

/// Whether the key at `path`, or the axis `sweep.` of it, holds names of files.
fn holds_names(path: &str, sections: &[&'static Section]) -> bool {
    let key = without_number(path.strip_prefix("sweep.").unwrap_or(path));
    KEYS.iter().chain(sections.iter().flat_map(|section| section.files)).any(|known| *known == key)
}

/// Names of files that flags give.
pub(crate) fn given_by_flags<'a>(table: &'a Table, sections: &[&'static Section], places: &Places) -> Vec<&'a str> {
    let of_flags = places.iter().filter(|(path, place)| place.by == By::Flag && holds_names(path, sections));
    let values = of_flags.filter_map(|(path, _)| at(table, path));
    let names = values.flat_map(|value| match value {
        Value::Array(names) => names.as_slice(),
        one => std::slice::from_ref(one),
    });
    names.filter_map(Value::as_str).collect()
}

/// The value at a path; axes of a sweep are no values of keys.
fn at<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    let (first, rest) = path.split_once('.')?;
    rest.split('.').try_fold(table.get(first)?, |value, part| match (value, part.parse::<usize>()) {
        (Value::Array(entries), Ok(number)) => entries.get(number),
        (value, _) => value.get(part),
    })
}

/// The text of a scenario with the places of files in place of their names.
pub(crate) fn placed(text: &str, sections: &[&'static Section], files: &dyn Files) -> String {
    let Ok(table) = DeTable::parse(text) else { return text.to_owned() };
    let mut names = Vec::new();
    for (key, value) in table.get_ref() {
        collect(key.get_ref(), value, sections, &mut names);
    }
    names.sort_by_key(|(span, _): &(Range<usize>, String)| span.start);
    let mut text = text.to_owned();
    // From the last on, so that the places of the others stay.
    for (span, name) in names.into_iter().rev() {
        if let Some(place) = files.place(&name) {
            text.replace_range(span, &Value::String(place).to_string());
        }
    }
    text
}

/// Names of files with where they stand in the text.
fn collect(
    path: &str,
    value: &Spanned<DeValue<'_>>,
    sections: &[&'static Section],
    names: &mut Vec<(Range<usize>, String)>,
) {
    match value.get_ref() {
        DeValue::Table(table) => {
            for (key, value) in table {
                collect(&format!("{path}.{}", key.get_ref()), value, sections, names);
            }
        }
        DeValue::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                collect(&format!("{path}.{number}"), item, sections, names);
            }
        }
        DeValue::String(name) if holds_names(path, sections) => names.push((value.span(), name.to_string())),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_workload::Records;

    static MEMORY: Section = Section::of::<u32>("memory", &[]).with_files(&["memory.trace"]);

    struct There;

    impl Files for There {
        fn profile(&self, _kind: &str, _name: &str) -> Result<Option<String>, String> {
            Ok(None)
        }

        fn open_trace(&self, name: &str) -> Result<Records, String> {
            Err(name.to_owned())
        }

        fn place(&self, name: &str) -> Option<String> {
            (name != "gone").then(|| format!("/there/{name}"))
        }
    }

    #[test]
    fn names_of_files_become_their_places_and_nothing_else_changes() {
        let text = r#"name = "a"  # [A] a name
[workload]
trace = "a\"b#csv"                     # [A] set by --set
traces = ["a", 'gone']
[sweep]
"workload.fio" = ["a", "b"]
[[group]]
drive.aged_state = "a"
title = "a"
[memory]
trace = "m"
program = "m"
"#;
        let expected = r#"name = "a"  # [A] a name
[workload]
trace = '/there/a"b#csv'                     # [A] set by --set
traces = ["/there/a", 'gone']
[sweep]
"workload.fio" = ["/there/a", "/there/b"]
[[group]]
drive.aged_state = "/there/a"
title = "a"
[memory]
trace = "/there/m"
program = "m"
"#;
        assert_eq!(placed(text, &[&MEMORY], &There), expected);
    }

    #[test]
    fn names_that_flags_give_are_found() {
        let text = "[workload]\ntraces = [\"a\", \"b\"]\nfio = \"c\"\n[[group]]\ndrive.aged_state = \"d\"\n";
        let table: Table = toml::from_str(text).expect("it is right");
        let mut places = Places::default();
        places.take(text, "", By::File, |line| line.to_string());
        assert!(given_by_flags(&table, &[], &places).is_empty());
        for key in ["workload.traces", "group.0.drive.aged_state", "workload.repetitions"] {
            places.set(key, "--set".to_owned());
        }
        assert_eq!(given_by_flags(&table, &[], &places), ["d", "a", "b"]);
    }
}
