//! The commands of a page with the output that it shows, and the files that it has its reader make.
//!
//! A block of the language `console` holds commands behind `$ `, each followed by its output. A command goes on in the next
//! line behind a backslash. A block with a title, as in ```` ```toml title="drive.toml" ````,
//! is a file of that name. `<!-- needs: fio, sqlite3 -->` names programs that the commands of the page call.

use crate::Finding;

const NEEDS: (&str, &str) = ("<!-- needs:", "-->");

/// Things that a page asks its reader to do, in its order.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) needs: Vec<String>,
    pub(crate) steps: Vec<Step>,
}

/// One step of a page. Lines count from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    File { name: String, text: String },
    Command { line: usize, text: String, output: Vec<String> },
}

impl Step {
    /// The line of the page at which the output of a command begins.
    pub(crate) fn output_line(line: usize, text: &str) -> usize {
        line + text.lines().count()
    }
}

impl Page {
    /// Whether there is a command to run.
    pub(crate) fn runs(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Command { .. }))
    }

    /// Reads the page `file`.
    ///
    /// Errors: a block of commands that begins with an output, a file outside of the directory of the page.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, Finding> {
        let mut page = Self::default();
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            if let Some(names) = line.strip_prefix(NEEDS.0).and_then(|rest| rest.trim_end().strip_suffix(NEEDS.1)) {
                page.needs.extend(names.split(',').map(|name| name.trim().to_owned()));
            }
            let info = line.trim_start_matches('`');
            let fence = &line[..line.len() - info.len()];
            if fence.len() < 3 {
                continue;
            }
            let block: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim_end() != fence).collect();
            let title = info.split_once("title=\"").and_then(|(_, rest)| rest.split_once('"'));
            if info.trim_end() == "console" {
                page.steps.extend(commands(file, index + 2, &block)?);
            } else if let Some((name, _)) = title {
                let is_inside = !name.starts_with('/') && name.split('/').all(|part| !part.is_empty() && part != "..");
                if !is_inside {
                    let message = format!("`{name}` is no file below the directory in which the page runs");
                    return Err(Finding::failure(file, index + 1, message));
                }
                page.steps.push(Step::File { name: name.to_owned(), text: block.join("\n") + "\n" });
            }
        }
        Ok(page)
    }
}

/// The commands of a block whose first line is `first`.
fn commands(file: &str, first: usize, block: &[&str]) -> Result<Vec<Step>, Finding> {
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for (line, words) in (first..).zip(block) {
        if let (Some(command), false) = (words.strip_prefix("$ "), goes_on) {
            steps.push(Step::Command { line, text: command.to_owned(), output: Vec::new() });
        } else {
            let Some(Step::Command { text, output, .. }) = steps.last_mut() else {
                let message = "a block of commands begins with an output; put `$ ` before the command";
                return Err(Finding::failure(file, line, message));
            };
            match goes_on {
                true => *text = format!("{text}\n{words}"),
                false => output.push(words.trim_end().to_owned()),
            }
        }
        let Some(Step::Command { text, output, .. }) = steps.last() else { continue };
        goes_on = output.is_empty() && text.ends_with('\\');
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_files_and_needs_are_read_in_their_order() {
        let text = "# A page\n<!-- needs: fio, sqlite3 -->\n```toml title=\"a/b.toml\"\nx = 1\n```\n```sh\nnot run\n```\n\
                    ````md\n```console\n$ shown\n```\n````\n```console\n$ one \\\n  two\nout\n\n$ three \\\n  four\n```\n";
        let page = Page::parse("p.md", text).expect("it is a page");
        assert_eq!(page.needs, ["fio", "sqlite3"]);
        let lines = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let expected = [
            Step::File { name: "a/b.toml".to_owned(), text: "x = 1\n".to_owned() },
            Step::Command { line: 15, text: "one \\\n  two".to_owned(), output: lines(&["out", ""]) },
            Step::Command { line: 19, text: "three \\\n  four".to_owned(), output: Vec::new() },
        ];
        assert_eq!(page.steps, expected);
        assert!(page.runs());
        assert_eq!(Step::output_line(15, "one \\\n  two"), 17);
    }

    #[test]
    fn mistakes_have_their_line() {
        let found = Page::parse("p.md", "\n```console\nout\n```\n").expect_err("there is no command");
        assert_eq!((found.line, found.path.as_str()), (3, "p.md"));
        for name in ["/etc/x", "../x", "a//b"] {
            let text = format!("```toml title=\"{name}\"\n```\n");
            assert_eq!(Page::parse("p.md", &text).expect_err(name).line, 1);
        }
    }
}
