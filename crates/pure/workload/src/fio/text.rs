//! Sections and options of a job file, before they mean anything.

use super::error::FioError;

/// An option as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) line: usize,
    pub(super) name: String,
    /// `None` for an option that stands alone.
    pub(super) value: Option<String>,
}

/// A section and its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) settings: Vec<Setting>,
}

/// Cuts `text` into sections. Comments begin with `;` or `#` anywhere in a line.
///
/// Errors: an option before the first section, a section without end or name, an option without name.
pub(super) fn sections(text: &str) -> Result<Vec<Section>, FioError> {
    let mut sections: Vec<Section> = Vec::new();
    // Editors of Windows put a byte order mark before the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, content) in text.lines().enumerate() {
        let line = index + 1;
        let content = content.split([';', '#']).next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        if let Some(rest) = content.strip_prefix('[') {
            let name = rest.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| FioError::new(line, content, "write a section as [name]"))?;
            sections.push(Section { line, name: name.to_owned(), settings: Vec::new() });
            continue;
        }
        let setting = setting(line, content)?;
        let outside = || FioError::new(line, &setting.name, "stands before the first section; write [global] above it");
        sections.last_mut().ok_or_else(outside)?.settings.push(setting.clone());
    }
    Ok(sections)
}

fn setting(line: usize, content: &str) -> Result<Setting, FioError> {
    let (name, value) = match content.split_once('=') {
        Some((name, value)) => (name.trim_end(), Some(value)),
        None => (content, None),
    };
    if name.is_empty() {
        return Err(FioError::new(line, content, "write option=value"));
    }
    if let Some(value) = value {
        // fio reads words with the blank in front of them, and then does not know them.
        if value.is_empty() || value.starts_with(char::is_whitespace) {
            return Err(FioError::new(line, name, "write the value directly after the ="));
        }
        if value.contains('$') {
            return Err(FioError::new(line, name, "variables ($...) are not supported, write the value"));
        }
    }
    Ok(Setting { line, name: name.to_owned(), value: value.map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        sections(text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn comments_blank_lines_and_lone_options_are_read() {
        let text = "; head\n[global] # first\nbs=4k ; small\n\n  [a job]\n time_based\nfilename=/dev/x\n";
        let found = sections(text).expect("it is good");
        let names: Vec<(&str, usize)> = found.iter().map(|section| (section.name.as_str(), section.line)).collect();
        assert_eq!(names, [("global", 2), ("a job", 5)]);
        assert_eq!(found[0].settings, [Setting { line: 3, name: "bs".into(), value: Some("4k".into()) }]);
        assert_eq!(found[1].settings[0], Setting { line: 6, name: "time_based".into(), value: None });
    }

    #[test]
    fn what_is_cut_wrong_is_named_with_its_line() {
        assert_eq!(error("\nrw=read\n"), "line 2: rw: stands before the first section; write [global] above it");
        assert_eq!(error("[a\n"), "line 1: [a: write a section as [name]");
        assert_eq!(error("[a]\nrw= read"), "line 2: rw: write the value directly after the =");
        assert_eq!(error("[a]\nsize=${SIZE}"), "line 2: size: variables ($...) are not supported, write the value");
        assert_eq!(error("[a]\n=read"), "line 2: =read: write option=value");
    }
}
