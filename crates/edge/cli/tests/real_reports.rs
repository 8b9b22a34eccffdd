//! Reports of small runs, as the program writes them, for the tests of the report page: what it says of figures is tested
//! on figures that a run gave. `FLASHYARD_WRITE_REPORTS=1` writes them again.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the crate is three levels deep").to_owned()
}

/// The document in the page of a run, without what differs from run to run or from version to version.
fn report(scenario: &str, arguments: &[&str]) -> serde_json::Value {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let scenario = format!("crates/edge/cli/tests/reports/{scenario}.toml");
    let out = directory.path().to_str().expect("the path is text");
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
    command.args(["run", &scenario, "--out", out]).args(arguments).current_dir(root());
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(directory.path().join("report.html")).expect("the page is there");
    let (_, rest) = page.split_once("type=\"application/json\">").expect("the page has a document");
    let (json, _) = rest.split_once("</script>").expect("the document ends");
    let mut document: serde_json::Value = serde_json::from_str(json).expect("it is JSON");
    document["report"]["wall_seconds"] = 0.into();
    document["version"] = "0".into();
    document
}

/// Compares with the file that the tests of the page read.
fn in_sync(name: &str, scenario: &str, arguments: &[&str]) {
    let path = root().join(format!("web/report/fixture/real/{name}.json"));
    let written = format!("{}\n", report(scenario, arguments));
    if std::env::var_os("FLASHYARD_WRITE_REPORTS").is_some() {
        std::fs::write(&path, &written).expect("the fixture can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == written,
        "web/report/fixture/real/{name}.json is not what the program writes; run this test with \
         FLASHYARD_WRITE_REPORTS=1, read the difference, and run `npm test` in web"
    );
}

#[test]
fn the_report_of_a_closed_loop_is_the_one_that_the_page_is_tested_with() {
    in_sync("closed", "closed", &[]);
}

#[test]
fn the_report_of_an_open_loop_is_the_one_that_the_page_is_tested_with() {
    in_sync("open", "open", &[]);
}

#[test]
fn the_report_of_one_design_that_is_not_steady_is_the_one_that_the_page_is_tested_with() {
    in_sync("unsteady", "unsteady", &[]);
}

#[test]
fn the_report_of_a_sweep_of_one_drive_is_the_one_that_the_page_is_tested_with() {
    let depths = ["--set", "designs=[\"conv\"]", "--set", "run.measure=2 ms"];
    in_sync("sweep", "open", &[&depths[..], &["--sweep", "workload.requests_per_second=50000.0,100000.0"]].concat());
}
