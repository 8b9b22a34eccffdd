//! The outline of one Rust file, for the checks.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, Lit, Meta};

/// The outline of one Rust file.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// Functions outside test code.
    pub(crate) functions: Vec<Function>,
    /// Lines that belong to test items.
    pub(crate) lines_of_tests: usize,
    /// Modules declared here that live in other files.
    pub(crate) modules: Vec<ModuleFile>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Line of the `fn` keyword, counted from 1.
    pub(crate) line: usize,
    /// From the `fn` line to the closing brace, both included.
    pub(crate) length: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ModuleFile {
    /// Inline modules around the declaration, outermost first, then its own name.
    pub(crate) names: Vec<String>,
    /// The file named by a `path` attribute, relative to the declaring file's directory.
    pub(crate) explicit: Option<String>,
}

impl Outline {
    /// Errors: text that is not a Rust file.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self> {
        let syntax = syn::parse_file(text).with_context(|| format!("{file} is not valid Rust"))?;
        let mut outline = Self::default();
        outline.declared_modules(&syntax.items, &[]);
        Walker { outline: &mut outline }.visit_file(&syntax);
        Ok(outline)
    }

    fn declared_modules(&mut self, items: &[Item], around: &[String]) {
        for item in items {
            let Item::Mod(module) = item else { continue };
            let names: Vec<String> = around.iter().cloned().chain([module.ident.to_string()]).collect();
            match &module.content {
                Some((_, inner)) => self.declared_modules(inner, &names),
                None => self.modules.push(ModuleFile { names, explicit: path_attribute(&module.attrs) }),
            }
        }
    }

    /// The files a declared module may live in, given the declaring file and whether that is a crate root.
    pub(crate) fn candidates(module: &ModuleFile, declared_in: &str, is_root: bool) -> Vec<PathBuf> {
        let file = Path::new(declared_in);
        let directory = file.parent().unwrap_or(Path::new(""));
        if let Some(explicit) = &module.explicit {
            return vec![directory.join(explicit)];
        }
        let owns_directory = is_root || file.file_name().is_some_and(|name| name == "mod.rs");
        let mut base = if owns_directory { directory.to_owned() } else { file.with_extension("") };
        base.extend(&module.names);
        vec![base.with_extension("rs"), base.join("mod.rs")]
    }
}

/// Collects functions and measures test items.
struct Walker<'a> {
    outline: &'a mut Outline,
}

impl Walker<'_> {
    fn function(&mut self, name: &syn::Ident, signature: &syn::Signature, whole: proc_macro2::Span) {
        let (line, end) = (signature.fn_token.span.start().line, whole.end().line);
        self.outline.functions.push(Function { name: name.to_string(), line, length: end + 1 - line });
    }
}

impl<'ast> Visit<'ast> for Walker<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            let span = item.span();
            self.outline.lines_of_tests += span.end().line + 1 - span.start().line;
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig.ident, &function.sig, function.block.span());
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig.ident, &function.sig, function.block.span());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.function(&function.sig.ident, &function.sig, block.span());
        }
        visit::visit_trait_item_fn(self, function);
    }
}

/// Attributes of the items that can be test code: modules, functions, implementations, imports.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(module) => &module.attrs,
        Item::Fn(function) => &function.attrs,
        Item::Impl(block) => &block.attrs,
        Item::Struct(structure) => &structure.attrs,
        Item::Use(import) => &import.attrs,
        _ => &[],
    }
}

/// Whether an item exists only under test: `#[test]`, or `cfg(test)` alone or inside `all(…)`.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string().replace(' ', "");
            condition == "test" || condition.starts_with("all(test,")
        }
        _ => false,
    })
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"
//! Page.
mod plain;
#[path = "elsewhere.rs"]
mod named;
mod outer {
    mod inner;
}

/// Documented.
pub fn three(
) {
}

impl Thing {
    fn method(&self) { let text = "} fn no() {"; }
}

#[cfg(test)]
mod tests {
    #[test]
    fn hidden() {}
}
"#;

    #[test]
    fn functions_outside_tests_are_measured() {
        let outline = Outline::parse("a.rs", SOURCE).unwrap();
        let found: Vec<(&str, usize, usize)> =
            outline.functions.iter().map(|f| (f.name.as_str(), f.line, f.length)).collect();
        assert_eq!(found, [("three", 11, 3), ("method", 16, 1)]);
        assert_eq!(outline.lines_of_tests, 5);
    }

    #[test]
    fn modules_in_other_files_are_found_where_rustc_looks() {
        let outline = Outline::parse("a.rs", SOURCE).unwrap();
        let places = |file: &str, is_root: bool| -> Vec<Vec<PathBuf>> {
            outline.modules.iter().map(|module| Outline::candidates(module, file, is_root)).collect()
        };
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(
            places("src/lib.rs", true),
            [
                paths(&["src/plain.rs", "src/plain/mod.rs"]),
                paths(&["src/elsewhere.rs"]),
                paths(&["src/outer/inner.rs", "src/outer/inner/mod.rs"]),
            ]
        );
        assert_eq!(places("src/gc.rs", false)[0], paths(&["src/gc/plain.rs", "src/gc/plain/mod.rs"]));
        assert_eq!(places("src/gc/mod.rs", false)[0], paths(&["src/gc/plain.rs", "src/gc/plain/mod.rs"]));
    }

    #[test]
    fn broken_source_names_its_file() {
        let error = Outline::parse("broken.rs", "fn {").unwrap_err().to_string();
        assert!(error.contains("broken.rs"), "{error}");
    }
}
