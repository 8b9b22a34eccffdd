//! First commands of a newcomer, in a directory that holds nothing: the program must not need its repository.

use std::path::Path;
use std::process::{Command, Output};

fn flashyard(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
    command.current_dir(directory).args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Settings that make the demo a matter of a moment.
const SMALL: [&str; 8] = [
    "--set",
    "jbof.drives=2",
    "--set",
    "jbof.busy_drives=1",
    "--set",
    "run.warm_mapping_requests=1000",
    "--set",
    "run.requests_per_drive=2000",
];

#[test]
fn the_demo_runs_from_the_program_alone() {
    let empty = tempfile::tempdir().expect("a directory can be made");
    let ran = flashyard(empty.path(), &[&["demo", "--set", "run.warmup=1 ms", "--json"], &SMALL[..]].concat());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("it prints JSON");
    assert_eq!(report["designs"].as_array().map(Vec::len), Some(7));
    for design in report["designs"].as_array().expect("it is a list") {
        assert_eq!(design["ios"].as_u64().map(|requests| requests > 0), Some(true), "{design}");
    }
}

#[test]
fn init_writes_a_scenario_that_runs_and_overwrites_nothing() {
    let empty = tempfile::tempdir().expect("a directory can be made");
    let made = flashyard(empty.path(), &["init", "mine"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(text(&made.stdout).contains("flashyard run mine/scenario.toml"), "{}", text(&made.stdout));

    // The profiles beside it are the ones that count.
    let profile = empty.path().join("mine/profiles/drives/xbof-4tb.toml");
    let slower = std::fs::read_to_string(&profile).expect("init wrote it").replace("\ncores = 6 ", "\ncores = 2 ");
    std::fs::write(&profile, slower).expect("the file can be written");
    let run = [&["run", "mine/scenario.toml", "--set", "run.warmup=1 ms", "--out", "page"], &SMALL[..]].concat();
    let ran = flashyard(empty.path(), &run);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let resolved = std::fs::read_to_string(empty.path().join("page/resolved.toml")).expect("--out writes it");
    assert!(resolved.contains("cores = 2 "), "{resolved}");

    let again = flashyard(empty.path(), &["init", "mine"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("give --force"), "{}", text(&again.stderr));
    let kept = std::fs::read_to_string(&profile).expect("it is there");
    assert!(kept.contains("\ncores = 2 "), "a refused init changed a file");
    assert!(flashyard(empty.path(), &["init", "mine", "--force"]).status.success());
}

#[test]
fn init_offers_every_carried_scenario() {
    let empty = tempfile::tempdir().expect("a directory can be made");
    let help = text(&flashyard(empty.path(), &["init", "--help"]).stdout).replace('\n', " ");
    let refused = flashyard(empty.path(), &["init", "mine", "--from", "dmeo"]);
    assert_eq!(refused.status.code(), Some(2));
    let message = text(&refused.stderr);
    let names = message.trim().rsplit_once("it carries ").expect("the message lists them").1;
    for name in names.split(", ") {
        assert!(help.contains(name), "{name} is not in the help: {help}");
        assert!(flashyard(empty.path(), &["init", name, "--from", name]).status.success(), "{name}");
        assert!(empty.path().join(name).join("scenario.toml").is_file());
    }
}

#[test]
fn shells_complete_every_command_and_each_has_a_page_of_the_manual() {
    let program = || Command::new(env!("CARGO_BIN_EXE_flashyard"));
    let help = program().arg("--help").output().expect("the program starts");
    let help = String::from_utf8(help.stdout).expect("it is text");
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter(|line| line.as_bytes()[2].is_ascii_lowercase())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.contains(&"run") && commands.contains(&"completions"), "{commands:?}");
    for shell in ["bash", "zsh", "fish"] {
        let output = program().args(["completions", shell]).output().expect("the program starts");
        let text = String::from_utf8(output.stdout).expect("it is text");
        commands.iter().for_each(|command| assert!(text.contains(command), "{shell}: {command}"));
        assert!(output.status.success() && text.contains("--set"), "{shell}");
    }
    let directory = tempfile::tempdir().expect("there is room");
    let output = program().arg("man").arg(directory.path()).output().expect("the program starts");
    assert!(output.status.success(), "{output:?}");
    for command in commands {
        let page = std::fs::read_to_string(directory.path().join(format!("flashyard-{command}.1")));
        assert!(page.is_ok_and(|page| page.starts_with(".")), "{command}");
    }
}
