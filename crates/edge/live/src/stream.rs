//! The socket of a connection of NVMe/TCP: in clear text, or within TLS.

use crate::tls::{Secured, ServerKeys, TlsError};
use flashyard_nvmf::tls::{Channel, SharedKey};
use mio::net::TcpStream;
use std::io::{self, IoSlice, Read, Write};

/// A socket of either kind.
pub(crate) enum Stream {
    Plain(TcpStream),
    Secured(Box<Secured>),
}

/// How far a connection is before the first byte of its protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The handshake goes on when the poll says that there is more.
    Waits,
    /// The protocol may begin: in clear text, or by the key of these two ends.
    Done(Option<Channel>),
}

impl Stream {
    /// The socket of a client that has just been accepted, at a port of TLS if there are keys.
    ///
    /// Errors: the library has no room for another connection.
    pub(crate) fn accept(socket: TcpStream, keys: Option<&ServerKeys>) -> Result<Self, TlsError> {
        match keys {
            None => Ok(Self::Plain(socket)),
            Some(keys) => Self::of(Secured::accept(socket, keys)),
        }
    }

    /// A socket that has just been connected to a port of TLS.
    ///
    /// Errors: keys that the library does not take, or no library.
    pub(crate) fn connect(socket: TcpStream, keys: Vec<SharedKey>) -> Result<Self, TlsError> {
        Self::of(Secured::connect(socket, keys))
    }

    fn of(secured: Result<Secured, TlsError>) -> Result<Self, TlsError> {
        secured.map(|secured| Self::Secured(Box::new(secured)))
    }

    /// Where the poll looks.
    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Secured(secured) => secured.socket(),
        }
    }

    /// Goes on with a handshake, as far as bytes have come.
    ///
    /// Errors: the connection cannot be secured, and is to be closed. The other side has been told, where it may listen.
    pub(crate) fn open(&mut self) -> Result<Opening, TlsError> {
        match self {
            Self::Plain(_) => Ok(Opening::Done(None)),
            Self::Secured(secured) => {
                Ok(secured.shake_hands()?.map_or(Opening::Waits, |channel| Opening::Done(Some(channel))))
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Secured(secured) => secured.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write_vectored(slices),
            Self::Secured(secured) => secured.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Secured(secured) => secured.flush(),
        }
    }
}
