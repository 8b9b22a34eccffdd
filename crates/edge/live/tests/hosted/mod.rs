//! Drive 0 of a small enclosure, served to a host over NVMe/TCP of the loopback.

use crate::small::{enclosure_of, while_serving};
use flashyard_live::{Engine, Handle, NvmeTcp, Remote, Report, SetUp, Tempo};
use flashyard_nvmf::target::{Namespace, Subsystem, TargetConfig};
use flashyard_scenario::Scenario;
use flashyard_served::{Control, Session};
use flashyard_units::{DriveId, VolumeId};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The name of the drive.
pub(crate) const NQN: &str = "nqn.2026-11.io.flashyard:drive-0";

/// Hosts never sleep: more of them than there are cores would wait for each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Serves the drive while `client` works, from a directory if there is one.
#[allow(dead_code, reason = "not every test serves blocks of 4 KiB")]
pub(crate) fn serve<R: Send>(
    scenario: &Scenario,
    directory: Option<&Path>,
    tempo: Tempo,
    client: impl FnOnce(SocketAddr, Handle) -> R + Send,
) -> (Report, R) {
    serve_blocks(4096, scenario, directory, tempo, client)
}

/// Serves the drive as [`serve`] does, with blocks of so many bytes.
pub(crate) fn serve_blocks<R: Send>(
    block_bytes: u32,
    scenario: &Scenario,
    directory: Option<&Path>,
    tempo: Tempo,
    client: impl FnOnce(SocketAddr, Handle) -> R + Send,
) -> (Report, R) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let SetUp { world, media, .. } = enclosure_of(scenario, directory).expect("its enclosure can serve");
    let mut engine =
        Engine::new(Session::new(world, None), media, &[VolumeId::new(0)], tempo).expect("there is a poll");
    engine.set_block_bytes(VolumeId::new(0), block_bytes).expect("there are such blocks");
    let limits = engine.volumes()[0].limits;
    let mut subsystem = Subsystem::new(NQN, "FY0000", vec![Namespace::new(1, limits.blocks, 12)]);
    subsystem.has_remap = limits.remaps;
    let config = TargetConfig { subsystems: vec![subsystem], ..TargetConfig::default() };
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let front = NvmeTcp::new(&[any], config, vec![VolumeId::new(0)], 300).expect("the loopback can be listened on");
    let address = front.addresses().next().expect("one was asked for");
    engine.add_front(Box::new(front));
    let (remote, handle) = Remote::new(engine.waker());
    engine.add_hook(Box::new(remote));
    while_serving(engine, || client(address, handle))
}

/// Uses up a share of the drive's life.
#[allow(dead_code, reason = "not every test ages the drive")]
pub(crate) fn age(handle: &Handle, level: f64) {
    let control = Control::Wear { drive: DriveId::new(0), level };
    handle.call(move |engine| engine.control(control)).expect("it serves").expect("it can be so old");
}
