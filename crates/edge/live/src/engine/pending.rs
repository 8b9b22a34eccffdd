//! Requests under way: from front ends to the world, their bytes to the media and back, and their answers.

use super::Engine;
use super::change::drop_changes;
use super::erase::deallocated;
use super::gather::{counted, give_up_parts, reply};
use super::protect::with_protection;
use super::request::{Carried, Pending, Places, Step, unanswered};
use super::window::Window;
use crate::error::EngineError;
use crate::front::Answered;
use crate::media::{Data, Kept};
use flashyard_blk::{Operation, Payload, VolumeRequest};
use flashyard_flash::{SLOT_BYTES, Slot};
use flashyard_served::{Answer, Control};
use flashyard_ssd::Movement;
use flashyard_units::{DriveId, SimSpan, SimTime};
use std::time::Duration;

/// Bytes of a unit, which a drive maps.
const BYTES: usize = SLOT_BYTES as usize;

/// How often requests that were given up are looked at.
const RELEASE_PERIOD: Duration = Duration::from_millis(100);

/// Places of slots kept with a request that is over: those of a megabyte.
const FOUND_KEPT: usize = 256;

impl Engine {
    pub(super) fn submit(
        &mut self,
        now: SimTime,
        (front, tag): (usize, u64),
        request: VolumeRequest,
        carried: Carried,
    ) {
        let is_plain = self.spaces.of(request.volume).metadata.is_none();
        let carried = if is_plain { carried } else { with_protection(self, &request, carried) };
        let (units, window) = Window::of(&request, self.shifts[request.volume.index()]);
        if !window.is_whole() && matches!(request.operation, Operation::Write | Operation::Trim) {
            return self.begin_change(now, (front, tag), request, carried);
        }
        if !self.hand_over(now, (front, tag), (units, window), carried, Step::Whole) {
            let answered = Answered { tag, answer: Answer::Failed, no_room: false, data: Data::NONE };
            reply((&mut self.gathers, &mut self.fronts), front, answered);
        }
    }

    /// Hands a request over to the world, for a client or as a step of a change; returns whether it is taken.
    pub(super) fn hand_over(
        &mut self,
        now: SimTime,
        (front, tag): (usize, u64),
        (request, window): (VolumeRequest, Window),
        carried: Carried,
        step: Step,
    ) -> bool {
        // Deallocations of an erasure are of units of the world.
        let of_world = step == Step::Erasure;
        let (asked_for, shift) = if of_world { (request, 0) } else { self.spaces.of(request.volume).place(&request) };
        let (drive, asked) = (DriveId::default(), now);
        let mut places = self.spare_places.pop().unwrap_or_default();
        if request.operation == Operation::Read {
            places.found.resize(request.count as usize, Slot::NONE);
        }
        let (is_answered, no_room, damaged) = (false, false, None);
        let pending = Pending {
            front,
            tag,
            request,
            window,
            shift,
            step,
            drive,
            carried,
            places,
            asked,
            is_answered,
            no_room,
            damaged,
        };
        let token = self.pending.insert(pending) as u32;
        let taken = self.session.submit(now, token, &asked_for);
        if let Err(refused) = &taken {
            tracing::error!(%refused, "the engine took what the world does not take");
            self.forget(token);
        }
        taken.is_ok()
    }

    /// Nothing comes of a request any more: its number is free, and its buffers are kept for the next ones.
    pub(super) fn forget(&mut self, token: u32) {
        let Some(Pending { carried, mut places, .. }) = self.pending.remove(token as usize) else { return };
        if places.found.capacity() <= FOUND_KEPT {
            places.found.clear();
            places.kept.clear();
            self.spare_places.push(places);
        }
        if let Payload::Bytes(buffer) = carried.payload {
            self.fronts.give_buffer(buffer);
        }
    }

    /// Gives requests back to the enclosure. Seldom, so that no table is kept for it, and in one go, as a connection that is
    /// closed may leave thousands.
    pub(super) fn give_up(&mut self, now: SimTime, mut given_up: Vec<(usize, u64)>) {
        give_up_parts(&self.gathers, &mut given_up);
        given_up.sort_unstable();
        drop_changes(self, |front, tag| given_up.binary_search(&(front, tag)).is_ok());
        let is_it = |pending: &Pending| given_up.binary_search(&(pending.front, pending.tag)).is_ok();
        let found = unanswered(&self.pending).filter(|(_, pending)| is_it(pending)).map(|(token, _)| token);
        for token in found.collect::<Vec<u32>>() {
            let dropped = self.session.control(now, Control::Drop { token });
            debug_assert!(dropped.is_ok(), "giving up names no drive: it is never refused");
        }
    }

    #[inline]
    pub(super) fn move_bytes(&mut self, drive: DriveId, movement: &Movement) -> Result<(), EngineError> {
        match *movement {
            Movement::Read { tag, place, slot } => {
                let pending = &mut self.pending[tag as usize];
                pending.drive = drive;
                let places = &mut pending.places;
                places.found[place as usize] = slot;
                // Drops the bytes promised to an earlier attempt.
                places.kept.retain(|kept| kept.place != place);
                return Ok(());
            }
            Movement::Erased { superblock } => self.keep_promises(drive, superblock),
            _ => {}
        }
        if let Movement::Written { tag, place, .. } = *movement
            && let Pending { window, carried, .. } = &self.pending[tag as usize]
            && (!carried.metadata.is_none() || !window.is_whole() && window.in_unit(place).0.len() < BYTES)
        {
            return self.merge(drive, movement);
        }
        let pending = &self.pending;
        let payload = || match *movement {
            Movement::Written { tag, place, .. } => match &pending[tag as usize].carried.payload {
                Payload::Bytes(bytes) => {
                    let first = place as usize * BYTES - pending[tag as usize].window.skip_bytes() as usize;
                    Some(&bytes[first..first + BYTES])
                }
                Payload::Zeros | Payload::None => None,
            },
            _ => None,
        };
        let has_room = self.media.follow(drive, movement, payload).map_err(EngineError::Media)?;
        if let Movement::Written { tag, logical, slot, .. } = *movement {
            let pending = &mut self.pending[tag as usize];
            pending.no_room |= !has_room;
            if has_room && pending.carried.is_lost {
                self.media.lose(drive, logical, slot);
            }
        }
        Ok(())
    }

    /// Copies what reads under way were promised of a superblock that is about to be erased.
    #[cold]
    pub(super) fn keep_promises(&mut self, drive: DriveId, superblock: u32) {
        let media = self.media.drive(drive);
        let of_drive = self.pending.iter_mut().map(|(_, pending)| pending);
        let reads = of_drive.filter(|pending| !pending.is_answered && pending.drive == drive);
        for Pending { places: Places { found, kept }, .. } in reads {
            for (place, &slot) in (0..).zip(found.iter()) {
                if slot.is_some()
                    && media.layout().split(slot).0 == superblock
                    && kept.iter().all(|kept| kept.place != place)
                {
                    kept.push(Kept::of(media, place, slot));
                }
            }
        }
    }

    pub(super) fn answer(&mut self, token: u32, at: SimTime, answer: Answer) {
        if let Some(late) = self.pace.late(at) {
            self.lateness.answers.record(late);
        }
        let answer = self.by_its_bytes(token, answer);
        let pending = &mut self.pending[token as usize];
        let Pending { front, tag, drive, request: VolumeRequest { operation, volume, .. }, asked, window, .. } =
            *pending;
        match pending.step {
            Step::Whole => {}
            Step::Change(change) => return self.step_ended(change, token, at, answer),
            Step::Erasure => return deallocated(self, token, answer),
        }
        let answer = in_blocks(answer, pending, self.shifts[volume.index()]);
        let Places { found, kept } = &pending.places;
        let is_read = operation == Operation::Read && answer == Answer::Done;
        let data = match is_read {
            true => Data::new(self.media.drive(drive), found, kept)
                .part(window.skip_bytes() as usize, window.len_bytes() as usize),
            false => Data::NONE,
        };
        let no_room = pending.no_room && answer == Answer::Failed;
        let gathered = reply((&mut self.gathers, &mut self.fronts), front, Answered { tag, answer, no_room, data });
        pending.is_answered = true;
        if answer == Answer::Dropped {
            // Its bytes may still be written.
            return self.given_up.push(token);
        }
        self.forget(token);
        if let Some((operation, bytes, asked)) = counted(front, gathered, (operation, window.len_bytes(), asked)) {
            self.count(operation, bytes, at.since(asked));
        }
    }

    /// Counts a request of a client that has come to its end.
    pub(super) fn count(&mut self, operation: Operation, bytes: u64, latency: SimSpan) {
        self.latency.record(latency);
        let kind = match operation {
            Operation::Read => 0,
            Operation::Write => 1,
            Operation::Trim => 2,
            Operation::Flush => 3,
            Operation::Remap => 4,
        };
        self.requests[kind] += 1;
        if let Some(moved) = self.bytes.get_mut(kind) {
            *moved += bytes;
        }
    }

    /// Answer to a request that the enclosure has done, by its bytes: a read of damaged ones has failed, and so has a
    /// write without room for some.
    fn by_its_bytes(&mut self, token: u32, answer: Answer) -> Answer {
        let Pending { request, drive, places: Places { found, kept }, no_room, damaged, shift, .. } =
            &self.pending[token as usize];
        let (&VolumeRequest { operation, first, .. }, drive, shift) = (request, *drive, *shift);
        let answer = match answer {
            Answer::Unread { block } => Answer::Unread { block: block.wrapping_sub(shift) },
            answer => answer,
        };
        match (operation, answer) {
            (Operation::Write, Answer::Done) if *no_room => Answer::Failed,
            (Operation::Write, Answer::Done) if damaged.is_some() => {
                Answer::Unread { block: first + u64::from(damaged.unwrap_or_default()) }
            }
            (Operation::Read, Answer::Done) => {
                let damaged = Data::new(self.media.drive(drive), found, kept).damaged();
                damaged.map_or(answer, |place| {
                    // A drive has less than 2^32 slots.
                    self.media.failed_read(drive, first.wrapping_add(shift) as u32 + place);
                    Answer::Unread { block: first + u64::from(place) }
                })
            }
            _ => answer,
        }
    }

    /// Lets go of requests that were given up, once nothing can come of them.
    pub(super) fn release(&mut self) {
        if self.given_up.is_empty() || self.turned < self.look_again {
            return;
        }
        self.look_again = self.turned + RELEASE_PERIOD;
        let world = self.session.world();
        let over: Vec<u32> = self.given_up.extract_if(.., |token| !world.keeps(*token)).collect();
        over.into_iter().for_each(|token| self.forget(token));
    }
}

/// An answer that names a unit of the drive, as one that names a block of its client: a unit has 2^`shift` of them.
fn in_blocks(answer: Answer, pending: &Pending, shift: u8) -> Answer {
    match answer {
        Answer::Unread { block } if shift > 0 => {
            let block_bytes = SLOT_BYTES >> shift;
            let first = (pending.request.first << shift) + u64::from(pending.window.skip_bytes() / block_bytes);
            Answer::Unread { block: (block << shift).max(first) }
        }
        answer => answer,
    }
}
