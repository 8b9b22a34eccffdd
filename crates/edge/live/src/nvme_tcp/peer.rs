//! A host: its connection, and its session at the target.

use crate::budget::Budget;
use crate::connection::{Connection, Listener, Reading, Unsent};
use crate::stream::{Opening, Stream};
use crate::tls::TlsError;
use flashyard_nvme::nvm::NvmCommand;
use flashyard_nvmf::Output;
use flashyard_nvmf::target::{Command, Effects, Room, Session, Target, secure};
use flashyard_units::SimTime;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::ControlFlow;

/// Bytes that a command takes beside its data, here and at the enclosure. [A] An order of magnitude.
const COMMAND_BYTES: usize = 4096;
/// Bytes of the place of a block that is read without being sent.
const PLACE_BYTES: usize = 4;

pub(super) struct Peer {
    pub(super) connection: Connection<Stream>,
    pub(super) session: Session,
    pub(super) effects: Effects,
    pub(super) port: usize,
    /// Commands that there is no room for.
    waiting: VecDeque<Command>,
    /// Bytes of its commands at the enclosure.
    pub(super) under_way: usize,
    /// Bytes of its answers, and of its writes that are not at the enclosure, as the budget has them.
    answers: usize,
    arriving: usize,
    /// Whether its session may be talked to: a handshake of TLS, if there has to be one, is over.
    is_open: bool,
    /// Whether its session was live when it was last read, and whether its end has begun.
    pub(super) was_live: bool,
    pub(super) is_closing: bool,
}

impl Peer {
    pub(super) fn new(mut stream: Stream, target: &mut Target, port: usize) -> Self {
        let socket = stream.socket();
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "small answers may be delayed");
        }
        let session = Session::new(target, port as u16 + 1);
        let session = match (socket.local_addr(), socket.peer_addr()) {
            (Ok(local), Ok(host)) => session.between(local.ip(), host.ip()),
            // The host has gone already, and nothing will be told to it.
            _ => session,
        };
        Self {
            connection: Connection::new(stream),
            session,
            effects: Effects::default(),
            port,
            waiting: VecDeque::new(),
            under_way: 0,
            answers: 0,
            arriving: 0,
            is_open: false,
            was_live: false,
            is_closing: false,
        }
    }

    /// Goes on with the handshake of TLS, if there is one. A host that cannot be let in is closed.
    fn open(&mut self) {
        match self.connection.socket.open() {
            Ok(Opening::Waits) => {}
            Ok(Opening::Done(channel)) => {
                self.is_open = true;
                if let Some(channel) = channel {
                    tracing::debug!(
                        host = channel.host,
                        subsystem = channel.subsystem,
                        "a connection is secured by TLS"
                    );
                    secure(&mut self.session, channel);
                }
            }
            Err(TlsError::Gone) => self.connection.end(),
            Err(refusal) => {
                let host = self.connection.socket.socket().peer_addr().map_or("?".to_owned(), |host| host.to_string());
                tracing::warn!(host, "a connection to a port of TLS is refused: {refusal}");
                self.connection.end();
            }
        }
    }

    /// Hands what the socket has to the session, as far as there is room.
    pub(super) fn read(&mut self, target: &mut Target, now: SimTime, buffer: &mut [u8], budget: &Budget) -> Reading {
        if !self.is_open {
            self.open();
            if !self.is_open {
                return Reading::Empty;
            }
        }
        let more = budget.requests.room(self.under_way + self.answers);
        let room = Room {
            unsent: if more == 0 { 0 } else { self.answers.saturating_add(more) },
            transfers: budget.arriving.room(self.arriving),
        };
        let buffer = if more < buffer.len() { &mut buffer[..LITTLE_BYTES] } else { buffer };
        let Self { connection, session, effects, .. } = self;
        if session.awaits_room() {
            session.receive_within(target, now, &[], room, effects);
        }
        let is_first = connection.is_new();
        connection.read(buffer, &mut AtTarget { session, effects, target, now, room, is_first })
    }

    /// The next command that there is room for, and what it takes.
    pub(super) fn next_command(&mut self, budget: &mut Budget) -> Option<(Command, usize)> {
        self.waiting.extend(self.effects.commands.drain(..));
        let cost = cost(self.waiting.front()?);
        if cost > budget.requests.room(self.under_way + self.answers) {
            return None;
        }
        budget.take(cost);
        self.under_way += cost;
        Some((self.waiting.pop_front()?, cost))
    }

    /// Whether it has asked for more than there is room for.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Lets the budget know what it holds.
    pub(super) fn settle(&mut self, budget: &mut Budget) {
        budget.set_answers(&mut self.answers, self.effects.output.pending_bytes());
        let second = |command: &Command| command.second.as_ref().map_or(0, |second| second.payload.len());
        let waiting: usize = self.waiting.iter().map(|command| command.payload.len() + second(command)).sum();
        budget.set_arriving(&mut self.arriving, self.session.granted_bytes() + waiting);
    }

    /// Gives back what it holds, but for its commands at the enclosure.
    pub(super) fn let_go(&mut self, budget: &mut Budget) {
        budget.set_answers(&mut self.answers, 0);
        budget.set_arriving(&mut self.arriving, 0);
    }

    /// Whether it has anything of the budget.
    pub(super) fn holds_anything(&self) -> bool {
        self.under_way + self.answers + self.arriving > 0
    }

    /// Whether it has moved nothing since this was last asked, though it has answers to take or data to send. A peer
    /// that `is_held` is not at fault for the latter.
    pub(super) fn stands_still(&mut self, is_held: bool) -> bool {
        let moved = self.connection.take_moved();
        let takes_nothing = self.connection.is_full() && self.answers > 0;
        !moved && (takes_nothing || (self.session.granted_bytes() > 0 && !is_held))
    }

    /// Sends what waits, as far as the socket takes it. `Break`: the connection is to be closed.
    pub(super) fn send(&mut self) -> ControlFlow<()> {
        let said_everything = self.connection.send(&mut self.effects.output);
        if self.connection.has_ended() || (self.effects.close.is_some() && said_everything) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// A session while it listens.
struct AtTarget<'a> {
    session: &'a mut Session,
    effects: &'a mut Effects,
    target: &'a mut Target,
    now: SimTime,
    room: Room,
    /// Nothing has come before.
    is_first: bool,
}

/// The first byte of a client of TLS (RFC 8446, section 5.1), which begins no PDU.
const TLS_HANDSHAKE: u8 = 22;

/// Read at once of a client that there is hardly room for.
const LITTLE_BYTES: usize = 16 * 1024;

fn cost(command: &Command) -> usize {
    let places = match command.operation {
        NvmCommand::Verify { range, .. } => range.blocks as usize * PLACE_BYTES,
        _ => 0,
    };
    let second = command.second.as_ref().map_or(0, |second| second.data_bytes as usize);
    COMMAND_BYTES + command.data_bytes as usize + command.held_bytes as usize + places + second
}

impl Listener for AtTarget<'_> {
    fn is_over(&self) -> bool {
        self.effects.close.is_some()
    }

    fn is_held(&mut self) -> bool {
        self.effects.output.pending_bytes() > self.room.unsent
    }

    fn receive(&mut self, bytes: &[u8]) -> usize {
        if std::mem::take(&mut self.is_first) && bytes.first() == Some(&TLS_HANDSHAKE) {
            tracing::warn!(
                "a client speaks TLS at a port that does not, or speaks it twice; ports of TLS are those of --listen-tls"
            );
        }
        let granted = self.session.granted_bytes();
        let taken = self.session.receive_within(self.target, self.now, bytes, self.room, self.effects);
        self.room.transfers = self.room.transfers.saturating_sub(self.session.granted_bytes().saturating_sub(granted));
        taken
    }
}

impl Unsent for Output {
    fn bytes(&self) -> usize {
        self.pending_bytes()
    }

    fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        slices.iter_mut().zip(self.slices()).map(|(slice, bytes)| *slice = IoSlice::new(bytes)).count()
    }

    fn advance(&mut self, count: usize) {
        Self::advance(self, count);
    }
}
