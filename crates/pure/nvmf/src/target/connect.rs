//! Fabrics commands: Connect, properties, Disconnect.

use super::answer::Answer;
use super::controller::Controller;
use super::dialogue::Dialogue;
use super::directory::{Target, first_namespaces, reset_queues};
use super::effects::Shutdown;
use super::session::{QueueKind, Session, leave_when_idle};
use flashyard_nvme::fabrics::{
    CONTROLLER_DYNAMIC, CONTROLLER_STATIC_ANY, Connect, ConnectData, ConnectParameter, Connected, FabricsCommand,
};
use flashyard_nvme::property::{Capabilities, Property, VERSION_2_0};
use flashyard_nvme::text::DISCOVERY_NQN;
use flashyard_nvme::{Sqe, Status};
use flashyard_units::{SimSpan, SimTime};

/// Entries of an admin queue at most.
const ADMIN_ENTRIES_MAX: u16 = 128;

fn wrong(parameter: ConnectParameter) -> Answer {
    Answer { status: ConnectParameter::STATUS, result: parameter.encode() }
}

/// The controller that an I/O queue names has gone, or its number is another's by now: a host that begins again is right
/// again. Linux gives a controller up for good where the answer forbids it to try.
fn outdated(parameter: ConnectParameter) -> Answer {
    Answer { status: ConnectParameter::STATUS.code(), result: parameter.encode() }
}

impl Session {
    /// Answers an admin or a fabrics command; `None`: the answer comes later.
    pub(super) fn answer(
        &mut self,
        target: &mut Target,
        now: SimTime,
        sqe: &Sqe,
        data: &[u8],
        reply: &mut Vec<u8>,
    ) -> Option<Answer> {
        if sqe.opcode != Sqe::FABRICS {
            return match self.queue.kind {
                QueueKind::Unconnected => Some(Answer::refusal(Status::COMMAND_SEQUENCE)),
                _ if self.queue.dialogue.is_some() => Some(Answer::refusal(Status::AUTHENTICATION_REQUIRED)),
                QueueKind::Io(_) => target.answer_reservation((self.id, self.queue.controller), sqe, data, reply),
                QueueKind::Admin => self.admin(target, now, sqe, data, reply),
            };
        }
        let Ok(command) = FabricsCommand::decode(sqe) else {
            return Some(Answer::refusal(Status::INVALID_OPCODE));
        };
        let is_proved = self.queue.dialogue.is_none();
        if let (QueueKind::Io(_), FabricsCommand::Disconnect { format: 0 }) = (self.queue.kind, &command)
            && is_proved
        {
            return leave_when_idle(self, target, sqe.command_id.get());
        }
        Some(self.fabrics(target, now, command, data, reply))
    }

    fn fabrics(
        &mut self,
        target: &mut Target,
        now: SimTime,
        command: FabricsCommand,
        data: &[u8],
        reply: &mut Vec<u8>,
    ) -> Answer {
        match (self.queue.kind, command) {
            (QueueKind::Unconnected, FabricsCommand::Connect(connect)) => self.connect(target, now, connect, data),
            (QueueKind::Unconnected, _) | (_, FabricsCommand::Connect(_)) => Answer::refusal(Status::COMMAND_SEQUENCE),
            (_, FabricsCommand::AuthenticationSend(message)) => self.authentication_send(target, message, data),
            (_, FabricsCommand::AuthenticationReceive(message)) => self.authentication_receive(target, message, reply),
            _ if self.queue.dialogue.is_some() => Answer::refusal(Status::AUTHENTICATION_REQUIRED),
            (_, FabricsCommand::Disconnect { format: 0 }) => Answer::refusal(Status::INVALID_QUEUE_TYPE),
            (_, FabricsCommand::Disconnect { .. }) => Answer::refusal(Status::CONFLICTING_ATTRIBUTES),
            (QueueKind::Admin, FabricsCommand::PropertyGet { is_wide, offset }) => {
                self.property_get(target, is_wide, offset)
            }
            (QueueKind::Admin, FabricsCommand::PropertySet { is_wide, offset, value }) => {
                self.property_set(target, is_wide, offset, value)
            }
            _ => Answer::refusal(Status::INVALID_OPCODE),
        }
    }

    fn connect(&mut self, target: &mut Target, now: SimTime, connect: Connect, data: &[u8]) -> Answer {
        let Some(data) = ConnectData::decode(data) else {
            return Answer::refusal(Status::INVALID_SGL_DATA_LENGTH);
        };
        if connect.format != 0 {
            return Answer {
                result: u64::from(Connect::FORMAT_OFFSET),
                ..Answer::refusal(Status::CONFLICTING_ATTRIBUTES)
            };
        }
        let limit = match connect.queue_id {
            0 => ADMIN_ENTRIES_MAX.max(target.config.limits.queue_entries),
            _ => target.config.limits.queue_entries,
        };
        if connect.queue_size == 0 || connect.queue_size >= limit {
            return wrong(ConnectParameter::Entry(Connect::QUEUE_SIZE_OFFSET));
        }
        let Ok(host) = data.host() else { return wrong(ConnectParameter::Data(ConnectData::HOST_OFFSET)) };
        let Ok(nqn) = data.subsystem() else { return wrong(ConnectParameter::Data(ConnectData::SUBSYSTEM_OFFSET)) };
        if self.channel.as_ref().is_some_and(|channel| !channel.joins(host, nqn)) {
            return Answer::refusal(Status::CONNECT_INVALID_HOST);
        }
        let connected = match connect.queue_id {
            0 => self.connect_admin(target, now, &connect, data, nqn, host),
            _ => self.connect_io(target, &connect, data, nqn, host),
        };
        match connected {
            Err(answer) => answer,
            Ok(controller_id) => {
                self.queue.entries = u32::from(connect.queue_size) + 1;
                self.queue.has_flow_control = !connect.disable_flow_control;
                self.queue.dialogue = self.dialogue(target, nqn, host);
                let authentication_required = self.queue.dialogue.is_some();
                if !authentication_required {
                    self.take_queue(target);
                }
                Answer::result(Connected { controller_id, authentication_required }.encode())
            }
        }
    }

    /// A new controller for the host. Returns its identifier.
    fn connect_admin(
        &mut self,
        target: &mut Target,
        now: SimTime,
        connect: &Connect,
        data: &ConnectData,
        nqn: &str,
        host: &str,
    ) -> Result<u16, Answer> {
        let wanted = data.controller_id.get();
        let mut is_static = false;
        let subsystem = if nqn == DISCOVERY_NQN {
            None
        } else {
            let found = target.subsystem(nqn, self.port);
            let (index, subsystem) = found.ok_or(wrong(ConnectParameter::Data(ConnectData::SUBSYSTEM_OFFSET)))?;
            subsystem.admits(host).ok_or(Answer::refusal(Status::CONNECT_INVALID_HOST))?;
            if target.is_away(index) {
                return Err(Answer { status: Status::CONTROLLER_BUSY, result: 0 });
            }
            is_static = subsystem.static_controllers;
            Some(index)
        };
        let wanted = match (is_static, wanted) {
            (false, CONTROLLER_DYNAMIC) | (true, CONTROLLER_STATIC_ANY) => None,
            (true, id) if id != CONTROLLER_DYNAMIC => Some(id),
            _ => return Err(wrong(ConnectParameter::Data(ConnectData::CONTROLLER_ID_OFFSET))),
        };
        let mut controller = Controller::new(subsystem, self.port, host, data.host_id, self.id, now);
        controller.serial = target.nonce();
        controller.host_address = self.host_address;
        controller.keep_alive = SimSpan::from_ms(u64::from(connect.keep_alive_ms));
        controller.begin_with(subsystem.map_or(Vec::new(), |subsystem| first_namespaces(target, subsystem, host)));
        let serial = controller.serial;
        let added = target.add_controller(wanted, controller);
        let index = added.ok_or(Answer { status: Status::CONTROLLER_BUSY, result: 0 })?;
        self.queue.kind = QueueKind::Admin;
        self.queue.controller = (index, serial);
        Ok(index as u16 + 1)
    }

    /// An I/O queue of a controller that the host has.
    fn connect_io(
        &mut self,
        target: &mut Target,
        connect: &Connect,
        data: &ConnectData,
        nqn: &str,
        host: &str,
    ) -> Result<u16, Answer> {
        let id = data.controller_id.get();
        let no_controller = outdated(ConnectParameter::Data(ConnectData::CONTROLLER_ID_OFFSET));
        let index = usize::from(id).checked_sub(1).ok_or(no_controller)?;
        let found = target.subsystem(nqn, self.port);
        // A host that may not connect any more gets no further queue either.
        if found.is_some_and(|(_, subsystem)| subsystem.admits(host).is_none()) {
            return Err(Answer::refusal(Status::CONNECT_INVALID_HOST));
        }
        let subsystem = found.map(|(index, _)| index);
        if subsystem.is_some_and(|subsystem| target.is_away(subsystem)) {
            return Err(Answer { status: Status::CONTROLLER_BUSY, result: 0 });
        }
        let most = target.config.limits.io_queues;
        let found = target.controllers.get_mut(index).and_then(Option::as_mut);
        let controller = found.filter(|found| found.subsystem.is_some()).ok_or(no_controller)?;
        if controller.subsystem != subsystem {
            return Err(outdated(ConnectParameter::Data(ConnectData::SUBSYSTEM_OFFSET)));
        }
        if controller.host_nqn != host || controller.host_id != data.host_id {
            return Err(outdated(ConnectParameter::Data(ConnectData::HOST_OFFSET)));
        }
        if !controller.is_ready() {
            return Err(Answer::refusal(Status::COMMAND_SEQUENCE));
        }
        let granted = controller.features.queues.unwrap_or(most);
        if connect.queue_id > granted || controller.has_queue(connect.queue_id) {
            return Err(wrong(ConnectParameter::Entry(Connect::QUEUE_ID_OFFSET)));
        }
        self.queue.kind = QueueKind::Io(connect.queue_id);
        self.queue.controller = (index, controller.serial);
        Ok(id)
    }

    /// Takes the I/O queue of this connection, whose host has proved who it is if it has to. Whether it is still free.
    pub(super) fn take_queue(&self, target: &mut Target) -> bool {
        let QueueKind::Io(queue) = self.queue.kind else { return true };
        match self.controller(target) {
            Some(controller) if !controller.has_queue(queue) => {
                controller.io_sessions.push((queue, self.id));
                true
            }
            _ => false,
        }
    }

    /// The authentication that `host` has to pass, if any.
    fn dialogue(&self, target: &mut Target, nqn: &str, host: &str) -> Option<Box<Dialogue>> {
        let (_, subsystem) = target.subsystem(nqn, self.port)?;
        let known = subsystem.admits(host)??;
        let secret = known.secret.clone()?;
        let controller_secret = known.controller_secret.clone();
        let nonce = target.nonce();
        Some(Box::new(Dialogue::new(secret, controller_secret, nqn, host, &target.config.entropy, nonce)))
    }

    fn property_get(&self, target: &mut Target, is_wide: bool, offset: u32) -> Answer {
        let entries = u32::from(target.config.limits.queue_entries);
        let property = Property::at(offset).filter(|property| property.is_wide() == is_wide);
        let (Some(property), Some(controller)) = (property, self.controller(target)) else {
            return Answer::refusal(Status::INVALID_FIELD);
        };
        let place = controller.subsystem;
        let (is_discovery, configuration) = (place.is_none(), controller.configuration);
        let status = controller.reported_status();
        Answer::result(match property {
            Property::Capabilities => Capabilities {
                queue_entries_max: entries,
                // 15 seconds. A reset ends once the connections of its I/O queues are closed, and one whose host reads nothing more
                // is closed after the time that a server gives it, 10 seconds where nothing else was asked for.
                timeout: 30,
                // Hosts from before discovery controllers without I/O command set want to see one.
                nvm_command_set: true,
                command_sets: place.is_some_and(|place| target.config.subsystems[place].has_zones()),
                admin_only: is_discovery,
            }
            .encode(),
            Property::Version => u64::from(VERSION_2_0),
            Property::Configuration => u64::from(configuration.encode()),
            Property::Status => u64::from(status.encode()),
            Property::SubsystemReset => return Answer::refusal(Status::INVALID_FIELD),
        })
    }

    fn property_set(&mut self, target: &mut Target, is_wide: bool, offset: u32, value: u64) -> Answer {
        let is_right = !is_wide && Property::at(offset) == Some(Property::Configuration);
        match self.controller(target) {
            Some(controller) if is_right => {
                let (configured, subsystem) = (controller.configure(value as u32), controller.subsystem);
                if configured.is_reset {
                    self.queue.controller.1 = reset_queues(target, self.queue.controller.0);
                    self.slots.forget_deferred();
                }
                if let (true, Some(subsystem)) = (configured.shuts_down, subsystem) {
                    target.shutdowns.push(Shutdown { subsystem, controller: self.queue.controller });
                }
                Answer::SUCCESS
            }
            _ => Answer::refusal(Status::INVALID_FIELD),
        }
    }
}
