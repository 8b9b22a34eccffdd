//! Where the target listens.

use crate::acceptor::{Acceptor, Listen};
use crate::front::Context;
use crate::tls::TlsError;
use flashyard_nvmf::target::{ConfigError, Port, Security};
use mio::net::{TcpListener, TcpStream};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Why a target cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address cannot be listened on.
    #[error("{address}: cannot be listened on: {source}")]
    Address {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// There can be no ports of TLS.
    #[error("a port of TLS cannot be opened")]
    Tls(#[from] TlsError),
    /// The subsystems contradict each other.
    #[error(transparent)]
    Target(ConfigError),
}

struct Listener {
    address: SocketAddr,
    security: Security,
    acceptor: Acceptor<Socket>,
}

/// `None` while the port is down.
struct Socket(Option<TcpListener>);

impl Listen for Socket {
    type Stream = TcpStream;

    fn accept(&self) -> io::Result<TcpStream> {
        let socket = self.0.as_ref().ok_or(io::ErrorKind::WouldBlock)?;
        socket.accept().map(|(stream, _)| stream)
    }
}

/// The ports, by key.
pub(super) struct Ports(Vec<Listener>);

impl Ports {
    /// Ports at `plain` addresses, and behind them those of TLS.
    pub(super) fn open(plain: &[SocketAddr], tls: &[SocketAddr]) -> Result<Self, ListenError> {
        let open = |(&address, security): (&SocketAddr, Security)| {
            let failed = |source| ListenError::Address { address, source };
            let socket = TcpListener::bind(address).map_err(failed)?;
            let address = socket.local_addr().map_err(failed)?;
            Ok(Listener { address, security, acceptor: Acceptor::new(Socket(Some(socket))) })
        };
        let plain = plain.iter().map(|address| (address, Security::None));
        let tls = tls.iter().map(|address| (address, Security::Tls13));
        plain.chain(tls).map(open).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.0.iter().map(|listener| listener.address)
    }

    /// The protection of connections of a port.
    pub(super) fn security(&self, port: usize) -> Security {
        self.0[port].security
    }

    pub(super) fn find(&self, address: SocketAddr) -> Option<usize> {
        self.0.iter().position(|listener| listener.address == address)
    }

    /// The ports that discovery reports.
    pub(super) fn as_seen_by_hosts(&self) -> Vec<Port> {
        let port = |(id, &Listener { address, security, .. }): (u16, &Listener)| Port {
            id,
            address: address.ip(),
            service: address.port(),
            security,
        };
        (1..).zip(&self.0).map(port).collect()
    }

    pub(super) fn register(&mut self, context: &Context<'_>) -> io::Result<()> {
        for (port, listener) in self.0.iter_mut().enumerate() {
            if let Some(socket) = &mut listener.acceptor.listener.0 {
                context.registry().register(socket, context.token(port), mio::Interest::READABLE)?;
            }
        }
        Ok(())
    }

    /// The acceptor of connections at a port.
    pub(super) fn acceptor(&mut self, port: usize) -> &mut Acceptor<impl Listen<Stream = TcpStream> + use<>> {
        &mut self.0[port].acceptor
    }

    /// Whether a port is to be looked at now.
    pub(super) fn waits_at_once(&self, now: Duration) -> bool {
        self.0.iter().any(|listener| listener.acceptor.is_due(now))
    }

    pub(super) fn close(&mut self, port: usize, context: &Context<'_>) {
        if let Some(mut socket) = self.0[port].acceptor.listener.0.take() {
            // A socket that is dropped leaves the poll by itself.
            let _ = context.registry().deregister(&mut socket);
        }
    }

    pub(super) fn reopen(&mut self, port: usize, context: &Context<'_>) -> io::Result<()> {
        let listener = &mut self.0[port];
        if listener.acceptor.listener.0.is_none() {
            let mut socket = TcpListener::bind(listener.address)?;
            context.registry().register(&mut socket, context.token(port), mio::Interest::READABLE)?;
            listener.acceptor.listener.0 = Some(socket);
        }
        Ok(())
    }
}
