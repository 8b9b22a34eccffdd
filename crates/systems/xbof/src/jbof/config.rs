//! Parameters of a JBOF and the placement of each design.

use super::chain::ChainConfig;
use crate::xbof::{self, HarvestConfig};
use flashyard_cxl::ENDPOINTS_MAX;
use flashyard_describe::AgedDriveError;
use flashyard_fabric::{FabricConfig, FabricError};
use flashyard_host::{DriverConfig, QueueInterface};
use flashyard_report::{Compute, Shares};
use flashyard_ssd::{DriveConfig, DriveConfigError, FirmwareCost, Overwrites};
use flashyard_units::{Bytes, DriveId, Hertz, Named, SimSpan, VolumeId, Watts};

/// The designs compared. Source: [P] sheet xbof §5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Ordinary drives with full cores and memory.
    Conv,
    /// Open-channel: firmware and map on the host.
    Oc,
    /// Half of cores and memory.
    Shrunk,
    /// Shrunk, with writes spread over idle drives and copied back.
    Vh,
    /// Like `Vh`, without copying back.
    VhIdeal,
    /// Shrunk with processor harvesting.
    ProcH,
    /// Shrunk with processor and memory harvesting.
    Xbof,
}

impl Design {
    /// The controller and the memory that its drives are built with, for their price.
    pub const fn compute(self) -> Compute {
        match self {
            Self::Conv => Compute::Full,
            Self::Oc => Compute::OpenChannel,
            Self::Shrunk | Self::Vh | Self::VhIdeal => Compute::Shrunk,
            Self::ProcH | Self::Xbof => Compute::ShrunkCxl,
        }
    }

    /// All designs, in the order of reports.
    pub const ALL: [Self; 7] = [Self::Conv, Self::Oc, Self::Shrunk, Self::Vh, Self::VhIdeal, Self::ProcH, Self::Xbof];

    /// The name in scenario files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conv => "conv",
            Self::Oc => "oc",
            Self::Shrunk => "shrunk",
            Self::Vh => "vh",
            Self::VhIdeal => "vh-ideal",
            Self::ProcH => "proch",
            Self::Xbof => "xbof",
        }
    }

    /// Whether its drives keep only a share of their cores.
    pub const fn shrinks_cores(self) -> bool {
        !matches!(self, Self::Conv | Self::Oc)
    }

    /// Whether their memory holds only a share of their map.
    pub const fn shrinks_memory(self) -> bool {
        !matches!(self, Self::Conv | Self::Oc)
    }

    /// The shares that its drives keep where shrunk ones keep `shares`.
    pub fn kept(self, shares: Shares) -> Shares {
        Shares {
            cores: if self.shrinks_cores() { shares.cores } else { 1.0 },
            memory: if self.shrinks_memory() { shares.memory } else { 1.0 },
        }
    }

    /// Whether drives lend each other processors.
    pub const fn harvests_processors(self) -> bool {
        matches!(self, Self::ProcH | Self::Xbof)
    }

    /// Whether drives lend each other mapping memory.
    pub const fn harvests_memory(self) -> bool {
        matches!(self, Self::Xbof)
    }

    /// Whether the host does work that drives do in other designs: firmware, or spreading and copying data. Neither
    /// price nor power of its cores is published, so such a design cannot be ranked by money or energy.
    pub const fn computes_on_host(self) -> bool {
        matches!(self, Self::Oc | Self::Vh | Self::VhIdeal)
    }

    /// The design in a line, for readers of a report.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Conv => "ordinary drives: each has all its cores, and DRAM for its whole map",
            Self::Oc => "open-channel drives: firmware and map are on the host, whose cores do the work",
            Self::Shrunk => "drives with a share of the cores and of the DRAM of conv, and no help",
            Self::Vh => "shrunk drives; the host spreads writes over idle ones and copies the data back afterwards",
            Self::VhIdeal => "vh without the copying back",
            Self::ProcH => "shrunk drives over CXL that borrow processor time from idle ones",
            Self::Xbof => "shrunk drives over CXL that borrow processor time and mapping memory from idle ones",
        }
    }

    /// Whether writes are spread over idle drives.
    pub const fn is_virtual(self) -> bool {
        matches!(self, Self::Vh | Self::VhIdeal)
    }
}

impl Named for Design {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }
}

/// The host in front of the drives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostConfig {
    /// Drives behind each host, in order; 0 puts one host in front of all.
    pub drives_per_host: u32,
    /// Cores of each host.
    pub cores: u32,
    /// Their clock.
    pub clock: Hertz,
    /// DRAM of each host, for the map of OC.
    pub memory: Bytes,
    /// Driver and block layer, cycles a command.
    pub driver_cycles: u64,
    /// From the driver to the drive, off the cores: software hand-over and link.
    pub submit_latency: SimSpan,
    /// From the drive's completion to the application.
    pub complete_latency: SimSpan,
    /// NVMe's queues between driver and drive, beside both latencies.
    pub interface: QueueInterface,
    /// OC: host cycles for each cycle of drive firmware.
    pub oc_cycles_factor: f64,
    /// OC: hand-over latency of the host's translation layer.
    pub oc_latency: SimSpan,
}

/// Virtual drives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VhConfig {
    /// Idle drives joined to each busy one. [P] xbof §4.2, one to one
    pub lenders: u32,
    /// Host cycles for each redirected write. [A] about half of the driver's own
    pub redirect_cycles: u64,
    /// Slots of one copy-back command. [A] 1 MiB
    pub copy_back_slots: u32,
    /// Copy-back commands in flight for each busy drive. [A] as the microbenchmarks
    pub copy_back_depth: u32,
}

impl Default for VhConfig {
    fn default() -> Self {
        Self { lenders: 1, redirect_cycles: 2000, copy_back_slots: 256, copy_back_depth: 64 }
    }
}

/// Parameters of a JBOF.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JbofConfig {
    /// The design.
    pub design: Design,
    /// Drives: 1 to 4,096, as many as the fabric names; in designs that lend, at most [`xbof::DRIVES_MAX`].
    pub drives: u32,
    /// Drives that run the workload: the first ones.
    pub busy_drives: u32,
    /// A drive with full resources, as Conv has it. Drives that differ come
    /// as [`super::DriveModel`]s.
    pub drive: DriveConfig,
    /// Random overwrites of all filled slots before the run, without timing.
    pub overwrites: Overwrites,
    /// Share of the cores that a shrunk drive keeps.
    pub shrunk_cores: f64,
    /// Share of the map that a shrunk drive's DRAM holds.
    pub shrunk_memory: f64,
    /// Power of one controller core.
    pub core_power: Watts,
    /// DRAM energy a bit, in picojoules.
    pub dram_picojoules_per_bit: f64,
    /// Link energy a bit, in picojoules.
    pub link_picojoules_per_bit: f64,
    /// Links and switches between drives and host.
    pub fabric: FabricConfig,
    /// The host.
    pub host: HostConfig,
    /// Its driver's handling of drives that do not answer.
    pub driver: DriverConfig,
    /// Harvesting.
    pub harvest: HarvestConfig,
    /// Virtual drives.
    pub vh: VhConfig,
    /// Services before commands.
    pub chain: ChainConfig,
}

/// The drive that a volume is.
pub(super) const fn drive_of(volume: VolumeId) -> DriveId {
    DriveId::new(volume.get())
}

/// The volume that lies on a drive: each drive is one.
pub(super) const fn volume_of(drive: DriveId) -> VolumeId {
    VolumeId::new(drive.get())
}

/// Why a JBOF cannot be built or run.
#[derive(Debug, thiserror::Error)]
pub enum JbofError {
    /// The drive cannot be.
    #[error("the drive cannot be built")]
    Drive(#[from] DriveConfigError),
    /// The fabric cannot be.
    #[error("the fabric cannot be built")]
    Fabric(#[from] FabricError),
    /// A drive cannot start from an aged state.
    #[error(transparent)]
    Aged(#[from] AgedDriveError),
    /// A number outside its range.
    #[error("{name} is {value}, give {least} to {most}")]
    Range {
        /// Which one.
        name: &'static str,
        /// The value given.
        value: u64,
        /// The least possible.
        least: u64,
        /// The most possible.
        most: u64,
    },
    /// More drives than descriptors name.
    #[error(
        "{design} with {drives} drives: the borrower field of the published resource descriptor has 8 bits and names \
         {} drives; give no more, or run a design that does not lend",
        xbof::DRIVES_MAX
    )]
    Unnamed {
        /// Which.
        design: &'static str,
        /// Drives asked for.
        drives: u32,
    },
    /// Fewer streams than busy drives, or more.
    #[error("{streams} request streams for {busy_drives} busy drives, give one each")]
    Streams {
        /// Streams given.
        streams: usize,
        /// Busy drives.
        busy_drives: u32,
    },
    /// Virtual drives over drives that differ.
    #[error("a virtual drive needs lenders of its own capacity and page size; run vh and vh-ideal with equal drives")]
    UnequalVirtual,
    /// A request beyond the drive.
    #[error(
        "request {number} of busy drive {drive} ends at byte {end}, beyond the drive's {capacity} bytes; \
         fold or scale the addresses, or use a larger drive"
    )]
    BeyondDrive {
        /// Busy drive.
        drive: DriveId,
        /// Count of requests of that stream, from 1.
        number: u64,
        /// Byte after the request.
        end: u64,
        /// Exported bytes.
        capacity: u64,
    },
    /// A drive can never admit a write.
    #[error(
        "drive {drive} has no room for a write, and will have none: it is worn out, or the write is larger than its \
         spare space"
    )]
    WornOut {
        /// Which.
        drive: DriveId,
    },
    /// A drive has lost data.
    #[error("drive {drive} cannot correct what it reads at slot {slot}; allow more retries, or less wear")]
    Unread {
        /// Which.
        drive: DriveId,
        /// The first logical slot that it cannot read, as far as that can be told.
        slot: u32,
    },
    /// A stream failed.
    #[error(transparent)]
    Source(#[from] flashyard_workload::SourceError),
    /// The streams ended before anything counted.
    #[error(
        "a stream ended before the warm-up of {warmup} did, so nothing was measured; \
         give more requests or a shorter warm-up"
    )]
    NothingMeasured {
        /// The warm-up.
        warmup: SimSpan,
    },
    /// More time than can be reckoned with.
    #[error(
        "the run goes on beyond {horizon} of simulated time, and more cannot be added up; give less work, or faster drives"
    )]
    BeyondTime {
        /// The most that is possible.
        horizon: SimSpan,
    },
    /// A design whose drives cannot serve on their own.
    #[error("{design} cannot serve: its drives need the host for their work; give conv, shrunk, proch or xbof")]
    NotServed {
        /// Which.
        design: &'static str,
    },
    /// The observer asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl JbofConfig {
    /// Checks ranges.
    pub fn validate(&self) -> Result<(), JbofError> {
        let most = u64::from(self.drives.min(ENDPOINTS_MAX));
        let ranges = [
            ("drives", u64::from(self.drives), 1, ENDPOINTS_MAX.into()),
            ("busy_drives", u64::from(self.busy_drives), 1, most),
            ("host cores", u64::from(self.host.cores), 1, 1024),
            ("vh lenders", u64::from(self.vh.lenders), 1, u64::from(ENDPOINTS_MAX) - 1),
        ];
        for (name, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return Err(JbofError::Range { name, value, least, most });
            }
        }
        if self.design.harvests_processors() && self.drives > xbof::DRIVES_MAX {
            return Err(JbofError::Unnamed { design: self.design.name(), drives: self.drives });
        }
        self.placed_drive().validate()?;
        Ok(())
    }

    /// Drives behind each host but the last, which may have fewer.
    pub fn drives_per_host(&self) -> u32 {
        match self.host.drives_per_host {
            0 => self.drives,
            some => some.min(self.drives),
        }
    }

    /// Hosts in front of the drives.
    pub fn hosts(&self) -> u32 {
        self.drives.div_ceil(self.drives_per_host())
    }

    /// Weights of the submission queues of each drive: its own, then a shadow queue for each offer of a lender.
    pub(super) fn queue_weights(&self) -> Vec<u32> {
        let (own, shadow) = (self.harvest.own_weight(), self.harvest.weights.shadow);
        let offers = if self.design.harvests_processors() { self.harvest.processor_offers } else { 0 };
        std::iter::once(own).chain((0..offers).map(|_| shadow)).collect()
    }

    /// Translation pages of one drive.
    pub fn map_pages(&self) -> u32 {
        self.model().map_pages()
    }

    /// The drive as the design builds it.
    pub fn placed_drive(&self) -> DriveConfig {
        self.placed(&self.model())
    }

    /// Host time of a command of `slots`, on a core; `firmware` is that of its drive with full resources.
    pub fn host_time(&self, firmware: &FirmwareCost, slots: u32) -> SimSpan {
        let mut cycles = self.host.driver_cycles;
        if self.design == Design::Oc {
            let firmware = firmware.cycles(u64::from(slots));
            cycles += (firmware as f64 * self.host.oc_cycles_factor) as u64;
        }
        let balance = if self.design.harvests_processors() { self.harvest.host_cost } else { SimSpan::ZERO };
        self.host.clock.span_of(cycles + self.chain.on_host(self.design == Design::Oc)) + balance
    }

    /// Latency from the driver to the drive.
    pub fn submit_latency(&self) -> SimSpan {
        let software = if self.design == Design::Oc { self.host.oc_latency } else { SimSpan::ZERO };
        self.host.submit_latency + software + self.host.interface.submission()
    }

    /// Latency from the drive to the application; coalesced interrupts add to it.
    pub fn complete_latency(&self) -> SimSpan {
        let interface = &self.host.interface;
        interface.completion_write + interface.notice() + self.host.complete_latency
    }
}

#[cfg(test)]
mod tests {
    use super::super::small;
    use super::*;

    #[test]
    fn descriptors_limit_the_designs_that_use_them_and_no_other() {
        let of = |design, drives| JbofConfig { drives, ..small::config(design) }.validate();
        for design in Design::ALL {
            let refused = of(design, 256).err().map(|error| error.to_string());
            assert_eq!(refused.is_some(), matches!(design, Design::ProcH | Design::Xbof), "{design:?}: {refused:?}");
            assert!(refused.is_none_or(|words| words.contains("8 bits") && words.contains("names 255 drives")));
            assert!(of(design, 255).is_ok());
            assert!(of(design, 4097).is_err_and(|error| error.to_string().contains("give 1 to 4096")));
        }
        assert!(of(Design::Conv, 4096).is_ok());
    }
}
