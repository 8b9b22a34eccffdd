//! A volume on a drive that is served over NVMe/TCP of the loopback: it shrinks by remap, and outlives its server.

#[path = "../../live/tests/hosted/mod.rs"]
mod hosted;
#[path = "../../live/tests/small/mod.rs"]
mod small;

use flashyard_blk::Volume;
use flashyard_cvfs::{BLOCK_BYTES, Config, FileSystem, Format, Kind, Method, NewInode, ROOT, Shrunk};
use flashyard_cvfs_mount::HOST_NQN;
use flashyard_kernel::Rng;
use flashyard_live::{Handle, RemoteNamespace, Report, Tempo};
use flashyard_served::Control;
use hosted::NQN;
use small::scenario_with;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

const FILES: u64 = 24;
const FILE_BYTES: usize = 600_000;

/// Serves drive 0 of the small enclosure, which borrows memory for its map, from `directory` while `client` works.
fn serve<R: Send>(directory: &Path, tempo: Tempo, client: impl FnOnce(SocketAddr, Handle) -> R + Send) -> (Report, R) {
    let scenario = scenario_with(&["drive.filled=0.3", "drive.blocks_per_plane=128", "drive.over_provisioning=0.1"]);
    hosted::serve(&scenario, Some(directory), tempo, client)
}

fn device(address: SocketAddr) -> RemoteNamespace {
    // A drive that has lost its power accepts no host for a while.
    let begun = Instant::now();
    loop {
        match RemoteNamespace::connect(address, HOST_NQN, NQN, None) {
            Ok(device) => {
                assert!(device.info().limits.remaps);
                return device;
            }
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(20), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn name(file: u64) -> Vec<u8> {
    format!("file-{file}").into_bytes()
}

fn bytes_of(file: u64, round: u64) -> Vec<u8> {
    let mut rng = Rng::named(file << 8 | round, "files");
    (0..FILE_BYTES.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).take(FILE_BYTES).collect()
}

/// A volume whose files were written so often that some of them lie near its end.
fn aged_volume(address: SocketAddr) -> FileSystem<RemoteNamespace> {
    let format = Format { segment_blocks: 64, id: 1 };
    let mut fs = FileSystem::format(device(address), format, Config::default(), 0).expect("a drive is large enough");
    for file in 0..FILES {
        fs.create(ROOT, &name(file), NewInode::of(Kind::File, 0o644), 0).expect("there is room");
    }
    let blocks = u64::from(fs.usage().blocks);
    let rounds = blocks * BLOCK_BYTES as u64 / (FILES * FILE_BYTES as u64) + 1;
    for round in 0..rounds {
        for file in 0..FILES {
            let ino = fs.lookup(ROOT, &name(file)).expect("it was made");
            // The last round writes the contents to be found.
            fs.write(ino, 0, &bytes_of(file, u64::from(round + 1 == rounds)), 0).expect("there is room");
        }
        fs.sync().expect("the drive is there");
    }
    fs
}

fn check(fs: &mut FileSystem<RemoteNamespace>) {
    let report = fs.check().expect("the drive is there");
    assert!(report.is_clean(), "{:?}", report.problems);
    let mut bytes = vec![0; FILE_BYTES];
    for file in 0..FILES {
        let ino = fs.lookup(ROOT, &name(file)).expect("it was made");
        assert_eq!(fs.read(ino, 0, &mut bytes), Ok(FILE_BYTES));
        assert!(bytes == bytes_of(file, 1), "file {file} holds something else");
    }
}

#[test]
fn a_volume_shrinks_by_remap_on_a_served_drive_and_is_whole_after_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (report, shrunk) = serve(directory.path(), Tempo::Off, |address, _| {
        let mut fs = aged_volume(address);
        let before = fs.usage().blocks;
        let shrunk: Shrunk = fs.shrink(before / 3, Method::Remap).expect("there is room");
        check(&mut fs);
        shrunk
    });
    println!("{shrunk:?}\n{report}");
    assert!(shrunk.blocks <= shrunk.blocks_before / 3 && shrunk.blocks_moved > 300, "{shrunk:?}");
    assert!(report.requests[4] > 0, "nothing was remapped");
    serve(directory.path(), Tempo::Off, |address, _| {
        let mut fs = FileSystem::mount(device(address), Config::default()).expect("the volume is there");
        assert_eq!(fs.usage().blocks, shrunk.blocks);
        check(&mut fs);
    });
}

#[test]
fn a_power_cut_while_a_volume_shrinks_by_remap_loses_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    serve(directory.path(), Tempo::Off, |address, _| drop(aged_volume(address)));
    for (life, after_us) in [500, 2000, 5000, 15_000, 40_000].into_iter().enumerate() {
        // A drive whose power is back needs time that passes though no request waits for an answer.
        serve(directory.path(), Tempo::Scaled(2.0), |address, handle| {
            let mut fs = FileSystem::mount(device(address), Config::default()).expect("the volume is there");
            let before = fs.usage().blocks;
            let cut = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_micros(after_us));
                handle.call(|engine| engine.control(Control::PowerOff)).expect("it serves").expect("it is protected");
                handle.call(|engine| engine.control(Control::PowerOn)).expect("it serves").expect("it was off");
            });
            let shrunk = fs.shrink(before - before / 6, Method::Remap);
            println!("life {life}: {shrunk:?}");
            cut.join().expect("the enclosure is protected");
            drop(fs);
            let mut fs = FileSystem::mount(device(address), Config::default()).expect("the volume is there");
            check(&mut fs);
        });
    }
}
