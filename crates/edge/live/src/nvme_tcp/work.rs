//! Commands under way: from NVMe to the enclosure's requests and back.

use super::fences::{Fences, Span};
use super::fused::{self, Second};
use super::protect::{Guarded, Mismatch};
use crate::block_metadata::BlockMetadata;
use crate::front::{Answered, Context};
use crate::media::Data;
use crate::media::Erase;
use crate::under_way::{self, UnderWay};
use flashyard_blk::{Operation, Payload, VolumeRequest};
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, CopyRange, DsmRange, NvmCommand};
use flashyard_nvme::zone::SendAction;
use flashyard_nvmf::target::{Command, Tag, ZoneShape};
use flashyard_served::Answer;
use flashyard_units::VolumeId;
use std::collections::BTreeSet;
use std::ops::Range;

/// Requests of one command are numbered below this: a reset of all zones makes one for each of them, a Copy up to 257.
const PARTS: u64 = 2 * ZoneShape::ZONES_MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Compare,
    /// Nothing comes back, but protection information is compared.
    Verify,
    /// Nothing comes back; a flush follows when asked for.
    Other {
        flush: bool,
    },
}

/// A Copy: range after range is read whole, then written.
#[derive(Debug)]
struct Copying {
    ranges: Vec<BlockRange>,
    /// The wishes about the metadata of each, where blocks have some.
    sources: Vec<Guarded>,
    /// Blocks that are written.
    done: u64,
    /// The range at work: all before it are copied.
    at: usize,
    /// Whether that one is read, and where it is written.
    is_read: bool,
    to: u64,
    /// The host wants the command back: it ends with the request that is under way.
    is_unwanted: bool,
}

#[derive(Debug)]
struct Work {
    volume: VolumeId,
    tag: Tag,
    kind: Kind,
    /// The work that a Copy has still to do; `None` for everything else.
    copying: Option<Box<Copying>>,
    /// The Write that a Compare is fused with.
    second: Option<Box<Second>>,
    /// The blocks of a zoned drive that it writes or resets, or reads while some are reset.
    span: Option<Box<Span>>,
    payload: Vec<u8>,
    /// Its wishes about the metadata of its blocks, where they have some, and metadata that waits to be compared or written.
    guarded: Option<Box<Guarded>>,
    metadata: Vec<u8>,
    /// The blocks that it writes fail to be read until they are written again.
    is_lost: bool,
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
    /// The first range of a Copy that is not copied.
    pub(super) stopped_at: Option<u32>,
    /// The other half of a fused operation, and how it has ended.
    pub(super) second: Option<(Tag, Status)>,
    pub(super) payload: Vec<u8>,
    pub(super) cost: usize,
}

/// Commands under way, by number.
#[derive(Default)]
pub(super) struct Works {
    under_way: UnderWay<Work>,
    /// Those that were over as they began.
    over: Vec<usize>,
    fences: Fences,
    /// Commands that are over and have blocks for themselves.
    to_release: Vec<usize>,
    /// Volumes that do not answer.
    away: BTreeSet<VolumeId>,
}

impl Works {
    /// Whether something is under way for a connection that is closed, and has to end before others begin.
    pub(super) fn any_abandoned(&self) -> bool {
        self.under_way.any_abandoned()
    }

    /// Whether zones of a volume are being reset.
    pub(super) fn any_reset_of(&self, volume: VolumeId) -> bool {
        let mut works = self.under_way.iter().map(|(_, command)| &command.work);
        self.fences.any_reset() && works.any(|work| work.volume == volume && work.resets())
    }

    /// Bytes of the budget that commands now over took, since the last call.
    pub(super) fn take_ended_cost(&mut self) -> usize {
        self.under_way.take_ended_cost()
    }

    /// Notes whether a volume answers. Resets of zones go on without their host, unless their drive is gone.
    pub(super) fn set_away(&mut self, volume: VolumeId, is_away: bool) {
        if is_away {
            self.away.insert(volume);
        } else {
            self.away.remove(&volume);
        }
    }

    /// Begins a command of the connection at `place`, for which `cost` bytes were taken of the budget. Writes and resets of a
    /// zone are carried out one after the other.
    pub(super) fn begin(
        &mut self,
        place: usize,
        (volume, is_zoned): (VolumeId, bool),
        mut command: Command,
        cost: usize,
        context: &mut Context<'_>,
    ) {
        let (operation, protection) = (command.operation, command.protection);
        let metadata = context.metadata(volume);
        let guarded = protection.filter(|_| !metadata.is_none()).map(|asked| {
            let block_bytes = context.volume(volume).map_or(0, |volume| volume.block_bytes as usize);
            let first = operation.range().map_or(0, |range| range.lba);
            Box::new(Guarded { metadata, asked, block_bytes, first })
        });
        let protected = context.volume(volume).is_some_and(|volume| volume.protected);
        let second = Second::of(&mut command, guarded.as_deref(), protected);
        let Command { tag, payload, .. } = command;
        let kind = match operation {
            NvmCommand::Read { .. } => Kind::Read,
            NvmCommand::Compare { .. } => Kind::Compare,
            NvmCommand::Verify { .. } if guarded.is_some() => Kind::Verify,
            NvmCommand::Write { fua, .. } | NvmCommand::WriteZeroes { fua, .. } | NvmCommand::Copy { fua, .. } => {
                Kind::Other { flush: fua && !protected }
            }
            _ => Kind::Other { flush: false },
        };
        let (asked, parts, status) = (0, 0, Status::SUCCESS);
        let span = if is_zoned { self.fences.span(&operation, &payload) } else { None };
        let copying = None;
        let (metadata, failed_at) = (Vec::new(), None);
        let work = Work {
            volume,
            tag,
            kind,
            copying,
            second,
            span,
            payload,
            guarded,
            metadata,
            is_lost: false,
            asked,
            parts,
            status,
            failed_at,
        };
        let number = self.under_way.begin(place, cost, work);
        // Before the number claims anything again.
        self.release(context);
        if let Some(second) = self.work(number).and_then(|work| work.second.as_deref()) {
            second.claim(tags_of(number), volume, context);
        } else if self.is_fenced(number) {
            self.fences.hold(number, operation);
        } else {
            self.ask(number, operation, context);
            self.note_asked(number);
        }
    }

    /// Whether a command has to wait for an earlier one on the same blocks of a zone.
    fn is_fenced(&self, number: usize) -> bool {
        let Some(under_way::Command { work: Work { volume, span: Some(span), .. }, .. }) = self.under_way.get(number)
        else {
            return false;
        };
        let others = || self.under_way.iter().map(|(_, other)| &other.work).filter(|other| other.volume == *volume);
        self.fences.any_reset() && others().filter_map(|other| other.span.as_deref()).any(|other| span.waits_for(other))
    }

    /// A command has its blocks for itself: it begins in the next turn. It may be over by now.
    pub(super) fn claimed(&mut self, tag: u64) {
        let number = (tag / PARTS) as usize;
        if self.work(number).and_then(|work| work.second.as_mut()).is_some_and(|second| second.begins()) {
            self.under_way.go_on_next(number);
        }
    }

    /// Whether commands that have waited for others may go on now.
    pub(super) fn has_to_go_on(&self) -> bool {
        self.fences.is_due()
    }

    /// Begins commands that have waited for others.
    fn let_go(&mut self, context: &mut Context<'_>) {
        for (number, operation) in self.fences.take_held() {
            if self.is_fenced(number) {
                self.fences.hold(number, operation);
            } else {
                self.ask(number, operation, context);
                self.note_asked(number);
            }
        }
    }

    /// Commands that are over need no blocks for themselves.
    fn release(&mut self, context: &mut Context<'_>) {
        self.to_release.drain(..).for_each(|number| fused::release(tags_of(number).start, context));
    }

    /// A command of which nothing could be asked is over.
    fn note_asked(&mut self, number: usize) {
        if self.work(number).is_some_and(|work| work.parts == 0) {
            self.over.push(number);
        }
    }

    fn ask(&mut self, number: usize, operation: NvmCommand, context: &mut Context<'_>) {
        match operation {
            NvmCommand::Flush => self.part(number, Operation::Flush, 0, 0, Payload::None, context),
            NvmCommand::Compare { range, .. } => {
                if self.work(number).is_some_and(Work::takes_metadata_out) {
                    self.range(number, Operation::Read, range, Payload::None, context);
                }
            }
            NvmCommand::Read { range, .. } | NvmCommand::Verify { range, .. } => {
                self.range(number, Operation::Read, range, Payload::None, context);
            }
            NvmCommand::Write { range, .. } => {
                if self.work(number).is_some_and(Work::takes_metadata_out) {
                    let payload = self.work(number).map(|work| std::mem::take(&mut work.payload));
                    self.range(number, Operation::Write, range, Payload::Bytes(payload.unwrap_or_default()), context);
                }
            }
            NvmCommand::WriteZeroes { range, deallocate: true, .. } => {
                self.range(number, Operation::Trim, range, Payload::None, context);
            }
            NvmCommand::WriteZeroes { range, .. } => {
                let guarded = self.work(number).and_then(|work| work.guarded.as_deref());
                let metadata = guarded.map_or(BlockMetadata::None, Guarded::of_zeros);
                let asked = (Operation::Write, range.lba, range.blocks, 0);
                self.hand_in(number, asked, (Payload::Zeros, metadata), context);
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
            NvmCommand::Copy { first, protection, .. } => {
                if let Some(work) = self.work(number) {
                    let payload = std::mem::take(&mut work.payload);
                    let ranges = CopyRange::decode_all(&payload).map(|source| source.range()).collect();
                    let of = |guarded: &Guarded| {
                        let sources = CopyRange::decode_all(&payload);
                        sources.map(|source| guarded.of_source(protection & 0xF, &source)).collect()
                    };
                    let sources = work.guarded.as_deref().map(of).unwrap_or_default();
                    let copying =
                        Copying { ranges, sources, done: 0, at: 0, is_read: false, to: first, is_unwanted: false };
                    work.copying = Some(Box::new(copying));
                }
                self.go_on(number, context);
            }
            NvmCommand::Remap { range, source } => {
                let (first, count) = (range.lba, range.blocks);
                self.hand_in(
                    number,
                    (Operation::Remap, first, count, source),
                    (Payload::None, BlockMetadata::None),
                    context,
                );
            }
            NvmCommand::ZoneManagementSend { action, .. } => {
                let payload = self.work(number).map(|work| std::mem::take(&mut work.payload)).unwrap_or_default();
                for range in DsmRange::decode_all(&payload).map(|range| range.range()) {
                    match action {
                        SendAction::Reset => self.range(number, Operation::Trim, range, Payload::None, context),
                        _ => self.range(number, Operation::Write, range, Payload::Zeros, context),
                    }
                }
            }
            NvmCommand::WriteUncorrectable { range } => {
                self.work(number).into_iter().for_each(|work| work.is_lost = true);
                self.range(number, Operation::Write, range, Payload::Zeros, context);
            }
            // The target does not hand these on.
            NvmCommand::ZoneAppend { .. } | NvmCommand::ZoneManagementReceive { .. } => {
                self.fail(number, Status::INVALID_OPCODE.do_not_retry());
            }
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
        let own =
            self.work(number).filter(|_| operation == Operation::Write).map(|work| std::mem::take(&mut work.metadata));
        let metadata = own.filter(|own| !own.is_empty()).map_or(BlockMetadata::None, BlockMetadata::Bytes);
        self.hand_in(number, (operation, first, count, 0), (payload, metadata), context);
    }

    /// Asks the command's volume for a part of it: what to do, the first block, blocks, and where a remap takes from.
    fn hand_in(
        &mut self,
        number: usize,
        (operation, first, count, source): (Operation, u64, u32, u64),
        carried: (Payload, BlockMetadata),
        context: &mut Context<'_>,
    ) {
        let Some(work) = self.work(number) else { return };
        let tag = number as u64 * PARTS + u64::from(work.asked);
        let request = VolumeRequest { volume: work.volume, operation, first, count, source };
        match context.submit_with(tag, request, carried, work.is_lost) {
            Ok(()) => {
                work.asked += 1;
                work.parts += 1;
            }
            Err(refused) => {
                tracing::debug!(%refused, "a command is not carried out");
                let volume = request.volume;
                match (context.erasing(volume), context.erasures(volume).under_way) {
                    // Its namespace is gone.
                    _ if context.volume(volume).is_none() => {
                        self.fail(number, Status::INVALID_NAMESPACE.do_not_retry());
                    }
                    (None, _) => self.fail(number, Status::LBA_OUT_OF_RANGE.do_not_retry()),
                    (_, Some(Erase::Sanitize { .. })) => self.fail(number, Status::SANITIZE_IN_PROGRESS),
                    _ => self.fail(number, Status::FORMAT_IN_PROGRESS),
                }
            }
        }
    }

    fn fail(&mut self, number: usize, status: Status) {
        if let Some(work) = self.work(number) {
            work.status = status;
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
            Answer::Failed => {
                let no_room = Status::CAPACITY_EXCEEDED.do_not_retry();
                work.status = if answered.no_room { no_room } else { Status::WRITE_FAULT };
                work.failed_at = work.copying.as_ref().map(|copying| copying.to);
            }
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
        if work.status.is_success() && place.is_some() && work.goes_on() {
            self.under_way.go_on_next(number);
            return None;
        }
        self.end(number)
    }

    fn end(&mut self, number: usize) -> Option<Done> {
        let under_way::Command { place, cost, work, .. } = self.under_way.end(number)?;
        let Work { tag, mut status, failed_at, copying, second, span, payload, .. } = work;
        self.fences.ended(number, span.as_deref());
        let second = second.map(|second| {
            self.to_release.push(number);
            let (first, last) = second.statuses(status);
            status = first;
            (second.tag, last)
        });
        let stopped_at = copying.map(|copying| copying.at as u32);
        Some(Done { place: place?, tag, status, failed_at, stopped_at, second, payload, cost })
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

    /// Asks for what follows in commands of several steps, and for what has waited.
    pub(super) fn follow_up(&mut self, context: &mut Context<'_>) {
        self.let_go(context);
        self.release(context);
        for number in self.under_way.take_to_go_on() {
            self.go_on(number, context);
            self.note_asked(number);
        }
    }

    /// The next step of a command: of a Copy a read or a write, otherwise the flush behind a write.
    fn go_on(&mut self, number: usize, context: &mut Context<'_>) {
        let Some(work) = self.work(number) else { return };
        if let Some(operation) = work.second.as_mut().and_then(|second| second.take_next()) {
            return self.ask(number, operation, context);
        }
        match work.copying.as_deref().and_then(Copying::next) {
            Some((Operation::Write, range)) => {
                if !work.takes_over_metadata(range) {
                    return;
                }
                let payload = Payload::Bytes(std::mem::take(&mut work.payload));
                self.range(number, Operation::Write, range, payload, context);
            }
            Some((operation, range)) => {
                let block_bytes = context.volume(work.volume).map_or(0, |volume| volume.block_bytes);
                work.payload = context.buffer(range.blocks as usize * block_bytes as usize);
                self.range(number, operation, range, Payload::None, context);
            }
            None => {
                // Without it nothing is known to be on the medium.
                work.copying = None;
                work.kind = Kind::Other { flush: false };
                self.part(number, Operation::Flush, 0, 0, Payload::None, context);
            }
        }
    }

    /// The host wants the command back: gives up what the enclosure has of it. Returns whether the command stops before its
    /// end all the same if that comes too late.
    pub(super) fn give_up(&mut self, place: usize, tag: Tag, context: &mut Context<'_>) -> bool {
        let is_it = |command: &under_way::Command<Work>| (command.place, command.work.tag) == (Some(place), tag);
        let found = self.under_way.iter().find(|(_, command)| is_it(command)).map(|(number, _)| number);
        let Some((number, work)) = found.and_then(|number| Some((number, self.work(number)?))) else { return false };
        give_up_parts(number, work, context);
        let Some(copying) = &mut work.copying else { return false };
        copying.is_unwanted = true;
        true
    }

    /// The connection at `place` is closed: no host waits for its commands any more.
    pub(super) fn abandon(&mut self, place: usize, context: &mut Context<'_>) {
        let is_it = |command: &under_way::Command<Work>| command.place == Some(place) && command.work.second.is_some();
        let claims: Vec<usize> =
            self.under_way.iter().filter(|(_, command)| is_it(command)).map(|(number, _)| number).collect();
        let abandoned = self.under_way.abandon(place);
        self.to_release.extend(claims.into_iter().filter(|&number| self.under_way.get(number).is_none()));
        // Those between two steps are over.
        self.fences.look_again();
        for number in abandoned {
            match self.under_way.get(number) {
                // Its zones are empty to other hosts already, and what they write there waits for it.
                Some(command) if command.work.resets() && !self.away.contains(&command.work.volume) => {
                    self.under_way.let_be(number);
                }
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

/// Numbers of the requests of a command.
fn tags_of(number: usize) -> Range<u64> {
    let first = number as u64 * PARTS;
    first..first + PARTS
}

/// Some may have been answered: giving those up does nothing.
fn give_up_parts(number: usize, work: &Work, context: &mut Context<'_>) {
    (0..u64::from(work.asked)).for_each(|part| context.give_up(number as u64 * PARTS + part));
}

impl Copying {
    /// The next request; `None` once all is copied.
    fn next(&self) -> Option<(Operation, BlockRange)> {
        let &range = self.ranges.get(self.at)?;
        Some(if self.is_read {
            (Operation::Write, BlockRange { lba: self.to, ..range })
        } else {
            (Operation::Read, range)
        })
    }

    /// That request is done.
    fn advance(&mut self) {
        if let (Some(range), true) = (self.ranges.get(self.at), self.is_read) {
            self.done += u64::from(range.blocks);
            self.to += u64::from(range.blocks);
            self.at += 1;
        }
        self.is_read = !self.is_read;
    }
}

impl Work {
    /// Whether it resets zones.
    fn resets(&self) -> bool {
        self.span.as_deref().is_some_and(Span::resets)
    }

    /// A step has succeeded: whether another one follows. A Copy that the host wants back follows with its failure.
    fn goes_on(&mut self) -> bool {
        if let Some(copying) = &mut self.copying {
            copying.advance();
            if copying.next().is_some() {
                if copying.is_unwanted {
                    self.status = Status::ABORT_REQUESTED;
                }
                return !copying.is_unwanted;
            }
        }
        if let Some(second) = &mut self.second
            && second.follows()
        {
            self.kind = Kind::Other { flush: second.flush };
            self.payload = std::mem::take(&mut second.payload);
            self.guarded = second.guarded.take();
            self.metadata.clear();
            return true;
        }
        self.kind == Kind::Other { flush: true }
    }

    /// Takes what a read has found.
    fn take(&mut self, data: &Data<'_>) {
        if let Some(guarded) = self.guarded.take() {
            let taken = self.take_guarded(&guarded, data);
            self.note(taken);
            self.guarded = Some(guarded);
            return;
        }
        match self.kind {
            _ if self.copying.is_some() => data.copy_to(&mut self.payload),
            Kind::Read => data.copy_to(&mut self.payload),
            Kind::Compare => self.compare(data),
            Kind::Verify | Kind::Other { .. } => {}
        }
    }

    /// Takes what a read of blocks with metadata has found.
    ///
    /// Errors: a block that is not as it should be.
    fn take_guarded(&mut self, guarded: &Guarded, data: &Data<'_>) -> Result<(), Mismatch> {
        if let Some(copying) = &self.copying {
            // Of a step that wrote nothing comes back.
            if let (Some(source), false) = (copying.sources.get(copying.at), copying.is_read) {
                self.metadata = source.found(data)?;
                data.copy_to(&mut self.payload);
            }
            return Ok(());
        }
        match self.kind {
            Kind::Read => guarded.copy_to(data, &mut self.payload)?,
            Kind::Verify => drop(guarded.found(data)?),
            Kind::Compare => {
                self.compare(data);
                if !guarded.equals(data, &self.metadata)? {
                    self.status = Status::COMPARE_FAILURE;
                }
            }
            Kind::Other { .. } => {}
        }
        Ok(())
    }

    fn note(&mut self, done: Result<(), Mismatch>) {
        if let Err(Mismatch { status, block }) = done {
            (self.status, self.failed_at) = (status, Some(block));
        }
    }

    /// Takes the metadata out of what the host has sent, where blocks have some; returns whether the command goes on.
    fn takes_metadata_out(&mut self) -> bool {
        let Some(guarded) = self.guarded.as_deref() else { return true };
        let taken = guarded.take_out(&mut self.payload);
        let done = taken.map(|metadata| self.metadata = metadata);
        self.note(done);
        self.status.is_success()
    }

    /// The metadata of what a Copy has read becomes that of `range`; returns whether the command goes on.
    fn takes_over_metadata(&mut self, range: BlockRange) -> bool {
        let (Some(guarded), Some(copying)) = (self.guarded.as_deref(), &self.copying) else { return true };
        let target = guarded.of_target(copying.done, range.lba);
        let taken = target.copied(&self.payload, std::mem::take(&mut self.metadata));
        let done = taken.map(|metadata| self.metadata = metadata);
        self.note(done);
        self.status.is_success()
    }

    fn compare(&mut self, data: &Data<'_>) {
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
}
