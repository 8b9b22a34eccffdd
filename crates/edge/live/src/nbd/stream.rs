//! TCP and Unix sockets as one.

use crate::acceptor::Listen;
use crate::socket::SocketPath;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where an NBD server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdAddress {
    /// A port of TCP.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl FromStr for NbdAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some("") => Err("`unix:` needs the path of a socket behind it".to_owned()),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_| {
                format!("`{text}` is no address; give ADDRESS:PORT, such as 127.0.0.1:10809, or unix:PATH")
            }),
        }
    }
}

impl fmt::Display for NbdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

enum Socket {
    Tcp(TcpListener),
    /// Its name in the file system goes with it.
    Unix(UnixListener, Option<SocketPath>),
}

pub(super) struct Listener {
    socket: Socket,
    address: NbdAddress,
}

impl Listener {
    pub(super) fn open(address: &NbdAddress) -> io::Result<Self> {
        match address {
            NbdAddress::Tcp(address) => {
                let socket = TcpListener::bind(*address)?;
                let address = NbdAddress::Tcp(socket.local_addr()?);
                Ok(Self { socket: Socket::Tcp(socket), address })
            }
            NbdAddress::Unix(path) => {
                let (name, listener) = SocketPath::listen(path)?;
                listener.set_nonblocking(true)?;
                let socket = Socket::Unix(UnixListener::from_std(listener), Some(name));
                Ok(Self { socket, address: address.clone() })
            }
        }
    }

    pub(super) fn address(&self) -> &NbdAddress {
        &self.address
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.socket {
            Socket::Tcp(socket) => registry.register(socket, token, Interest::READABLE),
            Socket::Unix(socket, _) => registry.register(socket, token, Interest::READABLE),
        }
    }

    /// Takes the socket out of the file system.
    pub(super) fn remove(&mut self) {
        if let Socket::Unix(_, name) = &mut self.socket {
            drop(name.take());
        }
    }
}

impl Listen for Listener {
    type Stream = Stream;

    fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            Socket::Tcp(socket) => socket.accept().map(|(stream, _)| {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "small answers may be delayed");
                }
                Stream::Tcp(stream)
            }),
            Socket::Unix(socket, _) => socket.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}

pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self {
            Self::Tcp(stream) => registry.register(stream, token, interest),
            Self::Unix(stream) => registry.register(stream, token, interest),
        }
    }

    pub(super) fn deregister(&mut self, registry: &Registry) {
        let done = match self {
            Self::Tcp(stream) => registry.deregister(stream),
            Self::Unix(stream) => registry.deregister(stream),
        };
        if let Err(error) = done {
            tracing::debug!(%error, "a socket was not registered");
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
