//! HDM decoders: on which way an address of the host goes on, and at which address of the device it lies.
//!
//! Each level has decoders of its own. The window of the platform chooses a host bridge, the decoders of a host bridge choose
//! a root port, those of a switch a port downstream, and that of an endpoint turns the address into one of the device. All of
//! them know the same range of the host; a level looks at its own part of the address, by its granularity and its ways.
//!
//! Sizes and bases are in 256 bytes here. Registers have them in 256 MiB, which small examples would not reach.
//!
//! Source: [X] CXL 3.1 §8.2.4.20 (base, size, ways, granularity, targets, skipped addresses of the device) and §9.18.1.3
//! (windows); [P] sheets micro-cxl-gpu §3.1 and micro-cxl-ssd §3.2 (firmware reads sizes, and writes base and size for each
//! root port).

use flashyard_units::Bytes;

/// Targets that a decoder spreads a range over at most. [X]
pub const WAYS_MAX: usize = 16;

/// Ways by which windows and endpoints interleave. [X]
const WAYS: [usize; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
/// Ways by which host bridges and switches do. [X]
const PORT_WAYS: [usize; 4] = [1, 2, 4, 8];

/// Why a decoder cannot be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HdmError {
    /// A number by which no window and no endpoint interleaves.
    #[error("{0} ways of an HDM decoder, give 1, 2, 3, 4, 6, 8, 12 or 16")]
    Ways(usize),
    /// A number by which no host bridge and no switch interleaves.
    #[error("{0} ports of an HDM decoder in a host bridge or a switch, give 1, 2, 4 or 8")]
    Ports(usize),
    /// Parts that no decoder has.
    #[error("{0} bytes on a target before the next one, give a power of two from 256 to 16384")]
    Granularity(u64),
    /// A range that is empty, ends beyond 64 bits, or is no multiple of what goes round its targets.
    #[error("{size} bytes from {base:#x} in an HDM decoder, give whole rounds over its targets")]
    Range {
        /// First address.
        base: u64,
        /// Size.
        size: u64,
    },
    /// Two decoders with an address in common.
    #[error("the range from {0:#x} overlaps one that is committed")]
    Overlaps(u64),
    /// Devices that cannot share a range in turn.
    #[error(
        "a range over several devices takes devices of equal size, and as many behind each port as behind the others"
    )]
    Uneven,
}

/// How a range goes round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interleave {
    /// Bytes that follow each other on one target, as a power of two.
    granularity_bits: u32,
    ways: u8,
}

impl Interleave {
    /// So many bytes on each of so many targets in turn.
    ///
    /// Errors: numbers that no decoder has.
    pub fn new(ways: usize, granularity: Bytes) -> Result<Self, HdmError> {
        let bytes = granularity.get();
        if !WAYS.contains(&ways) {
            return Err(HdmError::Ways(ways));
        }
        if !bytes.is_power_of_two() || !(256..=16_384).contains(&bytes) {
            return Err(HdmError::Granularity(bytes));
        }
        Ok(Self { granularity_bits: bytes.trailing_zeros(), ways: ways as u8 })
    }

    /// Bytes of a round.
    const fn round(self) -> u64 {
        (self.ways as u64) << self.granularity_bits
    }

    /// The number of the target of an address, which counts from the begin of the range.
    #[inline]
    const fn target(self, offset: u64) -> usize {
        if self.ways == 1 { 0 } else { ((offset >> self.granularity_bits) % self.ways as u64) as usize }
    }

    /// The address without the part that chose the target.
    #[inline]
    const fn on_target(self, offset: u64) -> u64 {
        if self.ways == 1 {
            return offset;
        }
        let within = offset & ((1 << self.granularity_bits) - 1);
        ((offset >> self.granularity_bits) / self.ways as u64) << self.granularity_bits | within
    }
}

/// A range of the host's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    base: u64,
    size: u64,
}

impl Range {
    fn new(base: u64, size: Bytes, interleave: Interleave) -> Result<Self, HdmError> {
        let size = size.get();
        if size == 0 || base.checked_add(size - 1).is_none() || !size.is_multiple_of(interleave.round()) {
            return Err(HdmError::Range { base, size });
        }
        Ok(Self { base, size })
    }

    /// Where an address lies in the range, if it does.
    #[inline]
    const fn offset(self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.base);
        if offset < self.size { Some(offset) } else { None }
    }

    const fn last(self) -> u64 {
        self.base + (self.size - 1)
    }
}

/// A decoder that chooses a target: of the platform, of a host bridge, or of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HdmDecoder {
    range: Range,
    interleave: Interleave,
    targets: [u8; WAYS_MAX],
}

impl HdmDecoder {
    /// The range of `size` from `base` over host bridges in turn, so many bytes each: a window of the platform.
    ///
    /// Errors: numbers that no window has.
    pub fn window(base: u64, size: Bytes, bridges: &[u8], granularity: Bytes) -> Result<Self, HdmError> {
        let interleave = Interleave::new(bridges.len(), granularity)?;
        let mut targets = [0; WAYS_MAX];
        targets[..bridges.len()].copy_from_slice(bridges);
        Ok(Self { range: Range::new(base, size, interleave)?, interleave, targets })
    }

    /// The range of `size` from `base` over ports in turn, so many bytes each: the decoder of a host bridge or a switch.
    ///
    /// Errors: numbers that no decoder has.
    pub fn ports(base: u64, size: Bytes, ports: &[u8], granularity: Bytes) -> Result<Self, HdmError> {
        if !PORT_WAYS.contains(&ports.len()) {
            return Err(HdmError::Ports(ports.len()));
        }
        Self::window(base, size, ports, granularity)
    }

    /// The target that has an address; `None` outside the range.
    #[inline]
    pub fn target(&self, address: u64) -> Option<u8> {
        self.range.offset(address).map(|offset| self.targets[self.interleave.target(offset)])
    }
}

/// The decoders of one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HdmDecoders(Vec<HdmDecoder>);

impl HdmDecoders {
    /// Commits a further decoder.
    ///
    /// Errors: a range that overlaps another one.
    pub fn commit(&mut self, decoder: HdmDecoder) -> Result<(), HdmError> {
        let new = decoder.range;
        let overlaps = |other: &HdmDecoder| other.range.base <= new.last() && new.base <= other.range.last();
        if self.0.iter().any(overlaps) {
            return Err(HdmError::Overlaps(new.base));
        }
        self.0.push(decoder);
        Ok(())
    }

    /// The target that has an address; `None` where no decoder has it.
    #[inline]
    pub fn target(&self, address: u64) -> Option<u8> {
        self.0.iter().find_map(|decoder| decoder.target(address))
    }

    /// Ranges in the order in which they were committed: first and last address.
    pub fn ranges(&self) -> impl Iterator<Item = [u64; 2]> + '_ {
        self.0.iter().map(|decoder| [decoder.range.base, decoder.range.last()])
    }
}

/// The decoder of an endpoint: its part of a range that several endpoints may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointDecoder {
    range: Range,
    interleave: Interleave,
    skipped: u64,
}

impl EndpointDecoder {
    /// The range of `size` from `base` that so many endpoints share, on the device behind `skipped` bytes.
    ///
    /// Errors: numbers that no decoder has.
    pub fn new(base: u64, size: Bytes, interleave: Interleave, skipped: Bytes) -> Result<Self, HdmError> {
        let range = Range::new(base, size, interleave)?;
        let skipped = skipped.get();
        let part = size.get() / u64::from(interleave.ways);
        skipped.checked_add(part).ok_or(HdmError::Range { base, size: size.get() })?;
        Ok(Self { range, interleave, skipped })
    }

    /// The address of the device; `None` outside the range.
    #[inline]
    pub fn device_address(&self, address: u64) -> Option<u64> {
        self.range.offset(address).map(|offset| self.skipped + self.interleave.on_target(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const GRANULARITIES: [u64; 7] = [256, 512, 1024, 2048, 4096, 8192, 16_384];

    /// The formulas of the specification, by the fields of the registers: `ig` counts from 256 bytes, `iw` is the encoded number of
    /// ways. Target and address of the device.
    fn by_registers(offset: u64, ig: u32, iw: u32) -> (u64, u64) {
        let low = offset & ((1 << (ig + 8)) - 1);
        if iw < 8 {
            let target = offset >> (ig + 8) & ((1 << iw) - 1);
            return (target, offset >> (ig + 8 + iw) << (ig + 8) | low);
        }
        let above = offset >> (ig + iw);
        let between = offset >> (ig + 8) & ((1 << (iw - 8)) - 1);
        (between | (above % 3) << (iw - 8), (above / 3) << (ig + 8) | low)
    }

    /// The encoded number of ways.
    fn iw(ways: usize) -> u32 {
        match ways {
            3 => 8,
            6 => 9,
            12 => 10,
            ways => ways.trailing_zeros(),
        }
    }

    #[test]
    fn decoders_do_what_the_registers_say_for_all_ways_and_granularities() {
        for ways in WAYS {
            for (ig, granularity) in GRANULARITIES.into_iter().enumerate() {
                let interleave = Interleave::new(ways, Bytes::new(granularity)).expect("it is possible");
                // Beginnings, ends and insides of parts, over several rounds and far into the range.
                let far = interleave.round() << 20;
                for part in (0..4 * ways as u64).map(|part| part * granularity).flat_map(|part| [part, far + part]) {
                    for within in [0, 1, 64, granularity - 64, granularity - 1] {
                        let offset = part + within;
                        let found = (interleave.target(offset) as u64, interleave.on_target(offset));
                        assert_eq!(
                            found,
                            by_registers(offset, ig as u32, iw(ways)),
                            "{ways} x {granularity}: {offset}"
                        );
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_address_is_decoded_as_the_registers_say(
            ways in prop::sample::select(&WAYS[..]), ig in 0_u32..7, offset in 0_u64..1 << 52, base in 0_u64..1 << 60,
            skipped in 0_u64..1 << 40,
        ) {
            let interleave = Interleave::new(ways, Bytes::new(256 << ig)).expect("it is possible");
            let size = Bytes::new(interleave.round() << 50_u32.saturating_sub(ig));
            prop_assume!(offset < size.get() && base.checked_add(size.get()).is_some());
            let targets: Vec<u8> = (0..ways).map(|target| 100 + target as u8).collect();
            let window = HdmDecoder::window(base, size, &targets, Bytes::new(256 << ig)).expect("it is possible");
            let endpoint = EndpointDecoder::new(base, size, interleave, Bytes::new(skipped)).expect("it is possible");
            let (target, address) = by_registers(offset, ig, iw(ways));
            prop_assert_eq!(window.target(base + offset), Some(100 + target as u8));
            prop_assert_eq!(endpoint.device_address(base + offset), Some(skipped + address));
        }

        #[test]
        fn every_byte_has_a_place_of_its_own_and_endpoints_have_equal_parts(
            ways in prop::sample::select(&WAYS[..]), rounds in 1_u64..5, base in 0_u64..1 << 40,
        ) {
            let targets: Vec<u8> = (0..ways).map(|target| 100 + target as u8).collect();
            let size = Bytes::new(256 * ways as u64 * rounds);
            let interleave = Interleave::new(ways, Bytes::new(256)).expect("it is possible");
            let window = HdmDecoder::window(base, size, &targets, Bytes::new(256)).expect("it is possible");
            let endpoint = EndpointDecoder::new(base, size, interleave, Bytes::ZERO).expect("it is possible");
            let mut places = BTreeSet::new();
            for address in base..base + size.get() {
                let target = window.target(address).expect("it is in the range");
                let on_device = endpoint.device_address(address).expect("it is in the range");
                prop_assert!(targets.contains(&target) && on_device < 256 * rounds);
                places.insert((target, on_device));
            }
            prop_assert_eq!(places.len() as u64, size.get());
            prop_assert_eq!((window.target(base + size.get()), window.target(base.wrapping_sub(1))), (None, None));
            prop_assert_eq!(endpoint.device_address(base + size.get()), None);
        }
    }

    #[test]
    fn ranges_that_cannot_be_are_refused_in_words() {
        let of = |base, size, bridges: &[u8], granularity| {
            HdmDecoder::window(base, Bytes::new(size), bridges, Bytes::new(granularity))
                .map_err(|error| error.to_string())
        };
        assert!(
            of(0, 1280, &[1, 2, 3, 4, 5], 256).is_err_and(|error| error.contains("give 1, 2, 3, 4, 6, 8, 12 or 16"))
        );
        assert!(of(0, 512, &[1, 2], 64).is_err_and(|error| error.contains("256 to 16384")));
        assert!(of(0, 768, &[1, 2], 256).is_err_and(|error| error.contains("whole rounds")));
        assert!(of(u64::MAX - 255, 512, &[1], 256).is_err());
        assert!(of(u64::MAX - 255, 256, &[1], 256).is_ok(), "the last 256 bytes that there are");
        let three = HdmDecoder::ports(0, Bytes::new(768), &[1, 2, 3], Bytes::new(256));
        assert_eq!(three, Err(HdmError::Ports(3)), "windows and endpoints alone divide by three");
    }

    #[test]
    fn decoders_do_not_overlap() {
        let at = |base| HdmDecoder::ports(base, Bytes::new(1024), &[7], Bytes::new(256)).expect("it is possible");
        let mut decoders = HdmDecoders::default();
        assert_eq!((decoders.commit(at(0)), decoders.commit(at(1024))), (Ok(()), Ok(())));
        assert_eq!(decoders.commit(at(512)), Err(HdmError::Overlaps(512)));
        assert_eq!((decoders.target(1030), decoders.target(2048)), (Some(7), None));
        assert_eq!(decoders.ranges().collect::<Vec<_>>(), [[0, 1023], [1024, 2047]]);
    }
}
