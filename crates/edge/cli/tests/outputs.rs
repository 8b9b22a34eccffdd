//! Files and sockets that the program writes: nothing that is there already is lost by a slip of the hand.

use std::io::Read;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const BOX: &str = "scenarios/live/scenario.toml";
const DEMO: &str = "scenarios/demo/scenario.toml";
const LIFE: &str = "scenarios/ageing/life.toml";

/// A directory with a file that must not be lost.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        std::fs::write(place.path("precious"), "precious").expect("there is room");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().expect("the path is text").to_owned()
    }

    /// The command ends with status 2 and a message with all of `parts`, and the file is as it was.
    fn refused(&self, arguments: &[&str], parts: &[&str]) {
        let (code, _, error) = run(arguments);
        println!("{error}");
        assert_eq!(code, Some(2), "{arguments:?}: {error}");
        for part in parts {
            assert!(error.contains(part), "{part:?} is missing in: {error}");
        }
        let kept = std::fs::read_to_string(self.path("precious")).expect("the file is still there");
        assert_eq!(kept, "precious", "{arguments:?}");
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the crate is three levels deep")
}

/// Exit status, standard output and standard error.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let program = env!("CARGO_BIN_EXE_flashyard");
    let output = Command::new(program).args(arguments).current_dir(root()).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn done(arguments: &[&str]) -> String {
    let (code, output, error) = run(arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {output}{error}");
    output
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").mode() & 0o777
}

#[test]
fn a_file_where_a_socket_was_to_be_stays() {
    let place = Place::new();
    let (file, unix) = (place.name("precious"), format!("unix:{}", place.name("precious")));
    place.refused(&["serve", BOX, "--seconds", "0", "--control", &file], &["--control", "regular file", "not removed"]);
    place.refused(&["serve", BOX, "--seconds", "0", "--nbd", &unix], &["--nbd", "regular file", "not removed"]);
    let directory = place.directory.path().to_str().expect("the path is text");
    place.refused(&["serve", BOX, "--seconds", "0", "--control", directory], &["--control", "a directory"]);
}

#[test]
fn a_journal_takes_the_place_of_a_file_only_by_force_and_is_private() {
    let place = Place::new();
    let file = place.name("precious");
    let serve = ["serve", BOX, "--seconds", "0", "--journal"];
    place.refused(&[&serve[..], &[&file]].concat(), &["--journal", "there already", "--force"]);
    done(&[&serve[..], &[&file, "--force"]].concat());
    assert!(std::fs::read(&file).expect("it is there").starts_with(b"flashyard"));
    assert_eq!(mode(Path::new(&file)), 0o600);
    done(&[&serve[..], &[&place.name("new")]].concat());
    assert_eq!(mode(&place.path("new")), 0o600);
    // A file that the server reads is not its journal, whatever is said.
    let scenario = place.name("scenario.toml");
    std::fs::copy(root().join(BOX), &scenario).expect("there is room");
    let before = std::fs::read(&scenario).expect("it is there");
    let (code, _, error) = run(&["serve", &scenario, "--seconds", "0", "--journal", &scenario, "--force"]);
    assert!(code == Some(2) && error.contains("this command reads that file"), "{error}");
    assert_eq!(std::fs::read(&scenario).expect("it is there"), before);
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    for arguments in [&["schema"][..], &["systems", "--json"]] {
        let program = Command::new(env!("CARGO_BIN_EXE_flashyard")).args(arguments).stdout(full()).output();
        let output = program.expect("the program starts");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains("error: standard output: No space"), "{error}");
    }
    let (code, _, error) = run(&["serve", BOX, "--load", "4", "--seconds", "0.5", "--record", "/dev/full"]);
    assert!(code == Some(2) && error.contains("the trace of requests is not whole: No space"), "{error}");
}

#[test]
fn a_device_is_no_file_to_read_as_a_whole() {
    for arguments in [&["run", "/dev/zero"][..], &["run", DEMO, "--fio", "/dev/zero"], &["replay", "/dev/zero"]] {
        let (code, _, error) = run(arguments);
        assert!(code == Some(2) && error.contains("it is a device"), "{arguments:?}: {error}");
    }
}

#[test]
fn a_trace_is_not_converted_into_itself_by_any_name() {
    let place = Place::new();
    let (file, link, hard) = (place.name("t.csv"), place.name("link.csv"), place.name("hard.parquet"));
    std::fs::write(&file, "time_s,op,offset_bytes,size_bytes\n0,read,0,4096\n").expect("there is room");
    symlink("t.csv", &link).expect("it can be made");
    std::fs::hard_link(&file, &hard).expect("it can be made");
    let before = std::fs::read(&file).expect("it is there");
    let dotted = format!("{}/./t.csv", place.directory.path().display());
    for (from, to) in [(&file, &file), (&file, &link), (&link, &file), (&file, &hard), (&file, &dotted)] {
        let (code, _, error) = run(&["trace", "convert", from, to, "--to", "parquet"]);
        assert!(code == Some(2) && error.contains("this command reads that file"), "{from} {to}: {error}");
        assert_eq!(std::fs::read(&file).expect("it is there"), before);
    }
}

#[test]
fn a_trace_of_several_processors_is_not_converted_into_one_of_its_files() {
    let place = Place::new();
    let names = ["sda.blktrace.0", "sda.blktrace.1"].map(|name| place.name(name));
    for name in &names {
        std::fs::write(name, [7; 48]).expect("there is room");
    }
    for from in [&names[0], &place.directory.path().display().to_string()] {
        let (code, _, error) = run(&["trace", "convert", from, &names[1], "--to", "iolog"]);
        assert!(code == Some(2) && error.contains("this command reads that file"), "{from}: {error}");
        assert_eq!(std::fs::read(&names[1]).expect("it is there"), [7; 48]);
    }
}

#[test]
fn a_life_of_another_seed_is_repeated_by_its_resolved_scenario() {
    let place = Place::new();
    let directory = place.name("life");
    let asked = ["age", "ageing", "--drive-writes", "0.001", "--seed", "7", "--out", &directory];
    let (code, _, error) = run(&asked);
    assert_eq!(code, Some(0), "{error}");
    let text = std::fs::read_to_string(format!("{directory}/resolved.toml")).expect("it is there");
    assert!(text.lines().any(|line| line.starts_with("seed = 7 ")), "{text}");
}

#[test]
fn a_fit_that_cannot_be_kept_is_refused_before_it_begins() {
    let (code, _, error) = run(&["fit", "bad name", "--capacity", "1 TB", "--figure", "read-alone=115 us"]);
    assert!(code == Some(2) && error.contains("is no name of a profile"), "{error}");
}

#[test]
fn a_scenario_in_the_directory_of_its_results_is_not_written_over() {
    let place = Place::new();
    let scenario = place.name("resolved.toml");
    std::fs::copy(root().join(DEMO), &scenario).expect("there is room");
    let directory = place.directory.path().to_str().expect("the path is text");
    place.refused(&["run", &scenario, "--out", directory], &["resolved.toml", "this command reads that file"]);
    std::fs::copy(root().join(LIFE), &scenario).expect("there is room");
    place.refused(
        &["age", &scenario, "--drive-writes", "1", "--out", directory],
        &["resolved.toml", "this command reads that file"],
    );
    assert!(!place.path("report.html").exists(), "it is refused before the run");
}

#[test]
fn an_aged_drive_takes_the_place_of_a_file_only_by_force() {
    let place = Place::new();
    let file = place.name("precious");
    let age = ["age", LIFE, "--drive-writes", "1", "--save", &file];
    place.refused(&age, &["--save", "there already", "--force"]);
    let scenario = place.name("life.toml");
    std::fs::copy(root().join(LIFE), &scenario).expect("there is room");
    let age = ["age", &scenario, "--drive-writes", "1", "--force", "--save", &scenario];
    place.refused(&age, &["--save", "this command reads that file"]);
}

#[test]
fn a_file_of_an_aged_drive_that_unpacks_without_end_is_refused() {
    let place = Place::new();
    let bomb = zstd::encode_all(std::io::repeat(0).take(256 << 20), 3).expect("memory has room");
    std::fs::write(place.path("bomb"), bomb).expect("there is room");
    let scenario = place.name("scenario.toml");
    std::fs::copy(root().join("scenarios/ageing/scenario.toml"), &scenario).expect("there is room");
    let settings = ["--set", "drive.aged_state=bomb", "--set", "drive.blocks_per_plane=64"];
    let small = ["--set", "drive.pages_per_block=32", "--set", "workload.span=600 MiB"];
    place.refused(
        &[&["run", &scenario, "--sweep", "drive.wear.erases=0"], &settings[..], &small[..]].concat(),
        &["drive.aged_state", "unpacks to more than"],
    );
}

#[test]
fn a_volume_is_made_on_what_is_empty_or_by_force_and_whole_or_not_at_all() {
    let place = Place::new();
    let file = place.name("precious");
    place.refused(&["cvfs", "mkfs", &file, "--size", "16MiB"], &["there is something in this file", "--force"]);
    place.refused(&["cvfs", "mkfs", &file], &["there is something in this file"]);
    // Too small, also by force: everything stays as it was.
    place.refused(&["cvfs", "mkfs", &file, "--size", "1MiB", "--force"], &["too small", "segments of 512 blocks"]);
    place.refused(&["cvfs", "mkfs", &place.name("new"), "--size", "1MiB"], &["too small"]);
    place.refused(&["cvfs", "mkfs", &place.name("new")], &["give --size"]);
    assert_eq!(std::fs::read_dir(place.directory.path()).expect("it is there").count(), 1, "nothing is left behind");
    let volume = place.name("volume");
    done(&["cvfs", "mkfs", &volume, "--size", "64MiB", "--segment-blocks", "64"]);
    place.refused(&["cvfs", "mkfs", &volume, "--segment-blocks", "64"], &["there is something in this file"]);
    // Mounts hold this lock: what a mounted file has would go on in a file without a name.
    let mounted = std::fs::File::open(&volume).expect("it is there");
    mounted.try_lock().expect("it is free");
    place.refused(&["cvfs", "mkfs", &volume, "--force"], &["it is mounted, or in use by another command"]);
    drop(mounted);
    assert!(done(&["cvfs", "fsck", &volume]).contains("0 problems"));
    // A file of zeros is as good as none, and by force a volume takes the place of anything, by any name.
    std::fs::write(place.path("zeros"), vec![0; 32 << 20]).expect("there is room");
    done(&["cvfs", "mkfs", &place.name("zeros"), "--segment-blocks", "64"]);
    symlink("volume", place.path("link")).expect("it can be made");
    done(&["cvfs", "mkfs", &place.name("link"), "--size", "32MiB", "--segment-blocks", "64", "--force"]);
    assert_eq!(std::fs::metadata(&volume).expect("it is there").len(), 32 << 20);
    assert!(std::fs::symlink_metadata(place.path("link")).expect("it is there").is_symlink());
}

#[test]
fn a_volume_that_another_one_replaces_while_it_is_waited_for_is_left_alone() {
    let place = Place::new();
    let volume = place.name("volume");
    done(&["cvfs", "mkfs", &volume, "--size", "64MiB", "--segment-blocks", "64"]);
    done(&["cvfs", "mkfs", &place.name("other"), "--size", "32MiB", "--segment-blocks", "64"]);
    let lock = |name: &str| {
        let file = std::fs::File::open(place.path(name)).expect("it is there");
        file.try_lock().expect("it is free");
        file
    };
    // As another `mkfs --force` does, and a mount of what it made right behind it.
    let (old, _mounted) = (lock("volume"), lock("other"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            place.refused(&["cvfs", "mkfs", &volume, "--force"], &["it is mounted, or in use by another command"]);
        });
        std::thread::sleep(std::time::Duration::from_millis(1500));
        std::fs::rename(place.path("other"), &volume).expect("it can be renamed");
        drop(old);
    });
    assert_eq!(std::fs::metadata(&volume).expect("it is there").len(), 32 << 20);
}

#[test]
fn a_directory_without_a_volume_is_not_waited_for() {
    let place = Place::new();
    let directory = place.directory.path().to_str().expect("the path is text");
    place.refused(&["cvfs", "shrink", directory, "16MiB"], &["no volume is mounted there"]);
    place.refused(&["cvfs", "info", directory], &["no volume is mounted there"]);
}

#[test]
fn a_scenario_does_not_choose_a_directory_outside_its_own() {
    let place = Place::new();
    for name in ["/tmp/elsewhere", "../elsewhere", "a/../../b"] {
        let setting = format!("serve.data={name}");
        place.refused(&["serve", BOX, "--seconds", "0", "--set", &setting], &["serve.data", name, "--data DIR"]);
    }
}

/// Exit status, standard output and standard error of a command that takes hours unless it is refused; one that takes a minute is ended
/// with status 124.
fn run_for_a_minute(arguments: &[&str]) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_flashyard");
    let mut command = Command::new("timeout");
    command.args(["60", program]).args(arguments).current_dir(root());
    let output = command.output().expect("the program starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_directory_that_cannot_be_made_is_refused_before_the_run() {
    let place = Place::new();
    for below in ["precious", "precious/below"] {
        let directory = place.name(below);
        for command in [
            &["run", DEMO, "--set", "run.requests_per_drive=100000000", "--out", &directory][..],
            &["age", LIFE, "--drive-writes", "1000", "--out", &directory],
        ] {
            let (code, error) = run_for_a_minute(command);
            assert_eq!(code, Some(2), "{command:?}: {error}");
            assert!(error.contains(&directory) && error.contains("cannot be made"), "{error}");
        }
    }
    let (code, error) = run_for_a_minute(&["age", LIFE, "--drive-writes", "1000", "--save", &place.name("precious/x")]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("--save") && error.contains("precious"), "{error}");
}

#[test]
fn a_drive_is_saved_in_a_directory_that_is_made_for_it() {
    let place = Place::new();
    done(&["age", "ageing", "--drive-writes", "0.001", "--save", &place.name("new/x.aged")]);
    assert!(place.path("new/x.aged").is_file());
    assert_eq!(std::fs::read_dir(place.path("new")).expect("it is there").count(), 1);
}

#[test]
fn a_report_is_printed_though_its_files_cannot_be_written() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("out/report.json")).expect("there is room");
    let few = ["run.requests_per_drive=300", "run.warmup=0 ms", "designs=[\"conv\"]"];
    let run_of_few = ["run", DEMO, "--set", few[0], "--set", few[1], "--set", few[2], "--out"];
    let (code, output, error) = run(&[&run_of_few[..], &[&place.name("out")]].concat());
    assert_eq!(code, Some(2), "{output}{error}");
    assert!(error.contains("report.json"), "{error}");
    assert!(output.contains("conv"), "{output}{error}");
}
