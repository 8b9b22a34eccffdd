//! Other people's programs on our formats, and the record of tests whose program is not installed.
//!
//! The tests of this crate, and of other crates at the edge, need programs, devices and recorded traces that the
//! repository does not bring. A test asks for what it needs here. Where that is missing the test passes without having
//! checked anything: a line on standard error says so, past the capture of the test harness, and the same line goes to
//! `target/skipped.txt`, which `cargo xtask skipped` counts at the end of `make test`. `FLASHYARD_REQUIRE` turns such a
//! skip into a failure: it names what must be there, separated by commas, `all` for everything, and `-NAME` for an
//! exception from that.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that names required needs.
pub const REQUIRE: &str = "FLASHYARD_REQUIRE";

/// Needs of tests. A word of [`REQUIRE`] is one of these, or `all`.
pub const NEEDS: [&str; 17] = [
    "cp",
    "diff",
    "fio",
    "fuse",
    "git",
    "losetup",
    "nbdcopy",
    "openssl",
    "parquet-reader",
    "promtool",
    "pynvme",
    "qemu-img",
    "qemu-io",
    "sqlite3",
    "traces",
    "tshark",
    "valgrind",
];

/// Whether `program` is on the `PATH`. If not, the test that asks is skipped: `unchecked` says what stays unchecked
/// then.
///
/// Panics where [`REQUIRE`] names the program.
pub fn has_program(program: &str, unchecked: &str) -> bool {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&directories).any(|directory| directory.join(program).is_file());
    if !is_there {
        skip(program, "it is not on the PATH", unchecked);
    }
    is_there
}

/// Whether this machine lets us mount with FUSE.
///
/// Panics where [`REQUIRE`] names `fuse` and it does not.
pub fn has_fuse(unchecked: &str) -> bool {
    let opened = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
    if let Err(error) = &opened {
        skip("fuse", &format!("/dev/fuse: {error}"), unchecked);
    }
    opened.is_ok()
}

/// The recorded traces beside the repository, which are too large to be part of it.
///
/// Panics where [`REQUIRE`] names `traces` and they are not there.
pub fn traces(unchecked: &str) -> Option<PathBuf> {
    let root = repository().join("../shared/traces");
    if root.is_dir() {
        return Some(root);
    }
    skip("traces", "there is no ../shared/traces beside the repository", unchecked);
    None
}

/// A Python with a module that reads Parquet, and that module's name: pyarrow or DuckDB. Debian 12 packages neither.
///
/// Panics where [`REQUIRE`] names `parquet-reader` and there is none.
pub fn parquet_reader(unchecked: &str) -> Option<&'static str> {
    let imports = |module: &&&str| {
        let import = format!("import {module}");
        Command::new("python3").args(["-c", &import]).output().is_ok_and(|output| output.status.success())
    };
    let found = ["pyarrow.parquet", "duckdb"].iter().find(imports).copied();
    if found.is_none() {
        skip("parquet-reader", "python3 knows neither pyarrow nor duckdb", unchecked);
    }
    found
}

/// Says that the present test is skipped because `need` is missing, for the reason `why`.
///
/// Panics where [`REQUIRE`] names `need`, and where it has a word that means nothing.
pub fn skip(need: &str, why: &str, unchecked: &str) {
    let rule = std::env::var(REQUIRE).unwrap_or_default();
    let missing = format!("{need} is missing ({why}): {unchecked}");
    match is_required(&rule, need) {
        Err(problem) => panic!("{REQUIRE}={rule}: {problem}"),
        Ok(true) => panic!("{missing}; {REQUIRE}={rule} asks for it"),
        Ok(false) => {}
    }
    let line = format!("{}: {missing}\n", std::thread::current().name().unwrap_or("a test"));
    // Not by `eprintln!`, which the harness hides where a test passes.
    let _ = std::io::stderr().write_all(format!("SKIPPED {line}").as_bytes());
    append(&record(), &line).unwrap_or_else(|error| panic!("{}: {error}", record().display()));
}

fn append(path: &Path, line: &str) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(line.as_bytes())
}

/// Whether the words of `rule` ask for `need`.
fn is_required(rule: &str, need: &str) -> Result<bool, String> {
    let mut required = false;
    for word in rule.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let (name, wanted) = word.strip_prefix('-').map_or((word, true), |name| (name, false));
        if name != "all" && !NEEDS.contains(&name) {
            return Err(format!("`{name}` is nothing that a test needs: give all, {}", NEEDS.join(", ")));
        }
        if name == need || name == "all" {
            required = wanted;
        }
    }
    Ok(required)
}

/// Where skipped tests are written down, one a line.
fn record() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    repository().join(target).join("skipped.txt")
}

fn repository() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3);
    root.expect("the crate lies three directories below the repository")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_that_is_about_a_program_decides() {
        for (rule, need, required) in [
            ("", "fio", false),
            ("fio", "fio", true),
            ("fio", "tshark", false),
            ("tshark, fio", "fio", true),
            ("all", "fuse", true),
            ("all,-fuse", "fuse", false),
            ("all,-fuse", "fio", true),
            ("-fuse,all", "fuse", true),
        ] {
            assert_eq!(is_required(rule, need), Ok(required), "{rule}: {need}");
        }
    }

    #[test]
    fn a_word_that_means_nothing_is_refused() {
        let problem = is_required("all,-fsck", "fio").expect_err("no test needs that");
        assert!(problem.contains("`fsck`") && problem.contains("fio, fuse"), "{problem}");
    }
}
