//! One connection: its stream of PDUs, its queue, and the commands on it.

use super::answer::Answer;
use super::config::Subsystem;
use super::controller::Controller;
use super::dialogue::Dialogue;
use super::directory::{Target, leave_queue};
use super::effects::{CloseReason, Command, Effects, Room, SessionId};
use super::fused::{self, Fusion};
use super::slots::{Slot, Slots, Tag, Work, direction_of};
use super::zoned::{Admitted, admit, admit_half, for_backend};
use crate::tls::Channel;
use flashyard_nvme::log::ErrorEntry;
use flashyard_nvme::nvm::{Direction, NvmCommand};
use flashyard_nvme::reservation::ReservationCommand;
use flashyard_nvme::sgl::Sgl;
use flashyard_nvme::tcp::{
    ADMIN_CAPSULE_DATA_BYTES, Alignment, DataDigest, DataHeader, Digests, Event, FatalError, FatalStatus, Framer,
    Initialize, Role, capsule_response, data_to_host, initialize_response, termination,
};
use flashyard_nvme::{Cqe, Sqe, Status};
use flashyard_units::SimTime;
use std::collections::VecDeque;
use std::net::IpAddr;
use zerocopy::little_endian::{U16, U32};

/// One connection of a host, as a machine: bytes in, bytes and commands out.
#[derive(Debug)]
pub struct Session {
    pub(super) id: SessionId,
    pub(super) port: u16,
    /// Addresses of this end and of the host's, where they are known.
    pub(super) local: Option<IpAddr>,
    pub(super) host_address: Option<IpAddr>,
    /// The two ends that the key of its TLS is for, if it has that.
    pub(super) channel: Option<Channel>,
    framer: Framer,
    phase: Phase,
    pub(super) digests: Digests,
    /// Alignment of data that the host wants.
    alignment: Alignment,
    /// R2Ts of a command outstanding at once.
    pub(super) transfers_outstanding: u32,
    pub(super) queue: Queue,
    pub(super) slots: Slots,
    fusion: Fusion,
    /// Abort commands about commands of this connection that are not settled.
    pub(super) aborts_open: usize,
    /// Commands at the backend that a host waits for which has preempted this one.
    pub(super) fenced: usize,
    /// The Disconnect whose answer waits for the end of all other commands of the queue.
    leaving: Option<u16>,
    pub(super) sink: Sink,
    /// Data of writes that has been asked for and is not complete, in bytes; what may be asked for beside it; and the
    /// commands whose data has to wait for that.
    pub(super) granted: usize,
    pub(super) to_grant: usize,
    pub(super) ungranted: VecDeque<Tag>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing has come.
    Start,
    /// ICReq and ICResp are exchanged.
    Open,
    /// Given up: nothing is taken or sent any more.
    Closed,
}

/// Where the data of the current PDU goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    Discard,
    Slot(Tag),
}

/// The queue that a connection stands for, once Connect has succeeded.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) kind: QueueKind,
    /// Place and serial number of the controller.
    pub(super) controller: (usize, u64),
    /// Entries of the submission queue.
    pub(super) entries: u32,
    /// Its head: completed commands, modulo entries.
    head: u32,
    pub(super) has_flow_control: bool,
    /// Authentication that has not succeeded; `None` where none is needed.
    pub(super) dialogue: Option<Box<Dialogue>>,
}

/// Which queue a connection stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueKind {
    Unconnected,
    Admin,
    Io(u16),
}

/// The connection is protected by a key that is for these two ends: no other host may connect over it, and to no other subsystem.
pub fn secure(session: &mut Session, channel: Channel) {
    session.channel = Some(channel);
}

/// Entries before Connect: room for Connect itself.
const ENTRIES_UNCONNECTED: u32 = 1;

impl Session {
    /// A connection that has just been accepted on the port with identifier `port`.
    pub fn new(target: &mut Target, port: u16) -> Self {
        let limits = &target.config.limits;
        let data_max = limits.data_pdu_bytes.max(limits.capsule_data_bytes).max(ADMIN_CAPSULE_DATA_BYTES);
        Self {
            framer: Framer::new(Role::Controller, data_max),
            phase: Phase::Start,
            digests: Digests::default(),
            alignment: Alignment::default(),
            transfers_outstanding: 1,
            queue: Queue {
                kind: QueueKind::Unconnected,
                controller: (0, 0),
                entries: ENTRIES_UNCONNECTED,
                head: 0,
                has_flow_control: true,
                dialogue: None,
            },
            slots: Slots::default(),
            fusion: Fusion::default(),
            aborts_open: 0,
            fenced: 0,
            leaving: None,
            sink: Sink::Discard,
            granted: 0,
            to_grant: usize::MAX,
            ungranted: VecDeque::new(),
            id: target.new_session(),
            port,
            local: None,
            host_address: None,
            channel: None,
        }
    }

    /// Sets the two ends of the connection: `local` is the address by which the host has come, and discovery names it
    /// for ports that listen on every address; hosts of one address give way to each other where they fill a limit.
    #[must_use]
    pub fn between(mut self, local: IpAddr, host: IpAddr) -> Self {
        (self.local, self.host_address) = (Some(local.to_canonical()), Some(host.to_canonical()));
        self
    }

    /// The name of this connection in [`Target::take_wakes`].
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Commands that are not finished, at the backend or waiting for data.
    pub fn commands_outstanding(&self) -> usize {
        self.slots.len()
    }

    /// Whether this is a queue of a controller, and its host has proved who it is where it has to.
    pub fn is_live(&self) -> bool {
        self.queue.kind != QueueKind::Unconnected && self.queue.dialogue.is_none()
    }

    /// Takes as many of `bytes`, which arrived at `now`, as there is room for; returns their number. The others are to
    /// be handed in again, before anything else.
    pub fn receive_within(
        &mut self,
        target: &mut Target,
        now: SimTime,
        bytes: &[u8],
        room: Room,
        effects: &mut Effects,
    ) -> usize {
        self.to_grant = room.transfers;
        self.grant(target, effects);
        let mut input = bytes;
        let mut is_heard = false;
        while self.phase != Phase::Closed && effects.output.pending_bytes() <= room.unsent {
            let outcome = match self.framer.next(&mut input) {
                Ok(None) => break,
                Ok(Some(event)) => {
                    is_heard |= matches!(event, Event::Command { .. } | Event::End { .. });
                    self.on_event(target, now, event, effects)
                }
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                self.give_up(error, effects);
            }
        }
        if self.phase == Phase::Closed {
            input = &[];
        }
        // Only whole commands and whole data keep a controller alive, and only those of its host.
        if is_heard
            && self.queue.dialogue.is_none()
            && let Some(controller) = self.controller(target)
        {
            controller.heard = now;
        }
        go_if_idle(self, target, effects);
        bytes.len() - input.len()
    }

    /// Takes `bytes` that arrived at `now`.
    ///
    /// A host that breaks the protocol gets a termination, and `effects.close` is set; nothing is taken afterwards.
    pub fn receive(&mut self, target: &mut Target, now: SimTime, bytes: &[u8], effects: &mut Effects) {
        self.receive_within(target, now, bytes, Room::UNLIMITED, effects);
    }

    /// The backend is going to fail the command `tag` because of the block `lba`: the error log will name it in place of
    /// the command's first one. A tag that is not outstanding is ignored.
    pub fn fails_at(&mut self, tag: Tag, lba: u64) {
        if let Some(slot) = self.slots.get_mut(tag) {
            slot.failed_at = Some(lba);
        }
    }

    /// The backend is going to fail the Copy `tag` with its source range `range`, counted from zero, and has copied those
    /// before it: the completion will say so. A tag that is not outstanding is ignored.
    pub fn stops_at_range(&mut self, tag: Tag, range: u32) {
        if let Some(slot) = self.slots.get_mut(tag) {
            slot.result = range.into();
        }
    }

    /// The backend has finished the command `tag` at `now`. `payload` is the buffer that came with the command, or
    /// another one; after a successful read it holds the data. A tag that is not outstanding is ignored.
    pub fn complete(&mut self, target: &mut Target, tag: Tag, status: Status, payload: Vec<u8>, effects: &mut Effects) {
        end_at_backend(self, target, tag, status, payload, effects);
        go_if_idle(self, target, effects);
    }

    /// Sends what other connections or the target have caused: asynchronous events, or the end of the controller.
    pub fn poll(&mut self, target: &mut Target, effects: &mut Effects) {
        if self.phase == Phase::Closed || self.queue.kind == QueueKind::Unconnected {
            return;
        }
        if self.is_orphan(target) {
            self.phase = Phase::Closed;
            effects.close = Some(CloseReason::ControllerEnded);
            return;
        }
        self.hear_of_aborts(target, effects);
        self.send_events(target, effects);
        go_if_idle(self, target, effects);
    }

    /// The connection is gone. An admin queue takes its controller with it.
    pub fn closed(&mut self, target: &mut Target) {
        self.phase = Phase::Closed;
        self.leave(target);
    }

    /// Gives the queue of this connection back to its controller.
    pub(super) fn leave(&mut self, target: &mut Target) {
        match self.queue.kind {
            QueueKind::Admin if self.controller(target).is_some() => target.end_controller(self.queue.controller.0),
            QueueKind::Io(_) => {
                self.give_up_aborts(target);
                leave_queue(target, self.queue.controller.0, self.id);
            }
            _ => {}
        }
        self.queue.kind = QueueKind::Unconnected;
        self.leaving = None;
        self.slots.forget_deferred();
    }

    /// The controller of this connection, unless it has ended.
    pub(super) fn controller<'a>(&self, target: &'a mut Target) -> Option<&'a mut Controller> {
        if self.queue.kind == QueueKind::Unconnected {
            return None;
        }
        target.controller(self.queue.controller)
    }

    /// Whether its controller has ended, and it has not.
    fn is_orphan(&self, target: &mut Target) -> bool {
        self.queue.kind != QueueKind::Unconnected && self.controller(target).is_none()
    }

    fn on_event(
        &mut self,
        target: &mut Target,
        now: SimTime,
        event: Event<'_>,
        effects: &mut Effects,
    ) -> Result<(), FatalError> {
        match (self.phase, event) {
            (Phase::Start, Event::Initialize(request)) => self.initialize(target, &request, effects),
            (Phase::Open, Event::Command { sqe, data_len }) => self.on_command(target, now, sqe, data_len, effects),
            (Phase::Open, Event::DataBegins { header, .. }) => self.on_data_header(&header),
            (Phase::Open, Event::Data(data)) => {
                self.on_data(data);
                Ok(())
            }
            (Phase::Open, Event::End { is_intact }) => {
                self.on_data_end(target, now, is_intact, effects);
                Ok(())
            }
            (_, Event::Terminated(body)) => {
                self.phase = Phase::Closed;
                effects.close = Some(CloseReason::HostTerminated(FatalStatus::from_number(body.status.get())));
                Ok(())
            }
            _ => Err(FatalError::SEQUENCE),
        }
    }

    fn initialize(&mut self, target: &Target, request: &Initialize, effects: &mut Effects) -> Result<(), FatalError> {
        if request.version != U16::ZERO {
            return Err(FatalError { status: FatalStatus::UnsupportedParameter, information: 8 });
        }
        self.alignment = Alignment::from_field(request.alignment).ok_or(FatalError::field(10))?;
        let limits = &target.config.limits;
        self.digests = Digests::from_byte(request.digests).and(limits.digests);
        self.transfers_outstanding = limits.transfers_outstanding.min(request.limit.get().saturating_add(1));
        // Data to the controller needs no alignment here beyond the four bytes that all data has.
        let alignment = Alignment::default();
        effects.output.header(|out| initialize_response(out, alignment, self.digests, limits.data_pdu_bytes));
        self.framer.agree(self.digests, alignment);
        self.phase = Phase::Open;
        Ok(())
    }

    /// Decides what to do with a command, and does it unless its data has to come first.
    fn on_command(
        &mut self,
        target: &mut Target,
        now: SimTime,
        mut sqe: Sqe,
        data_len: u32,
        effects: &mut Effects,
    ) -> Result<(), FatalError> {
        self.sink = Sink::Discard;
        if self.slots.len() as u32 >= self.queue.entries {
            // The host has overrun the queue that it asked for.
            return Err(FatalError::SEQUENCE);
        }
        let command_id = sqe.command_id.get();
        if self.is_orphan(target) {
            self.respond(command_id, Answer { status: Status::CONTROLLER_PATHING, result: 0 }, effects);
            self.phase = Phase::Closed;
            effects.close = Some(CloseReason::ControllerEnded);
            return Ok(());
        }
        if self.leaving.is_some() {
            let status = Status::ABORTED_SQ_DELETION.do_not_retry();
            self.respond(command_id, Answer { status, result: 0 }, effects);
            return Ok(());
        }
        let mut role = None;
        if matches!(self.queue.kind, QueueKind::Io(_)) && (sqe.flags & fused::BITS != 0 || self.fusion.waits()) {
            let can = is_of_blocks(&sqe) && can_fuse(self, target, sqe.nsid.get());
            let (entered, ended) = self.fusion.enter(&mut self.slots, &mut sqe, can);
            ended.into_iter().for_each(|(tag, status)| self.refuse(tag, status, effects));
            match entered {
                Ok(found) => role = found,
                Err(status) => {
                    self.respond(command_id, Answer { status, result: 0 }, effects);
                    return Ok(());
                }
            }
        }
        let planned = match self.queue.kind {
            QueueKind::Io(_) if is_of_blocks(&sqe) => self.plan_nvm(target, &sqe),
            _ => self.plan_here(target, &sqe),
        };
        let planned = planned.and_then(|plan| plan.check_capsule(self.capsule_limit(target), data_len));
        let nsid = sqe.nsid.get();
        let planned = planned.and_then(|plan| self.fusion.check(&mut self.slots, role, nsid, &plan).map(|()| plan));
        let slot = match planned {
            Err(status) => {
                let ended = self.fusion.note_refused(&mut self.slots, role);
                ended.into_iter().for_each(|(tag, status)| self.refuse(tag, status, effects));
                self.respond(command_id, Answer { status, result: 0 }, effects);
                return Ok(());
            }
            Ok(plan) => Slot {
                command_id,
                nsid: sqe.nsid.get(),
                edition: plan.edition,
                work: plan.work,
                protection: plan.protection,
                payload: effects.output.take(),
                expected: plan.len,
                requested: 0,
                failure: None,
                is_granted: false,
                is_submitted: false,
                is_fenced: false,
                failed_at: None,
                half: None,
                result: 0,
            },
        };
        let awaits_data = match slot.work {
            Work::Nvm(operation) => operation.direction() == Direction::ToController,
            Work::Here(sqe) => direction_of(&sqe) == Direction::ToController,
        } && slot.expected > 0;
        let tag = self.slots.insert(slot);
        if let Some(role) = role {
            self.fusion.note_taken(&mut self.slots, role, tag);
        }
        if !awaits_data {
            self.execute(target, now, tag, effects);
        } else if data_len > 0 {
            self.reserve(tag, data_len);
            self.sink = Sink::Slot(tag);
        } else {
            self.begin_transfer(target, tag, effects);
        }
        Ok(())
    }

    /// Most data that a capsule may carry on this queue.
    fn capsule_limit(&self, target: &Target) -> u32 {
        match self.queue.kind {
            QueueKind::Io(_) => target.config.limits.capsule_data_bytes,
            _ => ADMIN_CAPSULE_DATA_BYTES,
        }
    }

    fn reserve(&mut self, tag: Tag, requested: u32) {
        if let Some(slot) = self.slots.get_mut(tag) {
            slot.payload.reserve(slot.expected as usize);
            slot.requested = requested;
        }
    }

    /// The data of a command is complete, or it has none.
    pub(super) fn execute(&mut self, target: &mut Target, now: SimTime, tag: Tag, effects: &mut Effects) {
        let Some(slot) = self.slots.get_mut(tag) else { return };
        if slot.half.is_some() {
            if let Some(both) = fused::note_ready(&mut self.slots, tag) {
                execute_both(self, target, both, effects);
            }
            return;
        }
        let failure = slot.failure;
        if let (Work::Nvm(operation), None) = (slot.work, failure) {
            slot.is_submitted = true;
            let mut payload = std::mem::take(&mut slot.payload);
            let (nsid, edition) = (slot.nsid, slot.edition);
            let subsystem = self.controller(target).and_then(|controller| controller.subsystem).unwrap_or(0);
            match admit(target, self.queue.controller, (nsid, edition), operation, &mut payload) {
                Ok(Admitted::Backend { operation, held_bytes, result }) => {
                    let Some(slot) = self.slots.get_mut(tag) else { return };
                    slot.result = result;
                    effects.commands.push(for_backend(slot, tag, subsystem, (operation, held_bytes), payload));
                }
                Ok(Admitted::Done) => self.complete(target, tag, Status::SUCCESS, payload, effects),
                Err(status) => {
                    effects.output.give(payload);
                    self.refuse(tag, status, effects);
                }
            }
            return;
        }
        let Some(mut slot) = self.slots.remove(tag) else { return };
        match (slot.work, failure) {
            (Work::Here(sqe), None) => {
                let mut reply = effects.output.take();
                let answer = self.answer(target, now, &sqe, &slot.payload, &mut reply);
                effects.output.give(slot.payload);
                self.finish(target, &sqe, answer, reply, effects);
            }
            (_, failure) => {
                effects.output.give(std::mem::take(&mut slot.payload));
                let status = failure.unwrap_or(Status::INTERNAL);
                let status = self.note_end(target, &slot, status);
                self.respond(slot.command_id, Answer { status, result: 0 }, effects);
            }
        }
    }

    /// Answers a command that the backend does not hear of.
    fn refuse(&mut self, tag: Tag, status: Status, effects: &mut Effects) {
        if let Some(slot) = self.slots.remove(tag) {
            effects.output.give(slot.payload);
            self.respond(slot.command_id, Answer { status, result: 0 }, effects);
        }
    }

    /// Sends the answer to a command that the backend does not see; `None`: the answer comes later.
    fn finish(
        &mut self,
        target: &mut Target,
        sqe: &Sqe,
        answer: Option<Answer>,
        mut reply: Vec<u8>,
        effects: &mut Effects,
    ) {
        let Some(answer) = answer else {
            effects.output.give(reply);
            self.slots.defer();
            self.send_events(target, effects);
            return;
        };
        let room = Sgl::decode(&sqe.data).map_or(0, Sgl::len_bytes) as usize;
        let command_id = sqe.command_id.get();
        if answer.status.is_success() && direction_of(sqe) == Direction::ToHost && room > 0 {
            reply.resize(room, 0);
            self.send_data(command_id, reply, false, effects);
        } else {
            effects.output.give(reply);
        }
        self.respond(command_id, answer, effects);
        if self.queue.dialogue.as_ref().is_some_and(|dialogue| dialogue.has_failed()) {
            self.phase = Phase::Closed;
            effects.close = Some(CloseReason::AuthenticationFailed);
        }
        self.send_events(target, effects);
    }

    /// Completes event requests as far as there are events, and other admin commands that have waited.
    fn send_events(&mut self, target: &mut Target, effects: &mut Effects) {
        while let Some((command_id, answer)) = self.next_answer(target) {
            self.slots.end_deferred();
            self.respond(command_id, answer, effects);
        }
        while let Some((command_id, event)) = self.next_event(target) {
            self.slots.end_deferred();
            self.respond(command_id, Answer::result(u64::from(event.encode())), effects);
        }
    }

    fn next_answer(&self, target: &mut Target) -> Option<(u16, Answer)> {
        if self.queue.kind != QueueKind::Admin {
            return None;
        }
        self.controller(target)?.answers.pop_front()
    }

    fn next_event(&self, target: &mut Target) -> Option<(u16, flashyard_nvme::event::AsyncEvent)> {
        if self.queue.kind != QueueKind::Admin {
            return None;
        }
        self.controller(target)?.next_event()
    }

    fn send_data(&mut self, command_id: u16, payload: Vec<u8>, success: bool, effects: &mut Effects) {
        let header = DataHeader {
            command_id: U16::new(command_id),
            transfer_tag: U16::ZERO,
            offset: U32::ZERO,
            len: U32::new(payload.len() as u32),
            reserved: U32::ZERO,
        };
        if success {
            self.advance_head();
        }
        let digest = (self.digests.data && !payload.is_empty()).then(|| DataDigest::of(&payload));
        effects.output.header(|out| data_to_host(out, header, success, self.digests, self.alignment));
        effects.output.payload(payload);
        if let Some(digest) = digest {
            effects.output.header(|out| out.extend_from_slice(&digest));
        }
    }

    pub(super) fn respond(&mut self, command_id: u16, answer: Answer, effects: &mut Effects) {
        self.advance_head();
        let head = if self.queue.has_flow_control { self.queue.head as u16 } else { u16::MAX };
        let cqe = Cqe::new(command_id, answer.status, answer.result, head);
        effects.output.header(|out| capsule_response(out, &cqe, self.digests));
    }

    fn advance_head(&mut self) {
        self.queue.head = (self.queue.head + 1) % self.queue.entries.max(1);
    }

    fn log_error(&self, target: &mut Target, slot: &Slot, status: Status) {
        let QueueKind::Io(queue_id) = self.queue.kind else { return };
        let lba = match slot.work {
            Work::Nvm(operation) => slot.failed_at.or(operation.range().map(|range| range.lba)).unwrap_or(0),
            Work::Here(_) => 0,
        };
        if let Some(controller) = self.controller(target) {
            let place = controller.subsystem;
            controller.log_error(ErrorEntry {
                sq_id: U16::new(queue_id),
                command_id: U16::new(slot.command_id),
                status: U16::new(status.bits() << 1),
                parameter: U16::new(u16::MAX),
                lba: lba.into(),
                nsid: slot.nsid.into(),
                transport: 3,
                ..ErrorEntry::default()
            });
            if let Some(place) = place {
                target.errors[place] += 1;
            }
        }
    }

    fn give_up(&mut self, error: FatalError, effects: &mut Effects) {
        self.phase = Phase::Closed;
        let header = self.framer.latest_header();
        effects.output.header(|out| termination(out, false, error.status, error.information, header));
        effects.close = Some(CloseReason::ProtocolViolated(error));
    }
}

/// The host gives its I/O queue back: the queue takes nothing more, and the answer goes behind those to the commands that it has taken.
/// Until then they are the queue's: a host that preempts this one waits for them.
///
/// Source: \[P\] NVM Express Base 2.0, section 6.4: the completion of Disconnect is the last one of its queue.
pub(super) fn leave_when_idle(session: &mut Session, target: &mut Target, command_id: u16) -> Option<Answer> {
    if session.slots.len() > 0 {
        session.leaving = Some(command_id);
        return None;
    }
    session.leave(target);
    Some(Answer::SUCCESS)
}

/// The backend has finished a command: its answer goes.
fn end_at_backend(
    session: &mut Session,
    target: &mut Target,
    tag: Tag,
    status: Status,
    payload: Vec<u8>,
    effects: &mut Effects,
) {
    let finished = session.slots.remove(tag);
    let Some((slot, Work::Nvm(operation))) = finished.map(|slot| (slot.work, slot)).map(|(w, s)| (s, w)) else {
        effects.output.give(payload);
        return;
    };
    if session.phase == Phase::Closed {
        effects.output.give(payload);
        return;
    }
    let is_read = operation.direction() == Direction::ToHost;
    let status = match is_read && status.is_success() && payload.len() != slot.expected as usize {
        true => Status::INTERNAL,
        false => status,
    };
    if !status.is_success() {
        session.log_error(target, &slot, status);
    }
    let status = session.note_end(target, &slot, status);
    if is_read && status.is_success() {
        session.send_data(slot.command_id, payload, !session.queue.has_flow_control, effects);
        if !session.queue.has_flow_control {
            return;
        }
    } else {
        effects.output.give(payload);
    }
    let has_result = status.is_success() == matches!(operation, NvmCommand::ZoneAppend { .. });
    let result = if has_result { slot.result } else { 0 };
    session.respond(slot.command_id, Answer { status, result }, effects);
}

/// Answers a Disconnect that has waited, if there is one and no other command is left.
fn go_if_idle(session: &mut Session, target: &mut Target, effects: &mut Effects) {
    if session.phase == Phase::Open
        && session.slots.len() == 1
        && let Some(command_id) = session.leaving
    {
        session.leave(target);
        session.respond(command_id, Answer::SUCCESS, effects);
    }
}

/// The controller of a connection, unless it has ended, to look at.
pub(super) fn controller_of<'a>(session: &Session, target: &'a Target) -> Option<&'a Controller> {
    let (index, serial) = session.queue.controller;
    let found = target.controllers.get(index).and_then(Option::as_ref);
    found.filter(|found| session.queue.kind != QueueKind::Unconnected && found.serial == serial)
}

/// Whether commands of a namespace can be fused. Zones are written behind a pointer, where nothing is to be compared.
fn can_fuse(session: &Session, target: &mut Target, nsid: u32) -> bool {
    let place = session.controller(target).and_then(|controller| controller.subsystem);
    let subsystem = place.map(|place| &target.config.subsystems[place]);
    let has_zones = |it: &Subsystem| it.namespace(nsid).is_some_and(|namespace| namespace.zones.is_some());
    subsystem.is_some_and(|subsystem| subsystem.abilities.fused && !has_zones(subsystem))
}

/// The data of both halves of a fused operation is complete: the backend gets both, or neither.
fn execute_both(session: &mut Session, target: &mut Target, both: [Tag; 2], effects: &mut Effects) {
    let (key, place) =
        (session.queue.controller, session.controller(target).and_then(|controller| controller.subsystem));
    let halves = both.map(|tag| admit_half(target, key, place.unwrap_or(0), session.slots.get_mut(tag), tag));
    match halves {
        [Ok(compare), Ok(write)] => {
            for tag in both {
                session.slots.get_mut(tag).into_iter().for_each(|slot| slot.is_submitted = true);
            }
            effects.commands.push(Command { second: Some(Box::new(write)), ..compare });
        }
        halves => {
            for (tag, half) in both.into_iter().zip(halves) {
                let status = half.map_or_else(
                    |status| status,
                    |half| {
                        effects.output.give(half.payload);
                        Status::ABORTED_FUSED_FAILED.do_not_retry()
                    },
                );
                session.refuse(tag, status, effects);
            }
        }
    }
}

/// Whether a command of an I/O queue is for the backend, and not answered here.
fn is_of_blocks(sqe: &Sqe) -> bool {
    sqe.opcode != Sqe::FABRICS && !ReservationCommand::is_opcode(sqe.opcode)
}
