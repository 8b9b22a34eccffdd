//! The agreement with the program that runs a guest. Source: the vhost-user protocol; `vhost` reads and checks its messages.

use crate::config::{EVENT_IDX, FLUSH, PROTOCOL_FEATURES, QUEUE_ENTRIES_MAX, QUEUES_MAX, features, space};
use crate::request::Memory;
use crate::ring::Ring;
use flashyard_blk::VolumeInfo;
use std::fs::File;
use std::sync::Arc;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight, VhostUserLog,
    VhostUserMemoryRegion, VhostUserProtocolFeatures, VhostUserShMemConfig, VhostUserSharedMsg,
    VhostUserSingleMemoryRegion, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};
use virtio_queue::QueueT;
use vm_memory::{FileOffset, GuestAddress};

/// A part of a guest's memory: where the guest has it, and where the program that runs the guest does.
#[derive(Clone, Copy, Debug)]
struct Region {
    guest: u64,
    program: u64,
    bytes: u64,
}

impl Region {
    /// Whether its addresses end where addresses do.
    fn is_sound(&self) -> bool {
        self.program.checked_add(self.bytes).is_some() && self.guest.checked_add(self.bytes).is_some()
    }
}

/// The disk of one connection.
#[derive(Debug)]
pub(crate) struct Device {
    volume: VolumeInfo,
    features: u64,
    regions: Vec<Region>,
    pub(crate) memory: Option<Arc<Memory>>,
    pub(crate) rings: Vec<Ring>,
    /// Kicks that no ring has any more, and rings that have a new one: the front end listens to them.
    pub(crate) retired: Vec<File>,
    pub(crate) renewed: Vec<usize>,
}

impl Device {
    pub(crate) fn new(volume: VolumeInfo) -> Self {
        Self {
            volume,
            features: 0,
            regions: Vec::new(),
            memory: None,
            rings: (0..QUEUES_MAX).map(|_| Ring::new()).collect(),
            retired: Vec::new(),
            renewed: Vec::new(),
        }
    }

    /// Whether the guest asks for flushes; for one that does not, every write is to be durable.
    pub(crate) fn flushes(&self) -> bool {
        self.features & FLUSH != 0
    }

    fn ring(&mut self, index: u32) -> Result<&mut Ring> {
        self.rings.get_mut(index as usize).ok_or(Error::InvalidParam)
    }

    /// An address of the guest, by that of the program which runs it.
    fn guest_address(&self, program: u64) -> Result<u64> {
        let region =
            self.regions.iter().find(|region| (region.program..region.program + region.bytes).contains(&program));
        region.map(|region| program - region.program + region.guest).ok_or(Error::InvalidParam)
    }

    fn retire(&mut self, index: usize) {
        if let Some(kick) = self.rings[index].kick.take() {
            self.retired.push(kick);
        }
    }
}

/// Halves of an address.
fn halves(address: u64) -> (Option<u32>, Option<u32>) {
    (Some(address as u32), Some((address >> 32) as u32))
}

impl VhostUserBackendReqHandlerMut for Device {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        self.features = 0;
        Ok(())
    }

    fn reset_device(&mut self) -> Result<()> {
        for ring in &mut self.rings {
            ring.is_enabled = false;
            ring.queue.reset();
        }
        self.features = 0;
        Ok(())
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(features(&self.volume))
    }

    fn set_features(&mut self, agreed: u64) -> Result<()> {
        if agreed & !features(&self.volume) != 0 {
            return Err(Error::InvalidParam);
        }
        self.features = agreed;
        for ring in &mut self.rings {
            ring.queue.set_event_idx(agreed & EVENT_IDX != 0);
            // Without features of the protocol there is no word that enables a ring.
            ring.is_enabled |= agreed & PROTOCOL_FEATURES == 0;
        }
        Ok(())
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy_listening: Option<bool>,
    ) -> Result<Option<Vec<u64>>> {
        let region = |region: &VhostUserMemoryRegion| Region {
            guest: region.guest_phys_addr,
            program: region.user_addr,
            bytes: region.memory_size,
        };
        let sound: Vec<_> = regions.iter().map(region).collect();
        if !sound.iter().all(Region::is_sound) {
            return Err(Error::InvalidParam);
        }
        let ranges = regions.iter().zip(files).map(|(region, file)| {
            let offset = FileOffset::new(file, region.mmap_offset);
            (GuestAddress(region.guest_phys_addr), region.memory_size as usize, Some(offset))
        });
        let ranges: Vec<_> = ranges.collect();
        let memory = Memory::from_ranges_with_files(ranges).map_err(|error| {
            tracing::warn!(%error, "a guest's memory cannot be mapped");
            Error::InvalidParam
        })?;
        (self.memory, self.regions) = (Some(Arc::new(memory)), sound);
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        let ring = self.ring(index)?;
        let is_size = num <= QUEUE_ENTRIES_MAX.into() && num.is_power_of_two();
        let size = u16::try_from(num).ok().filter(|_| is_size).ok_or(Error::InvalidParam)?;
        ring.queue.set_size(size);
        Ok(())
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _flags: VhostUserVringAddrFlags,
        descriptor: u64,
        used: u64,
        available: u64,
        _log: u64,
    ) -> Result<()> {
        let [descriptor, used, available] = [descriptor, used, available].map(|address| self.guest_address(address));
        let (descriptor, used, available) = (halves(descriptor?), halves(used?), halves(available?));
        let queue = &mut self.ring(index)?.queue;
        queue.set_desc_table_address(descriptor.0, descriptor.1);
        queue.set_used_ring_address(used.0, used.1);
        queue.set_avail_ring_address(available.0, available.1);
        Ok(())
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        let queue = &mut self.ring(index)?.queue;
        queue.set_next_avail(base as u16);
        queue.set_next_used(base as u16);
        Ok(())
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        let ring = self.ring(index)?;
        ring.queue.set_ready(false);
        let base = ring.queue.next_avail();
        self.retire(index as usize);
        Ok(VhostUserVringState::new(index, base.into()))
    }

    fn set_vring_kick(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        self.ring(index.into())?;
        self.retire(index.into());
        let memory = self.memory.as_deref().ok_or(Error::InvalidOperation("a ring has no memory"))?;
        let ring = &mut self.rings[usize::from(index)];
        // Something may be in it before the first kick.
        (ring.kick, ring.is_kicked) = (fd, true);
        ring.queue.set_ready(true);
        if !ring.queue.is_valid(memory) {
            ring.queue.set_ready(false);
            return Err(Error::InvalidParam);
        }
        self.renewed.push(index.into());
        Ok(())
    }

    fn set_vring_call(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        self.ring(index.into())?.call = fd;
        Ok(())
    }

    fn set_vring_err(&mut self, index: u8, _fd: Option<File>) -> Result<()> {
        self.ring(index.into()).map(drop)
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::MQ | VhostUserProtocolFeatures::REPLY_ACK | VhostUserProtocolFeatures::CONFIG)
    }

    fn set_protocol_features(&mut self, _features: u64) -> Result<()> {
        Ok(())
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(QUEUES_MAX as u64)
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        let ring = self.ring(index)?;
        (ring.is_enabled, ring.is_kicked) = (enable, ring.is_kicked || enable);
        Ok(())
    }

    fn get_config(&mut self, offset: u32, size: u32, _flags: VhostUserConfigFlags) -> Result<Vec<u8>> {
        // Programs ask for as much as they know of: the rest is zero.
        let space = space(&self.volume);
        let byte = |at: u64| usize::try_from(at).ok().and_then(|at| space.get(at)).copied().unwrap_or(0);
        Ok((0..u64::from(size)).map(|at| byte(u64::from(offset) + at)).collect())
    }

    fn set_config(&mut self, _offset: u32, _buf: &[u8], _flags: VhostUserConfigFlags) -> Result<()> {
        Err(Error::InvalidOperation("the disk has nothing to set"))
    }

    fn set_gpu_socket(&mut self, _gpu_backend: GpuBackend) -> Result<()> {
        Err(Error::InvalidOperation("a disk draws nothing"))
    }

    fn get_shared_object(&mut self, _uuid: VhostUserSharedMsg) -> Result<File> {
        Err(Error::InvalidOperation("a disk shares no objects"))
    }

    fn get_inflight_fd(&mut self, _inflight: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        Err(Error::InvalidOperation("requests do not outlive the server"))
    }

    fn set_inflight_fd(&mut self, _inflight: &VhostUserInflight, _file: File) -> Result<()> {
        Err(Error::InvalidOperation("requests do not outlive the server"))
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Err(Error::InvalidOperation("memory comes as one table"))
    }

    fn add_mem_region(
        &mut self,
        _region: &VhostUserSingleMemoryRegion,
        _fd: File,
        _postcopy_listening: Option<bool>,
    ) -> Result<Option<u64>> {
        Err(Error::InvalidOperation("memory comes as one table"))
    }

    fn remove_mem_region(&mut self, _region: &VhostUserSingleMemoryRegion) -> Result<()> {
        Err(Error::InvalidOperation("memory comes as one table"))
    }

    fn set_device_state_fd(
        &mut self,
        _direction: VhostTransferStateDirection,
        _phase: VhostTransferStatePhase,
        _fd: File,
    ) -> Result<Option<File>> {
        Err(Error::InvalidOperation("a disk does not move"))
    }

    fn check_device_state(&mut self) -> Result<()> {
        Err(Error::InvalidOperation("a disk does not move"))
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        Err(Error::InvalidOperation("a disk has no memory of its own"))
    }

    fn set_log_base(&mut self, _log: &VhostUserLog, _file: File) -> Result<()> {
        Err(Error::InvalidOperation("a disk does not move"))
    }
}
