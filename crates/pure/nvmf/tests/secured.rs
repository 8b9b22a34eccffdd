//! Connections over TLS: what their keys are for, and what discovery says of their ports.

use crate::raw::{ConnectTo, Raw};
use crate::world::{HOST, NQN, target_config};
use flashyard_nvme::Status;
use flashyard_nvme::admin::{AdminCommand, GetLogPage};
use flashyard_nvme::log::{DiscoveryEntry, page};
use flashyard_nvme::text::DISCOVERY_NQN;
use flashyard_nvmf::target::{Host, Hosts, Limits, Security, Subsystem, Target, TargetConfig, secure};
use flashyard_nvmf::tls::{Channel, TlsKey};
use flashyard_units::SimTime;
use zerocopy::FromBytes;

const KEY: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";

/// A target whose port 1 speaks TLS, and whose host has a key.
fn config() -> TargetConfig {
    let mut config = target_config(Limits::default());
    config.ports[0].security = Security::Tls13;
    let key: TlsKey = KEY.parse().expect("it is a key");
    config.subsystems[0].hosts = Hosts::Listed(vec![Host { tls_key: Some(key), ..Host::new(HOST) }]);
    config
}

fn channel(host: &str, subsystem: &str) -> Channel {
    Channel { host: host.to_owned(), subsystem: subsystem.to_owned() }
}

/// The status of a Connect of the host over a connection of that key.
fn status(over: Channel, to: &ConnectTo<'_>) -> Status {
    let mut target = Target::new(config()).expect("the configuration is right");
    let mut raw = Raw::new(&mut target, SimTime::ZERO);
    secure(&mut raw.session, over);
    raw.connect(&mut target, 0, to).status
}

#[test]
fn a_host_connects_by_its_own_key_to_the_subsystem_that_the_key_is_for() {
    let own = ConnectTo::default();
    let discovery = ConnectTo { nqn: DISCOVERY_NQN, ..ConnectTo::default() };
    assert_eq!(status(channel(HOST, NQN), &own), Status::SUCCESS);
    assert_eq!(status(channel(HOST, DISCOVERY_NQN), &discovery), Status::SUCCESS);
    let refused = Status::CONNECT_INVALID_HOST.do_not_retry();
    assert_eq!(status(channel("nqn.2026-01.test:other", NQN), &own), refused);
    assert_eq!(status(channel(HOST, DISCOVERY_NQN), &own), refused);
    assert_eq!(status(channel(HOST, NQN), &discovery), refused);
}

#[test]
fn an_io_queue_comes_by_the_key_of_its_controller() {
    let mut target = Target::new(config()).expect("the configuration is right");
    let mut admin = Raw::new(&mut target, SimTime::ZERO);
    secure(&mut admin.session, channel(HOST, NQN));
    assert_eq!(admin.connect(&mut target, 0, &ConnectTo::default()).status, Status::SUCCESS);
    assert_eq!(admin.enable(&mut target), Status::SUCCESS);
    let queue = ConnectTo { controller: 1, ..ConnectTo::default() };
    let mut other = Raw::new(&mut target, SimTime::ZERO);
    secure(&mut other.session, channel(HOST, "nqn.2026-01.test:other"));
    assert_eq!(other.connect(&mut target, 1, &queue).status.code(), Status::CONNECT_INVALID_HOST);
    let mut io = Raw::new(&mut target, SimTime::ZERO);
    secure(&mut io.session, channel(HOST, NQN));
    assert_eq!(io.connect(&mut target, 1, &queue).status, Status::SUCCESS);
}

#[test]
fn discovery_tells_which_ports_speak_tls() {
    let mut target = Target::new(config()).expect("the configuration is right");
    let mut raw = Raw::new(&mut target, SimTime::ZERO);
    secure(&mut raw.session, channel(HOST, DISCOVERY_NQN));
    let discovery = ConnectTo { nqn: DISCOVERY_NQN, ..ConnectTo::default() };
    assert_eq!(raw.connect(&mut target, 0, &discovery).status, Status::SUCCESS);
    assert_eq!(raw.enable(&mut target), Status::SUCCESS);
    let get = GetLogPage { page: page::DISCOVERY, len_bytes: 4096, ..GetLogPage::default() };
    let log = raw.ask(&mut target, AdminCommand::GetLogPage(get).encode(1), &[], 4096).expect("it is answered").data;
    let told: Vec<_> = log[1024..]
        .chunks_exact(1024)
        .map(|bytes| DiscoveryEntry::read_from_bytes(bytes).expect("it is whole"))
        .map(|entry| (entry.subsystem_kind, entry.port_id.get(), entry.requirements, entry.transport_specific[0]))
        .collect();
    let (discovery, nvm) = (DiscoveryEntry::KIND_CURRENT_DISCOVERY, DiscoveryEntry::KIND_NVM);
    assert_eq!(told, [(discovery, 1, 1, 2), (nvm, 1, 1, 2), (nvm, 2, 0, 0)]);
}

#[test]
fn keys_of_a_target_are_those_of_its_hosts_for_each_subsystem_and_for_discovery() {
    let mut config = config();
    let hosts = config.subsystems[0].hosts.clone();
    let second = Subsystem { hosts, ..Subsystem::new("nqn.2026-01.test:second", "0002", Vec::new()) };
    config.subsystems.push(second);
    let keys = config.tls_keys();
    let identities: Vec<_> =
        keys.iter().map(|key| key.identity.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect();
    let version = |version: u8, nqn: &str| format!("NVMe{version}R01 {HOST} {nqn}");
    let of = |nqn| [version(1, nqn), version(0, nqn)];
    assert_eq!(identities, [of(NQN), of(DISCOVERY_NQN), of("nqn.2026-01.test:second")].concat());
    assert!(keys.iter().all(|key| key.channel.host == HOST && key.secret.len() == 32));
    let open = target_config(Limits::default());
    assert!(open.tls_keys().is_empty(), "any host may come, and none has a key");
}
