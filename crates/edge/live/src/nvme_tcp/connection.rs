//! One connection: a socket and its session.

use flashyard_nvmf::target::{Effects, Session, Target};
use flashyard_units::SimTime;
use mio::net::TcpStream;
use std::io::{self, IoSlice, Read, Write};
use std::ops::ControlFlow;

/// Reads of one turn at most: others have their turn too.
const READS_MAX: u32 = 8;
/// Slices of one vectored write at most.
const SLICES_MAX: usize = 64;
/// Nothing more is read while so many bytes wait to be sent: a client that does not read its answers.
const PENDING_BYTES_MAX: usize = 64 << 20;

pub(super) struct Connection {
    pub(super) socket: TcpStream,
    pub(super) session: Session,
    pub(super) effects: Effects,
    pub(super) port: usize,
    /// The socket takes nothing more for now.
    pub(super) is_full: bool,
    has_ended: bool,
    bytes_read: u64,
}

impl Connection {
    pub(super) fn new(socket: TcpStream, target: &mut Target, port: usize) -> Self {
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "small answers may be delayed");
        }
        let session = Session::new(target, port as u16 + 1);
        Self { socket, session, effects: Effects::default(), port, is_full: false, has_ended: false, bytes_read: 0 }
    }

    /// Whether nothing has been read yet.
    pub(super) fn is_new(&self) -> bool {
        self.bytes_read == 0
    }

    /// Hands what the socket has to the session; returns whether there may be more.
    pub(super) fn read(&mut self, target: &mut Target, now: SimTime, buffer: &mut [u8]) -> bool {
        for _ in 0..READS_MAX {
            if self.effects.close.is_some() || self.has_ended {
                return false;
            }
            if self.effects.output.pending_bytes() > PENDING_BYTES_MAX {
                return true;
            }
            match self.socket.read(buffer) {
                Ok(0) => self.has_ended = true,
                Ok(count) => {
                    self.bytes_read += count as u64;
                    self.session.receive(target, now, &buffer[..count], &mut self.effects);
                    // Less than asked for: the socket is empty, and says when it is not.
                    if count < buffer.len() {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::debug!(%error, "connection lost");
                    self.has_ended = true;
                }
            }
        }
        true
    }

    /// Sends what waits, as far as the socket takes it. `Break`: the connection is to be closed.
    pub(super) fn send(&mut self) -> ControlFlow<()> {
        while self.effects.output.pending_bytes() > 0 && !self.is_full && !self.has_ended {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let mut count = 0;
            for (slice, bytes) in slices.iter_mut().zip(self.effects.output.slices()) {
                *slice = IoSlice::new(bytes);
                count += 1;
            }
            match self.socket.write_vectored(&slices[..count]) {
                Ok(sent) => self.effects.output.advance(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_full = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::debug!(%error, "connection lost");
                    self.has_ended = true;
                }
            }
        }
        let said_everything = self.effects.output.pending_bytes() == 0;
        if self.has_ended || (self.effects.close.is_some() && said_everything) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
