//! Carbon of a run, from `[carbon]` to the table, JSON, Parquet and the page.

use flashyard_columns::{TableReader, Values};
use serde_json::Value;
use std::fs::{File, read_to_string};
use std::path::Path;
use std::process::{Command, Output};

/// Runs a scenario of the repository in a few requests, with more arguments.
fn run(scenario: &str, arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the crate is three levels deep");
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
    command.current_dir(root).args(["run", &format!("scenarios/{scenario}/scenario.toml")]).args(arguments);
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

const SMALL: [&str; 4] = ["--set", "run.requests_per_drive=300", "--set", "run.warmup=0 ms"];
const DESIGNS: [&str; 2] = ["--set", "designs=[\"conv\", \"shrunk\", \"oc\"]"];
const FACTORS: [&str; 2] = ["--set", "carbon.profile=act"];

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_else(|| panic!("{of} is no number"))
}

/// Asserts that two numbers are alike but for rounding.
fn near(found: &Value, expected: f64) {
    let found = number(found);
    assert!((found / expected - 1.0).abs() < 1e-9, "{found}, by hand {expected}");
}

#[test]
fn a_run_with_factors_has_the_carbon_that_arithmetic_by_hand_gives() {
    let directory = tempfile::tempdir().expect("it can be made");
    let out = directory.path().to_str().expect("the path is text");
    let report =
        json(&run("demo", &[&SMALL[..], &DESIGNS, &FACTORS, &["--seeds", "2", "--out", out, "--json"]].concat()));
    // Twelve drives of 2^42 bytes of flash; a full one has 2^32 bytes of DRAM, a shrunk one half of them, and one of oc nothing.
    for (design, dram) in [4_294_967_296.0, 2_147_483_648.0, 0.0].into_iter().enumerate() {
        let figures = &report["designs"][design];
        let carbon = &figures["carbon"];
        let making = 12.0 * (4_398_046_511_104.0 / 1e9 * 16.9 + dram / 1e9 * 65.0);
        let five_years = 5.0 * 365.25 * 24.0 * 3600.0;
        let embodied = making * number(&figures["window_seconds"]) / five_years;
        let operational = number(&figures["energy_joules"]) / 3_600_000.0 * 380.0;
        near(&carbon["embodied_g"], embodied);
        near(&carbon["operational_g"], operational);
        near(&carbon["total_g"], embodied + operational);
        near(&carbon["g_per_request"], (embodied + operational) / number(&figures["ios"]));
    }

    let file = File::open(directory.path().join("seeds.parquet")).expect("the table was written");
    let table = TableReader::new(file).expect("it is a table");
    let column = |name| table.column(name).expect("it reads").expect("it is there");
    let (Values::Text(figures), Values::OptionalF64(values)) = (column("figure"), column("value")) else {
        panic!("names and values")
    };
    let first = figures.iter().position(|figure| figure == "carbon.total_g").expect("the figure has rows");
    assert_eq!(values[first], report["designs"][0]["carbon"]["total_g"].as_f64());
    let page = read_to_string(directory.path().join("report.html")).expect("it is there");
    assert!(page.contains("carbon.total_g") && page.contains("gCO2e/IO"), "the page declares the figures");
    assert!(read_to_string(directory.path().join("resolved.toml")).expect("it is there").contains("[carbon]"));
}

#[test]
fn the_table_has_units_in_which_carbon_is_read_at_a_glance() {
    let alone = [&SMALL[..], &["--set", "designs=[\"conv\"]"]].concat();
    let with = [&alone[..], &FACTORS].concat();
    let text = String::from_utf8(run("demo", &with).stdout).expect("text");
    let carbon = &json(&run("demo", &[&with[..], &["--json"]].concat()))["designs"][0]["carbon"];
    let shown =
        [format!("{:.2}", number(&carbon["total_g"]) * 1e3), format!("{:.1}", number(&carbon["g_per_request"]) * 1e9)];
    for part in ["mgCO2e", "ngCO2e/IO", &shown[0], &shown[1]] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let without = String::from_utf8(run("demo", &alone).stdout).expect("text");
    assert!(!without.contains("CO2e") && !without.contains("carbon"), "{without}");
    assert!(json(&run("demo", &[&alone[..], &["--json"]].concat()))["designs"][0].get("carbon").is_none());
}

#[test]
fn a_system_without_energy_says_that_carbon_is_missing() {
    let small = ["--set", "run.warmup=1 ms", "--set", "run.measure=2 ms", "--set", "designs=[\"first\"]", "--json"];
    let report = json(&run("mirror", &[&small[..], &FACTORS].concat()));
    assert!(report["designs"][0].get("carbon").is_none());
    let told = |report: &Value| {
        report["notes"].to_string().contains("no carbon: runs of mirror do not report the whole energy")
    };
    assert!(told(&report), "{}", report["notes"]);
    assert!(!told(&json(&run("mirror", &small))));
}
