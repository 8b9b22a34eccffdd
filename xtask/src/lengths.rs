//! Files and functions that have grown past one sitting.

use anyhow::Result;

use crate::Finding;
use crate::rust_source::Outline;

/// Lines of a file, tests not counted: the first number warns, the second fails.
const FILE_LINES: (usize, usize) = (600, 1000);
/// Lines of a function outside tests: one screen warns, more fails.
const FUNCTION_LINES: (usize, usize) = (70, 120);

/// Measures one Rust or Python file; Rust functions too.
///
/// Errors: Rust that cannot be parsed.
pub(crate) fn check(file: &str, text: &str) -> Result<Vec<Finding>> {
    if is_test_file(file) {
        return Ok(Vec::new());
    }
    let outline = if file.ends_with(".rs") { Outline::parse(file, text)? } else { Outline::default() };
    let mut findings = Vec::new();
    let lines = text.lines().count() - outline.lines_of_tests;
    findings.extend(judge(file, 0, "the file without its tests", lines, FILE_LINES));
    for function in &outline.functions {
        let what = format!("function `{}`", function.name);
        findings.extend(judge(file, function.line, &what, function.length, FUNCTION_LINES));
    }
    Ok(findings)
}

/// Tests in files of their own: cargo's test and bench directories, and unit tests moved out of a module.
pub(crate) fn is_test_file(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    file.split('/').any(|part| part == "tests" || part == "benches") || name == "tests.rs" || name.starts_with("test_")
}

fn judge(file: &str, line: usize, what: &str, lines: usize, (warn, fail): (usize, usize)) -> Option<Finding> {
    if lines > fail {
        return Some(Finding::failure(file, line, format!("{what} has {lines} lines, the limit is {fail}; split it")));
    }
    let aim = format!("{what} has {lines} lines, the aim is {warn}");
    (lines > warn).then(|| Finding::warning(file, line, aim))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> Vec<(bool, usize)> {
        check(file, text).unwrap().iter().map(|finding| (finding.fails, finding.line)).collect()
    }

    fn function_of(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    #[test]
    fn a_file_warns_past_600_lines_and_fails_past_1000() {
        for (lines, expected) in
            [(600, vec![]), (601, vec![(false, 0)]), (1000, vec![(false, 0)]), (1001, vec![(true, 0)])]
        {
            assert_eq!(found("src/a.rs", &"\n".repeat(lines)), expected, "{lines} lines of Rust");
            assert_eq!(found("python/a.py", &"\n".repeat(lines)), expected, "{lines} lines of Python");
        }
    }

    #[test]
    fn a_function_warns_past_70_lines_and_fails_past_120() {
        for (lines, expected) in [(70, vec![]), (71, vec![(false, 1)]), (120, vec![(false, 1)]), (121, vec![(true, 1)])]
        {
            assert_eq!(found("src/a.rs", &function_of(lines)), expected, "{lines} lines");
        }
    }

    #[test]
    fn tests_are_not_counted() {
        let module = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function_of(1500));
        assert_eq!(found("src/a.rs", &module), []);
        assert_eq!(found("crates/a/tests/b.rs", &function_of(1500)), []);
        assert_eq!(found("crates/a/src/b/tests.rs", &function_of(1500)), []);
    }
}
