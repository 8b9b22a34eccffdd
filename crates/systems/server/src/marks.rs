//! Counters of a server: at the ends of the measured window, and over time.

use crate::network::NetworkVolume;
use crate::tiers::{ServiceCounts, Tiered};
use flashyard_ftl::FtlCounters;
use flashyard_host::ProcessorPool;
use flashyard_measure::{Dated, Totals};
use flashyard_ssd::Drive;
use flashyard_units::{SimSpan, SimTime};

/// Counters of all components at an end of the measured window.
#[derive(Clone, Debug)]
pub struct Marks {
    pub(crate) drives: Vec<DriveMarks>,
    pub(crate) services: Vec<ServiceCounts>,
    /// Requests that each network volume has carried out.
    pub(crate) networks: Vec<u64>,
    /// Interrupts that were shared.
    pub(crate) interrupts: u64,
    /// Busy time of each pool, over all its groups.
    pub(crate) pools: Vec<SimSpan>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DriveMarks {
    pub(crate) bus: SimSpan,
    pub(crate) die: SimSpan,
    pub(crate) ftl: FtlCounters,
}

impl Marks {
    /// Those of the components; the world adds its own count of interrupts.
    pub(crate) fn of(
        drives: &[Drive],
        services: &[Tiered],
        networks: &[NetworkVolume],
        pools: &[Vec<ProcessorPool>],
        now: SimTime,
    ) -> Self {
        let drive = |drive: &Drive| {
            let nand = &drive.data.flash.nand;
            DriveMarks { bus: nand.bus_busy(), die: nand.die_busy(), ftl: *drive.data.ftl.counters() }
        };
        let pool = |groups: &Vec<ProcessorPool>| groups.iter().map(|pool| pool.busy_until(now)).sum();
        Self {
            drives: drives.iter().map(drive).collect(),
            services: services.iter().filter_map(Tiered::counts).collect(),
            networks: networks.iter().map(NetworkVolume::carried).collect(),
            interrupts: 0,
            pools: pools.iter().map(pool).collect(),
        }
    }
}

/// Counts of all volumes at one instant.
#[derive(Clone, Debug)]
pub struct ServerReading {
    /// When.
    pub at: SimTime,
    /// Requests of each virtual drive.
    pub totals: Vec<Totals>,
}

impl Dated for ServerReading {
    fn at(&self) -> SimTime {
        self.at
    }
}

impl ServerReading {
    pub(crate) fn of(totals: &[Totals], at: SimTime) -> Self {
        Self { at, totals: totals.to_vec() }
    }
}
