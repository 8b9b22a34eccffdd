//! A constant that was fitted to published numbers is where its study says.

use crate::{Finding, Repository};
use anyhow::{Context, Result};
use toml::Value;

/// Constants of `scenarios/*/expected.toml` that are not in the file that they name.
///
/// Errors: expectations that cannot be read.
pub(crate) fn check(repository: &Repository) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in
        repository.files.iter().filter(|file| file.starts_with("scenarios/") && file.ends_with("/expected.toml"))
    {
        let place = |place: &str| repository.files.iter().any(|known| known == place).then(|| repository.read(place));
        findings.extend(check_text(file, &repository.read(file)?, |name| place(name).transpose())?);
    }
    Ok(findings)
}

fn check_text(file: &str, text: &str, read: impl Fn(&str) -> Result<Option<String>>) -> Result<Vec<Finding>> {
    let table: toml::Table = text.parse().with_context(|| format!("{file}: cannot be read"))?;
    let mut findings = Vec::new();
    for constant in table.get("constant").and_then(Value::as_array).into_iter().flatten() {
        let word = |key: &str| constant.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, place) = (word("name"), word("place"));
        // A key of a scenario stands in its section by its last part.
        let key = name.rsplit('.').next().unwrap_or(name);
        if !read(place)?.is_some_and(|text| text.contains(key)) {
            let message = format!("[[constant]] {name:?} is not in {place:?}: name the file that sets it");
            findings.push(Finding::failure(file, 0, message));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_must_be_in_the_file_that_it_names() {
        let found = |name: &str, place: &str| {
            let text = format!("[[constant]]\nname = {name:?}\nplace = {place:?}\nfitted_to = []\n");
            let read = |place: &str| Ok((place == "a.toml").then(|| "[harvest]\nlender_weight = 4\n".to_owned()));
            check_text("scenarios/x/expected.toml", &text, read).expect("it can be read").len()
        };
        assert_eq!(found("harvest.lender_weight", "a.toml"), 0);
        assert_eq!(found("harvest.borrower_weight", "a.toml"), 1);
        assert_eq!(found("harvest.lender_weight", "b.toml"), 1);
    }
}
