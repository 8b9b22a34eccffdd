//! Counts that a limit on lines cannot see: methods and files of a type, files of a crate that import each other, comments
//! without a subject. `ratchets.toml` holds what there is today; a number there may fall, and never rises.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use syn::visit::{self, Visit};
use syn::{Item, Type};

use crate::imports::ModuleFiles;
use crate::lengths::is_test_file;
use crate::rust_source::{attributes, is_test};
use crate::subjects::empty_subjects;
use crate::{Finding, Repository};

/// The file of numbers.
const RATCHETS: &str = "ratchets.toml";
/// Methods of a type, and files that they stand in, above which a type needs a line in [`RATCHETS`].
const WITHOUT_A_LINE: Spread = Spread { methods: 40, files: 4 };

/// How far the methods of a type are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spread {
    methods: usize,
    files: usize,
}

/// Compares the tree with the numbers of [`RATCHETS`].
///
/// Errors: a file that cannot be read or is no Rust, numbers of another form.
pub(crate) fn check(repository: &Repository) -> Result<Vec<Finding>> {
    let ratchets: toml::Table =
        repository.read(RATCHETS)?.parse().with_context(|| format!("{RATCHETS} is not TOML"))?;
    let mut findings = Vec::new();
    let mut spreads = BTreeMap::new();
    let mut circles = BTreeMap::new();
    for one in &repository.crates {
        let sources = sources(repository, &one.directory)?;
        for (name, spread) in spread_of(&sources) {
            spreads.insert(format!("{}::{name}", one.name), spread);
        }
        let found = ModuleFiles::new(sources.iter().map(|(file, syntax)| (file.as_str(), syntax))).circles();
        circles.insert(one.name.clone(), found);
    }
    let subjects = subjects(repository)?;
    findings.extend(judge_subjects(&subjects, &numbers(&ratchets, "subjects")?));
    findings.extend(judge_types(&spreads, &numbers(&ratchets, "methods")?, &numbers(&ratchets, "files")?));
    findings.extend(judge_circles(&circles, &numbers(&ratchets, "circles")?));
    Ok(findings)
}

fn numbers(ratchets: &toml::Table, table: &str) -> Result<BTreeMap<String, usize>> {
    let table =
        ratchets.get(table).and_then(toml::Value::as_table).with_context(|| format!("{RATCHETS}: no [{table}]"))?;
    let number = |(name, value): (&String, &toml::Value)| {
        let number = value.as_integer().and_then(|number| usize::try_from(number).ok());
        Ok((name.clone(), number.with_context(|| format!("{RATCHETS}: {name} is no number"))?))
    };
    table.iter().map(number).collect()
}

/// Comments without a subject, by crate.
fn subjects(repository: &Repository) -> Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for one in &repository.crates {
        let below = format!("{}/", one.directory);
        let mut count = 0;
        for file in repository.files.iter().filter(|file| file.ends_with(".rs") && file.starts_with(&below)) {
            count += empty_subjects(&repository.read(file)?);
        }
        counts.insert(one.name.clone(), count);
    }
    Ok(counts)
}

/// The sources of a crate without its tests, by path below `src`.
fn sources(repository: &Repository, directory: &str) -> Result<Vec<(String, syn::File)>> {
    let below = format!("{directory}/src/");
    let files = repository.files.iter().filter(|file| file.ends_with(".rs") && !is_test_file(file));
    let inside = files.filter_map(|file| Some((file, file.strip_prefix(&below)?)));
    let parsed = inside.map(|(file, short)| {
        let syntax = syn::parse_file(&repository.read(file)?).with_context(|| format!("{file} is not valid Rust"))?;
        Ok((short.to_owned(), syntax))
    });
    parsed.collect()
}

/// Methods of each type and the files that they stand in. Of two types of one name, each has the methods in and near
/// its own file.
fn spread_of(sources: &[(String, syn::File)]) -> BTreeMap<String, Spread> {
    let mut definitions: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut methods: Vec<(String, &str, usize)> = Vec::new();
    for (file, syntax) in sources {
        let mut found = Types::default();
        found.visit_file(syntax);
        found.defined.into_iter().for_each(|name| definitions.entry(name).or_default().push(file));
        methods.extend(found.methods.into_iter().map(|(name, count)| (name, file.as_str(), count)));
    }
    let mut spreads: BTreeMap<String, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for (name, file, count) in methods {
        let homes = definitions.get(&name).map_or(&[][..], Vec::as_slice);
        let home = homes.iter().max_by_key(|home| common_parts(home, file));
        let key = match (homes.len(), home) {
            (2.., Some(home)) => format!("{name} of {home}"),
            _ => name,
        };
        let entry = spreads.entry(key).or_default();
        entry.0 += count;
        entry.1.insert(file);
    }
    spreads.into_iter().map(|(name, (methods, files))| (name, Spread { methods, files: files.len() })).collect()
}

/// Folders that two paths share from the left, and the file if they are one.
fn common_parts(one: &str, other: &str) -> usize {
    one.split('/').zip(other.split('/')).take_while(|(one, other)| one == other).count()
}

/// Types defined and methods implemented in one file, without test code and traits.
#[derive(Default)]
struct Types {
    defined: Vec<String>,
    methods: Vec<(String, usize)>,
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        match item {
            Item::Struct(structure) => self.defined.push(structure.ident.to_string()),
            Item::Enum(choice) => self.defined.push(choice.ident.to_string()),
            Item::Impl(block) if block.trait_.is_none() => {
                let methods = block.items.iter().filter(|item| matches!(item, syn::ImplItem::Fn(_))).count();
                if let Type::Path(path) = &*block.self_ty
                    && let Some(last) = path.path.segments.last()
                {
                    self.methods.push((last.ident.to_string(), methods));
                }
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

fn judge_types(
    spreads: &BTreeMap<String, Spread>,
    methods: &BTreeMap<String, usize>,
    files: &BTreeMap<String, usize>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, spread) in spreads {
        let what = format!("methods of `{name}`");
        findings.extend(judge(&what, spread.methods, methods.get(name).copied(), WITHOUT_A_LINE.methods));
        let what = format!("files with methods of `{name}`");
        findings.extend(judge(&what, spread.files, files.get(name).copied(), WITHOUT_A_LINE.files));
    }
    let known: BTreeSet<&String> = methods.keys().chain(files.keys()).collect();
    findings.extend(known.into_iter().filter(|name| !spreads.contains_key(*name)).map(gone));
    findings
}

fn judge_circles(circles: &BTreeMap<String, Vec<Vec<String>>>, numbers: &BTreeMap<String, usize>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, found) in circles {
        let files = found.iter().map(Vec::len).sum();
        let list: Vec<String> = found.iter().map(|circle| circle.join(" ")).collect();
        let what = format!("files of `{name}` that import each other ({})", list.join("; "));
        findings.extend(judge(&what, files, numbers.get(name).copied(), 0));
    }
    findings.extend(numbers.keys().filter(|name| !circles.contains_key(*name)).map(gone));
    findings
}

fn judge_subjects(counts: &BTreeMap<String, usize>, numbers: &BTreeMap<String, usize>) -> Vec<Finding> {
    let of = |(name, &count): (&String, &usize)| {
        let what = format!("comments of `{name}` that begin with who, nobody, what, none or the same");
        judge(&what, count, numbers.get(name).copied(), 0)
    };
    let gone = numbers.keys().filter(|name| !counts.contains_key(*name)).map(gone);
    counts.iter().filter_map(of).chain(gone).collect()
}

/// `noted` is the number of [`RATCHETS`]; without one, `limit` is allowed.
fn judge(what: &str, found: usize, noted: Option<usize>, limit: usize) -> Option<Finding> {
    let message = match noted {
        Some(noted) if found > noted => format!("{found} {what}, at most {noted}"),
        Some(noted) if found <= limit => format!("{found} {what}: {noted} is needed no more; remove the line"),
        Some(noted) if found < noted => format!("{found} {what}, no longer {noted}; lower the number"),
        None if found > limit => format!("{found} {what}, at most {limit}"),
        _ => return None,
    };
    Some(Finding::failure(RATCHETS, 0, message))
}

fn gone(name: &String) -> Finding {
    Finding::failure(RATCHETS, 0, format!("there is no `{name}` any more; remove the line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spreads(sources: &[(&str, &str)]) -> Vec<(String, usize, usize)> {
        let parsed: Vec<(String, syn::File)> =
            sources.iter().map(|(file, text)| ((*file).to_owned(), syn::parse_file(text).unwrap())).collect();
        spread_of(&parsed).into_iter().map(|(name, spread)| (name, spread.methods, spread.files)).collect()
    }

    #[test]
    fn methods_are_counted_over_the_files_of_a_crate_without_traits_and_tests() {
        let sources = [
            ("lib.rs", "struct A; impl A { fn one() {} fn two() {} const N: u32 = 1; }"),
            ("b.rs", "impl crate::A { fn three() {} } impl Clone for A { fn clone(&self) {} }"),
            ("c.rs", "#[cfg(test)] impl A { fn four() {} }"),
        ];
        assert_eq!(spreads(&sources), [("A".to_owned(), 3, 2)]);
    }

    #[test]
    fn types_of_one_name_are_told_apart_by_their_folders() {
        let sources = [
            ("a/mod.rs", "struct Run; impl Run { fn one() {} }"),
            ("a/more.rs", "impl Run { fn two() {} }"),
            ("b/mod.rs", "struct Run; impl Run { fn three() {} }"),
        ];
        assert_eq!(spreads(&sources), [("Run of a/mod.rs".to_owned(), 2, 2), ("Run of b/mod.rs".to_owned(), 1, 1)]);
    }

    #[test]
    fn a_number_may_fall_and_must_then_be_lowered() {
        let said = |found, noted, limit| judge("files", found, noted, limit).map(|finding| finding.message);
        assert_eq!(said(5, Some(5), 4), None);
        assert!(said(6, Some(5), 4).is_some_and(|text| text.contains("at most 5")));
        assert!(said(5, Some(6), 4).is_some_and(|text| text.contains("lower the number")));
        assert!(said(4, Some(5), 4).is_some_and(|text| text.contains("remove the line")));
        assert!(said(5, None, 4).is_some_and(|text| text.contains("at most 4")));
        assert_eq!(said(4, None, 4), None);
    }

    #[test]
    fn a_circle_and_a_line_without_its_crate_are_found() {
        let circle = vec!["a".to_owned(), "b".to_owned()];
        let circles = BTreeMap::from([("ssd".to_owned(), vec![circle])]);
        assert_eq!(judge_circles(&circles, &BTreeMap::from([("ssd".to_owned(), 2)])), []);
        let found = judge_circles(&circles, &BTreeMap::from([("nand".to_owned(), 2)]));
        assert!(found.len() == 2 && found[0].message.contains("(a b)"), "{found:?}");
    }
}
