//! Drives from few figures.

use super::complete::{Completion, FLASH, complete, is_whole};
use super::{DriveSection, drive};
use proptest::prelude::*;
use toml::Table;

/// Takes texts as they are; every key is the user's.
#[derive(Default)]
struct Plain {
    lacks_capacity: bool,
}

impl Completion for Plain {
    type Error = String;

    fn class(&self, name: &str) -> Result<String, String> {
        let found = FLASH.builtin.iter().find(|class| class.0 == name);
        found.map(|class| class.1.to_owned()).ok_or_else(|| format!("no class {name}"))
    }

    fn take(&mut self, own: &mut Table, text: &str, _: &str) -> Result<(), String> {
        let more: Table = toml::from_str(text).map_err(|error| error.to_string())?;
        for (key, value) in more {
            own.entry(key).or_insert(value);
        }
        Ok(())
    }

    fn is_given_by_user(&self, _: &str) -> bool {
        true
    }

    fn lacks_capacity(&mut self) {
        self.lacks_capacity = true;
    }

    fn refuse(&self, _: &str, message: String) -> String {
        message
    }
}

fn completed(text: &str) -> Result<Table, String> {
    let mut own: Table = toml::from_str(text).expect("it is TOML");
    let mut plain = Plain::default();
    complete(&mut own, &mut plain)?;
    if plain.lacks_capacity { Err("no capacity".to_owned()) } else { Ok(own) }
}

fn section(text: &str) -> DriveSection {
    completed(text).expect("it is a drive").try_into().expect("it has all keys")
}

#[test]
fn a_capacity_is_enough_for_a_drive() {
    let section = section("capacity = \"1.92 TB\"");
    let config = drive(&section).expect("it can be made");
    config.validate().expect("it can be built");
    let geometry = config.nand.geometry;
    assert_eq!((geometry.channels, geometry.dies_per_channel, geometry.planes_per_die), (8, 4, 4));
    let exported = u64::from(config.ftl.logical_slots) * 4096;
    assert!((1_920_000_000_000..1_930_000_000_000).contains(&exported), "{exported}");
    assert_eq!(section.reclaim_reads, 32);
    assert_eq!(section.write_buffer.0.get(), 4 * 32 * 4 * 16_384);
}

#[test]
fn a_drive_of_each_class_can_be_built() {
    for (class, _) in FLASH.builtin {
        let section = section(&format!("capacity = \"750 GB\"\nclass = \"{class}\""));
        drive(&section).and_then(|config| config.validate().map_err(crate::keyed::drive)).expect(class);
    }
}

#[test]
fn a_programming_time_says_what_it_is_of() {
    for (unit, pulse) in [("page", 900_000_000), ("word-line", 300_000_000)] {
        let text = format!("capacity = \"1 TB\"\nprogram_time = \"900 us\"\nprogram_unit = \"{unit}\"");
        let section = section(&text);
        assert_eq!((section.program_pulse.0.as_ps(), section.program_pulses), (pulse, [1, 1, 1]), "{unit}");
    }
}

#[test]
fn what_a_drive_gives_takes_precedence_over_what_follows() {
    let section = section(
        "capacity = \"1.92 TB\"\nread_time = \"40 us\"\nread_msb = \"70 us\"\nlink = \"pcie3x4\"\nwrite_rate = \"2 GB/s\"\n\
         blocks_per_plane = 20\nchannels = 16",
    );
    let us = |time: crate::Time| time.0.as_ps() / 1_000_000;
    assert_eq!((us(section.read_lsb), us(section.read_csb), us(section.read_msb)), (40, 40, 70));
    assert_eq!((section.read_rate.0.get(), section.write_rate.0.get()), (3_601_000_000, 2_000_000_000));
    assert_eq!((section.channels, section.dies_per_channel, section.blocks_per_plane), (16, 2, 20));
}

#[test]
fn a_rate_of_commands_is_a_time_between_them_and_no_work_of_each() {
    let usual = section("capacity = \"1 TB\"");
    for (rate, ps) in [(1_000_000, 1_000_000), (663_000, 1_508_296)] {
        let section = section(&format!("capacity = \"1 TB\"\ncommands_per_second = {rate}"));
        assert_eq!(section.command_interval.map(|time| time.0.as_ps()), Some(ps));
        let work = |section: &DriveSection| (section.cycles_per_command, section.cycles_per_slice);
        assert_eq!(work(&section), work(&usual));
    }
    assert_eq!(usual.command_interval, None);
}

#[test]
fn a_rate_beyond_the_usual_work_takes_cycles_off_commands() {
    let section = section("capacity = \"1 TB\"\ncommands_per_second = 3000000\nstall_per_slice = \"100 ns\"");
    // Six cores at 1 GHz have 2,000 cycles for each.
    assert_eq!(section.cycles_per_command + section.cycles_per_slice + 100, 2000);
    assert_eq!(section.command_interval, None);
}

#[test]
fn preconditioning_by_name_is_four_keys() {
    let state = |text: &str| {
        let section = section(text);
        (section.filled, section.overwritten, section.until_steady, section.drawn)
    };
    assert_eq!(state("capacity = \"1 TB\"\nprecondition = \"snia\""), (1.0, 2.0, true, false));
    assert_eq!(state("capacity = \"1 TB\"\nprecondition = \"drawn\""), (1.0, 0.0, false, true));
    assert_eq!(state("capacity = \"1 TB\"\nprecondition = \"drawn\"\nfilled = 0.5"), (0.5, 0.0, false, true));
    assert_eq!(state("capacity = \"1 TB\"\nprecondition = \"fresh\""), (0.0, 0.0, false, false));
    assert_eq!(state("capacity = \"1 TB\""), (1.0, 0.0, false, false));
}

#[test]
fn figures_that_do_not_do_are_refused_in_one_sentence() {
    for (text, expected) in [
        ("class = \"tlc\"", "no capacity"),
        ("channels = 3\ndies_per_channel = 2", "no capacity"),
        ("capacity = 3", "drive.capacity is 3 without a unit; give a size from \"1 MiB\" to \"16 TiB\""),
        ("capacity = \"1 TB\"\nraw_capacity = \"1 TB\"", "drive.capacity: it is no less than raw_capacity"),
        (
            "capacity = \"1 TB\"\nraw_capacity = \"2 TB\"\nover_provisioning = 0.1",
            "drive.capacity: raw_capacity and over_provisioning give it; leave one of the three out",
        ),
        ("capacity = \"1 TB\"\nclass = \"plc\"", "no class plc"),
        ("capacity = \"1 TB\"\nlink = \"sata\"", "drive.link: \"sata\" is no link; give pcie3"),
        ("capacity = \"1 TB\"\nprogram_unit = \"line\"", "drive.program_unit is \"line\"; give one of page, word-line"),
        ("capacity = \"1 TB\"\ncommands_per_second = 9000000", "is more than the cores reach, 4103967; give less"),
        (
            "capacity = \"1 TB\"\ncommands_per_second = 3000000\ncycles_per_command = 872",
            "is more than the cores reach, 2570694; give less",
        ),
        (
            "capacity = \"1 TB\"\nchannels = 8\ndies_per_channel = 4\nblocks_per_plane = 9",
            "drive.capacity has no effect: channels, dies_per_channel, blocks_per_plane are given; leave it out",
        ),
        (
            "capacity = \"1 TB\"\nprecondition = \"snia\"\nfilled = 1\noverwritten = 1",
            "drive.precondition has no effect: filled, overwritten are given; leave it out",
        ),
    ] {
        let message = completed(text).expect_err(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn a_published_profile_is_whole_and_stays_as_it_is() {
    for text in [
        include_str!("../../../../../profiles/drives/r8.toml"),
        include_str!("../../../../../profiles/drives/xbof-4tb.toml"),
    ] {
        let own: Table = toml::from_str(text).expect("it is TOML");
        assert!(is_whole(&own));
    }
}

proptest! {
    #[test]
    fn any_capacity_is_exported_with_little_more(gigabytes in 60_u32..15_300, over in 0.03_f64..0.12, class in 0_usize..3) {
        let class = ["slc", "tlc", "qlc"][class];
        let text = format!("capacity = \"{gigabytes} GB\"\nover_provisioning = {over}\nclass = \"{class}\"");
        let config = drive(&section(&text)).expect("it can be made");
        let exported = f64::from(config.ftl.logical_slots) * 4096.0;
        let asked = f64::from(gigabytes) * 1e9;
        let geometry = config.nand.geometry;
        let row = geometry.raw_bytes().get() as f64 / f64::from(geometry.blocks_per_plane);
        prop_assert!(exported > asked - 8192.0 && exported < asked + row, "{exported} of {asked}");
        prop_assert!(is_whole(&completed(&text).expect("it is a drive")));
    }
}

#[test]
fn records_have_as_many_entries_as_the_map_and_take_spare_space() {
    let given = |records: &str| drive(&section(&format!("capacity = \"1.92 TB\"\n{records}"))).expect("it can be made");
    let (plain, config) = (given(""), given("[records]"));
    let records = config.records.expect("it has records");
    assert_eq!((plain.records, records.journal_entry_bytes, records.map_entry_bytes), (None, 8, 4));
    let entries = config.nand.geometry.page_bytes / 8;
    assert_eq!(records.journal_pages, config.ftl.logical_slots.div_ceil(entries));
    assert_eq!(config.ftl, plain.ftl);
    config.validate().expect("it can be built");
    // Two journals of 8 bytes and two maps of 4 for each slot of 4 KiB: 24 bytes.
    let lost = plain.data_geometry().raw_bytes().get() - config.data_geometry().raw_bytes().get();
    let superblock = plain.data_geometry().raw_bytes().get() / u64::from(plain.data_geometry().blocks_per_plane);
    let least = u64::from(config.ftl.logical_slots) * 24;
    assert!((least..least + superblock + 4 * 65_536).contains(&lost), "{lost} bytes, {least} at least");
    let given = |records: &str| given(&format!("[records]\n{records}")).records.expect("it has records");
    let page = u64::from(config.nand.geometry.page_bytes);
    assert_eq!(u64::from(given("journal = \"1 GiB\"").journal_pages), (1 << 30) / page);
    assert_eq!(given("map_entry_bytes = 8").map_entry_bytes, 8);
}
