//! Designs: where the data lies and how it is reached.
//!
//! Sources: [P] sheets micro-cxl-ssd §5 and micro-expand §5.

use crate::address_map::{AddressMap, Claimed};
use crate::ahead_parts::{AheadParts, Latencies};
use crate::combine::Combine;
use flashyard_cxl::{Completes, Memory, MemoryAccess, MemoryLimits, Transaction};
use flashyard_memory::{
    Ahead, AheadCounters, Dram, DramConfig, Endpoint, EndpointConfig, Expander, Lent, MachineConfig, MemoryError, Node,
    PAGE_BYTES, PathConfig, PathTimes, Place, Routing, Topology,
};
use flashyard_prefetch::{AnyPredictor, Cost, Predictor, Seen};
use flashyard_units::{Bytes, Named, SimSpan, SimTime};

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
    /// CXL-SSD that the host reads ahead by the best offset.
    BestOffset,
    /// CXL-SSD that the host reads ahead along sequences that repeat.
    Isb,
    /// CXL-SSD that the host reads ahead by an LSTM.
    Lstm,
    /// CXL-SSD that the host reads ahead by attention over segments of addresses.
    Attention,
    /// CXL-SSD that predicts its requests itself and pushes their lines.
    Expand,
    /// CXL-SSD that pushes what its program will ask for, as often as set.
    Oracle,
}

impl Named for Design {
    const ALL: &'static [Self] = &[
        Self::Dram,
        Self::CxlDram,
        Self::PcieSsd,
        Self::CxlSsd,
        Self::CxlAssd,
        Self::BestOffset,
        Self::Isb,
        Self::Lstm,
        Self::Attention,
        Self::Expand,
        Self::Oracle,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Dram => "dram",
            Self::CxlDram => "cxl-dram",
            Self::PcieSsd => "pcie-ssd",
            Self::CxlSsd => "cxl-ssd",
            Self::CxlAssd => "cxl-assd",
            Self::BestOffset => "best-offset",
            Self::Isb => "isb",
            Self::Lstm => "lstm",
            Self::Attention => "attention",
            Self::Expand => "expand",
            Self::Oracle => "oracle",
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
            Self::BestOffset => "CXL-SSD whose host reads ahead by the offset that would have been in time most often",
            Self::Isb => "CXL-SSD whose host reads ahead along sequences of lines that repeat",
            Self::Lstm => "CXL-SSD whose host reads ahead by a trained LSTM over pages and offsets (ML1)",
            Self::Attention => "CXL-SSD whose host reads ahead by trained attention over segments of addresses (ML2)",
            Self::Expand => {
                "CXL-SSD that predicts its requests by a trained transformer and pushes lines when they are due"
            }
            Self::Oracle => {
                "CXL-SSD that knows its program and serves requests with the accuracy and coverage that are set"
            }
        }
    }

    /// Whether flash is behind it.
    pub const fn has_flash(self) -> bool {
        !matches!(self, Self::Dram | Self::CxlDram)
    }

    /// Whether flash is reached over CXL, and may have mechanisms of other designs besides.
    pub const fn combines(self) -> bool {
        self.has_flash() && !matches!(self, Self::PcieSsd)
    }

    /// Whether its requests are annotated.
    pub(crate) const fn annotates(self, combine: &Combine) -> bool {
        matches!(self, Self::CxlAssd) || combine.annotated && self.combines()
    }

    /// Whether it predicts by a network that is trained before the run.
    pub const fn is_trained(self) -> bool {
        matches!(self, Self::Lstm | Self::Attention | Self::Expand)
    }

    /// Where lines are predicted, in designs that fetch them ahead.
    pub const fn predicts(self) -> Option<Place> {
        match self {
            Self::BestOffset | Self::Isb | Self::Lstm | Self::Attention => Some(Place::Host),
            Self::Expand | Self::Oracle => Some(Place::Device),
            Self::Dram | Self::CxlDram | Self::PcieSsd | Self::CxlSsd | Self::CxlAssd => None,
        }
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
    /// DRAM on the processor that programs use, from address 0 on. Firmware writes its end as the base of the device's range into
    /// HDM decoders; the device's own first bytes are skipped, as many.
    pub local: Bytes,
    /// How lines are fetched ahead, where the scenario says.
    pub ahead: Option<AheadParts>,
    /// Mechanisms of other designs besides.
    pub combine: Combine,
}

impl Parts {
    /// The hierarchy that firmware finds behind the only root port: a device with so many pages behind the switches of `path`.
    fn topology(&self, path: &PathConfig, pages: u32) -> Result<Topology, MemoryError> {
        // [P] sheet micro-expand §3.7: the estimate of time considers the latency of the medium. [A] with it goes a line of internal DRAM
        // where another row is open
        let own = self.endpoint.controller + self.endpoint.dram.row_miss() + self.endpoint.load_time();
        let device = Node::device(Bytes::new(u64::from(pages) * PAGE_BYTES), own).behind(path.switches);
        let range = "as many as 256 buses have, two each";
        let too_many = || MemoryError::Range { name: "switches", value: path.switches.into(), range };
        Topology::enumerate(&device).ok_or_else(too_many)
    }

    /// The decoders that firmware commits for it: its range begins where DRAM on the processor ends.
    fn routing(&self, path: &PathConfig, pages: u32) -> Result<Routing, MemoryError> {
        Ok(self.topology(path, pages)?.one_after_another(self.local.get(), self.local)?)
    }

    /// Latencies of a device of so many pages behind CXL.
    pub(crate) fn latencies(&self, pages: u32) -> Result<Latencies, MemoryError> {
        let of = |switches| -> Result<SimSpan, MemoryError> {
            let path = PathConfig { switches, ..self.cxl };
            let mut topology = self.topology(&path, pages)?;
            topology.write_latencies(&path);
            let found = topology.devices.first().map_or(0, |device| device.end_to_end_ns);
            Ok(SimSpan::from_ns(found.into()))
        };
        let aware = self.ahead.is_none_or(|ahead| ahead.aware);
        let (real, end_to_end) = (of(self.cxl.switches)?, of(if aware { self.cxl.switches } else { 0 })?);
        let unknown = SimSpan::from_ps(real.as_ps().saturating_sub(end_to_end.as_ps()));
        Ok(Latencies { end_to_end, unknown, lead: self.endpoint.stage_time() })
    }
}

/// The memory of a design.
pub struct Backing {
    /// DRAM on the processor.
    local: Dram,
    map: AddressMap,
    far: Far,
    local_requests: u64,
    loads: u64,
    /// When every thousandth load was asked for.
    marks: Vec<SimTime>,
}

/// Loads from one mark to the next.
pub(crate) const MARK: u64 = 1000;

/// The memory behind a path.
enum Far {
    /// Nothing: everything is in DRAM on the processor.
    Nothing,
    /// DRAM.
    Dram(Box<Expander<Dram>>),
    /// A device with flash.
    Device(Box<Expander<Endpoint>>),
    /// A device with flash whose lines are fetched ahead.
    Ahead(Box<Ahead<Endpoint, Box<dyn AnyPredictor>>>),
}

impl Backing {
    /// The memory of `design`, with a predictor where it fetches lines ahead; a learned index knows the pages of `touched`.
    ///
    /// Errors: parameters outside their ranges; a design that lacks its predictor.
    pub(crate) fn new(
        design: Design,
        parts: &Parts,
        predictor: Option<Box<dyn AnyPredictor>>,
        touched: &[u32],
        seed: u64,
    ) -> Result<Self, MemoryError> {
        let combine = if design.combines() { parts.combine } else { Combine::default() };
        let device = || -> Result<Endpoint, MemoryError> {
            let config = EndpointConfig { reads_annotations: design.annotates(&combine), ..parts.endpoint };
            let pages = |slots, medium| combine.pages(config.policy, slots, medium, touched);
            let endpoint = Endpoint::with_pages(config, pages)?;
            Ok(match combine.lent {
                Some(lent) => endpoint.borrowing(Lent::new(lent)?),
                None => endpoint,
            })
        };
        let pages = parts.endpoint.medium.pages()?;
        let map = match design {
            Design::Dram => AddressMap::LOCAL,
            Design::PcieSsd => AddressMap::with_far(parts.local, parts.routing(&parts.bar, pages)?),
            _ => AddressMap::with_far(parts.local, parts.routing(&parts.cxl, pages)?),
        };
        let over_cxl = |device| Expander::new(parts.cxl, device).reading_ahead(combine.read_ahead);
        let far = match design {
            Design::Dram => Far::Nothing,
            Design::CxlDram => Far::Dram(Box::new(Expander::new(parts.cxl, Dram::new(parts.dram)?))),
            Design::PcieSsd => Far::Device(Box::new(Expander::new(parts.bar, device()?))),
            Design::CxlSsd | Design::CxlAssd => Far::Device(Box::new(over_cxl(device()?))),
            _ => {
                let lacks =
                    || MemoryError::Range { name: "predictors of the design", value: 0, range: "1: see memory.ahead" };
                let (predictor, ahead) = predictor.zip(parts.ahead).ok_or_else(lacks)?;
                let (latencies, imposed) = (parts.latencies(pages)?, design == Design::Oracle);
                let config = ahead.config(design.predicts().unwrap_or(Place::Host), &latencies, imposed, seed);
                Far::Ahead(Box::new(Ahead::new(config, over_cxl(device()?), predictor)))
            }
        };
        Ok(Self { local: Dram::new(parts.dram)?, map, far, local_requests: 0, loads: 0, marks: Vec::new() })
    }

    /// When every thousandth load was asked for.
    pub(crate) fn marks(&self) -> &[SimTime] {
        &self.marks
    }

    /// Whether all requests so far found a memory.
    ///
    /// Errors: there are some to addresses that no decoder claims.
    pub fn check(&self) -> Result<(), MemoryError> {
        self.map.check()
    }

    /// Requests that DRAM on the processor has answered.
    pub fn local_requests(&self) -> u64 {
        self.local_requests
    }

    /// The device with flash, where there is one.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match &self.far {
            Far::Device(expander) => Some(expander.device()),
            Far::Ahead(ahead) => Some(ahead.expander().device()),
            Far::Nothing | Far::Dram(_) => None,
        }
    }

    /// The device with flash, to change it between runs.
    pub fn endpoint_mut(&mut self) -> Option<&mut Endpoint> {
        match &mut self.far {
            Far::Device(expander) => Some(expander.device_mut()),
            Far::Ahead(ahead) => Some(ahead.expander_mut().device_mut()),
            Far::Nothing | Far::Dram(_) => None,
        }
    }

    /// Where the time of requests over a path went, and how many there were; `None` without a path.
    pub fn times(&self) -> Option<(PathTimes, u64)> {
        let of = |times, transactions: [u64; 2]| Some((times, transactions.iter().sum()));
        match &self.far {
            Far::Nothing => None,
            Far::Dram(expander) => of(expander.times(), expander.transactions()),
            Far::Device(expander) => of(expander.times(), expander.transactions()),
            Far::Ahead(ahead) => of(ahead.expander().times(), ahead.expander().transactions()),
        }
    }

    /// Hints that the root port has sent, and the lines in them.
    pub fn hinted(&self) -> [u64; 2] {
        match &self.far {
            Far::Device(expander) => expander.hinted(),
            Far::Ahead(ahead) => ahead.expander().hinted(),
            Far::Nothing | Far::Dram(_) => [0; 2],
        }
    }

    /// Lets requests go by that are made without time. Rules learn from them; a network keeps the state that it has, and an oracle waits for
    /// the next request that it knows.
    pub(crate) fn pass(&mut self, design: Design, seen: &[Seen]) {
        if let Far::Ahead(ahead) = &mut self.far {
            ahead.pass(seen, matches!(design, Design::BestOffset | Design::Isb));
        }
    }

    /// Counts of lines fetched ahead and the cost of predicting them, where that is done.
    pub fn ahead(&self) -> Option<(AheadCounters, Cost)> {
        match &self.far {
            Far::Ahead(ahead) => Some((*ahead.counters(), ahead.predictor().cost())),
            Far::Nothing | Far::Dram(_) | Far::Device(_) => None,
        }
    }
}

impl Memory for Backing {
    fn limits(&self) -> MemoryLimits {
        self.local.limits()
    }

    #[inline]
    fn access(&mut self, now: SimTime, token: u64, access: &MemoryAccess) -> Completes {
        if access.operation == Transaction::Load {
            self.loads += 1;
            if self.loads.is_multiple_of(MARK) {
                self.marks.push(now);
            }
        }
        let address = match self.map.claimed(access.address) {
            Claimed::Local(address) => {
                self.local_requests += 1;
                return self.local.access(now, token, &MemoryAccess { address, ..*access });
            }
            Claimed::Far(address) => address,
            Claimed::Nothing => {
                // Loads of such addresses return ones, and stores are dropped. [X] CXL: no device is asked.
                self.map.note_unclaimed(access.address);
                return Completes::At(now);
            }
        };
        let access = MemoryAccess { address, ..*access };
        match &mut self.far {
            Far::Device(expander) => expander.access(now, token, &access),
            Far::Dram(expander) => expander.access(now, token, &access),
            Far::Ahead(ahead) => ahead.access(now, token, &access),
            // No decoder leads here.
            Far::Nothing => Completes::At(now),
        }
    }

    fn persist(&mut self, now: SimTime) -> SimTime {
        match &mut self.far {
            Far::Device(expander) => expander.persist(now),
            Far::Ahead(ahead) => ahead.persist(now),
            Far::Dram(expander) => expander.persist(now),
            Far::Nothing => now,
        }
    }
}
