//! Virtual channels live: they are remapped under load, over kills, and every block of every channel stays.

mod common;

use common::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Legs of 8 MiB, three channels and a spare: blocks of a channel, which the record shortens.
const CHANNEL: u64 = (2048 - 2) / 2;

const DESCRIPTION: &str = "[[volume]]\nname = \"v\"\nservice = \"open-channel\"\nchannels = 3\nspares = 1\ndepth = 8\n\
    legs = [{ file = \"a\", size = \"8 MiB\" }, { file = \"b\", size = \"8 MiB\" }]\n\
    [[volume]]\nname = \"c1\"\nchannel_of = \"v\"\nchannel = 1\n\
    [[volume]]\nname = \"c2\"\nchannel_of = \"v\"\nchannel = 2\n";

fn remap(socket: &str, channel: u64, to: u64) -> std::process::Output {
    ctl(socket, &["set", "v", &format!("channel-{channel}"), &to.to_string()])
}

/// The map as it is shown, once no channel is being moved.
fn settled(socket: &str) -> String {
    let begun = Instant::now();
    loop {
        // A server listens there a little later than for its clients.
        let output = ctl(socket, &["status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let note = status["volumes"][0]["tree"]["note"].as_str().unwrap_or("moves").to_owned();
        if !note.contains("moves") {
            return note;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{status}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn channels_are_remapped_under_load_and_every_block_stays() {
    let folder = tempfile::tempdir().expect("there is room");
    let socket = folder.path().join("ctl").display().to_string();
    let server = Server::start_with(folder.path(), "v.toml", DESCRIPTION, &["--control", &socket]);
    let (mut all, mut one) = (server.volume("v"), server.volume("c1"));
    assert_eq!([all.blocks(), one.blocks()], [3 * CHANNEL, CHANNEL]);
    for first in (0..3 * CHANNEL).step_by(93) {
        all.write(first, &stamped(first, 93, 1)).expect("it is there");
    }
    assert!(read(&mut one, 5, 50) == Ok(stamped(CHANNEL + 5, 50, 1)), "a channel is a part of the volume");
    for (channel, to, expected) in
        [(1, 2, "no service of v has"), (1, 4, "no service of v has"), (3, 3, "no service of v has")]
    {
        let said = text(&remap(&socket, channel, to).stderr);
        assert!(said.contains(expected), "channel {channel} to {to}: {said}");
    }
    let stop = AtomicBool::new(false);
    let (written, moves) = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let (mut volume, mut written) = (server.volume("c1"), 0_u64);
            while !stop.load(Ordering::Relaxed) {
                let (first, version) = (written * 131 % (CHANNEL - 40), (written % 250) as u8);
                volume.write(first, &stamped(first, 40, version)).expect("it is there");
                assert!(read(&mut volume, first, 40) == Ok(stamped(first, 40, version)), "block {first} of {written}");
                written += 1;
            }
            written
        });
        // Every channel goes round, the one under load most.
        let (mut places, mut free, mut moves) = ([0, 1, 2], 3, 0);
        for channel in [1, 1, 0, 1, 2, 1, 1, 0, 1] {
            assert!(remap(&socket, channel, free).status.success());
            std::mem::swap(&mut places[channel as usize], &mut free);
            let note = settled(&socket);
            let [zero, one, two] = places;
            assert_eq!(note, format!("channels 0 on {zero}, 1 on {one}, 2 on {two}"));
            moves += 1;
        }
        stop.store(true, Ordering::Relaxed);
        (load.join().expect("every read was right"), moves)
    });
    assert!(written > 0 && moves == 9, "{written} writes");
    for first in [0, 2 * CHANNEL] {
        assert!(read(&mut all, first, CHANNEL as usize) == Ok(stamped(first, CHANNEL, 1)), "blocks from {first}");
    }
}

#[test]
fn a_kill_while_a_channel_is_moved_leaves_every_block_where_the_map_says() {
    let folder = tempfile::tempdir().expect("there is room");
    let socket = folder.path().join("ctl").display().to_string();
    let mut version = 1;
    for round in 0..4_u64 {
        let server = Server::start_with(folder.path(), "v.toml", DESCRIPTION, &["--control", &socket]);
        let mut all = server.volume("v");
        if round > 0 {
            for channel in 0..3 {
                let first = channel * CHANNEL;
                assert!(
                    read(&mut all, first, CHANNEL as usize) == Ok(stamped(first, CHANNEL, version)),
                    "round {round}, channel {channel}"
                );
            }
        }
        version += 1;
        for first in (0..3 * CHANNEL).step_by(93) {
            all.write(first, &stamped(first, 93, version)).expect("it is there");
        }
        all.flush().expect("it is there");
        let begun = Instant::now();
        let mut moved = 0;
        // Some are killed in the middle of a move, wherever that is.
        while moved <= round && begun.elapsed() < Duration::from_secs(60) {
            let taken = (0..12).find(|wish| remap(&socket, wish % 3, wish / 3).status.success());
            moved += u64::from(taken.is_some());
        }
        server.kill();
    }
}

#[test]
fn channels_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let leg = "{ memory = \"16 MiB\" }";
    for (rest, expected) in [
        (
            format!("service = \"open-channel\"\nlegs = [{leg}, {leg}, {leg}]"),
            "7 channels and 1 spares do not share out among 3 legs",
        ),
        (format!("service = \"open-channel\"\nchannels = 0\nlegs = [{leg}]"), "give 1 channel or more"),
        (format!("service = \"open-channel\"\nchannels = 2000\nlegs = [{leg}]"), "1024 of both at most"),
        (format!("service = \"open-channel\"\ndepth = 0\nlegs = [{leg}]"), "depth is 1 or more"),
        (format!("service = \"stripe\"\nchannels = 4\nlegs = [{leg}, {leg}]"), "go with service = \"open-channel\""),
        (format!("channel = 4\nback = {leg}"), "channel goes with channel_of"),
        (
            "service = \"open-channel\"\nchannels = 3\nspares = 1\nlegs = [{ memory = \"16 KiB\" }]".to_owned(),
            "no room for 4 channels",
        ),
        (
            format!(
                "service = \"open-channel\"\nlegs = [{leg}]\n[[volume]]\nname = \"w\"\nchannel_of = \"v\"\nchannel = 7"
            ),
            "give channel, 0 to 6",
        ),
        (
            format!(
                "service = \"open-channel\"\nlegs = [{leg}]\n[[volume]]\nname = \"w\"\nchannel_of = \"u\"\nchannel = 1"
            ),
            "u is no volume with service = \"open-channel\"",
        ),
        (
            format!("service = \"mirror\"\nlegs = [{{ service = \"open-channel\", legs = [{leg}] }}]"),
            "stands at the top",
        ),
    ] {
        let text_of = format!("[[volume]]\nname = \"v\"\n{rest}\n");
        let output = program(folder.path(), "wrong.toml", &text_of, &["--seconds", "0"]).output().expect("it starts");
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{rest}: {said}");
    }
}
