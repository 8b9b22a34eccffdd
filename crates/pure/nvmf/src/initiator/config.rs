//! Settings of a host.

use crate::secret::Secret;
use crate::tls::TlsKey;
use flashyard_nvme::tcp::Digests;

/// Settings of a host for a subsystem.
#[derive(Clone, Debug)]
pub struct InitiatorConfig {
    /// Name of the host.
    pub host_nqn: String,
    /// Identifier of the host.
    pub host_id: [u8; 16],
    /// Name of the subsystem.
    pub subsystem_nqn: String,
    /// Controller wanted; `None` takes any.
    pub controller_id: Option<u16>,
    /// Entries wanted of each I/O queue, 2 to 4096. A controller that has fewer is asked for those; an admin queue has 32
    /// at most, which every controller has.
    pub queue_entries: u16,
    /// I/O queues wanted.
    pub io_queues: u16,
    /// Keep-alive timeout in milliseconds; zero is none.
    pub keep_alive_ms: u32,
    /// Digests wanted.
    pub digests: Digests,
    /// R2Ts of a command that may be outstanding, at least one.
    pub transfers_outstanding: u32,
    /// Whether the controller reports how far it has read the submission queue.
    pub has_flow_control: bool,
    /// Whether all I/O command sets are enabled where the controller has several, so that zoned namespaces are seen too. A
    /// host that knows nothing of write pointers leaves them out.
    pub all_command_sets: bool,
    /// Secret of this host, if it has to prove that it knows one.
    pub secret: Option<Secret>,
    /// Secret that the controller has to prove it knows.
    pub controller_secret: Option<Secret>,
    /// Key of TLS, for the owner of the sockets: without it connections are in clear text.
    pub tls_key: Option<TlsKey>,
}

impl InitiatorConfig {
    /// A host without secrets that wants any controller of `subsystem_nqn`, 128 entries and no digests.
    pub fn new(host_nqn: &str, subsystem_nqn: &str) -> Self {
        Self {
            host_nqn: host_nqn.to_owned(),
            host_id: [1; 16],
            subsystem_nqn: subsystem_nqn.to_owned(),
            controller_id: None,
            queue_entries: 128,
            io_queues: 1,
            keep_alive_ms: 0,
            digests: Digests::default(),
            transfers_outstanding: 1,
            has_flow_control: true,
            all_command_sets: false,
            secret: None,
            controller_secret: None,
            tls_key: None,
        }
    }
}
