//! A drive over NVMe/TCP as a device.

use flashyard_cvfs::{BLOCK_BYTES, BlockDevice, DeviceError, check_range};
use flashyard_live::{Host, HostError};
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, DsmRange, NvmCommand};
use flashyard_nvmf::initiator::InitiatorConfig;
use std::net::SocketAddr;
use std::time::Duration;
use zerocopy::IntoBytes;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Data of a command at most, whatever the drive allows.
const DATA_BYTES_MAX: u32 = 256 * 1024;

/// Blocks of a remap at most: each is work for the drive's cores, and no command should keep the others waiting for
/// long. [A]
const REMAP_BLOCKS_MAX: u32 = 256;

/// Why a drive is no device.
#[derive(Debug, thiserror::Error)]
pub enum NvmeError {
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

/// One namespace of a drive, one command at a time.
pub struct NvmeDevice {
    host: Host,
    nsid: u32,
    blocks: u32,
    /// Logical blocks in one of ours.
    ratio: u32,
    /// Blocks of a command at most.
    command_blocks: u32,
    can_remap: bool,
}

impl NvmeDevice {
    /// Connects to the subsystem `nqn`; without `nsid` takes its first namespace.
    ///
    /// Errors: no answer, no access, no namespace that fits.
    pub fn connect(address: SocketAddr, nqn: &str, nsid: Option<u32>) -> Result<Self, NvmeError> {
        let config = InitiatorConfig::new("nqn.2026-11.io.flashyard:cvfs", nqn);
        let host = Host::connect(address, config, PATIENCE)?;
        let controller = host.controller();
        let fits = |wanted: Option<u32>, nsid| wanted.is_none_or(|wanted| wanted == nsid);
        let found = controller.namespaces.iter().find(|namespace| fits(nsid, namespace.nsid)).copied();
        let nsid = nsid.unwrap_or(1);
        let namespace = found.ok_or(NvmeError::Namespace { nsid, problem: "does not exist" })?;
        let block_bytes = namespace.block_bytes;
        if !matches!(block_bytes, 512..=4096) || !(BLOCK_BYTES as u32).is_multiple_of(block_bytes) {
            return Err(NvmeError::Namespace { nsid, problem: "its blocks do not divide 4096 bytes" });
        }
        let ratio = BLOCK_BYTES as u32 / block_bytes;
        let blocks = u32::try_from(namespace.blocks / u64::from(ratio));
        let blocks = blocks.map_err(|_| NvmeError::Namespace { nsid, problem: "larger than 16 TiB" })?;
        let data_bytes = controller.data_bytes_max.unwrap_or(DATA_BYTES_MAX).min(DATA_BYTES_MAX);
        let command_blocks = (data_bytes / BLOCK_BYTES as u32).max(1);
        let can_remap = controller.remaps;
        Ok(Self { host, nsid: namespace.nsid, blocks, ratio, command_blocks, can_remap })
    }

    fn range(&self, first: u32, blocks: usize) -> BlockRange {
        BlockRange { lba: u64::from(first) * u64::from(self.ratio), blocks: blocks as u32 * self.ratio }
    }

    fn command(&mut self, command: NvmCommand, data: Vec<u8>, data_bytes: u32) -> Result<Vec<u8>, DeviceError> {
        let completion = self.host.command(self.nsid, command, data, data_bytes);
        let completion = completion.map_err(|error| DeviceError::Io(error.to_string()))?;
        if completion.status != Status::SUCCESS {
            return Err(DeviceError::Io(format!("{command:?}: {:?}", completion.status)));
        }
        Ok(completion.data)
    }
}

impl BlockDevice for NvmeDevice {
    fn blocks(&self) -> u32 {
        self.blocks
    }

    fn read(&mut self, first: u32, buffer: &mut [u8]) -> Result<(), DeviceError> {
        check_range(first, (buffer.len() / BLOCK_BYTES) as u64, self.blocks)?;
        let mut at = first;
        for part in buffer.chunks_mut(self.command_blocks as usize * BLOCK_BYTES) {
            let blocks = part.len() / BLOCK_BYTES;
            let command = NvmCommand::Read { range: self.range(at, blocks), fua: false };
            let data = self.command(command, Vec::new(), part.len() as u32)?;
            if data.len() != part.len() {
                return Err(DeviceError::Io(format!("{} bytes instead of {}", data.len(), part.len())));
            }
            part.copy_from_slice(&data);
            at += blocks as u32;
        }
        Ok(())
    }

    fn write(&mut self, first: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        check_range(first, (bytes.len() / BLOCK_BYTES) as u64, self.blocks)?;
        let mut at = first;
        for part in bytes.chunks(self.command_blocks as usize * BLOCK_BYTES) {
            let blocks = part.len() / BLOCK_BYTES;
            let command = NvmCommand::Write { range: self.range(at, blocks), fua: false };
            self.command(command, part.to_vec(), 0)?;
            at += blocks as u32;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.command(NvmCommand::Flush, Vec::new(), 0).map(drop)
    }

    fn trim(&mut self, first: u32, count: u32) -> Result<(), DeviceError> {
        check_range(first, count.into(), self.blocks)?;
        let range = self.range(first, 1);
        let blocks = u64::from(count) * u64::from(self.ratio);
        // A range has 32 bits for its length.
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        let range = DsmRange { attributes: 0.into(), blocks: blocks.into(), lba: range.lba.into() };
        let command =
            NvmCommand::DatasetManagement { ranges: 1, deallocate: true, integral_read: false, integral_write: false };
        self.command(command, range.as_bytes().to_vec(), 0).map(drop)
    }

    fn can_remap(&self) -> bool {
        self.can_remap
    }

    fn remap(&mut self, destination: u32, source: u32, count: u32) -> Result<(), DeviceError> {
        if !self.can_remap {
            return Err(DeviceError::Unsupported("remap"));
        }
        check_range(destination, count.into(), self.blocks)?;
        check_range(source, count.into(), self.blocks)?;
        for done in (0..count).step_by(REMAP_BLOCKS_MAX as usize) {
            let blocks = (count - done).min(REMAP_BLOCKS_MAX);
            let range = self.range(destination + done, blocks as usize);
            let source = self.range(source + done, 1).lba;
            self.command(NvmCommand::Remap { range, source }, Vec::new(), 0)?;
        }
        Ok(())
    }
}
