//! Refusals of TLS.

use std::io;

/// Why a connection is not secured. No message holds a key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The library is not there.
    #[error("this program is built without TLS: build it with the feature `tls`")]
    Absent,
    /// No record of TLS comes.
    #[error("the other side does not speak TLS")]
    NoTls,
    /// The client has no such key, or another version of TLS.
    #[error("the other side offers no pre-shared key of TLS 1.3")]
    NoKey,
    /// Keys are offered, and none is known here; one of them.
    #[error("no key is known for the identity {0:?}")]
    UnknownIdentity(String),
    /// The key that is offered under this identity is not the one that is known here.
    #[error("the key for the identity {0:?} is not the one that is known here")]
    WrongKey(String),
    /// The other side has said no to what was offered.
    #[error("the other side does not take the key of TLS: it has none for this host and subsystem, or another one")]
    Refused,
    /// The other side has gone before the end of the handshake.
    #[error("the other side has ended the connection during the handshake of TLS")]
    Gone,
    /// The connection failed during the handshake.
    #[error("the connection failed during the handshake of TLS")]
    Io(#[source] io::Error),
    /// The library gives up.
    #[error("TLS: {0}")]
    Library(String),
}
