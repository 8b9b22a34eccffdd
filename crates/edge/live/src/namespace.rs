//! A namespace of a controller over NVMe/TCP, as a volume.

use crate::clock::WallClock;
use crate::host::{Host, HostError};
use flashyard_blk::{
    Completion, Operation, Payload, RequestError, Volume, VolumeError, VolumeInfo, VolumeLimits, VolumeRequest, check,
};
use flashyard_flash::SLOT_BYTES;
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, DsmRange, NvmCommand};
use flashyard_nvmf::initiator::InitiatorConfig;
use flashyard_units::{SimSpan, SimTime, VolumeId};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use zerocopy::IntoBytes;

/// How long a controller may take to let the host in.
const PATIENCE: Duration = Duration::from_secs(30);
/// Data of a command at most, whatever the controller allows.
const DATA_BYTES_MAX: u32 = 256 * 1024;

/// Why a namespace is no volume.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// No connection.
    #[error(transparent)]
    Host(#[from] HostError),
    /// No such namespace, or one of blocks that do not fit.
    #[error("namespace {nsid}: {problem}")]
    Namespace {
        /// Its number.
        nsid: u32,
        /// The problem.
        problem: &'static str,
    },
}

/// A command that waits for room in the queue.
struct Waiting {
    token: u64,
    command: NvmCommand,
    data: Vec<u8>,
    data_bytes: u32,
}

/// One namespace as a volume of 4 KiB blocks, whatever its own are, over the first I/O queue of its controller.
///
/// A completion is waited for without sleep, as [`Host`] does.
pub struct RemoteNamespace {
    host: Host,
    nsid: u32,
    /// Blocks of the namespace in one of the volume.
    ratio: u32,
    info: VolumeInfo,
    waiting: VecDeque<Waiting>,
    /// Whether blocks that were trimmed read as zeros.
    zeroes: bool,
    /// By token, for the words of a failure.
    under_way: BTreeMap<u64, NvmCommand>,
    clock: WallClock,
}

impl RemoteNamespace {
    /// Connects to the subsystem `nqn`; without `nsid` takes its first namespace.
    ///
    /// Errors: no answer, no access, no namespace that fits.
    pub fn connect(address: SocketAddr, host_nqn: &str, nqn: &str, nsid: Option<u32>) -> Result<Self, NamespaceError> {
        Self::connect_as(address, InitiatorConfig::new(host_nqn, nqn), nsid)
    }

    /// Connects as the host, and to the subsystem, that `config` names; without `nsid` takes its first namespace.
    ///
    /// Errors: no answer, no access, no namespace that fits.
    pub fn connect_as(address: SocketAddr, config: InitiatorConfig, nsid: Option<u32>) -> Result<Self, NamespaceError> {
        let host = Host::connect(address, config, PATIENCE)?;
        let controller = host.controller();
        let fits = |found: u32| nsid.is_none_or(|wanted| wanted == found);
        let found = controller.namespaces.iter().find(|namespace| fits(namespace.nsid)).copied();
        let nsid = nsid.unwrap_or(1);
        let namespace = found.ok_or(NamespaceError::Namespace { nsid, problem: "does not exist" })?;
        let block_bytes = namespace.block_bytes;
        if !matches!(block_bytes, 512..=SLOT_BYTES) || !SLOT_BYTES.is_multiple_of(block_bytes) {
            return Err(NamespaceError::Namespace { nsid, problem: "its blocks do not divide 4096 bytes" });
        }
        if namespace.metadata_bytes > 0 {
            return Err(NamespaceError::Namespace { nsid, problem: "its blocks have metadata" });
        }
        let ratio = SLOT_BYTES / block_bytes;
        let data_bytes = controller.data_bytes_max.unwrap_or(DATA_BYTES_MAX).min(DATA_BYTES_MAX);
        let limits = VolumeLimits {
            blocks: namespace.blocks / u64::from(ratio),
            remaps: controller.remaps,
            request_blocks: (data_bytes / SLOT_BYTES).max(1),
            read_only: false,
        };
        let id = u16::try_from(namespace.nsid).map(VolumeId::new);
        let id = id.map_err(|_| NamespaceError::Namespace { nsid, problem: "its number has more than 16 bits" })?;
        let info = VolumeInfo { id, block_bytes: SLOT_BYTES, limits, protected: false };
        Ok(Self {
            host,
            nsid: namespace.nsid,
            ratio,
            info,
            waiting: VecDeque::new(),
            zeroes: false,
            under_way: BTreeMap::new(),
            clock: WallClock::begin(),
        })
    }

    /// Lets trims leave zeros, whatever blocks read as that the controller deallocates. Those of more than 65,536 of its blocks
    /// are none then.
    #[must_use]
    pub fn with_zeroes(self) -> Self {
        Self { zeroes: true, ..self }
    }

    /// Registers the socket of its queue: with [`Volume::advance`] until a time that is past, after each event, it need not be
    /// waited for.
    ///
    /// Errors: those of the operating system.
    pub fn register(&mut self, registry: &mio::Registry, token: mio::Token) -> io::Result<()> {
        self.host.queues[0].register(registry, token)
    }

    /// The blocks of the namespace that blocks of the volume stand for.
    fn range(&self, first: u64, count: u32) -> BlockRange {
        // A range has 32 bits for its length.
        BlockRange { lba: first * u64::from(self.ratio), blocks: count.saturating_mul(self.ratio) }
    }

    /// The command for a request, its data, and the bytes that come back.
    ///
    /// Errors: an operation that is not sent to namespaces.
    fn command(&self, request: &VolumeRequest, payload: Payload) -> Result<(NvmCommand, Vec<u8>, u32), RequestError> {
        let range = self.range(request.first, request.count);
        Ok(match (request.operation, payload) {
            (Operation::Read, _) => {
                (NvmCommand::Read { range, fua: false }, Vec::new(), request.count * self.info.block_bytes)
            }
            (Operation::Write, Payload::Bytes(bytes)) => (NvmCommand::Write { range, fua: false }, bytes, 0),
            (Operation::Write, Payload::Zeros | Payload::None) => {
                (NvmCommand::WriteZeroes { range, deallocate: false, fua: false }, Vec::new(), 0)
            }
            (Operation::Trim, _) if self.zeroes => {
                (NvmCommand::WriteZeroes { range, deallocate: true, fua: false }, Vec::new(), 0)
            }
            (Operation::Trim, _) => {
                let range = DsmRange { attributes: 0.into(), blocks: range.blocks.into(), lba: range.lba.into() };
                let command = NvmCommand::DatasetManagement {
                    ranges: 1,
                    deallocate: true,
                    integral_read: false,
                    integral_write: false,
                };
                (command, range.as_bytes().to_vec(), 0)
            }
            (Operation::Flush, _) => (NvmCommand::Flush, Vec::new(), 0),
            (Operation::Remap, _) if self.info.limits.remaps => {
                (NvmCommand::Remap { range, source: self.range(request.source, 1).lba }, Vec::new(), 0)
            }
            _ => return Err(request.unsupported()),
        })
    }

    /// Sends what waits, as far as the queue has room.
    fn hand_over(&mut self) -> Result<(), HostError> {
        let queue = &mut self.host.queues[0];
        while queue.machine.outstanding() < queue.machine.capacity()
            && let Some(Waiting { token, command, data, data_bytes }) = self.waiting.pop_front()
        {
            let submitted = queue.machine.submit(token, self.nsid, command, data, data_bytes, &mut queue.effects);
            debug_assert!(submitted.is_ok(), "the queue has room");
            self.under_way.insert(token, command);
        }
        queue.send()
    }
}

/// A connection that fails is the end of the volume, in words.
/// A span of the wall clock.
fn real(span: SimSpan) -> Duration {
    Duration::from_nanos(span.as_ps() / 1000)
}

fn lost(error: HostError) -> VolumeError {
    VolumeError::Io(error.to_string())
}

/// Why a command was not carried out, for a volume each of whose blocks is `ratio` of the namespace.
fn failed(command: Option<NvmCommand>, status: Status, ratio: u32) -> VolumeError {
    match command {
        Some(NvmCommand::Read { range, .. }) if status.code() == Status::UNRECOVERED_READ => {
            VolumeError::Unread { block: range.lba / u64::from(ratio) }
        }
        command => VolumeError::Io(format!("{command:?}: {status:?}")),
    }
}

impl Volume for RemoteNamespace {
    fn info(&self) -> VolumeInfo {
        self.info
    }

    fn submit(
        &mut self,
        _now: SimTime,
        token: u64,
        request: &VolumeRequest,
        payload: Payload,
    ) -> Result<(), VolumeError> {
        check(request, &self.info.limits)?;
        payload.check(request, self.info.block_bytes)?;
        let (command, data, data_bytes) = self.command(request, payload)?;
        self.waiting.push_back(Waiting { token, command, data, data_bytes });
        self.hand_over().map_err(lost)
    }

    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
        let begun = self.clock.now();
        loop {
            let queue = &mut self.host.queues[0];
            queue.turn().map_err(lost)?;
            let now = self.clock.now();
            if queue.effects.completions.is_empty() {
                if now >= until {
                    return Ok(now);
                }
                queue.rest(real(now.since(begun)), real(until.since(now))).map_err(lost)?;
                continue;
            }
            for completion in queue.effects.completions.drain(..) {
                let command = self.under_way.remove(&completion.token);
                let failure = || failed(command, completion.status, self.ratio);
                let result = if completion.status.is_success() { Ok(()) } else { Err(failure()) };
                into.push(Completion { token: completion.token, result, bytes: completion.data });
            }
            self.hand_over().map_err(lost)?;
            return Ok(now);
        }
    }
}
