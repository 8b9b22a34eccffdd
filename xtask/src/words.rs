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

/// Words that the glossary has another one for, and that one. `docs/glossary.md` explains them.
const REPLACED: [(&str, &str); 9] = [
    ("box", "enclosure or JBOF"),
    ("boxes", "enclosures"),
    ("levelling", "leveling"),
    ("levelled", "leveled"),
    ("Levelling", "Leveling"),
    ("thousand million", "billion"),
    ("goes before", "takes precedence over"),
    ("go before", "take precedence over"),
    ("anew", "again, or from the start"),
];

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
    findings.extend(replaced(file, text));
    findings
}

/// Words in prose that the glossary has another one for.
fn replaced(file: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        // Examples stand between fences, in documents and in comments.
        if line.trim_start_matches(['/', '!', ' ']).starts_with("```") {
            fenced = !fenced;
        }
        let Some(prose) = prose(file, line).filter(|_| !fenced) else { continue };
        for (word, better) in REPLACED.iter().filter(|(word, _)| holds_word(&prose, word)) {
            let message = format!("`{word}` has another word here: {better}; see docs/glossary.md");
            findings.push(Finding::failure(file, index + 1, message));
        }
    }
    findings
}

/// The prose of a line, without code between backticks and without targets of links; `None` where that is nothing.
fn prose(file: &str, line: &str) -> Option<String> {
    let text = if file.ends_with(".md") {
        // History is not rewritten, and the glossary names the words.
        (!file.ends_with("CHANGELOG.md") && file != "docs/glossary.md").then_some(line)?
    } else if [".rs", ".ts", ".mjs"].iter().any(|ending| file.ends_with(ending)) {
        let start = line.trim_start();
        start.starts_with("//").then_some(start)?
    } else {
        return None;
    };
    let words: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let links: Vec<&str> = words
        .split("](")
        .enumerate()
        .map(|(part, rest)| if part == 0 { rest } else { rest.split_once(')').map_or("", |(_, after)| after) })
        .collect();
    Some(links.join(" "))
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
    fn a_replaced_word_is_found_in_prose_and_not_in_code() {
        let found = |file: &str, text: &str| check(file, text).len();
        assert_eq!(found("docs/a.md", "the box and its levelling"), 2);
        assert_eq!(found("docs/a.md", "`the box`, [a](box.md), a mailbox\n```sh\nls box\n```\n"), 0);
        assert_eq!(
            found("src/a.rs", "let x = Box::new(box_of()); // the box"),
            0,
            "only whole lines of comment are prose"
        );
        assert_eq!(found("src/a.rs", "    /// The box.\n    //! 35 thousand million\n    /// A [`Box`] of `box`."), 2);
        assert_eq!(
            found("src/a.rs", "//! ```text\n//! box.txt  a file\n//! ```\n//! the box"),
            1,
            "and fences in comments"
        );
        assert_eq!(found("CHANGELOG.md", "the box"), 0);
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
