//! The initiator against the target in memory, with the streams cut anywhere.

use crate::world::{World, copy, target_config};
use flashyard_nvme::Status;
use flashyard_nvme::log::page;
use flashyard_nvme::nvm::{BlockRange, DsmRange, NvmCommand, opcode};
use flashyard_nvme::tcp::Digests;
use flashyard_nvmf::target::Limits;
use proptest::prelude::*;
use zerocopy::IntoBytes;

fn range(lba: u64, blocks: u32) -> BlockRange {
    BlockRange { lba, blocks }
}

#[test]
fn a_host_connects_identifies_and_reads_what_it_wrote() {
    let mut world = World::new(Limits::default(), |_| ());
    world.connect();
    let info = world.admin().controller().clone();
    assert_eq!((info.id, info.serial.as_str(), info.io_queues), (1, "0001", 2));
    assert_eq!((info.data_bytes_max, info.capsule_data_bytes), (Some(1 << 20), 16 << 10));
    assert_eq!((info.namespaces.len(), info.namespaces[0].blocks, info.namespaces[0].block_bytes), (1, 1024, 4096));
    world.write(5, &[0xAB; 4096]);
    assert_eq!(world.read(5, 1), [0xAB; 4096]);
    assert_eq!(world.read(6, 1), [0; 4096]);
}

#[test]
fn a_large_write_is_asked_for_in_pieces() {
    let limits = Limits { transfer_bytes: 8192, transfers_outstanding: 3, ..Limits::default() };
    let mut world = World::new(limits, |config| config.transfers_outstanding = 2);
    world.connect();
    let data: Vec<u8> = (0..256 * 1024).map(|at| (at / 777) as u8).collect();
    world.write(100, &data);
    assert_eq!(world.read(100, 64), data);
}

#[test]
fn every_command_of_blocks_does_what_it_says() {
    let mut world = World::new(Limits::default(), |_| ());
    world.connect();
    world.write(0, &[7; 8192]);
    let mut run = |operation, data: &[u8]| world.run(1, operation, data.to_vec(), 0).0;
    assert_eq!(run(NvmCommand::Flush, &[]), Status::SUCCESS);
    assert_eq!(run(NvmCommand::Compare { range: range(0, 1), fua: false }, &[7; 4096]), Status::SUCCESS);
    let differs = run(NvmCommand::Compare { range: range(0, 1), fua: false }, &[8; 4096]);
    assert_eq!(differs.code(), Status::COMPARE_FAILURE);
    assert_eq!(run(NvmCommand::Verify { range: range(0, 1), fua: false }, &[]), Status::SUCCESS);
    let zeroes = NvmCommand::WriteZeroes { range: range(0, 1), deallocate: true, fua: true };
    assert_eq!(run(zeroes, &[]), Status::SUCCESS);
    let refused = run(NvmCommand::WriteUncorrectable { range: range(0, 1) }, &[]);
    assert_eq!(refused.code(), Status::INVALID_OPCODE);
    let trim =
        NvmCommand::DatasetManagement { ranges: 1, deallocate: true, integral_read: false, integral_write: false };
    // Longer than one range, as Linux sends it.
    let mut ranges = DsmRange::new(range(1, 1)).as_bytes().to_vec();
    ranges.resize(4096, 0);
    assert_eq!(run(trim, &ranges), Status::SUCCESS);
    assert_eq!(world.read(0, 2), [0; 8192]);
}

#[test]
fn a_copy_writes_its_sources_one_behind_the_other() {
    let mut world = World::new(Limits::default(), |_| ());
    world.connect();
    world.write(10, &[[1; 4096], [2; 4096], [3; 4096]].concat());
    // The last source has been written by the first: ranges are copied in their order.
    let (command, sources) = copy(20, &[range(11, 2), range(10, 1), range(20, 1)]);
    assert_eq!(world.run(1, command, sources, 0).0, Status::SUCCESS);
    assert_eq!(world.read(20, 4), [[2; 4096], [3; 4096], [1; 4096], [2; 4096]].concat());
}

#[test]
fn copies_beyond_a_limit_or_the_namespace_write_nothing() {
    // The longest range has 16 blocks.
    let limits = Limits { data_pages_max_log2: 4, ..Limits::default() };
    let mut world = World::new(limits, |_| ());
    world.connect();
    world.write(0, &[7; 4096]);
    let many = |count: usize, blocks| vec![range(0, blocks); count];
    let tried = [
        (500, many(1, 17), Status::COMMAND_SIZE_LIMIT),
        (500, many(17, 16), Status::COMMAND_SIZE_LIMIT),
        (500, many(129, 1), Status::COMMAND_SIZE_LIMIT),
        (500, vec![range(0, 1), range(1023, 2)], Status::LBA_OUT_OF_RANGE),
        (500, vec![range(0, 1), range(u64::MAX, 1)], Status::LBA_OUT_OF_RANGE),
        (1023, many(2, 1), Status::LBA_OUT_OF_RANGE),
        (u64::MAX, many(1, 1), Status::LBA_OUT_OF_RANGE),
    ];
    for (first, sources, expected) in tried {
        let (command, data) = copy(first, &sources);
        let status = world.run(1, command, data, 0).0;
        assert_eq!((status.code(), status.forbids_retry()), (expected, true), "{} sources to {first}", sources.len());
    }
    let (_, data) = copy(500, &many(1, 1));
    for (format, protection) in [(1, 0), (0, 1), (0, 0x10)] {
        let command = NvmCommand::Copy { first: 500, ranges: 1, format, protection, fua: false };
        assert_eq!(world.run(1, command, data.clone(), 0).0.code(), Status::INVALID_FIELD);
    }
    let short = world.run(1, copy(500, &many(2, 1)).0, data, 0).0;
    assert_eq!(short.code(), Status::INVALID_SGL_DATA_LENGTH);
    assert_eq!(world.read(500, 16), [0; 16 * 4096]);
    // As much as may be.
    for (count, blocks) in [(16, 16), (128, 2)] {
        let (command, data) = copy(500, &many(count, blocks));
        assert_eq!(world.run(1, command, data, 0).0, Status::SUCCESS);
        let last = 500 + (count as u64 - 1) * u64::from(blocks);
        assert_eq!(world.read(last, 1), [7; 4096]);
    }
}

#[test]
fn ranges_to_deallocate_outside_the_namespace_are_refused_whole() {
    let mut world = World::new(Limits::default(), |_| ());
    world.connect();
    world.write(1, &[7; 4096]);
    for (lba, blocks) in [(1023, 2), (1 << 32, 1), ((1 << 32) + 1, 1), (u64::MAX, 1), (0, u32::MAX)] {
        let ranges: Vec<u8> = [range(1, 1), range(lba, blocks)]
            .iter()
            .flat_map(|range| DsmRange::new(*range).as_bytes().to_vec())
            .collect();
        let trim =
            NvmCommand::DatasetManagement { ranges: 2, deallocate: true, integral_read: false, integral_write: false };
        let status = world.run(1, trim, ranges, 0).0;
        assert_eq!((status.code(), status.forbids_retry()), (Status::LBA_OUT_OF_RANGE, true), "{lba} {blocks}");
    }
    assert_eq!(world.read(1, 1), [7; 4096]);
}

#[test]
fn what_is_outside_the_namespace_is_refused() {
    let mut world = World::new(Limits::default(), |_| ());
    world.connect();
    let read = |lba, blocks| NvmCommand::Read { range: range(lba, blocks), fua: false };
    let mut status = |nsid, operation, data_bytes| world.run(nsid, operation, Vec::new(), data_bytes).0;
    assert_eq!(status(1, read(1024, 1), 4096).code(), Status::LBA_OUT_OF_RANGE);
    assert_eq!(status(1, read(u64::MAX, 2), 8192).code(), Status::LBA_OUT_OF_RANGE);
    assert_eq!(status(2, read(0, 1), 4096).code(), Status::INVALID_NAMESPACE);
    assert_eq!(status(1, read(0, 1), 512).code(), Status::INVALID_SGL_DATA_LENGTH);
    assert_eq!(status(1, read(0, 512), 2 << 20).code(), Status::INVALID_FIELD);
    assert!(status(1, read(1024, 1), 4096).forbids_retry());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_copy_is_done_whole_or_refused_whole(
        first in 0_u64..1100,
        sources in prop::collection::vec((0_u64..1100, 1_u32..300), 1..9),
    ) {
        let mut world = World::new(Limits::default(), |_| ());
        world.connect();
        world.disk.chunks_mut(4096).enumerate().for_each(|(block, bytes)| bytes.fill((block % 251) as u8));
        let before = world.disk.clone();
        let sources: Vec<_> = sources.into_iter().map(|(lba, blocks)| range(lba, blocks)).collect();
        let (command, data) = copy(first, &sources);
        let total: u64 = sources.iter().map(|source| u64::from(source.blocks)).sum();
        let is_inside = |lba: u64, blocks: u64| lba + blocks <= 1024;
        let expected = if sources.iter().any(|source| source.blocks > 256) {
            Status::COMMAND_SIZE_LIMIT
        } else if sources.iter().all(|source| is_inside(source.lba, source.blocks.into())) && is_inside(first, total) {
            Status::SUCCESS
        } else {
            Status::LBA_OUT_OF_RANGE
        };
        prop_assert_eq!(world.run(1, command, data, 0).0.code(), expected);
        prop_assert!(expected == Status::SUCCESS || world.disk == before);
    }

    #[test]
    fn cuts_digests_and_flow_control_change_nothing(
        header: bool, data: bool, has_flow_control: bool, seed: u64, capsule in 0u32..3, transfer in 0u32..3,
        writes in prop::collection::vec((0u64..200, 1u32..9, any::<u8>()), 1..8),
    ) {
        let limits = Limits {
            capsule_data_bytes: capsule * 8192, transfer_bytes: transfer * 4096, transfers_outstanding: 2,
            data_pdu_bytes: 4096, ..Limits::default()
        };
        let mut world = World::new(limits, |config| {
            config.digests = Digests { header, data };
            config.has_flow_control = has_flow_control;
            config.transfers_outstanding = 3;
        });
        world.cut_with(seed);
        world.connect();
        let mut expected = vec![0; 256 * 4096];
        for (lba, blocks, byte) in writes {
            let len = blocks as usize * 4096;
            let bytes = vec![byte; len];
            world.write(lba, &bytes);
            expected[lba as usize * 4096..][..len].copy_from_slice(&bytes);
        }
        prop_assert_eq!(world.read(0, 250), &expected[..250 * 4096]);
    }
}

#[test]
fn remaps_are_announced_in_both_places_or_refused() {
    for has_remap in [false, true] {
        let mut config = target_config(Limits::default());
        config.subsystems[0].has_remap = has_remap;
        let mut world = World::with(config, |_| ());
        world.connect();
        assert_eq!(world.admin().controller().remaps, has_remap);
        let effects = world.log(page::EFFECTS, 4096);
        let expected = if has_remap { 0b11 } else { 0 };
        assert_eq!(effects[1024 + 4 * usize::from(opcode::REMAP)], expected);
        assert_eq!(effects[1024 + 4 * usize::from(opcode::VERIFY)], 1);
        let mut status = |first, source| {
            let remap = NvmCommand::Remap { range: range(first, 4), source };
            world.run(1, remap, Vec::new(), 0).0.code()
        };
        let expected = |status| if has_remap { status } else { Status::INVALID_OPCODE };
        assert_eq!(status(0, 4), expected(Status::SUCCESS));
        assert_eq!(status(4, 1), expected(Status::INVALID_FIELD));
        assert_eq!(status(1021, 4), expected(Status::LBA_OUT_OF_RANGE));
        assert_eq!(status(4, u64::MAX), expected(Status::LBA_OUT_OF_RANGE));
    }
}
