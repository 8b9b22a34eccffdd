//! Admission: limits that no host can use up for others, hosts without a name, and the address that discovery names.

use crate::raw::{ConnectTo, Raw};
use crate::world::{HOST, World, target_config};
use flashyard_nvme::Status;
use flashyard_nvme::admin::{AdminCommand, GetLogPage};
use flashyard_nvme::log::{DiscoveryEntry, page};
use flashyard_nvme::text::{DISCOVERY_NQN, unpadded};
use flashyard_nvmf::target::{CloseReason, Host, Hosts, Limits, Security, Target, TargetConfig};
use flashyard_units::{SimSpan, SimTime};
use std::net::IpAddr;
use zerocopy::FromBytes;

const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

fn limits() -> Limits {
    Limits { controllers: 4, discovery_controllers: 4, pending_controllers: 4, ..Limits::default() }
}

fn target(config: TargetConfig) -> Target {
    Target::new(config).expect("the configuration is right")
}

fn host(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

fn discovery() -> ConnectTo<'static> {
    ConnectTo { nqn: DISCOVERY_NQN, ..ConnectTo::default() }
}

/// A connection from that address that has connected at that second.
fn connect(target: &mut Target, seconds: u64, last: u8, to: &ConnectTo<'_>) -> Raw {
    let mut raw = Raw::from(target, SimTime::ZERO + SimSpan::from_ms(1000 * seconds), SERVER, host(last));
    let reply = raw.connect(target, 0, to);
    assert_eq!(reply.status, Status::SUCCESS);
    raw
}

fn has_ended(target: &mut Target, raw: &mut Raw) -> bool {
    raw.poll(target);
    raw.effects.close == Some(CloseReason::ControllerEnded)
}

#[test]
fn any_number_of_controllers_of_discovery_keeps_nobody_out() {
    let mut config = target_config(limits());
    config.subsystems[0].hosts = Hosts::Listed(vec![Host::new(HOST)]);
    let mut world = World::with(config, |_| ());
    let strangers: Vec<Raw> = (0..300).map(|_| connect(&mut world.target, 0, 9, &discovery())).collect();
    world.connect();
    assert_eq!(world.read(0, 1), [0; 4096]);
    let mut reader = connect(&mut world.target, 0, 7, &discovery());
    assert_eq!(reader.enable(&mut world.target), Status::SUCCESS);
    drop(strangers);
}

#[test]
fn the_silent_of_the_same_address_give_way_first() {
    let mut target = target(target_config(limits()));
    let mut persistent = connect(&mut target, 0, 7, &discovery());
    let mut flood: Vec<Raw> = (1..20).map(|second| connect(&mut target, second, 9, &discovery())).collect();
    assert!(!has_ended(&mut target, &mut persistent), "it is the oldest, but of another address");
    let ended = flood.iter_mut().map(|raw| has_ended(&mut target, raw)).collect::<Vec<_>>();
    assert!(ended[..16].iter().all(|ended| *ended) && ended[16..].iter().all(|ended| !ended), "{ended:?}");
    let mut another = connect(&mut target, 30, 8, &discovery());
    assert!(has_ended(&mut target, &mut persistent), "of no address in particular: the one that is silent longest");
    assert!(!has_ended(&mut target, &mut another));
}

#[test]
fn hosts_that_do_not_finish_keep_nobody_out_and_those_that_do_are_counted() {
    let mut target = target(target_config(limits()));
    let mut waiting: Vec<Raw> = (0..40).map(|_| connect(&mut target, 0, 9, &ConnectTo::default())).collect();
    let ended = waiting.iter_mut().filter_map(|raw| has_ended(&mut target, raw).then_some(())).count();
    assert_eq!(ended, 36);
    let mut settled: Vec<Raw> = Vec::new();
    for last in 1..=4 {
        let mut raw = connect(&mut target, 1, last, &ConnectTo::default());
        assert_eq!(raw.enable(&mut target), Status::SUCCESS);
        settled.push(raw);
    }
    let mut fifth = Raw::from(&mut target, SimTime::ZERO, SERVER, host(5));
    assert_eq!(fifth.connect(&mut target, 0, &ConnectTo::default()).status, Status::CONTROLLER_BUSY);
    assert!(settled.iter_mut().all(|raw| !has_ended(&mut target, raw)), "who works is never put out");
    let mut reader = connect(&mut target, 1, 5, &discovery());
    assert_eq!(reader.enable(&mut target), Status::SUCCESS);
}

#[test]
fn a_controller_that_is_not_enabled_in_ten_seconds_ends() {
    let mut target = target(target_config(limits()));
    let mut slow = connect(&mut target, 3, 1, &ConnectTo::default());
    assert_eq!(target.deadline(), Some(SimTime::ZERO + SimSpan::from_ms(13_000)));
    let mut quick = connect(&mut target, 3, 1, &ConnectTo::default());
    assert_eq!(quick.enable(&mut target), Status::SUCCESS);
    target.expire(SimTime::ZERO + SimSpan::from_ms(13_000));
    assert!(has_ended(&mut target, &mut slow) && !has_ended(&mut target, &mut quick));
    assert_eq!(target.deadline(), None);
}

#[test]
fn a_silent_reader_of_the_discovery_log_is_let_go_after_two_minutes() {
    let mut target = target(target_config(limits()));
    let mut reader = connect(&mut target, 0, 1, &discovery());
    assert_eq!(reader.enable(&mut target), Status::SUCCESS);
    let end = SimTime::ZERO + SimSpan::from_ms(120_000);
    assert_eq!(target.deadline(), Some(end));
    target.expire(end);
    assert!(has_ended(&mut target, &mut reader));
}

#[test]
fn a_host_without_a_name_is_let_in_where_everybody_is() {
    let nameless = ConnectTo { host: "", ..ConnectTo::default() };
    let mut open = target(target_config(limits()));
    let mut admin = connect(&mut open, 0, 1, &nameless);
    assert_eq!(admin.enable(&mut open), Status::SUCCESS);
    let mut io = Raw::new(&mut open, SimTime::ZERO);
    let of_it = ConnectTo { controller: 1, ..nameless };
    assert_eq!(io.connect(&mut open, 1, &of_it).status, Status::SUCCESS);
    connect(&mut open, 0, 1, &ConnectTo { host: "", ..discovery() });
    let mut config = target_config(limits());
    config.subsystems[0].hosts = Hosts::Listed(vec![Host::new(HOST)]);
    let mut listed = target(config);
    let mut raw = Raw::new(&mut listed, SimTime::ZERO);
    let refused = raw.connect(&mut listed, 0, &ConnectTo { host: "", ..ConnectTo::default() });
    assert_eq!(refused.status.code(), Status::CONNECT_INVALID_HOST);
}

#[test]
fn a_queue_of_more_entries_than_there_are_is_refused() {
    let mut target = target(target_config(limits()));
    let mut raw = Raw::new(&mut target, SimTime::ZERO);
    let refused = raw.connect(&mut target, 0, &ConnectTo { entries: 129, ..ConnectTo::default() });
    assert_eq!(refused.status.code(), Status::CONNECT_INVALID_PARAMETERS);
    connect(&mut target, 0, 1, &ConnectTo { entries: 128, ..ConnectTo::default() });
}

#[test]
fn our_host_asks_for_no_more_entries_than_the_controller_has() {
    for (entries, wanted, capacity) in
        [(128, 4096, 127), (128, 129, 127), (128, 128, 127), (1024, 300, 299), (16, 64, 15)]
    {
        let limits = Limits { queue_entries: entries, ..Limits::default() };
        let mut world = World::new(limits, |config| config.queue_entries = wanted);
        world.connect();
        assert_eq!(world.links[1].host.capacity(), capacity, "{wanted} of {entries}");
        assert_eq!(world.links[0].host.capacity(), 31, "an admin queue has 32 entries everywhere");
    }
}

/// Entries that discovery gives a host that has come to `local`: addresses and families, in the order of the ports.
fn told(ports: &[&str], local: &str) -> Vec<(String, u8)> {
    let mut config = target_config(Limits::default());
    config.ports.truncate(1);
    config.ports[0].address = ports[0].parse().expect("an address");
    for (id, address) in (2..).zip(&ports[1..]) {
        config.ports.push(flashyard_nvmf::target::Port {
            id,
            address: address.parse().expect("an address"),
            service: 4420 + id,
            security: Security::None,
        });
    }
    let mut target = target(config);
    let local = local.parse().expect("an address");
    let mut raw = Raw::from(&mut target, SimTime::ZERO, local, local);
    assert_eq!(raw.connect(&mut target, 0, &discovery()).status, Status::SUCCESS);
    assert_eq!(raw.enable(&mut target), Status::SUCCESS);
    let get = GetLogPage { page: page::DISCOVERY, len_bytes: 8192, ..GetLogPage::default() };
    let log = raw.ask(&mut target, AdminCommand::GetLogPage(get).encode(1), &[], 8192).expect("it is answered").data;
    let entries = log[1024..]
        .chunks(1024)
        .take(usize::from(log[8]))
        .map(|e| DiscoveryEntry::read_from_bytes(e).expect("an entry has 1024 bytes"));
    let drives = entries.filter(|entry| entry.subsystem_kind == DiscoveryEntry::KIND_NVM);
    drives.map(|entry| (unpadded(&entry.address), entry.address_family)).collect()
}

#[test]
fn discovery_names_the_address_by_which_the_host_came() {
    let v4 = |address: &str| (address.to_owned(), 1);
    let v6 = |address: &str| (address.to_owned(), 2);
    assert_eq!(told(&["0.0.0.0"], "192.168.77.1"), [v4("192.168.77.1")]);
    assert_eq!(told(&["0.0.0.0"], "127.0.0.1"), [v4("127.0.0.1")]);
    assert_eq!(told(&["::"], "2001:db8::1"), [v6("2001:db8::1")]);
    assert_eq!(told(&["::"], "::ffff:192.168.77.1"), [v4("192.168.77.1")], "one of IPv4 by a socket of IPv6");
    // Ports with an address of their own are listed as they are, but for a loopback that is not the host's.
    assert_eq!(told(&["0.0.0.0", "10.0.0.1"], "192.168.77.1"), [v4("192.168.77.1"), v4("10.0.0.1")]);
    assert_eq!(told(&["0.0.0.0", "127.0.0.1"], "192.168.77.1"), [v4("192.168.77.1")]);
    assert_eq!(told(&["127.0.0.1", "::1"], "127.0.0.1"), [v4("127.0.0.1"), v6("::1")]);
    // By IPv6 nothing is known of an address of IPv4.
    assert_eq!(told(&["::", "0.0.0.0"], "2001:db8::1"), [v6("2001:db8::1")]);
}

#[test]
fn an_io_queue_of_a_controller_that_went_meanwhile_may_be_tried_again() {
    let mut target = target(target_config(Limits::default()));
    let mut admin = connect(&mut target, 0, 1, &ConnectTo::default());
    assert_eq!(admin.enable(&mut target), Status::SUCCESS);
    // The drive is pulled and back before the host connects its first I/O queue. Linux gives a controller up for good when
    // the answer forbids it to try again.
    target.set_away(0, true);
    target.set_away(0, false);
    let mut queue = Raw::from(&mut target, SimTime::ZERO, SERVER, host(1));
    let gone = queue.connect(&mut target, 1, &ConnectTo { controller: 1, ..ConnectTo::default() });
    assert_eq!(gone.status.code(), Status::CONNECT_INVALID_PARAMETERS);
    assert!(!gone.status.forbids_retry());
    // A request that can never be right stays forbidden.
    let mut other = Raw::from(&mut target, SimTime::ZERO, SERVER, host(1));
    let unknown = other.connect(&mut target, 0, &ConnectTo { nqn: "nqn.2026-01.test:none", ..ConnectTo::default() });
    assert!(unknown.status.forbids_retry());
}
