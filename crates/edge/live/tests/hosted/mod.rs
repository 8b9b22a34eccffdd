//! Drive 0 of a small enclosure, served to a host over NVMe/TCP of the loopback.

use crate::small::{enclosure_of, while_serving};
use flashyard_live::{Engine, Handle, NvmeTcp, Remote, Report, SetUp, Tempo};
use flashyard_nvmf::target::{Namespace, Subsystem, TargetConfig, ZoneShape};
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
#[allow(dead_code, reason = "some tests are of zones only")]
pub(crate) fn serve<R: Send>(
    scenario: &Scenario,
    directory: Option<&Path>,
    tempo: Tempo,
    client: impl FnOnce(SocketAddr, Handle) -> R + Send,
) -> (Report, R) {
    serve_zoned(scenario, directory, tempo, None, client)
}

/// Serves the drive, with zones if they have a shape, while `client` works.
pub(crate) fn serve_zoned<R: Send>(
    scenario: &Scenario,
    directory: Option<&Path>,
    tempo: Tempo,
    zones: Option<ZoneShape>,
    client: impl FnOnce(SocketAddr, Handle) -> R + Send,
) -> (Report, R) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let SetUp { world, media, .. } = enclosure_of(scenario, directory).expect("its enclosure can serve");
    let mut engine =
        Engine::new(Session::new(world, None), media, &[VolumeId::new(0)], tempo).expect("there is a poll");
    let limits = engine.volumes()[0].limits;
    let unit = zones.map_or(1, |zones| zones.zone_blocks);
    let mut namespace = Namespace::new(1, limits.blocks / unit * unit, 12);
    namespace.zones = zones;
    let mut subsystem = Subsystem::new(NQN, "FY0000", vec![namespace]);
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
