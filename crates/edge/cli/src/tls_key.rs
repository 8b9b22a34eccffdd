//! `flashyard tls-key`: a key that a host and the target share.

use crate::arguments::{TlsHash, TlsKeyOptions};
use crate::{Outcome, output};
use anyhow::{Context, Result};
use flashyard_nvmf::tls::{Hash, TlsKey};
use std::fs::File;
use std::io::Read;

/// Prints a new key, of the operating system's random numbers.
pub(crate) fn make(options: &TlsKeyOptions) -> Result<Outcome> {
    let hash = match options.hash {
        TlsHash::Sha256 => Hash::Sha256,
        TlsHash::Sha384 => Hash::Sha384,
    };
    let mut bytes = vec![0; hash.len_bytes()];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .context("/dev/urandom: no random numbers")?;
    output::line(&TlsKey::new(&bytes, Some(hash))?.interchange());
    Ok(Outcome::Done)
}
