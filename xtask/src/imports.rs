//! Which files of one crate import each other, and the circles among them.
//!
//! A file imports another when it names something of it by a path that begins with `crate`, `super` or `self`. A name
//! that a module only hands on belongs to the file behind it. Test code does not count.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Item, UseTree};

use crate::rust_source::{attributes, is_test};

/// The files of a crate by module path; the root has the empty path.
pub(crate) struct ModuleFiles {
    files: BTreeMap<Vec<String>, ModuleText>,
}

struct ModuleText {
    /// Paths that the file names, absolute within the crate.
    named: BTreeSet<Vec<String>>,
    /// Names that the file imports or hands on, and the absolute path behind each.
    handed_on: BTreeMap<String, Vec<String>>,
}

impl ModuleFiles {
    /// The modules of a crate from `(path below src, syntax)`; programs beside a library are left out.
    pub(crate) fn new<'a>(sources: impl IntoIterator<Item = (&'a str, &'a syn::File)>) -> Self {
        let files = sources.into_iter().filter_map(|(file, syntax)| {
            let module = module_path(file)?;
            let mut paths = Paths { module: module.clone(), named: BTreeSet::new(), handed_on: BTreeMap::new() };
            paths.visit_file(syntax);
            Some((module, ModuleText { named: paths.named, handed_on: paths.handed_on }))
        });
        Self { files: files.collect() }
    }

    /// The circles: sets of two and more files, each leading to all others, the largest first.
    pub(crate) fn circles(&self) -> Vec<Vec<String>> {
        let modules: Vec<&Vec<String>> = self.files.keys().collect();
        let place: BTreeMap<&Vec<String>, usize> =
            modules.iter().enumerate().map(|(place, name)| (*name, place)).collect();
        let arrows: Vec<BTreeSet<usize>> = modules
            .iter()
            .map(|module| {
                let named = self.files[*module].named.iter();
                named.filter_map(|path| self.file_of(path, 0)).filter(|to| to != *module).map(|to| place[&to]).collect()
            })
            .collect();
        let reached: Vec<BTreeSet<usize>> = (0..modules.len()).map(|from| reach(&arrows, from)).collect();
        let mut circles = BTreeSet::new();
        for from in 0..modules.len() {
            let circle: Vec<usize> = reached[from].iter().copied().filter(|&to| reached[to].contains(&from)).collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        let name = |place: usize| if modules[place].is_empty() { "lib".to_owned() } else { modules[place].join("::") };
        let mut named: Vec<Vec<String>> =
            circles.into_iter().map(|circle| circle.into_iter().map(name).collect()).collect();
        named.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        named
    }

    /// The module whose file defines what `path` names.
    fn file_of(&self, path: &[String], depth: usize) -> Option<Vec<String>> {
        let length = (0..=path.len()).rev().find(|&length| self.files.contains_key(&path[..length]))?;
        let (module, rest) = path.split_at(length);
        let behind = rest.first().and_then(|name| self.files[module].handed_on.get(name));
        match behind {
            // A name may be handed on more than once; eight times is a loop.
            Some(behind) if depth < 8 && behind.as_slice() != path => {
                let whole: Vec<String> = behind.iter().chain(&rest[1..]).cloned().collect();
                self.file_of(&whole, depth + 1)
            }
            _ => Some(module.to_vec()),
        }
    }
}

/// Everything that can be reached from `from` by one arrow or more.
fn reach(arrows: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(place) = pending.pop() {
        pending.extend(arrows[place].iter().copied().filter(|&to| reached.insert(to)));
    }
    reached
}

/// The module path of a file below `src`; `None` for a program.
fn module_path(file: &str) -> Option<Vec<String>> {
    let stem = file.strip_suffix(".rs")?;
    if stem == "main" || stem.starts_with("bin/") {
        return None;
    }
    let mut parts: Vec<String> = stem.split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib")) {
        parts.pop();
    }
    Some(parts)
}

/// Collects the paths of one file.
struct Paths {
    module: Vec<String>,
    named: BTreeSet<Vec<String>>,
    handed_on: BTreeMap<String, Vec<String>>,
}

impl Paths {
    /// The path from the crate's root, where it begins in this crate. `use child::X` of a parent begins with its child,
    /// which only a look at the files can tell: it is taken as such, and leads nowhere where there is no child.
    fn absolute(&self, segments: &[String], imported: bool) -> Option<Vec<String>> {
        let mut base = self.module.clone();
        let mut rest = segments;
        match rest.first()?.as_str() {
            "crate" => (base, rest) = (Vec::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|segment| segment == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            _ if imported => {}
            _ => return None,
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    fn tree(&mut self, around: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                around.push(path.ident.to_string());
                self.tree(around, &path.tree);
                around.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(around, item)),
            UseTree::Name(name) => self.import(around, &name.ident.to_string(), &name.ident.to_string()),
            UseTree::Rename(renamed) => self.import(around, &renamed.ident.to_string(), &renamed.rename.to_string()),
            UseTree::Glob(_) => {
                self.named.extend(self.absolute(around, true));
            }
        }
    }

    fn import(&mut self, around: &[String], name: &str, known_as: &str) {
        let mut segments = around.to_vec();
        if name != "self" {
            segments.push(name.to_owned());
        }
        if let Some(path) = self.absolute(&segments, true) {
            self.handed_on.insert(known_as.to_owned(), path.clone());
            self.named.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            _ if is_test(attributes(item)) => {}
            Item::Use(import) => self.tree(&mut Vec::new(), &import.tree),
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.len() > 1
            && let Some(absolute) = self.absolute(&segments, false)
        {
            self.named.insert(absolute);
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(sources: &[(&str, &str)]) -> Vec<Vec<String>> {
        let parsed: Vec<(&str, syn::File)> =
            sources.iter().map(|(file, text)| (*file, syn::parse_file(text).unwrap())).collect();
        ModuleFiles::new(parsed.iter().map(|(file, syntax)| (*file, syntax))).circles()
    }

    #[test]
    fn files_that_import_each_other_are_a_circle_and_a_chain_is_none() {
        let chain = [("lib.rs", "mod a; mod b; mod c;"), ("a.rs", "use crate::b::B;"), ("b.rs", "use super::c::C;")];
        assert_eq!(circles(&[&chain[..], &[("c.rs", "")]].concat()), Vec::<Vec<String>>::new());
        let back = circles(&[&chain[..], &[("c.rs", "fn f() { crate::a::g(); }")]].concat());
        assert_eq!(back, [["a", "b", "c"]]);
    }

    #[test]
    fn a_name_that_is_handed_on_belongs_to_the_file_behind_it() {
        let sources = [
            ("lib.rs", "mod room;"),
            ("room/mod.rs", "mod a; mod b; pub use a::A; pub use b::{B, Other as Known};"),
            ("room/a.rs", "use super::B;"),
            ("room/b.rs", "pub struct B; pub struct Other;"),
        ];
        assert_eq!(circles(&sources), Vec::<Vec<String>>::new());
        let mut both = sources;
        both[3].1 = "use crate::room::A; pub struct B; pub struct Other;";
        assert_eq!(circles(&both), [["room::a", "room::b"]]);
        both[2].1 = "use super::Known;";
        assert_eq!(circles(&both), [["room::a", "room::b"]]);
    }

    #[test]
    fn what_a_parent_defines_and_its_child_uses_is_a_circle_if_the_parent_uses_the_child() {
        let sources = [("lib.rs", "mod a;"), ("a/mod.rs", "mod b; use b::B; struct A;"), ("a/b.rs", "use super::A;")];
        assert_eq!(circles(&sources), [["a", "a::b"]]);
    }

    #[test]
    fn tests_do_not_count() {
        let sources = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "#[cfg(test)] mod tests { use crate::a::A; }"),
        ];
        assert_eq!(circles(&sources), Vec::<Vec<String>>::new());
    }
}
