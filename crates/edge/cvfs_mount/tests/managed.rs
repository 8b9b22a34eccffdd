//! The manager beside a served drive: superblocks that are too worn for the user's requirement go, and the volume above
//! shrinks by remap while a program writes to it.

#[path = "../../live/tests/hosted/mod.rs"]
mod hosted;
#[path = "../../live/tests/small/mod.rs"]
mod small;

use flashyard_cvfs::{Config, FileSystem, Format, Kind, Method, NewInode, ROOT};
use flashyard_cvfs_mount::{
    ControlError, HOST_NQN, Looked, ManageError, ManagedVolume, Management, VolumeUsage, Wishes,
};
use flashyard_kernel::Rng;
use flashyard_live::{Handle, RemoteNamespace, Tempo};
use flashyard_scenario::Scenario;
use flashyard_units::{SimSpan, SimTime};
use hosted::{NQN, age};
use small::scenario_with;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Files that are written once; one more is written over and over.
const COLD: u64 = 8;
const FILE_BYTES: usize = 700_000;

/// A drive of 64 superblocks of 1 MiB, made for 300 erases.
fn scenario(wears: bool) -> Scenario {
    let mut settings = vec!["drive.filled=0.0", "drive.blocks_per_plane=64", "drive.over_provisioning=0.25"];
    if wears {
        settings.extend(["drive.wear.endurance=300", "drive.allocation=wear-focusing"]);
    }
    scenario_with(&settings)
}

/// Serves drive 0 while `client` works.
fn serve<R: Send>(wears: bool, client: impl FnOnce(SocketAddr, Handle) -> R + Send) -> R {
    hosted::serve(&scenario(wears), None, Tempo::Off, client).1
}

/// A volume that a program and the manager share, as a mount does.
#[derive(Clone)]
struct Shared(Arc<Mutex<FileSystem<RemoteNamespace>>>);

impl Shared {
    fn fs(&self) -> MutexGuard<'_, FileSystem<RemoteNamespace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, file: u64, round: u64) {
        let mut fs = self.fs();
        let name = format!("file-{file}").into_bytes();
        let ino = match fs.lookup(ROOT, &name) {
            Ok(ino) => ino,
            Err(_) => fs.create(ROOT, &name, NewInode::of(Kind::File, 0o644), 0).expect("there is room"),
        };
        fs.write(ino, 0, &bytes_of(file, round), 0).expect("there is room");
        fs.sync().expect("the drive takes it");
        // As a mount does every 50 ms: free blocks are reported to the drive.
        fs.tick(SimTime::ZERO + SimSpan::from_ms(50 * (round + 1)), true).expect("the drive takes it");
    }

    fn check(&self, file: u64, round: u64) {
        let mut fs = self.fs();
        let ino = fs.lookup(ROOT, format!("file-{file}").as_bytes()).expect("it was made");
        let mut bytes = vec![0; FILE_BYTES];
        assert_eq!(fs.read(ino, 0, &mut bytes), Ok(FILE_BYTES));
        assert!(bytes == bytes_of(file, round), "file {file} holds something else");
    }
}

impl ManagedVolume for Shared {
    fn usage(&mut self) -> Result<VolumeUsage, ControlError> {
        let usage = self.fs().usage();
        Ok(VolumeUsage { blocks: usage.blocks, used: usage.used as u32, least: usage.blocks_min })
    }

    fn shrink(&mut self, blocks: u32) -> Result<String, ControlError> {
        let shrunk = self.fs().shrink(blocks, Method::Remap);
        shrunk.map(|shrunk| format!("{shrunk:?}")).map_err(|error| ControlError::Failed(error.to_string()))
    }
}

fn bytes_of(file: u64, round: u64) -> Vec<u8> {
    let mut rng = Rng::named(file << 16 | round, "files");
    (0..FILE_BYTES.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).take(FILE_BYTES).collect()
}

fn volume(address: SocketAddr) -> Shared {
    let device = RemoteNamespace::connect(address, HOST_NQN, NQN, None).expect("it lets everybody in");
    let format = Format { segment_blocks: 64, id: 1 };
    Shared(Arc::new(Mutex::new(FileSystem::format(device, format, Config::default(), 0).expect("it is large enough"))))
}

#[test]
fn a_volume_shrinks_online_as_an_aged_drive_retires_what_the_user_does_not_want_to_read() {
    serve(true, |address, handle| {
        // Three erases before reads need a third retry: sheet cvss §8.1.
        age(&handle, 82.0 / 300.0);
        let volume = volume(address);
        (0..COLD).for_each(|file| volume.write(file, 0));
        let wishes = Wishes { performance: Some(0.8), ..Wishes::default() };
        let mut management = Management::new(address, NQN, volume.clone(), wishes).expect("it is possible");
        let first = management.look().expect("both are there");
        assert_eq!((first.drive.retired.get(), first.drive.retires_at.get(), &first.asked), (0, 85, &None));
        assert_eq!(first.degraded, None);
        let before = volume.fs().usage().blocks;
        let mut rounds = 0;
        // With no clock to hold it back a drive dies in less than a second: the manager looks between two writes.
        while volume.fs().usage().blocks > before * 2 / 3 {
            rounds += 1;
            volume.write(COLD, rounds);
            let Looked { drive, asked, degraded } = management.look().expect("both are there");
            if asked.is_some() || degraded.is_some() {
                println!("{} superblocks retired: {asked:?}, degraded: {degraded:?}", drive.retired.get());
            }
        }
        let last = management.look().expect("both are there");
        println!("{rounds} rounds, {:?} reductions, {:?}", management.reductions(), last.drive);
        assert!(management.reductions().0 >= 3);
        assert_eq!(management.reductions().1, 0);
        assert!(last.drive.retired.get() > 0 && last.drive.retries_max.get() <= 2, "{:?}", last.drive);
        (0..COLD).for_each(|file| volume.check(file, 0));
        volume.check(COLD, rounds);
        let report = volume.fs().check().expect("the drive is there");
        assert!(report.is_clean(), "{:?}", report.problems);
    });
}

#[test]
fn a_volume_that_cannot_shrink_degrades_the_drive() {
    serve(true, |address, handle| {
        age(&handle, 0.1);
        let volume = volume(address);
        (0..COLD).for_each(|file| volume.write(file, 0));
        let wishes = Wishes { watermark_bytes: Some(1 << 40), ..Wishes::default() };
        let mut management = Management::new(address, NQN, volume.clone(), wishes).expect("it is possible");
        assert_eq!(management.look().expect("both are there").degraded, Some(true), "below the watermark");
        assert_eq!(management.look().expect("both are there").degraded, None, "it is already");
        let mut management = Management::new(address, NQN, volume, Wishes::default()).expect("it is possible");
        assert_eq!(management.look().expect("both are there").degraded, Some(false), "there is enough");
    });
}

#[test]
fn a_requirement_that_would_cost_the_whole_drive_is_refused_and_so_is_a_drive_that_does_not_wear() {
    serve(true, |address, handle| {
        age(&handle, 0.5);
        let volume = volume(address);
        let wishes = Wishes { performance: Some(0.8), ..Wishes::default() };
        let refused = Management::new(address, NQN, volume, wishes).err().expect("all of it is too old");
        assert!(matches!(refused, ManageError::Drive(_)), "{refused}");
    });
    serve(false, |address, _| {
        let refused =
            Management::new(address, NQN, volume(address), Wishes::default()).err().expect("it does not wear");
        assert!(matches!(refused, ManageError::NoCapacity), "{refused}");
    });
}
