//! What a drive holds after a restart, from its out-of-band area.
//!
//! Of several slots that say they hold a logical slot the one written last does: the process ended between writing a
//! new copy and giving up the old one. Slots that were deallocated, overwritten, moved or remapped say so themselves.

use super::band::{Found, Record, State};
use super::drive::DriveMedia;
use flashyard_flash::Slot;
use flashyard_ftl::{SuperblockContents, UsedSuperblock};

/// What was found in a data directory.
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
    /// Slots whose bytes do not have their checksum: they are given up. Looked for only after an end without order.
    pub damaged: u64,
}

/// No copy of a logical slot was found.
const NOWHERE: (u64, u32) = (0, u32::MAX);

impl DriveMedia {
    /// Reads what the drive holds, and gives up what is not current. The report grows.
    pub(super) fn recover(&mut self, logical_slots: u32, report: &mut RecoveryReport) -> Vec<SuperblockContents> {
        let layout = *self.layout();
        self.band.finish_replacing();
        let mut newest = vec![NOWHERE; logical_slots as usize];
        let mut written = vec![0; layout.superblocks as usize];
        for superblock in 0..layout.superblocks {
            let header = self.band.header(superblock);
            self.sequence = self.sequence.max(header.opened);
            if !header.used {
                continue;
            }
            for index in 0..layout.slots_per_superblock {
                let slot = layout.slot(superblock, index);
                let record = match self.band.get(slot.get()) {
                    Found::Nothing => continue,
                    Found::Torn => {
                        report.torn += 1;
                        self.give_up(slot, 0);
                        written[superblock as usize] = index + 1;
                        continue;
                    }
                    Found::Whole(record) => record,
                };
                written[superblock as usize] = index + 1;
                self.sequence = self.sequence.max(record.sequence);
                if record.state == State::Dead || record.logical >= logical_slots {
                    continue;
                }
                if !report.clean
                    && record.state == State::Data
                    && crc32c::crc32c(self.payload.run(slot, 1)) != record.checksum
                {
                    report.damaged += 1;
                    self.give_up(slot, record.sequence);
                    continue;
                }
                self.take_newest(&mut newest[record.logical as usize], record.sequence, slot, report);
            }
        }
        let mut valid = vec![Vec::new(); layout.superblocks as usize];
        let mut lost = valid.iter().map(|_| Vec::new()).collect::<Vec<_>>();
        for (logical, &(_, slot)) in (0..).zip(&newest).filter(|(_, copy)| **copy != NOWHERE) {
            let (superblock, index) = layout.split(Slot::new(slot));
            valid[superblock as usize].push((index, logical));
            if matches!(self.band.get(slot), Found::Whole(Record { state: State::Lost, .. })) {
                lost[superblock as usize].push(logical);
            }
            report.slots += 1;
        }
        let found = (0..).zip(written).zip(valid.into_iter().zip(lost));
        let contents = found.map(|((superblock, written), (mut valid, lost))| {
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
    use flashyard_flash::{Geometry, Layout};
    use flashyard_ftl::Stream;

    fn media() -> DriveMedia {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 4,
            pages_per_block: 8,
            page_bytes: 4096,
        };
        let mut media = DriveMedia::memory(Layout::new(&geometry)).expect("there is memory");
        media.checked = true;
        media.opened(1, Stream::Host, false);
        media
    }

    fn recovered(media: &mut DriveMedia) -> (Vec<(u32, u32)>, u32, RecoveryReport) {
        let mut report = RecoveryReport::default();
        let contents = media.recover(16, &mut report);
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
        media.remapped(4, 3, Slot::new(8), Slot::new(9));
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

    #[test]
    fn torn_records_and_damaged_bytes_are_not_believed() {
        let mut media = media();
        for index in 0..3 {
            media.write(index, Slot::new(8 + index), Slot::NONE, Some(&[index as u8 + 1; 4096]));
        }
        let mut damaged = [1; 4096];
        damaged[77] ^= 1;
        media.payload.set(Slot::new(8), &damaged);
        let mut torn = media.band.mapping.bytes().to_vec();
        let length = torn.len();
        torn[length - (32 - 9) * 24 + 1] ^= 0x40;
        media.band.mapping.bytes_mut().copy_from_slice(&torn);
        let (valid, written, report) = recovered(&mut media);
        assert_eq!((valid, written), (vec![(2, 2)], 3));
        assert_eq!((report.torn, report.damaged, report.slots), (1, 1, 1));
    }

    #[test]
    fn an_erased_superblock_has_nothing_and_one_erase_more() {
        let mut media = media();
        media.write(3, Slot::new(8), Slot::NONE, Some(&[1; 4096]));
        media.trimmed(3, Slot::new(8));
        media.erased(1).expect("memory can be given back");
        let contents = media.recover(16, &mut RecoveryReport::default());
        assert_eq!(contents[1], SuperblockContents { erases: 1, used: None });
        assert_eq!(media.slot(Slot::new(8)), [0; 4096]);
    }
}
