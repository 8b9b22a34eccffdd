//! Words that must not be left behind: unfinished work, debugging, one machine's paths.

use crate::Finding;

/// Signs of unfinished work. Written in halves so that this file passes its own check.
const UNFINISHED: [&str; 5] = [
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("dbg", "!("),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
];

/// Directories that exist on one development machine only.
const MACHINE_PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/fa", "rm/")];

/// Looks at one text file; unfinished work is looked for in code only, paths everywhere.
pub(crate) fn check(file: &str, text: &str) -> Vec<Finding> {
    let is_code = [".rs", ".py", ".sh", ".js", ".ts", "Makefile"].iter().any(|ending| file.ends_with(ending));
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(word) = UNFINISHED.iter().find(|word| is_code && holds_word(line, word)) {
            findings.push(Finding::failure(
                file,
                index + 1,
                format!("`{word}` is left in the code; finish or remove it"),
            ));
        }
        if let Some(path) = MACHINE_PATHS.iter().find(|path| line.contains(**path)) {
            let message = format!("`{path}` is a path of one machine; make it relative to the repository");
            findings.push(Finding::failure(file, index + 1, message));
        }
    }
    findings
}

/// Whether `word` stands in `line` with no letter, digit or underscore directly before or after it.
fn holds_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let after = &line[start + word.len()..];
        // A macro call ends in a parenthesis, which may be followed by anything.
        let ends = word.ends_with('(') || !after.starts_with(is_part);
        ends && !line[..start].ends_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_banned_word_is_found_in_code_only() {
        for word in UNFINISHED {
            let line = format!("// {word} later");
            assert_eq!(check("src/a.rs", &line).len(), 1, "{word}");
            assert_eq!(check("notes.md", &line).len(), 0, "{word}");
        }
    }

    #[test]
    fn a_banned_word_inside_another_word_is_fine() {
        for word in [UNFINISHED[0], UNFINISHED[1]] {
            assert_eq!(check("src/a.rs", &format!("let a{word}b = 1;")), []);
        }
        assert_eq!(check("src/a.rs", &format!("my_{}x)", UNFINISHED[3])), []);
    }

    #[test]
    fn machine_paths_are_found_in_every_file() {
        for path in MACHINE_PATHS {
            for file in ["src/a.rs", "README.md", "profiles/a.toml", ".ci/run"] {
                assert_eq!(check(file, &format!("see {path}main")).len(), 1, "{path} in {file}");
            }
        }
        assert_eq!(check("README.md", "a framework/root file"), []);
    }
}
