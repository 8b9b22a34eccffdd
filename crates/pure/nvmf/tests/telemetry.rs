//! The two pages of telemetry, as a host reads them.

use crate::world::World;
use flashyard_nvme::Status;
use flashyard_nvme::admin::{AdminCommand, GetLogPage, Identify, cns};
use flashyard_nvme::identify::IdentifyController;
use flashyard_nvme::log::{TelemetryHeader, page};
use flashyard_nvmf::initiator::Data;
use flashyard_nvmf::target::{Limits, set_telemetry};
use zerocopy::{FromBytes, IntoBytes};

fn get(world: &mut World, page: u8, specific: u8, (offset_bytes, len_bytes): (u64, u64)) -> (Status, Vec<u8>) {
    let get = GetLogPage { page, specific, offset_bytes, len_bytes, nsid: u32::MAX, ..GetLogPage::default() };
    let (status, _, data) = world.admin_command(AdminCommand::GetLogPage(get), Data::ToHost(len_bytes as u32));
    (status, data)
}

fn header(world: &mut World, page: u8, specific: u8) -> TelemetryHeader {
    let (status, data) = get(world, page, specific, (0, 512));
    assert_eq!(status, Status::SUCCESS);
    TelemetryHeader::read_from_bytes(&data).expect("it is whole")
}

fn texts(first: &str) -> [String; 3] {
    [first.to_owned(), "second".to_owned(), "x".repeat(600)]
}

#[test]
fn what_a_host_has_asked_for_stays_as_it_is_until_it_asks_again() {
    let mut world = World::new(Limits::default(), |_| ());
    world.connect();
    assert_eq!(
        get(&mut world, page::TELEMETRY_HOST, 1, (0, 512)).0.code(),
        Status::INVALID_LOG_PAGE,
        "nothing is known"
    );
    set_telemetry(&mut world.target, 0, texts("before"), 0);
    let identify = AdminCommand::Identify(Identify { cns: cns::CONTROLLER, ..Identify::default() });
    let (_, _, data) = world.admin_command(identify, Data::ToHost(4096));
    let controller = IdentifyController::read_from_bytes(&data).expect("it is whole");
    assert_ne!(controller.log_attributes & IdentifyController::LOG_TELEMETRY, 0);

    let empty = header(&mut world, page::TELEMETRY_HOST, 0);
    assert_eq!((empty.page, empty.host_generation, empty.last_blocks.map(|last| last.get())), (7, 0, [0; 3]));
    let asked = header(&mut world, page::TELEMETRY_HOST, 1);
    assert_eq!((asked.host_generation, asked.last_blocks.map(|last| last.get())), (1, [1, 2, 4]));
    set_telemetry(&mut world.target, 0, texts("after"), 0);
    let (status, data) = get(&mut world, page::TELEMETRY_HOST, 0, (512, 512));
    assert!(status == Status::SUCCESS && data.starts_with(b"before"));
    assert_eq!(get(&mut world, page::TELEMETRY_HOST, 0, (0, 512)).1, asked.as_bytes());
    let (status, data) = get(&mut world, page::TELEMETRY_HOST, 0, (1024, 1536));
    assert!(
        status == Status::SUCCESS && data.starts_with(b"second") && data[512..1112].iter().all(|&byte| byte == b'x')
    );
    assert_eq!(header(&mut world, page::TELEMETRY_HOST, 1).host_generation, 2);
    assert!(get(&mut world, page::TELEMETRY_HOST, 0, (512, 512)).1.starts_with(b"after"));

    for range in [(4, 512), (0, 516), (512 * 6, 512)] {
        assert_eq!(get(&mut world, page::TELEMETRY_HOST, 0, range).0.code(), Status::INVALID_FIELD, "{range:?}");
    }
}

#[test]
fn a_drive_writes_down_by_itself_what_was_so_when_a_warning_came() {
    let mut world = World::new(Limits::default(), |_| ());
    world.connect();
    set_telemetry(&mut world.target, 0, texts("well"), 0);
    let none = header(&mut world, page::TELEMETRY_CONTROLLER, 0);
    assert_eq!((none.page, none.available, none.generation, none.last_blocks[2].get()), (8, 0, 0, 0));
    set_telemetry(&mut world.target, 0, texts("warned"), 1);
    set_telemetry(&mut world.target, 0, texts("later"), 1);
    let beyond = get(&mut world, page::TELEMETRY_CONTROLLER, 0, (512 * 6, 512)).0.code();
    assert_eq!(beyond, Status::INVALID_FIELD, "what is refused was not read");
    let kept = header(&mut world, page::TELEMETRY_CONTROLLER, 0);
    assert_eq!((kept.available, kept.generation, kept.last_blocks[2].get()), (1, 1, 4));
    assert!(get(&mut world, page::TELEMETRY_CONTROLLER, 0, (512, 512)).1.starts_with(b"warned"));
    assert_eq!(header(&mut world, page::TELEMETRY_CONTROLLER, 0).available, 0, "the host has said that it has read it");
    set_telemetry(&mut world.target, 0, texts("worse"), 9);
    assert_eq!(header(&mut world, page::TELEMETRY_CONTROLLER, 0).generation, 2);
}
