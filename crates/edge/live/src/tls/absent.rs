//! TLS without its library: a refusal in words.

use super::error::TlsError;
use flashyard_nvmf::tls::{Channel, SharedKey};
use mio::net::TcpStream;
use std::convert::Infallible;
use std::io::{self, Read, Write};

/// The keys of a server, which there are not.
pub(crate) struct ServerKeys(Infallible);

impl ServerKeys {
    pub(crate) fn new(_keys: Vec<SharedKey>) -> Result<Self, TlsError> {
        Err(TlsError::Absent)
    }
}

/// A socket that is secured, which there is not.
pub(crate) struct Secured(Infallible);

impl Secured {
    pub(crate) fn accept(_socket: TcpStream, keys: &ServerKeys) -> Result<Self, TlsError> {
        match keys.0 {}
    }

    pub(crate) fn connect(_socket: TcpStream, _keys: Vec<SharedKey>) -> Result<Self, TlsError> {
        Err(TlsError::Absent)
    }

    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        match self.0 {}
    }

    pub(crate) fn shake_hands(&mut self) -> Result<Option<Channel>, TlsError> {
        match self.0 {}
    }
}

impl Read for Secured {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

impl Write for Secured {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}
