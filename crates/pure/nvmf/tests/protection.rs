//! Formats with metadata and commands on protected blocks, as controllers answer them before a backend hears of them.

use crate::world::{BLOCK, World, target_config};
use flashyard_nvme::Status;
use flashyard_nvme::admin::{AdminCommand, Format, Identify, cns};
use flashyard_nvme::identify::IdentifyNamespace;
use flashyard_nvme::nvm::{BlockRange, CopyRange, NvmCommand};
use flashyard_nvme::protection::{Checks, Metadata, Protection};
use flashyard_nvmf::initiator::Data;
use flashyard_nvmf::target::{BlockFormat, Limits, Wish};
use zerocopy::{FromBytes, IntoBytes};

const FORMATS: &[BlockFormat] =
    &[BlockFormat::plain(12), BlockFormat::with_metadata(12), BlockFormat::with_metadata(9)];
const OK: Status = Status::SUCCESS;

/// A host of a drive whose blocks have this metadata.
fn world(metadata: Metadata) -> World {
    let mut config = target_config(Limits::default());
    let namespace = &mut config.subsystems[0].namespaces[0];
    (namespace.formats, namespace.metadata) = (FORMATS, metadata);
    let mut world = World::with(config, |_| ());
    world.connect();
    world
}

fn identify(world: &mut World) -> Vec<u8> {
    let identify = Identify { cns: cns::NAMESPACE, nsid: 1, ..Identify::default() };
    let (status, _, data) = world.admin_command(AdminCommand::Identify(identify), Data::ToHost(4096));
    assert_eq!(status, OK);
    data
}

#[test]
fn identify_tells_of_metadata_behind_data_and_of_the_type_in_use() {
    for metadata in [Metadata::None, Metadata::Opaque, Metadata::Type1, Metadata::Type2, Metadata::Type3] {
        let data = identify(&mut world(metadata));
        let index = if metadata.is_none() { 0 } else { 1 | 1 << 4 };
        // NLBAF, FLBAS, MC, DPC, DPS and DLFEAT, by their bytes (NVM Command Set 1.0, figure 97).
        assert_eq!((&data[25..30], data[33]), (&[2, index, 1, 0x1F, metadata.kind()][..], 1 | 1 << 3));
        assert_eq!(data[128..144], [0, 0, 12, 0, 8, 0, 12, 0, 8, 0, 9, 2, 0, 0, 0, 0]);
        let it = IdentifyNamespace::read_from_bytes(&data).expect("it is whole");
        assert_eq!((it.block_bytes(), it.format_in_use().metadata_bytes.get()), (Some(4096), metadata.bytes() as u16));
    }
    let nvm = Identify { cns: cns::NAMESPACE_OF_COMMAND_SET, nsid: 1, ..Identify::default() };
    let (status, _, data) = world(Metadata::Type1).admin_command(AdminCommand::Identify(nvm), Data::ToHost(4096));
    assert_eq!((status, data), (OK, vec![0; 4096]), "guards of 16 bits, no storage tags");
}

#[test]
fn a_format_names_metadata_as_a_part_of_the_data_and_a_type() {
    let mut world = world(Metadata::None);
    let mut ask = |format: u8, protection: u8, metadata_inline: bool, protection_first: bool| {
        let command = Format { nsid: 1, format, metadata_inline, protection, protection_first, ..Format::default() };
        let link = &mut world.links[0];
        let entry = AdminCommand::Format(command).encode(0);
        link.host.submit_entry(88, entry, Data::None, &mut link.host_effects).expect("the queue has room");
        world.settle();
        match world.target.take_demands().pop() {
            Some(demand) => {
                world.target.settle(&demand, OK);
                world.target.set_figures(0, Default::default());
                world.settle();
                world.links[0].host_effects.completions.clear();
                Ok(demand.wish)
            }
            None => Err(world.links[0].host_effects.completions.pop().expect("it is answered").status.code()),
        }
    };
    for (format, kind) in [(1, 0), (1, 1), (1, 2), (2, 3)] {
        // Of eight bytes the first are the last.
        for first in [false, true] {
            let metadata = Metadata::of(true, kind).expect("there is such a type");
            let block_log2 = if format == 1 { 12 } else { 9 };
            let wish = Wish::Format { nsid: 1, block_log2, metadata, destroys: false };
            assert_eq!(ask(format, kind, true, first), Ok(wish));
        }
    }
    for (format, kind, inline) in [(0, 1, false), (0, 1, true), (0, 0, true), (1, 1, false), (1, 4, true), (3, 0, true)]
    {
        assert_eq!(ask(format, kind, inline, false), Err(Status::INVALID_FORMAT), "{format} {kind} {inline}");
    }
}

#[test]
fn data_is_as_long_as_the_command_says_with_metadata_or_without() {
    for metadata in [Metadata::Opaque, Metadata::Type1, Metadata::Type3] {
        let mut world = world(metadata);
        for action in [false, true] {
            let asked = Protection { action, ..Protection::default() };
            let carries = !action || metadata == Metadata::Opaque;
            let range = BlockRange { lba: 4, blocks: 2 };
            for (is_carried, with) in [(false, 0), (true, 8)] {
                let len = 2 * (BLOCK + with);
                let expected = if is_carried == carries { OK } else { Status::INVALID_SGL_DATA_LENGTH };
                let mut read = NvmCommand::Read { range, fua: false }.encode(0, 1);
                asked.encode(&mut read);
                assert_eq!(world.run_on(1, read, Data::ToHost(len as u32)).0.code(), expected, "{metadata:?} {action}");
                if metadata == Metadata::Opaque && action {
                    continue;
                }
                let mut write = NvmCommand::Write { range, fua: false }.encode(0, 1);
                asked.encode(&mut write);
                assert_eq!(world.run_on(1, write, Data::ToController(vec![7; len])).0.code(), expected);
            }
        }
        // With metadata there is room for a block less in the most that a command may carry.
        let most = BlockRange { lba: 0, blocks: 256 };
        let read = NvmCommand::Read { range: most, fua: false }.encode(0, 1);
        assert_eq!(world.run_on(1, read, Data::ToHost(256 * 4104)).0.code(), Status::INVALID_FIELD);
    }
}

#[test]
fn what_cannot_be_compared_or_taken_off_is_refused() {
    let run = |metadata, command: NvmCommand, asked: Protection, data: Data| {
        let mut world = world(metadata);
        let mut entry = command.encode(0, 1);
        asked.encode(&mut entry);
        world.run_on(1, entry, data).0.code()
    };
    let range = BlockRange { lba: 4, blocks: 1 };
    let write = NvmCommand::WriteZeroes { range, deallocate: false, fua: false };
    let reference = Checks { reference: true, ..Checks::default() };
    let asked = |reference_tag| Protection { checks: reference, reference: reference_tag, ..Protection::default() };
    for (metadata, tag, expected) in [
        (Metadata::None, 9, OK),
        (Metadata::Opaque, 9, OK),
        (Metadata::Type1, 4, OK),
        (Metadata::Type1, 9, Status::INVALID_PROTECTION),
        (Metadata::Type2, 9, OK),
        (Metadata::Type3, 4, Status::INVALID_PROTECTION),
    ] {
        assert_eq!(run(metadata, write, asked(tag), Data::None), expected, "{metadata:?} {tag}");
    }
    let acts = Protection { action: true, ..Protection::default() };
    let verify = NvmCommand::Verify { range, fua: false };
    assert_eq!(run(Metadata::Type1, verify, acts, Data::None), Status::INVALID_PROTECTION);
    assert_eq!(run(Metadata::Opaque, verify, acts, Data::None), OK);
    let copy = |protection, tags: u32| {
        let command = NvmCommand::Copy { first: 8, ranges: 1, format: 0, protection, fua: false };
        let mut source = CopyRange::new(range);
        source.tags[..4].copy_from_slice(&tags.to_le_bytes());
        (command.encode(0, 1), Data::ToController(source.as_bytes().to_vec()))
    };
    // Made again and taken off, or carried: not one without the other. The expected tag of a range is that of its blocks.
    for (protection, tags, expected) in [
        (0, 0, OK),
        (0b1000_1000, 0, OK),
        (0b1000_0000, 0, Status::INVALID_FIELD),
        (0b0000_1000, 0, Status::INVALID_FIELD),
        (0b0000_0001, 4, OK),
        (0b0000_0001, 5, Status::INVALID_PROTECTION),
        (0b0001_0000, 0, Status::INVALID_PROTECTION),
    ] {
        let mut world = world(Metadata::Type1);
        let (entry, data) = copy(protection, tags);
        assert_eq!(world.run_on(1, entry, data).0.code(), expected, "{protection:#b}");
    }
}
