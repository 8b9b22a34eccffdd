//! How far a device is and what it has: buses by enumeration, the device's size and own latency by the tables of its mailbox, and the
//! latency from end to end as a number in its configuration space. `routing` commits decoders for the host's addresses.
//!
//! A switch is a bridge upstream and a bridge for each port downstream. Enumeration walks depth first and numbers buses; a bridge then knows
//! the range of buses behind it. The bridges whose ranges hold the bus of a device are those on its way.
//!
//! Source: [P] sheet micro-expand §3.7; [X] the DSLBIS of CDAT 1.03 and type 1 headers of PCIe.

use crate::path::PathConfig;
use flashyard_cxl::{Dslbis, Dsmas, Mailbox, PushMessage, wire_bytes};
use flashyard_units::{Bytes, SimSpan};
use std::borrow::Borrow;

/// A part of a hierarchy before it is enumerated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A switch with what hangs on its ports.
    Switch(Vec<Node>),
    /// A device with the mailbox that hands out its tables.
    Device(Mailbox),
}

impl Node {
    /// A device of so many bytes that reports this latency.
    pub fn device(size: Bytes, latency: SimSpan) -> Self {
        let range = Dsmas { handle: 0, base: 0, size };
        Self::Device(Mailbox::new(range, Dslbis::read_latency(latency)))
    }

    /// A device behind `switches` in a row.
    pub fn behind(self, switches: u32) -> Self {
        (0..switches).fold(self, |below, _| Self::Switch(vec![below]))
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
    /// Its memory, by the DSMAS that its mailbox has handed out.
    pub size: Bytes,
    /// Its own latency, by the DSLBIS.
    pub latency: SimSpan,
    /// The register of its configuration space in which the host leaves the latency from end to end, in nanoseconds.
    pub end_to_end_ns: u32,
}

/// Buses below host bridges.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// The bus of the root ports of each host bridge.
    host_bridges: Vec<u8>,
    bridges: Vec<Bridge>,
    /// Devices in the order of their buses.
    pub devices: Vec<Found>,
}

impl Topology {
    /// Enumerates what hangs on the only root port of a host, and reads the mailbox of each device. `None` where there are more than 256
    /// buses, or where a mailbox gives no whole answer.
    pub fn enumerate(below: &Node) -> Option<Self> {
        Self::of_host_bridges(&[[below]])
    }

    /// Enumerates what hangs on the root ports of host bridges, one bridge after the other, as [`Topology::enumerate`] does.
    pub fn of_host_bridges<N: Borrow<Node>>(bridges: &[impl AsRef<[N]>]) -> Option<Self> {
        let mut topology = Self::default();
        let mut next = Some(0_u8);
        for root_ports in bridges {
            let bus = next?;
            let mut last = bus;
            topology.host_bridges.push(bus);
            for below in root_ports.as_ref() {
                let below = below.borrow();
                topology.bridge(bus, &mut last, |topology, bus, last| topology.walk(below, bus, last))?;
            }
            next = last.checked_add(1);
        }
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
            Node::Device(mailbox) => {
                let tables = mailbox.clone().tables()?;
                let size = tables.iter().filter_map(Dsmas::decode).map(|range| range.size.get()).sum();
                let latency = tables.iter().find_map(Dslbis::decode).map_or(SimSpan::ZERO, |table| table.span());
                self.devices.push(Found { bus, size: Bytes::new(size), latency, end_to_end_ns: 0 });
                Some(())
            }
            Node::Switch(ports) => self.bridge(bus, last, |topology, inside, last| {
                ports.iter().try_for_each(|port| {
                    topology.bridge(inside, last, |topology, below, last| topology.walk(port, below, last))
                })
            }),
        }
    }

    /// The bus of the root ports of each host bridge.
    pub(crate) fn host_bridges(&self) -> &[u8] {
        &self.host_bridges
    }

    /// The buses behind the bridges on a bus.
    pub(crate) fn ports(&self, bus: u8) -> Vec<u8> {
        self.bridges.iter().filter(|bridge| bridge.primary == bus).map(|bridge| bridge.secondary).collect()
    }

    /// Whether a bus is reached through the bridge to `port`.
    pub(crate) fn leads_to(&self, port: u8, bus: u8) -> bool {
        let holds = |bridge: &Bridge| bridge.secondary == port && (port..=bridge.subordinate).contains(&bus);
        self.bridges.iter().any(holds)
    }

    /// The host bridge before a bus: the last one whose own bus has no higher number.
    pub(crate) fn host_bridge_of(&self, bus: u8) -> Option<u8> {
        self.host_bridges.iter().copied().rfind(|bridge| *bridge <= bus)
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
            // Arrivals are noted at the device, a way after the host has asked; a push takes another. Both carry 80 bytes over the link.
            let link = path.link_rate.span_of(wire_bytes(PushMessage::Push.bytes()));
            let whole = ((hierarchy + link) * 2 + device.latency).as_ps().div_ceil(1000);
            self.devices[place].end_to_end_ns = u32::try_from(whole).unwrap_or(u32::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Device, Expander, Served};
    use flashyard_cxl::{MemoryAccess, Transaction};
    use flashyard_units::{ByteRate, SimTime};

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
        for switches in 0..5 {
            let device = Node::device(Bytes::from_gib(64), SimSpan::from_ns(120));
            let mut topology = Topology::enumerate(&device.behind(switches)).expect("few buses");
            topology.write_latencies(&path());
            let device = topology.devices[0];
            assert_eq!(u32::from(device.bus), 2 * switches + 1);
            assert_eq!(topology.switches_before(device.bus), switches);
            assert_eq!(device.end_to_end_ns, 2 * (40 + 70 * switches) + 3 + 120, "86 bytes take 1.3 ns");
        }
    }

    /// A device that takes as long as it reports.
    struct AsReported(SimSpan);

    impl Device for AsReported {
        fn serve(&mut self, now: SimTime, _: &MemoryAccess) -> Served {
            Served { at: now + self.0, from_medium: false }
        }
    }

    #[test]
    fn the_latency_on_a_path_is_what_enumeration_says() {
        for switches in 0..5 {
            for own in [50, 120, 3000] {
                let own = SimSpan::from_ns(own);
                let device = Node::device(Bytes::from_gib(64), own);
                let mut topology = Topology::enumerate(&device.behind(switches)).expect("few buses");
                topology.write_latencies(&path());
                let said = SimSpan::from_ns(topology.devices[0].end_to_end_ns.into());
                // A read with a program counter on an idle path, and its line.
                let mut expander = Expander::new(PathConfig { switches, ..path() }, AsReported(own));
                let arrives = expander.send(SimTime::ZERO, PushMessage::ReadWithCounter.bytes());
                let done = expander.answer(arrives, &MemoryAccess::lines(Transaction::Load, 0, 1));
                let found = done.since(SimTime::ZERO);
                assert!(found <= said && said - found < SimSpan::from_ns(1), "{switches}: {found:?}, said {said:?}");
            }
        }
    }

    #[test]
    fn devices_of_a_tree_have_latencies_of_their_own() {
        let device = |ns| Node::device(Bytes::from_gib(ns), SimSpan::from_ns(ns));
        let tree = Node::Switch(vec![device(100), Node::Switch(vec![device(200), device(300)]), device(400)]);
        let mut topology = Topology::enumerate(&tree).expect("few buses");
        topology.write_latencies(&path());
        let found: Vec<u32> = topology.devices.iter().map(|device| device.end_to_end_ns).collect();
        assert_eq!(found, [323, 563, 663, 623]);
    }

    #[test]
    fn more_buses_than_there_are_numbers_are_refused() {
        let device = Node::device(Bytes::from_gib(1), SimSpan::from_ns(100));
        assert!(Topology::enumerate(&device.behind(200)).is_none(), "there are 256 buses");
    }
}
