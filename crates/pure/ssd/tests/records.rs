//! Journal and checkpoints of the map: how much a drive writes of them, and that nothing else changes.

use crate::small::config;
use crate::small::crashing::World;
use flashyard_kernel::Rng;
use flashyard_ssd::{DriveConfig, DriveConfigError, Operation, RecordsConfig};
use flashyard_units::ByteRate;

/// Flash pages of 8 KiB hold 128 entries of the journal; the map has three pages.
const RECORDS: RecordsConfig = RecordsConfig { journal_entry_bytes: 64, map_entry_bytes: 4, journal_pages: 6 };

fn recording(config: DriveConfig) -> DriveConfig {
    let mut config = DriveConfig { records: Some(RECORDS), ..config };
    // Records of 120 KiB take one superblock of 768 KiB: the drive has it in addition, and collects garbage as before.
    config.nand.geometry.blocks_per_plane += 1;
    config
}

fn run(world: &mut World, rng: &mut Rng, commands: u32, mut disturb: impl FnMut(&mut World, &mut Rng)) {
    for _ in 0..commands {
        disturb(world, rng);
        while world.commands.len() > 16 || !world.drive.is_ready() {
            assert!(world.step(), "stuck: {}", world.drive.data.describe());
        }
        world.issue_random(rng);
    }
}

/// Writes the whole drive in sequence, die row by die row.
fn write_all(config: DriveConfig) -> World {
    let mut world = World::new(config, 3);
    for first in (0..2592).step_by(8) {
        world.issue(Operation::Write, first, 8);
        world.drain();
    }
    world
}

#[test]
fn a_sequential_write_programs_its_share_of_journal_and_checkpoint() {
    for unit in [1, 2, 4] {
        let world = write_all(recording(DriveConfig { mapping_unit: unit, ..config(true, 0, u32::MAX, true) }));
        let (layer, data) = (world.drive.data.ftl.counters(), world.drive.data.counters());
        let units = layer.programmed_slots() / u64::from(unit);
        assert_eq!(data.journal_programs, units / 128, "{layer:?}");
        // Two pages of the map go into a flash page, and no page of it is written twice in a round of the checkpoint.
        let map_pages = 2600_u64.div_ceil(u64::from(unit)).div_ceil(1024);
        let rounds = data.journal_programs.div_ceil(6);
        assert!(data.checkpoint_programs <= (rounds * map_pages).div_ceil(2), "{data:?}");
        assert!(unit > 1 || data.checkpoint_programs > 0, "{data:?}");
    }
}

#[test]
fn records_take_flash_pages_and_time_and_change_no_data() {
    let plain = write_all(config(true, 0, u32::MAX, true));
    let recorded = write_all(recording(config(true, 0, u32::MAX, true)));
    assert_eq!(plain.drive.data.ftl.counters(), recorded.drive.data.ftl.counters());
    let limited = |config| write_all(DriveConfig { program_rate: Some(ByteRate::from_mb(20)), ..config }).now;
    let counters = recorded.drive.data.counters();
    assert_eq!((plain.drive.data.counters().journal_programs, counters.journal_programs > 0), (0, true));
    assert!(
        limited(recording(config(true, 0, u32::MAX, true))) > limited(config(true, 0, u32::MAX, true)),
        "records take a share of the program rate"
    );
}

#[test]
fn a_drive_that_records_survives_power_cuts_at_random() {
    for (seed, coalesce) in [(1, true), (2, false)] {
        let mut rng = Rng::named(seed, "records");
        let mut world = World::new(recording(config(coalesce, 0, 1, true)), seed);
        run(&mut world, &mut rng, 3000, |world, rng| {
            if rng.below(100) == 0 {
                (0..rng.below(30)).for_each(|_| {
                    world.step();
                });
                world.cut();
                world.restore();
            }
        });
        world.check_all();
        assert!(world.drive.data.ftl.counters().erased_superblocks > 10, "garbage was hardly collected");
        let data = world.drive.data.counters();
        assert!(data.journal_programs > 20 && data.checkpoint_programs > 5, "{data:?}");
    }
}

#[test]
fn space_for_records_is_taken_off_the_spare_space() {
    let drive = config(true, 0, u32::MAX, true);
    let with = |journal_pages| DriveConfig { records: Some(RecordsConfig { journal_pages, ..RECORDS }), ..drive };
    let blocks = |config: &DriveConfig| config.data_geometry().blocks_per_plane;
    assert_eq!((blocks(&drive), blocks(&with(6))), (24, 23));
    // A superblock has 96 pages of 8 KiB. Two journals of J pages and two maps of 12 KiB take 2 J + 3.
    assert_eq!([46, 47, 94, 95].map(|pages| blocks(&with(pages))), [23, 22, 22, 21]);
    assert_eq!(with(6).ftl.logical_slots, drive.ftl.logical_slots);
    assert!(matches!(with(2000).validate(), Err(DriveConfigError::Records)));
    let records = Some(RecordsConfig { map_entry_bytes: 5, ..RECORDS });
    assert!(matches!(DriveConfig { records, ..drive }.validate(), Err(DriveConfigError::MapEntry { bytes: 5 })));
    let records = Some(RecordsConfig { journal_entry_bytes: 3, ..RECORDS });
    let refused = DriveConfig { records, ..drive }.validate();
    assert!(matches!(refused, Err(DriveConfigError::Range { name: "journal_entry_bytes", .. })));
}
