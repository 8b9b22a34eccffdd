//! `flashyard serve` with a file of volumes: what its rules promise, over kills, lost ends and cut connections.

mod common;

use common::*;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A server of one file.
fn disk(folder: &Path) -> Server {
    Server::start(folder, "disk.toml", "[[volume]]\nname = \"disk\"\nback = { file = \"disk\", size = \"64 MiB\" }\n")
}

fn latte(front: &str, back: &str) -> String {
    let rule = "service = \"latte\"\nrule = \"front\"\n";
    format!("[[volume]]\nname = \"v\"\n{rule}front = {{ {front} }}\nback = {{ {back} }}\n")
}

#[test]
fn after_a_kill_everything_flushed_is_there_and_nothing_else_is_claimed() {
    let folder = tempfile::tempdir().expect("there is room");
    let back = disk(folder.path());
    for front in ["memory = \"16 MiB\"", "file = \"front\", size = \"16 MiB\""] {
        let text = latte(front, &back.leg("disk"));
        let server = Server::start(folder.path(), "latte.toml", &text);
        let mut volume = server.volume("v");
        // 4 MiB that are flushed, of which some are written again, and as much that is not.
        (0..8).for_each(|part| volume.write(part * 128_u64, &stamped(part * 128, 128, 1)).expect("it is there"));
        volume.flush().expect("both ends are there");
        volume.write(100_u64, &stamped(100, 50, 2)).expect("it is there");
        volume.write(2000_u64, &stamped(2000, 64, 2)).expect("it is there");
        assert_eq!(read(&mut volume, 100, 50), Ok(stamped(100, 50, 2)), "the newest copy is read");
        server.kill();
        for server in [None, Some(Server::start(folder.path(), "latte.toml", &text))] {
            let mut volume = server.as_ref().map_or_else(|| back.volume("disk"), |server| server.volume("v"));
            assert_eq!(read(&mut volume, 0, 100), Ok(stamped(0, 100, 1)));
            assert_eq!(read(&mut volume, 150, 874), Ok(stamped(150, 874, 1)));
            // Blocks that were written again have either version; those that were never flushed are there or not.
            for block in (100..150).chain(2000..2064) {
                let found = read(&mut volume, block, 1).expect("it is there");
                let old = if block < 150 { stamped(block, 1, 1) } else { vec![0; BLOCK] };
                assert!(found == old || found == stamped(block, 1, 2), "block {block} is torn or of another");
            }
        }
        let mut volume = back.volume("disk");
        volume.write(0_u64, &vec![0; 2064 * BLOCK]).expect("it is there");
    }
}

#[test]
fn through_a_cache_every_answered_write_is_at_the_back_end_and_a_second_read_is_in_front() {
    let folder = tempfile::tempdir().expect("there is room");
    let back = disk(folder.path());
    let text_of_cache = latte("memory = \"16 MiB\"", &back.leg("disk"));
    let text_of_cache = text_of_cache.replace("service = \"latte\"\nrule = \"front\"", "service = \"cache\"");
    let server = Server::start(folder.path(), "cache.toml", &text_of_cache);
    let mut volume = server.volume("v");
    volume.write(0_u64, &stamped(0, 300, 1)).expect("it is there");
    server.kill();
    assert_eq!(read(&mut back.volume("disk"), 0, 300), Ok(stamped(0, 300, 1)));
    let server = Server::start(folder.path(), "cache.toml", &text_of_cache);
    let mut volume = server.volume("v");
    (0..4).for_each(|_| assert_eq!(read(&mut volume, 0, 300), Ok(stamped(0, 300, 1))));
    volume.write(7_u64, &stamped(7, 1, 2)).expect("it is there");
    assert_eq!(read(&mut volume, 7, 1), Ok(stamped(7, 1, 2)), "the copy in front is not the newest");
    drop(back);
    assert_eq!(read(&mut volume, 8, 290), Ok(stamped(8, 290, 1)), "the copies in front are read without the back end");
    server.kill();
}

#[test]
fn an_interrupt_brings_everything_to_the_back_end() {
    let folder = tempfile::tempdir().expect("there is room");
    let back = disk(folder.path());
    let server = Server::start(folder.path(), "latte.toml", &latte("memory = \"16 MiB\"", &back.leg("disk")));
    let mut volume = server.volume("v");
    (0..8).for_each(|part| volume.write(part * 100_u64, &stamped(part * 100, 100, 3)).expect("it is there"));
    let ended = server.interrupt();
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    assert!(text(&ended.stdout).contains("800 flushed, 0 lost"), "{}", text(&ended.stdout));
    assert_eq!(read(&mut back.volume("disk"), 0, 800), Ok(stamped(0, 800, 3)));
}

#[test]
fn without_its_front_end_a_volume_goes_on_and_says_what_is_lost() {
    let folder = tempfile::tempdir().expect("there is room");
    let back = disk(folder.path());
    let front =
        Server::start(folder.path(), "front.toml", "[[volume]]\nname = \"ram\"\nback = { memory = \"16 MiB\" }\n");
    let (socket, pair) = (folder.path().join("ctl").display().to_string(), latte(&front.leg("ram"), &back.leg("disk")));
    let server = Server::start_with(folder.path(), "latte.toml", &pair, &["--control", &socket]);
    let mut volume = server.volume("v");
    volume.write(0_u64, &stamped(0, 100, 1)).expect("it is there");
    volume.flush().expect("both ends are there");
    volume.write(50_u64, &stamped(50, 100, 2)).expect("it is there");
    front.kill();
    // Until the server knows, requests may fail; then flushed data is read at the back end.
    let begun = Instant::now();
    while read(&mut volume, 0, 50) != Ok(stamped(0, 50, 1)) {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not go on");
    }
    for block in 50..150 {
        assert!(read(&mut volume, block, 1).is_err(), "block {block} is lost, and an old version is no answer");
    }
    assert!(volume.flush().is_err(), "a flush promises what was written before it");
    volume.flush().expect("it was told");
    let remove = ctl(&socket, &["remove", "v", "s0"]);
    assert!(text(&remove.stderr).contains("write them first"), "{}", text(&remove.stderr));
    assert!(read(&mut volume, 149, 1).is_err(), "an old version is no answer without a LATTE either");
    volume.write(50_u64, &stamped(50, 100, 3)).expect("the back end takes it");
    assert_eq!(read(&mut volume, 50, 100), Ok(stamped(50, 100, 3)));
    let remove = ctl(&socket, &["remove", "v", "s0"]);
    assert!(remove.status.success(), "{}", text(&remove.stderr));
    assert_eq!(read(&mut volume, 50, 100), Ok(stamped(50, 100, 3)));
    let ended = server.interrupt();
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    assert!(text(&ended.stderr).contains("the front end is lost"), "{}", text(&ended.stderr));
    assert_eq!(read(&mut back.volume("disk"), 50, 100), Ok(stamped(50, 100, 3)));
}

#[test]
fn without_its_back_end_a_volume_fails_and_does_not_claim_a_flush() {
    let folder = tempfile::tempdir().expect("there is room");
    let back = disk(folder.path());
    let server = Server::start(folder.path(), "latte.toml", &latte("memory = \"16 MiB\"", &back.leg("disk")));
    let mut volume = server.volume("v");
    volume.write(0_u64, &stamped(0, 100, 1)).expect("it is there");
    back.kill();
    assert_eq!(read(&mut volume, 0, 100), Ok(stamped(0, 100, 1)), "the front end has it");
    assert!(volume.flush().is_err());
    assert!(read(&mut volume, 5000, 1).is_err());
    assert!(volume.flush().is_err(), "nor does a second one");
    let ended = server.interrupt();
    assert!(!ended.status.success() && text(&ended.stdout).contains("NOT FLUSHED"), "{}", text(&ended.stdout));
    assert!(text(&ended.stderr).contains("the back end is lost"), "{}", text(&ended.stderr));
}

#[test]
fn a_file_that_was_cut_off_is_lost() {
    let folder = tempfile::tempdir().expect("there is room");
    let server = disk(folder.path());
    let mut volume = server.volume("disk");
    volume.write(0_u64, &stamped(0, 10, 1)).expect("it is there");
    let file = std::fs::OpenOptions::new().write(true).open(folder.path().join("disk")).expect("it is there");
    file.set_len(5 * BLOCK as u64).expect("it is ours");
    assert!(read(&mut volume, 0, 10).is_err());
    assert!(read(&mut volume, 0, 1).is_err(), "it has ended");
    assert!(server.kill().contains("the file is shorter than it was"));
}

#[test]
fn a_throttled_volume_takes_its_time_and_keeps_its_bytes() {
    let folder = tempfile::tempdir().expect("there is room");
    let text = "[[volume]]\nname = \"slow\"\nback = { memory = \"16 MiB\", latency = \"20 ms\", iops = 1000 }\n";
    let server = Server::start(folder.path(), "slow.toml", text);
    let mut volume = server.volume("slow");
    let begun = Instant::now();
    (0..5).for_each(|part| volume.write(part * 10_u64, &stamped(part * 10, 10, 1)).expect("it is there"));
    assert_eq!(read(&mut volume, 0, 50), Ok(stamped(0, 50, 1)));
    assert!(begun.elapsed() >= Duration::from_millis(120), "six requests of 20 ms");
}

#[test]
fn fio_verifies_a_latte_over_nbd() {
    if !flashyard_conformance::has_program("fio", "it was not tried against volumes") {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room");
    let back = disk(folder.path());
    let socket = folder.path().join("nbd");
    let front = "file = \"front\", size = \"16 MiB\"";
    let more = ["--nbd", &format!("unix:{}", socket.display())];
    let _server = Server::start_with(folder.path(), "latte.toml", &latte(front, &back.leg("disk")), &more);
    let output = Command::new("fio")
        .args(["--name=verify", "--ioengine=nbd", "--rw=randrw", "--bsrange=4k-1m", "--blockalign=4k"])
        .args(["--iodepth=16", "--size=40m", "--verify=crc32c", "--fsync=32", "--minimal"])
        .arg(format!("--uri=nbd+unix:///v?socket={}", socket.display()))
        .arg(format!("--aux-path={}", folder.path().display()))
        .output()
        .expect("it starts");
    let said = text(&output.stdout);
    let errors = said.lines().last().and_then(|line| line.split(';').nth(4)).expect("terse output has the error");
    assert_eq!(errors, "0", "{said}{}", text(&output.stderr));
}

#[test]
fn what_is_wrong_is_one_clear_error() {
    const SECRET: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
    const OTHER: &str = "DHHC-1:00:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:";
    let folder = tempfile::tempdir().expect("there is room");
    let private = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("there is room");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
        path.display().to_string()
    };
    let hosts = private("hosts", &format!("nqn.2026-01.test:v {SECRET}\n"));
    private("other", OTHER);
    let text_of_disk = "[[volume]]\nname = \"disk\"\nback = { file = \"disk\", size = \"64 MiB\" }\n";
    let guarded = Server::start_with(folder.path(), "guarded.toml", text_of_disk, &["--hosts", &hosts]);
    let open =
        Server::start(folder.path(), "open.toml", "[[volume]]\nname = \"ram\"\nback = { memory = \"16 MiB\" }\n");
    let volume = |back: &str| format!("[[volume]]\nname = \"v\"\nback = {{ {back} }}\n");
    let closed = free_address();
    let named = "host_nqn = \"nqn.2026-01.test:v\"";
    let cases = [
        (volume(&open.leg("ram").replace("namespace = 1", "namespace = 7")), "namespace 7: does not exist"),
        (volume(&open.leg("nothing")), "nqn.2026-11.io.flashyard:nothing at"),
        (volume(&format!("nvme_tcp = \"{closed}\", nqn = \"x\"")), "no connection"),
        (volume(&format!("{}, {named}, secret_file = \"other\"", guarded.leg("disk"))), "authentication failed"),
        (volume(&format!("{}, {named}, secret_file = \"hosts\"", guarded.leg("disk"))), "a secret has the form"),
        (volume("file = \"disk\""), "in use by another server"),
        (volume("file = \"nowhere\""), "does not exist; say how large"),
        (volume("file = \"other\""), "a volume needs at least one block"),
        (volume("memory = \"1 GiB\", size = \"1 GiB\""), "line 3: size goes with file only"),
        (latte("memory = \"1 MiB\"", "memory = \"16 MiB\""), "a front end of 1 MiB, give 8 MiB or more"),
    ];
    for (text_of_file, expected) in cases {
        let ended =
            program(folder.path(), "wrong.toml", &text_of_file, &["--seconds", "1"]).output().expect("it starts");
        let said = text(&ended.stderr);
        assert!(!ended.status.success() && said.contains(expected), "{text_of_file}: {said}");
        assert!(!said.contains("AAECAwQ") && !said.contains("AQIDBAU"), "no secret is shown: {said}");
    }
    let stray = program(folder.path(), "stray.toml", &volume("memory = \"1 MiB\""), &["--pace", "off"]);
    let said = text(&{ stray }.output().expect("it starts").stderr);
    assert!(said.contains("--pace is for the drives of a scenario"), "{said}");
}

#[test]
fn what_clients_ask_for_is_recorded_and_read_as_a_trace() {
    let folder = tempfile::tempdir().expect("there is room");
    let trace = folder.path().join("requests.csv");
    let record = ["--record", trace.to_str().expect("it is text")];
    let volume = "[[volume]]\nname = \"v\"\nback = { memory = \"16 MiB\" }\n";
    let server = Server::start_with(folder.path(), "v.toml", volume, &record);
    let mut client = server.volume("v");
    client.write(8_u64, &stamped(8, 4, 1)).expect("it is there");
    assert_eq!(read(&mut client, 9, 2), Ok(stamped(9, 2, 1)));
    client.flush().expect("it is there");
    drop(client);
    assert!(server.interrupt().status.success());
    let rows = std::fs::read_to_string(&trace).expect("it was written");
    let columns = |line: &str| line.split(',').skip(1).take(4).map(str::to_owned).collect::<Vec<_>>().join(" ");
    let found: Vec<String> = rows.lines().skip(1).map(columns).collect();
    // The host may have asked for something of its own first.
    assert!(found.ends_with(&["w 32768 16384 0", "r 36864 8192 0", "f 0 0 0"].map(str::to_owned)), "{rows}");
    let info = Command::new(env!("CARGO_BIN_EXE_flashyard")).args(["trace", "info"]).arg(&trace).output();
    let info = info.expect("the program starts");
    assert!(info.status.success(), "{}", text(&info.stderr));
    // A file that is there stays as it is.
    let again = program(folder.path(), "v.toml", volume, &record).output().expect("the program starts");
    assert!(!again.status.success() && text(&again.stderr).contains("--force"), "{}", text(&again.stderr));
    assert_eq!(std::fs::read_to_string(&trace).expect("it is there"), rows);
}

/// A small enclosure as fast as it can be.
const ENCLOSURE: &str = r#"
name = "small"
seed = 1
designs = ["conv"]
[jbof]
drives = 2
busy_drives = 2
[drive]
profile = "xbof-4tb"
channels = 4
dies_per_channel = 2
planes_per_die = 2
blocks_per_plane = 40
pages_per_block = 64
over_provisioning = 0.3
filled = 0.0
reclaim_reads = 8
write_buffer = "4 MiB"
[host]
profile = "dpu"
[prices]
profile = "2025"
[serve]
pace = "off"
"#;

#[test]
fn a_volume_over_a_drive_of_a_model_keeps_what_was_flushed_over_a_kill() {
    let folder = tempfile::tempdir().expect("there is room");
    std::fs::write(folder.path().join("small.toml"), ENCLOSURE).expect("there is room");
    let text = latte("memory = \"16 MiB\"", "drive = \"small.toml\", data = \"kept\", number = 1");
    let server = Server::start(folder.path(), "v.toml", &text);
    let mut volume = server.volume("v");
    volume.write(20_u64, &stamped(20, 10, 1)).expect("it is there");
    volume.flush().expect("it is there");
    assert_eq!(read(&mut volume, 20, 10), Ok(stamped(20, 10, 1)));
    drop(volume);
    server.kill();
    let server = Server::start(folder.path(), "v.toml", &text);
    let mut volume = server.volume("v");
    assert_eq!(read(&mut volume, 20, 10), Ok(stamped(20, 10, 1)));
    volume.write(21_u64, &stamped(21, 1, 2)).expect("it is there");
    drop(volume);
    // In order, the log goes to the drive, and the drive ends in order.
    let ended = server.interrupt();
    assert!(ended.status.success(), "{}", all_text(&ended));
    let plain = "[[volume]]\nname = \"v\"\nback = { drive = \"small.toml\", data = \"kept\", number = 1 }\n";
    let server = Server::start(folder.path(), "plain.toml", plain);
    assert_eq!(read(&mut server.volume("v"), 21, 1), Ok(stamped(21, 1, 2)));
}

fn all_text(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_drive_that_cannot_be_run_is_refused_in_words() {
    let folder = tempfile::tempdir().expect("there is room");
    std::fs::write(folder.path().join("small.toml"), ENCLOSURE).expect("there is room");
    for (leg, expected) in [
        ("drive = \"none.toml\"", "none.toml: the scenario cannot be read"),
        ("drive = \"nothing\"", "the program carries no scenario of that name"),
        ("drive = \"small.toml\", number = 2", "it exports 2 volumes, and there is no number 2"),
        ("drive = \"local-storage\"", "flashyard serve does not serve local-storage"),
    ] {
        let text_of = format!("[[volume]]\nname = \"v\"\nback = {{ {leg} }}\n");
        let output = program(folder.path(), "v.toml", &text_of, &[]).output().expect("the program starts");
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{leg}: {said}");
    }
}

#[test]
fn a_mirror_of_a_file_and_a_namespace_goes_on_when_either_is_lost() {
    let folder = tempfile::tempdir().expect("there is room");
    let far = disk(folder.path());
    let legs = format!("legs = [{{ file = \"near\", size = \"64 MiB\" }}, {{ {} }}]", far.leg("disk"));
    let mirror = format!("[[volume]]\nname = \"m\"\nservice = \"mirror\"\n{legs}\n");
    let server = Server::start(folder.path(), "mirror.toml", &mirror);
    let mut volume = server.volume("m");
    volume.write(100_u64, &stamped(100, 40, 1)).expect("it is there");
    far.kill();
    volume.write(110_u64, &stamped(110, 5, 2)).expect("one leg has it");
    assert_eq!(read(&mut volume, 100, 10), Ok(stamped(100, 10, 1)));
    assert_eq!(read(&mut volume, 110, 5), Ok(stamped(110, 5, 2)));
    volume.flush().expect("one leg has it");
    drop(volume);
    let said = server.kill();
    assert!(said.contains("the volume has lost a part of its storage"), "{said}");
    // The file alone has all of it; the other one has the older version.
    let near = "[[volume]]\nname = \"n\"\nback = { file = \"near\" }\n";
    let server = Server::start(folder.path(), "near.toml", near);
    assert_eq!(read(&mut server.volume("n"), 110, 5), Ok(stamped(110, 5, 2)));
}

#[test]
fn services_compose_to_trees_and_fio_verifies_one() {
    let folder = tempfile::tempdir().expect("there is room");
    let pair = "{ service = \"mirror\", legs = [{ memory = \"32 MiB\" }, { memory = \"32 MiB\" }] }";
    let text_of = format!(
        "[[volume]]\nname = \"t\"\nservice = \"stripe\"\nchunk = \"16 KiB\"\nlegs = [{pair}, {{ service = \"spill-over\", \
         legs = [{{ memory = \"8 MiB\" }}, {{ file = \"rest\", size = \"24 MiB\" }}] }}]\n"
    );
    let socket = folder.path().join("nbd");
    let more = ["--nbd", &format!("unix:{}", socket.display())];
    let server = Server::start_with(folder.path(), "tree.toml", &text_of, &more);
    let mut volume = server.volume("t");
    // Across chunks, and across the border of the second leg.
    for first in [0, 3, 4090, 8000] {
        volume.write(first, &stamped(first, 70, 3)).expect("it is there");
        assert_eq!(read(&mut volume, first, 70), Ok(stamped(first, 70, 3)), "{first}");
    }
    drop(volume);
    if flashyard_conformance::has_program("fio", "it was not tried against a tree of services") {
        let output = Command::new("fio")
            .args(["--name=verify", "--ioengine=nbd", "--rw=randrw", "--bsrange=4k-256k", "--blockalign=4k"])
            .args(["--iodepth=16", "--size=60m", "--verify=crc32c", "--minimal"])
            .arg(format!("--uri=nbd+unix:///t?socket={}", socket.display()))
            .arg(format!("--aux-path={}", folder.path().display()))
            .output()
            .expect("it starts");
        let said = text(&output.stdout);
        let errors = said.lines().last().and_then(|line| line.split(';').nth(4)).expect("terse output has the error");
        assert_eq!(errors, "0", "{said}{}", text(&output.stderr));
    }
}

#[test]
fn a_composition_that_is_wrong_is_refused_with_its_line() {
    let folder = tempfile::tempdir().expect("there is room");
    let memory = "{ memory = \"16 MiB\" }";
    for (rest, expected) in [
        ("service = \"mirror\"\nlegs = []".to_owned(), "0 legs, give 1 to 8"),
        (format!("service = \"stripe\"\nrecord = true\nlegs = [{memory}, {memory}]"), "record goes with"),
        (format!("service = \"mirror\"\nlegs = [{memory}, {{ memory = \"8 KiB\" }}]"), "no room for the record"),
        (format!("service = \"spill-over\"\nlegs = [{memory}, {memory}, {memory}]"), "3 legs, give 2 "),
        (format!("service = \"mirror\"\nchunk = \"4 KiB\"\nlegs = [{memory}, {memory}]"), "chunk goes with"),
        (format!("service = \"stripe\"\nchunk = \"5 KiB\"\nlegs = [{memory}, {memory}]"), "chunk is whole blocks"),
        (format!("service = \"stripe\"\nchunk = \"32 MiB\"\nlegs = [{memory}, {memory}]"), "holds no chunk"),
        (format!("service = \"mirror\"\nback = {memory}\nlegs = [{memory}, {memory}]"), "has legs, and no back"),
        (format!("legs = [{memory}, {memory}]"), "legs go with service"),
        ("service = \"latte\"".to_owned(), "needs storage"),
        (format!("service = \"stripe\"\nlegs = [{memory}, {{ service = \"stripe\", legs = [{memory}] }}]"), "1 legs"),
        (format!("service = \"stripe\"\nlegs = [{memory}, {{ service = \"latte\" }}]"), "0 legs, give 2"),
    ] {
        let text_of = format!("[[volume]]\nname = \"v\"\n{rest}\n");
        let output = program(folder.path(), "v.toml", &text_of, &["--seconds", "0"]).output().expect("it starts");
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{rest}: {said}");
    }
}

#[test]
fn a_leg_is_replaced_and_rebuilt_under_load_and_the_new_one_alone_has_everything() {
    let folder = tempfile::tempdir().expect("there is room");
    let socket = folder.path().join("ctl").display().to_string();
    let description = "[[volume]]\nname = \"m\"\nservice = \"stripe\"\nlegs = [{ service = \"mirror\", record = false, legs = [\
                       { file = \"old\", size = \"24 MiB\" }, { memory = \"24 MiB\" }] }, { memory = \"24 MiB\" }]\n";
    let server = Server::start_with(folder.path(), "m.toml", description, &["--control", &socket]);
    let mut volume = server.volume("m");
    let blocks = 48 * 256;
    for first in (0..blocks).step_by(256) {
        volume.write(first, &stamped(first, 256, 1)).expect("it is there");
    }
    for (arguments, expected) in [
        (&["replace", "m", "0", "file = \"small\", size = \"8 MiB\""][..], "has 2048 blocks, and the leg has 6144"),
        (&["replace", "m", "7", "memory = \"24 MiB\""], "there is no leg 7, give 0 to 2"),
        (&["replace", "n", "0", "memory = \"24 MiB\""], "there is no volume n, give one of m"),
        (&["replace", "m", "0", "memoir = \"24 MiB\""], "memoir"),
        (&["set", "m", "batch_one_in", "5"], "no service of m has a batch_one_in"),
        (&["pull", "0"], "give status, add, remove, attach, detach, replace, take, drop or set"),
    ] {
        let output = ctl(&socket, arguments);
        assert!(!output.status.success() && text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
    let output = ctl(&socket, &["replace", "m", "0", "file = \"new\", size = \"24 MiB\""]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // The load goes on while copies are made.
    let begun = Instant::now();
    let mut stamp = 1;
    loop {
        stamp += 1;
        for first in (0..blocks).step_by(512) {
            volume.write(first, &stamped(first, 64, stamp)).expect("it is there");
            assert_eq!(read(&mut volume, first, 64), Ok(stamped(first, 64, stamp)));
            assert_eq!(read(&mut volume, first + 100, 100), Ok(stamped(first + 100, 100, 1)));
        }
        let output = ctl(&socket, &["status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let found = &status["volumes"][0];
        if found["rebuild"]["left_blocks"] == 0 {
            assert_eq!(found["tree"]["below"][0]["service"], "mirror");
            assert!(found["tree"]["below"][0]["below"][0]["name"].as_str().is_some_and(|name| name.ends_with("new")));
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{found}");
    }
    let shown = text(&ctl(&socket, &["status"]).stdout);
    assert!(shown.contains("  s0 stripe\n    s1 mirror\n      0 ") && shown.contains("new: ready, "), "{shown}");
    // The new one is asked alone once the other is replaced, too.
    let output = ctl(&socket, &["replace", "m", "1", "memory = \"24 MiB\""]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for first in (0..blocks).step_by(512) {
        assert_eq!(read(&mut volume, first, 64), Ok(stamped(first, 64, stamp)));
        assert_eq!(read(&mut volume, first + 256, 256), Ok(stamped(first + 256, 256, 1)));
    }
    let output = ctl(&socket, &["replace", "m", "2", "memory = \"24 MiB\""]);
    assert!(text(&output.stderr).contains("no mirror has the blocks of leg 2 elsewhere"), "{}", text(&output.stderr));
}

#[test]
fn another_name_of_a_volume_is_batch_and_sees_the_same_blocks() {
    let folder = tempfile::tempdir().expect("there is room");
    let socket = folder.path().join("ctl").display().to_string();
    let description = "[[volume]]\nname = \"p\"\nservice = \"priority\"\nlegs = [{ memory = \"16 MiB\" }]\n\n\
                       [[volume]]\nname = \"p-batch\"\nbatch_of = \"p\"\n";
    let server = Server::start_with(folder.path(), "p.toml", description, &["--control", &socket]);
    let (mut own, mut batch) = (server.volume("p"), server.volume("p-batch"));
    own.write(5_u64, &stamped(5, 20, 7)).expect("it is there");
    assert_eq!(read(&mut batch, 5, 20), Ok(stamped(5, 20, 7)));
    batch.write(9_u64, &stamped(9, 3, 8)).expect("it is there");
    assert_eq!(read(&mut own, 9, 3), Ok(stamped(9, 3, 8)));
    assert!(ctl(&socket, &["set", "p", "batch_one_in", "3"]).status.success());
    assert!(!ctl(&socket, &["set", "p", "batch_one_in", "0"]).status.success());
    for (rest, expected) in [
        ("batch_of = \"q\"", "q is no volume with service"),
        ("batch_of = \"p\"\nback = { memory = \"1 MiB\" }", "has nothing of its own"),
    ] {
        let text_of = format!(
            "[[volume]]\nname = \"p\"\nservice = \"priority\"\nlegs = [{{ memory = \"1 MiB\" }}]\n[[volume]]\nname = \"b\"\n{rest}\n"
        );
        let output = program(folder.path(), "w.toml", &text_of, &["--seconds", "0"]).output().expect("it starts");
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
}

#[test]
fn a_version_is_taken_while_a_volume_is_written_and_is_there_after_a_kill() {
    let folder = tempfile::tempdir().expect("there is room");
    let socket = folder.path().join("ctl").display().to_string();
    let description = "[[volume]]\nname = \"v\"\nservice = \"versions\"\nversions = 2\nstore = \"8 MiB\"\n\
                       legs = [{ file = \"disk\", size = \"64 MiB\" }]\n\n\
                       [[volume]]\nname = \"v-1\"\nversion_of = \"v\"\nslot = 1\n\n\
                       [[volume]]\nname = \"v-2\"\nversion_of = \"v\"\nslot = 2\n";
    let server = Server::start_with(folder.path(), "v.toml", description, &["--control", &socket]);
    let (mut volume, mut first) = (server.volume("v"), server.volume("v-1"));
    volume.write(10_u64, &stamped(10, 100, 1)).expect("it is there");
    assert!(read(&mut first, 10, 1).is_err(), "there is no version yet");
    let taken = ctl(&socket, &["take", "v"]);
    assert_eq!(text(&taken.stdout).trim(), "1", "{}", text(&taken.stderr));
    volume.write(50_u64, &stamped(50, 100, 2)).expect("it is there");
    assert_eq!(text(&ctl(&socket, &["take", "v"]).stdout).trim(), "2");
    volume.write(0_u64, &stamped(0, 200, 3)).expect("it is there");
    let full = ctl(&socket, &["take", "v"]);
    assert!(text(&full.stderr).contains("drop a version"), "{}", text(&full.stderr));
    assert!(first.write(10_u64, &stamped(10, 1, 9)).is_err(), "versions are only read");
    volume.flush().expect("it is there");
    drop((volume, first));
    server.kill();
    // A killed server's socket is taken over.
    let server = Server::start_with(folder.path(), "v.toml", description, &["--control", &socket]);
    let (mut volume, mut first, mut second) = (server.volume("v"), server.volume("v-1"), server.volume("v-2"));
    assert_eq!(read(&mut first, 10, 100), Ok(stamped(10, 100, 1)));
    assert_eq!(read(&mut second, 50, 100), Ok(stamped(50, 100, 2)));
    assert_eq!(read(&mut second, 10, 40), Ok(stamped(10, 40, 1)));
    assert_eq!(read(&mut volume, 0, 200), Ok(stamped(0, 200, 3)));
    assert!(text(&ctl(&socket, &["status"]).stdout).contains("versions in slots 1, 2"));
    assert!(ctl(&socket, &["drop", "v", "1"]).status.success());
    let again = ctl(&socket, &["drop", "v", "1"]);
    assert!(text(&again.stderr).contains("there is no version in that slot"), "{}", text(&again.stderr));
    assert!(read(&mut first, 10, 1).is_err(), "it was dropped");
    assert_eq!(read(&mut second, 50, 100), Ok(stamped(50, 100, 2)));
    drop((volume, first, second));
    server.kill();
    // With other keys the leg is refused, and stays as it is.
    let other = description.replace("versions = 2", "versions = 3");
    let server = Server::start_with(folder.path(), "other.toml", &other, &["--control", &socket]);
    let mut volume = server.volume("v");
    assert!(read(&mut volume, 0, 1).is_err() && volume.write(0_u64, &stamped(0, 1, 9)).is_err());
    let status = text(&ctl(&socket, &["status"]).stdout);
    assert!(status.contains("refuses all: the leg was made with versions = 2 and a store of"), "{status}");
    let take = ctl(&socket, &["take", "v"]);
    assert!(text(&take.stderr).contains("`status` says why"), "{}", text(&take.stderr));
    drop(volume);
    server.kill();
    let server = Server::start_with(folder.path(), "v.toml", description, &["--control", &socket]);
    assert_eq!(read(&mut server.volume("v"), 0, 200), Ok(stamped(0, 200, 3)));
    assert_eq!(read(&mut server.volume("v-2"), 50, 100), Ok(stamped(50, 100, 2)));
    for (rest, expected) in [
        ("version_of = \"v\"\nslot = 3", "give slot, 1 to 2"),
        ("version_of = \"w\"\nslot = 1", "w is no volume with service"),
        ("versions = 3\nback = { memory = \"8 MiB\" }", "go with service = \"versions\""),
        ("service = \"versions\"\nstore = \"1 GiB\"\nlegs = [{ memory = \"8 MiB\" }]", "has no room for a store"),
        ("service = \"mirror\"\nlegs = [{ service = \"versions\", legs = [] }, { memory = \"8 MiB\" }]", "at the top"),
    ] {
        let text_of = format!(
            "[[volume]]\nname = \"v\"\nservice = \"versions\"\nversions = 2\nlegs = [{{ memory = \"16 MiB\" }}]\n\
             [[volume]]\nname = \"x\"\n{rest}\n"
        );
        let output = program(folder.path(), "w.toml", &text_of, &["--seconds", "0"]).output().expect("it starts");
        assert!(text(&output.stderr).contains(expected), "{rest}: {}", text(&output.stderr));
    }
}

#[test]
fn volumes_go_on_while_storage_that_does_not_answer_is_opened() {
    let folder = tempfile::tempdir().expect("there is room");
    let socket = folder.path().join("ctl").display().to_string();
    let mirror = "service = \"mirror\"\nrecord = false\nlegs = [{ memory = \"8 MiB\" }, { memory = \"8 MiB\" }]";
    let description = format!("[[volume]]\nname = \"m\"\n{mirror}\n");
    let server = Server::start_with(folder.path(), "m.toml", &description, &["--control", &socket]);
    let mut volume = server.volume("m");
    // It takes connections and never says a word.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("the loopback has ports");
    let keys =
        format!("nvme_tcp = \"{}\", nqn = \"nqn.2026-01.test:silent\"", silent.local_addr().expect("it is bound"));
    let service = format!("service = \"mirror\", legs = [{{ {keys} }}]");
    for order in [&["replace", "m", "0", &keys][..], &["attach", "m", "s0", &keys], &["add", "m", "0", &service]] {
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| ctl(&socket, order));
            let (connection, _) = silent.accept().expect("the server connects");
            volume.write(0_u64, &stamped(0, 8, 1)).expect("it is there");
            assert_eq!(read(&mut volume, 0, 8), Ok(stamped(0, 8, 1)));
            assert!(!asked.is_finished(), "{order:?}");
            drop(connection);
            let output = asked.join().expect("it does not panic");
            assert!(!output.status.success(), "{order:?}: {}", text(&output.stderr));
        });
    }
}

/// A loop device over a file.
struct LoopDevice(String);

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_block_device_that_something_else_is_made_of_is_neither_a_leg_nor_lent() {
    let unchecked = "no mounted block device is offered as a leg";
    if !flashyard_conformance::has_program("losetup", unchecked) {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room");
    let image = folder.path().join("image");
    std::fs::write(&image, vec![0; 16 << 20]).expect("there is room");
    let made = Command::new("losetup").args(["--find", "--show"]).arg(&image).output().expect("it starts");
    if !made.status.success() {
        return flashyard_conformance::skip("losetup", text(&made.stderr).trim(), unchecked);
    }
    let device = LoopDevice(text(&made.stdout).trim().to_owned());
    // As a mount has it, or a part of another device. Source: open(2), O_EXCL of a block device
    let exclusive = || std::fs::OpenOptions::new().read(true).custom_flags(0o200).open(&device.0);
    let claimed = exclusive().expect("it is free");
    let leg = format!("[[volume]]\nname = \"v\"\nback = {{ file = \"{}\" }}\n", device.0);
    let lends = format!(
        "server = \"a\"\n[lend]\nboard = \"{}\"\nlisten = \"{}\"\nfile = \"{}\"\npiece = \"4 MiB\"\n",
        free_address(),
        free_address(),
        device.0
    );
    for description in [&leg, &lends] {
        let ended = program(folder.path(), "v.toml", description, &["--seconds", "1"]).output().expect("it starts");
        let said = text(&ended.stderr);
        assert!(!ended.status.success() && said.contains("mounted, or part of another device"), "{said}");
    }
    assert!(std::fs::read(&image).expect("it is there").iter().all(|&byte| byte == 0));
    drop(claimed);
    let server = Server::start(folder.path(), "v.toml", &leg);
    let mut volume = server.volume("v");
    volume.write(7_u64, &stamped(7, 1, 1)).expect("it is there");
    assert_eq!(read(&mut volume, 7, 1), Ok(stamped(7, 1, 1)));
    assert!(exclusive().is_err(), "it can be mounted meanwhile");
    server.kill();
}
