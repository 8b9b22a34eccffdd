//! A host that sends whatever a test asks it to send, right or wrong.

use crate::world::{HOST, NQN, drain};
use flashyard_nvme::auth::Message;
use flashyard_nvme::fabrics::{
    Authentication, CONTROLLER_DYNAMIC, Connect, ConnectData, FabricsCommand, SECURITY_PROTOCOL_NVME,
};
use flashyard_nvme::property::Property;
use flashyard_nvme::sgl::Sgl;
use flashyard_nvme::tcp::{Alignment, Digests, Event, Framer, Role, capsule_command, initialize_request};
use flashyard_nvme::{Sqe, Status};
use flashyard_nvmf::target::{Effects, Session, Target};
use flashyard_units::SimTime;
use std::net::IpAddr;
use zerocopy::IntoBytes;

const PLAIN: Digests = Digests { header: false, data: false };

/// Room for messages of an authentication.
pub(crate) const ROOM: u32 = 4096;

/// Outcome of a command.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: Status,
    pub(crate) result: u64,
    pub(crate) data: Vec<u8>,
}

/// One connection.
pub(crate) struct Raw {
    pub(crate) session: Session,
    pub(crate) effects: Effects,
    framer: Framer,
    pub(crate) now: SimTime,
}

impl Raw {
    /// A connection through port 1 that is initialized.
    pub(crate) fn new(target: &mut Target, now: SimTime) -> Self {
        let session = Session::new(target, 1);
        Self::of(session, target, now)
    }

    /// Like [`Raw::new`], from `host` to `local`.
    pub(crate) fn from(target: &mut Target, now: SimTime, local: IpAddr, host: IpAddr) -> Self {
        let session = Session::new(target, 1).between(local, host);
        Self::of(session, target, now)
    }

    fn of(session: Session, target: &mut Target, now: SimTime) -> Self {
        let mut raw = Self { session, effects: Effects::default(), framer: Framer::new(Role::Host, 1 << 20), now };
        let mut bytes = Vec::new();
        initialize_request(&mut bytes, Alignment::default(), PLAIN, 1);
        raw.session.receive(target, now, &bytes, &mut raw.effects);
        let sent = drain(&mut raw.effects.output, usize::MAX);
        let event = raw.framer.next(&mut &sent[..]).expect("the target keeps to the protocol");
        assert!(matches!(event, Some(Event::Initialize(_))));
        raw.framer.agree(PLAIN, Alignment::default());
        raw
    }

    /// Sends an entry with data in its capsule, or with room for data to come; the reply, if there is one.
    pub(crate) fn ask(&mut self, target: &mut Target, mut sqe: Sqe, data: &[u8], room: u32) -> Option<Reply> {
        sqe.data = match (data.len() as u32, room) {
            (0, 0) => Sgl::None,
            (0, len) => Sgl::Transport { len },
            (len, _) => Sgl::InCapsule { offset: 0, len },
        }
        .encode();
        let mut bytes = Vec::new();
        capsule_command(&mut bytes, &sqe, data.len(), PLAIN, Alignment::default());
        bytes.extend_from_slice(data);
        self.session.receive(target, self.now, &bytes, &mut self.effects);
        assert!(self.effects.commands.is_empty(), "the backend is to hear of nothing");
        self.reply()
    }

    /// The reply that the target has sent.
    pub(crate) fn reply(&mut self) -> Option<Reply> {
        let sent = drain(&mut self.effects.output, usize::MAX);
        let (mut input, mut data) = (&sent[..], Vec::new());
        while let Some(event) = self.framer.next(&mut input).expect("the target keeps to the protocol") {
            match event {
                Event::Data(bytes) => data.extend_from_slice(bytes),
                Event::Response(cqe) => return Some(Reply { status: cqe.status(), result: cqe.result.get(), data }),
                _ => {}
            }
        }
        None
    }

    /// Connects queue `queue`: of a new controller, or of controller `controller`.
    pub(crate) fn connect(&mut self, target: &mut Target, queue_id: u16, to: &ConnectTo<'_>) -> Reply {
        let data = ConnectData::new([1; 16], to.controller, to.nqn, to.host);
        let connect =
            Connect { format: 0, queue_id, queue_size: to.entries - 1, disable_flow_control: false, keep_alive_ms: 0 };
        let entry = FabricsCommand::Connect(connect).encode(1);
        self.ask(target, entry, data.as_bytes(), 0).expect("Connect is answered")
    }

    pub(crate) fn fabrics(&mut self, target: &mut Target, command: FabricsCommand) -> Status {
        self.ask(target, command.encode(2), &[], 0).expect("it is answered").status.code()
    }

    /// Enables the controller.
    pub(crate) fn enable(&mut self, target: &mut Target) -> Status {
        // Entries of 2^6 and 2^4 bytes, enabled.
        let value = 0x0046_0001;
        let offset = Property::Configuration.offset();
        self.fabrics(target, FabricsCommand::PropertySet { is_wide: false, offset, value })
    }

    /// A message of an authentication to the target.
    pub(crate) fn tell(&mut self, target: &mut Target, message: &Message) -> Status {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        self.tell_bytes(target, &bytes)
    }

    pub(crate) fn tell_bytes(&mut self, target: &mut Target, bytes: &[u8]) -> Status {
        let send = FabricsCommand::AuthenticationSend(authentication(bytes.len() as u32));
        self.ask(target, send.encode(3), bytes, 0).expect("it is answered").status.code()
    }

    /// A message of an authentication from the target.
    pub(crate) fn hear(&mut self, target: &mut Target) -> Result<Message, Status> {
        let receive = FabricsCommand::AuthenticationReceive(authentication(ROOM));
        let reply = self.ask(target, receive.encode(4), &[], ROOM).expect("it is answered");
        match reply.status.is_success() {
            true => Ok(Message::decode(&reply.data).expect("a message comes")),
            false => Err(reply.status.code()),
        }
    }

    /// Lets the session hear what happened to it.
    pub(crate) fn poll(&mut self, target: &mut Target) {
        self.session.poll(target, &mut self.effects);
    }
}

pub(crate) fn authentication(len_bytes: u32) -> Authentication {
    Authentication { specific: 0x0101, protocol: SECURITY_PROTOCOL_NVME, len_bytes }
}

/// Parameters of a Connect.
pub(crate) struct ConnectTo<'a> {
    pub(crate) nqn: &'a str,
    pub(crate) host: &'a str,
    pub(crate) controller: u16,
    pub(crate) entries: u16,
}

impl Default for ConnectTo<'_> {
    fn default() -> Self {
        Self { nqn: NQN, host: HOST, controller: CONTROLLER_DYNAMIC, entries: 32 }
    }
}
