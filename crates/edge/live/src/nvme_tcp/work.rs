//! Commands under way: from NVMe to the enclosure's requests and back.

use crate::front::{Answered, Context};
use crate::media::Data;
use crate::under_way::{self, UnderWay};
use flashyard_blk::{Operation, Payload, VolumeRequest};
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
}

/// The result of a command.
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
    under_way: UnderWay<Work>,
    /// Those that were over as they began.
    over: Vec<usize>,
}

impl Works {
    /// Whether something is under way for a connection that is closed.
    pub(super) fn any_abandoned(&self) -> bool {
        self.under_way.any_abandoned()
    }

    /// Bytes of the budget that commands now over took, since the last call.
    pub(super) fn take_ended_cost(&mut self) -> usize {
        self.under_way.take_ended_cost()
    }

    /// Begins a command of the connection at `place`, for which `cost` bytes were taken of the budget.
    pub(super) fn begin(
        &mut self,
        place: usize,
        volume: VolumeId,
        command: Command,
        cost: usize,
        context: &mut Context<'_>,
    ) {
        let Command { tag, operation, payload, .. } = command;
        let protected = context.volume(volume).is_some_and(|volume| volume.protected);
        let kind = match operation {
            NvmCommand::Read { .. } => Kind::Read,
            NvmCommand::Compare { .. } => Kind::Compare,
            NvmCommand::Write { fua, .. } | NvmCommand::WriteZeroes { fua, .. } => {
                Kind::Other { flush: fua && !protected }
            }
            _ => Kind::Other { flush: false },
        };
        let (asked, parts, status) = (0, 0, Status::SUCCESS);
        let work = Work { volume, tag, kind, payload, asked, parts, status, failed_at: None };
        let number = self.under_way.begin(place, cost, work);
        self.ask(number, operation, context);
        if self.work(number).is_some_and(|work| work.parts == 0) {
            self.over.push(number);
        }
    }

    fn ask(&mut self, number: usize, operation: NvmCommand, context: &mut Context<'_>) {
        match operation {
            NvmCommand::Flush => self.part(number, Operation::Flush, 0, 0, Payload::None, context),
            NvmCommand::Read { range, .. } | NvmCommand::Compare { range, .. } | NvmCommand::Verify { range, .. } => {
                self.range(number, Operation::Read, range, Payload::None, context);
            }
            NvmCommand::Write { range, .. } => {
                let payload = self.work(number).map(|work| std::mem::take(&mut work.payload));
                self.range(number, Operation::Write, range, Payload::Bytes(payload.unwrap_or_default()), context);
            }
            NvmCommand::WriteZeroes { range, deallocate: true, .. } => {
                self.range(number, Operation::Trim, range, Payload::None, context);
            }
            NvmCommand::WriteZeroes { range, .. } => {
                self.range(number, Operation::Write, range, Payload::Zeros, context);
            }
            NvmCommand::DatasetManagement { deallocate, .. } => {
                let payload = self.work(number).map(|work| std::mem::take(&mut work.payload));
                let payload = payload.filter(|_| deallocate).unwrap_or_default();
                for range in DsmRange::decode_all(&payload) {
                    if range.blocks.get() > 0 {
                        let (first, count) = (range.lba.get(), range.blocks.get());
                        self.part(number, Operation::Trim, first, count, Payload::None, context);
                    }
                }
            }
            NvmCommand::Remap { range, source } => {
                let (first, count) = (range.lba, range.blocks);
                self.hand_in(number, (Operation::Remap, first, count, source), Payload::None, context);
            }
            NvmCommand::WriteUncorrectable { .. } => self.fail(number, Status::INVALID_OPCODE),
        }
    }

    fn range(
        &mut self,
        number: usize,
        operation: Operation,
        range: BlockRange,
        payload: Payload,
        context: &mut Context<'_>,
    ) {
        self.part(number, operation, range.lba, range.blocks, payload, context);
    }

    fn part(
        &mut self,
        number: usize,
        operation: Operation,
        first: u64,
        count: u32,
        payload: Payload,
        context: &mut Context<'_>,
    ) {
        self.hand_in(number, (operation, first, count, 0), payload, context);
    }

    /// Asks the command's volume for a part of it: what to do, the first block, blocks, and where a remap takes from.
    fn hand_in(
        &mut self,
        number: usize,
        (operation, first, count, source): (Operation, u64, u32, u64),
        payload: Payload,
        context: &mut Context<'_>,
    ) {
        let Some(work) = self.work(number) else { return };
        let tag = number as u64 * PARTS + u64::from(work.asked);
        let request = VolumeRequest { volume: work.volume, operation, first, count, source };
        match context.submit(tag, request, payload) {
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
        if let Some(work) = self.work(number) {
            work.status = status.do_not_retry();
        }
    }

    fn work(&mut self, number: usize) -> Option<&mut Work> {
        self.under_way.get_mut(number).map(|command| &mut command.work)
    }

    /// Takes an answer of the enclosure; returns the command once it is over, unless its connection is.
    pub(super) fn answered(&mut self, answered: &Answered<'_>) -> Option<Done> {
        let number = (answered.tag / PARTS) as usize;
        let under_way::Command { place, work, .. } = self.under_way.get_mut(number)?;
        work.parts -= 1;
        match answered.answer {
            Answer::Done if place.is_none() => {}
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
        if work.kind == (Kind::Other { flush: true }) && work.status.is_success() && place.is_some() {
            self.under_way.flush_next(number);
            return None;
        }
        self.end(number)
    }

    fn end(&mut self, number: usize) -> Option<Done> {
        let under_way::Command { place, cost, work } = self.under_way.end(number)?;
        let Work { tag, status, failed_at, payload, .. } = work;
        Some(Done { place: place?, tag, status, failed_at, payload, cost })
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
    pub(super) fn follow_up(&mut self, context: &mut Context<'_>) {
        for number in self.under_way.take_to_flush() {
            if let Some(work) = self.work(number) {
                work.kind = Kind::Other { flush: false };
                self.part(number, Operation::Flush, 0, 0, Payload::None, context);
            }
        }
    }

    /// The host wants the command back: gives up what the enclosure has of it.
    pub(super) fn give_up(&self, place: usize, tag: Tag, context: &mut Context<'_>) {
        let mut commands = self.under_way.iter();
        if let Some((number, command)) =
            commands.find(|(_, command)| (command.place, command.work.tag) == (Some(place), tag))
        {
            give_up_parts(number, &command.work, context);
        }
    }

    /// The connection at `place` is closed: no host waits for its commands any more.
    pub(super) fn abandon(&mut self, place: usize, context: &mut Context<'_>) {
        for number in self.under_way.abandon(place) {
            match self.under_way.get(number) {
                Some(command) if command.work.parts > 0 => give_up_parts(number, &command.work, context),
                _ => {
                    // Over as it began.
                    self.over.retain(|&other| other != number);
                    self.end(number);
                }
            }
        }
    }
}

/// Some may have been answered: giving those up does nothing.
fn give_up_parts(number: usize, work: &Work, context: &mut Context<'_>) {
    (0..u64::from(work.asked)).for_each(|part| context.give_up(number as u64 * PARTS + part));
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
