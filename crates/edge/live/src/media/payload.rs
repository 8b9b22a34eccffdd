//! The payload of one drive by physical slot: a frame of memory for each superblock that holds some, or a file.
//!
//! In memory the frame of an erased superblock is the next one to be used: what a drive takes is what it holds, and
//! pages that were written once are not faulted in again. In a file each superblock has its own place.

use super::mapping::Mapping;
use super::room::{Purpose, Room, STEP_BYTES};
use flashyard_flash::{Layout, SLOT_BYTES, Slot};
use std::fs::File;
use std::io;

/// Bytes of a slot.
pub(crate) const BYTES: usize = SLOT_BYTES as usize;

/// No frame: the superblock holds no payload.
const NO_FRAME: u32 = u32::MAX;

/// The payload of one drive.
#[derive(Debug)]
pub(crate) struct Payload {
    mapping: Mapping,
    layout: Layout,
    /// Frame of each superblock.
    frames: Vec<u32>,
    /// Frames that hold nothing, the one to be used next last; `None` for a file, where a superblock keeps its own.
    free: Option<Vec<u32>>,
    /// The disk below a file.
    disk: Option<Disk>,
}

/// The disk below the payload.
#[derive(Debug)]
struct Disk {
    room: Room,
    /// Steps of a superblock, and which of all steps have their places.
    steps: usize,
    taken: Vec<bool>,
    /// Bytes that garbage collection of this drive is said to need.
    reserved: u64,
}

/// Superblocks whose bytes garbage collection may need before it gives any back. It fills one by moves, with what was left
/// there of writes that had no room, and one by wear leveling. Source: \[A\] one more; tests have seen 1.3
const COLLECTED_AT_ONCE: u64 = 3;

impl Payload {
    /// Bytes that it takes at most.
    pub(crate) fn bytes(layout: &Layout) -> usize {
        layout.superblocks as usize * layout.slots_per_superblock as usize * BYTES
    }

    /// In memory, which is taken as it is used.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn memory(layout: Layout) -> io::Result<Self> {
        let mapping = Mapping::memory(Self::bytes(&layout))?;
        let frames = vec![NO_FRAME; layout.superblocks as usize];
        Ok(Self { mapping, layout, frames, free: Some((0..layout.superblocks).rev().collect()), disk: None })
    }

    /// In `mapping`, which has at least [`Payload::bytes`], on a disk with this `room`.
    pub(crate) fn file(mapping: Mapping, layout: Layout, room: Room) -> Self {
        let steps = (layout.slots_per_superblock as usize * BYTES).div_ceil(STEP_BYTES);
        let taken = vec![false; steps * layout.superblocks as usize];
        let frames = (0..layout.superblocks).collect();
        let mut payload =
            Self { mapping, layout, frames, free: None, disk: Some(Disk { room, steps, taken, reserved: 0 }) };
        payload.reserve();
        payload
    }

    /// Takes so many bytes of memory from the system, those that are used first.
    ///
    /// Errors: as of [`Mapping::populate`].
    pub(super) fn populate(&self, bytes: usize) -> io::Result<()> {
        self.mapping.populate(bytes)
    }

    /// Says how much room garbage collection may need: no more than the drive holds.
    fn reserve(&mut self) {
        let Some(disk) = &mut self.disk else { return };
        let superblock_bytes = u64::from(self.layout.slots_per_superblock) * BYTES as u64;
        let now = self.mapping.on_disk_bytes().min(COLLECTED_AT_ONCE * superblock_bytes);
        disk.room.reserve(disk.reserved, now);
        disk.reserved = now;
    }

    /// Whether there is a place for what `slot` holds.
    #[inline]
    pub(crate) fn holds(&self, slot: Slot) -> bool {
        self.frames[self.layout.split(slot).0 as usize] != NO_FRAME
    }

    /// Loads the first bytes of a slot in memory, and returns one of them. Looking at a file may give its pages a place on the disk.
    #[inline]
    pub(super) fn touch(&self, slot: Slot) -> u8 {
        if self.free.is_some() && self.holds(slot) { self.mapping.bytes()[self.at(slot)] } else { 0 }
    }

    /// The bytes of `count` slots from `slot` on, in one superblock that holds payload.
    #[inline]
    pub(crate) fn run(&self, slot: Slot, count: usize) -> &[u8] {
        let first = self.at(slot);
        &self.mapping.bytes()[first..first + count * BYTES]
    }

    /// Writes a slot for a client.
    ///
    /// Errors: the disk has no room, and the slot is as it was; others of the operating system.
    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, bytes: &[u8]) -> io::Result<()> {
        self.make_room(slot, Purpose::Write)?;
        self.take_frame(slot);
        let first = self.at(slot);
        self.mapping.bytes_mut()[first..first + BYTES].copy_from_slice(bytes);
        Ok(())
    }

    /// Overwrites what a slot holds by zeros; returns whether that was anything else. It comes into `buffer` on the way.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn blank(&mut self, slot: Slot, buffer: &mut Vec<u8>) -> io::Result<bool> {
        if !self.holds(slot) {
            return Ok(false);
        }
        let first = self.at(slot);
        // Looking at a hole of a file, or writing there, would give it a place on the disk.
        buffer.clear();
        self.mapping.read(first..first + BYTES, buffer)?;
        let has_bytes = buffer.iter().any(|&byte| byte != 0);
        if has_bytes {
            self.mapping.bytes_mut()[first..first + BYTES].fill(0);
        }
        Ok(has_bytes)
    }

    /// Writes a slot with what another one holds.
    ///
    /// Errors: as of [`Payload::set`], but that it may take what is left to garbage collection.
    pub(crate) fn copy(&mut self, from: Slot, to: Slot) -> io::Result<()> {
        self.make_room(to, Purpose::Upkeep)?;
        self.take_frame(to);
        let (first, target) = (self.at(from), self.at(to));
        self.mapping.bytes_mut().copy_within(first..first + BYTES, target);
        Ok(())
    }

    /// Like [`Self::copy`], with room for this slot alone: many such slots may lie apart.
    pub(crate) fn copy_alone(&mut self, from: Slot, to: Slot) -> io::Result<()> {
        if let Some(disk) = &self.disk {
            let at = self.at(to);
            self.mapping.reserve(at..at + BYTES, &disk.room, Purpose::Upkeep)?;
        }
        self.take_frame(to);
        let (first, target) = (self.at(from), self.at(to));
        self.mapping.bytes_mut().copy_within(first..first + BYTES, target);
        Ok(())
    }

    /// Makes sure that a slot can be stored to.
    #[inline]
    fn make_room(&mut self, slot: Slot, purpose: Purpose) -> io::Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        let (superblock, index) = self.layout.split(slot);
        let step = superblock as usize * disk.steps + index as usize * BYTES / STEP_BYTES;
        if disk.taken[step] { Ok(()) } else { self.take_step(slot, step, purpose) }
    }

    #[cold]
    fn take_step(&mut self, slot: Slot, step: usize, purpose: Purpose) -> io::Result<()> {
        let at = self.at(slot);
        let Some(disk) = &mut self.disk else { return Ok(()) };
        let superblock_bytes = self.layout.slots_per_superblock as usize * BYTES;
        let (superblock, part) = (step / disk.steps, step % disk.steps);
        let first = superblock * superblock_bytes + part * STEP_BYTES;
        let end = (first + STEP_BYTES).min((superblock + 1) * superblock_bytes);
        match self.mapping.reserve(first..end, &disk.room, Purpose::Write) {
            Ok(()) => disk.taken[step] = true,
            // Where room is short each slot takes its own: many of a step may never need any.
            Err(_) if purpose == Purpose::Upkeep => self.mapping.reserve(at..at + BYTES, &disk.room, purpose)?,
            Err(error) => return Err(error),
        }
        self.reserve();
        Ok(())
    }

    /// A superblock holds nothing any more.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn erase(&mut self, superblock: u32) -> io::Result<()> {
        let frame = self.frames[superblock as usize];
        let Some(free) = &mut self.free else {
            let slots = self.layout.slots_per_superblock as usize;
            let first = superblock as usize * slots * BYTES;
            self.mapping.discard(first..first + slots * BYTES)?;
            if let Some(disk) = &mut self.disk {
                disk.taken[superblock as usize * disk.steps..][..disk.steps].fill(false);
            }
            self.reserve();
            return Ok(());
        };
        if frame != NO_FRAME {
            free.push(frame);
            self.frames[superblock as usize] = NO_FRAME;
        }
        Ok(())
    }

    /// As of [`Mapping::below`].
    pub(super) fn below(&self) -> io::Result<Option<File>> {
        self.mapping.below()
    }

    /// Writes back what is in a file.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.mapping.sync()
    }

    #[inline]
    fn take_frame(&mut self, slot: Slot) {
        let frame = &mut self.frames[self.layout.split(slot).0 as usize];
        if *frame == NO_FRAME
            && let Some(free) = &mut self.free
        {
            *frame = free.pop().expect("there are as many frames as superblocks");
        }
    }

    #[inline]
    fn at(&self, slot: Slot) -> usize {
        let (superblock, index) = self.layout.split(slot);
        let frame = self.frames[superblock as usize];
        debug_assert_ne!(frame, NO_FRAME, "slot {slot:?} holds no payload");
        (frame as usize * self.layout.slots_per_superblock as usize + index as usize) * BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_flash::Geometry;
    use proptest::prelude::*;

    const SLOTS: u32 = 8;

    fn layout() -> Layout {
        Layout::new(&Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 4,
            pages_per_block: SLOTS,
            page_bytes: 4096,
            pages_per_program: 1,
        })
    }

    proptest! {
        #[test]
        fn a_slot_holds_what_was_written_last_wherever_its_frame_is(
            steps in prop::collection::vec((0u32..4, 0u32..SLOTS, 0u32..32, 0u8..10), 0..200),
        ) {
            let mut payload = Payload::memory(layout()).expect("there is memory");
            let mut model = vec![None; 32];
            for (superblock, index, other, kind) in steps {
                let slot = superblock * SLOTS + index;
                match kind {
                    0 => {
                        payload.erase(superblock).expect("memory can be erased");
                        model[(superblock * SLOTS) as usize..][..SLOTS as usize].fill(None);
                    }
                    1..4 if model[other as usize].is_some() => {
                        payload.copy(Slot::new(other), Slot::new(slot)).expect("memory has room");
                        model[slot as usize] = model[other as usize];
                    }
                    _ => {
                        payload.set(Slot::new(slot), &[kind; BYTES]).expect("memory has room");
                        model[slot as usize] = Some(kind);
                    }
                }
                for (slot, &byte) in (0..).zip(&model) {
                    if let Some(byte) = byte {
                        prop_assert!(payload.holds(Slot::new(slot)) && payload.run(Slot::new(slot), 1) == [byte; BYTES]);
                    }
                }
            }
        }
    }

    #[test]
    fn the_frame_of_an_erased_superblock_is_the_next_one_used() {
        let mut payload = Payload::memory(layout()).expect("there is memory");
        payload.set(Slot::new(0), &[1; BYTES]).expect("memory has room");
        let first = payload.run(Slot::new(0), 1).as_ptr();
        payload.erase(0).expect("memory can be erased");
        payload.set(Slot::new(2 * SLOTS), &[2; BYTES]).expect("memory has room");
        assert_eq!(payload.run(Slot::new(2 * SLOTS), 1).as_ptr(), first);
        assert!(!payload.holds(Slot::new(0)));
    }
}
