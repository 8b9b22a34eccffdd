//! `flashyard age` under recorded traces: they are repeated until the drive is dead, however long one round lasts.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The study's drive with few blocks, few erases of each, and one random fill before: a lifetime of a second.
const SMALL: [&str; 6] =
    ["--set", "drive.blocks_per_plane=240", "--set", "life.endurance=60", "--set", "life.random_fills=1"];

fn repository() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3);
    root.expect("the crate lies three directories below the repository")
}

/// The record of the small drive under `trace`, at its death.
fn life(trace: &Path, capacity: &str, leveling: &str) -> Value {
    let sets = [
        format!("workload.trace={}", trace.display()),
        format!("life.capacity={capacity}"),
        format!("drive.wear_leveling={leveling}"),
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_flashyard"))
        .current_dir(repository())
        .args(["age", "scenarios/wear-leveling/scenario.toml", "--to-death", "--json"])
        .args(sets.iter().flat_map(|set| ["--set", set]))
        .args(SMALL)
        .output()
        .expect("the program starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {error}", trace.display());
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn drive_writes(life: &Value) -> f64 {
    assert!(life["death"].is_string(), "the drive is not dead: {life}");
    let slots = |pointer| life.pointer(pointer).and_then(Value::as_f64).expect("the record has it");
    slots("/last/host_slots") / slots("/drive_slots")
}

#[test]
fn a_setting_of_fast_forward_ageing_is_refused_where_all_is_simulated() {
    let age = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_flashyard"))
            .current_dir(repository())
            .args([
                "age",
                "scenarios/wear-leveling/scenario.toml",
                "--drive-writes",
                "2",
                "--set",
                "life.prediction=devs",
            ])
            .args(SMALL)
            .args(more)
            .output()
            .expect("the program starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, error) = age(&[]);
    assert_eq!(code, Some(2), "{error}");
    assert!(
        error.contains("--set life.prediction=devs: life.prediction has no effect: it goes with --fast-forward"),
        "{error}"
    );
    assert_eq!(age(&["--fast-forward", "2"]).0, Some(0));
}

#[test]
fn a_week_of_a_trace_is_repeated_until_the_drive_is_dead() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let trace = directory.path().join("trace.txt");
    // Milliseconds, volume, offset, size, read or not.
    let rows: String = (0..100).map(|row| format!("{}.0 0 {} 65536 0\n", row * 6_048_000, row % 37 * 65_536)).collect();
    std::fs::write(&trace, rows).expect("it can be written");
    let (fixed, variable) = (life(&trace, "fixed", "none"), life(&trace, "variable", "none"));
    assert!(drive_writes(&variable) > 2.0 * drive_writes(&fixed), "2 MiB of 214 are all that is ever written");
}

#[test]
fn a_drive_lives_under_real_traces_from_new_to_dead() {
    let Some(traces) = flashyard_conformance::traces("no drive aged under real traces") else { return };
    for name in ["msr-cambridge/rsrch_1.csv.zst", "umass-spc/fin1.trace.zst"] {
        let trace = traces.join(name);
        let (fixed, variable) = (life(&trace, "fixed", "none"), life(&trace, "variable", "none"));
        let leveled = life(&trace, "fixed", "pwl(50)");
        let [fixed, variable, leveled] = [&fixed, &variable, &leveled].map(drive_writes);
        eprintln!("{name}: fixed {fixed:.1}, variable {variable:.1}, PWL {leveled:.1} drive writes");
        assert!(variable >= fixed && leveled > 0.0, "{name}: {variable} after {fixed}");
    }
}
