//! The decoders of a whole hierarchy, as firmware commits them after enumeration, and the way of an address through them.
//!
//! An address goes down level by level: the window of the platform names a host bridge, its decoders a root port, those of
//! each switch a port downstream, and the decoder of the endpoint that is reached says where on the device the address lies.
//! An address that a level does not claim goes nowhere. Decoders are the one thing that knows where an address lies.
//!
//! Source: [X] CXL 3.1 §8.2.4.20; [P] sheets micro-cxl-gpu §3.1 and micro-cxl-ssd §3.2.

use crate::topology::Topology;
use flashyard_cxl::{EndpointDecoder, HdmDecoder, HdmDecoders, HdmError, Interleave};
use flashyard_units::Bytes;

/// Bytes on one target before the next one where there is one alone: the least that decoders have. [X] CXL
const GRANULARITY: Bytes = Bytes::new(256);

/// Where an address of the host lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed {
    /// Place of the device in [`Topology::devices`].
    pub device: usize,
    /// Address of the device.
    pub address: u64,
}

/// The part of a hierarchy that a target leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    Nothing,
    /// Decoders of a host bridge or a switch.
    Level(u8),
    Device(u8),
}

/// Committed decoders.
#[derive(Clone, Debug)]
pub struct Routing {
    window: HdmDecoders,
    levels: Vec<HdmDecoders>,
    /// By the bus that a decoder names as its target.
    below: [Below; 256],
    /// One for each device.
    endpoints: Vec<EndpointDecoder>,
}

impl Routing {
    /// Where an address lies; `None` where no decoder claims it.
    #[inline]
    pub fn route(&self, address: u64) -> Option<Routed> {
        let mut target = self.window.target(address)?;
        loop {
            match self.below[usize::from(target)] {
                Below::Level(level) => target = self.levels[usize::from(level)].target(address)?,
                Below::Device(device) => {
                    let device = usize::from(device);
                    return self.endpoints[device].device_address(address).map(|address| Routed { device, address });
                }
                Below::Nothing => return None,
            }
        }
    }

    /// The ranges that decoders claim: first and last address of each.
    pub fn ranges(&self) -> impl Iterator<Item = [u64; 2]> + '_ {
        self.window.ranges()
    }
}

/// A device's range of the host's addresses.
#[derive(Clone, Copy)]
struct OfDevice {
    bus: u8,
    base: u64,
    size: Bytes,
}

/// Decoders while they are being committed.
struct Firmware<'a> {
    topology: &'a Topology,
    levels: Vec<HdmDecoders>,
    below: [Below; 256],
}

impl<'a> Firmware<'a> {
    fn new(topology: &'a Topology) -> Self {
        let mut below = [Below::Nothing; 256];
        for (place, device) in topology.devices.iter().enumerate() {
            below[usize::from(device.bus)] = Below::Device(place as u8);
        }
        Self { topology, levels: Vec::new(), below }
    }

    /// Makes a level whose targets hang on `inside`, and all levels below it; `target` leads to it. `commit` is told the bus of the
    /// level, the number of its decoders, and the levels that its ports lead to, and returns what its caller asks for.
    fn level<T>(
        &mut self,
        target: u8,
        inside: u8,
        commit: &mut impl FnMut(&[u8], &mut HdmDecoders, &[T]) -> Result<T, HdmError>,
        leaf: &T,
    ) -> Result<T, HdmError>
    where
        T: Clone,
    {
        let ports = self.topology.ports(inside);
        let mut found = Vec::new();
        for &port in &ports {
            let is_device = matches!(self.below[usize::from(port)], Below::Device(_));
            match self.topology.ports(port).first() {
                Some(&inner) if !is_device => found.push(self.level(port, inner, commit, leaf)?),
                _ => found.push(leaf.clone()),
            }
        }
        let mut decoders = HdmDecoders::default();
        let all = commit(&ports, &mut decoders, &found)?;
        self.below[usize::from(target)] = Below::Level(self.levels.len() as u8);
        self.levels.push(decoders);
        Ok(all)
    }
}

impl Topology {
    /// Commits decoders that give each device a range of its own, one after the other from an address of the host on. The first
    /// `skipped` bytes of each device are in no range.
    ///
    /// Errors: sizes that are no multiple of 256 bytes, that are skipped as a whole, or that do not fit into 64 bits together.
    pub fn one_after_another(&self, base: u64, skipped: Bytes) -> Result<Routing, HdmError> {
        let mut next = base;
        let mut ranges = Vec::new();
        for device in &self.devices {
            let size = Bytes::new(device.size.get().saturating_sub(skipped.get()));
            ranges.push(OfDevice { bus: device.bus, base: next, size });
            next = next.wrapping_add(size.get());
        }
        let one = Interleave::new(1, GRANULARITY)?;
        let endpoint = |of: &OfDevice| EndpointDecoder::new(of.base, of.size, one, skipped);
        let endpoints = ranges.iter().map(endpoint).collect::<Result<_, _>>()?;
        let mut firmware = Firmware::new(self);
        let mut commit = |ports: &[u8], decoders: &mut HdmDecoders, _: &[()]| {
            for of in &ranges {
                if let Some(port) = ports.iter().find(|port| self.leads_to(**port, of.bus)) {
                    decoders.commit(HdmDecoder::ports(of.base, of.size, &[*port], GRANULARITY)?)?;
                }
            }
            Ok(())
        };
        let mut window = HdmDecoders::default();
        for &bridge in self.host_bridges() {
            firmware.level(bridge, bridge, &mut commit, &())?;
            for of in ranges.iter().filter(|of| self.host_bridge_of(of.bus) == Some(bridge)) {
                window.commit(HdmDecoder::window(of.base, of.size, &[bridge], GRANULARITY)?)?;
            }
        }
        let Firmware { levels, below, .. } = firmware;
        Ok(Routing { window, levels, below, endpoints })
    }

    /// Commits decoders that spread one range over all devices in turn, so many bytes each. The levels next to the devices take the
    /// lowest part of an address, since windows alone divide by three.
    ///
    /// Errors: devices of unequal sizes, or not as many behind each port as behind the others; numbers of ports, ways or bytes
    /// that no decoder has.
    pub fn interleaved(&self, base: u64, granularity: Bytes) -> Result<Routing, HdmError> {
        let size = self.devices.first().map_or(Bytes::ZERO, |device| device.size);
        if self.devices.iter().any(|device| device.size != size) {
            return Err(HdmError::Uneven);
        }
        let interleave = Interleave::new(self.devices.len(), granularity)?;
        let whole = size.get().checked_mul(self.devices.len() as u64);
        let whole = Bytes::new(whole.ok_or(HdmError::Range { base, size: size.get() })?);
        let endpoint = EndpointDecoder::new(base, whole, interleave, Bytes::ZERO)?;
        let mut firmware = Firmware::new(self);
        let even = |ways: &[usize]| match *ways {
            [first, ref others @ ..] if others.iter().all(|other| *other == first) => Ok(first),
            _ => Err(HdmError::Uneven),
        };
        let mut commit = |ports: &[u8], decoders: &mut HdmDecoders, below: &[usize]| {
            let below = even(below)?;
            let here = Bytes::new(granularity.get() * below as u64);
            decoders.commit(HdmDecoder::ports(base, whole, ports, here)?)?;
            Ok(below * ports.len())
        };
        let bridges = self.host_bridges();
        let below = bridges.iter().map(|&bridge| firmware.level(bridge, bridge, &mut commit, &1));
        let below = even(&below.collect::<Result<Vec<_>, _>>()?)?;
        let mut window = HdmDecoders::default();
        window.commit(HdmDecoder::window(base, whole, bridges, Bytes::new(granularity.get() * below as u64))?)?;
        let Firmware { levels, below, .. } = firmware;
        Ok(Routing { window, levels, below, endpoints: vec![endpoint; self.devices.len()] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Node;
    use flashyard_units::SimSpan;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const MIB: u64 = 1 << 20;

    fn device(mib: u64) -> Node {
        Node::device(Bytes::new(mib * MIB), SimSpan::from_ns(100))
    }

    /// So many host bridges with so many root ports each, a switch with so many ports behind each, in so many levels.
    fn regular(bridges: usize, root_ports: usize, switch_ports: usize, levels: u32) -> Topology {
        let below = (0..levels).fold(device(1), |below, _| Node::Switch(vec![below; switch_ports]));
        let bridge = vec![below; root_ports];
        Topology::of_host_bridges(&vec![bridge; bridges]).expect("few buses")
    }

    #[test]
    fn devices_of_a_tree_have_ranges_of_their_own() {
        let tree = Node::Switch(vec![device(100), Node::Switch(vec![device(200), device(300)]), device(400)]);
        let topology = Topology::of_host_bridges(&[vec![tree, device(50)], vec![device(7)]]).expect("few buses");
        let base = 1 << 40;
        let routing = topology.one_after_another(base, Bytes::ZERO).expect("sizes are whole");
        let of = |mib: u64| routing.route(base + mib * MIB).map(|routed| (routed.device, routed.address / MIB));
        assert_eq!(of(0), Some((0, 0)));
        assert_eq!(of(100), Some((1, 0)), "the second begins where the first ends");
        assert_eq!((of(599), of(600)), (Some((2, 299)), Some((3, 0))));
        assert_eq!((of(999), of(1000), of(1056)), (Some((3, 399)), Some((4, 0)), Some((5, 6))));
        assert_eq!((of(1057), routing.route(base - 1)), (None, None));
        assert_eq!(routing.ranges().count(), 6);
        assert_eq!(routing.ranges().map(|[first, last]| last - first + 1).sum::<u64>(), 1057 * MIB);
    }

    #[test]
    fn skipped_bytes_of_a_device_are_in_no_range() {
        let topology = Topology::enumerate(&device(8).behind(2)).expect("few buses");
        let routing = topology.one_after_another(MIB, Bytes::new(MIB)).expect("sizes are whole");
        assert_eq!(routing.route(MIB + 5), Some(Routed { device: 0, address: MIB + 5 }), "the place is the address");
        assert_eq!((routing.route(MIB - 1), routing.route(8 * MIB)), (None, None));
        assert_eq!(routing.route(8 * MIB - 1), Some(Routed { device: 0, address: 8 * MIB - 1 }));
        let all = topology.one_after_another(0, Bytes::new(8 * MIB));
        assert!(matches!(all, Err(HdmError::Range { .. })), "nothing is left");
    }

    #[test]
    fn uneven_hierarchies_are_not_interleaved() {
        let of = |bridges: &[Vec<Node>], bytes| {
            let topology = Topology::of_host_bridges(bridges).expect("few buses");
            topology.interleaved(0, Bytes::new(bytes)).map(|_| ())
        };
        assert_eq!(of(&[vec![device(1), device(2)]], 256), Err(HdmError::Uneven), "sizes");
        let uneven = vec![Node::Switch(vec![device(1); 2]), device(1), device(1)];
        assert_eq!(of(&[uneven], 256), Err(HdmError::Uneven), "a port with two devices beside ports with one");
        assert_eq!(of(&[vec![device(1); 3]], 256), Err(HdmError::Ports(3)), "a host bridge divides by no three");
        assert_eq!(of(&vec![vec![device(1)]; 3], 256), Ok(()), "a window does");
        assert_eq!(of(&[vec![Node::Switch(vec![device(1); 2]); 2]], 16_384), Err(HdmError::Granularity(32_768)));
        assert_eq!(of(&[vec![device(1); 5]], 256), Err(HdmError::Ways(5)));
        assert_eq!(of(&[vec![Node::Switch(Vec::new())]], 256), Err(HdmError::Ways(0)));
    }

    /// The literal reading: rounds over all devices, of which those of a port come one after the other, part by part. The lowest
    /// part of an address counts the ports of the last switch, the next one those of the switch before it, and so on to the window.
    fn literal(topology: [u64; 4], granularity: u64, offset: u64) -> (Vec<u64>, u64) {
        let [bridges, root_ports, switch_ports, levels] = topology;
        let mut part = offset / granularity;
        let mut choices = Vec::new();
        for ways in std::iter::repeat_n(switch_ports, levels as usize).chain([root_ports, bridges]) {
            choices.push(part % ways);
            part /= ways;
        }
        choices.reverse();
        (choices, part * granularity + offset % granularity)
    }

    proptest! {
        #[test]
        fn hierarchies_route_as_their_literal_reading(
            bridges in prop::sample::select(&[1_u64, 2, 3, 4, 6, 8][..]), root_ports in prop::sample::select(&[1_u64, 2, 4][..]),
            switch_ports in prop::sample::select(&[1_u64, 2, 4][..]), levels in 0_u64..3, ig in 0_u32..7,
            offsets in prop::collection::vec(any::<u64>(), 20), base in 0_u64..1 << 50,
        ) {
            let ways = bridges * root_ports * switch_ports.pow(levels as u32);
            let granularity = 256_u64 << ig;
            let coarsest = granularity * root_ports * switch_ports.pow(levels as u32);
            prop_assume!([1, 2, 3, 4, 6, 8, 12, 16].contains(&ways) && coarsest <= 16_384);
            // A size that all of these divide.
            let bytes = 3 * 16_384 * 16;
            let below = (0..levels).fold(Node::device(Bytes::new(bytes), SimSpan::ZERO), |below, _| {
                Node::Switch(vec![below; switch_ports as usize])
            });
            let topology = Topology::of_host_bridges(&vec![vec![below; root_ports as usize]; bridges as usize]);
            let topology = topology.expect("few buses");
            let routing = topology.interleaved(base, Bytes::new(granularity)).expect("it is even");
            for offset in offsets.into_iter().map(|offset| offset % (bytes * ways)) {
                let (choices, address) = literal([bridges, root_ports, switch_ports, levels], granularity, offset);
                let radix = [bridges, root_ports].into_iter().chain(std::iter::repeat_n(switch_ports, levels as usize));
                // Devices are numbered depth first.
                let device = choices.iter().zip(radix).fold(0, |number, (choice, ways)| number * ways + choice);
                prop_assert_eq!(routing.route(base + offset), Some(Routed { device: device as usize, address }));
            }
            prop_assert_eq!(routing.route(base + bytes * ways), None);
            prop_assert_eq!(base.checked_sub(1).and_then(|before| routing.route(before)), None);
        }
    }

    #[test]
    fn every_line_has_a_place_of_its_own_for_all_hierarchies() {
        for (bridges, root_ports, switch_ports, levels) in [(1, 1, 1, 4), (1, 2, 2, 2), (2, 2, 4, 1), (4, 1, 4, 1)] {
            let topology = regular(bridges, root_ports, switch_ports, levels);
            let routing = topology.interleaved(0, Bytes::new(1024)).expect("it is even");
            let mut places = BTreeMap::new();
            let lines = topology.devices.len() as u64 * MIB / 64;
            for line in 0..lines {
                let routed = routing.route(line * 64).expect("it is in the range");
                assert!(routed.address < MIB);
                assert_eq!(places.insert((routed.device, routed.address), line), None);
            }
            assert_eq!(places.len() as u64, lines);
        }
    }
}
