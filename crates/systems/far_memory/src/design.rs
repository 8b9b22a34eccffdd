//! Designs: where the data lies and how it is reached.
//!
//! Source: [P] sheet micro-cxl-ssd §5.

use flashyard_cxl::{Completes, Memory, MemoryAccess, MemoryLimits};
use flashyard_memory::{Dram, DramConfig, Endpoint, EndpointConfig, Expander, MachineConfig, MemoryError, PathConfig};
use flashyard_units::{Named, SimTime};

/// A design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// DRAM on the processor.
    Dram,
    /// DRAM behind CXL.
    CxlDram,
    /// Flash with internal DRAM behind a PCIe BAR: accesses past the caches, in program order.
    PcieSsd,
    /// Flash of this kind behind CXL: cacheable.
    CxlSsd,
    /// CXL-SSD whose requests are annotated.
    CxlAssd,
}

impl Named for Design {
    const ALL: &'static [Self] = &[Self::Dram, Self::CxlDram, Self::PcieSsd, Self::CxlSsd, Self::CxlAssd];

    fn name(self) -> &'static str {
        match self {
            Self::Dram => "dram",
            Self::CxlDram => "cxl-dram",
            Self::PcieSsd => "pcie-ssd",
            Self::CxlSsd => "cxl-ssd",
            Self::CxlAssd => "cxl-assd",
        }
    }
}

impl Design {
    /// The design in one line.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Dram => "DRAM on the processor",
            Self::CxlDram => "DRAM behind CXL",
            Self::PcieSsd => "flash with internal DRAM behind a PCIe BAR: accesses past the caches, in program order",
            Self::CxlSsd => "the same flash behind CXL: cacheable",
            Self::CxlAssd => "CXL-SSD whose requests say what must not be delayed and what is worth keeping",
        }
    }

    /// Whether flash is behind it.
    pub const fn has_flash(self) -> bool {
        matches!(self, Self::PcieSsd | Self::CxlSsd | Self::CxlAssd)
    }
}

/// Parameters that designs are made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// Cores and caches. Designs decide what is cached and annotated.
    pub machine: MachineConfig,
    /// DRAM on the processor, and behind CXL.
    pub dram: DramConfig,
    /// The path over CXL.
    pub cxl: PathConfig,
    /// The path to a BAR.
    pub bar: PathConfig,
    /// The device with flash.
    pub endpoint: EndpointConfig,
    /// First address that lies on the device with flash; those before it lie in DRAM on the processor.
    pub device_from: u64,
}

/// The memory of a design.
pub struct Backing {
    /// DRAM on the processor, for addresses below `device_from`.
    local: Dram,
    device_from: u64,
    far: Far,
    local_requests: u64,
}

/// The memory behind a path.
enum Far {
    /// Nothing: everything is in DRAM on the processor.
    Nothing,
    /// DRAM.
    Dram(Box<Expander<Dram>>),
    /// A device with flash.
    Device(Box<Expander<Endpoint>>),
}

impl Backing {
    /// The memory of `design`.
    ///
    /// Errors: parameters outside their ranges.
    pub fn new(design: Design, parts: &Parts) -> Result<Self, MemoryError> {
        let reads_annotations = design == Design::CxlAssd;
        let device = || Endpoint::new(EndpointConfig { reads_annotations, ..parts.endpoint });
        let far = match design {
            Design::Dram => Far::Nothing,
            Design::CxlDram => Far::Dram(Box::new(Expander::new(parts.cxl, Dram::new(parts.dram)?))),
            Design::PcieSsd => Far::Device(Box::new(Expander::new(parts.bar, device()?))),
            Design::CxlSsd | Design::CxlAssd => Far::Device(Box::new(Expander::new(parts.cxl, device()?))),
        };
        Ok(Self { local: Dram::new(parts.dram)?, device_from: parts.device_from, far, local_requests: 0 })
    }

    /// Requests that DRAM on the processor has answered.
    pub fn local_requests(&self) -> u64 {
        self.local_requests
    }

    /// The device with flash, where there is one.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match &self.far {
            Far::Device(expander) => Some(expander.device()),
            Far::Nothing | Far::Dram(_) => None,
        }
    }

    /// The device with flash, to change it between runs.
    pub fn endpoint_mut(&mut self) -> Option<&mut Endpoint> {
        match &mut self.far {
            Far::Device(expander) => Some(expander.device_mut()),
            Far::Nothing | Far::Dram(_) => None,
        }
    }
}

impl Memory for Backing {
    fn limits(&self) -> MemoryLimits {
        self.local.limits()
    }

    #[inline]
    fn access(&mut self, now: SimTime, token: u64, access: &MemoryAccess) -> Completes {
        if access.address >= self.device_from {
            match &mut self.far {
                Far::Device(expander) => return expander.access(now, token, access),
                Far::Dram(expander) => return expander.access(now, token, access),
                Far::Nothing => {}
            }
        }
        self.local_requests += 1;
        self.local.access(now, token, access)
    }
}
