//! Writes and deallocations of units in part: those of blocks that are smaller than a unit.
//!
//! The units that are not whole are read, then written with the client's bytes in them. What they hold beside is taken at the
//! moment at which the drive gives the new unit its place, from where the old one is then: two changes of one unit never lose
//! each other's blocks, in whatever order their steps come, and need not wait for each other. The read before gives the change
//! the time that a drive takes, and finds out whether the unit can be read.

use super::Engine;
use super::gather::{counted, reply};
use super::protect::metadata_of_unit;
use super::request::{Carried, Change, Step};
use super::window::Window;
use crate::error::EngineError;
use crate::front::Answered;
use crate::media::{Data, metadata_of};
use flashyard_blk::{Operation, Payload, VolumeRequest};
use flashyard_flash::SLOT_BYTES;
use flashyard_served::Answer;
use flashyard_ssd::Movement;
use flashyard_units::{DriveId, SimTime};

impl Engine {
    /// Reads the units that `request`, in the client's blocks, changes in part.
    #[cold]
    pub(super) fn begin_change(
        &mut self,
        now: SimTime,
        (front, tag): (usize, u64),
        request: VolumeRequest,
        carried: Carried,
    ) {
        let (units, window) = Window::of(&request, self.shifts[request.volume.index()]);
        let (is_reading, answer, no_room) = (true, Answer::Done, false);
        let left = window.edges().count() as u32;
        let change = Change { front, tag, request, carried, asked: now, left, is_reading, answer, no_room };
        let number = self.changes.insert(change) as u32;
        for place in window.edges() {
            let first = units.first + u64::from(place);
            let read = VolumeRequest { operation: Operation::Read, first, count: 1, ..units };
            if !self.hand_over(now, (front, tag), (read, Window::whole(1)), Carried::NONE, Step::Change(number)) {
                note_step(self, number, now, Answer::Failed, false);
            }
        }
    }

    /// Writes what was read, for changes that have come so far.
    pub(super) fn go_on_changes(&mut self, now: SimTime) {
        for number in std::mem::take(&mut self.changes_to_go_on) {
            write_change(self, now, number);
        }
    }

    /// A step of a change was answered.
    #[cold]
    pub(super) fn step_ended(&mut self, change: u32, token: u32, at: SimTime, answer: Answer) {
        let pending = &mut self.pending[token as usize];
        pending.is_answered = true;
        let no_room = pending.no_room && answer == Answer::Failed;
        // Its bytes may still be written where it was given up.
        if answer == Answer::Dropped {
            self.given_up.push(token)
        } else {
            self.forget(token)
        }
        note_step(self, change, at, answer, no_room);
    }

    fn end_change(&mut self, number: u32, at: SimTime) {
        let Some(change) = self.changes.remove(number as usize) else { return };
        let Change { front, tag, request, carried, asked, answer, no_room, .. } = change;
        let answered = Answered { tag, answer, no_room, data: Data::NONE };
        let gathered = reply((&mut self.gathers, &mut self.fronts), front, answered);
        if let Payload::Bytes(buffer) = carried.payload {
            self.fronts.give_buffer(buffer);
        }
        if answer != Answer::Dropped {
            let bytes = Window::of(&request, self.shifts[request.volume.index()]).1.len_bytes();
            if let Some((operation, bytes, asked)) = counted(front, gathered, (request.operation, bytes, asked)) {
                self.count(operation, bytes, at.since(asked));
            }
        }
    }

    /// A unit that is written in part, or with metadata, gets its place: the rest of it is what the unit holds now.
    #[cold]
    pub(super) fn merge(&mut self, drive: DriveId, movement: &Movement) -> Result<(), EngineError> {
        let Movement::Written { tag, place, logical, slot, before } = *movement else { return Ok(()) };
        let pending = &mut self.pending[tag as usize];
        let (range, at) = pending.window.in_unit(place);
        let media = self.media.drive(drive);
        let is_part = range.len() < SLOT_BYTES as usize;
        // Garbage collection, or a host, may have lost the unit since it was read.
        let is_whole = !is_part || media.is_whole(before);
        let mut unit = [0; SLOT_BYTES as usize];
        if is_part {
            unit.copy_from_slice(media.slot(before));
        }
        let block_bytes = SLOT_BYTES as usize >> self.shifts[pending.request.volume.index()];
        let of_before = || metadata_of(media, before);
        let metadata = metadata_of_unit(pending, block_bytes, (range.clone(), at), of_before);
        match &pending.carried.payload {
            Payload::Bytes(bytes) => unit[range.clone()].copy_from_slice(&bytes[at..at + range.len()]),
            Payload::Zeros | Payload::None => unit[range].fill(0),
        }
        let has_bytes = matches!(pending.carried.payload, Payload::Bytes(_)) || unit.iter().any(|&byte| byte != 0);
        let payload = has_bytes.then_some(&unit[..]);
        let has_room = self.media.write_with(drive, (logical, slot, before), payload, &metadata);
        pending.no_room |= !has_room;
        if has_room && pending.carried.is_lost {
            self.media.lose(drive, logical, slot);
        } else if has_room && !is_whole {
            // Nothing makes the bytes beside those of the client right.
            self.media.lose(drive, logical, slot);
            pending.damaged = Some(place);
        }
        Ok(())
    }
}

fn write_change(engine: &mut Engine, now: SimTime, number: u32) {
    let Some(change) = engine.changes.get_mut(number as usize) else { return };
    if change.answer != Answer::Done {
        return engine.end_change(number, now);
    }
    change.is_reading = false;
    let client = (change.front, change.tag);
    let (units, window) = Window::of(&change.request, engine.shifts[change.request.volume.index()]);
    if units.operation == Operation::Write {
        change.left = 1;
        let carried = std::mem::replace(&mut change.carried, Carried::NONE);
        if !engine.hand_over(now, client, (units, window), carried, Step::Change(number)) {
            note_step(engine, number, now, Answer::Failed, false);
        }
        return;
    }
    // Blocks of units that are kept become zeros, with the metadata of blocks without data; units between are deallocated.
    let zeros = || Carried::of(Payload::Zeros);
    let edges: Vec<u32> = window.edges().collect();
    let inner = u32::from(edges.contains(&0))..units.count - u32::from(edges.iter().any(|&edge| edge > 0));
    change.left = edges.len() as u32 + u32::from(!inner.is_empty());
    let mut refused = 0;
    for edge in edges {
        let write =
            VolumeRequest { operation: Operation::Write, first: units.first + u64::from(edge), count: 1, ..units };
        refused += u32::from(!engine.hand_over(now, client, (write, window.unit(edge)), zeros(), Step::Change(number)));
    }
    if !inner.is_empty() {
        let count = inner.end - inner.start;
        let trim = VolumeRequest { first: units.first + u64::from(inner.start), count, ..units };
        refused += u32::from(!engine.hand_over(
            now,
            client,
            (trim, Window::whole(count)),
            Carried::NONE,
            Step::Change(number),
        ));
    }
    (0..refused).for_each(|_| note_step(engine, number, now, Answer::Failed, false));
}

fn note_step(engine: &mut Engine, number: u32, at: SimTime, answer: Answer, no_room: bool) {
    let Some(change) = engine.changes.get_mut(number as usize) else { return };
    change.left -= 1;
    if change.answer == Answer::Done {
        let shift = engine.shifts[change.request.volume.index()];
        change.answer = match answer {
            Answer::Unread { block } => Answer::Unread { block: (block << shift).max(change.request.first) },
            answer => answer,
        };
        change.no_room = no_room;
    }
    match change {
        Change { left: 0, is_reading: true, answer: Answer::Done, .. } => engine.changes_to_go_on.push(number),
        Change { left: 0, .. } => engine.end_change(number, at),
        _ => {}
    }
}

/// Changes between their steps, of which the world has nothing, end as dropped where `is_it`, by front end and tag.
pub(super) fn drop_changes(engine: &mut Engine, is_it: impl Fn(usize, u64) -> bool) {
    for &number in &engine.changes_to_go_on {
        if let Some(change) = engine.changes.get_mut(number as usize).filter(|change| is_it(change.front, change.tag)) {
            change.answer = Answer::Dropped;
        }
    }
}
