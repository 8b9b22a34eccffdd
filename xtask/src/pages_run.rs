//! The commands of the pages: each is run, and its output is compared with the one that the page shows.
//!
//! A page runs in an empty directory of its own, in one shell, with the program of this tree first on the `PATH`; `console`
//! says which blocks are commands and files. Standard output and standard error are compared together. A page that does not
//! name a compiler among its needs has none: its readers may have a package alone.

use crate::alignment::{Pair, agrees, align};
use crate::console::{Page, Step};
use crate::real_traces::program;
use crate::skipped::note_skipped;
use crate::{Finding, Repository};
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Where the directories of the pages lie, below the target directory.
const PLACE: &str = "pages";
/// Seconds after which a page is ended.
const PATIENCE: &str = "240";
/// Programs that build others.
const COMPILERS: [&str; 4] = ["cargo", "rustc", "rustup", "cc"];

/// A run of pages: its program, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct PagesRun<'a> {
    /// Paths of the pages from the root; all that have commands where it is empty.
    pub pages: &'a [&'a str],
    /// The program that pages call `flashyard`, in place of the release build.
    pub program: Option<&'a Path>,
    /// Whether a page takes the output that it found in place of the one that it shows.
    pub accept: bool,
}

/// Runs the commands of the pages, prints what differs, and tells whether nothing did.
///
/// Errors: a program that is not built, a page that cannot be read or has no commands, a shell that cannot be run.
pub fn pages_run(repository: &Repository, run: PagesRun<'_>) -> Result<bool> {
    let program = match run.program {
        Some(program) => program.canonicalize().with_context(|| format!("{}: is not there", program.display()))?,
        None => program(repository)?,
    };
    let runner = Runner { repository, program, accept: run.accept };
    let all = repository.files.iter().map(String::as_str).filter(|file| file.ends_with(".md"));
    let start = Instant::now();
    let (mut pages, mut failures) = (0, 0);
    for file in if run.pages.is_empty() { all.collect() } else { run.pages.to_vec() } {
        let text = repository.read(file)?;
        let found = match Page::parse(file, &text) {
            Ok(page) if page.runs() => runner.page(file, &text, &page)?,
            Ok(_) if run.pages.is_empty() => continue,
            Ok(_) => bail!("{file}: has no block of commands"),
            Err(finding) => vec![finding],
        };
        pages += 1;
        failures += found.len();
        for finding in found {
            eprintln!("{finding}");
        }
    }
    println!("{pages} pages, {failures} errors ({:.0} s)", start.elapsed().as_secs_f64());
    Ok(failures == 0)
}

struct Runner<'a> {
    repository: &'a Repository,
    program: PathBuf,
    accept: bool,
}

impl Runner<'_> {
    /// Runs the commands of one page.
    fn page(&self, file: &str, text: &str, page: &Page) -> Result<Vec<Finding>> {
        if let Some(need) = page.needs.iter().find(|need| !is_there(need)) {
            let unchecked = format!("{need} is missing: the commands of the page were not run");
            note_skipped(self.repository, file, &unchecked)?;
            let required = is_required(&std::env::var("FLASHYARD_REQUIRE").unwrap_or_default(), need);
            return Ok(required.then(|| Finding::failure(file, 0, unchecked)).into_iter().collect());
        }
        let start = Instant::now();
        let place = Place::make(&self.repository.target_directory.join(PLACE).join(file.replace('/', "-")))?;
        place.run(&self.program, page)?;
        let (mut commands, mut findings, mut edits) = (0, Vec::new(), Vec::new());
        for (number, step) in page.steps.iter().enumerate() {
            let Step::Command { line, text, output } = step else { continue };
            commands += 1;
            let name = text.lines().next().unwrap_or_default();
            let found = place.output(number)?;
            let end = place.status(number);
            if end != Some(0) {
                let how = end.map_or("did not end".to_owned(), |status| format!("ended with status {status}"));
                let message = format!("`{name}` {how}:\n{}", found.trim_end());
                findings.push(Finding::failure(file, *line, message));
                break;
            }
            let (shown, given) = (trimmed(output.iter().map(String::as_str)), trimmed(found.lines()));
            let pairs = align(&shown, &given);
            let first = Step::output_line(*line, text);
            if !agrees(&pairs) && self.accept {
                edits.push((first - 1..first - 1 + shown.len(), accepted(&pairs, &shown, &given)));
            } else if !agrees(&pairs) {
                let difference = difference(&pairs, &shown, &given, first);
                findings.push(Finding::failure(file, *line, format!("`{name}` prints something else:\n{difference}")));
            }
        }
        if !edits.is_empty() {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            for (range, accepted) in edits.into_iter().rev() {
                lines.splice(range, accepted);
            }
            let path = self.repository.root.join(file);
            fs::write(path, lines.join("\n") + "\n").with_context(|| format!("{file}: cannot be written"))?;
        }
        println!("{file}: {commands} commands ({:.1} s)", start.elapsed().as_secs_f64());
        Ok(findings)
    }
}

/// The directory of a page: where its commands run, and what they leave.
struct Place {
    work: PathBuf,
    steps: PathBuf,
}

impl Place {
    fn make(root: &Path) -> Result<Self> {
        let place = Self { work: root.join("work"), steps: root.join("steps") };
        if root.exists() {
            fs::remove_dir_all(root).with_context(|| format!("cannot remove {}", root.display()))?;
        }
        for directory in [&place.work, &place.steps] {
            fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        }
        Ok(place)
    }

    /// Carries the steps out in one shell, which ends at the first command that fails.
    fn run(&self, program: &Path, page: &Page) -> Result<()> {
        let tools = self.steps.join("bin");
        fs::create_dir_all(&tools)?;
        symlink(program, tools.join("flashyard"))?;
        for compiler in COMPILERS.into_iter().filter(|compiler| !page.needs.iter().any(|need| need == compiler)) {
            // The directory of a compiler has what pages use, too: a stand-in hides it alone.
            let stand_in = tools.join(compiler);
            fs::write(&stand_in, "#!/bin/sh\necho \"$0: the page does not name it among its needs\" >&2\nexit 127\n")?;
            fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755))?;
        }
        let script = self.steps.join("script");
        fs::write(&script, self.script(page)?)?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(tools).chain(std::env::split_paths(&path)))?;
        let mut shell = Command::new("timeout");
        shell.args(["--kill-after=5", PATIENCE, "bash"]).arg(&script).current_dir(&self.work).stdin(Stdio::null());
        shell.env("PATH", path).env("HOME", &self.steps).env("STEPS", &self.steps).env("LC_ALL", "C.UTF-8");
        shell.env_remove("XDG_CACHE_HOME").env_remove("FLASHYARD_CACHE");
        shell.status().context("the commands of a page need bash and timeout")?;
        Ok(())
    }

    fn script(&self, page: &Page) -> Result<String> {
        let mut script = "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n".to_owned();
        for (number, step) in page.steps.iter().enumerate() {
            match step {
                Step::File { name, text } => {
                    fs::write(self.steps.join(format!("{number}.file")), text)?;
                    writeln!(script, "mkdir -p \"$(dirname '{name}')\" && cp \"$STEPS/{number}.file\" '{name}'")?;
                }
                Step::Command { text, .. } => {
                    writeln!(script, "exec >\"$STEPS/{number}.output\" 2>&1\n{text}")?;
                    writeln!(script, "STATUS=$?; echo $STATUS >\"$STEPS/{number}.status\"; [ $STATUS = 0 ] || exit")?;
                }
            }
        }
        Ok(script)
    }

    /// Output of each command; empty where it was not begun.
    fn output(&self, number: usize) -> Result<String> {
        let path = self.steps.join(format!("{number}.output"));
        match fs::read(&path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// How a command ended; `None` where it did not.
    fn status(&self, number: usize) -> Option<i32> {
        fs::read_to_string(self.steps.join(format!("{number}.status"))).ok()?.trim().parse().ok()
    }
}

/// Whether a program is on the `PATH`, or, for `fuse`, whether this machine lets us mount.
fn is_there(need: &str) -> bool {
    if need == "fuse" {
        return fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").is_ok();
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories).any(|directory| directory.join(need).is_file())
}

/// Whether a rule of `FLASHYARD_REQUIRE` asks for `need`: by name, or by `all` without `-NEED`.
fn is_required(rule: &str, need: &str) -> bool {
    let names = |wanted: &str| rule.split(',').any(|word| word.trim() == wanted);
    (names("all") || names(need)) && !names(&format!("-{need}"))
}

/// Lines without blanks at their ends, and without empty ones at the end.
fn trimmed<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut lines: Vec<&str> = lines.map(str::trim_end).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

/// The lines that a page shows once it takes the output: what it leaves out stays so.
fn accepted(pairs: &[Pair], page: &[&str], output: &[&str]) -> Vec<String> {
    let line = |pair: &Pair| match *pair {
        Pair::Kept(row) => Some(page[row].to_owned()),
        Pair::Changed(_, column) | Pair::Extra(column) => Some(output[column].to_owned()),
        Pair::Missing(_) | Pair::LeftOut => None,
    };
    pairs.iter().filter_map(line).collect()
}

/// Lines in which page and output differ; those of the page have their number, counted from `first`.
fn difference(pairs: &[Pair], page: &[&str], output: &[&str], first: usize) -> String {
    let mut text = String::new();
    for pair in pairs {
        if let Pair::Changed(row, _) | Pair::Missing(row) = *pair {
            text += &format!("{:>6} - {}\n", first + row, page[row]);
        }
        if let Pair::Changed(_, column) | Pair::Extra(column) = *pair {
            text += &format!("{:>6} + {}\n", "", output[column]);
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a page of the given text with a program that repeats its arguments.
    fn run(text: &str, accept: bool) -> (Vec<Finding>, String) {
        let folder = tempfile::tempdir().expect("there is a place for it");
        fs::write(folder.path().join("p.md"), text).expect("it can be written");
        fs::create_dir(folder.path().join("target")).expect("it can be made");
        let repository = Repository {
            root: folder.path().to_owned(),
            files: vec!["p.md".to_owned()],
            target_directory: folder.path().join("target"),
            crates: Vec::new(),
        };
        let page = Page::parse("p.md", text).expect("it is a page");
        let runner = Runner { repository: &repository, program: PathBuf::from("/bin/echo"), accept };
        let found = runner.page("p.md", text, &page).expect("it runs");
        (found, repository.read("p.md").expect("it is there"))
    }

    #[test]
    fn files_and_state_go_on_within_a_page() {
        let text = "```toml title=\"a/b.toml\"\nx = 1\n```\n```console\n$ cd a; y=2\n$ cat b.toml\nx = 1\n\
                    $ flashyard $y\n2\n$ sleep 60 &\n$ echo bad >&2\n…\n```\n";
        assert_eq!(run(text, false).0, []);
    }

    #[test]
    fn a_difference_has_its_line_and_an_accepted_one_is_taken() {
        let text = "```console\n$ flashyard a; flashyard b; flashyard c\na\n…\nd\n\n$ flashyard x\ny\n```\nend\n";
        let (found, _) = run(text, false);
        let lines: Vec<usize> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [2, 7]);
        assert!(found[0].message.ends_with("     5 - d"), "{}", found[0].message);
        assert!(found[1].message.ends_with("     8 - y\n       + x"), "{}", found[1].message);
        let (found, page) = run(text, true);
        assert_eq!(found, []);
        assert!(page.ends_with("$ flashyard x\nx\n```\nend\n"), "{page}");
    }

    #[test]
    fn a_missing_program_is_a_failure_where_it_is_required() {
        assert!(is_there("sh") && !is_there("no-such-program"));
        for (rule, required) in
            [("", false), ("fio", true), ("all,-fuse", true), ("all,-fio", false), ("tshark", false)]
        {
            assert_eq!(is_required(rule, "fio"), required, "{rule}");
        }
    }

    #[test]
    fn a_command_that_fails_ends_its_page() {
        let (found, _) = run("```console\n$ flashyard a; false\na\n$ flashyard b\nc\n```\n", false);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.contains("status 1") && found[0].line == 2, "{found:?}");
    }

    #[test]
    fn a_page_has_the_compilers_that_it_asks_for() {
        assert_eq!(run("```console\n$ cargo --version || echo $?\n…among its needs\n127\n```\n", false).0, []);
        let asking = "<!-- needs: cargo -->\n```console\n$ cargo --version\ncargo …\n$ rustc --version || echo $?\n…\n127\n```\n";
        assert_eq!(run(asking, false).0, []);
    }

    #[test]
    fn a_command_that_is_cut_short_is_reported() {
        let (found, _) = run("```console\n$ flashyard 'a\n```\n", false);
        assert!(found[0].message.contains("did not end"), "{found:?}");
    }
}
