//! The keys that a connection may be secured by, as the library takes them.

use super::error::TlsError;
use flashyard_nvmf::tls::{Channel, Hash, SharedKey};
use s2n_tls::config::Config;
use s2n_tls::connection::{Builder, Connection};
use s2n_tls::enums::{Mode, PskHmac};
use s2n_tls::error::Error;
use s2n_tls::psk::Psk;
use s2n_tls::security::Policy;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Of the policies of the library one with the two cipher suites of NVMe/TCP for TLS 1.3 and no others. Its suites of TLS 1.2 need a
/// certificate, which there is not.
const POLICY: &str = "20230317";

impl From<Error> for TlsError {
    fn from(error: Error) -> Self {
        Self::Library(format!("{}: {}", error.name(), error.message()))
    }
}

fn psk(key: &SharedKey) -> Result<Psk, Error> {
    let mut builder = Psk::builder()?;
    builder.set_identity(key.identity.as_bytes())?;
    builder.set_secret(&key.secret)?;
    builder.set_hmac(if key.hash == Hash::Sha384 { PskHmac::SHA384 } else { PskHmac::SHA256 })?;
    builder.build()
}

fn config() -> Result<Config, Error> {
    let mut builder = Config::builder();
    // No certificate is asked for.
    builder.with_system_certs(false)?;
    builder.set_security_policy(&Policy::from_version(POLICY)?)?;
    builder.build()
}

/// A key that a server knows, and the two ends that it is for.
struct Known {
    psk: Arc<Psk>,
    channel: Channel,
}

/// The keys of a server, by identity.
#[derive(Clone)]
pub(crate) struct ServerKeys {
    known: Arc<BTreeMap<Vec<u8>, Known>>,
    config: Config,
}

impl ServerKeys {
    /// Errors: a key that the library does not take.
    pub(crate) fn new(keys: Vec<SharedKey>) -> Result<Self, TlsError> {
        let known = |key: SharedKey| {
            let psk = Arc::new(psk(&key)?);
            Ok((key.identity.into_bytes(), Known { psk, channel: key.channel }))
        };
        let known = keys.into_iter().map(known).collect::<Result<_, Error>>()?;
        Ok(Self { known: Arc::new(known), config: config()? })
    }

    /// The two ends that the key of this identity is for.
    pub(super) fn channel(&self, identity: &[u8]) -> Option<Channel> {
        self.known.get(identity).map(|known| known.channel.clone())
    }

    /// The maker of a connection with a client that offers these identities: it knows the first of them that is known here, and no
    /// others. Its identity comes with it.
    pub(super) fn choose(&self, offered: &[Vec<u8>]) -> Option<(Maker, Vec<u8>)> {
        let (identity, known) = offered.iter().find_map(|identity| Some((identity, self.known.get(identity)?)))?;
        let maker = Maker { config: self.config.clone(), mode: Mode::Server, keys: vec![Arc::clone(&known.psk)] };
        Some((maker, identity.clone()))
    }
}

/// The maker of the connection of a client, which offers these keys.
pub(super) fn client(keys: &[SharedKey]) -> Result<Maker, TlsError> {
    let keys = keys.iter().map(|key| psk(key).map(Arc::new)).collect::<Result<_, _>>()?;
    Ok(Maker { config: config()?, mode: Mode::Client, keys })
}

/// Makes a connection of the library, of its own side whatever it is asked for.
#[derive(Clone)]
pub(super) struct Maker {
    config: Config,
    mode: Mode,
    keys: Vec<Arc<Psk>>,
}

impl Builder for Maker {
    type Output = Connection;

    fn build_connection(&self, _mode: Mode) -> Result<Connection, Error> {
        let mut connection = self.config.build_connection(self.mode)?;
        self.keys.iter().try_for_each(|key| connection.append_psk(key))?;
        // Whole records, as a page of data is a quarter of one.
        connection.prefer_throughput()?;
        Ok(connection)
    }
}
