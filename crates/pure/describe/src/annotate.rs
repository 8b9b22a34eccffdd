//! Carries the provenance marks of scenario and profiles into the resolved text, so that a result says where each
//! of its numbers comes from.

use std::collections::BTreeMap;

/// Marks of the house: published, artifact, derived, assumption, public knowledge.
const MARKS: [&str; 5] = ["# [P]", "# [C]", "# [D]", "# [A]", "# [X]"];

/// Comments with a mark, by section and key.
#[derive(Default)]
pub(crate) struct Sources(BTreeMap<(String, String), String>);

impl Sources {
    /// Takes the marks of a text. `section` names the section that lines before the first header belong to; `origin`
    /// is added to each comment. A mark that is there already stays.
    pub(crate) fn take(&mut self, text: &str, section: &str, origin: &str) {
        each_key(text, section, |section, key, line| {
            let start = MARKS.iter().filter_map(|mark| line.find(mark)).min();
            if let Some(start) = start {
                let place = (section.to_owned(), key.to_owned());
                self.0.entry(place).or_insert_with(|| format!("{}{origin}", line[start..].trim_end()));
            }
        });
    }

    /// Notes that `path` (`section.key`) was given by an override.
    pub(crate) fn overridden(&mut self, path: &str) {
        let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
        self.0.insert((section.to_owned(), key.to_owned()), "# [A] set by --set".to_owned());
    }

    /// The mark of a key; a drive of a group that does not say otherwise has it from the common one.
    fn mark(&self, section: &str, key: &str) -> Option<&String> {
        let own = self.0.get(&(section.to_owned(), key.to_owned()));
        let inherits = section.ends_with(".drive");
        own.or_else(|| inherits.then(|| self.0.get(&("drive".to_owned(), key.to_owned()))).flatten())
    }

    /// The text with the mark of each key behind its line.
    pub(crate) fn annotate(&self, text: &str) -> String {
        let mut out = String::with_capacity(2 * text.len());
        let (mut section, mut sections) = (String::new(), Sections::default());
        for line in text.lines() {
            if let Some(header) = sections.header(line) {
                section = header;
            }
            out.push_str(line);
            let source = key(line).and_then(|key| self.mark(&section, key));
            if let Some(source) = source {
                let width = line.chars().count();
                out.extend(std::iter::repeat_n(' ', 38_usize.saturating_sub(width).max(1)));
                out.push_str(source);
            }
            out.push('\n');
        }
        out
    }
}

fn each_key(text: &str, section: &str, mut found: impl FnMut(&str, &str, &str)) {
    let (mut section, mut sections) = (section.to_owned(), Sections::default());
    for line in text.lines() {
        if let Some(header) = sections.header(line) {
            section = header;
        } else if let Some(key) = key(line) {
            match key.rsplit_once('.') {
                Some((inner, key)) => found(&format!("{section}.{inner}"), key, line),
                None => found(&section, key, line),
            }
        }
    }
}

/// Names of sections; those in a list are numbered: `group.0`, `group.0.drive`, `group.1`.
#[derive(Default)]
struct Sections {
    list: String,
    count: usize,
}

impl Sections {
    /// The name of the section that `line` begins, if it does.
    fn header(&mut self, line: &str) -> Option<String> {
        let line = line.trim();
        if let Some((name, _)) = line.strip_prefix("[[").and_then(|rest| rest.split_once("]]")) {
            self.count = if self.list == name { self.count + 1 } else { 1 };
            self.list = name.to_owned();
            return Some(format!("{name}.{}", self.count - 1));
        }
        let name = line.strip_prefix('[')?.split_once(']')?.0;
        let inner = name.split_once('.').filter(|(list, _)| *list == self.list && !list.is_empty());
        Some(inner.map_or_else(|| name.to_owned(), |(list, inner)| format!("{list}.{}.{inner}", self.count - 1)))
    }
}

fn key(line: &str) -> Option<&str> {
    let (key, _) = line.split_once('=')?;
    let key = key.trim();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (!key.is_empty() && key.bytes().all(plain)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_shows_the_source_that_gave_it() {
        let mut sources = Sources::default();
        sources.overridden("drive.cores");
        sources.take("seed = 1  # [A] any\n[drive]\ncores = 2 # [P] gone\ntrace = \"a#msr\"\n", "", "");
        sources.take("read = \"40 us\" # [P] table 2\ncores = 6 # [P] sheet\n", "drive", " (profile x)");
        let text = sources.annotate("seed = 1\n\n[drive]\ncores = 4\nread = \"40 us\"\ntrace = \"a#msr\"\n");
        let squeezed: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let expected = [
            "seed = 1 # [A] any",
            "",
            "[drive]",
            "cores = 4 # [A] set by --set",
            "read = \"40 us\" # [P] table 2 (profile x)",
            "trace = \"a#msr\"",
        ];
        assert_eq!(squeezed, expected);
    }
}
