//! `flashyard serve`, `ctl` and `replay` as a user meets them.

mod common;

use flashyard_live::Host;
use flashyard_nvme::admin::{AdminCommand, Management};
use flashyard_nvmf::initiator::InitiatorConfig;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the crate is three levels deep").to_owned()
}

fn flashyard() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
    command.current_dir(root());
    command
}

fn run(arguments: &[&str]) -> Output {
    flashyard().args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const BOX: &str = "scenarios/live/scenario.toml";

/// A program that does not outlive its test.
struct Served(Option<Child>);

impl Served {
    fn wait(mut self) -> Output {
        self.0.take().expect("it is waited for once").wait_with_output().expect("it ends")
    }

    fn interrupt(&self) {
        let id = self.0.as_ref().expect("it runs").id();
        let sent = Command::new("kill").args(["-INT", &id.to_string()]).status().expect("kill is there");
        assert!(sent.success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // Ended already is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Requests of the load, and slots that it has compared, as the report says them.
fn load_of(report: &str) -> [u64; 2] {
    let line = report.lines().find(|line| line.starts_with("load: ")).expect("the report has a line on the load");
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    [numbers[0], numbers[1]]
}

#[test]
fn a_box_is_controlled_while_it_serves_and_ends_with_a_report_and_its_journal_repeats_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = |name: &str| directory.path().join(name).to_str().expect("the path is text").to_owned();
    let (control, journal, data) = (place("control"), place("journal"), place("data"));
    for life in 0..2 {
        let arguments = [
            "serve",
            BOX,
            "--verbose",
            "--load",
            "8",
            "--pace",
            "off",
            "--data",
            &data,
            "--journal",
            &journal,
            "--force",
        ];
        let child = flashyard()
            .args(arguments)
            .args(["--control", &control])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let served = Served(Some(child));
        let began = Instant::now();
        while !run(&["ctl", &control, "status"]).status.success() {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        for command in [["pull", "3", ""], ["insert", "3", ""], ["link", "4", "down"], ["link", "4", "up"]] {
            let arguments: Vec<&str> = command.into_iter().filter(|word| !word.is_empty()).collect();
            let output = flashyard().args(["ctl", &control]).args(arguments).output().expect("the program starts");
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
        let refused = run(&["ctl", &control, "pull", "77"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains("there is no drive 77, give 0 to 11"));
        let status = run(&["ctl", &control, "status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("it is JSON");
        assert_eq!(status["drives"].as_array().map(Vec::len), Some(12));
        let table = text(&run(&["ctl", &control, "status"]).stdout);
        assert_eq!(table.lines().count(), 14, "a line for each drive: {table}");
        let one = text(&run(&["ctl", &control, "status", "--drive", "3"]).stdout);
        assert_eq!(one.lines().count(), 3, "{one}");
        served.interrupt();
        let output = served.wait();
        let report = text(&output.stdout);
        assert!(output.status.success(), "{report}{}", text(&output.stderr));
        assert!(!text(&output.stderr).contains('\u{1b}'), "escape codes are for terminals");
        let [requests, compared] = load_of(&report);
        assert!(requests > 100 && compared > 100 && report.contains(", 0 wrong"), "the load did nothing: {report}");
        assert_eq!(report.contains("of an earlier run, which ended in order"), life == 1, "{report}");
        let replayed = run(&["replay", &journal]);
        assert!(replayed.status.success(), "{}{}", text(&replayed.stdout), text(&replayed.stderr));
        let digest = |text: &str| text.lines().find(|line| line.starts_with("digest")).map(str::to_owned);
        assert_eq!(digest(&report), digest(&text(&replayed.stdout)));
        assert!(digest(&report).is_some(), "{report}");
        assert!(!Path::new(&control).exists(), "the socket goes with the program");
        if life == 0 {
            // The load begins with zeros everywhere: the next life gets the same bytes, and writes them again.
            std::fs::remove_dir_all(&data).expect("it can be removed");
            let again = run(&["serve", BOX, "--data", &data, "--seconds", "0"]);
            assert!(again.status.success(), "{}", text(&again.stderr));
        }
    }
}

#[test]
fn what_cannot_be_served_is_refused_in_words() {
    let refused = |arguments: &[&str], part: &str| {
        let output = run(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(part), "{part:?} is missing in: {error}");
    };
    refused(&["serve", "nowhere.toml"], "cannot be read");
    refused(&["serve", BOX, "--pace", "fast"], "give real, off, or simulated seconds a second");
    refused(&["serve", BOX, "--set", "serve.pace=0"], "is no pace");
    refused(&["serve", BOX, "--set", "serve.drives=[12]"], "there is no drive 12, give 0 to 11");
    refused(&["serve", BOX, "--set", "designs=[\"vh\"]"], "vh cannot serve");
    refused(&["serve", BOX, "--in-flight", "1 MiB"], "give 16 MiB to 1 TiB");
    refused(&["serve", BOX, "--connections", "0"], "1..=60000");
    refused(&["ctl", "nowhere", "status"], "no server listens there");
    refused(&["replay", "Cargo.toml"], "this is no journal of this version");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().to_str().expect("the path is text").to_owned();
    assert!(run(&["serve", BOX, "--data", &data, "--seconds", "0"]).status.success());
    refused(
        &["serve", BOX, "--data", &data, "--prefault", "16MiB"],
        "'--data <DIR>' cannot be used with '--prefault <SIZE>'",
    );
    let taken = run(&["serve", BOX, "--prefault", "16MiB", "--seconds", "0"]);
    assert!(
        taken.status.success() && text(&taken.stdout).contains("taking 16 MiB of memory"),
        "{}",
        text(&taken.stderr)
    );
    refused(
        &["serve", BOX, "--data", &data, "--set", "drive.blocks_per_plane=151", "--seconds", "0"],
        "and the scenario has drive 0",
    );
}

#[test]
fn zones_that_cannot_be_served_are_refused_with_their_place() {
    let refused = |settings: &[&str], more: &[&str]| {
        let sets = settings.iter().flat_map(|setting| ["--set", setting]);
        let arguments: Vec<&str> = ["serve", BOX].into_iter().chain(sets).chain(more.iter().copied()).collect();
        let output = run(&arguments);
        assert!(!output.status.success(), "{settings:?}");
        text(&output.stderr)
    };
    let zones = "serve.zones.size=64 MiB";
    let listen = ["--listen", "127.0.0.1:0"];
    let cases = [
        (refused(&["serve.zones.size=3 GiB"], &listen), "--set serve.zones.size=3 GiB: serve.zones.size"),
        (
            refused(&[zones, "serve.zones.capacity=65 MiB"], &listen),
            "serve.zones.capacity=65 MiB: serve.zones.capacity",
        ),
        (refused(&["serve.zones.open_max=3"], &listen), "give that too"),
        (refused(&[zones, "serve.zones.drives=[12]"], &listen), "drive 12 is not served"),
        (refused(&[zones], &[]), "only NVMe/TCP shows zones"),
        (refused(&[zones, "serve.block=512 B"], &listen), "zones have blocks of 4 KiB"),
        (refused(&[zones, "serve.protection=type-1"], &listen), "zones have blocks without metadata"),
        (refused(&[zones], &["--listen", "127.0.0.1:0", "--load", "4"]), "the load writes anywhere"),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_drive_without_zones_that_a_host_has_divided_is_served_again_beside_zoned_ones() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data").to_str().expect("the path is text").to_owned();
    let small = ["jbof.drives=2", "jbof.busy_drives=1", "drive.blocks_per_plane=20", "drive.over_provisioning=0.3"];
    let zoned = |drive: &str| {
        let zones = ["serve.zones.size=8 MiB".to_owned(), format!("serve.zones.drives=[{drive}]")];
        let settings = small.map(str::to_owned).into_iter().chain(zones);
        let sets = settings.flat_map(|setting| ["--set".to_owned(), setting]);
        sets.chain(["--pace", "off", "--data", &data].map(str::to_owned)).collect::<Vec<_>>()
    };
    let scenario = include_str!("../../../../scenarios/live/scenario.toml");
    let served = |drive: &str| {
        let arguments = zoned(drive);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        common::Server::start_with(folder.path(), "box.toml", scenario, &arguments)
    };
    let host = |server: &common::Server| {
        let config = InitiatorConfig::new("nqn.2026-01.test:host", &format!("{}drive-0", common::PREFIX));
        Host::connect(server.address, config, Duration::from_secs(30)).expect("the drive is served")
    };
    let server = served("1");
    let delete = AdminCommand::ManageNamespace { nsid: 1, select: Management::DELETE, command_set: 0 };
    assert!(host(&server).admin(delete).expect("an answer").status.is_success());
    assert!(server.interrupt().status.success());
    let server = served("1");
    assert_eq!(host(&server).controller().namespaces.len(), 0);
    assert!(server.interrupt().status.success());
    // A zoned drive is one namespace.
    let arguments = zoned("0");
    let mut command = common::program(folder.path(), "box.toml", scenario, &["--listen", "127.0.0.1:0"]);
    let output = command.args(arguments).output().expect("the program starts");
    assert!(text(&output.stderr).contains("drive 0 was divided into namespaces"), "{output:?}");
}

#[test]
fn a_server_that_is_ended_while_it_begins_ends_as_one_that_serves() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let child = flashyard()
        .args(["serve", BOX, "--pace", "off", "--data"])
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let served = Served(Some(child));
    let began = Instant::now();
    // Its drives are being made: it does not serve yet, or has just begun to.
    while !data.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "it makes no directory");
        std::thread::sleep(Duration::from_millis(1));
    }
    let id = served.0.as_ref().expect("it runs").id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill is there").success());
    let output = served.wait();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_scenario_that_is_not_for_runs_says_what_it_is_for() {
    for (name, command) in [("live", "flashyard serve live"), ("faults", "flashyard faults")] {
        let output = run(&["run", name]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("the scenario {name} is for `{command}`")), "{said}");
    }
    let output = run(&["serve", BOX, "--load", "0"]);
    assert!(text(&output.stderr).contains("give the requests in flight, from 1 to 4096"), "{}", text(&output.stderr));
    for (setting, words) in [("name=''", "name: it is empty"), ("designs=['conv', 'conv']", "conv is there twice")] {
        let output = run(&["run", "demo", "--set", setting]);
        assert!(output.status.code() == Some(2) && text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}

#[test]
fn a_server_may_have_as_many_files_open_as_the_system_lets_it() {
    let limited = "ulimit -S -n 64; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.current_dir(root()).args(["-c", limited, env!("CARGO_BIN_EXE_flashyard"), "serve", BOX, "--load", "1"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    let limits = format!("/proc/{}/limits", child.id());
    let _served = Served(Some(child));
    let open_files = || {
        let limits = std::fs::read_to_string(&limits).expect("it runs");
        let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("there is the limit");
        line.split_whitespace().skip(3).take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) && open_files()[0] != open_files()[1] {
        std::thread::sleep(Duration::from_millis(20));
    }
    let [soft, hard] = &open_files()[..] else { panic!("two limits") };
    assert_eq!(soft, hard);
}
