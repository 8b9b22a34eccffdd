//! Every number of a profile, scenario or expectation says where it comes from.

use crate::Finding;

/// Stated by the source, public artifact, derived, assumption, general knowledge.
const MARKS: [&str; 5] = ["[P]", "[C]", "[D]", "[A]", "[X]"];

/// Whether a file holds model numbers: all profiles, and each scenario's description and expectations.
pub(crate) fn applies_to(file: &str) -> bool {
    let parts: Vec<&str> = file.split('/').collect();
    match parts.as_slice() {
        ["profiles", .., name] => name.ends_with(".toml"),
        ["scenarios", _, name] => ["scenario.toml", "expected.toml"].contains(name),
        _ => false,
    }
}

/// Lines that hold a number and no provenance mark in their comment.
pub(crate) fn check(file: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut scanner = Scanner::default();
    for (index, line) in text.lines().enumerate() {
        let (has_number, comment) = scanner.scan(line);
        // The row of a table of ours is a label, and no quantity.
        let is_label = file.ends_with("/expected.toml") && line.starts_with("row = ");
        if has_number && !is_label && !MARKS.iter().any(|mark| comment.contains(mark)) {
            let message = format!("a number without a provenance mark; end the line with `# {} why`", MARKS.join("|"));
            findings.push(Finding::failure(file, index + 1, message));
        }
    }
    findings
}

/// Whether a file holds constants of reproductions: set-up in code, and the generators made of a published table.
pub(crate) fn has_constants(file: &str) -> bool {
    const STUDIES: [&str; 6] = [
        "crates/systems/xbof/src/room/study/",
        "crates/systems/lives/src/room/life/wear/",
        "crates/systems/lives/src/room/life/forward/",
        "crates/systems/lives/src/room/cvss/",
        "crates/systems/drives/src/",
        "crates/systems/ttflash/src/",
    ];
    let is_study = STUDIES.iter().any(|folder| file.starts_with(folder));
    file == "crates/pure/workload/src/table2.rs" || is_study && file.ends_with(".rs")
}

/// Constants of Rust source that hold a number and no provenance mark, neither in the comment above nor on their lines.
pub(crate) fn check_constants(file: &str, text: &str) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().take_while(|line| line.trim() != "#[cfg(test)]").collect();
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split_whitespace().take(3).collect();
        let is_constant = words.contains(&"const") && !words.contains(&"fn") && line.contains('=');
        let Some((_, value)) = line.split_once('=').filter(|_| is_constant) else { continue };
        // A statement ends with the first line that ends it.
        let ends = |line: &&str| line.split("//").next().is_some_and(|code| code.trim_end().ends_with(';'));
        let length = lines[index..].iter().position(ends).map_or(1, |place| place + 1);
        let statement = &lines[index..index + length];
        let above = lines[..index].iter().rev().take_while(|line| line.trim().starts_with("//"));
        let marked = above.chain(statement).any(|line| MARKS.iter().any(|mark| line.replace('\\', "").contains(mark)));
        let values = [&[value][..], &statement[1..]].concat();
        if !marked && values.into_iter().any(holds_number) {
            let message = format!("a constant without a provenance mark; say {} why above it", MARKS.join("|"));
            findings.push(Finding::failure(file, index + 1, message));
        }
    }
    findings
}

/// Whether a line of Rust holds a number outside of strings, comments and types.
fn holds_number(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or(line);
    let outside: String = code.split('"').step_by(2).collect();
    let mut last = ' ';
    outside.chars().any(|next| {
        let starts = next.is_ascii_digit() && !(last.is_alphanumeric() || last == '_');
        last = next;
        starts
    })
}

/// Follows multi-line strings from line to line.
#[derive(Default)]
struct Scanner {
    /// The delimiter that ends the multi-line string we are in.
    inside: Option<&'static str>,
}

impl Scanner {
    /// Whether the line states a quantity, and its comment.
    fn scan<'a>(&mut self, line: &'a str) -> (bool, &'a str) {
        // The line without its strings; keys and headers are judged on that.
        let mut bare = String::new();
        let mut quantity_in_string = false;
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            if let Some(delimiter) = self.inside {
                let Some(end) = rest.find(delimiter) else { return (false, "") };
                self.inside = None;
                rest = &rest[end + delimiter.len()..];
            } else if let Some(delimiter) = ["\"\"\"", "'''"].into_iter().find(|d| rest.starts_with(d)) {
                self.inside = Some(delimiter);
                rest = &rest[delimiter.len()..];
            } else if first == '"' || first == '\'' {
                let length = string_length(rest, first);
                let after = &rest[length..];
                let is_key = after.trim_start().starts_with('=');
                quantity_in_string |= !is_key && is_quantity(rest[1..length].trim_end_matches(first));
                bare.push_str(if is_key { "key" } else { "\"" });
                rest = after;
            } else if first == '#' {
                return (quantity_in_string || has_bare_number(&bare), rest);
            } else {
                bare.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        (quantity_in_string || has_bare_number(&bare), "")
    }
}

/// Bytes of the string that `text` starts with, both quotes included.
fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            _ if character == quote => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether a string is a number with its unit: `14 GB/s`, `30us`, `-2.5 %`; not `4k-read`, and not a name like `2025`.
fn is_quantity(text: &str) -> bool {
    let text = text.trim().trim_start_matches(['+', '-']);
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || ".,_".contains(c));
    let unit_only = unit.trim();
    let is_unit = !unit_only.is_empty() && unit_only.chars().all(|c| c.is_alphabetic() || "/%·²".contains(c));
    is_unit && unit.len() < text.len()
}

/// Whether text without strings holds a number that is not part of a key or table header.
fn has_bare_number(bare: &str) -> bool {
    let trimmed = bare.trim();
    let is_header = trimmed.starts_with('[') && trimmed.ends_with(']') && !trimmed.contains([',', '=']) && {
        let name = trimmed.trim_matches(['[', ']']).trim();
        name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '"')
    };
    if is_header {
        return false;
    }
    let is_word = |c: char| c.is_alphanumeric() || "_-+.".contains(c);
    let mut rest = trimmed;
    while let Some(start) = rest.find(is_word) {
        let tail = &rest[start..];
        let end = tail.find(|c| !is_word(c)).unwrap_or(tail.len());
        let (word, after) = tail.split_at(end);
        let is_key = after.trim_start().starts_with('=');
        if !is_key && word.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit()) {
            return true;
        }
        rest = after;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_need_a_mark() {
        for line in [
            "page_read_us = 40",
            "page_read_us = 40 # forty",
            "rate = \"14 GB/s\"",
            "latency = '30us'",
            "share = -2.5e-3",
            "depths = [1, 4]",
            "    16, 64,",
            "  [1, 2],",
            "part = { name = \"tlc\", count = 8 }",
            "big = 1_000",
            "mask = 0xff",
            "text = \"# [P]\" # 5\nn = 1",
        ] {
            let findings = check("profiles/a.toml", line);
            assert_eq!(findings.len(), 1, "{line}: {findings:?}");
        }
    }

    #[test]
    fn constants_need_a_mark_where_they_are_or_above() {
        let found = |text: &str| check_constants("crates/systems/xbof/src/room/a.rs", text).len();
        for text in
            ["const A: f64 = 0.5;", "/// Half.\nconst A: [u32; 2] = [\n    1,\n    2,\n];", "pub const A: u32 = 3;"]
        {
            assert_eq!(found(text), 1, "{text}");
        }
        for text in [
            "/// \\[A\\] half.\nconst A: f64 = 0.5;",
            "const A: f64 = 0.5; // [P] half",
            "const fn a() -> u32 { 3 }",
            "const A: &str = \"file 1\";",
            "const A: u64 = f64;",
            "#[cfg(test)]\nconst A: f64 = 0.5;",
        ] {
            assert_eq!(found(text), 0, "{text}");
        }
    }

    #[test]
    fn a_row_is_a_label_in_expectations_alone() {
        assert_eq!(check("scenarios/a/expected.toml", "row = 3"), Vec::new());
        assert_eq!(check("scenarios/a/scenario.toml", "row = 3").len(), 1);
    }

    #[test]
    fn marked_numbers_and_plain_words_are_silent() {
        for line in [
            "page_read_us = 40 # [P] sheet nand-tlc, table 2",
            "rate = \"14 GB/s\" # [A] class",
            "designs = [\"conv\", \"xbof\"]",
            "where = \"Fig. 9\"",
            "profile = \"tlc-512gb\"",
            "workload = \"4k-randread\"",
            "profile = \"2025\"",
            "p99 = \"shape\"",
            "[drive.2]",
            "[[expect]]",
            "[design.\"vh 2\"]",
            "enabled = true",
            "note = \"said \\\" 5\"",
            "about = \"\"\"\n5 drives\n\"\"\"",
            "\"2 drives\" = \"yes\"",
            "# 40 us",
            "",
        ] {
            let findings = check("profiles/a.toml", line);
            assert!(findings.is_empty(), "{line}: {findings:?}");
        }
    }

    #[test]
    fn only_files_with_model_numbers_are_read() {
        for (file, expected) in [
            ("profiles/drive/a.toml", true),
            ("profiles/a.toml", true),
            ("scenarios/xbof/scenario.toml", true),
            ("scenarios/xbof/expected.toml", true),
            ("scenarios/xbof/golden.txt", false),
            ("profiles/README.md", false),
            ("layers.toml", false),
        ] {
            assert_eq!(applies_to(file), expected, "{file}");
        }
    }
}
