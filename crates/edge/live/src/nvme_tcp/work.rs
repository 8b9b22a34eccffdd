//! Commands under way: from NVMe to the box's requests and back.

use crate::front::{Answered, Desk, Payload};
use crate::media::Data;
use flashyard_blk::{Operation, VolumeRequest};
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, DsmRange, NvmCommand};
use flashyard_nvmf::target::{Command, Tag};
use flashyard_served::Answer;
use flashyard_units::VolumeId;

/// Requests of one command are numbered below this: a Dataset Management has up to 256 ranges.
const PARTS: u64 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Compare,
    /// Nothing comes back; a flush follows when asked for.
    Other {
        flush: bool,
    },
}

#[derive(Debug)]
struct Work {
    /// `None` once its connection is closed.
    place: Option<usize>,
    volume: VolumeId,
    tag: Tag,
    kind: Kind,
    payload: Vec<u8>,
    /// Requests made of it, and those of them that are not answered.
    asked: u32,
    parts: u32,
    status: Status,
    /// The block that failed, where it is known.
    failed_at: Option<u64>,
    /// Bytes that it takes of the budget.
    cost: usize,
}

/// What a command came to.
pub(super) struct Done {
    pub(super) place: usize,
    pub(super) tag: Tag,
    pub(super) status: Status,
    pub(super) failed_at: Option<u64>,
    pub(super) payload: Vec<u8>,
    pub(super) cost: usize,
}

/// Commands under way, by number.
#[derive(Default)]
pub(super) struct Works {
    works: Vec<Option<Work>>,
    free: Vec<usize>,
    abandoned: usize,
    /// Those that have written and are to be flushed.
    to_flush: Vec<usize>,
    /// Those that were over as they began.
    over: Vec<usize>,
    /// What commands that are over took of the budget.
    ended_cost: usize,
}

impl Works {
    /// Whether something is under way for a connection that is closed.
    pub(super) fn any_abandoned(&self) -> bool {
        self.abandoned > 0
    }

    /// What commands that are over took of the budget, since the last call.
    pub(super) fn take_ended_cost(&mut self) -> usize {
        std::mem::take(&mut self.ended_cost)
    }

    /// Begins a command of the connection at `place`, for which `cost` bytes were taken of the budget.
    pub(super) fn begin(&mut self, place: usize, volume: VolumeId, command: Command, cost: usize, desk: &mut Desk<'_>) {
        let Command { tag, operation, payload, .. } = command;
        let protected = desk.volume(volume).is_some_and(|volume| volume.protected);
        let kind = match operation {
            NvmCommand::Read { .. } => Kind::Read,
            NvmCommand::Compare { .. } => Kind::Compare,
            NvmCommand::Write { fua, .. } | NvmCommand::WriteZeroes { fua, .. } => {
                Kind::Other { flush: fua && !protected }
            }
            _ => Kind::Other { flush: false },
        };
        let (asked, parts, status) = (0, 0, Status::SUCCESS);
        let place = Some(place);
        let work = Work { place, volume, tag, kind, payload, asked, parts, status, failed_at: None, cost };
        let number = match self.free.pop() {
            Some(number) => {
                self.works[number] = Some(work);
                number
            }
            None => {
                self.works.push(Some(work));
                self.works.len() - 1
            }
        };
        self.ask(number, operation, desk);
        if self.works[number].as_ref().is_some_and(|work| work.parts == 0) {
            self.over.push(number);
        }
    }

    fn ask(&mut self, number: usize, operation: NvmCommand, desk: &mut Desk<'_>) {
        match operation {
            NvmCommand::Flush => self.part(number, Operation::Flush, 0, 0, Payload::None, desk),
            NvmCommand::Read { range, .. } | NvmCommand::Compare { range, .. } | NvmCommand::Verify { range, .. } => {
                self.range(number, Operation::Read, range, Payload::None, desk);
            }
            NvmCommand::Write { range, .. } => {
                let payload = self.works[number].as_mut().map(|work| std::mem::take(&mut work.payload));
                self.range(number, Operation::Write, range, Payload::Bytes(payload.unwrap_or_default()), desk);
            }
            NvmCommand::WriteZeroes { range, deallocate: true, .. } => {
                self.range(number, Operation::Trim, range, Payload::None, desk);
            }
            NvmCommand::WriteZeroes { range, .. } => {
                self.range(number, Operation::Write, range, Payload::Zeros, desk);
            }
            NvmCommand::DatasetManagement { deallocate, .. } => {
                let payload = self.works[number].as_mut().map(|work| std::mem::take(&mut work.payload));
                let payload = payload.filter(|_| deallocate).unwrap_or_default();
                for range in DsmRange::decode_all(&payload) {
                    if range.blocks.get() > 0 {
                        let (first, count) = (range.lba.get(), range.blocks.get());
                        self.part(number, Operation::Trim, first, count, Payload::None, desk);
                    }
                }
            }
            NvmCommand::Remap { range, source } => {
                let (first, count) = (range.lba, range.blocks);
                self.hand_in(number, (Operation::Remap, first, count, source), Payload::None, desk);
            }
            NvmCommand::WriteUncorrectable { .. } => self.fail(number, Status::INVALID_OPCODE),
        }
    }

    fn range(&mut self, number: usize, operation: Operation, range: BlockRange, payload: Payload, desk: &mut Desk<'_>) {
        self.part(number, operation, range.lba, range.blocks, payload, desk);
    }

    fn part(
        &mut self,
        number: usize,
        operation: Operation,
        first: u64,
        count: u32,
        payload: Payload,
        desk: &mut Desk<'_>,
    ) {
        self.hand_in(number, (operation, first, count, 0), payload, desk);
    }

    /// Asks the command's volume for a part of it: what to do, the first block, blocks, and where a remap takes from.
    fn hand_in(
        &mut self,
        number: usize,
        (operation, first, count, source): (Operation, u64, u32, u64),
        payload: Payload,
        desk: &mut Desk<'_>,
    ) {
        let Some(work) = self.works[number].as_mut() else { return };
        let tag = number as u64 * PARTS + u64::from(work.asked);
        let request = VolumeRequest { volume: work.volume, operation, first, count, source };
        match desk.submit(tag, request, payload) {
            Ok(()) => {
                work.asked += 1;
                work.parts += 1;
            }
            Err(refused) => {
                tracing::debug!(%refused, "a command is not carried out");
                self.fail(number, Status::LBA_OUT_OF_RANGE);
            }
        }
    }

    fn fail(&mut self, number: usize, status: Status) {
        if let Some(work) = self.works[number].as_mut() {
            work.status = status.do_not_retry();
        }
    }

    /// Takes an answer of the box; returns the command once it is over, unless its connection is.
    pub(super) fn answered(&mut self, answered: &Answered<'_>) -> Option<Done> {
        let number = (answered.tag / PARTS) as usize;
        let work = self.works.get_mut(number)?.as_mut()?;
        work.parts -= 1;
        match answered.answer {
            Answer::Done if work.place.is_none() => {}
            Answer::Done => work.take(&answered.data),
            // Linux tells its programs that there is no space left.
            Answer::Failed if answered.no_room => work.status = Status::CAPACITY_EXCEEDED.do_not_retry(),
            Answer::Failed => work.status = Status::WRITE_FAULT,
            // The drive has tried everything it knows: the host need not ask for the same again.
            Answer::Unread { block } => {
                work.status = Status::UNRECOVERED_READ.do_not_retry();
                work.failed_at = Some(block);
            }
            // The host wanted it back, or its connection is closed.
            Answer::Dropped => work.status = Status::ABORT_REQUESTED,
        }
        if work.parts > 0 {
            return None;
        }
        if work.kind == (Kind::Other { flush: true }) && work.status.is_success() && work.place.is_some() {
            self.to_flush.push(number);
            return None;
        }
        self.end(number)
    }

    fn end(&mut self, number: usize) -> Option<Done> {
        let work = self.works[number].take()?;
        self.free.push(number);
        self.ended_cost += work.cost;
        let Some(place) = work.place else {
            self.abandoned -= 1;
            return None;
        };
        let Work { tag, status, failed_at, payload, cost, .. } = work;
        Some(Done { place, tag, status, failed_at, payload, cost })
    }

    /// Commands that are over without a request of their own, or without one more.
    pub(super) fn take_over(&mut self) -> Option<Done> {
        while let Some(number) = self.over.pop() {
            if let Some(done) = self.end(number) {
                return Some(done);
            }
        }
        None
    }

    /// Asks for the flushes that follow writes.
    pub(super) fn follow_up(&mut self, desk: &mut Desk<'_>) {
        for number in std::mem::take(&mut self.to_flush) {
            if let Some(work) = self.works[number].as_mut() {
                work.kind = Kind::Other { flush: false };
                self.part(number, Operation::Flush, 0, 0, Payload::None, desk);
            }
        }
    }

    /// The host wants the command back: gives up what the box has of it.
    pub(super) fn give_up(&self, place: usize, tag: Tag, desk: &mut Desk<'_>) {
        let is_it = |work: &Work| (work.place, work.tag) == (Some(place), tag);
        let found = self.works.iter().position(|work| work.as_ref().is_some_and(is_it));
        if let Some(number) = found {
            self.give_up_parts(number, desk);
        }
    }

    fn give_up_parts(&self, number: usize, desk: &mut Desk<'_>) {
        // Some may have been answered: giving those up does nothing.
        let asked = self.works[number].as_ref().map_or(0, |work| u64::from(work.asked));
        (0..asked).for_each(|part| desk.give_up(number as u64 * PARTS + part));
    }

    /// The connection at `place` is closed: nobody waits for its commands any more.
    pub(super) fn abandon(&mut self, place: usize, desk: &mut Desk<'_>) {
        for number in 0..self.works.len() {
            let Some(work) = self.works[number].as_mut().filter(|work| work.place == Some(place)) else { continue };
            work.place = None;
            self.abandoned += 1;
            if work.parts == 0 {
                // Between a write and its flush, or over as it began.
                self.to_flush.retain(|&other| other != number);
                self.over.retain(|&other| other != number);
                self.end(number);
                continue;
            }
            self.give_up_parts(number, desk);
        }
    }
}

impl Work {
    /// Takes what a read has found.
    fn take(&mut self, data: &Data<'_>) {
        match self.kind {
            Kind::Read => data.copy_to(&mut self.payload),
            Kind::Compare => {
                let mut rest = &self.payload[..];
                let equal = data.slices().all(|slice| {
                    let (front, back) = rest.split_at(slice.len().min(rest.len()));
                    rest = back;
                    front == slice
                });
                if !equal {
                    self.status = Status::COMPARE_FAILURE;
                }
            }
            Kind::Other { .. } => {}
        }
    }
}
