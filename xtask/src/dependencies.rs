//! Dependencies that are declared and not used.

use anyhow::{Context, Result};
use toml::{Table, Value};

use crate::repository::Crate;
use crate::{Finding, Repository};

/// Unused dependencies of each crate, and entries of the workspace's table that no crate takes up.
///
/// Errors: unreadable source, or a root manifest without the table.
pub(crate) fn check(repository: &Repository) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for member in &repository.crates {
        let mut sources = Vec::new();
        let inside = format!("{}/", member.directory);
        for file in repository.files.iter().filter(|file| file.starts_with(&inside) && file.ends_with(".rs")) {
            sources.push(repository.read(file)?);
        }
        findings.extend(unused_in(member, &sources));
    }
    findings.extend(untaken(&repository.read("Cargo.toml")?, &repository.crates)?);
    Ok(findings)
}

fn unused_in(member: &Crate, sources: &[String]) -> Vec<Finding> {
    let manifest = format!("{}/Cargo.toml", member.directory);
    let unused = member.dependencies.iter().filter(|dependency| {
        !sources.iter().any(|source| source.lines().any(|line| names(line, &dependency.identifier)))
    });
    let message = |name: &str| format!("`{name}` is declared and no source file of the crate names it; remove it");
    unused.map(|dependency| Finding::failure(&manifest, 0, message(&dependency.identifier))).collect()
}

/// Whether a line outside comments holds the identifier as a whole word.
fn names(line: &str, identifier: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let code = line.trim_start();
    !code.starts_with("//")
        && code.match_indices(identifier).any(|(start, _)| {
            !code[..start].ends_with(is_part) && !code[start + identifier.len()..].starts_with(is_part)
        })
}

fn untaken(manifest: &str, crates: &[Crate]) -> Result<Vec<Finding>> {
    let document: Table = manifest.parse().context("Cargo.toml is not valid TOML")?;
    let table = document.get("workspace").and_then(|workspace| workspace.get("dependencies")).and_then(Value::as_table);
    let declared = table.context("Cargo.toml has no [workspace.dependencies]")?.keys();
    let is_taken = |name: &str| {
        let identifier = name.replace('-', "_");
        crates.iter().any(|member| member.dependencies.iter().any(|dependency| dependency.identifier == identifier))
    };
    let message = |name: &str| format!("no crate takes `{name}` from [workspace.dependencies]; remove it");
    let untaken = declared.filter(|name| !is_taken(name));
    Ok(untaken.map(|name| Finding::failure("Cargo.toml", 0, message(name))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::{Dependency, Region};

    fn member(dependencies: &[&str]) -> Crate {
        let dependency = |name: &&str| Dependency {
            name: (*name).to_owned(),
            internal: false,
            dev: false,
            identifier: name.replace('-', "_"),
        };
        Crate {
            name: "a".to_owned(),
            region: Region::Pure,
            directory: "crates/pure/a".to_owned(),
            targets: Vec::new(),
            dependencies: dependencies.iter().map(dependency).collect(),
        }
    }

    #[test]
    fn a_dependency_counts_as_used_when_code_names_it() {
        let member = member(&["libm", "thiserror", "serde", "comfy-table"]);
        let sources =
            ["use thiserror::Error;\n// libm is not used\nlet t = comfy_table::Table::new();\nserde_json::x();"];
        let findings = unused_in(&member, &sources.map(str::to_owned));
        let messages: Vec<&str> = findings.iter().map(|finding| finding.message.split('`').nth(1).unwrap()).collect();
        assert_eq!(messages, ["libm", "serde"]);
    }

    #[test]
    fn an_entry_of_the_workspace_that_nobody_takes_is_reported() {
        let manifest = "[workspace.dependencies]\nlibm = \"0.2\"\ncomfy-table = \"8\"\nrand = \"1\"\n";
        let findings = untaken(manifest, &[member(&["libm", "comfy-table"])]).unwrap();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].message.contains("`rand`"));
    }
}
