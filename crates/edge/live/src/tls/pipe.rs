//! Records on their way between a socket and the library, which reads and writes memory only.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes read from a socket at once: two records of the greatest length.
const READ_BYTES: usize = 32 * 1024;
/// Buffers of more than this are given back when they are empty.
const SPARE_BYTES: usize = 128 * 1024;

/// Records of one connection, in both directions.
#[derive(Default)]
pub(super) struct Pipe {
    input: Vec<u8>,
    /// Bytes of the input that are read.
    read: usize,
    output: Vec<u8>,
    /// Bytes of the output that are sent.
    sent: usize,
    /// The first byte that ever came.
    pub(super) first: Option<u8>,
    /// The other side says nothing more.
    pub(super) has_ended: bool,
    /// The library has asked for more than there was.
    is_starved: bool,
    waker: Option<Waker>,
}

impl Pipe {
    /// Takes in what a socket has; returns whether anything came, be it the end.
    ///
    /// Errors: those of the socket but for `WouldBlock`.
    pub(super) fn fill(&mut self, socket: &mut impl io::Read) -> io::Result<bool> {
        if self.has_ended {
            return Ok(false);
        }
        if self.read == self.input.len() {
            (self.read, self.input) = (0, std::mem::take(&mut self.input));
            self.input.clear();
        }
        let old = self.input.len();
        self.input.resize(old + READ_BYTES, 0);
        loop {
            let found = socket.read(&mut self.input[old..]);
            self.input.truncate(old + *found.as_ref().unwrap_or(&0));
            match found {
                Ok(0) => self.has_ended = true,
                Ok(_) => self.first = self.first.or(self.input.get(old).copied()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    self.input.resize(old + READ_BYTES, 0);
                    continue;
                }
                Err(error) => return Err(error),
            }
            return Ok(true);
        }
    }

    /// Sends what waits; returns whether everything is sent.
    ///
    /// Errors: those of the socket but for `WouldBlock`.
    pub(super) fn drain(&mut self, socket: &mut impl io::Write) -> io::Result<bool> {
        while self.sent < self.output.len() {
            match socket.write(&self.output[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.sent = 0;
        self.output.clear();
        self.output.shrink_to(SPARE_BYTES);
        Ok(true)
    }

    /// Bytes that the library has not read.
    pub(super) fn unread(&self) -> &[u8] {
        &self.input[self.read..]
    }

    /// Whether the library has asked for more than there was since this was last asked.
    pub(super) fn take_starved(&mut self) -> bool {
        std::mem::take(&mut self.is_starved)
    }

    /// Puts bytes behind what waits.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }
}

/// The library's end of a pipe.
#[derive(Clone, Default)]
pub(super) struct End(Arc<Mutex<Pipe>>);

impl End {
    pub(super) fn pipe(&self) -> MutexGuard<'_, Pipe> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for End {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut pipe = self.pipe();
        let waiting = &pipe.input[pipe.read..];
        if waiting.is_empty() && !pipe.has_ended {
            // The owner of the pipe fills it and asks again; the contract of such functions wants the waker to be kept.
            (pipe.is_starved, pipe.waker) = (true, Some(context.waker().clone()));
            return Poll::Pending;
        }
        let count = waiting.len().min(into.remaining());
        into.put_slice(&waiting[..count]);
        pipe.read += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for End {
    fn poll_write(self: Pin<&mut Self>, _context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.pipe().push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
