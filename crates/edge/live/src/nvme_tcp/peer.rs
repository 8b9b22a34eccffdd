//! A host: its connection, and its session at the target.

use crate::connection::{Connection, Listener, Unsent};
use flashyard_nvmf::Output;
use flashyard_nvmf::target::{Effects, Session, Target};
use flashyard_units::SimTime;
use mio::net::TcpStream;
use std::io::IoSlice;
use std::ops::ControlFlow;

pub(super) struct Peer {
    pub(super) connection: Connection<TcpStream>,
    pub(super) session: Session,
    pub(super) effects: Effects,
    pub(super) port: usize,
}

impl Peer {
    pub(super) fn new(socket: TcpStream, target: &mut Target, port: usize) -> Self {
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "small answers may be delayed");
        }
        let session = Session::new(target, port as u16 + 1);
        let session = match (socket.local_addr(), socket.peer_addr()) {
            (Ok(local), Ok(host)) => session.between(local.ip(), host.ip()),
            // The host has gone already, and nothing will be told to it.
            _ => session,
        };
        Self { connection: Connection::new(socket), session, effects: Effects::default(), port }
    }

    /// Hands what the socket has to the session; returns whether there may be more.
    pub(super) fn read(&mut self, target: &mut Target, now: SimTime, buffer: &mut [u8]) -> bool {
        let Self { connection, session, effects, .. } = self;
        connection.read(buffer, &mut AtTarget { session, effects, target, now })
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
}

impl Listener for AtTarget<'_> {
    fn is_over(&self) -> bool {
        self.effects.close.is_some()
    }

    fn unsent_bytes(&self) -> usize {
        self.effects.output.pending_bytes()
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.session.receive(self.target, self.now, bytes, self.effects);
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
