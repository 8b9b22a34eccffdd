//! Parts of a target: ports, subsystems, namespaces, hosts that may connect, and limits.

use super::attachment::Attachment;
use super::erasure::Erasure;
use crate::secret::Secret;
use crate::tls::{SharedKey, TlsKey};
use flashyard_blk::VolumeLimits;
use flashyard_nvme::log::{CapacityLog, SmartLog};
use flashyard_nvme::protection::Metadata;
use flashyard_nvme::tcp::Digests;
use flashyard_nvme::text::{DISCOVERY_NQN, NqnError, check_nqn};
use flashyard_nvme::zone;
use std::collections::BTreeSet;
use std::net::IpAddr;
use thiserror::Error;

/// The I/O command set of blocks.
pub(super) const NVM_COMMAND_SET: u8 = 0;

/// A whole target.
#[derive(Clone, Debug, Default)]
pub struct TargetConfig {
    /// Ports on which it listens.
    pub ports: Vec<Port>,
    /// Subsystems that it exports.
    pub subsystems: Vec<Subsystem>,
    /// Limits of every connection.
    pub limits: Limits,
    /// Source of the challenges of authentication: unpredictable random bytes.
    pub entropy: [u8; 32],
}

/// A place where the target listens, as discovery reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Identifier, unique in the target.
    pub id: u16,
    /// Address on which it listens. A wildcard address is reported to each host as the address by which the host came
    /// ([`Session::between`](super::Session::between)).
    pub address: IpAddr,
    /// TCP port.
    pub service: u16,
    /// The protection of connections there.
    pub security: Security,
}

/// The protection of the connections of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// Clear text.
    #[default]
    None,
    /// TLS 1.3 with a key that both ends have, and nothing else.
    Tls13,
}

/// A subsystem: namespaces behind one name.
#[derive(Clone, Debug)]
pub struct Subsystem {
    /// Name.
    pub nqn: String,
    /// Serial number, at most 20 ASCII characters.
    pub serial: String,
    /// Model number, at most 40 ASCII characters.
    pub model: String,
    /// Firmware revision, at most 8 ASCII characters.
    pub firmware: String,
    /// Namespaces in ascending order of their identifiers.
    pub namespaces: Vec<Namespace>,
    /// Hosts that may connect.
    pub hosts: Hosts,
    /// Identifiers of the ports through which it can be reached; empty means all.
    pub ports: Vec<u16>,
    /// Hosts name the controller they want, instead of being given any.
    pub static_controllers: bool,
    /// Whether writes stay in a cache until Flush, so that hosts send Flush.
    pub has_write_cache: bool,
    /// Whether the backend takes [`NvmCommand::Remap`](flashyard_nvme::nvm::NvmCommand::Remap), which is then announced while
    /// blocks are whole units of the translation layer.
    pub has_remap: bool,
    /// How hosts may create and delete namespaces; `None`: they may not.
    pub management: Option<Management>,
    /// Abilities of its backend beside reading and writing.
    pub abilities: Abilities,
}

/// Commands that a backend may be able to carry out, which are announced then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// A Compare and a Write as one: [`Command::second`](super::Command::second).
    pub fused: bool,
    /// [`NvmCommand::WriteUncorrectable`](flashyard_nvme::nvm::NvmCommand::WriteUncorrectable).
    pub uncorrectable: bool,
    /// Self-tests: [`Wish::SelfTest`](super::Wish::SelfTest).
    pub self_test: bool,
}

/// Limits of the namespaces that hosts create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Management {
    /// Greatest identifier, up to 1024: as many namespaces there may be.
    pub namespaces_max: u32,
    /// Formats of blocks, the fastest first.
    pub formats: &'static [BlockFormat],
}

/// A format of blocks that a namespace can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFormat {
    /// Data of a block: 2^n bytes, 9 to 16.
    pub data_log2: u8,
    /// Whether each block has eight bytes of metadata, which may be protection information.
    pub has_metadata: bool,
}

impl BlockFormat {
    /// Blocks without metadata.
    pub const fn plain(data_log2: u8) -> Self {
        Self { data_log2, has_metadata: false }
    }

    /// Blocks with metadata.
    pub const fn with_metadata(data_log2: u8) -> Self {
        Self { data_log2, has_metadata: true }
    }
}

/// A namespace of the NVM command set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Identifier, 1 to 1024.
    pub nsid: u32,
    /// Size in blocks.
    pub blocks: u64,
    /// Data of a block: 2^n bytes, 9 to 16.
    pub block_log2: u8,
    /// Metadata of a block, which follows its data on the wire.
    pub metadata: Metadata,
    /// Globally unique identifier; zeros are none.
    pub nguid: [u8; 16],
    /// UUID; zeros are none.
    pub uuid: [u8; 16],
    /// ANA group, from one.
    pub ana_group: u32,
    /// Writes are refused.
    pub is_read_only: bool,
    /// Sizes of writes that suit its drive, where those are known.
    pub hints: Option<WriteHints>,
    /// Formats that its drive can be given, the fastest first; empty: its own only.
    pub formats: &'static [BlockFormat],
    /// Its zones, if it is a zoned namespace: only hosts that enable all I/O command sets of the controller see it then.
    pub zones: Option<ZoneShape>,
    /// Hosts whose controllers have it from their beginning.
    pub attachment: Attachment,
    /// One controller at a time may have it.
    pub is_private: bool,
    /// Tells it from others that the subsystem has had under its identifier.
    pub serial: u32,
    /// Registrations with it can outlast a loss of power: the owner of the target keeps them ([`super::next_change`]).
    pub keeps_reservations: bool,
}

/// The zones of a namespace, all alike, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneShape {
    /// Distance from the beginning of a zone to that of the next one.
    pub zone_blocks: u64,
    /// Blocks of a zone that can be written, from its first one.
    pub capacity_blocks: u64,
    /// Zones that may be open at once; zero is as many as may be active.
    pub open_max: u32,
    /// Zones that may be open or closed at once; zero is no limit.
    pub active_max: u32,
}

impl ZoneShape {
    /// Most zones of a namespace: each has a record in memory.
    pub const ZONES_MAX: u64 = 1 << 16;

    /// Zones that may be open at once; zero is no limit.
    pub const fn open_limit(&self) -> u32 {
        if self.open_max == 0 { self.active_max } else { self.open_max }
    }

    /// Whether a namespace of `blocks` blocks can have such zones: all are whole, and their numbers fit.
    const fn fits(&self, blocks: u64) -> bool {
        let is_zone = self.capacity_blocks > 0 && self.capacity_blocks <= self.zone_blocks;
        let is_limit = self.active_max == 0 || self.open_max <= self.active_max;
        is_zone
            && is_limit
            && self.zone_blocks <= u32::MAX as u64
            && blocks.is_multiple_of(self.zone_blocks)
            && blocks / self.zone_blocks <= Self::ZONES_MAX
    }
}

/// Sizes of writes that suit a drive, in blocks, each from one to 65,536. A translation layer maps unit by unit: what begins at
/// a unit and ends with one need not be read before it is written, and a unit is deallocated by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteHints {
    /// Blocks that one program command takes.
    pub granularity: u32,
    /// Blocks that all dies together take: a multiple of the granularity.
    pub optimal: u32,
    /// Blocks of a unit that its translation layer maps: one where each block is mapped.
    pub unit: u32,
}

/// Hosts that may connect to a subsystem.
#[derive(Clone, Debug, Default)]
pub enum Hosts {
    /// Everybody, without authentication, and hosts without a name too.
    #[default]
    Any,
    /// Only these hosts.
    Listed(Vec<Host>),
}

/// A host that may connect.
#[derive(Clone, Debug)]
pub struct Host {
    /// Name.
    pub nqn: String,
    /// Secret that the host must prove to know; `None` asks for no proof.
    pub secret: Option<Secret>,
    /// Secret that the controller proves to know when the host asks for it.
    pub controller_secret: Option<Secret>,
    /// Key by which the host comes to ports of TLS; without it the host cannot come there.
    pub tls_key: Option<TlsKey>,
}

impl Host {
    /// A host that proves nothing.
    pub fn new(nqn: &str) -> Self {
        Self { nqn: nqn.to_owned(), secret: None, controller_secret: None, tls_key: None }
    }
}

/// Limits of every connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most data of a command: 2^n pages of 4 KiB.
    pub data_pages_max_log2: u8,
    /// Data that the capsule of an I/O command may carry, a multiple of 16 bytes.
    pub capsule_data_bytes: u32,
    /// Most data of an H2CData, a multiple of 4 bytes and at least 4096.
    pub data_pdu_bytes: u32,
    /// Most data that one R2T asks for; zero asks for all of a command.
    pub transfer_bytes: u32,
    /// R2Ts of a command outstanding at once, where the host allows as many.
    pub transfers_outstanding: u32,
    /// Entries of a queue.
    pub queue_entries: u16,
    /// I/O queues of a controller.
    pub io_queues: u16,
    /// Controllers of the whole target with namespaces, of hosts that have proved who they are where they have to.
    pub controllers: u16,
    /// Controllers of discovery, which need no proof. Beyond, the longest silent one ends.
    pub discovery_controllers: u16,
    /// Controllers of hosts that have not proved who they are, or not enabled them. Beyond, the longest silent one
    /// ends.
    pub pending_controllers: u16,
    /// Asynchronous Event Requests outstanding of a controller.
    pub event_requests: u8,
    /// Blocks of 4 KiB, or as many smaller ones as they have, that a Dataset Management command should deallocate at most; zero
    /// is no limit. It is announced, and larger
    /// commands are carried out all the same: hosts are known that do not look.
    pub deallocate_blocks: u32,
    /// Digests that are granted where a host asks for them.
    pub digests: Digests,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // 1 MiB: Linux's own limit over fabrics.
            data_pages_max_log2: 8,
            // Four pages: a small write then needs no R2T.
            capsule_data_bytes: 16 * 1024,
            data_pdu_bytes: 128 * 1024,
            transfer_bytes: 0,
            transfers_outstanding: 1,
            queue_entries: 128,
            io_queues: 64,
            controllers: 256,
            discovery_controllers: 128,
            pending_controllers: 256,
            event_requests: 4,
            deallocate_blocks: 0,
            digests: Digests { header: true, data: true },
        }
    }
}

impl Limits {
    /// Most data of a command in bytes.
    pub fn data_bytes_max(&self) -> u32 {
        4096 << self.data_pages_max_log2.min(16)
    }

    /// How much a Copy may ask for, of blocks of 2^`block_log2` bytes.
    pub(super) fn copy(&self, block_log2: u8) -> CopyLimits {
        let range_blocks = (self.data_bytes_max() >> block_log2).clamp(1, u16::MAX.into()) as u16;
        CopyLimits { range_blocks, blocks: u32::from(range_blocks) * COPY_LONGEST_RANGES }
    }
}

/// How much one Copy may ask for, beside [`COPY_RANGES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CopyLimits {
    /// Blocks of a source range: a backend reads it whole before it writes it, and holds no more of it than of a read.
    pub(super) range_blocks: u16,
    /// Blocks of all source ranges together.
    pub(super) blocks: u32,
}

/// Source ranges of a Copy at most. [A] Their list is one page; QEMU's default.
pub(super) const COPY_RANGES_MAX: u8 = 128;
/// Source ranges of the greatest length in a Copy at most. [A] 16 MiB with the default limits, so that a full queue of them is
/// done before hosts lose patience.
const COPY_LONGEST_RANGES: u32 = 16;

/// Figures of a subsystem that its controllers report and that change as it works.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Health, as the log page has it; of the entries of error logs, those of before the target began.
    pub smart: SmartLog,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Blocks of its namespace that hold something; `None` where that is not known. Of several namespaces each has a figure of its
    /// own ([`set_used_blocks`](super::set_used_blocks)).
    pub used_blocks: Option<u64>,
    /// Bytes that no namespace has.
    pub unallocated_bytes: u64,
    /// How far its data is being erased.
    pub erasure: Erasure,
    /// Page of a capacity-variant drive; without it there is neither the page nor its features.
    pub capacity: Option<CapacityLog>,
}

/// The configuration contradicts itself or the specification.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A name is not an NVMe Qualified Name.
    #[error("`{nqn}`: {source}")]
    Name {
        /// The name.
        nqn: String,
        /// Reason for the refusal.
        source: NqnError,
    },
    /// Two subsystems have one name, or one has the name of discovery.
    #[error("the name `{0}` is taken")]
    NameTaken(String),
    /// A namespace is out of order or out of range.
    #[error("namespace {nsid} of `{nqn}`: identifiers go from 1 to 1024 in ascending order")]
    NamespaceIdentifier {
        /// Subsystem.
        nqn: String,
        /// Identifier.
        nsid: u32,
    },
    /// A namespace without blocks, with blocks of a size that does not exist, or without ANA group.
    #[error(
        "namespace {nsid} of `{nqn}`: needs blocks of 2^9 to 2^16 bytes of one of its formats, at least one, and an ANA \
         group above zero"
    )]
    NamespaceShape {
        /// Subsystem.
        nqn: String,
        /// Identifier.
        nsid: u32,
    },
    /// Zones that do not fit.
    #[error(
        "namespace {nsid} of `{nqn}`: zones have a capacity above zero and up to their size, less than 2^32 blocks, and fill \
         the namespace, 65536 at most; no more may be open than active"
    )]
    Zones {
        /// Subsystem.
        nqn: String,
        /// Identifier.
        nsid: u32,
    },
    /// A subsystem names a port that is not there.
    #[error("`{nqn}` is to be reached through port {port}, which is not there")]
    NoSuchPort {
        /// Subsystem.
        nqn: String,
        /// Port.
        port: u16,
    },
    /// A limit is outside its range.
    #[error("limit `{0}` is outside its range")]
    Limit(&'static str),
}

impl TargetConfig {
    /// Whether the configuration can be served.
    ///
    /// Errors: the first contradiction.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.limits.check()?;
        for (index, subsystem) in self.subsystems.iter().enumerate() {
            subsystem.check(&self.ports)?;
            let is_taken = self.subsystems[..index].iter().any(|other| other.nqn == subsystem.nqn);
            if is_taken || subsystem.nqn == DISCOVERY_NQN {
                return Err(ConfigError::NameTaken(subsystem.nqn.clone()));
            }
        }
        Ok(())
    }
}

impl TargetConfig {
    /// The keys of TLS by which hosts reach subsystems, and discovery. A host with different keys for different subsystems reaches
    /// discovery with each of them, by identities of version 1; of version 0 with the first.
    pub fn tls_keys(&self) -> Vec<SharedKey> {
        let mut keys: Vec<SharedKey> = Vec::new();
        let mut identities = BTreeSet::new();
        for subsystem in &self.subsystems {
            let Hosts::Listed(hosts) = &subsystem.hosts else { continue };
            for (host, key) in hosts.iter().filter_map(|host| Some((&host.nqn, host.tls_key.as_ref()?))) {
                for nqn in [subsystem.nqn.as_str(), DISCOVERY_NQN] {
                    let new = key.keys_for(host, nqn).into_iter().filter(|key| identities.insert(key.identity.clone()));
                    keys.extend(new);
                }
            }
        }
        keys
    }
}

impl Limits {
    fn check(&self) -> Result<(), ConfigError> {
        let checks = [
            ("data_pages_max_log2", (1..=10).contains(&self.data_pages_max_log2)),
            ("capsule_data_bytes", self.capsule_data_bytes.is_multiple_of(16) && self.capsule_data_bytes <= 1 << 20),
            (
                "data_pdu_bytes",
                self.data_pdu_bytes.is_multiple_of(4) && (4096..=1 << 24).contains(&self.data_pdu_bytes),
            ),
            ("transfer_bytes", self.transfer_bytes.is_multiple_of(4)),
            ("transfers_outstanding", self.transfers_outstanding >= 1),
            ("queue_entries", (2..=4096).contains(&self.queue_entries)),
            ("io_queues", (1..=1024).contains(&self.io_queues)),
            ("controllers", (1..=0x7FFF).contains(&self.controllers)),
            ("discovery_controllers", (1..=0x3FFF).contains(&self.discovery_controllers)),
            ("pending_controllers", (1..=0x3FFF).contains(&self.pending_controllers)),
            ("event_requests", self.event_requests >= 1),
        ];
        match checks.iter().find(|(_, is_right)| !is_right) {
            Some((name, _)) => Err(ConfigError::Limit(name)),
            None => Ok(()),
        }
    }
}

impl Subsystem {
    /// A subsystem that everybody may reach through every port.
    pub fn new(nqn: &str, serial: &str, namespaces: Vec<Namespace>) -> Self {
        Self {
            nqn: nqn.to_owned(),
            serial: serial.to_owned(),
            model: "flashyard".to_owned(),
            firmware: "1.0".to_owned(),
            namespaces,
            hosts: Hosts::Any,
            ports: Vec::new(),
            static_controllers: false,
            has_write_cache: true,
            has_remap: false,
            management: None,
            abilities: Abilities::default(),
        }
    }

    fn check(&self, ports: &[Port]) -> Result<(), ConfigError> {
        let nqn = self.nqn.clone();
        check_nqn(&nqn).map_err(|source| ConfigError::Name { nqn: nqn.clone(), source })?;
        let mut previous = 0;
        for namespace in &self.namespaces {
            let nsid = namespace.nsid;
            if nsid <= previous || nsid > crate::NAMESPACES_MAX {
                return Err(ConfigError::NamespaceIdentifier { nqn, nsid });
            }
            previous = nsid;
            let formats = namespace.formats;
            let has_format = formats.is_empty() || formats.contains(&namespace.block()) && formats.len() <= 16;
            let is_size = |format: &BlockFormat| (9..=16).contains(&format.data_log2);
            let has_sizes = is_size(&namespace.block()) && formats.iter().all(is_size) && has_format;
            if namespace.blocks == 0 || !has_sizes || namespace.ana_group == 0 {
                return Err(ConfigError::NamespaceShape { nqn, nsid });
            }
            if namespace.zones.is_some_and(|zones| !zones.fits(namespace.blocks)) {
                return Err(ConfigError::Zones { nqn, nsid });
            }
        }
        match self.ports.iter().find(|id| ports.iter().all(|port| port.id != **id)) {
            Some(port) => Err(ConfigError::NoSuchPort { nqn, port: *port }),
            None => Ok(()),
        }
    }

    /// Whether remaps are taken now: of whole units without metadata, and of a drive that is one namespace.
    pub(super) fn takes_remaps(&self) -> bool {
        // Protection information names the block that it was written to.
        let is_of_units = |it: &Namespace| it.metadata.is_none() && it.hints.is_none_or(|hints| hints.unit == 1);
        self.has_remap && self.namespaces.len() == 1 && self.namespaces.iter().all(is_of_units)
    }

    /// Whether blocks may be made uncorrectable now: such that are whole units, as the mark is of a unit.
    pub(super) fn takes_uncorrectable(&self) -> bool {
        let is_of_units = |it: &Namespace| it.zones.is_none() && it.hints.is_none_or(|hints| hints.unit == 1);
        self.abilities.uncorrectable && self.namespaces.iter().all(is_of_units)
    }

    /// The greatest identifier that a namespace may have.
    pub(super) fn namespaces_max(&self) -> u32 {
        self.management.map_or(crate::NAMESPACES_MAX, |management| management.namespaces_max)
    }

    /// The namespace with this identifier.
    pub fn namespace(&self, nsid: u32) -> Option<&Namespace> {
        let index = self.namespaces.binary_search_by_key(&nsid, |namespace| namespace.nsid).ok()?;
        self.namespaces.get(index)
    }

    /// Whether one of its namespaces is zoned.
    pub(super) fn has_zones(&self) -> bool {
        self.namespaces.iter().any(|namespace| namespace.zones.is_some())
    }

    /// Entry of the host `nqn`, if hosts are listed; `None` where it may not connect.
    pub(super) fn admits(&self, nqn: &str) -> Option<Option<&Host>> {
        match &self.hosts {
            Hosts::Any => Some(None),
            Hosts::Listed(hosts) => hosts.iter().find(|host| host.nqn == nqn).map(Some),
        }
    }
}

impl Namespace {
    /// A namespace of `blocks` blocks of 2^`block_log2` bytes in ANA group 1, without unique identifiers.
    pub const fn new(nsid: u32, blocks: u64, block_log2: u8) -> Self {
        Self {
            nsid,
            blocks,
            block_log2,
            metadata: Metadata::None,
            nguid: [0; 16],
            uuid: [0; 16],
            ana_group: 1,
            is_read_only: false,
            hints: None,
            formats: &[],
            zones: None,
            attachment: Attachment::ALL,
            is_private: false,
            serial: 0,
            keeps_reservations: false,
        }
    }

    /// I/O command set.
    pub(super) const fn command_set(&self) -> u8 {
        if self.zones.is_some() { zone::COMMAND_SET } else { NVM_COMMAND_SET }
    }

    /// Blocks that can be written.
    pub(super) const fn capacity_blocks(&self) -> u64 {
        match self.zones {
            Some(shape) => self.blocks / shape.zone_blocks * shape.capacity_blocks,
            None => self.blocks,
        }
    }

    /// Data of a block in bytes.
    pub const fn block_bytes(&self) -> u32 {
        1 << self.block_log2
    }

    /// Another value is other blocks.
    pub(super) const fn blocks_shape(&self) -> (u8, Metadata) {
        (self.block_log2, self.metadata)
    }

    /// The format of its blocks.
    pub(super) const fn block(&self) -> BlockFormat {
        BlockFormat { data_log2: self.block_log2, has_metadata: !self.metadata.is_none() }
    }

    /// Place of the format in use among [`Namespace::formats`].
    pub(super) fn format(&self) -> u8 {
        self.formats.iter().position(|&format| format == self.block()).unwrap_or(0) as u8
    }

    /// Requests that it takes as a volume: remaps too, for which a command is not let through where they are not announced.
    pub(super) const fn limits(&self) -> VolumeLimits {
        VolumeLimits::new(self.blocks, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(change: impl Fn(&mut TargetConfig)) -> Result<(), ConfigError> {
        let subsystem = Subsystem::new("nqn.x", "1", vec![Namespace::new(1, 8, 12)]);
        let mut config = TargetConfig { subsystems: vec![subsystem], ..TargetConfig::default() };
        change(&mut config);
        config.check()
    }

    #[test]
    fn contradictions_are_named() {
        assert_eq!(config(|_| ()), Ok(()));
        assert_eq!(config(|c| c.limits.queue_entries = 1), Err(ConfigError::Limit("queue_entries")));
        let nqn = "nqn.x".to_owned();
        assert_eq!(
            config(|c| c.subsystems[0].ports = vec![3]),
            Err(ConfigError::NoSuchPort { nqn: nqn.clone(), port: 3 })
        );
        assert_eq!(
            config(|c| c.subsystems[0].namespaces[0].nsid = 0),
            Err(ConfigError::NamespaceIdentifier { nqn: nqn.clone(), nsid: 0 })
        );
        assert_eq!(
            config(|c| c.subsystems[0].namespaces[0].block_log2 = 8),
            Err(ConfigError::NamespaceShape { nqn: nqn.clone(), nsid: 1 })
        );
        let zones = ZoneShape { zone_blocks: 4, capacity_blocks: 3, open_max: 2, active_max: 2 };
        let zoned = |zones| config(|c| c.subsystems[0].namespaces[0].zones = Some(zones));
        assert_eq!(zoned(zones), Ok(()));
        for wrong in [
            ZoneShape { capacity_blocks: 5, ..zones },
            ZoneShape { capacity_blocks: 0, ..zones },
            ZoneShape { zone_blocks: 3, ..zones },
            ZoneShape { open_max: 3, ..zones },
        ] {
            assert_eq!(zoned(wrong), Err(ConfigError::Zones { nqn: nqn.clone(), nsid: 1 }), "{wrong:?}");
        }
        assert_eq!(config(|c| c.subsystems.push(c.subsystems[0].clone())), Err(ConfigError::NameTaken(nqn)));
        let error = config(|c| c.subsystems[0].nqn = "x".into()).unwrap_err();
        assert_eq!(error.to_string(), "`x`: an NVMe qualified name begins with `nqn.`");
    }
}
