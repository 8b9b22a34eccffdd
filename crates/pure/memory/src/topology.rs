//! How far a device is: buses by enumeration, the device's own latency by its table, both as a number in its configuration space.
//!
//! A switch is a bridge upstream and a bridge for each port downstream. Enumeration walks depth first and numbers buses; a bridge then knows
//! the range of buses behind it. The bridges whose ranges hold the bus of a device are those on its way.
//!
//! Source: [P] sheet micro-expand §3.7; [X] the DSLBIS of CDAT 1.03 and type 1 headers of PCIe.

use crate::path::PathConfig;
use flashyard_cxl::{PushMessage, wire_bytes};
use flashyard_units::SimSpan;

/// A part of a hierarchy before it is enumerated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A switch with what hangs on its ports.
    Switch(Vec<Node>),
    /// A device that reports this table.
    Device(Dslbis),
}

impl Node {
    /// A device behind `switches` in a row.
    pub fn chain(switches: u32, table: Dslbis) -> Self {
        (0..switches).fold(Self::Device(table), |below, _| Self::Switch(vec![below]))
    }
}

/// The latency that a device reports of itself: one entry of the Device Scoped Latency and Bandwidth Information Structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dslbis {
    /// Range of addresses that it is about.
    pub handle: u8,
    /// Kind of datum: 1 for the latency of reads.
    pub data_type: u8,
    /// Picoseconds of a unit.
    pub unit_ps: u64,
    /// Units.
    pub entry: u16,
}

/// Bytes of the structure. [X] CDAT
pub const DSLBIS_BYTES: usize = 24;

/// The data type of read latency. [X] CDAT
const READ_LATENCY: u8 = 1;

impl Dslbis {
    /// A read latency in nanoseconds, at most 65,535.
    pub fn read_latency(span: SimSpan) -> Self {
        let entry = u16::try_from(span.as_ns()).unwrap_or(u16::MAX);
        Self { handle: 0, data_type: READ_LATENCY, unit_ps: 1000, entry }
    }

    /// The latency.
    pub fn span(&self) -> SimSpan {
        SimSpan::from_ps(self.unit_ps.saturating_mul(self.entry.into()))
    }

    /// The structure as the mailbox hands it out.
    pub fn encode(&self) -> [u8; DSLBIS_BYTES] {
        let mut bytes = [0; DSLBIS_BYTES];
        bytes[0] = 1;
        bytes[2..4].copy_from_slice(&(DSLBIS_BYTES as u16).to_le_bytes());
        bytes[4] = self.handle;
        bytes[6] = self.data_type;
        bytes[8..16].copy_from_slice(&self.unit_ps.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.entry.to_le_bytes());
        bytes
    }

    /// Reads a structure; `None` for another type or length.
    pub fn decode(bytes: &[u8; DSLBIS_BYTES]) -> Option<Self> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let mut unit = [0; 8];
        unit.copy_from_slice(&bytes[8..16]);
        (bytes[0] == 1 && usize::from(u16_at(2)) == DSLBIS_BYTES).then(|| Self {
            handle: bytes[4],
            data_type: bytes[6],
            unit_ps: u64::from_le_bytes(unit),
            entry: u16_at(16),
        })
    }
}

/// Bus numbers of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// The bus in front of it.
    pub primary: u8,
    /// The bus behind it.
    pub secondary: u8,
    /// The last bus that is reached through it.
    pub subordinate: u8,
}

/// A device after enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its bus.
    pub bus: u8,
    /// The table that its mailbox has handed out.
    pub table: [u8; DSLBIS_BYTES],
    /// The register of its configuration space in which the host leaves the latency from end to end, in nanoseconds.
    pub end_to_end_ns: u32,
}

/// Buses below a root port.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    bridges: Vec<Bridge>,
    /// Devices in the order of their buses.
    pub devices: Vec<Found>,
}

impl Topology {
    /// Enumerates what hangs on a root port. `None` where there are more than 256 buses.
    pub fn enumerate(below: &Node) -> Option<Self> {
        let mut topology = Self::default();
        topology.bridge(0, &mut 0, |topology, bus, last| topology.walk(below, bus, last))?;
        Some(topology)
    }

    /// Numbers the bus behind a bridge on `primary` and what `inner` finds there.
    fn bridge(
        &mut self,
        primary: u8,
        last: &mut u8,
        inner: impl FnOnce(&mut Self, u8, &mut u8) -> Option<()>,
    ) -> Option<()> {
        *last = last.checked_add(1)?;
        let (place, secondary) = (self.bridges.len(), *last);
        self.bridges.push(Bridge { primary, secondary, subordinate: u8::MAX });
        inner(self, secondary, last)?;
        self.bridges[place].subordinate = *last;
        Some(())
    }

    fn walk(&mut self, node: &Node, bus: u8, last: &mut u8) -> Option<()> {
        match node {
            Node::Device(table) => {
                self.devices.push(Found { bus, table: table.encode(), end_to_end_ns: 0 });
                Some(())
            }
            Node::Switch(ports) => self.bridge(bus, last, |topology, inside, last| {
                ports.iter().try_for_each(|port| {
                    topology.bridge(inside, last, |topology, below, last| topology.walk(port, below, last))
                })
            }),
        }
    }

    /// Switches between the root port and a bus: each has two bridges on the way, and the root port is one more.
    pub fn switches_before(&self, bus: u8) -> u32 {
        let on_the_way = |bridge: &&Bridge| (bridge.secondary..=bridge.subordinate).contains(&bus);
        (self.bridges.iter().filter(on_the_way).count() as u32).saturating_sub(1) / 2
    }

    /// Computes the latency of each device from end to end, the hierarchy there and back and its own, over paths like `path`, whose switches are not looked at, and writes it into
    /// the device's configuration space.
    pub fn write_latencies(&mut self, path: &PathConfig) {
        for place in 0..self.devices.len() {
            let device = self.devices[place];
            let hierarchy = PathConfig { switches: self.switches_before(device.bus), ..*path }.one_way();
            let own = Dslbis::decode(&device.table).map_or(SimSpan::ZERO, |table| table.span());
            // Arrivals are noted at the device, a way after the host has asked; a push takes another. Both carry 80 bytes over the link.
            let link = path.link_rate.span_of(wire_bytes(PushMessage::Push.bytes()));
            let whole = ((hierarchy + link) * 2 + own).as_ps().div_ceil(1000);
            self.devices[place].end_to_end_ns = u32::try_from(whole).unwrap_or(u32::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::ByteRate;

    fn path() -> PathConfig {
        PathConfig {
            link_rate: ByteRate::from_mb(64_000),
            port: SimSpan::from_ns(40),
            switches: 9,
            switch: SimSpan::from_ns(70),
        }
    }

    #[test]
    fn switches_follow_from_buses() {
        let table = |ns| Dslbis::read_latency(SimSpan::from_ns(ns));
        for switches in 0..5 {
            let mut topology = Topology::enumerate(&Node::chain(switches, table(120))).expect("few buses");
            topology.write_latencies(&path());
            let device = topology.devices[0];
            assert_eq!(u32::from(device.bus), 2 * switches + 1);
            assert_eq!(topology.switches_before(device.bus), switches);
            assert_eq!(device.end_to_end_ns, 2 * (40 + 70 * switches) + 3 + 120, "86 bytes take 1.3 ns");
        }
    }

    #[test]
    fn devices_of_a_tree_have_latencies_of_their_own() {
        let device = |ns| Node::Device(Dslbis::read_latency(SimSpan::from_ns(ns)));
        let tree = Node::Switch(vec![device(100), Node::Switch(vec![device(200), device(300)]), device(400)]);
        let mut topology = Topology::enumerate(&tree).expect("few buses");
        topology.write_latencies(&path());
        let found: Vec<u32> = topology.devices.iter().map(|device| device.end_to_end_ns).collect();
        assert_eq!(found, [323, 563, 663, 623]);
    }

    #[test]
    fn a_table_is_read_back_and_others_are_refused() {
        let table = Dslbis { handle: 3, data_type: 1, unit_ps: 100, entry: 1234 };
        let bytes = table.encode();
        assert_eq!(Dslbis::decode(&bytes), Some(table));
        assert_eq!(table.span(), SimSpan::from_ps(123_400));
        assert_eq!(Dslbis::decode(&[0; DSLBIS_BYTES]), None);
        let deep = Node::chain(200, table);
        assert!(Topology::enumerate(&deep).is_none(), "there are 256 buses");
    }
}
