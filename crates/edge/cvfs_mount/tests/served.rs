//! A volume on a drive that is served over NVMe/TCP of the loopback: it shrinks by remap, and outlives its server.

use flashyard_cvfs::{BLOCK_BYTES, BlockDevice, Config, FileSystem, Format, Kind, Method, NewInode, ROOT, Shrunk};
use flashyard_cvfs_mount::NvmeDevice;
use flashyard_kernel::Rng;
use flashyard_live::{Engine, Handle, NvmeTcp, Remote, Report, Shape, Tempo, set_up};
use flashyard_nvmf::target::{Namespace, Subsystem, TargetConfig};
use flashyard_scenario::{Files, Scenario, resolve};
use flashyard_systems::jbof::{Control, Session};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const NQN: &str = "nqn.2026-11.io.flashyard:drive-0";
const FILES: u64 = 24;
const FILE_BYTES: usize = 600_000;

struct NoFiles;

impl Files for NoFiles {
    fn profile(&self, _kind: &str, _name: &str) -> Option<String> {
        None
    }

    fn open_trace(&self, name: &str) -> Result<flashyard_workload::Records, String> {
        Err(format!("{name}: there are no traces here"))
    }
}

/// The small box of `scenarios/faults`: drive 0 borrows memory for its map.
fn scenario() -> Scenario {
    let text = include_str!("../../../../scenarios/faults/scenario.toml");
    let smaller = ["drive.filled=0.3", "drive.blocks_per_plane=128", "drive.over_provisioning=0.1"].map(str::to_owned);
    resolve(text, "faults", &smaller, &NoFiles).expect("the scenario is whole").scenario
}

/// Serves drive 0 from `directory` while `client` works.
fn serve<R: Send>(directory: &Path, tempo: Tempo, client: impl FnOnce(SocketAddr, Handle) -> R + Send) -> (Report, R) {
    let scenario = scenario();
    let shapes = scenario.shapes().expect("the scenario is whole").into_iter();
    let shapes: Vec<_> = shapes.map(|(layout, logical_slots)| Shape { layout, logical_slots }).collect();
    let set_up = set_up(Some(directory), &shapes, |contents| scenario.live(contents)).expect("the directory is free");
    let mut engine = Engine::new(Session::new(set_up.world, None), set_up.media, &[0], tempo).expect("a poll");
    let export = engine.exports()[0].clone();
    let mut subsystem = Subsystem::new(NQN, "FY0000", vec![Namespace::new(1, export.slots.into(), 12)]);
    subsystem.has_remap = export.remaps;
    let config = TargetConfig { subsystems: vec![subsystem], ..TargetConfig::default() };
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let front = NvmeTcp::new(&[any], config, vec![0], 3000).expect("the loopback can be listened on");
    let address = front.addresses().next().expect("one was asked for");
    engine.add_front(Box::new(front));
    let (remote, handle) = Remote::new(engine.waker());
    engine.add_companion(Box::new(remote));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client(address, handle)));
            done.store(true, Ordering::Relaxed);
            result
        });
        let report = engine.run(|_| done.load(Ordering::Relaxed)).expect("nothing is in the way");
        let result = client.join().expect("panics are caught");
        (report, result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn device(address: SocketAddr) -> NvmeDevice {
    // A drive that has lost its power lets nobody in for a while.
    let begun = Instant::now();
    loop {
        match NvmeDevice::connect(address, NQN, None) {
            Ok(device) => {
                assert!(device.can_remap());
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
fn aged_volume(address: SocketAddr) -> FileSystem<NvmeDevice> {
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
            // The last round writes what is looked for.
            fs.write(ino, 0, &bytes_of(file, u64::from(round + 1 == rounds)), 0).expect("there is room");
        }
        fs.sync().expect("the drive is there");
    }
    fs
}

fn check(fs: &mut FileSystem<NvmeDevice>) {
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
        // A drive whose power is back needs time that passes though nobody waits for an answer.
        serve(directory.path(), Tempo::Scaled(2.0), |address, handle| {
            let mut fs = FileSystem::mount(device(address), Config::default()).expect("the volume is there");
            let before = fs.usage().blocks;
            let cut = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_micros(after_us));
                handle.call(|cabin| cabin.control(Control::PowerOff)).expect("it serves").expect("it is protected");
                handle.call(|cabin| cabin.control(Control::PowerOn)).expect("it serves").expect("it was off");
            });
            let shrunk = fs.shrink(before - before / 6, Method::Remap);
            println!("life {life}: {shrunk:?}");
            cut.join().expect("the box is protected");
            drop(fs);
            let mut fs = FileSystem::mount(device(address), Config::default()).expect("the volume is there");
            check(&mut fs);
        });
    }
}
