//! Endpoints on a tree of switches, and access to each other's memory.

use crate::link::{Direction, Link};
use flashyard_cxl::{Completes, ENDPOINTS_MAX, Memory, MemoryAccess, MemoryLimits, Transaction};
use flashyard_units::{ByteRate, SimSpan, SimTime};

/// Parameters of the fabric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FabricConfig {
    /// Rate of each endpoint's link on the wire, each direction. [P] xbof §4.1
    pub link_rate: ByteRate,
    /// Whether bulk data of both directions shares the rate of one. [C] NVMeVirt has one budget of bandwidth for reads and writes
    pub half_duplex: bool,
    /// Downstream ports of a switch. [A] one switch joins the published enclosure
    pub radix: u32,
    /// Latency of each switch beyond the first on a path, one way. [X] CXL switches of today
    pub hop: SimSpan,
    /// A load of a line behind one switch, from issue to data. [A] xbof §9.7
    pub load: SimSpan,
    /// A posted store behind one switch, until it is visible. [A] xbof §9.7
    pub store: SimSpan,
    /// An atomic behind one switch, from issue to result. [A] xbof §9.7
    pub atomic: SimSpan,
}

impl Default for FabricConfig {
    fn default() -> Self {
        Self {
            link_rate: ByteRate::from_mb(16_000),
            half_duplex: false,
            radix: 32,
            hop: SimSpan::from_ns(70),
            load: SimSpan::from_ns(300),
            store: SimSpan::from_ns(150),
            atomic: SimSpan::from_ns(350),
        }
    }
}

/// Why a fabric cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FabricError {
    /// More endpoints than ids.
    #[error("{0} endpoints, a fabric names at most {ENDPOINTS_MAX}")]
    TooMany(u32),
    /// A switch that joins nothing.
    #[error("switches of {0} ports join nothing, give at least 2")]
    Radix(u32),
}

/// Endpoints under leaf switches of one radix, leaves under further switches up to one root.
pub struct Fabric {
    config: FabricConfig,
    links: Vec<Link>,
    transactions: u64,
}

impl Fabric {
    /// A fabric of idle links.
    ///
    /// Errors: more endpoints than ids, a radix below two.
    pub fn new(endpoints: u32, config: FabricConfig) -> Result<Self, FabricError> {
        if endpoints > ENDPOINTS_MAX {
            return Err(FabricError::TooMany(endpoints));
        }
        if config.radix < 2 {
            return Err(FabricError::Radix(config.radix));
        }
        Ok(Self { config, links: vec![Link::new(config.link_rate); endpoints as usize], transactions: 0 })
    }

    /// The link of an endpoint.
    pub fn link(&self, endpoint: u16) -> &Link {
        &self.links[endpoint as usize]
    }

    /// The rate at which payload of both directions passes an endpoint's link, where they share it; `None` where each has its own.
    pub fn shared_rate(&self) -> Option<ByteRate> {
        self.config.half_duplex.then(|| Link::new(self.config.link_rate).payload_rate())
    }

    /// Time for which an endpoint's link was busy: that of the busier direction, or of both where they share it.
    pub fn busy(&self, endpoint: u16) -> SimSpan {
        let link = self.link(endpoint);
        let (out, back) = (link.busy(Direction::Out), link.busy(Direction::In));
        if self.config.half_duplex { out + back } else { out.max(back) }
    }

    /// Memory transactions so far.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// Switches on the path between two endpoints: one under a common leaf, two more for each level up.
    pub fn switches(&self, from: u16, to: u16) -> u32 {
        let (mut from, mut to) = (u32::from(from) / self.config.radix, u32::from(to) / self.config.radix);
        let mut switches = 1;
        while from != to {
            from /= self.config.radix;
            to /= self.config.radix;
            switches += 2;
        }
        switches
    }

    /// Data between an endpoint's memory and the host, paced by the drive's DMA engine.
    #[inline]
    pub fn stream(&mut self, endpoint: u16, direction: Direction, bytes: u64) {
        self.links[endpoint as usize].stream(direction, bytes);
    }

    /// Latency of the switches after the first between two endpoints, one way.
    fn beyond_first_switch(&self, from: u16, to: u16) -> SimSpan {
        self.config.hop * u64::from(self.switches(from, to) - 1)
    }

    /// Dependent loads of `lines` lines from each peer's memory by `from`, or by a host beside it, one after the other;
    /// returns how long they take together. A scan is spread over far more time than its lines occupy any link, so it
    /// counts as traffic and does not wait.
    pub fn scan(&mut self, from: u16, peers: impl IntoIterator<Item = u16>, lines: u64) -> SimSpan {
        let mut whole = SimSpan::ZERO;
        for peer in peers {
            whole += (self.config.load + self.beyond_first_switch(from, peer) * 2) * lines;
            self.transactions += lines;
            let link = &mut self.links[peer as usize];
            link.stream(Direction::In, Transaction::Load.request_bytes() * lines);
            link.stream(Direction::Out, Transaction::Load.response_bytes() * lines);
        }
        whole
    }

    /// The memory of `to`, as `from` accesses it.
    #[inline]
    pub fn memory(&mut self, from: u16, to: u16) -> RemoteMemory<'_> {
        RemoteMemory { fabric: self, from, to }
    }

    /// `count` transactions of `from` on memory of `to`, the first at `now`: loads and atomics one after the other, stores posted;
    /// returns how long they take together. Lines queue behind other lines on `to`'s link, not behind bulk
    /// data: memory and I/O traffic have virtual channels of their own.
    pub fn access(&mut self, now: SimTime, from: u16, to: u16, transaction: Transaction, count: u64) -> SimSpan {
        let base = match transaction {
            Transaction::Load => self.config.load,
            Transaction::Store => self.config.store,
            Transaction::Atomic => self.config.atomic,
        };
        let ways = if transaction == Transaction::Store { 1 } else { 2 };
        let each = base + self.beyond_first_switch(from, to) * ways;
        let on_wire =
            |count| self.config.link_rate.span_of(flashyard_cxl::wire_bytes(transaction.request_bytes() * count));
        let own = on_wire(count);
        // Loads and atomics wait for the answer of the one before. Stores are posted: each follows the one before it on the wire.
        let unloaded = match transaction {
            Transaction::Load | Transaction::Atomic => each * count,
            Transaction::Store => each + own - on_wire(count.min(1)),
        };
        self.transactions += count;
        let link = &mut self.links[to as usize];
        let arrives = link.carry(now, Direction::In, transaction.request_bytes() * count);
        link.stream(Direction::Out, transaction.response_bytes() * count);
        // The unloaded latency holds the time on an idle link; only waiting for the lane comes on top.
        let waited = SimSpan::from_ps(arrives.since(now).as_ps().saturating_sub(own.as_ps()));
        unloaded + waited
    }
}

/// The memory that one endpoint exposes, as another one accesses it through the fabric.
pub struct RemoteMemory<'a> {
    fabric: &'a mut Fabric,
    from: u16,
    to: u16,
}

impl Memory for RemoteMemory<'_> {
    /// The fabric itself has no limits: the endpoint says what it exposes.
    fn limits(&self) -> MemoryLimits {
        MemoryLimits { bytes: u64::MAX, access_bytes: u32::MAX, atomics: true }
    }

    #[inline]
    fn access(&mut self, now: SimTime, _token: u64, access: &MemoryAccess) -> Completes {
        let span = self.fabric.access(now, self.from, self.to, access.operation, access.line_count());
        Completes::At(now + span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fabric(endpoints: u32) -> Fabric {
        Fabric::new(endpoints, FabricConfig { radix: 4, ..FabricConfig::default() }).expect("it is possible")
    }

    #[test]
    fn an_idle_path_takes_the_sum_of_its_parts() {
        let mut fabric = fabric(64);
        let zero = SimTime::ZERO;
        assert_eq!(fabric.access(zero, 0, 1, Transaction::Load, 1), SimSpan::from_ns(300));
        assert_eq!(fabric.access(zero, 0, 2, Transaction::Store, 1), SimSpan::from_ns(150));
        assert_eq!(fabric.access(zero, 0, 3, Transaction::Atomic, 2), SimSpan::from_ns(700));
        // Two levels up: five switches, four more than one, both ways.
        assert_eq!(fabric.switches(0, 63), 5);
        assert_eq!(fabric.access(zero, 0, 63, Transaction::Load, 1), SimSpan::from_ns(300 + 8 * 70));
    }

    #[test]
    fn lines_wait_for_lines_on_the_same_link() {
        let mut fabric = fabric(4);
        let first = fabric.access(SimTime::ZERO, 0, 1, Transaction::Store, 100);
        let second = fabric.access(SimTime::ZERO, 2, 1, Transaction::Store, 1);
        // 100 stores of 80 bytes are 8,534 bytes on the wire: 533 ns at 16 GB/s. Stores are posted: each follows the one before
        // it without waiting for its arrival, and the last one arrives 99 turns on the wire after the first.
        assert_eq!(first.as_ns(), 150 + 528);
        assert_eq!(second.as_ns(), 150 + 533);
        assert_eq!(fabric.link(1).payload(Direction::In), 101 * 80);
        assert_eq!(fabric.transactions(), 101);
    }

    proptest! {
        #[test]
        fn accesses_to_remote_memory_are_transactions_line_by_line(
            accesses in prop::collection::vec((0_u64..500, 0_u16..64, 0_u16..64, 0_u64..4_096, 1_u32..700, 0_usize..3), 1..60),
        ) {
            let (mut accessed, mut transacted) = (fabric(64), fabric(64));
            let mut now = SimTime::ZERO;
            for (gap_ns, from, to, address, len_bytes, operation) in accesses {
                now += SimSpan::from_ns(gap_ns);
                let operation = [Transaction::Load, Transaction::Store, Transaction::Atomic][operation];
                let access = MemoryAccess { len_bytes, ..MemoryAccess::lines(operation, address, 1) };
                let completes = accessed.memory(from, to).access(now, 0, &access);
                let lines = (address + u64::from(len_bytes) - 1) / 64 - address / 64 + 1;
                prop_assert_eq!(completes, Completes::At(now + transacted.access(now, from, to, operation, lines)));
                prop_assert_eq!(accessed.transactions(), transacted.transactions());
            }
        }
    }

    #[test]
    fn a_scan_takes_as_long_as_its_loads_one_by_one() {
        let (mut scanned, mut loaded) = (fabric(64), fabric(64));
        let one_by_one = (1..64).map(|peer| loaded.access(SimTime::ZERO, 0, peer, Transaction::Load, 2)).sum();
        assert_eq!(scanned.scan(0, 1..64, 2), one_by_one);
        assert_eq!(scanned.transactions(), loaded.transactions());
        for direction in [Direction::Out, Direction::In] {
            assert_eq!(scanned.link(63).payload(direction), loaded.link(63).payload(direction));
            assert_eq!(scanned.link(63).busy(direction), loaded.link(63).busy(direction));
        }
        // Three peers under the own leaf of four, twelve two switches up, forty-eight four switches up.
        assert_eq!(fabric(64).scan(0, 1..64, 1).as_ns(), 63 * 300 + 12 * 2 * 140 + 48 * 4 * 140);
    }

    /// Fifteen bytes of payload are sixteen on the wire: a nanosecond at 16 GB/s.
    #[test]
    fn a_link_is_busy_with_its_busier_direction_or_with_both_where_they_share_it() {
        for half_duplex in [false, true] {
            let config = FabricConfig { half_duplex, ..FabricConfig::default() };
            let mut fabric = Fabric::new(2, config).expect("it is possible");
            fabric.stream(1, Direction::Out, 15_000);
            fabric.stream(1, Direction::In, 45_000);
            let busy = if half_duplex { 4_000 } else { 3_000 };
            assert_eq!(fabric.busy(1), SimSpan::from_ns(busy));
            fabric.stream(1, Direction::Out, 60_000);
            let busy = if half_duplex { 8_000 } else { 5_000 };
            assert_eq!((fabric.busy(1), fabric.busy(0)), (SimSpan::from_ns(busy), SimSpan::ZERO));
            assert_eq!(fabric.link(1).payload(Direction::Out), 75_000);
            assert_eq!(fabric.shared_rate(), half_duplex.then(|| ByteRate::from_mb(15_000)));
        }
    }

    #[test]
    fn bulk_data_that_streams_keeps_no_line_waiting() {
        let mut fabric = fabric(4);
        fabric.stream(1, Direction::In, 1 << 30);
        assert_eq!(fabric.access(SimTime::ZERO, 0, 1, Transaction::Load, 1), SimSpan::from_ns(300));
    }

    #[test]
    fn a_fabric_limits_no_access_to_remote_memory() {
        let limits = fabric(4).memory(0, 1).limits();
        assert_eq!(limits, MemoryLimits { bytes: u64::MAX, access_bytes: u32::MAX, atomics: true });
    }

    #[test]
    fn impossible_fabrics_are_refused() {
        assert_eq!(Fabric::new(5000, FabricConfig::default()).err(), Some(FabricError::TooMany(5000)));
        let single = FabricConfig { radix: 1, ..FabricConfig::default() };
        assert_eq!(Fabric::new(2, single).err(), Some(FabricError::Radix(1)));
        let least = FabricConfig { radix: 2, ..FabricConfig::default() };
        let largest = Fabric::new(ENDPOINTS_MAX, least).expect("every endpoint has an id");
        // A binary tree of twelve levels: two switches a level, but one at the root.
        assert_eq!(largest.switches(0, 4095), 23);
    }
}
