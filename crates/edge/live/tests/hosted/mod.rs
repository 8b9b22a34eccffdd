//! Drive 0 of a small enclosure, served to a host over NVMe/TCP of the loopback.

use crate::small::{enclosure_of, while_serving};
use flashyard_live::{
    BlockFormat, Engine, Handle, Hook, Limits, NvmeTcp, Remote, Report, SetUp, Tempo, divide, set_format,
};
use flashyard_nvmf::target::{Namespace, Subsystem, TargetConfig, ZoneShape};
use flashyard_scenario::Scenario;
use flashyard_served::{Control, JournalHeader, Session};
use flashyard_units::{DriveId, VolumeId};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The name of the drive.
pub(crate) const NQN: &str = "nqn.2026-11.io.flashyard:drive-0";

/// Hosts never sleep: more of them than there are cores would wait for each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Serves the drive while `client` works, from a directory if there is one.
#[allow(dead_code, reason = "not every test serves blocks of 4 KiB without zones")]
pub(crate) fn serve<R: Send>(
    scenario: &Scenario,
    directory: Option<&Path>,
    tempo: Tempo,
    client: impl FnOnce(SocketAddr, Handle) -> R + Send,
) -> (Report, R) {
    serve_shaped(Shape::of(4096), scenario, directory, tempo, client)
}

/// Serves the drive as [`serve`] does, with blocks of so many bytes.
#[allow(dead_code, reason = "not every test is of the size of blocks")]
pub(crate) fn serve_blocks<R: Send>(
    block_bytes: u32,
    scenario: &Scenario,
    directory: Option<&Path>,
    tempo: Tempo,
    client: impl FnOnce(SocketAddr, Handle) -> R + Send,
) -> (Report, R) {
    serve_shaped(Shape::of(block_bytes), scenario, directory, tempo, client)
}

/// Serves the drive, with zones if they have a shape, while `client` works.
#[allow(dead_code, reason = "not every test is of zones")]
pub(crate) fn serve_zoned<R: Send>(
    scenario: &Scenario,
    directory: Option<&Path>,
    tempo: Tempo,
    zones: Option<ZoneShape>,
    client: impl FnOnce(SocketAddr, Handle) -> R + Send,
) -> (Report, R) {
    serve_shaped(Shape { zones, ..Shape::of(4096) }, scenario, directory, tempo, client)
}

/// The drive as it begins.
pub(crate) struct Shape {
    block: BlockFormat,
    zones: Option<ZoneShape>,
    /// Units of its namespaces; empty: it is one namespace.
    sizes: Vec<u64>,
    journal: Option<Box<dyn Write>>,
    /// Code that is called in each turn of the engine.
    hook: Option<Box<dyn Hook>>,
    limits: Limits,
}

impl Shape {
    fn of(block_bytes: u32) -> Self {
        Self::formatted(BlockFormat::plain(block_bytes))
    }

    /// Blocks of this format.
    #[allow(dead_code, reason = "not every test is of the format of blocks")]
    pub(crate) fn formatted(block: BlockFormat) -> Self {
        Self { block, zones: None, sizes: Vec::new(), journal: None, hook: None, limits: Limits::default() }
    }

    /// Namespaces of so many units, and a journal.
    #[allow(dead_code, reason = "not every test divides the drive")]
    pub(crate) fn divided(sizes: &[u64], journal: Option<Box<dyn Write>>) -> Self {
        Self { sizes: sizes.to_vec(), journal, ..Self::of(4096) }
    }

    /// As it is, but looked at by `hook` in each turn of the engine.
    #[allow(dead_code, reason = "not every test looks at turns")]
    pub(crate) fn watched(self, hook: Box<dyn Hook>) -> Self {
        Self { hook: Some(hook), ..self }
    }

    /// As it is, but served within these limits.
    #[allow(dead_code, reason = "not every test is of limits")]
    pub(crate) fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }
}

pub(crate) fn serve_shaped<R: Send>(
    Shape { block, zones, sizes, journal, hook, limits }: Shape,
    scenario: &Scenario,
    directory: Option<&Path>,
    tempo: Tempo,
    client: impl FnOnce(SocketAddr, Handle) -> R + Send,
) -> (Report, R) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let SetUp { world, media, .. } = enclosure_of(scenario, directory).expect("its enclosure can serve");
    let header = JournalHeader { seed: scenario.seed, scenario: String::new(), contents: None };
    let session = Session::new(world, journal.is_some().then_some(&header));
    let mut engine = Engine::new(session, media, &[VolumeId::new(0)], tempo).expect("there is a poll");
    engine.set_limits(limits);
    set_format(&mut engine, VolumeId::new(0), block).expect("there are such blocks");
    if !sizes.is_empty() {
        divide(&mut engine, VolumeId::new(0), &sizes).expect("the drive has room");
    }
    if let Some(journal) = journal {
        engine.set_journal(journal);
    }
    let whole = engine.fronts_mut().drives()[0].limits;
    let unit = zones.map_or(1, |zones| zones.zone_blocks);
    let mut namespace = Namespace::new(1, whole.blocks / unit * unit, 12);
    namespace.zones = zones;
    let mut subsystem = Subsystem::new(NQN, "FY0000", vec![namespace]);
    subsystem.has_remap = whole.remaps;
    let config = TargetConfig { subsystems: vec![subsystem], ..TargetConfig::default() };
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let front = NvmeTcp::new(&[any], config, vec![VolumeId::new(0)], 300).expect("the loopback can be listened on");
    let address = front.addresses().next().expect("one was asked for");
    engine.add_front(Box::new(front));
    let (remote, handle) = Remote::new(engine.waker());
    engine.add_hook(Box::new(remote));
    hook.into_iter().for_each(|hook| engine.add_hook(hook));
    while_serving(engine, || client(address, handle))
}

/// Uses up a share of the drive's life.
#[allow(dead_code, reason = "not every test ages the drive")]
pub(crate) fn age(handle: &Handle, level: f64) {
    let control = Control::Wear { drive: DriveId::new(0), level };
    handle.call(move |engine| engine.control(control)).expect("it serves").expect("it can be so old");
}

const DIRECTORY: &str = "FLASHYARD_TEST_DIRECTORY";

/// A process that serves from a directory until it is killed, at the latest with its test.
#[allow(dead_code, reason = "not every test kills one")]
pub(crate) struct Child {
    process: std::process::Child,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

#[allow(dead_code, reason = "not every test kills one")]
impl Child {
    /// Starts the ignored test `a_server_to_be_killed` of this program.
    pub(crate) fn start(directory: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "a_server_to_be_killed", "--ignored", "--nocapture"])
            .env(DIRECTORY, directory)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be run");
        let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.split_once('@').and_then(|(_, address)| address.parse().ok()));
        Self { process, address: address.expect("it serves") }
    }

    pub(crate) fn kill(&mut self) {
        // Killed already is killed as well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Serves as the process of [`Child`].
#[allow(dead_code, reason = "not every test kills one")]
pub(crate) fn be_killed(scenario: &Scenario, block_bytes: u32, tempo: Tempo) {
    let directory = std::env::var(DIRECTORY).expect("the test beside it says where, and runs this");
    serve_blocks(block_bytes, scenario, Some(Path::new(&directory)), tempo, |address, _| {
        println!("\n@{address}");
        std::io::stdout().flush().expect("the parent listens");
        // Until the end of the process.
        std::thread::sleep(std::time::Duration::from_secs(3600));
    });
}
