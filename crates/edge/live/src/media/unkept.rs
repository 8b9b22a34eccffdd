//! Slots of writes for which the disk had no room. The drive's map leads to them; until they are written again they hold
//! what their blocks held before, which lies where it was. Nothing is noted of them: after a restart the old place is the
//! only one.

use super::band::{Found, Record, State};
use super::drive::DriveMedia;
use super::room::Purpose;
use flashyard_flash::Slot;
use std::collections::BTreeMap;
use std::io;

/// The stand-in for bytes that had no room.
#[derive(Clone, Copy, Debug)]
struct Stand {
    /// Where the bytes of before are; [`Slot::NONE`] for a block that held nothing.
    old: Slot,
    logical: u32,
    /// Whether the block was written or deallocated since: only reads under way may still want it.
    is_over: bool,
    /// Whether the bytes of before are gone since.
    is_gone: bool,
}

/// The slots of a drive that have no bytes of their own.
#[derive(Debug, Default)]
pub(super) struct Unkept(BTreeMap<u32, Stand>);

impl Unkept {
    /// Where the bytes of a slot are.
    #[inline]
    pub(super) fn place_of(&self, slot: Slot) -> Slot {
        // There are none unless the disk is full.
        if self.0.is_empty() { slot } else { self.0.get(&slot.get()).map_or(slot, |stand| stand.old) }
    }

    /// Whether something else stands for a slot.
    #[inline]
    pub(super) fn stands(&self, slot: Slot) -> bool {
        !self.0.is_empty() && self.0.contains_key(&slot.get())
    }

    /// Whether nothing can be known of a slot any more.
    #[inline]
    pub(super) fn is_gone(&self, slot: Slot) -> bool {
        !self.0.is_empty() && self.0.get(&slot.get()).is_some_and(|stand| stand.is_gone)
    }

    /// The block in `slot` is not current any more; returns where its bytes are.
    #[inline]
    pub(super) fn end(&mut self, slot: Slot) -> Slot {
        if self.0.is_empty() {
            return slot;
        }
        let Some(stand) = self.0.get_mut(&slot.get()) else { return slot };
        stand.is_over = true;
        stand.old
    }

    /// A slot that holds nothing of its own has a new owner; returns whether it is such a slot.
    pub(super) fn hand_over(&mut self, logical: u32, slot: Slot) -> bool {
        self.0.get_mut(&slot.get()).map(|stand| stand.logical = logical).is_some()
    }

    /// A write of `logical` to `slot` had no room: what was in `before`, or stood for that, stands for it.
    pub(super) fn add(&mut self, logical: u32, slot: Slot, before: Slot) {
        let old = self.end(before);
        self.0.insert(slot.get(), Stand { old, logical, is_over: false, is_gone: false });
    }
}

impl DriveMedia {
    /// The bytes that stand for `slot` are put there, as its own.
    ///
    /// Errors: the disk has no room for them; others of the operating system. Everything is as it was then.
    pub(super) fn settle(&mut self, slot: Slot) -> io::Result<()> {
        let Some(&Stand { old, logical, is_over: false, .. }) = self.unkept.0.get(&slot.get()) else { return Ok(()) };
        let found = if old.is_some() { self.band.get(old.get()) } else { Found::Nothing };
        let stands = match found {
            Found::Nothing => None,
            Found::Torn => Some((State::Lost, 0)),
            Found::Whole(Record { state: State::Data | State::Dead, checksum, .. }) => Some((State::Data, checksum)),
            Found::Whole(Record { state, checksum, .. }) => Some((state, checksum)),
        };
        let Some((state, checksum)) = stands else {
            // Nothing goes on to stand for it.
            self.unkept.0.insert(slot.get(), Stand { old: Slot::NONE, logical, is_over: false, is_gone: false });
            return Ok(());
        };
        self.reserve_record(slot, Purpose::Upkeep)?;
        if state == State::Data {
            self.payload.copy_alone(old, slot)?;
        }
        self.sequence += 1;
        self.band.set(slot.get(), &Record { sequence: self.sequence, logical, state, checksum });
        self.kill(logical, old);
        self.unkept.0.remove(&slot.get());
        Ok(())
    }

    /// A superblock is about to be erased: what stands for others there moves to them, and nothing stands for its own.
    ///
    /// Errors: as of [`DriveMedia::settle`].
    pub(super) fn settle_before_erase(&mut self, superblock: u32) -> io::Result<()> {
        if self.unkept.0.is_empty() {
            return Ok(());
        }
        let layout = *self.layout();
        let is_here = |slot: Slot| slot.is_some() && layout.split(slot).0 == superblock;
        self.unkept.0.retain(|&slot, _| !is_here(Slot::new(slot)));
        let stood: Vec<u32> =
            self.unkept.0.iter().filter(|(_, stand)| is_here(stand.old)).map(|(&slot, _)| slot).collect();
        for slot in stood {
            let slot = Slot::new(slot);
            self.settle(slot)?;
            // A read of a block that is over may still be under way: it must not find anything else.
            if let Some(stand) = self.unkept.0.get_mut(&slot.get()).filter(|stand| stand.is_over) {
                stand.old = Slot::NONE;
                stand.is_gone = true;
            }
        }
        Ok(())
    }
}
