//! TLS 1.3 with pre-shared keys around a socket that never blocks.
//!
//! What it does: the handshake of either side, by keys of NVMe/TCP ([`SharedKey`]) and nothing else, and the records after it.
//! [`Secured`] reads and writes like the socket below it: `WouldBlock` until the poll says something, an end as zero bytes.
//!
//! What it does not do: certificates, session tickets, other versions of TLS. The library (s2n-tls) is behind the feature `tls`;
//! without it a socket cannot be secured, and everything else is as ever.
//!
//! [`SharedKey`]: flashyard_nvmf::tls::SharedKey

#[cfg(not(feature = "tls"))]
mod absent;
mod error;
#[cfg(feature = "tls")]
mod hello;
#[cfg(feature = "tls")]
mod keys;
#[cfg(feature = "tls")]
mod pipe;
#[cfg(feature = "tls")]
mod secured;

#[cfg(not(feature = "tls"))]
pub(crate) use absent::{Secured, ServerKeys};
#[cfg(feature = "tls")]
pub(crate) use keys::ServerKeys;
#[cfg(feature = "tls")]
pub(crate) use secured::Secured;

pub use error::TlsError;
