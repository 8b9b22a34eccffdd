//! HDM decoders: which port has the memory at an address of the host, and at which address of the device it lies.
//!
//! Source: [X] CXL 3.1 §8.2.4.20 (ranges in 256 MiB, ways and granularity of interleaving); [P] sheets micro-cxl-gpu §3.1 and
//! micro-cxl-ssd §3.2 (firmware reads sizes, and writes base and size for each root port).

use flashyard_units::Bytes;

/// Ports that a decoder spreads a range over at most. [X]
pub const WAYS_MAX: usize = 16;

/// Where an address of the host lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed {
    /// Number of the port.
    pub port: u8,
    /// Address of the device.
    pub address: u64,
}

/// A range of the host's addresses over one port, or over several in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HdmDecoder {
    base: u64,
    size: u64,
    /// Bytes that follow each other on one port, as a power of two.
    granularity_bits: u32,
    ways: u8,
    ports: [u8; WAYS_MAX],
}

/// Why a decoder cannot be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HdmError {
    /// No port, or a number of them by which no decoder interleaves.
    #[error("{0} ports of an HDM decoder, give 1, 2, 4, 8 or 16")]
    Ways(usize),
    /// Parts that no decoder has.
    #[error("{0} bytes on a port before the next one, give a power of two from 256 to 16384")]
    Granularity(u64),
    /// A range that is empty, ends beyond 64 bits, or is no multiple of what goes round its ports.
    #[error("{size} bytes from {base:#x} in an HDM decoder, give whole rounds over its ports")]
    Range {
        /// First address.
        base: u64,
        /// Size.
        size: u64,
    },
    /// Two decoders with an address in common.
    #[error("the range from {0:#x} overlaps one that is committed")]
    Overlaps(u64),
}

impl HdmDecoder {
    /// The range of `size` from `base` over `ports` in turn, so many bytes each.
    ///
    /// Errors: numbers that no decoder has.
    pub fn new(base: u64, size: Bytes, ports: &[u8], granularity: Bytes) -> Result<Self, HdmError> {
        let (size, granularity) = (size.get(), granularity.get());
        if !matches!(ports.len(), 1 | 2 | 4 | 8 | 16) {
            return Err(HdmError::Ways(ports.len()));
        }
        if !granularity.is_power_of_two() || !(256..=16_384).contains(&granularity) {
            return Err(HdmError::Granularity(granularity));
        }
        let round = granularity * ports.len() as u64;
        if size == 0 || base.checked_add(size - 1).is_none() || size % round != 0 {
            return Err(HdmError::Range { base, size });
        }
        let mut all = [0; WAYS_MAX];
        all[..ports.len()].copy_from_slice(ports);
        let granularity_bits = granularity.trailing_zeros();
        Ok(Self { base, size, granularity_bits, ways: ports.len() as u8, ports: all })
    }

    /// Whether the range has an address.
    #[inline]
    pub const fn holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.size
    }

    /// Where an address lies; `None` outside the range.
    #[inline]
    pub fn route(&self, address: u64) -> Option<Routed> {
        let offset = self.holds(address).then(|| address - self.base)?;
        let (part, within) = (offset >> self.granularity_bits, offset & ((1 << self.granularity_bits) - 1));
        let ways = u64::from(self.ways);
        let port = self.ports[(part % ways) as usize];
        Some(Routed { port, address: (part / ways) << self.granularity_bits | within })
    }
}

/// The decoders of a host bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HdmDecoders(Vec<HdmDecoder>);

impl HdmDecoders {
    /// Commits a further decoder.
    ///
    /// Errors: a range that overlaps another one.
    pub fn commit(&mut self, decoder: HdmDecoder) -> Result<(), HdmError> {
        let last = |of: &HdmDecoder| of.base + (of.size - 1);
        if self.0.iter().any(|other| other.base <= last(&decoder) && decoder.base <= last(other)) {
            return Err(HdmError::Overlaps(decoder.base));
        }
        self.0.push(decoder);
        Ok(())
    }

    /// Where an address lies; `None` where no decoder has it.
    pub fn route(&self, address: u64) -> Option<Routed> {
        self.0.iter().find_map(|decoder| decoder.route(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn every_byte_has_a_place_of_its_own_and_ports_have_equal_parts(
            ways_bits in 0_u32..5, rounds in 1_u64..5, base in 0_u64..1 << 40,
        ) {
            let ways = 1 << ways_bits;
            let ports: Vec<u8> = (0..ways).map(|port| 100 + port as u8).collect();
            let size = 256 * ways * rounds;
            let decoder = HdmDecoder::new(base, Bytes::new(size), &ports, Bytes::new(256)).expect("it is possible");
            let mut places = BTreeSet::new();
            for address in base..base + size {
                let Routed { port, address } = decoder.route(address).expect("it is in the range");
                prop_assert!(ports.contains(&port) && address < 256 * rounds);
                places.insert((port, address));
            }
            prop_assert_eq!(places.len() as u64, size);
            prop_assert_eq!((decoder.route(base + size), decoder.holds(base.wrapping_sub(1))), (None, false));
        }
    }

    #[test]
    fn ranges_that_cannot_be_are_refused_in_words() {
        let of = |base, size, ports: &[u8], granularity| {
            HdmDecoder::new(base, Bytes::new(size), ports, Bytes::new(granularity)).map_err(|error| error.to_string())
        };
        assert!(of(0, 768, &[1, 2, 3], 256).is_err_and(|error| error.contains("give 1, 2, 4, 8 or 16")));
        assert!(of(0, 512, &[1, 2], 64).is_err_and(|error| error.contains("256 to 16384")));
        assert!(of(0, 768, &[1, 2], 256).is_err_and(|error| error.contains("whole rounds")));
        assert!(of(u64::MAX - 255, 512, &[1], 256).is_err());
        assert!(of(u64::MAX - 255, 256, &[1], 256).is_ok(), "the last 256 bytes that there are");
    }

    #[test]
    fn decoders_do_not_overlap() {
        let at = |base| HdmDecoder::new(base, Bytes::new(1024), &[7], Bytes::new(256)).expect("it is possible");
        let mut decoders = HdmDecoders::default();
        assert_eq!((decoders.commit(at(0)), decoders.commit(at(1024))), (Ok(()), Ok(())));
        assert_eq!(decoders.commit(at(512)), Err(HdmError::Overlaps(512)));
        assert_eq!(decoders.route(1030), Some(Routed { port: 7, address: 6 }));
        assert_eq!(decoders.route(2048), None);
    }
}
