//! Contents of a drive after a restart, from its out-of-band area.
//!
//! Of several slots that say they hold a logical slot the one written last does: the process ended between writing a
//! new copy and giving up the old one. Slots that were deallocated, overwritten, moved or remapped say so themselves.

use super::band::{Found, Record, State};
use super::drive::DriveMedia;
use super::room::Purpose;
use flashyard_flash::Slot;
use flashyard_ftl::{SuperblockContents, UsedSuperblock};
use std::collections::BTreeSet;
use std::io;

/// Findings in a data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Whether the last owner ended in order.
    pub clean: bool,
    /// Slots that hold something current.
    pub slots: u64,
    /// Old copies beside newer ones.
    pub superseded: u64,
    /// Records written in part.
    pub torn: u64,
    /// Slots whose bytes do not have their checksum, or whose record is not whole where none should be: reads of them
    /// fail until they are written. Bytes are compared after an end without order; reads compare them at any time.
    pub damaged: u64,
}

/// No copy of a logical slot was found.
const NOWHERE: (u64, u32) = (0, u32::MAX);

/// Records that a process may leave half written in one drive: it writes one after the other.
const TORN_BY_END: usize = 1;

/// Findings of a walk over the records.
struct Walk {
    /// Sequence number and slot of the newest copy of each logical slot.
    newest: Vec<(u64, u32)>,
    /// Slots written in each superblock.
    written: Vec<u32>,
    /// Copies without their checksum: logical slot, sequence number, slot.
    damaged: Vec<(u32, u64, Slot)>,
    /// Records that are not whole.
    torn: Vec<Slot>,
}

impl DriveMedia {
    /// Reads what the drive holds, and gives up what is not current. The report grows.
    ///
    /// Errors: the disk has no room for what may have to be changed; others of the operating system.
    pub(super) fn recover(
        &mut self,
        logical_slots: u32,
        report: &mut RecoveryReport,
    ) -> io::Result<Vec<SuperblockContents>> {
        let layout = *self.layout();
        self.band.finish_replacing();
        let mut walk = Walk {
            newest: vec![NOWHERE; logical_slots as usize],
            written: vec![0; layout.superblocks as usize],
            damaged: Vec::new(),
            torn: Vec::new(),
        };
        for superblock in 0..layout.superblocks {
            let header = self.band.header(superblock);
            self.sequence = self.sequence.max(header.opened);
            if header.used && self.may_walk(superblock)? {
                self.walk(superblock, &mut walk, report);
            }
        }
        self.mourn(&mut walk, report);
        Ok(self.contents(&walk, report))
    }

    /// Whether there are records to look at, which then have their places on the disk. A full one needs none for those that
    /// were never stored.
    fn may_walk(&mut self, superblock: u32) -> io::Result<bool> {
        match self.reserve_records(superblock, Purpose::Upkeep) {
            Ok(()) => Ok(true),
            Err(error) => {
                if self.band.is_blank(superblock)? {
                    Ok(false)
                } else {
                    Err(error)
                }
            }
        }
    }

    fn walk(&mut self, superblock: u32, walk: &mut Walk, report: &mut RecoveryReport) {
        let layout = *self.layout();
        for index in 0..layout.slots_per_superblock {
            let slot = layout.slot(superblock, index);
            let record = match self.band.get(slot.get()) {
                Found::Nothing => continue,
                Found::Torn => {
                    walk.torn.push(slot);
                    walk.written[superblock as usize] = index + 1;
                    continue;
                }
                Found::Whole(record) => record,
            };
            walk.written[superblock as usize] = index + 1;
            self.sequence = self.sequence.max(record.sequence);
            if record.state == State::Dead || record.logical as usize >= walk.newest.len() {
                continue;
            }
            // Lost ones are known already.
            if !report.clean && record.state != State::Lost && !self.is_whole(slot) {
                walk.damaged.push((record.logical, record.sequence, slot));
                continue;
            }
            self.take_newest(&mut walk.newest[record.logical as usize], record.sequence, slot, report);
        }
    }

    /// Damaged data without another copy becomes an error to its readers; it must not become zeros.
    fn mourn(&mut self, walk: &mut Walk, report: &mut RecoveryReport) {
        report.torn += walk.torn.len() as u64;
        // Of several damaged copies the youngest stands for the slot.
        walk.damaged.sort_unstable_by_key(|&(_, sequence, _)| std::cmp::Reverse(sequence));
        let mut damaged = std::mem::take(&mut walk.damaged);
        let by_end = if report.clean { 0 } else { TORN_BY_END };
        if walk.torn.len() > by_end {
            tracing::error!(
                drive = self.number(),
                records = walk.torn.len(),
                "records are damaged; of a block that such a record does not name any more nothing is known"
            );
            let named = |&slot: &Slot| Some((self.band.named(slot.get())?, 0, slot));
            damaged.extend(walk.torn.iter().filter_map(named));
        }
        let mut lost = BTreeSet::new();
        for (logical, sequence, slot) in damaged {
            let is_only = walk.newest.get(logical as usize).is_some_and(|&copy| copy == NOWHERE);
            if !is_only {
                self.give_up(slot, sequence);
                // A second damaged copy of a slot, or one beside an older whole one.
                if !lost.contains(&logical) && (logical as usize) < walk.newest.len() && sequence > 0 {
                    report.damaged += 1;
                    tracing::warn!(
                        drive = self.number(),
                        block = logical,
                        "the youngest copy is damaged: the one before it is served"
                    );
                }
                continue;
            }
            self.sequence += 1;
            let record = Record { sequence: self.sequence, logical, state: State::Lost, checksum: 0 };
            self.band.set(slot.get(), &record);
            walk.newest[logical as usize] = (self.sequence, slot.get());
            lost.insert(logical);
            report.damaged += 1;
            self.name_damaged(logical);
        }
        for slot in std::mem::take(&mut walk.torn) {
            if self.band.get(slot.get()) == Found::Torn {
                self.give_up(slot, 0);
            }
        }
    }

    /// Contents of the superblocks.
    fn contents(&self, walk: &Walk, report: &mut RecoveryReport) -> Vec<SuperblockContents> {
        let layout = *self.layout();
        let mut valid = vec![Vec::new(); layout.superblocks as usize];
        let mut lost = vec![Vec::new(); layout.superblocks as usize];
        for (logical, &(_, slot)) in (0..).zip(&walk.newest).filter(|(_, copy)| **copy != NOWHERE) {
            let (superblock, index) = layout.split(Slot::new(slot));
            valid[superblock as usize].push((index, logical));
            if matches!(self.band.get(slot), Found::Whole(Record { state: State::Lost, .. })) {
                lost[superblock as usize].push(logical);
            }
            report.slots += 1;
        }
        let found = (0..).zip(&walk.written).zip(valid.into_iter().zip(lost));
        let contents = found.map(|((superblock, &written), (mut valid, lost))| {
            valid.sort_unstable();
            let header = self.band.header(superblock);
            let (stream, single_level, opened) = (header.stream, header.single_level, header.opened);
            let used = header.used.then_some(UsedSuperblock { stream, single_level, opened, written, valid, lost });
            SuperblockContents { erases: header.erases, used }
        });
        contents.collect()
    }

    /// Keeps the younger of two copies.
    fn take_newest(&mut self, newest: &mut (u64, u32), sequence: u64, slot: Slot, report: &mut RecoveryReport) {
        let (before, old) = *newest;
        if old == u32::MAX {
            *newest = (sequence, slot.get());
            return;
        }
        report.superseded += 1;
        let loser = if sequence > before { old } else { slot.get() };
        if sequence > before {
            *newest = (sequence, slot.get());
        }
        self.give_up(Slot::new(loser), sequence.min(before));
    }

    fn give_up(&mut self, slot: Slot, sequence: u64) {
        let record = Record { sequence, logical: u32::MAX, state: State::Dead, checksum: 0 };
        self.band.set(slot.get(), &record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::band::Header;
    use crate::media::drive::{keep_metadata, metadata_of, write_with};
    use crate::media::mapping::Mapping;
    use crate::media::scrub::scrub_all_dead;
    use crate::media::tuples::{Tuples, UNWRITTEN};
    use flashyard_flash::{Geometry, Layout};
    use flashyard_ftl::Stream;
    use proptest::prelude::*;

    fn media() -> DriveMedia {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 4,
            pages_per_block: 8,
            page_bytes: 4096,
            pages_per_program: 1,
        };
        let mut media = DriveMedia::memory(Layout::new(&geometry)).expect("there is memory");
        media.checked = true;
        media.opened(1, Stream::Host, false);
        media
    }

    fn recovered(media: &mut DriveMedia) -> (Vec<(u32, u32)>, u32, RecoveryReport) {
        let mut report = RecoveryReport::default();
        let contents = media.recover(16, &mut report).expect("memory has room");
        let used = contents[1].used.clone().expect("superblock 1 was opened");
        (used.valid, used.written, report)
    }

    #[test]
    fn the_youngest_copy_of_a_slot_wins_and_what_was_deallocated_stays_away() {
        let mut media = media();
        media.write(3, Slot::new(8), Slot::NONE, Some(&[1; 4096]));
        media.write(4, Slot::new(9), Slot::NONE, Some(&[2; 4096]));
        // As if the process had ended before the old copy was given up.
        media.write(3, Slot::new(10), Slot::NONE, Some(&[3; 4096]));
        media.trimmed(4, Slot::new(9));
        let (valid, written, report) = recovered(&mut media);
        assert_eq!((valid, written), (vec![(2, 3)], 3));
        assert_eq!((report.superseded, report.torn, report.damaged), (1, 0, 0));
        assert_eq!(recovered(&mut media).2.superseded, 0, "the old copy was given up");
        assert_eq!(media.slot(Slot::new(10))[0], 3);
    }

    #[test]
    fn a_remapped_slot_belongs_to_its_new_owner_whatever_moment_the_process_ends_at() {
        let mut media = media();
        media.write(3, Slot::new(8), Slot::NONE, Some(&[1; 4096]));
        media.write(4, Slot::new(9), Slot::NONE, Some(&[2; 4096]));
        let before = media.band.mapping.bytes().to_vec();
        media.remapped(4, 3, Slot::new(8), Slot::new(9)).expect("memory has room");
        let after = media.band.mapping.bytes().to_vec();
        let (valid, _, report) = recovered(&mut media);
        assert_eq!((valid, report.torn, report.superseded), (vec![(0, 4)], 0, 0));
        // The note is whole and the record half written: the old copy of slot 4 is older.
        let mut torn = before.clone();
        torn[..28].copy_from_slice(&after[..28]);
        let whole = crc32c::crc32c(&torn[..28]);
        torn[28..32].copy_from_slice(&whole.to_le_bytes());
        let record = torn.len() - 32 * 24 + 8 * 24;
        torn[record..record + 9].copy_from_slice(&after[record..record + 9]);
        media.band.mapping.bytes_mut().copy_from_slice(&torn);
        let (valid, _, report) = recovered(&mut media);
        assert_eq!((valid, report.torn, report.superseded), (vec![(0, 4)], 0, 1));
        // The note is not whole: nothing has happened yet.
        torn = before;
        torn[..20].copy_from_slice(&after[..20]);
        media.band.mapping.bytes_mut().copy_from_slice(&torn);
        assert_eq!(recovered(&mut media).0, vec![(0, 3), (1, 4)]);
    }

    /// Three blocks in superblock 1; the first has other bytes now.
    fn damaged() -> DriveMedia {
        let mut media = media();
        for index in 0..3 {
            media.write(index, Slot::new(8 + index), Slot::NONE, Some(&[index as u8 + 1; 4096]));
        }
        let mut damaged = [1; 4096];
        damaged[77] ^= 1;
        media.payload.set(Slot::new(8), &damaged).expect("memory has room");
        media
    }

    fn tear(media: &mut DriveMedia, slot: usize) {
        let bytes = media.band.mapping.bytes_mut();
        let length = bytes.len();
        bytes[length - (32 - slot) * 24 + 1] ^= 0x40;
    }

    #[test]
    fn a_damaged_block_is_lost_until_it_is_written_and_a_torn_record_is_not_believed() {
        let mut media = damaged();
        tear(&mut media, 9);
        let mut report = RecoveryReport::default();
        let contents = media.recover(16, &mut report).expect("memory has room");
        let used = contents[1].used.clone().expect("superblock 1 was opened");
        assert_eq!((used.valid, used.written, used.lost), (vec![(0, 0), (2, 2)], 3, vec![0]));
        assert_eq!((report.torn, report.damaged, report.slots), (1, 1, 2));
        // It stays so over another restart and a move, however that ends.
        assert!(!media.is_whole(Slot::new(8)) && media.is_whole(Slot::new(10)));
        media.moved(0, Slot::new(8), Slot::new(11)).expect("memory has room");
        let mut again = RecoveryReport { clean: true, ..RecoveryReport::default() };
        let contents = media.recover(16, &mut again).expect("memory has room");
        let used = contents[1].used.clone().expect("superblock 1 was opened");
        assert_eq!((used.valid, used.lost, again.damaged), (vec![(2, 2), (3, 0)], vec![0], 0));
        assert!(!media.is_whole(Slot::new(11)));
        media.write(0, Slot::new(12), Slot::new(11), Some(&[9; 4096]));
        assert!(media.is_whole(Slot::new(12)));
        assert_eq!(recovered(&mut media).0, vec![(2, 2), (4, 0)]);
    }

    #[test]
    fn after_a_clean_end_reads_find_what_is_damaged() {
        let mut media = damaged();
        let mut report = RecoveryReport { clean: true, ..RecoveryReport::default() };
        let contents = media.recover(16, &mut report).expect("memory has room");
        assert_eq!(contents[1].used.as_ref().map(|used| used.lost.len()), Some(0));
        assert_eq!((report.torn, report.damaged, report.slots), (0, 0, 3));
        assert!(!media.is_whole(Slot::new(8)) && media.is_whole(Slot::new(9)));
        // The checksum moves with the bytes.
        media.moved(0, Slot::new(8), Slot::new(11)).expect("memory has room");
        assert!(!media.is_whole(Slot::new(11)));
    }

    #[test]
    fn more_torn_records_than_an_end_leaves_are_damage_to_the_blocks_that_they_name() {
        let mut media = damaged();
        tear(&mut media, 9);
        tear(&mut media, 10);
        let (valid, _, report) = recovered(&mut media);
        assert_eq!((valid, report.torn, report.damaged), (vec![(0, 0), (1, 1), (2, 2)], 2, 3));
        assert!((8..11).all(|slot| !media.is_whole(Slot::new(slot))));
    }

    #[test]
    fn a_whole_copy_that_is_older_stands_for_a_damaged_one() {
        let mut media = media();
        media.write(3, Slot::new(8), Slot::NONE, Some(&[1; 4096]));
        // As if the machine had ended before the old copy was given up, and before the bytes of the new one were kept.
        media.write(3, Slot::new(9), Slot::NONE, Some(&[2; 4096]));
        media.payload.set(Slot::new(9), &[0; 4096]).expect("memory has room");
        let (valid, _, report) = recovered(&mut media);
        assert_eq!((valid, report.damaged), (vec![(0, 3)], 1));
        assert!(media.is_whole(Slot::new(8)));
    }

    #[test]
    fn metadata_goes_with_its_block_and_damage_to_it_is_damage_to_the_block() {
        let mut media = media();
        let mapping = Mapping::memory(Tuples::bytes(media.layout())).expect("there is memory");
        let tuples = Tuples::new(mapping, *media.layout());
        keep_metadata(&mut media, tuples);
        write_with(&mut media, (3, Slot::new(8), Slot::NONE), Some(&[1; 4096]), &[5; 64]);
        write_with(&mut media, (4, Slot::new(9), Slot::NONE), None, &[6; 64]);
        media.write(5, Slot::new(10), Slot::NONE, Some(&[2; 4096]));
        assert!((8..11).all(|slot| media.is_whole(Slot::new(slot))));
        media.moved(3, Slot::new(8), Slot::new(11)).expect("memory has room");
        media.moved(4, Slot::new(9), Slot::new(12)).expect("memory has room");
        assert!((8..13).all(|slot| media.is_whole(Slot::new(slot))));
        let found = [11, 12, 10].map(|slot| metadata_of(&media, Slot::new(slot)));
        assert_eq!(found, [[5; 64], [6; 64], UNWRITTEN]);
        assert_eq!(recovered(&mut media).0, vec![(2, 5), (3, 3), (4, 4)]);
        // Other metadata of a block of zeros, and some of a block without any.
        let tuples = media.tuples.as_mut().expect("it has a place");
        tuples.set(Slot::new(12), &[7; 64]);
        tuples.set(Slot::new(10), &[7; 64]);
        let mut report = RecoveryReport::default();
        let contents = media.recover(16, &mut report).expect("memory has room");
        assert_eq!(contents[1].used.as_ref().map(|used| used.lost.clone()), Some(vec![4, 5]));
        assert_eq!((report.damaged, media.is_whole(Slot::new(11))), (2, true));
        media.trimmed(3, Slot::new(11));
        scrub_all_dead(&mut media, &BTreeSet::new()).expect("memory can be blanked");
        assert_eq!(metadata_of(&media, Slot::new(11)), UNWRITTEN);
        media.erased(1).expect("memory can be given back");
        assert!((8..13).all(|slot| metadata_of(&media, Slot::new(slot)) == UNWRITTEN));
    }

    #[test]
    fn an_erased_superblock_has_nothing_and_one_erase_more() {
        let mut media = media();
        media.write(3, Slot::new(8), Slot::NONE, Some(&[1; 4096]));
        media.trimmed(3, Slot::new(8));
        media.erased(1).expect("memory can be given back");
        let contents = media.recover(16, &mut RecoveryReport::default()).expect("memory has room");
        assert_eq!(contents[1], SuperblockContents { erases: 1, used: None });
        assert_eq!(media.slot(Slot::new(8)), [0; 4096]);
    }

    /// A change to the records of a drive.
    #[derive(Clone, Debug)]
    enum Change {
        /// Of one byte anywhere.
        Byte(prop::sample::Index, u8),
        /// A record that is whole, whatever it says.
        Record(u32, u64, u32, u8),
        /// A header, whatever it says.
        Header(u32, bool, u8, u64),
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let change = prop_oneof![
            (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
            (0..32_u32, 0..40_u64, prop_oneof![0..18_u32, any::<u32>()], 0..4_u8)
                .prop_map(|(slot, sequence, logical, state)| Change::Record(slot, sequence, logical, state)),
            (0..4_u32, any::<bool>(), 0..4_u8, 0..40_u64)
                .prop_map(|(superblock, used, stream, opened)| Change::Header(superblock, used, stream, opened)),
        ];
        prop::collection::vec(change, 0..12)
    }

    fn changed(media: &mut DriveMedia, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Byte(at, byte) => {
                    let bytes = media.band.mapping.bytes_mut();
                    bytes[at.index(bytes.len())] ^= byte;
                }
                Change::Record(slot, sequence, logical, state) => {
                    let state = [State::Data, State::Zeros, State::Dead, State::Lost][state as usize];
                    media.band.set(slot, &Record { sequence, logical, state, checksum: 0 });
                }
                Change::Header(superblock, used, stream, opened) => {
                    let stream = [Stream::Host, Stream::Moved, Stream::Leveled][stream as usize % 3];
                    let header = Header { used, stream, opened, erases: stream as u32, ..Header::NEW };
                    media.band.set_header(superblock, &header);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn whatever_records_say_a_logical_slot_has_one_place_that_was_written(
            changes in changes(), clean: bool,
        ) {
            let mut media = media();
            (0..6).for_each(|logical| {
                media.write(logical, Slot::new(8 + logical), Slot::NONE, Some(&[1; 4096]));
            });
            changed(&mut media, changes);
            let mut report = RecoveryReport { clean, ..RecoveryReport::default() };
            let contents = media.recover(16, &mut report).expect("memory has room");
            let mut places = BTreeSet::new();
            for (number, used) in (0..).zip(contents.iter().map(|contents| &contents.used)) {
                let Some(used) = used else { continue };
                prop_assert!(used.written <= 8);
                let owned: BTreeSet<u32> = used.valid.iter().map(|&(_, logical)| logical).collect();
                prop_assert!(used.lost.iter().all(|logical| owned.contains(logical)));
                for &(index, logical) in &used.valid {
                    prop_assert!(index < used.written && logical < 16 && places.insert(logical));
                    let slot = media.layout().slot(number, index);
                    // After an unclean end nothing is handed over that would fail its checksum.
                    prop_assert!(clean || media.is_whole(slot) || used.lost.contains(&logical));
                }
            }
            // A second recovery finds the same, and nothing is damaged twice.
            let mut again = RecoveryReport { clean, ..RecoveryReport::default() };
            prop_assert_eq!(media.recover(16, &mut again).expect("memory has room"), contents);
            prop_assert_eq!((again.damaged, again.torn, again.superseded), (0, 0, 0));
        }
    }
}
