//! A drive of one's own, from the figures of its data sheet to a run.

use std::path::Path;
use std::process::{Command, Output};

fn flashyard(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
    command.current_dir(directory).args(arguments).stdin(std::process::Stdio::null()).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A common drive, by what its sheet says.
const FIGURES: [&str; 13] = [
    "new-drive",
    "mine",
    "--capacity",
    "1.92 TB",
    "--link",
    "pcie4x4",
    "--read-rate",
    "6.8 GB/s",
    "--program-time",
    "1200 us",
    "--program-unit",
    "word-line",
    "--power-loss-protection=true",
];

#[test]
fn figures_become_a_profile_that_runs() {
    let empty = tempfile::tempdir().expect("a directory can be made");
    let made = flashyard(empty.path(), &FIGURES);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let said = text(&made.stdout);
    assert!(said.starts_with("wrote ./profiles/drives/mine.toml: 1921.1 GB on 8 channels"), "{said}");
    assert!(said.contains("flashyard run demo --set drive.profile=mine"), "{said}");
    let written = std::fs::read_to_string(empty.path().join("profiles/drives/mine.toml")).expect("it is there");
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/new-drive.toml");
    if std::env::var_os("FLASHYARD_WRITE_RESULTS").is_some() {
        std::fs::write(golden, &written).expect("the file can be written");
    }
    assert_eq!(written, std::fs::read_to_string(golden).expect("it is there"));

    // An eighth of its blocks, so that the test is short.
    let run = [
        "run",
        "demo",
        "--set",
        "drive.profile=mine",
        "--set",
        "drive.blocks_per_plane=86",
        "--set",
        "jbof.drives=2",
        "--set",
        "jbof.busy_drives=1",
        "--set",
        "run.requests_per_drive=1000",
        "--set",
        "run.warmup=1 ms",
        "--set",
        "designs=[\"conv\", \"xbof\"]",
        "--set",
        "run.warm_mapping_requests=1000",
        "--json",
    ];
    let ran = flashyard(empty.path(), &run);
    assert!(ran.status.success(), "{}", text(&ran.stderr));

    let again = flashyard(empty.path(), &FIGURES);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("--force to overwrite"), "{}", text(&again.stderr));
}

#[test]
fn figures_that_make_no_drive_get_one_clear_error_and_no_file() {
    for (arguments, expected) in [
        (&["mine"][..], "no figure is given; give at least --capacity"),
        (&["mine", "--class", "tlc"], "drive.capacity is missing; give what the drive exports"),
        (&["../mine", "--capacity", "1 TB"], "is no name of a profile; give letters, digits and dashes"),
        (&["mine", "--capacity", "1920"], "drive.capacity is 1920 without a unit; give a size"),
        (&["mine", "--capacity", "1 TB", "--link", "usb"], "drive.link: \"usb\" is no link; give pcie3"),
        (&["mine", "--capacity", "1 TB", "--class", "plc"], "drive.class is \"plc\"; did you mean"),
        (&["mine", "--capacity", "20 TB"], "drive.capacity is \"20 TB\", out of range; give a size"),
        (&["mine", "--capacity", "1 TB", "--set", "cores"], "--set cores: give KEY=VALUE"),
        (&["mine", "--capacity", "1 TB", "--set", "coers=3"], "coers"),
        (&["mine", "--capacity", "1 TB", "--over-provisioning", "0.001"], "too few for garbage collection"),
    ] {
        let empty = tempfile::tempdir().expect("a directory can be made");
        let refused = flashyard(empty.path(), &[&["new-drive"], arguments].concat());
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected) && said.lines().count() <= 2, "{arguments:?}: {said}");
        assert!(!empty.path().join("profiles").exists(), "{arguments:?}");
    }
}
